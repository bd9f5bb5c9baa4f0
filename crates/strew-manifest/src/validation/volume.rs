//! Volumes, and where containers mount them.
//!
//! Source: `ValidateVolumes`, `ValidateVolumeMounts`, `ValidateVolumeDevices` of `pkg/apis/core/validation`, v1.36.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Volume};

use super::{invalid_each, text};
use crate::field::{FieldError, FieldPath};

/// The names of the volumes that containers may mount.
pub(super) type Names<'a> = BTreeSet<&'a str>;

/// Checks the volumes of a pod; `path` is that of the list. Returns the names of those without errors, which containers
/// may mount.
pub(super) fn validate<'a>(
    volumes: &'a [Volume],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Names<'a> {
    let mut names = Names::new();
    for (i, volume) in volumes.iter().enumerate() {
        let path = path.index(i);
        let n_before = errors.len();
        sources(volume, &path, errors);
        let (name, at) = (volume.name.as_str(), path.child("name"));
        match name {
            "" => errors.push(FieldError::required(at.clone(), "")),
            name => invalid_each(text::dns_label(name), name, &at, errors),
        }
        if names.contains(name) {
            errors.push(FieldError::duplicate(at, name));
        }
        if errors.len() == n_before {
            names.insert(name);
        }
    }
    names
}

/// The sources of a volume in the order in which the API server looks at them. A volume without any is an emptyDir.
fn given(volume: &Volume) -> impl Iterator<Item = &'static str> {
    let all = [
        (volume.empty_dir.is_some(), "emptyDir"),
        (volume.host_path.is_some(), "hostPath"),
        (volume.git_repo.is_some(), "gitRepo"),
        (volume.gce_persistent_disk.is_some(), "gcePersistentDisk"),
        (
            volume.aws_elastic_block_store.is_some(),
            "awsElasticBlockStore",
        ),
        (volume.secret.is_some(), "secret"),
        (volume.nfs.is_some(), "nfs"),
        (volume.iscsi.is_some(), "iscsi"),
        (volume.glusterfs.is_some(), "glusterfs"),
        (volume.flocker.is_some(), "flocker"),
        (
            volume.persistent_volume_claim.is_some(),
            "persistentVolumeClaim",
        ),
        (volume.rbd.is_some(), "rbd"),
        (volume.cinder.is_some(), "cinder"),
        (volume.cephfs.is_some(), "cephfs"),
        (volume.quobyte.is_some(), "quobyte"),
        (volume.downward_api.is_some(), "downwardAPI"),
        (volume.fc.is_some(), "fc"),
        (volume.flex_volume.is_some(), "flexVolume"),
        (volume.config_map.is_some(), "configMap"),
        (volume.azure_file.is_some(), "azureFile"),
        (volume.vsphere_volume.is_some(), "vsphereVolume"),
        (
            volume.photon_persistent_disk.is_some(),
            "photonPersistentDisk",
        ),
        (volume.portworx_volume.is_some(), "portworxVolume"),
        (volume.azure_disk.is_some(), "azureDisk"),
        (volume.storageos.is_some(), "storageos"),
        (volume.projected.is_some(), "projected"),
        (volume.scale_io.is_some(), "scaleIO"),
        (volume.csi.is_some(), "csi"),
        (volume.ephemeral.is_some(), "ephemeral"),
        (volume.image.is_some(), "image"),
    ];
    let given = all.into_iter().filter(|(is_given, _)| *is_given);
    given.map(|(_, name)| name)
}

fn sources(volume: &Volume, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut given = given(volume);
    if let Some(first) = given.next() {
        reference(volume, first, path, errors);
    }
    for other in given {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(path.child(other), detail));
    }
}

/// The field that a source cannot do without.
fn reference(
    volume: &Volume,
    source: &'static str,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let (field, value) = match source {
        "hostPath" => ("path", volume.host_path.as_ref().map(|s| s.path.as_str())),
        "secret" => (
            "secretName",
            volume
                .secret
                .as_ref()
                .and_then(|s| s.secret_name.as_deref()),
        ),
        "configMap" => ("name", volume.config_map.as_ref().map(|s| s.name.as_str())),
        "persistentVolumeClaim" => (
            "claimName",
            volume
                .persistent_volume_claim
                .as_ref()
                .map(|s| s.claim_name.as_str()),
        ),
        _ => return,
    };
    if value.unwrap_or_default().is_empty() {
        errors.push(FieldError::required(path.child(source).child(field), ""));
    }
}

/// Checks what a container mounts; `path` is that of the container.
pub(super) fn mounts(
    container: &Container,
    volumes: &Names<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let devices = container.volume_devices.as_deref().unwrap_or_default();
    let mut paths = BTreeSet::new();
    for (i, mount) in mounts.iter().enumerate() {
        let path = path.child("volumeMounts").index(i);
        let (name, target) = (mount.name.as_str(), mount.mount_path.as_str());
        place(name, target, "mountPath", volumes, &path, errors);
        if !paths.insert(target) {
            let at = path.child("mountPath");
            errors.push(FieldError::invalid(at, target, "must be unique"));
        }
        if devices.iter().any(|device| device.name == name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(path.child("name"), name, detail));
        }
        let of_expression = mount.sub_path_expr.as_deref().unwrap_or_default();
        let of_path = mount.sub_path.as_deref().unwrap_or_default();
        if !of_expression.is_empty() && !of_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            let at = path.child("subPathExpr");
            errors.push(FieldError::invalid(at, of_expression, detail));
        }
    }
    for (i, device) in devices.iter().enumerate() {
        let path = path.child("volumeDevices").index(i);
        let (name, target) = (device.name.as_str(), device.device_path.as_str());
        place(name, target, "devicePath", volumes, &path, errors);
    }
}

/// A volume of the pod at a path of the container.
fn place(
    name: &str,
    target: &str,
    field: &'static str,
    volumes: &Names<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(at.clone(), ""));
    }
    if !volumes.contains(name) {
        errors.push(FieldError::not_found(at, name));
    }
    if target.is_empty() {
        errors.push(FieldError::required(path.child(field), ""));
    }
}
