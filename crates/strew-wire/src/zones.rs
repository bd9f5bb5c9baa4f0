//! Objects to inputs of the machine of budgets by zone, and its effects to requests.

use std::collections::BTreeSet;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use strew_manifest::conditions::{READY, node_ready};
use strew_manifest::read::KubeObject;
use strew_model::{Interner, Symbol, well_known};
use strew_zones::claim::WAITING_MAX;
use strew_zones::{
    Answer as Verdict, Away, BudgetFact, BudgetKey, Claim, Effect, EffectId, Input, Outcome,
    PodRow, RETRY_AFTER_S,
};

pub use strew_zones::{CLAIM, UNREVIEWED, ZONE_AWARE};

use crate::facts::{Named, PodView, labelled, labels, selector};
use crate::request::{Answer, Precondition, Request, Resource, Verb, version_of};
use crate::workloadspread::review::{Decision, Operation, Review};

/// `policy/v1` `poddisruptionbudgets`
pub const BUDGETS: Resource = Resource::of::<PodDisruptionBudget>();

/// A warning for the client whose eviction is left to the plain budget, since no claim could be written.
pub const OPEN: &str = "strew could not claim the zone of this pod: only the plain budget is kept";

/// The input for the current state of an object other than a pod; `None` if decisions do not read its kind.
pub fn input(object: &KubeObject, names: &mut Interner) -> Option<Input> {
    match object {
        KubeObject::Node(wire) => {
            let (name, labels) = labelled(&wire.metadata, names);
            let ready = wire.status.as_ref().and_then(node_ready);
            Some(Input::Node(name, Some((labels, ready == Some("True")))))
        }
        KubeObject::PodDisruptionBudget(wire) => {
            let key = budget_key(&wire.metadata, names);
            Some(Input::Budget(key, budget(wire, names).map(Box::new)))
        }
        _ => None,
    }
}

/// The input for the current state of a pod.
pub fn pod_input(pod: &dyn PodView, names: &mut Interner) -> Input {
    let row = (!pod.is_finished()).then(|| {
        Box::new(PodRow {
            uid: pod.uid().into(),
            labels: labels(pod.labels(), names),
            node: pod.node().map(|node| names.intern(node)),
            away: away(pod),
        })
    });
    Input::Pod(namespace(pod.namespace(), names), pod.name().into(), row)
}

/// Why a pod is not available, by its own state; `None` if it is.
pub fn away(pod: &dyn PodView) -> Option<Away> {
    let is_ready = || {
        let ready = pod.condition(READY);
        ready.is_some_and(|condition| condition.status == "True")
    };
    match (pod.is_terminating(), pod.node()) {
        (true, _) => Some(Away::Deleted),
        (false, None) => Some(Away::Pending),
        (false, Some(_)) => (!is_ready()).then_some(Away::NotReady),
    }
}

/// The input for a deleted object of this kind; `None` if decisions do not read it.
pub fn gone(kind: &str, gone: &Named, names: &mut Interner) -> Option<Input> {
    match kind {
        "Node" => Some(Input::Node(names.intern(&gone.name), None)),
        "Pod" => {
            let namespace = namespace(&gone.namespace, names);
            Some(Input::Pod(namespace, (&*gone.name).into(), None))
        }
        "PodDisruptionBudget" => {
            let key = BudgetKey {
                namespace: namespace(&gone.namespace, names),
                name: (&*gone.name).into(),
            };
            Some(Input::Budget(key, None))
        }
        _ => None,
    }
}

/// The topology key that the annotation of a budget names; `None` without the annotation, or if it is empty.
pub fn topology_key(metadata: &ObjectMeta) -> Option<&str> {
    let key = metadata.annotations.as_ref()?.get(ZONE_AWARE)?;
    Some(key.as_str()).filter(|key| !key.is_empty())
}

/// A budget with the annotation; `None` for another one, or if its selector is invalid.
fn budget(wire: &PodDisruptionBudget, names: &mut Interner) -> Option<BudgetFact> {
    let metadata = &wire.metadata;
    let key = topology_key(metadata)?;
    let wanted = wire.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let status = wire.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    let is_current = observed.unwrap_or(0) >= metadata.generation.unwrap_or(0);
    let allowed = status.and_then(|status| status.disruptions_allowed);
    let expected = status.and_then(|status| status.expected_pods);
    let claim = metadata.annotations.as_ref().and_then(|all| all.get(CLAIM));
    Some(BudgetFact {
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        version: version_of(metadata.resource_version.as_deref()),
        topology_key: names.intern(key),
        selector: selector(wanted, names).ok()?,
        claim: claim.and_then(|text| read_claim(text)),
        allowed: if is_current { allowed.unwrap_or(0) } else { 0 },
        expected: u32::try_from(expected.unwrap_or(0)).unwrap_or(0),
    })
}

fn budget_key(metadata: &ObjectMeta, names: &mut Interner) -> BudgetKey {
    BudgetKey {
        namespace: namespace(metadata.namespace.as_deref().unwrap_or_default(), names),
        name: metadata.name.as_deref().unwrap_or_default().into(),
    }
}

fn namespace(namespace: &str, names: &mut Interner) -> Symbol {
    match namespace {
        "" => well_known::DEFAULT_NAMESPACE,
        namespace => names.intern(namespace),
    }
}

// === claims ===

/// The claim in an annotation; `None` if it cannot be read: then it is overwritten.
pub fn read_claim(text: &str) -> Option<Claim> {
    let value: Value = serde_json::from_str(text).ok()?;
    let waiting = value["waiting"].as_array().into_iter().flatten();
    let waiting: BTreeSet<Box<str>> = waiting
        .filter_map(|uid| uid.as_str())
        .take(WAITING_MAX)
        .map(Into::into)
        .collect();
    Some(Claim {
        domain: value["zone"].as_str().map(Into::into),
        grants: value["grants"].as_u64()?,
        waiting,
        missing: u32::try_from(value["missing"].as_u64().unwrap_or(0)).ok()?,
    })
}

/// The text of a claim's annotation.
pub fn claim_text(claim: &Claim) -> String {
    let mut value = Map::new();
    if let Some(domain) = &claim.domain {
        value.insert("zone".to_owned(), (&**domain).into());
    }
    value.insert("grants".to_owned(), claim.grants.into());
    if !claim.waiting.is_empty() {
        let waiting: Vec<&str> = claim.waiting.iter().map(|uid| &**uid).collect();
        value.insert("waiting".to_owned(), waiting.into());
    }
    if claim.missing > 0 {
        value.insert("missing".to_owned(), claim.missing.into());
    }
    Value::Object(value).to_string()
}

// === effects ===

/// The request of an effect with the id for its outcome; `None` for an answer.
pub fn request(effect: &Effect, names: &Interner) -> Option<(EffectId, Request)> {
    let of = |verb, key: &BudgetKey, body| {
        Request::of(verb, BUDGETS, (names.text(key.namespace), &key.name), body)
    };
    match effect {
        Effect::Answer(..) => None,
        Effect::Read { id, key } => Some((*id, of(Verb::Get, key, Value::Null))),
        Effect::WriteClaim {
            id,
            key,
            uid,
            version,
            claim,
        } => {
            let version = version.to_string();
            let body = json!({"metadata": {
                "uid": &**uid,
                "resourceVersion": version,
                "annotations": {CLAIM: claim.as_ref().map(claim_text)},
            }});
            let precondition = Precondition {
                uid: Some(uid.to_string()),
                resource_version: Some(version),
            };
            let request = Request {
                precondition,
                ..of(Verb::MergePatch, key, body)
            };
            Some((*id, request))
        }
    }
}

/// The outcome of an answer.
pub fn outcome(request: &Request, answer: &Answer, names: &mut Interner) -> Outcome {
    match (answer.code(), answer.object()) {
        (_, Some(object)) if request.verb == Verb::Get => match KubeObject::of_json(object.clone())
        {
            Ok(KubeObject::PodDisruptionBudget(wire)) => {
                Outcome::Read(budget(&wire, names).map(Box::new))
            }
            _ => Outcome::Failed,
        },
        (_, Some(_)) => Outcome::Written(answer.version().unwrap_or(0)),
        (Some(404), _) => Outcome::Gone,
        (Some(409 | 422), _) if answer.is_of_another_uid() => Outcome::Gone,
        (Some(409), _) => Outcome::Conflict,
        (Some(500..=599), _) | (None, _) => Outcome::Lost,
        _ => Outcome::Failed,
    }
}

// === reviews ===

/// The namespace and name of the pod that a review asks to evict, and whether that changes nothing; `None` if it is no
/// review of an eviction.
pub fn evicted(review: &Review) -> Option<(&str, &str, bool)> {
    let is_eviction = review.operation == Operation::Create && review.subresource;
    let of_deletion = review.pod.pointer("/deleteOptions/dryRun");
    let is_dry_run = review.dry_run
        || of_deletion.is_some_and(|all| all.as_array().is_some_and(|all| !all.is_empty()));
    is_eviction.then_some((&review.namespace, &review.name, is_dry_run))
}

/// The answer to a review with this uid.
pub fn decision(uid: &str, answer: &Verdict) -> Decision {
    match answer {
        Verdict::Pass | Verdict::Granted => Decision::allow(uid),
        Verdict::Open => Decision {
            warnings: vec![OPEN.to_owned()],
            ..Decision::allow(uid)
        },
        Verdict::Refused(text) => Decision {
            retry_after_s: Some(RETRY_AFTER_S),
            ..Decision::refuse(uid, 429, &**text)
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    fn read(wire: Value) -> Option<BudgetFact> {
        let wire: PodDisruptionBudget = from_value(wire).unwrap();
        budget(&wire, &mut Interner::new())
    }

    fn annotated(annotations: Value) -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 2,
                         "annotations": annotations},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"observedGeneration": 2, "disruptionsAllowed": 3, "expectedPods": 9,
                       "currentHealthy": 9, "desiredHealthy": 6},
        })
    }

    #[test]
    fn a_budget_is_read_with_its_claim() {
        assert_eq!(read(annotated(json!({}))), None);
        assert_eq!(read(annotated(json!({ZONE_AWARE: ""}))), None);
        let text = r#"{"zone":"a","grants":2,"waiting":["p"],"missing":1}"#;
        let fact = read(annotated(json!({ZONE_AWARE: "zone", CLAIM: text}))).unwrap();
        assert_eq!((fact.version, fact.allowed, fact.expected), (7, 3, 9));
        let claim = fact.claim.unwrap();
        assert_eq!(
            (claim.domain.as_deref(), claim.grants, claim.missing),
            (Some("a"), 2, 1)
        );
        assert_eq!(claim_text(&claim), text);
        let unlabelled = Claim {
            grants: 1,
            ..Claim::default()
        };
        assert_eq!(claim_text(&unlabelled), r#"{"grants":1}"#);
        for broken in [
            "",
            "[]",
            "{}",
            r#"{"grants":-1}"#,
            r#"{"zone":1,"grants":"x"}"#,
        ] {
            let fact = read(annotated(json!({ZONE_AWARE: "zone", CLAIM: broken}))).unwrap();
            assert_eq!(fact.claim, None, "{broken}");
        }
    }

    #[test]
    fn a_status_of_an_older_generation_allows_nothing() {
        let mut wire = annotated(json!({ZONE_AWARE: "zone"}));
        wire["status"]["observedGeneration"] = 1.into();
        assert_eq!(read(wire).unwrap().allowed, 0);
    }

    #[test]
    fn a_claim_is_written_under_uid_and_version() {
        let mut names = Interner::new();
        let key = BudgetKey {
            namespace: names.intern("shop"),
            name: "web".into(),
        };
        let effect = Effect::WriteClaim {
            id: EffectId(1),
            key,
            uid: "u".into(),
            version: 7,
            claim: None,
        };
        let (_, request) = request(&effect, &names).unwrap();
        assert_eq!(
            request.path(),
            "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web?fieldValidation=Strict"
        );
        let wanted =
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "annotations": {CLAIM: null}}});
        assert_eq!(request.body, wanted);
        let answer = |code, body: Value| Answer::of(code, None, body.to_string().as_bytes());
        let written = answer(200, json!({"metadata": {"resourceVersion": "8"}}));
        let stale = answer(
            409,
            json!({"kind": "Status", "reason": "Conflict", "message": "modified"}),
        );
        for (answer, expected) in [
            (written, Outcome::Written(8)),
            (stale, Outcome::Conflict),
            (answer(404, json!({})), Outcome::Gone),
            (answer(403, json!({})), Outcome::Failed),
            (answer(503, json!({})), Outcome::Lost),
            (Answer::Lost("cut".into()), Outcome::Lost),
        ] {
            assert_eq!(outcome(&request, &answer, &mut names), expected);
        }
    }

    #[test]
    fn a_refusal_is_what_kubectl_drain_tries_again() {
        let refused =
            decision("1", &Verdict::Refused("no".into())).to_review("admission.k8s.io/v1");
        assert_eq!(
            refused["response"]["status"],
            json!({"code": 429, "reason": "TooManyRequests", "message": "no", "details": {"retryAfterSeconds": 5}})
        );
        let open = decision("1", &Verdict::Open).to_review("admission.k8s.io/v1");
        assert_eq!(open["response"]["allowed"], true);
        assert_eq!(open["response"]["warnings"], json!([OPEN]));
    }
}
