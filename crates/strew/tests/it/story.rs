//! The built-in story of `strew simulate`: each step, its end, its exit code.

use serde_json::Value;

use crate::{first_step, json, only_run, stderr, stdout, strew};

fn story(args: &str, exit: i32) -> Value {
    json(
        &strew(&format!("simulate {args} -o json"))
            .assert()
            .code(exit),
    )
}

fn workload<'a>(report: &'a Value, step: usize, of: &str) -> &'a Value {
    let all = only_run(report)["steps"][step]["workloads"]
        .as_array()
        .unwrap();
    all.iter().find(|workload| workload["of"] == of).unwrap()
}

fn n_pending(workload: &Value) -> i64 {
    let groups = workload["pending"].as_array().unwrap().iter();
    groups.map(|group| group["count"].as_i64().unwrap()).sum()
}

/// In the step `lose`, a pod of `web` finds no zone that its constraint allows: that is a warning, and no failure.
#[test]
fn the_whole_story_of_a_shop() {
    let report = story("examples/shop.yaml", 0);
    let steps = only_run(&report)["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["deploy", "rollout", "lose", "restore", "scale"]);
    let web = |step| workload(&report, step, "deployment/web");
    let numbers = |step| {
        let web = web(step);
        (
            web["replicas"].as_i64(),
            web["ready"].as_i64(),
            n_pending(web),
        )
    };
    assert_eq!(numbers(0), (Some(8), Some(8), 0));
    assert_eq!(numbers(1), (Some(8), Some(8), 0));
    assert_eq!(web(1)["placed"], 8, "all pods are new");
    assert_eq!(steps[2]["chosen"], steps[3]["chosen"]);
    let zone = steps[2]["chosen"][0].as_str().unwrap();
    assert!(zone.starts_with("zone-"), "{zone}");
    let counts = &web(2)["spread"][0]["counts"];
    assert_eq!(counts[zone], 0, "{counts}");
    assert!(n_pending(web(2)) > 0, "{}", web(2));
    let losses = steps[2]["losses"].as_array().unwrap();
    let verdicts = losses.iter().map(|loss| (&loss["of"], &loss["verdict"]));
    let verdicts: Vec<(&str, &str)> = verdicts
        .map(|(of, verdict)| (of.as_str().unwrap(), verdict.as_str().unwrap()))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("deployment/web", "DEGRADED"),
            ("statefulset/db", "DEGRADED"),
            ("deployment/api", "SURVIVES"),
        ]
    );
    assert_eq!(numbers(3), (Some(8), Some(8), 0));
    assert_eq!(numbers(4), (Some(4), Some(4), 0));
    let skews = only_run(&report)["maxSkew"].as_array().unwrap();
    let by_zone = skews
        .iter()
        .find(|skew| skew["of"] == "deployment/web" && skew["by"] == "topology.kubernetes.io/zone");
    let end = web(0)["spread"][0]["skew"].as_i64();
    assert!(by_zone.unwrap()["skew"].as_i64() > end, "{skews:?}");
}

#[test]
fn the_story_as_text() {
    let run = strew("simulate examples/shop.yaml").assert().code(0);
    let text = stdout(&run);
    for part in [
        "\nrollout  3 workloads restarted: at rest after ",
        "\n  deployment/web  8 replicas, 8 ready, 8 new\n",
        "! lose: deployment/web is DEGRADED: 6 of 8 ready for as long as it is away",
        "\nlose  zone-",
        "\n  ! deployment/web  DEGRADED  6 of 8 ready",
        "\n  ✓ deployment/api  SURVIVES  5 of 5 ready after ",
        " on the way\n",
        "\nrestore  zone-",
        "\nscale  3 workloads to 50% of the replicas: at rest after ",
        "\n  deployment/web  8 -> 4 replicas, 4 ready\n",
        "16 pods of 3 workloads on 12 nodes: 16 placed, 0 Pending; after scale at ",
        "\nsteps: deploy ok, rollout ok, lose warned (all 20 seeds), restore ok, scale warned (all 20 seeds)\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn a_story_may_end_earlier() {
    for (n_steps, until) in ["deploy", "rollout", "lose"].into_iter().enumerate() {
        let report = story(&format!("examples/shop.yaml --until {until}"), 0);
        let steps = only_run(&report)["steps"].as_array().unwrap();
        assert_eq!(steps.len(), n_steps + 1);
        assert_eq!(steps[n_steps]["name"], until);
    }
}

/// Pending pods of the first step are a failure, whatever comes later.
#[test]
fn pending_after_the_first_step_is_a_failure() {
    story("examples/tight.yaml --until rollout", 1);
}

/// A DaemonSet, a Job that ends and is not created again, a budget: the controllers act.
#[test]
fn controllers_act_on_plain_manifests() {
    let manifests = "
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
";
    let run = strew("simulate - --nodes 3 --until rollout -o json")
        .stdin(manifests)
        .assert()
        .code(0);
    let report = json(&run);
    assert_eq!(workload(&report, 0, "daemonset/agent")["ready"], 3);
    assert_eq!(workload(&report, 1, "daemonset/agent")["placed"], 3);
    assert_eq!(workload(&report, 0, "job/once")["replicas"], 0);
    assert_eq!(first_step(&report)["pods"]["finished"], 1);
}

/// The garbage collector would delete a pod whose owner is gone; a dump may only lack the owner.
#[test]
fn pods_without_their_owners_stay() {
    let dump = "
apiVersion: v1
kind: Pod
metadata:
  name: web-abc-1
  namespace: shop
  uid: u1
  labels: {app: web, pod-template-hash: abc}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, uid: r1, controller: true}]
spec: {nodeName: node-1, containers: [{name: c, image: i}]}
status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}
";
    let run = strew("simulate - --nodes 3 --until deploy -o json")
        .stdin(dump)
        .assert()
        .code(0);
    let report = json(&run);
    let web = workload(&report, 0, "deployment/web");
    assert_eq!(
        (&web["replicas"], &web["boundBefore"]),
        (&1.into(), &1.into())
    );
    let said = stderr(&run);
    assert!(
        said.contains("1 of a ReplicaSet such as shop/web-abc"),
        "{said}"
    );
}

/// A uid means that an API server has stored the object and set defaults; reading it back sets them, too.
#[test]
fn what_a_dump_leaves_out_is_filled_in() {
    let manifests = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: c}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: i}]}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}
";
    let run = strew("simulate - --until rollout -o json").stdin(manifests);
    let report = json(&run.assert().code(0));
    let web = workload(&report, 1, "deployment/web");
    assert_eq!((&web["ready"], &web["placed"]), (&2.into(), &2.into()));
}

/// The printed Scenario is the one that is played: with the same manifests it gives the same report.
#[test]
fn the_printed_story_plays_alike() {
    let words = "--nodes 6 --seed 3 --feature-gates MinDomainsInPodTopologySpread=false";
    let print = format!("simulate examples/shop.yaml --print-scenario {words}");
    let printed = stdout(&strew(&print).assert().code(0));
    for part in [
        "kind: Scenario\n",
        "seed: 3\n",
        "name: deploy\n",
        "\"node-5\"",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("printed-story.yaml");
    std::fs::write(&file, printed).unwrap();
    let made = story(&format!("examples/shop.yaml {words}"), 0);
    let mut played = story(&format!("examples/shop.yaml {}", file.display()), 0);
    let scenario = &mut played["scenarios"][0];
    assert_eq!(scenario["file"], file.display().to_string());
    scenario["file"] = "<story>".into();
    // Only the story tries what would help, and the printed one is a file more.
    let mut made = made;
    for report in [&mut played, &mut made] {
        report["findings"] = Value::Null;
        report["scenarios"][0]["read"] = Value::Null;
    }
    assert_eq!(played, made);
}

/// A step says how it ended, with a verdict.
#[test]
fn every_step_has_a_verdict() {
    let report = story("examples/tight.yaml --until lose", 1);
    let steps = only_run(&report)["steps"].as_array().unwrap();
    let of = |field: &str| {
        let each = steps.iter().map(|step| step[field].as_str().unwrap());
        each.collect::<Vec<_>>()
    };
    assert_eq!(of("state"), ["atRest"; 3]);
    assert_eq!(of("verdict"), ["broken", "broken", "held"]);
    let why = steps[0]["why"][0].as_str().unwrap();
    assert!(
        why.starts_with(
            "rolledOut: {}: deployment/cache: 2 of 3 ready, 1 Pending (0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints); deployment/web: "
        ),
        "{why}"
    );
    assert_eq!(report["summary"]["red"], true);
}

/// The story is a Scenario: it has seeds, events, and test cases.
#[test]
fn the_story_is_played_with_many_seeds() {
    let report = story("examples/shop.yaml --until deploy --seeds 3", 0);
    assert_eq!(report["summary"]["held"], 3);
    assert_eq!(
        report["scenarios"][0]["variants"][0]["seeds"],
        serde_json::json!([0, 1, 2])
    );
    let run = strew("simulate examples/tight.yaml --until deploy -o junit")
        .assert()
        .code(1);
    assert!(stdout(&run).contains("failures=\"1\""), "{}", stdout(&run));
}

#[test]
fn a_step_that_no_story_has_is_refused() {
    let run = strew("simulate examples/shop.yaml --until deplyo")
        .assert()
        .code(2);
    let text = stderr(&run);
    assert!(
        text.contains("steps are deploy, rollout, lose, restore, scale"),
        "{text}"
    );
}

/// Files of the audits, each with the steps that fail, and why.
const STUCK: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers: [{name: api, image: nginx, resources: {requests: {cpu: 100m}}}]
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: api}}}]}}
";

/// Zones never differ by more than one pod: after a zone is lost, its pod has no place.
const SPREAD: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx}]
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [pod-template-hash]}]
";

const BUDGET: &str = "
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 4, selector: {matchLabels: {app: web}}}
";

const QUOTA: &str = "
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: '2'}}}
";

/// The verdicts on a story's steps, and the reasons of failures.
fn verdicts(args: &str, files: &str, exit: i32) -> Vec<(String, String)> {
    let run = strew(&format!("simulate - -o json {args}"))
        .stdin(files.to_owned())
        .assert()
        .code(exit);
    let report = json(&run);
    let steps = only_run(&report)["steps"].as_array().unwrap().iter();
    let verdicts = steps.map(|step| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&step["verdict"]), text(&step["why"][0]))
    });
    verdicts.collect()
}

/// No node is left for the pod of the new template, and no old pod may go.
#[test]
fn a_rollout_that_does_not_finish_is_a_failure() {
    let steps = verdicts("--nodes 3", STUCK, 1);
    let of: Vec<&str> = steps.iter().map(|(verdict, _)| verdict.as_str()).collect();
    assert_eq!(of[..2], ["held", "broken"]);
    assert_eq!(
        steps[1].1,
        "rolledOut: {}: deployment/api: 1 of 3 updated, 4 pods for 3 replicas, 1 Pending (0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules)"
    );
    let run = strew("simulate - --nodes 3").stdin(STUCK).assert().code(1);
    let text = stdout(&run);
    for part in [
        "\n  failed: deployment/api: 1 of 3 updated, 4 pods for 3 replicas",
        "\nsteps: deploy ok, rollout failed (all 20 seeds), ",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

/// A pod of an unknown kind, and a ReplicaSet of one, are judged by themselves.
#[test]
fn pods_of_kinds_that_nobody_models_are_judged() {
    let owner = |kind: &str| {
        format!(
            "ownerReferences: [{{apiVersion: example.com/v1, kind: {kind}, name: g, uid: g-1, controller: true}}]"
        )
    };
    let spec = "{containers: [{name: c, image: i, resources: {requests: {cpu: '99'}}}]}";
    let pod = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: game, {}}}, spec: {spec}}}",
        owner("GameServerSet")
    );
    let set = format!(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: r, {}}}, spec: {{replicas: 1, selector: {{matchLabels: \
         {{app: r}}}}, template: {{metadata: {{labels: {{app: r}}}}, spec: {spec}}}}}}}",
        owner("Rollout")
    );
    let steps = verdicts("--nodes 1 --until deploy", &format!("{pod}\n---\n{set}"), 1);
    assert_eq!(
        steps[0].1,
        "rolledOut: {}: replicaset/r: 0 of 1 ready, 1 Pending (0/1 nodes are available: 1 Insufficient cpu); \
         pod/game: Pending (0/1 nodes are available: 1 Insufficient cpu)"
    );
}

/// A lost zone may leave no room for all pods: that is a warning, unless a budget is broken or no pod is left.
#[test]
fn a_loss_fails_where_a_budget_is_broken() {
    let steps = verdicts("", SPREAD, 0);
    assert!(
        steps.iter().all(|(verdict, _)| verdict == "held"),
        "{steps:?}"
    );
    let budget = BUDGET.replace("minAvailable: 4", "minAvailable: 7");
    let steps = verdicts("", &format!("{SPREAD}{budget}"), 1);
    let (verdict, why) = &steps[2];
    assert_eq!(verdict, "broken");
    assert!(
        why.starts_with(
            "survives: {}: deployment/web is LOST: 6 of 8 ready for as long as it is away"
        ),
        "{why}"
    );
    assert!(why.contains("budget web: 6 of 7 healthy pods"), "{why}");
    let others = steps.iter().filter(|(verdict, _)| verdict == "held");
    assert_eq!(others.count(), 4, "{steps:?}");
}

/// Pods that are refused at creation are reported with the API server's reason.
#[test]
fn pods_that_are_refused_are_a_failure() {
    let steps = verdicts("--nodes 3 --until deploy", &format!("{STUCK}{QUOTA}"), 1);
    let (verdict, why) = &steps[0];
    assert_eq!(verdict, "broken");
    assert!(
        why.starts_with("rolledOut: {}: deployment/api: 2 of 3 updated, 2 of 3 pods made, 2 of 3 ready, creation refused: "),
        "{why}"
    );
    assert!(why.contains("exceeded quota: q"), "{why}");
}

/// Other steps than these may fail.
#[test]
fn the_steps_that_decide_are_chosen() {
    verdicts("--nodes 3 --fail-on deploy,scale", STUCK, 0);
    verdicts("--nodes 3 --fail-on rollout", STUCK, 1);
    let run = strew("simulate - --fail-on rolout").stdin(STUCK);
    let said = stderr(&run.assert().code(2));
    assert!(
        said.contains("steps are deploy, rollout, lose, restore, scale"),
        "{said}"
    );
}

/// A profile of another name decides for none of the pods.
#[test]
fn pods_of_a_scheduler_that_is_not_there_are_a_failure() {
    let files = STUCK.replace(
        "spec:\n      containers",
        "spec:\n      schedulerName: mine\n      containers",
    );
    let steps = verdicts("--nodes 3 --until deploy", &files, 1);
    assert!(
        steps[0]
            .1
            .contains("0 of 3 ready, 3 left to scheduler mine"),
        "{steps:?}"
    );
}

/// A full node, and a dump with a pod that waits for it.
const DUMP: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, uid: node}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: old, namespace: default, uid: r}
spec:
  replicas: 2
  selector: {matchLabels: {app: old}}
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}
status: {replicas: 2, readyReplicas: 1, availableReplicas: 1, observedGeneration: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: old-1, namespace: default, uid: p1, labels: {app: old}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: old, uid: r, controller: true}]}
spec: {nodeName: n1, containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}
status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Pod
metadata: {name: old-2, namespace: default, uid: p2, labels: {app: old}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: old, uid: r, controller: true}]}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/1 nodes are available: 1 Insufficient cpu.'}]}
";

/// New objects beside a dump are reported first and decide; pods that were Pending in the dump are one line.
#[test]
fn a_new_workload_beside_a_dump_decides() {
    let new = |cpu: &str| {
        format!(
            "{DUMP}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: new}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: new}}}}
  template:
    metadata: {{labels: {{app: new}}}}
    spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}
"
        )
    };
    let run = strew("simulate - --until deploy")
        .stdin(new("1"))
        .assert()
        .code(0);
    let text = stdout(&run);
    assert!(
        text.starts_with("20 seeds played; shown: seed 0\n\ndeployment/new  1 replica: on n1\n"),
        "{text}"
    );
    for part in [
        "As before: 1 workload with 1 pod on nodes and 1 Pending (--all shows them)",
        "3 pods of 2 workloads on 1 node: 1 were there, 1 placed, 0 Pending, 1 Pending as before",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let steps = verdicts("--until deploy", &new("2"), 1);
    assert_eq!(
        steps[0].1,
        "rolledOut: {}: deployment/new: 0 of 1 ready, 1 Pending (0/1 nodes are available: 1 Insufficient cpu); not judged: 1 that were so from the start"
    );
    // For the dump alone, its own pods are judged.
    let steps = verdicts("--until deploy", DUMP, 1);
    assert_eq!(
        steps[0].1,
        "rolledOut: {}: replicaset/old: 1 of 2 ready, 1 Pending (0/1 nodes are available: 1 Insufficient cpu)"
    );
}
