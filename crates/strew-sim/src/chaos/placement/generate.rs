//! Generates a [`HubStory`] from a seed.

use strew_model::Prng;
use strew_model::time::Span;

use super::story::{
    ClusterPlan, DividedBy, HubAction, HubStory, Only, PlacementPlan, Term, TermKey,
};
use crate::chaos::settings;
use crate::chaos::story::Event;
use crate::client::WriteFault;
use crate::fault::{Component, Crash, Fault};
use crate::feed::WatchFault;

/// Faults end at most this many seconds after the start.
const STORM_SECS: u64 = 240;

/// The story of a seed.
pub fn generate(seed: u64) -> HubStory {
    let mut dice = Prng::new(seed ^ 0x91ac_e000_4b5d_0000);
    // Sometimes the fleet needs more than one PlacementDecision even without groups.
    let n_clusters = match dice.chance(1, 500) {
        true => dice.between(95, 130),
        false => dice.between(2, 14),
    };
    let clusters: Vec<ClusterPlan> = (0..n_clusters).map(|i| cluster(&mut dice, i)).collect();
    let n_placements = dice.between(1, 4);
    let mut placements: Vec<PlacementPlan> = (0..n_placements)
        .map(|i| placement(&mut dice, i, n_clusters))
        .collect();
    placements.iter_mut().for_each(|plan| extend(seed, plan));
    let mut events: Vec<Event<HubAction>> = Vec::new();
    let late = clusters.iter().filter(|c| c.is_late);
    let late = late.map(|c| HubAction::Join(c.name.clone()));
    let created = placements.iter().filter(|p| p.is_late);
    let created = created.map(|p| HubAction::Create(p.name.clone()));
    for action in late.chain(created) {
        let at = Span::from_millis(dice.between(0, 120_000));
        events.push(Event { at, action });
    }
    for _ in 0..dice.between(3, 30) {
        let at = Span::from_millis(dice.between(0, STORM_SECS * 1000));
        let action = match dice.chance(2, 5) {
            true => fault(&mut dice),
            false => deed(&mut dice, &clusters, &placements),
        };
        events.push(Event { at, action });
    }
    events.sort_by_key(|event| event.at);
    HubStory {
        seed,
        limits: settings::draw(seed, &["placement"]),
        clusters,
        placements,
        events,
        calm: Span::from_secs(dice.between(60, STORM_SECS)),
    }
}

fn small(dice: &mut Prng, min: u64, max: u64) -> u8 {
    u8::try_from(dice.between(min, max)).unwrap_or(u8::MAX)
}

fn points(dice: &mut Prng) -> i8 {
    *dice.pick(&[-100, -20, 0, 10, 50, 100])
}

fn cluster(dice: &mut Prng, i: u64) -> ClusterPlan {
    ClusterPlan {
        name: format!("c{i:03}"),
        region: (!dice.chance(1, 20)).then(|| small(dice, 0, 2)),
        zone: (!dice.chance(1, 20)).then(|| small(dice, 0, 2)),
        provider: (!dice.chance(1, 10)).then(|| small(dice, 0, 1)),
        is_canary: dice.chance(1, 4),
        cpu: small(dice, 1, 10),
        score: dice.chance(1, 2).then(|| points(dice)),
        is_late: dice.chance(1, 8),
    }
}

fn placement(dice: &mut Prng, i: u64, n_clusters: u64) -> PlacementPlan {
    const KEYS: [&[TermKey]; 5] = [
        &[],
        &[TermKey::Region],
        &[TermKey::Region, TermKey::Zone],
        &[TermKey::Provider, TermKey::Region, TermKey::Zone],
        &[TermKey::Zone],
    ];
    let keys = *dice.pick(&KEYS);
    let term = |key: &TermKey| Term {
        key: *key,
        max_skew: *dice.pick(&[1, 1, 2]),
        is_hard: dice.chance(1, 2),
    };
    let terms = keys.iter().map(term).collect();
    PlacementPlan {
        name: format!("p{i}"),
        number: dice.chance(2, 3).then(|| small(dice, 0, n_clusters + 1)),
        terms,
        only: match dice.between(0, 7) {
            0 => Only::Region(small(dice, 0, 2)),
            1 => Only::CanaryByCel,
            2 => Only::Provider(small(dice, 0, 1)),
            _ => Only::All,
        },
        group_size: *dice.pick(&[0, 0, 1, 2, 3, 5]),
        has_canaries: dice.chance(1, 3),
        tolerates: dice.chance(1, 3).then(|| *dice.pick(&[0, 10, 60, 300])),
        steady: *dice.pick(&[1, 1, 1, 0, 3, 10]),
        has_add_on: dice.chance(1, 3),
        has_cpu: dice.chance(1, 5),
        is_by_score: dice.chance(1, 6),
        is_late: dice.chance(1, 6),
        groups: (0, 0),
        replicas: None,
    }
}

/// What is drawn with dice of its own, so that the rest of a seed's story is what it was without it.
fn extend(seed: u64, plan: &mut PlacementPlan) {
    let own = plan.name.bytes().map(u64::from).sum::<u64>();
    let mut dice = Prng::new(seed ^ own ^ 0x6709_0000_a11d_0000);
    if !plan.terms.is_empty() && dice.chance(1, 3) {
        let max = small(&mut dice, 1, 3);
        let most = u64::from(max).min(u64::from(plan.number.unwrap_or(max)).max(1));
        plan.groups = match dice.between(0, 2) {
            0 => (0, max),
            1 => (small(&mut dice, 1, most), 0),
            _ => (small(&mut dice, 1, most), max),
        };
    }
    let by = *dice.pick(&[DividedBy::Weights, DividedBy::Cpu, DividedBy::AddOn]);
    plan.replicas = dice.chance(1, 3).then(|| (small(&mut dice, 0, 30), by));
}

fn deed(dice: &mut Prng, clusters: &[ClusterPlan], placements: &[PlacementPlan]) -> HubAction {
    let cluster = dice.pick(clusters).name.clone();
    let placement = dice.pick(placements).name.clone();
    match dice.between(0, 22) {
        0..=2 => HubAction::Relabel(cluster, small(dice, 0, 2), small(dice, 0, 2)),
        3..=5 => HubAction::Canary(cluster, dice.chance(1, 2)),
        6..=8 => {
            let effect = *dice.pick(&["NoSelect", "NoSelect", "NoSelectIfNew", "PreferNoSelect"]);
            HubAction::Taint(cluster, effect)
        }
        9 | 10 => HubAction::Untaint(cluster),
        11 | 12 => HubAction::Leave(cluster),
        13 | 14 => HubAction::Join(cluster),
        15 | 16 => HubAction::Score(cluster, points(dice), *dice.pick(&[0, 0, 30])),
        17 | 18 => {
            let most = clusters.len() as u64 + 1;
            let number = (!dice.chance(1, 5)).then(|| small(dice, 0, most));
            HubAction::Number(placement, number)
        }
        19 | 20 => HubAction::GroupSize(placement, small(dice, 1, 5)),
        21 => HubAction::Hard(placement, dice.chance(1, 2)),
        _ => HubAction::Delete(placement),
    }
}

fn fault(dice: &mut Prng) -> HubAction {
    let lasts = Span::from_secs(dice.between(5, 60));
    let ppm = |dice: &mut Prng, most: u64| u32::try_from(dice.between(0, most)).unwrap_or(0);
    let fault = match dice.between(0, 9) {
        0 | 1 => Fault::Watch(WatchFault {
            delay: Span::from_millis(dice.between(0, 20_000)),
            repeat_ppm: ppm(dice, 300_000),
            cut_ppm: 0,
        }),
        2 | 3 => Fault::Watch(WatchFault {
            delay: Span::from_millis(dice.between(0, 5_000)),
            repeat_ppm: ppm(dice, 100_000),
            cut_ppm: ppm(dice, 200_000).max(1),
        }),
        4 | 5 => Fault::Write(WriteFault {
            conflict_ppm: ppm(dice, 400_000),
            lost_ppm: 0,
        }),
        6 => Fault::Write(WriteFault {
            conflict_ppm: 0,
            lost_ppm: ppm(dice, 400_000).max(1),
        }),
        _ => {
            return HubAction::Crash(Crash {
                component: Component::Controller,
                after_writes: u32::try_from(dice.between(0, 8)).unwrap_or(0),
                down: Span::from_millis(dice.between(0, 20_000)),
            });
        }
    };
    HubAction::Fault(fault, lasts)
}
