//! The scale subresource of an autoscaler's target.

use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::object::{
    CloneSet, Deployment, Key, Kind, Name, Object, ReplicaSet, ReplicationController, StatefulSet,
};
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
    let (replicas, selection) = match object {
        Object::Deployment(o) => (o.spec.replicas, Selection::of(&o.spec.selector)),
        Object::ReplicaSet(o) => (o.spec.replicas, Selection::of(&o.spec.selector)),
        Object::StatefulSet(o) => (o.spec.replicas, Selection::of(&o.spec.selector)),
        Object::ReplicationController(o) => {
            let labels = o.spec.selector.as_ref();
            (o.spec.replicas, labels.map(Selection::of_pairs))
        }
        Object::CloneSet(o) => {
            let selector = o.spec.selector.as_ref();
            (o.spec.replicas, selector.and_then(Selection::of))
        }
        _ => return None,
    };
    Some(Scale {
        replicas: replicas.unwrap_or(1),
        selection: selection.unwrap_or_default(),
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
pub(super) fn resize(cx: &mut Context<'_>, target: Object, replicas: i32) -> Result<(), ApiError> {
    macro_rules! resized {
        ($object:expr, $type:ty) => {{
            let mut object = <$type>::clone(&$object);
            Arc::make_mut(&mut object.spec).replicas = Some(replicas);
            object.into()
        }};
    }
    let object = match target {
        Object::Deployment(o) => resized!(o, Deployment),
        Object::ReplicaSet(o) => resized!(o, ReplicaSet),
        Object::StatefulSet(o) => resized!(o, StatefulSet),
        Object::CloneSet(o) => resized!(o, CloneSet),
        Object::ReplicationController(o) => resized!(o, ReplicationController),
        _ => return Ok(()),
    };
    cx.api.update(object).map(|_| ())
}
