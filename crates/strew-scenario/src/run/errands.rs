//! What continues after its step: drains, and the feature gates in force.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_apiserver::object::Name;
use strew_controllers::drain::{Drain, DrainAction, DrainOptions};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_sim::Simulation;
use strew_wire::config::FeatureGates;

use super::plan::{Configure, Plan};
use super::played::Refused;

/// The state that verbs leave behind.
pub struct Errands {
    pub(super) gates: FeatureGates,
    pub(super) configure: Configure,
    /// Nodes that were lost and not restored since.
    pub(super) lost: BTreeSet<Arc<str>>,
    /// The targets of the last loss in words for reports: the chosen domain, or nodes.
    pub(super) lost_as: Vec<String>,
    /// Domains and nodes chosen for targets such as `zone=<most pods>`, until the report takes them.
    pub(super) chosen: Vec<String>,
    /// The number of the present step.
    pub(super) step: usize,
    drains: Vec<UnderWay>,
    /// Pods whose controller is not in the files.
    owned: Arc<BTreeSet<Name>>,
    dice: Prng,
}

struct UnderWay {
    /// The verb's text.
    text: String,
    /// The number of the step that began it.
    step: usize,
    /// True if it must give up.
    must_fail: bool,
    drain: Drain,
    /// True if it ends by itself, whatever budgets refuse.
    gives_up: bool,
    /// The last reason why it is not done, or why it gave up.
    complaint: String,
}

/// Why a drain fails a run though it ended.
const ENDED: &str = "it ended, and mustFail says that it gives up";

/// Why a drain fails a run that is over.
const UNDER_WAY: &str = "the drain was not done when the run ended";

impl UnderWay {
    /// What it tells, with the number of its step.
    fn refused(&self, why: String, at: Span, is_breach: bool) -> (usize, Refused) {
        let refused = Refused {
            text: self.text.clone(),
            why,
            at,
            is_breach,
            left: self.drain.left().to_vec(),
        };
        (self.step, refused)
    }

    /// True if the run fails because the drain gave up. A `timeout` says how long to try: expectations judge what is true
    /// after it.
    fn fails(&self) -> bool {
        !(self.must_fail || self.drain.has_only_timed_out())
    }
}

impl Errands {
    /// No drain under way.
    pub fn new(plan: &Plan, seed: u64) -> Self {
        Self {
            gates: plan.scenario.feature_gates.clone(),
            configure: Arc::clone(&plan.configure),
            lost: BTreeSet::new(),
            lost_as: Vec::new(),
            chosen: Vec::new(),
            step: 0,
            drains: Vec::new(),
            owned: Arc::new(plan.admitted().workloads.orphans().cloned().collect()),
            dice: Prng::new(seed),
        }
    }

    /// Starts to drain nodes as `kubectl drain` does with `--ignore-daemonsets` and `--delete-emptydir-data`.
    pub(super) fn drain(
        &mut self,
        simulation: &mut Simulation,
        nodes: Vec<Name>,
        timeout: Option<Span>,
        text: &str,
        must_fail: bool,
    ) {
        let options = DrainOptions {
            ignore_daemon_sets: true,
            delete_empty_dir_data: true,
            timeout,
            owned: Arc::clone(&self.owned),
            ..DrainOptions::default()
        };
        self.drains.push(UnderWay {
            text: text.to_owned(),
            step: self.step,
            must_fail,
            drain: Drain::new(options, nodes),
            gives_up: timeout.is_some(),
            complaint: String::new(),
        });
        self.advance(simulation);
    }

    /// The next time at which a drain continues; `None` if none is under way.
    pub fn next_wake(&self) -> Option<Instant> {
        self.drains
            .iter()
            .filter_map(|under_way| under_way.drain.next_wake())
            .min()
    }

    /// True while a drain with a time limit is under way: after a refused node it goes on with the next one.
    pub(super) fn go_on(&self) -> bool {
        let mut drains = self.drains.iter();
        drains.any(|under_way| under_way.gives_up && under_way.drain.outcome().is_none())
    }

    /// True while any drain is under way.
    pub(super) fn is_draining(&self) -> bool {
        !self.drains.is_empty()
    }

    /// Continues the drains that are due; returns those that gave up, and those that ended though they must give up,
    /// each with the number of the step that began it.
    pub fn act(&mut self, simulation: &mut Simulation) -> Vec<(usize, Refused)> {
        self.advance(simulation);
        let at = simulation.elapsed();
        let mut ended = Vec::new();
        self.drains.retain(|under_way| {
            let refused = match (under_way.drain.outcome(), under_way.must_fail) {
                (None, _) => return true,
                (Some(true), false) => return false,
                (Some(true), true) => under_way.refused(ENDED.to_owned(), at, true),
                (Some(false), _) => {
                    under_way.refused(under_way.complaint.clone(), at, under_way.fails())
                }
            };
            ended.push(refused);
            false
        });
        ended
    }

    /// Ends the drains that are under way because the run is over, as [`act`](Self::act) does those that gave up.
    pub(super) fn give_up(&mut self, at: Span) -> Vec<(usize, Refused)> {
        let drains = std::mem::take(&mut self.drains).into_iter();
        let given_up = drains.map(|under_way| {
            let why = match under_way.complaint.as_str() {
                "" => UNDER_WAY.to_owned(),
                complaint => format!("{UNDER_WAY}: {complaint}"),
            };
            let has_limit = under_way.must_fail || under_way.gives_up;
            under_way.refused(why, at, !has_limit)
        });
        given_up.collect()
    }

    fn advance(&mut self, simulation: &mut Simulation) {
        for under_way in &mut self.drains {
            let now = simulation.now();
            while let Some(step) =
                under_way
                    .drain
                    .poll(now, simulation.server().tables(), &mut self.dice)
            {
                match step {
                    DrainAction::Cordon(node) => {
                        // The node may be gone by now; the drain notices.
                        let _ = simulation.cordon(&node.name, true);
                    }
                    DrainAction::Evict(pod, options) => {
                        let answer = simulation.evict(&pod, &options);
                        under_way.drain.answer(now, &pod.name, answer);
                    }
                    DrainAction::Delete(pod, options) => {
                        let answer = simulation.delete(&pod, &options);
                        under_way.drain.answer(now, &pod.name, answer);
                    }
                    DrainAction::Print(_) => {}
                    DrainAction::Complain(text) => under_way.complaint = text,
                }
            }
        }
    }
}
