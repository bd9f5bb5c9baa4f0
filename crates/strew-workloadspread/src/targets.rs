//! The workloads whose pods a WorkloadSpread manages: the one that it names, and those that it selects by labels.
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

/// The workloads of a WorkloadSpread that are there.
#[derive(Debug, Clone, Default)]
pub struct Targets<'a> {
    /// The one that it names.
    pub named: Option<&'a WorkloadFact>,
    /// Those that it selects beside it, by key.
    pub selected: Vec<&'a WorkloadFact>,
}

impl Spec {
    /// Whether the selector for further workloads takes one of these pods that nobody else controls.
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

    /// How many pods they ask for together.
    ///
    /// # Errors
    /// Of [`quota::total`].
    pub fn total(&self, spec: &Spec, kinds: &Kinds) -> Result<Total, CannotCount> {
        let named = quota::total(spec, self.named, kinds)?;
        let others = self.selected.iter().map(|fact| fact.replicas.unwrap_or(1));
        Ok(others.fold(named, Total::saturating_add))
    }

    /// Which revisions are the latest: of each workload its own.
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
