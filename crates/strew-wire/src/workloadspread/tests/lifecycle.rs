//! A pod's way through admission: created, deleted, evicted, and what the ledger says.

use strew_workloadspread::admission::Effect;

use super::injection::{Webhook, create};
use super::*;
use crate::workloadspread::pending_reviews::PodSource;
use crate::workloadspread::review::Review;

/// One stored pod.
struct Stored(Value);

impl PodSource for Stored {
    fn by_uid(&self, uid: &str) -> Option<Value> {
        (self.0["metadata"]["uid"] == uid).then(|| self.0.clone())
    }
}

fn marked(subset: &str) -> Value {
    let mut pod = pod();
    pod["metadata"]["name"] = "web-7-x".into();
    let marker = format!("{{\"name\":\"ws\",\"subset\":\"{subset}\"}}");
    pod["metadata"]["annotations"] = json!({"apps.kruise.io/matched-workloadspread": marker});
    pod
}

fn request(operation: &str, more: Value) -> Review {
    let mut request = json!({"uid": "r", "operation": operation, "namespace": "shop", "name": "web-7-x",
        "resource": {"resource": "pods"}});
    for (key, value) in more.as_object().unwrap() {
        request[key] = value.clone();
    }
    Review::read(&mut json!({ "request": request })).unwrap()
}

/// Missing replicas, creating and deleting pods of the only subset after the last write.
fn written(webhook: &Webhook) -> Option<(i32, Vec<String>, Vec<String>)> {
    let write = webhook.effects.iter().rev().find_map(|e| match e {
        Effect::WriteStatus { status, .. } => Some(status),
        _ => None,
    })?;
    let row = &write.rows("7")[0];
    let ids =
        |entries: &strew_workloadspread::Entries| entries.keys().map(ToString::to_string).collect();
    Some((row.missing, ids(&row.creating), ids(&row.deleting)))
}

#[test]
fn the_ledger_counts_creations_and_deletions() {
    let spread = || web(json!([{"name": "a", "maxReplicas": 5}]));
    let id = |name: &str| vec![name.to_owned()];
    let none = Vec::new;
    let stored = Stored(marked("a"));
    let mut named = pod();
    named["metadata"]["name"] = "web-7-x".into();
    let mut finished = marked("a");
    finished["status"] = json!({"phase": "Succeeded"});
    for (what, review, expected) in [
        (
            "created without a name",
            create(pod()),
            Some((4, id("fresh"), none())),
        ),
        (
            "created with a name",
            create(named),
            Some((4, id("web-7-x"), none())),
        ),
        (
            "deleted",
            request("DELETE", json!({"oldObject": marked("a")})),
            Some((6, none(), id("web-7-x"))),
        ),
        // A budget may refuse it afterwards: it gives no room before the pod is seen going.
        (
            "evicted",
            request(
                "CREATE",
                json!({"subResource": "eviction", "object": {"kind": "Eviction"}}),
            ),
            None,
        ),
        (
            "deleted from an unknown subset",
            request("DELETE", json!({"oldObject": marked("b")})),
            None,
        ),
        (
            "deleted without a marker",
            request("DELETE", json!({"oldObject": pod()})),
            None,
        ),
        (
            "deleted when finished",
            request("DELETE", json!({"oldObject": finished})),
            None,
        ),
    ] {
        let mut webhook = Webhook::new(spread());
        let decision = webhook.ask(review, &stored);
        assert_eq!(decision.refusal, None, "{what}");
        assert_eq!(written(&webhook), expected, "{what}");
        assert_eq!(webhook.reviews.waiting(), 0, "{what}");
    }
}

#[test]
fn a_broken_marker_counts_nothing_and_breaks_nothing() {
    for text in [
        "",
        "{",
        "7",
        "[{}]",
        "{\"name\":{}}",
        "{\"name\":\"no-such\",\"subset\":\"a\"}",
    ] {
        let mut webhook = Webhook::new(web(json!([{"name": "a", "maxReplicas": 5}])));
        let mut pod = marked("a");
        pod["metadata"]["annotations"]["apps.kruise.io/matched-workloadspread"] = text.into();
        let decision = webhook.ask(
            request("DELETE", json!({"oldObject": pod})),
            &Stored(Value::Null),
        );
        assert_eq!(decision.refusal, None, "{text:?}");
        assert_eq!(written(&webhook), None, "{text:?}");
    }
}
