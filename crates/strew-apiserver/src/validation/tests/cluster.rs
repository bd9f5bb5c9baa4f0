//! Nodes, Namespaces, names of Services, PriorityClasses, PodDisruptionBudgets.

use super::*;

#[test]
fn nodes() {
    check::<Node>(
        json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "nvidia.com/gpu": "1"}}}),
        &[],
    );
    check::<Node>(
        json!({"metadata": {"name": "n", "namespace": "x"},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}, {"key": "", "effect": ""}]},
            "status": {"allocatable": {"cpu": "-1", "nvidia.com/gpu": "0.5"}}}),
        &[
            "metadata.namespace: Forbidden: not allowed on this type",
            "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and effect pair",
            "metadata.taints[2].key: Invalid value: \"\": name part must be non-empty",
            "metadata.taints[2].key: Invalid value: \"\": name part must consist of…",
            "metadata.taints[2].effect: Required value",
            "status.allocatable[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            "status.allocatable[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
        ],
    );
}

#[test]
fn the_rest() {
    check::<Namespace>(
        json!({"metadata": {"name": "a.b"}}),
        &["metadata.name: Invalid value: \"a.b\": must not contain dots"],
    );
    check::<Service>(
        json!({"metadata": {"name": "0"}, "spec": {"selector": {"k": "-"}, "ports": [{"port": 80}]}}),
        &[
            "metadata.name: Invalid value: \"0\": a DNS-1035 label…",
            "spec.selector: Invalid value: \"-\": a valid label…",
        ],
    );
    check::<PriorityClass>(
        json!({"metadata": {"name": "system-node-critical"}, "value": 2000001000}),
        &[],
    );
    check::<PriorityClass>(
        json!({"metadata": {"name": "system-mine"}, "value": 1}),
        &[
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class",
        ],
    );
    check::<PriorityClass>(
        json!({"metadata": {"name": "high"}, "value": 1000000001, "preemptionPolicy": "Perhaps"}),
        &[
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
            "preemptionPolicy: Unsupported value: \"Perhaps\": supported values: \"PreemptLowerPriority\", \"Never\"",
        ],
    );
    check::<PodDisruptionBudget>(
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "maxUnavailable": "120%"}}),
        &[
            "spec: Invalid value: {\"maxUnavailable\":\"120%\",\"minAvailable\":1}: minAvailable and maxUnavailable cannot be both set",
            "spec.maxUnavailable: Invalid value: \"120%\": must not be greater than 100%",
        ],
    );
}

#[test]
fn horizontal_pod_autoscalers() {
    let target = json!({"kind": "Deployment", "name": "web"});
    let of = |spec: Value| json!({"metadata": {"name": "web"}, "spec": spec});
    check::<HorizontalPodAutoscaler>(of(json!({"maxReplicas": 3, "scaleTargetRef": target})), &[]);
    check::<HorizontalPodAutoscaler>(
        of(
            json!({"maxReplicas": 0, "minReplicas": 0, "scaleTargetRef": {"kind": "a/b", "name": ""}}),
        ),
        &[
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'",
            "spec.scaleTargetRef.name: Required value",
        ],
    );
    check::<HorizontalPodAutoscaler>(
        of(
            json!({"maxReplicas": 1, "minReplicas": 2, "scaleTargetRef": target,
            "metrics": [
                {"type": "Nope"},
                {"type": "Resource", "resource": {"name": "", "target": {"type": "Half", "averageUtilization": 0}}},
                {"type": "Pods", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "-1"}}},
            ],
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 3601, "selectPolicy": "Most", "policies": []},
                "scaleDown": {"policies": [{"type": "All", "value": 0, "periodSeconds": 1801}]}}}),
        ),
        &[
            "spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`",
            "spec.metrics[0].type: Unsupported value: \"Nope\": supported values: \"ContainerResource\", \"External\", \"Object\", \"Pods\", \"Resource\"",
            "spec.metrics[1].resource.name: Required value: must specify a resource name",
            "spec.metrics[1].resource.target.type: Invalid value: \"Half\": must be either Utilization, Value, or AverageValue",
            "spec.metrics[1].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
            "spec.metrics[2].external.target.value: Invalid value: \"-1\": must be positive",
            "spec.metrics[2].pods: Required value: must populate information for the given metric source",
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
            "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"Most\": supported values: \"Disabled\", \"Max\", \"Min\"",
            "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
            "spec.behavior.scaleDown.policies[0].type: Unsupported value: \"All\": supported values: \"Percent\", \"Pods\"",
            "spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
        ],
    );
}

#[test]
fn quotas() {
    let of = |spec: Value| json!({"metadata": {"name": "q"}, "spec": spec});
    check::<ResourceQuota>(
        of(
            json!({"hard": {"pods": "4", "requests.nvidia.com/gpu": "1", "count/deployments.apps": "2", "limits.cpu": "1"},
            "scopes": ["NotTerminating"],
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}),
        ),
        &[],
    );
    check::<ResourceQuota>(
        of(
            json!({"hard": {"pods": "1500m", "gpu": "1", "services": "-1"}, "scopes": ["BestEffort", "NotBestEffort"],
            "scopeSelector": {"matchExpressions": [{"scopeName": "Cheap", "operator": "In"}]}}),
        ),
        &[
            "spec.hard[gpu]: Invalid value: \"gpu\": must be a standard resource for quota",
            "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
            "spec.hard[services]: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: unsupported scope applied to resource",
            "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes",
            "spec.scopeSelector.matchExpressions.scopeName: Invalid value: \"Cheap\": unsupported scope",
            "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        ],
    );
}

#[test]
fn limit_ranges() {
    let of = |limits: Value| json!({"metadata": {"name": "r"}, "spec": {"limits": limits}});
    check::<LimitRange>(
        of(
            json!([{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}}]),
        ),
        &[],
    );
    check::<LimitRange>(
        of(json!([
            {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"memory": "500m"}},
            {"type": "Container", "max": {"gpu": "1", "memory": "x"}},
            {"type": "Pod", "default": {"cpu": "1"}},
        ])),
        &[
            "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default request value 1",
            "spec.limits[0].default[cpu]: Invalid value: \"1\": min value 2 is greater than default value 1",
            "spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: \"500m\": ratio 500m is less than 1",
            "spec.limits[1].type: Duplicate value: \"Container\"",
            "spec.limits[1].max[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
            "spec.limits[1].max[memory]: Invalid value: \"x\": quantities…",
            "spec.limits[1].default[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
            "spec.limits[1].default[memory]: Invalid value: \"x\": quantities…",
            "spec.limits[1].defaultRequest[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
            "spec.limits[1].defaultRequest[memory]: Invalid value: \"x\": quantities…",
            "spec.limits[2].default: Forbidden: may not be specified when `type` is 'Pod'",
        ],
    );
}
