//! Compares every write and every sent request with all earlier ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Object, Pairs, Pod};
use strew_apiserver::server::Change;
use strew_model::Symbol;
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::Hold;

use super::surplus::Makers;
use super::{Rule, Violation};

/// A bind that a replica is about to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent<'a> {
    /// The sender.
    pub replica: &'a str,
    /// The time by the sender's clock.
    pub clock: Instant,
    /// True if replicas elect a leader.
    pub elects: bool,
    /// The uid of the pod.
    pub pod: &'a str,
}

/// Binds that a replica has decided on and that its watch has not shown: the node by the pod's uid, in the symbols of
/// its machine.
pub type Assumed = BTreeMap<Arc<str>, Symbol>;

/// A preemption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preempted {
    /// Its time.
    pub at: Instant,
    /// The uid of the preempting pod.
    pub by: Arc<str>,
}

/// What was written and sent so far, and the violations found.
#[derive(Debug, Default)]
pub struct Witness {
    start: Instant,
    now: Instant,
    /// The newest version of each existing object, and its uid.
    known: BTreeMap<Key, (Arc<str>, u64)>,
    uids: BTreeSet<Arc<str>>,
    last_version: u64,
    /// The node of each pod that was ever bound, by the pod's uid.
    bound: BTreeMap<Arc<str>, Arc<str>>,
    /// Until when each replica may act, by its own clock.
    leases: BTreeMap<String, Instant>,
    assumed: BTreeMap<String, Assumed>,
    /// The pods for which each replica is preempting, by uid.
    holds: BTreeMap<String, BTreeSet<Arc<str>>>,
    preempted: Vec<Preempted>,
    makers: Makers,
    /// When the size of a workload, or of an owner whose size counts for it, last changed, by its uid.
    resized: BTreeMap<Arc<str>, Instant>,
    /// When a pod with these labels was last written, by its namespace.
    pods_written: BTreeMap<(Arc<str>, Arc<Pairs>), Instant>,
    violations: Vec<Violation>,
    /// The number of binds judged.
    pub n_judged: u64,
    /// The number of binds stored.
    pub n_bound: u64,
    /// The number of writes seen.
    pub n_written: u64,
    /// The number of decisions on placements that led to writes.
    pub n_placed: u64,
    /// The number of writes of PlacementDecisions judged.
    pub n_decisions: u64,
}

/// The most violations kept per run.
const KEPT_MAX: usize = 20;

impl Witness {
    /// A witness from the start of a run; `stored` are the objects at the start.
    pub fn new(start: Instant, stored: &Tables) -> Self {
        let mut witness = Self {
            start,
            now: start,
            ..Self::default()
        };
        for object in stored.all() {
            let meta = object.meta();
            witness.last_version = witness.last_version.max(meta.version);
            witness.uids.insert(Arc::clone(&meta.uid));
            let known = (Arc::clone(&meta.uid), meta.version);
            witness.known.insert(object.key(), known);
            // Objects that exist at the start have no writer.
            let _there = witness.makers.written(&Change {
                key: object.key(),
                old: None,
                new: Some(object.clone()),
            });
            if let Object::Pod(pod) = &object
                && let Some(node) = &pod.node
            {
                witness
                    .bound
                    .insert(Arc::clone(&pod.meta.uid), Arc::clone(node));
            }
        }
        witness
    }

    /// Returns the violations found since the last call.
    pub fn take(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }

    /// Sets the time.
    pub fn pass_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// Records a violation.
    pub fn blame(&mut self, rule: Rule, actor: impl Into<String>, text: impl Into<String>) {
        if self.violations.len() < KEPT_MAX {
            self.violations.push(Violation {
                rule,
                after: self.now.since(self.start),
                actor: actor.into(),
                text: text.into(),
            });
        }
    }

    /// Takes in a write of the store.
    pub fn written(&mut self, written: &Change) {
        self.n_written += 1;
        let Change { key, old, new } = written;
        self.note_times(written);
        if let Err(text) = self.makers.written(written) {
            self.blame(Rule::Surplus, key.to_string(), text);
        }
        let found = old
            .as_ref()
            .map(|o| (Arc::clone(&o.meta().uid), o.meta().version));
        let known = self.known.get(key).cloned();
        if found != known {
            let text = format!("the store had {found:?}, the last write was {known:?}");
            self.blame(Rule::LostWrite, key.to_string(), text);
        }
        let Some(new) = new else {
            self.known.remove(key);
            return;
        };
        let (uid, version) = (Arc::clone(&new.meta().uid), new.meta().version);
        if version <= self.last_version {
            let text = format!("version {version} after {}", self.last_version);
            self.blame(Rule::History, key.to_string(), text);
        }
        self.last_version = self.last_version.max(version);
        match old {
            None if !self.uids.insert(Arc::clone(&uid)) => {
                self.blame(Rule::History, key.to_string(), format!("uid {uid} again"));
            }
            Some(old) => self.changed(key, old, new),
            None => {}
        }
        self.known.insert(key.clone(), (uid, version));
        self.bind(key, new);
    }

    fn note_times(&mut self, written: &Change) {
        let (old, new) = (written.old.as_ref(), written.new.as_ref());
        for object in old.into_iter().chain(new) {
            if let Object::Pod(pod) = object {
                let namespace = Arc::clone(&pod.meta.name.namespace);
                let labels = Arc::clone(&pod.meta.labels);
                self.pods_written.insert((namespace, labels), self.now);
            }
        }
        if let (Some(old), Some(new)) = (old, new)
            && (old.replicas() != new.replicas() || controller(old) != controller(new))
        {
            self.resized.insert(Arc::clone(&new.meta().uid), self.now);
        }
    }

    /// When the size of a workload last changed; `None` if it never did.
    pub fn resized(&self, uid: &str) -> Option<Instant> {
        self.resized.get(uid).copied()
    }

    /// When a pod of a namespace whose labels match was last written; `None` if never.
    pub fn pods_written(
        &self,
        namespace: &str,
        matches: impl Fn(&Pairs) -> bool,
    ) -> Option<Instant> {
        let here = self.pods_written.iter();
        let here = here.filter(|((of, labels), _)| **of == *namespace && matches(labels));
        here.map(|(_, at)| *at).max()
    }

    fn changed(&mut self, key: &Key, old: &Object, new: &Object) {
        let (before, after) = (old.meta(), new.meta());
        let rules = [
            ("its uid changed", before.uid == after.uid),
            ("its generation fell", before.generation <= after.generation),
            ("its creation moved", before.created == after.created),
            (
                "it is not being deleted any more",
                before.deletion.is_none() || after.deletion.is_some(),
            ),
        ];
        for (text, holds) in rules {
            if !holds {
                self.blame(Rule::History, key.to_string(), text);
            }
        }
        if let (Object::Pod(before), Object::Pod(after)) = (old, new)
            && before.is_finished()
            && !after.is_finished()
        {
            self.blame(Rule::History, key.to_string(), "it lives again");
        }
    }

    fn bind(&mut self, key: &Key, new: &Object) {
        let Object::Pod(pod) = new else { return };
        let first = self.bound.get(&pod.meta.uid).cloned();
        match (first, &pod.node) {
            (None, Some(node)) => {
                self.n_bound += 1;
                let uid = Arc::clone(&pod.meta.uid);
                self.bound.insert(uid, Arc::clone(node));
            }
            (Some(first), node) if node.as_ref() != Some(&first) => {
                let text = format!("was bound to {first}, now to {node:?}");
                self.blame(Rule::BoundTwice, key.to_string(), text);
            }
            _ => {}
        }
    }

    /// A replica wrote its Lease with a request sent at `sent` by its own clock.
    pub fn renewed(&mut self, replica: &str, sent: Instant, renew_deadline: Span) {
        self.leases
            .insert(replica.to_owned(), sent + renew_deadline);
    }

    /// Judges a bind that a replica sends.
    pub fn sent(&mut self, sent: Sent<'_>) {
        let holds = !sent.elects
            || self
                .leases
                .get(sent.replica)
                .is_some_and(|until| sent.clock < *until);
        if !holds {
            let text = format!("binds {} after its lease ran out", sent.pod);
            self.blame(Rule::Lease, sent.replica, text);
        }
    }

    /// Judges the replicas that believe to lead at one instant: at most one may.
    pub fn leaders<'a>(&mut self, leaders: impl IntoIterator<Item = &'a str>) {
        let leaders: Vec<&str> = leaders.into_iter().collect();
        if leaders.len() > 1 {
            self.blame(Rule::TwoLeaders, leaders.join(", "), "lead at once");
        }
    }

    /// A replica has decided on a bind.
    pub fn decided(&mut self, replica: &str, pod: &Arc<str>, node: Symbol) {
        let assumed = self.assumed.entry(replica.to_owned()).or_default();
        assumed.insert(Arc::clone(pod), node);
    }

    /// A replica has learned that a bind was not carried out.
    pub fn failed(&mut self, replica: &str, pod: &str) {
        if let Some(assumed) = self.assumed.get_mut(replica) {
            assumed.remove(pod);
        }
    }

    /// The binds that a replica must still assume after its watch has shown `seen`.
    pub fn assumed(&mut self, replica: &str, seen: &Tables) -> Assumed {
        let Some(assumed) = self.assumed.get_mut(replica) else {
            return Assumed::new();
        };
        let mut waiting: BTreeSet<&Arc<str>> = BTreeSet::new();
        let pods = seen.of::<Pod>().iter();
        waiting.extend(pods.filter(|p| p.node.is_none()).map(|p| &p.meta.uid));
        assumed.retain(|uid, _| waiting.contains(uid));
        assumed.clone()
    }

    /// The pods for which a replica is preempting now; returns those that are new since the last call.
    pub fn making_room<'a>(&mut self, replica: &str, holds: &'a [Hold]) -> Vec<&'a Hold> {
        let known = self.holds.entry(replica.to_owned()).or_default();
        let new: Vec<&Hold> = holds.iter().filter(|h| !known.contains(&h.pod)).collect();
        *known = holds.iter().map(|hold| Arc::clone(&hold.pod)).collect();
        for hold in &new {
            let (at, by) = (self.now, Arc::clone(&hold.pod));
            self.preempted.push(Preempted { at, by });
        }
        new
    }

    /// Uids of the pods that preempted at least this many times since then.
    pub fn preempting(&self, since: Instant, times: usize) -> Vec<Arc<str>> {
        let mut n_times: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for preempted in self.preempted.iter().rev().take_while(|p| p.at >= since) {
            *n_times.entry(&preempted.by).or_default() += 1;
        }
        n_times.retain(|_, n| *n >= times);
        n_times.into_keys().cloned().collect()
    }

    /// Checks that the store holds exactly what was written and not deleted.
    pub fn compare(&mut self, stored: &Tables) {
        let stored = versions(stored);
        if let Some(difference) = difference(&self.known, &stored) {
            self.blame(Rule::LostWrite, "the store", difference);
        }
    }
}

/// The controller whose size counts for an object's.
fn controller(object: &Object) -> Option<&Arc<str>> {
    object.meta().controller().map(|owner| &owner.uid)
}

/// Uid and version of each object.
pub(crate) fn versions(tables: &Tables) -> BTreeMap<Key, (Arc<str>, u64)> {
    let all = tables.all().into_iter();
    all.map(|object| {
        let meta = object.meta();
        (object.key(), (Arc::clone(&meta.uid), meta.version))
    })
    .collect()
}

/// The first object on which the two sides differ, in words.
pub(crate) fn difference(
    known: &BTreeMap<Key, (Arc<str>, u64)>,
    stored: &BTreeMap<Key, (Arc<str>, u64)>,
) -> Option<String> {
    let mut keys = known.keys().chain(stored.keys());
    let key = keys.find(|key| known.get(key) != stored.get(key))?;
    Some(format!(
        "{key}: known {:?}, stored {:?}",
        known.get(key),
        stored.get(key)
    ))
}
