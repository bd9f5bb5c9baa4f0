//! A trait over the forms in which pods are kept: Kubernetes' type, or a store whose pods share the spec of their
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
use crate::field::FieldError;

/// Labels as the wire has them.
pub type Pairs = std::collections::BTreeMap<String, String>;

/// A pod in any stored form: the fields that decisions read, as on the wire.
pub trait PodView: fmt::Debug + Send + Sync {
    /// `metadata.namespace`; empty: none.
    fn namespace(&self) -> &str;
    /// `metadata.name`
    fn name(&self) -> &str;
    /// `metadata.uid`; empty: none.
    fn uid(&self) -> &str;
    /// `metadata.generation`
    fn generation(&self) -> Option<i64>;
    /// `metadata.labels`
    fn labels(&self) -> Option<&Pairs>;
    /// The owner that is its controller.
    fn controller(&self) -> Option<OwnerView<'_>>;
    /// Whether it is being deleted.
    fn is_terminating(&self) -> bool;
    /// Whether it has succeeded or failed.
    fn is_finished(&self) -> bool;
    /// `spec.nodeName`; never empty.
    fn node(&self) -> Option<&str>;
    /// `status.nominatedNodeName`; never empty.
    fn nominated(&self) -> Option<&str>;
    /// `status.startTime`, in seconds.
    fn started_s(&self) -> Option<i64>;
    /// The condition of a type.
    fn condition(&self, kind: &str) -> Option<ConditionView<'_>>;
    /// `spec`, but for what has a method of its own here.
    fn spec(&self) -> Option<&core::PodSpec>;
    /// `status`, where containers may have been given other amounts than their spec asks for.
    fn status(&self) -> Option<&core::PodStatus> {
        None
    }
    /// Spec and labels, where pods of a template share them: such facts are remembered, and [`status`](Self::status) is
    /// not asked.
    fn shared(&self) -> Option<(&Arc<core::PodSpec>, &Arc<Pairs>)> {
        None
    }
    /// The pod as the wire has it.
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
    /// `reason`; empty: none.
    pub reason: &'a str,
    /// `message`; empty: none.
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

/// Beyond this number of templates the cache is cleared.
const KNOWN_MAX: usize = 10_000;

/// What was converted before, with the symbols of one interner. The originals are held, so that their addresses stay
/// theirs.
#[derive(Debug, Default)]
pub struct PodFacts {
    /// How often the interner had been swept: symbols of before are no longer good.
    sweeps: u64,
    specs: FxHashMap<usize, (Arc<core::PodSpec>, PodSpec)>,
    labels: FxHashMap<usize, (Arc<Pairs>, Labels)>,
}

impl PodFacts {
    /// A pod as it is now; `None` if it has finished, for then it is gone as far as decisions go (spec/scheduler §0).
    ///
    /// # Errors
    /// Each quantity that no decision could be made from.
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

    /// What a scheduler hears when a pod on no node is there that [`fact`](Self::fact) refuses for these errors: what can
    /// be read of it, and why it is not tried.
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

    /// What a scheduler hears when a pod is there, and like this.
    ///
    /// # Errors
    /// Each quantity that no decision could be made from.
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

/// The condition `PodScheduled`, if it is one that a scheduler writes.
fn scheduled_condition(pod: &dyn PodView) -> Option<Condition> {
    let found = pod.condition("PodScheduled")?;
    Some(Condition {
        reason: ConditionReason::of(found.status, found.reason)?,
        message: found.message.into(),
    })
}
