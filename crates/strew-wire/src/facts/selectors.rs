//! Parses selectors and constraints.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use strew_cluster::{Policy, SpreadConstraint};
use strew_model::{
    FieldMatch, Interner, NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Requirement,
    Selector, Symbol,
};

/// An invalid selector: an unknown operator, or values missing or present where they must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadSelector;

/// A label selector; a missing one matches nothing.
///
/// # Errors
/// An operator is unknown, or its values are missing or superfluous.
pub fn selector(
    wire: Option<&LabelSelector>,
    names: &mut Interner,
) -> Result<Selector, BadSelector> {
    let Some(wire) = wire else {
        return Ok(Selector::Nothing);
    };
    let mut requirements = Vec::new();
    for (key, value) in wire.match_labels.iter().flatten() {
        let (key, value) = (names.intern(key), names.intern(value));
        requirements.push(Requirement::is_in(key, vec![value]));
    }
    for expression in wire.match_expressions.iter().flatten() {
        let values = expression.values.as_deref().unwrap_or_default();
        requirements.push(
            requirement(&expression.key, &expression.operator, values, names).ok_or(BadSelector)?,
        );
    }
    Ok(Selector::all_of(requirements))
}

fn requirement(
    key: &str,
    operator: &str,
    values: &[String],
    names: &mut Interner,
) -> Option<Requirement> {
    let key = names.intern(key);
    let operator = label_operator(operator, values, names)?;
    Some(match operator {
        Operator::In(values) => Requirement::is_in(key, values.into_vec()),
        Operator::NotIn(values) => Requirement::is_not_in(key, values.into_vec()),
        operator => Requirement { key, operator },
    })
}

fn label_operator(operator: &str, values: &[String], names: &mut Interner) -> Option<Operator> {
    let mut symbols = || {
        values
            .iter()
            .map(|v| names.intern(v))
            .collect::<Box<[Symbol]>>()
    };
    match (operator, values.is_empty()) {
        ("In", false) => Some(Operator::In(symbols())),
        ("NotIn", false) => Some(Operator::NotIn(symbols())),
        ("Exists", true) => Some(Operator::Exists),
        ("DoesNotExist", true) => Some(Operator::DoesNotExist),
        _ => None,
    }
}

/// A term of node affinity; an invalid one matches no node.
pub(crate) fn node_selector_term(
    term: &core::NodeSelectorTerm,
    names: &mut Interner,
) -> NodeSelectorTerm {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return NodeSelectorTerm::NoNode;
    }
    let expressions: Option<Box<[NodeExpression]>> = expressions
        .iter()
        .map(|e| node_expression(e, names))
        .collect();
    let fields: Option<Box<[FieldMatch]>> = fields.iter().map(|f| field_match(f, names)).collect();
    match (expressions, fields) {
        (Some(expressions), Some(fields)) => NodeSelectorTerm::AllOf {
            expressions,
            fields,
        },
        _ => NodeSelectorTerm::NoNode,
    }
}

fn node_expression(
    wire: &core::NodeSelectorRequirement,
    names: &mut Interner,
) -> Option<NodeExpression> {
    let values = wire.values.as_deref().unwrap_or_default();
    let bound = || match values {
        [one] => one.parse().ok(),
        _ => None,
    };
    let operator = match wire.operator.as_str() {
        "Gt" => NodeOperator::Gt(bound()?),
        "Lt" => NodeOperator::Lt(bound()?),
        other => NodeOperator::Label(label_operator(other, values, names)?),
    };
    let key = names.intern(&wire.key);
    Some(NodeExpression { key, operator })
}

fn field_match(wire: &core::NodeSelectorRequirement, names: &mut Interner) -> Option<FieldMatch> {
    let is_in = match wire.operator.as_str() {
        "In" => true,
        "NotIn" => false,
        _ => return None,
    };
    match wire.values.as_deref() {
        Some([name]) if wire.key == "metadata.name" => Some(FieldMatch {
            name: names.intern(name),
            is_in,
        }),
        _ => None,
    }
}

/// A topology spread constraint, of a pod or of the defaults.
///
/// # Errors
/// Its selector is invalid.
pub fn spread_constraint(
    wire: &core::TopologySpreadConstraint,
    names: &mut Interner,
) -> Result<SpreadConstraint, BadSelector> {
    let policy = |given: &Option<String>, absent| match given.as_deref() {
        Some("Honor") => Policy::Honor,
        Some("Ignore") => Policy::Ignore,
        _ => absent,
    };
    Ok(SpreadConstraint {
        max_skew: wire.max_skew,
        key: names.intern(&wire.topology_key),
        hard: wire.when_unsatisfiable == "DoNotSchedule",
        selector: selector(wire.label_selector.as_ref(), names)?,
        min_domains: wire.min_domains,
        node_affinity_policy: policy(&wire.node_affinity_policy, Policy::Honor),
        node_taints_policy: policy(&wire.node_taints_policy, Policy::Ignore),
        match_label_keys: wire
            .match_label_keys
            .iter()
            .flatten()
            .map(|k| names.intern(k))
            .collect(),
    })
}
