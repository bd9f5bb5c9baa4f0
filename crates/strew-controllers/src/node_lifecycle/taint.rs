//! The taints that this controller writes: NoSchedule by condition, NoExecute for lost nodes.
//!
//! Source: spec/controllers §7.2, §7.3.

use k8s_openapi::api::core::v1::{NodeSpec, NodeStatus, Taint};
use strew_apiserver::object::{Truth, moment};
use strew_model::time::Instant;

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
pub(super) const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";

/// The taint for each condition and status.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// The NoSchedule taints of this controller that a node should have.
fn wanted<'a>(
    spec: &NodeSpec,
    status: &'a NodeStatus,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let conditions = status.conditions.iter().flatten();
    let by_condition = conditions.filter_map(|condition| {
        let is = |(kind, value, _): &&(&str, &str, &str)| {
            *kind == condition.type_ && *value == condition.status
        };
        BY_CONDITION.iter().find(is).map(|(_, _, taint)| *taint)
    });
    let cordon = (spec.unschedulable == Some(true)).then_some(UNSCHEDULABLE);
    by_condition.chain(cordon)
}

fn is_ours(taint: &Taint) -> bool {
    let mut keys = BY_CONDITION
        .iter()
        .map(|(_, _, key)| *key)
        .chain([UNSCHEDULABLE]);
    taint.effect == NO_SCHEDULE && keys.any(|key| key == taint.key)
}

/// True if the NoSchedule taints match conditions and cordon.
pub(super) fn schedule_taints_are_right(spec: &NodeSpec, status: &NodeStatus) -> bool {
    let there = || spec.taints.iter().flatten().filter(|taint| is_ours(taint));
    wanted(spec, status).all(|key| there().any(|taint| taint.key == key))
        && there().all(|taint| wanted(spec, status).any(|key| key == taint.key))
}

/// Sets the NoSchedule taints for conditions and cordon.
pub(super) fn set_schedule_taints(spec: &mut NodeSpec, status: &NodeStatus, now: Instant) {
    let keys: Vec<_> = wanted(spec, status).collect();
    let taints = spec.taints.get_or_insert_default();
    for key in &keys {
        if !taints
            .iter()
            .any(|taint| is_ours(taint) && taint.key == *key)
        {
            taints.push(taint(key, NO_SCHEDULE, now));
        }
    }
    taints.retain(|taint| !is_ours(taint) || keys.contains(&taint.key.as_str()));
    drop_empty(spec);
}

fn taint(key: &str, effect: &str, now: Instant) -> Taint {
    Taint {
        key: key.to_owned(),
        effect: effect.to_owned(),
        time_added: Some(moment::to_wire(now)),
        value: None,
    }
}

fn drop_empty(spec: &mut NodeSpec) {
    if spec.taints.as_ref().is_some_and(Vec::is_empty) {
        spec.taints = None;
    }
}

/// The keys of the NoExecute taint to set on a node that is not ready, and of the one to remove.
pub(super) fn execute_keys(ready: Truth) -> (&'static str, &'static str) {
    match ready {
        Truth::False => (NOT_READY, UNREACHABLE),
        _ => (UNREACHABLE, NOT_READY),
    }
}

/// True if the node has a NoExecute taint with this key.
pub(super) fn has_execute(spec: &NodeSpec, key: &str) -> bool {
    let mut all = spec.taints.iter().flatten();
    all.any(|taint| taint.key == key && taint.effect == NO_EXECUTE)
}

/// True if the node has a NoExecute taint of this controller.
pub(super) fn has_any_execute(spec: &NodeSpec) -> bool {
    has_execute(spec, NOT_READY) || has_execute(spec, UNREACHABLE)
}

/// Replaces one NoExecute taint by another. Returns false if nothing changed.
pub(super) fn swap_execute(spec: &mut NodeSpec, add: &str, remove: &str, now: Instant) -> bool {
    if has_execute(spec, add) && !has_execute(spec, remove) {
        return false;
    }
    let is_there = has_execute(spec, add);
    let taints = spec.taints.get_or_insert_default();
    taints.retain(|taint| taint.effect != NO_EXECUTE || taint.key != remove);
    if !is_there {
        taints.push(taint(add, NO_EXECUTE, now));
    }
    true
}

/// Removes both NoExecute taints. Returns false if there were none.
pub(super) fn clear_execute(spec: &mut NodeSpec) -> bool {
    if !has_any_execute(spec) {
        return false;
    }
    let is_ours = |taint: &Taint| {
        taint.effect == NO_EXECUTE && (taint.key == NOT_READY || taint.key == UNREACHABLE)
    };
    if let Some(taints) = &mut spec.taints {
        taints.retain(|taint| !is_ours(taint));
    }
    drop_empty(spec);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn taints_follow_conditions_and_cordon_and_leave_others_alone() {
        let cases = [
            (json!([]), false, json!([["Ready", "True"]]), vec![]),
            (
                json!([]),
                false,
                json!([["Ready", "False"]]),
                vec!["not-ready"],
            ),
            (
                json!([]),
                true,
                json!([["Ready", "Unknown"]]),
                vec!["unreachable", "unschedulable"],
            ),
            (
                json!([{"key": NOT_READY, "effect": "NoSchedule"}]),
                false,
                json!([
                    ["Ready", "True"],
                    ["DiskPressure", "True"],
                    ["PIDPressure", "Unknown"]
                ]),
                vec!["disk-pressure"],
            ),
            (
                json!([{"key": NOT_READY, "effect": "NoExecute"}, {"key": "x/gpu", "effect": "NoSchedule"}]),
                false,
                json!([["NetworkUnavailable", "True"], ["MemoryPressure", "True"]]),
                vec!["not-ready", "gpu", "network-unavailable", "memory-pressure"],
            ),
        ];
        for (taints, unschedulable, conditions, expected) in cases {
            let spec = json!({"taints": taints, "unschedulable": unschedulable});
            let mut spec: NodeSpec = serde_json::from_value(spec).unwrap();
            let conditions: Vec<_> = conditions
                .as_array()
                .unwrap()
                .iter()
                .map(|c| json!({"type": c[0], "status": c[1]}))
                .collect();
            let status: NodeStatus =
                serde_json::from_value(json!({"conditions": conditions})).unwrap();
            let names = |spec: &NodeSpec| -> Vec<String> {
                let all = spec.taints.iter().flatten();
                all.map(|t| t.key.rsplit('/').next().unwrap().to_owned())
                    .collect()
            };
            let was_right = names(&spec) == expected;
            assert_eq!(
                schedule_taints_are_right(&spec, &status),
                was_right,
                "{expected:?}"
            );
            set_schedule_taints(&mut spec, &status, Instant::from_secs(9));
            assert_eq!(names(&spec), expected);
            assert!(schedule_taints_are_right(&spec, &status));
        }
    }
}
