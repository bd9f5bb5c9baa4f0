//! Writes to an object without a version check, as a patch does.

use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::object::{Object, Stored};

use crate::api::Api;

/// How often a change is made anew after a conflict.
const TRIES: usize = 5;

/// What of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Metadata and spec.
    Spec,
    /// Status.
    Status,
}

/// Writes what `change` makes of an object; after a conflict it is asked again about the object as it is now. `change`
/// says whether there is anything to write. `None`: there was not, or the object is gone.
///
/// # Errors
/// What the server refuses, and a conflict that does not end.
pub fn change<T: Stored>(
    api: &mut dyn Api,
    known: &Arc<T>,
    part: Part,
    mut change: impl FnMut(&mut T) -> bool,
) -> Result<Option<Arc<T>>, ApiError> {
    let known = T::into_object(Arc::clone(known));
    let written = change_any(api, known, part, |object| {
        let Some(mut inner) = T::of_object(object).map(|known| T::clone(known)) else {
            return false;
        };
        let is_changed = change(&mut inner);
        if is_changed {
            *object = T::into_object(Arc::new(inner));
        }
        is_changed
    })?;
    Ok(written.as_ref().and_then(T::of_object).cloned())
}

/// The same for an object of any kind.
///
/// # Errors
/// As [`change`].
pub fn change_any(
    api: &mut dyn Api,
    known: Object,
    part: Part,
    mut change: impl FnMut(&mut Object) -> bool,
) -> Result<Option<Object>, ApiError> {
    let uid = Arc::clone(&known.meta().uid);
    let key = known.key();
    let mut object = known;
    for tried in 1.. {
        if !change(&mut object) {
            return Ok(None);
        }
        let written = match part {
            Part::Spec => api.update(object),
            Part::Status => api.update_status(object),
        };
        match written {
            Ok(stored) => return Ok(Some(stored)),
            Err(ApiError::NotFound(_)) => return Ok(None),
            Err(ApiError::Conflict(_)) if tried < TRIES => {}
            Err(error) => return Err(error),
        }
        match api.get(&key) {
            Some(fresh) if fresh.meta().uid == uid => object = fresh,
            _ => return Ok(None),
        }
    }
    Ok(None)
}
