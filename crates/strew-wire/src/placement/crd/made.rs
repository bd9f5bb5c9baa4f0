//! CustomResourceDefinitions of OCM's kinds, made from the types, for hubs without OCM.
//!
//! Groups, versions, names, columns, defaults and limits are OCM's, so that its objects and clients work unchanged.
//! `topologyWeights`, `minGroups` and `maxGroups` in a spread constraint exist only in strew's definition. Source:
//! spec/placement §1, §3.1, §3.8, §3.10, §4.

use k8s_openapi::Resource;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::super::schema::{
    CLAIM_NAME_MAX, EFFECTS, GROUP_NAME, GROUP_SIZE, KEY_MAX, LABEL_KEY, RATE_LIMIT,
    SELECTOR_TYPES, TERMS_MAX, TOPOLOGY_KEY, VALUE_MAX,
};
use super::super::wire::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};
use crate::definition::made::{AGE, Column, Facts, constrain, definition, schema_of, version};

/// A rule over a field, by its path.
type Rule = (&'static str, Value);

/// All definitions, as `deploy/crds/` has them.
pub fn all() -> Vec<Value> {
    vec![
        of::<Placement>("Namespaced", &[], &placement(), PLACEMENT_COLUMNS),
        of::<PlacementDecision>("Namespaced", &[], &decision(), &[]),
        of::<ManagedCluster>("Cluster", &["mcl", "mcls"], &cluster(), CLUSTER_COLUMNS),
        of::<ManagedClusterSet>("Cluster", &["mclset", "mclsets"], &set(), SET_COLUMNS),
        of::<ManagedClusterSetBinding>(
            "Namespaced",
            &["mclsetbinding", "mclsetbindings"],
            &binding(),
            &[],
        ),
        of::<AddOnPlacementScore>("Namespaced", &[], &scores(), &[]),
    ]
}

fn of<T: Resource + JsonSchema>(
    scope: &'static str,
    short_names: &'static [&'static str],
    rules: &[Rule],
    columns: &[Column],
) -> Value {
    let mut schema = schema_of::<T>();
    constrain(&mut schema, rules);
    let facts = Facts {
        scope,
        short_names,
        conversion: None,
    };
    definition::<T>(facts, vec![version::<T>(true, schema, columns)])
}

// === Placement ===

const PLACEMENT_COLUMNS: &[Column] = &[
    Column {
        name: "Succeeded",
        kind: "string",
        path: ".status.conditions[?(@.type==\"PlacementSatisfied\")].status",
        description: "Whether as many clusters as asked for are selected",
    },
    Column {
        name: "Reason",
        kind: "string",
        path: ".status.conditions[?(@.type==\"PlacementSatisfied\")].reason",
        description: "Why, or why not",
    },
    Column {
        name: "SelectedClusters",
        kind: "integer",
        path: ".status.numberOfSelectedClusters",
        description: "How many clusters are selected",
    },
];

fn placement() -> Vec<Rule> {
    let mut rules = vec![
        ("", required(&["spec"])),
        (
            "spec.sortBy",
            chosen("ClusterName", &["ClusterName", "Score"]),
        ),
        (
            "spec.scoreRateLimit",
            json!({"default": "1m", "pattern": RATE_LIMIT.regex}),
        ),
        ("status.conditions", map_of("type")),
        (
            "status.decisionGroups[].clusterCount",
            json!({"default": 0}),
        ),
    ];
    rules.extend(prioritizers());
    rules.extend(spread());
    rules.extend(tolerations());
    rules.extend(groups());
    rules
}

fn prioritizers() -> Vec<Rule> {
    vec![
        (
            "spec.prioritizerPolicy.mode",
            json!({"default": "Additive"}),
        ),
        (
            "spec.prioritizerPolicy.configurations[]",
            required(&["scoreCoordinate"]),
        ),
        (
            "spec.prioritizerPolicy.configurations[].weight",
            json!({"default": 1, "minimum": -10, "maximum": 10}),
        ),
        (
            "spec.prioritizerPolicy.configurations[].scoreCoordinate",
            required(&["type"]),
        ),
        (
            "spec.prioritizerPolicy.configurations[].scoreCoordinate.type",
            chosen("BuiltIn", &["BuiltIn", "AddOn"]),
        ),
        (
            "spec.prioritizerPolicy.configurations[].scoreCoordinate.addOn",
            required(&["resourceName", "scoreName"]),
        ),
    ]
}

fn spread() -> Vec<Rule> {
    vec![
        (
            "spec.spreadPolicy.spreadConstraints",
            json!({"maxItems": TERMS_MAX}),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[]",
            required(&["topologyKey", "topologyKeyType"]),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].topologyKey",
            json!({"maxLength": KEY_MAX, "pattern": TOPOLOGY_KEY.regex}),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].topologyKeyType",
            json!({"enum": ["Label", "Claim"]}),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].maxSkew",
            json!({"default": 1, "minimum": 1}),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].whenUnsatisfiable",
            chosen("ScheduleAnyway", &["DoNotSchedule", "ScheduleAnyway"]),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].topologyWeights",
            map_of("value"),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].topologyWeights[]",
            required(&["value", "weight"]),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].topologyWeights[].weight",
            json!({"minimum": 0, "maximum": 1000}),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].minGroups",
            json!({"minimum": 1}),
        ),
        (
            "spec.spreadPolicy.spreadConstraints[].maxGroups",
            json!({"minimum": 1}),
        ),
    ]
}

fn tolerations() -> Vec<Rule> {
    vec![
        (
            "spec.tolerations[].key",
            json!({"maxLength": KEY_MAX, "pattern": LABEL_KEY.regex}),
        ),
        ("spec.tolerations[].value", json!({"maxLength": VALUE_MAX})),
        ("spec.tolerations[].effect", json!({"enum": EFFECTS})),
        ("spec.tolerations[].operator", json!({"default": "Equal"})),
    ]
}

fn groups() -> Vec<Rule> {
    vec![
        (
            "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup",
            json!({"default": "100%", "pattern": GROUP_SIZE.regex}),
        ),
        (
            "spec.decisionStrategy.groupStrategy.decisionGroups[]",
            required(&["groupClusterSelector", "groupName"]),
        ),
        (
            "spec.decisionStrategy.groupStrategy.decisionGroups[].groupName",
            json!({"pattern": GROUP_NAME.regex}),
        ),
    ]
}

/// The limit of 100 entries is the controller's rule, and not in OCM's schema.
fn decision() -> Vec<Rule> {
    vec![
        ("status", required(&["decisions"])),
        ("status.decisions[]", required(&["clusterName", "reason"])),
    ]
}

// === clusters ===

const CLUSTER_COLUMNS: &[Column] = &[
    Column {
        name: "Hub Accepted",
        kind: "boolean",
        path: ".spec.hubAcceptsClient",
        description: "Whether the cluster may join",
    },
    Column {
        name: "Managed Cluster URLs",
        kind: "string",
        path: ".spec.managedClusterClientConfigs[*].url",
        description: "Where its API server is",
    },
    Column {
        name: "Joined",
        kind: "string",
        path: ".status.conditions[?(@.type==\"ManagedClusterJoined\")].status",
        description: "Whether it has joined",
    },
    Column {
        name: "Available",
        kind: "string",
        path: ".status.conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status",
        description: "Whether it answers",
    },
    AGE,
];

const SET_COLUMNS: &[Column] = &[
    Column {
        name: "Empty",
        kind: "string",
        path: ".status.conditions[?(@.type==\"ClusterSetEmpty\")].status",
        description: "Whether no cluster is in it",
    },
    AGE,
];

/// An amount may be written as a number too. Source: `k8s.io/apimachinery/pkg/api/resource`.
const AMOUNT: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

fn cluster() -> Vec<Rule> {
    let amount = || {
        json!({"additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": AMOUNT,
            "x-kubernetes-int-or-string": true,
        }})
    };
    vec![
        ("spec.leaseDurationSeconds", json!({"default": 60})),
        (
            "spec.managedClusterClientConfigs[].caBundle",
            json!({"format": "byte"}),
        ),
        ("spec.taints[]", required(&["effect", "key"])),
        (
            "spec.taints[].key",
            json!({"maxLength": KEY_MAX, "pattern": LABEL_KEY.regex}),
        ),
        ("spec.taints[].value", json!({"maxLength": VALUE_MAX})),
        ("spec.taints[].effect", json!({"enum": EFFECTS})),
        // OCM's clients write `null` for an unknown time.
        ("spec.taints[].timeAdded", json!({"nullable": true})),
        (
            "status.clusterClaims[].name",
            json!({"minLength": 1, "maxLength": CLAIM_NAME_MAX}),
        ),
        (
            "status.clusterClaims[].value",
            json!({"minLength": 1, "maxLength": VALUE_MAX}),
        ),
        ("status.capacity", amount()),
        ("status.allocatable", amount()),
    ]
}

fn set() -> Vec<Rule> {
    let exclusive = SELECTOR_TYPES[0];
    let selector = json!({"selectorType": exclusive});
    vec![
        ("spec", json!({"default": {"clusterSelector": selector}})),
        (
            "spec.clusterSelector",
            json!({"default": selector, "required": ["selectorType"]}),
        ),
        (
            "spec.clusterSelector.selectorType",
            chosen(exclusive, &SELECTOR_TYPES),
        ),
        ("spec.managedNamespaces", map_of("name")),
        ("spec.managedNamespaces[]", required(&["name"])),
        (
            "spec.managedNamespaces[].name",
            json!({"maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}),
        ),
    ]
}

fn binding() -> Vec<Rule> {
    vec![("spec.clusterSet", json!({"minLength": 1}))]
}

fn scores() -> Vec<Rule> {
    vec![
        ("status.conditions", map_of("type")),
        ("status.scores", map_of("name")),
        ("status.scores[]", required(&["name", "value"])),
        (
            "status.scores[].value",
            json!({"minimum": -100, "maximum": 100}),
        ),
    ]
}

// === words of a schema ===

fn required(fields: &[&str]) -> Value {
    json!({ "required": fields })
}

/// An enumeration with its default.
fn chosen(default: &str, choices: &[&str]) -> Value {
    json!({"default": default, "enum": choices})
}

/// A list with map semantics: this field is the key.
fn map_of(key: &str) -> Value {
    json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})
}
