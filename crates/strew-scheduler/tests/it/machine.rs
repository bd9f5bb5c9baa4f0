//! The scheduler as a machine: whatever the order of facts, decisions, outcomes and restarts.

use strew_scheduler::machine::{Limits, Scheduler};

use crate::api::Api;

/// What is gone is freed far more often than in production, so that rows are used again and again.
pub(crate) fn limits(seed: u64) -> Limits {
    Limits {
        sweep_min: 1 + seed as usize % 20,
        ..Limits::production()
    }
}

/// Chaos, then calm; and then all is as if the scheduler had just been started.
#[test]
fn after_calm_all_is_as_built_afresh() {
    let mut asked = [0; 5];
    for seed in seeds() {
        let mut api = Api::new(seed);
        (0..10).for_each(|_| api.change());
        let steps = 100 + seed % 400;
        for step in 0..steps {
            api.step();
            if step % 50 == 0 {
                let audit = api.scheduler.audit();
                assert_eq!(audit, Ok(()), "seed {seed}, step {step}");
            }
        }
        api.calm();
        if let Err(problem) = api.check() {
            panic!("seed {seed}: {problem}");
        }
        (0..5).for_each(|kind| asked[kind] += api.asked[kind]);
    }
    // A world in which nothing happens proves nothing.
    assert!(asked.iter().all(|&n| n > 50), "{asked:?}");
}

/// A relist, or a status that is written again and again, makes no decision anew.
#[test]
fn the_same_facts_again_change_nothing() {
    let versions = |scheduler: &Scheduler| {
        let cluster = scheduler.cluster();
        let (usage, structure) = (cluster.usage_changes(), cluster.structure_changes());
        [
            cluster.owners().version(),
            cluster.volumes().version(),
            cluster.evicted(),
            cluster.weighed(),
            usage.head(),
            structure.head(),
        ]
    };
    for seed in seeds() {
        let mut api = Api::new(seed);
        (0..30 + seed % 50).for_each(|_| api.change());
        let (mut scheduler, now) = (api.fresh(), api.now);
        let before = (versions(&scheduler), scheduler.queue_counts());
        for input in api.list() {
            scheduler.handle(now, input);
        }
        let after = (versions(&scheduler), scheduler.queue_counts());
        assert_eq!(after, before, "seed {seed}");
    }
}

/// More than the usual seeds: `STREW_SEEDS=0..100000`.
fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("STREW_SEEDS").unwrap_or_default();
    let (from, to) = given.split_once("..").unwrap_or(("0", "200"));
    let seed = |text: &str| text.parse().expect("STREW_SEEDS is two numbers: 0..200");
    seed(from)..seed(to)
}
