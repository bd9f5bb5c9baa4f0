//! Pods in a compact form: a hundred thousand of them share their specs.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use serde_json::Value;
use strew_cluster::scale_down::{DELETION_COST, Life, Progress, cost_of};
use strew_manifest::json::Json;
use strew_model::time::Instant;

use super::meta::Meta;
use super::moment;

/// A pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    /// Metadata.
    pub meta: Meta,
    /// The spec, without `nodeName`; shared by the pods of a template.
    pub spec: Arc<core::PodSpec>,
    /// `spec.nodeName`.
    pub node: Option<Arc<str>>,
    /// Its status.
    pub status: PodStatus,
}

/// A pod's status. Fields that components of the simulation read or write are separate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PodStatus {
    /// `phase`
    pub phase: Phase,
    /// In the order of their first appearance.
    pub conditions: Vec<Condition>,
    /// `nominatedNodeName`
    pub nominated: Option<Arc<str>>,
    /// `startTime`
    pub started: Option<Instant>,
    /// The most restarts of one of its containers.
    pub restarts: u32,
    /// The most restarts of one of its sidecars: init containers that are restarted.
    pub sidecar_restarts: u32,
    /// `reason`
    pub reason: Option<Arc<str>>,
    /// `message`
    pub message: Option<Arc<str>>,
    /// How its containers ended; empty before; init containers last.
    pub exits: Arc<[Exit]>,
    /// Other fields that a request wrote; `None` if there are none. Loaded pods have those of a resize under way alone, so
    /// that a hundred thousand of a dump stay small.
    rest: Option<Arc<core::PodStatus>>,
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its name.
    pub container: Arc<str>,
    /// `exitCode`
    pub code: i32,
    /// `finishedAt`, in whole seconds.
    pub at: Instant,
    /// True for an init container.
    pub is_init: bool,
}

/// A pod's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[allow(missing_docs, reason = "each is the phase of its name")]
pub enum Phase {
    #[default]
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Unknown => "Unknown",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// The phase of this name; Pending for an unknown name.
    pub fn of(name: &str) -> Self {
        match name {
            "Unknown" => Self::Unknown,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Pending,
        }
    }

    /// True for Succeeded and Failed.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A condition of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `type`
    pub kind: Arc<str>,
    /// `reason`; empty if there is none.
    pub status: Truth,
    /// `reason`; empty: none.
    pub reason: Arc<str>,
    /// `message`; empty if there is none.
    pub message: Arc<str>,
    /// `lastTransitionTime`, in whole seconds.
    pub since: Instant,
    /// `lastProbeTime`, in whole seconds.
    pub probed: Option<Instant>,
    /// `observedGeneration`
    pub generation: Option<i64>,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "each is the status of its name")]
pub enum Truth {
    True,
    False,
    #[default]
    Unknown,
}

impl Truth {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status of this name.
    pub fn of(name: &str) -> Self {
        match name {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(is_true: bool) -> Self {
        if is_true { Self::True } else { Self::False }
    }
}

pub use strew_manifest::conditions::READY;
/// `PodScheduled`
pub const POD_SCHEDULED: &str = "PodScheduled";
/// `DisruptionTarget`
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

impl Pod {
    /// True if it has not finished and is not being deleted.
    pub fn is_active(&self) -> bool {
        !self.is_finished() && !self.meta.is_terminating()
    }

    /// True if it is being deleted and has not finished.
    pub fn is_terminating(&self) -> bool {
        !self.is_finished() && self.meta.is_terminating()
    }

    /// True if its phase is Succeeded or Failed.
    pub fn is_finished(&self) -> bool {
        self.status.phase.is_finished()
    }

    /// True if the condition Ready is True, in any phase.
    pub fn is_ready(&self) -> bool {
        self.ready_since().is_some()
    }

    /// Since when the condition Ready has been True; `None` if it is not.
    pub fn ready_since(&self) -> Option<Instant> {
        let ready = self.status.condition(READY)?;
        (ready.status == Truth::True).then_some(ready.since)
    }

    /// What decides whether a scale-down deletes it, beside its node.
    pub fn life(&self) -> Life {
        Life {
            created: self.meta.created,
            progress: match self.status.phase {
                Phase::Pending => Progress::Pending,
                Phase::Unknown => Progress::Unknown,
                Phase::Running | Phase::Succeeded | Phase::Failed => Progress::Running,
            },
            ready_since: self.ready_since(),
            cost: cost_of(self.meta.annotation(DELETION_COST)),
            restarts: (self.status.restarts, self.status.sidecar_restarts),
        }
    }

    /// Reads a pod of the wire.
    pub fn of_wire(wire: core::Pod) -> Self {
        let mut spec = wire.spec.unwrap_or_default();
        let node = spec.node_name.take().filter(|n| !n.is_empty());
        let wire_status = wire.status.unwrap_or_default();
        let sidecar_restarts = sidecar_restarts(&spec, &wire_status);
        let rest = resized(&spec, &wire_status).map(Arc::new);
        Self {
            meta: Meta::of_wire(wire.metadata, true),
            spec: Arc::new(spec),
            node: node.map(Into::into),
            status: PodStatus {
                sidecar_restarts,
                rest,
                ..PodStatus::of_wire(wire_status)
            },
        }
    }

    /// The pod in its wire form.
    pub fn to_wire(&self) -> core::Pod {
        core::Pod {
            metadata: self.meta.to_wire(),
            spec: Some(core::PodSpec {
                node_name: self.node.as_deref().map(str::to_owned),
                ..core::PodSpec::clone(&self.spec)
            }),
            status: Some(self.status.to_wire()),
        }
    }
}

impl Pod {
    /// The status as JSON.
    pub(crate) fn status_to_json(&self) -> Value {
        self.status.to_wire().to_json()
    }

    /// This pod with another status, given as JSON. Fields that are equal in JSON keep their stored values, which are
    /// more precise than the wire's.
    pub(crate) fn with_status(&self, status: Value) -> serde_json::Result<Self> {
        let before = self.status_to_json();
        let is_same = |field: &str| before.get(field) == status.get(field);
        let keeps_containers = is_same("containerStatuses") && is_same("initContainerStatuses");
        let keeps_start = is_same("startTime");
        let wire = core::PodStatus::of_json(status)?;
        let mut new = PodStatus {
            sidecar_restarts: sidecar_restarts(&self.spec, &wire),
            ..PodStatus::of_request(wire)
        };
        if keeps_containers {
            new.restarts = self.status.restarts;
            new.sidecar_restarts = self.status.sidecar_restarts;
            new.exits = Arc::clone(&self.status.exits);
        }
        if keeps_start {
            new.started = self.status.started;
        }
        Ok(Self {
            status: new,
            ..self.clone()
        })
    }
}

fn sidecar_restarts(spec: &core::PodSpec, status: &core::PodStatus) -> u32 {
    let is_sidecar = |name: &str| {
        let mut containers = spec.init_containers.iter().flatten();
        containers.any(|c| c.name == name && c.restart_policy.as_deref() == Some("Always"))
    };
    let statuses = status.init_container_statuses.iter().flatten();
    let restarts = statuses.filter(|s| is_sidecar(&s.name));
    let most = restarts.map(|s| s.restart_count).max().unwrap_or(0);
    u32::try_from(most).unwrap_or(0)
}

/// The statuses of containers that have, or have been allocated, other amounts than their spec asks for: they are resized
/// in place, and the pod counts on its node with these (spec/scheduler §3.8). `None` if there is none.
fn resized(spec: &core::PodSpec, status: &core::PodStatus) -> Option<core::PodStatus> {
    let of = |containers: &[core::Container], statuses: Option<&Vec<core::ContainerStatus>>| {
        let statuses = statuses.into_iter().flatten().filter(|status| {
            let mut own = containers.iter().filter(|c| c.name == status.name);
            let asked = own.next().and_then(|c| c.resources.as_ref());
            let asked = asked.and_then(|resources| resources.requests.as_ref());
            let in_force = status.resources.as_ref().and_then(|r| r.requests.as_ref());
            let allocated = status.allocated_resources.as_ref();
            in_force.is_some()
                && [in_force, allocated]
                    .into_iter()
                    .flatten()
                    .any(|amounts| Some(amounts) != asked)
        });
        let statuses = statuses.map(|status| core::ContainerStatus {
            name: status.name.clone(),
            resources: status.resources.clone(),
            allocated_resources: status.allocated_resources.clone(),
            ..core::ContainerStatus::default()
        });
        let statuses: Vec<_> = statuses.collect();
        (!statuses.is_empty()).then_some(statuses)
    };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let resized = core::PodStatus {
        container_statuses: of(&spec.containers, status.container_statuses.as_ref()),
        init_container_statuses: of(init, status.init_container_statuses.as_ref()),
        ..core::PodStatus::default()
    };
    (resized != core::PodStatus::default()).then(|| core::PodStatus {
        conditions: resize_pending(status),
        ..resized
    })
}

/// The condition that says whether the kubelet defers a resize, or cannot make it.
fn resize_pending(status: &core::PodStatus) -> Option<Vec<core::PodCondition>> {
    let mut all = status.conditions.iter().flatten();
    let found = all.find(|condition| condition.type_ == "PodResizePending")?;
    Some(vec![found.clone()])
}

impl PodStatus {
    /// What its containers have, if one has other amounts than its spec asks for, or may have.
    pub(super) fn resized(&self) -> Option<&core::PodStatus> {
        let has_amounts = |statuses: &Option<Vec<core::ContainerStatus>>| {
            let mut statuses = statuses.iter().flatten();
            statuses.any(|status| status.resources.is_some())
        };
        let rest = self.rest.as_deref();
        rest.filter(|rest| {
            has_amounts(&rest.container_statuses) || has_amounts(&rest.init_container_statuses)
        })
    }

    /// The condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|c| &*c.kind == kind)
    }

    /// Sets a condition; its transition time changes only with its status. Returns false if nothing changed.
    pub fn set_condition(
        &mut self,
        kind: &str,
        status: Truth,
        reason: &str,
        message: &str,
        now: Instant,
    ) -> bool {
        let since = moment::whole_seconds(now);
        let Some(old) = self.conditions.iter_mut().find(|c| &*c.kind == kind) else {
            self.conditions.push(Condition {
                kind: kind.into(),
                status,
                reason: reason.into(),
                message: message.into(),
                since,
                probed: None,
                generation: None,
            });
            return true;
        };
        if old.status == status && &*old.reason == reason && &*old.message == message {
            return false;
        }
        if old.status != status {
            old.since = since;
        }
        old.status = status;
        old.reason = reason.into();
        old.message = message.into();
        true
    }

    fn of_wire(wire: core::PodStatus) -> Self {
        let conditions = wire.conditions.into_iter().flatten();
        let statuses = wire.container_statuses.iter().flatten();
        let restarts = statuses.map(|s| s.restart_count).max().unwrap_or(0);
        let ended = |statuses: Option<&Vec<core::ContainerStatus>>, is_init| {
            let statuses = statuses.into_iter().flatten();
            let exits = statuses.filter_map(move |status| Exit::of_wire(status, is_init));
            exits.collect::<Vec<_>>()
        };
        let mut exits = ended(wire.container_statuses.as_ref(), false);
        exits.extend(ended(wire.init_container_statuses.as_ref(), true));
        Self {
            phase: Phase::of(wire.phase.as_deref().unwrap_or_default()),
            conditions: conditions.map(Condition::of_wire).collect(),
            nominated: wire
                .nominated_node_name
                .filter(|n| !n.is_empty())
                .map(Into::into),
            started: moment::of_wire(wire.start_time.as_ref()),
            restarts: u32::try_from(restarts).unwrap_or(0),
            sidecar_restarts: 0,
            reason: wire.reason.map(Into::into),
            message: wire.message.map(Into::into),
            exits: exits.into(),
            rest: None,
        }
    }

    /// A status that a request writes, with the fields that have no place of their own.
    fn of_request(wire: core::PodStatus) -> Self {
        let mut rest = wire.clone();
        for (statuses, is_init) in [
            (&mut rest.container_statuses, false),
            (&mut rest.init_container_statuses, true),
        ] {
            if let Some(list) = statuses {
                list.retain(|status| {
                    Exit::of_wire(status, is_init).is_none_or(|exit| exit.to_wire() != *status)
                });
            }
            statuses.take_if(|list| list.is_empty());
        }
        let has_statuses =
            rest.container_statuses.is_some() || rest.init_container_statuses.is_some();
        let rest = core::PodStatus {
            phase: None,
            conditions: resize_pending(&wire).filter(|_| has_statuses),
            nominated_node_name: None,
            start_time: None,
            reason: None,
            message: None,
            ..rest
        };
        Self {
            rest: (rest != core::PodStatus::default()).then(|| Arc::new(rest)),
            ..Self::of_wire(wire)
        }
    }

    fn to_wire(&self) -> core::PodStatus {
        let conditions: Vec<_> = self.conditions.iter().map(Condition::to_wire).collect();
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let mut rest = self.rest.as_deref().cloned().unwrap_or_default();
        core::PodStatus {
            phase: Some(self.phase.name().to_owned()),
            conditions: (!conditions.is_empty()).then_some(conditions),
            nominated_node_name: text(&self.nominated),
            start_time: self.started.map(moment::to_wire),
            reason: text(&self.reason),
            message: text(&self.message),
            container_statuses: self.statuses(rest.container_statuses.take(), false),
            init_container_statuses: self.statuses(rest.init_container_statuses.take(), true),
            ..rest
        }
    }

    /// The container statuses: those that a request wrote, updated by how containers ended since.
    fn statuses(
        &self,
        written: Option<Vec<core::ContainerStatus>>,
        is_init: bool,
    ) -> Option<Vec<core::ContainerStatus>> {
        let mut statuses = written.unwrap_or_default();
        for exit in self.exits.iter().filter(|exit| exit.is_init == is_init) {
            let known = statuses.iter_mut().find(|s| *s.name == *exit.container);
            match known {
                Some(known) if Exit::of_wire(known, is_init).as_ref() == Some(exit) => {}
                Some(known) => known.state = exit.to_wire().state,
                None => statuses.push(exit.to_wire()),
            }
        }
        (!statuses.is_empty()).then_some(statuses)
    }
}

impl Exit {
    fn of_wire(status: &core::ContainerStatus, is_init: bool) -> Option<Self> {
        let ended = status.state.as_ref()?.terminated.as_ref()?;
        Some(Self {
            container: status.name.as_str().into(),
            code: ended.exit_code,
            at: moment::of_wire(ended.finished_at.as_ref()).unwrap_or_default(),
            is_init,
        })
    }

    fn to_wire(&self) -> core::ContainerStatus {
        let ended = core::ContainerStateTerminated {
            exit_code: self.code,
            finished_at: Some(moment::to_wire(self.at)),
            ..core::ContainerStateTerminated::default()
        };
        core::ContainerStatus {
            name: self.container.to_string(),
            state: Some(core::ContainerState {
                terminated: Some(ended),
                ..core::ContainerState::default()
            }),
            ..core::ContainerStatus::default()
        }
    }
}

impl Condition {
    fn of_wire(wire: core::PodCondition) -> Self {
        Self {
            since: moment::of_wire(wire.last_transition_time.as_ref()).unwrap_or_default(),
            kind: wire.type_.into(),
            probed: moment::of_wire(wire.last_probe_time.as_ref()),
            generation: wire.observed_generation,
            status: Truth::of(&wire.status),
            reason: wire.reason.unwrap_or_default().into(),
            message: wire.message.unwrap_or_default().into(),
        }
    }

    fn to_wire(&self) -> core::PodCondition {
        let some = |text: &Arc<str>| (!text.is_empty()).then(|| text.to_string());
        core::PodCondition {
            type_: self.kind.to_string(),
            status: self.status.name().to_owned(),
            reason: some(&self.reason),
            message: some(&self.message),
            last_transition_time: Some(moment::to_wire(self.since)),
            last_probe_time: self.probed.map(moment::to_wire),
            observed_generation: self.generation,
        }
    }
}
