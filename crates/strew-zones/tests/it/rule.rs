//! The rule, against a slow and obvious one.

use std::collections::BTreeSet;

use strew_model::Prng;
use strew_zones::rule::{Situation, is_whole};
use strew_zones::{Away, Claim, Domain, Place, PodState, Verdict, decide};

const DOMAINS: [Domain<'static>; 4] = [Some("a"), Some("b"), Some("c"), None];
const NAMES: [&str; 8] = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

fn at(name: &'static str, place: Place<'static>, away: Option<Away>) -> PodState<'static> {
    PodState {
        name,
        uid: name,
        place,
        away,
    }
}

fn situation<'a>(pods: &'a [PodState<'a>], claim: Option<&'a Claim>) -> Situation<'a> {
    Situation {
        pods,
        missing: 0,
        claim,
        is_held: false,
    }
}

fn refusal(verdict: Verdict) -> String {
    match verdict {
        Verdict::Refuse(refusal) => refusal.text("web", "zone"),
        other => panic!("{other:?}"),
    }
}

/// A domain is disrupted if any of these holds, each written out.
fn is_disrupted(situation: &Situation<'_>, domain: Domain<'_>) -> bool {
    let in_it = |pod: &&PodState<'_>| pod.place == Place::In(domain);
    if situation
        .pods
        .iter()
        .filter(in_it)
        .any(|pod| pod.away.is_some())
    {
        return true;
    }
    let Some(claim) = situation.claim else {
        return false;
    };
    if claim.domain.as_deref() != domain {
        return false;
    }
    let waits_anew =
        |pod: &PodState<'_>| pod.place == Place::Nowhere && !claim.waiting.contains(pod.uid);
    situation.is_held || situation.pods.iter().any(waits_anew) || situation.missing > claim.missing
}

#[test]
fn an_eviction_is_refused_exactly_while_another_domain_is_disrupted() {
    let mut rng = Prng::new(1);
    let mut seen = [0; 3];
    for _ in 0..20_000 {
        let n = 1 + rng.index(NAMES.len());
        let away = [Away::Deleted, Away::NotReady, Away::NodeNotReady];
        let pods: Vec<PodState<'_>> = (0..n)
            .map(|index| match rng.index(12) {
                0 => at(NAMES[index], Place::Nowhere, Some(Away::Pending)),
                1 => at(NAMES[index], Place::Nowhere, Some(Away::NodeGone)),
                2 => at(
                    NAMES[index],
                    Place::In(*rng.pick(&DOMAINS)),
                    Some(*rng.pick(&away)),
                ),
                _ => at(NAMES[index], Place::In(*rng.pick(&DOMAINS)), None),
            })
            .collect();
        let claim = rng.chance(1, 2).then(|| Claim {
            domain: rng.pick(&DOMAINS).map(Into::into),
            grants: 7,
            waiting: NAMES
                .iter()
                .filter(|_| rng.chance(1, 2))
                .map(|uid| (*uid).into())
                .collect(),
            missing: rng.index(2) as u32,
        });
        let situation = Situation {
            pods: &pods,
            missing: rng.index(3) as u32,
            claim: claim.as_ref(),
            is_held: claim.is_some() && rng.chance(1, 4),
        };
        let asked = &pods[rng.index(n)];
        let others = DOMAINS
            .iter()
            .filter(|domain| asked.place != Place::In(**domain));
        let is_other = others
            .clone()
            .any(|domain| is_disrupted(&situation, *domain));
        match (decide(&situation, asked), asked) {
            (Verdict::Pass, pod) => {
                seen[0] += 1;
                assert!(pod.away.is_some());
            }
            (Verdict::Refuse(refusal), pod) => {
                seen[1] += 1;
                assert!(pod.away.is_none() && is_other, "{situation:?}");
                assert!(
                    is_disrupted(&situation, refusal.other.as_deref()),
                    "{refusal:?}"
                );
                assert_ne!(pod.place, Place::In(refusal.other.as_deref()));
            }
            (Verdict::Grant(claim), pod) => {
                seen[2] += 1;
                assert!(pod.away.is_none() && !is_other, "{situation:?}");
                assert_eq!(pod.place, Place::In(claim.domain.as_deref()));
                // Right after the grant no other domain can be claimed.
                let next = Situation {
                    claim: Some(&claim),
                    is_held: true,
                    ..situation
                };
                assert!(!is_whole(&next));
                for other in pods.iter().filter(|other| other.away.is_none()) {
                    let is_same = other.place == pod.place;
                    let is_granted = matches!(decide(&next, other), Verdict::Grant(_));
                    assert_eq!(is_granted, is_same);
                }
            }
        }
    }
    assert!(seen.iter().all(|n| *n > 500), "{seen:?}");
}

#[test]
fn what_counts_and_what_the_refusal_says() {
    let (a, b) = (Place::In(Some("a")), Place::In(Some("b")));
    let ready = at("w0", b, None);
    let claim = Claim {
        domain: Some("a".into()),
        grants: 3,
        waiting: BTreeSet::from(["w5".into()]),
        missing: 0,
    };
    let head = "The disruption budget web lets pods of one zone be evicted at a time, and ";
    let tail = ". Pods of \"b\" can be evicted when they are ready.";
    for (pods, claim, missing, is_held, expected) in [
        (
            vec![at("w1", a, Some(Away::Deleted))],
            None,
            0,
            false,
            "\"a\" waits for w1 (being deleted)",
        ),
        (
            vec![
                at("w4", a, Some(Away::NotReady)),
                at("w3", a, Some(Away::NotReady)),
                at("w2", a, Some(Away::NodeNotReady)),
                at("w1", a, Some(Away::NotReady)),
            ],
            None,
            0,
            false,
            "\"a\" waits for w1 (not ready), w2 (on a node that is not Ready), w3 (not ready) and 1 more",
        ),
        (
            vec![
                at("w1", Place::Nowhere, Some(Away::Pending)),
                at("w5", Place::Nowhere, Some(Away::Pending)),
            ],
            Some(&claim),
            0,
            false,
            "\"a\" waits for w1 (on no node)",
        ),
        (
            vec![],
            Some(&claim),
            2,
            false,
            "\"a\" waits for 2 pods that are not created yet",
        ),
        (
            vec![],
            Some(&claim),
            0,
            true,
            "a pod of \"a\" was evicted just now",
        ),
        (
            vec![
                at("w1", a, Some(Away::NotReady)),
                at("w2", Place::In(None), Some(Away::NotReady)),
            ],
            None,
            0,
            false,
            "\"a\" waits for w1 (not ready); so does one further domain",
        ),
    ] {
        let mut pods = pods;
        pods.push(ready);
        let situation = Situation {
            pods: &pods,
            missing,
            claim,
            is_held,
        };
        assert_eq!(
            refusal(decide(&situation, &ready)),
            format!("{head}{expected}{tail}")
        );
    }
}

#[test]
fn pods_without_a_node_block_nothing_before_the_first_eviction() {
    let pods = [
        at("w0", Place::In(Some("a")), None),
        at("w1", Place::In(Some("b")), None),
        at("w2", Place::Nowhere, Some(Away::Pending)),
    ];
    let before = Situation {
        missing: 1,
        ..situation(&pods, None)
    };
    let Verdict::Grant(claim) = decide(&before, &pods[0]) else {
        panic!("it is granted");
    };
    assert_eq!(
        (claim.grants, claim.missing, claim.waiting.len()),
        (1, 1, 1)
    );
    // They were there before, so they do not hold the claim either.
    let after = Situation {
        missing: 1,
        ..situation(&pods, Some(&claim))
    };
    assert!(is_whole(&after));
    assert!(matches!(decide(&after, &pods[1]), Verdict::Grant(_)));
    // A further one does.
    let more = [
        pods[0],
        pods[1],
        pods[2],
        at("w3", Place::Nowhere, Some(Away::Pending)),
    ];
    let later = Situation {
        pods: &more,
        ..after
    };
    assert!(!is_whole(&later));
    assert!(matches!(decide(&later, &pods[1]), Verdict::Refuse(_)));
    assert!(matches!(decide(&later, &pods[0]), Verdict::Grant(_)));
}

#[test]
fn a_pod_that_is_away_itself_is_left_to_the_plain_budget() {
    let pods = [
        at("w0", Place::In(Some("a")), Some(Away::NotReady)),
        at("w1", Place::In(Some("b")), Some(Away::NotReady)),
        at("w2", Place::In(Some("c")), None),
    ];
    let situation = situation(&pods, None);
    assert_eq!(decide(&situation, &pods[0]), Verdict::Pass);
    assert_eq!(decide(&situation, &pods[1]), Verdict::Pass);
    assert!(matches!(decide(&situation, &pods[2]), Verdict::Refuse(_)));
}
