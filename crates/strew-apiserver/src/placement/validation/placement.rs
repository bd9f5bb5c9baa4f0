//! Placement. Source: spec/placement §1.1, §3.1, §3.10, §3.11.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::ocm::{
    GroupStrategy, ON_MISCONFIGURED_ANNOTATION, Placement, PlacementSpec, PrioritizerConfig,
    REPLICA_DIVISION_ANNOTATION, REPLICAS_ANNOTATION, SPREAD_REBALANCE_ANNOTATION,
    SpreadConstraintsTerm, TOPOLOGY_GROUPS_ANNOTATION, TOPOLOGY_WEIGHTS_ANNOTATION, Toleration,
};
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::text;
use strew_wire::placement::facts::groups::groups_by_key;
use strew_wire::placement::facts::spec::{strategy, terms};
use strew_wire::placement::facts::weights_by_key;
use strew_wire::placement::schema::{
    EFFECTS, GROUP_NAME, GROUP_SIZE, KEY_MAX, LABEL_KEY, RATE_LIMIT, TERMS_MAX, TOPOLOGY_KEY,
    VALUE_MAX,
};

use super::schema::Schema;
use crate::validation::Validate;

/// The longest value of a label, in bytes.
const LABEL_MAX: usize = 63;

impl Validate for Placement {
    fn validate(&self) -> Vec<FieldError> {
        let mut schema = Schema {
            errors: metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain),
        };
        let path = FieldPath::root().child("spec");
        match &self.spec {
            Some(spec) => check(spec, &path, &mut schema),
            None => schema.required(false, &path),
        }
        schema.errors
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let name = self.metadata.name.as_deref().unwrap_or_default();
        if name.len() > LABEL_MAX {
            warnings.push(format!(
                "metadata.name: longer than {LABEL_MAX} bytes: no PlacementDecision can be labelled with it, so none is made"
            ));
        }
        warnings.extend(annotations(self));
        let tolerations = self
            .spec
            .iter()
            .flat_map(|spec| spec.tolerations.iter().flatten());
        for (i, toleration) in tolerations.enumerate() {
            let operator = toleration.operator.as_deref().unwrap_or_default();
            if !["", "Equal", "Exists"].contains(&operator) {
                warnings.push(format!(
                    "spec.tolerations[{i}].operator: {operator:?} is neither Equal nor Exists: it tolerates nothing"
                ));
            }
        }
        warnings
    }
}

/// strew's annotations with invalid values.
fn annotations(placement: &Placement) -> Vec<String> {
    let annotation = |key: &str| {
        let all = placement.metadata.annotations.as_ref();
        all.and_then(|all| all.get(key))
    };
    let mut warnings = Vec::new();
    for (key, choices) in [
        (ON_MISCONFIGURED_ANNOTATION, ["Empty", "Keep"]),
        (SPREAD_REBALANCE_ANNOTATION, ["OnChange", "Never"]),
    ] {
        if let Some(value) = annotation(key).filter(|value| !choices.contains(&value.as_str())) {
            let [first, second] = choices;
            warnings.push(format!(
                "metadata.annotations[{key}]: {value:?} is neither {first} nor {second}: taken as {first}"
            ));
        }
    }
    let weights = annotation(TOPOLOGY_WEIGHTS_ANNOTATION);
    let weights = weights.and_then(|text| weights_by_key(text).ok());
    let groups = annotation(TOPOLOGY_GROUPS_ANNOTATION);
    let groups = groups.and_then(|text| groups_by_key(text).ok());
    let weights = weights.iter().flatten();
    let keys = weights.map(|(key, _)| (TOPOLOGY_WEIGHTS_ANNOTATION, key));
    let groups = groups.iter().flatten();
    let keys = keys.chain(groups.map(|(key, _)| (TOPOLOGY_GROUPS_ANNOTATION, key)));
    let terms = placement.spec.as_ref().map(terms).unwrap_or_default();
    for (annotation, key) in keys {
        if !terms.iter().any(|term| term.topology_key == *key) {
            warnings.push(format!(
                "metadata.annotations[{annotation}]: no spread constraint has the topology key {key:?}"
            ));
        }
    }
    let divides = annotation(REPLICA_DIVISION_ANNOTATION).is_some();
    if divides && annotation(REPLICAS_ANNOTATION).is_none() {
        warnings.push(format!(
            "metadata.annotations[{REPLICA_DIVISION_ANNOTATION}]: without {REPLICAS_ANNOTATION} no replicas are divided"
        ));
    }
    warnings
}

fn check(spec: &PlacementSpec, path: &FieldPath, schema: &mut Schema) {
    let policy = spec.prioritizer_policy.as_ref();
    let configurations = policy.and_then(|p| p.configurations.as_deref());
    let at = path.child("prioritizerPolicy.configurations");
    for (i, configuration) in configurations.unwrap_or_default().iter().enumerate() {
        prioritizer(configuration, &at.index(i), schema);
    }
    let at = path.child("spreadPolicy.spreadConstraints");
    let terms = terms(spec);
    schema.at_most(terms.len(), TERMS_MAX, &at);
    for (i, term) in terms.iter().enumerate().take(TERMS_MAX) {
        spread_term(term, &at.index(i), schema);
    }
    for (i, toleration) in spec.tolerations.iter().flatten().enumerate() {
        self::toleration(toleration, &path.child("tolerations").index(i), schema);
    }
    if let Some(strategy) = strategy(spec) {
        groups(
            strategy,
            &path.child("decisionStrategy.groupStrategy"),
            schema,
        );
    }
    if let Some(sort_by) = &spec.sort_by {
        schema.one_of(sort_by, &["ClusterName", "Score"], &path.child("sortBy"));
    }
    if let Some(limit) = &spec.score_rate_limit {
        schema.pattern(limit, &RATE_LIMIT, &path.child("scoreRateLimit"));
    }
}

fn prioritizer(configuration: &PrioritizerConfig, path: &FieldPath, schema: &mut Schema) {
    if let Some(weight) = configuration.weight {
        schema.range(weight, -10, 10, &path.child("weight"));
    }
    let path = path.child("scoreCoordinate");
    let Some(coordinate) = &configuration.score_coordinate else {
        return schema.required(false, &path);
    };
    // A missing value gets its default.
    if let Some(kind) = &coordinate.type_ {
        schema.one_of(kind, &["BuiltIn", "AddOn"], &path.child("type"));
    }
    if let Some(add_on) = &coordinate.add_on {
        let path = path.child("addOn");
        schema.required(
            !add_on.resource_name.is_empty(),
            &path.child("resourceName"),
        );
        schema.required(!add_on.score_name.is_empty(), &path.child("scoreName"));
    }
}

fn spread_term(term: &SpreadConstraintsTerm, path: &FieldPath, schema: &mut Schema) {
    let key = path.child("topologyKey");
    match term.topology_key.is_empty() {
        true => schema.required(false, &key),
        false => schema.pattern(&term.topology_key, &TOPOLOGY_KEY, &key),
    }
    schema.length(&term.topology_key, KEY_MAX, &key);
    let kind = path.child("topologyKeyType");
    match term.topology_key_type.is_empty() {
        true => schema.required(false, &kind),
        false => schema.one_of(&term.topology_key_type, &["Label", "Claim"], &kind),
    }
    if let Some(max_skew) = term.max_skew {
        schema.range(max_skew, 1, i32::MAX, &path.child("maxSkew"));
    }
    if let Some(when) = &term.when_unsatisfiable {
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        schema.one_of(when, &choices, &path.child("whenUnsatisfiable"));
    }
    for (bound, field) in [
        (term.min_groups, "minGroups"),
        (term.max_groups, "maxGroups"),
    ] {
        if let Some(bound) = bound {
            schema.range(bound, 1, i32::MAX, &path.child(field));
        }
    }
    let weights = term.topology_weights.as_deref().unwrap_or_default();
    let values: Vec<&str> = weights.iter().map(|entry| entry.value.as_str()).collect();
    schema.unique(&values, "value", &path.child("topologyWeights"));
}

fn toleration(toleration: &Toleration, path: &FieldPath, schema: &mut Schema) {
    if let Some(key) = &toleration.key {
        let path = path.child("key");
        // For a schema, an empty value is not a missing one.
        schema.pattern(key, &LABEL_KEY, &path);
        schema.length(key, KEY_MAX, &path);
    }
    if let Some(value) = &toleration.value {
        schema.length(value, VALUE_MAX, &path.child("value"));
    }
    if let Some(effect) = &toleration.effect {
        schema.one_of(effect, &EFFECTS, &path.child("effect"));
    }
}

fn groups(strategy: &GroupStrategy, path: &FieldPath, schema: &mut Schema) {
    for (i, group) in strategy.decision_groups.iter().flatten().enumerate() {
        let path = path.child("decisionGroups").index(i);
        let name = path.child("groupName");
        match group.group_name.is_empty() {
            true => schema.required(false, &name),
            false => schema.pattern(&group.group_name, &GROUP_NAME, &name),
        }
        let selector = path.child("groupClusterSelector");
        schema.required(group.group_cluster_selector.is_some(), &selector);
    }
    if let Some(IntOrString::String(size)) = &strategy.clusters_per_decision_group {
        schema.pattern(size, &GROUP_SIZE, &path.child("clustersPerDecisionGroup"));
    }
}
