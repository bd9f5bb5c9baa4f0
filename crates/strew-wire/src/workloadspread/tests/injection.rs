//! A subset into a pod, as a webhook does it.

use strew_model::{Instant, Interner};
use strew_workloadspread::admission::{Effect, Limits};
use strew_workloadspread::{Admission, COST_ANNOTATION, MARKER_ANNOTATION};

use super::*;
use crate::workloadspread::Translator;
use crate::workloadspread::pending_reviews::{NoPods, Patcher, PendingReviews, PodSource};
use crate::workloadspread::review::{Decision, Review, base64};
use strew_manifest::patch::json_patch;

const OWNERS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: web}
spec: {replicas: 10, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: []}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-7
  namespace: shop
  uid: rs
  labels: {pod-template-hash: \"7\"}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]
spec: {replicas: 10, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, pod-template-hash: \"7\"}}, spec: {containers: []}}}
";

/// One webhook without a cluster: the first status write is reported as successful.
pub(super) struct Webhook {
    pub(super) translator: Translator,
    pub(super) reviews: PendingReviews,
    pub(super) machine: Admission,
    pub(super) effects: Vec<Effect>,
}

impl Webhook {
    pub(super) fn new(spread: Value) -> Self {
        let mut translator = Translator::default();
        let mut machine = Admission::new(Interner::new(), Vec::new(), Limits::production(), 1);
        let mut all = objects(OWNERS);
        all.push(KubeObject::of_json(spread).unwrap());
        for object in &all {
            for input in translator.admission(object, machine.names_mut()) {
                machine.handle(Instant::from_secs(100), input);
            }
        }
        Self {
            translator,
            reviews: PendingReviews::default(),
            machine,
            effects: Vec::new(),
        }
    }

    /// Asks and waits for the answer.
    pub(super) fn ask(&mut self, review: Review, pods: &dyn PodSource) -> Decision {
        use strew_workloadspread::admission::{Input, Outcome};
        let now = Instant::from_secs(100);
        let names = self.machine.names_mut();
        let request = match self.reviews.ask(review, "fresh".into(), names) {
            Ok(request) => request,
            Err(decision) => return *decision,
        };
        self.machine
            .handle(now, Input::AdmitAsked(Box::new(request)));
        loop {
            let mut patcher = Patcher {
                contents: &self.translator.contents,
                reviews: Some(&self.reviews),
                pods,
            };
            let effect = self.machine.poll_effect(&mut patcher).expect("an answer");
            self.effects.push(effect.clone());
            match effect {
                Effect::Answer(answer) => {
                    let (contents, names) = (&self.translator.contents, self.machine.names());
                    return self.reviews.answer(&answer, contents, names).unwrap();
                }
                Effect::WriteStatus { id, .. } => {
                    let written = Outcome::Written(42);
                    self.machine.handle(now, Input::Outcome(id, written));
                }
                Effect::ReadSpread { .. } => panic!("nobody else writes"),
            }
        }
    }
}

pub(super) fn create(pod: Value) -> Review {
    let mut review = json!({"request": {"uid": "r-1", "operation": "CREATE", "namespace": "shop",
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "object": pod}});
    Review::read(&mut review).unwrap()
}

fn full_subset() -> Value {
    json!([{
        "name": "own",
        "maxReplicas": 5,
        "requiredNodeSelector": {
            "matchExpressions": [{"key": "pool", "operator": "In", "values": ["own"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        },
        "preferredNodeSelector": [{"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}],
        "tolerations": [{"key": "own", "operator": "Exists", "tolerationSeconds": 30, "effect": "NoExecute"}],
        "patch": {"metadata": {"labels": {"subset": "own"}, "annotations": {"note": "x"}},
                  "spec": {"priorityClassName": "low", "containers": [{"name": "main", "env": [{"name": "A", "value": "b"}]}]}},
    }])
}

#[test]
fn a_pod_gets_the_whole_subset_and_one_marker() {
    let mut webhook = Webhook::new(web(full_subset()));
    let mut given = pod();
    let own =
        json!([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, {"matchFields": []}]);
    given["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}}});
    given["spec"]["tolerations"] = json!([{"key": "mine"}]);
    let decision = webhook.ask(create(given.clone()), &NoPods);
    assert_eq!(decision.refusal, None);
    let patched = decision.pod.unwrap();
    let node_affinity = &patched["spec"]["affinity"]["nodeAffinity"];
    assert_eq!(
        node_affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"],
        json!([
            {"matchExpressions": [{"key": "zone", "operator": "Exists"}, {"key": "pool", "operator": "In", "values": ["own"]}],
             "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
             "matchExpressions": [{"key": "pool", "operator": "In", "values": ["own"]}]},
        ])
    );
    assert_eq!(
        node_affinity["preferredDuringSchedulingIgnoredDuringExecution"],
        json!([{"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}])
    );
    assert_eq!(
        patched["spec"]["tolerations"],
        json!([{"key": "mine"}, {"key": "own", "operator": "Exists", "tolerationSeconds": 30, "effect": "NoExecute"}])
    );
    assert_eq!(patched["spec"]["priorityClassName"], "low");
    assert_eq!(patched["spec"]["priority"], Value::Null);
    assert_eq!(patched["spec"]["containers"][0]["image"], "web");
    assert_eq!(patched["metadata"]["labels"]["subset"], "own");
    assert_eq!(
        patched["metadata"]["annotations"],
        json!({
            "note": "x",
            MARKER_ANNOTATION: r#"{"name":"ws","subset":"own","uid":"fresh"}"#,
            COST_ANNOTATION: "100",
        })
    );
    // The patch of the answer makes the same pod of the one that was asked for.
    assert_eq!(
        json_patch(&given, &decision.patch.unwrap()).unwrap(),
        patched
    );
}

#[test]
fn a_subset_without_anything_still_makes_node_affinity_and_the_marker() {
    let mut webhook = Webhook::new(web(json!([{"name": "all"}])));
    let mut given = pod();
    given["metadata"]["name"] = "web-7-x".into();
    let decision = webhook.ask(create(given), &NoPods);
    let review = decision.to_review("admission.k8s.io/v1");
    assert_eq!(review["response"]["allowed"], true);
    assert_eq!(review["response"]["patchType"], "JSONPatch");
    assert_eq!(
        decision.patch.unwrap(),
        json!([
            {"op": "add", "path": "/metadata/annotations", "value": {MARKER_ANNOTATION: r#"{"name":"ws","subset":"all"}"#, COST_ANNOTATION: "100"}},
            {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {}}},
        ])
    );
    assert_eq!(webhook.effects.len(), 1);
}

#[test]
fn a_patch_that_cannot_be_merged_refuses_the_pod() {
    for (patch, says) in [
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            "merge key: name",
        ),
        (
            json!({"spec": {"containers": {"a": 1}}}),
            "read the patched pod",
        ),
        (json!({"spec": {"nodeName": 7}}), "read the patched pod"),
        (
            json!({"metadata": {"$patch": "upside-down"}}),
            "unknown patch type",
        ),
        (json!([1]), "expected an object"),
    ] {
        let mut webhook = Webhook::new(web(
            json!([{"name": "a", "maxReplicas": 1, "patch": patch}]),
        ));
        let decision = webhook.ask(create(pod()), &NoPods);
        let (code, message) = decision.refusal.unwrap();
        assert_eq!(code, 500);
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn what_the_webhook_is_asked_is_read_or_refused() {
    let request = |operation: &str, resource: &str, sub: &str| json!({"request": {"uid": "1", "operation": operation, "subResource": sub, "resource": {"resource": resource}, "object": {}}});
    for (mut body, says) in [
        (json!({}), "expected an AdmissionReview with a request"),
        (json!([]), "expected an AdmissionReview with a request"),
        (
            request("UPDATE", "pods", ""),
            "operation \"UPDATE\" on \"pods\" is not for this webhook",
        ),
        (
            request("CREATE", "nodes", ""),
            "operation \"CREATE\" on \"nodes\" is not for this webhook",
        ),
    ] {
        assert_eq!(Review::read(&mut body).unwrap_err().to_string(), says);
    }
    let binding = Review::read(&mut request("CREATE", "pods", "binding")).unwrap();
    let mut webhook = Webhook::new(web(json!([{"name": "a"}])));
    assert!(binding.subresource);
    assert_eq!(webhook.ask(binding, &NoPods), Decision::allow("1"));
    let mut broken = create(json!({"spec": {"containers": 7}}));
    broken.dry_run = false;
    assert_eq!(webhook.ask(broken, &NoPods).refusal.unwrap().0, 400);
    // A dry run, by any of its names, is let through and counted nowhere.
    for (field, value) in [
        ("dryRun", json!(true)),
        ("options", json!({"dryRun": ["All"]})),
    ] {
        let mut body = request("DELETE", "pods", "");
        body["request"][field] = value;
        assert!(Review::read(&mut body).unwrap().dry_run, "{field}");
    }
}

#[test]
fn an_owner_that_is_not_there_refuses_the_pod_with_its_name() {
    let mut webhook = Webhook::new(web(json!([{"name": "a"}])));
    let mut orphan = pod();
    orphan["metadata"]["ownerReferences"][0]["name"] = "web-8".into();
    let decision = webhook.ask(create(orphan), &NoPods);
    assert_eq!(
        decision.refusal.unwrap(),
        (
            500,
            "the pod's owner ReplicaSet \"web-8\" was not found".to_owned()
        )
    );
}

#[test]
fn base_64_is_that_of_the_rfc() {
    for (text, expected) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(text.as_bytes()), expected);
    }
    assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
}
