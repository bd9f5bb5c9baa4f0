use strew_apiserver::object::Object;
use strew_manifest::read::{Sources, read};
use strew_model::{Instant, Interner};
use strew_scheduler::Profile;

use crate::facts::Facts;
use crate::moment::Frame;
use crate::values::{self, ClusterValues};
use crate::workload::Workloads;

const DUMP: &str = r#"
{apiVersion: v1, kind: Node, metadata: {name: a1, uid: n1, labels: {zone: a}}, status: {allocatable: {cpu: "4", memory: 1Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b1, uid: n2, labels: {zone: b}}, spec: {unschedulable: true}, status: {allocatable: {cpu: "4", memory: 1Gi, pods: "10"}, conditions: [{type: Ready, status: Unknown}]}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: shop, uid: r1}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: s1}, spec: {selector: {app: web}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop, uid: b1}, spec: {maxUnavailable: 50%, selector: {matchLabels: {app: web}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: data, uid: v1}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], claimRef: {namespace: shop, name: data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop, uid: h1}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: web}, maxReplicas: 9}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, uid: p1, labels: {app: web, pod-template-hash: old}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]}
spec:
  nodeName: a1
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-2, namespace: shop, uid: p2, labels: {app: web, pod-template-hash: new}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
  topologySpreadConstraints: [{maxSkew: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/2 nodes}]}
"#;

pub(crate) fn values() -> ClusterValues {
    let mut sources = Sources::new();
    sources.add("dump.yaml", DUMP);
    let objects = read(&sources).objects.into_iter();
    let objects: Vec<Object> = objects.map(|l| Object::of_wire(l.object)).collect();
    let names = Interner::new();
    let profiles = [Profile::default()];
    let facts = Facts::of_objects(&objects, Instant(0), &names, &profiles);
    let mut frame = Frame {
        names,
        profiles: profiles.to_vec(),
        workloads: Workloads::default(),
        keys: Vec::new(),
    };
    values::of(facts.moment(), &mut frame)
}

#[test]
fn a_dump_has_its_workloads_and_what_belongs_to_them() {
    let values = values();
    let web = &values.workloads[0];
    assert_eq!((web.kind.as_str(), web.members.len()), ("ReplicaSet", 2));
    assert_eq!(web.members[0].node.as_deref(), Some("a1"));
    assert_eq!(web.members[1].pending.as_deref(), Some("0/2 nodes"));
    let endpoints = values.services[0].endpoints.iter();
    let endpoints: Vec<_> = endpoints.map(|e| (&*e.pod, e.node.as_deref())).collect();
    assert_eq!(endpoints, [("web-1", Some("a1"))]);
    assert_eq!(values.services[0].not_ready, ["web-2"]);
    let budget = &values.budgets[0];
    assert_eq!(budget.max_unavailable.as_deref(), Some("50%"));
    assert_eq!((budget.pods.len(), budget.healthy), (2, 1));
    assert_eq!(values.volumes[0].nodes, Some(vec!["b1".to_owned()]));
    assert_eq!(values.volumes[0].claim.as_deref(), Some("shop/data"));
    assert_eq!(
        (values.autoscalers[0].min, values.autoscalers[0].max),
        (1, 9)
    );
}

#[test]
fn what_is_free_is_counted_by_node_and_by_domain() {
    let values = values();
    assert_eq!(values.nodes[0].free["cpu"], 3000);
    assert_eq!(values.nodes[0].free["pods"], 9);
    let zones = values.domains.iter();
    let zones: Vec<_> = zones
        .map(|d| (d.value.as_str(), d.free.get("cpu").copied()))
        .collect();
    // Nothing can go to a node that is cordoned.
    assert_eq!(zones, [("a", Some(3000)), ("b", None)]);
}

#[test]
fn a_node_is_ready_unless_its_condition_says_otherwise() {
    let ready: Vec<bool> = values().nodes.iter().map(|node| node.ready).collect();
    assert_eq!(ready, [true, false]);
}

#[test]
fn two_revisions_with_different_constraints_are_two() {
    let values = values();
    let spreads = values.workloads[0].by_revision.iter();
    let of = |of: &values::RevisionSpread| {
        let revisions: Vec<String> = of.revisions.iter().cloned().collect();
        let constraint = of.spread.constraint.as_ref();
        (revisions.join(","), constraint.map_or(0, |c| c.max_skew))
    };
    let constraints: Vec<_> = spreads.map(of).collect();
    assert_eq!(constraints, [("old".to_owned(), 1), ("new".to_owned(), 3)]);
}

#[test]
fn values_can_go_to_another_thread() {
    let values = values();
    let copy = values.clone();
    let there = std::thread::spawn(move || copy);
    assert_eq!(there.join().ok(), Some(values));
}
