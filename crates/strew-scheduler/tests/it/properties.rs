//! After any sequence of facts: tallies equal a recount, and decisions equal the oracle's.

use strew_cluster::SpreadConstraint;
use strew_model::Selector;
use strew_scheduler::{DefaultConstraints, Engine, Profile, TieRule};

use crate::world::World;

pub(crate) fn profile(seed: u64) -> Profile {
    let mut profile = Profile::default();
    if seed.is_multiple_of(3) {
        let list = DefaultConstraints::System.constraints();
        let hard = |c: &SpreadConstraint| SpreadConstraint {
            hard: true,
            selector: Selector::Nothing,
            ..c.clone()
        };
        let list = vec![hard(&list[1]), list[0].clone()];
        profile.default_constraints = DefaultConstraints::List(list);
    }
    if seed.is_multiple_of(5) {
        profile.ties = TieRule::FirstName;
        profile.ignore_preferred_terms_of_existing_pods = true;
    }
    profile
}

#[test]
fn tallies_equal_a_recount_and_decisions_equal_the_oracle() {
    for seed in 0..150 {
        let mut world = World::new(seed);
        let mut engine = Engine::new(profile(seed));
        if seed % 4 == 1 {
            // So small a budget that every census but those in use is dropped at once.
            world.cluster.set_census_bytes_max(1);
        }
        for step in 0..120 {
            world.step();
            if step % 6 != 0 {
                continue;
            }
            let pod = world.set_pod(false);
            world.cluster.unbind(pod);
            let compared = world
                .compare(&mut engine, pod)
                .and_then(|()| world.cluster.audit());
            if let Err(why) = compared {
                panic!("seed {seed}, step {step}: {why}");
            }
            if let strew_scheduler::Decision::Place { node, .. } =
                engine.decide(&mut world.cluster, pod)
            {
                world.cluster.bind(pod, node);
            }
        }
    }
}

/// The same facts in another order give the same counts.
#[test]
fn binding_and_taking_off_again_is_identity() {
    for seed in 0..40 {
        let mut world = World::new(seed);
        let mut engine = Engine::new(Profile::default());
        for _ in 0..60 {
            world.step();
        }
        let pod = world.set_pod(false);
        world.cluster.unbind(pod);
        let before = engine.evaluate(&mut world.cluster, pod);
        let names = before.feasible.clone();
        for node in names {
            world.cluster.bind(pod, node);
            world.cluster.unbind(pod);
        }
        let after = engine.evaluate(&mut world.cluster, pod);
        assert_eq!(before.totals, after.totals, "seed {seed}");
        assert_eq!(before.refused, after.refused, "seed {seed}");
    }
}
