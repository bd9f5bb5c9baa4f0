//! Any bytes as a file: read, admitted, expanded, turned into facts, decided on. Nothing panics, nothing hangs, and
//! what is counted stays equal to a recount.

#![no_main]

use k8s_openapi::api::core::v1::{Node, Pod};
use libfuzzer_sys::fuzz_target;
use strew_apiserver::admission::{
    AdmissionContext, PriorityClasses, RuntimeClasses, SetDefaults, admit, admit_pod,
};
use strew_apiserver::validation::Validate;
use strew_apiserver::workloads::{NameSource, Workload, expand};
use strew_cluster::{Cluster, PodIdx};
use strew_manifest::field::FieldError;
use strew_manifest::read::{KubeObject, Located, Sources, locate, read, render};
use strew_scheduler::{Decision, Engine, Profile};
use strew_wire::config::AdmissionOptions;
use strew_wire::facts;

/// Pods of one file, at most: more are asked for by a number, and only cost time.
const PODS_MAX: i64 = 200;

/// Decisions on one file, at most.
const DECISIONS_MAX: usize = 32;

/// Errors of one object whose places are looked for, at most.
const PLACES_MAX: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let mut sources = Sources::new();
    sources.add("in", bytes);
    let reading = read(&sources);
    let _ = render(&reading.diagnostics, &sources, true);

    let classes =
        PriorityClasses::new(
            reading
                .objects
                .iter()
                .filter_map(|located| match &located.object {
                    KubeObject::PriorityClass(class) => Some(&**class),
                    _ => None,
                }),
        );
    let runtime_classes = reading
        .objects
        .iter()
        .filter_map(|located| match &located.object {
            KubeObject::RuntimeClass(class) => Some(&**class),
            _ => None,
        });
    let runtime_classes = RuntimeClasses::new(runtime_classes);
    let context = AdmissionContext {
        priority_classes: &classes,
        runtime_classes: &runtime_classes,
        options: &AdmissionOptions::KUBERNETES_1_36,
    };
    let mut objects = Vec::new();
    for located in reading.objects {
        match created(&located, &context) {
            Ok(object) => objects.push(object),
            Err(errors) => {
                assert!(!errors.is_empty(), "a refusal says why");
                for error in errors.iter().take(PLACES_MAX) {
                    let _ = error.to_string();
                    let _ = locate(&sources, &located.origin, &error.path);
                }
            }
        }
    }
    for broken in &reading.broken {
        // Judged, never used.
        if let Err(errors) = created(&broken.located, &context) {
            for error in errors.iter().take(PLACES_MAX) {
                let _ = broken.follows(error);
            }
        }
    }
    let made = pods_made(&objects);
    let made = made
        .into_iter()
        .filter_map(|pod| admit_pod(pod, &context).ok());
    let made: Vec<KubeObject> = made.map(|admitted| admitted.object.into()).collect();
    objects.extend(made);

    let mut cluster = Cluster::new();
    for object in &objects {
        if let Err(errors) = facts::apply(object, &mut cluster) {
            assert!(!errors.is_empty(), "a refusal says why");
        }
    }
    decide(&mut cluster);
});

/// An object as it would be stored: one of a dump has been through admission.
fn created(
    located: &Located,
    context: &AdmissionContext<'_>,
) -> Result<KubeObject, Vec<FieldError>> {
    if located.from_dump {
        return Ok(located.object.clone());
    }
    match located.object.clone() {
        KubeObject::Pod(object) => admit_pod(*object, context).map(|a| a.object.into()),
        KubeObject::Node(object) => plain(*object),
        KubeObject::Namespace(object) => plain(*object),
        KubeObject::Service(object) => plain(*object),
        KubeObject::PriorityClass(object) => plain(*object),
        KubeObject::PodDisruptionBudget(object) => plain(*object),
        KubeObject::Deployment(object) => plain(*object),
        KubeObject::ReplicaSet(object) => plain(*object),
        KubeObject::ReplicationController(object) => plain(*object),
        KubeObject::StatefulSet(object) => plain(*object),
        KubeObject::DaemonSet(object) => plain(*object),
        KubeObject::Job(object) => plain(*object),
        KubeObject::CronJob(object) => plain(*object),
        other => Ok(other),
    }
}

fn plain<T>(object: T) -> Result<KubeObject, Vec<FieldError>>
where
    T: SetDefaults + Validate,
    KubeObject: From<T>,
{
    admit(object).map(|admitted| admitted.object.into())
}

/// What the controllers would make, unless it is too much for one input's time.
fn pods_made(objects: &[KubeObject]) -> Vec<Pod> {
    let workloads: Vec<Workload<'_>> = objects.iter().filter_map(workload).collect();
    if workloads.iter().map(|w| asked(*w)).sum::<i64>() > PODS_MAX {
        return Vec::new();
    }
    let pods: Vec<Pod> = objects
        .iter()
        .filter_map(|object| match object {
            KubeObject::Pod(pod) => Some((**pod).clone()),
            _ => None,
        })
        .collect();
    let nodes: Vec<Node> = objects
        .iter()
        .filter_map(|object| match object {
            KubeObject::Node(node) => Some((**node).clone()),
            _ => None,
        })
        .collect();
    match expand(&workloads, &pods, &nodes, &mut NameSource::new(0)) {
        Ok(made) => made.pods.into_iter().map(|made| made.pod).collect(),
        Err(_) => Vec::new(),
    }
}

fn workload(object: &KubeObject) -> Option<Workload<'_>> {
    Some(match object {
        KubeObject::Deployment(object) => Workload::Deployment(object),
        KubeObject::ReplicaSet(object) => Workload::ReplicaSet(object),
        KubeObject::ReplicationController(object) => Workload::ReplicationController(object),
        KubeObject::StatefulSet(object) => Workload::StatefulSet(object),
        KubeObject::DaemonSet(object) => Workload::DaemonSet(object),
        KubeObject::Job(object) => Workload::Job(object),
        KubeObject::CronJob(object) => Workload::CronJob(object),
        _ => return None,
    })
}

fn asked(workload: Workload<'_>) -> i64 {
    let replicas = match workload {
        Workload::Deployment(o) => o.spec.as_ref().and_then(|s| s.replicas),
        Workload::ReplicaSet(o) => o.spec.as_ref().and_then(|s| s.replicas),
        Workload::ReplicationController(o) => o.spec.as_ref().and_then(|s| s.replicas),
        Workload::StatefulSet(o) => o.spec.as_ref().and_then(|s| s.replicas),
        Workload::Job(o) => o.spec.as_ref().map(|s| {
            let parallelism = s.parallelism.unwrap_or(1);
            parallelism.min(s.completions.unwrap_or(parallelism))
        }),
        Workload::DaemonSet(_) | Workload::CronJob(_) => None,
    };
    i64::from(replicas.unwrap_or(1)).max(0)
}

/// Places the pending pods one after another, and compares what is counted with a recount.
fn decide(cluster: &mut Cluster) {
    let mut engine = Engine::new(Profile::default());
    let pending: Vec<PodIdx> = cluster
        .pods()
        .filter(|(_, row)| row.node.is_none())
        .map(|(pod, _)| pod)
        .take(DECISIONS_MAX)
        .collect();
    for pod in pending {
        match engine.decide(cluster, pod) {
            Decision::Place { node, .. } => cluster.bind(pod, node),
            Decision::Unfit(unfit) => {
                let _ = format!("{unfit:?}");
            }
        }
    }
    if let Err(found) = cluster.audit() {
        panic!("what is counted differs from a recount: {found}");
    }
}
