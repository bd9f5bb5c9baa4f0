//! The table of kinds.
//!
//! [`KINDS`] is made where the kinds are declared ([`read`](crate::read)). Group, version, plural and scope come from
//! the types themselves. Lists of kinds are queries over the table.

use std::cmp::Reverse;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};

use crate::patch::Schema;
use crate::read::EARLIER;
pub use crate::read::KINDS;
use crate::read::nearest;

/// A kind of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindRow {
    /// `Deployment`
    pub kind: &'static str,
    /// `apps/v1`
    pub api_version: &'static str,
    /// `apps`; empty for the core.
    pub group: &'static str,
    /// The version that strew stores: `v1`.
    pub version: &'static str,
    /// `deployments`
    pub plural: &'static str,
    /// True if its objects live in namespaces.
    pub is_namespaced: bool,
    /// `deploy`; the singular if kubectl has no short name. `None`: commands and scenarios do not accept the kind by
    /// name.
    pub short: Option<&'static str>,
    /// The schema of strategic merge patches; `None` if the API server does not merge the kind strategically.
    pub patch: Option<Schema>,
    /// The relation of its objects to pods.
    pub pods: Pods,
    /// True if it has the subresource `scale`.
    pub scales: bool,
    /// How its pods get another template.
    pub rollout: Rollout,
}

/// How the controller of a kind replaces pods of an earlier template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollout {
    /// It does not, or another kind's controller does it.
    None,
    /// `kubectl rollout` knows the kind.
    Kubectl,
    /// `kubectl rollout` does not know the kind.
    Own,
}

/// The relation of a kind's objects to pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// Nothing.
    No,
    /// They are pods.
    Are,
    /// They have a template, from which a controller makes pods.
    Make,
}

impl KindRow {
    /// True if a number of replicas is asked for, and the controller replaces those of an earlier template.
    pub fn rolls_replicas(&self) -> bool {
        self.scales && self.rollout != Rollout::None
    }

    /// The row of a type with the values that the type itself has.
    pub const fn of<T>() -> Self
    where
        T: Resource,
        T::Scope: Scope,
    {
        Self {
            kind: T::KIND,
            api_version: T::API_VERSION,
            group: T::GROUP,
            version: T::VERSION,
            plural: T::URL_PATH_SEGMENT,
            is_namespaced: <T::Scope as Scope>::IS_NAMESPACED,
            short: None,
            patch: None,
            pods: Pods::No,
            scales: false,
            rollout: Rollout::None,
        }
    }
}

/// The scope of a type's objects.
pub trait Scope {
    /// True if they live in namespaces.
    const IS_NAMESPACED: bool;
}

impl Scope for ClusterResourceScope {
    const IS_NAMESPACED: bool = false;
}

impl Scope for NamespaceResourceScope {
    const IS_NAMESPACED: bool = true;
}

/// The kinds with a short name for which `holds` is true.
pub fn names(holds: impl Fn(&KindRow) -> bool) -> Vec<&'static str> {
    named()
        .filter(|row| holds(row))
        .map(|row| row.kind)
        .collect()
}

fn named() -> impl Iterator<Item = &'static KindRow> {
    KINDS.iter().filter(|row| row.short.is_some())
}

/// The kind of this name, in any letter case.
pub fn find(text: &str) -> Option<&'static KindRow> {
    let text = text.to_lowercase();
    let (name, group) = match text.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (text.as_str(), None),
    };
    let is_named = |row: &&KindRow| {
        row.kind.to_lowercase() == name || row.plural == name || row.short == Some(name)
    };
    let is_of_group = |row: &&KindRow| {
        group.is_none_or(|g| {
            !row.group.is_empty() && (g == row.group || g.ends_with(&format!(".{}", row.group)))
        })
    };
    named().find(|row| is_named(row) && is_of_group(row))
}

/// The row of this kind, if it has a short name.
pub fn of_kind(kind: &str) -> Option<&'static KindRow> {
    named().find(|row| row.kind == kind)
}

/// The versions of a kind that strew reads, the newest first; none if it does not know the kind.
pub fn versions(group: &str, kind: &str) -> Vec<&'static str> {
    let is_it = |row: &&KindRow| row.group == group && row.kind == kind;
    let rows = KINDS.iter().chain(EARLIER).filter(is_it);
    let mut versions: Vec<&str> = rows.map(|row| row.version).collect();
    let is_stable = |version: &str| version[1..].parse::<u32>().is_ok();
    versions.sort_by_key(|version| Reverse((is_stable(version), *version)));
    versions
}

/// The singular name most similar to an unknown one.
pub fn meant(text: &str) -> Option<String> {
    let singular: Vec<String> = named().map(|row| row.kind.to_lowercase()).collect();
    nearest(text, singular.iter().map(String::as_str)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_kubectls_names_are_understood() {
        let kind = |text| find(text).map(|known| known.kind);
        for name in ["deploy", "Deployment", "deployments", "deployments.apps"] {
            assert_eq!(kind(name), Some("Deployment"), "{name}");
        }
        assert_eq!(kind("po"), Some("Pod"));
        assert_eq!(kind("hpa"), Some("HorizontalPodAutoscaler"));
        assert_eq!(kind("workloadspread"), Some("WorkloadSpread"));
        assert_eq!(kind("deployments.batch"), None);
        assert_eq!(kind("gateway"), None);
        assert_eq!(meant("deplyment").as_deref(), Some("deployment"));
    }

    #[test]
    fn no_two_rows_answer_to_one_name() {
        let mut names: Vec<String> = Vec::new();
        for row in named() {
            let singular = row.kind.to_lowercase();
            let short = row.short.filter(|short| *short != singular);
            names.extend([singular, row.plural.to_owned()]);
            names.extend(short.map(str::to_owned));
        }
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n, "{names:?}");
    }

    #[test]
    fn the_newest_version_is_the_first() {
        let of_kruise = |kind| versions("apps.kruise.io", kind);
        assert_eq!(of_kruise("CloneSet"), ["v1beta1", "v1alpha1"]);
        assert_eq!(of_kruise("WorkloadSpread"), ["v1beta1", "v1alpha1"]);
        assert_eq!(of_kruise("StatefulSet"), ["v1beta1", "v1alpha1"]);
        assert_eq!(
            versions("autoscaling", "HorizontalPodAutoscaler"),
            ["v2", "v1"]
        );
        assert_eq!(versions("", "Pod"), ["v1"]);
        assert_eq!(versions("", "Deployment"), [""; 0]);
    }

    #[test]
    fn lists_are_questions() {
        let makes_pods = [
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
            "DaemonSet",
            "ReplicationController",
            "Job",
            "CronJob",
            "CloneSet",
        ];
        assert_eq!(names(|row| row.pods == Pods::Make), makes_pods);
        let rolls = |rollout| names(|row| row.rollout == rollout);
        assert_eq!(
            rolls(Rollout::Kubectl),
            ["Deployment", "StatefulSet", "DaemonSet"]
        );
        assert_eq!(rolls(Rollout::Own), ["CloneSet"]);
        assert_eq!(
            find("csinode"),
            None,
            "a kind without a short name is not taken by name"
        );
    }
}
