//! How many pods a rollout may add and miss.
//!
//! Source: spec/controllers §2.3; `pkg/controller/cloneset/sync` of openkruise/kruise at 07169cfa.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
pub use strew_workloadspread::Rolling;

use strew_manifest::json::Json;
use strew_manifest::kruise::workloads::CloneSetSpec;

/// Whether a Deployment stops its old pods before it starts new ones.
pub fn is_recreate(spec: &DeploymentSpec) -> bool {
    let strategy = spec.strategy.as_ref();
    strategy.and_then(|s| s.type_.as_deref()) == Some("Recreate")
}

/// Of a Deployment; `None`: it stops its old pods before it starts new ones.
pub fn of_deployment(spec: &DeploymentSpec) -> Option<Rolling> {
    if is_recreate(spec) {
        return None;
    }
    let strategy = spec.strategy.as_ref();
    let rolling = strategy.and_then(|s| s.rolling_update.as_ref());
    let quarter = IntOrString::String("25%".to_owned());
    let surge = rolling.and_then(|r| r.max_surge.as_ref());
    let unavailable = rolling.and_then(|r| r.max_unavailable.as_ref());
    let replicas = i64::from(spec.replicas.unwrap_or(1));
    Some(resolved(
        surge.unwrap_or(&quarter),
        unavailable.unwrap_or(&quarter),
        replicas,
    ))
}

/// Of a CloneSet, whichever way it updates its pods.
pub fn of_clone_set(spec: &CloneSetSpec) -> Rolling {
    let strategy = spec.update_strategy.as_ref();
    let part = |name: &str, usual: &str| -> IntOrString {
        let given = strategy.and_then(|strategy| strategy.get(name));
        let given = given.and_then(amount);
        given.unwrap_or_else(|| IntOrString::String(usual.to_owned()))
    };
    let replicas = i64::from(spec.replicas.unwrap_or(1));
    let (surge, unavailable) = (part("maxSurge", "0%"), part("maxUnavailable", "20%"));
    resolved(&surge, &unavailable, replicas)
}

/// Whether a CloneSet replaces pods when its template changes; otherwise it updates them in place, at least at times.
pub fn replaces_pods(spec: &CloneSetSpec) -> bool {
    let strategy = spec.update_strategy.as_ref();
    let way = strategy.and_then(|strategy| strategy.get("type")?.as_str());
    matches!(way, None | Some("" | "ReCreate"))
}

/// Surge is rounded up, unavailability down; both cannot be 0, or nothing could move.
pub fn resolved(surge: &IntOrString, unavailable: &IntOrString, replicas: i64) -> Rolling {
    let surge = scaled(surge, replicas, Rounding::Up);
    let unavailable = match (surge, scaled(unavailable, replicas, Rounding::Down)) {
        (0, 0) => 1,
        (_, unavailable) => unavailable,
    };
    Rolling { surge, unavailable }
}

/// How shares of a whole are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Away from zero.
    Up,
    /// Towards zero.
    Down,
}

/// A number, or a percentage of `whole`. An invalid value is 0: validation has refused it.
pub fn scaled(value: &IntOrString, whole: i64, rounding: Rounding) -> i64 {
    match value {
        IntOrString::Int(value) => i64::from(*value).max(0),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|p| p.parse::<u32>().ok());
            let hundredfold = whole.saturating_mul(i64::from(percent.unwrap_or(0)));
            let slack = match rounding {
                Rounding::Up => 99,
                Rounding::Down => 0,
            };
            hundredfold.saturating_add(slack) / 100
        }
    }
}

/// The number or share that a field of a strategy without a schema holds; `None`: neither.
pub fn amount(value: &Value) -> Option<IntOrString> {
    IntOrString::of_json(value.clone()).ok()
}
