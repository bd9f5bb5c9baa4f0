//! The conditions and variables of the policies, as CEL.
//!
//! `object` is the pod as it is created, `params` a Service. Where the API server evaluates them, a field that is not
//! there is asked for with `has`.

use super::{APPLIED, Defaults, NO, OPT_OUT, REVISIONS, SERVICES, UNCOUNTED};

/// A named expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The name: of a condition in the API server's messages, of a variable after `variables.`.
    pub name: &'static str,
    /// CEL.
    pub text: String,
}

/// The expressions of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expressions {
    /// All must hold; evaluated in this order.
    pub conditions: Vec<Expression>,
    /// Lists of label keys. A later one may read the earlier ones.
    pub variables: Vec<Expression>,
}

/// The condition that a profile with defaults schedules the pod.
pub const OF_A_PROFILE: &str = "of-a-profile";
/// The condition that the pod has no node yet.
pub const WITHOUT_A_NODE: &str = "without-a-node";
/// The condition that the pod does not opt out by its annotation.
pub const NOT_OPTED_OUT: &str = "not-opted-out";
/// The condition that the pod has no constraint of its own.
pub const WITHOUT_CONSTRAINTS: &str = "without-constraints";
/// The condition that a ReplicaSet, StatefulSet or ReplicationController controls the pod.
pub const OF_A_CONTROLLER: &str = "of-a-controller";
/// The condition that the pod has a label that can be counted.
pub const WITH_A_LABEL: &str = "with-a-label";
/// The condition that [`CONTROLLERS`](super::CONTROLLERS) leaves the pod to this policy, and that no DaemonSet or node
/// owns it.
pub const OF_NO_SUCH_CONTROLLER: &str = "of-no-such-controller";
/// The condition that the Service selects the pod.
pub const SELECTED: &str = "selected";

/// The variable with the keys of the labels that are counted.
pub const COUNTED: &str = "counted";
/// The variable with `matchLabelKeys`.
pub const KEYS: &str = "keys";

const LABELS: &str = "object.metadata.labels";
const OWNERS: &str = "object.metadata.ownerReferences";
const CONSTRAINTS: &str = "object.spec.topologySpreadConstraints";
const SELECTOR: &str = "params.spec.selector";

/// Controllers from which kube-scheduler deduces a selector (spec/scheduler §1.5).
const DEDUCED: &str = "o.apiVersion == 'apps/v1' && o.kind in ['ReplicaSet', 'StatefulSet'] \
                       || o.apiVersion == 'v1' && o.kind == 'ReplicationController'";

/// Controllers that make a pod for its node: no constraint can choose another one.
const FOR_A_NODE: &str = "o.apiVersion == 'apps/v1' && o.kind == 'DaemonSet' \
                          || o.apiVersion == 'v1' && o.kind == 'Node'";

/// A literal of CEL.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from("'");
    for c in text.chars() {
        match c {
            '\\' | '\'' => literal.extend(['\\', c]),
            c if c.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal + "'"
}

/// A list of literals.
fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let literals: Vec<String> = texts.into_iter().map(quoted).collect();
    format!("[{}]", literals.join(", "))
}

fn expression(name: &'static str, text: String) -> Expression {
    Expression { name, text }
}

/// An annotation of the pod has this value.
fn is_annotated(key: &str, value: &str) -> String {
    let (key, value) = (quoted(key), quoted(value));
    let annotations = "object.metadata.annotations";
    format!("has({annotations}) && {key} in {annotations} && {annotations}[{key}] == {value}")
}

/// The controller of the pod is one of these.
fn is_controlled(by: &str) -> String {
    format!("has({OWNERS}) && {OWNERS}.exists(o, has(o.controller) && o.controller && ({by}))")
}

fn has_constraints() -> String {
    format!("has({CONSTRAINTS}) && size({CONSTRAINTS}) > 0")
}

/// The conditions of both policies.
fn of_both(defaults: &Defaults) -> [Expression; 3] {
    let names = defaults.profiles().iter();
    let names = list(names.map(|profile| profile.scheduler_name.as_str()));
    let node = "object.spec.nodeName";
    [
        expression(
            OF_A_PROFILE,
            format!("object.spec.schedulerName in {names}"),
        ),
        expression(WITHOUT_A_NODE, format!("!has({node}) || {node} == ''")),
        expression(NOT_OPTED_OUT, format!("!({})", is_annotated(OPT_OUT, NO))),
    ]
}

/// The expressions of [`CONTROLLERS`](super::CONTROLLERS).
pub fn of_controllers(defaults: &Defaults) -> Expressions {
    let own = defaults.match_label_keys();
    let own = || own.iter().copied().filter(|key| !REVISIONS.contains(key));
    let keys = || REVISIONS.into_iter().chain(own());
    let uncounted = list(UNCOUNTED);
    let neither = list(UNCOUNTED.into_iter().chain(keys()));
    let mut conditions = of_both(defaults).to_vec();
    conditions.extend([
        expression(OF_A_CONTROLLER, is_controlled(DEDUCED)),
        expression(WITHOUT_CONSTRAINTS, format!("!({})", has_constraints())),
        expression(
            WITH_A_LABEL,
            format!("has({LABELS}) && {LABELS}.exists(k, !(k in {uncounted}))"),
        ),
    ]);
    let variables = vec![
        expression(COUNTED, format!("{LABELS}.filter(k, !(k in {neither}))")),
        expression(KEYS, format!("{}.filter(k, k in {LABELS})", list(keys()))),
    ];
    Expressions {
        conditions,
        variables,
    }
}

/// The expressions of [`SERVICES`]: for one Service, after those that were asked before.
pub fn of_services(defaults: &Defaults) -> Expressions {
    let mut conditions = of_both(defaults).to_vec();
    let is_ours = is_annotated(APPLIED, SERVICES);
    let others = format!("{DEDUCED} || {FOR_A_NODE}");
    let pair = format!("k in {LABELS} && {LABELS}[k] == {SELECTOR}[k]");
    conditions.extend([
        expression(
            OF_NO_SUCH_CONTROLLER,
            format!("!({})", is_controlled(&others)),
        ),
        expression(
            WITHOUT_CONSTRAINTS,
            format!("!({}) || {is_ours}", has_constraints()),
        ),
        expression(
            SELECTED,
            format!(
                "has({SELECTOR}) && size({SELECTOR}) > 0 && has({LABELS}) && {SELECTOR}.all(k, {pair})"
            ),
        ),
    ]);
    let first = format!("{CONSTRAINTS}[0].labelSelector");
    let before = format!(
        "{} && has({first}) && has({first}.matchLabels) && k in {first}.matchLabels",
        has_constraints()
    );
    let mut variables = vec![expression(
        COUNTED,
        format!("{LABELS}.filter(k, k in {SELECTOR} || {before})"),
    )];
    let keys = defaults.match_label_keys();
    if !keys.is_empty() {
        let fits = format!("k in {LABELS} && !(k in variables.{COUNTED})");
        variables.push(expression(
            KEYS,
            format!("{}.filter(k, {fits})", list(keys)),
        ));
    }
    Expressions {
        conditions,
        variables,
    }
}
