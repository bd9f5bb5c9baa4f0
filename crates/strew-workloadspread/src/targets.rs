//! The workloads whose pods a WorkloadSpread manages: its target, and those that it selects by labels.
//!
//! Limits hold over the sum of their pods. Kruise has no such selector: its text names "labels to match pods across
//! workloads" as future work.

use strew_model::Interner;

use crate::facts::kinds::Kinds;
use crate::facts::spec::{LimitScope, Spec, TargetRef, WorkloadSpread};
use crate::facts::workload::{WorkloadFact, WorkloadKey};
use crate::quota::{self, CannotCount, Total};
use crate::revision::{self, Latest};
use crate::workloads::Workloads;

/// The existing workloads of a WorkloadSpread.
#[derive(Debug, Clone, Default)]
pub struct Targets<'a> {
    /// The target.
    pub named: Option<&'a WorkloadFact>,
    /// The workloads that it selects besides the target, by key.
    pub selected: Vec<&'a WorkloadFact>,
}

impl Spec {
    /// True if the selector for further workloads matches this one, and no other workload controls it.
    pub fn selects_workload(&self, fact: &WorkloadFact) -> bool {
        let labels = fact.pod_labels.as_ref();
        let both = self.also.as_ref().zip(labels);
        fact.controller.is_none() && both.is_some_and(|(selector, labels)| selector.matches(labels))
    }
}

impl Workloads {
    /// The workloads of a WorkloadSpread.
    pub fn targets_of(&self, ws: &WorkloadSpread) -> Targets<'_> {
        let namespace = ws.key.namespace;
        let named = ws.spec.target;
        let get = |target: TargetRef| self.get(WorkloadKey { namespace, target });
        let mut selected: Vec<&WorkloadFact> = Vec::new();
        if ws.spec.also.is_some() {
            let is_named = |fact: &&WorkloadFact| Some(fact.key.target) == named;
            let others = self.of_namespace(namespace);
            let others = others.filter(|fact| !is_named(fact) && !fact.deleting);
            selected.extend(others.filter(|fact| ws.spec.selects_workload(fact)));
        }
        Targets {
            named: named.and_then(get),
            selected,
        }
    }
}

impl<'a> Targets<'a> {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &'a WorkloadFact> + use<'a> {
        let selected: Vec<&'a WorkloadFact> = self.selected.clone();
        self.named.into_iter().chain(selected)
    }

    /// The number of pods that they ask for together.
    ///
    /// # Errors
    /// Those of [`quota::total`].
    pub fn total(&self, spec: &Spec, kinds: &Kinds) -> Result<Total, CannotCount> {
        let named = quota::total(spec, self.named, kinds)?;
        let others = self.selected.iter().map(|fact| fact.replicas.unwrap_or(1));
        Ok(others.fold(named, Total::saturating_add))
    }

    /// The latest revisions: each workload has its own.
    pub fn latest(
        &self,
        scope: LimitScope,
        workloads: &Workloads,
        kinds: &Kinds,
        names: &Interner,
    ) -> Latest {
        let of = |fact| revision::latest(scope, fact, workloads, kinds, names);
        let selected = self.selected.iter().copied();
        selected.fold(of(self.named), |latest, fact| latest.or(of(Some(fact))))
    }
}
