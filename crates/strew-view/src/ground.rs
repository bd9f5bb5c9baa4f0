//! The domains that count for pods, kept current with the store of an API server.

use std::collections::HashSet;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::scheduling::wire_of;
use strew_apiserver::object::{
    Kind, Node, Object, Pairs, Pod, ReplicaSet, ReplicationController, StatefulSet, Stored,
};
use strew_apiserver::server::{Change, Cursor, Server};
use strew_cluster::{Cluster, Eligibility, KeyId, PodFact};
use strew_manifest::read::KubeObject;
use strew_model::{Interner, Labels, Symbol};
use strew_scheduler::Profile;
use strew_spread::{DomainIdx, Tally};
use strew_wire::facts::{self, PodFacts};

use crate::cluster_state::ClusterState;
use crate::schedulers::Schedulers;
use crate::spread::{self, HardConstraint};

/// Nodes, and everything beside pods that their constraints depend on.
pub struct Ground {
    world: ClusterState,
    facts: PodFacts,
    seen: Cursor,
}

impl Ground {
    /// The present store, for pods of these profiles.
    pub fn new(server: &Server, names: &Interner, profiles: &[Profile]) -> Self {
        let mut cluster = Cluster::new();
        cluster.names = names.clone();
        let schedulers = Schedulers::of(profiles, &mut cluster.names);
        let mut ground = Self {
            world: ClusterState::empty(cluster, schedulers),
            facts: PodFacts::default(),
            seen: server.listen(),
        };
        let tables = server.tables();
        ground.each::<Node>(tables);
        ground.each::<ReplicaSet>(tables);
        ground.each::<ReplicationController>(tables);
        ground.each::<StatefulSet>(tables);
        for plain in tables.all_plain() {
            ground.set(&Object::Plain(Arc::clone(plain)));
        }
        ground
    }

    fn each<T: Stored>(&mut self, tables: &Tables) {
        for object in tables.of::<T>().iter() {
            self.set(&T::into_object(Arc::clone(object)));
        }
    }

    /// Takes in the changes since the last call.
    pub fn follow(&mut self, server: &Server) {
        while let Some(change) = self.next(server) {
            self.take_in(change);
        }
    }

    /// The next change since the last call, for [`Ground::take_in`].
    pub fn next<'a>(&mut self, server: &'a Server) -> Option<&'a Change> {
        server.next_change(&mut self.seen)
    }

    /// Takes in a change.
    pub fn take_in(&mut self, change: &Change) {
        if change.is_of(&Kind::Node) {
            self.node(change);
        } else if let Some(new) = &change.new {
            self.set(new);
        }
    }

    fn node(&mut self, change: &Change) {
        match &change.new {
            Some(new) if moves_node(change) => self.set(new),
            Some(_) => {}
            None => {
                let name = self.world.cluster.names.intern(&change.key.name.name);
                self.world.cluster.remove_node(name);
            }
        }
    }

    /// An object that cannot be converted was refused when the files were loaded, or by the API server.
    fn set(&mut self, object: &Object) {
        let cluster = &mut self.world.cluster;
        match wire_of(object) {
            Some(KubeObject::Node(node)) => {
                if let Ok(fact) = facts::node(&node, &mut cluster.names) {
                    cluster.set_node(fact);
                }
            }
            Some(KubeObject::PodDisruptionBudget(_)) | None => {}
            Some(wire) => drop(facts::apply(&wire, cluster)),
        }
    }

    /// The domain of a node, by name.
    pub fn domain(&self, column: KeyId, node: &str) -> Option<DomainIdx> {
        let cluster = &self.world.cluster;
        let node = cluster.find_node(cluster.names.get(node)?)?;
        cluster.column(column).domain(node)
    }

    /// Where a node, by name, stands under a rule; `column` is that of its key.
    pub fn stand(&self, rule: &Rule, column: KeyId, node: &str) -> Stand {
        let cluster = &self.world.cluster;
        let node = cluster.names.get(node);
        let node = node.and_then(|name| cluster.find_node(name));
        let domain = node.and_then(|node| cluster.column(column).domain(node));
        let counts = node.is_some_and(|node| spread::admits(cluster, &rule.nodes, node));
        Stand {
            domain,
            place: domain.filter(|_| counts),
        }
    }

    /// The value of the key for a domain.
    pub fn text(&self, column: KeyId, domain: DomainIdx) -> &str {
        let cluster = &self.world.cluster;
        cluster.names.text(cluster.column(column).value(domain))
    }

    /// The topology keys of a pod, each with the rule that says which nodes count; empty if the pod cannot be
    /// converted.
    pub fn keys(&mut self, pod: &Pod) -> Vec<(String, Rule)> {
        let rules = self.of_pod(pod, spread::rules).unwrap_or_default();
        let names = &self.world.cluster.names;
        let named = |(key, nodes): (Symbol, Eligibility)| {
            let nodes = vec![nodes];
            (names.text(key).to_owned(), Rule { key, nodes })
        };
        rules.into_iter().map(named).collect()
    }

    /// Which nodes count for these pods together by a key: those that count for at least one of them, as its first
    /// constraint over that key says. Pods of subsets, of DaemonSets and of several revisions count different nodes.
    /// Without a pod, all nodes with the key count.
    pub fn rule<'a>(&mut self, pods: impl IntoIterator<Item = &'a Pod>, key: &str) -> Rule {
        let key = self.world.cluster.names.intern(key);
        let mut nodes = Vec::new();
        // Pods of one template share their spec.
        let mut seen = HashSet::new();
        for pod in pods {
            if !seen.insert(Arc::as_ptr(&pod.spec)) {
                continue;
            }
            let rule = self.of_pod(pod, |world, class| spread::rule(world, class, key));
            if let Some(rule) = rule
                && !nodes.contains(&rule)
            {
                nodes.push(rule);
            }
        }
        if nodes.is_empty() {
            nodes.push(Eligibility {
                required_keys: [key].into(),
                ..Eligibility::default()
            });
        }
        Rule { key, nodes }
    }

    fn of_pod<T>(
        &mut self,
        pod: &Pod,
        ask: impl FnOnce(&mut ClusterState, strew_cluster::ClassId) -> T,
    ) -> Option<T> {
        let cluster = &mut self.world.cluster;
        let fact = self.facts.fact(pod, &mut cluster.names).ok()??;
        let uid = Arc::clone(&fact.uid);
        let pod = cluster.set_pod(PodFact { node: None, ..fact });
        let class = cluster.pod(pod).class;
        let answer = ask(&mut self.world, class);
        self.world.cluster.remove_pod(&uid);
        Some(answer)
    }

    /// The hard constraints that the scheduler enforces for such a pod; empty if the pod cannot be converted.
    pub fn hard(&mut self, pod: &Pod) -> Vec<HardConstraint> {
        self.of_pod(pod, spread::hard).unwrap_or_default()
    }

    /// True if a constraint counts pods with these labels.
    pub fn counts(&mut self, constraint: &HardConstraint, labels: &Pairs) -> bool {
        let names = &mut self.world.cluster.names;
        let pairs = labels.iter();
        let pairs = pairs.map(|(key, value)| (names.intern(key), names.intern(value)));
        constraint.selector.matches(&Labels::new(pairs.collect()))
    }

    /// The name of a key.
    pub fn name(&self, key: Symbol) -> &str {
        self.world.cluster.names.text(key)
    }

    /// The domains that a constraint compares, without pods.
    pub fn compared(&mut self, constraint: &HardConstraint) -> (KeyId, Tally) {
        let nodes = std::slice::from_ref(&constraint.nodes);
        spread::places(&mut self.world.cluster, constraint.key, nodes)
    }

    /// The domains of a rule, without pods.
    pub fn domains(&mut self, rule: &Rule) -> (KeyId, Tally) {
        spread::places(&mut self.world.cluster, rule.key, &rule.nodes)
    }
}

/// True if a node may stand elsewhere after the change, as after no heartbeat.
pub fn moves_node(change: &Change) -> bool {
    match (&change.old, &change.new) {
        (Some(Object::Node(old)), Some(Object::Node(new))) => {
            old.meta.labels != new.meta.labels || old.spec.taints != new.spec.taints
        }
        _ => change.is_of(&Kind::Node),
    }
}

/// Where a node stands under a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    /// Its domain, in which its pods are.
    pub domain: Option<DomainIdx>,
    /// The same if the node counts: it makes the domain exist.
    pub place: Option<DomainIdx>,
}

/// The nodes that form the domains of a key: those that one of the rules of its pods admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    key: Symbol,
    nodes: Vec<Eligibility>,
}

impl Rule {
    /// Adds the nodes that count for other pods by the same key.
    pub fn add(&mut self, other: &Self) {
        for nodes in &other.nodes {
            if !self.nodes.contains(nodes) {
                self.nodes.push(nodes.clone());
            }
        }
    }
}
