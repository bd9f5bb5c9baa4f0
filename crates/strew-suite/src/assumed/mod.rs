//! Objects that the files name and do not hold, because they lie elsewhere in a company: storage classes, priority
//! classes, service accounts. They are assumed, and each assumption is a warning with the option that sets it.

mod priority;
mod runtime;
mod service_account;
mod storage;

use k8s_openapi::api::core::v1::PodSpec;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{Diagnostic, KubeObject, Located, Locator, Sources};

/// Options for objects that the files lack.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AssumedArgs {
    /// A storage class that the files lack: its claims are bound at once, or wait for their first pod; by default, a
    /// missing class waits if the files hold no storage class at all
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=immediate|wait", value_parser = storage::given))]
    pub storage_class: Vec<storage::GivenClass>,
    /// A priority class that the files lack, with its value; by default, the value of a pod of the class in the files,
    /// else 0
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=VALUE", value_parser = priority::given))]
    pub priority_class: Vec<priority::GivenPriority>,
}

impl AssumedArgs {
    /// The arguments again, for suggested commands.
    pub fn to_args(&self) -> Vec<String> {
        let storage = self.storage_class.iter().map(ToString::to_string);
        let storage = storage.flat_map(|text| ["--storage-class".to_owned(), text]);
        let priority = self.priority_class.iter().map(ToString::to_string);
        let priority = priority.flat_map(|text| ["--priority-class".to_owned(), text]);
        storage.chain(priority).collect()
    }
}

/// What is assumed beside the files.
#[derive(Debug, Default)]
pub struct Assumed {
    /// The objects that are added to those of the files.
    pub objects: Vec<KubeObject>,
    /// The warnings, each at the first field that names such an object.
    pub diagnostics: Vec<Diagnostic>,
}

/// A field that names an object, and how it is told.
struct Mention<'a> {
    located: &'a Located,
    field: FieldPath,
}

impl Mention<'_> {
    fn warn(&self, diagnostic: Diagnostic, locator: &mut Locator<'_>) -> Diagnostic {
        let place = locator.place(&self.located.origin, &self.field);
        let object = self.located.object.label();
        diagnostic
            .at(place)
            .about(object)
            .in_field(self.field.clone())
    }
}

/// What the objects name and what neither they nor the arguments have.
pub fn assumed(objects: &[Located], sources: &Sources, args: &AssumedArgs) -> Assumed {
    let mut assumed = Assumed::default();
    let mut locator = Locator::new(sources);
    storage::assume(objects, &args.storage_class, &mut locator, &mut assumed);
    priority::assume(objects, &args.priority_class, &mut locator, &mut assumed);
    runtime::assume(objects, &mut locator, &mut assumed);
    service_account::assume(objects, &mut locator, &mut assumed);
    assumed
}

/// The spec of a pod, or of the pods that an object makes, with its path; `None` for objects without pods.
fn pod_spec(object: &KubeObject) -> Option<(&PodSpec, FieldPath)> {
    let (spec, path) = match object {
        KubeObject::Pod(pod) => (pod.spec.as_ref(), FieldPath::root()),
        _ => {
            let (template, path) = object.pod_template()?;
            (template.spec.as_ref(), path)
        }
    };
    Some((spec?, path.child("spec")))
}

#[cfg(test)]
mod tests;
