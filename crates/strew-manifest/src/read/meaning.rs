//! Which kind `apiVersion` and `kind` mean.

use super::check::shortened;
use super::diagnostic::Diagnostic;
use super::kind::{Kind, group_of};
use super::nearest::nearest;
use crate::field::FieldPath;
use crate::kruise::GROUP as KRUISE;

/// Type and kind of a Scenario, which strew-scenario reads. Here it is only told from other groups.
pub const SCENARIO: (&str, &str) = ("sim.strew.dev/v1alpha1", "Scenario");

/// The meaning of `apiVersion` and `kind`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A kind that strew knows.
    Known(Kind),
    /// A kind that strew knows, in a version or group that does not have it.
    WrongVersion(Kind),
    /// A Scenario, in a group that does not have it.
    WrongScenario,
    /// No kind of that version, but similar to one.
    Misspelt(Kind),
    /// No kind of that version, all kinds of which are known.
    NoSuchKind,
    /// Anything else.
    Other,
}

/// Kinds of a modelled group that share the name of another group's kind.
const NAMESAKES: [(&str, &str); 1] = [(KRUISE, "DaemonSet")];

/// Real kinds that look like a misspelt one.
const NOT_MISSPELT: [&str; 1] = ["PodTemplate"];

/// Versions whose kinds are all known but for these.
const CLOSED: [(&str, &[&str]); 3] = [
    ("apps/v1", &["Scale"]),
    ("batch/v1", &[]),
    ("policy/v1", &["Eviction"]),
];

/// Determines which kind is meant.
pub(super) fn meaning(api_version: &str, kind: &str) -> Meaning {
    let all = Kind::ALL.iter().copied();
    let of_version = || {
        let all = Kind::ALL.iter().copied();
        all.filter(|known| known.api_version() == api_version)
    };
    if let Some(known) = of_version().find(|known| known.name() == kind) {
        return Meaning::Known(known);
    }
    let group = written_group(api_version);
    let named = || {
        let named = Kind::ALL.iter().copied();
        named.filter(|known| known.name() == kind)
    };
    let is_namesake = NAMESAKES.contains(&(group, kind));
    let same_group = named().find(|known| group_of(known.api_version()) == group);
    let meant = named().find(|known| is_meant(group, group_of(known.api_version())));
    // `Deployment` of `v1` or `storage.k8s.io/v1` is a mistake: strew knows the kinds of these groups.
    let is_modelled = Kind::ALL
        .iter()
        .any(|known| group_of(known.api_version()) == group);
    let misplaced = named().next().filter(|_| is_modelled);
    if let Some(known) = same_group.or(meant).or(misplaced).filter(|_| !is_namesake) {
        return Meaning::WrongVersion(known);
    }
    let scenarios = group_of(SCENARIO.0);
    if kind == SCENARIO.1 && group != scenarios && is_meant(group, scenarios) {
        return Meaning::WrongScenario;
    }
    let peers: Vec<Kind> = match group {
        KRUISE => all
            .filter(|known| group_of(known.api_version()) == KRUISE)
            .collect(),
        _ => of_version().collect(),
    };
    let names = peers.iter().map(|known| known.name());
    let similar = nearest(kind, names).filter(|_| !NOT_MISSPELT.contains(&kind) && !is_namesake);
    if let Some(known) = peers.iter().find(|known| Some(known.name()) == similar) {
        return Meaning::Misspelt(*known);
    }
    let is_closed =
        |(version, others): &(&str, &[&str])| *version == api_version && !others.contains(&kind);
    match CLOSED.iter().any(is_closed) {
        true => Meaning::NoSuchKind,
        false => Meaning::Other,
    }
}

/// The group as written: the whole text if the version was forgotten.
fn written_group(api_version: &str) -> &str {
    match api_version.contains('/') {
        true => group_of(api_version),
        false if api_version.contains('.') => api_version,
        false => "",
    }
}

/// True if a kind of the known group is meant, not one of the same name in another project's group.
///
/// The group of a CustomResourceDefinition must be a domain with a dot, so a group without one is Kubernetes' own, or a
/// mistake. Source: `ValidateCustomResourceDefinition`, `pkg/apis/apiextensions/validation` of apiextensions-apiserver,
/// v1.36.
fn is_meant(group: &str, known: &str) -> bool {
    if !group.contains('.') {
        return true;
    }
    let name = if known.is_empty() { "core" } else { known };
    let of_kubernetes = ["k8s.io", "kubernetes.io"];
    let is_suffixed = |domain: &&str| {
        group
            .strip_suffix(*domain)
            .and_then(|g| g.strip_suffix('.'))
            == Some(name)
    };
    if of_kubernetes.iter().any(is_suffixed) {
        return true;
    }
    let is_below = |below: &str, above: &str| {
        below
            .strip_suffix(above)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    // `k8s.io` is above groups of Kubernetes and of many projects.
    known.contains('.')
        && (is_below(group, known) || is_below(known, group) || nearest(group, [known]).is_some())
        || (known.is_empty() && of_kubernetes.contains(&group))
}

impl Meaning {
    /// The mistake in the document's `apiVersion` or `kind`, with the field; `None` if there is none.
    pub(super) fn mistake(&self, api_version: &str, kind: &str) -> Option<(FieldPath, Diagnostic)> {
        let wrong_version = |whose: &str, name: &str, served: &str| {
            let message = format!("{whose} has no {name} in {}", quoted(api_version));
            Diagnostic::error("unknown-version", message)
                .with_help(format!("use apiVersion: {served}"))
        };
        let unknown_kind = |rest: String| {
            let message = format!("{api_version} has no kind {}{rest}", shortened(kind));
            Diagnostic::error("unknown-kind", message)
        };
        let (field, diagnostic) = match self {
            Self::Known(_) | Self::Other => return None,
            Self::WrongVersion(known) => {
                let (whose, served) = (known.whose(), known.api_version());
                ("apiVersion", wrong_version(whose, known.name(), served))
            }
            Self::WrongScenario => ("apiVersion", wrong_version("strew", SCENARIO.1, SCENARIO.0)),
            Self::Misspelt(known) => {
                let rest = format!(", did you mean {:?}?", known.name());
                ("kind", unknown_kind(rest))
            }
            Self::NoSuchKind => {
                let known = Kind::ALL.iter();
                let known = known.filter(|known| known.api_version() == api_version);
                let known: Vec<&str> = known.map(|known| known.name()).collect();
                let help = format!("{api_version} has {}", known.join(", "));
                ("kind", unknown_kind(String::new()).with_help(help))
            }
        };
        Some((FieldPath::root().child(field), diagnostic))
    }
}

/// The longest group and version of Kubernetes, in characters.
const API_VERSION_LENGTH_MAX: usize = 253 + 1 + 63;

/// The `apiVersion` in quotes, whole: what is wrong is mostly at its end.
fn quoted(api_version: &str) -> String {
    match api_version.chars().count() <= API_VERSION_LENGTH_MAX {
        true => format!("{api_version:?}"),
        false => shortened(api_version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_which_kind_is_meant() {
        let cases = [
            ("apps/v1", "Deployment", Meaning::Known(Kind::Deployment)),
            ("v1", "Pod", Meaning::Known(Kind::Pod)),
            (
                "apps/v1beta1",
                "Deployment",
                Meaning::WrongVersion(Kind::Deployment),
            ),
            (
                "extensions/v1beta1",
                "Deployment",
                Meaning::WrongVersion(Kind::Deployment),
            ),
            (
                "policy/v1beta1",
                "PodDisruptionBudget",
                Meaning::WrongVersion(Kind::PodDisruptionBudget),
            ),
            ("v1", "Deployment", Meaning::WrongVersion(Kind::Deployment)),
            (
                "apps",
                "Deployment",
                Meaning::WrongVersion(Kind::Deployment),
            ),
            ("serving.knative.dev/v1", "Service", Meaning::Other),
            ("batch.volcano.sh/v1alpha1", "Job", Meaning::Other),
            ("apps/v1", "Deploymnt", Meaning::Misspelt(Kind::Deployment)),
            ("v1", "pod", Meaning::Misspelt(Kind::Pod)),
            ("v1", "ConfigMap", Meaning::Other),
            ("v1", "PodTemplate", Meaning::Other),
            ("v1", "ServiceAccount", Meaning::Other),
            ("v1", "Secret", Meaning::Other),
            ("v1", "Endpoints", Meaning::Other),
            ("v1", "Event", Meaning::Other),
            ("v1", "ResourceQuota", Meaning::Known(Kind::ResourceQuota)),
            (
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                Meaning::Known(Kind::HorizontalPodAutoscalerV1),
            ),
            (
                "autoscaling/v2beta2",
                "HorizontalPodAutoscaler",
                Meaning::WrongVersion(Kind::HorizontalPodAutoscaler),
            ),
            ("autoscaling/v1", "Scale", Meaning::Other),
            (
                "autoscaling.k8s.io/v1",
                "VerticalPodAutoscaler",
                Meaning::Other,
            ),
            ("v1", "Binding", Meaning::Other),
            ("v1", "ComponentStatus", Meaning::Other),
            (
                "apps/v1",
                "ControllerRevision",
                Meaning::Known(Kind::ControllerRevision),
            ),
            ("storage.k8s.io/v1", "CSIDriver", Meaning::Other),
            (
                "storage.k8s.io/v1",
                "CSINode",
                Meaning::Known(Kind::CSINode),
            ),
            ("storage.k8s.io/v1", "VolumeAttachment", Meaning::Other),
            (
                "apps.kruise.io/v1beta1",
                "WorkloadSpread",
                Meaning::Known(Kind::WorkloadSpread),
            ),
            (
                "apps.kruise.io/v1alpha1",
                "WorkloadSpread",
                Meaning::Known(Kind::WorkloadSpreadV1alpha1),
            ),
            (
                "apps.kruise.io/v1",
                "WorkloadSpread",
                Meaning::WrongVersion(Kind::WorkloadSpread),
            ),
            (
                "apps.kruise.io/v1",
                "StatefulSet",
                Meaning::WrongVersion(Kind::AdvancedStatefulSet),
            ),
            ("apps/v1", "CloneSet", Meaning::WrongVersion(Kind::CloneSet)),
            (
                "apps.kruise.io/v1beta1",
                "WorkloadSpred",
                Meaning::Misspelt(Kind::WorkloadSpread),
            ),
            ("apps.kruise.io/v1alpha1", "DaemonSet", Meaning::Other),
            ("apps.kruise.io/v1alpha1", "SidecarSet", Meaning::Other),
            (
                "apps.kruise.io/v1alpha1",
                "UnitedDeployment",
                Meaning::Other,
            ),
            ("apps.kruise.io/v1alpha1", "BroadcastJob", Meaning::Other),
            (
                "apps.kruise.io/v1alpha1",
                "PersistentPodState",
                Meaning::Other,
            ),
            ("apps.kruise.io/v1alpha1", "ImagePullJob", Meaning::Other),
            ("example.org/v1", "CloneSet", Meaning::Other),
            (
                "apps.kruise.io/v1beta1",
                "CloneSet",
                Meaning::Known(Kind::CloneSetV1beta1),
            ),
            (
                "app/v1",
                "Deployment",
                Meaning::WrongVersion(Kind::Deployment),
            ),
            (
                "apps/v2",
                "StatefulSet",
                Meaning::WrongVersion(Kind::StatefulSet),
            ),
            (
                "apps.k8s.io/v1",
                "Deployment",
                Meaning::WrongVersion(Kind::Deployment),
            ),
            ("core/v1", "Pod", Meaning::WrongVersion(Kind::Pod)),
            ("k8s.io/v1", "Pod", Meaning::WrongVersion(Kind::Pod)),
            ("v2", "Service", Meaning::WrongVersion(Kind::Service)),
            (
                "scheduling/v1",
                "PriorityClass",
                Meaning::WrongVersion(Kind::PriorityClass),
            ),
            (
                "kruise.io/v1alpha1",
                "CloneSet",
                Meaning::WrongVersion(Kind::CloneSet),
            ),
            (
                "apps.openkruise.io/v1alpha1",
                "CloneSet",
                Meaning::WrongVersion(Kind::CloneSet),
            ),
            (
                "apps.kruise.io/v1alpha1",
                "Deployment",
                Meaning::WrongVersion(Kind::Deployment),
            ),
            (
                "clusters.open-cluster-management.io/v1beta1",
                "Placement",
                Meaning::WrongVersion(Kind::Placement),
            ),
            ("serving.knative.dev", "Service", Meaning::Other),
            ("cluster.x-k8s.io/v1beta1", "Cluster", Meaning::Other),
            ("metrics.k8s.io/v1beta1", "PodMetrics", Meaning::Other),
            ("batch.x-k8s.io/v1", "Job", Meaning::Other),
            ("argoproj.io/v1alpha1", "Rollout", Meaning::Other),
            ("strew.dev/v1alpha1", "Scenario", Meaning::WrongScenario),
            ("sim.strew.io/v1alpha1", "Scenario", Meaning::WrongScenario),
            ("v1", "Scenario", Meaning::WrongScenario),
            ("sim.strew.dev/v1", "Scenario", Meaning::Other),
            ("example.org/v1", "Scenario", Meaning::Other),
            ("apps/v1", "Deploy", Meaning::NoSuchKind),
            ("apps/v1", "Scale", Meaning::Other),
            ("batch/v1", "CronTask", Meaning::NoSuchKind),
        ];
        for (api_version, kind, expected) in cases {
            assert_eq!(meaning(api_version, kind), expected, "{api_version} {kind}");
        }
    }
}
