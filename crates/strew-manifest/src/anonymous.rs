//! Replaces the names in a cluster's objects, so that a dump can be shown to others and still decides alike.
//!
//! Equal texts become equal texts in every object, so that selectors, owners and references hold. A name is replaced
//! part by part (`web-5784897cb6-b8gmt`: three parts), and the parts keep their alphabetical order and the separators
//! theirs: what is sorted by name is sorted alike. The number at the end of a name stays: that of a StatefulSet's pod
//! decides.
//!
//! What stays is listed here, all else is a name: a field that Kubernetes adds later does not leak.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::read::{Text, visit_texts};

/// Fields whose values are words of Kubernetes.
const WORDS_OF: &[&str] = &[
    "accessModes",
    "action",
    "apiGroup",
    "apiVersion",
    "builtIn",
    "cachingMode",
    "completedIndexes",
    "completionMode",
    "concurrencyPolicy",
    "conditionType",
    "declaredFeatures",
    "driver",
    "effect",
    "failedIndexes",
    "finalizers",
    "health",
    "kind",
    "managedBy",
    "medium",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "operator",
    "persistentVolumeReclaimPolicy",
    "phase",
    "podManagementPolicy",
    "podReplacementPolicy",
    "preemptionPolicy",
    "protocol",
    "provisioner",
    "qosClass",
    "reclaimPolicy",
    "resize",
    "resourceVersion",
    "restartPolicy",
    "schedule",
    "scopeName",
    "scopes",
    "selectPolicy",
    "selectorType",
    "sortBy",
    "status",
    "succeededIndexes",
    "timeZone",
    "topologyKeyType",
    "type",
    "uid",
    "unhealthyPodEvictionPolicy",
    "volumeBindingMode",
    "volumeMode",
    // The uids of pods that a budget by zone waits for.
    "waiting",
    "whenDeleted",
    "whenScaled",
    "whenUnsatisfiable",
];

/// Fields that a person or a program wrote for people.
const PROSE: &[&str] = &["description", "message", "reason"];

/// Names that mean the same in each cluster.
const WORDS: &[&str] = &[
    "amd64",
    "arm64",
    "controller-revision-hash",
    "controller-uid",
    "cpu",
    "default",
    "default-scheduler",
    "ephemeral-storage",
    "global",
    "job-name",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "latest",
    "linux",
    "memory",
    "metadata.name",
    "pod-template-generation",
    "pod-template-hash",
    "pods",
    "storage",
    "system-cluster-critical",
    "system-node-critical",
    "windows",
    "STREW_SNAPSHOT",
];

/// Keys in annotations that are JSON, beside the fields of kinds.
const KEYS_OF_ANNOTATIONS: &[&str] = &[
    "claimSelector",
    "defaultWeight",
    "grants",
    "maxGroups",
    "minGroups",
    "minPerCluster",
    "missing",
    "subset",
    "waiting",
    "weight",
    "weights",
    "zone",
];

/// Annotations that are a word.
const WORDS_OF_ANNOTATIONS: &[&str] = &[
    "Empty",
    "Keep",
    "Pending",
    "Reject",
    "Unconstrained",
    "disabled",
    "revision",
    "workload",
    "yes",
];

/// Words in selectors.
const OF_SELECTORS: &[&str] = &["in", "notin"];

/// Domains whose labels, taints and resources are public.
const DOMAINS: &[&str] = &[
    "amd.com",
    "aws.com",
    "azure.com",
    "csi.openstack.org",
    "csi.vsphere.vmware.com",
    "gke.io",
    "intel.com",
    "k8s.io",
    "karpenter.sh",
    "kruise.io",
    "kubernetes.io",
    "nvidia.com",
    "open-cluster-management.io",
    "strew.dev",
];

/// How the name of a resource may begin in a quota, before the resource itself.
const OF_QUOTA: &[&str] = &["requests.", "limits."];
const CLASS_OF_QUOTA: &str = ".storageclass.storage.k8s.io/";

/// The longest value of a label.
const LABEL_MAX: usize = 63;

/// Replaces the names of these objects, each of which has its `apiVersion` and `kind`, and removes texts for people.
///
/// Returns each name that was replaced with what stands in its place. A name that would be too long for a label is
/// replaced as a whole, and its place in the alphabet changes.
pub fn anonymize(objects: &mut [Value]) -> BTreeMap<String, String> {
    let mut parts = BTreeSet::new();
    for object in &mut *objects {
        visit_names(object, &[], &mut |name| {
            renamed(name, &mut |part| {
                parts.insert(part.to_owned());
                String::new()
            });
        });
    }
    let width = parts.len().to_string().len();
    let numbered = parts.into_iter().enumerate();
    let parts: BTreeMap<String, String> = numbered
        .map(|(number, part)| (part, format!("x{number:0width$}")))
        .collect();
    let mut names = BTreeMap::new();
    for object in objects {
        visit_names(object, &[], &mut |name| {
            if let Some(known) = names.get(name.as_str()) {
                name.clone_from(known);
                return;
            }
            let mut new = renamed(name, &mut |part| parts[part].clone());
            if new.len() > LABEL_MAX && name.len() <= LABEL_MAX {
                new = format!("y{}", names.len());
            }
            let old = std::mem::replace(name, new.clone());
            if old != new {
                names.insert(old, new);
            }
        });
    }
    names
}

/// Calls `visit` for each part of a text that is a name as a whole; `keys` of maps are none.
fn visit_names(object: &mut Value, keys: &[&str], visit: &mut dyn FnMut(&mut String)) {
    visit_texts(object, &mut |of, text| match of {
        Text::Key if keys.contains(&text.as_str()) => {}
        Text::Field(field) if WORDS_OF.contains(&field) => {}
        Text::Field(field) if PROSE.contains(&field) => {
            // A reason is a word of Kubernetes in most cases, and decides in some.
            if field != "reason" || !text.chars().all(|letter| letter.is_ascii_alphabetic()) {
                text.clear();
            }
        }
        Text::Field("celExpressions") => in_quotes(text, visit),
        Text::Field("annotations") => annotation(text, visit),
        Text::Field(_) | Text::Key => name(text, visit),
        Text::Resource => resource(text, visit),
    });
}

fn annotation(text: &mut String, visit: &mut dyn FnMut(&mut String)) {
    if WORDS_OF_ANNOTATIONS.contains(&text.as_str()) {
        return;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) if value.is_object() || value.is_array() => {
            visit_names(&mut value, KEYS_OF_ANNOTATIONS, visit);
            *text = value.to_string();
        }
        // As `app=shop,tier in (web, api)`.
        _ => {
            let is_between = |letter: char| " ,=()!".contains(letter);
            let pieces = text.split_inclusive(is_between).map(|piece| {
                let mut inner = piece.trim_end_matches(is_between).to_owned();
                let between = &piece[inner.len()..];
                if !OF_SELECTORS.contains(&inner.as_str()) {
                    name(&mut inner, visit);
                }
                inner + between
            });
            *text = pieces.collect();
        }
    }
}

fn name(text: &mut String, visit: &mut dyn FnMut(&mut String)) {
    if !stays(text) {
        visit(text);
    }
}

/// True for a text that says nothing about who runs the cluster, or that is no name.
fn stays(text: &str) -> bool {
    let domain = text.split('/').next().unwrap_or_default();
    let is_public = |public: &&str| {
        let before = domain.strip_suffix(public);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    text.is_empty()
        || WORDS.contains(&text)
        || text.parse::<bool>().is_ok()
        || text
            .strip_suffix('%')
            .unwrap_or(text)
            .parse::<f64>()
            .is_ok()
        || is_time(text)
        || DOMAINS.iter().any(is_public)
}

/// True for a time as annotations have it.
fn is_time(text: &str) -> bool {
    text.len() >= 20
        && text.contains('T')
        && text.ends_with('Z')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte))
}

/// A resource has a domain, or is Kubernetes' own; in a quota a class or a prefix stands before it.
fn resource(text: &mut String, visit: &mut dyn FnMut(&mut String)) {
    if let Some((class, resource)) = text.split_once(CLASS_OF_QUOTA) {
        let (mut class, resource) = (class.to_owned(), resource.to_owned());
        name(&mut class, visit);
        *text = [&class, CLASS_OF_QUOTA, &resource].concat();
        return;
    }
    if !text.contains('/') || text.starts_with("count/") {
        return;
    }
    let prefix = OF_QUOTA
        .iter()
        .find(|prefix| text.starts_with(**prefix))
        .copied()
        .unwrap_or_default();
    let mut rest = text[prefix.len()..].to_owned();
    name(&mut rest, visit);
    *text = [prefix, &rest].concat();
}

/// The texts in an expression.
fn in_quotes(text: &mut String, visit: &mut dyn FnMut(&mut String)) {
    let mut quote: Option<char> = None;
    let mut new = String::with_capacity(text.len());
    let mut inside = String::new();
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => {
                name(&mut inside, visit);
                new.push_str(&std::mem::take(&mut inside));
                new.push(letter);
                quote = None;
            }
            Some(_) => inside.push(letter),
            None => {
                quote = (letter == '"' || letter == '\'').then_some(letter);
                new.push(letter);
            }
        }
    }
    // A quotation without an end is no expression.
    *text = new;
}

/// The name with each part replaced; the number at its end stays, and separators.
fn renamed(name: &str, part: &mut dyn FnMut(&str) -> String) -> String {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (front, number) = name.split_at(name.len() - digits);
    let (front, number) = match front.ends_with('-') {
        true => (front, number),
        false => (name, ""),
    };
    let is_separator = |letter: char| letter.is_ascii() && !letter.is_ascii_alphanumeric();
    let mut new = String::with_capacity(name.len());
    for piece in front.split_inclusive(is_separator) {
        let text = piece.trim_end_matches(is_separator);
        if !text.is_empty() {
            new.push_str(&part(text));
        }
        new.push_str(&piece[text.len()..]);
    }
    new.push_str(number);
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "secret-shop-db-0", "namespace": "secret-team",
                "labels": {"app": "secret-db", "team.secret.example/owner": "secret-team", "tier": "2"},
                "annotations": {
                    "apps.kruise.io/matched-workloadspread": "{\"name\":\"secret-ws\",\"subset\":\"secret-a\"}",
                    "controller.kubernetes.io/pod-deletion-cost": "100",
                },
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "secret-shop-db", "uid": "u"}],
            },
            "spec": {
                "nodeName": "ip-10-0-3-17.secret.internal",
                "nodeSelector": {"topology.kubernetes.io/zone": "secret-1a", "secret": "true"},
                "priorityClassName": "system-cluster-critical",
                "containers": [{"name": "secret", "image": "registry.secret.example/shop:1.2", "resources": {
                    "requests": {"cpu": "500m", "secret.example/gpu": "1", "nvidia.com/gpu": "1"},
                }}],
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "secret.example/rack", "whenUnsatisfiable": "DoNotSchedule",
                    "matchLabelKeys": ["app", "pod-template-hash"],
                    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["secret-db"]}]},
                }],
            },
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: secret"},
            ]},
        })
    }

    #[test]
    fn no_name_is_left_and_what_decides_is() {
        let mut objects = [pod()];
        let names = anonymize(&mut objects);
        let [pod] = objects;
        let text = pod.to_string();
        for gone in ["secret", "shop", "10-0", "internal", "1.2", "registry"] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        for left in [
            "DoNotSchedule",
            "pod-template-hash",
            "topology.kubernetes.io/zone",
            "500m",
            "nvidia.com/gpu",
            "system-cluster-critical",
            "\"apps/v1\"",
            "\"2\"",
            "\"100\"",
            "Unschedulable",
            "\"true\"",
        ] {
            assert!(text.contains(left), "{left}: {text}");
        }
        let new = |name: &str| names[name].as_str();
        let app = new("app");
        assert_eq!(pod["metadata"]["labels"][app], new("secret-db"));
        let constraint = &pod["spec"]["topologySpreadConstraints"][0];
        assert_eq!(constraint["matchLabelKeys"][0], app);
        let expression = &constraint["labelSelector"]["matchExpressions"][0];
        assert_eq!(
            (expression["key"].as_str(), &expression["operator"]),
            (Some(app), &json!("In"))
        );
        assert_eq!(expression["values"][0], new("secret-db"));
        assert_eq!(
            new("secret-shop-db-0"),
            format!("{}-0", new("secret-shop-db"))
        );
        let annotation = "apps.kruise.io/matched-workloadspread";
        let annotation = pod["metadata"]["annotations"][annotation].as_str();
        let wanted = json!({"name": new("secret-ws"), "subset": new("secret-a")});
        assert_eq!(annotation, Some(wanted.to_string().as_str()));
    }

    #[test]
    fn names_keep_their_order() {
        let names = ["a", "a-b", "a-b-2", "a-b-10", "ab", "b", "zone-a", "zone-b"];
        let mut objects = names
            .map(|name| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}));
        anonymize(&mut objects);
        let new = objects.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        let mut new_sorted = new.to_vec();
        new_sorted.sort_unstable();
        let place = |name: &str| names.iter().position(|n| *n == name);
        let wanted: Vec<&String> = sorted
            .iter()
            .map(|name| &new[place(name).unwrap()])
            .collect();
        assert_eq!(new_sorted.iter().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn a_quota_keeps_its_words_and_a_class_its_name() {
        let mut objects = [
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {
                "requests.cpu": "1", "count/deployments.apps": "2",
                "gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "requests.secret.example/gpu": "1",
            }}}),
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gold"}, "provisioner": "ebs.csi.aws.com"}),
        ];
        let names = anonymize(&mut objects);
        let hard = objects[0]["spec"]["hard"].as_object().unwrap();
        let keys: Vec<&str> = hard.keys().map(String::as_str).collect();
        let gold = format!(
            "{}.storageclass.storage.k8s.io/requests.storage",
            names["gold"]
        );
        let gpu = format!("requests.{}", names["secret.example/gpu"]);
        assert_eq!(
            keys,
            ["requests.cpu", "count/deployments.apps", &gold, &gpu]
        );
        assert_eq!(objects[1]["provisioner"], "ebs.csi.aws.com");
    }

    #[test]
    fn annotations_keep_what_they_say() {
        for (text, wanted) in [
            ("workload", "workload"),
            ("300", "300"),
            (
                "app=shop,tier in (web, api)",
                "<app>=<shop>,<tier> in (<web>, <api>)",
            ),
            (r#"{"own":2,"elastic":1}"#, r#"{"<own>":2,"<elastic>":1}"#),
            (
                r#"{"zone":"a","grants":1,"waiting":["u-1"]}"#,
                r#"{"zone":"<a>","grants":1,"waiting":["u-1"]}"#,
            ),
            (
                r#"{"topology.kubernetes.io/zone":{"a":2,"*":1}}"#,
                r#"{"topology.kubernetes.io/zone":{"<a>":2,"*":1}}"#,
            ),
        ] {
            let mut text = text.to_owned();
            annotation(&mut text, &mut |name| {
                if name != "*" {
                    *name = format!("<{name}>");
                }
            });
            assert_eq!(text, wanted);
        }
    }

    #[test]
    fn a_cluster_selector_keeps_its_expression() {
        let mut text = r#"c.metadata.labels["secret"] == 'gold' && c.status.n > 3"#.to_owned();
        in_quotes(&mut text, &mut |name| *name = format!("<{name}>"));
        assert_eq!(
            text,
            r#"c.metadata.labels["<secret>"] == '<gold>' && c.status.n > 3"#
        );
    }
}
