//! Replicas divided over clusters: two annotations of a Placement, and the one of its PlacementDecisions. Source:
//! spec/placement §3.11.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use strew_model::Interner;
use strew_placement::decisions::replicas::check;
use strew_placement::facts::decision::Replicas;
use strew_placement::facts::placement::{AddOnCoordinate, DivideBy, Division, ReplicaWeight};

use super::predicates;
use strew_manifest::field::FieldPath;
use strew_manifest::ocm::{
    ClusterClaimSelector, ManagedCluster, Placement, REPLICA_DIVISION_ANNOTATION,
    REPLICAS_ANNOTATION, ScoreCoordinate,
};
use strew_manifest::validation::selector::{self, is_empty};

/// The largest number of replicas: as of a Deployment.
const REPLICAS_MAX: u32 = i32::MAX.unsigned_abs();

/// The weight of clusters that no entry matches, where nothing is written.
const DEFAULT_WEIGHT: i64 = 1;

/// What replicas are divided by.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ReplicaDivision {
    /// The first entry that matches a cluster counts.
    pub weights: Option<Vec<WeightedClusters>>,
    /// The weight of clusters that no entry matches; 1 where nothing is written.
    pub default_weight: Option<i64>,
    /// A score, or an amount, in the place of weights.
    pub score_coordinate: Option<ScoreCoordinate>,
    /// The least number of replicas of a cluster with a weight; 0 if absent.
    pub min_per_cluster: Option<u32>,
}

/// The weight of clusters that match both selectors.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WeightedClusters {
    /// Over labels.
    #[serde(default)]
    pub label_selector: Option<LabelSelector>,
    /// Over claims.
    #[serde(default)]
    pub claim_selector: Option<ClusterClaimSelector>,
    /// 0 to 1000.
    pub weight: i64,
}

impl WeightedClusters {
    /// Whether it selects nothing in particular.
    fn is_for_all(&self) -> bool {
        let claims = self.claim_selector.as_ref();
        let claims = claims.and_then(|claims| claims.match_expressions.as_deref());
        self.label_selector.as_ref().is_none_or(is_empty) && claims.unwrap_or_default().is_empty()
    }

    /// Whether both selectors match a cluster; no, if one cannot be read.
    pub fn matches(&self, cluster: &ManagedCluster) -> bool {
        let claims = cluster
            .status
            .iter()
            .flat_map(|status| status.cluster_claims.iter().flatten());
        let claims: BTreeMap<String, String> = claims
            .map(|claim| (claim.name.clone(), claim.value.clone()))
            .collect();
        let labels = self.label_selector.as_ref();
        let labels = labels.map(|s| selector::matches(s, cluster.metadata.labels.as_ref()));
        let expressions = self.claim_selector.as_ref();
        let by_claims = expressions.map(|wire| {
            let selector = LabelSelector {
                match_labels: None,
                match_expressions: wire.match_expressions.clone(),
            };
            selector::matches(&selector, Some(&claims))
        });
        let holds = |found: Option<Option<bool>>| found.is_none_or(|found| found == Some(true));
        holds(labels) && holds(by_claims)
    }
}

/// What is wrong with an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::placement) struct WrongAnnotation {
    /// Which one.
    pub(in crate::placement) key: &'static str,
    /// What is wrong, as the condition has it.
    pub(in crate::placement) message: String,
}

/// Reads what replicas are divided by.
///
/// # Errors
/// A text that is no such object.
pub fn read_division(text: &str) -> Result<ReplicaDivision, String> {
    let read = serde_json::from_str(text);
    read.map_err(|error| format!("annotation {REPLICA_DIVISION_ANNOTATION}: {error}"))
}

/// The replicas that a Placement divides; `None` where its annotation does not ask for any.
///
/// # Errors
/// The first thing that is wrong with the annotations.
pub(in crate::placement) fn division(
    placement: &Placement,
    names: &mut Interner,
) -> Result<Option<Division>, WrongAnnotation> {
    let annotation = |key: &str| {
        let all = placement.metadata.annotations.as_ref();
        all.and_then(|all| all.get(key)).map(String::as_str)
    };
    let Some(text) = annotation(REPLICAS_ANNOTATION) else {
        return Ok(None);
    };
    let total = text.parse().ok().filter(|&n: &u32| n <= REPLICAS_MAX);
    let total = total.ok_or_else(|| WrongAnnotation {
        key: REPLICAS_ANNOTATION,
        message: format!(
            "annotation {REPLICAS_ANNOTATION}: {text:?} is no whole number from 0 to {REPLICAS_MAX}"
        ),
    })?;
    let wrong = |message: String| WrongAnnotation {
        key: REPLICA_DIVISION_ANNOTATION,
        message,
    };
    let division = match annotation(REPLICA_DIVISION_ANNOTATION) {
        None => ReplicaDivision::default(),
        Some(text) => read_division(text).map_err(wrong)?,
    };
    let division = Division {
        total,
        min_per_cluster: division.min_per_cluster.unwrap_or(0),
        by: by(&division, names).map_err(|message| {
            wrong(format!(
                "annotation {REPLICA_DIVISION_ANNOTATION}: {message}"
            ))
        })?,
    };
    check(&division).map_err(wrong)?;
    Ok(Some(division))
}

fn by(division: &ReplicaDivision, names: &mut Interner) -> Result<DivideBy, String> {
    if let Some(coordinate) = &division.score_coordinate {
        if division.weights.is_some() || division.default_weight.is_some() {
            return Err("scoreCoordinate and weights exclude each other".to_owned());
        }
        return by_score(coordinate, names);
    }
    let mut entries = Vec::new();
    for (i, entry) in division.weights.iter().flatten().enumerate() {
        let path = FieldPath::root().child("weights").index(i);
        if entry.is_for_all() {
            return Err(format!(
                "{path}: an empty selector matches every cluster: that is defaultWeight"
            ));
        }
        let (labels, claims) = predicates::selectors(
            entry.label_selector.as_ref(),
            entry.claim_selector.as_ref(),
            &path,
            names,
        )?;
        entries.push(ReplicaWeight {
            labels,
            claims,
            weight: entry.weight,
        });
    }
    Ok(DivideBy::Weights {
        entries: entries.into(),
        default: division.default_weight.unwrap_or(DEFAULT_WEIGHT),
    })
}

fn by_score(coordinate: &ScoreCoordinate, names: &mut Interner) -> Result<DivideBy, String> {
    if coordinate.type_.as_deref() == Some("AddOn") {
        let Some(add_on) = &coordinate.add_on else {
            return Err("addOn should not be empty".to_owned());
        };
        return Ok(DivideBy::AddOn(AddOnCoordinate {
            resource: names.intern(&add_on.resource_name),
            score: names.intern(&add_on.score_name),
        }));
    }
    match coordinate.built_in.as_deref().unwrap_or_default() {
        "ResourceAllocatableCPU" => Ok(DivideBy::AllocatableCpu),
        "ResourceAllocatableMemory" => Ok(DivideBy::AllocatableMemory),
        name => Err(format!(
            "nothing is divided by the builtin {name:?}; there are ResourceAllocatableCPU, ResourceAllocatableMemory"
        )),
    }
}

/// The annotation of a PlacementDecision.
pub(super) fn of_decision(text: Option<&str>, names: &mut Interner) -> Replicas {
    let Some(text) = text else {
        return Replicas::Absent;
    };
    match serde_json::from_str::<BTreeMap<String, u32>>(text) {
        Ok(parts) => Replicas::Parts(
            parts
                .iter()
                .map(|(cluster, &n)| (names.intern(cluster), n))
                .collect(),
        ),
        Err(_) => Replicas::Unreadable,
    }
}

/// The annotation of a PlacementDecision as it is written; `None`: it has none.
pub fn annotation(replicas: &Replicas, names: &Interner) -> Option<String> {
    let Replicas::Parts(parts) = replicas else {
        return None;
    };
    let parts = parts.iter().map(|&(cluster, n)| (names.text(cluster), n));
    let parts: BTreeMap<&str, u32> = parts.collect();
    serde_json::to_string(&parts).ok()
}
