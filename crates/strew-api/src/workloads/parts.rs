//! What controllers that work step by step need of [`super::expand`]: one pod or ReplicaSet at a time.
//!
//! Nothing here gives a uid or a name: the API server does. What a controller *sends* is made.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use strew_model::Prng;

use super::eligibility::Eligibility;
use super::{WorkloadKind, daemon_set, deployment, job, name_of, names, stateful_set, template};

/// The reference of a controller: `controller` and `blockOwnerDeletion` are true. An owner without a uid gets one made of
/// its name.
pub fn owner_reference(kind: WorkloadKind, owner: &ObjectMeta) -> OwnerReference {
    template::owner_reference(kind, owner)
}

/// A pod of a template: its labels, annotations, finalizers and spec, the owner's namespace, and `generateName: OWNER-`.
/// Source: `GetPodFromTemplate`.
pub fn pod_from_template(
    kind: WorkloadKind,
    owner: &ObjectMeta,
    template: &PodTemplateSpec,
) -> Pod {
    let mut pod = template::pod_from_template(kind, owner, template);
    pod.metadata.generate_name = Some(format!("{}-", name_of(owner)));
    pod
}

/// Whether two templates are equal but for their label `pod-template-hash`: then there is no rollout.
pub fn same_template(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    template::canonical(a) == template::canonical(b)
}

/// The ReplicaSet that a Deployment makes for its present template: `NAME-HASH`, with all replicas.
/// `None` for a Deployment without a spec.
pub fn replica_set_of(deployment: &Deployment, hash: &str) -> Option<ReplicaSet> {
    let mut set = deployment::replica_set(deployment, deployment.spec.as_ref()?, hash);
    set.metadata.uid = None;
    Some(set)
}

/// A name as the API server makes it of `generateName: BASE`: the base, cut to 58 characters, and five of
/// `bcdfghjklmnpqrstvwxz2456789`.
pub fn generated_name(base: &str, dice: &mut Prng) -> String {
    names::generated(base, dice)
}

/// A pod of a StatefulSet with its ordinal: name, labels, host name and claims. Source: `newStatefulSetPod`.
/// `revision` is the name of the ControllerRevision whose template it is.
pub fn stateful_pod(
    set: &StatefulSet,
    template: &PodTemplateSpec,
    ordinal: usize,
    revision: &str,
) -> Pod {
    let kind = WorkloadKind::StatefulSet;
    let mut pod = template::pod_from_template(kind, &set.metadata, template);
    let name = format!("{}-{ordinal}", name_of(&set.metadata));
    stateful_set::complete(&mut pod, set, &name, ordinal, revision);
    pod.metadata.name = Some(name);
    pod
}

/// A pod of a Job: its labels, the finalizer `batch.kubernetes.io/job-tracking` and, if the Job is indexed, its index.
pub fn job_pod(job: &ObjectMeta, template: &PodTemplateSpec, index: Option<usize>) -> Pod {
    let kind = WorkloadKind::Job;
    let mut pod = template::pod_from_template(kind, job, template);
    let name = name_of(job);
    pod.metadata.generate_name = Some(match index {
        None => format!("{name}-"),
        Some(index) => format!("{name}-{index}-"),
    });
    job::complete(&mut pod, name, &template::uid_of(kind, job), index);
    pod
}

/// A DaemonSet's template with the tolerations that all daemon pods have; to be made once a sync.
/// Source: `AddOrUpdateDaemonPodTolerations`.
pub fn daemon_template(template: &PodTemplateSpec) -> PodTemplateSpec {
    daemon_set::with_tolerations(template)
}

/// Replaces a pod's required node affinity by the node's name. Source: `ReplaceDaemonSetPodNodeNameNodeAffinity`.
pub fn pin_to_node(pod: &mut Pod, node: &str) {
    daemon_set::pin(pod, node);
}

/// The node a daemon pod is on, else the one that it is pinned to.
pub fn node_of_daemon_pod(pod: &Pod) -> Option<&str> {
    daemon_set::node_of(pod)
}

/// What a DaemonSet wants on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonWish {
    /// A pod is made if there is none.
    pub should_run: bool,
    /// A pod that is there stays.
    pub should_continue: bool,
}

/// Whether nodes get a pod of one DaemonSet.
pub struct DaemonEligibility {
    template: PodTemplateSpec,
    eligibility: Eligibility,
}

impl DaemonEligibility {
    /// For a template as [`daemon_template`] gives it.
    pub fn new(template: PodTemplateSpec) -> Self {
        let eligibility = Eligibility::of(&template.spec.clone().unwrap_or_default());
        Self {
            template,
            eligibility,
        }
    }

    /// What is wanted on a node. Room, ports, spread and other pods do not count; taints against scheduling keep new
    /// pods away, only those against running take pods off. Source: `NodeShouldRunDaemonPod`.
    pub fn wish(&mut self, node: &Node) -> DaemonWish {
        let spec = self.template.spec.as_ref();
        let named = spec.and_then(|spec| spec.node_name.as_deref());
        let is_meant =
            named.is_none_or(|named| named.is_empty() || named == name_of(&node.metadata));
        if !is_meant || !self.eligibility.affinity_matches(node) {
            return DaemonWish {
                should_run: false,
                should_continue: false,
            };
        }
        DaemonWish {
            should_run: self.eligibility.tolerates(node),
            should_continue: self.eligibility.tolerates_running(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template() -> PodTemplateSpec {
        serde_json::from_value(json!({
            "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}, "finalizers": ["f"]},
            "spec": {"containers": [{"name": "c"}]},
        }))
        .unwrap()
    }

    fn owner() -> ObjectMeta {
        serde_json::from_value(json!({"name": "web", "namespace": "shop", "uid": "u"})).unwrap()
    }

    #[test]
    fn a_pod_has_what_its_template_has_and_its_controller() {
        let pod = pod_from_template(WorkloadKind::ReplicaSet, &owner(), &template());
        assert_eq!(
            serde_json::to_value(pod).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"generateName": "web-", "namespace": "shop", "labels": {"app": "web"},
                    "annotations": {"a": "b"}, "finalizers": ["f"],
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u",
                        "controller": true, "blockOwnerDeletion": true}]},
                "spec": {"containers": [{"name": "c"}]},
            })
        );
    }

    #[test]
    fn generated_names_are_the_base_and_five_letters() {
        let mut dice = Prng::new(1);
        let name = generated_name(&"x".repeat(100), &mut dice);
        assert_eq!(name.len(), 63);
        let suffix = &name[58..];
        assert!(
            suffix
                .chars()
                .all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
        );
        assert_ne!(generated_name("", &mut dice), generated_name("", &mut dice));
        assert_eq!(
            generated_name("a-", &mut Prng::new(5)),
            generated_name("a-", &mut Prng::new(5))
        );
    }

    #[test]
    fn pods_of_sets_and_jobs_have_their_identity() {
        let set: StatefulSet = serde_json::from_value(json!({"metadata": {"name": "db"}, "spec": {
            "serviceName": "s", "selector": {}, "template": {},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}))
        .unwrap();
        let pod = stateful_pod(&set, &template(), 3, "db-abc");
        let labels = pod.metadata.labels.unwrap();
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-3");
        assert_eq!(labels["apps.kubernetes.io/pod-index"], "3");
        assert_eq!(labels["controller-revision-hash"], "db-abc");
        let spec = pod.spec.unwrap();
        assert_eq!(spec.hostname.as_deref(), Some("db-3"));
        assert_eq!(spec.volumes.unwrap()[0].name, "data");
        assert_eq!((pod.metadata.generate_name, pod.metadata.uid), (None, None));

        let pod = job_pod(&owner(), &template(), Some(2));
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-2-"));
        assert_eq!(
            pod.metadata.labels.unwrap()["batch.kubernetes.io/controller-uid"],
            "u"
        );
        assert_eq!(
            pod.metadata.finalizers.unwrap(),
            ["f", "batch.kubernetes.io/job-tracking"]
        );
    }

    #[test]
    fn templates_are_equal_but_for_their_hash() {
        let mut hashed = template();
        let labels = hashed
            .metadata
            .get_or_insert_default()
            .labels
            .get_or_insert_default();
        labels.insert("pod-template-hash".to_string(), "x".to_string());
        assert!(same_template(&hashed, &template()));
        assert!(!same_template(&template(), &PodTemplateSpec::default()));
        let deployment: Deployment = serde_json::from_value(
            json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template()}}),
        )
        .unwrap();
        let set = replica_set_of(&deployment, "x").unwrap();
        assert_eq!(set.metadata.name.as_deref(), Some("web-x"));
        assert!(same_template(
            &template(),
            &set.spec.unwrap().template.unwrap()
        ));
        assert_eq!(replica_set_of(&Deployment::default(), "x"), None);
    }

    #[test]
    fn daemons_come_by_all_taints_and_go_by_those_against_running() {
        let mut eligibility = DaemonEligibility::new(daemon_template(&template()));
        let cases = [
            (json!([]), true, true),
            (json!([{"key": "k", "effect": "NoSchedule"}]), false, true),
            (json!([{"key": "k", "effect": "NoExecute"}]), false, false),
            (
                json!([{"key": "k", "effect": "PreferNoSchedule"}]),
                true,
                true,
            ),
            (
                json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]),
                true,
                true,
            ),
            (
                json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
                true,
                true,
            ),
        ];
        for (taints, should_run, should_continue) in cases {
            let node: Node = serde_json::from_value(
                json!({"metadata": {"name": "n"}, "spec": {"taints": taints}}),
            )
            .unwrap();
            let expected = DaemonWish {
                should_run,
                should_continue,
            };
            assert_eq!(eligibility.wish(&node), expected, "{taints}");
        }
        let mut elsewhere = daemon_template(&template());
        elsewhere.spec.as_mut().unwrap().node_name = Some("m".to_string());
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        assert!(
            !DaemonEligibility::new(elsewhere)
                .wish(&node)
                .should_continue
        );
        let mut pod = Pod::default();
        pin_to_node(&mut pod, "n");
        assert_eq!(node_of_daemon_pod(&pod), Some("n"));
    }
}
