//! The webhook configurations: address, rules and match conditions of strew's webhooks.
//!
//! Source: spec/workloadspread §2.6, §4.1; `admissionregistration.k8s.io/v1`, v1.36.

use serde_json::{Value, json};
use strew_workloadspread::MARKER_ANNOTATION;

/// The name of both configurations, and of the Service.
pub const NAME: &str = "strew-webhook";

/// The annotation of the MutatingWebhookConfiguration with the replica that wrote its webhooks: without it, another
/// program did.
pub const REGISTERED_BY: &str = "webhook.strew.dev/registered-by";

/// The path for reviews of creations and deletions of pods.
pub const ADMIT: &str = "/admit/pods";

/// The path for reviews of evictions.
pub const EVICT: &str = "/admit/evictions";

/// The path for validation of WorkloadSpreads.
pub const VALIDATE: &str = "/validate/workloadspreads";

/// The path for conversion between the versions of WorkloadSpread.
pub const CONVERT: &str = "/convert/workloadspreads";

/// The port of the Service.
pub const SERVICE_PORT: u16 = 443;

/// The namespace of the control plane's pods.
const KUBE_SYSTEM: &str = "kube-system";

/// The API server's timeout for reviews of WorkloadSpreads, in seconds; its default.
const TIMEOUT_S: u8 = 10;

/// The API server's timeout for reviews of pods, in seconds: the delay of a creation if a replica crashes during its
/// review. The webhook's own deadline is shorter, so that it gives up first, with a reason.
pub const TIMEOUT_OF_PODS_S: u8 = 3;

/// How the API server reaches the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// In this namespace, as the Service [`NAME`].
    Service(String),
    /// Below this URL, which has no slash at its end: a process outside the cluster.
    Url(String),
}

impl Reach {
    /// The `clientConfig` for a path. The process with the CA sets `caBundle`.
    pub fn client_config(&self, path: &str) -> Value {
        match self {
            Self::Service(namespace) => json!({"service": {
                "namespace": namespace,
                "name": NAME,
                "path": path,
                "port": SERVICE_PORT,
            }}),
            Self::Url(url) => json!({"url": format!("{url}{path}")}),
        }
    }
}

/// The settings of all webhooks.
#[derive(Debug, Clone)]
pub struct Registration {
    /// How to reach them.
    pub reach: Reach,
    /// The namespace of the processes. Its pods are never reviewed, as those of kube-system: otherwise a webhook that
    /// is down could prevent its own start.
    pub namespace: String,
    /// `Fail` or `Ignore`: what happens to creations of pods and to writes of WorkloadSpreads if no webhook answers.
    pub failure_policy: &'static str,
    /// Further namespaces whose pods are never reviewed, for example that of a network plugin which the webhook needs.
    pub excluded: Vec<String>,
    /// Whether pods of DaemonSets are reviewed too, if that kind is listed as a target.
    pub daemon_sets: bool,
}

/// The label, with its value, that excludes the pods of a namespace. Setting it requires the right to change the
/// namespace.
pub const OPT_OUT: (&str, &str) = ("strew.dev/workloadspread", "disabled");

impl Registration {
    /// The MutatingWebhookConfiguration to install: without a webhook, so that no creation waits before a replica has
    /// added [`webhooks`](Self::webhooks).
    ///
    /// The field is left out, not empty: so applying the object again owns no entry and removes none.
    pub fn mutating(&self) -> Value {
        let mut object = configuration("MutatingWebhookConfiguration", Vec::new());
        if let Some(fields) = object.as_object_mut() {
            fields.remove("webhooks");
        }
        object
    }

    /// The configuration with [`webhooks`](Self::webhooks), for a webhook that does not register itself.
    pub fn mutating_registered(&self) -> Value {
        configuration("MutatingWebhookConfiguration", self.webhooks())
    }

    /// The webhooks of the MutatingWebhookConfiguration: the API server sends a review for each new pod. They have no
    /// `caBundle`.
    pub fn webhooks(&self) -> Vec<Value> {
        let mut pods = self.webhook("pods", ADMIT, "NoneOnDryRun");
        pods["rules"] = json!([rule("", &["v1"], "pods", &["CREATE"])]);
        pods["namespaceSelector"] = self.namespaces_of_pods();
        pods["matchConditions"] = json!([self.controlled("object")]);
        // Changes of a later webhook do not affect the subset.
        pods["reinvocationPolicy"] = "Never".into();
        pods["timeoutSeconds"] = TIMEOUT_OF_PODS_S.into();
        vec![pods]
    }

    /// The ValidatingWebhookConfiguration: reviews of deletions of pods, of evictions, and of WorkloadSpreads.
    ///
    /// A review of an eviction is about budgets by zone alone: the API server checks its budgets afterwards, and an
    /// eviction that they refuse must not free a place of a WorkloadSpread. Without an answer the plain budget decides.
    ///
    /// Pods are deleted whether or not a webhook answers: the controller sees the deletion, and no pod takes the place
    /// before a webhook answers again. If deletions failed, a scheduler could not make room for the webhook by
    /// preempting a pod of a subset, and nodes could not be drained.
    ///
    /// It is installed complete: a WorkloadSpread that was stored without a check of its writer's rights would take
    /// effect later, and refusing its writes blocks no pod.
    pub fn validating(&self) -> Value {
        let mut deletions = self.webhook("pod-deletions", ADMIT, "NoneOnDryRun");
        deletions["rules"] = json!([rule("", &["v1"], "pods", &["DELETE"])]);
        // A deletion has only the old object. The second deletion, with which a kubelet removes a pod, does not count.
        deletions["matchConditions"] = json!([
            self.controlled("oldObject"),
            {
                "name": "in-a-subset",
                "expression": format!(
                    "has(oldObject.metadata.annotations) && '{MARKER_ANNOTATION}' in oldObject.metadata.annotations"
                ),
            },
            {"name": "not-deleted-before", "expression": "!has(oldObject.metadata.deletionTimestamp)"},
        ]);
        deletions["namespaceSelector"] = self.namespaces_of_pods();
        deletions["failurePolicy"] = "Ignore".into();
        deletions["timeoutSeconds"] = TIMEOUT_OF_PODS_S.into();
        let mut spreads = self.webhook("workloadspreads", VALIDATE, "None");
        let versions = ["v1alpha1", "v1beta1"];
        let operations = ["CREATE", "UPDATE"];
        spreads["rules"] = json!([rule(
            strew_manifest::kruise::GROUP,
            &versions,
            "workloadspreads",
            &operations
        )]);
        let mut evictions = self.webhook("evictions", EVICT, "NoneOnDryRun");
        evictions["rules"] = json!([rule("", &["v1"], "pods/eviction", &["CREATE"])]);
        evictions["namespaceSelector"] =
            json!({"matchExpressions": [all_but(&self.never_asked())]});
        evictions["failurePolicy"] = "Ignore".into();
        evictions["timeoutSeconds"] = TIMEOUT_OF_PODS_S.into();
        let all = vec![deletions, spreads, evictions];
        configuration("ValidatingWebhookConfiguration", all)
    }

    /// The names of namespaces whose pods are never reviewed.
    pub fn never_asked(&self) -> Vec<&str> {
        let mut names = vec![self.namespace.as_str(), KUBE_SYSTEM];
        names.extend(self.excluded.iter().map(String::as_str));
        names
    }

    /// WorkloadSpreads are validated in more namespaces: an unvalidated one would take effect when pods of its
    /// namespace are reviewed again.
    fn namespaces_of_pods(&self) -> Value {
        let (label, value) = OPT_OUT;
        json!({"matchExpressions": [
            all_but(&self.never_asked()),
            {"key": label, "operator": "NotIn", "values": [value]},
        ]})
    }

    /// Pods without a controller belong to no workload. A static pod's mirror belongs to its node, which must not wait
    /// for the webhook. A DaemonSet's pod has its node already, and the webhook's network may depend on it.
    fn controlled(&self, object: &str) -> Value {
        let owners = format!("{object}.metadata.ownerReferences");
        let mut controller = "has(o.controller) && o.controller && o.kind != 'Node'".to_owned();
        if !self.daemon_sets {
            controller += " && o.kind != 'DaemonSet'";
        }
        json!({
            "name": "of-a-controller",
            "expression": format!("has({owners}) && {owners}.exists(o, {controller})"),
        })
    }

    fn webhook(&self, name: &str, path: &str, side_effects: &str) -> Value {
        json!({
            "name": format!("{name}.webhook.strew.dev"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.reach.client_config(path),
            "failurePolicy": self.failure_policy,
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [all_but(&[&self.namespace, KUBE_SYSTEM])]},
            "sideEffects": side_effects,
            "timeoutSeconds": TIMEOUT_S,
        })
    }
}

fn all_but(namespaces: &[&str]) -> Value {
    json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": namespaces})
}

fn rule(group: &str, versions: &[&str], resource: &str, operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": versions,
        "resources": [resource],
        "operations": operations,
        "scope": "Namespaced",
    })
}

fn configuration(kind: &str, webhooks: Vec<Value>) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": NAME,
            "labels": {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "strew"},
        },
        "webhooks": webhooks,
    })
}
