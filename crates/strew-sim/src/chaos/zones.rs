//! Generates a story in which budgets are kept by zone and ReplicaSets ask to stay spread, while nodes are drained.
//!
//! It is the story of the seed with more budgets, all or most of them by zone, with drains of several nodes at once, and
//! with crashes of the webhook.

use strew_model::Prng;
use strew_model::time::Span;

use super::generate::generate;
use super::story::{Action, Budgeting, Event, Story, Worker, Workload};
use crate::fault::{Component, Crash};

/// Drains begin in this time; the webhook starts with the first budget.
const DRAINS: (u64, u64) = (20_000, 280_000);

/// The story of a seed.
pub fn generate_zones(seed: u64) -> Story {
    let mut story = generate(seed);
    let mut dice = Prng::new(seed ^ 0x20e5_b4d6_e700_0001);
    for workload in &mut story.world.workloads {
        zone_aware(workload, &mut dice);
    }
    let nodes = &story.world.nodes;
    for _ in 0..dice.between(1, 4) {
        let at = dice.between(DRAINS.0, DRAINS.1);
        let n_nodes = dice.between(1, 3);
        for _ in 0..n_nodes {
            let node = dice.pick(nodes).name.clone();
            // Whoever drains asks again and again, as kubectl does.
            for again in 0..dice.between(1, 12) {
                let at = Span::from_millis(at + again * 5_000);
                let action = Action::Drain(node.clone());
                story.events.push(Event { at, action });
            }
            let at = Span::from_millis(at + dice.between(10_000, 120_000));
            let action = Action::Uncordon(node);
            story.events.push(Event { at, action });
        }
    }
    if dice.chance(1, 2) {
        let at = Span::from_millis(dice.between(DRAINS.0, DRAINS.1));
        let action = Action::Crash(Crash {
            component: match dice.chance(3, 4) {
                true => Component::WebhookReplica,
                false => Component::Webhook,
            },
            after_writes: u32::try_from(dice.between(0, 4)).unwrap_or(0),
            down: Span::from_millis(dice.between(0, 30_000)),
        });
        story.events.push(Event { at, action });
    }
    story.events.sort_by_key(|event| event.at);
    story.world.n_webhooks = u8::try_from(dice.between(1, 3)).unwrap_or(1);
    story
}

fn zone_aware(workload: &mut Workload, dice: &mut Prng) {
    let is_endless = !matches!(
        workload.worker,
        Worker::DaemonSet | Worker::Job | Worker::CronJob(_)
    );
    if is_endless && workload.budget.is_none() && dice.chance(3, 4) {
        let n = u32::try_from(dice.between(1, 4)).unwrap_or(1);
        workload.budget = Some(Budgeting::MaxUnavailable(n));
    }
    workload.is_zone_aware = workload.budget.is_some() && dice.chance(5, 6);
    workload.keeps_spread =
        matches!(workload.worker, Worker::Deployment(_) | Worker::ReplicaSet) && dice.chance(1, 2);
}
