//! Creates and deletes pods for controllers: prototypes, slow start, events.
//!
//! Source: spec/controllers §0 ("Slow start", "Names", "Events").

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use strew_apiserver::object::{Key, Kind, Meta, Name, Object, Owner, Pod, PodStatus};
use strew_apiserver::{ApiError, DeleteOptions, Tables};

use crate::api::Event;
use crate::controller::Context;

/// The owner reference to a controlling object.
pub fn owner_reference(owner: &Object) -> Owner {
    let kind = owner.kind();
    Owner {
        api_version: kind.api_version().into(),
        kind: kind.name().into(),
        name: Arc::clone(&owner.meta().name.name),
        uid: Arc::clone(&owner.meta().uid),
        is_controller: true,
        blocks_deletion: true,
    }
}

/// A pod of a template. The caller clones it for each pod, and the clones share its data. The store appends a suffix to
/// its name `OWNER-`.
pub fn prototype(template: &PodTemplateSpec, owner: &Object) -> Pod {
    let namespace = Arc::clone(&owner.meta().name.namespace);
    let mut meta = Meta::new(Name::new(namespace, ""));
    meta.generate_name = Some(format!("{}-", owner.meta().name.name).into());
    meta.owners = Arc::new([owner_reference(owner)]);
    if let Some(given) = &template.metadata {
        meta.labels = Arc::new(given.labels.clone().unwrap_or_default());
        meta.annotations = Arc::new(given.annotations.clone().unwrap_or_default());
        meta.finalizers = given.finalizers.clone().unwrap_or_default().into();
    }
    let mut spec = template.spec.clone().unwrap_or_default();
    let node = spec.node_name.take().filter(|node| !node.is_empty());
    Pod {
        meta,
        spec: Arc::new(spec),
        node: node.map(Into::into),
        status: PodStatus::default(),
    }
}

/// Creates `n` objects in batches of 1, 2, 4, …. If a creation fails, or its answer comes later, the batch is finished
/// and no further batch begins. `resumed`: the result of earlier batches
/// ([`Queue::resume`](crate::queue::Queue::resume)).
///
/// # Errors
/// The first failure.
pub fn slow_start(
    n: usize,
    resumed: Result<usize, ApiError>,
    mut create: impl FnMut() -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let (mut left, mut batch) = (n, resumed?);
    while left > 0 {
        let size = batch.min(left);
        let mut outcome = Ok(());
        for _ in 0..size {
            match create() {
                Err(ApiError::Lost) => return Err(ApiError::Lost),
                answer => outcome = outcome.and(answer),
            }
        }
        outcome?;
        left -= size;
        batch *= 2;
    }
    Ok(())
}

/// Creates a pod for its owner, and records the event.
///
/// # Errors
/// The server's refusal; a pod without labels.
pub fn create_pod(
    cx: &mut Context<'_>,
    source: &'static str,
    owner: &Object,
    pod: Pod,
) -> Result<Object, ApiError> {
    if pod.meta.labels.is_empty() {
        return Err(ApiError::Invalid("unable to create pods, no labels".into()));
    }
    let answer = cx.api.create(pod.into());
    tell_created(cx, source, owner, &answer);
    answer
}

/// Records the event of a created or refused pod.
pub fn tell_created(
    cx: &mut Context<'_>,
    source: &'static str,
    owner: &Object,
    answer: &Result<Object, ApiError>,
) {
    match answer {
        Ok(pod) => {
            let note = format!("Created pod: {}", pod.meta().name.name);
            let event = Event::normal(source, owner, "SuccessfulCreate", note);
            cx.api.record(event);
        }
        Err(error) if !error.is_no_answer() && !is_ending(cx.cache, owner) => {
            let note = format!("Error creating: {error}");
            let event = Event::warning(source, owner, "FailedCreate", note);
            cx.api.record(event);
        }
        Err(_) => (),
    }
}

/// True if an object's controller has this uid.
pub fn is_controlled_by(object: &Object, uid: &str) -> bool {
    let controller = object.meta().controller();
    controller.is_some_and(|owner| *owner.uid == *uid)
}

/// Deletes a pod for its owner, and records the event.
///
/// # Errors
/// The server's refusal; also if the pod is gone already.
pub fn delete_pod(
    cx: &mut Context<'_>,
    source: &'static str,
    owner: &Object,
    pod: &Pod,
) -> Result<(), ApiError> {
    let key = Key {
        kind: Kind::Pod,
        name: pod.meta.name.clone(),
    };
    let answer = cx.api.delete(&key, &DeleteOptions::of_uid(&pod.meta.uid));
    match &answer {
        Ok(()) => {
            let note = format!("Deleted pod: {}", pod.meta.name.name);
            let event = Event::normal(source, owner, "SuccessfulDelete", note);
            cx.api.record(event);
        }
        Err(ApiError::Lost | ApiError::NotFound(_)) => (),
        Err(error) => {
            let note = format!("Error deleting: {error}");
            let event = Event::warning(source, owner, "FailedDelete", note);
            cx.api.record(event);
        }
    }
    answer
}

/// True if the namespace of an object terminates: creations in it fail, and no event is needed.
pub fn is_ending(cache: &Tables, object: &Object) -> bool {
    let name = Name::new("", Arc::clone(&object.meta().name.namespace));
    let key = Key {
        kind: Kind::Other("Namespace".into()),
        name,
    };
    cache
        .plain(&key)
        .is_some_and(|namespace| namespace.meta.is_terminating())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_finishes_the_failing_batch_and_begins_no_other() {
        // (wanted, room, creations requested, creations done)
        for (wanted, room, asked, made) in [
            (0, 0, 0, 0),
            (10, 0, 1, 0),
            (10, 1, 3, 1),
            (10, 2, 3, 2),
            (10, 4, 7, 4),
            (10, 7, 10, 7),
            (10, 10, 10, 10),
            (500, 300, 500, 300),
            (500, 10, 15, 10),
        ] {
            let (mut n_asked, mut n_made) = (0, 0);
            let outcome = slow_start(wanted, Ok(1), || {
                n_asked += 1;
                if n_made == room {
                    return Err(ApiError::Forbidden("full".into()));
                }
                n_made += 1;
                Ok(())
            });
            assert_eq!(
                (n_asked, n_made),
                (asked, made),
                "{wanted} with room for {room}"
            );
            assert_eq!(outcome.is_ok(), made == wanted);
        }
    }

    #[test]
    fn without_an_answer_nothing_more_is_asked() {
        let mut n_asked = 0;
        let outcome = slow_start(100, Ok(1), || {
            n_asked += 1;
            match n_asked {
                5 => Err(ApiError::Lost),
                _ => Ok(()),
            }
        });
        assert_eq!((n_asked, outcome), (5, Err(ApiError::Lost)));
    }

    #[test]
    fn a_batch_on_its_way_is_the_last_and_the_next_sync_goes_on_from_it() {
        // (the resumed result, creations requested)
        let refused = ApiError::Forbidden("full".into());
        for (resumed, asked, outcome) in [
            (Ok(1), 1, ApiError::Later),
            (Ok(4), 4, ApiError::Later),
            (Ok(400), 100, ApiError::Later),
            (Err(refused.clone()), 0, refused),
        ] {
            let mut n_asked = 0;
            let found = slow_start(100, resumed, || {
                n_asked += 1;
                Err(ApiError::Later)
            });
            assert_eq!((n_asked, found), (asked, Err(outcome)));
        }
    }
}
