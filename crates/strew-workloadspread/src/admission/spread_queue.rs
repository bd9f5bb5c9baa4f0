//! The queue of one WorkloadSpread: one status write at a time, shared by all waiting requests.
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

/// The largest number of attempts for a request.
pub(crate) const ATTEMPTS_MAX: u32 = 4;

/// The number of requests that measure the pace, and that share a write while the pace is high.
pub(super) const PACE_OF: usize = 16;

/// The pauses between attempts, in milliseconds; up to a tenth is added.
const PAUSES_MS: [u64; 3] = [10, 50, 250];

/// How long a request is tried again if the API server does not answer: less than the API server waits for the review.
const TRIED_WITHIN: Span = Span::from_secs(2);

/// A replica that has reached no API server for this long refuses at the first failure: another replica may be reached,
/// and the sooner the pod's controller tries again, the sooner it is.
const CUT_OFF_AFTER: Span = Span::from_secs(3);

/// The pause before such an attempt, in milliseconds; up to a tenth is added.
const NO_ANSWER_PAUSE_MS: u64 = 100;

/// A waiting request.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) request: Request,
    pub(super) revision: Arc<str>,
    pub(super) came: Instant,
    /// The number of its writes that met a conflict.
    pub(super) conflicts: u32,
    /// True if the API server did not answer one of its writes.
    is_unanswered: bool,
    /// True for a deletion that may be in the ledger.
    may_be_counted: bool,
    /// The capacity that it holds.
    pub(super) hold: Option<HoldId>,
    /// Its answer, sent when the write that contains it is done.
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
            is_unanswered: false,
            may_be_counted: false,
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
    /// The object that is written.
    base: Arc<WorkloadSpread>,
    /// The new status.
    status: Arc<Status>,
    /// True if a decision needs the write; updating percentages alone does not.
    is_changed: bool,
    /// The requests that it answers.
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

    /// The number of requests that share it.
    pub(super) fn sharing(&self) -> usize {
        self.requests.len()
    }
}

/// The reason for which a queue waits.
#[derive(Debug, Default)]
pub(super) enum State {
    /// For requests.
    #[default]
    Idle,
    /// For its status write.
    Writing(Batch),
    /// For more requests, while they come fast.
    Gathering,
    /// For a newer fact of the target or the ledger: by the known facts, the target asks for no more pods.
    Waiting,
    /// For the end of a pause after a conflict, or after a request without an answer.
    Paused,
    /// For reading the object, after a pause.
    Reading,
}

/// The requests of one WorkloadSpread.
#[derive(Debug, Default)]
pub(super) struct SpreadQueue {
    pub(super) requests: VecDeque<PendingRequest>,
    pub(super) state: State,
    /// The object as this machine wrote it last; `None` if the watch has reported it.
    pub(super) written: Option<Arc<WorkloadSpread>>,
    /// The object as read after a conflict, for the next attempt.
    pub(super) live: Option<Arc<WorkloadSpread>>,
    /// True if it is scheduled to run.
    pub(super) queued: bool,
    /// The times of the last [`PACE_OF`] requests, the newest at the end. Empty if requests are never gathered.
    pub(super) arrivals: VecDeque<Instant>,
    /// The time at which the last write began.
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

    /// Adds the time of a request.
    pub(super) fn came(&mut self, now: Instant) {
        if self.arrivals.len() == PACE_OF {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(now);
    }

    /// The time until which further requests are gathered: as long after the last write began as the last requests took
    /// to come, if they came within `within`. A single request is not held back.
    fn gathers_until(&self, now: Instant, within: Span) -> Option<Instant> {
        let first = self.arrivals.len().checked_sub(PACE_OF)?;
        let took = self.arrivals.back()?.since(self.arrivals[first]);
        let until = self.began? + took;
        (took < within && now < until).then_some(until)
    }
}

impl Admission {
    /// Decides the waiting requests of a queue: one batch.
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

    /// Decides requests one after the other, until simulated scheduling has done [`WORK_MAX`] steps; the others stay in
    /// the queue for its next turn. Requests that must wait for newer facts go back to the queue; returns the time
    /// until which the first of them waits.
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
                // Later requests are decided before them: a deletion among these makes room.
                Decided::After(until) => {
                    waits = Some(waits.map_or(until, |first| first.min(until)));
                    waiting.push_back(pending);
                    continue;
                }
            }
            // An answer that depends on a ledger that is not written yet waits for the write, too.
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
            // Requests that wait for newer facts go behind requests that are not decided yet; otherwise they would be
            // decided without end.
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

    /// Makes a queue wait, at most until this time.
    fn pause(&mut self, key: &WsKey, state: State, until: Instant) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.state = state;
            self.paused.insert((until, key.clone()));
        }
    }

    /// Returns the latest copy of a WorkloadSpread: the copy that was read after a conflict, which is returned only
    /// once, else the newer of this machine's last write and the watch's copy. `None` if it was deleted.
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

    /// Ends a batch. Schedules the next one, or removes the empty queue.
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

    /// Applies the outcome of an effect.
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
            Ok(Outcome::Unsent) => self.unanswered(key, requests, Denial::Failed),
            Err(Denial::Lost) => self.unanswered(key, requests, Denial::Lost),
            Ok(_) | Err(_) => {
                let why = outcome.err().unwrap_or(Denial::Failed);
                for pending in requests {
                    self.deny(key, pending, why);
                }
                self.leave(key);
            }
        }
    }

    /// The API server did not answer. Requests that are not too old are decided again, with the object as it is then: a
    /// pod that a write entered all the same is found there.
    fn unanswered(&mut self, key: &WsKey, requests: Vec<PendingRequest>, why: Denial) {
        let is_cut_off = self
            .cut_off_since
            .is_some_and(|since| self.now >= since + CUT_OFF_AFTER);
        let mut again = VecDeque::new();
        for mut pending in requests {
            pending.is_unanswered = true;
            pending.may_be_counted |=
                matches!((why, &pending.verdict), (Denial::Lost, Verdict::Counted));
            match !is_cut_off && self.now < pending.came + TRIED_WITHIN {
                true => again.push_back(pending),
                false => self.deny(key, pending, why),
            }
        }
        self.try_again(key, again, NO_ANSWER_PAUSE_MS);
    }

    /// Decides these requests again after a pause, before the others, with the object as it is then.
    fn try_again(&mut self, key: &WsKey, mut again: VecDeque<PendingRequest>, pause_ms: u64) {
        for hold in again.iter_mut().filter_map(|pending| pending.hold.take()) {
            self.room.release(hold);
        }
        let queue = self.queues.entry(key.clone()).or_default();
        queue.written = None;
        again.append(&mut queue.requests);
        queue.requests = again;
        let nanos = Span::from_millis(pause_ms).0;
        let until = self.now + Span(nanos + self.dice.between(0, nanos / 10));
        match queue.requests.is_empty() {
            true => self.leave(key),
            false => self.pause(key, State::Paused, until),
        }
    }

    /// Another client wrote the object: all requests of the batch are decided again with the new object.
    fn conflict(&mut self, key: &WsKey, requests: Vec<PendingRequest>) {
        let mut again = VecDeque::new();
        for mut pending in requests {
            pending.conflicts += 1;
            match pending.conflicts >= ATTEMPTS_MAX {
                true => self.deny(key, pending, Denial::Conflicts(ATTEMPTS_MAX)),
                false => again.push_back(pending),
            }
        }
        let most = again.iter().map(|t| t.conflicts).max();
        let pause = PAUSES_MS[most.map_or(0, |n| n as usize - 1).min(PAUSES_MS.len() - 1)];
        self.try_again(key, again, pause);
    }

    /// A pause is over: gathered requests are decided, or the object is read again.
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
            // Without a request left, the copy would be outdated at the next request.
            Ok(Outcome::Read(_)) if queue.requests.is_empty() => {}
            Ok(Outcome::Read(ws)) => queue.live = Some(Arc::new(*ws)),
            Ok(Outcome::Gone) => {
                // Its pods pass unchanged: nothing was written for them (spec/workloadspread §4.5).
                let requests = std::mem::take(&mut queue.requests);
                for pending in requests {
                    self.answer_untouched(key, pending, Untouched::SpreadGone);
                }
            }
            Ok(_) | Err(_) => {
                let why = outcome.err().unwrap_or(Denial::Failed);
                let (again, fresh) = std::mem::take(&mut queue.requests)
                    .into_iter()
                    .partition::<Vec<_>, _>(|t| t.conflicts > 0 || t.is_unanswered);
                queue.requests = fresh.into();
                return self.unanswered(key, again, why);
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

    /// Refuses a request; but a deletion that may be in the ledger passes: if its place were given away while the pod
    /// stays, the subset would have one too many.
    fn deny(&mut self, key: &WsKey, mut pending: PendingRequest, why: Denial) {
        if let Some(hold) = pending.hold.take() {
            self.room.release(hold);
        }
        pending.verdict = match pending.may_be_counted {
            true => Verdict::Counted,
            false => Verdict::Deny(why),
        };
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
            is_unanswered: _,
            may_be_counted: _,
            hold: _,
            verdict,
            choice,
        } = self;
        request.mark(marks);
        verdict.mark(marks);
        choice.mark(marks);
    }
}
