//! Any bytes as a stream with a scenario: read into variants, or refused with reasons. Nothing panics, nothing hangs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use strew_manifest::read::{Sources, render};
use strew_scenario::format::{BASE, load};

fuzz_target!(|bytes: &[u8]| {
    let mut sources = Sources::new();
    sources.add("in", bytes);
    let loaded = load(&sources);
    let _ = render(&loaded.diagnostics, &sources, true);
    for (i, variant) in loaded.variants.iter().enumerate() {
        assert_eq!(
            variant.name == BASE,
            i == 0,
            "the base comes first, and once"
        );
        let scenario = &variant.scenario;
        let mut moments = scenario.timeline.iter().filter_map(|step| step.at);
        assert!(moments.clone().is_sorted(), "steps are in order");
        let last = moments.next_back();
        assert!(
            last.is_none_or(|last| last <= scenario.end()),
            "it ends after its last step"
        );
    }
});
