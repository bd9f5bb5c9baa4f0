//! The objects of a generated hub.

use serde_json::{Value, json};

use super::story::{ClusterPlan, DividedBy, HubStory, Only, PlacementPlan, TermKey};

const GROUP: &str = "cluster.open-cluster-management.io";

/// The name of the region with this number.
pub(super) fn region(number: u8) -> String {
    format!("r{number}")
}

/// The name of the zone with this number; other regions have zones of the same names.
pub(super) fn zone(number: u8) -> String {
    format!("z{number}")
}

/// All objects at second 0.
pub(super) fn of(story: &HubStory) -> Vec<Value> {
    let mut all = vec![json!({
        "apiVersion": format!("{GROUP}/v1beta2"),
        "kind": "ManagedClusterSetBinding",
        "metadata": {"namespace": "default", "name": "global"},
        "spec": {"clusterSet": "global"},
    })];
    for plan in &story.clusters {
        if !plan.is_late {
            all.push(cluster(plan));
        }
        if let Some(value) = plan.score {
            all.push(scores(&plan.name, value));
        }
    }
    let placements = story.placements.iter().filter(|plan| !plan.is_late);
    all.extend(placements.map(placement));
    all
}

/// A cluster.
pub(super) fn cluster(plan: &ClusterPlan) -> Value {
    let mut labels = json!({"tier": if plan.is_canary { "canary" } else { "rest" }});
    if let Some(number) = plan.region {
        labels["region"] = region(number).into();
    }
    if let Some(number) = plan.zone {
        labels["zone"] = zone(number).into();
    }
    let claims = plan
        .provider
        .map(|n| json!({"name": "provider", "value": format!("v{n}")}));
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ManagedCluster",
        "metadata": {"name": plan.name, "labels": labels},
        "spec": {"hubAcceptsClient": true},
        "status": {
            "clusterClaims": claims.into_iter().collect::<Vec<Value>>(),
            "allocatable": {"cpu": plan.cpu.to_string()},
            "capacity": {"cpu": "10"},
        },
    })
}

/// The add-on's score of a cluster, as an AddOnPlacementScore.
pub(super) fn scores(cluster: &str, value: i8) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "AddOnPlacementScore",
        "metadata": {"namespace": cluster, "name": "table"},
        "status": {"scores": [{"name": "prior", "value": value}]},
    })
}

/// A placement.
pub(super) fn placement(plan: &PlacementPlan) -> Value {
    let mut spec = json!({});
    if let Some(number) = plan.number {
        spec["numberOfClusters"] = number.into();
    }
    let predicate = match plan.only {
        Only::All => None,
        Only::Region(n) => Some(json!({"labelSelector": {"matchLabels": {"region": region(n)}}})),
        Only::CanaryByCel => Some(json!({"celSelector": {"celExpressions": [
            "managedCluster.metadata.labels['tier'] == 'canary'"
        ]}})),
        Only::Provider(n) => Some(json!({"claimSelector": {"matchExpressions": [
            {"key": "provider", "operator": "In", "values": [format!("v{n}")]}
        ]}})),
    };
    if let Some(predicate) = predicate {
        spec["predicates"] = json!([{"requiredClusterSelector": predicate}]);
    }
    spec["prioritizerPolicy"] = prioritizers(plan);
    if !plan.terms.is_empty() {
        let terms = plan.terms.iter().map(|term| {
            let (key, kind) = match term.key {
                TermKey::Provider => ("provider", "Claim"),
                TermKey::Region => ("region", "Label"),
                TermKey::Zone => ("zone", "Label"),
            };
            json!({
                "topologyKey": key,
                "topologyKeyType": kind,
                "maxSkew": term.max_skew,
                "whenUnsatisfiable": when(term.is_hard),
            })
        });
        let mut terms: Vec<Value> = terms.collect();
        for (field, bound) in [("minGroups", plan.groups.0), ("maxGroups", plan.groups.1)] {
            if bound > 0 {
                terms[0][field] = bound.into();
            }
        }
        spec["spreadPolicy"] = json!({ "spreadConstraints": terms });
    }
    if let Some(seconds) = plan.tolerates {
        spec["tolerations"] =
            json!([{"key": "storm", "operator": "Exists", "tolerationSeconds": seconds}]);
    }
    let mut groups = json!({});
    if plan.group_size > 0 {
        groups["clustersPerDecisionGroup"] = plan.group_size.into();
    }
    if plan.has_canaries {
        groups["decisionGroups"] = json!([{
            "groupName": "canary",
            "groupClusterSelector": {"labelSelector": {"matchLabels": {"tier": "canary"}}},
        }]);
    }
    spec["decisionStrategy"] = json!({"groupStrategy": groups});
    if plan.is_by_score {
        spec["sortBy"] = "Score".into();
    }
    let mut metadata = json!({"namespace": "default", "name": plan.name});
    if let Some((total, by)) = plan.replicas {
        let division = match by {
            DividedBy::Weights => json!({"minPerCluster": 1, "weights": [
                {"labelSelector": {"matchLabels": {"tier": "canary"}}, "weight": 3},
            ]}),
            DividedBy::Cpu => json!({"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}}),
            DividedBy::AddOn => json!({"scoreCoordinate": {
                "type": "AddOn", "addOn": {"resourceName": "table", "scoreName": "prior"},
            }}),
        };
        metadata["annotations"] = json!({
            "strew.dev/replicas": total.to_string(),
            "strew.dev/replica-division": division.to_string(),
        });
    }
    json!({
        "apiVersion": format!("{GROUP}/v1beta1"),
        "kind": "Placement",
        "metadata": metadata,
        "spec": spec,
    })
}

/// `whenUnsatisfiable` of a term.
pub(super) fn when(is_hard: bool) -> &'static str {
    match is_hard {
        true => "DoNotSchedule",
        false => "ScheduleAnyway",
    }
}

fn prioritizers(plan: &PlacementPlan) -> Value {
    let mut all = Vec::new();
    if plan.steady != 1 {
        all.push(json!({
            "scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"},
            "weight": plan.steady,
        }));
    }
    if plan.has_add_on {
        let add_on = json!({"resourceName": "table", "scoreName": "prior"});
        all.push(json!({"scoreCoordinate": {"type": "AddOn", "addOn": add_on}, "weight": 2}));
    }
    if plan.has_cpu {
        all.push(json!({
            "scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"},
        }));
    }
    json!({"mode": "Additive", "configurations": all})
}
