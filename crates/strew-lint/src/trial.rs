//! Workloads put on nodes pod by pod, by the scheduler's engine: what every count of a rule comes from.
//!
//! A [`Bench`] is a cluster for questions of the form "how many of these pods find a node"; each is asked on a draft.

use std::collections::HashMap;
use std::rc::Rc;

use k8s_openapi::api::core::v1::Pod;
use strew_cluster::{
    Cluster, Draft, NodeAffinity, NodeFact, NodeIdx, OwnerKind, OwnerRef, PodFact, PodHistory,
    PodIdx, PodSpec, SpreadConstraint,
};
use strew_manifest::defaults::default_pod;
use strew_manifest::read::KubeObject;
use strew_model::{
    Labels, Requirement, Resources, Selector, Symbol, Toleration, TolerationOperator,
};
use strew_scheduler::{Decision, Engine, Profile, Reason, Unfit, explain};
use strew_view::explanation::PodExplanation;
use strew_wire::facts;

use crate::files::Workload;
use crate::played::REVISION;
use crate::scheduling::Scheduling;

/// The most pods of a workload that are placed. Where it asks for more, nothing is said.
pub(crate) const PODS_MAX: i64 = 300;

/// A cluster and the engine that decides in it.
pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    engine: Engine,
    /// The same without default constraints, if some of them are hard.
    without_defaults: Option<Engine>,
    /// The pods that run already, by namespace.
    running: HashMap<Symbol, Vec<PodIdx>>,
}

/// Pods of a workload to place.
#[derive(Clone)]
pub(crate) struct Pods {
    pub(crate) namespace: Symbol,
    pub(crate) labels: Labels,
    /// The controller whose selector hard default constraints take; `None` if there are none.
    owner: Option<OwnerRef>,
    pub(crate) spec: PodSpec,
}

/// Where pods went.
pub(crate) struct Placed {
    /// The node of each pod that found one, in order; a pod that finds none is the last one that is tried.
    pub(crate) nodes: Vec<NodeIdx>,
    /// Why the next pod found no node; `None`: all did.
    pub(crate) refused: Option<String>,
    /// The reasons of the nodes that refused it.
    pub(crate) by: Vec<Reason>,
}

impl Bench {
    /// The nodes of files, with the pods that run on them and what decides about volumes.
    pub(crate) fn of(objects: &[&KubeObject], scheduling: &Scheduling) -> Self {
        let mut cluster = Cluster::new();
        cluster.names = scheduling.names.clone();
        let without_defaults = scheduling.without_hard_defaults();
        for object in objects {
            let is_running = match object {
                KubeObject::Pod(pod) => pod
                    .spec
                    .as_ref()
                    .is_some_and(|spec| spec.node_name.is_some()),
                // Their selectors concern default constraints only, and soft ones refuse nothing.
                KubeObject::Service(_)
                | KubeObject::ReplicaSet(_)
                | KubeObject::StatefulSet(_)
                | KubeObject::ReplicationController(_) => without_defaults.is_some(),
                _ => true,
            };
            if is_running {
                // What cannot be converted is an error elsewhere.
                drop(facts::apply(object, &mut cluster));
            }
        }
        Self {
            engine: Engine::new(scheduling.profile.clone()),
            without_defaults: without_defaults.map(Engine::new),
            ..Self::new(cluster)
        }
    }

    /// Empty nodes with room for everything, each with these labels.
    pub(crate) fn ideal<'l>(nodes: impl IntoIterator<Item = Vec<(&'l str, String)>>) -> Self {
        let mut cluster = Cluster::new();
        for (number, labels) in nodes.into_iter().enumerate() {
            let name = cluster.names.intern(&format!("node-{number}"));
            let labels = labels.iter();
            let labels = labels.map(|(key, value)| {
                let names = &mut cluster.names;
                (names.intern(key), names.intern(value))
            });
            let labels = Labels::new(labels.collect());
            cluster.set_node(NodeFact {
                name,
                labels,
                taints: Box::default(),
                unschedulable: false,
                allocatable: Resources::default(),
                pods_max: PODS_MAX,
                images: Box::default(),
            });
        }
        Self::new(cluster)
    }

    fn new(cluster: Cluster) -> Self {
        let mut running: HashMap<Symbol, Vec<PodIdx>> = HashMap::new();
        for (pod, _) in cluster.pods() {
            let namespace = cluster.class_of(pod).key.namespace;
            running.entry(namespace).or_default().push(pod);
        }
        Self {
            cluster,
            running,
            engine: Engine::new(Profile::default()),
            without_defaults: None,
        }
    }

    /// The pods of a workload; `None` if they have an amount that cannot be used.
    pub(crate) fn pods(&mut self, workload: &Workload<'_>) -> Option<Pods> {
        let names = &mut self.cluster.names;
        // Limits become requests, and ports of the host's network host ports, only in pods.
        let mut pod = Pod {
            spec: Some(workload.spec.clone()),
            ..Pod::default()
        };
        default_pod(&mut pod);
        let spec = facts::template_spec(pod.spec.as_ref()?, names).ok()?;
        let mut labels: Vec<(Symbol, Symbol)> = facts::labels(Some(workload.written), names)
            .iter()
            .collect();
        let value = names.intern("old");
        for key in workload.of_controller {
            if !workload.written.contains_key(*key) {
                labels.push((names.intern(key), value));
            }
        }
        let pods = Pods {
            namespace: names.intern(workload.namespace),
            labels: Labels::new(labels),
            owner: None,
            spec,
        };
        let owner = match self.without_defaults {
            Some(_) => self.own(workload, &pods, value),
            None => None,
        };
        Some(Pods { owner, ..pods })
    }

    /// The controller of these pods of one revision, which is put into the cluster with its selector; `None` if the
    /// scheduler reads no selector of its kind.
    fn own(&mut self, workload: &Workload<'_>, pods: &Pods, revision: Symbol) -> Option<OwnerRef> {
        let kind = match workload.kind {
            "Deployment" | "ReplicaSet" => OwnerKind::ReplicaSet,
            "StatefulSet" => OwnerKind::StatefulSet,
            "ReplicationController" => OwnerKind::ReplicationController,
            _ => return None,
        };
        let names = &mut self.cluster.names;
        let selector = facts::selector(Some(workload.selector?), names).ok()?;
        let name = names.intern(workload.name);
        let owner = OwnerRef { kind, name };
        let selector = match workload.kind {
            "Deployment" => selector.and([of_revision(names.intern(REVISION), revision)]),
            _ => selector,
        };
        self.cluster
            .set_controller(pods.namespace, owner, Some(selector));
        Some(owner)
    }

    /// The same pods of the next revision.
    pub(crate) fn next_revision(&mut self, pods: &Pods) -> Pods {
        let names = &mut self.cluster.names;
        let (key, value) = (names.intern(REVISION), names.intern("new"));
        let mut next = Pods {
            labels: pods.labels.with([(key, value)]),
            ..pods.clone()
        };
        if let Some(owner) = pods.owner
            && let Some(selector) = self.cluster.owners().controller(pods.namespace, owner)
        {
            let name = format!("{}-next", self.cluster.names.text(owner.name));
            let selector = match selector.clone() {
                Selector::AllOf(own) => {
                    let own = own.iter().filter(|own| own.key != key).cloned();
                    Selector::all_of(own.chain([of_revision(key, value)]).collect())
                }
                nothing => nothing,
            };
            let name = self.cluster.names.intern(&name);
            let owner = OwnerRef { name, ..owner };
            self.cluster
                .set_controller(pods.namespace, owner, Some(selector));
            next.owner = Some(owner);
        }
        next
    }

    /// True if so many pods find a node where the scheduler has no default constraints; `false` if it has no hard ones.
    pub(crate) fn fits_without_defaults(
        &mut self,
        before: &[(Pods, i64)],
        pods: &Pods,
        n_pods: i64,
    ) -> bool {
        let Some(plain) = self.without_defaults.take() else {
            return false;
        };
        let usual = std::mem::replace(&mut self.engine, plain);
        let placed = self.place_after(before, &[(pods, n_pods)]);
        let fits = placed.refused.is_none();
        self.without_defaults = Some(std::mem::replace(&mut self.engine, usual));
        fits
    }

    /// Places pods one after the other until one finds no node.
    pub(crate) fn place(&mut self, pods: &Pods, n_pods: i64) -> Placed {
        self.place_beside(&[(pods, n_pods)])
    }

    /// Places these pods, group by group, until one finds no node.
    pub(crate) fn place_beside(&mut self, groups: &[(&Pods, i64)]) -> Placed {
        self.place_after(&[], groups)
    }

    /// As [`place_beside`](Self::place_beside), after as many of the pods `before` as find nodes.
    pub(crate) fn place_after(
        &mut self,
        before: &[(Pods, i64)],
        groups: &[(&Pods, i64)],
    ) -> Placed {
        let mut draft = Draft::new(&mut self.cluster);
        Self::settle(&mut self.engine, &mut draft, before);
        Self::placed(&mut self.engine, &mut draft, groups)
    }

    /// Places as many of these pods as find nodes, in any order of the groups.
    fn settle(engine: &mut Engine, draft: &mut Draft<'_>, groups: &[(Pods, i64)]) {
        let mut left: Vec<(&Pods, i64)> = groups.iter().map(|(pods, n)| (pods, *n)).collect();
        loop {
            let n_left: i64 = left.iter().map(|(_, n)| n).sum();
            for (pods, n) in &mut left {
                while *n > 0 && Self::put(engine, draft, pods).is_ok() {
                    *n -= 1;
                }
            }
            // Those of one group may wait for those of a later one.
            let n_still: i64 = left.iter().map(|(_, n)| n).sum();
            if n_still == 0 || n_still == n_left {
                return;
            }
        }
    }

    /// Places one pod; the pod that waits, and why, if no node takes it.
    fn put(
        engine: &mut Engine,
        draft: &mut Draft<'_>,
        pods: &Pods,
    ) -> Result<NodeIdx, (PodIdx, Rc<Unfit>)> {
        let number = draft.n_changes();
        let pod = draft.add_pod(PodFact {
            uid: format!("lint-{number}").into(),
            name: format!("pod-{number}").into(),
            namespace: pods.namespace,
            labels: pods.labels.clone(),
            owner: pods.owner,
            terminating: false,
            node: None,
            spec: pods.spec.clone(),
            history: PodHistory::default(),
        });
        match engine.decide(draft.deciding(), pod) {
            Decision::Place { node, .. } => {
                draft.bind(pod, node);
                Ok(node)
            }
            Decision::Unfit(unfit) => Err((pod, unfit)),
        }
    }

    /// The name of a running pod of a lower priority, if these pods find nodes once all such pods have gone.
    pub(crate) fn place_of_lower(
        &mut self,
        before: &[(Pods, i64)],
        pods: &Pods,
        n_pods: i64,
        priority: i64,
    ) -> Option<String> {
        let all = self.cluster.pods();
        let is_lower = |pod: PodIdx| i64::from(self.cluster.spec_of(pod).priority) < priority;
        let lower = all.filter(|(pod, row)| row.node.is_some() && is_lower(*pod));
        let lower: Vec<PodIdx> = lower.map(|(pod, _)| pod).collect();
        let first = *lower.first()?;
        let name = self.cluster.pod(first).name.to_string();
        let namespace = self.cluster.class_of(first).key.namespace;
        let name = format!("Pod {}/{name}", self.cluster.names.text(namespace));
        let mut draft = Draft::new(&mut self.cluster);
        lower.into_iter().for_each(|pod| draft.unbind(pod));
        Self::settle(&mut self.engine, &mut draft, before);
        let placed = Self::placed(&mut self.engine, &mut draft, &[(pods, n_pods)]);
        placed.refused.is_none().then_some(name)
    }

    fn placed(engine: &mut Engine, draft: &mut Draft<'_>, groups: &[(&Pods, i64)]) -> Placed {
        let mut placed = Placed {
            nodes: Vec::new(),
            refused: None,
            by: Vec::new(),
        };
        for (pods, n_pods) in groups {
            for _ in 0..*n_pods {
                match Self::put(engine, draft, pods) {
                    Ok(node) => placed.nodes.push(node),
                    Err((pod, unfit)) => {
                        placed.refused = Some(reason(engine, draft.deciding(), pod));
                        placed.by = reasons(&unfit);
                        return placed;
                    }
                }
            }
        }
        placed
    }

    /// How many pods are on nodes with each value of a label, by value; nodes without the label are left out. Every
    /// value of a node is named.
    pub(crate) fn by_value(&self, key: &str, nodes: &[NodeIdx]) -> Vec<(String, i64)> {
        let names = &self.cluster.names;
        let Some(key) = names.get(key) else {
            return Vec::new();
        };
        let mut counts = std::collections::BTreeMap::new();
        let value = |node: NodeIdx| {
            let fact = self.cluster.node(node).fact()?;
            fact.labels
                .get(key)
                .map(|value| names.text(value).to_owned())
        };
        for row in 0..self.cluster.node_rows() {
            if let Some(value) = value(NodeIdx::from(row)) {
                counts.entry(value).or_insert(0);
            }
        }
        for value in nodes.iter().filter_map(|node| value(*node)) {
            *counts.entry(value).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// The nodes of the pods that run already and have these labels.
    pub(crate) fn running(&self, namespace: Symbol, selector: &Selector) -> Vec<NodeIdx> {
        let pods = self.running.get(&namespace).into_iter().flatten();
        let pods = pods.filter(|pod| selector.matches(self.cluster.labels_of(**pod)));
        pods.filter_map(|pod| self.cluster.pod(*pod).node).collect()
    }

    /// True if a node has the labels that these pods ask for.
    pub(crate) fn is_wanted(&self, spec: &PodSpec) -> bool {
        let rows = (0..self.cluster.node_rows()).map(NodeIdx::from);
        let mut nodes = rows.filter_map(|row| self.cluster.node(row).fact());
        let (wanted, names) = (&spec.node_affinity, &self.cluster.names);
        nodes.any(|node| wanted.matches(node.name, &node.labels, names))
    }

    pub(crate) fn symbol(&mut self, text: &str) -> Symbol {
        self.cluster.names.intern(text)
    }
}

fn of_revision(key: Symbol, revision: Symbol) -> Requirement {
    Requirement::is_in(key, vec![revision])
}

/// The reasons of all nodes.
fn reasons(unfit: &Unfit) -> Vec<Reason> {
    match unfit {
        Unfit::NoNodes => Vec::new(),
        Unfit::PreFilter(refusal) => refusal.reasons.to_vec(),
        Unfit::EveryNode(refusals) => {
            let refusals = refusals.counted();
            refusals
                .flat_map(|(refusal, _)| refusal.reasons.to_vec())
                .collect()
        }
    }
}

fn reason(engine: &mut Engine, cluster: &mut Cluster, pod: PodIdx) -> String {
    let explanation = explain(engine, cluster, pod);
    let wire = PodExplanation::of(&explanation, None, cluster);
    let reason = wire.summary.unwrap_or(wire.message);
    reason.trim_end_matches('.').to_owned()
}

impl Pods {
    /// The same pods with only this constraint, which may go to any node.
    pub(crate) fn alone(&self, constraint: &SpreadConstraint) -> Self {
        let spec = PodSpec {
            spread: Box::new([constraint.clone()]),
            scheduler_name: self.spec.scheduler_name,
            ..PodSpec::default()
        };
        Self {
            spec,
            ..self.clone()
        }
    }

    /// The same pods, changed.
    pub(crate) fn with(&self, change: impl FnOnce(&mut PodSpec)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.spec);
        changed
    }

    /// The same pods without what needs room on a node.
    pub(crate) fn without_requests(&self) -> Self {
        self.with(|spec| {
            spec.requests = Resources::default();
            spec.host_ports = Box::default();
        })
    }

    /// The same pods, which tolerate every taint.
    pub(crate) fn on_tainted(&self, nothing: Symbol) -> Self {
        let all = Toleration {
            key: None,
            operator: TolerationOperator::Exists,
            value: nothing,
            effect: None,
        };
        self.with(|spec| spec.tolerations = Box::new([all]))
    }

    /// The same pods, which cordoned nodes take, too.
    pub(crate) fn on_cordoned(&self, unschedulable: Symbol, nothing: Symbol) -> Self {
        let taken = Toleration {
            key: Some(unschedulable),
            operator: TolerationOperator::Exists,
            value: nothing,
            effect: None,
        };
        let own = self.spec.tolerations.iter().cloned();
        self.with(|spec| spec.tolerations = own.chain([taken]).collect())
    }

    /// True if one of their required affinity terms selects these pods. Of namespaces by their labels, any.
    pub(crate) fn is_tied_to(&self, others: &Self) -> bool {
        self.spec.affinity.required.iter().any(|term| {
            let is_there = match term.is_own_namespace() {
                true => self.namespace == others.namespace,
                false => {
                    term.namespaces.contains(&others.namespace)
                        || term.namespace_selector != Selector::Nothing
                }
            };
            is_there && term.selector.matches(&others.labels)
        })
    }

    /// The same pods without what asks for nodes by their labels.
    pub(crate) fn anywhere(&self) -> Self {
        self.with(|spec| spec.node_affinity = NodeAffinity::default())
    }
}
