//! A run as text, step by step: the result of the first step in full, then the changes of each step.

use strew_apiserver::object::WorkloadSpread;
use strew_scenario::expect::workloads::{self, PATCH_NOT_APPLIED};
use strew_scenario::format::Step;
use strew_scenario::run::{StepResult, StepState};
use strew_sim::Simulation;
use strew_suite::host::{self, Written};

use super::life::Seen;
use crate::spread_explain::{self, Line, Spreads};
use crate::text::{self, Look};
use strew_suite::clock::clock;
use strew_suite::shown::Shown;
use strew_view::cluster_state::{ClusterState, PodState};
use strew_view::skews::Skews;
use strew_view::view::View;

/// The text of a run.
pub(super) struct Screen<'a> {
    look: Look<'a>,
    /// Notes about the start.
    notes: Vec<String>,
    /// Patches that were not applied, after the last step.
    unpatched: Vec<String>,
    /// True if a step has a finding about such a patch.
    has_told_patches: bool,
    /// The last written line of each WorkloadSpread.
    spreads: Vec<Line>,
    steps: String,
    /// The summary of the first step, and of the last.
    summary: String,
    last: String,
    /// `deploy ok`, for each step with expectations.
    verdicts: Vec<String>,
    /// The names of the shown workloads, as in `kubectl get -o name`.
    names: Vec<String>,
}

impl<'a> Screen<'a> {
    pub(super) fn new(look: Look<'a>) -> Self {
        Self {
            look,
            notes: Vec::new(),
            unpatched: Vec::new(),
            has_told_patches: false,
            spreads: Vec::new(),
            steps: String::new(),
            summary: String::new(),
            last: String::new(),
            verdicts: Vec::new(),
            names: Vec::new(),
        }
    }

    /// A line for each WorkloadSpread of a shown workload that differs from its last line.
    fn spreads(&mut self, simulation: &Simulation, view: &View, shown: &Shown) -> String {
        if simulation
            .server()
            .tables()
            .of::<WorkloadSpread>()
            .is_empty()
        {
            return String::new();
        }
        let now = Spreads::of_moment(Seen::of(simulation));
        let now = now.as_ref().map(spread_explain::lines).unwrap_or_default();
        let is_shown = |line: &&Line| {
            let mut workloads = shown.workloads.iter();
            workloads.any(|&index| {
                let name = &view.world.workloads[index].name;
                let is_target =
                    |(kind, of): &(String, String)| *kind == name.kind && *of == name.name;
                name.namespace == line.namespace && line.target.as_ref().is_some_and(is_target)
            })
        };
        let mut text = String::new();
        let new = now.iter().filter(|line| !self.spreads.contains(line));
        for line in new.filter(is_shown) {
            let namespace = match line.namespace.as_str() {
                "default" => String::new(),
                _ if self.look.in_namespace => String::new(),
                namespace => format!(" -n {namespace}"),
            };
            text.push_str(&format!(
                "  workloadspread/{}{namespace}  {}\n",
                line.name, line.text
            ));
        }
        self.spreads = now;
        text
    }
}

impl host::Screen for Screen<'_> {
    fn begin(&mut self, start: &View) {
        self.notes = left_alone(&start.world);
    }

    fn step(
        &mut self,
        step: &Step,
        result: &StepResult,
        [before, view]: [&View; 2],
        (skews, simulation): (&Skews, &Simulation),
        shown: &Shown,
    ) {
        let mut findings = result.expectations.iter().flat_map(|o| &o.findings);
        self.has_told_patches |= findings.any(|finding| finding.code == PATCH_NOT_APPLIED);
        if !self.has_told_patches {
            self.unpatched = unpatched(simulation);
        }
        let spreads = self.spreads(simulation, view, shown);
        let name = match (&step.name, step.at) {
            (Some(name), _) => name.clone(),
            (None, Some(at)) => clock(at),
            (None, None) => "then".to_owned(),
        };
        if !result.expectations.is_empty() {
            let verdict = text::verdict(result, &self.look);
            self.verdicts.push(format!("{name} {verdict}"));
        }
        let told = text::told(result, &self.look);
        if self.summary.is_empty() {
            let has_head = !step.verbs.is_empty();
            if has_head {
                let head = text::step_head(&name, step, result, &self.look);
                self.steps.push_str(&(head + &told + "\n"));
            }
            self.steps.push_str(&text::write(view, shown, &self.look));
            if !spreads.is_empty() {
                self.steps.push_str(&(spreads + "\n"));
            }
            let is_restless = result.state == StepState::NotAtRest;
            if !has_head && (is_restless || !told.is_empty()) {
                let title = self.look.terminal.styles.title;
                let head = match is_restless {
                    true => text::step_head(&name, step, result, &self.look),
                    false => format!("{title}{name}{title:#}\n"),
                };
                self.steps.push_str(&format!("{head}{told}\n"));
            }
            self.summary = text::summary_line(view, shown, self.look.terminal);
            let names = shown.workloads.iter();
            let names = names.map(|&w| view.world.workloads[w].name.resource());
            self.names = names.collect();
            return;
        }
        self.steps
            .push_str(&text::step_head(&name, step, result, &self.look));
        self.steps.push_str(&told);
        let changes = text::step_changes(view, before, skews, &shown.workloads, &self.look);
        self.steps.push_str(&(changes + &spreads + "\n"));
        let pods = view.summaries.iter().map(|s| s.replicas).sum();
        self.last = format!(
            "; after {name} at {}: {}, {} Pending",
            text::time_text(result.ended),
            text::count(pods, "pod"),
            view.n_pending()
        );
    }

    fn finish(self: Box<Self>) -> Written {
        Written {
            notes: [self.notes, self.unpatched].concat(),
            steps: self.steps,
            summary: format!("{}{}\n", self.summary, self.last),
            verdicts: self.verdicts,
            names: self.names,
        }
    }
}

/// Patches of WorkloadSpreads that are not applied.
fn unpatched(simulation: &Simulation) -> Vec<String> {
    let spreads = simulation.server().tables().of::<WorkloadSpread>();
    let notes = spreads.iter().flat_map(|spread| {
        let unpatched = workloads::unpatched(spread);
        unpatched.map(|why| format!("WorkloadSpread {}: {why}", spread.meta.name))
    });
    notes.collect()
}

/// Pods that no scheduler of the simulation decides for, and pods on missing nodes.
fn left_alone(world: &ClusterState) -> Vec<String> {
    let mut others = std::collections::BTreeMap::<&str, usize>::new();
    for pod in &world.pods {
        if let PodState::OfAnother(scheduler) = &pod.standing {
            *others.entry(scheduler).or_default() += 1;
        }
    }
    let others = others.into_iter().map(|(scheduler, n)| {
        let pods = text::count(n, "pod");
        format!("left {pods} alone: schedulerName {scheduler}")
    });
    let mut notes: Vec<String> = others.collect();
    let nowhere = world.members.iter().flatten().filter(|&&entry| {
        let node = world.node_of(entry);
        node.is_some_and(|node| world.cluster.node(node).fact().is_none())
    });
    let nowhere = nowhere.count();
    if nowhere > 0 {
        notes.push(text::off_nodes(nowhere));
    }
    notes
}
