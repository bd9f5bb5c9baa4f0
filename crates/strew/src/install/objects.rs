//! Objects that every part has, as values: the applied objects are the printed ones.

use serde_json::{Value, json};

use super::Common;
use super::pods::CONFIGURATION_HASH;
use crate::failure::Failure;
use strew_suite::digest;

/// The names of one part.
pub(super) struct Part<'a> {
    /// For example `strew-scheduler`: the name of all its objects.
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
}

impl Part<'_> {
    pub(super) fn labels(&self) -> Value {
        json!({"app.kubernetes.io/name": self.name, "app.kubernetes.io/part-of": "strew"})
    }

    pub(super) fn metadata(&self, suffix: &str) -> Value {
        json!({
            "name": format!("{}{suffix}", self.name),
            "namespace": self.namespace,
            "labels": self.labels(),
        })
    }

    /// strew's webhooks do not handle pods of this namespace, and PodSecurity restricts them.
    pub(super) fn namespace(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": self.namespace,
                "labels": {
                    "app.kubernetes.io/part-of": "strew",
                    "pod-security.kubernetes.io/enforce": "restricted",
                },
            },
        })
    }

    pub(super) fn service_account(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata("")})
    }

    /// A ClusterRole and its binding to the service account.
    pub(super) fn cluster_role(&self, rules: Vec<Value>) -> [Value; 2] {
        let name = format!("strew:{}", self.name);
        let metadata = json!({"name": name, "labels": self.labels()});
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": rules,
        });
        [role, cluster_role_binding(&metadata, &name, &[self])]
    }

    /// A Role in its own namespace and its binding to the service account.
    pub(super) fn role(&self, rules: Vec<Value>) -> [Value; 2] {
        let metadata = self.metadata("");
        [
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": metadata,
                "rules": rules,
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": self.name,
                },
                "subjects": [self.subject()],
            }),
        ]
    }

    /// The right to read the authority of the API server's clients: their certificates are accepted on its pages, too.
    pub(super) fn reads_authority(&self) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {
                "name": format!("strew:{}:authentication-reader", self.name),
                "namespace": "kube-system",
                "labels": self.labels(),
            },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "extension-apiserver-authentication-reader",
            },
            "subjects": [self.subject()],
        })
    }

    /// The Service that the API server calls.
    pub(super) fn service(&self, port: u16, target_port: u16) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(""),
            "spec": {
                "selector": {"app.kubernetes.io/name": self.name},
                "ports": [{"name": "https", "port": port, "targetPort": target_port}],
            },
        })
    }

    /// The user name of its service account.
    pub(super) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn subject(&self) -> Value {
        json!({"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace})
    }

    pub(super) fn config_map(&self, file: &str, text: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self.metadata(""),
            "data": {file: text},
        })
    }

    /// A drain takes one replica at a time.
    pub(super) fn budget(&self) -> Value {
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": self.metadata(""),
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchLabels": {"app.kubernetes.io/name": self.name}},
            },
        })
    }

    /// What clusters ask for that limit critical pods; `None`: the pods are not critical.
    pub(super) fn quota(&self, common: &Common) -> Option<Value> {
        let spec = common.pods.quota()?;
        Some(json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": self.metadata(""),
            "spec": spec,
        }))
    }

    /// Replicas are spread over zones, then nodes, so that one survives the loss of a zone. A changed `configuration`
    /// makes new pods, because processes read it only at their start.
    ///
    /// The user is not named: the image has one that is not root, and OpenShift assigns one to each namespace.
    ///
    /// # Errors
    /// A flag about pods has a wrong value.
    pub(super) fn deployment(
        &self,
        common: &Common,
        pod: &Value,
        configuration: Option<&str>,
    ) -> Result<Value, Failure> {
        let mut metadata = json!({"labels": self.labels()});
        if let Some(text) = configuration {
            metadata["annotations"] = json!({CONFIGURATION_HASH: digest::of_text(text)});
        }
        let own = json!({"matchLabels": {"app.kubernetes.io/name": self.name}});
        let spread = |key: &str| {
            json!({
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": own,
                "matchLabelKeys": ["pod-template-hash"],
            })
        };
        let mut spec = json!({
            "serviceAccountName": self.name,
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": [
                spread("topology.kubernetes.io/zone"),
                spread("kubernetes.io/hostname"),
            ],
        });
        if let (Value::Object(spec), Value::Object(pod)) = (&mut spec, pod) {
            spec.extend(pod.clone());
        }
        let mut deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self.metadata(""),
            "spec": {
                "replicas": common.replicas,
                "selector": own,
                "template": {"metadata": metadata, "spec": spec},
            },
        });
        common.pods.apply(&mut deployment)?;
        Ok(deployment)
    }
}

/// A ClusterRole for the service accounts of these parts.
pub(super) fn cluster_role_binding(metadata: &Value, role: &str, parts: &[&Part<'_>]) -> Value {
    let subjects: Vec<Value> = parts.iter().map(|part| part.subject()).collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": subjects,
    })
}

/// The container of a process.
pub(super) struct Container<'a> {
    /// Its name, which is the command of strew.
    pub(super) name: &'static str,
    pub(super) image: &'a str,
    /// The flags of the command.
    pub(super) flags: Vec<String>,
    /// The port for health and metrics.
    pub(super) port: u16,
}

impl Container<'_> {
    /// As a value; it has no rights beyond running.
    pub(super) fn value(self) -> Value {
        let port = self.port;
        let probe =
            |path: &str| json!({"httpGet": {"path": path, "port": port, "scheme": "HTTPS"}});
        let mut args = vec![self.name.to_owned()];
        args.extend(self.flags);
        args.push(format!("--secure-port={port}"));
        json!({
            "name": self.name,
            "image": self.image,
            "args": args,
            "ports": [{"name": "https", "containerPort": port}],
            "livenessProbe": probe("/livez"),
            "readinessProbe": probe("/readyz"),
            // An attack, or a leak, ends only this process.
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "2Gi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        })
    }
}
