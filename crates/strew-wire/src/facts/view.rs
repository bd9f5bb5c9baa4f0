//! A trait over the forms in which pods are stored: Kubernetes' type, or a store whose pods share the spec of their
//! template.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use rustc_hash::FxHashMap;
use strew_cluster::{PodFact, PodHistory, PodSpec};
use strew_model::time::Instant;
use strew_model::{Interner, Labels, well_known};
use strew_scheduler::machine::{Condition, ConditionReason, Input};

use super::pod::pod_spec;
use super::{OwnerRef, labels, owner_kind};
use strew_manifest::field::FieldError;

/// Labels as the wire has them.
pub type Pairs = std::collections::BTreeMap<String, String>;

/// A pod in any stored form: the fields that decisions read, as on the wire.
pub trait PodView: fmt::Debug + Send + Sync {
    /// `metadata.namespace`; empty if there is none.
    fn namespace(&self) -> &str;
    /// `metadata.name`
    fn name(&self) -> &str;
    /// `metadata.uid`; empty if there is none.
    fn uid(&self) -> &str;
    /// `metadata.generation`
    fn generation(&self) -> Option<i64>;
    /// `metadata.labels`
    fn labels(&self) -> Option<&Pairs>;
    /// The owner with `controller: true`.
    fn controller(&self) -> Option<OwnerView<'_>>;
    /// True if it has a deletionTimestamp.
    fn is_terminating(&self) -> bool;
    /// True if its phase is Succeeded or Failed.
    fn is_finished(&self) -> bool;
    /// `spec.nodeName`; `None` if it is empty.
    fn node(&self) -> Option<&str>;
    /// `status.nominatedNodeName`; `None` if it is empty.
    fn nominated(&self) -> Option<&str>;
    /// `status.startTime`, in seconds.
    fn started_s(&self) -> Option<i64>;
    /// The condition of a type.
    fn condition(&self, kind: &str) -> Option<ConditionView<'_>>;
    /// `spec`, apart from the fields that have methods here.
    fn spec(&self) -> Option<&core::PodSpec>;
    /// `status`, if containers may have other resources than their spec requests.
    fn status(&self) -> Option<&core::PodStatus> {
        None
    }
    /// Spec and labels, if pods of a template share them. Their facts are cached, and [`status`](Self::status) is not
    /// called.
    fn shared(&self) -> Option<(&Arc<core::PodSpec>, &Arc<Pairs>)> {
        None
    }
    /// The pod as Kubernetes' type.
    fn to_wire(&self) -> core::Pod;
}

/// An owner of an object.
#[derive(Debug, Clone, Copy)]
pub struct OwnerView<'a> {
    /// `apiVersion`
    pub api_version: &'a str,
    /// `kind`
    pub kind: &'a str,
    /// `name`
    pub name: &'a str,
}

/// A condition of a pod.
#[derive(Debug, Clone, Copy)]
pub struct ConditionView<'a> {
    /// `status`
    pub status: &'a str,
    /// `reason`; empty if there is none.
    pub reason: &'a str,
    /// `message`; empty if there is none.
    pub message: &'a str,
    /// `lastTransitionTime`, in whole seconds.
    pub since: Option<Instant>,
}

impl PodView for core::Pod {
    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn generation(&self) -> Option<i64> {
        self.metadata.generation
    }

    fn labels(&self) -> Option<&Pairs> {
        self.metadata.labels.as_ref()
    }

    fn controller(&self) -> Option<OwnerView<'_>> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        Some(OwnerView {
            api_version: &owner.api_version,
            kind: &owner.kind,
            name: &owner.name,
        })
    }

    fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn is_finished(&self) -> bool {
        let phase = self.status.as_ref().and_then(|s| s.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    }

    fn node(&self) -> Option<&str> {
        let node = self.spec.as_ref()?.node_name.as_deref();
        node.filter(|node| !node.is_empty())
    }

    fn nominated(&self) -> Option<&str> {
        let node = self.status.as_ref()?.nominated_node_name.as_deref();
        node.filter(|node| !node.is_empty())
    }

    fn started_s(&self) -> Option<i64> {
        let start = self.status.as_ref()?.start_time.as_ref();
        start.map(|time| time.0.as_second())
    }

    fn condition(&self, kind: &str) -> Option<ConditionView<'_>> {
        let mut all = self.status.as_ref()?.conditions.iter().flatten();
        let found = all.find(|condition| condition.type_ == kind)?;
        let since = found.last_transition_time.as_ref();
        Some(ConditionView {
            status: &found.status,
            reason: found.reason.as_deref().unwrap_or_default(),
            message: found.message.as_deref().unwrap_or_default(),
            since: since
                .and_then(|time| u64::try_from(time.0.as_second()).ok())
                .map(Instant::from_secs),
        })
    }

    fn spec(&self) -> Option<&core::PodSpec> {
        self.spec.as_ref()
    }

    fn status(&self) -> Option<&core::PodStatus> {
        self.status.as_ref()
    }

    fn to_wire(&self) -> core::Pod {
        self.clone()
    }
}

/// The number of templates at which the cache is cleared.
const KNOWN_MAX: usize = 10_000;

/// Facts converted before, with the symbols of one interner. The originals are kept alive, so that their addresses are
/// not reused.
#[derive(Debug, Default)]
pub struct PodFacts {
    /// The interner's number of sweeps: older symbols are invalid.
    sweeps: u64,
    specs: FxHashMap<usize, (Arc<core::PodSpec>, PodSpec)>,
    labels: FxHashMap<usize, (Arc<Pairs>, Labels)>,
}

impl PodFacts {
    /// A pod as a fact; `None` if it has finished, since finished pods do not count (spec/scheduler §0).
    ///
    /// # Errors
    /// Each quantity that cannot be used.
    pub fn fact(
        &mut self,
        pod: &dyn PodView,
        names: &mut Interner,
    ) -> Result<Option<PodFact>, Vec<FieldError>> {
        if pod.is_finished() {
            return Ok(None);
        }
        if self.sweeps != names.sweeps() {
            *self = Self {
                sweeps: names.sweeps(),
                ..Self::default()
            };
        }
        let (spec, labels) = match pod.shared() {
            Some((spec, pairs)) => (self.spec(spec, names)?, self.labels(pairs, names)),
            None => (
                pod_spec(pod.spec(), pod.status(), names)?,
                labels(pod.labels(), names),
            ),
        };
        Ok(Some(made(pod, spec, labels, names)))
    }

    /// The scheduler's input for a pod without a node that [`fact`](Self::fact) refuses with these errors: the readable
    /// fields, and the reason why it is not tried.
    pub fn unreadable(pod: &dyn PodView, errors: &[FieldError], names: &mut Interner) -> Input {
        let scheduler = pod.spec().and_then(|spec| spec.scheduler_name.as_deref());
        let spec = PodSpec {
            scheduler_name: names.intern(scheduler.unwrap_or("default-scheduler")),
            ..PodSpec::default()
        };
        let labels = labels(pod.labels(), names);
        let why: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Input::PodUnreadable {
            fact: Box::new(made(pod, spec, labels, names)),
            condition: scheduled_condition(pod),
            why: why.join("; ").into(),
        }
    }

    /// The scheduler's input for the current state of a pod.
    ///
    /// # Errors
    /// Each quantity that cannot be used.
    pub fn input(
        &mut self,
        pod: &dyn PodView,
        names: &mut Interner,
    ) -> Result<Input, Vec<FieldError>> {
        Ok(match self.fact(pod, names)? {
            Some(fact) => Input::PodSet {
                fact: Box::new(fact),
                condition: scheduled_condition(pod),
            },
            None => Input::PodGone(pod.uid().into()),
        })
    }

    fn spec(
        &mut self,
        spec: &Arc<core::PodSpec>,
        names: &mut Interner,
    ) -> Result<PodSpec, Vec<FieldError>> {
        let address = Arc::as_ptr(spec) as usize;
        if let Some((_, known)) = self.specs.get(&address) {
            return Ok(known.clone());
        }
        let fact = pod_spec(Some(spec), None, names)?;
        if self.specs.len() >= KNOWN_MAX {
            self.specs.clear();
        }
        self.specs.insert(address, (Arc::clone(spec), fact.clone()));
        Ok(fact)
    }

    fn labels(&mut self, pairs: &Arc<Pairs>, names: &mut Interner) -> Labels {
        let address = Arc::as_ptr(pairs) as usize;
        if let Some((_, known)) = self.labels.get(&address) {
            return known.clone();
        }
        let fact = labels(Some(pairs), names);
        if self.labels.len() >= KNOWN_MAX {
            self.labels.clear();
        }
        self.labels
            .insert(address, (Arc::clone(pairs), fact.clone()));
        fact
    }
}

fn made(pod: &dyn PodView, spec: PodSpec, labels: Labels, names: &mut Interner) -> PodFact {
    let namespace = match pod.namespace() {
        "" => well_known::DEFAULT_NAMESPACE,
        namespace => names.intern(namespace),
    };
    let uid = match pod.uid() {
        "" => format!("{}/{}", names.text(namespace), pod.name()).into(),
        uid => uid.into(),
    };
    PodFact {
        uid,
        name: pod.name().into(),
        namespace,
        labels,
        owner: pod.controller().map(|owner| OwnerRef {
            kind: owner_kind(owner.api_version, owner.kind),
            name: names.intern(owner.name),
        }),
        terminating: pod.is_terminating(),
        node: pod.node().map(|node| names.intern(node)),
        spec,
        history: history(pod, names),
    }
}

fn history(pod: &dyn PodView, names: &mut Interner) -> PodHistory {
    PodHistory {
        nominated: pod.nominated().map(|node| names.intern(node)),
        started_s: pod.started_s(),
        preempted: pod
            .condition("DisruptionTarget")
            .is_some_and(|c| c.status == "True" && c.reason == "PreemptionByScheduler"),
    }
}

/// The condition `PodScheduled`, if a scheduler wrote it.
fn scheduled_condition(pod: &dyn PodView) -> Option<Condition> {
    let found = pod.condition("PodScheduled")?;
    Some(Condition {
        reason: ConditionReason::of(found.status, found.reason)?,
        message: found.message.into(),
    })
}
