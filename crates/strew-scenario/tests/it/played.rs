//! What playing promises, whatever the scenario; the scenarios themselves are played in `library`.

use strew_api::read::Sources;
use strew_scenario::format::{Variant, load};
use strew_scenario::run::{Plan, play, scheduler_of};

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
