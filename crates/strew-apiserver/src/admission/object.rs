//! Admission of objects of any kind.

use k8s_openapi::api::core::v1::Pod;

use super::update::{Update, admit_pod_update, admit_update};
use super::{AdmissionContext, Admitted, SetDefaults, admit, admit_pod, disabled_fields};
use crate::validation::Validate;
use crate::workloads::NameSource;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::KubeObject;
use strew_wire::config::AdmissionOptions;

/// An object, and the API server's warnings.
pub type AdmittedObject = (KubeObject, Vec<String>);

/// Admits an object to create; `names` completes the name of a pod that has only a `generateName`.
///
/// # Errors
/// All errors, in the API server's order.
pub fn admit_object(
    mut object: KubeObject,
    context: &AdmissionContext<'_>,
    names: &mut NameSource,
) -> Result<AdmittedObject, Vec<FieldError>> {
    fn plain<T: SetDefaults + Validate>(object: T) -> Result<AdmittedObject, Vec<FieldError>>
    where
        KubeObject: From<T>,
    {
        let Admitted { object, warnings } = admit(object)?;
        Ok((object.into(), warnings))
    }
    disabled_fields::drop_of_template(&mut object, None, context.options);
    match object {
        KubeObject::Pod(mut pod) => {
            name_pod(&mut pod, names);
            let Admitted { object, warnings } = admit_pod(*pod, context)?;
            Ok((object.into(), warnings))
        }
        KubeObject::Node(object) => plain(*object),
        KubeObject::Namespace(object) => plain(*object),
        KubeObject::Service(object) => plain(*object),
        KubeObject::ReplicationController(object) => plain(*object),
        KubeObject::Deployment(object) => plain(*object),
        KubeObject::ReplicaSet(object) => plain(*object),
        KubeObject::StatefulSet(object) => plain(*object),
        KubeObject::DaemonSet(object) => plain(*object),
        KubeObject::Job(object) => plain(*object),
        KubeObject::CronJob(object) => plain(*object),
        KubeObject::PriorityClass(object) => plain(*object),
        KubeObject::PodDisruptionBudget(object) => plain(*object),
        KubeObject::HorizontalPodAutoscaler(object) => plain(*object),
        KubeObject::LimitRange(object) => plain(*object),
        KubeObject::ResourceQuota(object) => plain(*object),
        KubeObject::ManagedCluster(object) => plain(*object),
        KubeObject::ManagedClusterSet(object) => plain(*object),
        KubeObject::ManagedClusterSetBinding(object) => plain(*object),
        KubeObject::AddOnPlacementScore(object) => plain(*object),
        KubeObject::Placement(object) => plain(*object),
        KubeObject::PlacementDecision(object) => plain(*object),
        KubeObject::PersistentVolumeClaim(mut claim) => {
            // `PrepareForCreate`: no volume controller has seen it yet. A claim of a file may come with its status.
            let status = claim.status.get_or_insert_default();
            status.phase.get_or_insert_with(|| "Pending".to_owned());
            Ok((KubeObject::PersistentVolumeClaim(claim), Vec::new()))
        }
        object => Ok((object, Vec::new())),
    }
}

/// A stored object as the API server returns it. The API server sets defaults whenever it reads an object, so no client
/// sees an object without them.
pub fn read_back(mut object: KubeObject) -> KubeObject {
    match &mut object {
        KubeObject::Pod(object) => object.set_defaults(),
        KubeObject::Node(object) => object.set_defaults(),
        KubeObject::Namespace(object) => object.set_defaults(),
        KubeObject::Service(object) => object.set_defaults(),
        KubeObject::ReplicationController(object) => object.set_defaults(),
        KubeObject::Deployment(object) => object.set_defaults(),
        KubeObject::ReplicaSet(object) => object.set_defaults(),
        KubeObject::StatefulSet(object) => object.set_defaults(),
        KubeObject::DaemonSet(object) => object.set_defaults(),
        KubeObject::Job(object) => object.set_defaults(),
        KubeObject::CronJob(object) => object.set_defaults(),
        KubeObject::PriorityClass(object) => object.set_defaults(),
        KubeObject::PodDisruptionBudget(object) => object.set_defaults(),
        KubeObject::HorizontalPodAutoscaler(object) => object.set_defaults(),
        KubeObject::LimitRange(object) => object.set_defaults(),
        KubeObject::ResourceQuota(object) => object.set_defaults(),
        _ => {}
    }
    object
}

/// Admits an update; `old` is the stored object.
///
/// # Errors
/// All errors, in the API server's order; also if the kinds differ.
pub fn admit_object_update(
    mut new: KubeObject,
    mut old: KubeObject,
    options: &AdmissionOptions,
) -> Result<KubeObject, Vec<FieldError>> {
    fn plain<T: Update>(new: T, old: &T) -> Result<KubeObject, Vec<FieldError>>
    where
        KubeObject: From<T>,
    {
        Ok(admit_update(new, old)?.object.into())
    }
    disabled_fields::drop_of_template(&mut new, Some(&mut old), options);
    match (new, old) {
        (KubeObject::Pod(new), KubeObject::Pod(old)) => {
            Ok(admit_pod_update(*new, &old, options)?.object.into())
        }
        (KubeObject::Node(new), KubeObject::Node(old)) => plain(*new, &old),
        (KubeObject::Deployment(new), KubeObject::Deployment(old)) => plain(*new, &old),
        (KubeObject::ReplicaSet(new), KubeObject::ReplicaSet(old)) => plain(*new, &old),
        (KubeObject::StatefulSet(new), KubeObject::StatefulSet(old)) => plain(*new, &old),
        (KubeObject::DaemonSet(new), KubeObject::DaemonSet(old)) => plain(*new, &old),
        (KubeObject::Job(new), KubeObject::Job(old)) => plain(*new, &old),
        (KubeObject::PodDisruptionBudget(new), KubeObject::PodDisruptionBudget(old)) => {
            plain(*new, &old)
        }
        (KubeObject::HorizontalPodAutoscaler(new), KubeObject::HorizontalPodAutoscaler(old)) => {
            plain(*new, &old)
        }
        (KubeObject::ResourceQuota(new), KubeObject::ResourceQuota(old)) => plain(*new, &old),
        (KubeObject::ManagedCluster(new), KubeObject::ManagedCluster(old)) => plain(*new, &old),
        (KubeObject::ManagedClusterSet(new), KubeObject::ManagedClusterSet(old)) => {
            plain(*new, &old)
        }
        (KubeObject::ManagedClusterSetBinding(new), KubeObject::ManagedClusterSetBinding(old)) => {
            plain(*new, &old)
        }
        (KubeObject::AddOnPlacementScore(new), KubeObject::AddOnPlacementScore(old)) => {
            plain(*new, &old)
        }
        (KubeObject::Placement(new), KubeObject::Placement(old)) => plain(*new, &old),
        (KubeObject::PlacementDecision(new), KubeObject::PlacementDecision(old)) => {
            plain(*new, &old)
        }
        (new, old) if new.kind() == old.kind() => Ok(new),
        (new, _) => Err(vec![FieldError::invalid(
            FieldPath::root().child("kind"),
            new.kind(),
            "field is immutable".to_owned(),
        )]),
    }
}

fn name_pod(pod: &mut Pod, names: &mut NameSource) {
    let metadata = &mut pod.metadata;
    if metadata.name.as_deref().unwrap_or_default().is_empty()
        && let Some(base) = metadata
            .generate_name
            .as_deref()
            .filter(|base| !base.is_empty())
    {
        metadata.name = Some(names.generate(base));
    }
}
