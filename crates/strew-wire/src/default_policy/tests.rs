//! What the printed expressions choose, against what the engine deduces.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde_json::{Value as Json, json};
use strew_cluster::{Cluster, PodIdx};
use strew_manifest::read::{Sources, read};
use strew_model::{Interner, Requirement, Selector};

use super::admission::{Admission, Policies};
use super::expressions::{self as names, of_controllers, of_services};
use super::objects::{Reach, Version, all};
use super::*;
use crate::config::{FeatureGates, Given, configure};
use crate::facts;

const ZONE: &str =
    "{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}";

/// The defaults of `PodTopologySpreadArgs` with this list.
fn defaults(list: &str) -> Defaults {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: PodTopologySpreadArgs\ndefaultingType: List\ndefaultConstraints: [{list}]\n"
    );
    of_text(&text).expect("the list has a constraint")
}

fn of_text(text: &str) -> Option<Defaults> {
    let mut sources = Sources::new();
    sources.add("defaults.yaml", text);
    let mut interner = Interner::new();
    let gates = FeatureGates::default();
    match configure(Given::Defaults(&sources), &gates, &mut interner) {
        Ok(configuration) => Defaults::of(&configuration, &interner),
        Err(errors) => panic!("{errors:#?}"),
    }
}

/// A pod of a controller: `apps/v1 ReplicaSet web-1`.
fn pod(name: &str, controller: &str, labels: Json) -> Json {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}]},
    });
    if let [version, kind, owner] = controller.split(' ').collect::<Vec<_>>()[..] {
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": version, "kind": kind, "name": owner, "uid": owner, "controller": true,
        }]);
    }
    pod
}

fn service(name: &str, selector: Json) -> Json {
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": [{"port": 80}]},
    });
    // The API server leaves a missing selector out.
    if !selector.is_null() {
        service["spec"]["selector"] = selector;
    }
    service
}

fn controller(version: &str, kind: &str, name: &str, selector: Json) -> Json {
    let labels = &selector;
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let selector = match kind {
        "ReplicationController" => selector.clone(),
        _ => json!({"matchLabels": selector}),
    };
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"selector": selector, "template": template, "serviceName": "s"},
    })
}

/// A namespace in which all ways of deduction occur.
fn shop() -> Vec<Json> {
    let hashed =
        |app: &str, hash: &str| json!({"app": app, "tier": "front", "pod-template-hash": hash});
    let ordinal = |i: usize| {
        json!({
            "app": "db",
            "controller-revision-hash": format!("db-{i}"),
            "statefulset.kubernetes.io/pod-name": format!("db-{i}"),
            "apps.kubernetes.io/pod-index": i.to_string(),
            "helm.sh/chart": format!("db-1.{i}"),
        })
    };
    vec![
        service("front", json!({"tier": "front"})),
        service("web", json!({"app": "web"})),
        service("batch", json!({"job": "train"})),
        service("clones", json!({"app": "clone"})),
        service("clones-too", json!({"role": "cache"})),
        service("headless", Json::Null),
        service("agents", json!({"app": "agent"})),
        controller(
            "apps/v1",
            "ReplicaSet",
            "web-1",
            json!({"app": "web", "pod-template-hash": "1"}),
        ),
        controller(
            "apps/v1",
            "ReplicaSet",
            "web-2",
            json!({"app": "web", "pod-template-hash": "2"}),
        ),
        controller(
            "apps/v1",
            "ReplicaSet",
            "api-1",
            json!({"app": "api", "pod-template-hash": "1"}),
        ),
        controller("apps/v1", "StatefulSet", "db", json!({"app": "db"})),
        controller("v1", "ReplicationController", "old", json!({"app": "old"})),
        pod("web-1-a", "apps/v1 ReplicaSet web-1", hashed("web", "1")),
        pod("web-1-b", "apps/v1 ReplicaSet web-1", hashed("web", "1")),
        pod("web-2-a", "apps/v1 ReplicaSet web-2", hashed("web", "2")),
        pod("api-1-a", "apps/v1 ReplicaSet api-1", hashed("api", "1")),
        pod("db-0", "apps/v1 StatefulSet db", ordinal(0)),
        pod("db-1", "apps/v1 StatefulSet db", ordinal(1)),
        pod(
            "old-a",
            "v1 ReplicationController old",
            json!({"app": "old"}),
        ),
        pod(
            "old-b",
            "v1 ReplicationController old",
            json!({"app": "old"}),
        ),
        pod(
            "train-0",
            "batch/v1 Job train",
            json!({"job": "train", "index": "0"}),
        ),
        pod(
            "train-1",
            "batch/v1 Job train",
            json!({"job": "train", "index": "1"}),
        ),
        pod(
            "clone-a",
            "apps.kruise.io/v1alpha1 CloneSet clone",
            json!({"app": "clone", "role": "cache", "pod-template-hash": "1", CLONE_SET_POD: "a"}),
        ),
        pod(
            "clone-b",
            "apps.kruise.io/v1alpha1 CloneSet clone",
            json!({"app": "clone", "role": "cache", "id": "b"}),
        ),
        pod(
            "clone-c",
            "",
            json!({"app": "clone", "role": "other", "id": "c"}),
        ),
        pod("alone", "", json!({"app": "alone"})),
        pod(
            "agent-a",
            "apps/v1 DaemonSet agent",
            json!({"app": "agent"}),
        ),
    ]
}

fn of_kind<'a>(objects: &'a [Json], kind: &str) -> Vec<&'a Json> {
    objects.iter().filter(|o| o["kind"] == kind).collect()
}

fn cluster(objects: &[Json]) -> Cluster {
    let mut cluster = Cluster::new();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut sources = Sources::new();
    sources.add("shop.json", list.to_string());
    for loaded in read(&sources).objects {
        facts::apply(&loaded.object, &mut cluster).expect("a fixture is sound");
    }
    cluster
}

/// The names of the pods of the only namespace that a selector counts.
fn counted(selector: &Selector, cluster: &Cluster) -> Vec<String> {
    let pods = cluster.pods();
    let pods = pods.filter(|(pod, _)| selector.matches(cluster.labels_of(*pod)));
    pods.map(|(_, row)| row.name.to_string()).collect()
}

/// The selector of a constraint as kube-scheduler reads it: with the values of `matchLabelKeys`.
fn selector_of(
    constraint: &TopologySpreadConstraint,
    pod: PodIdx,
    cluster: &mut Cluster,
) -> Selector {
    let read = facts::spread_constraint(constraint, &mut cluster.names).expect("a sound selector");
    let labels = cluster.labels_of(pod);
    let keys = read.match_label_keys.iter();
    let more = keys.filter_map(|&key| Some(Requirement::is_in(key, vec![labels.get(key)?])));
    read.selector.and(more)
}

#[test]
fn counts_the_pods_that_the_engine_counts() {
    let defaults = defaults(ZONE);
    let policies = Policies::new(&defaults).unwrap();
    let objects = shop();
    let services = of_kind(&objects, "Service");
    let mut cluster = cluster(&objects);
    let mut n_constrained = 0;
    for pod in of_kind(&objects, "Pod") {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let index = cluster.find_pod(name).expect(name);
        let key = cluster.class_of(index).key.clone();
        let labels = cluster.labels_of(index).clone();
        let deduced = cluster.owners().deduce(key.namespace, &labels, key.owner);
        match policies.admit(pod, &services).unwrap() {
            Admission::Constrained { constraints, .. } => {
                assert_eq!(constraints.len(), 1, "{name}");
                let selector = selector_of(&constraints[0], index, &mut cluster);
                let ours = counted(&selector, &cluster);
                assert_eq!(ours, counted(&deduced, &cluster), "{name}");
                assert!(ours.contains(&name.to_owned()), "{name} counts itself");
                n_constrained += 1;
            }
            // The only difference: a Service selects the pods of this DaemonSet.
            Admission::Untouched(names::OF_NO_SUCH_CONTROLLER) => assert_eq!(name, "agent-a"),
            Admission::Untouched(condition) => {
                assert_eq!((name, condition), ("alone", names::SELECTED));
                assert!(deduced.is_empty());
            }
        }
    }
    assert_eq!(n_constrained, 13);
}

#[track_caller]
fn admitted(pod: &Json, services: &[Json]) -> Admission {
    let defaults = defaults(ZONE);
    let policies = Policies::new(&defaults).unwrap();
    policies
        .admit(pod, &services.iter().collect::<Vec<_>>())
        .unwrap()
}

#[track_caller]
fn constraint(pod: &Json, services: &[Json]) -> Json {
    match admitted(pod, services) {
        Admission::Constrained { constraints, .. } => json!(constraints[0]),
        Admission::Untouched(condition) => panic!("untouched: {condition}"),
    }
}

#[test]
fn a_deployments_pod_counts_its_revision() {
    let labels = json!({
        "app": "web",
        "pod-template-hash": "1",
        "helm.sh/chart": "web-2",
        // As of a pod that was bound.
        "topology.kubernetes.io/zone": "a",
    });
    let pod = pod("web-1-a", "apps/v1 ReplicaSet web-1", labels);
    let expected = json!({
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"],
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
    });
    assert_eq!(constraint(&pod, &[]), expected);
}

#[test]
fn all_services_that_select_a_pod_add_their_selectors() {
    let pod = pod(
        "clone-a",
        "apps.kruise.io/v1alpha1 CloneSet clone",
        json!({"app": "clone", "role": "cache", "id": "a"}),
    );
    let services = [
        service("clones", json!({"app": "clone"})),
        service("others", json!({"app": "other"})),
        service("clones-too", json!({"role": "cache"})),
    ];
    let selector = &constraint(&pod, &services)["labelSelector"];
    assert_eq!(
        *selector,
        json!({"matchLabels": {"app": "clone", "role": "cache"}})
    );
}

#[test]
fn a_pod_stays_as_it_is_where_a_condition_does_not_hold() {
    let labels = || json!({"app": "web"});
    let of_set = |labels| pod("web-1-a", "apps/v1 ReplicaSet web-1", labels);
    let mut own = of_set(labels());
    own["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
    }]);
    let mut opted_out = of_set(labels());
    opted_out["metadata"]["annotations"] = json!({OPT_OUT: "false", "other": "x"});
    let mut bound = of_set(labels());
    bound["spec"]["nodeName"] = "n1".into();
    let mut packed = of_set(labels());
    packed["spec"]["schedulerName"] = "packer".into();
    let cases = [
        (own, names::WITHOUT_CONSTRAINTS),
        (opted_out, names::NOT_OPTED_OUT),
        (bound, names::WITHOUT_A_NODE),
        (packed, names::OF_A_PROFILE),
        (
            of_set(json!({"helm.sh/chart": "web-1"})),
            names::WITH_A_LABEL,
        ),
        (
            pod("d", "apps/v1 DaemonSet d", labels()),
            names::OF_NO_SUCH_CONTROLLER,
        ),
        (pod("j", "batch/v1 Job j", labels()), names::SELECTED),
        (pod("alone", "", labels()), names::SELECTED),
        (
            pod("odd", "", json!({"pod-template-hash": "1"})),
            admission::LABELLED_AS_CONTROLLED,
        ),
    ];
    for (pod, condition) in cases {
        assert_eq!(admitted(&pod, &[]), Admission::Untouched(condition));
        assert_ne!(admission::reason(condition), admission::reason(""));
    }
}

#[test]
fn another_annotation_is_no_opt_out_and_an_empty_list_no_constraint() {
    let mut pod = pod("web-1-a", "apps/v1 ReplicaSet web-1", json!({"app": "web"}));
    pod["metadata"]["annotations"] = json!({OPT_OUT: "true"});
    pod["spec"]["topologySpreadConstraints"] = json!([]);
    pod["spec"]["nodeName"] = "".into();
    assert_eq!(constraint(&pod, &[])["matchLabelKeys"], Json::Null);
}

#[test]
fn match_label_keys_of_the_file_never_stand_in_the_selector_too() {
    // The API server refuses a pod with a key in both.
    let list = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, matchLabelKeys: [app, track]}";
    let defaults = defaults(list);
    let policies = Policies::new(&defaults).unwrap();
    let labels =
        json!({"app": "web", "track": "canary", "pod-template-hash": "1", "tier": "front"});
    let of_set = pod("web-1-a", "apps/v1 ReplicaSet web-1", labels.clone());
    let mut unhashed = labels;
    unhashed
        .as_object_mut()
        .unwrap()
        .shift_remove("pod-template-hash");
    let selected = pod("alone", "", unhashed);
    let service = service("web", json!({"app": "web"}));
    let of = |pod: &Json| match policies.admit(pod, &[&service]).unwrap() {
        Admission::Constrained { constraints, .. } => json!(constraints[0]),
        Admission::Untouched(condition) => panic!("untouched: {condition}"),
    };
    let (of_set, selected) = (of(&of_set), of(&selected));
    assert_eq!(
        of_set["labelSelector"],
        json!({"matchLabels": {"tier": "front"}})
    );
    assert_eq!(
        of_set["matchLabelKeys"],
        json!(["pod-template-hash", "app", "track"])
    );
    assert_eq!(
        selected["labelSelector"],
        json!({"matchLabels": {"app": "web"}})
    );
    assert_eq!(selected["matchLabelKeys"], json!(["track"]));
}

fn reach() -> Reach {
    Reach {
        version: Version::V1,
        excluded: vec!["kube-system".to_owned()],
        namespaces: Vec::new(),
        failure_policy: "Ignore",
    }
}

fn patch_of(defaults: &Defaults) -> String {
    let [policy, ..] = all(defaults, &reach());
    let expression = &policy["spec"]["mutations"][0]["jsonPatch"]["expression"];
    expression.as_str().unwrap_or_default().to_owned()
}

#[test]
fn every_field_of_a_constraint_is_in_the_patch() {
    let list = "{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor, nodeAffinityPolicy: Ignore}";
    let patch = patch_of(&defaults(list));
    for field in [
        "maxSkew: 2",
        "minDomains: 3",
        "topologyKey: 'rack'",
        "whenUnsatisfiable: 'DoNotSchedule'",
        "nodeAffinityPolicy: 'Ignore'",
        "nodeTaintsPolicy: 'Honor'",
        "matchLabelKeys: variables.keys",
    ] {
        assert!(patch.contains(field), "{field} is missing in {patch}");
    }
}

#[test]
fn each_profile_has_its_own_list() {
    let profile = |name: &str, skew: i32| {
        format!(
            "- schedulerName: {name}\n  pluginConfig:\n  - name: PodTopologySpread\n    args: {{defaultingType: List, defaultConstraints: [{{maxSkew: {skew}, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}}]}}\n"
        )
    };
    let head =
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n";
    let two = |skews: [i32; 2]| {
        let text = format!(
            "{head}{}{}",
            profile("it's", skews[0]),
            profile("b", skews[1])
        );
        of_text(&text).expect("two lists")
    };
    let different = two([1, 2]);
    assert!(patch_of(&different).contains("object.spec.schedulerName == 'it\\'s' ? ["));
    assert!(!patch_of(&two([1, 1])).contains("schedulerName"));
    let conditions = of_controllers(&different).conditions;
    assert_eq!(
        conditions[0].text,
        "object.spec.schedulerName in ['it\\'s', 'b']"
    );
    let policies = Policies::new(&different).unwrap();
    let mut pod = pod("web-1-a", "apps/v1 ReplicaSet web-1", json!({"app": "web"}));
    pod["spec"]["schedulerName"] = "b".into();
    match policies.admit(&pod, &[]).unwrap() {
        Admission::Constrained { constraints, .. } => assert_eq!(constraints[0].max_skew, 2),
        Admission::Untouched(condition) => panic!("untouched: {condition}"),
    }
}

#[test]
fn defaults_of_kube_scheduler_itself_need_no_policy() {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\n";
    for body in [
        "kind: KubeSchedulerConfiguration\n",
        "kind: PodTopologySpreadArgs\ndefaultingType: System\n",
        "kind: PodTopologySpreadArgs\ndefaultingType: List\n",
    ] {
        assert_eq!(of_text(&format!("{head}{body}")), None, "{body}");
    }
}

#[test]
fn the_objects_hold_where_they_are_meant_to() {
    let mut reach = reach();
    reach.version = Version::V1beta1;
    reach.namespaces = vec![json!({"key": "team", "operator": "In", "values": ["shop"]})];
    let objects = all(&defaults(ZONE), &reach);
    let kinds = objects
        .each_ref()
        .map(|o| (o["kind"].as_str(), o["metadata"]["name"].as_str()));
    let (policy, binding) = (
        Some("MutatingAdmissionPolicy"),
        Some("MutatingAdmissionPolicyBinding"),
    );
    assert_eq!(
        kinds,
        [
            (policy, Some(CONTROLLERS)),
            (binding, Some(CONTROLLERS)),
            (policy, Some(SERVICES)),
            (binding, Some(SERVICES)),
            (binding, Some(CLONE_SETS)),
        ]
    );
    assert_eq!(objects[4]["spec"]["policyName"], SERVICES);
    for object in &objects {
        assert_eq!(object["apiVersion"], "admissionregistration.k8s.io/v1beta1");
    }
    let namespaces = &objects[1]["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"];
    assert_eq!(namespaces[0]["values"], json!(["kube-system"]));
    assert_eq!(namespaces[1]["key"], OPT_OUT);
    assert_eq!(namespaces[2]["key"], "team");
    // Nothing of a Service's policy is named in the other one.
    let of_services = of_services(&defaults(ZONE));
    assert_eq!(of_services.variables.len(), 1);
    assert!(!objects[0].to_string().contains("params"));
}
