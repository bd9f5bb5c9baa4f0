//! Any bytes as a scheduler's configuration: read into profiles, or refused with reasons. Nothing panics, nothing hangs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use strew_manifest::read::{Sources, render};
use strew_model::Interner;
use strew_scheduler::Engine;
use strew_wire::config::{FeatureGates, Given, configure};

fuzz_target!(|bytes: &[u8]| {
    let mut sources = Sources::new();
    sources.add("in", bytes);
    let mut names = Interner::new();
    match configure(Given::Files(&sources), &FeatureGates::default(), &mut names) {
        Ok(configuration) => {
            assert!(
                !configuration.profiles.is_empty(),
                "a configuration has a profile"
            );
            for profile in configuration.profiles {
                let _ = Engine::new(profile);
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "a refusal says why");
            let _ = render(&diagnostics, &sources, true);
        }
    }
});
