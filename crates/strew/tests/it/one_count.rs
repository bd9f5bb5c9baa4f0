//! One rule says which domains count for a constraint: a report, the largest skew of a run and an expectation have the
//! same numbers.

use serde_json::Value;

use crate::{first_step, json, only_run, stdout, strew};

const ZONE: &str = "topology.kubernetes.io/zone";

/// Zones a, b and c of one node each; each case has its own last node.
const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n-a, labels: {topology.kubernetes.io/zone: a, kubernetes.io/hostname: n-a}}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n-b, labels: {topology.kubernetes.io/zone: b, kubernetes.io/hostname: n-b}}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}
---
";

struct Case {
    name: &'static str,
    node: &'static str,
    constraints: &'static str,
    skew: i64,
}

const CASES: [Case; 3] = [
    Case {
        name: "a tainted zone does not count where taints are honoured",
        node: "{apiVersion: v1, kind: Node, metadata: {name: n-c, labels: {topology.kubernetes.io/zone: c, kubernetes.io/hostname: n-c}}, spec: {taints: [{key: full, effect: NoSchedule}]}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}",
        constraints: "[{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor, labelSelector: {matchLabels: {app: web}}}]",
        skew: 0,
    },
    Case {
        name: "it counts where they are not",
        node: "{apiVersion: v1, kind: Node, metadata: {name: n-c, labels: {topology.kubernetes.io/zone: c, kubernetes.io/hostname: n-c}}, spec: {taints: [{key: full, effect: NoSchedule}]}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}",
        constraints: "[{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]",
        skew: 2,
    },
    Case {
        name: "a node without the key of another hard constraint does not count",
        node: "{apiVersion: v1, kind: Node, metadata: {name: n-c, labels: {topology.kubernetes.io/zone: c}}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}",
        constraints: "[{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}, {maxSkew: 4, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]",
        skew: 0,
    },
];

impl Case {
    fn manifests(&self) -> String {
        let Self {
            node, constraints, ..
        } = self;
        format!(
            "{NODES}{node}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 4
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c, image: i, resources: {{requests: {{cpu: 100m}}}}}}]
      topologySpreadConstraints: {constraints}
"
        )
    }
}

/// On the way, two zones that fill up differ by at most one pod.
#[track_caller]
fn check_largest(largest: &Value, case: &Case) {
    let largest = largest.as_i64().unwrap();
    let possible = case.skew..=case.skew.max(1);
    assert!(possible.contains(&largest), "{}: {largest}", case.name);
}

/// The skew by zone at the end, and the largest of the run.
fn skews<'a>(spreads: &'a Value, largest: &'a Value) -> (&'a Value, &'a Value) {
    let by_zone = |list: &'a Value| {
        let all = list.as_array().unwrap();
        &all.iter().find(|spread| spread["by"] == ZONE).unwrap()["skew"]
    };
    (by_zone(spreads), by_zone(largest))
}

#[test]
fn the_story_has_one_count() {
    for case in &CASES {
        let run = strew("simulate - --until deploy -o json").stdin(case.manifests());
        let report = json(&run.assert().code(0));
        let spreads = &only_run(&report)["steps"][0]["workloads"][0]["spread"];
        let (end, largest) = skews(spreads, &only_run(&report)["maxSkew"]);
        assert_eq!(*end, case.skew, "{}", case.name);
        check_largest(largest, case);
    }
}

#[test]
fn a_scenario_has_one_count() {
    for case in &CASES {
        let expected = case.skew;
        let scenario = format!(
            "{}---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {{name: counted}}
spec:
  timeline: [{{at: 2m, expect: [{{spread: {{of: deployment/web, by: {ZONE}, skew: {expected}}}}}]}}]
",
            case.manifests()
        );
        let run = strew("simulate - -o json").stdin(scenario);
        let report = json(&run.assert().code(0));
        let run = &report["scenarios"][0]["variants"][0]["runs"][0];
        let spreads = &run["steps"][0]["workloads"][0]["spread"];
        let (end, largest) = skews(spreads, &run["maxSkew"]);
        assert_eq!(*end, expected, "{}", case.name);
        check_largest(largest, case);
    }
}

/// The pods of subsets have a node affinity each: the domains that count are those of all pods together.
#[test]
fn subsets_are_counted_together() {
    let node = |zone: &str| {
        NODES
            .split("---")
            .find(|node| node.contains(&format!("zone: {zone},")))
            .unwrap()
            .to_owned()
    };
    let manifests = |constraints: &str| {
        let (a, b) = (node("a"), node("b"));
        format!(
            "{a}---{b}---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 6
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c, image: i, resources: {{requests: {{cpu: 100m}}}}}}]
      topologySpreadConstraints: {constraints}
---
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {{name: web}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  subsets:
  - {{name: a, maxReplicas: 5, requiredNodeSelectorTerm: {{matchExpressions: [{{key: {ZONE}, operator: In, values: [a]}}]}}}}
  - {{name: b, requiredNodeSelectorTerm: {{matchExpressions: [{{key: {ZONE}, operator: In, values: [b]}}]}}}}
"
        )
    };
    let hard = format!(
        "[{{maxSkew: 1, topologyKey: {ZONE}, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: web}}}}}}]"
    );
    for constraints in ["[]", &hard] {
        let run = strew("simulate - --until deploy -o json").stdin(manifests(constraints));
        let report = json(&run.assert().code(0));
        let spreads = &only_run(&report)["steps"][0]["workloads"][0]["spread"];
        let (end, largest) = skews(spreads, &only_run(&report)["maxSkew"]);
        assert_eq!(
            (end, largest),
            (&Value::from(4), &Value::from(4)),
            "{constraints}"
        );
        let scenario = format!(
            "{}---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {{name: counted}}
spec:
  always: [{{spread: {{of: deployment/web, by: {ZONE}, max: 4}}}}]
  timeline: [{{rest: {{}}, expect: [{{spread: {{of: deployment/web, by: {ZONE}, skew: 4}}}}]}}]
",
            manifests(constraints)
        );
        strew("simulate -").stdin(scenario).assert().code(0);
    }
    let text = stdout(
        &strew("simulate - --until deploy")
            .stdin(manifests(&hard))
            .assert()
            .code(0),
    );
    assert!(
        text.contains("by zone: skew 4, DoNotSchedule maxSkew 1"),
        "{text}"
    );
    // The scheduler limits nothing here: each pod counts one zone only.
    assert!(!text.contains("exceeded"), "{text}");
}

/// A selector with a typo counts nothing: report and text have both numbers, with a warning.
#[test]
fn a_constraint_that_counts_others_is_told_with_the_own_pods() {
    let manifests = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 100m}}}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: wbe}}
";
    let simulate = |more: &str| {
        let run = strew(&format!("simulate - --until deploy {more}")).stdin(manifests);
        run.assert().code(0)
    };
    let report = json(&simulate("-o json"));
    let spread = &first_step(&report)["workloads"][0]["spread"][0];
    assert_eq!(spread["skew"], 0);
    let own = spread["own"]["counts"].as_object().unwrap();
    let total: i64 = own.values().filter_map(serde_json::Value::as_i64).sum();
    assert_eq!((own.len(), total), (3, 6));
    let warning = "the constraint counts none of the 6 pods of the workload, so it does not spread them: its selector is app=wbe";
    assert_eq!(spread["warning"], warning);
    let text = stdout(&simulate(""));
    assert!(
        text.contains("    the workload's own pods: skew "),
        "{text}"
    );
    assert!(
        text.contains(&format!("    warning: {warning}\n")),
        "{text}"
    );
}
