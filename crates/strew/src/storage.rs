//! Storage classes that the files name and do not have.

use std::collections::BTreeSet;

use clap::Args;
use k8s_openapi::api::core::v1::{PersistentVolumeClaimSpec, PodSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;
use strew_manifest::read::KubeObject;

/// Options for storage classes.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct StorageArgs {
    /// A storage class that the files lack: its claims are bound at once, or wait for their first pod; by default, a
    /// missing class waits
    #[arg(long, value_name = "NAME=immediate|wait", value_parser = given)]
    pub(crate) storage_class: Vec<GivenClass>,
}

/// A class of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenClass {
    name: String,
    waits: bool,
}

impl StorageArgs {
    /// The arguments again, for suggested commands.
    pub(crate) fn to_args(&self) -> Vec<String> {
        let classes = self.storage_class.iter();
        let words = classes.flat_map(|GivenClass { name, waits }| {
            let mode = if *waits { "wait" } else { "immediate" };
            ["--storage-class".to_owned(), format!("{name}={mode}")]
        });
        words.collect()
    }
}

fn given(text: &str) -> Result<GivenClass, String> {
    let wrong = || "expected NAME=immediate or NAME=wait".to_owned();
    let (name, mode) = text.split_once('=').ok_or_else(wrong)?;
    let waits = match mode {
        "wait" => true,
        "immediate" => false,
        _ => return Err(wrong()),
    };
    let name = name.to_owned();
    (!name.is_empty())
        .then_some(GivenClass { name, waits })
        .ok_or_else(wrong)
}

/// The name of the class that is made for claims without one.
const DEFAULT: &str = "standard";

/// The provisioner of classes that are made.
const DRIVER: &str = "disk.strew.dev";

/// The classes that are given or missing, with a note on those that were not given.
pub(crate) fn classes<'a>(
    objects: impl Iterator<Item = &'a KubeObject> + Clone,
    args: &StorageArgs,
) -> (Vec<StorageClass>, Option<String>) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut has_default = false;
    for object in objects.clone() {
        if let KubeObject::StorageClass(class) = object {
            known.extend(class.metadata.name.as_deref());
            let annotations = class.metadata.annotations.as_ref();
            let is_default = annotations.and_then(|a| a.get(IS_DEFAULT));
            has_default |= is_default.is_some_and(|text| text == "true");
        }
    }
    let mut made: Vec<StorageClass> = Vec::new();
    for given in &args.storage_class {
        if known.insert(&given.name) {
            made.push(class(&given.name, given.waits, false));
        }
    }
    let mut assumed: BTreeSet<String> = BTreeSet::new();
    for wanted in objects.flat_map(claims) {
        let name = match wanted.storage_class_name.as_deref() {
            _ if wanted.volume_name.as_ref().is_some_and(|v| !v.is_empty()) => continue,
            // Bound only to volumes that are created by hand.
            Some("") => continue,
            Some(name) if known.contains(name) => continue,
            Some(name) => name,
            None if has_default => continue,
            None => DEFAULT,
        };
        if assumed.insert(name.to_owned()) {
            let is_default = wanted.storage_class_name.is_none();
            has_default |= is_default;
            made.push(class(name, true, is_default));
        }
    }
    let note = (!assumed.is_empty()).then(|| {
        let names: Vec<String> = assumed.into_iter().collect();
        format!(
            "not in the files, and taken to make volumes where their first pod goes (else give --storage-class \
             NAME=immediate): storage class {}",
            names.join(", ")
        )
    });
    (made, note)
}

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

fn class(name: &str, waits: bool, is_default: bool) -> StorageClass {
    let mode = if waits {
        "WaitForFirstConsumer"
    } else {
        "Immediate"
    };
    let annotations = match is_default {
        true => json!({IS_DEFAULT: "true"}),
        false => json!(null),
    };
    let class = json!({
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    });
    serde_json::from_value(class).unwrap_or_default()
}

/// The classes of an object's claims: its own, those of a StatefulSet's templates, and of ephemeral volumes.
fn claims(object: &KubeObject) -> Vec<&PersistentVolumeClaimSpec> {
    match object {
        KubeObject::PersistentVolumeClaim(claim) => claim.spec.iter().collect(),
        KubeObject::StatefulSet(set) => {
            let spec = set.spec.as_ref();
            let templates = spec.and_then(|spec| spec.volume_claim_templates.as_ref());
            let templates = templates.into_iter().flatten();
            let mut claims: Vec<_> = templates.filter_map(|t| t.spec.as_ref()).collect();
            claims.extend(ephemeral(spec.and_then(|spec| spec.template.spec.as_ref())));
            claims
        }
        KubeObject::Deployment(set) => {
            let spec = set.spec.as_ref();
            ephemeral(spec.and_then(|spec| spec.template.spec.as_ref())).collect()
        }
        KubeObject::Pod(pod) => ephemeral(pod.spec.as_ref()).collect(),
        _ => Vec::new(),
    }
}

/// The claims of a pod's generic ephemeral volumes.
fn ephemeral(spec: Option<&PodSpec>) -> impl Iterator<Item = &PersistentVolumeClaimSpec> {
    let volumes = spec
        .into_iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
        Some(&template.spec)
    })
}
