//! Commands to paste: to play a run or all runs again, and to explain a pod of a run.

use crate::clock::clock;
use crate::options::Options;
use crate::options::Until;
use crate::suite::{Cast, Suite};
use strew_manifest::printable::quoted;

/// `strew simulate f.yaml --variant gate-off --seed 7 --until 42s`
pub fn replay(
    program: &str,
    options: &Options,
    suite: &Suite,
    cast: &Cast,
    seed: u64,
    until: Option<&Until>,
) -> String {
    let of_variant = of_variant(options, suite, cast);
    let until = match until {
        Some(Until::At(at)) => format!(" --until {}", clock(*at)),
        Some(Until::Step(name)) => format!(" --until {}", quoted(name)),
        None => String::new(),
    };
    format!("{program} {of_variant} --seed {seed}{until}")
}

/// `simulate f.yaml --variant gate-off`: plays a variant, without a seed.
pub fn of_variant(options: &Options, suite: &Suite, cast: &Cast) -> String {
    let mut words = vec!["simulate".to_owned()];
    words.extend(suite.replay.iter().cloned());
    words.extend(options.read_again.clone());
    words.extend(options.nodes.to_args());
    words.extend(options.assumed.to_args());
    let mut scheduling = options.scheduling.clone();
    scheduling.seed = None;
    words.extend(scheduling.to_args());
    if !suite.is_story {
        words.extend(["--variant".to_owned(), cast.variant.name.clone()]);
    }
    line(&words)
}

/// Plays all of it, after the name of the program: `simulate f.yaml --seeds 0..1000`.
pub fn whole(options: &Options) -> Vec<String> {
    let mut words = vec!["simulate".to_owned()];
    words.extend(options.files.iter().cloned());
    words.extend(options.read_again.clone());
    words.extend(options.nodes.to_args());
    words.extend(options.assumed.to_args());
    words.extend(options.scheduling.to_args());
    words.extend(options.play.to_args());
    words
}

/// Words quoted for a shell.
pub fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// The command that explains a pod, and the files and options that are equal for all pods of the run.
pub fn explain(
    options: &Options,
    suite: &Suite,
    cast: &Cast,
    seed: u64,
    pod: &str,
    namespace: &str,
) -> (String, String) {
    let mut command = format!("{} explain pod/{pod}", options.program);
    if namespace != "default" {
        command.push_str(&format!(" -n {namespace}"));
    }
    let mut rest: Vec<String> = suite.replay.clone();
    rest.extend(options.read_again.clone());
    rest.extend(options.nodes.to_args());
    // An explanation makes nodes up only if it is asked to.
    if suite.n_assumed_nodes > 0 && !options.nodes.is_shaped() {
        rest.extend(["--nodes".to_owned(), suite.n_assumed_nodes.to_string()]);
    }
    rest.extend(options.assumed.to_args());
    rest.extend(options.scheduling.to_args());
    if !suite.is_story {
        rest.extend(["--variant".to_owned(), cast.variant.name.clone()]);
        if options.scheduling.seed.is_none() {
            rest.extend(["--seed".to_owned(), seed.to_string()]);
        }
    }
    (command, line(&rest))
}
