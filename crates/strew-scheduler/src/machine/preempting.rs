//! Preemption in progress: asks the victims of a pod to terminate. Source: spec/scheduler §2.8, §3.16.
//!
//! The pod is nominated at once and held back (PreEnqueue) while its victims are asked to terminate: all but the last
//! one first, and the last one when that has succeeded. If it has not, the last one is spared.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use strew_cluster::{ChangeLog, PodIdx};
use strew_model::{Holds, Instant, Marks, Symbol};

use super::effect::{Effect, EffectId, Event, EventKind};
use super::input::Outcome;
use super::scheduler::{PendingKind, Scheduler};
use crate::by_class::ByClass;
use crate::preemption::eligibility::Ineligible;
use crate::preemption::{self, Budgets, Eviction, Nominations, Preemption};
use crate::queue::queue::{Preempted, view};
use crate::queue::{Context, PodView};
use crate::status::Unfit;

/// The state of nominations and victims.
#[derive(Debug, Default)]
pub(super) struct PreemptionState {
    pub(super) budgets: Budgets,
    nominations: Nominations,
    /// Increases with each change of nominations.
    version: u64,
    /// Nominations decided here that no fact has shown yet.
    unseen: FxHashMap<PodIdx, Unseen>,
    /// The pods that are held back, with what each waits for.
    held: BTreeMap<PodIdx, Held>,
    /// The victims of these pods until their outcome is known. Several pods may preempt one victim.
    preemptors_of: FxHashMap<PodIdx, SmallVec<[PodIdx; 1]>>,
    verdicts: ByClass<LastVerdict>,
}

#[derive(Debug, Clone, Copy)]
struct Unseen {
    ours: Option<Symbol>,
    /// The nomination in the last fact.
    told: Option<Symbol>,
    effect: EffectId,
}

#[derive(Debug)]
struct Held {
    asked: Vec<(PodIdx, EffectId)>,
    /// The victim to ask after all others.
    last: Option<PodIdx>,
    node: Symbol,
    failed: bool,
    /// When the first victim was asked.
    since: Instant,
    /// True if a victim went while the pod could not be woken: then it must be retried without an event.
    room: bool,
}

/// A preempting pod, held back until its victims are asked to terminate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The pod.
    pub pod: Arc<str>,
    /// The node of its nomination.
    pub node: Symbol,
    /// The uids of victims that are still to be asked to terminate.
    pub victims: Vec<Arc<str>>,
}

/// The last verdict that no eviction helps, reused for the next pod of the class while nothing has changed, or while no
/// pod on a node has a lower priority.
#[derive(Debug)]
struct LastVerdict {
    unfit: Rc<Unfit>,
    version: u64,
    /// The changes of nodes until then.
    seen: [u64; 2],
    /// True if there was no pod of lower priority.
    above_none: bool,
    message: Arc<str>,
    clears: bool,
}

/// The result of PostFilter for a failed attempt.
pub(super) struct PostFilter {
    pub(super) message: Arc<str>,
    nomination: Nominate,
    eviction: Option<Eviction>,
}

enum Nominate {
    Set(Symbol),
    Clear,
    Keep,
}

impl PostFilter {
    /// The number of victims, if there are any.
    pub(super) fn victims(&self) -> Option<usize> {
        self.eviction.as_ref().map(|e| e.victims.len())
    }
}

impl PreemptionState {
    pub(super) fn nominations(&self) -> &Nominations {
        &self.nominations
    }

    fn nominate(&mut self, uid: &Arc<str>, node: Option<Symbol>) {
        if self.nominations.node_of(uid) != node {
            self.nominations.set(uid, node);
            self.version += 1;
        }
    }

    /// The pod no longer depends on this victim.
    fn stop_watching(&mut self, victim: PodIdx, preemptor: PodIdx) {
        if let Some(preemptors) = self.preemptors_of.get_mut(&victim) {
            preemptors.retain(|other| *other != preemptor);
            if preemptors.is_empty() {
                self.preemptors_of.remove(&victim);
            }
        }
    }

    /// The nomination that a fact shows, unless it is older than the decision here.
    pub(super) fn believe(&mut self, pod: PodIdx, told: Option<Symbol>) -> Option<Symbol> {
        let Some(unseen) = self.unseen.get_mut(&pod) else {
            return told;
        };
        if unseen.ours == told {
            self.unseen.remove(&pod);
            return told;
        }
        unseen.told = told;
        unseen.ours
    }
}

// === what is gone ===

impl PreemptionState {
    /// Drops the verdicts, since their classes may be gone.
    pub(super) fn sweep(&mut self) {
        self.verdicts.clear();
    }
}

impl Holds for PreemptionState {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        let Self {
            budgets,
            nominations,
            version: _,
            unseen,
            held,
            preemptors_of: _,
            verdicts: _,
        } = self;
        budgets.mark(marks);
        nominations.mark(marks);
        for unseen in unseen.values() {
            (unseen.ours, unseen.told).mark(marks);
        }
        for held in held.values() {
            held.node.mark(marks);
        }
    }
}

// === finding out ===

impl Scheduler {
    /// The pods with a preemption in progress.
    pub fn holds(&self) -> impl Iterator<Item = Hold> {
        let uid = |pod: PodIdx| Arc::clone(&self.cluster.pod(pod).uid);
        self.making.held.iter().map(move |(&pod, held)| {
            let asked = held.asked.iter().map(|&(victim, _)| victim);
            Hold {
                pod: uid(pod),
                node: held.node,
                victims: asked.chain(held.last).map(uid).collect(),
            }
        })
    }

    /// Runs PostFilter for a pod that fits nowhere.
    pub(super) fn post_filter(&mut self, pod: PodIdx, place: usize, why: &Rc<Unfit>) -> PostFilter {
        let class = self.cluster.pod(pod).class;
        let nominated = self.cluster.pod(pod).history.nominated;
        let (cluster, priority) = (&self.cluster, self.cluster.spec_of(pod).priority);
        let lowest = cluster.lowest_priority();
        let above_none = lowest.is_none_or(|lowest| lowest >= priority);
        let seen = [cluster.usage_changes(), cluster.structure_changes()].map(ChangeLog::head);
        if let Some(last) = self.making.verdicts.get(class)
            && Rc::ptr_eq(&last.unfit, why)
            && nominated.is_none()
            && last.version == self.making.version
            && (last.seen == seen || (last.above_none && above_none))
        {
            let nomination = match last.clears {
                true => Nominate::Clear,
                false => Nominate::Keep,
            };
            return PostFilter {
                message: Arc::clone(&last.message),
                nomination,
                eviction: None,
            };
        }
        let now_s = i64::try_from(self.now.secs()).unwrap_or(i64::MAX);
        let preemption = preemption::preempt(
            self.profiles.engine_mut(place),
            &mut self.cluster,
            pod,
            why,
            &self.making.budgets,
            &self.making.nominations,
            now_s,
        );
        let message: Arc<str> = preemption.message(why, &self.cluster).into();
        let nomination = match preemption.nomination() {
            preemption::Nomination::Set(node) => Nominate::Set(self.cluster.node(node).name()),
            preemption::Nomination::Clear => Nominate::Clear,
            preemption::Nomination::Keep => Nominate::Keep,
        };
        if nominated.is_none() && is_of_class(&preemption) {
            let verdict = LastVerdict {
                unfit: Rc::clone(why),
                version: self.making.version,
                seen,
                above_none,
                message: Arc::clone(&message),
                clears: matches!(nomination, Nominate::Clear),
            };
            let lines = self.cluster.node_order().len();
            self.making.verdicts.put(class, verdict, lines);
        }
        let eviction = match preemption.outcome {
            preemption::Outcome::Preempt(eviction) => Some(eviction),
            _ => None,
        };
        PostFilter {
            message,
            nomination,
            eviction,
        }
    }

    /// Holds the pod back while its victims are asked to terminate. Call it before the pod is requeued.
    pub(super) fn hold_for(&mut self, pod: PodIdx, post_filter: &PostFilter) {
        let eviction = post_filter.eviction.as_ref();
        if eviction.is_some_and(|e| !e.deleted.is_empty()) {
            self.queue.hold(pod);
        }
    }

    /// Nominates the pod and asks the victims to terminate. Call it after the pod was requeued.
    pub(super) fn make_room(&mut self, pod: PodIdx, post_filter: PostFilter) {
        match post_filter.nomination {
            Nominate::Set(node) => self.nominate(pod, Some(node)),
            Nominate::Clear => self.nominate(pod, None),
            Nominate::Keep => {}
        }
        let Some(eviction) = post_filter.eviction else {
            return;
        };
        for lower in eviction.cleared {
            self.nominate(lower, None);
        }
        let mut victims = eviction.deleted;
        let Some(last) = victims.pop() else {
            return;
        };
        let held = Held {
            asked: Vec::new(),
            last: Some(last),
            node: self.cluster.node(eviction.node).name(),
            failed: false,
            since: self.now,
            room: false,
        };
        self.making.held.insert(pod, held);
        for &victim in victims.iter().chain([&last]) {
            let preemptors = self.making.preemptors_of.entry(victim).or_default();
            preemptors.push(pod);
        }
        for victim in victims {
            self.request_eviction(pod, victim);
        }
        self.advance(pod);
    }
}

/// True if the verdict holds for every pod of the class without a nomination.
fn is_of_class(preemption: &Preemption) -> bool {
    use preemption::Outcome;
    match preemption.outcome {
        Outcome::NoCandidate | Outcome::ClaimsNotFound | Outcome::NotAsked(_) => true,
        Outcome::NotEligible(why) => why == Ineligible::PolicyNever,
        Outcome::Preempt(_) | Outcome::FitsAsItIs => false,
    }
}

// === nominations ===

impl Scheduler {
    /// Nominates a pod, here at once and in the cluster by an effect.
    fn nominate(&mut self, pod: PodIdx, node: Option<Symbol>) {
        let told = self.cluster.pod(pod).history.nominated;
        if told == node {
            return;
        }
        let old = view(&self.cluster, pod);
        let effect = self.expect(PendingKind::Nominate(pod));
        let told = self.making.unseen.get(&pod).map_or(told, |u| u.told);
        let ours = node;
        self.making
            .unseen
            .insert(pod, Unseen { ours, told, effect });
        self.set_nomination(pod, node, old);
        self.effects.push_back(Effect::Nominate {
            id: effect,
            pod: self.pod_name(pod),
            node,
        });
    }

    fn set_nomination(&mut self, pod: PodIdx, node: Option<Symbol>, old: PodView) {
        self.cluster.nominate(pod, node);
        let uid = Arc::clone(&self.cluster.pod(pod).uid);
        self.making.nominate(&uid, node);
        self.nomination_changed(pod, old, true);
    }

    pub(super) fn nominate_outcome(&mut self, effect: EffectId, pod: PodIdx, outcome: &Outcome) {
        let unseen = self.making.unseen.get(&pod).copied();
        if let Some(unseen) = unseen.filter(|u| u.effect == effect)
            && *outcome != Outcome::Ok
        {
            self.making.unseen.remove(&pod);
            let old = view(&self.cluster, pod);
            self.set_nomination(pod, unseen.told, old);
        }
    }

    /// A bind failed: clears the pod's nomination.
    pub(super) fn clear_nomination(&mut self, pod: PodIdx) {
        self.nominate(pod, None);
    }

    /// Takes over the nomination from a fact.
    pub(super) fn note_nomination(&mut self, pod: PodIdx) {
        let row = self.cluster.pod(pod);
        let (uid, node) = (Arc::clone(&row.uid), row.history.nominated);
        let waits = row.node.is_none();
        self.making.nominate(&uid, node.filter(|_| waits));
    }

    /// A pod is on a node, or gone: its preemption ends.
    pub(super) fn stop_making_room(&mut self, pod: PodIdx) {
        self.making.unseen.remove(&pod);
        let uid = Arc::clone(&self.cluster.pod(pod).uid);
        self.making.nominate(&uid, None);
        if let Some(held) = self.making.held.remove(&pod) {
            let asked = held.asked.iter().map(|(victim, _)| victim);
            for &victim in asked.chain(&held.last) {
                self.making.stop_watching(victim, pod);
            }
        }
    }
}

// === victims ===

impl Scheduler {
    fn request_eviction(&mut self, preemptor: PodIdx, victim: PodIdx) {
        let id = self.expect(PendingKind::Victim { victim, preemptor });
        if let Some(held) = self.making.held.get_mut(&preemptor) {
            held.asked.push((victim, id));
        }
        let scheduler = self.scheduler_of(preemptor);
        let scheduler = self.cluster.names.text(scheduler);
        let message = format!("{scheduler}: preempting to accommodate a higher priority pod");
        let victim = self.pod_name(victim);
        self.effects.push_back(Effect::DeleteVictim {
            id,
            victim,
            message,
        });
    }

    pub(super) fn victim_outcome(
        &mut self,
        effect: EffectId,
        victim: PodIdx,
        preemptor: PodIdx,
        outcome: &Outcome,
    ) {
        let Some(held) = self.making.held.get_mut(&preemptor) else {
            return;
        };
        let Some(place) = held.asked.iter().position(|&(_, id)| id == effect) else {
            return;
        };
        held.asked.swap_remove(place);
        held.failed |= !matches!(outcome, Outcome::Ok | Outcome::Gone);
        let node = held.node;
        self.making.stop_watching(victim, preemptor);
        if *outcome == Outcome::Ok {
            self.record_preempted(victim, preemptor, node);
        }
        self.advance(preemptor);
    }

    /// A pod is gone, which may have been a victim.
    pub(super) fn victim_gone(&mut self, victim: PodIdx) {
        let Some(preemptors) = self.making.preemptors_of.remove(&victim) else {
            return;
        };
        for preemptor in preemptors {
            if let Some(held) = self.making.held.get_mut(&preemptor) {
                held.room = true;
                held.asked.retain(|&(asked, _)| asked != victim);
                if held.last == Some(victim) {
                    held.last = None;
                }
                self.advance(preemptor);
            }
        }
    }

    /// Asks the last victim after all others, and releases the pod after all.
    fn advance(&mut self, preemptor: PodIdx) {
        let Some(held) = self.making.held.get_mut(&preemptor) else {
            return;
        };
        if !held.asked.is_empty() {
            return;
        }
        let mut spared = None;
        if let Some(last) = held.last.take() {
            if !held.failed {
                return self.request_eviction(preemptor, last);
            }
            spared = Some(last);
        }
        let outcome = match (held.room, held.failed) {
            (true, _) => Preempted::Room,
            (false, true) => Preempted::Failed,
            (false, false) => Preempted::Asked,
        };
        let (well, since) = (!held.failed, held.since);
        self.counters.asked_victims(well, self.now.since(since));
        if let Some(last) = spared {
            self.making.stop_watching(last, preemptor);
        }
        self.making.held.remove(&preemptor);
        let cx = Context {
            cluster: &self.cluster,
            profiles: &self.profiles,
        };
        self.queue.release(cx, preemptor, outcome);
    }

    fn record_preempted(&mut self, victim: PodIdx, preemptor: PodIdx, node: Symbol) {
        let related = self.pod_name(preemptor);
        let node = self.cluster.names.text(node);
        let note = format!("Preempted by pod {} on node {node}", related.uid);
        let event = Event {
            kind: EventKind::Preempted,
            scheduler: self.scheduler_of(preemptor),
            regarding: self.pod_name(victim),
            related: Some(related),
            note: note.into(),
        };
        self.effects.push_back(Effect::Event(Box::new(event)));
    }
}
