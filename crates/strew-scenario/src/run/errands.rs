//! What goes on after its step: drains under way, and the gates so far.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_api::config::FeatureGates;
use strew_apiserver::object::Name;
use strew_controllers::drain::{Drain, DrainOptions, Step};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_sim::Simulation;

use super::plan::{Configure, Plan};
use super::played::Refused;

/// What verbs leave behind.
pub struct Errands {
    pub(super) gates: FeatureGates,
    pub(super) configure: Configure,
    /// Nodes that were lost, and not restored since.
    pub(super) lost: BTreeSet<Arc<str>>,
    /// What the last loss took, as it is told: the chosen domain, or nodes.
    pub(super) lost_as: Vec<String>,
    /// Domains and nodes that were chosen for a verb's target, since somebody took them.
    pub(super) chosen: Vec<String>,
    drains: Vec<UnderWay>,
    dice: Prng,
}

struct UnderWay {
    /// The verb's text.
    text: String,
    drain: Drain,
    /// The last complaint: why it goes on, or gave up.
    complaint: String,
}

impl Errands {
    /// None yet.
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

    /// Drains nodes as people do: pods of DaemonSets stay, what is in an emptyDir is given up.
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
            complaint: String::new(),
        });
        self.advance(simulation);
    }

    /// When something goes on.
    pub fn next_wake(&self) -> Option<Instant> {
        self.drains
            .iter()
            .filter_map(|under_way| under_way.drain.next_wake())
            .min()
    }

    /// Goes on with what is due; what was given up.
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
                    Step::Cordon(node) => {
                        // It may be gone meanwhile: the drain finds out.
                        let _ = simulation.cordon(&node.name, true);
                    }
                    Step::Evict(pod, options) => {
                        let answer = simulation.evict(&pod, &options);
                        under_way.drain.answer(now, &pod.name, answer);
                    }
                    Step::Delete(pod, options) => {
                        let answer = simulation.delete(&pod, &options);
                        under_way.drain.answer(now, &pod.name, answer);
                    }
                    Step::Print(_) => {}
                    Step::Complain(text) => under_way.complaint = text,
                }
            }
        }
    }
}
