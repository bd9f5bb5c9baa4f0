//! Judges creations: a controller never makes more pods than were requested, counting pods that it created and that its
//! watch has not shown yet.
//!
//! Source: spec/controllers §0 ("Expectations").

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::object::{Key, Object};
use strew_apiserver::server::Change;

/// The active pods of ReplicaSets, ReplicationControllers and Jobs, by the uid of the owner.
#[derive(Debug, Default)]
pub(super) struct Makers(BTreeMap<Arc<str>, Maker>);

#[derive(Debug, Default)]
struct Maker {
    pods: BTreeSet<Key>,
    /// The largest size that was ever requested.
    asked: i64,
}

impl Makers {
    /// Takes in a write.
    ///
    /// # Errors
    /// A pod exceeds what was requested; the error says so in words.
    pub(super) fn written(&mut self, written: &Change) -> Result<(), String> {
        if let Some(new) = &written.new
            && let Some(asked) = asked(new)
        {
            let maker = self.0.entry(Arc::clone(&new.meta().uid)).or_default();
            maker.asked = maker.asked.max(asked);
        }
        let (was, is) = (owner(written.old.as_ref()), owner(written.new.as_ref()));
        if let Some(maker) = was.and_then(|uid| self.0.get_mut(uid)) {
            maker.pods.remove(&written.key);
        }
        let Some(maker) = is.and_then(|uid| self.0.get_mut(uid)) else {
            return Ok(());
        };
        maker.pods.insert(written.key.clone());
        let n = maker.pods.len() as i64;
        match written.old.is_none() && n > maker.asked {
            true => Err(format!("pod {n} of {}", maker.asked)),
            false => Ok(()),
        }
    }
}

/// The number of pods that an object requests at a time.
fn asked(object: &Object) -> Option<i64> {
    let asked = match object {
        Object::ReplicaSet(set) => set.spec.replicas,
        Object::ReplicationController(controller) => controller.spec.replicas,
        Object::Job(job) => job.spec.parallelism,
        _ => return None,
    };
    Some(i64::from(asked.unwrap_or(1)))
}

/// The uid of the controller of an active pod.
fn owner(object: Option<&Object>) -> Option<&Arc<str>> {
    match object {
        Some(Object::Pod(pod)) if pod.is_active() => Some(&pod.meta.controller()?.uid),
        _ => None,
    }
}
