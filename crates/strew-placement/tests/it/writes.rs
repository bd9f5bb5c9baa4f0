//! Every state during a rewrite, as a watcher sees it: no cluster that stays is missing. Upstream issue 1346.

use std::collections::{BTreeMap, BTreeSet};

use strew_model::{Interner, Prng, Symbol, well_known};
use strew_placement::decisions::groups::Group;
use strew_placement::decisions::slices::{self, Slice};
use strew_placement::decisions::writes::{self, WriteKind};
use strew_placement::facts::decision::{Decision, DecisionFact, GroupLabels};

fn slices(names: &mut Interner, objects: &[&[u64]]) -> Vec<Slice> {
    let mut slice = |(i, clusters): (usize, &&[u64])| Slice {
        name: names.intern(&format!("p-decision-{}", i + 1)),
        group: 0,
        group_name: well_known::EMPTY,
        decisions: clusters
            .iter()
            .map(|c| Decision {
                cluster: names.intern(&format!("c{c}")),
                score: None,
            })
            .collect(),
        replicas: Default::default(),
    };
    objects.iter().enumerate().map(&mut slice).collect()
}

fn stored(slices: &[Slice]) -> Vec<DecisionFact> {
    let fact = |slice: &Slice| DecisionFact {
        namespace: well_known::DEFAULT_NAMESPACE,
        name: slice.name,
        placement: None,
        group: GroupLabels {
            index: Some(slice.group),
            name: Some(slice.group_name),
        },
        decisions: slice.decisions.clone().into(),
        replicas: slice.replicas.clone(),
        has_reason: false,
        revision: 1,
    };
    slices.iter().map(fact).collect()
}

/// Carries out the writes one by one. Returns their number.
#[track_caller]
fn check(before: &[Slice], after: &[Slice]) -> usize {
    type Objects = BTreeMap<Symbol, Vec<Decision>>;
    let all = |objects: &Objects| -> BTreeSet<Symbol> {
        objects.values().flatten().map(|d| d.cluster).collect()
    };
    let of = |slices: &[Slice]| -> Objects {
        slices
            .iter()
            .map(|s| (s.name, s.decisions.clone()))
            .collect()
    };
    let (mut objects, wanted) = (of(before), of(after));
    let (old, new) = (all(&objects), all(&wanted));
    let stay: BTreeSet<Symbol> = old.intersection(&new).copied().collect();
    let facts = stored(before);
    let facts: Vec<&DecisionFact> = facts.iter().collect();
    let writes = writes::of(&facts, after);
    for write in &writes {
        match write.kind {
            WriteKind::Delete => {
                objects.remove(&write.name).expect("it was there");
            }
            WriteKind::Create => {
                let decisions = write.decisions.as_deref().unwrap_or_default().to_vec();
                assert_eq!(objects.insert(write.name, decisions), None);
            }
            WriteKind::Update => {
                let decisions = write.decisions.as_deref().expect("no label changes here");
                objects
                    .insert(write.name, decisions.to_vec())
                    .expect("it was there");
            }
        }
        assert!(
            all(&objects).is_superset(&stay),
            "somebody is missing after {write:?}"
        );
    }
    assert_eq!(objects, wanted);
    writes.len()
}

#[test]
fn receivers_are_written_before_givers() {
    let mut names = Interner::new();
    for (before, after, writes) in [
        (
            vec![&[1u64, 2][..], &[3, 4]],
            vec![&[2u64, 3][..], &[4, 5]],
            2,
        ),
        (vec![&[1, 2], &[3, 4]], vec![&[0, 1], &[2, 3], &[4]], 3),
        (vec![&[1], &[2], &[3]], vec![&[2], &[3], &[4]], 3),
        // A circle needs one more write.
        (vec![&[1], &[2]], vec![&[2], &[1]], 3),
        (vec![&[1], &[2], &[3]], vec![&[3], &[1], &[2]], 4),
        (vec![&[1, 2], &[3, 4]], vec![&[1, 2, 3, 4]], 2),
        (vec![], vec![&[]], 1),
        (vec![&[1, 2]], vec![&[1, 2]], 0),
    ] {
        let (before, after) = (slices(&mut names, &before), slices(&mut names, &after));
        assert_eq!(check(&before, &after), writes, "{before:?} {after:?}");
    }
}

#[test]
fn nobody_who_stays_is_missing_in_any_of_many_rewrites() {
    let mut names = Interner::new();
    for seed in 0..3_000 {
        let mut dice = Prng::new(seed);
        let mut objects = || -> Vec<Vec<u64>> {
            let mut clusters: Vec<u64> = (0..10).filter(|_| dice.chance(3, 4)).collect();
            dice.shuffle(&mut clusters);
            let mut objects = vec![Vec::new(); dice.between(1, 4) as usize];
            for cluster in clusters {
                let object = dice.index(objects.len());
                objects[object].push(cluster);
            }
            objects
        };
        let (before, after) = (objects(), objects());
        let view = |objects: &[Vec<u64>], names: &mut Interner| {
            slices(
                names,
                &objects.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            )
        };
        let (before, after) = (view(&before, &mut names), view(&after, &mut names));
        check(&before, &after);
    }
}

#[test]
fn objects_hold_a_hundred_and_are_numbered_through_all_groups() {
    let mut names = Interner::new();
    let placement = names.intern("p");
    let decision = |i: usize, names: &mut Interner| Decision {
        cluster: names.intern(&i.to_string()),
        score: None,
    };
    let mut group = |text: &str, n: usize| Group {
        name: names.intern(text),
        decisions: (0..n).map(|i| decision(i, &mut names)).collect(),
    };
    let groups = [group("canary", 101), group("", 100)];
    let slices = slices::of(&groups, placement, &mut names);
    let picture = |s: &Slice| format!("{} {} {}", names.text(s.name), s.group, s.decisions.len());
    let picture: Vec<String> = slices.iter().map(picture).collect();
    assert_eq!(
        picture,
        [
            "p-decision-1 0 100",
            "p-decision-2 0 1",
            "p-decision-3 1 100"
        ]
    );
}

#[test]
fn nobody_relies_on_an_object_whose_last_write_nobody_knows() {
    let mut names = Interner::new();
    let before = slices(&mut names, &[&[1], &[1, 2]]);
    let after = slices(&mut names, &[&[1], &[2]]);
    let facts = stored(&before);
    let facts: Vec<&DecisionFact> = facts.iter().collect();
    let order = |writes: Vec<writes::Write>| -> Vec<String> {
        let names = writes.iter().map(|w| names.text(w.name).to_owned());
        names.collect()
    };
    // Certain: the first object holds 1, so the second may lose it.
    assert_eq!(order(writes::of(&facts, &after)), ["p-decision-2"]);
    let first = after[0].name;
    let writes = writes::in_doubt(&facts, &after, &|name| name == first);
    assert_eq!(order(writes), ["p-decision-1", "p-decision-2"]);
}
