//! The domains that count for pods, kept current with the store of an API server.

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

use crate::schedulers::Schedulers;
use crate::spread::{self, HardConstraint};
use crate::world::World;

/// Nodes, and everything beside pods that their constraints depend on.
pub struct Ground {
    world: World,
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
            world: World::empty(cluster, schedulers),
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

    /// Takes in the changes since the last call, and passes each to `hear`. Returns true if nodes changed so that other
    /// domains may count.
    pub fn follow(&mut self, server: &Server, mut hear: impl FnMut(&mut Self, &Change)) -> bool {
        let mut nodes_changed = false;
        while let Some(change) = server.next_change(&mut self.seen) {
            nodes_changed |= change.is_of(&Kind::Node) && self.node(change);
            if let Some(new) = &change.new
                && !change.is_of(&Kind::Node)
            {
                self.set(new);
            }
            hear(self, change);
        }
        nodes_changed
    }

    /// True if the change affects domains.
    fn node(&mut self, change: &Change) -> bool {
        let Some(Object::Node(new)) = &change.new else {
            let name = self.world.cluster.names.intern(&change.key.name.name);
            self.world.cluster.remove_node(name);
            return true;
        };
        let is_same = matches!(&change.old, Some(Object::Node(old))
            if old.meta.labels == new.meta.labels && old.spec.taints == new.spec.taints);
        if !is_same {
            self.set(&Object::Node(Arc::clone(new)));
        }
        !is_same
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
            let rule = Rule { key, nodes };
            (names.text(key).to_owned(), rule)
        };
        rules.into_iter().map(named).collect()
    }

    /// Which nodes count for such a pod by a key, as its first constraint over that key says. Without a pod, all nodes
    /// with the key count.
    pub fn rule(&mut self, pod: Option<&Pod>, key: &str) -> Rule {
        let key = self.world.cluster.names.intern(key);
        let of_pod =
            pod.and_then(|pod| self.of_pod(pod, |world, class| spread::rule(world, class, key)));
        let nodes = of_pod.unwrap_or_else(|| Eligibility {
            required_keys: [key].into(),
            ..Eligibility::default()
        });
        Rule { key, nodes }
    }

    fn of_pod<T>(
        &mut self,
        pod: &Pod,
        ask: impl FnOnce(&mut World, strew_cluster::ClassId) -> T,
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
        spread::places(&mut self.world.cluster, constraint.key, &constraint.nodes)
    }

    /// The domains of a rule, without pods.
    pub fn domains(&mut self, rule: &Rule) -> (KeyId, Tally) {
        spread::places(&mut self.world.cluster, rule.key, &rule.nodes)
    }
}

/// The nodes that form the domains of a key.
#[derive(Debug, Clone)]
pub struct Rule {
    key: Symbol,
    nodes: Eligibility,
}
