//! What StatefulSets and DaemonSets have in common: claims, pods of templates, revisions, writes not seen yet.

pub(crate) mod revisions;
pub(crate) mod unseen;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use strew_apiserver::object::{Meta, Name, Object, Owner, Pairs, Pod, PodStatus, Stored};
use strew_apiserver::selection::Selection;
use strew_apiserver::{ApiError, Tables};
use strew_model::time::{Instant, Span};

use crate::api::Api;

/// `controller-revision-hash`: which revision a pod is of.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";

/// The reference that makes an object its controller's.
pub(crate) fn owner_of<T: Stored>(controller: &T) -> Owner {
    let meta = controller.meta();
    Owner {
        api_version: T::KIND.api_version().into(),
        kind: T::KIND.name().into(),
        name: Arc::clone(&meta.name.name),
        uid: Arc::clone(&meta.uid),
        is_controller: true,
        blocks_deletion: true,
    }
}

/// A pod of a template, not stored yet; the name is left to the caller.
pub(crate) fn pod_of(
    template: &PodTemplateSpec,
    spec: PodSpec,
    owner: Owner,
    name: Name,
    labels: &[(&str, &str)],
) -> Pod {
    let given = template.metadata.clone().unwrap_or_default();
    let mut all: Pairs = given.labels.unwrap_or_default();
    let own = labels.iter();
    all.extend(own.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let mut meta = Meta::new(name);
    meta.labels = Arc::new(all);
    meta.annotations = Arc::new(given.annotations.unwrap_or_default());
    meta.finalizers = given.finalizers.unwrap_or_default().into();
    meta.owners = Arc::new([owner]);
    Pod {
        meta,
        spec: Arc::new(spec),
        node: None,
        status: PodStatus::default(),
    }
}

/// When a pod becomes, or became, available; `None`: it is not ready.
pub(crate) fn available_at(pod: &Pod, min_ready: Span) -> Option<Instant> {
    pod.ready_since().map(|since| since + min_ready)
}

/// `minReadySeconds` as a span.
pub(crate) fn min_ready(seconds: Option<i32>) -> Span {
    Span::from_secs(u64::try_from(seconds.unwrap_or(0)).unwrap_or(0))
}

/// Releases what is the owner's but no longer its to have, and adopts the orphans that are.
/// Source: spec/controllers §0, "Claiming".
///
/// # Errors
/// What the API server refused; a pod or owner that has changed or gone meanwhile is passed over.
pub(crate) fn claim_pods<T: Stored>(
    owner: &T,
    selection: &Selection,
    is_member: impl Fn(&Pod) -> bool,
    cache: &Tables,
    api: &mut dyn Api,
) -> Result<Vec<Object>, ApiError> {
    let meta = owner.meta();
    if meta.is_terminating() {
        return Ok(Vec::new());
    }
    let is_mine = |pod: &Pod| selection.matches(&pod.meta.labels) && is_member(pod);
    let mut changed = Vec::new();
    let owned = cache.pods_of(&meta.uid).into_iter().flat_map(|o| o.iter());
    for pod in owned.filter(|pod| !is_mine(pod)) {
        let mut pod = Pod::clone(pod);
        let others = pod.meta.owners.iter().filter(|o| o.uid != meta.uid);
        pod.meta.owners = others.cloned().collect();
        changed.extend(tolerate_gone(api.update(pod.into()))?);
    }
    let orphans = cache.orphans(&meta.name.namespace);
    let adoptable = orphans.filter(|pod| is_mine(pod) && !pod.meta.is_terminating());
    for pod in adoptable {
        if !still_wants(owner, api) {
            break;
        }
        let mut pod = Pod::clone(pod);
        let mut owners = pod.meta.owners.to_vec();
        owners.push(owner_of(owner));
        pod.meta.owners = owners.into();
        changed.extend(tolerate_gone(api.update(pod.into()))?);
    }
    Ok(changed)
}

/// Asked past the cache: whether the owner is the same object still, and stays.
pub(crate) fn still_wants<T: Stored>(owner: &T, api: &dyn Api) -> bool {
    let key = T::into_object(Arc::new(owner.clone())).key();
    let fresh = api.get(&key);
    fresh.is_some_and(|f| f.meta().uid == owner.meta().uid && !f.meta().is_terminating())
}

/// An object that has gone or changed needs no answer now: its watch will tell.
pub(crate) fn tolerate_gone(answer: Result<Object, ApiError>) -> Result<Option<Object>, ApiError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(ApiError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a namespace that is being terminated refused; nobody is told of that.
pub(crate) fn is_namespace_terminating(error: &ApiError) -> bool {
    matches!(error, ApiError::Forbidden(text) if text.contains("because it is being terminated"))
}
