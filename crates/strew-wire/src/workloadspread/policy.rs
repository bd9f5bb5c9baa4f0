//! Five ValidatingAdmissionPolicies that bound what strew's own accounts may write to the webhook configurations and to
//! pods and budgets, and which leases and Secrets they may create.
//!
//! RBAC limits which object may be changed, but not its content, nor the name of a new one. Without a policy, a
//! compromised webhook process could register itself for Secrets of all namespaces, or create a Secret that the API
//! server fills with another account's token; a compromised controller could run its own image in any pod. The API
//! server evaluates the policies itself, for every request of these accounts.
//!
//! A field of a webhook that no policy mentions can only reduce the reviewed requests, or determine what happens
//! without an answer.
//!
//! Source: `admissionregistration.k8s.io/v1`, v1.36; the API server exempts no webhook configuration from policies.

use serde_json::{Value, json};
use strew_workloadspread::{COST_ANNOTATION, GATE, MARKER_ANNOTATION};

use strew_zones::{CLAIM, ZONE_AWARE};

use super::registration::{NAME, OPT_OUT, REGISTERED_BY, Registration};
use super::validation::patch::{OF_CONTROLLERS, SECURITY_ANNOTATIONS};

/// The names of the policies, and of their bindings.
pub const POLICIES: [&str; 5] = [
    "strew-webhook-configurations",
    "strew-webhook-conversion",
    "strew-webhook-creations",
    "strew-controller-pods",
    "strew-webhook-budgets",
];

/// The CustomResourceDefinition that the webhook converts for.
const DEFINITION: &str = "workloadspreads.apps.kruise.io";

/// Fields of a validating webhook that must not change; of `clientConfig`, all but `caBundle`.
const OF_VALIDATING: [&str; 9] = [
    "rules",
    "failurePolicy",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "matchConditions",
];

/// Fields of a CustomResourceDefinition's `spec` that must not change, beside [`OF_CONVERSION`].
const OF_DEFINITION: [&str; 5] = [
    "group",
    "names",
    "scope",
    "versions",
    "preserveUnknownFields",
];

/// Fields of its `conversion` that must not change: all but `caBundle`.
const OF_CONVERSION: [&str; 4] = [
    "strategy",
    "webhook.?conversionReviewVersions",
    "webhook.?clientConfig.?service",
    "webhook.?clientConfig.?url",
];

/// strew's accounts.
#[derive(Debug, Clone)]
pub struct Accounts<'a> {
    /// The webhook.
    pub webhook: Account<'a>,
    /// The controller.
    pub controller: Account<'a>,
}

/// An account, and the objects that it may create, since its role cannot restrict creations by name.
#[derive(Debug, Clone)]
pub struct Account<'a> {
    /// The user name in the API server.
    pub user: String,
    /// Names of leases.
    pub leases: &'a [&'a str],
    /// Names of Secrets.
    pub secrets: &'a [&'a str],
}

impl Account<'_> {
    /// An entry of the map from users to objects that they may create: `resource/name`.
    fn creations(&self) -> String {
        let of = |resource: &str, names: &[&str]| -> Vec<String> {
            let names = names.iter();
            names
                .map(|name| text(&format!("{resource}/{name}")))
                .collect()
        };
        let all = [of("leases", self.leases), of("secrets", self.secrets)].concat();
        format!("{}: [{}]", text(&self.user), all.join(", "))
    }
}

impl Registration {
    /// The policies with their bindings, in the order of installation. They apply whether or not the accounts exist.
    pub fn policies(&self, accounts: &Accounts<'_>) -> Vec<Value> {
        let [configurations, conversion, creations, pods, zones] = POLICIES;
        let both = [&accounts.webhook, &accounts.controller].map(|account| account.user.as_str());
        let specs = [
            (configurations, self.configurations(accounts)),
            (conversion, definitions()),
            (creations, created(accounts)),
            (pods, self.pods()),
            (zones, budgets()),
        ];
        let specs = specs.into_iter();
        specs
            .flat_map(|(name, spec)| [policy(name, spec, &both), binding(name)])
            .collect()
    }

    fn configurations(&self, accounts: &Accounts<'_>) -> Value {
        let of_client =
            ["service", "url"].map(|field| same("w.clientConfig", "o.clientConfig", field));
        let of_webhook = OF_VALIDATING.map(|field| same("w", "o", field));
        let same = [&of_client[..], &of_webhook[..]].concat();
        let validating = format!(
            "variables.isMutating || variables.webhooks.size() == variables.before.size() && \
             variables.webhooks.all(w, variables.before.exists(o, o.name == w.name && {}))",
            same.join(" && ")
        );
        let controller = format!(
            "request.userInfo.username != {} || variables.webhooks.size() == 0 || \
             variables.webhooks == variables.before",
            text(&accounts.controller.user)
        );
        let mut validations = vec![own(NAME), metadata(REGISTERED_BY)];
        validations.extend(self.form().into_iter().map(|(field, says)| {
            let expression = format!("variables.ofPods.all(w, {says})");
            let message = format!("of the webhook of pods, {field} is what strew install prints");
            validation(&expression, &message)
        }));
        validations.extend([
            validation(&validating, "of a validating webhook only caBundle changes"),
            validation(
                &controller,
                "the controller takes webhooks out, and changes none",
            ),
        ]);
        json!({
            "matchConstraints": constraints("admissionregistration.k8s.io", &[
                "mutatingwebhookconfigurations",
                "validatingwebhookconfigurations",
            ]),
            "variables": [
                variable("isMutating", "request.resource.resource == 'mutatingwebhookconfigurations'"),
                variable("webhooks", "object.?webhooks.orValue([])"),
                variable("before", "oldObject.?webhooks.orValue([])"),
                variable("ofPods", "variables.isMutating ? variables.webhooks : []"),
            ],
            "validations": validations,
        })
    }

    /// Restricts what is done to pods. Of a pod's metadata, a subset's patch may set any label and annotation that
    /// validation lets a patch set, in the update that makes the pod one of the subset. A pod is deleted before it has a
    /// node; an eviction, whose pod the policy does not see, is bounded by PodDisruptionBudgets.
    fn pods(&self) -> Value {
        let list = |names: &[&str]| {
            names
                .iter()
                .copied()
                .map(text)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let [marker, cost, gate] = [MARKER_ANNOTATION, COST_ANNOTATION, GATE].map(text);
        let own = format!("request.namespace in [{}]", list(&self.never_asked()));
        let kept = ["ownerReferences", "finalizers"];
        let kept = kept.map(|field| same("object.metadata", "oldObject.metadata", field));
        let labels = format!("variables.isAdopted && !(k in [{}])", list(&OF_CONTROLLERS));
        let annotations = format!(
            "k in [{marker}, {cost}] || variables.isAdopted && ![{}].exists(p, k.startsWith(p))",
            list(&SECURITY_ANNOTATIONS)
        );
        let of_update = |expression: &str, message: &str| {
            validation(
                &format!("request.operation != 'UPDATE' || {expression}"),
                message,
            )
        };
        let of_deletion = format!(
            "request.operation != 'DELETE' || oldObject.spec.?nodeName.orValue('') == '' && \
             (oldObject.metadata.?annotations[?{marker}].hasValue() || \
             oldObject.spec.?schedulingGates.orValue([]).exists(g, g.name == {gate}))"
        );
        json!({
            "matchConstraints": {"resourceRules": [
                rule("", &["UPDATE", "DELETE"], &["pods"]),
                rule("", &["CREATE"], &["pods/eviction"]),
            ]},
            "variables": [variable("isAdopted", &format!(
                "object.metadata.?annotations[?{marker}] != oldObject.metadata.?annotations[?{marker}]"
            ))],
            "validations": [
                validation(&format!("!({own})"), "strew changes no pod of an excluded namespace"),
                of_update("object.spec == oldObject.spec", "of a pod strew changes metadata only"),
                of_update(&kept.join(" && "), "owners and finalizers of a pod stay"),
                of_update(&unchanged("labels", &labels), "a pod gets labels when it is put into a subset"),
                of_update(&unchanged("annotations", &annotations), "a pod gets annotations when it is put into a subset"),
                validation(&of_deletion, "strew deletes its own pods that have no node"),
            ],
        })
    }

    /// The requirements for a webhook `w` of pods: fields with an expression each. They fix what is reviewed and which
    /// server answers. `failurePolicy` and `timeoutSeconds` may be chosen, and so may every field that only reduces
    /// reviews.
    fn form(&self) -> Vec<(String, String)> {
        let webhook = self.webhooks().remove(0);
        let fields = webhook.as_object().into_iter().flatten();
        let fixed = fields.filter_map(|(field, wanted)| {
            let says = match field.as_str() {
                "failurePolicy" | "timeoutSeconds" => return None,
                "namespaceSelector" => self.selects(),
                field => says(&format!("w.{field}"), wanted),
            };
            Some((field.clone(), says.join(" && ")))
        });
        fixed.collect()
    }

    /// More namespaces may be excluded than are registered.
    fn selects(&self) -> Vec<String> {
        let names: Vec<String> = self.never_asked().into_iter().map(text).collect();
        let (label, value) = OPT_OUT;
        let left_out = [
            ("kubernetes.io/metadata.name", names),
            (label, vec![text(value)]),
        ];
        let each = left_out.map(|(key, values)| {
            format!(
                "w.namespaceSelector.matchExpressions.exists(e, e.key == {} && e.operator == 'NotIn' && \
                 [{}].all(n, n in e.values))",
                text(key),
                values.join(", "),
            )
        });
        each.into()
    }
}

fn definitions() -> Value {
    let [object, before] = ["object.spec", "oldObject.spec"];
    let of_spec = OF_DEFINITION.map(|field| same(object, before, field));
    let [object, before] = ["object.spec.?conversion", "oldObject.spec.?conversion"];
    let of_conversion = OF_CONVERSION.map(|field| same(object, before, field));
    let unchanged = [&of_spec[..], &of_conversion[..]].concat().join(" && ");
    json!({
        "matchConstraints": constraints("apiextensions.k8s.io", &["customresourcedefinitions"]),
        "validations": [
            own(DEFINITION),
            metadata(REGISTERED_BY),
            validation(&unchanged, "of the definition only the conversion's caBundle changes"),
        ],
    })
}

/// Restricts what is done to PodDisruptionBudgets: only the claim of one that is kept by zone changes.
fn budgets() -> Value {
    let asks = format!(
        "object.metadata.?annotations[?{}].hasValue()",
        text(ZONE_AWARE)
    );
    json!({
        "matchConstraints": constraints("policy", &["poddisruptionbudgets"]),
        "validations": [
            validation("request.operation == 'UPDATE'", "strew neither creates nor deletes a budget"),
            validation(&asks, "strew claims zones of budgets with the annotation only"),
            validation("object.spec == oldObject.spec", "the spec of a budget stays"),
            metadata(CLAIM),
        ],
    })
}

/// Restricts objects to create, which RBAC cannot restrict by name. For a Secret it also restricts the type: into one
/// for a service account token, the API server would put such a token.
fn created(accounts: &Accounts<'_>) -> Value {
    let may = [&accounts.webhook, &accounts.controller].map(Account::creations);
    let named = format!(
        "(request.resource.resource + '/' + object.metadata.name) in {{{}}}[request.userInfo.username]",
        may.join(", ")
    );
    let created = ["CREATE"];
    json!({
        "matchConstraints": {"resourceRules": [
            rule("coordination.k8s.io", &created, &["leases"]),
            rule("", &created, &["secrets"]),
        ]},
        "validations": [
            validation(&named, "strew creates leases and Secrets of its own names only"),
            validation(
                "request.resource.resource != 'secrets' || object.?type.orValue('Opaque') == 'Opaque'",
                "strew creates Secrets of type Opaque only",
            ),
        ],
    })
}

fn policy(name: &str, mut spec: Value, accounts: &[&str]) -> Value {
    let accounts: Vec<String> = accounts.iter().copied().map(text).collect();
    spec["failurePolicy"] = "Fail".into();
    spec["matchConditions"] = json!([{
        "name": "by-strew",
        "expression": format!("request.userInfo.username in [{}]", accounts.join(", ")),
    }]);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": labels()},
        "spec": spec,
    })
}

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": labels()},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    })
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "strew"})
}

fn constraints(group: &str, resources: &[&str]) -> Value {
    json!({"resourceRules": [rule(group, &["CREATE", "UPDATE", "DELETE"], resources)]})
}

fn rule(group: &str, operations: &[&str], resources: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": operations,
        "resources": resources,
    })
}

fn variable(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

fn validation(expression: &str, message: &str) -> Value {
    json!({"expression": expression, "message": message, "reason": "Forbidden"})
}

/// Restricts changes to one object, which is neither created nor deleted.
fn own(name: &str) -> Value {
    let expression = format!(
        "request.operation == 'UPDATE' && request.name == {}",
        text(name)
    );
    validation(
        &expression,
        &format!("strew changes no other object than {name}"),
    )
}

/// Owners, names and finalizers must not change; of its annotations all but one must not.
fn metadata(free: &str) -> Value {
    let kept = ["labels", "ownerReferences", "finalizers"];
    let kept = kept.map(|field| same("object.metadata", "oldObject.metadata", field));
    let expression = format!(
        "{} && {}",
        kept.join(" && "),
        unchanged("annotations", &format!("k == {}", text(free))),
    );
    validation(&expression, "its metadata stays")
}

/// An expression that is true if a map of the object's metadata changes only at keys `k` for which `free` is true.
fn unchanged(map: &str, free: &str) -> String {
    format!(
        "[object, oldObject].all(o, o.metadata.?{map}.orValue({{}}).all(k, {free} || \
         object.metadata.?{map}[?k] == oldObject.metadata.?{map}[?k]))"
    )
}

/// An expression that is true if a field of two values is equal, or missing in both.
fn same(a: &str, b: &str, field: &str) -> String {
    format!("{a}.?{field} == {b}.?{field}")
}

/// Expressions that together are true if the value at `at` contains everything in `wanted`.
fn says(at: &str, wanted: &Value) -> Vec<String> {
    match wanted {
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .flat_map(|(field, wanted)| says(&format!("{at}.{field}"), wanted))
                .collect()
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let mut all = vec![format!("{at}.size() == {}", items.len())];
            for (i, wanted) in items.iter().enumerate() {
                all.extend(says(&format!("{at}[{i}]"), wanted));
            }
            all
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            vec![format!("{at} == [{}]", items.join(", "))]
        }
        wanted => vec![format!("{at} == {}", scalar(wanted))],
    }
}

/// A text or a number as an expression.
fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), text)
}

/// A text as an expression, in single quotes, which YAML shows unchanged.
fn text(value: &str) -> String {
    match value.contains(['\'', '\\']) {
        false => format!("'{value}'"),
        true => Value::from(value).to_string(),
    }
}
