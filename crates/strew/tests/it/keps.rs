//! KEP-1258, KEP-3022 and KEP-3243 from the user's side: `explain` and `simulate` with gates, configurations and dumps.

use std::path::PathBuf;

use serde_json::Value;

use crate::{json, stderr, stdout, strew};

/// Nodes `name zone` of one size, with the labels of real ones.
fn nodes(picture: &[(&str, &str)]) -> String {
    let node = |(name, zone): &(&str, &str)| {
        format!(
            "---
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, topology.kubernetes.io/zone: {zone}}}}}
status: {{allocatable: {{cpu: '8', memory: 32Gi, pods: '110'}}, conditions: [{{type: Ready, status: 'True'}}]}}
"
        )
    };
    picture.iter().map(node).collect()
}

/// A pod of a dump with these labels and spec; on a node, or on none (`-`).
fn pod(name: &str, labels: &str, owner: &str, node: &str, spec: &str) -> String {
    let owner = match owner.split_once('/') {
        Some((kind, owner)) => format!(
            ", ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {owner}, uid: uid-{owner}, controller: true}}]"
        ),
        None => String::new(),
    };
    let (place, phase) = match node {
        "-" => (String::new(), "Pending"),
        node => (format!(", nodeName: {node}"), "Running"),
    };
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, uid: uid-{name}, labels: {{{labels}}}{owner}}}
spec: {{containers: [{{name: c, image: 'x:1'}}]{place}{spec}}}
status: {{phase: {phase}}}
"
    )
}

/// A ReplicaSet of a dump.
fn replica_set(name: &str, labels: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}, namespace: default, uid: uid-{name}}}
spec:
  replicas: 7
  selector: {{matchLabels: {{{labels}}}}}
  template: {{metadata: {{labels: {{{labels}}}}}, spec: {{containers: [{{name: c, image: 'x:1'}}]}}}}
"
    )
}

const FOUR: [(&str, &str); 4] = [("a", "z1"), ("b", "z1"), ("n-x", "z2"), ("n-y", "z2")];

fn constraint(key: &str, more: &str) -> String {
    format!("{{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: DoNotSchedule, {more}}}")
}

/// Two pods on `a`, one on `b`, three on `n-y`, none on `n-x`, all with these labels; `p` waits.
fn web(owner: &str, labels: &str, own: &str, spec: &str) -> String {
    let on = ["a", "a", "b", "n-y", "n-y", "n-y"];
    let placed = on.iter().enumerate();
    let placed = placed.map(|(i, node)| pod(&format!("e{i}"), labels, owner, node, ""));
    let placed: String = placed.collect();
    nodes(&FOUR) + &placed + &pod("p", own, owner, "-", spec)
}

/// A scheduler's configuration in a file of its own.
fn config(name: &str, profile: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("strew-keps-{}-{name}.yaml", std::process::id()));
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- {profile}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

const DEFAULT_WITH_KEYS: &str = "pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev]}]}}]";

#[track_caller]
fn explained(args: &str, files: &str) -> String {
    let run = strew(&format!("explain {args} -")).stdin(files.to_owned());
    flat(&stdout(&run.assert().code(0)))
}

/// Without line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A plugin without its score or filter, or disabled: no panic, and the disabled part is named.
#[test]
fn a_plugin_that_is_off_is_named() {
    let own_hard = format!(
        ", topologySpreadConstraints: [{}]",
        constraint(
            "kubernetes.io/hostname",
            "labelSelector: {matchLabels: {app: web}}"
        )
    );
    let bare = web("ReplicaSet/web", "app: web", "app: web", "") + &replica_set("web", "app: web");
    let hard = web("", "app: web", "app: web", &own_hard);
    let off = config(
        "off",
        "plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}",
    );
    let no_filter = config(
        "no-filter",
        "plugins: {filter: {disabled: [{name: PodTopologySpread}]}}",
    );
    let no_score = config(
        "no-score",
        "plugins: {score: {disabled: [{name: PodTopologySpread}]}}",
    );
    let no_pre_score = config(
        "no-pre-score",
        "plugins: {score: {disabled: [{name: PodTopologySpread}]}, preScore: {disabled: [{name: PodTopologySpread}]}}",
    );
    let star = config(
        "star",
        "plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}}",
    );
    let cases = [
        (
            &bare,
            &off,
            "PodTopologySpread is off",
            "- default constraint 1: kubernetes.io/hostname, maxSkew 3, ScheduleAnyway",
        ),
        (
            &hard,
            &off,
            "PodTopologySpread is off",
            "- constraint 1: kubernetes.io/hostname, maxSkew 1, DoNotSchedule",
        ),
        (
            &hard,
            &no_filter,
            "PodTopologySpread does not filter",
            "- constraint 1: kubernetes.io/hostname, maxSkew 1, DoNotSchedule",
        ),
        (
            &bare,
            &no_score,
            "PodTopologySpread does not score",
            "- default constraint 2: topology.kubernetes.io/zone, maxSkew 5, ScheduleAnyway",
        ),
        (
            &bare,
            &no_pre_score,
            "PodTopologySpread does not score",
            "leaves out the plugin's score. Without effect:",
        ),
        (
            &bare,
            &star,
            "PodTopologySpread does not score",
            "leaves out the plugin's score. Without effect:",
        ),
    ];
    for (files, config, heading, line) in cases {
        let config = config.display();
        let text = explained(&format!("pod/p --config {config}"), files);
        assert!(text.contains(heading) && text.contains(line), "{text}");
        assert!(!text.contains("No topology spread constraint"), "{text}");
        let run = strew(&format!("simulate - --until deploy --config {config}"));
        // The verdict on the step does not matter: the pods have no condition that says that they are ready.
        let text = stdout(&run.stdin(files.to_owned()).assert());
        assert!(!text.contains("(cluster default)"), "{text}");
    }
    let run = strew(&format!(
        "simulate - --until deploy -o json --config {}",
        off.display()
    ));
    let report = json(&run.stdin(hard).assert());
    assert!(report.to_string().contains("\"withoutEffect\":true"));
}

/// matchLabelKeys of default constraints: without effect as in kube-scheduler, which is reported; merged with `--compat
/// strew`, unless the gate is off; wrong ones are refused.
#[test]
fn match_label_keys_of_defaults() {
    let files = web(
        "ReplicaSet/web",
        "app: web, rev: '1'",
        "app: web, rev: '2'",
        "",
    ) + &replica_set("web", "app: web");
    let config = config("keys", DEFAULT_WITH_KEYS);
    let explain = |words: &str| {
        let args = format!("explain pod/p - --config {} {words}", config.display());
        strew(&args).stdin(files.clone()).assert().code(0)
    };
    let as_kubernetes = explain("");
    let text = flat(&stdout(&as_kubernetes));
    assert!(
        text.contains("counts pods with app=web; deduced from"),
        "{text}"
    );
    let said = stderr(&as_kubernetes);
    assert!(
        said.contains("matchLabelKeys of defaultConstraints have no effect"),
        "{said}"
    );
    let ours = explain("--compat strew");
    let text = flat(&stdout(&ours));
    assert!(
        text.contains("counts pods with app=web,rev=2; matchLabelKeys merged rev=2; deduced from"),
        "{text}"
    );
    assert!(!stderr(&ours).contains("no effect"), "{}", stderr(&ours));
    let text = flat(&stdout(&explain(
        "--compat strew --feature-gates MatchLabelKeysInPodTopologySpread=false",
    )));
    assert!(
        text.contains("counts pods with app=web; deduced from"),
        "{text}"
    );
    let bad = self::config(
        "bad-keys",
        &DEFAULT_WITH_KEYS.replace("[rev]", "['bad key!']"),
    );
    let run = strew(&format!("explain pod/p - --config {}", bad.display()));
    let text = stderr(&run.stdin(files).assert().code(2));
    assert!(
        text.contains("defaultConstraints[0].matchLabelKeys[0]: Invalid value: \"bad key!\""),
        "{text}"
    );
}

/// With the gate off, nothing is merged, and no text says so. A pod without a selector has nothing to merge into.
#[test]
fn keys_that_were_not_merged_are_not_told_as_merged() {
    let with = |selector: &str| {
        let own = format!(
            ", topologySpreadConstraints: [{}]",
            constraint(
                "kubernetes.io/hostname",
                &format!("{selector}matchLabelKeys: [rev]")
            )
        );
        web("", "app: web, rev: '1'", "app: web, rev: '2'", &own)
    };
    let stored = with("labelSelector: {matchLabels: {app: web}}, ");
    let text = explained("pod/p", &stored);
    assert!(
        text.contains("app=web,rev=2; matchLabelKeys merged rev=2"),
        "{text}"
    );
    let off = "--feature-gates MatchLabelKeysInPodTopologySpread=false";
    let text = explained(&format!("pod/p {off}"), &stored);
    assert!(text.contains("counts pods with app=web minimum"), "{text}");
    assert!(!text.contains("matchLabelKeys"), "{text}");
    let run = strew(&format!("simulate - --until deploy {off}"));
    let text = stdout(&run.stdin(stored).assert());
    assert!(!text.contains("matchLabelKeys"), "{text}");
    let text = explained("pod/p", &with(""));
    assert!(text.contains("counts no pod "), "{text}");
    assert!(!text.contains("matchLabelKeys"), "{text}");
}

/// Three nodes, minDomains 4: the gate is off from minute 3 to 12, and `--at` uses the state at that time.
#[test]
fn gates_that_a_run_switches_hold_for_the_explanation() {
    let scenario = "
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: gates}
spec:
  seeds: 1
  nodeGroups: [{name: n, size: 3, template: {metadata: {labels: {topology.kubernetes.io/zone: z}}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}}}]
  until: 20m
  timeline:
  - at: 1m
    create:
      apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: four}
      spec:
        replicas: 4
        selector: {matchLabels: {app: four}}
        template:
          metadata: {labels: {app: four}}
          spec:
            containers: [{name: c, image: 'x:1'}]
            topologySpreadConstraints: [{maxSkew: 1, minDomains: 4, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: four}}}]
  - {at: 3m, gates: {MinDomainsInPodTopologySpread: false}}
  - {at: 4m, gates: {DefaultPodTopologySpread: false}}
  - {at: 12m, gates: {MinDomainsInPodTopologySpread: true, DefaultPodTopologySpread: true}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: 'x:1'}]}}
";
    let at = |target: &str, at: &str| {
        let run = strew(&format!("explain {target} - --at {at} -o json")).stdin(scenario);
        json(&run.assert().code(0))
    };
    let min_domains = |value: &Value| value["constraints"]["hard"][0]["minDomains"].clone();
    let before = at("replicaset/four", "2m");
    assert_eq!(
        (&before["standing"], min_domains(&before)),
        (&"Pending".into(), 4.into())
    );
    // It is placed by then; decided again, it would find a node.
    let off = at("replicaset/four", "10m");
    assert_eq!(
        (&off["standing"], min_domains(&off)),
        (&"Placed".into(), Value::Null)
    );
    assert_ne!(off["wouldGoTo"], Value::Null);
    let after = at("replicaset/four", "15m");
    assert_eq!(min_domains(&after), 4);
    let origin = |at_text: &str| at("deployment/web", at_text)["constraints"]["origin"].clone();
    assert_eq!(
        [origin("2m"), origin("5m"), origin("15m")],
        ["SystemDefaults", "None", "SystemDefaults"]
    );
}

/// Of two nodes with 0 pods one is tainted: without it the minimum is the same, so it does not hold the minimum down.
#[test]
fn what_holds_the_minimum_down_does() {
    let tainted = nodes(&[("x1", "z2")]).replace(
        "\nstatus:",
        "\nspec: {taints: [{key: k, value: v, effect: NoSchedule}]}\nstatus:",
    );
    let spread = format!(
        ", topologySpreadConstraints: [{}]",
        constraint(
            "kubernetes.io/hostname",
            "labelSelector: {matchLabels: {app: web}}"
        )
    );
    let base = nodes(&[("a", "z1")]) + &tainted + &pod("e1", "app: web", "", "a", "");
    let waiting = pod("p", "app: web", "", "-", &spread);
    let holds =
        "1 domain exists only through nodes that the pod cannot use, and holds the minimum down";
    let text = explained("pod/p", &(nodes(&[("b", "z1")]) + &base + &waiting));
    assert!(!text.contains("holds the minimum down"), "{text}");
    let on_b = pod("e2", "app: web", "", "b", "");
    let text = explained("pod/p", &(nodes(&[("b", "z1")]) + &base + &on_b + &waiting));
    assert!(text.contains(holds), "{text}");
}

/// The controller of a pod is not among the files: it is named, and so are the objects that a dump needs.
#[test]
fn an_owner_that_is_not_in_the_dump_is_named() {
    let files = web("StatefulSet/web", "app: web", "app: web", "");
    let text = explained("pod/p", &files);
    assert!(
        text.contains("its StatefulSet \"web\" is not there"),
        "{text}"
    );
    assert!(text.contains("nodes,pods,svc,deploy,rs,sts,rc"), "{text}");
    assert!(!text.contains("it has no controller"), "{text}");
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: default, uid: s}
spec: {selector: {app: web}}
";
    let text = explained("pod/p", &(files + service));
    let narrowed = "deduced from Service s; its StatefulSet \"web\" is not there, and its selector would narrow it";
    assert!(text.contains(narrowed), "{text}");
    let readme = std::fs::read_to_string(crate::root().join("README.md")).unwrap();
    assert!(readme.contains("kubectl get nodes,pods,deploy,rs,sts,"));
}

/// A dump is explained without playing anything. `--at` plays.
#[test]
fn a_dump_is_explained_as_it_is() {
    // Its ReplicaSet asks for fewer pods: after playing, the pod would be gone.
    let one = replica_set("web", "app: web").replace("replicas: 7", "replicas: 1");
    let files = web("ReplicaSet/web", "app: web", "app: web", "") + &one;
    let run = strew("explain pod/p - -o json").stdin(files.clone());
    let explanation = json(&run.assert().code(0));
    assert_eq!(explanation["moment"], "files");
    assert_eq!(explanation["standing"], "WouldGo");
    let run = strew("explain pod/p - --at 5m").stdin(files);
    assert!(stderr(&run.assert().code(2)).contains("there is no pod \"p\""));
    // Objects that are to be created are played, as always.
    let manifest = pod("q", "app: web", "", "-", "").replace(", uid: uid-q", "");
    let run = strew("explain pod/q - -o json").stdin(nodes(&FOUR) + &manifest);
    assert_eq!(json(&run.assert().code(0))["moment"], "decision");
}

/// Room that is reserved for a nominated pod is a cause, with the pod's name.
#[test]
fn room_for_a_nominated_pod_is_a_cause() {
    let big =
        ", priority: 100, containers: [{name: c, image: 'x:1', resources: {requests: {cpu: '6'}}}]";
    let with = |name: &str, spec: &str| {
        pod(name, "app: x", "", "-", spec).replace("containers: [{name: c, image: 'x:1'}], ", "")
    };
    let urgent =
        with("urgent", big).replace("phase: Pending", "phase: Pending, nominatedNodeName: a");
    let waiting = with("p", &big.replace("priority: 100, ", ""));
    let files = nodes(&[("a", "z1")]) + &urgent + &waiting;
    let run = strew("explain pod/p - -o json").stdin(files.clone());
    let explanation = json(&run.assert().code(0));
    assert_eq!(explanation["standing"], "Pending");
    let text = explained("pod/p", &files);
    assert!(text.contains("default/urgent"), "{text}");
    assert!(text.contains("nominated"), "{text}");
}

/// The cluster's record is shown beside the verdict; if they differ, with the possible reasons.
#[test]
fn what_is_recorded_stands_beside_the_verdict() {
    let said = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    let with = |cpu: &str| {
        let spec = format!(
            ", containers: [{{name: c, image: 'x:1', resources: {{requests: {{cpu: '{cpu}'}}}}}}]"
        );
        let condition = format!(
            "phase: Pending, conditions: [{{type: PodScheduled, status: 'False', reason: Unschedulable, lastTransitionTime: '2026-01-01T00:00:00Z', message: '{said}'}}]"
        );
        let pod = pod("p", "app: x", "", "-", &spec);
        let pod = pod.replace("containers: [{name: c, image: 'x:1'}], ", "");
        let event = format!(
            "---
apiVersion: v1
kind: Event
metadata: {{name: p.1, namespace: default, uid: e1}}
involvedObject: {{kind: Pod, namespace: default, name: p}}
reason: FailedScheduling
message: '{said}'
count: 12
lastTimestamp: '2026-01-01T00:10:00Z'
"
        );
        nodes(&[("a", "z1")]) + &pod.replace("phase: Pending", &condition) + &event
    };
    let text = explained("pod/p", &with("9"));
    assert!(text.contains("Recorded in the cluster PodScheduled False (Unschedulable) since 2026-01-01T00:00:00Z: 0/1"), "{text}");
    assert!(
        text.contains("event FailedScheduling x12, last 2026-01-01T00:10:00Z: 0/1"),
        "{text}"
    );
    assert!(text.contains("It says what strew says."), "{text}");
    let run = strew("explain pod/p - -o json").stdin(with("1"));
    let explanation = json(&run.assert().code(0));
    assert_eq!(explanation["standing"], "WouldGo");
    let recorded = &explanation["recorded"];
    assert_eq!(recorded["agrees"], false);
    assert_eq!(recorded["events"][0]["count"], 12);
    let why = recorded["mayDifferSince"].to_string();
    for cause in ["have changed since", "back-off", "not running", "--config"] {
        assert!(why.contains(cause), "{why}");
    }
}

/// `install scheduler --image=strew:0.1.0 --feature-gates`: checked, and passed to the scheduler.
#[test]
fn an_installed_scheduler_has_its_gates() {
    let gates = "MinDomainsInPodTopologySpread=false";
    let run = strew(&format!(
        "install scheduler --image=strew:0.1.0 --feature-gates {gates}"
    ))
    .assert()
    .code(0);
    assert!(
        stdout(&run).contains(&format!("--feature-gates={gates}")),
        "{}",
        stdout(&run)
    );
    let run = strew("install scheduler --image=strew:0.1.0 --feature-gates MinDomain=false")
        .assert()
        .code(2);
    assert!(
        stderr(&run).contains("--feature-gates: "),
        "{}",
        stderr(&run)
    );
}

/// A pod that is refused at creation is reported by its generated name. Templates of files are checked before a run
/// begins; the template of a step is not.
#[test]
fn a_refused_pod_is_told_by_its_generated_name() {
    let files = "
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: refused}
spec:
  seeds: 1
  nodeGroups: [{name: n, size: 1, template: {status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}}}]
  timeline:
  - at: 1s
    create:
      apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: web}
      spec:
        replicas: 1
        selector: {matchLabels: {foo: bar}}
        template:
          metadata: {labels: {foo: bar}}
          spec:
            containers: [{name: c, image: 'x:1'}]
            topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {foo: bar}}, matchLabelKeys: [foo]}]
  - {at: 1m, expect: [{events: {of: replicaset/web, reason: FailedCreate, contains: 'Pod \"web-', count: {min: 1}}}]}
";
    strew("simulate -").stdin(files).assert().code(0);
}
