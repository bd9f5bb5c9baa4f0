//! The configuration of the scheduler: from a document of the stream, or kube-scheduler's default.

use std::sync::Arc;

use strew_manifest::field::FieldPath;
use strew_manifest::read::{Diagnostic, KubeObject, Located, Origin, Sources, locate};
use strew_model::Interner;
use strew_sim::Blueprint;
use strew_wire::config::{FeatureGates, Given, configure, is_configuration};

use super::plan::Configure;

/// True if the object configures the scheduler and is no object of the cluster.
pub(super) fn is_scheduler_configuration(object: &KubeObject) -> bool {
    matches!(object, KubeObject::Other(other) if is_configuration(&other.api_version, &other.kind))
}

/// The scheduler of a stream: its `KubeSchedulerConfiguration` (or legacy `Policy`), else the default.
///
/// # Errors
/// The document is invalid with these gates, or there are several.
pub fn scheduler_of(
    sources: &Sources,
    stream: &[Located],
    gates: &FeatureGates,
) -> Result<Configure, Vec<Diagnostic>> {
    let mut documents = stream
        .iter()
        .filter(|located| is_scheduler_configuration(&located.object))
        .map(|located| located.origin.clone());
    let document = documents.next();
    let surplus: Vec<Diagnostic> = documents.map(|origin| surplus(sources, &origin)).collect();
    if !surplus.is_empty() {
        return Err(surplus);
    }
    let sources = sources.clone();
    let make = move |gates: &FeatureGates| {
        let given = match &document {
            Some(origin) => Given::Document(&sources, origin),
            None => Given::Nothing,
        };
        let mut names = Interner::new();
        let configuration = configure(given, gates, &mut names)?;
        Ok(Blueprint::of(&configuration, names))
    };
    make(gates)?;
    Ok(Arc::new(move |gates: &FeatureGates| {
        let made: Result<Blueprint, Vec<Diagnostic>> = make(gates);
        made.ok()
    }))
}

fn surplus(sources: &Sources, origin: &Origin) -> Diagnostic {
    let message = "a second configuration of the scheduler";
    let place = locate(sources, origin, &FieldPath::root());
    let error = Diagnostic::error("surplus-document", message).at(place);
    error.with_help("leave one of them out")
}
