//! Plans of evictions that are made and carried out under faults.

use strew_scenario::rebalance::chaos;
use strew_sim::chaos::{Figures, Parts};

#[test]
fn no_plan_that_is_carried_out_under_faults_breaks_a_rule() {
    let parts = Parts::real();
    let mut figures = Figures::default();
    for seed in 0..24 {
        let verdict = chaos::play(seed, &parts);
        assert!(
            verdict.violations.is_empty(),
            "{}\n# again: cargo xtask soak --of rebalance --seed {seed}",
            verdict.violations[0]
        );
        figures.add(&verdict.figures);
    }
    assert!(!figures.is_refused(), "{figures:?}");
    assert!(figures.choices >= 20, "evictions: {figures:?}");
    for kind in ["rebalance dies", "budget changes", "component dies"] {
        assert!(figures.faults.contains_key(kind), "{figures:?}");
    }
}

#[test]
fn equal_seeds_give_equal_lives() {
    let parts = Parts::real();
    assert_eq!(chaos::play(3, &parts), chaos::play(3, &parts));
}
