//! The MutatingWebhookConfiguration that registers the webhook for pods: reads its state and makes patches for it.
//!
//! Every change is a JSON patch that tests the resourceVersion.

use serde_json::{Value, json};
use strew_wire::workloadspread::registration::{NAME, REGISTERED_BY};

/// The path of the object.
pub fn path() -> String {
    format!("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{NAME}")
}

/// The state of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The object does not exist.
    Absent,
    /// It has no webhook: pods are created without a review.
    Out,
    /// It has webhooks.
    In {
        /// True if a replica has written them.
        is_ours: bool,
        /// True if they are what this process would write.
        is_right: bool,
    },
}

impl Registration {
    /// The state of this object, `null` if it does not exist. `wanted`: the webhooks to register.
    pub fn of(object: &Value, wanted: &[Value]) -> Self {
        if object.is_null() {
            return Self::Absent;
        }
        let webhooks = object["webhooks"].as_array();
        let webhooks = webhooks.map_or(&[][..], Vec::as_slice);
        if webhooks.is_empty() {
            return Self::Out;
        }
        let pairs = wanted.iter().zip(webhooks);
        Self::In {
            is_ours: object["metadata"]["annotations"][REGISTERED_BY].is_string(),
            is_right: webhooks.len() == wanted.len() && { pairs }.all(|(w, is)| says(is, w)),
        }
    }
}

/// True if `value` contains everything in `wanted`. The API server adds defaults, and the rotator adds `caBundle`.
/// `caBundle`.
fn says(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            let value = value.get(key);
            value.is_some_and(|value| says(value, wanted))
        }),
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() == wanted.len() && value.iter().zip(wanted).all(|(v, w)| says(v, w))
        }
        _ => value == wanted,
    }
}

/// The patch that adds the webhooks, with the CAs to trust (PEM) and the name of the writing replica.
pub fn register(object: &Value, wanted: &[Value], bundle: &Value, replica: &str) -> Value {
    let webhooks = wanted.iter().cloned().map(|mut webhook| {
        webhook["clientConfig"]["caBundle"] = bundle.clone();
        webhook
    });
    let webhooks: Vec<Value> = webhooks.collect();
    let mark = match object["metadata"]["annotations"].is_object() {
        true => json!({"op": "add", "path": annotation_path(), "value": replica}),
        false => {
            json!({"op": "add", "path": "/metadata/annotations", "value": {REGISTERED_BY: replica}})
        }
    };
    let webhooks = json!({"op": "add", "path": "/webhooks", "value": webhooks});
    json!([unchanged(object), mark, webhooks])
}

/// The patch that removes all webhooks.
pub fn take_out(object: &Value) -> Value {
    json!([unchanged(object), {"op": "remove", "path": "/webhooks"}])
}

fn unchanged(object: &Value) -> Value {
    let version = &object["metadata"]["resourceVersion"];
    json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})
}

fn annotation_path() -> String {
    format!("/metadata/annotations/{}", REGISTERED_BY.replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use strew_manifest::patch::json_patch;
    use strew_wire::workloadspread::registration::{Reach, Registration as Wanted};

    use super::*;

    fn wanted(policy: &'static str) -> Wanted {
        Wanted {
            reach: Reach::Service("strew-system".to_owned()),
            namespace: "strew-system".to_owned(),
            failure_policy: policy,
            excluded: Vec::new(),
            daemon_sets: false,
        }
    }

    #[test]
    fn webhooks_come_and_go_by_patches() {
        let wanted = wanted("Fail");
        let webhooks = wanted.webhooks();
        let state = |object: &Value| Registration::of(object, &webhooks);
        assert_eq!(state(&Value::Null), Registration::Absent);
        let mut installed = wanted.mutating();
        installed["metadata"]["resourceVersion"] = "7".into();
        assert_eq!(state(&installed), Registration::Out);
        let patch = register(&installed, &webhooks, &"UEVN".into(), "a");
        let mut registered = json_patch(&installed, &patch).unwrap();
        registered["webhooks"][0]["objectSelector"] = json!({});
        let right = Registration::In {
            is_ours: true,
            is_right: true,
        };
        assert_eq!(state(&registered), right);
        assert_eq!(
            registered["webhooks"][0]["clientConfig"]["caBundle"],
            "UEVN"
        );
        // Written by another replica, with another policy, or by another program.
        let again = register(&registered, &webhooks, &"UEVN".into(), "b");
        let again = json_patch(&registered, &again).unwrap();
        assert_eq!(again["metadata"]["annotations"][REGISTERED_BY], "b");
        registered["webhooks"][0]["failurePolicy"] = "Ignore".into();
        let wrong = Registration::In {
            is_ours: true,
            is_right: false,
        };
        assert_eq!(state(&registered), wrong);
        let fixed = Registration::In {
            is_ours: false,
            is_right: true,
        };
        assert_eq!(state(&wanted.mutating_registered()), fixed);
        let out = json_patch(&registered, &take_out(&registered)).unwrap();
        assert_eq!(state(&out), Registration::Out);
        let mut newer = registered.clone();
        newer["metadata"]["resourceVersion"] = "8".into();
        assert!(json_patch(&newer, &take_out(&registered)).is_err());
    }
}
