//! Recordings of clusters, as scenarios.

use proptest::prelude::*;
use serde_json::{Value, json};
use strew_manifest::duration::GoDuration;
use strew_manifest::read::{Severity, Sources, render};
use strew_scenario::format::load;
use strew_scenario::import::{Imported, Recording, import};

const KWOK: &str = include_str!("../cases/kwok-record.yaml");

fn imported(recording: Recording, text: &str) -> (Sources, Imported) {
    let mut sources = Sources::new();
    sources.add("in", text);
    let imported = import(recording, &sources, "day");
    (sources, imported)
}

/// A recording that has nothing wrong, and that a reader of scenarios takes.
#[track_caller]
fn good(recording: Recording, text: &str) -> Imported {
    let (sources, imported) = imported(recording, text);
    assert!(
        imported.diagnostics.is_empty(),
        "{}",
        render(&imported.diagnostics, &sources, false)
    );
    let documents = imported.objects.iter().chain([&imported.scenario]);
    let texts: Vec<String> = documents.map(Value::to_string).collect();
    let mut again = Sources::new();
    again.add("out", texts.join("\n---\n"));
    let loaded = load(&again);
    assert!(
        loaded.diagnostics.is_empty() && loaded.variants.len() == 1,
        "{}",
        render(&loaded.diagnostics, &again, false)
    );
    imported
}

/// `LINE:COLUMN code: message` of each problem.
fn problems(recording: Recording, text: &str) -> Vec<String> {
    let (_, imported) = imported(recording, text);
    let each = imported.diagnostics.iter().map(|d| {
        let place = d
            .place
            .map_or("-".to_owned(), |p| format!("{}:{}", p.line, p.column));
        format!("{place} {}: {}", d.code, d.message)
    });
    each.collect()
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "dsb"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "creationTimestamp": null},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
        "status": {},
    })
}

fn trace(events: Value) -> String {
    json!({"version": 2, "config": {}, "events": events, "index": {}, "pod_lifecycles": {}})
        .to_string()
}

#[test]
fn a_record_of_kwok_becomes_what_people_did() {
    let imported = good(Recording::Kwok, KWOK);
    let kinds: Vec<&str> = imported
        .objects
        .iter()
        .filter_map(|o| o["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["Namespace", "Node"]);
    assert!(imported.has_nodes);
    let timeline = imported.scenario["spec"]["timeline"].as_array().unwrap();
    let short: Vec<Value> = timeline
        .iter()
        .map(|step| {
            let mut step = step.clone();
            for object in step["create"].as_array_mut().into_iter().flatten() {
                *object = object["kind"].take();
            }
            step
        })
        .map(|step| {
            Value::Object(
                step.as_object()
                    .unwrap()
                    .iter()
                    .filter(|(_, v)| !v.is_null())
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect(),
            )
        })
        .collect();
    let log = json!([{"image": "nginx:1", "name": "web", "args": ["--home=$${HOME}"], "resources": {"requests": {"cpu": "100m"}}},
        {"image": "log:2", "name": "log", "resources": {"requests": {"cpu": "100m"}}}]);
    assert_eq!(
        Value::Array(short),
        json!([
            {"at": "0s", "create": ["Node"]},
            {"at": "1.5s", "create": ["Deployment"]},
            {"at": "3s", "create": ["Service"]},
            {"at": "1m", "scale": {"shop/deployment/web": 4}},
            {"at": "1m", "patch": {"shop/deployment/web": {"spec": {"template": {"spec": {"containers": log}}}}}},
            {"at": "1m30s", "create": ["Pod"]},
            {"at": "2m", "delete": ["shop/pod/tool"]},
            {"at": "3m0.000000001s", "patch": {"node/n2": {"spec": {"unschedulable": true}}}},
            {"at": "8m0.000000001s"},
        ])
    );
    let service = &timeline[2]["create"][0];
    assert_eq!(
        service["spec"],
        json!({"ports": [{"port": 80}], "selector": {"app": "web"}})
    );
    let node = &timeline[0]["create"][0];
    assert_eq!(
        (&node["spec"], &node["metadata"]["uid"]),
        (&json!({}), &Value::Null)
    );
    assert_eq!(
        imported.notes,
        [
            "left out 3 changes of status or bookkeeping alone, or of nothing at all",
            "left out 3 changes of objects that the simulated controllers make themselves",
            "left out 2 changes of kinds that strew does not model: 1 ConfigMap, 1 leases.coordination.k8s.io",
        ]
    );
}

#[test]
fn a_trace_of_simkube_becomes_what_changed() {
    let mut renamed = deployment("api", 1);
    renamed["spec"]["template"]["spec"]["containers"][0]["image"] = "j".into();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Operator", "name": "o", "uid": "u", "controller": true}]}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let events = json!([
        {"ts": 1000, "applied_objs": [], "deleted_objs": []},
        {"ts": 1000, "applied_objs": [deployment("web", 1), deployment("api", 1)], "deleted_objs": []},
        {"ts": 1060, "applied_objs": [deployment("web", 1), deployment("web", 3), deployment("web", 2)]},
        {"ts": 1090, "applied_objs": [renamed, pod], "deleted_objs": [deployment("web", 2), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]},
        {"ts": 1091, "deleted_objs": [deployment("web", 2)]},
    ]);
    let imported = good(Recording::SimKube, &trace(events));
    let names: Vec<&str> = imported
        .objects
        .iter()
        .filter_map(|o| o["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["web", "api"]);
    let bare = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(
        imported.scenario["spec"]["timeline"],
        json!([
            {"at": "1m", "scale": {"dsb/deployment/web": 3}},
            {"at": "1m", "scale": {"dsb/deployment/web": 2}},
            {"at": "1m30s", "patch": {"dsb/deployment/api": {"spec": {"template": {"spec": {"containers": [{"image": "j", "name": "c"}]}}}}},
                "apply": [bare], "delete": ["dsb/deployment/web"]},
            {"at": "6m30s"},
        ])
    );
    assert_eq!(imported.notes.len(), 4, "{:?}", imported.notes);
}

#[test]
fn what_is_there_at_second_0_keeps_its_ties() {
    let mut web = deployment("web", 1);
    let mut api = deployment("api", 1);
    web["metadata"]["uid"] = "u1".into();
    api["metadata"]["uid"] = "u2".into();
    let mut set = deployment("web-1", 1);
    set["kind"] = "ReplicaSet".into();
    set["metadata"]["uid"] = "u3".into();
    set["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u1", "controller": true}]);
    let mut lonely = set.clone();
    lonely["metadata"]["name"] = "gone-1".into();
    lonely["metadata"]["ownerReferences"][0]["name"] = "gone".into();
    let texts = [web, api, set, lonely].map(|object| object.to_string());
    let imported = good(Recording::Kwok, &texts.join("\n---\n"));
    let ties = imported.objects.iter().map(|object| {
        let metadata = &object["metadata"];
        (
            metadata["uid"].as_str(),
            metadata["ownerReferences"].is_array(),
        )
    });
    let ties: Vec<_> = ties.collect();
    assert_eq!(
        ties,
        [
            (Some("u1"), false),
            (None, false),
            (Some("u3"), true),
            (None, false)
        ]
    );
    assert_eq!(
        imported.notes,
        ["kept 1 object without its owner, which the recording does not hold"]
    );
}

#[test]
fn every_problem_is_told_at_its_place() {
    let kwok = "apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: 1}]}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: pods, gruop: x}
target: {name: p}
durationNanosecond: -1
method: delte
---
apiVersion: kwok.x-k8s.io/internal
kind: ResourcePatch
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: p}
durationNanosecond: 5
method: create
template: {apiVersion: v1, kind: Pod, metadata: {name: q}}
";
    let simkube = "{\"version\": 1,
 \"evnts\": [],
 \"events\": [
  {\"ts\": \"now\", \"applied_objs\": [{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {}}]},
  {\"ts\": 0, \"applied_objs\": [{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"replicas\": \"2\"}}]},
  {\"ts\": 9999999999999}]}";
    let cases: [(Recording, &str, &[&str]); 6] = [
        (
            Recording::Kwok,
            kwok,
            &[
                "4:28 wrong-type: expected a string, found the number 1",
                "8:41 unknown-field: unknown field \"gruop\", did you mean \"group\"?",
                "10:21 negative: -1 is negative",
                "11:9 unknown-value: unknown value \"delte\", did you mean \"delete\"?",
                "13:13 unknown-version: unknown version \"kwok.x-k8s.io/internal\" of ResourcePatch",
                "22:1 other-object: the template is Pod default/q, and the target pod/p",
            ],
        ),
        (
            Recording::SimKube,
            simkube,
            &[
                "1:13 unknown-version: strew reads version 2 of SimKube's traces, not 1",
                "2:2 unknown-field: unknown field \"evnts\", did you mean \"events\"?",
                "4:10 wrong-type: expected seconds since 1970",
                "4:34 missing-field: metadata.name is missing",
                "5:126 wrong-type: expected an integer, found the string \"2\"",
                "6:10 out-of-range: the time is out of range",
            ],
        ),
        (
            Recording::SimKube,
            "{\"version\": 2",
            &["1:14 syntax: not valid JSON: EOF while parsing an object"],
        ),
        (
            Recording::SimKube,
            "",
            &["1:1 no-recording: there is no trace in it"],
        ),
        (
            Recording::Kwok,
            "---\n",
            &["1:1 no-recording: there is no record in it"],
        ),
        (
            Recording::SimKube,
            "{\"version\": 2, \"events\": []} {\"version\": 2}",
            &["1:30 second-trace: a trace is one document, and this is another"],
        ),
    ];
    let found = cases.map(|(recording, text, _)| problems(recording, text));
    assert_eq!(
        found.each_ref().map(Vec::as_slice),
        cases.map(|case| case.2)
    );
}

#[test]
fn msgpack_is_refused_with_the_way_out() {
    let mut sources = Sources::new();
    sources.add(
        "trace",
        b"\x85\xa7version\x02\xa6config\x81\xa6events\x90".as_slice(),
    );
    let imported = import(Recording::SimKube, &sources, "day");
    let found: Vec<_> = imported.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(found, ["msgpack"]);
    let help = imported.diagnostics[0].help.clone().unwrap_or_default();
    assert!(help.contains("msgpack2json"), "{help}");
}

#[test]
fn a_field_of_a_younger_kubernetes_is_told_once_and_left_out() {
    let mut object = deployment("web", 1);
    object["spec"]["brandNew"] = json!(true);
    let events =
        json!([{"ts": 0, "applied_objs": [object.clone()]}, {"ts": 1, "applied_objs": [object]}]);
    let (_, imported) = imported(Recording::SimKube, &trace(events));
    let found: Vec<_> = imported
        .diagnostics
        .iter()
        .map(|d| (d.severity, d.code))
        .collect();
    assert_eq!(found, [(Severity::Warning, "unknown-field")]);
    assert_eq!(imported.objects[0]["spec"]["brandNew"], Value::Null);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_come_back_as_they_were_recorded(nanos in prop::collection::vec(0u64..90_000_000_000_000_000, 1..5)) {
        let patch = |(i, nanos): (usize, &u64)| json!({
            "apiVersion": "action.kwok.x-k8s.io/v1alpha1",
            "kind": "ResourcePatch",
            "resource": {"version": "v1", "resource": "pods"},
            "target": {"name": format!("p{i}")},
            "durationNanosecond": nanos,
            "method": "create",
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{i}")}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }).to_string();
        let text: Vec<String> = nanos.iter().enumerate().map(patch).collect();
        let imported = good(Recording::Kwok, &text.join("\n---\n"));
        let timeline = imported.scenario["spec"]["timeline"].as_array().unwrap().clone();
        let made = |step: &Value| step["create"].as_array().map_or(0, Vec::len);
        let times = timeline.iter().flat_map(|step| {
            let at = GoDuration::parse(step["at"].as_str().unwrap()).unwrap().nanos();
            std::iter::repeat_n(at, made(step))
        });
        let mut sorted = nanos.clone();
        sorted.sort_unstable();
        prop_assert_eq!(times.collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn a_mutated_recording_is_read_or_refused(
        is_kwok in any::<bool>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..30, 0usize..PIECES.len()), 1..4),
    ) {
        let simkube = trace(json!([{"ts": 1, "applied_objs": [deployment("a", 1)]}, {"ts": 9, "applied_objs": [deployment("a", 2)], "deleted_objs": [deployment("a", 2)]}]));
        let (recording, text) = match is_kwok {
            true => (Recording::Kwok, KWOK.to_owned()),
            false => (Recording::SimKube, simkube),
        };
        let mut text: Vec<char> = text.chars().collect();
        for (at, length, piece) in cuts {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, PIECES[piece].chars());
        }
        let text: String = text.into_iter().collect();
        let (sources, imported) = imported(recording, &text);
        let is_refused = imported.diagnostics.iter().any(|d| d.severity == Severity::Error);
        prop_assert_eq!(imported.scenario.is_null(), is_refused);
        let _ = render(&imported.diagnostics, &sources, false);
    }
}

/// Pieces that reach far.
const PIECES: [&str; 12] = [
    "null",
    "-1",
    "1e400",
    "99999999999999999999",
    "[]",
    "{}",
    "true",
    "\"\"",
    "$(time-offset-nanosecond 9)",
    "\u{e9}",
    "---\n",
    "\"kind\": \"List\"",
];
