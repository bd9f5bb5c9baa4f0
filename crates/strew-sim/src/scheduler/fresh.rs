//! What a scheduler would do that begins now: for those who judge.

use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::Instant;
use strew_scheduler::machine::{Effect, Input};

use super::{Blueprint, Replica};

/// More is not told.
const TOLD_MAX: usize = 5;

impl Replica {
    /// The binds and preemptions that a scheduler would ask for that knows nothing but what is stored.
    pub(crate) fn would_do(blueprint: &Blueprint, server: &Server, now: Instant) -> Vec<String> {
        let mut replica = Self::new(blueprint, "fresh".to_owned(), false, server, now);
        let mut dice = Prng::new(0);
        let Self {
            feed,
            facts,
            machine,
            seen,
            ..
        } = &mut replica;
        while let Some(change) = feed.next(now, server, seen, None, &mut dice) {
            facts.take_in(machine, seen, now, change);
        }
        machine.handle(now, Input::Tick);
        let mut told = Vec::new();
        while told.len() < TOLD_MAX
            && let Some(effect) = machine.poll_effect()
        {
            let names = &machine.cluster().names;
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
    }
}
