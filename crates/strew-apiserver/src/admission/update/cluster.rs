//! Updates of nodes, budgets, priority classes, autoscalers and quotas.
//!
//! Source: `ValidateNodeUpdate`, `ValidateResourceQuotaUpdate` of `pkg/apis/core/validation`, and the strategies of
//! `pkg/registry`, v1.36.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Node, ResourceQuota};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;

use super::{Update, immutable};
use strew_manifest::field::{FieldError, FieldPath};

impl Update for Node {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    /// Labels, annotations, taints and `unschedulable` may change; addresses and names can be set once.
    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let mut new = self.spec.clone().unwrap_or_default();
        let stored = old.spec.clone().unwrap_or_default();
        let is_set = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|all| !all.is_empty());
        if is_set(&stored.pod_cidrs) && new.pod_cidrs != stored.pod_cidrs {
            errors.push(FieldError::forbidden(
                FieldPath::root().child("spec.podCIDRs"),
                "node updates may not change podCIDR except from \"\" to valid",
            ));
        }
        let is_named = |id: &Option<String>| id.as_ref().is_some_and(|id| !id.is_empty());
        if is_named(&stored.provider_id) && new.provider_id != stored.provider_id {
            errors.push(FieldError::forbidden(
                FieldPath::root().child("spec.providerID"),
                "node updates may not change providerID except from \"\" to valid",
            ));
        }
        new.pod_cidr.clone_from(&stored.pod_cidr);
        new.pod_cidrs.clone_from(&stored.pod_cidrs);
        new.provider_id.clone_from(&stored.provider_id);
        new.unschedulable = stored.unschedulable;
        new.taints.clone_from(&stored.taints);
        new.config_source.clone_from(&stored.config_source);
        if new != stored {
            errors.push(FieldError::forbidden(
                FieldPath::root(),
                "node updates may only change labels, taints, or capacity",
            ));
        }
    }

    fn is_new_generation(&self, _: &Self) -> bool {
        false
    }
}

impl Update for PodDisruptionBudget {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, _: &Self, _: &mut Vec<FieldError>) {}

    fn is_new_generation(&self, old: &Self) -> bool {
        self.spec != old.spec
    }
}

impl Update for PriorityClass {
    fn keep(&mut self, _: &Self) {}

    /// Source: `ValidatePriorityClassUpdate` of `pkg/apis/scheduling/validation`.
    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let root = FieldPath::root();
        if self.value != old.value {
            let detail = "may not be changed in an update.";
            errors.push(FieldError::forbidden(root.child("value"), detail));
        }
        let (new, old) = (&self.preemption_policy, &old.preemption_policy);
        immutable(new, old, &root.child("preemptionPolicy"), errors);
    }

    fn is_new_generation(&self, _: &Self) -> bool {
        false
    }
}

impl Update for HorizontalPodAutoscaler {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, _: &Self, _: &mut Vec<FieldError>) {}

    fn is_new_generation(&self, _: &Self) -> bool {
        false
    }
}

impl Update for ResourceQuota {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let of = |quota: &Self| {
            let scopes = quota.spec.as_ref().and_then(|spec| spec.scopes.clone());
            let mut scopes = scopes.unwrap_or_default();
            scopes.sort();
            scopes.dedup();
            scopes
        };
        let path = FieldPath::root().child("spec.scopes");
        immutable(&of(self), &of(old), &path, errors);
    }

    fn is_new_generation(&self, _: &Self) -> bool {
        false
    }
}
