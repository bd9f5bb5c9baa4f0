//! Conditions and variables of admission policies.

use serde_json::{Value as Json, json};
use strew_cel::Environment::Admission;
use strew_cel::{Program, Value, Variables};

use crate::{check, compile};

fn created(params: Option<Json>, variables: Json) -> Variables {
    let pod = json!({
        "metadata": {"name": "web-1", "labels": {"app": "web", "hash": "1"}},
        "spec": {"schedulerName": "default-scheduler"},
    });
    let params = params.map(|params| Value::from_json(&params));
    Variables::admission(Value::from_json(&pod), params, Value::from_json(&variables))
}

#[test]
fn conditions_over_an_object_its_parameter_and_variables() {
    let service = json!({"spec": {"selector": {"app": "web"}}});
    check(
        &created(Some(service), json!({"keys": ["hash"]})),
        Admission,
        &[
            ("object.spec.schedulerName in ['default-scheduler']", "true"),
            ("has(object.spec.nodeName)", "false"),
            (
                "params.spec.selector.all(k, k in object.metadata.labels && object.metadata.labels[k] == params.spec.selector[k])",
                "true",
            ),
            ("'hash' in variables.keys", "true"),
            // A key that is not there is an error, as in the API server.
            (
                "object.metadata.labels.tier == 'x'",
                "no such key: 'tier' in object.metadata.labels",
            ),
        ],
    );
}

#[test]
fn variables_are_lists_of_texts() {
    let text = "object.metadata.labels.filter(k, !(k in variables.keys))";
    let program = compile(text, Admission);
    let value = program
        .value(&created(None, json!({"keys": ["hash"]})))
        .unwrap();
    assert_eq!(value.texts(), Some(vec!["app".to_owned()]));
    let number = compile("1", Admission)
        .value(&created(None, json!({})))
        .unwrap();
    assert_eq!(number.texts(), None);
}

#[test]
fn messages_and_a_missing_parameter_are_errors() {
    assert!(Program::compile("JSONPatch{op: 'add'}", Admission).is_err());
    let program = compile("has(params.spec)", Admission);
    assert!(program.holds(&created(None, json!({}))).is_err());
}
