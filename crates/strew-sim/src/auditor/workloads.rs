//! Judges workloads at rest, recounted from the pods that they own.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_apiserver::Tables;
use strew_apiserver::object::{
    DaemonSet, Deployment, Job, Meta, Node, Phase, Pod, ReplicaSet, ReplicationController,
    StatefulSet, Stored,
};
use strew_apiserver::workloads::DaemonTemplate;
use strew_apiserver::workloads::NodeView;

use super::rest::Resting;
use super::{Rule, Witness, quotas};

/// The pods of each controller, by its uid.
type Owned<'a> = BTreeMap<Arc<str>, Vec<&'a Arc<Pod>>>;

/// Every workload has the pods that it asks for, or its pods wait for a node; its status says so.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    let tables = world.server.tables();
    let mut owned = Owned::new();
    for pod in tables.of::<Pod>().iter() {
        if let Some(owner) = pod.meta.controller() {
            owned.entry(Arc::clone(&owner.uid)).or_default().push(pod);
        }
    }
    let mut cx = Workloads {
        world,
        tables,
        owned,
        witness,
    };
    each::<ReplicaSet>(tables, |set| {
        let (spec, status) = (&set.spec, &set.status);
        cx.replicas(Replicas {
            kind: "ReplicaSet",
            meta: &set.meta,
            wanted: spec.replicas,
            template: spec.template.as_ref(),
            there: status.replicas,
            ready: status.ready_replicas,
            available: status.available_replicas,
            generation: status.observed_generation,
        });
    });
    each::<ReplicationController>(tables, |controller| {
        let (spec, status) = (&controller.spec, &controller.status);
        cx.replicas(Replicas {
            kind: "ReplicationController",
            meta: &controller.meta,
            wanted: spec.replicas,
            template: spec.template.as_ref(),
            there: status.replicas,
            ready: status.ready_replicas,
            available: status.available_replicas,
            generation: status.observed_generation,
        });
    });
    each::<Deployment>(tables, |deployment| cx.deployment(deployment));
    each::<StatefulSet>(tables, |set| cx.stateful_set(set));
    each::<DaemonSet>(tables, |set| cx.daemon_set(set));
    each::<Job>(tables, |job| cx.job(job));
}

fn each<T: Stored>(tables: &Tables, mut judge: impl FnMut(&T)) {
    let alive = tables
        .of::<T>()
        .iter()
        .filter(|o| !o.meta().is_terminating());
    alive.for_each(|object| judge(object));
}

struct Workloads<'a, 'w> {
    world: Resting<'a>,
    tables: &'a Tables,
    owned: Owned<'a>,
    witness: &'w mut Witness,
}

/// A workload with a number of replicas, and its status.
#[derive(Clone, Copy)]
struct Replicas<'a> {
    kind: &'static str,
    meta: &'a Meta,
    wanted: Option<i32>,
    template: Option<&'a PodTemplateSpec>,
    there: i32,
    ready: Option<i32>,
    available: Option<i32>,
    generation: Option<i64>,
}

fn count<'a>(pods: &[&'a Arc<Pod>], which: impl Fn(&&&'a Arc<Pod>) -> bool) -> i64 {
    pods.iter().filter(which).count() as i64
}

fn is_ready(pod: &Pod) -> bool {
    pod.is_active() && pod.is_ready()
}

impl<'a> Workloads<'a, '_> {
    fn pods(&self, meta: &Meta) -> Vec<&'a Arc<Pod>> {
        self.owned.get(&meta.uid).cloned().unwrap_or_default()
    }

    fn blame(&mut self, rule: Rule, kind: &str, meta: &Meta, text: String) {
        let actor = format!("{kind} {}", meta.name);
        self.witness.blame(rule, actor, text);
    }

    /// Compares figures of a status with a recount; each has a name.
    fn compare(&mut self, kind: &str, meta: &Meta, figures: &[(&str, i64, i64)]) {
        let wrong = figures.iter().filter(|(_, found, wanted)| found != wanted);
        let texts: Vec<String> = wrong
            .map(|(name, found, wanted)| format!("{name} is {found}, recounted {wanted}"))
            .collect();
        if !texts.is_empty() {
            self.blame(Rule::Status, kind, meta, texts.join("; "));
        }
    }

    /// True if a quota forbids one more pod of a template.
    fn is_refused(&self, template: Option<&PodTemplateSpec>) -> bool {
        template.is_some_and(|template| quotas::refuse(self.world, template))
    }

    fn replicas(&mut self, of: Replicas<'_>) {
        let Replicas { kind, meta, .. } = of;
        let pods = self.pods(meta);
        let wanted = i64::from(of.wanted.unwrap_or(1));
        let n_active = count(&pods, |p| p.is_active());
        let n_ready = count(&pods, |p| is_ready(p));
        let is_short = n_active < wanted && self.is_refused(of.template);
        if n_active != wanted && !is_short {
            let text = format!("{n_active} pods of {wanted}");
            self.blame(Rule::Replicas, kind, meta, text);
        }
        let said = |n: Option<i32>| i64::from(n.unwrap_or(0));
        let figures = [
            ("replicas", i64::from(of.there), n_active),
            ("readyReplicas", said(of.ready), n_ready),
            ("availableReplicas", said(of.available), n_ready),
            (
                "observedGeneration",
                of.generation.unwrap_or(0),
                meta.generation,
            ),
        ];
        self.compare(kind, meta, &figures);
    }

    fn deployment(&mut self, deployment: &Deployment) {
        let meta = &deployment.meta;
        let sets: Vec<&Arc<ReplicaSet>> = self
            .tables
            .of::<ReplicaSet>()
            .iter()
            .filter(|set| set.meta.controller().is_some_and(|o| o.uid == meta.uid))
            .collect();
        let pods: Vec<&Arc<Pod>> = sets.iter().flat_map(|set| self.pods(&set.meta)).collect();
        let n_active = count(&pods, |p| p.is_active());
        let n_ready = count(&pods, |p| is_ready(p));
        let size: i64 = sets
            .iter()
            .map(|s| i64::from(s.spec.replicas.unwrap_or(1)))
            .sum();
        let status = &deployment.status;
        let said = |n: Option<i32>| i64::from(n.unwrap_or(0));
        let figures = [
            ("replicas", said(status.replicas), n_active),
            ("readyReplicas", said(status.ready_replicas), n_ready),
            (
                "availableReplicas",
                said(status.available_replicas),
                n_ready,
            ),
            (
                "unavailableReplicas",
                said(status.unavailable_replicas),
                (size - n_ready).max(0),
            ),
            (
                "observedGeneration",
                status.observed_generation.unwrap_or(0),
                meta.generation,
            ),
        ];
        self.compare("Deployment", meta, &figures);
        self.sizes(deployment, &sets, size, n_active == n_ready);
    }

    /// A rollout is over unless some of its pods wait, and it stays within its limits.
    ///
    /// The upper limit can stay exceeded: a controller whose watch is late scales the new set up before it sees another
    /// set that it has just made. While the new set's pods are not ready, Kubernetes deletes no old pod in exchange
    /// (`reconcileOldReplicaSets`: all pods, less those that must be available, less the new pods that are not
    /// available).
    fn sizes(
        &mut self,
        deployment: &Deployment,
        sets: &[&Arc<ReplicaSet>],
        size: i64,
        all_ready: bool,
    ) {
        let wanted = i64::from(deployment.spec.replicas.unwrap_or(1));
        let is_paused = deployment.spec.paused == Some(true);
        if is_paused && sets.is_empty() {
            return;
        }
        let (surge, missing) = limits(deployment, wanted);
        let newest = sets.iter().max_by_key(|set| revision(&set.meta));
        let of_newest = newest.map_or(0, |set| i64::from(set.spec.replicas.unwrap_or(1)));
        let ready = newest.map_or(0, |set| count(&self.pods(&set.meta), |p| is_ready(p)));
        let may_shrink = size - (wanted - missing) - (of_newest - ready) > 0;
        if size > wanted + surge && may_shrink || size < wanted - missing {
            let text = format!("{size} pods are asked for, of {wanted} +{surge} -{missing}");
            self.blame(Rule::Replicas, "Deployment", &deployment.meta, text);
        }
        let waits = self.tables.of::<Pod>().iter().any(|pod| {
            pod.meta.is_terminating()
                && sets
                    .iter()
                    .any(|s| pod.meta.controller().is_some_and(|o| o.uid == s.meta.uid))
        });
        let is_refused = self.is_refused(Some(&deployment.spec.template));
        if is_paused || !all_ready || waits || is_refused {
            return;
        }
        if of_newest != wanted || size != wanted {
            let text = format!(
                "all are ready, yet the newest set has {of_newest} of {size}, wanted {wanted}"
            );
            self.blame(Rule::Replicas, "Deployment", &deployment.meta, text);
        }
        let image = |spec: Option<&k8s_openapi::api::core::v1::PodSpec>| {
            let containers = spec.map(|spec| spec.containers.iter().map(|c| c.image.clone()));
            containers.map(Iterator::collect::<Vec<_>>)
        };
        let own = image(deployment.spec.template.spec.as_ref());
        let newest_has = newest
            .and_then(|set| set.spec.template.as_ref())
            .map(|template| image(template.spec.as_ref()));
        if newest_has != Some(own) {
            let text = "the newest set has another image".to_owned();
            self.blame(Rule::Replicas, "Deployment", &deployment.meta, text);
        }
    }

    fn stateful_set(&mut self, set: &StatefulSet) {
        let pods = self.pods(&set.meta);
        let wanted = i64::from(set.spec.replicas.unwrap_or(1));
        let in_order = set.spec.pod_management_policy.as_deref() != Some("Parallel");
        let is_refused = self.is_refused(Some(&set.spec.template));
        let ordinal =
            |pod: &Pod| -> Option<i64> { pod.meta.name.name.rsplit_once('-')?.1.parse().ok() };
        for i in 0..wanted {
            let pod = pods.iter().find(|pod| ordinal(pod) == Some(i));
            if pod.is_none() && !is_refused {
                let text = format!("pod {i} of {wanted} is not there");
                self.blame(Rule::Replicas, "StatefulSet", &set.meta, text);
            }
            if in_order && pod.is_none_or(|pod| !is_ready(pod)) {
                // Later pods wait for it, and nothing is scaled down meanwhile.
                return;
            }
        }
        if pods.iter().any(|pod| pod.meta.is_terminating()) {
            return;
        }
        let n_ready = count(&pods, |p| is_ready(p));
        let n_there = pods.len() as i64;
        if n_there > wanted && n_ready == n_there {
            let text = format!("{n_there} pods of {wanted}");
            self.blame(Rule::Replicas, "StatefulSet", &set.meta, text);
        }
        let status = &set.status;
        let said = |n: Option<i32>| i64::from(n.unwrap_or(0));
        let figures = [
            ("replicas", i64::from(status.replicas), n_there),
            ("readyReplicas", said(status.ready_replicas), n_ready),
            (
                "observedGeneration",
                status.observed_generation.unwrap_or(0),
                set.meta.generation,
            ),
        ];
        self.compare("StatefulSet", &set.meta, &figures);
        let rolls = set
            .spec
            .update_strategy
            .as_ref()
            .is_none_or(|s| s.type_.as_deref() != Some("OnDelete"));
        let newest = status.update_revision.as_deref();
        // Pods beyond the wanted ones may wait for each other to be ready before they go (spec/controllers §3.2).
        let is_old = |pod: &&Arc<Pod>| {
            ordinal(pod).is_some_and(|i| i < wanted)
                && pod.meta.label("controller-revision-hash") != newest
        };
        if rolls && n_ready == wanted && pods.iter().any(is_old) {
            let text = "all are ready, yet some are of an old revision".to_owned();
            self.blame(Rule::Replicas, "StatefulSet", &set.meta, text);
        }
    }

    fn daemon_set(&mut self, set: &DaemonSet) {
        let pods = self.pods(&set.meta);
        let mut template = DaemonTemplate::new(&set.spec.template);
        let is_refused = self.is_refused(Some(&set.spec.template));
        let (mut n_wanted, mut n_current, mut n_ready) = (0, 0, 0);
        for node in self.tables.of::<Node>().iter() {
            let name = &node.meta.name.name;
            let fit = template.fit(NodeView {
                name,
                labels: Some(&node.meta.labels),
                taints: node.spec.taints.as_deref().unwrap_or_default(),
            });
            let here = |pod: &Pod| pod.is_active() && at(pod) == Some(name);
            let n_here = count(&pods, |p| here(p));
            n_wanted += i64::from(fit.should_run);
            n_current += i64::from(fit.should_run && n_here > 0);
            n_ready += i64::from(fit.should_run && count(&pods, |p| here(p) && p.is_ready()) > 0);
            if !self.world.kubelets.is_alive(name) {
                continue;
            }
            let text = match (fit.should_run, fit.should_continue, n_here) {
                (true, _, 1) | (false, true, 0 | 1) | (false, false, 0) => continue,
                (true, _, 0) if is_refused => continue,
                _ => format!("{n_here} pods on {name}, {fit:?}"),
            };
            self.blame(Rule::Replicas, "DaemonSet", &set.meta, text);
        }
        if self.world.kubelets.silent().next().is_some() {
            return;
        }
        let status = &set.status;
        let figures = [
            (
                "desiredNumberScheduled",
                i64::from(status.desired_number_scheduled),
                n_wanted,
            ),
            (
                "currentNumberScheduled",
                i64::from(status.current_number_scheduled),
                n_current,
            ),
            ("numberReady", i64::from(status.number_ready), n_ready),
            (
                "observedGeneration",
                status.observed_generation.unwrap_or(0),
                set.meta.generation,
            ),
        ];
        self.compare("DaemonSet", &set.meta, &figures);
    }

    fn job(&mut self, job: &Job) {
        let pods = self.pods(&job.meta);
        let n_active = count(&pods, |p| p.is_active());
        let said = job.status.active.unwrap_or(0);
        self.compare("Job", &job.meta, &[("active", i64::from(said), n_active)]);
        let mut conditions = job.status.conditions.iter().flatten();
        let is_over = conditions
            .any(|c| c.status == "True" && matches!(c.type_.as_str(), "Complete" | "Failed"));
        let is_suspended = job.spec.suspend == Some(true);
        // A pod on a silent node neither ends nor is replaced, if it is not evicted (spec/controllers §7.4).
        let is_on_silent = |p: &Pod| {
            let node = p.node.as_deref();
            node.is_some_and(|node| !self.world.kubelets.is_alive(node))
        };
        let some_wait = count(&pods, |p| {
            p.status.phase == Phase::Pending || p.meta.is_terminating() || is_on_silent(p)
        }) > 0;
        let is_refused = self.is_refused(Some(&job.spec.template));
        if !is_over && !is_suspended && !some_wait && !is_refused {
            let text = format!("is not over, and no pod of it waits: {:?}", job.status);
            self.blame(Rule::Replicas, "Job", &job.meta, text);
        }
        if is_over && n_active > 0 {
            let text = format!("is over, and {n_active} pods are active");
            self.blame(Rule::Replicas, "Job", &job.meta, text);
        }
        let is_held = |pod: &&&Arc<Pod>| pod.is_finished() && !pod.meta.finalizers.is_empty();
        if count(&pods, is_held) > 0 {
            let text = "a pod that has finished is not counted".to_owned();
            self.blame(Rule::Status, "Job", &job.meta, text);
        }
    }
}

fn revision(meta: &Meta) -> i64 {
    let text = meta.annotations.get("deployment.kubernetes.io/revision");
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// maxSurge rounded up and maxUnavailable rounded down; at least one of them is not 0.
fn limits(deployment: &Deployment, wanted: i64) -> (i64, i64) {
    let strategy = deployment.spec.strategy.as_ref();
    let Some(rolling) = strategy.and_then(|s| s.rolling_update.as_ref()) else {
        return (0, wanted);
    };
    let share = |share: Option<&IntOrString>, up: i64| match share {
        Some(IntOrString::Int(number)) => i64::from(*number),
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (percent * wanted + up) / 100
        }
        None => (25 * wanted + up) / 100,
    };
    let surge = share(rolling.max_surge.as_ref(), 99);
    let missing = share(rolling.max_unavailable.as_ref(), 0);
    match (surge, missing) {
        (0, 0) => (0, 1),
        limits => limits,
    }
}

/// The node of a daemon pod: the one it is on, or must go to.
fn at(pod: &Pod) -> Option<&str> {
    if let Some(node) = &pod.node {
        return Some(node);
    }
    let affinity = pod.spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let fields = required
        .node_selector_terms
        .first()?
        .match_fields
        .as_ref()?;
    fields.first()?.values.as_ref()?.first().map(String::as_str)
}
