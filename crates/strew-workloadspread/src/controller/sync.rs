//! Carries out a sync: patches, then the status, then deletions. Any failure ends it, and it is retried later.
//!
//! Source: spec/workloadspread §5.2, §5.8, §5.9.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Holds, Instant, Marks};

use super::effect::{Effect, EffectId, Event, EventKind};
use super::input::Outcome;
use super::machine::SpreadController;
use super::pause::Pause;
use super::plan::{self, Plan};
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::status::Status;
use crate::inject::PodPatcher;

/// A sync under way.
#[derive(Debug)]
pub(super) struct Running {
    ws: Arc<WorkloadSpread>,
    plan: Plan,
    step: SyncStage,
    /// The effects without an outcome yet, each with the event for a failure.
    left: BTreeMap<EffectId, Option<(EventKind, Arc<str>)>>,
    failed: bool,
}

/// The present step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncStage {
    Patching,
    Writing,
    Deleting,
}

impl SpreadController {
    /// Plans a sync and begins to carry it out.
    pub(super) fn begin(&mut self, key: &WsKey, patcher: &mut dyn PodPatcher) {
        let Some(ws) = self.spreads.get(key).cloned() else {
            return;
        };
        self.sync_at(key, None);
        if ws.deleting || ws.spec.target.is_none() {
            return;
        }
        let facts = (&self.facts, &self.spreads);
        let found = plan::find(&ws, facts, &self.kinds, &self.names, patcher);
        let Ok(found) = found else {
            return self.fail(key);
        };
        match found.costs.iter().any(|cost| cost.ground.is_by_value()) {
            true => self.by_value.insert(key.clone()),
            false => self.by_value.remove(key),
        };
        let mut plan = plan::plan(&ws, &found, self.now);
        plan.status.webhook = self.webhook.condition(ws.status.webhook, self.now);
        let running = Running {
            ws,
            plan,
            step: SyncStage::Patching,
            left: BTreeMap::new(),
            failed: false,
        };
        self.running.insert(key.clone(), running);
        self.patch(key);
    }

    fn patch(&mut self, key: &WsKey) {
        let Some(mut running) = self.running.remove(key) else {
            return;
        };
        for (pod, marker, metadata_of) in std::mem::take(&mut running.plan.adoptions) {
            let id = self.expect(key);
            running.left.insert(id, None);
            self.effects.push_back(Effect::Adopt {
                id,
                pod,
                marker,
                metadata_of,
            });
        }
        for (pod, cost) in std::mem::take(&mut running.plan.costs) {
            let id = self.expect(key);
            let failure = (EventKind::PatchPodDeletionCostFailed, pod.name.clone());
            running.left.insert(id, Some(failure));
            self.effects.push_back(Effect::SetCost { id, pod, cost });
        }
        let done = running.left.is_empty();
        self.running.insert(key.clone(), running);
        if done {
            self.write(key);
        }
    }

    fn write(&mut self, key: &WsKey) {
        let id = self.expect(key);
        let Some(running) = self.running.get_mut(key) else {
            return;
        };
        running.step = SyncStage::Writing;
        if *running.ws.status == running.plan.status {
            self.pending.remove(&id);
            return self.delete(key);
        }
        running.left.insert(id, None);
        let ws = &running.ws;
        let effect = Effect::WriteStatus {
            id,
            key: key.clone(),
            uid: ws.uid.clone(),
            version: ws.version,
            status: Arc::new(running.plan.status.clone()),
        };
        self.effects.push_back(effect);
    }

    fn delete(&mut self, key: &WsKey) {
        let Some(mut running) = self.running.remove(key) else {
            return;
        };
        running.step = SyncStage::Deleting;
        for (kind, subject) in std::mem::take(&mut running.plan.noted.events) {
            match kind {
                EventKind::CreatePodFailed => self.counters.creations_expired += 1,
                EventKind::DeletePodFailed => self.counters.deletions_expired += 1,
                EventKind::RecoverSchedulable => self.counters.recovered += 1,
                EventKind::PatchPodDeletionCostFailed
                | EventKind::PatchNotApplied
                | EventKind::PodsOfAnother
                | EventKind::RolloutStuck
                | EventKind::RolloutShort
                | EventKind::WebhookNotRegistered
                | EventKind::WebhookNotReady
                | EventKind::WebhookReady => {}
            }
            self.record(key, kind, subject);
        }
        for (pod, how) in std::mem::take(&mut running.plan.deletions) {
            let id = self.expect(key);
            let failure = (EventKind::DeletePodFailed, pod.name.clone());
            running.left.insert(id, Some(failure));
            self.effects.push_back(Effect::DeletePod { id, pod, how });
        }
        let done = running.left.is_empty();
        let wake = running.plan.noted.wake;
        self.running.insert(key.clone(), running);
        if done {
            self.finish(key, wake);
        }
    }

    fn finish(&mut self, key: &WsKey, wake: Option<Instant>) {
        self.counters.synced += 1;
        self.running.remove(key);
        self.failures.remove(key);
        self.told.remove(key);
        if self.spreads.get(key).is_some() {
            // A trigger that came in the meantime may be scheduled for another time.
            self.sync_by(key, wake.map(|w| w.max(self.now)));
        }
    }

    /// A sync failed: it is retried after growing pauses.
    fn fail(&mut self, key: &WsKey) {
        self.running.remove(key);
        if self.spreads.get(key).is_none() {
            return;
        }
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = self.limits.backoff.doubled(*failures);
        let pause = pause.map_or(self.limits.backoff_max, |p| p.min(self.limits.backoff_max));
        let (qps, burst) = (self.limits.retries_qps, self.limits.retries_burst);
        let pause = pause.max(self.retries.take(self.now, qps, burst));
        self.counters.failed += 1;
        *failures = failures.saturating_add(1);
        self.sync_by(key, Some(self.now + pause));
    }

    /// Applies the outcome of an effect.
    pub(super) fn settle(&mut self, effect: EffectId, outcome: Outcome) {
        let Some((key, _)) = self.pending.remove(&effect) else {
            return;
        };
        let Some(running) = self.running.get_mut(&key) else {
            return;
        };
        let Some(failure) = running.left.remove(&effect) else {
            return;
        };
        // Another client may have deleted the pod.
        let done = outcome == Outcome::Ok
            || (outcome == Outcome::Gone && running.step == SyncStage::Deleting);
        running.failed |= !done;
        self.counters.conflicts += u64::from(outcome == Outcome::Conflict);
        if outcome == Outcome::Ok {
            match (running.step, &failure) {
                (SyncStage::Patching, None) => self.counters.adopted += 1,
                (SyncStage::Patching, Some(_)) => self.counters.costs += 1,
                (SyncStage::Writing, _) => {
                    self.counters.written += 1;
                    self.counters.drift += drift(&running.ws.status, &running.plan.status);
                }
                (SyncStage::Deleting, _) => self.counters.rescheduled += 1,
            }
        }
        let (step, failed, rest) = (running.step, running.failed, running.left.len());
        let wake = running.plan.noted.wake;
        // A failure that repeats is reported by one event.
        if !done
            && let Some((kind, subject)) = failure
            && self
                .told
                .entry(key.clone())
                .or_default()
                .insert((kind, Arc::clone(&subject)))
        {
            self.record(&key, kind, subject);
        }
        if step == SyncStage::Writing {
            self.pause(&key, outcome);
        }
        match step {
            _ if rest > 0 => {}
            _ if failed => self.fail(&key),
            SyncStage::Patching => self.write(&key),
            SyncStage::Writing => self.delete(&key),
            SyncStage::Deleting => self.finish(&key, wake),
        }
    }

    /// Begins the pause after a status write.
    fn pause(&mut self, key: &WsKey, outcome: Outcome) {
        let before = self.pauses.get(key).copied();
        let (now, first, max) = (self.now, self.limits.pause, self.limits.pause_max);
        let pause = match outcome {
            Outcome::Ok => Pause::after_write(before, now, first, max),
            Outcome::Conflict => Pause::after_conflict(before, now, first),
            Outcome::Gone | Outcome::Failed => return,
        };
        self.pauses.insert(key.clone(), pause);
    }

    fn expect(&mut self, key: &WsKey) -> EffectId {
        let id = EffectId(self.next_effect);
        self.next_effect += 1;
        self.pending.insert(id, (key.clone(), self.now));
        id
    }

    pub(super) fn record(&mut self, key: &WsKey, kind: EventKind, subject: Arc<str>) {
        let key = key.clone();
        self.effects
            .push_back(Effect::Event(Event { key, kind, subject }));
    }
}

/// The number of places by which two ledgers differ in what is free, in rows that both have. A pod that was admitted
/// and has appeared took its place long before: only changes that the ledger missed count.
fn drift(before: &Status, after: &Status) -> u64 {
    let mut drift = 0;
    for (revision, rows) in &after.versioned {
        for row in rows {
            let mut known = before.rows(revision).iter();
            if let Some(known) = known.find(|known| known.name == row.name) {
                drift += u64::from(row.missing.abs_diff(known.missing));
            }
        }
    }
    drift
}

impl Holds for Running {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            ws,
            plan,
            step: _,
            left: _,
            failed: _,
        } = self;
        ws.mark(marks);
        plan.mark(marks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::status::Row;

    #[test]
    fn drift_is_what_both_ledgers_say_is_free_and_do_not_agree_on() {
        let row = |name: &str, missing| Row {
            name: name.into(),
            replicas: 0,
            missing,
            creating: Default::default(),
            deleting: Default::default(),
            schedulable: None,
        };
        let ledger = |rows: Vec<Row>| Status {
            versioned: BTreeMap::from([("v1".into(), rows)]),
            ..Status::default()
        };
        let before = ledger(vec![row("own", 2), row("elastic", -1), row("old", 5)]);
        let after = ledger(vec![row("own", 5), row("elastic", -1), row("new", 7)]);
        assert_eq!(drift(&before, &after), 3);
        assert_eq!(drift(&after, &before), 3);
        assert_eq!(
            drift(&Status::default(), &after),
            0,
            "a revision that begins"
        );
    }
}
