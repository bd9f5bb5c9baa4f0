//! Nodes as they come into a lab.

use serde_json::{Value, json};

use super::KUBELET_LABEL;

/// A Node as a kubelet would register it: with its own labels, and as much capacity as can be allocated.
#[must_use]
pub fn node(mut node: Value) -> Value {
    let name = node["metadata"]["name"].clone();
    let own = json!({
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        KUBELET_LABEL: "runs",
    });
    let mut labels = own.clone();
    merge(&mut labels, &node["metadata"]["labels"]);
    node["metadata"]["labels"] = labels;
    if node["status"]["capacity"].is_null() {
        node["status"]["capacity"] = node["status"]["allocatable"].clone();
    }
    node
}

/// Puts what `over` says over `under`, map by map.
pub fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (under, over) => *under = over.clone(),
    }
}

#[test]
fn a_node_has_a_kubelet_and_its_own_labels_win() {
    let made = node(json!({
        "metadata": {"name": "n", "labels": {"kubernetes.io/os": "other"}},
        "status": {"allocatable": {"cpu": "4"}},
    }));
    let labels = &made["metadata"]["labels"];
    assert_eq!(labels["kubernetes.io/hostname"], "n");
    assert_eq!(labels["kubernetes.io/os"], "other");
    assert_eq!(labels[KUBELET_LABEL], "runs");
    assert_eq!(made["status"]["capacity"]["cpu"], "4");
}
