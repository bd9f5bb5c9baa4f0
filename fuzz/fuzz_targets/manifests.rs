//! Any bytes as a file: read, admitted, made into pods, turned into facts, decided on. Nothing panics, nothing hangs, and
//! what is counted stays equal to a recount.

#![no_main]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use libfuzzer_sys::fuzz_target;
use strew_apiserver::admission::{
    AdmissionContext, PriorityClasses, RuntimeClasses, SetDefaults, admit, admit_pod,
};
use strew_apiserver::validation::Validate;
use strew_cluster::{Cluster, PodIdx};
use strew_manifest::field::FieldError;
use strew_manifest::read::{KubeObject, Located, Sources, locate, read, render};
use strew_scheduler::{Decision, Engine, Profile};
use strew_wire::config::AdmissionOptions;
use strew_wire::facts;

/// Pods of one file, at most: more are asked for by a number, and only cost time.
const PODS_MAX: usize = 200;

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

/// Pods as controllers would make them, at most [`PODS_MAX`].
fn pods_made(objects: &[KubeObject]) -> Vec<Pod> {
    let of_template = |(number, object): (usize, &KubeObject)| {
        let (template, _) = object.pod_template()?;
        let given = template.metadata.clone().unwrap_or_default();
        let n = usize::try_from(object.replicas().unwrap_or(1)).unwrap_or(0);
        let namespace = object.namespace().map(str::to_owned);
        let spec = template.spec.clone();
        Some((0..n).map(move |pod| Pod {
            metadata: ObjectMeta {
                name: Some(format!("made-{number}-{pod}")),
                uid: Some(format!("made-{number}-{pod}")),
                namespace: namespace.clone(),
                ..given.clone()
            },
            spec: spec.clone(),
            status: None,
        }))
    };
    let made = objects.iter().enumerate().filter_map(of_template);
    made.flatten().take(PODS_MAX).collect()
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
