//! Keeps `caBundle` current in the three objects that tell API servers to trust the webhook's CA.
//!
//! The two webhook configurations are recognized by strew's name. A CustomResourceDefinition can belong to Kruise,
//! whose own webhook converts; it is changed only if its conversion points to strew.

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use strew_manifest::json::Json;

/// The name of both webhook configurations.
pub const CONFIGURATION: &str = "strew-webhook";

/// The CustomResourceDefinition with the conversion webhook.
pub const DEFINITION: &str = "workloadspreads.apps.kruise.io";

/// An object with a `caBundle` for the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// The MutatingWebhookConfiguration.
    Mutating,
    /// The ValidatingWebhookConfiguration.
    Validating,
    /// The CustomResourceDefinition.
    Definition,
}

impl Holder {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Mutating, Self::Validating, Self::Definition];

    /// Group, version, kind and plural.
    pub fn resource(self) -> [&'static str; 4] {
        let group = "admissionregistration.k8s.io";
        match self {
            Self::Mutating => [
                group,
                "v1",
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
            ],
            Self::Validating => [
                group,
                "v1",
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
            ],
            Self::Definition => [
                "apiextensions.k8s.io",
                "v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
            ],
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutating | Self::Validating => CONFIGURATION,
            Self::Definition => DEFINITION,
        }
    }
}

/// The webhook's place, as configurations name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The namespace of its Service.
    pub namespace: String,
    /// The name of its Service.
    pub service: String,
    /// The beginning of its URL, for API servers that cannot reach the Service.
    pub url: Option<String>,
}

impl Place {
    /// True if a `clientConfig` points to this place.
    fn is_meant(&self, client: &Value) -> bool {
        let service = &client["service"];
        let is_service =
            service["namespace"] == *self.namespace && service["name"] == *self.service;
        let is_url = |url: &str| {
            let rest = client["url"].as_str().and_then(|to| to.strip_prefix(url));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let url = self.url.as_deref().map(|url| url.trim_end_matches('/'));
        is_service || url.is_some_and(is_url)
    }
}

/// The JSON patch that sets the bundle (PEM) in an object; `None` if the object has it already, or belongs to another
/// program.
pub fn mend(holder: Holder, object: &Value, bundle: &str, place: &Place) -> Option<Value> {
    let bundle = ByteString(bundle.as_bytes().to_vec()).to_json();
    let mut operations = Vec::new();
    let mut look = |client: &Value, path: String| {
        if client.is_object() && client["caBundle"] != bundle {
            let path = format!("{path}/caBundle");
            operations.push(json!({"op": "add", "path": path, "value": bundle}));
        }
    };
    match holder {
        Holder::Mutating | Holder::Validating => {
            let webhooks = object["webhooks"].as_array();
            for (i, webhook) in webhooks.into_iter().flatten().enumerate() {
                look(
                    &webhook["clientConfig"],
                    format!("/webhooks/{i}/clientConfig"),
                );
            }
        }
        Holder::Definition => {
            let conversion = &object["spec"]["conversion"];
            let client = &conversion["webhook"]["clientConfig"];
            if conversion["strategy"] == "Webhook" && place.is_meant(client) {
                look(client, "/spec/conversion/webhook/clientConfig".to_owned());
            }
        }
    }
    if operations.is_empty() {
        return None;
    }
    // Another process may change the object, and indexes into a list are valid for one version only.
    let version = &object["metadata"]["resourceVersion"];
    operations.insert(
        0,
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
    );
    Some(operations.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLE: &str = "PEM";
    const IN_BASE_64: &str = "UEVN";

    fn place() -> Place {
        Place {
            namespace: "strew-system".to_owned(),
            service: "strew-webhook".to_owned(),
            url: Some("https://127.0.0.1:9443/".to_owned()),
        }
    }

    fn of_service(namespace: &str, bundle: Option<&str>) -> Value {
        let mut client =
            json!({"service": {"namespace": namespace, "name": "strew-webhook", "path": "/x"}});
        if let Some(bundle) = bundle {
            client["caBundle"] = bundle.into();
        }
        client
    }

    fn definition(strategy: &str, client: Value) -> Value {
        let conversion = json!({"strategy": strategy, "webhook": {"clientConfig": client}});
        json!({"metadata": {"resourceVersion": "7"}, "spec": {"conversion": conversion}})
    }

    /// The paths that a patch writes.
    fn mended(holder: Holder, object: &Value) -> Vec<String> {
        let Some(patch) = mend(holder, object, BUNDLE, &place()) else {
            return Vec::new();
        };
        let patch = patch.as_array().unwrap();
        let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
        assert_eq!(patch[0], version);
        let written = patch[1..].iter();
        let written = written
            .inspect(|o| assert_eq!((&o["op"], &o["value"]), (&"add".into(), &IN_BASE_64.into())));
        written
            .map(|o| o["path"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn every_webhook_of_a_configuration_trusts_the_bundle() {
        let webhooks = json!([
            {"clientConfig": of_service("strew-system", Some("b2xk"))},
            {"clientConfig": of_service("strew-system", Some(IN_BASE_64))},
            {"clientConfig": {"url": "https://10.0.0.1/admit"}},
            {"name": "without"},
        ]);
        let object = json!({"metadata": {"resourceVersion": "7"}, "webhooks": webhooks});
        let expected = [
            "/webhooks/0/clientConfig/caBundle",
            "/webhooks/2/clientConfig/caBundle",
        ];
        assert_eq!(mended(Holder::Mutating, &object), expected);
        assert_eq!(mended(Holder::Validating, &object), expected);
        assert!(mended(Holder::Mutating, &json!({"webhooks": null})).is_empty());
    }

    #[test]
    fn a_definition_is_changed_only_where_it_points_here() {
        const PATH: &str = "/spec/conversion/webhook/clientConfig/caBundle";
        let url = |url: &str| json!({"url": url});
        let cases = [
            ("Webhook", of_service("strew-system", None), true),
            ("Webhook", of_service("strew-system", Some("b2xk")), true),
            (
                "Webhook",
                of_service("strew-system", Some(IN_BASE_64)),
                false,
            ),
            ("Webhook", of_service("kruise-system", None), false),
            ("None", of_service("strew-system", None), false),
            ("Webhook", url("https://127.0.0.1:9443/convert"), true),
            ("Webhook", url("https://127.0.0.1:9443"), true),
            ("Webhook", url("https://127.0.0.1:94430/convert"), false),
            ("Webhook", Value::Null, false),
        ];
        for (strategy, client, is_written) in cases {
            let object = definition(strategy, client);
            let expected = if is_written { vec![PATH] } else { Vec::new() };
            assert_eq!(mended(Holder::Definition, &object), expected, "{object}");
        }
    }
}
