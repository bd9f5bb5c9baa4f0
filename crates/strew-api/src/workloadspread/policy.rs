//! What strew's own accounts may write to the objects by which the API server calls the webhook: two
//! ValidatingAdmissionPolicies.
//!
//! A role bounds which object may be changed, not what is put into it. Without more, a webhook process that an attacker
//! has taken over could register itself for Secrets of all namespaces. The API server evaluates a policy itself, for
//! whoever has the name of such an account.
//!
//! Every field of a webhook that a policy does not name can only narrow what is asked, or says what becomes of a pod
//! when there is no answer.
//!
//! Source: `admissionregistration.k8s.io/v1`, v1.36; the API server exempts no webhook configuration from policies.

use serde_json::{Value, json};

use super::registration::{NAME, OPT_OUT, REGISTERED_BY, Registration};

/// The names of the policies, and of their bindings.
pub const POLICIES: [&str; 2] = ["strew-webhook-configurations", "strew-webhook-conversion"];

/// The CustomResourceDefinition that the webhook converts for.
const DEFINITION: &str = "workloadspreads.apps.kruise.io";

/// Fields of a validating webhook that stay as they are; of `clientConfig`, all but `caBundle`.
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

/// Fields of a CustomResourceDefinition's `spec` that stay as they are, beside [`OF_CONVERSION`].
const OF_DEFINITION: [&str; 5] = [
    "group",
    "names",
    "scope",
    "versions",
    "preserveUnknownFields",
];

/// Fields of its `conversion` that stay: all but `caBundle`.
const OF_CONVERSION: [&str; 4] = [
    "strategy",
    "webhook.?conversionReviewVersions",
    "webhook.?clientConfig.?service",
    "webhook.?clientConfig.?url",
];

/// Who writes, as the API server names users.
#[derive(Debug, Clone)]
pub struct Accounts {
    /// The webhook.
    pub webhook: String,
    /// The controller.
    pub controller: String,
}

impl Registration {
    /// The policies with their bindings, in the order in which they are installed. They hold whether or not the accounts
    /// are there.
    pub fn policies(&self, accounts: &Accounts) -> Vec<Value> {
        let [configurations, conversion] = POLICIES;
        let both = [accounts.webhook.as_str(), &accounts.controller];
        vec![
            policy(configurations, self.configurations(accounts), &both),
            binding(configurations),
            policy(conversion, definitions(), &both),
            binding(conversion),
        ]
    }

    fn configurations(&self, accounts: &Accounts) -> Value {
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
            text(&accounts.controller)
        );
        let mutating = format!(
            "!variables.isMutating || variables.webhooks.all(w, {})",
            self.form().join(" && ")
        );
        json!({
            "matchConstraints": constraints("admissionregistration.k8s.io", &[
                "mutatingwebhookconfigurations",
                "validatingwebhookconfigurations",
            ]),
            "variables": [
                variable("isMutating", "request.resource.resource == 'mutatingwebhookconfigurations'"),
                variable("webhooks", "object.?webhooks.orValue([])"),
                variable("before", "oldObject.?webhooks.orValue([])"),
            ],
            "validations": [
                own(NAME),
                metadata(REGISTERED_BY),
                validation(&mutating, "pods that are created are asked about as strew install registers it, and nothing else"),
                validation(&validating, "of a validating webhook only caBundle changes"),
                validation(&controller, "the controller takes webhooks out, and changes none"),
            ],
        })
    }

    /// What each webhook `w` must say: who is asked about what, and who answers. `failurePolicy` and `timeoutSeconds` are
    /// free, and so is every field that only narrows.
    fn form(&self) -> Vec<String> {
        let mut webhook = self.webhooks().remove(0);
        if let Some(fields) = webhook.as_object_mut() {
            for free in ["failurePolicy", "timeoutSeconds", "namespaceSelector"] {
                fields.remove(free);
            }
        }
        let mut form = Vec::new();
        says("w", &webhook, &mut form);
        let names: Vec<String> = self.never_asked().into_iter().map(text).collect();
        let (label, value) = OPT_OUT;
        for (key, values) in [
            ("kubernetes.io/metadata.name", names),
            (label, vec![text(value)]),
        ] {
            form.push(format!(
                "w.namespaceSelector.matchExpressions.exists(e, e.key == {} && e.operator == 'NotIn' && \
                 [{}].all(n, n in e.values))",
                text(key),
                values.join(", "),
            ));
        }
        form
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
    json!({"resourceRules": [{
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": resources,
    }]})
}

fn variable(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

fn validation(expression: &str, message: &str) -> Value {
    json!({"expression": expression, "message": message, "reason": "Forbidden"})
}

/// The one object, which is neither made nor taken away.
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

/// Who owns it, what it is called and who waits for its end stay; of its annotations all but one.
fn metadata(free: &str) -> Value {
    let kept = ["labels", "ownerReferences", "finalizers"];
    let kept = kept.map(|field| same("object.metadata", "oldObject.metadata", field));
    let expression = format!(
        "{} && [object, oldObject].all(o, o.metadata.?annotations.orValue({{}}).all(k, k == {} || \
         object.metadata.?annotations[?k] == oldObject.metadata.?annotations[?k]))",
        kept.join(" && "),
        text(free),
    );
    validation(&expression, "its metadata stays")
}

/// An expression that holds where a field of two values is the same, or in neither.
fn same(a: &str, b: &str, field: &str) -> String {
    format!("{a}.?{field} == {b}.?{field}")
}

/// Expressions that hold together where the value at `at` says all that `wanted` does.
fn says(at: &str, wanted: &Value, into: &mut Vec<String>) {
    match wanted {
        Value::Object(fields) => {
            for (field, wanted) in fields {
                says(&format!("{at}.{field}"), wanted, into);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            into.push(format!("{at}.size() == {}", items.len()));
            for (i, wanted) in items.iter().enumerate() {
                says(&format!("{at}[{i}]"), wanted, into);
            }
        }
        // JSON of texts, numbers and lists of texts is an expression as it is.
        scalar => into.push(format!("{at} == {scalar}")),
    }
}

/// A text as an expression.
fn text(value: &str) -> String {
    Value::from(value).to_string()
}
