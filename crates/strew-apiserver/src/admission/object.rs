//! Admission of objects of any kind.

use k8s_openapi::api::core::v1::Pod;

use super::update::{Update, admit_pod_update, admit_update};
use super::{AdmissionContext, Admitted, SetDefaults, admit, admit_pod, disabled_fields, priority};
use crate::validation::{Validate, kruise};
use crate::workloads::NameSource;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::KubeObject;
use strew_wire::config::AdmissionOptions;

/// An object, and the API server's warnings.
pub type AdmittedObject = (KubeObject, Vec<String>);

/// Calls functions with the admitted kinds: those whose updates are admitted as well, those that are only created, and
/// those of Open Cluster Management, whose updates are admitted.
macro_rules! kinds {
    (updated: $($updated:ident)*; created: $($created:ident)*; of_hub: $($of_hub:ident)*;) => {
        fn admit_plain(object: KubeObject) -> Result<AdmittedObject, Vec<FieldError>> {
            match object {
                $(KubeObject::$updated(object) => plain(*object),)*
                $(KubeObject::$created(object) => plain(*object),)*
                $(KubeObject::$of_hub(object) => plain(*object),)*
                object => match kruise::errors(&object) {
                    errors if errors.is_empty() => Ok((object, Vec::new())),
                    errors => Err(errors),
                },
            }
        }

        /// A stored object as the API server returns it. The API server sets defaults whenever it reads an object, so no
        /// client sees an object without them.
        pub fn read_back(mut object: KubeObject) -> KubeObject {
            match &mut object {
                KubeObject::Pod(object) => object.set_defaults(),
                $(KubeObject::$updated(object) => object.set_defaults(),)*
                $(KubeObject::$created(object) => object.set_defaults(),)*
                _ => {}
            }
            object
        }

        fn admit_plain_update(new: KubeObject, old: KubeObject) -> Result<KubeObject, Vec<FieldError>> {
            fn plain<T: Update>(new: T, old: &T) -> Result<KubeObject, Vec<FieldError>>
            where
                KubeObject: From<T>,
            {
                Ok(admit_update(new, old)?.object.into())
            }
            match (new, old) {
                $((KubeObject::$updated(new), KubeObject::$updated(old)) => plain(*new, &old),)*
                $((KubeObject::$of_hub(new), KubeObject::$of_hub(old)) => plain(*new, &old),)*
                (new, old) if new.kind() == old.kind() => {
                    let known = kruise::errors(&old);
                    let mut errors = kruise::errors(&new);
                    errors.retain(|error| !known.contains(error));
                    match errors.is_empty() {
                        true => Ok(new),
                        false => Err(errors),
                    }
                }
                (new, _) => Err(vec![FieldError::invalid(
                    FieldPath::root().child("kind"),
                    new.kind(),
                    "field is immutable".to_owned(),
                )]),
            }
        }
    };
}

kinds! {
    updated: Node Deployment ReplicaSet StatefulSet DaemonSet Job PodDisruptionBudget HorizontalPodAutoscaler
        ResourceQuota PriorityClass PersistentVolumeClaim;
    created: Namespace Service ReplicationController CronJob LimitRange;
    of_hub: ManagedCluster ManagedClusterSet ManagedClusterSetBinding AddOnPlacementScore Placement PlacementDecision;
}

fn plain<T: SetDefaults + Validate>(object: T) -> Result<AdmittedObject, Vec<FieldError>>
where
    KubeObject: From<T>,
{
    let Admitted { object, warnings } = admit(object)?;
    Ok((object.into(), warnings))
}

/// Admits an object to create; `names` completes the name of a pod that has only a `generateName`.
///
/// # Errors
/// All errors, in the API server's order.
pub fn admit_object(
    mut object: KubeObject,
    context: &AdmissionContext<'_>,
    names: &mut NameSource,
) -> Result<AdmittedObject, Vec<FieldError>> {
    disabled_fields::drop_of_template(&mut object, None, context.options);
    match object {
        KubeObject::Pod(mut pod) => {
            name_pod(&mut pod, names);
            let Admitted { object, warnings } = admit_pod(*pod, context)?;
            Ok((object.into(), warnings))
        }
        KubeObject::StorageClass(class) => plain(*class),
        KubeObject::PriorityClass(class) => {
            priority::admit_class(&class, context.priority_classes).map_err(|error| vec![error])?;
            plain(*class)
        }
        object => admit_plain(object),
    }
}

/// The errors of an object that comes from an API server: nothing, unless it was edited since. Kinds whose stored objects
/// have fields that nobody may create are not checked.
pub fn errors_of_stored(object: &KubeObject) -> Vec<FieldError> {
    match object {
        KubeObject::Deployment(object) => object.validate(),
        KubeObject::ReplicaSet(object) => object.validate(),
        KubeObject::ReplicationController(object) => object.validate(),
        KubeObject::StatefulSet(object) => object.validate(),
        KubeObject::DaemonSet(object) => object.validate(),
        KubeObject::CronJob(object) => object.validate(),
        KubeObject::PodDisruptionBudget(object) => object.validate(),
        KubeObject::HorizontalPodAutoscaler(object) => object.validate(),
        _ => Vec::new(),
    }
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
    disabled_fields::drop_of_template(&mut new, Some(&mut old), options);
    match (new, old) {
        (KubeObject::Pod(new), KubeObject::Pod(old)) => {
            Ok(admit_pod_update(*new, &old, options)?.object.into())
        }
        (new, old) => admit_plain_update(new, old),
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
