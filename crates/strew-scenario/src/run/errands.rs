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
    drains: Vec<UnderWay>,
    dice: Prng,
}

struct UnderWay {
    /// The verb's text.
    text: String,
    drain: Drain,
    /// True if it ends by itself, whatever budgets refuse.
    gives_up: bool,
    /// The last reason why it is not done, or why it gave up.
    complaint: String,
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
            drains: Vec::new(),
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
    ) {
        let options = DrainOptions {
            ignore_daemon_sets: true,
            delete_empty_dir_data: true,
            timeout,
            ..DrainOptions::default()
        };
        self.drains.push(UnderWay {
            text: text.to_owned(),
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

    /// Continues the drains that are due; returns those that gave up.
    pub fn act(&mut self, simulation: &mut Simulation) -> Vec<Refused> {
        self.advance(simulation);
        let mut given_up = Vec::new();
        self.drains
            .retain(|under_way| match under_way.drain.outcome() {
                None => true,
                Some(true) => false,
                Some(false) => {
                    given_up.push(Refused {
                        text: under_way.text.clone(),
                        why: under_way.complaint.clone(),
                        is_breach: false,
                        left: under_way.drain.left().to_vec(),
                    });
                    false
                }
            });
        given_up
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
