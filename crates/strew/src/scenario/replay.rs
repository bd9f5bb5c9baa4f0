//! Commands to paste: what plays a run again, and what explains a pod of it.

use super::Question;
use super::arguments::Until;
use super::clock::clock;
use super::suite::{Cast, Suite};
use crate::inputs::quoted;

/// `strew simulate f.yaml --variant gate-off --seed 7 --until 42s`
pub(super) fn replay(
    program: &str,
    question: &Question<'_>,
    suite: &Suite,
    cast: &Cast,
    seed: u64,
    until: Option<&Until>,
) -> String {
    let mut words = vec![format!("{program} simulate")];
    words.extend(suite.replay.iter().map(|file| quoted(file)));
    words.extend(question.world.read.to_args());
    words.extend(question.world.nodes.to_args());
    words.extend(question.world.storage.to_args());
    let mut scheduling = question.world.scheduling.clone();
    scheduling.seed = None;
    words.extend(scheduling.to_args());
    if !suite.is_story {
        words.push(format!("--variant {}", quoted(&cast.variant.name)));
    }
    words.push(format!("--seed {seed}"));
    if let Some(until) = until {
        words.push(match until {
            Until::At(at) => format!("--until {}", clock(*at)),
            Until::Step(name) => format!("--until {}", quoted(name)),
        });
    }
    words.join(" ")
}

/// The command that explains a pod, and the files and options that it shares with all others of the run.
pub(super) fn explain(
    program: &str,
    question: &Question<'_>,
    suite: &Suite,
    cast: &Cast,
    seed: u64,
    pod: &str,
    namespace: &str,
) -> (String, String) {
    let mut command = format!("{program} explain pod/{pod}");
    if namespace != "default" {
        command.push_str(&format!(" -n {namespace}"));
    }
    let mut rest: Vec<String> = suite.replay.iter().map(|file| quoted(file)).collect();
    rest.extend(question.world.read.to_args());
    rest.extend(question.world.nodes.to_args());
    // An explanation makes no nodes up unless it is asked to.
    if suite.n_assumed_nodes > 0 && !question.world.nodes.is_shaped() {
        rest.push(format!("--nodes {}", suite.n_assumed_nodes));
    }
    rest.extend(question.world.storage.to_args());
    rest.extend(question.world.scheduling.to_args());
    if !suite.is_story {
        rest.push(format!("--variant {}", quoted(&cast.variant.name)));
        if question.world.scheduling.seed.is_none() {
            rest.push(format!("--seed {seed}"));
        }
    }
    (command, rest.join(" "))
}
