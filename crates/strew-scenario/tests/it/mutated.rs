//! Nothing panics on input.

use proptest::prelude::*;
use strew_manifest::read::{Sources, render};
use strew_scenario::format::{load, starter};

use crate::{ELASTIC, MIN_DOMAINS, ROLLOUT};

/// Pieces that reach far.
const PIECES: [&str; 16] = [
    "null",
    "-1",
    "1e400",
    "99999999999999999999",
    "\"${n}\"",
    "[]",
    "{}",
    "true",
    "''",
    "a=b",
    "deployment/web",
    "999999h",
    "0",
    "~",
    "\u{e9}",
    "x: y",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_scenario_is_read_or_refused_with_reasons(
        which in 0usize..4,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..20, 0usize..PIECES.len()), 1..4),
    ) {
        let mut text: Vec<char> = [MIN_DOMAINS, ROLLOUT, ELASTIC, starter()][which].chars().collect();
        for (at, length, piece) in cuts {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, PIECES[piece].chars());
        }
        let text: String = text.into_iter().collect();
        let mut sources = Sources::new();
        sources.add("in.yaml", text.as_str());
        let loaded = load(&sources);
        for diagnostic in &loaded.diagnostics {
            prop_assert!(diagnostic.place.is_some(), "{diagnostic:?}");
        }
        let _ = render(&loaded.diagnostics, &sources, false);
        for variant in &loaded.variants {
            prop_assert!(variant.scenario.timeline.is_sorted_by_key(|step| step.at));
        }
    }
}
