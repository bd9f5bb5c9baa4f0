//! What people write by hand, and what they get wrong.

use super::check;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::{Diagnostic, Locator, Sources, locate, read, render};

#[test]
fn reads_yaml_streams_json_streams_and_lists() {
    check(
        "# a comment\n---\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n---\n# nothing\n---\n\
         {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}}\n\
         {\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"shop\"}}\n...\n\
         {kind: List, apiVersion: v1, items: [{kind: ConfigMap, apiVersion: v1, metadata: {name: c}}]}\n",
        "|v1 Pod default/a
         |v1 Node n
         |v1 Namespace shop
         |v1 ConfigMap c
        ",
    );
}

/// A locator knows where the items of a list begin: it reads one of them, and not the list.
#[test]
fn each_object_has_the_value_that_its_text_gives() {
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n\
                - {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}\n---\n\
                {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {x: \"\\x1b\"}}\n";
    let map = |name: &str| {
        format!(r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}"#)
    };
    let list =
        |items: &str| format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}"#);
    let inner = list(&map("e"));
    // The last of equal keys is the value.
    let (f, g) = (map("f"), map("g"));
    let repeated =
        format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{f}], "items": [{g},{f}]}}"#);
    let json = format!(
        "{} {} {repeated}",
        list(&format!("{} ,{inner}", map("d"))),
        map("x")
    );
    let mut sources = Sources::new();
    sources.add("in.yaml", yaml);
    sources.add("in.json", json);
    let reading = read(&sources);
    let mut locator = Locator::new(&sources);
    let mut forwards = Vec::new();
    for located in reading.objects.iter().chain(reading.objects.iter().rev()) {
        let value = locator.value(&located.origin).unwrap();
        assert_eq!(value["metadata"]["name"], located.object.name());
        assert_eq!(value["kind"], located.object.kind());
        forwards.push(value);
    }
    let n = reading.objects.len();
    assert_eq!(n, 8);
    let backwards = forwards.split_off(n).into_iter().rev();
    assert_eq!(forwards, backwards.collect::<Vec<_>>());
    assert!(
        !forwards
            .iter()
            .any(|value| value.to_string().contains("u001b"))
    );
}

#[test]
fn lends_the_kind_of_a_list_to_its_items() {
    check(
        r#"{"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {}, "items": [
            {"metadata": {"name": "a"}}, {"metadata": {"name": "b", "namespace": "shop"}}]}
           {"kind": "PodList", "apiVersion": "v1", "items": null}
           {"kind": "PrometheusList", "apiVersion": "monitoring.coreos.com/v1", "items": [{"metadata": {"name": "k8s"}}]}
           {"kind": "AllowList", "apiVersion": "example.com/v1", "metadata": {"name": "x"}, "spec": {}}"#,
        "|apps/v1 Deployment default/a
         |apps/v1 Deployment shop/b
         |monitoring.coreos.com/v1 Prometheus (monitoring.coreos.com) k8s
         |example.com/v1 AllowList (example.com) x
         |in:4:91: warning[no-controller]: strew has no controller for Prometheus (monitoring.coreos.com): its pods are missing from the answer
         |  in Prometheus (monitoring.coreos.com) k8s: kind
        ",
    );
}

#[test]
fn lists_that_are_wrong() {
    check(
        r#"{"kind": "List", "apiVersion": "v1", "itmes": []}
           {"kind": "List", "apiVersion": "v1", "items": {}}
           {"kind": "List", "apiVersion": "v1", "items": [1, null, {"metadata": {}}]}"#,
        r#"|in:1:38: error[unknown-field]: unknown field "itmes", did you mean "items"?
           |  in List: itmes
           |in:2:49: error[wrong-type]: expected a list, found an object
           |  in List: items
           |in:3:59: error[no-object]: expected a Kubernetes object, found the number 1
           |in:3:62: error[no-object]: expected a Kubernetes object, found nothing
           |in:3:68: error[no-type]: no Kubernetes object: apiVersion and kind are missing
           |  in : apiVersion
        "#,
    );
}

#[test]
fn reports_all_that_is_wrong_in_an_object() {
    check(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels:
    enabled: yes
    tier: 3
spec:
  replicas: \"3\"
  topologySpreadConstraints: []
  template:
    spec:
      containers:
      - name: main
        imge: web:1
        resources: {requests: {cpu: 1.5, memory: [1]}}
        ports:
        - containerPort: 99999999999
        - containerPort: 1.5
      - just a string
      hostNetwork: \"true\"
      topologySpreadConstraints:
      - maxSkw: 1
        topologyKey: zone
        topologyKey: rack
",
        r#"|in:7:14: error[wrong-type]: expected a string, found the boolean true
           |  in Deployment shop/web: metadata.labels[enabled]
           |  help: put it in quotes: without them YAML's yes, no, on, off, true and false are booleans
           |in:8:11: error[wrong-type]: expected a string, found the number 3
           |  in Deployment shop/web: metadata.labels[tier]
           |  help: put it in quotes
           |in:10:13: error[wrong-type]: expected an integer, found the string "3"
           |  in Deployment shop/web: spec.replicas
           |  help: leave the quotes out
           |in:11:3: error[unknown-field]: unknown field "topologySpreadConstraints"
           |  in Deployment shop/web: spec.topologySpreadConstraints
           |  help: "topologySpreadConstraints" belongs at spec.template.spec.topologySpreadConstraints
           |in:16:9: error[unknown-field]: unknown field "imge", did you mean "image"?
           |  in Deployment shop/web: spec.template.spec.containers[0].imge
           |in:17:42: error[wrong-type]: expected a quantity like 2, 500m or "1Gi", found a list
           |  in Deployment shop/web: spec.template.spec.containers[0].resources.requests[memory]
           |in:19:26: error[out-of-range]: 99999999999 is out of the range of a 32-bit integer
           |  in Deployment shop/web: spec.template.spec.containers[0].ports[0].containerPort
           |in:20:26: error[wrong-type]: expected an integer, found the number 1.5
           |  in Deployment shop/web: spec.template.spec.containers[0].ports[1].containerPort
           |in:21:9: error[wrong-type]: expected an object, found the string "just a string"
           |  in Deployment shop/web: spec.template.spec.containers[1]
           |in:22:20: error[wrong-type]: expected a boolean, found the string "true"
           |  in Deployment shop/web: spec.template.spec.hostNetwork
           |  help: leave the quotes out
           |in:24:9: error[unknown-field]: unknown field "maxSkw", did you mean "maxSkew"?
           |  in Deployment shop/web: spec.template.spec.topologySpreadConstraints[0].maxSkw
           |in:26:9: error[duplicate-key]: the key "topologyKey" is there twice
           |  in : spec.template.spec.topologySpreadConstraints[0].topologyKey
           |  in:25:9: first here
        "#,
    );
}

#[test]
fn a_broken_document_hides_no_other() {
    check(
        "a: b: c\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: [\n---\nkind: Pod\napiversion: v1\n",
        r#"|v1 Pod default/a
           |in:1:5: error[syntax]: not valid YAML: mapping values are not allowed in this context
           |in:7:7: error[syntax]: not valid YAML: unclosed bracket '['
           |in:9:1: error[no-type]: apiVersion is missing
           |  in : apiVersion
           |  help: "apiversion" should be "apiVersion"
        "#,
    );
}

#[test]
fn objects_that_do_not_say_what_they_are() {
    check(
        "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {generateName: a-}\n---\n\
         apiVersion: v1\nkind: Pod\n---\n\
         apiVersion: v1\nkind: Pod\nmetadata: {name: 3}\n---\n\
         apiVersion: 1\nkind: Pod\n---\n\
         replicas: 3\n---\n\
         apiVersion: v1\nkind: pod\nmetadata: {name: a}\n---\n\
         apiVersion: config.k8s.io/v1\nkind: Settings\n",
        r#"|v1 Pod default/a-87cg9
           |apps/v1 Deployment default/a-fxv5t
           |config.k8s.io/v1 Settings (config.k8s.io)
           |in:9:1: error[no-name]: metadata.name is missing
           |  in Pod: metadata.name
           |in:14:18: error[wrong-type]: expected a string, found the number 3
           |  in Pod: metadata.name
           |  help: put it in quotes
           |in:16:13: error[wrong-type]: expected a string, found the number 1
           |  in : apiVersion
           |in:19:1: error[no-type]: no Kubernetes object: apiVersion and kind are missing
           |  in : apiVersion
           |in:22:7: error[unknown-kind]: v1 has no kind "pod", did you mean "Pod"?
           |  in : kind
        "#,
    );
}

#[test]
fn known_kinds_in_other_versions() {
    check(
        "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: a}\n---\n\
         apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a, uid: u1}\n---\n\
         apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: b, uid: u2}\n---\n\
         apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n---\n\
         apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: c}\n---\n\
         apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: Placement\nmetadata: {name: p}\n\
         spec: {prioritizerPolicy: {configurations: [{name: Steady}]}}\n---\n\
         apiVersion: strew.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\n",
        r#"|serving.knative.dev/v1 Service (serving.knative.dev) a
           |in:1:13: error[unknown-version]: Kubernetes 1.36 has no Deployment in "extensions/v1beta1"
           |  in Deployment default/a: apiVersion
           |  help: use apiVersion: apps/v1
           |in:5:13: warning[unknown-version]: Kubernetes 1.36 has no PodDisruptionBudget in "policy/v1beta1": it was passed over (2 times)
           |  in PodDisruptionBudget default/a: apiVersion
           |in:14:7: warning[no-controller]: strew has no controller for Service (serving.knative.dev): its pods are missing from the answer
           |  in Service (serving.knative.dev) a: kind
           |in:17:13: error[unknown-version]: Kubernetes 1.36 has no PodDisruptionBudget in "policy/v1beta1"
           |  in PodDisruptionBudget default/c: apiVersion
           |  help: use apiVersion: policy/v1
           |in:21:13: error[unknown-version]: Open Cluster Management has no Placement in "cluster.open-cluster-management.io/v1alpha1"
           |  in Placement default/p: apiVersion
           |  help: use apiVersion: cluster.open-cluster-management.io/v1beta1
           |in:24:46: error[unknown-field]: unknown field "name"
           |  in Placement default/p: spec.prioritizerPolicy.configurations[0].name
           |  help: cluster.open-cluster-management.io/v1beta1 has scoreCoordinate: {type: BuiltIn, builtIn: NAME} in its place
           |in:26:13: error[unknown-version]: strew has no Scenario in "strew.dev/v1alpha1"
           |  in : apiVersion
           |  help: use apiVersion: sim.strew.dev/v1alpha1
        "#,
    );
}

#[test]
fn dumps_may_hold_fields_of_another_version() {
    check(
        r#"{"kind": "List", "apiVersion": "v1", "items": [
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "1"}, "spec": {"containers": [{"name": "x", "novel": 1}, {"name": "y", "novel": 2}]}},
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "uid": "2", "name": "b"}, "spec": {"containers": [{"name": "x", "novel": 1}], "old": true}}]}"#,
        r#"|v1 Pod default/a
           |v1 Pod default/b
           |in:2:114: warning[unknown-field]: unknown field "novel": Pod spec.containers[].novel was passed over (3 times)
           |  in Pod default/a: spec.containers[0].novel
           |in:3:75: warning[duplicate-key]: the key "name" is there twice
           |  in : items[1].metadata.name
           |  in:3:50: first here
           |in:3:141: warning[unknown-field]: unknown field "old": Pod spec.old was passed over
           |  in Pod default/b: spec.old
        "#,
    );
}

#[test]
fn the_same_object_twice_over_files() {
    let mut sources = Sources::new();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n";
    sources.add("one", pod);
    sources.add("two", format!("# other\n{pod}  namespace: default\n"));
    sources.add("three", format!("{pod}  namespace: shop\n"));
    let reading = read(&sources);
    assert_eq!(
        super::objects_text(&reading),
        "v1 Pod default/a\nv1 Pod shop/a\n"
    );
    assert_eq!(
        super::diagnostics_text(&reading, &sources),
        "two:5:9: error[duplicate-object]: Pod default/a is there twice\n  \
           in Pod default/a: metadata.name\n  one:4:9: first here\n"
    );
}

#[test]
fn takes_null_as_kubernetes_does() {
    let input = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  creationTimestamp: null\n  labels: {role: }\n\
                 spec:\n  nodeSelector:\n  containers:\n  - name: a\n    args: [~]\n    resources: {requests: {cpu: }}\nstatus: {}\n";
    check(input, "|v1 Pod default/a");
}

#[test]
fn reads_scalars_as_kubectl_does() {
    check(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, creationTimestamp: 2026-01-02T03:04:05Z}\n\
         spec:\n  priority: 1e3\n  hostNetwork: on\n  terminationGracePeriodSeconds: 0o17\n  activeDeadlineSeconds: 2.0\n",
        "|v1 Pod default/a",
    );
    check(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, creationTimestamp: 2026-01-02}\nspec: {priority: .inf, nodeName: no}",
        r#"|in:3:40: error[wrong-type]: expected a time like "2006-01-02T15:04:05Z", found the string "2026-01-02"
           |  in Pod default/a: metadata.creationTimestamp
           |in:4:18: error[no-number]: .inf can't be written in JSON
           |  help: quote it if it is meant as text
           |in:4:34: error[wrong-type]: expected a string, found the boolean false
           |  in Pod default/a: spec.nodeName
           |  help: put it in quotes: without them YAML's yes, no, on, off, true and false are booleans
        "#,
    );
}

#[test]
fn follows_aliases_and_merges() {
    check(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - &main\n    name: one\n    image: x\n  - <<: *main\n    name: two\n    imge: y\n  nodeName: &n a\n  hostname: *n\n",
        r#"|in:11:5: error[unknown-field]: unknown field "imge", did you mean "image"?
           |  in Pod default/a: spec.containers[1].imge
        "#,
    );
}

#[test]
fn locates_any_field_or_its_nearest_ancestor() {
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, labels: {app: web}}\n  spec:\n    nodeName: n1\n";
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "a", "labels": {"app": "web"}},
 "spec": {
    "nodeN\u0061me": "n1"}}]}"#;
    let root = FieldPath::root();
    let cases = [
        (root.child("metadata.name"), ("6:20", "3:23")),
        (root.child("metadata.labels").key("app"), ("6:37", "3:46")),
        (root.child("metadata.labels").key("tier"), ("6:23", "3:28")),
        (root.child("spec.nodeName"), ("8:15", "5:22")),
        (root.child("spec"), ("7:3", "4:2")),
        (
            root.child("spec.containers").index(0).child("image"),
            ("7:3", "4:2"),
        ),
        (root.child("status.phase"), ("4:3", "2:1")),
    ];
    for (input, is_yaml) in [(yaml, true), (json, false)] {
        let sources = super::sources_of(input);
        let reading = read(&sources);
        for (path, (in_yaml, in_json)) in &cases {
            let place = locate(&sources, &reading.objects[0].origin, path);
            let expected = if is_yaml { in_yaml } else { in_json };
            assert_eq!(
                format!("{}:{}", place.line, place.column),
                *expected,
                "{path}"
            );
        }
    }
}

#[test]
fn renders_as_rustc_does() {
    let mut sources = Sources::new();
    let web = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n";
    sources.add(
        "web.yaml",
        format!("{web}spec:\n  replicas: 3\n  nodeNmae: a\n"),
    );
    sources.add("again.yaml", web);
    let reading = read(&sources);
    let expected = r#"error[unknown-field]: unknown field "replicas"
 --> web.yaml:6:3
  |
6 |   replicas: 3
  |   ^^^^^^^^
  |
  = note: Pod default/web: spec.replicas

error[unknown-field]: unknown field "nodeNmae", did you mean "nodeName"?
 --> web.yaml:7:3
  |
7 |   nodeNmae: a
  |   ^^^^^^^^
  |
  = note: Pod default/web: spec.nodeNmae

error[duplicate-object]: Pod default/web is there twice
 --> again.yaml:4:9
  |
4 |   name: web
  |         ^^^
  |
 ::: web.yaml:4:9
  |
4 |   name: web
  |         --- first here
  |
  = note: Pod default/web: metadata.name
"#;
    assert_eq!(render(&reading.diagnostics, &sources, false), expected);
    assert!(render(&reading.diagnostics, &sources, true).contains("\u{1b}["));
}

#[test]
fn tells_tools_in_json() {
    let mut sources = Sources::new();
    sources.add("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {replicas: 3, nodeName: a, nodeName: b}\n");
    let reading = read(&sources);
    let json: Vec<_> = reading
        .diagnostics
        .iter()
        .map(|diagnostic| serde_json::json!(diagnostic.to_finding(&sources)))
        .collect();
    let expected = serde_json::json!([
        {
            "severity": "error",
            "code": "unknown-field",
            "message": "unknown field \"replicas\"",
            "object": "Pod default/a",
            "field": "spec.replicas",
            "place": {"file": "a.yaml", "line": 4, "column": 8},
        },
        {
            "severity": "error",
            "code": "duplicate-key",
            "message": "the key \"nodeName\" is there twice",
            "field": "spec.nodeName",
            "place": {"file": "a.yaml", "line": 4, "column": 34},
            "related": [{"label": "first here", "place": {"file": "a.yaml", "line": 4, "column": 21}}],
        },
    ]);
    assert_eq!(serde_json::Value::from(json), expected);
}

#[test]
fn shows_a_broken_rule_of_the_api_server() {
    let mut sources = Sources::new();
    sources.add(
        "a.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {priority: 3}\n",
    );
    let reading = read(&sources);
    let located = &reading.objects[0];
    let path = FieldPath::root().child("spec.priority");
    let error = FieldError::invalid_raw(path, 3, "is too low").with_help("raise it");
    let place = locate(&sources, &located.origin, &error.path);
    let diagnostic = Diagnostic::from_field_error(&error, located.object.label(), place);
    let expected = "error[invalid-field]: spec.priority: Invalid value: 3: is too low
 --> a.yaml:4:18
  |
4 | spec: {priority: 3}
  |                  ^
  |
  = note: Pod default/a
  = help: raise it
";
    assert_eq!(render(&[diagnostic], &sources, false), expected);
}

/// What cannot be used can still be judged, but for what was reported already.
#[test]
fn broken_objects_are_there_to_be_judged() {
    let cases = [
        (
            "metadata: {name: a}\nspec: {nodeNmae: b, hostname: C}",
            "spec.hostname",
            false,
        ),
        (
            "metadata: {name: a}\nspec: {nodeNmae: b}",
            "spec.nodeName",
            true,
        ),
        (
            "metadata: {name: a}\nspec: {priority: x}",
            "spec.priority",
            true,
        ),
        (
            "metadata: {name: a}\nspec: {containers: {}}",
            "spec.containers",
            true,
        ),
        (
            "metadata: {name: a}\nspec: {containers: [{ports: x}]}",
            "spec.containers",
            true,
        ),
        (
            "metadata: {name: a}\nspec: {containers: [{ports: x}, {}]}",
            "spec.containers[1].name",
            false,
        ),
        (
            "metadata: {name: a}\nspec: {wild: 1}",
            "spec.containers",
            true,
        ),
        (
            "metadata: {name: a, containers: []}",
            "spec.containers",
            true,
        ),
        ("metadata: {name: a, wild: []}", "spec.containers", false),
        ("spec: {}", "metadata.name", true),
        ("metadata: []", "metadata.name", true),
    ];
    for (body, path, follows) in cases {
        let sources = super::sources_of(format!("apiVersion: v1\nkind: Pod\n{body}\n"));
        let reading = read(&sources);
        assert_eq!(
            (reading.objects.len(), reading.broken.len()),
            (0, 1),
            "{body}"
        );
        let error = FieldError::required(path_of(path), "");
        assert_eq!(reading.broken[0].follows(&error), follows, "{body}: {path}");
    }
}

fn path_of(text: &str) -> FieldPath {
    text.split('.')
        .fold(FieldPath::root(), |path, step| match step.split_once('[') {
            None => path.child_owned(step.to_owned()),
            Some((name, index)) => path
                .child_owned(name.to_owned())
                .index(index.trim_end_matches(']').parse().expect("an index")),
        })
}

/// A folder may hold other files than manifests; a file that is named by itself must be one.
#[test]
fn data_found_in_a_folder_is_passed_over() {
    let passed =
        "in:1:1: warning[no-objects]: no Kubernetes object in this file: it was passed over\n";
    let cases = [
        ("{\"nodes\": 3}", Some(passed)),
        ("replicas: 3\n---\nimage: {tag: 1}\n", Some(passed)),
        (
            "# values\nreplicas: 3\n---\n# none\n",
            Some(
                "in:2:1: warning[no-objects]: no Kubernetes object in this file: it was passed over\n",
            ),
        ),
        ("[1, 2]", None),
        ("kind: Pod\n", None),
        ("Kind: Pod\napiversion: v1\n", None),
        ("replicas: 3\n---\nb: [\n", None),
        (
            "replicas: 3\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
            None,
        ),
        ("apiVersion: v1\nkind: List\nitems: [{replicas: 3}]\n", None),
    ];
    for (text, expected) in cases {
        let mut sources = Sources::new();
        sources.add_found("in", text);
        let reading = read(&sources);
        match expected {
            Some(expected) => assert_eq!(
                super::diagnostics_text(&reading, &sources),
                expected,
                "{text}"
            ),
            None => assert!(reading.has_errors(), "{text}"),
        }
        assert!(read(&super::sources_of(text)).has_errors(), "named: {text}");
    }
}
