//! How failures and successes of pods affect a Job: `podFailurePolicy`, `successPolicy`.

use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy,
};
use strew_apiserver::object::Pod;

use super::indexes::Indexes;

/// The effect of a failed pod on its Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The failure is not counted.
    Ignore,
    /// The failure counts towards the limit.
    Count,
    /// The pod's index fails.
    FailIndex,
    /// The Job fails, for this reason.
    FailJob(String),
}

/// The action of the first rule that matches; if none matches, the failure counts.
pub(super) fn verdict(policy: Option<&PodFailurePolicy>, is_per_index: bool, pod: &Pod) -> Verdict {
    for (i, rule) in policy.iter().flat_map(|p| &p.rules).enumerate() {
        if rule.action == "FailIndex" && !is_per_index {
            continue;
        }
        let Some(what) = matching(rule, pod) else {
            continue;
        };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignore,
            "FailIndex" => Verdict::FailIndex,
            "FailJob" => Verdict::FailJob(format!("{what} matching FailJob rule at index {i}")),
            _ => Verdict::Count,
        };
    }
    Verdict::Count
}

/// The part of the pod that a rule matches, in words.
fn matching(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let name = &pod.meta.name;
    if let Some(codes) = &rule.on_exit_codes {
        let exit = pod.status.exits.iter().find(|exit| {
            let named = codes.container_name.as_deref();
            exit.code != 0
                && named.is_none_or(|named| *named == *exit.container)
                && has_code(codes, exit.code)
        })?;
        return Some(format!(
            "Container {} for pod {name} failed with exit code {}",
            exit.container, exit.code
        ));
    }
    let patterns = rule.on_pod_conditions.iter().flatten();
    for condition in &pod.status.conditions {
        let is_met = patterns.clone().any(|pattern| {
            pattern.type_ == *condition.kind
                && pattern.status.as_deref().unwrap_or("True") == condition.status.name()
        });
        if is_met {
            return Some(format!("Pod {name} has condition {}", condition.kind));
        }
    }
    None
}

fn has_code(codes: &PodFailurePolicyOnExitCodesRequirement, code: i32) -> bool {
    match codes.operator.as_str() {
        "In" => codes.values.contains(&code),
        "NotIn" => !codes.values.contains(&code),
        _ => false,
    }
}

/// The first rule that the succeeded indexes fulfil, as the message of the condition.
pub(super) fn success(
    policy: Option<&SuccessPolicy>,
    completions: u32,
    succeeded: &Indexes,
) -> Option<String> {
    let rules = policy.into_iter().flat_map(|policy| &policy.rules);
    let met = rules.enumerate().find(|(_, rule)| {
        let wanted = rule.succeeded_indexes.as_deref();
        let wanted = wanted.map(|text| Indexes::parse(text, completions));
        let n = match &wanted {
            Some(wanted) => succeeded.iter().filter(|&i| wanted.contains(i)).count(),
            None => succeeded.iter().count(),
        };
        let enough = match (rule.succeeded_count, &wanted) {
            (Some(count), _) => count,
            (None, Some(wanted)) => wanted.total(),
            (None, None) => return false,
        };
        i32::try_from(n).is_ok_and(|n| n >= enough)
    });
    met.map(|(i, _)| format!("Matched rules at index {i}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use strew_apiserver::object::{Exit, Truth};
    use strew_model::time::Instant;

    fn pod(code: i32, condition: Option<(&str, Truth)>) -> Pod {
        let wire = json!({"metadata": {"namespace": "ns", "name": "x"}});
        let mut pod = Pod::of_wire(serde_json::from_value(wire).unwrap());
        let exit = |container: &str, code, is_init| Exit {
            container: container.into(),
            code,
            at: Instant::default(),
            is_init,
        };
        pod.status.exits = [exit("side", 0, false), exit("main", code, false)].into();
        if let Some((kind, status)) = condition {
            let start = Instant::default();
            pod.status.set_condition(kind, status, "", "", start);
        }
        pod
    }

    #[test]
    fn the_first_failure_rule_that_matches_decides() {
        let policy = json!({"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}},
            {"action": "FailJob", "onExitCodes": {"containerName": "side", "operator": "In", "values": [5]}},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [9]}},
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [9]}},
        ]});
        let policy: PodFailurePolicy = serde_json::from_value(policy).unwrap();
        let told =
            "Container main for pod ns/x failed with exit code 42 matching FailJob rule at index 1";
        let target = "DisruptionTarget";
        for (code, condition, is_per_index, expected) in [
            (42, None, false, Verdict::FailJob(told.into())),
            (42, Some((target, Truth::True)), false, Verdict::Ignore),
            (
                42,
                Some((target, Truth::False)),
                false,
                Verdict::FailJob(told.into()),
            ),
            (3, None, true, Verdict::FailIndex),
            (3, None, false, Verdict::Count),
            (5, None, true, Verdict::Count),
            (9, None, true, Verdict::Ignore),
            (0, None, true, Verdict::Count),
        ] {
            let found = verdict(Some(&policy), is_per_index, &pod(code, condition));
            assert_eq!(found, expected, "{code} {condition:?} {is_per_index}");
        }
        assert_eq!(verdict(None, true, &pod(42, None)), Verdict::Count);
    }

    #[test]
    fn success_rules_ask_for_indexes_or_for_a_number_of_them() {
        let rules = [
            (json!({"succeededIndexes": "0-2"}), "0,1", false),
            (json!({"succeededIndexes": "0-2"}), "0-2", true),
            (
                json!({"succeededIndexes": "0-2", "succeededCount": 2}),
                "1,2,7",
                true,
            ),
            (
                json!({"succeededIndexes": "0-2", "succeededCount": 2}),
                "2,7,8",
                false,
            ),
            (json!({"succeededCount": 3}), "2,7,8", true),
            (json!({"succeededCount": 3}), "7,8", false),
        ];
        for (rule, succeeded, expected) in rules {
            let policy = serde_json::from_value(json!({"rules": [rule]})).unwrap();
            let found = success(Some(&policy), 10, &Indexes::parse(succeeded, 10));
            let told = expected.then(|| "Matched rules at index 0".to_owned());
            assert_eq!(found, told, "{rule} {succeeded}");
        }
        assert_eq!(success(None, 10, &Indexes::parse("0-9", 10)), None);
    }
}
