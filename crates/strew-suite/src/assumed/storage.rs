//! Storage classes that the files name and do not have.
//!
//! Files with a storage class hold those of their cluster: then a missing one is missing, and its claims stay Pending. A
//! class that a volume of the files has needs no object: its claims get that volume.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;
use strew_manifest::field::FieldPath;
use strew_manifest::json::Json;
use strew_manifest::read::{Diagnostic, KubeObject, Located, Locator, nearest};
use strew_wire::facts::CLASS_BETA;

use super::{Assumed, Mention, pod_spec};

/// A class of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenClass {
    name: String,
    waits: bool,
}

impl fmt::Display for GivenClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.waits { "wait" } else { "immediate" };
        write!(f, "{}={mode}", self.name)
    }
}

pub(super) fn given(text: &str) -> Result<GivenClass, String> {
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

const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// What the files and the arguments have.
#[derive(Default)]
struct Known<'a> {
    /// The classes of the files.
    classes: BTreeSet<&'a str>,
    /// Those of the arguments.
    given: BTreeSet<&'a str>,
    has_default: bool,
    /// The classes of volumes; an empty name stands for none.
    of_volumes: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(objects: &'a [Located], given: &'a [GivenClass]) -> Self {
        let mut known = Self {
            given: given.iter().map(|given| given.name.as_str()).collect(),
            ..Self::default()
        };
        for located in objects {
            match &located.object {
                KubeObject::StorageClass(class) => {
                    known.classes.extend(class.metadata.name.as_deref());
                    let annotations = class.metadata.annotations.as_ref();
                    let says = |key: &&str| annotations.is_some_and(|all| is_true(all.get(*key)));
                    known.has_default |= IS_DEFAULT.iter().any(says);
                }
                KubeObject::PersistentVolume(volume) => {
                    let annotations = volume.metadata.annotations.as_ref();
                    let by_annotation = annotations.and_then(|all| all.get(CLASS_BETA));
                    let spec = volume.spec.as_ref();
                    let name = by_annotation.or(spec.and_then(|s| s.storage_class_name.as_ref()));
                    known.of_volumes.insert(name.map_or("", String::as_str));
                }
                _ => {}
            }
        }
        known
    }

    fn has(&self, name: &str) -> bool {
        self.classes.contains(name) || self.given.contains(name) || self.of_volumes.contains(name)
    }
}

fn is_true(text: Option<&String>) -> bool {
    text.is_some_and(|text| text == "true")
}

/// Adds the classes that are given or assumed, and warnings about those that are assumed or missing.
pub(super) fn assume(
    objects: &[Located],
    given: &[GivenClass],
    locator: &mut Locator<'_>,
    assumed: &mut Assumed,
) {
    let known = Known::of(objects, given);
    let is_new = |given: &&GivenClass| !known.classes.contains(given.name.as_str());
    // Where the files have none, the first that is given is the default one, too.
    let default = given.first().filter(|_| known.classes.is_empty());
    let default = default.map(|given| given.name.as_str());
    let classes = given.iter().filter(is_new);
    let classes = classes.map(|given| {
        let is_default = default == Some(given.name.as_str());
        class(&given.name, given.waits, is_default).into()
    });
    assumed.objects.extend(classes);
    let mut said: BTreeSet<Option<&str>> = BTreeSet::new();
    for located in objects {
        for wanted in claims(&located.object) {
            let name = wanted.class;
            let is_there = match name {
                // Bound only to volumes that are created by hand.
                Some("") => true,
                Some(name) => known.has(name),
                None => known.has_default || default.is_some() || known.of_volumes.contains(""),
            };
            if is_there || !said.insert(name) {
                continue;
            }
            let field = wanted.field;
            let mention = Mention { located, field };
            let diagnostic = match known.classes.is_empty() {
                true => {
                    let of = name.unwrap_or(DEFAULT);
                    assumed.objects.push(class(of, true, name.is_none()).into());
                    assumption(name)
                }
                false => missing(name, &known),
            };
            assumed.diagnostics.push(mention.warn(diagnostic, locator));
        }
    }
}

fn assumption(name: Option<&str>) -> Diagnostic {
    let (message, help) = match name {
        Some(name) => (
            format!(
                "storage class {name:?} is not in the files: a volume is assumed to be made where the first pod of a \
                 claim goes"
            ),
            format!(
                "add the StorageClass, or give --storage-class {name}=immediate or {name}=wait"
            ),
        ),
        None => (
            format!(
                "the claim has no storage class, and the files have none: a default class {DEFAULT:?} is assumed that \
                 makes a volume where the first pod of a claim goes"
            ),
            format!(
                "add the StorageClasses of the cluster to the files, or give --storage-class {DEFAULT}=wait"
            ),
        ),
    };
    Diagnostic::warning("assumed-storage-class", message).with_help(help)
}

fn missing(name: Option<&str>, known: &Known<'_>) -> Diagnostic {
    const CODE: &str = "missing-storage-class";
    let names: Vec<&str> = known.classes.iter().copied().collect();
    let there = names.join(", ");
    let Some(name) = name else {
        let message = "the claim has no storage class, and no StorageClass of the files is the default: it gets only a \
                       volume without class";
        let help = format!("name one of the storage classes: {there}");
        return Diagnostic::warning(CODE, message).with_help(help);
    };
    let message = format!("no storage class {name:?} is in the files: claims of it stay Pending");
    let help = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean {meant:?}? The storage classes are {there}"),
        None => format!(
            "the storage classes are {there}; --storage-class {name}=wait assumes that there is one"
        ),
    };
    Diagnostic::warning(CODE, message).with_help(help)
}

fn class(name: &str, waits: bool, is_default: bool) -> StorageClass {
    let mode = if waits {
        "WaitForFirstConsumer"
    } else {
        "Immediate"
    };
    let annotations = match is_default {
        true => json!({IS_DEFAULT[0]: "true"}),
        false => json!(null),
    };
    let class = json!({
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    });
    StorageClass::of_json(class).unwrap_or_default()
}

/// A claim that may need a class: its class (`None`: the default one), and the field that names it or could.
struct Wanted<'a> {
    class: Option<&'a str>,
    field: FieldPath,
}

/// The claims of an object without a volume: its own, those of a StatefulSet's templates, and of ephemeral volumes.
fn claims(object: &KubeObject) -> Vec<Wanted<'_>> {
    let root = FieldPath::root();
    let mut found: Vec<Wanted<'_>> = match object {
        KubeObject::PersistentVolumeClaim(claim) => wanted(claim, &root).into_iter().collect(),
        KubeObject::StatefulSet(set) => {
            let templates = set
                .spec
                .as_ref()
                .and_then(|s| s.volume_claim_templates.as_ref());
            let templates = templates.into_iter().flatten().enumerate();
            let path = root.child("spec").child("volumeClaimTemplates");
            let each = templates.filter_map(|(i, template)| wanted(template, &path.index(i)));
            each.collect()
        }
        _ => Vec::new(),
    };
    let Some((spec, path)) = pod_spec(object) else {
        return found;
    };
    for (i, volume) in spec.volumes.iter().flatten().enumerate() {
        let template = volume.ephemeral.as_ref();
        let template = template.and_then(|source| source.volume_claim_template.as_ref());
        if let Some(template) = template {
            let path = path.child("volumes").index(i).child("ephemeral");
            let path = path.child("volumeClaimTemplate").child("spec");
            found.extend(of_spec(&template.spec, &path, None));
        }
    }
    found
}

fn wanted<'a>(claim: &'a PersistentVolumeClaim, path: &FieldPath) -> Option<Wanted<'a>> {
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if phase == Some("Bound") {
        return None;
    }
    let annotations = claim.metadata.annotations.as_ref();
    let by_annotation = annotations.and_then(|all| all.get(CLASS_BETA));
    let spec = claim.spec.as_ref()?;
    of_spec(spec, &path.child("spec"), by_annotation.map(String::as_str))
}

fn of_spec<'a>(
    spec: &'a PersistentVolumeClaimSpec,
    path: &FieldPath,
    by_annotation: Option<&'a str>,
) -> Option<Wanted<'a>> {
    if spec
        .volume_name
        .as_ref()
        .is_some_and(|name| !name.is_empty())
    {
        return None;
    }
    let class = by_annotation.or(spec.storage_class_name.as_deref());
    let field = match spec.storage_class_name {
        Some(_) => path.child("storageClassName"),
        None => path.clone(),
    };
    Some(Wanted { class, field })
}
