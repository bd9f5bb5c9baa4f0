//! Services, claims and StorageClasses.

use super::*;

#[track_caller]
fn check_service(spec: Value, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|line| format!("spec.{line}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check::<Service>(json!({"metadata": {"name": "s"}, "spec": spec}), &expected);
}

#[test]
fn services_of_all_types() {
    for spec in [
        json!({"ports": [{"port": 80}]}),
        json!({"ports": [{"port": 80, "name": "a", "targetPort": "http"}, {"port": 80, "name": "b", "protocol": "UDP"}]}),
        json!({"clusterIP": "None"}),
        json!({"clusterIP": "None", "selector": {"app": "a"}}),
        json!({"type": "ExternalName", "externalName": "a.example.com."}),
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}),
        json!({"type": "LoadBalancer", "ports": [{"port": 443, "appProtocol": "kubernetes.io/h2c"}]}),
    ] {
        check_service(spec, &[]);
    }
}

#[test]
fn ports_of_services() {
    // A real API server asks for a port; anonymized dumps have none.
    check_service(json!({"selector": {"app": "a"}}), &[]);
    check_service(
        json!({"type": "ExternalName"}),
        &["externalName: Required value"],
    );
    check_service(
        json!({"ports": [{"port": 80}, {"port": 80, "name": "A"}, {"port": 0, "name": "a", "protocol": "HTTP"}, {"port": 81, "name": "a", "targetPort": "web--1"}]}),
        &[
            "ports[0].name: Required value",
            "ports[1].name: Invalid value: \"A\": a lowercase RFC 1123 label…",
            "ports[2].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "ports[2].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            "ports[3].name: Duplicate value: \"a\"",
            "ports[3].targetPort: Invalid value: \"web--1\": must not contain consecutive hyphens",
            "ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
        ],
    );
}

#[test]
fn types_of_services() {
    check_service(
        json!({"type": "Internal", "sessionAffinity": "Client", "ports": [{"port": 80}]}),
        &[
            "sessionAffinity: Unsupported value: \"Client\": supported values: \"ClientIP\", \"None\"",
            "type: Unsupported value: \"Internal\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ],
    );
    check_service(
        json!({"ports": [{"port": 80, "nodePort": 30080}]}),
        &["ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
    );
    check_service(
        json!({"type": "NodePort", "clusterIP": "None", "ports": [{"port": 80}]}),
        &["clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
    );
    check_service(
        json!({"type": "LoadBalancer", "clusterIP": "None", "ports": [{"port": 10250}]}),
        &[
            "ports[0]: Invalid value: 10250: may not expose port 10250 externally since it is used by kubelet",
            "clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for LoadBalancer services",
        ],
    );
}

#[test]
fn claims() {
    let claim = |spec: Value| json!({"metadata": {"name": "c"}, "spec": spec});
    check::<PersistentVolumeClaim>(
        claim(
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}),
        ),
        &[],
    );
    check::<PersistentVolumeClaim>(
        claim(json!({})),
        &[
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    );
    check::<PersistentVolumeClaim>(
        claim(
            json!({"accessModes": ["RWO", "ReadWriteOncePod"], "resources": {"requests": {"storage": "0"}}, "storageClassName": "A", "volumeMode": "Disk"}),
        ),
        &[
            "spec.accessModes: Unsupported value: \"RWO\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
            "spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
            "spec.storageClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain…",
            "spec.volumeMode: Unsupported value: \"Disk\": supported values: \"Block\", \"Filesystem\"",
        ],
    );
}

#[test]
fn storage_classes() {
    let class = |fields: Value| {
        let mut class = json!({"metadata": {"name": "fast"}});
        let given = fields.as_object().unwrap().clone();
        class.as_object_mut().unwrap().extend(given);
        class
    };
    check::<StorageClass>(class(json!({"provisioner": "ebs.csi.aws.com"})), &[]);
    check::<StorageClass>(
        class(json!({"provisioner": "", "volumeBindingMode": "Later", "reclaimPolicy": "Recycle"})),
        &[
            "provisioner: Required value",
            "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"",
            "volumeBindingMode: Unsupported value: \"Later\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
        ],
    );
    check::<StorageClass>(
        class(json!({"provisioner": "a b"})),
        &["provisioner: Invalid value: \"a b\": name part must consist of…"],
    );
}

#[test]
fn stateful_sets_mount_their_claims() {
    let mut set = workload(
        json!({"serviceName": "s", "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}),
    );
    let mounts =
        json!([{"name": "data", "mountPath": "/data"}, {"name": "logs", "mountPath": "/logs"}]);
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = mounts;
    set["spec"]["template"]["spec"]["volumes"] = json!([{"name": "logs"}]);
    check::<StatefulSet>(set.clone(), &[]);
    set["spec"]["volumeClaimTemplates"] = json!([]);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Keep"});
    check::<StatefulSet>(
        set,
        &[
            "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: \"Keep\": supported values: \"Retain\", \"Delete\"",
            "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\"",
        ],
    );
}
