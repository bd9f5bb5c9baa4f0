//! The examples of the format, played.

use strew_api::read::Sources;
use strew_scenario::format::{Variant, Verdict, load};
use strew_scenario::run::{Plan, Played, play, scheduler_of};

fn variants(file: &str) -> Vec<Variant> {
    let path = format!("{}/tests/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut sources = Sources::new();
    sources.add(file, std::fs::read_to_string(path).unwrap());
    let loaded = load(&sources);
    assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
    loaded.variants
}

fn plan(variant: &Variant) -> Plan {
    let gates = &variant.scenario.feature_gates;
    let scheduler = scheduler_of(&Sources::new(), &variant.objects, gates).unwrap();
    Plan::new(&variant.scenario, &variant.objects, scheduler).unwrap()
}

fn breach(played: &Played) -> Option<String> {
    let refused = played.steps.iter().flat_map(|step| &step.refused);
    let refused = refused
        .filter(|refused| refused.is_breach)
        .map(|r| format!("{}: {}", r.text, r.why));
    let broken = played.first_breach().map(|(step, o)| {
        format!(
            "step {step:?} at {}: {} -> {} ({:?})",
            o.at, o.text, o.why, o.cause
        )
    });
    refused.chain(broken).next()
}

#[track_caller]
fn check(file: &str, seeds: u64) {
    for variant in variants(file) {
        let plan = plan(&variant);
        let n_seeds = seeds.min(u64::from(variant.scenario.seeds.get()));
        let broken: Vec<String> = (1..=n_seeds)
            .filter_map(|seed| {
                let played = play(&plan, seed, None, &mut ()).unwrap();
                breach(&played).map(|breach| format!("seed {seed}: {breach}"))
            })
            .collect();
        match variant.verdict {
            Verdict::MustHold => assert!(broken.is_empty(), "{}: {broken:#?}", variant.name),
            Verdict::MustFail => assert!(!broken.is_empty(), "{} broke nowhere", variant.name),
            Verdict::MayFail => {}
        }
    }
}

#[test]
fn an_autoscaler_brings_the_two_nodes_that_min_domains_asks_for() {
    check("min-domains.yaml", 5);
}

#[test]
fn a_rollout_stays_even_with_match_label_keys_and_not_without() {
    check("rollout.yaml", 20);
}

#[test]
fn equal_seeds_give_equal_lives() {
    let variants = variants("rollout.yaml");
    let plan = plan(&variants[1]);
    let life = |seed| {
        let played = play(&plan, seed, None, &mut ()).unwrap();
        format!("{played:?}")
    };
    assert_eq!(life(3), life(3));
}
