//! Commands to paste: to play a run or all runs again, and to explain a pod of a run.

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
    let of_variant = of_variant(question, suite, cast);
    let until = match until {
        Some(Until::At(at)) => format!(" --until {}", clock(*at)),
        Some(Until::Step(name)) => format!(" --until {}", quoted(name)),
        None => String::new(),
    };
    format!("{program} {of_variant} --seed {seed}{until}")
}

/// `simulate f.yaml --variant gate-off`: plays a variant, without a seed.
pub(super) fn of_variant(question: &Question<'_>, suite: &Suite, cast: &Cast) -> String {
    let mut words = vec!["simulate".to_owned()];
    words.extend(suite.replay.iter().cloned());
    words.extend(question.world.read_args());
    words.extend(question.world.nodes.to_args());
    words.extend(question.world.assumed.to_args());
    let mut scheduling = question.world.scheduling.clone();
    scheduling.seed = None;
    words.extend(scheduling.to_args());
    if !suite.is_story {
        words.extend(["--variant".to_owned(), cast.variant.name.clone()]);
    }
    line(&words)
}

/// Plays all of it, after the name of the program: `simulate f.yaml --seeds 0..1000`.
pub(super) fn whole(question: &Question<'_>) -> Vec<String> {
    let mut words = vec!["simulate".to_owned()];
    words.extend(question.files.iter().cloned());
    words.extend(question.world.read_args());
    words.extend(question.world.nodes.to_args());
    words.extend(question.world.assumed.to_args());
    words.extend(question.world.scheduling.to_args());
    words.extend(question.args.play.to_args());
    words
}

/// Words quoted for a shell.
pub(super) fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// The command that explains a pod, and the files and options that are equal for all pods of the run.
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
    let mut rest: Vec<String> = suite.replay.clone();
    rest.extend(question.world.read_args());
    rest.extend(question.world.nodes.to_args());
    // An explanation makes nodes up only if it is asked to.
    if suite.n_assumed_nodes > 0 && !question.world.nodes.is_shaped() {
        rest.extend(["--nodes".to_owned(), suite.n_assumed_nodes.to_string()]);
    }
    rest.extend(question.world.assumed.to_args());
    rest.extend(question.world.scheduling.to_args());
    if !suite.is_story {
        rest.extend(["--variant".to_owned(), cast.variant.name.clone()]);
        if question.world.scheduling.seed.is_none() {
            rest.extend(["--seed".to_owned(), seed.to_string()]);
        }
    }
    (command, line(&rest))
}
