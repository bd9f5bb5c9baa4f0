//! Converts clusters, sets, bindings, scores and decisions to facts. Source: spec/placement §1.2 to §1.5.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use strew_model::{Interner, Labels, Selector, Symbol};
use strew_placement::facts::cluster::{Amounts, ClusterFact, ClusterTaint};
use strew_placement::facts::cluster_set::{ClusterSetFact, SetSelector};
use strew_placement::facts::decision::{Decision, DecisionFact, GroupLabels};
use strew_placement::facts::scores::ScoresFact;

use super::{instant, name, namespace, replicas, revision, spec};
use crate::facts::{labels, selector};
use crate::placement::cel::CelSelectors;
use strew_manifest::field::FieldPath;
use strew_manifest::ocm::{
    AddOnPlacementScore, GROUP_INDEX_LABEL, GROUP_NAME_LABEL, ManagedCluster, ManagedClusterSet,
    ManagedClusterSetBinding, ManagedClusterStatus, PLACEMENT_LABEL, PlacementDecision,
    REPLICAS_ANNOTATION, Taint,
};
use strew_manifest::quantity::Quantity;
use strew_manifest::validation;

/// A cluster as a fact; `cel` gets the whole object.
pub fn cluster(wire: &ManagedCluster, names: &mut Interner, cel: &mut CelSelectors) -> ClusterFact {
    let name = name(&wire.metadata, names);
    let spec = wire.spec.clone().unwrap_or_default();
    let status = wire.status.clone().unwrap_or_default();
    let claims = status.cluster_claims.iter().flatten();
    let claims = claims.map(|claim| (names.intern(&claim.name), names.intern(&claim.value)));
    let claims = Labels::new(claims.collect());
    let taints = spec.taints.iter().flatten();
    ClusterFact {
        name,
        labels: labels(wire.metadata.labels.as_ref(), names),
        claims,
        taints: taints.map(|t| taint(t, names)).collect(),
        cpu: amounts(&status, "cpu", |q| q.checked_milli_value().ok()),
        memory: amounts(&status, "memory", |q| q.checked_value().ok()),
        deleting: wire.metadata.deletion_timestamp.is_some(),
        raw: cel.set_cluster(name, wire),
    }
}

fn taint(wire: &Taint, names: &mut Interner) -> ClusterTaint {
    ClusterTaint {
        key: names.intern(&wire.key),
        value: names.intern(wire.value.as_deref().unwrap_or_default()),
        effect: spec::effect(&wire.effect),
        added: wire.time_added.as_ref().and_then(instant),
    }
}

/// Invalid quantities are left out: the cluster then has no score for them.
fn amounts(
    status: &ManagedClusterStatus,
    resource: &str,
    value: fn(Quantity) -> Option<i64>,
) -> Amounts {
    let read = |wire: &WireQuantity| value(Quantity::parse(&wire.0).ok()?);
    let of = |list: &Option<std::collections::BTreeMap<String, WireQuantity>>| {
        list.as_ref()
            .and_then(|list| list.get(resource))
            .and_then(read)
    };
    Amounts {
        allocatable: of(&status.allocatable),
        capacity: of(&status.capacity),
    }
}

/// A set of clusters. A set with an invalid selector is treated as one of an unknown type: no decision uses it.
pub fn cluster_set(wire: &ManagedClusterSet, names: &mut Interner) -> ClusterSetFact {
    let wanted = wire
        .spec
        .as_ref()
        .and_then(|spec| spec.cluster_selector.as_ref());
    let kind = wanted.and_then(|selector| selector.selector_type.as_deref());
    let set_selector = match kind.unwrap_or_default() {
        "" | "ExclusiveClusterSetLabel" => SetSelector::Exclusive,
        "LabelSelector" => {
            let wire = wanted.and_then(|s| s.label_selector.as_ref());
            let mut errors = Vec::new();
            let path = FieldPath::root().child("spec.clusterSelector.labelSelector");
            validation::selector::validate(wire, &path, &mut errors);
            match (errors.first(), selector(wire, names)) {
                (Some(error), _) => SetSelector::Unknown(error.to_string().into()),
                (None, found) => SetSelector::Labels(found.unwrap_or(Selector::Nothing)),
            }
        }
        other => SetSelector::Unknown(format!("selectorType {other} is not known").into()),
    };
    ClusterSetFact {
        name: name(&wire.metadata, names),
        selector: set_selector,
    }
}

/// A binding: its namespace, and its name, which is that of the set.
pub fn binding(wire: &ManagedClusterSetBinding, names: &mut Interner) -> (Symbol, Symbol) {
    (
        namespace(&wire.metadata, names),
        name(&wire.metadata, names),
    )
}

/// Scores of a cluster; `cel` gets them too.
pub fn scores(
    wire: &AddOnPlacementScore,
    names: &mut Interner,
    cel: &mut CelSelectors,
) -> ScoresFact {
    let status = wire.status.clone().unwrap_or_default();
    let items = status.scores.unwrap_or_default();
    let cluster = namespace(&wire.metadata, names);
    let object = wire.metadata.name.as_deref().unwrap_or_default();
    cel.set_scores(cluster, object, &items);
    let values = items
        .iter()
        .map(|item| (names.intern(&item.name), item.value));
    ScoresFact {
        values: values.collect(),
        cluster,
        name: names.intern(object),
        // Times before 1970 count as 1970.
        valid_until: status
            .valid_until
            .as_ref()
            .map(|time| instant(time).unwrap_or_default()),
    }
}

/// A PlacementDecision.
pub fn decision(wire: &PlacementDecision, names: &mut Interner) -> DecisionFact {
    let label = |key: &str| wire.metadata.labels.as_ref().and_then(|all| all.get(key));
    let status = wire.status.as_ref();
    let decisions = status.map(|s| s.decisions.as_slice());
    let decisions = decisions.unwrap_or_default();
    let annotations = wire.metadata.annotations.as_ref();
    let replicas = annotations.and_then(|all| all.get(REPLICAS_ANNOTATION));
    DecisionFact {
        namespace: namespace(&wire.metadata, names),
        name: name(&wire.metadata, names),
        placement: label(PLACEMENT_LABEL).map(|name| names.intern(name)),
        group: GroupLabels {
            index: label(GROUP_INDEX_LABEL).and_then(|index| index.parse().ok()),
            name: label(GROUP_NAME_LABEL).map(|name| names.intern(name)),
        },
        has_reason: decisions.iter().any(|decision| !decision.reason.is_empty()),
        decisions: decisions
            .iter()
            .map(|decision| Decision {
                cluster: names.intern(&decision.cluster_name),
                score: decision.score,
            })
            .collect(),
        replicas: replicas::of_decision(replicas.map(String::as_str), names),
        revision: revision(&wire.metadata),
    }
}
