//! Facts about pods.

use strew_model::{Labels, Symbol};

use super::{Cluster, PodRow};
use crate::census::{CensusId, Weighing};
use crate::class::{ClassId, ClassKey};
use crate::fact::PodFact;
use crate::index::{NodeIdx, PodIdx};
use crate::pod_spec::{PodClaim, PodSpec};
use crate::volumes::ClaimKey;

impl Cluster {
    /// Sets the current state of a pod. Returns its row, which it keeps until it is removed.
    pub fn set_pod(&mut self, fact: PodFact) -> PodIdx {
        let class = self.tables.class_of(&fact);
        let node = fact.node.map(|name| self.node_slot(name));
        if let Some(pod) = self.find_pod(&fact.uid) {
            self.row_mut(pod).history = fact.history;
            let row = self.pod(pod);
            if (row.class, row.node) != (class, node) {
                self.take_off(pod);
                self.set_class(pod, class);
                self.put_on(pod, node);
            }
            return pod;
        }
        let row = PodRow {
            uid: fact.uid.clone(),
            name: fact.name,
            class,
            node: None,
            history: fact.history,
            member: 0,
        };
        let pod = self.pods.insert(row);
        self.pod_by_uid.insert(fact.uid, pod);
        self.join(class);
        self.put_on(pod, node);
        pod
    }

    /// Removes a pod that was deleted or has finished.
    pub fn remove_pod(&mut self, uid: &str) {
        let Some(pod) = self.pod_by_uid.remove(uid) else {
            return;
        };
        let PodRow { node, class, .. } = *self.pod(pod);
        self.take_off(pod);
        self.tables.leave(class, self.censuses.version());
        self.pods.remove(pod);
        if let Some(node) = node {
            self.forget_if_empty(node);
        }
    }

    /// Binds a pod to a node: assumed by a decision, or shown by a fact.
    pub fn bind(&mut self, pod: PodIdx, node: NodeIdx) {
        self.take_off(pod);
        self.put_on(pod, Some(node));
    }

    /// Unbinds a pod.
    pub fn unbind(&mut self, pod: PodIdx) {
        self.take_off(pod);
    }

    /// Sets a pod's `status.nominatedNodeName`: preemption made room there; `None` clears it.
    pub fn nominate(&mut self, pod: PodIdx, node: Option<Symbol>) {
        self.row_mut(pod).history.nominated = node;
    }

    /// Changes a pod's labels.
    pub fn relabel(&mut self, pod: PodIdx, labels: &Labels) {
        let labels = self.tables.intern_labels(labels);
        let key = ClassKey {
            labels,
            ..self.class_of(pod).key.clone()
        };
        self.reclass(pod, key);
    }

    /// Changes a pod's spec. For what-if questions: a real pod's spec hardly changes.
    pub fn respec(&mut self, pod: PodIdx, spec: &PodSpec) {
        let spec = self.tables.intern_spec(spec);
        let key = ClassKey {
            spec,
            ..self.class_of(pod).key.clone()
        };
        self.reclass(pod, key);
    }

    /// The lowest priority of all pods on nodes; `None` if there are none.
    pub fn lowest_priority(&self) -> Option<i32> {
        self.priorities.first_key_value().map(|(lowest, _)| *lowest)
    }

    fn reclass(&mut self, pod: PodIdx, key: ClassKey) {
        let class = self.tables.intern_key(key);
        let node = self.pod(pod).node;
        self.take_off(pod);
        self.set_class(pod, class);
        self.put_on(pod, node);
    }

    pub(super) fn set_class(&mut self, pod: PodIdx, class: ClassId) {
        let before = std::mem::replace(&mut self.row_mut(pod).class, class);
        self.tables.leave(before, self.censuses.version());
        self.join(class);
    }

    pub(super) fn row_mut(&mut self, pod: PodIdx) -> &mut PodRow {
        self.pods
            .get_mut(pod)
            .expect("an index is used only while its pod is there")
    }

    pub(super) fn put_on(&mut self, pod: PodIdx, node: Option<NodeIdx>) {
        let Some(node) = node else {
            return;
        };
        let class_id = self.pod(pod).class;
        let class = self.tables.class_mut(class_id);
        let member = class.members.len() as u32;
        class.members.push((pod, node));
        let row = self.row_mut(pod);
        row.node = Some(node);
        row.member = member;
        self.nodes[node.index()].pods.push(pod);
        self.account(class_id, node, 1);
        self.use_claims(pod, class_id, node, true);
    }

    /// Records that a pod with claims was bound to a node, or unbound.
    fn use_claims(&mut self, pod: PodIdx, class: ClassId, node: NodeIdx, comes: bool) {
        let key = &self.tables.class(class).key;
        let namespace = key.namespace;
        let mut keys: Vec<ClaimKey> = Vec::new();
        for i in 0..self.tables.spec(key.spec).claims.len() {
            let spec = self.tables.class(class).key.spec;
            let used = self.tables.spec(spec).claims[i];
            let claim = match used.named {
                Some(claim) => claim,
                None => {
                    let name = used.claim_name(&self.pod(pod).name, &self.names);
                    self.names.intern(&name)
                }
            };
            let key = (namespace, claim);
            self.nodes[node.index()].use_claim(key, comes);
            if used.named.is_some() {
                self.volumes.use_claim(key, node, comes);
            }
            if !comes && self.volumes.users(key).is_empty() {
                self.volumes.release(key);
            }
            keys.push(key);
        }
        if let Some(fact) = self.nodes[node.index()].fact()
            && comes
            && !keys.is_empty()
        {
            let at = (fact.name, &fact.labels);
            self.volumes.assume(&keys, at, &self.names);
        }
    }

    /// The claims of a pod, in the order of its spec; those of generic ephemeral volumes only if a claim of that name
    /// was ever seen.
    pub fn claims_of(&self, pod: PodIdx) -> impl Iterator<Item = ClaimKey> + '_ {
        let key = &self.class_of(pod).key;
        let row = self.pod(pod);
        let name = |used: &PodClaim| {
            let ephemeral = || self.names.get(&used.claim_name(&row.name, &self.names));
            Some((key.namespace, used.named.or_else(ephemeral)?))
        };
        self.tables.spec(key.spec).claims.iter().filter_map(name)
    }

    pub(super) fn take_off(&mut self, pod: PodIdx) {
        let row = self.row_mut(pod);
        let (class_id, member) = (row.class, row.member as usize);
        let Some(node) = row.node.take() else {
            return;
        };
        let class = self.tables.class_mut(class_id);
        class.members.swap_remove(member);
        if let Some(&(moved, _)) = class.members.get(member) {
            self.row_mut(moved).member = member as u32;
        }
        self.nodes[node.index()].pods.retain(|&p| p != pod);
        self.account(class_id, node, -1);
        self.use_claims(pod, class_id, node, false);
    }

    fn account(&mut self, class: ClassId, node: NodeIdx, times: i32) {
        let class = self.tables.class(class);
        let spec = self.tables.spec(class.key.spec);
        self.nodes[node.index()].account(spec, i64::from(times));
        let of_priority = self.priorities.entry(spec.priority).or_default();
        *of_priority = of_priority.saturating_add_signed(times);
        if *of_priority == 0 {
            self.priorities.remove(&spec.priority);
        }
        for &(census, count) in &class.counted_in {
            self.censuses
                .count(census, node, times * count, &self.eligible, &self.topology);
        }
        self.usage.push(node);
    }

    /// Adds a pod to a class. For the first pod, finds the censuses that count such pods, unless they are known.
    fn join(&mut self, id: ClassId) {
        let class = self.tables.class(id);
        let version = self.censuses.version();
        if !class.has_pods() && class.counted_at != Some(version) {
            let weighing = Weighing {
                tables: &self.tables,
                namespaces: &self.namespaces,
            };
            let mut weighed = 0;
            let counts = self.censuses.iter().filter_map(|(census, c)| {
                weighed += 1;
                Some((census, weighing.weigh(c.key(), class)?))
            });
            let counted_in: Vec<(CensusId, i32)> = counts.collect();
            self.weighed += weighed;
            self.tables.class_mut(id).counted_in = counted_in;
        }
        self.tables.join(id);
    }
}
