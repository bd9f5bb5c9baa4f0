//! Writes to an object without a version check, as a patch does.

use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::object::{Object, Stored};

use crate::api::Api;

/// How often a change is retried after a conflict.
const TRIES: usize = 5;

/// The part of an object to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Metadata and spec.
    Spec,
    /// Status.
    Status,
}

/// Writes the object that `change` makes of a stored one; after a conflict, `change` gets the new version. `change`
/// returns false if there is nothing to write. Returns `None` in that case, or if the object is gone.
///
/// # Errors
/// The server's refusal, or a conflict that repeats too often.
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

/// As [`change`], for an object of any kind.
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
