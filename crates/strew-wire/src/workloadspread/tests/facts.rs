//! Objects into facts.

use std::sync::Arc;

use strew_model::{Instant, Interner, NodeSelectorTerm, Span};
use strew_workloadspread::{
    Adaptive, FilterSelector, FormId, Kinds, MaxReplicas, Phase, PodPatcher, Strategy, admission,
    quota,
};

use super::*;
use crate::workloadspread::Translator;
use crate::workloadspread::facts::white_list::WhiteList;
use crate::workloadspread::facts::workload::number_at;
use crate::workloadspread::facts::{pod as pods, spread as spreads};
use crate::workloadspread::pending_reviews::{Patcher, PodSource};

#[test]
fn limits_are_whole_numbers_or_whole_percents() {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::{Int, String as Text};
    for (wire, expected) in [
        (Int(0), MaxReplicas::Count(0)),
        (Int(7), MaxReplicas::Count(7)),
        (Int(-1), MaxReplicas::Broken),
        (Text("50%".into()), MaxReplicas::Percent(50)),
        (Text("050%".into()), MaxReplicas::Percent(50)),
        (Text("50".into()), MaxReplicas::Broken),
        (Text("0.2%".into()), MaxReplicas::Broken),
        (Text("-1%".into()), MaxReplicas::Broken),
        (Text("+1%".into()), MaxReplicas::Broken),
        (Text("%".into()), MaxReplicas::Broken),
        (Text(String::new()), MaxReplicas::Broken),
        (Text("99999999999%".into()), MaxReplicas::Broken),
    ] {
        assert_eq!(spreads::max_replicas(&wire), expected, "{wire:?}");
    }
}

#[test]
fn a_spread_is_read_with_what_is_beyond_kruise() {
    let mut wire = web(
        json!([{"name": "own", "maxReplicas": "50%", "requiredNodeSelector": {}}, {"name": "else", "patch": {"a": 1}}]),
    );
    wire["metadata"]["annotations"] = json!({
        "strew.dev/min-replicas": "{\"else\": 2, \"gone\": 1}",
        "strew.dev/unschedulable-window-seconds": "600",
        "workloadspread.kruise.io/ignore-patch-existing-pods-metadata": "true",
    });
    wire["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}});
    wire["spec"]["targetFilter"] = json!({"replicasPathList": ["spec.replicas"]});
    let mut names = Interner::new();
    let mut translator = Translator::default();
    let fact = translator.spread(&spread(wire.clone()), &mut names);
    assert_eq!((fact.version, fact.generation), (41, 3));
    assert!(fact.ignore_patch_of_existing);
    let [own, other] = &fact.spec.subsets[..] else {
        panic!("two subsets");
    };
    assert_eq!((own.min_replicas, other.min_replicas), (0, 2));
    assert_eq!(own.required, Some(NodeSelectorTerm::NoNode));
    assert_eq!((own.patch, other.patch.is_some()), (None, true));
    assert_ne!(own.form, FormId::default());
    assert_eq!(
        fact.spec.strategy,
        Strategy::Adaptive(Adaptive {
            disable_simulation: false,
            critical: Some(Span::from_secs(30)),
            closed_for: Some(Span::from_secs(600)),
        })
    );
    assert_eq!(
        fact.spec.filter.as_ref().unwrap().selector,
        FilterSelector::Every
    );
    // Equal subsets have equal ids, also in another machine's symbols.
    let again = translator.spread(&spread(wire.clone()), &mut Interner::new());
    assert_eq!(again.spec.subsets[1].form, other.form);
    assert_eq!(again.spec.subsets[1].patch, other.patch);
    // What does not parse is as if it were not there.
    wire["metadata"]["annotations"] = json!({
        "strew.dev/min-replicas": "{\"else\": -2}",
        "strew.dev/unschedulable-window-seconds": "1h",
    });
    let fact = translator.spread(&spread(wire), &mut names);
    assert_eq!(fact.spec.subsets[1].min_replicas, 0);
    assert_eq!(
        fact.spec.strategy.reschedules(),
        Some((Span::from_secs(30), Span::from_secs(300)))
    );
}

#[test]
fn a_filter_asks_for_its_numbers_once() {
    let mut names = Interner::new();
    let mut translator = Translator::default();
    let target = objects(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 7, revisionHistoryLimit: 2, selector: {}, template: {}}}",
    );
    let before = translator.workload(&target[0], &mut names).unwrap();
    assert_eq!(before.replicas, Some(7));
    assert!(before.numbers.is_empty());
    let mut wire = web(json!([{"name": "a", "maxReplicas": "50%"}]));
    wire["spec"]["targetFilter"] =
        json!({"replicasPathList": ["spec.revisionHistoryLimit", "spec.no", ""]});
    let wire = spread(wire);
    let fact = translator.spread(&wire, &mut names);
    let again: Vec<[String; 4]> = translator.look_again().into_iter().collect();
    assert_eq!(
        again,
        [["shop", "apps", "Deployment", "web"].map(str::to_owned)]
    );
    translator.spread(&wire, &mut names);
    assert!(translator.look_again().is_empty());
    let now = translator.workload(&target[0], &mut names).unwrap();
    assert_eq!(now.number("spec.revisionHistoryLimit"), Some(2));
    let kinds = Kinds::new(&mut names);
    assert_eq!(
        quota::total(&fact.spec, Some(&now), &kinds),
        Err(quota::CannotCount::Path("spec.no".into()))
    );
}

#[test]
fn numbers_stand_at_dotted_paths() {
    let object = json!({"spec": {"replicas": 5, "text": "5", "half": 0.5, "list": [1, 2], "map": {"a": {"b": 3}}}});
    for (path, expected) in [
        ("spec.replicas", Some(5)),
        ("spec.list.1", Some(2)),
        ("spec.map.a.b", Some(3)),
        ("", None),
        ("spec", None),
        ("spec.no", None),
        ("spec.text", None),
        ("spec.half", None),
        ("spec.list.x", None),
        ("spec.list.10", None),
        ("spec.list.-1", None),
        ("spec.list.9223372036854775807", None),
        ("spec.list.99999999999999999999", None),
        ("spec.replicas.deeper", None),
        ("spec..replicas", None),
    ] {
        assert_eq!(number_at(&object, path), expected, "{path:?}");
    }
}

#[test]
fn a_pod_is_read_with_all_that_costs_depend_on() {
    let text = "
apiVersion: v1
kind: Pod
metadata:
  name: web-7-x
  namespace: shop
  uid: u
  creationTimestamp: 2026-01-01T00:00:10Z
  annotations: {apps.kruise.io/matched-workloadspread: '{\"Name\":\"ws\",\"Subset\":\"a\"}', controller.kubernetes.io/pod-deletion-cost: '100'}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-7, uid: rs, controller: true}, {apiVersion: v1, kind: X, name: x, uid: x}]
spec: {containers: []}
status:
  phase: Pending
  conditions:
  - {type: PodScheduled, status: 'False', reason: Unschedulable}
  - {type: Ready, status: 'True', lastTransitionTime: 2026-01-01T00:00:20Z}
  containerStatuses: [{name: a, restartCount: 1, image: a, imageID: a, ready: true}, {name: b, restartCount: 3, image: a, imageID: a, ready: true}]
";
    let all = objects(text);
    let KubeObject::Pod(wire) = &all[0] else {
        panic!("a pod");
    };
    let fact = pods::pod(wire, &mut Interner::new());
    assert_eq!(fact.phase, Phase::Pending);
    assert!(fact.unschedulable && !fact.deleting && fact.is_active());
    assert_eq!(fact.restarts, 3);
    assert_eq!(
        fact.owners.iter().map(|o| &**o).collect::<Vec<_>>(),
        ["rs", "x"]
    );
    assert_eq!(fact.controller.unwrap().uid, Arc::from("rs"));
    assert_eq!(
        fact.ready_since.unwrap().since(fact.created),
        Span::from_secs(10)
    );
    assert_eq!(&*fact.marker.marker().unwrap().subset, "a");
    assert_eq!(fact.cost.as_deref(), Some("100"));
    // A pod of nothing but a name is read, too.
    let bare = pods::pod(&Default::default(), &mut Interner::new());
    assert_eq!((bare.created, bare.phase), (Instant(0), Phase::Pending));
}

/// What a rollout may add and miss, and ordinals that no pod has.
#[test]
fn a_workload_is_read_with_its_rollout_and_its_ordinals() {
    let fact = |object: Value| {
        let object = KubeObject::of_json(object).unwrap();
        let fact = Translator::default().workload(&object, &mut Interner::new());
        fact.unwrap()
    };
    let template = json!({"spec": {"containers": [{"name": "main", "image": "web"}]}});
    let rolling = |api: &str, kind: &str, strategy: Value| {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "web"},
            "spec": {"replicas": 10, "selector": {}, "template": template}});
        for (field, value) in strategy.as_object().unwrap() {
            object["spec"][field] = value.clone();
        }
        let rolling = fact(object).rolling?;
        Some((rolling.surge, rolling.unavailable))
    };
    let deployment =
        |strategy: Value| rolling("apps/v1", "Deployment", json!({ "strategy": strategy }));
    assert_eq!(deployment(json!({})), Some((3, 2)));
    let both = json!({"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}});
    assert_eq!(deployment(both), Some((10, 0)));
    let none = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "1%"}});
    assert_eq!(deployment(none), Some((0, 1)), "something must move");
    assert_eq!(deployment(json!({"type": "Recreate"})), None);
    let clone_set = |strategy: Value| {
        let strategy = json!({ "updateStrategy": strategy });
        rolling("apps.kruise.io/v1alpha1", "CloneSet", strategy)
    };
    assert_eq!(clone_set(json!({})), Some((0, 2)));
    let surging = json!({"type": "ReCreate", "maxSurge": "5%", "maxUnavailable": 0});
    assert_eq!(clone_set(surging), Some((1, 0)));
    assert_eq!(clone_set(json!({"type": "InPlaceIfPossible"})), None);
    assert_eq!(rolling("apps/v1", "ReplicaSet", json!({})), None);
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {}, "template": template, "ordinals": {"start": 2},
            "reserveOrdinals": [4, "7", "10-12", "9-8", "x", true]}});
    let set = fact(set);
    assert_eq!(set.first_ordinal, 2);
    assert_eq!(*set.reserved_ordinals, [(4, 4), (7, 7), (10, 12)]);
    assert_eq!(set.pod_labels, None, "its pods go by ordinals");
}

#[test]
fn templates_are_equal_but_for_the_hash_and_empty_maps() {
    let id = |json: Value| {
        crate::workloadspread::subset_contents::SubsetContents::template_id(
            &serde_json::from_value(json).unwrap(),
        )
    };
    let plain =
        id(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}));
    let hashed = id(
        json!({"metadata": {"labels": {"a": "b", "pod-template-hash": "7"}, "annotations": {}},
        "spec": {"containers": [{"name": "c"}], "volumes": []}}),
    );
    let other =
        id(json!({"metadata": {"labels": {"a": "c"}}, "spec": {"containers": [{"name": "c"}]}}));
    let empty_dir =
        id(json!({"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}}));
    let no_dir = id(json!({"spec": {"containers": [], "volumes": [{"name": "v"}]}}));
    assert_eq!(plain, hashed);
    assert_ne!(plain, other);
    assert_ne!(empty_dir, no_dir);
}

#[test]
fn the_white_list_is_read_in_any_letter_case() {
    let text = r#"{"WORKLOADS":[{"group":"game.kruise.io","Version":"v1alpha1","KIND":"GameServerSet",
        "subresources":[{"Group":"game.kruise.io","Version":"v1alpha1","Kind":"GameServer"}],"ReplicasPath":"spec.replicas"}]}"#;
    let list = WhiteList::read(text).unwrap();
    assert!(list.allows("game.kruise.io", "GameServerSet"));
    assert!(!list.allows("game.kruise.io", "GameServer"));
    let mut names = Interner::new();
    assert_eq!(list.kinds(&mut names).len(), 2);
    let path = |version| list.replicas_path("game.kruise.io", version, "GameServerSet");
    assert_eq!(
        (path("v1alpha1"), path("v1")),
        (Some("spec.replicas"), None)
    );
    assert_eq!(WhiteList::read("{}").unwrap(), WhiteList::default());
    for broken in [
        "",
        "[]",
        "{\"workloads\":7}",
        "{\"workloads\":[7]}",
        "{\"workloads\":[{\"Kind\":7}]}",
    ] {
        assert!(WhiteList::read(broken).is_err(), "{broken:?}");
    }
}

#[test]
fn a_patch_is_in_effect_where_it_changes_nothing_but_annotations() {
    struct One;
    impl PodSource for One {
        fn by_uid(&self, uid: &str) -> Option<Value> {
            let mut pod = pod();
            pod["metadata"]["labels"]["subset"] = "a".into();
            (uid == "here").then_some(pod)
        }
    }
    let mut translator = Translator::default();
    for (patch, uid, expected) in [
        (
            json!({"metadata": {"labels": {"subset": "a"}}}),
            "here",
            true,
        ),
        (
            json!({"metadata": {"labels": {"subset": "a"}, "annotations": {"x": "y"}}}),
            "here",
            true,
        ),
        (
            json!({"metadata": {"annotations": {"x": "y"}}}),
            "here",
            true,
        ),
        (json!({}), "here", true),
        (
            json!({"metadata": {"labels": {"subset": "b"}}}),
            "here",
            false,
        ),
        (
            json!({"spec": {"containers": [{"name": "main", "image": "web"}]}}),
            "here",
            true,
        ),
        (
            json!({"spec": {"containers": [{"name": "side"}]}}),
            "here",
            false,
        ),
        (
            json!({"metadata": {"labels": {"subset": "a"}}}),
            "gone",
            false,
        ),
        (json!(7), "here", false),
    ] {
        let id = translator.contents.patch_id(&patch);
        let mut patcher = Patcher {
            contents: &translator.contents,
            reviews: None,
            pods: &One,
        };
        assert_eq!(patcher.is_in_effect(uid, id), expected, "{patch}");
    }
}

#[test]
fn a_listed_kind_is_admitted_through_its_chain_and_counted_by_its_scale() {
    use strew_workloadspread::admission::{Input, Limits};
    use strew_workloadspread::controller::{self, SpreadController};
    use strew_workloadspread::{Admission, MARKER_ANNOTATION};

    use super::injection::{Webhook, create};
    use crate::workloadspread::pending_reviews::{NoPods, PendingReviews};

    let list = WhiteList::read(
        r#"{"workloads":[{"Group":"game.kruise.io","Version":"v1alpha1","Kind":"GameServerSet",
            "subResources":[{"Group":"game.kruise.io","Version":"v1alpha1","Kind":"GameServer"}]}]}"#,
    )
    .unwrap();
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "game.kruise.io/v1alpha1", "kind": kind, "name": name, "uid": name, "controller": true}]);
    let set = json!({"apiVersion": "game.kruise.io/v1alpha1", "kind": "GameServerSet",
        "metadata": {"name": "arena", "namespace": "shop", "uid": "arena"}});
    let server = json!({"apiVersion": "game.kruise.io/v1alpha1", "kind": "GameServer",
        "metadata": {"name": "arena-1", "namespace": "shop", "uid": "arena-1", "ownerReferences": owner("GameServerSet", "arena")}});
    let scale = json!({"spec": {"replicas": 10}, "status": {"selector": "game=arena"}});
    let mut spread = web(json!([{"name": "own", "maxReplicas": "20%"}, {"name": "rest"}]));
    spread["spec"]["targetRef"] =
        json!({"apiVersion": "game.kruise.io/v1alpha1", "kind": "GameServerSet", "name": "arena"});
    let KubeObject::WorkloadSpread(wire) = KubeObject::of_json(spread.clone()).unwrap() else {
        panic!("it is one");
    };
    let spread_set = KubeObject::WorkloadSpread(wire);

    // The webhook: pod, GameServer, GameServerSet. The kind is looked at only when it is listed.
    for (is_listed, subset) in [(false, None), (true, Some("own"))] {
        let mut webhook = Webhook {
            translator: Translator::default(),
            reviews: PendingReviews::default(),
            machine: Admission::new(Interner::new(), Vec::new(), Limits::production(), 1),
            effects: Vec::new(),
        };
        let now = Instant::from_secs(100);
        let (translator, machine) = (&mut webhook.translator, &mut webhook.machine);
        for input in translator.admission(&spread_set, machine.names_mut()) {
            machine.handle(now, input);
        }
        if is_listed {
            let listed = list.kinds(machine.names_mut());
            machine.handle(now, Input::KindsListed(listed));
        }
        for (object, scale) in [(&set, Some(&scale)), (&server, None)] {
            let fact = translator.custom(object, scale, None, machine.names_mut());
            machine.handle(now, Input::WorkloadSet(Box::new(fact)));
        }
        let mut pod = pod();
        pod["metadata"]["ownerReferences"] = owner("GameServer", "arena-1");
        let decision = webhook.ask(create(pod), &NoPods);
        let marker = decision.pod.and_then(|pod| {
            let marker = &pod["metadata"]["annotations"][MARKER_ANNOTATION];
            let marker: Value = serde_json::from_str(marker.as_str()?).ok()?;
            Some(marker["subset"].as_str()?.to_owned())
        });
        assert_eq!(marker.as_deref(), subset, "listed: {is_listed}");
    }

    // The controller: no pod has the set for an owner, so those of its scale's selector are counted, against its scale.
    let mut translator = Translator::default();
    let mut machine = SpreadController::new(Interner::new(), controller::Limits::production());
    let now = Instant::from_secs(100);
    let listed = list.kinds(machine.names_mut());
    machine.handle(now, controller::Input::KindsListed(listed));
    let fact = translator.custom(&set, Some(&scale), None, machine.names_mut());
    machine.handle(now, controller::Input::WorkloadSet(Box::new(fact)));
    for (i, game) in ["arena", "arena", "other"].into_iter().enumerate() {
        let mut pod = pod();
        pod["metadata"]["name"] = format!("arena-{i}").into();
        pod["metadata"]["uid"] = format!("pod-{i}").into();
        pod["metadata"]["labels"] = json!({"game": game});
        pod["metadata"]["ownerReferences"] = owner("GameServer", "arena-1");
        pod["metadata"]["annotations"] =
            json!({MARKER_ANNOTATION: r#"{"name":"ws","subset":"own"}"#});
        let pod = KubeObject::of_json(pod).unwrap();
        for input in translator.controller(&pod, machine.names_mut()) {
            machine.handle(now, input);
        }
    }
    for input in translator.controller(&spread_set, machine.names_mut()) {
        machine.handle(now, input);
    }
    let mut patcher = Patcher {
        contents: &translator.contents,
        reviews: None,
        pods: &NoPods,
    };
    let written = std::iter::from_fn(|| machine.poll_effect(&mut patcher)).find_map(|e| match e {
        controller::Effect::WriteStatus { status, .. } => Some(status),
        _ => None,
    });
    let overall = written.expect("a status").overall.clone();
    let counts: Vec<_> = overall.iter().map(|r| (r.replicas, r.missing)).collect();
    assert_eq!(counts, [(2, 0), (0, -1)]);
}

/// A deletion with the whole object and one with only its name give admission the same inputs.
#[test]
fn a_name_is_enough_to_tell_what_is_gone() {
    let owner = "spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: []}}}";
    let text = format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: web, uid: uid}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: web, uid: uid}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop, uid: uid}}
spec: {{selector: {{app: web}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop, uid: uid}}
spec: {{containers: [{{name: main, image: web}}]}}
---
apiVersion: v1
kind: ReplicationController
metadata: {{name: web, namespace: shop, uid: uid}}
spec: {{selector: {{app: web}}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web, namespace: shop, uid: uid}}
{owner}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: web, namespace: shop, uid: uid}}
{owner}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop, uid: uid}}
{owner}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: web, namespace: shop, uid: uid}}
spec: {{template: {{spec: {{restartPolicy: Never, containers: []}}}}}}
---
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {{name: web, namespace: shop, uid: uid}}
spec: {{targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}, subsets: [{{name: a}}]}}
"
    );
    let mut names = Interner::new();
    for object in objects(&text) {
        let mut translator = Translator::default();
        let whole = translator.admission_gone(&object, &mut names);
        let named = crate::facts::Named {
            namespace: object.namespace().unwrap_or_default().into(),
            name: "web".into(),
            uid: "uid".into(),
        };
        let (version, kind) = (object.api_version(), object.kind());
        let lost = translator.admission_lost(version, kind, &named, &mut names);
        let told = |inputs: &[admission::Input]| {
            let mut told: Vec<String> = inputs.iter().map(|i| format!("{i:?}")).collect();
            told.sort();
            told
        };
        assert_eq!(told(&lost), told(&whole), "{kind}");
    }
}

#[test]
fn nothing_is_kept_of_pods_that_come_and_go() {
    let mut names = Interner::new();
    let mut translator = Translator::default();
    let mut live = |n: u32| {
        let mut pod = pod();
        pod["metadata"]["name"] = format!("web-7-{n}").into();
        pod["metadata"]["uid"] = format!("uid-{n}").into();
        pod["spec"]["nodeName"] = "a".into();
        let volume = json!({"name": format!("kube-api-access-{n}"), "projected": {"sources": []}});
        pod["spec"]["volumes"] = json!([volume]);
        let object = objects(&pod.to_string()).remove(0);
        let KubeObject::Pod(wire) = &object else {
            panic!("a pod");
        };
        let named = crate::facts::identity(&wire.metadata);
        let seen = translator.admission(&object, &mut names);
        assert!(matches!(&seen[..], [admission::Input::PodSet(..)]));
        let gone = translator.admission_lost("v1", "Pod", &named, &mut names);
        assert!(matches!(&gone[..], [admission::Input::PodGone(uid)] if **uid == *named.uid));
        translator.controller(&object, &mut names);
        translator.controller_gone(&object, &mut names);
        names.len()
    };
    assert_eq!(live(1), live(2));
}
