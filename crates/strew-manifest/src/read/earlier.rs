//! Converts objects of other API versions that are served to the one that strew stores.

use k8s_openapi::api::autoscaling::v1;
use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricSpec,
    MetricTarget, ResourceMetricSource,
};

use serde_json::{Value, json};

use crate::kruise::workloads::{
    AdvancedStatefulSet, AdvancedStatefulSetV1alpha1, CloneSet, CloneSetV1beta1,
};

/// The fields of both versions are the same, with another default: a CloneSet of v1beta1 does not use a claim again
/// whose pod is gone.
///
/// Source: `apis/apps/v1beta1/cloneset_types.go` of openkruise/kruise at 044a5eb3.
pub(super) fn clone_set(new: CloneSetV1beta1) -> CloneSet {
    let mut spec = new.spec;
    if let Some(spec) = &mut spec {
        let strategy = spec.scale_strategy.get_or_insert_with(|| json!({}));
        if let Value::Object(fields) = strategy {
            let default = || Value::Bool(true);
            fields
                .entry("disablePVCReuse".to_owned())
                .or_insert_with(default);
        }
    }
    CloneSet {
        metadata: new.metadata,
        spec,
        status: new.status,
    }
}

/// The fields that strew reads are the same in both versions.
pub(super) fn stateful_set(old: AdvancedStatefulSetV1alpha1) -> AdvancedStatefulSet {
    AdvancedStatefulSet {
        metadata: old.metadata,
        spec: old.spec,
        status: old.status,
    }
}

/// `targetCPUUtilizationPercentage` becomes a metric. The annotations in which v1 stores other metrics stay
/// annotations, and the status is left out, since it is of another time.
///
/// Source: `pkg/apis/autoscaling/v1/conversion.go`, v1.36.
pub(super) fn autoscaler(old: v1::HorizontalPodAutoscaler) -> HorizontalPodAutoscaler {
    let spec = old.spec;
    let cpu = |percent| MetricSpec {
        type_: "Resource".to_string(),
        resource: Some(ResourceMetricSource {
            name: "cpu".to_string(),
            target: MetricTarget {
                type_: "Utilization".to_string(),
                average_utilization: Some(percent),
                ..MetricTarget::default()
            },
        }),
        ..MetricSpec::default()
    };
    HorizontalPodAutoscaler {
        metadata: old.metadata,
        spec: HorizontalPodAutoscalerSpec {
            max_replicas: spec.max_replicas,
            min_replicas: spec.min_replicas,
            metrics: spec
                .target_cpu_utilization_percentage
                .map(|percent| vec![cpu(percent)]),
            scale_target_ref: CrossVersionObjectReference {
                api_version: spec.scale_target_ref.api_version,
                kind: spec.scale_target_ref.kind,
                name: spec.scale_target_ref.name,
            },
            behavior: None,
        },
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_target_of_v1_is_a_metric_of_v2() {
        let old = json!({
            "metadata": {"name": "web"},
            "spec": {"maxReplicas": 4, "targetCPUUtilizationPercentage": 60,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            "status": {"currentReplicas": 1, "desiredReplicas": 1},
        });
        let new = autoscaler(serde_json::from_value(old).unwrap());
        assert_eq!(
            serde_json::to_value(new).unwrap(),
            json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web"},
                "spec": {"maxReplicas": 4,
                    "metrics": [{"type": "Resource", "resource": {
                        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}],
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            })
        );
    }
}
