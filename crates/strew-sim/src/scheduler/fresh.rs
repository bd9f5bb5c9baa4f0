//! What a newly started scheduler would do, for the judge.

use strew_apiserver::server::Server;
use strew_model::time::Instant;
use strew_runtime::Machine;
use strew_runtime::scheduler::watches;
use strew_scheduler::machine::Effect;

use super::{Blueprint, Replica};
use crate::component::Component;
use crate::network::Sender;

/// The most binds and preemptions listed.
const TOLD_MAX: usize = 5;

impl Replica {
    /// The binds and preemptions of a scheduler that knows only the store.
    pub(crate) fn would_do(blueprint: &Blueprint, server: &Server, now: Instant) -> Vec<String> {
        let machine = blueprint.machine("fresh", now);
        let mut fresh = Component::fresh(machine, watches(), Sender::Scheduler, server, now);
        fresh.tell(|machine, _| {
            machine.tick(now);
            let mut told = Vec::new();
            while told.len() < TOLD_MAX
                && let Some(effect) = machine.poll_effect()
            {
                let names = &machine.machine().cluster().names;
                match effect {
                    Effect::Bind { pod, node, .. } => {
                        told.push(format!("binds {} to {}", pod.name, names.text(node)));
                    }
                    Effect::DeleteVictim { victim, .. } => {
                        told.push(format!("preempts {}", victim.name));
                    }
                    _ => {}
                }
            }
            told
        })
    }
}
