//! `ConversionReview` of `apiextensions.k8s.io`: request and response.
//!
//! Source: spec/workloadspread §2.4; `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`, v1.36.

use serde_json::{Value, json};

use super::conversion::convert;
use super::review::BadReview;

/// Answers a review with all its objects in the requested version, in order, or with an error that names the first one
/// that cannot be converted: the API server accepts all objects or none.
///
/// # Errors
/// The body is no ConversionReview with a request.
pub fn answer(mut body: Value) -> Result<Value, BadReview> {
    let version = body["apiVersion"].as_str().unwrap_or_default().to_owned();
    let is_review = body["kind"] == "ConversionReview";
    let mut request = take(&mut body, "request");
    let uid = request["uid"].as_str().unwrap_or_default().to_owned();
    if !is_review || uid.is_empty() {
        return Err(BadReview::NoConversion);
    }
    let Value::Array(objects) = take(&mut request, "objects") else {
        return Err(BadReview::NoConversion);
    };
    let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let mut converted = Vec::with_capacity(objects.len());
    let mut result = json!({"status": "Success"});
    for (place, object) in objects.into_iter().enumerate() {
        let named = named(&object);
        match convert(object, desired) {
            Ok(object) => converted.push(object),
            Err(error) => {
                let message = format!("object {place} ({named}): {error}");
                result = json!({"status": "Failure", "message": message});
                converted.clear();
                break;
            }
        }
    }
    Ok(json!({
        "apiVersion": version,
        "kind": "ConversionReview",
        "response": {"uid": uid, "result": result, "convertedObjects": converted},
    }))
}

/// Takes a field out of any value.
fn take(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Namespace and name, as far as the object has them.
fn named(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    match (text("namespace"), text("name")) {
        ("", "") => "without a name".to_owned(),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(version: &str, name: &str) -> Value {
        let field = match version {
            "v1alpha1" => "requiredNodeSelectorTerm",
            _ => "requiredNodeSelector",
        };
        json!({
            "apiVersion": format!("apps.kruise.io/{version}"),
            "kind": "WorkloadSpread",
            "metadata": {"namespace": "shop", "name": name, "uid": name},
            "spec": {"subsets": [{"name": "a", field: {"matchFields": []}}]},
        })
    }

    fn ask(desired: &str, objects: Vec<Value>) -> Value {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": {"uid": "review-1", "desiredAPIVersion": desired, "objects": objects},
        });
        answer(review).unwrap()
    }

    #[test]
    fn all_objects_come_back_in_their_order() {
        let mixed = vec![spread("v1alpha1", "a"), spread("v1beta1", "b")];
        let answer = ask("apps.kruise.io/v1beta1", mixed);
        let expected = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "response": {
                "uid": "review-1",
                "result": {"status": "Success"},
                "convertedObjects": [spread("v1beta1", "a"), spread("v1beta1", "b")],
            },
        });
        assert_eq!(answer, expected);
        let none = ask("apps.kruise.io/v1alpha1", Vec::new());
        assert_eq!(none["response"]["result"]["status"], "Success");
    }

    #[test]
    fn a_failure_says_which_object() {
        let mut stranger = spread("v1alpha1", "b");
        stranger["apiVersion"] = "apps.kruise.io/v2".into();
        let mut other = spread("v1alpha1", "c");
        other["kind"] = "CloneSet".into();
        let cases = [
            (
                "apps.kruise.io/v1beta1",
                stranger,
                "object 1 (shop/b): version \"apps.kruise.io/v2\" is neither v1alpha1 nor v1beta1 of apps.kruise.io",
            ),
            (
                "apps.kruise.io/v1beta1",
                other,
                "object 1 (shop/c): kind \"CloneSet\" is not WorkloadSpread",
            ),
            (
                "apps.kruise.io/v1beta1",
                Value::Null,
                "object 1 (without a name): kind \"\" is not WorkloadSpread",
            ),
        ];
        for (desired, second, message) in cases {
            let answer = ask(desired, vec![spread("v1alpha1", "a"), second]);
            let result = json!({"status": "Failure", "message": message});
            assert_eq!(answer["response"]["result"], result);
            assert_eq!(answer["response"]["convertedObjects"], json!([]));
        }
        let answer = ask("apps.kruise.io/v2", vec![spread("v1beta1", "a")]);
        let message = answer["response"]["result"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("object 0 (shop/a): version \"apps.kruise.io/v2\" is asked for"),
            "{message}"
        );
    }

    #[test]
    fn what_is_no_review_is_told() {
        for body in [
            json!(null),
            json!([]),
            json!({"kind": "ConversionReview"}),
            json!({"kind": "ConversionReview", "request": []}),
            json!({"kind": "ConversionReview", "request": {"uid": 7, "objects": []}}),
            json!({"kind": "ConversionReview", "request": {"uid": "a"}}),
            json!({"kind": "AdmissionReview", "request": {"uid": "a"}}),
        ] {
            assert_eq!(answer(body), Err(BadReview::NoConversion));
        }
    }
}
