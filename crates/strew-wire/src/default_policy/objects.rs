//! The objects to apply. Source: `admissionregistration.k8s.io/v1`, v1.36.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde_json::{Value, json};

use super::expressions::{
    COUNTED, Expression, Expressions, KEYS, of_controllers, of_services, quoted,
};
use super::{
    APPLIED, CLONE_SET_POD, CLONE_SETS, CONTROLLERS, Defaults, NO, OF_CONTROLLERS, OPT_OUT,
    ProfileDefaults, SERVICES,
};

/// The version of the API that the objects are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Since Kubernetes 1.36.
    V1,
    /// Since Kubernetes 1.34, where the feature gate and the API must be turned on.
    V1beta1,
}

impl Version {
    /// `apiVersion`
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admissionregistration.k8s.io/v1",
            Self::V1beta1 => "admissionregistration.k8s.io/v1beta1",
        }
    }
}

/// Where and how the policies hold.
#[derive(Debug, Clone)]
pub struct Reach {
    /// The version of the objects.
    pub version: Version,
    /// Namespaces whose pods never get defaults.
    pub excluded: Vec<String>,
    /// Requirements for the labels of namespaces, as `matchExpressions`.
    pub namespaces: Vec<Value>,
    /// `Ignore` or `Fail`: what happens to a pod for which an expression has an error.
    pub failure_policy: &'static str,
}

/// The policies with their bindings, in the order in which they are applied.
pub fn all(defaults: &Defaults, reach: &Reach) -> [Value; 5] {
    let controllers = policy(CONTROLLERS, defaults, &of_controllers(defaults), reach);
    let mut services = policy(SERVICES, defaults, &of_services(defaults), reach);
    services["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "Service"});
    let others = OF_CONTROLLERS.map(|key| json!({"key": key, "operator": "DoesNotExist"}));
    let clone_sets = json!({"key": CLONE_SET_POD, "operator": "Exists"});
    [
        controllers,
        binding(CONTROLLERS, CONTROLLERS, reach),
        services,
        by_service(SERVICES, others.to_vec(), reach),
        by_service(CLONE_SETS, vec![clone_sets], reach),
    ]
}

/// A binding of [`SERVICES`] for pods with these labels.
fn by_service(name: &str, pods: Vec<Value>, reach: &Reach) -> Value {
    let mut object = binding(name, SERVICES, reach);
    object["spec"]["matchResources"]["objectSelector"] = json!({"matchExpressions": pods});
    // Every Service of the pod's namespace is asked; a namespace without one is left alone.
    object["spec"]["paramRef"] = json!({"selector": {}, "parameterNotFoundAction": "Allow"});
    object
}

fn object(kind: &str, name: &str, reach: &Reach, spec: Value) -> Value {
    json!({
        "apiVersion": reach.version.api_version(),
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/name": CONTROLLERS, "app.kubernetes.io/part-of": "strew"},
        },
        "spec": spec,
    })
}

fn policy(name: &str, defaults: &Defaults, expressions: &Expressions, reach: &Reach) -> Value {
    let named = |list: &[Expression]| -> Vec<Value> {
        let each = list.iter();
        each.map(|e| json!({"name": e.name, "expression": e.text}))
            .collect()
    };
    let has_keys = expressions.variables.iter().any(|v| v.name == KEYS);
    let spec = json!({
        "failurePolicy": reach.failure_policy,
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "objectSelector": {"matchExpressions": [not_opted_out()]},
            "resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }],
        },
        "matchConditions": named(&expressions.conditions),
        "variables": named(&expressions.variables),
        "mutations": [{
            // An apply configuration may not set labelSelector, which is atomic.
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": patch(name, defaults, has_keys)},
        }],
    });
    object("MutatingAdmissionPolicy", name, reach, spec)
}

fn binding(name: &str, policy: &str, reach: &Reach) -> Value {
    let mut namespaces = vec![json!({
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": reach.excluded,
    })];
    namespaces.push(not_opted_out());
    namespaces.extend(reach.namespaces.iter().cloned());
    let spec = json!({
        "policyName": policy,
        "matchResources": {"namespaceSelector": {"matchExpressions": namespaces}},
    });
    object("MutatingAdmissionPolicyBinding", name, reach, spec)
}

fn not_opted_out() -> Value {
    json!({"key": OPT_OUT, "operator": "NotIn", "values": [NO]})
}

/// The patch that sets the constraints and the annotation.
///
/// Each constraint is an operation of its own: of a list of objects as one value, kube-apiserver 1.36.3 panics.
fn patch(name: &str, defaults: &Defaults, has_keys: bool) -> String {
    let constraints = constraints_of(defaults.profiles(), has_keys);
    let (key, value) = (quoted(APPLIED), quoted(name));
    let path = APPLIED.replace('/', "~1");
    format!(
        "[JSONPatch{{op: 'add', path: '{CONSTRAINTS}', value: []}}] +
{constraints} +
[has(object.metadata.annotations) ?
  JSONPatch{{op: 'add', path: '/metadata/annotations/{path}', value: {value}}} :
  JSONPatch{{op: 'add', path: '/metadata/annotations', value: {{{key}: {value}}}}}]"
    )
}

const CONSTRAINTS: &str = "/spec/topologySpreadConstraints";

/// The operations that add the constraints for the pod's scheduler.
fn constraints_of(profiles: &[ProfileDefaults], has_keys: bool) -> String {
    let list = |profile: &ProfileDefaults| {
        let add = |c: &TopologySpreadConstraint| {
            let value = constraint(c, has_keys);
            format!("  JSONPatch{{op: 'add', path: '{CONSTRAINTS}/-', value: {value}}}")
        };
        let each: Vec<String> = profile.constraints.iter().map(add).collect();
        format!("[\n{}\n]", each.join(",\n"))
    };
    match profiles {
        [] => "[]".to_owned(),
        [only] => list(only),
        [first, rest @ ..] if rest.iter().all(|p| p.constraints == first.constraints) => {
            list(first)
        }
        [first, rest @ ..] => format!(
            "(object.spec.schedulerName == {} ? {} : {})",
            quoted(&first.scheduler_name),
            list(first),
            constraints_of(rest, has_keys)
        ),
    }
}

fn constraint(constraint: &TopologySpreadConstraint, has_keys: bool) -> String {
    const TYPE: &str = "Object.spec.topologySpreadConstraints";
    let text = |text: &Option<String>| text.as_deref().map(quoted);
    let selector = format!(
        "{TYPE}.labelSelector{{matchLabels: object.metadata.labels.transformMap(k, v, k in variables.{COUNTED}, v)}}"
    );
    let fields = [
        ("maxSkew", Some(constraint.max_skew.to_string())),
        ("minDomains", constraint.min_domains.map(|n| n.to_string())),
        ("topologyKey", Some(quoted(&constraint.topology_key))),
        (
            "whenUnsatisfiable",
            Some(quoted(&constraint.when_unsatisfiable)),
        ),
        ("nodeAffinityPolicy", text(&constraint.node_affinity_policy)),
        ("nodeTaintsPolicy", text(&constraint.node_taints_policy)),
        ("labelSelector", Some(selector)),
        (
            "matchLabelKeys",
            has_keys.then(|| format!("variables.{KEYS}")),
        ),
    ];
    let written = fields.into_iter().filter_map(|(name, value)| {
        let value = value?;
        Some(format!("    {name}: {value}"))
    });
    let written: Vec<String> = written.collect();
    format!("{TYPE}{{\n{}\n  }}", written.join(",\n"))
}
