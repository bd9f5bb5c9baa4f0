//! Slots taken ahead: where a target asks for more pods than wait, a write enters some of those, too, and they are answered
//! at once.
//!
//! A slot taken ahead stands in `creatingPods` as any other does: no room is given twice, and what somebody dies with
//! comes back when it expires. What nobody claims is given back [`KEPT_FOR`] later, or as soon as the subset is full
//! without it: another replica may be out of room. Who finds a subset full while another replica may hold slots of it waits
//! [`OTHERS_WITHIN`] for them, once, before a later subset is used: so replicas fill subsets as one would.
//!
//! What a write may have entered whose answer never came is looked for, those slots of refused pods among them, and claimed
//! as the others are; without that, a subset would look full until they expire.
//!
//! Source: spec/workloadspread §4.3, §4.5, §8 (I1, I2, I7).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strew_model::{Instant, Prng, Span};

use super::effect::Verdict;
use super::lane::{Lane, Ticket};
use super::machine::Admission;
use crate::choose::{self, Choice, Finding};
use crate::controller::rows::CREATING_FOR;
use crate::facts::spec::{Spec, WorkloadSpread, WsKey};
use crate::facts::status::{Row, Status, whole_second};
use crate::quota::{self, Total};
use crate::slot;

/// Slots that nobody claims for so long are given back. At a steady pace that asks for more than [`HELD_MIN`] each is claimed
/// within [`Limits::ahead`](super::Limits::ahead), which is to be shorter.
const KEPT_FOR: Span = Span::from_secs(5);

/// What could not be given back is tried again after so long.
pub(super) const GIVEN_BACK_AFTER: Span = Span::from_secs(2);

/// So long none are taken after they had to be given back.
const OFF_FOR: Span = Span::from_secs(2);

/// How long another replica has to give back what it took ahead: it may have to write it three times.
const OTHERS_WITHIN: Span = Span::from_secs(1);

/// What comes within this is the pace.
const PACE_WITHIN: Span = Span::from_secs(1);

/// For fewer requests than so many, none are taken: who comes alone waits for a write, and leaves nothing to be given back.
const PACE_MIN: usize = 2;

/// A subset is filled with slots if that many pods come within this, and for no longer: another replica may wait for room.
const FILLED_FOR: Span = Span::from_millis(500);

/// For so many pods at least, where their target asks for them: who begins with a few has many soon.
const HELD_MIN: usize = 64;

/// How many slots are held at most: a controller manager asks for up to 256 pods of a set at once, and half of what is held
/// may be gone before more are taken.
pub(super) const HELD_MAX: usize = 512;

/// Lost slots that have stood in the ledger for longer are claimed by nobody: it would let go of them before their pods are
/// seen.
const CLAIMED_WITHIN: Span = Span::from_secs(12);

/// A slot that nobody has claimed.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    revision: Arc<str>,
    subset: Arc<str>,
    uid: Arc<str>,
    /// Until when it is kept.
    until: Instant,
}

impl Slot {
    /// The row of its subset in a ledger.
    fn row<'a>(&self, status: &'a Status) -> Option<&'a Row> {
        let mut rows = status.rows(&self.revision).iter();
        rows.find(|row| row.name == self.subset)
    }

    /// Since when it stands in a ledger.
    fn since(&self, status: &Status) -> Option<Instant> {
        self.row(status)?.creating.get(&self.uid).copied()
    }

    fn is_in(&self, status: &Status) -> bool {
        self.since(status).is_some()
    }

    /// What a write was to enter for a new pod that is refused now: another one may have it.
    pub(super) fn of_refused(ticket: &Ticket) -> Option<Self> {
        let Verdict::Inject(injection) = &ticket.verdict else {
            return None;
        };
        Some(Self {
            revision: ticket.revision.clone(),
            subset: injection.marker.subset.clone(),
            uid: injection.marker.uid.clone()?,
            until: ticket.came,
        })
    }
}

/// The slots of one WorkloadSpread.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Those that a write has entered, the oldest first: whoever comes claims one.
    slots: VecDeque<Slot>,
    /// Those that may stand in the ledger, and are not seen there: nobody knows what became of a write, or what is known
    /// is older than it. The oldest first.
    lost: VecDeque<Slot>,
    /// Those that a write was to take out that came to nothing, or of which nobody knows the outcome.
    doubtful: Vec<Slot>,
    /// The version of the object in which lost ones were looked for last, and how many of them.
    looked_in: Option<(u64, usize)>,
    /// The version of the object, and the total, by which all that are held were to be kept.
    kept_by: Option<(u64, Total)>,
    /// None are taken until then.
    off_until: Option<Instant>,
    /// Slots of a subset that is full with them are held until then.
    filled_until: Option<Instant>,
    /// Rows that are full while another replica may hold slots of them, and since when.
    full: BTreeMap<(Arc<str>, Arc<str>), Instant>,
}

/// Names of slots.
pub(super) struct Uids {
    replica: String,
    next: u32,
}

impl Uids {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            replica: slot::replica(Prng::new(seed ^ 0x5107).next_u64()),
            next: 0,
        }
    }

    fn next(&mut self) -> Arc<str> {
        let name = slot::name(&self.replica, self.next);
        self.next = self.next.wrapping_add(1);
        name
    }

    /// Whether another replica holds slots, or did lately.
    fn others_are_in(&self, rows: &[Row]) -> bool {
        let mut ids = rows.iter().flat_map(|row| row.creating.keys());
        ids.any(|id| self.is_of_another(id))
    }

    /// Whether another replica took a slot ahead.
    fn is_of_another(&self, id: &str) -> bool {
        slot::taken_by(id).is_some_and(|replica| replica != self.replica)
    }
}

impl Ahead {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.lost.is_empty() && self.doubtful.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.lost.clear();
        self.doubtful.clear();
        self.looked_in = None;
        self.kept_by = None;
        self.filled_until = None;
    }

    /// Slots that a write entered, as the ledger is after it.
    pub(super) fn put_written(
        &mut self,
        now: Instant,
        until: Instant,
        taken: Vec<Slot>,
        status: &Status,
    ) {
        let is_filled = |slot: &Slot| slot.row(status).is_some_and(|row| !row.has_room());
        if taken.iter().any(is_filled) {
            self.filled_until = Some(now + FILLED_FOR);
        }
        self.put(until, taken);
    }

    /// Slots that stand in the ledger, to be held until then.
    fn put(&mut self, until: Instant, taken: impl IntoIterator<Item = Slot>) {
        self.slots.extend(kept_until(taken, until));
        self.kept_by = None;
    }

    /// Slots that a write was to enter, and may have entered: they are looked for as long as the ledger would keep them.
    pub(super) fn put_lost(&mut self, now: Instant, taken: Vec<Slot>) {
        self.lost.extend(kept_until(taken, now + CREATING_FOR));
    }

    /// Slots that a write was to take out, and did not, or may not have: nobody claims them any more, and from this moment
    /// on they are taken out again.
    pub(super) fn put_doubtful(&mut self, from: Instant, back: impl IntoIterator<Item = Slot>) {
        self.doubtful.extend(kept_until(back, from));
    }

    /// Whoever finds lost slots in the ledger has them until then, or takes them out if they are old.
    pub(super) fn find_lost(&mut self, base: &WorkloadSpread, now: Instant, until: Instant) {
        let looked = self
            .looked_in
            .filter(|(version, _)| *version == base.version);
        let from = looked.map_or(0, |(_, n)| n.min(self.lost.len()));
        for slot in self.lost.split_off(from) {
            match slot.since(&base.status) {
                None => self.lost.push_back(slot),
                Some(since) if now < since + CLAIMED_WITHIN => self.put(until, [slot]),
                Some(_) => self.put_doubtful(now, [slot]),
            }
        }
        while self.lost.pop_front_if(|slot| slot.until <= now).is_some() {}
        self.looked_in = Some((base.version, self.lost.len()));
    }

    /// When the next are not to be kept any more.
    pub(super) fn due(&self) -> Option<Instant> {
        let first = self.slots.front().into_iter().chain(self.lost.front());
        let all = first.chain(&self.doubtful);
        all.map(|slot| slot.until).chain(self.filled_until).min()
    }

    /// Slots that stand in the ledger, or may, and have to be claimed or given back.
    pub(super) fn n_open(&self) -> usize {
        self.slots.len() + self.doubtful.len()
    }

    fn held_of(&self, revision: &str) -> usize {
        let of = |slot: &&Slot| &*slot.revision == revision;
        self.slots.iter().filter(of).count()
    }

    fn held(&self, revision: &str, subset: &str) -> usize {
        let of = |slot: &&Slot| &*slot.revision == revision && &*slot.subset == subset;
        self.slots.iter().filter(of).count()
    }
}

/// What becomes of a slot that is held, whatever the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Its subset is not the one that new pods go to, or has fewer places now.
    NotNext,
    /// Its subset is full, and not by slots taken ahead, or closed.
    Full,
    /// What is known is older than the write that entered it, or somebody edited the status.
    Lost,
}

impl Fate {
    fn of(
        slot: &Slot,
        base: &WorkloadSpread,
        status: &Status,
        total: Total,
        may_fill: bool,
    ) -> Self {
        let rows = status.rows(&slot.revision);
        let place = rows.iter().position(|row| row.name == slot.subset);
        let Some(place) = place.filter(|place| rows[*place].creating.contains_key(&slot.uid))
        else {
            return Self::Lost;
        };
        let row = &rows[place];
        let is_open = status.is_open(row);
        let first_open = rows.iter().position(|row| status.is_open(row));
        let is_next = first_open.is_none_or(|first| place <= first);
        // A percentage of a total that fell leaves fewer.
        let max = max_of(&base.spec, row, total);
        let is_within = max.is_some_and(|max| row.expected() <= i64::from(max));
        if !is_open && (!may_fill || status.is_closed(row)) {
            return Self::Full;
        }
        match is_next && is_within {
            true => Self::Kept,
            false => Self::NotNext,
        }
    }
}

fn kept_until(slots: impl IntoIterator<Item = Slot>, until: Instant) -> impl Iterator<Item = Slot> {
    slots.into_iter().map(move |slot| Slot { until, ..slot })
}

/// Whether slots can be taken ahead: who is next does not hang on nodes, nor on minimums.
fn suits(spec: &Spec) -> bool {
    !spec.strategy.simulates() && spec.subsets.iter().all(|subset| subset.min_replicas == 0)
}

/// The limit of a row's subset; `None`: it is not in the spec any more.
fn max_of(spec: &Spec, row: &Row, total: Total) -> Option<i32> {
    let place = spec.place(&row.name)?;
    Some(quota::scaled_or_zero(
        spec.subsets[place].max_replicas,
        total,
    ))
}

impl Admission {
    /// The slot that a new pod claims: of the first subset with room, if some of it was taken ahead. The subset, and the room
    /// that there was.
    pub(super) fn claim(
        &mut self,
        base: &WorkloadSpread,
        ticket: &Ticket,
    ) -> Option<(usize, i32, Arc<str>)> {
        if !suits(&base.spec) {
            return None;
        }
        let total = self.total(base);
        let lane = self.lanes.get_mut(&base.key)?;
        let (status, revision) = (&base.status, &ticket.revision);
        let rows = status.rows(revision);
        // Percentages of another total: whoever writes brings them up to date.
        if base.spec.has_percentages() && choose::lags(rows, &base.spec, total) {
            return None;
        }
        let open = |row: &&Row| !status.is_closed(row);
        for row in rows.iter().filter(open) {
            let held = lane.ahead.held(revision, &row.name);
            if held == 0 {
                if row.has_room() {
                    return None;
                }
                continue;
            }
            // A limit that was lowered, or a status that somebody edited: it is given back.
            if row.expected() > i64::from(max_of(&base.spec, row, total)?) {
                return None;
            }
            let now = self.now;
            let is_good = |slot: &Slot| {
                slot.revision == *revision
                    && row.creating.contains_key(&slot.uid)
                    && now < slot.until
            };
            let at = lane.ahead.slots.iter().position(is_good)?;
            let slot = lane.ahead.slots.remove(at)?;
            let place = base.spec.place(&row.name)?;
            let room = i32::try_from(held).unwrap_or(i32::MAX);
            return Some((place, row.missing.saturating_add(room), slot.uid));
        }
        None
    }

    /// Takes out of the ledger what is not to be kept: slots that nobody claimed in time, those of a subset that is not next
    /// (it is full without them, closed, or an earlier one has room again), and all if a pod has a name of its own, by which
    /// it is entered.
    pub(super) fn give_back(
        &mut self,
        base: &WorkloadSpread,
        status: &mut Arc<Status>,
        tickets: &[Ticket],
    ) -> Vec<Slot> {
        let (total, now) = (self.total(base), self.now);
        let Some(lane) = self.lanes.get_mut(&base.key) else {
            return Vec::new();
        };
        let is_named = tickets.iter().any(Ticket::is_named_create);
        let (mut back, mut is_asked_for) = (Vec::new(), is_named);
        let ahead = &mut lane.ahead;
        let fate = |slot: &Slot, may_fill: bool| Fate::of(slot, base, status, total, may_fill);
        let kept_by = Some((base.version, total));
        if ahead.kept_by == kept_by && !is_named && ahead.due().is_none_or(|due| now < due) {
            let may_fill = ahead.filled_until.is_some();
            let is_kept = |slot: &Slot| fate(slot, may_fill) == Fate::Kept;
            debug_assert!(
                ahead.slots.iter().all(is_kept),
                "one is to go, and nothing changed"
            );
            return back;
        }
        ahead.kept_by = kept_by;
        let has_lapsed = ahead.filled_until.take_if(|until| *until <= now).is_some();
        let may_fill = ahead.filled_until.is_some();
        ahead.slots.retain(|slot| {
            let fate = fate(slot, may_fill);
            match fate {
                Fate::Kept if now < slot.until && !is_named => return true,
                Fate::Kept | Fate::NotNext | Fate::Full => back.push(slot.clone()),
                Fate::Lost => {
                    let until = now + CREATING_FOR;
                    let lost = slot.clone();
                    ahead.lost.push_back(Slot { until, ..lost });
                }
            }
            is_asked_for |= fate == Fate::Full && !has_lapsed;
            false
        });
        let is_due = |slot: &mut Slot| slot.until <= now;
        let due = ahead.doubtful.extract_if(.., is_due);
        back.extend(due.filter(|slot| slot.is_in(status)));
        if has_lapsed {
            // Who came that fast rests, or has ended: the pace is what comes from here on.
            lane.arrivals.clear();
        }
        if is_asked_for {
            lane.ahead.off_until = Some(now + OFF_FOR);
        }
        for slot in &back {
            let Some(rows) = Arc::make_mut(status).versioned.get_mut(&slot.revision) else {
                continue;
            };
            let row = rows.iter_mut().find(|row| row.name == slot.subset);
            if let Some(row) = row
                && row.creating.remove(&slot.uid).is_some()
                && let Some(max) = max_of(&base.spec, row, total)
            {
                row.missing = quota::missing_in(row, max);
            }
        }
        back
    }

    /// Enters slots for pods that will come: for as many as would in [`Limits::ahead`](super::Limits::ahead), as fast as in
    /// the last second, and for no more than the target still asks for; when less than half of that is held or something is
    /// written anyway.
    ///
    /// At most three quarters of a subset's room, for another replica may be asked, too. What is left of it is taken, and
    /// slots of the next subset, if no other is seen in any and all of the rest is claimed within [`FILLED_FOR`] at that pace.
    pub(super) fn take_ahead(
        &mut self,
        base: &WorkloadSpread,
        status: &mut Arc<Status>,
        is_written: bool,
    ) -> Vec<Slot> {
        let (now, ahead) = (self.now, self.limits.ahead);
        let is_on = ahead > Span::default() && suits(&base.spec);
        let Some(lane) = self.lanes.get(&base.key).filter(|_| is_on) else {
            return Vec::new();
        };
        let Some((revision, pace)) = lane.pace(now) else {
            return Vec::new();
        };
        let rows = status.rows(&revision);
        let held = lane.ahead.held_of(&revision);
        // Of some kinds it is not known.
        let total = self.total_or_why(base).ok().filter(|total| *total >= 0);
        let asked_for = total.map_or(usize::MAX, |total| {
            let expected: i64 = rows.iter().map(Row::expected).sum();
            usize::try_from(total - expected).unwrap_or(0)
        });
        let wanted = come_within(pace, ahead).clamp(HELD_MIN, HELD_MAX);
        let wanted = wanted.min(held.saturating_add(asked_for));
        let is_worth_it = |n: usize| n > 0 && (is_written || n >= held);
        let mut left = wanted.saturating_sub(held);
        if !is_worth_it(left) {
            return Vec::new();
        }
        let mut of_rows = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            if !status.is_open(row) {
                continue;
            }
            let held = lane.ahead.held(&revision, &row.name);
            // A row without limit takes all that come, and is not counted.
            let Ok(room) = usize::try_from(row.missing) else {
                break;
            };
            let all = room.saturating_add(held);
            let fills = room <= left
                && all <= come_within(pace, FILLED_FOR)
                && !self.uids.others_are_in(rows);
            // Of the room without slots: such a part of each rest would be all of it in the end.
            let n = match fills {
                true => room,
                false => left.min((all / 4 * 3).saturating_sub(held)),
            };
            of_rows.push((place, row.name.clone(), n));
            left -= n;
            if !fills {
                break;
            }
        }
        let n: usize = of_rows.iter().map(|(.., n)| n).sum();
        if !is_worth_it(n) {
            return Vec::new();
        }
        let Some(rows) = Arc::make_mut(status).versioned.get_mut(&revision) else {
            return Vec::new();
        };
        let mut slots = Vec::with_capacity(n);
        for (place, subset, n) in of_rows {
            let row = &mut rows[place];
            for _ in 0..n {
                let uid = self.uids.next();
                row.creating.insert(uid.clone(), whole_second(now));
                row.missing -= 1;
                slots.push(Slot {
                    revision: revision.clone(),
                    subset: subset.clone(),
                    uid,
                    until: now + KEPT_FOR,
                });
            }
        }
        slots
    }

    /// Until when slots that a write enters now are held.
    pub(super) fn held_until(&self) -> Instant {
        match self.limits.ahead > Span::default() {
            true => self.now + KEPT_FOR,
            false => self.now,
        }
    }

    /// The process ends: no slots are taken any more, and those that are held go back.
    pub(super) fn end_ahead(&mut self) {
        self.limits.ahead = Span::default();
        let keys: Vec<WsKey> = self.lanes.keys().cloned().collect();
        for key in &keys {
            if let Some(lane) = self.lanes.get_mut(key) {
                let ahead = &mut lane.ahead;
                let all = ahead.slots.iter_mut().chain(&mut ahead.doubtful);
                all.for_each(|slot| slot.until = self.now);
            }
            self.look_at(key);
        }
    }

    /// Pods of a row that are there or on their way without doubt: slots that another replica took are not, before a sync has
    /// seen their pods. Own ones are: while there are some, nobody has to pass over their subset.
    pub(super) fn expected_at_least(&self, row: &Row) -> i64 {
        let of_others = |id: &&Arc<str>| self.uids.is_of_another(id);
        row.expected() - row.creating.keys().filter(of_others).count() as i64
    }

    /// Until when a pod waits that would pass over a full subset of which another replica may hold slots.
    pub(super) fn waits_for_others(
        &mut self,
        key: &WsKey,
        status: &Status,
        revision: &Arc<str>,
        choice: &Choice,
    ) -> Option<Instant> {
        let lane = self.lanes.get_mut(key)?;
        let rows = status.rows(revision);
        let mut until = None;
        for step in &choice.steps {
            let Finding::Full { .. } = step.finding else {
                continue;
            };
            let Some(row) = rows.iter().find(|row| row.name == step.subset) else {
                continue;
            };
            if row.creating.keys().any(|id| self.uids.is_of_another(id)) {
                let row = (revision.clone(), row.name.clone());
                let since = *lane.ahead.full.entry(row).or_insert(self.now);
                until = until.max(Some(since + OTHERS_WITHIN));
            }
        }
        until.filter(|until| self.now < *until)
    }

    /// Rows that have room again may be waited for again.
    pub(super) fn note_room(&mut self, base: &WorkloadSpread) {
        if let Some(lane) = self.lanes.get_mut(&base.key) {
            lane.ahead.full.retain(|(revision, subset), _| {
                let mut rows = base.status.rows(revision).iter();
                rows.any(|row| row.name == *subset && !row.has_room())
            });
        }
    }
}

impl Lane {
    /// The revision of the last new pod, and how many requests came in the last second.
    fn pace(&self, now: Instant) -> Option<(Arc<str>, usize)> {
        let is_off = self.ahead.off_until.is_some_and(|until| now < until);
        let (revision, at) = self.newest.as_ref().filter(|_| !is_off)?;
        if now >= *at + PACE_WITHIN {
            return None;
        }
        let lately = |at: &&Instant| now < **at + PACE_WITHIN;
        let came = self.arrivals.iter().rev().take_while(lately).count();
        (came >= PACE_MIN).then(|| (revision.clone(), came))
    }
}

/// How many come within some time at a pace.
fn come_within(pace: usize, time: Span) -> usize {
    let n = (pace as u64).saturating_mul(time.0) / PACE_WITHIN.0;
    usize::try_from(n).unwrap_or(usize::MAX)
}
