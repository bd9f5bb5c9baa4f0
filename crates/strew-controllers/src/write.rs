//! A change of an object that does not insist on the version it was made from: what a patch does on the wire.

use std::sync::Arc;

use crate::api::{Api, ApiError};
use crate::object::{Key, Stored};

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
    let uid = Arc::clone(&known.meta().uid);
    let key = Key {
        kind: T::KIND,
        name: known.meta().name.clone(),
    };
    let mut object = T::clone(known);
    for tried in 1.. {
        if !change(&mut object) {
            return Ok(None);
        }
        let new = T::into_object(Arc::new(object));
        let written = match part {
            Part::Spec => api.update(new),
            Part::Status => api.update_status(new),
        };
        match written {
            Ok(stored) => return Ok(T::of_object(&stored).cloned()),
            Err(ApiError::NotFound(_)) => return Ok(None),
            Err(ApiError::Conflict(_)) if tried < TRIES => {}
            Err(error) => return Err(error),
        }
        let fresh = api.get(&key);
        match fresh.as_ref().and_then(T::of_object) {
            Some(fresh) if fresh.meta().uid == uid => object = T::clone(fresh),
            _ => return Ok(None),
        }
    }
    Ok(None)
}
