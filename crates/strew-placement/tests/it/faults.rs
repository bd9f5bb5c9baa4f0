//! Writes that fail, are carried out without anybody being told, or meet a crash between two of them.

use std::collections::BTreeSet;

use strew_model::{Prng, Symbol};
use strew_placement::NoCel;
use strew_placement::facts::placement::{GroupSize, PlacementSpec};
use strew_placement::machine::{Effect, Input, Outcome};

use crate::hub::Live;

/// All clusters that some decision names.
fn held(live: &Live) -> BTreeSet<Symbol> {
    let decisions = live
        .decisions
        .values()
        .flat_map(|fact| fact.decisions.iter());
    decisions.map(|decision| decision.cluster).collect()
}

/// Groups of a few clusters, so that one that comes or goes shifts all others from object to object.
fn spec(dice: &mut Prng) -> PlacementSpec {
    let mut spec = PlacementSpec::default();
    spec.groups.size = GroupSize::Count(dice.between(1, 4) as i32);
    spec
}

/// Carries out what there is to do, badly, for a while.
fn badly(live: &mut Live, dice: &mut Prng) {
    for _ in 0..dice.between(1, 6) {
        let Some(effect) = live.placer.poll_effect(&NoCel) else {
            return;
        };
        let id = match &effect {
            Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. } => *id,
            Effect::Event(_) => continue,
        };
        match dice.between(0, 9) {
            // Not carried out.
            0 => {
                let outcome = Outcome::Failed("unreachable".into());
                live.placer.handle(
                    live.now,
                    Input::Outcome {
                        effect: id,
                        outcome,
                    },
                );
            }
            // Carried out, but nobody says so but the facts.
            1 => {
                let fact = live.store(effect).1;
                live.placer.handle(live.now, fact);
                let outcome = Outcome::Failed("timeout".into());
                live.placer.handle(
                    live.now,
                    Input::Outcome {
                        effect: id,
                        outcome,
                    },
                );
            }
            // Nobody knows, and the process dies.
            2 => {
                if dice.chance(1, 2) {
                    live.store(effect);
                }
                live.placer = live.restarted();
            }
            _ => live.carry_out(effect),
        }
    }
}

#[test]
fn nobody_who_stays_is_missing_at_any_instant_whatever_fails() {
    let mut moves = 0;
    for seed in 0..150 {
        let mut dice = Prng::new(seed);
        let mut live = Live::new();
        let mut there: BTreeSet<u64> = BTreeSet::new();
        let spec = spec(&mut dice);
        live.place("p", spec);
        let mut stay: BTreeSet<Symbol> = BTreeSet::new();
        for _ in 0..25 {
            let n = dice.between(0, 11);
            let name = live.name(&format!("c{n:02}"));
            if there.remove(&n) {
                live.tell(Input::ClusterGone(name));
                stay.remove(&name);
            } else {
                there.insert(n);
                let fact = live.cluster(&format!("c{n:02}"), &[]);
                live.tell(Input::ClusterSet(fact));
            }
            live.watched = stay.clone();
            badly(&mut live, &mut dice);
            // What was held and is still to be had must be there from now on.
            let to_be_had: BTreeSet<Symbol> = there
                .iter()
                .map(|n| format!("c{n:02}"))
                .map(|name| live.name(&name))
                .collect();
            stay = held(&live).intersection(&to_be_had).copied().collect();
        }
        live.watched = stay;
        live.wait(3_000);
        assert_eq!(
            live.held("p").len(),
            there.len(),
            "seed {seed}: calm brings everything right"
        );
        moves += live.writes;
    }
    assert!(moves > 2_000, "something was written: {moves}");
}
