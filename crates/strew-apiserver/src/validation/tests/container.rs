//! What containers mount, know, and are asked.

use super::*;

/// Checks a pod with one container of these fields.
#[track_caller]
fn check_container(fields: Value, expected: &[&str]) {
    let mut container = json!({"name": "c", "image": "i"});
    let given = fields.as_object().unwrap().clone();
    container.as_object_mut().unwrap().extend(given);
    let volumes = json!([{"name": "data"}]);
    let expected: Vec<String> = expected
        .iter()
        .map(|line| format!("spec.containers[0].{line}"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_spec(
        json!({"containers": [container], "volumes": volumes}),
        &expected,
    );
}

#[test]
fn volumes_have_one_source_and_a_name_of_their_own() {
    check_spec(
        json!({"volumes": [
            {"name": "a"}, {"name": "b", "emptyDir": {}}, {"name": "c", "projected": {}},
            {"name": "d", "secret": {"secretName": "s"}}, {"name": "e", "configMap": {"name": "m"}},
        ]}),
        &[],
    );
    check_spec(
        json!({"volumes": [
            {"name": "a", "configMap": {"name": "m"}, "emptyDir": {}, "csi": {"driver": "d"}},
            {"name": ""},
            {"name": "b"},
            {"name": "b"},
            {"name": "V_1", "persistentVolumeClaim": {"claimName": ""}},
        ]}),
        &[
            "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[0].csi: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[1].name: Required value",
            "spec.volumes[3].name: Duplicate value: \"b\"",
            "spec.volumes[4].persistentVolumeClaim.claimName: Required value",
            "spec.volumes[4].name: Invalid value: \"V_1\": a lowercase RFC 1123 label…",
        ],
    );
}

#[test]
fn mounts_are_of_volumes_of_the_pod() {
    check_container(
        json!({"volumeMounts": [{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b"}]}),
        &[],
    );
    check_container(
        json!({
            "volumeMounts": [
                {"name": "data", "mountPath": "/a"},
                {"name": "date", "mountPath": "/a"},
                {"name": "data", "mountPath": "", "subPath": "a", "subPathExpr": "$(A)"},
            ],
            "volumeDevices": [{"name": "disk", "devicePath": "/block/x"}],
        }),
        &[
            "volumeMounts[1].name: Not found: \"date\"",
            "volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
            "volumeMounts[2].mountPath: Required value",
            "volumeMounts[2].subPathExpr: Invalid value: \"$(A)\": subPathExpr and subPath are mutually exclusive",
            "volumeDevices[0].name: Not found: \"disk\"",
        ],
    );
}

#[test]
fn variables_have_one_source() {
    check_container(
        json!({"env": [
            {"name": "A", "value": "x"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "C.d", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "D", "value": "", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "E", "valueFrom": {"fileKeyRef": {"volumeName": "data", "path": "p", "key": "k"}}},
        ], "envFrom": [{"configMapRef": {"name": "m"}}]}),
        &[],
    );
    check_container(
        json!({"env": [
            {"value": "x"},
            {"name": "A=B"},
            {"name": "C", "value": "x", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
            {"name": "D", "valueFrom": {}},
            {"name": "E", "valueFrom": {
                "configMapKeyRef": {"name": "m", "key": ""},
                "fieldRef": {"fieldPath": "metadata.nam"},
            }},
            {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}},
        ], "envFrom": [{}, {"secretRef": {"name": ""}}]}),
        &[
            "env[0].name: Required value",
            "env[1].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
            "env[2].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
            "env[3].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            "env[4].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.nam\": error converting fieldPath: field label not supported: metadata.nam",
            "env[4].valueFrom.configMapKeyRef.key: Required value",
            "env[4].valueFrom: Invalid value: \"\": may not have more than one field specified at a time",
            "env[5].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\"…",
            "envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
            "envFrom[1].secretRef.name: Required value",
        ],
    );
}

#[test]
fn probes_and_hooks_have_one_action() {
    check_container(
        json!({
            "livenessProbe": {"httpGet": {"port": 80}, "successThreshold": 1},
            "readinessProbe": {"tcpSocket": {"port": "http"}, "successThreshold": 3},
            "startupProbe": {"grpc": {"port": 9000}, "successThreshold": 0},
            "lifecycle": {"preStop": {"sleep": {"seconds": 5}}, "postStart": {"exec": {"command": ["a"]}}},
        }),
        &[],
    );
    check_container(
        json!({
            "lifecycle": {"postStart": {"exec": {}}, "preStop": {}},
            "livenessProbe": {"httpGet": {"port": 0, "scheme": "http"}, "exec": {"command": ["a"]}, "successThreshold": 2},
            "readinessProbe": {"periodSeconds": -1, "tcpSocket": {"port": "a--b"}, "terminationGracePeriodSeconds": 0},
            "startupProbe": {"periodSeconds": 3},
        }),
        &[
            "lifecycle.postStart.exec.command: Required value",
            "lifecycle.preStop: Required value: must specify a handler type",
            "livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
            "readinessProbe.tcpSocket.port: Invalid value: \"a--b\": must not contain consecutive hyphens",
            "readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            "readinessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
            "readinessProbe.terminationGracePeriodSeconds: Invalid value: 0: must not be set for readinessProbes",
            "startupProbe: Required value: must specify a handler type",
        ],
    );
    check_spec(
        json!({"initContainers": [
            {"name": "sidecar", "image": "i", "restartPolicy": "Always", "readinessProbe": {"exec": {"command": ["a"]}}},
            {"name": "init", "image": "i", "readinessProbe": {}, "lifecycle": {}},
        ]}),
        &[
            "spec.initContainers[1].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
            "spec.initContainers[1].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ],
    );
}

#[test]
fn policies_of_containers() {
    check_container(
        json!({"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}),
        &[],
    );
    check_container(
        json!({"imagePullPolicy": "Sometimes", "terminationMessagePolicy": "Logs"}),
        &[
            "terminationMessagePolicy: Unsupported value: \"Logs\": supported values: \"File\", \"FallbackToLogsOnError\"",
            "imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ],
    );
}

#[test]
fn huge_pages_need_cpu_or_memory() {
    let limits = |amounts: Value| json!({"resources": {"limits": amounts}});
    check_container(limits(json!({"hugepages-2Mi": "2Mi", "cpu": "1"})), &[]);
    check_container(
        limits(json!({"hugepages-2Mi": "2Mi"})),
        &["resources: Forbidden: HugePages require cpu or memory"],
    );
}

#[test]
fn ports_of_the_hosts_network_are_the_containers_own() {
    let pod = |port: Value| json!({"hostNetwork": true, "containers": [{"name": "c", "image": "i", "ports": [port]}]});
    check_spec(pod(json!({"containerPort": 80})), &[]);
    check_spec(pod(json!({"containerPort": 80, "hostPort": 80})), &[]);
    let wrong = pod(json!({"containerPort": 80, "hostPort": 81}));
    let message = "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true";
    check_spec(wrong.clone(), &[message]);
    let mut deployment = workload(json!({}));
    deployment["spec"]["template"]["spec"] = wrong;
    check::<Deployment>(
        deployment.clone(),
        &[&message.replace("spec.", "spec.template.spec.")],
    );
    deployment["spec"]["template"]["spec"] = pod(json!({"containerPort": 80}));
    check::<Deployment>(deployment, &[]);
}

#[test]
fn amounts_of_a_pod_are_not_below_those_of_its_containers() {
    let pod = |of_pod: Value, of_container: Value| json!({"resources": of_pod, "containers": [{"name": "c", "image": "i", "resources": of_container}]});
    check_spec(
        pod(
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
        ),
        &[],
    );
    check_spec(
        pod(
            json!({"requests": {"cpu": "50m"}, "limits": {"memory": "1Gi"}}),
            json!({"requests": {"cpu": "100m"}, "limits": {"memory": "2Gi"}}),
        ),
        &[
            "spec.resources.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi",
            "spec.resources.requests[cpu]: Invalid value: \"50m\": must be greater than or equal to aggregate container requests of 100m",
            "spec.containers[0].resources.limits[memory]: Invalid value: \"2Gi\": must be less than or equal to pod limits of 1Gi",
        ],
    );
}

#[test]
fn names_that_a_pod_resolves() {
    check_spec(
        json!({
            "dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.10"]},
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a.b"]}], "serviceAccountName": "a.b",
        }),
        &[],
    );
    check_spec(
        json!({"dnsPolicy": "clusterfirst"}),
        &[
            "spec.dnsPolicy: Unsupported value: \"clusterfirst\": supported values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
        ],
    );
    check_spec(
        json!({"dnsPolicy": "None"}),
        &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    );
    check_spec(
        json!({"dnsPolicy": "None", "dnsConfig": {}, "serviceAccountName": "A_b", "hostAliases": [{"ip": "300.1.1.1"}]}),
        &[
            "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
            "spec.serviceAccountName: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain…",
            "spec.hostAliases[0].ip: Invalid value: \"300.1.1.1\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ],
    );
}

#[test]
fn what_is_accepted_with_a_warning() {
    check_spec(
        json!({"terminationGracePeriodSeconds": -1, "containers": [{"name": "c", "image": "i", "resources": {
            "limits": {"memory": "1500m", "ephemeral-storage": "1"}, "requests": {"memory": "512m"},
        }}]}),
        &[
            "spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
            "spec.containers[0].resources.requests[memory]: fractional byte value \"512m\" is invalid, must be an integer",
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ],
    );
    let mut deployment = workload(json!({}));
    deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(-1);
    check::<Deployment>(
        deployment,
        &[
            "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ],
    );
}
