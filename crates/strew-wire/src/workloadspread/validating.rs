//! Reviews of WorkloadSpreads.
//!
//! Source: spec/workloadspread §2.6; `k8s.io/api/admission/v1`, v1.36.

use k8s_openapi::api::authentication::v1::UserInfo;
use serde_json::Value;

use super::annotations::{ANY_KIND, is_true};
use super::review::{BadReview, Decision};
use super::spec::TargetReference;
use super::v1beta1::WorkloadSpread;
use super::validation::{Context, validate};
use strew_manifest::json::Json;
use strew_manifest::kruise::read_back;
use strew_manifest::read::RawFault;

/// A WorkloadSpread to store.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// `request.uid`: the answer repeats it.
    pub uid: String,
    /// The namespace of the request.
    pub namespace: String,
    /// The object as v1beta1.
    pub spread: WorkloadSpread,
    /// The user who writes the WorkloadSpread.
    pub user: UserInfo,
    /// The stored object before an update.
    pub before: Option<WorkloadSpread>,
    /// The fields whose values have another type, which are left out of the object, with their errors.
    faults: Vec<String>,
}

/// A review before any lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// The object must be validated.
    Judge(Box<Review>),
    /// The answer.
    Answered(Box<Decision>),
}

impl Review {
    /// Reads a review of either version. Reviews of other operations or subresources are allowed, and updates that leave
    /// spec and annotations as they are.
    ///
    /// # Errors
    /// The body is no review with a uid.
    pub fn read(body: &Value) -> Result<Read, BadReview> {
        let request = &body["request"];
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let uid = text("uid");
        if uid.is_empty() {
            return Err(BadReview::NoRequest);
        }
        let operation = text("operation");
        let is_update = operation == "UPDATE";
        if !(is_update || operation == "CREATE") || !text("subResource").is_empty() {
            return Ok(Read::Answered(Box::new(Decision::allow(&uid))));
        }
        let Some((spread, faults)) = read_back(request["object"].clone()) else {
            let message = "the object is no WorkloadSpread of v1alpha1 or v1beta1";
            let refused = Decision::refuse(&uid, 400, message);
            return Ok(Read::Answered(Box::new(refused)));
        };
        let before = is_update
            .then(|| read_back(request["oldObject"].clone()))
            .flatten();
        let review = Self {
            uid,
            namespace: text("namespace"),
            spread,
            user: UserInfo::of_json(request["userInfo"].clone()).unwrap_or_default(),
            before: before.map(|(before, _)| before),
            faults: faults.iter().filter_map(fault).collect(),
        };
        Ok(match review.changes_pods() || !review.faults.is_empty() {
            true => Read::Judge(Box::new(review)),
            // What is stored already stays as it is: a finalizer can be removed from it, whatever rules are new.
            false => Read::Answered(Box::new(Decision::allow(&review.uid))),
        })
    }

    /// Its target.
    pub fn target(&self) -> Option<&TargetReference> {
        self.spread.spec.as_ref()?.target_reference.as_ref()
    }

    /// True if the write changes pods (by spec or annotations). The user then needs the right to create pods.
    pub fn changes_pods(&self) -> bool {
        let parts =
            |spread: &WorkloadSpread| (spread.spec.clone(), spread.metadata.annotations.clone());
        let before = self.before.as_ref();
        before.is_none_or(|before| parts(before) != parts(&self.spread))
    }

    /// True if other objects decide about it: it is new, or its spec changed, or which kinds may be its target.
    pub fn needs_others(&self) -> bool {
        let Some(before) = &self.before else {
            return true;
        };
        let any_kind = |spread: &WorkloadSpread| is_true(&spread.metadata, ANY_KIND);
        before.spec != self.spread.spec || any_kind(before) != any_kind(&self.spread)
    }

    /// True if a subset changes pods beyond their nodes: then their template decides about it.
    pub fn has_patch(&self) -> bool {
        let subsets = self.spread.spec.iter().flat_map(|spec| &spec.subsets);
        subsets.into_iter().any(|subset| subset.patch.is_some())
    }

    /// Refuses the object with all errors in one message and code 400, or allows it.
    pub fn judge(&self, cx: &Context<'_>) -> Decision {
        let context = Context {
            before: self.before.as_ref(),
            ..*cx
        };
        let wrong = validate(&self.spread, &context);
        let faults = self.faults.iter().cloned();
        let all: Vec<String> = faults
            .chain(wrong.iter().map(ToString::to_string))
            .collect();
        match all.is_empty() {
            true => Decision::allow(&self.uid),
            false => Decision::refuse(&self.uid, 400, all.join(", ")),
        }
    }
}

/// `None` for an unknown field: the API server drops it.
fn fault(fault: &RawFault) -> Option<String> {
    let RawFault {
        path, diagnostic, ..
    } = fault;
    (!fault.is_unknown).then(|| format!("{path}: {}", diagnostic.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spread(version: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("apps.kruise.io/{version}"),
            "kind": "WorkloadSpread",
            "metadata": {"name": "ws", "namespace": "shop", "uid": "1"},
            "spec": spec,
        })
    }

    fn web(name: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name})
    }

    fn review(operation: &str, object: Value, old: Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "r", "operation": operation, "namespace": "shop", "object": object, "oldObject": old},
        })
    }

    fn judged(body: &Value) -> Decision {
        match Review::read(body).unwrap() {
            Read::Judge(review) => review.judge(&Context::default()),
            Read::Answered(decision) => *decision,
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once_by_the_names_of_v1beta1() {
        let term =
            json!({"matchExpressions": [{"key": "zone", "operator": "Exists", "values": ["a"]}]});
        let subsets = json!([
            {"name": "a", "maxReplicas": -1, "requiredNodeSelectorTerm": term},
            {"name": "a", "tolerations": 7},
        ]);
        let spec = json!({"targetRef": web("web"), "subsets": subsets});
        let decision = judged(&review("CREATE", spread("v1alpha1", &spec), Value::Null));
        let (code, message) = decision.refusal.unwrap();
        assert_eq!((code, decision.uid.as_str()), (400, "r"));
        for path in [
            "spec.subsets[0].maxReplicas: ",
            "spec.subsets[0].requiredNodeSelector.matchExpressions[0].values: ",
            "spec.subsets[1].name: ",
            "spec.subsets[1].tolerations: ",
        ] {
            assert!(message.contains(path), "{path} is not in {message}");
        }
    }

    #[test]
    fn the_target_stays_what_it_is() {
        let spec = |name: &str| json!({"targetRef": web(name), "subsets": [{"name": "a"}]});
        let change = |to: &str| {
            let (new, old) = (spec(to), spec("web"));
            judged(&review(
                "UPDATE",
                spread("v1beta1", &new),
                spread("v1alpha1", &old),
            ))
        };
        assert_eq!(change("web"), Decision::allow("r"));
        let (_, message) = change("api").refusal.unwrap();
        assert!(message.starts_with("spec.targetRef: "), "{message}");
    }

    /// Before, an object that was stored before a rule could not lose its finalizer.
    #[test]
    fn an_update_that_changes_no_pods_is_allowed_and_other_objects_decide_about_the_spec_alone() {
        let wrong = json!({"targetRef": web("web"), "subsets": []});
        let with = |metadata: Value, spec: &Value| {
            let mut object = spread("v1beta1", spec);
            for (key, value) in metadata.as_object().unwrap() {
                object["metadata"][key] = value.clone();
            }
            object
        };
        let old = with(json!({"finalizers": ["a/b"]}), &wrong);
        let update = |new: Value| review("UPDATE", new, old.clone());
        let bare = update(with(json!({}), &wrong));
        assert_eq!(
            Review::read(&bare),
            Ok(Read::Answered(Box::new(Decision::allow("r"))))
        );
        let mistyped = json!({"targetRef": web("web"), "subsets": [], "scheduleStrategy": 7});
        assert!(
            judged(&update(with(json!({}), &mistyped)))
                .refusal
                .is_some()
        );
        let right = json!({"targetRef": web("web"), "subsets": [{"name": "a", "patch": {}}]});
        for (metadata, spec, expected) in [
            (json!({"annotations": {"a": "b"}}), &wrong, (false, false)),
            (
                json!({"annotations": {"strew.dev/any-kind": "true"}}),
                &wrong,
                (true, false),
            ),
            (json!({}), &right, (true, true)),
        ] {
            let body = update(with(metadata, spec));
            let Ok(Read::Judge(review)) = Review::read(&body) else {
                panic!("{body}");
            };
            let found = (review.needs_others(), review.has_patch());
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn what_is_not_asked_of_us_passes_and_what_cannot_be_read_is_refused() {
        let broken = spread("v1beta1", &json!({}));
        let deletion = review("DELETE", Value::Null, broken.clone());
        assert_eq!(judged(&deletion), Decision::allow("r"));
        let mut status = review("UPDATE", broken.clone(), broken);
        status["request"]["subResource"] = "status".into();
        assert_eq!(judged(&status), Decision::allow("r"));
        for object in [Value::Null, json!([]), json!({"kind": "CloneSet"})] {
            let decision = judged(&review("CREATE", object, Value::Null));
            let (code, message) = decision.refusal.unwrap();
            assert_eq!(code, 400);
            assert!(message.contains("is no WorkloadSpread"), "{message}");
        }
        for body in [json!({}), json!([]), json!({"request": "?"})] {
            assert_eq!(Review::read(&body), Err(BadReview::NoRequest));
        }
    }
}
