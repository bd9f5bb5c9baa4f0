//! Generic ephemeral volumes: each gets a claim of its own, which its pod owns, so that it goes with the pod.
//!
//! Source: `pkg/controller/volume/ephemeral/controller.go`, v1.36.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimTemplate};
use strew_apiserver::object::{Key, Kind, Meta, Name, Object, Plain, Pod};
use strew_apiserver::{ApiError, Tables};
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;

use crate::controller::{Change, Context, Controller};
use crate::pod_control::owner_reference;
use crate::queue::Queue;
use crate::workers;

const CLAIM: &str = "PersistentVolumeClaim";

/// The controller of generic ephemeral volumes.
#[derive(Debug, Clone, Copy, Default)]
pub struct EphemeralVolumes;

impl Controller for EphemeralVolumes {
    fn name(&self) -> &'static str {
        "ephemeral_volume"
    }

    fn n_workers(&self) -> usize {
        workers::EPHEMERAL_VOLUMES
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, _: &Tables, queue: &mut Queue) {
        let pod = change
            .of::<Pod>()
            .and_then(|(old, new)| new.filter(|_| old.is_none()));
        if let Some(pod) = pod.filter(|pod| templates(pod).next().is_some()) {
            queue.add(&pod.meta.name);
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(pod) = cx.cache.get::<Pod>(name).cloned() else {
            return Ok(());
        };
        if pod.meta.is_terminating() {
            return Ok(());
        }
        for (volume, template) in templates(&pod) {
            let name = Name::new(
                Arc::clone(&name.namespace),
                format!("{}-{volume}", name.name),
            );
            let key = Key {
                kind: Kind::of(CLAIM),
                name,
            };
            // A claim of another owner stays: then the scheduler says that it is not the pod's.
            if cx.cache.find(&key).is_some() {
                continue;
            }
            match cx.api.create(claim(&pod, key.name, template)) {
                Ok(_) | Err(ApiError::AlreadyExists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The generic ephemeral volumes of a pod, by name.
fn templates(pod: &Pod) -> impl Iterator<Item = (&str, &PersistentVolumeClaimTemplate)> {
    let volumes = pod.spec.volumes.iter().flatten();
    volumes.filter_map(|volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
        Some((volume.name.as_str(), template))
    })
}

fn claim(pod: &Arc<Pod>, name: Name, template: &PersistentVolumeClaimTemplate) -> Object {
    let given = template.metadata.clone().unwrap_or_default();
    let meta = Meta {
        owners: [owner_reference(&Object::Pod(Arc::clone(pod)))].into(),
        labels: Arc::new(given.labels.unwrap_or_default()),
        annotations: Arc::new(given.annotations.unwrap_or_default()),
        ..Meta::new(name)
    };
    let claim = PersistentVolumeClaim {
        metadata: meta.to_wire(),
        spec: Some(template.spec.clone()),
        ..PersistentVolumeClaim::default()
    };
    Object::Plain(Arc::new(Plain {
        meta,
        kind: Kind::of(CLAIM),
        object: KubeObject::PersistentVolumeClaim(Box::new(claim)),
    }))
}
