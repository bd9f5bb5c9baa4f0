//! Plays a scenario file on the lab, with strew's processes in it, and judges it by its own expectations.
//!
//! The file says by its objects which processes run: the scheduler always, configured by the file's
//! KubeSchedulerConfiguration; two webhooks and the controller for WorkloadSpreads; the controller for Placements; the
//! keeper of spread for workloads with its label.
//!
//! A step has a minute, or its expectations' `within`, for all of them to hold; a step with `rest` is over when they
//! hold and the cluster is at rest.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use serde_json::Value;
use strew_model::Span;
use strew_scenario::expect::{Answer, Judge};
use strew_scenario::format::{Claim, Step};
use strew_scenario::run::Plan;
use strew_wire::keep::LABEL;
use xtask_lab::lab::{Component, Kubectl, now, until};

use super::mirror::{Mirror, since_1970};
use super::parts::Spreading;
use super::stage::{PAUSE, SOON, Stage};
use crate::fidelity::real::{self, Calm};
use crate::fidelity::scenario::{self, Scenario, list};
use crate::fidelity::simulated::{self, FilterWorkers};
use crate::fidelity::snapshot::Snapshot;
use crate::fidelity::verb;

/// The time without a change after which a cluster is at rest, if no component has work left.
const QUIET: Duration = Duration::from_secs(1);

/// The kinds that are listed of every cluster, as kubectl names them.
const LISTED: [&str; 4] = ["Node", "Pod", "ReplicaSet.apps", "Event.events.k8s.io"];

/// What controllers make of objects of a kind.
const DEPENDENTS: [(&str, &str); 4] = [
    ("StatefulSet", "ControllerRevision.apps"),
    ("DaemonSet", "ControllerRevision.apps"),
    ("CronJob", "Job.batch"),
    (
        "Placement",
        "PlacementDecision.cluster.open-cluster-management.io",
    ),
];

/// Plays a file; its objects are in the namespace `default`.
pub(super) fn play(stage: &mut Stage, file: &Path) -> anyhow::Result<()> {
    let scenario = scenario::read(file)?;
    // Its mistakes are told before anything is started.
    let plan = simulated::plan(&scenario, FilterWorkers::InOrder)?;
    for expectation in plan.scenario().always.iter().chain(
        plan.scenario()
            .timeline
            .iter()
            .flat_map(|step| &step.expect),
    ) {
        let is_of_queue =
            matches!(&expectation.claim, Claim::Pods(claim) if claim.blocked_by.is_some());
        ensure!(
            !is_of_queue,
            "{}: no real scheduler tells it; use message",
            expectation.text
        );
    }
    let made: Vec<Value> = made(&scenario).cloned().collect();
    stage.made.clone_from(&made);
    real::make_nodes(stage.kubectl(), &scenario.nodes)?;
    let mut parts = Parts::start(stage, &scenario, &made)?;
    verb::apply(stage.kubectl(), "apply", &scenario.objects)?;
    let mut cluster = Followed {
        mirror: Mirror::new(
            plan.blueprint().names.clone(),
            plan.blueprint().profiles.clone(),
        ),
        kinds: kinds(&made),
        kubectl: stage.kubectl(),
        begin: now(),
    };
    let played = all_steps(&mut cluster, &scenario, &plan);
    // A process that has ended is the cause of all later failures; its output says why.
    parts.expect_running()?;
    played.and(stage.delete_made())
}

/// The objects that the file makes, also by its steps.
fn made(scenario: &Scenario) -> impl Iterator<Item = &Value> {
    let verbs = scenario.steps.iter().flat_map(|step| &step.verbs);
    let making = verbs.filter(|(verb, _)| matches!(verb.as_str(), "apply" | "create"));
    let later = making.flat_map(|(_, objects)| list(objects));
    scenario.objects.iter().chain(later)
}

/// The kinds to list, as an argument of kubectl.
fn kinds(made: &[Value]) -> String {
    let mut kinds = BTreeSet::from(LISTED.map(str::to_owned));
    for object in made {
        let [version, kind] =
            ["apiVersion", "kind"].map(|key| object[key].as_str().unwrap_or_default());
        kinds.insert(match version.split_once('/') {
            Some((group, _)) => format!("{kind}.{group}"),
            None => kind.to_owned(),
        });
        let dependents = DEPENDENTS.iter().filter(|(of, _)| *of == kind);
        kinds.extend(dependents.map(|(_, dependents)| (*dependents).to_owned()));
    }
    let kinds: Vec<String> = kinds.into_iter().collect();
    kinds.join(",")
}

/// strew's processes.
struct Parts {
    scheduler: Component,
    spreading: Option<Spreading>,
    controllers: Vec<Component>,
}

impl Parts {
    fn start(stage: &mut Stage, scenario: &Scenario, made: &[Value]) -> anyhow::Result<Self> {
        let has = |kind: &str| made.iter().any(|object| object["kind"] == kind);
        let strew = stage.strew.clone();
        let scheduler = real::start_strew(&mut stage.lab, &strew, scenario)?;
        let spreading = has("WorkloadSpread")
            .then(|| stage.spreading(2))
            .transpose()?;
        let mut controllers = Vec::new();
        if has("Placement") {
            controllers.extend(stage.hub(1, &[])?);
        }
        if made
            .iter()
            .any(|object| !object["metadata"]["labels"][LABEL].is_null())
        {
            stage.install(&["keep"])?;
            controllers.push(stage.keep_controller()?);
        }
        Ok(Self {
            scheduler,
            spreading,
            controllers,
        })
    }

    fn expect_running(&mut self) -> anyhow::Result<()> {
        self.scheduler.expect_running()?;
        if let Some(spreading) = &mut self.spreading {
            spreading.controller.expect_running()?;
            let mut webhooks = spreading.webhooks.iter_mut();
            webhooks.try_for_each(|webhook| webhook.process.expect_running())?;
        }
        self.controllers
            .iter_mut()
            .try_for_each(Component::expect_running)
    }
}

/// The lab's cluster, and the mirror that claims are judged on.
struct Followed<'a> {
    mirror: Mirror,
    kinds: String,
    kubectl: &'a Kubectl,
    begin: Instant,
}

impl Followed<'_> {
    fn look(&mut self) -> anyhow::Result<Snapshot> {
        let mut listed = self.kubectl.objects(&self.kinds)?;
        self.mirror
            .take_in(&listed, since_1970()?, self.begin.elapsed())?;
        listed.retain(|object| object["kind"] != "Event");
        Ok(Snapshot::of(listed))
    }
}

fn all_steps(cluster: &mut Followed<'_>, scenario: &Scenario, plan: &Plan) -> anyhow::Result<()> {
    cluster.look()?;
    let mut judge = Judge::new(plan, &cluster.mirror);
    let mut n_judged = plan.scenario().always.len();
    for (wanted, step) in scenario.steps.iter().zip(&plan.scenario().timeline) {
        real::wait_for_moment(cluster.begin, wanted.at)?;
        judge.begin_step(&cluster.mirror, step);
        for (verb, argument) in &wanted.verbs {
            let done = verb::perform(cluster.kubectl, verb, argument);
            done_as_wanted(done, argument).with_context(|| format!("{}: {verb}", wanted.text))?;
        }
        let snapshot = cluster.look()?;
        let lost: BTreeSet<Arc<str>> = snapshot.lost_nodes().map(Arc::from).collect();
        judge.verbs_done(&cluster.mirror, &lost);
        let judged = Judged {
            step,
            plan,
            first_program: n_judged,
        };
        judged
            .until_held(cluster, &mut judge)
            .with_context(|| wanted.text.clone())?;
        judge.end_step(&cluster.mirror);
        n_judged += step.expect.len();
    }
    Ok(())
}

/// The outcome of a verb; of a drain that must give up, the opposite. That a time limit is over is no failure. The
/// simulation judges so, too.
fn done_as_wanted(done: anyhow::Result<()>, argument: &Value) -> anyhow::Result<()> {
    match done {
        Ok(()) => {
            let must_fail = argument["mustFail"] == true;
            ensure!(!must_fail, "it ended, and mustFail says that it gives up");
            Ok(())
        }
        Err(error) if error.to_string().contains("global timeout reached") => Ok(()),
        Err(error) => Err(error),
    }
}

/// A step whose verbs are done.
struct Judged<'a> {
    step: &'a Step,
    plan: &'a Plan,
    /// The index of its first expectation among those of the plan.
    first_program: usize,
}

impl Judged<'_> {
    /// Looks until the step is over.
    fn until_held(&self, cluster: &mut Followed<'_>, judge: &mut Judge) -> anyhow::Result<()> {
        let within = self
            .step
            .expect
            .iter()
            .map(|e| duration(e.within.unwrap_or_default()));
        let within = within.max().unwrap_or_default().max(SOON);
        let lasts = self
            .step
            .expect
            .iter()
            .map(|e| duration(e.lasts.unwrap_or_default()));
        let lasts = lasts.max().unwrap_or_default();
        let mut calm = Calm::new();
        let mut held_since = None;
        let mut why = String::new();
        let held = until("the step is over", within + lasts, PAUSE, || {
            let snapshot = cluster.look()?;
            judge.observe(&cluster.mirror);
            self.always(cluster, judge)?;
            why = self.broken(cluster, judge).unwrap_or_default();
            if !why.is_empty() {
                let was = held_since.take();
                ensure!(was.is_none() || lasts.is_zero(), "it did not last: {why}");
                calm.observe(&snapshot, QUIET);
                return Ok(None);
            }
            let since = *held_since.get_or_insert_with(now);
            let unrest = calm.observe(&snapshot, QUIET);
            if self.step.rest.is_some()
                && let Some(unrest) = unrest
            {
                why = unrest;
                return Ok(None);
            }
            Ok((since.elapsed() >= lasts).then_some(()))
        });
        held.with_context(|| why)
    }

    /// The first expectation that does not hold, and why.
    fn broken(&self, cluster: &Followed<'_>, judge: &mut Judge) -> Option<String> {
        let before = judge.before();
        self.step
            .expect
            .iter()
            .enumerate()
            .find_map(|(place, expectation)| {
                let program = self.first_program + place;
                let verdict = judge.judge(&cluster.mirror, expectation, program, &before);
                (!verdict.holds()).then(|| format!("{}: {}", expectation.text, verdict.why))
            })
    }

    /// Fails if a claim of `always` does not hold.
    fn always(&self, cluster: &Followed<'_>, judge: &mut Judge) -> anyhow::Result<()> {
        let before = judge.before();
        for (program, expectation) in self.plan.scenario().always.iter().enumerate() {
            let verdict = judge.judge(&cluster.mirror, expectation, program, &before);
            if matches!(verdict.answer, Answer::No | Answer::Unknown) {
                return Err(anyhow!("always {}: {}", expectation.text, verdict.why));
            }
        }
        Ok(())
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}
