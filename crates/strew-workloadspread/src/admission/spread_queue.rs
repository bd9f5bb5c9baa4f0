//! The requests of one WorkloadSpread: one status write at a time, shared by all that wait.
//!
//! Source: spec/workloadspread §4.5.

use std::collections::VecDeque;
use std::sync::Arc;

use strew_model::{Holds, Instant, Marks, Span};

use super::decide::Decided;
use super::effect::{Answer, Basis, Denial, Effect, EffectId, Untouched, Verdict};
use super::input::Outcome;
use super::machine::Admission;
use super::request::{Operation, Request};
use crate::choose::Choice;
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::status::Status;
use crate::inject::PodPatcher;
use crate::room::HoldId;
use crate::work::WORK_MAX;

/// How many times a request is tried.
pub(crate) const ATTEMPTS_MAX: u32 = 4;

/// So many requests tell how fast they come, and so many are to share a write while they come fast.
pub(super) const PACE_OF: usize = 16;

/// The pauses between attempts, in milliseconds; up to a tenth more is added.
const PAUSES_MS: [u64; 3] = [10, 50, 250];

/// A request that waits.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) request: Request,
    pub(super) revision: Arc<str>,
    pub(super) came: Instant,
    /// How many writes that held it met a conflict.
    pub(super) conflicts: u32,
    /// What it holds of the nodes.
    pub(super) hold: Option<HoldId>,
    /// What it will be answered once the write that holds it is done.
    pub(super) verdict: Verdict,
    pub(super) choice: Option<Choice>,
}

impl PendingRequest {
    pub(super) fn new(request: Request, revision: Arc<str>, came: Instant) -> Self {
        Self {
            request,
            revision,
            came,
            conflicts: 0,
            hold: None,
            verdict: Verdict::Untouched(Untouched::NoRoom),
            choice: None,
        }
    }

    pub(super) fn is_create(&self) -> bool {
        matches!(self.request.operation, Operation::Create { .. })
    }
}

/// Requests that share a write.
#[derive(Debug)]
pub(super) struct Batch {
    /// What is written to.
    base: Arc<WorkloadSpread>,
    /// What is written.
    status: Arc<Status>,
    /// Whether anything in it counts: percentages that are brought up to date do not.
    is_changed: bool,
    /// Who waits for it.
    requests: Vec<PendingRequest>,
}

impl Batch {
    fn of(base: Arc<WorkloadSpread>) -> Self {
        let status = Arc::clone(&base.status);
        Self {
            base,
            status,
            is_changed: false,
            requests: Vec::new(),
        }
    }

    /// How many requests share it.
    pub(super) fn sharing(&self) -> usize {
        self.requests.len()
    }
}

/// What a queue waits for.
#[derive(Debug, Default)]
pub(super) enum State {
    /// For requests.
    #[default]
    Idle,
    /// For a write.
    Writing(Batch),
    /// For more requests, while they come fast.
    Gathering,
    /// For a newer fact of the target or of the ledger: by what is known, the target asks for no more pods.
    Waiting,
    /// For a pause to end, after a conflict.
    Paused,
    /// For the object, after a pause.
    Reading,
}

/// One WorkloadSpread's requests.
#[derive(Debug, Default)]
pub(super) struct SpreadQueue {
    pub(super) requests: VecDeque<PendingRequest>,
    pub(super) state: State,
    /// The object as this machine wrote it last, while no watch has told of it.
    pub(super) written: Option<Arc<WorkloadSpread>>,
    /// The object as read after a conflict: the next attempt goes by it.
    pub(super) live: Option<Arc<WorkloadSpread>>,
    /// Whether it stands among those to be run.
    pub(super) queued: bool,
    /// When the last [`PACE_OF`] requests came, the newest at the end. Empty if requests are never gathered.
    pub(super) arrivals: VecDeque<Instant>,
    /// When the last write began.
    began: Option<Instant>,
}

impl SpreadQueue {
    pub(super) fn waiting(&self) -> usize {
        let writing = match &self.state {
            State::Writing(batch) => batch.requests.len(),
            _ => 0,
        };
        self.requests.len() + writing
    }

    /// A request came.
    pub(super) fn came(&mut self, now: Instant) {
        if self.arrivals.len() == PACE_OF {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(now);
    }

    /// Until when further requests are waited for: as long after the last write began as the last requests took to come,
    /// if they came within `within`. A request that comes alone is not held back.
    fn gathers_until(&self, now: Instant, within: Span) -> Option<Instant> {
        let first = self.arrivals.len().checked_sub(PACE_OF)?;
        let took = self.arrivals.back()?.since(self.arrivals[first]);
        let until = self.began? + took;
        (took < within && now < until).then_some(until)
    }
}

impl Admission {
    /// Decides on what waits in a queue: one batch.
    pub(super) fn run(&mut self, key: &WsKey, patcher: &mut dyn PodPatcher) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.queued = false;
        }
        let Some(requests) = self.take_requests(key) else {
            return;
        };
        let Some(base) = self.take_latest(key) else {
            for pending in requests {
                self.answer_untouched(key, pending, Untouched::SpreadGone);
            }
            return self.leave(key);
        };
        let mut batch = Batch::of(base);
        let waits = self.decide_all(key, &mut batch, requests, patcher);
        if batch.is_changed {
            self.write(key, batch);
        } else if let Some(until) = waits {
            self.pause(key, State::Waiting, until);
        } else {
            self.leave(key);
        }
    }

    /// Returns the requests to decide next (possibly none), or `None` while the queue waits for a write or for time to pass,
    /// or is still gathering requests.
    fn take_requests(&mut self, key: &WsKey) -> Option<Vec<PendingRequest>> {
        let queue = self.queues.get_mut(key)?;
        if !matches!(queue.state, State::Idle) {
            return None;
        }
        let within = self.limits.gather_within;
        if !queue.requests.is_empty()
            && let Some(until) = queue.gathers_until(self.now, within)
        {
            self.pause(key, State::Gathering, until);
            return None;
        }
        let n = queue.requests.len().min(self.limits.batch_max);
        Some(queue.requests.drain(..n).collect())
    }

    /// Decides on requests, one after the other, until simulated scheduling has done [`WORK_MAX`]: the others stay in the
    /// queue, for the next turn of the queue. Those that are to wait for news stand in the queue again; the first of them
    /// waits until the moment that is given back.
    fn decide_all(
        &mut self,
        key: &WsKey,
        batch: &mut Batch,
        requests: Vec<PendingRequest>,
        patcher: &mut dyn PodPatcher,
    ) -> Option<Instant> {
        let base = Arc::clone(&batch.base);
        let mut waits: Option<Instant> = None;
        let (mut later, mut waiting) = (VecDeque::new(), VecDeque::new());
        let before = self.room.work_done();
        for mut pending in requests {
            if self.room.work_done() - before > WORK_MAX {
                later.push_back(pending);
                continue;
            }
            match self.decide(&base, &mut batch.status, &mut pending, patcher) {
                Decided::Changed => batch.is_changed = true,
                Decided::AsItIs => {}
                // Later requests are decided before them: a delete among these makes room.
                Decided::After(until) => {
                    waits = Some(waits.map_or(until, |first| first.min(until)));
                    waiting.push_back(pending);
                    continue;
                }
            }
            // What was decided by a ledger that is not written yet waits for it, too.
            match batch.is_changed {
                true => batch.requests.push(pending),
                false => {
                    let basis = Basis {
                        version: base.version,
                        is_written: false,
                    };
                    self.answer(key, pending, Some(basis));
                }
            }
        }
        if let Some(queue) = self.queues.get_mut(key) {
            // Those that wait for news come after those that have not been looked at, or they were looked at for ever.
            let is_bounded = !later.is_empty();
            later.append(&mut waiting);
            later.append(&mut queue.requests);
            queue.requests = later;
            if is_bounded {
                return None;
            }
        }
        waits
    }

    fn write(&mut self, key: &WsKey, batch: Batch) {
        let effect = self.expect(key);
        self.effects.push_back(Effect::WriteStatus {
            id: effect,
            key: key.clone(),
            uid: batch.base.uid.clone(),
            version: batch.base.version,
            status: Arc::clone(&batch.status),
        });
        if let Some(queue) = self.queues.get_mut(key) {
            queue.began = Some(self.now);
            queue.state = State::Writing(batch);
        }
    }

    /// Makes a queue wait, at most until then.
    fn pause(&mut self, key: &WsKey, state: State, until: Instant) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.state = state;
            self.paused.insert((until, key.clone()));
        }
    }

    /// Returns the latest copy of a WorkloadSpread: the one that was read after a conflict, which no later call returns,
    /// else the newer of what this machine wrote last and what the watch has told. `None` if it is gone.
    fn take_latest(&mut self, key: &WsKey) -> Option<Arc<WorkloadSpread>> {
        let queue = self.queues.get_mut(key)?;
        if let Some(live) = queue.live.take() {
            return Some(live);
        }
        let told = self.spreads.get(key)?;
        let written = queue.written.as_ref();
        let newer = written.filter(|w| w.version > told.version && w.uid == told.uid);
        Some(Arc::clone(newer.unwrap_or(told)))
    }

    /// A batch is done with: the next one, or nothing to remember.
    pub(super) fn leave(&mut self, key: &WsKey) {
        self.wake_queue(key);
        if let Some(queue) = self.queues.get(key)
            && queue.requests.is_empty()
            && matches!(queue.state, State::Idle)
            && queue.written.is_none()
            && queue.arrivals.is_empty()
        {
            self.queues.remove(key);
        }
    }

    /// An effect came to something, or to nothing.
    pub(super) fn settle(&mut self, effect: EffectId, outcome: Result<Outcome, Denial>) {
        let Some((key, _)) = self.pending.remove(&effect) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&key) else {
            return;
        };
        match std::mem::take(&mut queue.state) {
            State::Writing(batch) => self.write_settled(&key, batch, outcome),
            State::Reading => self.read_settled(&key, outcome),
            other => queue.state = other,
        }
    }

    fn write_settled(&mut self, key: &WsKey, batch: Batch, outcome: Result<Outcome, Denial>) {
        let requests = batch.requests;
        let basis = Basis {
            version: batch.base.version,
            is_written: true,
        };
        match outcome {
            Ok(Outcome::Written(version)) => {
                let told = self.spreads.get(key).map(|ws| ws.version);
                if told.is_some_and(|told| told < version)
                    && let Some(queue) = self.queues.get_mut(key)
                {
                    let mut written = WorkloadSpread::clone(&batch.base);
                    (written.version, written.status) = (version, batch.status);
                    queue.written = Some(Arc::new(written));
                }
                for pending in requests {
                    self.answer(key, pending, Some(basis));
                }
                self.leave(key);
            }
            Ok(Outcome::Conflict) => self.conflict(key, requests),
            Ok(_) => self.deny_all(key, requests, Denial::Failed),
            Err(why) => self.deny_all(key, requests, why),
        }
    }

    /// A write was not carried out, or may have been. A deletion that may be in the ledger passes: a pod that stays after
    /// its place was given back is one too many.
    fn deny_all(&mut self, key: &WsKey, requests: Vec<PendingRequest>, why: Denial) {
        for pending in requests {
            match (why, &pending.verdict) {
                (Denial::Lost, Verdict::Counted) => self.answer(key, pending, None),
                _ => self.deny(key, pending, why),
            }
        }
        self.leave(key);
    }

    /// Somebody else wrote: everybody of the batch tries again, by the object as it is then.
    fn conflict(&mut self, key: &WsKey, requests: Vec<PendingRequest>) {
        let mut again = VecDeque::new();
        for mut pending in requests {
            pending.conflicts += 1;
            if let Some(hold) = pending.hold.take() {
                self.room.release(hold);
            }
            match pending.conflicts >= ATTEMPTS_MAX {
                true => self.deny(key, pending, Denial::Conflicts(ATTEMPTS_MAX)),
                false => again.push_back(pending),
            }
        }
        let most = again.iter().map(|t| t.conflicts).max();
        let queue = self.queues.entry(key.clone()).or_default();
        queue.written = None;
        again.append(&mut queue.requests);
        queue.requests = again;
        let pause = PAUSES_MS[most.map_or(0, |n| n as usize - 1).min(PAUSES_MS.len() - 1)];
        let nanos = Span::from_millis(pause).0;
        let until = self.now + Span(nanos + self.dice.between(0, nanos / 10));
        match queue.requests.is_empty() {
            true => self.leave(key),
            false => self.pause(key, State::Paused, until),
        }
    }

    /// A pause is over: what was gathered is decided, or the object is read again.
    pub(super) fn resume(&mut self, key: &WsKey) {
        let Some(queue) = self.queues.get_mut(key) else {
            return;
        };
        match queue.state {
            State::Paused => queue.state = State::Reading,
            State::Gathering | State::Waiting => {
                queue.state = State::Idle;
                return self.leave(key);
            }
            State::Idle | State::Reading | State::Writing(_) => return,
        }
        let effect = self.expect(key);
        let key = key.clone();
        self.effects
            .push_back(Effect::ReadSpread { id: effect, key });
    }

    fn read_settled(&mut self, key: &WsKey, outcome: Result<Outcome, Denial>) {
        let Some(queue) = self.queues.get_mut(key) else {
            return;
        };
        match outcome {
            // Without a request left, the copy would be old by the next one.
            Ok(Outcome::Read(_)) if queue.requests.is_empty() => {}
            Ok(Outcome::Read(ws)) => queue.live = Some(Arc::new(*ws)),
            Ok(Outcome::Gone) => {
                // Its pods pass as they are: nothing was written for them (spec/workloadspread §4.5).
                let requests = std::mem::take(&mut queue.requests);
                for pending in requests {
                    self.answer_untouched(key, pending, Untouched::SpreadGone);
                }
            }
            Ok(_) | Err(_) => {
                let why = outcome.err().unwrap_or(Denial::Failed);
                let (again, fresh) = std::mem::take(&mut queue.requests)
                    .into_iter()
                    .partition::<VecDeque<_>, _>(|t| t.conflicts > 0);
                queue.requests = fresh;
                for pending in again {
                    self.deny(key, pending, why);
                }
            }
        }
        self.leave(key);
    }
}

// === helpers ===

impl Admission {
    pub(super) fn expect(&mut self, key: &WsKey) -> EffectId {
        let id = EffectId(self.next_effect);
        self.next_effect += 1;
        self.pending.insert(id, (key.clone(), self.now));
        id
    }

    fn deny(&mut self, key: &WsKey, mut pending: PendingRequest, why: Denial) {
        if let Some(hold) = pending.hold.take() {
            self.room.release(hold);
        }
        pending.verdict = Verdict::Deny(why);
        self.answer(key, pending, None);
    }

    fn answer_untouched(&mut self, key: &WsKey, mut pending: PendingRequest, why: Untouched) {
        pending.verdict = Verdict::Untouched(why);
        pending.choice = None;
        self.answer(key, pending, None);
    }

    fn answer(&mut self, key: &WsKey, pending: PendingRequest, basis: Option<Basis>) {
        self.counters
            .answered(Some(key), &pending.verdict, pending.conflicts);
        self.effects.push_back(Effect::Answer(Box::new(Answer {
            request: pending.request.id,
            verdict: pending.verdict,
            spread: Some(key.clone()),
            revision: Some(pending.revision),
            choice: pending.choice,
            basis,
            conflicts: pending.conflicts,
        })));
    }
}

// === the symbols in it ===

impl Holds for SpreadQueue {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            requests,
            state,
            written,
            live,
            queued: _,
            arrivals: _,
            began: _,
        } = self;
        requests.iter().for_each(|pending| pending.mark(marks));
        if let State::Writing(batch) = state {
            batch.base.mark(marks);
            batch
                .requests
                .iter()
                .for_each(|pending| pending.mark(marks));
        }
        for copy in [written, live].into_iter().flatten() {
            copy.mark(marks);
        }
    }
}

impl Holds for PendingRequest {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            request,
            revision: _,
            came: _,
            conflicts: _,
            hold: _,
            verdict,
            choice,
        } = self;
        request.mark(marks);
        verdict.mark(marks);
        choice.mark(marks);
    }
}
