//! Admission of OCM's objects: defaults of their CRDs and immutable fields.
//!
//! OCM's webhook sets `timeAdded` of a taint; here it stays as written. Source: spec/placement §1.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use strew_manifest::defaults::{set_if_empty, set_namespace};
use strew_manifest::field::FieldError;
use strew_manifest::ocm::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision, PlacementSpec,
};

use crate::admission::SetDefaults;
use crate::admission::update::Update;

impl SetDefaults for Placement {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        if let Some(spec) = &mut self.spec {
            default_spec(spec);
        }
    }
}

fn default_spec(spec: &mut PlacementSpec) {
    set_if_absent(&mut spec.sort_by, "ClusterName");
    set_if_absent(&mut spec.score_rate_limit, "1m");
    if let Some(policy) = &mut spec.prioritizer_policy {
        set_if_absent(&mut policy.mode, "Additive");
        for configuration in policy.configurations.iter_mut().flatten() {
            configuration.weight.get_or_insert(1);
            if let Some(coordinate) = &mut configuration.score_coordinate {
                set_if_absent(&mut coordinate.type_, "BuiltIn");
            }
        }
    }
    for toleration in spec.tolerations.iter_mut().flatten() {
        set_if_absent(&mut toleration.operator, "Equal");
    }
    let spread = spec.spread_policy.as_mut();
    for term in spread
        .and_then(|policy| policy.spread_constraints.as_mut())
        .into_iter()
        .flatten()
    {
        term.max_skew.get_or_insert(1);
        set_if_absent(&mut term.when_unsatisfiable, "ScheduleAnyway");
    }
    let groups = spec.decision_strategy.as_mut();
    if let Some(groups) = groups.and_then(|strategy| strategy.group_strategy.as_mut()) {
        let whole = || IntOrString::String("100%".to_owned());
        groups.clusters_per_decision_group.get_or_insert_with(whole);
    }
}

impl SetDefaults for ManagedCluster {
    fn set_defaults(&mut self) {
        if let Some(spec) = &mut self.spec {
            spec.lease_duration_seconds.get_or_insert(60);
        }
    }
}

impl SetDefaults for ManagedClusterSet {
    fn set_defaults(&mut self) {
        let spec = self.spec.get_or_insert_default();
        let selector = spec.cluster_selector.get_or_insert_default();
        set_if_empty(&mut selector.selector_type, "ExclusiveClusterSetLabel");
    }
}

impl SetDefaults for ManagedClusterSetBinding {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
    }
}

impl SetDefaults for AddOnPlacementScore {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
    }
}

impl SetDefaults for PlacementDecision {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
    }
}

/// A CRD's defaults replace missing values, not empty ones.
fn set_if_absent(field: &mut Option<String>, value: &str) {
    field.get_or_insert_with(|| value.to_owned());
}

/// Another client writes the status, so an update of the object keeps it.
macro_rules! status_is_kept {
    ($($kind:ty),*) => {$(
        impl Update for $kind {
            fn keep(&mut self, old: &Self) {
                self.status.clone_from(&old.status);
            }

            fn forbidden(&self, _: &Self, _: &mut Vec<FieldError>) {}

            fn is_new_generation(&self, old: &Self) -> bool {
                self.spec != old.spec
            }
        }
    )*};
}

status_is_kept!(Placement, ManagedClusterSet, ManagedClusterSetBinding);

/// No agent writes this status here, so an update of the object writes it.
macro_rules! status_is_content {
    ($($kind:ty: $is_new_generation:expr,)*) => {$(
        impl Update for $kind {
            fn keep(&mut self, old: &Self) {
                if self.status.is_none() {
                    self.status.clone_from(&old.status);
                }
            }

            fn forbidden(&self, _: &Self, _: &mut Vec<FieldError>) {}

            fn is_new_generation(&self, old: &Self) -> bool {
                $is_new_generation(self, old)
            }
        }
    )*};
}

status_is_content! {
    ManagedCluster: |new: &ManagedCluster, old: &ManagedCluster| new.spec != old.spec,
    AddOnPlacementScore: |_, _| false,
    PlacementDecision: |_, _| false,
}
