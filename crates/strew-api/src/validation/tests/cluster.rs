//! Nodes, Namespaces, Services, PriorityClasses, PodDisruptionBudgets.

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
        json!({"metadata": {"name": "0"}, "spec": {"selector": {"k": "-"}}}),
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
