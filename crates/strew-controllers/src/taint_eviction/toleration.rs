//! Computes how long a pod tolerates the NoExecute taints of its node.

use k8s_openapi::api::core::v1::{PodSpec, Taint};
use strew_model::Interner;
use strew_model::time::Span;
use strew_wire::facts;

/// How long a pod may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// A taint is not tolerated, or no longer.
    Not,
    /// For this long.
    For(Span),
    /// Every taint is tolerated without a time limit.
    Forever,
}

/// How long a pod may stay under these taints: the smallest `tolerationSeconds` of the tolerations used.
///
/// For each taint the first matching toleration is used. Source: spec/controllers §7.5.
pub fn stay(spec: &PodSpec, taints: &[Taint]) -> Stay {
    let mut names = Interner::new();
    let mut shortest: Option<i64> = None;
    for taint in taints {
        let Some(taint) = facts::taint(taint, &mut names) else {
            continue;
        };
        let mut given = spec.tolerations.iter().flatten();
        let used = given.find(|wire| facts::toleration(wire, &mut names).tolerates(&taint));
        let Some(used) = used else {
            return Stay::Not;
        };
        if let Some(seconds) = used.toleration_seconds {
            shortest = Some(shortest.map_or(seconds, |s| s.min(seconds)));
        }
    }
    match shortest {
        None => Stay::Forever,
        Some(seconds) => match u64::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Stay::For(Span::from_secs(seconds)),
            _ => Stay::Not,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_smallest_time_of_the_tolerations_used() {
        let unreachable = json!({"key": "unreachable", "effect": "NoExecute"});
        let gpu = json!({"key": "gpu", "value": "yes", "effect": "NoExecute"});
        let for_key = |key: &str, seconds: Value| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        let secs = |s| Stay::For(Span::from_secs(s));
        for (taints, tolerations, expected) in [
            (json!([unreachable]), json!([]), Stay::Not),
            (
                json!([unreachable]),
                json!([for_key("unreachable", json!(300))]),
                secs(300),
            ),
            (
                json!([unreachable]),
                json!([for_key("unreachable", json!(0))]),
                Stay::Not,
            ),
            (
                json!([unreachable]),
                json!([for_key("unreachable", json!(-5))]),
                Stay::Not,
            ),
            (
                json!([unreachable]),
                json!([for_key("unreachable", Value::Null)]),
                Stay::Forever,
            ),
            (
                json!([unreachable]),
                json!([{"operator": "Exists"}]),
                Stay::Forever,
            ),
            // The toleration of another taint is not used, however short.
            (
                json!([unreachable]),
                json!([for_key("gpu", json!(1)), for_key("unreachable", json!(300))]),
                secs(300),
            ),
            (
                json!([unreachable, gpu]),
                json!([
                    for_key("gpu", json!(20)),
                    for_key("unreachable", json!(300))
                ]),
                secs(20),
            ),
            (
                json!([unreachable, gpu]),
                json!([for_key("unreachable", json!(300))]),
                Stay::Not,
            ),
            (
                json!([unreachable, gpu]),
                json!([
                    for_key("gpu", Value::Null),
                    for_key("unreachable", json!(300))
                ]),
                secs(300),
            ),
        ] {
            let spec = json!({"containers": [], "tolerations": tolerations});
            let spec: PodSpec = serde_json::from_value(spec).unwrap();
            let taints: Vec<Taint> = serde_json::from_value(taints).unwrap();
            assert_eq!(stay(&spec, &taints), expected, "{taints:?} {tolerations}");
        }
    }
}
