//! The tables of nodes and pods, and what every fact changes in them.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use strew_model::{Interner, Labels, Resources, Selector, Symbol, index_type};
use strew_spread::Tally;

use crate::census::{Census, CensusId, CensusKey, Censuses, TallyId, TallyKey, Weighing};
use crate::changes::ChangeLog;
use crate::class::{AffinityId, ClassId, ClassKey, ClassTables, PodClass};
use crate::eligibility::{Eligibility, EligibilityId, EligibleNodes};
use crate::fact::{NodeFact, PodFact, PodHistory};
use crate::images::Images;
use crate::node_order::{NodeOrder, zone_key};
use crate::owners::{OwnerRef, Owners};
use crate::pod_spec::{HostPort, PodSpec};
use crate::topology::{KeyId, Topology, TopologyColumn};

index_type! {
    /// A row of the table of nodes.
    pub struct NodeIdx;
}
index_type! {
    /// A row of the table of pods.
    pub struct PodIdx;
}

/// A node, the pods on it and what they take.
#[derive(Debug, Clone)]
pub struct NodeRow {
    name: Symbol,
    fact: Option<NodeFact>,
    pods: Vec<PodIdx>,
    used: Resources,
    used_scored: (i64, i64),
    host_ports: Vec<HostPort>,
}

impl NodeRow {
    fn new(name: Symbol) -> Self {
        Self {
            name,
            fact: None,
            pods: Vec::new(),
            used: Resources::default(),
            used_scored: (0, 0),
            host_ports: Vec::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> Symbol {
        self.name
    }

    /// What is known of it; `None` while only pods name it.
    pub fn fact(&self) -> Option<&NodeFact> {
        self.fact.as_ref()
    }

    /// The pods on it, in order of arrival.
    pub fn pods(&self) -> &[PodIdx] {
        &self.pods
    }

    /// What they take.
    pub fn used(&self) -> &Resources {
        &self.used
    }

    /// CPU (milli) and memory (bytes) that they take for scores: containers without a request count with 100m, 200Mi.
    pub fn used_scored(&self) -> (i64, i64) {
        self.used_scored
    }

    /// The host ports that they hold.
    pub fn host_ports(&self) -> &[HostPort] {
        &self.host_ports
    }

    /// As if a pod had come; for a copy of the row, to try things out on.
    pub fn try_with(&mut self, pod: PodIdx, spec: &PodSpec) {
        self.pods.push(pod);
        self.account(spec, 1);
    }

    /// As if a pod of the node had gone; for a copy of the row, to try things out on.
    pub fn try_without(&mut self, pod: PodIdx, spec: &PodSpec) {
        self.pods.retain(|&p| p != pod);
        self.account(spec, -1);
    }

    fn account(&mut self, spec: &PodSpec, times: i64) {
        self.used.add(&spec.used, times);
        let plus = |own: &mut i64, more: i64| *own = own.saturating_add(more.saturating_mul(times));
        plus(&mut self.used_scored.0, spec.used_scored.0);
        plus(&mut self.used_scored.1, spec.used_scored.1);
        for port in &spec.host_ports {
            if times > 0 {
                self.host_ports.push(*port);
            } else if let Some(i) = self.host_ports.iter().position(|p| p == port) {
                self.host_ports.swap_remove(i);
            }
        }
    }
}

/// A pod that has not finished.
#[derive(Debug, Clone)]
pub struct PodRow {
    /// What identifies it.
    pub uid: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its class.
    pub class: ClassId,
    /// The node that it is bound to, or assumed on.
    pub node: Option<NodeIdx>,
    /// What has become of it.
    pub history: PodHistory,
    /// Its place among the members of its class, while it is on a node.
    member: u32,
}

/// How many changes of nodes a cache may miss before it must start afresh.
const CHANGES_REMEMBERED: usize = 8192;

/// What censuses and their tallies may take together.
const CENSUS_BYTES_MAX: usize = 64 << 20;

/// All nodes and pods, and what is counted of them.
///
/// Facts come in any order: a pod may name a node that is not known yet, and count as soon as the node appears.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The strings of all facts.
    pub names: Interner,
    nodes: Vec<NodeRow>,
    node_by_name: FxHashMap<Symbol, NodeIdx>,
    nodes_present: usize,
    order: NodeOrder,
    topology: Topology,
    images: Images,
    owners: Owners,
    namespaces: FxHashMap<Symbol, Labels>,
    tables: ClassTables,
    pods: Vec<Option<PodRow>>,
    pods_free: Vec<PodIdx>,
    pod_by_uid: FxHashMap<Arc<str>, PodIdx>,
    censuses: Censuses,
    eligible: EligibleNodes,
    usage: ChangeLog,
    structure: ChangeLog,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

// === what is there ===

impl Cluster {
    /// An empty cluster.
    pub fn new() -> Self {
        Self {
            names: Interner::new(),
            nodes: Vec::new(),
            node_by_name: FxHashMap::default(),
            nodes_present: 0,
            order: NodeOrder::default(),
            topology: Topology::default(),
            images: Images::default(),
            owners: Owners::default(),
            namespaces: FxHashMap::default(),
            tables: ClassTables::default(),
            pods: Vec::new(),
            pods_free: Vec::new(),
            pod_by_uid: FxHashMap::default(),
            censuses: Censuses::new(CENSUS_BYTES_MAX),
            eligible: EligibleNodes::default(),
            usage: ChangeLog::new(CHANGES_REMEMBERED),
            structure: ChangeLog::new(CHANGES_REMEMBERED),
        }
    }

    /// A row of the table of nodes.
    #[inline]
    pub fn node(&self, node: NodeIdx) -> &NodeRow {
        &self.nodes[node.index()]
    }

    /// How many rows the table of nodes has, those of unknown nodes included: the length of every column.
    pub fn node_rows(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes there are.
    pub fn nodes_present(&self) -> usize {
        self.nodes_present
    }

    /// A node by name, known or only named by pods.
    pub fn find_node(&self, name: Symbol) -> Option<NodeIdx> {
        self.node_by_name.get(&name).copied()
    }

    /// The nodes in the order in which kube-scheduler looks at them, as of the last [`refresh_order`](Self::refresh_order).
    pub fn node_order(&self) -> &[NodeIdx] {
        debug_assert!(
            !self.order.is_stale(),
            "a decision begins with refresh_order"
        );
        self.order.list()
    }

    /// A node's place in [`node_order`](Self::node_order), if it is there.
    #[inline]
    pub fn node_position(&self, node: NodeIdx) -> Option<usize> {
        self.order.position(node)
    }

    /// Brings the order of nodes up to date; a decision begins with this.
    pub fn refresh_order(&mut self) {
        self.order.refresh();
    }

    /// A pod.
    ///
    /// # Panics
    /// If the pod is gone.
    #[inline]
    pub fn pod(&self, pod: PodIdx) -> &PodRow {
        self.pods[pod.index()]
            .as_ref()
            .expect("an index is used only while its pod is there")
    }

    /// A pod by uid.
    pub fn find_pod(&self, uid: &str) -> Option<PodIdx> {
        self.pod_by_uid.get(uid).copied()
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = (PodIdx, &PodRow)> {
        let rows = self.pods.iter().enumerate();
        rows.filter_map(|(i, p)| Some((PodIdx::from(i), p.as_ref()?)))
    }

    /// Label sets, specs and classes.
    pub fn tables(&self) -> &ClassTables {
        &self.tables
    }

    /// The class of a pod.
    #[inline]
    pub fn class_of(&self, pod: PodIdx) -> &PodClass {
        self.tables.class(self.pod(pod).class)
    }

    /// What a pod asks for.
    pub fn spec_of(&self, pod: PodIdx) -> &PodSpec {
        self.tables.spec(self.class_of(pod).key.spec)
    }

    /// The labels of a pod.
    pub fn labels_of(&self, pod: PodIdx) -> &Labels {
        self.tables.labels(self.class_of(pod).key.labels)
    }

    /// Services and controllers.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Images on nodes.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// Nodes whose pods changed.
    pub fn usage_changes(&self) -> &ChangeLog {
        &self.usage
    }

    /// Nodes that came, went or changed themselves.
    pub fn structure_changes(&self) -> &ChangeLog {
        &self.structure
    }

    /// Topology keys that were asked for.
    pub fn column(&self, key: KeyId) -> &TopologyColumn {
        self.topology.column(key)
    }
}

// === what is counted ===

impl Cluster {
    /// The column of a topology key, made now if it is new.
    pub fn ensure_column(&mut self, key: Symbol) -> KeyId {
        let rows = self
            .nodes
            .iter()
            .map(|n| n.fact.as_ref().map(|f| &f.labels));
        self.topology.ensure(key, rows)
    }

    /// The nodes that a rule admits, asked now if it is new.
    pub fn ensure_eligibility(&mut self, rule: Eligibility) -> EligibilityId {
        if let Some(id) = self.eligible.find(&rule) {
            return id;
        }
        let mut nodes = FixedBitSet::with_capacity(self.nodes.len());
        for (i, row) in self.nodes.iter().enumerate() {
            nodes.set(i, rule.admits(row, &self.tables, &self.names));
        }
        self.eligible.add(rule, nodes)
    }

    /// A census, counted now if it is new. Ids of before an eviction are no longer good: see [`evicted`](Self::evicted).
    pub fn ensure_census(&mut self, key: CensusKey) -> CensusId {
        if let Some(id) = self.censuses.find(&key) {
            return id;
        }
        let mut counted: Vec<(ClassId, i32)> = Vec::new();
        let weighing = Weighing {
            tables: &self.tables,
            namespaces: &self.namespaces,
        };
        for (id, class) in self.tables.classes() {
            counted.extend(weighing.weigh(&key, class).map(|count| (id, count)));
        }
        let census = self.censuses.start(key, self.nodes.len());
        for (class, count) in counted {
            let class = self.tables.class_mut(class);
            class.counted_in.push((census, count));
            self.censuses.count_initial(census, &class.members, count);
        }
        let mut dropped = Vec::new();
        self.censuses.evict(&mut dropped);
        self.forget_censuses(&dropped);
        census
    }

    /// Whether a pod of a class matches all required terms of an affinity of its own.
    pub fn finds_itself(&self, affinity: AffinityId, class: ClassId) -> bool {
        let class = self.tables.class(class);
        let weighing = Weighing {
            tables: &self.tables,
            namespaces: &self.namespaces,
        };
        let wanted = CensusKey::Wanted {
            namespace: class.key.namespace,
            affinity,
        };
        weighing.weigh(&wanted, class).is_some()
    }

    /// A tally of a census, derived now if it is new.
    pub fn ensure_tally(&mut self, census: CensusId, key: TallyKey) -> TallyId {
        self.censuses
            .tally(census, key, &self.eligible, &self.topology)
    }

    /// A census.
    ///
    /// # Panics
    /// If it was evicted meanwhile.
    #[inline]
    pub fn census(&self, id: CensusId) -> &Census {
        self.censuses.get(id)
    }

    /// A tally.
    ///
    /// # Panics
    /// If its census was evicted meanwhile.
    #[inline]
    pub fn tally(&self, id: TallyId) -> &Tally {
        &self.censuses.tally_of(id).tally
    }

    /// Which nodes a tally counts.
    pub fn tally_nodes(&self, id: TallyId) -> &FixedBitSet {
        self.eligible
            .nodes(self.censuses.tally_of(id).key.eligibility)
    }

    /// Notes that a census is in use, so that it is not the next to be evicted.
    #[inline]
    pub fn touch_census(&mut self, id: CensusId) {
        self.censuses.touch(id);
    }

    /// Censuses asked for from now on are not evicted before the next call: all that one decision needs stays.
    pub fn pin_censuses(&mut self) {
        self.censuses.pin_from_now();
    }

    /// How many censuses were evicted so far: ids are good while this stays the same.
    pub fn evicted(&self) -> u64 {
        self.censuses.evicted()
    }

    /// What censuses may take together. The default is 64 MiB.
    pub fn set_census_bytes_max(&mut self, bytes_max: usize) {
        self.censuses.set_bytes_max(bytes_max);
    }

    fn forget_censuses(&mut self, dropped: &[CensusId]) {
        if dropped.is_empty() {
            return;
        }
        for class in self.tables.classes_mut() {
            class
                .counted_in
                .retain(|(census, _)| !dropped.contains(census));
        }
    }
}

// === facts about nodes ===

impl Cluster {
    /// A node is there, and like this.
    pub fn set_node(&mut self, fact: NodeFact) -> NodeIdx {
        let node = self.node_slot(fact.name);
        if self.nodes[node.index()].fact.as_ref() == Some(&fact) {
            return node;
        }
        let zone = zone_key(&fact.labels);
        match self.detach_node(node) {
            Some(before) => self.order.rezone(node, zone_key(&before.labels), zone),
            None => {
                self.order.add(node, zone);
                self.nodes_present += 1;
            }
        }
        self.images.add(&fact.images);
        self.topology.set_node(node, Some(&fact.labels));
        self.nodes[node.index()].fact = Some(fact);
        self.attach_node(node);
        node
    }

    /// A node is gone. Its pods stay known until they go too.
    pub fn remove_node(&mut self, name: Symbol) {
        let Some(node) = self.find_node(name) else {
            return;
        };
        if let Some(before) = self.detach_node(node) {
            self.order.remove(node, zone_key(&before.labels));
            self.nodes_present -= 1;
            self.topology.set_node(node, None);
            self.attach_node(node);
        }
    }

    /// Takes a node out of all that is counted, and returns what was known of it.
    fn detach_node(&mut self, node: NodeIdx) -> Option<NodeFact> {
        self.censuses
            .detach_node(node, &self.eligible, &self.topology);
        let fact = self.nodes[node.index()].fact.take()?;
        self.images.remove(&fact.images);
        Some(fact)
    }

    fn attach_node(&mut self, node: NodeIdx) {
        let row = &self.nodes[node.index()];
        self.eligible.refresh(node, row, &self.tables, &self.names);
        self.censuses
            .attach_node(node, self.nodes.len(), &self.eligible, &self.topology);
        self.structure.push(node);
        self.usage.push(node);
    }

    fn node_slot(&mut self, name: Symbol) -> NodeIdx {
        if let Some(node) = self.find_node(name) {
            return node;
        }
        let node = NodeIdx::from(self.nodes.len());
        self.nodes.push(NodeRow::new(name));
        self.node_by_name.insert(name, node);
        self.topology.set_node(node, None);
        self.eligible
            .refresh(node, &self.nodes[node.index()], &self.tables, &self.names);
        self.censuses.grow(self.nodes.len());
        node
    }
}

// === facts about pods ===

impl Cluster {
    /// A pod is there, and like this. Returns its row, which stays its row until it is removed.
    pub fn set_pod(&mut self, fact: PodFact) -> PodIdx {
        let (class, new) = self.tables.class_of(&fact);
        if new {
            self.enroll_class(class);
        }
        let node = fact.node.map(|name| self.node_slot(name));
        if let Some(pod) = self.find_pod(&fact.uid) {
            self.row_mut(pod).history = fact.history;
            let row = self.pod(pod);
            if (row.class, row.node) != (class, node) {
                self.take_off(pod);
                self.row_mut(pod).class = class;
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
        let pod = match self.pods_free.pop() {
            Some(pod) => {
                self.pods[pod.index()] = Some(row);
                pod
            }
            None => {
                self.pods.push(Some(row));
                PodIdx::from(self.pods.len() - 1)
            }
        };
        self.pod_by_uid.insert(fact.uid, pod);
        self.put_on(pod, node);
        pod
    }

    /// A pod is gone, or has finished.
    pub fn remove_pod(&mut self, uid: &str) {
        if let Some(pod) = self.pod_by_uid.remove(uid) {
            self.take_off(pod);
            self.pods[pod.index()] = None;
            self.pods_free.push(pod);
        }
    }

    /// Puts a pod on a node: assumed by a decision, or told by a fact.
    pub fn bind(&mut self, pod: PodIdx, node: NodeIdx) {
        self.take_off(pod);
        self.put_on(pod, Some(node));
    }

    /// Takes a pod off its node.
    pub fn unbind(&mut self, pod: PodIdx) {
        self.take_off(pod);
    }

    /// Sets a pod's `status.nominatedNodeName`: preemption made room for it there, or (`None`) found nothing.
    pub fn nominate(&mut self, pod: PodIdx, node: Option<Symbol>) {
        self.row_mut(pod).history.nominated = node;
    }

    /// Gives a pod other labels.
    pub fn relabel(&mut self, pod: PodIdx, labels: &Labels) {
        let labels = self.tables.intern_labels(labels);
        let key = ClassKey {
            labels,
            ..self.class_of(pod).key.clone()
        };
        self.reclass(pod, key);
    }

    /// Gives a pod another spec. For what-if questions: a real pod's spec hardly changes.
    pub fn respec(&mut self, pod: PodIdx, spec: &PodSpec) {
        let spec = self.tables.intern_spec(spec);
        let key = ClassKey {
            spec,
            ..self.class_of(pod).key.clone()
        };
        self.reclass(pod, key);
    }

    fn reclass(&mut self, pod: PodIdx, key: ClassKey) {
        let (class, new) = self.tables.intern_key(key);
        if new {
            self.enroll_class(class);
        }
        let node = self.pod(pod).node;
        self.take_off(pod);
        self.row_mut(pod).class = class;
        self.put_on(pod, node);
    }

    fn row_mut(&mut self, pod: PodIdx) -> &mut PodRow {
        self.pods[pod.index()]
            .as_mut()
            .expect("an index is used only while its pod is there")
    }

    fn put_on(&mut self, pod: PodIdx, node: Option<NodeIdx>) {
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
    }

    fn take_off(&mut self, pod: PodIdx) {
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
    }

    fn account(&mut self, class: ClassId, node: NodeIdx, times: i32) {
        let class = self.tables.class(class);
        let spec = self.tables.spec(class.key.spec);
        self.nodes[node.index()].account(spec, i64::from(times));
        for &(census, count) in &class.counted_in {
            self.censuses
                .count(census, node, times * count, &self.eligible, &self.topology);
        }
        self.usage.push(node);
    }

    /// Asks every census whether it counts pods of a new class.
    fn enroll_class(&mut self, id: ClassId) {
        let class = self.tables.class(id);
        let weighing = Weighing {
            tables: &self.tables,
            namespaces: &self.namespaces,
        };
        let counts = self
            .censuses
            .iter()
            .filter_map(|(census, c)| weighing.weigh(c.key(), class).map(|count| (census, count)));
        let counted_in: Vec<(CensusId, i32)> = counts.collect();
        self.tables.class_mut(id).counted_in = counted_in;
    }
}

// === facts about all else ===

impl Cluster {
    /// A Service is there with this selector; `None`: it is gone, or has none.
    pub fn set_service(&mut self, namespace: Symbol, name: Symbol, selector: Option<Labels>) {
        self.owners.set_service(namespace, name, selector);
    }

    /// A controller is there with this selector; `None`: it is gone.
    pub fn set_controller(
        &mut self,
        namespace: Symbol,
        owner: OwnerRef,
        selector: Option<Selector>,
    ) {
        self.owners.set_controller(namespace, owner, selector);
    }

    /// A namespace is there with these labels; `None`: it is gone.
    pub fn set_namespace(&mut self, name: Symbol, labels: Option<Labels>) {
        match labels {
            Some(labels) => self.namespaces.insert(name, labels),
            None => self.namespaces.remove(&name),
        };
        // Only terms of pod affinity look at namespaces' labels; they are counted anew when asked for.
        let mut dropped = Vec::new();
        self.censuses
            .drop_where(|key| !matches!(key, CensusKey::Spread { .. }), &mut dropped);
        self.forget_censuses(&dropped);
    }

    /// The labels of a namespace, if it is known.
    pub fn namespace_labels(&self, name: Symbol) -> Option<&Labels> {
        self.namespaces.get(&name)
    }
}

// === the costly recount ===

impl Cluster {
    /// Recounts everything that is kept incrementally.
    ///
    /// # Errors
    /// The first thing that is not as a recount has it, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut pods_on = 0;
        for (i, row) in self.nodes.iter().enumerate() {
            let mut fresh = NodeRow::new(row.name);
            for &pod in &row.pods {
                if self.pod(pod).node != Some(NodeIdx::from(i)) {
                    return Err(format!(
                        "pod {} is listed on a node that it is not on",
                        self.pod(pod).name
                    ));
                }
                fresh.account(self.spec_of(pod), 1);
            }
            pods_on += row.pods.len();
            let name = self.names.text(row.name);
            let mut left = row.used.clone();
            left.add(&fresh.used, -1);
            if !left.is_zero() || fresh.used_scored != row.used_scored {
                return Err(format!(
                    "node {name}: used {:?}, recounted {:?}",
                    row.used, fresh.used
                ));
            }
        }
        if pods_on != self.pods().filter(|(_, p)| p.node.is_some()).count() {
            return Err("the nodes' lists and the pods' nodes differ in number".to_owned());
        }
        self.censuses
            .iter()
            .try_for_each(|(id, census)| self.audit_census(id, census))
    }

    fn audit_census(&self, id: CensusId, census: &Census) -> Result<(), String> {
        let weighing = Weighing {
            tables: &self.tables,
            namespaces: &self.namespaces,
        };
        let mut per_node = vec![0; self.nodes.len()];
        for (_, pod) in self.pods() {
            let weight = weighing.weigh(census.key(), self.tables.class(pod.class));
            if let (Some(node), Some(count)) = (pod.node, weight) {
                per_node[node.index()] += count;
            }
        }
        if per_node != census.per_node() {
            return Err(format!(
                "census {:?}: kept {:?}, recounted {per_node:?}",
                census.key(),
                census.per_node()
            ));
        }
        for derived in census.tallies() {
            let mut fresh = Censuses::new(usize::MAX);
            let copy = fresh.start(census.key().clone(), 0);
            fresh.adopt(copy, per_node.clone());
            let place = fresh.tally(copy, derived.key, &self.eligible_afresh(), &self.topology);
            let fresh = &fresh.tally_of(place).tally;
            if !same_tally(fresh, &derived.tally) {
                return Err(format!(
                    "tally {id:?} {:?}: kept {:?}, recounted {fresh:?}",
                    derived.key, derived.tally
                ));
            }
        }
        Ok(())
    }

    fn eligible_afresh(&self) -> EligibleNodes {
        let mut eligible = self.eligible.clone();
        for (i, row) in self.nodes.iter().enumerate() {
            eligible.refresh(NodeIdx::from(i), row, &self.tables, &self.names);
        }
        eligible
    }
}

/// Equal counts of equal domains; a tally may or may not have met domains that hold nothing.
fn same_tally(a: &Tally, b: &Tally) -> bool {
    let domains = a.counts().len().max(b.counts().len()) as u32;
    let same = |d| {
        let d = strew_spread::DomainIdx(d);
        a.count(d) == b.count(d) && a.exists(d) == b.exists(d)
    };
    (0..domains).all(same) && a.minimum() == b.minimum() && a.maximum() == b.maximum()
}
