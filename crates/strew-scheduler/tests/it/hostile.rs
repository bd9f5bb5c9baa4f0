//! Facts with impossible values, and other unexpected inputs: set aside with a reason, or handled, and never a panic.

use std::sync::Arc;

use strew_cluster::{AffinityTerm, Kept, NodeFact, PodFact, Unsupported};
use strew_model::{Instant, Prng, Resources, Selector, well_known};
use strew_scheduler::machine::{Effect, EffectId, Input, Limits, Outcome, Scheduler, TrackedAs};
use strew_scheduler::{Profile, TieRule};

use crate::world::RandomCluster;

/// Amounts that a person would not write.
const AMOUNTS: [i64; 10] = [
    i64::MIN,
    i64::MIN + 1,
    -1,
    0,
    1,
    i64::MAX,
    i64::MAX - 1,
    1 << 53,
    (1 << 53) + 1,
    1 << 62,
];

const NUMBERS: [i32; 7] = [i32::MIN, -1, 0, 1, 100, 101, i32::MAX];

fn spoil_resources(dice: &mut Prng, resources: &mut Resources) {
    let amount = *dice.pick(&AMOUNTS);
    match dice.between(0, 3) {
        0 => resources.cpu_milli = amount,
        1 => resources.memory = amount,
        2 => resources.ephemeral_storage = amount,
        _ => resources.set_scalar(well_known::REGION_BETA, amount),
    }
}

fn spoil_node(dice: &mut Prng, node: &mut NodeFact) {
    match dice.between(0, 4) {
        0 => node.pods_max = *dice.pick(&AMOUNTS),
        1 => node.images = [(well_known::ZONE, *dice.pick(&AMOUNTS))].into(),
        2 => node.name = well_known::EMPTY,
        _ => spoil_resources(dice, &mut node.allocatable),
    }
}

fn spoil_pod(dice: &mut Prng, pod: &mut PodFact) {
    let spec = &mut pod.spec;
    match dice.between(0, 11) {
        0 => spec.scored = (*dice.pick(&AMOUNTS), *dice.pick(&AMOUNTS)),
        1 => spec.used_scored = (*dice.pick(&AMOUNTS), *dice.pick(&AMOUNTS)),
        2 => spoil_resources(dice, &mut spec.used),
        3 => spoil_resources(dice, &mut spec.requests),
        4 => spec.priority = *dice.pick(&NUMBERS),
        5 => spec
            .spread
            .iter_mut()
            .for_each(|c| c.max_skew = *dice.pick(&NUMBERS)),
        6 => {
            let domains = *dice.pick(&NUMBERS);
            spec.spread
                .iter_mut()
                .for_each(|c| c.min_domains = Some(domains));
        }
        7 => {
            let terms = spec.affinity.preferred.iter_mut();
            terms.for_each(|(weight, _)| *weight = *dice.pick(&NUMBERS));
        }
        8 => {
            let terms = spec.preferred_nodes.iter_mut();
            terms.for_each(|(weight, _)| *weight = *dice.pick(&NUMBERS));
        }
        9 => pod.uid = "".into(),
        10 => {
            pod.history.nominated = Some(well_known::HOSTNAME);
            pod.history.started_s = Some(*dice.pick(&AMOUNTS));
        }
        _ => spec.unsupported = [Unsupported::BadSelector(well_known::ZONE)].into(),
    }
}

#[test]
fn no_fact_makes_it_panic() {
    for seed in 0..60 {
        let mut world = RandomCluster::new(seed);
        let mut dice = Prng::new(seed);
        let names = world.cluster.names.clone();
        let profile = Profile {
            ties: TieRule::Random(seed),
            ..Profile::default()
        };
        let mut scheduler = Scheduler::new(names, vec![profile], Limits::production(), Instant(0));
        let mut now = Instant::from_secs(50);
        let mut asked = Vec::new();
        for step in 0..200 {
            let input = match dice.between(0, 9) {
                0..=2 => {
                    let mut node = world.node_fact();
                    if dice.chance(1, 3) {
                        spoil_node(&mut dice, &mut node);
                    }
                    Input::NodeSet(node)
                }
                3 => Input::NodeGone(world.node_name()),
                4..=6 => {
                    let bound = dice.chance(1, 3);
                    let mut fact = world.pod_fact(bound);
                    if dice.chance(1, 2) {
                        spoil_pod(&mut dice, &mut fact);
                    }
                    Input::PodSet {
                        fact: Box::new(fact),
                        condition: None,
                    }
                }
                7 => Input::PodGone(format!("p{}", dice.between(0, 50)).into()),
                8 => {
                    let known = !asked.is_empty() && dice.chance(3, 4);
                    let effect = match known {
                        true => *dice.pick(&asked),
                        false => EffectId(dice.next_u64()),
                    };
                    let outcomes = [
                        Outcome::Ok,
                        Outcome::Gone,
                        Outcome::Conflict("no".into()),
                        Outcome::Failed("".into()),
                    ];
                    let outcome = dice.pick(&outcomes).clone();
                    Input::Outcome { effect, outcome }
                }
                _ => {
                    let moments = [0, 1 << 30, now.0 + (1 << 36), now.0 + (1 << 41)];
                    now = Instant(*dice.pick(&moments));
                    Input::Tick
                }
            };
            scheduler.handle(now, input);
            for _ in 0..dice.between(0, 3) {
                asked.extend(scheduler.poll_effect().and_then(|effect| effect.id()));
            }
            if step % 20 == 0 {
                let audit = scheduler.audit();
                assert_eq!(audit, Ok(()), "seed {seed}, step {step}");
            }
        }
        scheduler.handle(Instant(u64::MAX), Input::Tick);
        scheduler.next_wake();
    }
}

/// What is set aside is said, and is put right by the next fact.
#[test]
fn what_is_set_aside() {
    let mut world = RandomCluster::new(1);
    let mut node = world.node_fact();
    node.taints = Box::default();
    node.unschedulable = false;
    let names = world.cluster.names.clone();
    let limits = Limits::production();
    let mut scheduler = Scheduler::new(names, vec![Profile::default()], limits, Instant(0));
    let mut tell = |input| {
        scheduler.handle(Instant(0), input);
        let aside = scheduler.nodes_aside().map(|(_, why)| why.to_string());
        let pods = scheduler.pods_aside().map(|(_, why)| why.to_string());
        let said = aside.chain(pods).collect::<Vec<_>>().join("; ");
        let mut told = String::new();
        while let Some(effect) = scheduler.poll_effect() {
            if let Effect::PodCondition { condition, .. } = effect {
                told = condition.message.to_string();
            }
        }
        let nodes = scheduler.cluster().nodes_present();
        (said, nodes, told, scheduler.standing("pod"))
    };
    let good = node.clone();
    node.allocatable.cpu_milli = -1;
    let (said, nodes, ..) = tell(Input::NodeSet(node));
    assert_eq!((said.as_str(), nodes), ("cpu is negative: -1", 0));
    let (said, nodes, ..) = tell(Input::NodeSet(good));
    assert_eq!((said.as_str(), nodes), ("", 1));

    let mut pod = world.pod_fact(false);
    pod.uid = "pod".into();
    pod.terminating = false;
    pod.spec = Default::default();
    let good = pod.clone();
    pod.spec.requests.memory = i64::MAX;
    let set = |fact: PodFact| Input::PodSet {
        fact: Box::new(fact),
        condition: None,
    };
    let (said, _, told, standing) = tell(set(pod));
    let why = "memory is 9223372036854775807, more than 9007199254740992";
    assert_eq!(said, why);
    assert_eq!(told, format!("strew sets this pod aside: {why}"));
    assert_eq!(standing, Some(TrackedAs::Ignored));
    let (said, _, _, standing) = tell(set(good));
    assert_eq!((said.as_str(), standing), ("", Some(TrackedAs::Assumed)));
}

/// Pods with hundreds of topology keys of their own, each deleted at once: what was made for them is freed.
#[test]
fn topology_keys_of_pods_that_are_gone_are_forgotten() {
    const KEYS: usize = 300;
    let mut world = RandomCluster::new(1);
    let now = Instant::from_secs(1_000);
    let names = world.cluster.names.clone();
    let profiles = vec![Profile::default()];
    let mut scheduler = Scheduler::new(names, profiles, Limits::production(), now);
    (0..4).for_each(|_| scheduler.handle(now, Input::NodeSet(world.node_fact())));
    let mut after = |pods: usize| -> Kept {
        for number in 0..pods {
            let mut fact = world.pod_fact(false);
            let uid: Arc<str> = format!("hostile-{pods}-{number}").into();
            let names = scheduler.names_mut();
            let term = |i| AffinityTerm {
                key: names.intern(&format!("key-{}-{i}", &*uid)),
                selector: Selector::all_of(Vec::new()),
                namespaces: Box::default(),
                namespace_selector: Selector::Nothing,
            };
            fact.uid = uid.clone();
            fact.terminating = false;
            fact.spec.affinity.required_anti = (0..KEYS).map(term).collect();
            fact.spec.scheduler_name = well_known::EMPTY;
            let (fact, condition) = (Box::new(fact), None);
            scheduler.handle(now, Input::PodSet { fact, condition });
            while scheduler.poll_effect().is_some() {}
            scheduler.handle(now, Input::PodGone(uid));
        }
        scheduler.cluster().kept()
    };
    let few = after(10);
    let many = after(40);
    assert!(
        many.columns <= few.columns.max(3 * KEYS),
        "{few:?}, {many:?}"
    );
    assert!(
        many.censuses <= few.censuses.max(6 * KEYS),
        "{few:?}, {many:?}"
    );
    // Those that are new since the last sweep, and those that it found asked for lately.
    assert!(many.strings <= 12_000, "{few:?}, {many:?}");
}
