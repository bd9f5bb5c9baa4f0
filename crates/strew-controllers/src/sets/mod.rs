//! Code shared by StatefulSets, DaemonSets and CloneSets: affected sets of a change, claiming of pods, pods of
//! templates, revisions, statuses, unseen writes.

pub(crate) mod revisions;
pub(crate) mod unseen;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use strew_apiserver::object::{
    ControllerRevision, Meta, Name, Object, Owner, Pairs, Pod, PodStatus, Resource, Stored,
};
use strew_apiserver::selection::Selection;
use strew_apiserver::{ApiError, Tables};
use strew_model::time::{Instant, Span};

use self::revisions::{History, must_wait};
use self::unseen::Unseen;
use crate::api::Api;
use crate::controller::{Change, Context};
use crate::queue::Queue;

/// `controller-revision-hash`: the revision of a pod.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// The label of a revision with its hash.
pub(crate) const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// The set of a kind that controls an object.
pub(crate) fn controller_of<T: Stored>(meta: &Meta) -> Option<Name> {
    let owner = meta.controller()?;
    let is_of_kind = &*owner.kind == T::KIND.name();
    is_of_kind.then(|| Name::new(Arc::clone(&meta.name.namespace), Arc::clone(&owner.name)))
}

/// Queues the sets that a change of a pod concerns: its controllers; for an orphan, the sets that select it.
pub(crate) fn observe_pod<T: Stored>(
    change: &Change<'_>,
    selection: impl Fn(&T) -> Option<Selection>,
    cache: &Tables,
    queue: &mut Queue,
) {
    let objects = [change.old, change.new].into_iter().flatten();
    for name in objects.filter_map(|object| controller_of::<T>(object.meta())) {
        queue.add(&name);
    }
    let Some(Object::Pod(pod)) = change.new else {
        return;
    };
    if pod.meta.controller().is_some() {
        return;
    }
    let sets = cache.of::<T>();
    for set in sets.in_namespace(&pod.meta.name.namespace) {
        if selection(set).is_some_and(|s| s.matches(&pod.meta.labels)) {
            queue.add(&set.meta().name);
        }
    }
}

/// The set to sync; `None` if it is gone, or the watch has not shown an own write yet.
pub(crate) fn to_sync<T: Stored>(
    name: &Name,
    unseen: &mut Unseen,
    cx: &mut Context<'_>,
) -> Option<Arc<T>> {
    let Some(set) = cx.cache.get::<T>(name).map(Arc::clone) else {
        unseen.forget(name);
        return None;
    };
    (!must_wait(unseen, name, cx)).then_some(set)
}

/// Writes the status of a set if it has changed.
///
/// # Errors
/// The API server's refusal.
pub(crate) fn write_status<S, T>(
    set: &Resource<S, T>,
    status: T,
    unseen: &mut Unseen,
    cx: &mut Context<'_>,
) -> Result<(), ApiError>
where
    T: PartialEq,
    Resource<S, T>: Stored + Into<Object>,
{
    if status == set.status {
        return Ok(());
    }
    let mut set = set.clone();
    set.status = status;
    let name = set.meta.name.clone();
    let stored = cx.api.update_status(set.into())?;
    unseen.wrote(&name, &stored, cx.now);
    Ok(())
}

/// The revision that a status names as the current one; else the update revision.
pub(crate) fn current_of(history: &History, named: Option<&str>) -> Arc<ControllerRevision> {
    let named = named.unwrap_or_default();
    let mut others = history.others.iter();
    let found = others.find(|r| &*r.meta.name.name == named);
    Arc::clone(found.unwrap_or(&history.update))
}

/// The owner reference to a controller.
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

/// A pod of a template, not stored yet; the caller sets the name.
pub(crate) fn pod_of(
    template: &PodTemplateSpec,
    mut spec: PodSpec,
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
    let node = spec.node_name.take().filter(|node| !node.is_empty());
    Pod {
        meta,
        spec: Arc::new(spec),
        node: node.map(Into::into),
        status: PodStatus::default(),
    }
}

/// When a pod becomes, or became, available; `None` if it is not ready.
pub(crate) fn available_at(pod: &Pod, min_ready: Span) -> Option<Instant> {
    pod.ready_since().map(|since| since + min_ready)
}

/// `minReadySeconds` as a span.
pub(crate) fn min_ready(seconds: Option<i32>) -> Span {
    Span::from_secs(u64::try_from(seconds.unwrap_or(0)).unwrap_or(0))
}

/// Releases the set's pods that it no longer selects, and adopts orphans that it selects. Returns true if there were any:
/// then the watch shows them again, which queues the set. Source: spec/controllers §0, "Claiming".
///
/// # Errors
/// The API server's refusal. A pod or set that has changed or gone meanwhile is skipped.
pub(crate) fn claim<T: Stored>(
    set: &T,
    selection: &Selection,
    is_member: impl Fn(&Pod) -> bool,
    unseen: &mut Unseen,
    cx: &mut Context<'_>,
) -> Result<bool, ApiError> {
    let meta = set.meta();
    if meta.is_terminating() {
        return Ok(false);
    }
    let is_mine = |pod: &Pod| selection.matches(&pod.meta.labels) && is_member(pod);
    let mut changed = Vec::new();
    let owned = cx.cache.pods_of(&meta.uid).into_iter();
    for pod in owned.flat_map(|o| o.iter()).filter(|pod| !is_mine(pod)) {
        let mut pod = Pod::clone(pod);
        let others = pod.meta.owners.iter().filter(|o| o.uid != meta.uid);
        pod.meta.owners = others.cloned().collect();
        changed.extend(tolerate_gone(cx.api.update(pod.into()))?);
    }
    let orphans = cx.cache.orphans(&meta.name.namespace);
    let adoptable = orphans.filter(|pod| is_mine(pod) && !pod.meta.is_terminating());
    for pod in adoptable {
        if !still_wants(set, cx.api) {
            break;
        }
        let mut pod = Pod::clone(pod);
        let mut owners = pod.meta.owners.to_vec();
        owners.push(owner_of(set));
        pod.meta.owners = owners.into();
        changed.extend(tolerate_gone(cx.api.update(pod.into()))?);
    }
    for pod in &changed {
        unseen.wrote(&meta.name, pod, cx.now);
    }
    Ok(!changed.is_empty() && must_wait(unseen, &meta.name, cx))
}

/// Reads the store: true if the owner still exists with its uid, and is not being deleted.
pub(crate) fn still_wants<T: Stored>(owner: &T, api: &dyn Api) -> bool {
    let key = T::into_object(Arc::new(owner.clone())).key();
    let fresh = api.get(&key);
    fresh.is_some_and(|f| f.meta().uid == owner.meta().uid && !f.meta().is_terminating())
}

/// Ignores that an object is gone or has changed: the watch will show it.
pub(crate) fn tolerate_gone(answer: Result<Object, ApiError>) -> Result<Option<Object>, ApiError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(ApiError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if the refusal comes from a terminating namespace, which causes no event.
pub(crate) fn is_namespace_terminating(error: &ApiError) -> bool {
    matches!(error, ApiError::Forbidden(text) if text.contains("because it is being terminated"))
}
