//! How many pods of each workload are ready, followed from change to change: what a rollout or a loss leaves on the
//! way, which the state at rest does not show.
//!
//! A pod is available while it is ready, does not terminate, and its node is not lost. An API server learns of a lost
//! node only later; the pod's users notice at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::pod::DISRUPTION_TARGET;
use strew_apiserver::object::{Key, Kind, Name, Object, Phase, Pod, Stored, Truth};
use strew_apiserver::server::{Cursor, Server};
use strew_model::Span;

use super::workloads::{name, replicas::Replicas, workload_of};

/// The pods of every workload that asks for a number of pods, and every pod without a workload.
pub struct Availability {
    seen: Cursor,
    n_events: usize,
    lost: BTreeSet<Arc<str>>,
    /// By uid.
    records: BTreeMap<Arc<str>, Record>,
    /// Every workload that was seen, by uid.
    workloads: HashMap<Arc<str>, Key>,
    /// By uid.
    pods: HashMap<Arc<str>, PodState>,
    /// The records that changed in this instant.
    touched: BTreeSet<Arc<str>>,
    /// The pods without a workload that were leaving at second 0, by uid: no step of the run did that.
    left_before: BTreeSet<Arc<str>>,
    /// Those that were gone or leaving when the step began.
    leaving: BTreeSet<Arc<str>>,
    preemptions: Vec<Preemption>,
}

/// A workload, or a pod without one.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its name.
    pub key: Key,
    /// The pods that it asks for.
    pub wanted: u32,
    /// How often that number has changed since the step began.
    n_wanted: u32,
    /// The last such change.
    wanted_at: Span,
    /// The available ones.
    pub ready: u32,
    /// The available ones when the step began.
    pub before: u32,
    /// The available ones when its verbs were done.
    pub at_once: u32,
    /// The fewest available ones since the step began, at the end of any instant.
    pub fewest: u32,
    /// The available ones since the step began.
    pub over_time: OverTime,
    /// The time with fewer available pods than it asks for.
    short: Stopwatch,
    /// The time without an available pod.
    none: Stopwatch,
    /// True for a pod without a workload that was on a node and is gone, though no verb deleted it.
    pub is_gone: bool,
}

/// Changes of a number of replicas in one step that no rollout and no single decision of an autoscaler makes.
const RESTLESS: u32 = 10;

/// A time with interruptions.
#[derive(Debug, Clone, Copy, Default)]
struct Stopwatch {
    since: Option<Span>,
    sum: Span,
}

impl Stopwatch {
    fn set(&mut self, runs: bool, now: Span) {
        match (runs, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(_)) => {
                self.sum = self.at(now);
                self.since = None;
            }
            _ => {}
        }
    }

    fn at(self, now: Span) -> Span {
        let runs = self.since.map_or(0, |since| now.0.saturating_sub(since.0));
        Span(self.sum.0.saturating_add(runs))
    }
}

/// A number from change to change; of very many changes, some are left out between the first and the last.
#[derive(Debug, Clone, Default)]
pub struct OverTime(Vec<(Span, u32)>);

impl OverTime {
    /// The most changes that are kept.
    const MAX: usize = 32;

    fn set(&mut self, now: Span, number: u32) {
        if self.0.last().is_some_and(|(_, last)| *last == number) {
            return;
        }
        if self.0.len() == Self::MAX {
            self.thin();
        }
        self.0.push((now, number));
    }

    /// Leaves out every second change, and never the one to the least number.
    fn thin(&mut self) {
        let least = self.0.iter().map(|(_, number)| *number).min();
        let mut least = least.and_then(|n| self.0.iter().position(|(_, number)| *number == n));
        let mut index = 0;
        self.0.retain(|_| {
            let stays = index % 2 == 0 || least.take_if(|least| *least == index).is_some();
            index += 1;
            stays
        });
    }

    /// Each change, with the time since the first.
    pub fn changes(&self) -> Vec<(Span, u32)> {
        let begin = self.0.first().map_or(Span::default(), |(at, _)| *at);
        let changes = self.0.iter();
        changes
            .map(|(at, number)| (Span(at.0.saturating_sub(begin.0)), *number))
            .collect()
    }
}

impl Record {
    fn new(key: Key, wanted: u32) -> Self {
        Self {
            key,
            wanted,
            n_wanted: 0,
            wanted_at: Span::default(),
            ready: 0,
            before: 0,
            at_once: 0,
            fewest: 0,
            over_time: OverTime::default(),
            short: Stopwatch::default(),
            none: Stopwatch::default(),
            is_gone: false,
        }
    }

    /// How often the number of pods that it asks for has changed since the step began, if it still does: the last change
    /// is no older than `quiet`.
    pub fn still_changes(&self, now: Span, quiet: Span) -> Option<u32> {
        let is_new = now.0.saturating_sub(self.wanted_at.0) <= quiet.0;
        (is_new && self.n_wanted >= RESTLESS).then_some(self.n_wanted)
    }

    /// The time with fewer available pods than it asks for, since the step began.
    pub fn short_for(&self, now: Span) -> Span {
        self.short.at(now)
    }

    /// The time without an available pod, since the step began.
    pub fn none_for(&self, now: Span) -> Span {
        self.none.at(now)
    }

    fn begin_step(&mut self, now: Span) {
        (self.before, self.at_once, self.fewest) = (self.ready, self.ready, self.ready);
        (self.short, self.none) = Default::default();
        self.n_wanted = 0;
        self.over_time = OverTime::default();
        self.settle(now);
    }

    /// Takes in the state at the end of an instant.
    fn settle(&mut self, now: Span) {
        self.fewest = self.fewest.min(self.ready);
        self.over_time.set(now, self.ready);
        self.short.set(self.ready < self.wanted, now);
        self.none.set(self.wanted > 0 && self.ready == 0, now);
    }
}

/// A pod as it was seen last.
struct PodState {
    name: Name,
    /// The uid of its record; its own, if it has no workload.
    of: Arc<str>,
    node: Option<Arc<str>>,
    is_ready: bool,
}

/// A pod that was deleted to make room for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// When.
    pub at: Span,
    /// The deleted pod.
    pub victim: Name,
    /// Its workload; `None` if it has none.
    pub victim_of: Option<Key>,
    /// The pod that takes its place; `None` if that one is gone.
    pub by: Option<Name>,
    /// The workload of that pod; `None` if it has none.
    pub by_of: Option<Key>,
}

impl Preemption {
    /// The workload of the pod that takes the place, or that pod.
    pub fn by_text(&self) -> String {
        match (&self.by_of, &self.by) {
            (Some(workload), _) => name(workload),
            (None, Some(pod)) => format!("pod/{}", pod.name),
            (None, None) => "a pod that is gone".to_owned(),
        }
    }

    /// The workload of the deleted pod, or that pod.
    pub fn victim_text(&self) -> String {
        match &self.victim_of {
            Some(workload) => name(workload),
            None => format!("pod/{}", self.victim.name),
        }
    }
}

impl Availability {
    /// The present state.
    pub fn new(server: &Server) -> Self {
        let mut all = Self {
            seen: server.listen(),
            n_events: server.events().len(),
            lost: BTreeSet::new(),
            records: BTreeMap::new(),
            workloads: HashMap::new(),
            pods: HashMap::new(),
            touched: BTreeSet::new(),
            left_before: BTreeSet::new(),
            leaving: BTreeSet::new(),
            preemptions: Vec::new(),
        };
        let tables = server.tables();
        for object in super::workloads::replicated(tables) {
            all.workload(&object, Span::default());
        }
        for pod in tables.of::<Pod>().iter() {
            all.pod(tables, pod);
        }
        all.left_before = all.bare_and_leaving(tables);
        all
    }

    /// The record of a workload, or of a pod without one, by its uid.
    pub fn of(&self, uid: &str) -> Option<&Record> {
        self.records.get(uid)
    }

    /// All records.
    pub fn records(&self) -> impl Iterator<Item = (&Arc<str>, &Record)> {
        self.records.iter()
    }

    /// The pods without a workload that ran and are gone, though no verb deleted them. Of those with a uid in `recorded`,
    /// only those that went since the step began.
    pub fn gone<'a>(
        &'a self,
        recorded: &'a BTreeSet<Arc<str>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Record)> {
        let gone = self.records.iter().filter(|(_, record)| record.is_gone);
        gone.filter(|(uid, _)| {
            let is_of_before = self.leaving.contains(*uid) && recorded.contains(*uid);
            !self.left_before.contains(*uid) && !is_of_before
        })
    }

    /// True if there was a Job at any time: Jobs that are done may be gone.
    pub fn has_seen_jobs(&self) -> bool {
        let mut kinds = self.workloads.values().map(|key| &key.kind);
        kinds.any(|kind| *kind == Kind::Job)
    }

    /// The preemption since the step began whose victim has this name.
    pub fn preemption_of(&self, victim: &Name) -> Option<&Preemption> {
        self.preemptions
            .iter()
            .find(|preemption| preemption.victim == *victim)
    }

    /// Begins a step. Call it before its verbs.
    pub fn begin_step(&mut self, server: &Server, now: Span) {
        self.observe(server, now);
        self.preemptions.clear();
        self.leaving = self.bare_and_leaving(server.tables());
        self.records
            .values_mut()
            .for_each(|record| record.begin_step(now));
    }

    fn bare_and_leaving(&self, tables: &Tables) -> BTreeSet<Arc<str>> {
        let is_leaving = |record: &Record| {
            let pod = tables.get::<Pod>(&record.key.name);
            record.key.kind == Pod::KIND && pod.is_none_or(|pod| pod.meta.is_terminating())
        };
        let leaving = self.records.iter().filter(|(_, record)| is_leaving(record));
        leaving.map(|(uid, _)| Arc::clone(uid)).collect()
    }

    /// The preemptions since the step began.
    pub fn preemptions(&self) -> &[Preemption] {
        &self.preemptions
    }

    /// The verbs of the step are done, and nothing else has happened since: a pod that is leaving now was deleted by
    /// them, and is not missed. `lost` are the nodes that are lost now.
    pub fn verbs_done(&mut self, server: &Server, lost: &BTreeSet<Arc<str>>, now: Span) {
        let tables = server.tables();
        self.observe(server, now);
        for uid in self.bare_and_leaving(tables).difference(&self.leaving) {
            self.records.remove(uid);
        }
        let changed: BTreeSet<Arc<str>> = self.lost.symmetric_difference(lost).cloned().collect();
        if changed.is_empty() {
            return;
        }
        let on_changed = |pod: &&mut PodState| {
            let node = pod.node.as_ref();
            pod.is_ready && node.is_some_and(|node| changed.contains(node))
        };
        for pod in self.pods.values_mut().filter(on_changed) {
            let is_lost = pod.node.as_ref().is_some_and(|node| lost.contains(node));
            if let Some(record) = self.records.get_mut(&pod.of) {
                record.ready = match is_lost {
                    true => record.ready.saturating_sub(1),
                    false => record.ready.saturating_add(1),
                };
                self.touched.insert(Arc::clone(&pod.of));
            }
        }
        self.lost = lost.clone();
        for record in self.records.values_mut() {
            record.at_once = record.ready;
        }
        self.settle(now);
    }

    /// Takes in what changed since the last call. Call it at the end of each instant.
    pub fn observe(&mut self, server: &Server, now: Span) {
        let tables = server.tables();
        while let Some(change) = server.next_change(&mut self.seen) {
            match (&change.old, &change.new) {
                (_, Some(Object::Pod(pod))) => self.pod(tables, pod),
                (Some(Object::Pod(pod)), None) => self.pod_gone(pod),
                (_, Some(object)) => self.workload(object, now),
                (Some(object), None) => {
                    self.records.remove(&object.meta().uid);
                }
                (None, None) => {}
            }
        }
        for event in server.events().from(self.n_events) {
            if &*event.reason == "Preempted" {
                let preemption = self.preemption(&event.uid, &event.note, now);
                self.preemptions.extend(preemption);
            }
        }
        self.n_events = server.events().len();
        self.settle(now);
    }

    fn settle(&mut self, now: Span) {
        for uid in std::mem::take(&mut self.touched) {
            if let Some(record) = self.records.get_mut(&uid) {
                record.settle(now);
            }
        }
    }

    fn workload(&mut self, object: &Object, now: Span) {
        if super::workloads::is_replicated(&object.kind()) {
            let uid = Arc::clone(&object.meta().uid);
            self.workloads.entry(uid).or_insert_with(|| object.key());
        }
        if !super::workloads::is_counted(object) {
            return;
        }
        let Some(replicas) = Replicas::of(object) else {
            return;
        };
        let uid = &object.meta().uid;
        let wanted = u32::try_from(replicas.wanted).unwrap_or(0);
        let record = self.records.entry(Arc::clone(uid));
        let record = record.or_insert_with(|| Record::new(object.key(), wanted));
        if record.wanted != wanted {
            record.wanted = wanted;
            record.n_wanted = record.n_wanted.saturating_add(1);
            record.wanted_at = now;
        }
        self.touched.insert(Arc::clone(uid));
    }

    fn pod(&mut self, tables: &Tables, pod: &Pod) {
        let uid = &pod.meta.uid;
        let known = self.pods.get(uid).map(|known| Arc::clone(&known.of));
        let own = || match pod.meta.controller() {
            Some(_) => workload_of(tables, pod),
            None => Some(Arc::clone(uid)),
        };
        let Some(of) = known.or_else(own) else {
            return;
        };
        if *of == **uid {
            let wanted = u32::from(!has_ended(pod));
            let key = Key {
                kind: Pod::KIND,
                name: pod.meta.name.clone(),
            };
            let record = self.records.entry(Arc::clone(&of));
            record.or_insert_with(|| Record::new(key, wanted)).wanted = wanted;
        }
        let state = PodState {
            name: pod.meta.name.clone(),
            of,
            node: pod.node.clone(),
            is_ready: pod.is_ready() && pod.is_active(),
        };
        self.set(uid, Some(state));
    }

    fn pod_gone(&mut self, pod: &Pod) {
        let uid = &pod.meta.uid;
        self.set(uid, None);
        if let Some(record) = self.records.get_mut(uid) {
            match pod.node.is_some() && !has_ended(pod) {
                true => record.is_gone = true,
                false => drop(self.records.remove(uid)),
            }
        }
    }

    /// Replaces the state of a pod, and counts it for its record.
    fn set(&mut self, uid: &Arc<str>, state: Option<PodState>) {
        let before = match state {
            Some(state) => {
                self.count(&state, true);
                self.pods.insert(Arc::clone(uid), state)
            }
            None => self.pods.remove(uid),
        };
        if let Some(before) = before {
            self.count(&before, false);
        }
    }

    fn count(&mut self, pod: &PodState, adds: bool) {
        let is_lost = pod
            .node
            .as_ref()
            .is_some_and(|node| self.lost.contains(node));
        if pod.is_ready
            && !is_lost
            && let Some(record) = self.records.get_mut(&pod.of)
        {
            record.ready = match adds {
                true => record.ready.saturating_add(1),
                false => record.ready.saturating_sub(1),
            };
        }
        self.touched.insert(Arc::clone(&pod.of));
    }

    /// `note` is the event's: `Preempted by pod UID on node NODE`.
    fn preemption(&self, victim: &str, note: &str, at: Span) -> Option<Preemption> {
        let victim = self.pods.get(victim)?;
        let by = note.strip_prefix("Preempted by pod ");
        let by = by.and_then(|rest| self.pods.get(rest.split_whitespace().next()?));
        let named = |pod: &PodState| pod.name.clone();
        let of = |pod: &PodState| self.workloads.get(&pod.of).cloned();
        Some(Preemption {
            at,
            victim: named(victim),
            victim_of: of(victim),
            by: by.map(named),
            by_of: by.and_then(of),
        })
    }
}

/// True if the pod came to its end. One that Kubernetes disrupts, as the garbage collector does those of nodes that are
/// not there, is marked Failed and did not.
fn has_ended(pod: &Pod) -> bool {
    let condition = pod.status.condition(DISRUPTION_TARGET);
    let is_disrupted = condition.is_some_and(|condition| condition.status == Truth::True);
    pod.is_finished() && !(is_disrupted && pod.status.phase == Phase::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_many_changes_is_bounded_and_has_first_last_and_least() {
        let mut over_time = OverTime::default();
        for n in 0..10_000_u32 {
            let number = if n == 37 { 1 } else { 5 + n % 2 };
            over_time.set(Span::from_secs(u64::from(n) + 9), number);
        }
        let changes = over_time.changes();
        assert!((2..=OverTime::MAX).contains(&changes.len()), "{changes:?}");
        assert_eq!(changes[0], (Span::default(), 5));
        assert_eq!(changes.last(), Some(&(Span::from_secs(9_999), 6)));
        assert!(changes.contains(&(Span::from_secs(37), 1)));
        assert!(changes.is_sorted_by_key(|(at, _)| *at));
    }
}
