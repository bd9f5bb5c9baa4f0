//! What the API server makes of what somebody creates.

use k8s_openapi::api::core::v1::Pod;
use strew_api::admission::{self, AdmissionContext, Admitted, SetDefaults};
use strew_api::field::FieldError;
use strew_api::read::KubeObject;
use strew_api::validation::Validate;
use strew_api::workloads::NameSource;

/// An object, and the API server's warnings.
pub(super) type AdmittedObject = (KubeObject, Vec<String>);

/// What the API server makes of an object that somebody creates.
pub(super) fn admit(
    object: KubeObject,
    context: &AdmissionContext<'_>,
    names: &mut NameSource,
) -> Result<AdmittedObject, Vec<FieldError>> {
    fn plain<T: SetDefaults + Validate>(object: T) -> Result<AdmittedObject, Vec<FieldError>>
    where
        KubeObject: From<T>,
    {
        let Admitted { object, warnings } = admission::admit(object)?;
        Ok((object.into(), warnings))
    }
    match object {
        KubeObject::Pod(mut pod) => {
            name_pod(&mut pod, names);
            let Admitted { object, warnings } = admission::admit_pod(*pod, context)?;
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
