//! The one command that plays a run again.

use strew_model::Span;

use super::Question;
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
    until: Option<Span>,
) -> String {
    let mut words = vec![format!("{program} simulate")];
    words.extend(suite.replay.iter().map(|file| quoted(file)));
    words.extend(question.world.read.to_args());
    let mut scheduling = question.world.scheduling.clone();
    scheduling.seed = None;
    words.extend(scheduling.to_args());
    words.push(format!("--variant {}", quoted(&cast.variant.name)));
    words.push(format!("--seed {seed}"));
    if let Some(until) = until {
        words.push(format!("--until {}", clock(until)));
    }
    words.join(" ")
}
