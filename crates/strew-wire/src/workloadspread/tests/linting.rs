//! Warnings, each by what brings it about.

use super::*;
use crate::workloadspread::lint::{What, lint};

/// Codes and paths of the warnings of a WorkloadSpread among objects.
#[track_caller]
fn check(spread: Value, others: &[Value], expected: &[(&str, &str)]) {
    let all = std::iter::once(&spread).chain(others);
    let all: Vec<KubeObject> = all
        .map(|v| {
            // Kinds that strew does not know are read by their heads.
            let known = KubeObject::of_json(v.clone());
            known.unwrap_or_else(|_| strew_manifest::read::embedded(v.clone()).unwrap())
        })
        .collect();
    let all: Vec<&KubeObject> = all.iter().collect();
    let found = lint(&all);
    let told: Vec<(&str, String)> = found
        .iter()
        .map(|finding| match &finding.what {
            What::Suspicious(warning) => (warning.code, warning.path.to_string()),
            What::Refused(error) => ("refused", error.path.to_string()),
        })
        .collect();
    let told: Vec<(&str, &str)> = told
        .iter()
        .map(|(code, path)| (*code, path.as_str()))
        .collect();
    assert_eq!(told, expected, "{spread}");
}

fn deployment(namespace: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 10, "selector": {}, "template": {"spec": {"containers": [{"name": "main", "image": "web"}]}}}});
    for (pointer, value) in more.as_object().unwrap() {
        object["metadata"][pointer] = value.clone();
    }
    object
}

fn nodes_of(pool: &str) -> Value {
    json!({"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]})
}

fn two() -> Value {
    json!([{"name": "own", "maxReplicas": 8, "requiredNodeSelector": nodes_of("own")}, {"name": "elastic", "requiredNodeSelector": nodes_of("elastic")}])
}

#[test]
fn what_is_meant_brings_nothing() {
    check(web(two()), &[deployment("shop", json!({}))], &[]);
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": name}}});
    check(
        web(two()),
        &[deployment("shop", json!({})), node("own"), node("elastic")],
        &[],
    );
    let mut adaptive = web(
        json!([{"name": "own", "requiredNodeSelector": nodes_of("own")}, {"name": "elastic", "requiredNodeSelector": nodes_of("elastic")}]),
    );
    adaptive["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}});
    adaptive["metadata"]["annotations"] = json!({"strew.dev/unschedulable-window-seconds": "600", "strew.dev/min-replicas": "{\"own\":1}"});
    check(adaptive, &[deployment("shop", json!({}))], &[]);
}

#[test]
fn each_warning_has_its_cause() {
    let here = || deployment("shop", json!({}));
    let target = "spec.targetRef";
    check(web(two()), &[], &[("target-missing", target)]);
    check(
        web(two()),
        &[deployment("other", json!({}))],
        &[("target-missing", target)],
    );
    let going = deployment("shop", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    check(web(two()), &[going], &[("target-deleting", target)]);
    let mut custom = web(two());
    custom["spec"]["targetRef"] = json!({"apiVersion": "game.io/v1", "kind": "Set", "name": "web"});
    check(custom, &[], &[("unknown-target-kind", target)]);
    let own = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"pool": "own"}}});
    check(
        web(two()),
        &[here(), own],
        &[("no-node", "spec.subsets[1].requiredNodeSelector")],
    );
    let mut unlimited = two();
    unlimited[0]["maxReplicas"] = Value::Null;
    check(
        web(unlimited),
        &[here()],
        &[("unreachable-subset", "spec.subsets[1]")],
    );
    let mut tight = two();
    tight[1]["maxReplicas"] = 1.into();
    check(
        web(tight),
        &[here()],
        &[("no-room", "spec.subsets[1].maxReplicas")],
    );
    let mut fits = two();
    fits[1]["maxReplicas"] = 2.into();
    check(web(fits), &[here()], &[]);
    let mut same = two();
    same[1]["requiredNodeSelector"] = same[0]["requiredNodeSelector"].clone();
    check(web(same), &[here()], &[("same-nodes", "spec.subsets[1]")]);
    let mut filtered = web(two());
    filtered["spec"]["targetFilter"] = json!({"replicasPathList": ["spec.replicas"]});
    check(filtered, &[here()], &[("no-selector", "spec.targetFilter")]);
    let mut fixed = web(two());
    fixed["spec"]["scheduleStrategy"] = json!({"type": "Adaptive"});
    check(
        fixed,
        &[here()],
        &[("acts-as-fixed", "spec.scheduleStrategy.type")],
    );
    let mut idle = web(two());
    idle["metadata"]["annotations"] = json!({"strew.dev/unschedulable-window-seconds": "600"});
    check(
        idle,
        &[here()],
        &[(
            "no-effect",
            "metadata.annotations[strew.dev/unschedulable-window-seconds]",
        )],
    );
    let mut replaced = two();
    replaced[0]["patch"] = json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [nodes_of("x")]}}}}});
    check(
        web(replaced),
        &[here()],
        &[("patch-replaces", "spec.subsets[0].patch")],
    );
}

#[test]
fn the_second_for_one_target_is_refused() {
    let mut other = web(two());
    other["metadata"]["name"] = "other".into();
    check(
        web(two()),
        &[deployment("shop", json!({})), other.clone()],
        &[("refused", "spec.targetRef")],
    );
    other["metadata"]["namespace"] = "elsewhere".into();
    check(
        web(two()),
        &[
            deployment("shop", json!({})),
            deployment("elsewhere", json!({})),
            other,
        ],
        &[],
    );
}

/// A Deployment of `web` with this pod template's spec beside its container.
fn templated(more: Value) -> Value {
    let mut object = deployment("shop", json!({}));
    for (field, value) in more.as_object().unwrap() {
        object["spec"]["template"]["spec"][field] = value.clone();
    }
    object
}

/// `tmpl-conf` and files 35 to 40 of the audit's folder lint: nothing was found in them.
#[test]
fn each_patched_pod_is_played() {
    let nodes = "spec.subsets[0].requiredNodeSelector";
    check(
        web(two()),
        &[templated(json!({"nodeSelector": {"pool": "elastic"}}))],
        &[("no-node-possible", nodes)],
    );
    let term =
        json!({"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["own"]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    check(
        web(two()),
        &[templated(json!({ "affinity": affinity }))],
        &[("no-node-possible", nodes)],
    );
    let mut itself = two();
    let both = [nodes_of("own"), nodes_of("elastic")];
    let both = both.map(|term| term["matchExpressions"][0].clone());
    itself[0]["requiredNodeSelector"] = json!({ "matchExpressions": both });
    check(
        web(itself),
        &[templated(json!({}))],
        &[("no-node-possible", nodes)],
    );
    check(
        web(two()),
        &[templated(json!({"nodeName": "n1"}))],
        &[("fixed-node", "spec.targetRef")],
    );
    let node = |name: &str, pool: &str, taints: Value| {
        json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": pool, "zone": "a"}}, "spec": {"taints": taints}})
    };
    let tainted = node(
        "n1",
        "own",
        json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]),
    );
    let free = node("n2", "elastic", json!([]));
    check(
        web(two()),
        &[templated(json!({})), tainted.clone(), free.clone()],
        &[("untolerated-taint", "spec.subsets[0].tolerations")],
    );
    let tolerations = json!([{"key": "k", "operator": "Exists"}]);
    check(
        web(two()),
        &[
            templated(json!({ "tolerations": tolerations })),
            tainted,
            free.clone(),
        ],
        &[],
    );
    check(
        web(two()),
        &[
            templated(json!({"nodeSelector": {"zone": "b"}})),
            node("n1", "own", json!([])),
            free,
        ],
        &[
            ("no-node", nodes),
            ("no-node", "spec.subsets[1].requiredNodeSelector"),
        ],
    );
}

/// Files 22, 27 and 38 of the folder lint, `job-ad2` and `gs`.
#[test]
fn what_would_do_nothing_is_told() {
    let mut typo = two();
    typo[0]["patch"] = json!({"metadata": {"label": {"x": "y"}}});
    check(
        web(typo),
        &[templated(json!({}))],
        &[(
            "unknown-patch-field",
            "spec.subsets[0].patch.metadata.label",
        )],
    );
    let mut idle = web(two());
    idle["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"disableSimulationSchedule": true}});
    check(
        idle,
        &[templated(json!({}))],
        &[("acts-as-fixed", "spec.scheduleStrategy.type")],
    );
    let mut shares = web(json!([
        {"name": "a", "maxReplicas": "34%", "requiredNodeSelector": nodes_of("a")},
        {"name": "b", "maxReplicas": "33%", "requiredNodeSelector": nodes_of("b")},
        {"name": "c", "maxReplicas": "33%", "requiredNodeSelector": nodes_of("c")},
    ]));
    let mut three = templated(json!({}));
    three["spec"]["replicas"] = 3.into();
    check(
        shares.clone(),
        &[three],
        &[("starved-subset", "spec.subsets[2].maxReplicas")],
    );
    shares["metadata"]["annotations"] = json!({"strew.dev/limit-scopes": "workload"});
    check(
        shares,
        &[templated(json!({}))],
        &[("no-effect", "metadata.annotations[strew.dev/limit-scopes]")],
    );
    let job = |policy: Value| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"podFailurePolicy": policy, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "web"}]}}}})
    };
    let mut moved = web(two());
    moved["spec"]["targetRef"] = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "web"});
    moved["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}});
    let seconds = "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds";
    check(
        moved.clone(),
        &[job(Value::Null)],
        &[("job-stays", seconds)],
    );
    let ignores = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]});
    check(moved, &[job(ignores)], &[]);
    let mut game = web(two());
    game["spec"]["targetRef"] = json!({"apiVersion": "game.io/v1", "kind": "Set", "name": "web"});
    game["metadata"]["annotations"] = json!({"strew.dev/any-kind": "true"});
    let set = json!({"apiVersion": "game.io/v1", "kind": "Set", "metadata": {"name": "web", "namespace": "shop"}});
    check(game, &[set], &[]);
    let mut listed = web(two());
    listed["spec"]["targetRef"] =
        json!({"apiVersion": "v1", "kind": "ReplicationController", "name": "web"});
    let controller = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}});
    check(
        listed,
        &[controller],
        &[("unknown-target-kind", "spec.targetRef")],
    );
}

#[test]
fn a_patch_that_leaves_a_budget_is_told() {
    let mut labelled = templated(json!({}));
    labelled["spec"]["template"]["metadata"] = json!({"labels": {"app": "web", "tier": "front"}});
    labelled["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"tier": "front"}}}});
    let mut patched = two();
    patched[0]["patch"] = json!({"metadata": {"labels": {"tier": "own"}}});
    check(
        web(patched),
        &[labelled, budget],
        &[("leaves-budget", "spec.subsets[0].patch.metadata.labels")],
    );
}

/// `dl-fixed` and `roll-cs` of the audit: a rollout that does not end, and one after which the first subset has too few.
#[test]
fn a_rollout_that_does_not_fit_is_told() {
    let limit = "spec.subsets[0].maxReplicas";
    let rolling = |surge: Value, unavailable: Value| {
        let mut object = templated(json!({}));
        object["spec"]["strategy"] =
            json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        container["resources"] = json!({"requests": {"cpu": "1"}});
        object
    };
    let node = |name: &str, cpu: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}})
    };
    let stuck = [("stuck-rollout", limit)];
    // Without nodes it is not known whether new pods find room.
    check(web(two()), &[rolling(json!(2), json!(0))], &[]);
    let full = [
        rolling(json!("20%"), json!("1%")),
        node("own", "8"),
        node("elastic", "8"),
    ];
    check(web(two()), &full, &stuck);
    let spacious = [
        rolling(json!(2), json!(0)),
        node("own", "9"),
        node("elastic", "8"),
    ];
    check(web(two()), &spacious, &[]);
    check(web(two()), &[rolling(json!(9), json!(0))], &[]);
    let mut adaptive = web(two());
    adaptive["spec"]["scheduleStrategy"] = json!({"type": "Adaptive", "adaptive": {}});
    check(adaptive.clone(), &[rolling(json!(2), json!(0))], &[]);
    adaptive["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}});
    check(adaptive.clone(), &full, &[("short-after-rollout", limit)]);
    check(adaptive, &spacious, &[]);

    let scope = |value: &str| {
        let mut spread = web(two());
        spread["metadata"]["annotations"] = json!({"strew.dev/limit-scope": value});
        spread
    };
    check(scope("workload"), &[rolling(json!(2), json!(0))], &[]);
    let short = [("short-after-rollout", limit)];
    check(
        scope("workload"),
        &[rolling(json!("100%"), json!(0))],
        &short,
    );
    let clone_set = |more: Value| {
        let mut object = templated(json!({}));
        object["apiVersion"] = "apps.kruise.io/v1alpha1".into();
        object["kind"] = "CloneSet".into();
        object["spec"]["updateStrategy"] = more;
        object
    };
    let of_clone_set = |mut spread: Value| {
        spread["spec"]["targetRef"] =
            json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"});
        spread
    };
    let surging = || clone_set(json!({"maxSurge": "50%", "maxUnavailable": 0}));
    check(of_clone_set(web(two())), &[surging()], &short);
    let mut own = node("own", "8");
    own["status"]["allocatable"]["pods"] = "8".into();
    check(
        of_clone_set(scope("revision")),
        &[surging(), own, node("elastic", "8")],
        &stuck,
    );
    let in_place = clone_set(json!({"type": "InPlaceIfPossible", "maxSurge": "50%"}));
    check(of_clone_set(web(two())), &[in_place], &[]);
    check(of_clone_set(web(two())), &[clone_set(json!({}))], &[]);

    let mut limited = two();
    limited[1]["maxReplicas"] = 2.into();
    let mut held_back = web(limited);
    held_back["metadata"]["annotations"] =
        json!({"strew.dev/limit-scope": "workload", "strew.dev/when-no-room": "Pending"});
    check(
        held_back,
        &[rolling(json!(1), json!(0))],
        &[("stuck-rollout", "spec.subsets[1].maxReplicas")],
    );
}

#[test]
fn deletion_costs_are_for_kinds_of_which_it_is_not_known() {
    let mut spread = web(two());
    spread["metadata"]["annotations"] = json!({"strew.dev/deletion-cost": "true"});
    check(
        spread.clone(),
        &[templated(json!({}))],
        &[("no-effect", "metadata.annotations[strew.dev/deletion-cost]")],
    );
    spread["metadata"]["annotations"]["strew.dev/any-kind"] = "true".into();
    spread["spec"]["targetRef"] = json!({"apiVersion": "game.io/v1", "kind": "Set", "name": "web"});
    let set = json!({"apiVersion": "game.io/v1", "kind": "Set", "metadata": {"name": "web", "namespace": "shop"}});
    check(spread, &[set], &[]);
}
