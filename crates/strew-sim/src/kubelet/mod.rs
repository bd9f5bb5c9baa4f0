//! Simulated kubelets: they start, run and end pods after durations drawn from the seed, and renew their nodes' Leases.
//!
//! Source: spec/controllers §7.1, §7.8, §9.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Container;
use rustc_hash::FxHashMap;
use strew_apiserver::object::pod::{Exit, READY};
use strew_apiserver::object::{Kind, Name, Node, Object, Pairs, Part, Phase, Pod, Truth, moment};
use strew_apiserver::server::{Change, Server, pod_key};
use strew_apiserver::{DeleteOptions, Tables};
use strew_manifest::conditions::node_ready;
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::timing::Timing;

/// The exit code of a container that SIGTERM ended.
const TERMINATED: i32 = 143;

/// The period of Lease renewals. Source: spec/controllers §12.
const RENEWAL: Span = Span::from_secs(10);

/// All kubelets of the cluster.
pub struct Kubelets {
    timing: Timing,
    nodes: BTreeMap<Arc<str>, Kubelet>,
    /// Tasks by time, then by the pod's name, an order that a reader can predict; the uid tells pods of one name apart.
    timers: BTreeSet<(Instant, Name, Arc<str>, Task)>,
    /// The task in progress for each pod, by uid: a pod is started once, and stopped once.
    under_way: FxHashMap<Arc<str>, Task>,
    /// Silent nodes that return, and when each reports.
    returning: BTreeSet<(Instant, Arc<str>)>,
    /// True if a returning node reports at once, not with its next heartbeat.
    is_prompt: bool,
    /// Readiness set by scenarios; the last entry that matches a pod holds.
    readiness: Vec<(Which, bool)>,
}

/// One kubelet.
#[derive(Debug, Clone, Copy)]
struct Kubelet {
    /// When in each period it renews its Lease.
    phase: Span,
    /// Since when it is silent; `None`: it runs.
    lost: Option<Instant>,
}

impl Kubelet {
    /// When it last renewed its Lease, as of `at`.
    fn renewed(self, at: Instant) -> Instant {
        let into_period = at.0.wrapping_sub(self.phase.0) % RENEWAL.0;
        Instant(at.0 - into_period)
    }
}

/// A task for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Start,
    Finish,
    Stop,
    /// Its `activeDeadlineSeconds` are over.
    Expire,
}

/// The pods that a readiness setting applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The pod of this name.
    Named(Name),
    /// Pods with all these labels, future ones included.
    Labelled(Pairs),
}

impl Which {
    fn means(&self, pod: &Pod) -> bool {
        match self {
            Self::Named(name) => pod.meta.name == *name,
            Self::Labelled(pairs) => pairs
                .iter()
                .all(|(key, value)| pod.meta.labels.get(key) == Some(value)),
        }
    }
}

impl Kubelets {
    /// Without any kubelet.
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            nodes: BTreeMap::new(),
            timers: BTreeSet::new(),
            under_way: FxHashMap::default(),
            returning: BTreeSet::new(),
            is_prompt: false,
            readiness: Vec::new(),
        }
    }

    /// When a node's Lease was last renewed.
    pub fn heartbeat(&self, node: &str, now: Instant) -> Option<Instant> {
        let kubelet = self.nodes.get(node)?;
        let until = kubelet.lost.map_or(now, |lost| lost.min(now));
        Some(kubelet.renewed(until))
    }

    /// The nodes with silent kubelets.
    pub fn silent(&self) -> impl Iterator<Item = &Arc<str>> {
        let silent = self
            .nodes
            .iter()
            .filter(|(_, kubelet)| kubelet.lost.is_some());
        silent.map(|(name, _)| name)
    }

    /// True if a node has a kubelet, silent or not.
    pub fn is_known(&self, node: &str) -> bool {
        self.nodes.contains_key(node)
    }

    /// True if a node's kubelet runs.
    pub fn is_alive(&self, node: &str) -> bool {
        self.nodes
            .get(node)
            .is_some_and(|kubelet| kubelet.lost.is_none())
    }

    /// The time of the next task.
    pub fn next_wake(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, ..)| *at);
        let returns = self.returning.first().map(|(at, _)| *at);
        timer.into_iter().chain(returns).min()
    }

    /// Handles a watch event of a node or a pod.
    pub fn observe(&mut self, now: Instant, change: &Change, server: &mut Server, dice: &mut Prng) {
        match &change.new {
            Some(Object::Node(node)) => self.node(now, node, server, dice),
            Some(Object::Pod(pod)) => self.pod(now, pod, dice),
            None if change.is_of(&Kind::Node) => {
                self.nodes.remove(&change.key.name.name);
                self.stay_silent(&change.key.name.name);
            }
            _ => {}
        }
    }

    fn node(&mut self, now: Instant, node: &Node, server: &mut Server, dice: &mut Prng) {
        let name = &node.meta.name.name;
        if self.nodes.contains_key(name) {
            return;
        }
        let phase = Span(dice.between(0, RENEWAL.0 - 1));
        // A node of a dump that is not ready has no working kubelet.
        let is_down = node_ready(&node.status).is_some_and(|status| status != "True");
        let lost = is_down.then_some(now);
        self.nodes.insert(Arc::clone(name), Kubelet { phase, lost });
        if is_down {
            return;
        }
        report_ready(now, node, server);
        // Pods may be there before their node: those of a dump, or of an earlier node of this name.
        let pods: Vec<Arc<Pod>> = server.tables().pods_on(name).cloned().collect();
        for pod in pods {
            self.under_way.remove(&pod.meta.uid);
            self.pod(now, &pod, dice);
        }
    }

    fn pod(&mut self, now: Instant, pod: &Pod, dice: &mut Prng) {
        let Some(node) = pod.node.as_ref().filter(|_| !pod.is_finished()) else {
            return;
        };
        if !self.is_alive(node) {
            return;
        }
        let under_way = self.under_way.get(&pod.meta.uid).copied();
        if let Some(deletion) = pod.meta.deletion {
            if under_way != Some(Task::Stop) {
                let in_grace = self.timing.pod_stop.draw(dice).min(deletion.grace);
                self.plan(now + in_grace, pod, Task::Stop);
            }
        } else if pod.status.phase == Phase::Pending && under_way.is_none() {
            let at = now + self.timing.pod_start.draw(dice);
            self.plan(at, pod, Task::Start);
        } else if pod.status.phase == Phase::Running && under_way.is_none() {
            // The pod was running before the start.
            self.plan_end(now, pod, dice);
        }
    }

    /// Plans the end of a running pod: by itself, or at its deadline.
    fn plan_end(&mut self, now: Instant, pod: &Pod, dice: &mut Prng) {
        let seconds = pod.spec.active_deadline_seconds;
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let started = pod.status.started.unwrap_or(now);
        let expires = seconds.map(|seconds| (started + Span::from_secs(seconds), Task::Expire));
        let finishes =
            ends_by_itself(pod).then(|| (now + self.timing.pod_run.draw(dice), Task::Finish));
        if let Some((at, task)) = finishes.into_iter().chain(expires).min() {
            self.plan(at.max(now), pod, task);
        }
    }

    fn plan(&mut self, at: Instant, pod: &Pod, task: Task) {
        let uid = Arc::clone(&pod.meta.uid);
        self.timers
            .insert((at, pod.meta.name.clone(), Arc::clone(&uid), task));
        self.under_way.insert(uid, task);
    }

    /// Does one task that is due. Returns false if there is none.
    pub fn step(&mut self, now: Instant, server: &mut Server, dice: &mut Prng) -> bool {
        if self.returning.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, node)) = self.returning.pop_first() {
                self.return_node(now, &node, server, dice);
            }
            return true;
        }
        match self.timers.first() {
            Some((at, ..)) if *at <= now => {}
            _ => return false,
        }
        let Some((_, name, uid, task)) = self.timers.pop_first() else {
            return false;
        };
        let Some(pod) = server.tables().get::<Pod>(&name).cloned() else {
            return true;
        };
        let is_ours =
            pod.meta.uid == uid && pod.node.as_ref().is_some_and(|node| self.is_alive(node));
        if !is_ours || pod.is_finished() {
            return true;
        }
        match task {
            Task::Start if pod.status.phase == Phase::Pending && !pod.meta.is_terminating() => {
                self.start(now, &pod, server, dice);
            }
            Task::Finish if pod.status.phase == Phase::Running && !pod.meta.is_terminating() => {
                finish(now, &pod, Phase::Succeeded, server);
            }
            Task::Expire if pod.status.phase == Phase::Running && !pod.meta.is_terminating() => {
                expire(now, &pod, server);
            }
            Task::Stop => {
                self.under_way.remove(&pod.meta.uid);
                stop(now, &pod, server);
            }
            Task::Start | Task::Finish | Task::Expire => {}
        }
        true
    }

    fn start(&mut self, now: Instant, pod: &Pod, server: &mut Server, dice: &mut Prng) {
        let mut pod = pod.clone();
        pod.status.phase = Phase::Running;
        pod.status.started = Some(moment::whole_seconds(now));
        let is_ready = self.wants_ready(&pod);
        set_ready(now, &mut pod, is_ready);
        self.plan_end(now, &pod, dice);
        write_status(pod, server);
    }

    /// The last setting that matches the pod; else true once every readiness gate is open.
    fn wants_ready(&self, pod: &Pod) -> bool {
        let mut words = self.readiness.iter().rev();
        let word = words.find(|(which, _)| which.means(pod));
        word.map_or_else(|| has_open_gates(pod), |(_, ready)| *ready)
    }

    /// Makes these pods ready, or not ready, from now on.
    pub fn set_readiness(&mut self, now: Instant, which: Which, ready: bool, server: &mut Server) {
        self.readiness.push((which.clone(), ready));
        let meant: Vec<Arc<Pod>> = running(server.tables())
            .filter(|pod| which.means(pod) && pod.node.as_ref().is_some_and(|n| self.is_alive(n)))
            .cloned()
            .collect();
        for pod in meant {
            let mut pod = Pod::clone(&pod);
            if set_ready(now, &mut pod, ready) {
                write_status(pod, server);
            }
        }
    }

    /// Stops a node's kubelet.
    pub fn lose(&mut self, now: Instant, node: &str) {
        if let Some(kubelet) = self.nodes.get_mut(node) {
            kubelet.lost.get_or_insert(now);
        }
        self.stay_silent(node);
    }

    fn stay_silent(&mut self, node: &str) {
        self.returning.retain(|(_, returning)| **returning != *node);
    }

    /// Starts a silent node's kubelet: it reports with its next heartbeat. Nodes that return at the same time report at
    /// different moments.
    ///
    /// Source: spec/controllers §7.1, §12: a kubelet checks its node's status every ten seconds, as often as it renews
    /// its Lease.
    pub fn restore(&mut self, now: Instant, node: &str) {
        let Some((name, kubelet)) = self.nodes.get_key_value(node) else {
            return;
        };
        if kubelet.lost.is_none() || self.returning.iter().any(|(_, known)| known == name) {
            return;
        }
        let at = match self.is_prompt {
            true => now,
            false => kubelet.renewed(now) + RENEWAL,
        };
        self.returning.insert((at, Arc::clone(name)));
    }

    /// From now on a node that returns reports at once.
    pub(crate) fn report_at_once(&mut self) {
        self.is_prompt = true;
    }

    /// A returning kubelet reports its node and pods, and does the tasks that it missed.
    fn return_node(&mut self, now: Instant, node: &str, server: &mut Server, dice: &mut Prng) {
        let Some(kubelet) = self.nodes.get_mut(node) else {
            return;
        };
        if kubelet.lost.take().is_none() {
            return;
        }
        if let Some(node) = server.tables().get::<Node>(&Name::new("", node)).cloned() {
            report_ready(now, &node, server);
        }
        let pods: Vec<Arc<Pod>> = server.tables().pods_on(node).cloned().collect();
        for pod in pods {
            self.under_way.remove(&pod.meta.uid);
            self.pod(now, &pod, dice);
            if pod.status.phase == Phase::Running && !pod.meta.is_terminating() {
                let mut pod = Pod::clone(&pod);
                let is_ready = self.wants_ready(&pod);
                if set_ready(now, &mut pod, is_ready) {
                    write_status(pod, server);
                }
            }
        }
    }
}

fn running(tables: &Tables) -> impl Iterator<Item = &Arc<Pod>> {
    let pods = tables.of::<Pod>().iter();
    pods.filter(|pod| pod.status.phase == Phase::Running)
}

/// A gate is closed until its owner opens it.
fn has_open_gates(pod: &Pod) -> bool {
    let mut gates = pod.spec.readiness_gates.iter().flatten();
    gates.all(|gate| {
        let condition = pod.status.condition(&gate.condition_type);
        condition.is_some_and(|condition| condition.status == Truth::True)
    })
}

fn ends_by_itself(pod: &Pod) -> bool {
    matches!(
        pod.spec.restart_policy.as_deref(),
        Some("Never" | "OnFailure")
    )
}

fn set_ready(now: Instant, pod: &mut Pod, ready: bool) -> bool {
    let (status, reason) = match ready {
        true => (Truth::True, ""),
        false => (Truth::False, "ReadinessGatesNotReady"),
    };
    pod.status.set_condition(READY, status, reason, "", now)
}

/// Ends the pod's containers.
fn finish(now: Instant, pod: &Pod, phase: Phase, server: &mut Server) {
    let mut pod = pod.clone();
    pod.status.phase = phase;
    let code = if phase == Phase::Succeeded {
        0
    } else {
        TERMINATED
    };
    let at = moment::whole_seconds(now);
    let exit = |container: &Container| Exit {
        container: container.name.as_str().into(),
        code,
        at,
        is_init: false,
    };
    pod.status.exits = pod.spec.containers.iter().map(exit).collect();
    pod.status
        .set_condition(READY, Truth::False, "PodCompleted", "", now);
    write_status(pod, server);
}

/// A pod was active for longer than it may be: its containers are ended.
///
/// Source: `pkg/kubelet/active_deadline.go`.
fn expire(now: Instant, pod: &Pod, server: &mut Server) {
    let mut pod = pod.clone();
    pod.status.reason = Some("DeadlineExceeded".into());
    let message = "Pod was active on the node longer than the specified deadline";
    pod.status.message = Some(message.into());
    finish(now, &pod, Phase::Failed, server);
}

/// The containers of a deleted pod have stopped: removes the pod, unless finalizers hold it.
fn stop(now: Instant, pod: &Pod, server: &mut Server) {
    if !pod.meta.finalizers.is_empty() {
        return finish(now, pod, Phase::Failed, server);
    }
    let options = DeleteOptions {
        grace: Some(Span::default()),
        ..DeleteOptions::of_uid(&pod.meta.uid)
    };
    // The pod may be gone already.
    let _ = server.delete(now, &pod_key(&pod.meta.name), &options);
}

fn write_status(mut pod: Pod, server: &mut Server) {
    // Kubelets patch: they need not have seen the last version.
    pod.meta.version = 0;
    // The pod may be gone already.
    let _ = server.update(Part::Status, Object::from(pod));
}

/// The kubelet reports that its node is ready.
fn report_ready(now: Instant, node: &Node, server: &mut Server) {
    use k8s_openapi::api::core::v1::NodeCondition;
    if node_ready(&node.status) == Some("True") {
        return;
    }
    let mut node = node.clone();
    let conditions = node.status.conditions.get_or_insert_default();
    let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    conditions.retain(|c| c.type_ != READY && !pressures.contains(&c.type_.as_str()));
    let mut post = |kind: &str, status: &str, reason: &str, message: &str| {
        conditions.push(NodeCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(moment::to_wire(now)),
            last_transition_time: Some(moment::to_wire(now)),
        });
    };
    post(
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    );
    post(
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    );
    post(
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    );
    post(
        READY,
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    );
    node.meta.version = 0;
    // The node may be gone already.
    let _ = server.update(Part::Status, Object::from(node));
}
