//! The scale subresource of an autoscaler's target.

use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::object::{Key, Kind, Name, Object};
use strew_apiserver::selection::Selection;

use crate::controller::Context;

/// `spec.replicas` and the selector of a target.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    pub(super) replicas: i32,
    pub(super) selection: Selection,
}

/// The scale of an object; `None` if its kind has none.
pub(super) fn scale(object: &Object) -> Option<Scale> {
    Some(Scale {
        replicas: object.replicas()?,
        selection: object.pod_selection().unwrap_or_default(),
    })
}

/// The key of the object that an autoscaler names.
pub(super) fn key(namespace: &Arc<str>, kind: &str, name: &str) -> Key {
    Key {
        kind: Kind::of(kind),
        name: Name::new(Arc::clone(namespace), name),
    }
}

/// Sets the replicas of a target.
pub(super) fn resize(
    cx: &mut Context<'_>,
    mut target: Object,
    replicas: i32,
) -> Result<(), ApiError> {
    target.set_replicas(replicas);
    cx.api.update(target).map(|_| ())
}
