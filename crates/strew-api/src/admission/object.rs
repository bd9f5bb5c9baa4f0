//! Objects of any kind, as the API server takes them in.

use k8s_openapi::api::core::v1::Pod;

use super::{AdmissionContext, Admitted, SetDefaults, admit, admit_pod};
use crate::field::FieldError;
use crate::read::KubeObject;
use crate::validation::Validate;
use crate::workloads::NameSource;

/// An object, and the API server's warnings.
pub type AdmittedObject = (KubeObject, Vec<String>);

/// What the API server makes of an object that somebody creates; `names` gives a name to a pod that has only the
/// beginning of one.
///
/// # Errors
/// All that is wrong, in the API server's order.
pub fn admit_object(
    object: KubeObject,
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
        object => Ok((object, Vec::new())),
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
