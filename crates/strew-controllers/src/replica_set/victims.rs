//! The pods of a set in the order of deletion, and what has changed since the last choice.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use strew_apiserver::object::{Name, Pod};
use strew_cluster::scale_down::{Member, Ordered};
use strew_model::Prng;
use strew_model::time::Instant;

/// As many changes more than pods are taken in one by one; a set that changes more without a choice is read again.
const SOME_CHANGES: usize = 1000;

/// The order, and the names of what has changed since it was last brought up to date.
#[derive(Debug, Clone, Default)]
pub(super) struct Victims {
    order: Ordered<Arc<Pod>>,
    pods: BTreeSet<Arc<str>>,
    nodes: BTreeSet<Arc<str>>,
}

impl Victims {
    /// All of a set's active pods are still to be read.
    pub(super) fn of<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> Self {
        Self {
            pods: pods.map(|pod| Arc::clone(&pod.meta.name.name)).collect(),
            ..Self::default()
        }
    }

    /// The set's pod of this name has changed, has come or has gone.
    pub(super) fn pod_changed(&mut self, name: &Name) {
        self.pods.insert(Arc::clone(&name.name));
    }

    /// The number of related pods on this node may have changed. Returns false if none of the set's pods is there.
    pub(super) fn node_changed(&mut self, node: &Arc<str>) -> bool {
        let is_on = self.order.is_on(node);
        if is_on {
            self.nodes.insert(Arc::clone(node));
        }
        is_on
    }

    /// True if reading the set again costs less than what has changed.
    pub(super) fn is_stale(&self) -> bool {
        self.pods.len() + self.nodes.len() > self.order.len() + SOME_CHANGES
    }

    /// Takes in the changes. `pod`: the active pod of a name. `rank`: the number of related pods on a node. Returns the
    /// nodes on which none of the set's pods was.
    pub(super) fn bring_up_to_date<'a>(
        &mut self,
        now: Instant,
        pod: impl Fn(&str) -> Option<&'a Arc<Pod>>,
        rank: impl Fn(&Arc<str>) -> usize,
    ) -> Vec<&'a Arc<str>> {
        for node in mem::take(&mut self.nodes) {
            self.order.rerank(&node, rank(&node), now);
        }
        let mut new_nodes = Vec::new();
        for name in mem::take(&mut self.pods) {
            let Some(pod) = pod(&name) else {
                self.order.remove(&name);
                continue;
            };
            new_nodes.extend(pod.node.as_ref().filter(|node| !self.order.is_on(node)));
            self.order.put(&name, member(pod), now, &rank);
        }
        new_nodes
    }

    /// The `n` pods to delete, by name and then as ties were settled.
    pub(super) fn first_to_go(&mut self, n: usize, now: Instant, dice: &mut Prng) -> Vec<Arc<Pod>> {
        self.order.first_to_go(n, now, dice)
    }
}

fn member(pod: &Arc<Pod>) -> Member<Arc<Pod>> {
    Member {
        pod: Arc::clone(pod),
        uid: Arc::clone(&pod.meta.uid),
        node: pod.node.clone(),
        life: pod.life(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strew_apiserver::Tables;
    use strew_apiserver::object::{Object, Owner, Phase, ReplicaSet, Truth};
    use strew_manifest::read::KubeObject;
    use strew_model::time::Span;

    use super::super::ReplicaSetController;
    use super::super::ranking::{candidate, first_to_go};
    use super::*;
    use crate::controller::{Change, Context, Controller};
    use crate::queue::Queue;
    use crate::testing::{START, TestCluster, pod_of};

    /// Sets and their Deployments; the last set has none. A selector takes pods of other sets, too.
    const SETS: [(&str, &str); 4] = [("a", "one"), ("b", "one"), ("c", "two"), ("d", "")];
    const APPS: [&str; 3] = ["web", "api", "db"];

    /// What the controller has seen.
    struct World {
        controller: ReplicaSetController,
        tables: Tables,
        queue: Queue,
        now: Instant,
        dice: Prng,
    }

    impl World {
        fn set(&mut self, object: Object) {
            let old = self.tables.set(object.clone());
            let (old, new) = (old.as_ref(), Some(&object));
            let change = Change { old, new };
            self.controller
                .observe(self.now, change, &self.tables, &mut self.queue);
        }

        fn remove(&mut self, object: &Object) {
            let old = self.tables.remove(&object.key());
            let (old, new) = (old.as_ref(), None);
            let change = Change { old, new };
            self.controller
                .observe(self.now, change, &self.tables, &mut self.queue);
        }

        /// A set that selects the pods of this application, or all.
        fn replica_set(&mut self, at: usize) -> Object {
            let (name, owner) = SETS[at];
            let selector = match self.dice.index(4) {
                0 => json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
                _ => json!({"matchLabels": {"app": APPS[self.dice.index(2)]}}),
            };
            let owners: Vec<_> = [owner].into_iter().filter(|uid| !uid.is_empty()).collect();
            let owners = owners.into_iter().map(|uid| {
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": uid, "uid": uid, "controller": true})
            });
            let object = KubeObject::of_json(json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {
                    "name": name, "namespace": "default", "uid": name,
                    "ownerReferences": owners.collect::<Vec<_>>(),
                },
                "spec": {"replicas": 3, "selector": selector, "template": {}},
            }));
            Object::of_wire(object.unwrap())
        }

        fn pod(&mut self, name: &str) -> Pod {
            let dice = &mut self.dice;
            let mut pod = pod_of(SETS[dice.index(SETS.len())].0, name);
            pod.meta.uid = format!("{:016x}", dice.between(0, u64::MAX)).into();
            self.change(pod)
        }

        /// A pod with other properties.
        fn change(&mut self, mut pod: Pod) -> Pod {
            let (dice, now) = (&mut self.dice, self.now);
            let app = APPS[dice.index(APPS.len())];
            pod.meta.labels = Arc::new([("app".into(), app.into())].into_iter().collect());
            if dice.chance(1, 10) {
                let owners: Vec<Owner> = pod.meta.owners.iter().cloned().collect();
                let set: Arc<str> = SETS[dice.index(SETS.len())].0.into();
                let moved = owners.into_iter().map(|owner| Owner {
                    uid: Arc::clone(&set),
                    ..owner
                });
                pod.meta.owners = moved.filter(|_| dice.chance(4, 5)).collect();
            }
            let node = dice
                .chance(5, 6)
                .then(|| format!("n{}", dice.index(3)).into());
            pod.node = pod.node.filter(|_| dice.chance(4, 5)).or(node);
            pod.meta.created = now - Span::from_secs(dice.between(0, 20));
            pod.status.phase = match dice.index(8) {
                0 => Phase::Pending,
                1 => Phase::Failed,
                _ => Phase::Running,
            };
            pod.status.conditions.clear();
            if dice.chance(3, 4) {
                let since = now - Span::from_secs(dice.between(0, 9));
                pod.status
                    .set_condition("Ready", Truth::True, "", "", since);
            }
            pod
        }

        /// The choice of the kept order and of the walk over all pods, for each number of pods. Returns the number of
        /// choices.
        fn compare(&mut self, name: &str) -> usize {
            let uid: Arc<str> = name.into();
            let Some(watched) = self.controller.watched.get(&uid) else {
                return 0;
            };
            let n_active = watched.active(&self.tables).count();
            for n in 0..n_active {
                let seed = self.dice.between(0, 99);
                let slow = self.walk(name, n, &mut Prng::new(seed));
                let mut cx = Context {
                    now: self.now,
                    cache: &self.tables,
                    api: &mut TestCluster::new(Vec::new()).server,
                    dice: &mut Prng::new(seed),
                    queue: &mut self.queue,
                };
                let fast = self.controller.first_to_go(&uid, n, &mut cx);
                let names = |pods: &[Arc<Pod>]| -> Vec<String> {
                    pods.iter()
                        .map(|pod| pod.meta.name.name.to_string())
                        .collect()
                };
                assert_eq!(names(&fast), names(&slow), "{name}: {n} of {n_active}");
            }
            n_active
        }

        fn walk(&self, name: &str, n: usize, dice: &mut Prng) -> Vec<Arc<Pod>> {
            let watched = &self.controller.watched[name];
            let owner = watched.set.meta.controller();
            let siblings = owner.map(|owner| self.controller.siblings(&owner.uid, &self.tables));
            let is_related = |pod: &&Arc<Pod>| {
                let mut siblings = siblings.iter().flatten();
                pod.is_active() && siblings.any(|sibling| sibling.selects(pod))
            };
            let rank = |node| self.tables.pods_on(node).filter(is_related).count();
            let candidates = watched
                .active(&self.tables)
                .map(|pod| candidate(pod, pod.node.as_ref().map_or(0, |node| rank(node))));
            let chosen = first_to_go(candidates.collect(), n, self.now, dice);
            chosen.into_iter().cloned().collect()
        }
    }

    #[test]
    fn after_any_changes_the_kept_order_is_that_of_a_walk_over_all_pods() {
        let mut n_choices = 0;
        for seed in 0..100 {
            let mut world = World {
                controller: ReplicaSetController::<ReplicaSet>::new(),
                tables: Tables::default(),
                queue: Queue::default(),
                now: START,
                dice: Prng::new(seed),
            };
            for at in 0..SETS.len() {
                let set = world.replica_set(at);
                world.set(set);
            }
            for _ in 0..150 {
                world.now = world.now + Span::from_millis(world.dice.between(0, 3000));
                let name = format!("pod-{:02}", world.dice.index(14));
                let known = world
                    .tables
                    .get::<Pod>(&Name::new("default", name.clone()))
                    .cloned();
                match (world.dice.index(40), known) {
                    (0, _) => {
                        let at = world.dice.index(SETS.len());
                        let set = world.replica_set(at);
                        world.set(set);
                    }
                    (1, _) => {
                        let at = world.dice.index(SETS.len());
                        let set = world.replica_set(at);
                        world.remove(&set);
                    }
                    (2..=8, Some(pod)) => world.remove(&Object::Pod(pod)),
                    (9..=28, Some(pod)) => {
                        let pod = world.change(Pod::clone(&pod));
                        world.set(pod.into());
                    }
                    (2..=28, None) => {
                        let pod = world.pod(&name);
                        world.set(pod.into());
                    }
                    _ => {
                        let at = world.dice.index(SETS.len());
                        n_choices += world.compare(SETS[at].0);
                    }
                }
            }
        }
        assert!(n_choices > 2_000, "{n_choices}");
    }
}
