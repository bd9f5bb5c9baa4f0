//! The defaults of a HorizontalPodAutoscaler.
//!
//! Source: `pkg/apis/autoscaling/v2/defaults.go`, v1.36; spec/controllers §6.

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscaler, MetricSpec, MetricTarget,
    ResourceMetricSource,
};

use super::SetDefaults;
use strew_manifest::defaults::set_namespace;

/// Source: `autoscaling.DefaultCPUUtilization`.
const CPU_UTILIZATION: i32 = 80;
const PERIOD_SECONDS: i32 = 15;

impl SetDefaults for HorizontalPodAutoscaler {
    /// One replica, 80 % of the requested cpu, and the missing parts of a given half of `behavior`. A missing
    /// `behavior` stays missing, because the autoscaler then follows other rules.
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let spec = &mut self.spec;
        spec.min_replicas.get_or_insert(1);
        if spec.metrics.as_ref().is_none_or(Vec::is_empty) {
            spec.metrics = Some(vec![cpu_metric()]);
        }
        if let Some(behavior) = &mut spec.behavior {
            let up = behavior.scale_up.get_or_insert_default();
            up.stabilization_window_seconds.get_or_insert(0);
            fill(up, &[("Pods", 4), ("Percent", 100)]);
            // The window stays unset: the controller's flag decides.
            fill(
                behavior.scale_down.get_or_insert_default(),
                &[("Percent", 100)],
            );
        }
    }
}

fn cpu_metric() -> MetricSpec {
    MetricSpec {
        type_: "Resource".to_string(),
        resource: Some(ResourceMetricSource {
            name: "cpu".to_string(),
            target: MetricTarget {
                type_: "Utilization".to_string(),
                average_utilization: Some(CPU_UTILIZATION),
                ..MetricTarget::default()
            },
        }),
        ..MetricSpec::default()
    }
}

/// A given list of policies stays, even an empty one, which validation refuses.
fn fill(rules: &mut HPAScalingRules, policies: &[(&str, i32)]) {
    rules.select_policy.get_or_insert_with(|| "Max".to_string());
    rules.policies.get_or_insert_with(|| {
        let policy = |&(kind, value): &(&str, i32)| HPAScalingPolicy {
            type_: kind.to_string(),
            value,
            period_seconds: PERIOD_SECONDS,
        };
        policies.iter().map(policy).collect()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(spec: Value, expected: Value) {
        let mut autoscaler: HorizontalPodAutoscaler =
            serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap();
        autoscaler.set_defaults();
        let once = serde_json::to_value(&autoscaler).unwrap();
        assert_eq!(once["spec"], expected);
        assert_eq!(once["metadata"]["namespace"], "default");
        autoscaler.set_defaults();
        assert_eq!(serde_json::to_value(&autoscaler).unwrap(), once);
    }

    #[test]
    fn cpu_is_the_metric_of_an_autoscaler_without_any() {
        let target = json!({"kind": "Deployment", "name": "web"});
        check(
            json!({"maxReplicas": 5, "scaleTargetRef": target}),
            json!({
                "maxReplicas": 5, "minReplicas": 1, "scaleTargetRef": target,
                "metrics": [{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}],
            }),
        );
    }

    #[test]
    fn half_a_behavior_is_completed() {
        let target = json!({"kind": "Deployment", "name": "web"});
        let metrics = json!([{"type": "Pods"}]);
        check(
            json!({"maxReplicas": 5, "minReplicas": 2, "scaleTargetRef": target, "metrics": metrics,
                "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}),
            json!({"maxReplicas": 5, "minReplicas": 2, "scaleTargetRef": target, "metrics": metrics,
            "behavior": {
                "scaleDown": {"selectPolicy": "Disabled",
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
                "scaleUp": {"selectPolicy": "Max", "stabilizationWindowSeconds": 0, "policies": [
                    {"type": "Pods", "value": 4, "periodSeconds": 15},
                    {"type": "Percent", "value": 100, "periodSeconds": 15}]},
            }}),
        );
    }
}
