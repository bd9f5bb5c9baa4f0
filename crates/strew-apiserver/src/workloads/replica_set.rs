//! ReplicaSets and ReplicationControllers: the number of pods is what counts.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};

use super::owners::Owners;
use super::template::{Maker, PodMaker, PodName};
use super::{ExpandError, Workload, WorkloadKind, count, is_active, name_of};

pub(super) fn expand<'a>(
    set: &'a ReplicaSet,
    owners: &Owners<'a>,
    pods: &mut PodMaker<'_>,
) -> Result<(), ExpandError> {
    let Some(spec) = &set.spec else { return Ok(()) };
    let maker = Maker {
        kind: WorkloadKind::ReplicaSet,
        metadata: &set.metadata,
        workload: &Workload::ReplicaSet(set).reference(),
    };
    let present = owners.pods_of(maker.kind, &set.metadata);
    let n_active = present.filter(|pod| is_active(pod)).count();
    let n_missing = count(spec.replicas).saturating_sub(n_active);
    make(maker, spec.template.as_ref(), n_missing, pods)
}

pub(super) fn expand_controller<'a>(
    controller: &'a ReplicationController,
    owners: &Owners<'a>,
    pods: &mut PodMaker<'_>,
) -> Result<(), ExpandError> {
    let Some(spec) = &controller.spec else {
        return Ok(());
    };
    let maker = Maker {
        kind: WorkloadKind::ReplicationController,
        metadata: &controller.metadata,
        workload: &Workload::ReplicationController(controller).reference(),
    };
    let present = owners.pods_of(maker.kind, &controller.metadata);
    let n_active = present.filter(|pod| is_active(pod)).count();
    let n_missing = count(spec.replicas).saturating_sub(n_active);
    make(maker, spec.template.as_ref(), n_missing, pods)
}

/// `n` equal pods.
pub(super) fn make(
    maker: Maker<'_>,
    template: Option<&PodTemplateSpec>,
    n: usize,
    pods: &mut PodMaker<'_>,
) -> Result<(), ExpandError> {
    pods.check_room(maker.workload, n)?;
    let Some(template) = template else {
        return Ok(());
    };
    let base = format!("{}-", name_of(maker.metadata));
    for _ in 0..n {
        pods.pod(maker, template, PodName::Generate(base.clone()), |_| {});
    }
    Ok(())
}
