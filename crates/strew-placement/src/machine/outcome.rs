//! Applies the outcomes of writes.

use std::sync::Arc;

use strew_model::Symbol;

use super::effect::{Effect, EffectId, Event, EventKind};
use super::input::Outcome;
use super::placement_machine::{PlacementIdx, PlacementMachine, Todo};
use super::running::name;
use crate::decisions::writes::{Write, WriteKind};
use crate::facts::decision::{DecisionFact, GroupLabels, Replicas};

impl PlacementMachine {
    pub(super) fn outcome(&mut self, effect: EffectId, outcome: Outcome) {
        let Some(idx) = self.pending.remove(&effect) else {
            return;
        };
        let Some(row) = &mut self.rows[idx.index()] else {
            return;
        };
        row.waiting = None;
        let todo = row.todo.pop_front();
        let deletes = matches!(&todo, Some(Todo::Write(w)) if w.kind == WriteKind::Delete);
        let revision = match outcome {
            Outcome::Ok { revision } => revision,
            Outcome::Gone if deletes => 0,
            Outcome::Gone | Outcome::Conflict(_) | Outcome::Failed(_) => {
                match outcome {
                    Outcome::Failed(_) => self.counters.failed += 1,
                    _ => self.counters.conflicts += 1,
                }
                if let Some(Todo::Write(write)) = &todo {
                    self.doubtful.insert((row.fact.namespace, write.name));
                }
                return self.failed(idx);
            }
        };
        match todo {
            Some(Todo::Write(write)) => self.written(idx, &write, revision),
            Some(Todo::Status(status)) => {
                self.counters.statuses += 1;
                self.status_written(idx, status, revision);
            }
            Some(Todo::Event(_)) | None => {}
        }
        self.set_wake(idx, None);
        self.done(idx);
    }

    /// No outcome came: the write counts as failed. If it did succeed, facts will show it.
    pub(super) fn lost(&mut self, effect: EffectId) {
        self.outcome(effect, Outcome::Failed("no answer".into()));
    }

    /// Gives up the remaining writes. The placement is decided again after a pause.
    fn failed(&mut self, idx: PlacementIdx) {
        if let Some(row) = &mut self.rows[idx.index()] {
            row.todo.clear();
            row.after = None;
            self.counters.bound(row.bound.take(), self.now);
            let changed = row.again;
            let owner = (row.fact.namespace, Some(row.fact.name));
            self.hub.ledger.intend(owner, None);
            if changed {
                // The change may be the reason of the failure, so the placement is decided again at once.
                self.enqueue(idx);
            }
        }
        let at = self.retry_at(idx);
        self.set_wake(idx, Some(at));
    }

    fn written(&mut self, idx: PlacementIdx, write: &Write, revision: u64) {
        let Some(row) = &self.rows[idx.index()] else {
            return;
        };
        let (namespace, placement) = (row.fact.namespace, row.fact.name);
        self.doubtful.remove(&(namespace, write.name));
        self.counters.written(write.kind);
        if write.kind == WriteKind::Delete {
            let known = self.hub.ledger.remove(namespace, write.name);
            let last = known.map_or(0, |fact| fact.revision).max(revision);
            self.deleted.insert((namespace, write.name), last);
        } else {
            let known = self.hub.ledger.get(namespace, write.name).cloned();
            let mut fact = known.unwrap_or_else(|| DecisionFact {
                namespace,
                name: write.name,
                placement: Some(placement),
                group: GroupLabels {
                    index: None,
                    name: None,
                },
                decisions: Box::default(),
                replicas: Replicas::Absent,
                has_reason: false,
                revision,
            });
            fact.revision = fact.revision.max(revision);
            if write.group.is_some() {
                fact.placement = Some(placement);
            }
            fact.group = write.group.unwrap_or(fact.group);
            if let Some(decisions) = &write.decisions {
                fact.decisions.clone_from(decisions);
                fact.has_reason = false;
            }
            if let Some(replicas) = &write.replicas {
                fact.replicas.clone_from(replicas);
            }
            self.deleted.remove(&(namespace, write.name));
            self.hub.ledger.set(fact);
        }
        self.tell(idx, write);
    }

    /// The events of a write. Source: spec/placement §2.9.
    fn tell(&mut self, idx: PlacementIdx, write: &Write) {
        let Some(row) = &self.rows[idx.index()] else {
            return;
        };
        let placement = name(&row.fact);
        let text = |symbol: Symbol| self.hub.names.text(symbol);
        let sentence = |verb: &str| {
            let (decision, name) = (text(write.name), text(placement.name));
            let namespace = text(placement.namespace);
            format!("Decision {decision} is {verb} with placement {name} in namespace {namespace}")
        };
        let event = |kind, note: Arc<str>, warning| {
            Effect::Event(Event {
                kind,
                warning,
                placement: placement.clone(),
                decision: Some(write.name),
                note,
            })
        };
        let mut events = Vec::new();
        match write.kind {
            WriteKind::Create => {
                events.push(event(
                    EventKind::DecisionCreate,
                    sentence("created").into(),
                    false,
                ));
            }
            WriteKind::Delete => {
                events.push(event(
                    EventKind::DecisionDelete,
                    sentence("deleted").into(),
                    false,
                ));
            }
            WriteKind::Update => {}
        }
        if write.decisions.is_some() {
            let mut note = sentence("updated");
            if let Some(problem) = &row.warning {
                note += &format!(": {} in plugin {}", problem.message, problem.plugin);
            }
            let warning = row.warning.is_some();
            events.push(event(EventKind::DecisionUpdate, note.into(), warning));
            // Without scores, the note would be empty.
            if !row.score_text.is_empty() {
                let note = Arc::clone(&row.score_text);
                events.push(event(EventKind::ScoreUpdate, note, false));
            }
        }
        self.effects.extend(events);
    }
}
