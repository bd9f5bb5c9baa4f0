//! Pods but for their spread constraints.

use super::*;

#[test]
fn metadata_of_pods() {
    let pod = |metadata: Value| json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    check::<Pod>(pod(json!({"name": "p"})), &[]);
    check::<Pod>(pod(json!({"generateName": "p-"})), &[]);
    check::<Pod>(
        pod(json!({})),
        &["metadata.name: Required value: name or generateName is required"],
    );
    check::<Pod>(
        pod(json!({"name": "P"})),
        &[&format!("metadata.name: Invalid value: \"P\": {SUBDOMAIN}")],
    );
    check::<Pod>(
        pod(json!({"name": "p", "namespace": "a.b"})),
        &["metadata.namespace: Invalid value: \"a.b\": must not contain dots"],
    );
    check::<Pod>(
        pod(json!({"name": "p", "labels": {"a/b/c": "x", "k": "-"}, "annotations": {"/": ""}})),
        &[
            "metadata.labels: Invalid value: \"a/b/c\": a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            "metadata.annotations: Invalid value: \"/\": prefix part must be non-empty",
            "metadata.annotations: Invalid value: \"/\": name part must be non-empty",
            "metadata.annotations: Invalid value: \"/\": name part must consist of…",
        ],
    );
    check::<Pod>(
        pod(
            json!({"name": "p", "annotations": {"controller.kubernetes.io/pod-deletion-cost": "+1"}}),
        ),
        &[
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"+1\": must be a 32bit integer",
        ],
    );
    check::<Pod>(
        json!({"metadata": {"name": "p"}}),
        &["spec.containers: Required value"],
    );
}

#[test]
fn containers() {
    check_spec(
        json!({"containers": []}),
        &["spec.containers: Required value"],
    );
    check_spec(
        json!({"containers": [{"name": "", "image": ""}, {"name": "a.b", "image": "i"}, {"name": "c", "image": "i"}],
            "initContainers": [{"name": "c", "image": "i", "restartPolicy": "Sometimes"}]}),
        &[
            "spec.containers[0].name: Required value",
            "spec.containers[0].image: Required value",
            "spec.containers[1].name: Invalid value: \"a.b\": must not contain dots",
            "spec.initContainers[0].name: Duplicate value: \"c\"",
            "spec.initContainers[0].restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\", \"OnFailure\"",
        ],
    );
    check_spec(
        json!({"containers": [{"name": "c", "image": "i", "ports": [
            {"containerPort": 80, "hostPort": 8080, "name": "http"},
            {"containerPort": 81, "hostPort": 8080, "name": "http"},
            {"containerPort": 70000, "protocol": "ICMP"},
            {},
        ]}]}),
        &[
            "spec.containers[0].ports[1].name: Duplicate value: \"http\"",
            "spec.containers[0].ports[2].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.containers[0].ports[2].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            "spec.containers[0].ports[3].containerPort: Required value",
            "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//8080\"",
        ],
    );
}

#[test]
fn resources() {
    #[track_caller]
    fn check(resources: Value, expected: &[&str]) {
        let expected: Vec<String> = expected
            .iter()
            .map(|line| format!("spec.containers[0].resources.{line}"))
            .collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let container = json!({"name": "c", "image": "i", "resources": resources});
        check_spec(json!({"containers": [container]}), &expected);
    }
    check(
        json!({"limits": {"cpu": "1", "hugepages-2Mi": "2Mi", "nvidia.com/gpu": "2"}}),
        &[],
    );
    check(
        json!({"requests": {"cpu": "2000m"}, "limits": {"cpu": "1"}}),
        &["requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
    );
    check(
        json!({"requests": {"memory": "-1Gi"}}),
        &["requests[memory]: Invalid value: \"-1Gi\": must be greater than or equal to 0"],
    );
    check(
        json!({"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}),
        &["requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2"],
    );
    check(
        json!({"requests": {"nvidia.com/gpu": "500m"}}),
        &[
            "requests[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
            "limits: Required value: Limit must be set for non overcommitable resources",
        ],
    );
    check(
        json!({"requests": {"gpu": "1"}}),
        &[
            "requests[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
            "requests[gpu]: Invalid value: \"gpu\": must be a standard resource for containers",
        ],
    );
    check(
        json!({"limits": {"cpu": "lots", "memory": "99E"}}),
        &[
            "limits[cpu]: Invalid value: \"lots\": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            "limits[memory]: Invalid value: \"99E\": quantity is larger than 9223372036854775807 (2^63-1)",
        ],
    );
    check(
        json!({"requests": {"cpu": "1E"}}),
        &["requests[cpu]: Invalid value: \"1E\": quantity is larger…"],
    );
}

#[test]
fn tolerations() {
    check_spec(
        json!({"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]}),
        &[],
    );
    check_spec(
        json!({"tolerations": [
            {"value": "x"},
            {"key": "a", "operator": "Exists", "value": "b"},
            {"key": "a", "operator": "Is", "effect": "Maybe"},
            {"key": "a", "operator": "Exists", "tolerationSeconds": 5},
        ]}),
        &[
            "spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            "spec.tolerations[1].operator: Invalid value: {\"Key\":\"a\",\"Operator\":\"Exists\",\"Value\":\"b\",\"Effect\":\"\",\"TolerationSeconds\":null}: value must be empty when `operator` is 'Exists'",
            "spec.tolerations[2].operator: Unsupported value: \"Is\": supported values: \"Equal\", \"Exists\"",
            "spec.tolerations[2].effect: Unsupported value: \"Maybe\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            "spec.tolerations[3].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ],
    );
}

#[test]
fn node_affinity() {
    let required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    check_spec(
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}),
        &[&format!(
            "{required}: Required value: must have at least one node selector term"
        )],
    );
    check_spec(
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
                "matchExpressions": [
                    {"key": "n", "operator": "Gt", "values": ["1", "2"]},
                    {"key": "n", "operator": "Near", "values": ["1"]},
                    {"key": "n", "operator": "Exists", "values": ["1"]},
                ],
                "matchFields": [{"key": "spec.name", "operator": "In", "values": ["a", "b"]}],
            }]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}],
        }}}),
        &[
            &format!(
                "{required}[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            ),
            &format!(
                "{required}[0].matchExpressions[1].operator: Invalid value: \"Near\": not a valid selector operator"
            ),
            &format!(
                "{required}[0].matchExpressions[2].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ),
            &format!(
                "{required}[0].matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            ),
            &format!(
                "{required}[0].matchFields[0].key: Invalid value: \"spec.name\": not a valid field selector key"
            ),
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
        ],
    );
}

#[test]
fn pod_affinity() {
    let terms = |term: Value| json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    let path = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
    check_spec(
        terms(
            json!({"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["foo"], "mismatchLabelKeys": ["app"]}),
        ),
        &[],
    );
    check_spec(
        terms(json!({"topologyKey": "", "namespaces": ["A"]})),
        &[
            &format!(
                "{path}.namespaces[0]: Invalid value: \"A\": a lowercase RFC 1123 label must…"
            ),
            &format!("{path}.topologyKey: Required value: can not be empty"),
            &format!("{path}.topologyKey: Invalid value: \"\": name part must be non-empty"),
            &format!("{path}.topologyKey: Invalid value: \"\": name part must consist of…"),
        ],
    );
    check_spec(
        terms(
            json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"foo": "x"}}, "matchLabelKeys": ["foo"], "mismatchLabelKeys": ["foo"]}),
        ),
        &[
            // Found for the merged In and for the merged NotIn, said once.
            &format!(
                "{path}[0]: Invalid value: \"foo\": exists in both matchLabelKeys and labelSelector"
            ),
            &format!(
                "{path}.mismatchLabelKeys[0]: Invalid value: \"foo\": exists in both matchLabelKeys and mismatchLabelKeys"
            ),
        ],
    );
}

#[test]
fn other_fields_of_pods() {
    check_spec(
        json!({
            "nodeSelector": {"k": "a b"}, "restartPolicy": "Maybe", "nodeName": "N",
            "schedulingGates": [{"name": "g"}, {"name": "g"}], "activeDeadlineSeconds": 0,
            "priorityClassName": "vip",
        }),
        &[
            "spec.priorityClassName: Forbidden: no PriorityClass with name vip was found",
            "spec.restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            "spec.nodeSelector: Invalid value: \"a b\": a valid label…",
            "spec.schedulingGates[1]: Duplicate value: \"g\"",
            "spec.nodeName: Invalid value: \"N\": a lowercase RFC 1123 subdomain…",
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ],
    );
}
