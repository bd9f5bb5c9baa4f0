//! Default constraints that the API server itself adds to pods: MutatingAdmissionPolicies, for clusters whose scheduler
//! configuration is not the user's (KEP-1258).
//!
//! kube-scheduler deduces the selector of its default constraints (spec/scheduler §1.5) from the Services that select a
//! pod and from its controller. Two policies do the same at the creation of a pod:
//! - [`CONTROLLERS`]: pods of a ReplicaSet, StatefulSet or ReplicationController. The policy does not read the
//!   controller, which the API server may not know yet. All pods of a controller have the labels of its template, so
//!   these are counted, without those that differ from pod to pod or from revision to revision.
//! - [`SERVICES`]: all other pods. Each Service of the namespace is a parameter of the policy; those that select the pod
//!   add their selectors. The API server evaluates it for each Service, in about 0.3 ms, so that its bindings leave out
//!   by their labels the pods of most controllers.
//!
//! [`expressions`] has the conditions and variables as CEL, [`objects`] the objects to apply, [`admission`] evaluates the
//! same expressions for a pod.

pub mod admission;
pub mod expressions;
pub mod objects;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use strew_cluster::{Policy, SpreadConstraint};
use strew_model::Interner;
use strew_scheduler::DefaultConstraints;

use crate::config::Configuration;

/// The name of the policy, and of its binding, for pods of ReplicaSets, StatefulSets and ReplicationControllers.
pub const CONTROLLERS: &str = "strew-defaults";

/// The name of the policy, and of its binding, for pods that Services select.
pub const SERVICES: &str = "strew-defaults-services";

/// The name of a second binding of [`SERVICES`], for pods of Kruise's CloneSets, which have a label of Deployments' pods.
pub const CLONE_SETS: &str = "strew-defaults-clone-sets";

/// The label of pods of CloneSets.
pub const CLONE_SET_POD: &str = "apps.kruise.io/cloneset-instance-id";

/// Label keys of the pods of Deployments, Rollouts and StatefulSets.
pub const OF_CONTROLLERS: [&str; 3] = [
    "pod-template-hash",
    "rollouts-pod-template-hash",
    "statefulset.kubernetes.io/pod-name",
];

/// The annotation of a pod with the name of the policy that added its constraints.
pub const APPLIED: &str = "defaults.strew.dev/applied";

/// The key with which a namespace (label) or a pod (label or annotation) asks for no defaults, by the value
/// [`NO`].
pub const OPT_OUT: &str = "defaults.strew.dev/apply";

/// The value of [`OPT_OUT`].
pub const NO: &str = "false";

/// Label keys whose values differ between the revisions of a Deployment or Rollout: `matchLabelKeys`.
pub const REVISIONS: [&str; 2] = ["pod-template-hash", "rollouts-pod-template-hash"];

/// Label keys whose values differ between pods of one controller, or between releases of one chart; they do not decide
/// what is counted. The API server copies zone and region of the node to a pod that is bound.
pub const UNCOUNTED: [&str; 7] = [
    "controller-revision-hash",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// The default constraints of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    /// At least one profile; each has at least one constraint.
    profiles: Vec<ProfileDefaults>,
}

/// The default constraints of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileDefaults {
    /// The `schedulerName` of its pods.
    pub scheduler_name: String,
    /// At least one, without selectors and without `matchLabelKeys`.
    pub constraints: Vec<TopologySpreadConstraint>,
    /// The `matchLabelKeys` of all of them.
    pub match_label_keys: Vec<String>,
}

impl Defaults {
    /// The lists of a configuration's profiles; `None` if no profile has a list with a constraint. kube-scheduler applies
    /// its own defaults (`defaultingType: System`) without help.
    pub fn of(configuration: &Configuration, names: &Interner) -> Option<Self> {
        let profiles = configuration.profiles.iter().filter_map(|profile| {
            let DefaultConstraints::List(list) = &profile.default_constraints else {
                return None;
            };
            let keys = list.iter().flat_map(|c| c.match_label_keys.iter());
            let mut match_label_keys: Vec<String> = Vec::new();
            for key in keys.map(|key| names.text(*key)) {
                if !match_label_keys.iter().any(|known| known == key) {
                    match_label_keys.push(key.to_owned());
                }
            }
            Some(ProfileDefaults {
                scheduler_name: profile.scheduler_name.clone(),
                constraints: list.iter().map(|c| written(c, names)).collect(),
                match_label_keys,
            })
        });
        let profiles: Vec<ProfileDefaults> = profiles
            .filter(|profile| !profile.constraints.is_empty())
            .collect();
        (!profiles.is_empty()).then_some(Self { profiles })
    }

    /// The profiles with constraints.
    pub fn profiles(&self) -> &[ProfileDefaults] {
        &self.profiles
    }

    /// The constraints of the pods of a scheduler.
    pub fn constraints(&self, scheduler_name: &str) -> Option<&[TopologySpreadConstraint]> {
        let mut profiles = self.profiles.iter();
        let profile = profiles.find(|profile| profile.scheduler_name == scheduler_name)?;
        Some(&profile.constraints)
    }

    /// The `matchLabelKeys` of all profiles.
    fn match_label_keys(&self) -> Vec<&str> {
        let each = self.profiles.iter().flat_map(|p| &p.match_label_keys);
        let mut keys: Vec<&str> = Vec::new();
        for key in each {
            if !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
        keys
    }
}

/// The constraint as a pod has it, without selector and keys; what is the default is left out.
fn written(constraint: &SpreadConstraint, names: &Interner) -> TopologySpreadConstraint {
    let policy = |policy: Policy, absent: Policy| {
        (policy != absent).then(|| match policy {
            Policy::Honor => "Honor".to_owned(),
            Policy::Ignore => "Ignore".to_owned(),
        })
    };
    let when_unsatisfiable = match constraint.hard {
        true => "DoNotSchedule",
        false => "ScheduleAnyway",
    };
    TopologySpreadConstraint {
        label_selector: None,
        match_label_keys: None,
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains.filter(|_| constraint.hard),
        node_affinity_policy: policy(constraint.node_affinity_policy, Policy::Honor),
        node_taints_policy: policy(constraint.node_taints_policy, Policy::Ignore),
        topology_key: names.text(constraint.key).to_owned(),
        when_unsatisfiable: when_unsatisfiable.to_owned(),
    }
}
