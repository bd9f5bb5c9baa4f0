//! Which workloads are at rest, and what their controllers would make in place of a pod.
//!
//! A plan simulates that a controller makes the same pod again, once, and nothing else. That is so for a pod of a workload
//! that is *settled*: it has as many pods as it asks for, none is being deleted, all are on nodes that exist, and its
//! controller has seen its spec. For a pod it is so if its controller would make it from the same template, the quotas of
//! its namespace admit another one, and, in a StatefulSet that makes pods in order, those of lower ordinals are ready.
//! Everything else stays, with the reason.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use strew_apiserver::admission::{match_label_keys, quota};
use strew_apiserver::eviction::{self, Eviction};
use strew_apiserver::object::{
    Budget, Deployment, Key, Kind, Meta, Name, Node, Object, Pod, StatefulSet, moment,
};
use strew_apiserver::{Tables, object::Owner};
use strew_cluster::{ClassId, PodIdx};
use strew_controllers::stateful_set::is_made_from_current;
use strew_manifest::conditions::node_ready;
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_plan::rebalance::Stays;
use strew_plan::{Away, Health};
use strew_view::cluster_state::{ClusterState, PodEntry, PodState};
use strew_view::workload::WorkloadName;
use strew_wire::facts::template_spec;

/// What is known about the workloads and pods of a cluster.
#[derive(Default)]
pub struct Settled {
    /// Why a workload is not settled, by its index: the first reason.
    pub unsettled: BTreeMap<usize, String>,
    /// The pods that stay for that, or since their controller would not make the same pod again.
    pub pods: BTreeMap<PodIdx, Stays>,
    /// The number of pods of a workload that are on nodes which do not exist.
    pub off_nodes: BTreeMap<usize, usize>,
    /// Which pods are available, and what the Eviction API knows of budgets.
    pub health: Health,
}

/// The label with the revision that a pod was made from.
const REVISION: &str = "controller-revision-hash";

impl Settled {
    /// Looks at all workloads. Cost: a few visits of each pod.
    pub fn of(world: &mut ClusterState, tables: &Tables) -> Self {
        let mut settled = Self::default();
        let pods: Vec<Option<Arc<Pod>>> = world.pods.iter().map(|pod| find(tables, pod)).collect();
        settled.look_at_nodes(world, tables, &pods);
        settled.look_at_budgets(world, tables, &pods);
        let found = Owned::of(world, &pods);
        settled.look_at_pods(world, tables);
        settled.look_at_controllers(world, tables, &found);
        for set in tables.of::<StatefulSet>().iter() {
            if let Some(members) = found.by_owner.get(&*set.meta.uid) {
                settled.look_at_set(world, set, members, &pods);
            }
        }
        settled.look_at_owners(world, &found);
        settled.look_at_templates(world, tables, &pods);
        settled.look_at_quotas(world, tables, &pods);
        settled.keep_unsettled(world);
        settled
    }

    fn say(&mut self, workload: usize, why: impl FnOnce() -> String) {
        self.unsettled.entry(workload).or_insert_with(why);
    }

    fn keep(&mut self, pod: PodIdx, reason: &'static str, message: String) {
        let why = Stays::Unsettled { reason, message };
        self.pods.entry(pod).or_insert(why);
    }

    /// Which pods are not available, and which are on nodes that are not there.
    fn look_at_nodes(&mut self, world: &ClusterState, tables: &Tables, pods: &[Option<Arc<Pod>>]) {
        let is_unready = |node: &&Arc<Node>| {
            let ready = node_ready(&node.status);
            ready.is_some_and(|ready| ready != "True")
        };
        let nodes = tables.of::<Node>().iter().filter(is_unready);
        let unready: BTreeSet<&str> = nodes.map(|node| &*node.meta.name.name).collect();
        for (entry, pod) in world.pods.iter().zip(pods) {
            // A pod without any condition is one of which nothing is known.
            let is_ready = || {
                let known = pod.as_ref().filter(|pod| !pod.status.conditions.is_empty());
                known.is_none_or(|pod| pod.is_ready())
            };
            let node = world.cluster.pod(entry.pod).node;
            let node = node.map(|node| world.cluster.node(node));
            let away = match node {
                _ if entry.is_leaving => Some(Away::Deleted),
                None => Some(Away::Pending),
                Some(node) if node.fact().is_none() => {
                    *self.off_nodes.entry(entry.workload).or_default() += 1;
                    let name = world.cluster.names.text(node.name());
                    self.say(entry.workload, || {
                        format!("{} is on node {name}, which does not exist", entry.name)
                    });
                    Some(Away::NodeGone)
                }
                Some(_) if !is_ready() => Some(Away::NotReady),
                Some(node) => unready
                    .contains(world.cluster.names.text(node.name()))
                    .then_some(Away::NodeNotReady),
            };
            self.health.away.extend(away.map(|why| (entry.pod, why)));
        }
    }

    /// What the Eviction API knows of budgets, and the pods that it evicts regardless of them.
    fn look_at_budgets(
        &mut self,
        world: &mut ClusterState,
        tables: &Tables,
        pods: &[Option<Arc<Pod>>],
    ) {
        for budget in tables.of::<Budget>().iter() {
            let names = &mut world.cluster.names;
            let name = &budget.meta.name;
            let key = (names.intern(&name.namespace), names.intern(&name.name));
            if eviction::is_stale(budget) {
                self.health.stale.insert(key);
            }
            let status = &budget.status;
            let desired = status.desired_healthy.unwrap_or(0);
            let lacking = desired.saturating_sub(status.current_healthy.unwrap_or(0));
            self.health.lacking.insert(key, lacking.max(0));
        }
        for (entry, pod) in world.pods.iter().zip(pods) {
            let why = self.health.away.get(&entry.pod);
            if let (Some(Away::NotReady), Some(pod)) = (why, pod) {
                let budgets = eviction::budgets_of(pod, tables);
                let decided = eviction::decide(pod, &budgets, Instant::default());
                if decided == Eviction::Delete {
                    self.health.free.insert(entry.pod);
                }
            }
        }
    }

    /// Pods that are being deleted, and namespaces in which nothing is made any more.
    fn look_at_pods(&mut self, world: &ClusterState, tables: &Tables) {
        for entry in &world.pods {
            if entry.is_leaving || entry.standing == PodState::Leaving {
                self.say(entry.workload, || {
                    format!("{} is being deleted", entry.name)
                });
            }
        }
        for (index, workload) in world.workloads.iter().enumerate() {
            let namespace = Key {
                kind: Kind::of("Namespace"),
                name: Name::new("", workload.name.namespace.as_str()),
            };
            let found = tables.find(&namespace);
            if found.is_some_and(|namespace| namespace.meta().is_terminating()) {
                self.say(index, || "its namespace is being deleted".to_owned());
            }
        }
    }

    /// Pods with a controller of which nothing is known: it is not in the files, or of a kind that is not simulated.
    fn look_at_owners(&mut self, world: &ClusterState, found: &Owned<'_>) {
        for (entry, owner) in world.pods.iter().zip(&found.owner_of) {
            let workload = &world.workloads[entry.workload].name;
            if owner.is_none() && workload.kind != "Pod" {
                self.health.owned.insert(entry.pod);
                let message = format!(
                    "may not leave: whether {} makes another one is not known, since it is not in the files or not simulated",
                    workload.of()
                );
                self.keep(entry.pod, "unknownController", message);
            }
        }
    }

    /// Controllers that are about to make or delete pods.
    fn look_at_controllers(&mut self, world: &ClusterState, tables: &Tables, found: &Owned<'_>) {
        for kind in [
            "ReplicaSet",
            "ReplicationController",
            "StatefulSet",
            "CloneSet",
        ] {
            for object in tables.all_of(&Kind::of(kind)) {
                let meta = object.meta();
                let members = found.by_owner.get(&*meta.uid);
                let workload = members
                    .and_then(|members| members.first())
                    .map(|&first| world.pods[first].workload);
                let Some(workload) = workload.or_else(|| found.workload_of(kind, meta)) else {
                    continue;
                };
                let n_pods = members.map_or(0, |members| active(world, members));
                let name = format!("{}/{}", kind.to_lowercase(), meta.name.name);
                self.look_at_controller(workload, &object, n_pods, &name);
            }
        }
        for deployment in tables.of::<Deployment>().iter() {
            let meta = &deployment.meta;
            let Some(workload) = found.workload_of("Deployment", meta) else {
                continue;
            };
            let members = &world.members[workload];
            let owners: BTreeSet<_> = members
                .iter()
                .filter_map(|&pod| found.owner_of[pod].map(|owner| &owner.uid))
                .collect();
            // In a rollout there may be more or fewer.
            let n_pods = match owners.len() {
                0 | 1 => active(world, members),
                _ => deployment.spec.replicas.unwrap_or(1),
            };
            let object = Object::Deployment(Arc::clone(deployment));
            self.look_at_controller(workload, &object, n_pods, "it");
        }
    }

    fn look_at_controller(&mut self, workload: usize, object: &Object, n_pods: i32, name: &str) {
        if object.meta().is_terminating() {
            self.say(workload, || format!("{name} is being deleted"));
        }
        if observed(object).is_some_and(|observed| observed < object.meta().generation) {
            self.say(workload, || {
                format!("the controller has not seen the last change of {name}")
            });
        }
        let wanted = object.replicas().unwrap_or(n_pods);
        if wanted != n_pods {
            self.say(workload, || {
                format!("{name} asks for {wanted} pods and has {n_pods}")
            });
        }
    }

    /// Pods of a StatefulSet that would be made from another revision, or only after others.
    fn look_at_set(
        &mut self,
        world: &ClusterState,
        set: &StatefulSet,
        members: &[usize],
        pods: &[Option<Arc<Pod>>],
    ) {
        let start = set.spec.ordinals.as_ref().and_then(|o| o.start);
        let start = u32::try_from(start.unwrap_or(0)).unwrap_or(0);
        let ordinal = |name: &str| name.rsplit_once('-')?.1.parse::<u32>().ok();
        let numbered = |&index: &usize| Some((ordinal(&world.pods[index].name)?, index));
        let mut ordered: Vec<(u32, usize)> = members.iter().filter_map(numbered).collect();
        ordered.sort_unstable();
        let (status, strategy) = (&set.status, set.spec.update_strategy.as_ref());
        let is_on_delete = strategy.and_then(|s| s.type_.as_deref()) == Some("OnDelete");
        for &(ordinal, index) in &ordered {
            let entry = &world.pods[index];
            let n_current = status.current_replicas.unwrap_or(0);
            let position = ordinal.saturating_sub(start);
            let is_current = is_made_from_current(&set.spec, n_current, position);
            let next = match is_current {
                true => &status.current_revision,
                false => &status.update_revision,
            };
            let now = pods[index]
                .as_ref()
                .and_then(|pod| pod.meta.label(REVISION));
            let (Some(next), Some(now)) = (next.as_deref(), now) else {
                continue;
            };
            if next == now {
                continue;
            }
            if !is_current && !is_on_delete {
                self.say(entry.workload, || {
                    format!(
                        "a rolling update is under way: {} is of revision {now}",
                        entry.name
                    )
                });
            }
            let message = format!("would be made anew from revision {next}, not {now}");
            self.keep(entry.pod, "otherTemplate", message);
        }
        if set.spec.pod_management_policy.as_deref() != Some("Parallel") {
            let mut lower: Vec<PodIdx> = Vec::new();
            for &(_, index) in &ordered {
                let pod = world.pods[index].pod;
                if !lower.is_empty() {
                    self.health.after.insert(pod, lower.as_slice().into());
                }
                if self.health.away.contains_key(&pod) {
                    lower.push(pod);
                }
            }
        }
    }

    /// Pods of ReplicaSets of no Deployment and of ReplicationControllers whose template was edited since: nothing
    /// replaces such pods, but what is made in their place is of the new template.
    fn look_at_templates(
        &mut self,
        world: &mut ClusterState,
        tables: &Tables,
        pods: &[Option<Arc<Pod>>],
    ) {
        let bare =
            ["ReplicaSet", "ReplicationController"].map(|kind| tables.all_of(&Kind::of(kind)));
        let bare = bare.iter().flatten();
        let bare = bare.filter(|object| object.meta().controller().is_none());
        let templates: HashMap<&str, &Object> =
            bare.map(|object| (&*object.meta().uid, object)).collect();
        let mut known: HashMap<(ClassId, &str), bool> = HashMap::new();
        for (index, pod) in pods.iter().enumerate() {
            let owner = pod.as_ref().and_then(|pod| pod.meta.controller());
            let object = owner.and_then(|owner| templates.get(&*owner.uid));
            let (Some(pod), Some(object)) = (pod, object) else {
                continue;
            };
            let Some(template) = object.pod_template() else {
                continue;
            };
            let entry = &world.pods[index];
            let class = world.cluster.pod(entry.pod).class;
            let meta = object.meta();
            let names = &mut world.cluster.names;
            let is_same = *known
                .entry((class, &*meta.uid))
                .or_insert_with(|| is_of_template(pod, template, names));
            if !is_same {
                let message = "would be made anew from another template: it was edited since";
                self.keep(entry.pod, "otherTemplate", message.to_owned());
            }
        }
    }

    /// Pods that a quota of their namespace would not admit again.
    fn look_at_quotas(&mut self, world: &ClusterState, tables: &Tables, pods: &[Option<Arc<Pod>>]) {
        let mut quotas: BTreeMap<&str, Vec<core::ResourceQuota>> = BTreeMap::new();
        for plain in tables.all_plain() {
            if let KubeObject::ResourceQuota(quota) = &plain.object {
                let namespace = &*plain.meta.name.namespace;
                quotas.entry(namespace).or_default().push((**quota).clone());
            }
        }
        let now = moment::to_wire(Instant::default()).0;
        let mut known: HashMap<ClassId, Option<String>> = HashMap::new();
        for (entry, pod) in world.pods.iter().zip(pods) {
            let (Some(pod), Some(quotas)) = (pod, quotas.get(&*entry.namespace)) else {
                continue;
            };
            let class = world.cluster.pod(entry.pod).class;
            let refusal = known
                .entry(class)
                .or_insert_with(|| quota::refuses_again(&pod.to_wire(), quotas, now));
            if let Some(refusal) = refusal.clone() {
                self.keep(
                    entry.pod,
                    "quota",
                    format!("would not be made anew: {refusal}"),
                );
            }
        }
    }

    /// All pods of workloads that are not settled stay.
    fn keep_unsettled(&mut self, world: &ClusterState) {
        for entry in &world.pods {
            let Some(why) = self.unsettled.get(&entry.workload) else {
                continue;
            };
            let name = &world.workloads[entry.workload].name;
            let message = format!(
                "may not leave before {}/{} is settled: {why}",
                name.namespace,
                name.of()
            );
            let reason = "notSettled";
            self.pods
                .insert(entry.pod, Stays::Unsettled { reason, message });
        }
    }
}

/// The pods by their controllers, and the workloads by name.
struct Owned<'a> {
    /// The indexes of pods by the uid of their controller.
    by_owner: HashMap<&'a str, Vec<usize>>,
    /// The controller of each pod.
    owner_of: Vec<Option<&'a Owner>>,
    workloads: HashMap<WorkloadName, usize>,
}

impl<'a> Owned<'a> {
    fn of(world: &ClusterState, pods: &'a [Option<Arc<Pod>>]) -> Self {
        let owner = |pod: &'a Option<Arc<Pod>>| pod.as_ref()?.meta.controller();
        let owner_of: Vec<Option<&Owner>> = pods.iter().map(owner).collect();
        let mut by_owner: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, owner) in owner_of.iter().enumerate() {
            if let Some(owner) = owner {
                by_owner.entry(&*owner.uid).or_default().push(index);
            }
        }
        let workloads = world.workloads.iter().enumerate();
        Self {
            by_owner,
            owner_of,
            workloads: workloads
                .map(|(index, workload)| (workload.name.clone(), index))
                .collect(),
        }
    }

    /// The workload of an object that makes pods: of a ReplicaSet its Deployment, if there is one.
    fn workload_of(&self, kind: &str, meta: &Meta) -> Option<usize> {
        let above = meta
            .controller()
            .filter(|above| *above.kind == *"Deployment");
        let name = match above {
            Some(above) => WorkloadName::new("Deployment", meta, &above.name),
            None => WorkloadName::new(kind, meta, &meta.name.name),
        };
        self.workloads.get(&name).copied()
    }
}

fn find(tables: &Tables, entry: &PodEntry) -> Option<Arc<Pod>> {
    let name = Name::new(Arc::clone(&entry.namespace), Arc::clone(&entry.name));
    tables.get::<Pod>(&name).cloned()
}

/// The number of pods that are not being deleted.
fn active(world: &ClusterState, members: &[usize]) -> i32 {
    let n = members.iter().filter(|&&pod| !world.pods[pod].is_leaving);
    i32::try_from(n.count()).unwrap_or(i32::MAX)
}

/// `status.observedGeneration`; `None` if there is none.
fn observed(object: &Object) -> Option<i64> {
    match object {
        Object::Deployment(o) => o.status.observed_generation,
        Object::ReplicaSet(o) => o.status.observed_generation,
        Object::ReplicationController(o) => o.status.observed_generation,
        Object::StatefulSet(o) => o.status.observed_generation,
        _ => None,
    }
}

/// Whether a template makes a pod like this one, as far as its place is concerned. What only admission sets, and what
/// webhooks add (containers, volumes, labels, tolerations), the pod may have beside it.
fn is_of_template(pod: &Pod, template: &core::PodTemplateSpec, names: &mut Interner) -> bool {
    let labels = template.metadata.as_ref().and_then(|m| m.labels.as_ref());
    let has = |(key, value): (&String, &String)| pod.meta.label(key) == Some(value);
    let Some(spec) = &template.spec else {
        return true;
    };
    if !labels.into_iter().flatten().all(has) {
        return false;
    }
    let mut made = core::Pod {
        spec: Some(spec.clone()),
        ..core::Pod::default()
    };
    made.metadata.labels = Some((*pod.meta.labels).clone());
    let old = reduced(&pod.spec, spec);
    if let Some(made) = &mut made.spec {
        complete(made, &old);
    }
    let plain = made.spec.clone();
    match_label_keys::merge(&mut made, true);
    // Before 1.34 only decisions merged the keys.
    let mut candidates = [plain, made.spec].into_iter().flatten();
    candidates.any(|made| is_alike(&made, &old, names))
}

/// A pod's spec without the containers and volumes that its template does not have.
fn reduced(spec: &core::PodSpec, template: &core::PodSpec) -> core::PodSpec {
    let mut spec = spec.clone();
    let is_in = |list: &[core::Container], name: &str| list.iter().any(|c| c.name == name);
    spec.containers
        .retain(|container| is_in(&template.containers, &container.name));
    let of_template = template.init_containers.as_deref().unwrap_or_default();
    if let Some(all) = &mut spec.init_containers {
        all.retain(|container| is_in(of_template, &container.name));
    }
    let volumes = template.volumes.as_deref().unwrap_or_default();
    if let Some(all) = &mut spec.volumes {
        all.retain(|volume| volumes.iter().any(|of| of.name == volume.name));
    }
    spec
}

/// Sets what admission sets for pods of a template: overhead, requests of limits, and the amounts of a LimitRange, which
/// are those of the pod.
fn complete(made: &mut core::PodSpec, old: &core::PodSpec) {
    made.overhead.clone_from(&old.overhead);
    made.scheduling_gates.clone_from(&old.scheduling_gates);
    let init = made.init_containers.iter_mut().flatten();
    for container in made.containers.iter_mut().chain(init) {
        let mut olds = old
            .containers
            .iter()
            .chain(old.init_containers.iter().flatten());
        let before = olds.find(|old| old.name == container.name);
        let is_empty = container
            .resources
            .as_ref()
            .is_none_or(|r| r.requests.is_none() && r.limits.is_none());
        match (&mut container.resources, before) {
            (resources, Some(before)) if is_empty => resources.clone_from(&before.resources),
            (Some(resources), _) => {
                let limits = resources.limits.clone().unwrap_or_default();
                let requests = resources.requests.get_or_insert_default();
                for (name, limit) in limits {
                    requests.entry(name).or_insert(limit);
                }
            }
            (None, _) => {}
        }
    }
}

fn is_alike(made: &core::PodSpec, old: &core::PodSpec, names: &mut Interner) -> bool {
    let (Ok(mut made), Ok(old)) = (template_spec(made, names), template_spec(old, names)) else {
        return true;
    };
    let tolerates = |toleration| old.tolerations.contains(toleration);
    if !made.tolerations.iter().all(tolerates) {
        return false;
    }
    made.tolerations.clone_from(&old.tolerations);
    made.images.clone_from(&old.images);
    made.priority = old.priority;
    made.never_preempts = old.never_preempts;
    made == old
}
