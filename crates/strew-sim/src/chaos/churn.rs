//! Generates worlds with short-lived Jobs beside long-lived workloads.
//!
//! The pods of each Job have their own labels and repel each other by them, and the machines free memory far more often
//! than in production. So classes, censuses and strings are reused again and again, under faults.

use strew_apiserver::Propagation;
use strew_model::Prng;
use strew_model::time::Span;

use super::generate::{fault, generate};
use super::story::{Action, Anti, Event, Spread, Story, Worker, Workload};

/// Jobs are created until this many seconds after the start.
const JOBS_SECS: u64 = 240;

/// The story of a seed: that of [`generate`], and dozens of Jobs.
pub fn generate_churn(seed: u64) -> Story {
    let mut story = generate(seed);
    let mut dice = Prng::new(seed ^ 0xc402_1000_0000_0001);
    story.limits.scheduler.sweep_min = *dice.pick(&[1, 4, 16]);
    // A quota would refuse most of the Jobs. An autoscaler would add and remove nodes for ever if rules between pods
    // are hard.
    story.world.quota = None;
    story.world.group = None;
    for i in 0..dice.between(20, 60) {
        let job = job(&mut dice, i);
        let begins_ms = dice.between(0, JOBS_SECS * 1000);
        let at = Span::from_millis(begins_ms);
        let ends = Span::from_millis(begins_ms + dice.between(5_000, 90_000));
        let ways = [Propagation::Background, Propagation::Foreground];
        let deed = Action::Delete(job.name.clone(), *dice.pick(&ways));
        story.events.push(Event {
            at,
            action: Action::Create(job.name.clone()),
        });
        story.events.push(Event {
            at: ends,
            action: deed,
        });
        story.world.workloads.push(job);
    }
    for _ in 0..dice.between(0, 6) {
        let at = Span::from_millis(dice.between(0, JOBS_SECS * 1000));
        let action = fault(&mut dice, &story.world);
        story.events.push(Event { at, action });
    }
    story.events.sort_by_key(|event| event.at);
    story
}

fn job(dice: &mut Prng, i: u64) -> Workload {
    let name = format!("job{i}");
    let spread = dice.chance(1, 3).then(|| Spread {
        by_zone: dice.chance(1, 2),
        max_skew: 1,
        is_hard: dice.chance(1, 2),
        min_domains: 0,
        by_revision: false,
        honors_taints: false,
        of_all: false,
    });
    Workload {
        worker: Worker::Job,
        replicas: u32::try_from(dice.between(1, 4)).unwrap_or(1),
        cpu: *dice.pick(&[0, 100, 500]),
        priority: 0,
        tolerates: dice.chance(1, 4),
        has_port: false,
        spread: spread.into_iter().collect(),
        anti: dice.chance(3, 4).then(|| Anti {
            by_zone: false,
            from: name.clone(),
        }),
        budget: None,
        is_zone_aware: false,
        keeps_spread: false,
        scaling: None,
        is_late: true,
        name,
    }
}
