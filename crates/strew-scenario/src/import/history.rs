//! The states of a recording's objects over time, and the changes that a user or an unmodelled program made.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use strew_manifest::kinds::{self, Pods};
use strew_manifest::read::KubeObject;
use strew_model::Span;

use super::intent::{as_made, difference, intent};
use super::key::Key;
use super::left_out::LeftOut;
use super::timeline::{Act, Timeline};
use crate::format::diagnostics::span;

/// How the scenario makes a new object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Making {
    Apply,
    Create,
}

/// The objects as last recorded, and the changes so far.
#[derive(Debug, Default)]
pub(super) struct History {
    known: BTreeMap<Key, Known>,
    /// The objects of second 0 in their order; `None` for objects that were deleted at second 0.
    first: Vec<Option<Key>>,
    /// The objects as they are written into the stream.
    stream: Vec<Value>,
    timeline: Timeline,
    has_nodes: bool,
    pub(super) left_out: LeftOut,
}

#[derive(Debug)]
struct Known {
    /// The whole object, with the fields that the API server and controllers have written.
    whole: Value,
    /// True if a simulated controller makes the object; its changes are left out.
    is_owned: bool,
    /// True if its deletion was requested.
    is_leaving: bool,
}

/// A history, as the parts of a scenario.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) objects: Vec<Value>,
    pub(super) steps: Vec<Value>,
    pub(super) lasted: String,
    pub(super) has_nodes: bool,
    pub(super) notes: Vec<String>,
}

impl History {
    /// Adds an object of second 0, or replaces its state.
    pub(super) fn begin(&mut self, object: &KubeObject) {
        let Some(key) = Key::of(object) else {
            return self.left_out.unmodelled(object.kind());
        };
        let whole = object.to_json();
        let known = Known {
            is_leaving: is_leaving(&whole),
            whole,
            is_owned: false,
        };
        if self.known.insert(key.clone(), known).is_none() {
            self.first.push(Some(key));
        }
    }

    /// Removes an object that was deleted at second 0.
    pub(super) fn end_at_once(&mut self, key: &Key) {
        self.known.remove(key);
        self.first.retain(|first| first.as_ref() != Some(key));
    }

    /// Ends second 0.
    pub(super) fn seal(&mut self) {
        let first: Vec<Key> = std::mem::take(&mut self.first)
            .into_iter()
            .flatten()
            .collect();
        let with_owners = first
            .iter()
            .filter_map(|key| owner(&self.known.get(key)?.whole, key));
        let owners: BTreeSet<Key> = with_owners.collect();
        for key in &first {
            self.has_nodes |= key.of.kind == "Node";
            let owner = self
                .known
                .get(key)
                .and_then(|known| owner(&known.whole, key));
            let is_owned = owner
                .as_ref()
                .is_some_and(|owner| self.known.contains_key(owner));
            let Some(known) = self.known.get_mut(key) else {
                continue;
            };
            known.is_owned = is_owned;
            let has_owner = !known.whole["metadata"]["ownerReferences"].is_null();
            self.left_out.n_orphans += usize::from(has_owner && !is_owned);
            // A uid lets owners refer to the object, and shows that an API server has set all defaults. An object that
            // owns nothing needs neither.
            let is_tied = is_owned || owners.contains(key) || key.of.pods != Pods::Make;
            let mut written = match is_tied {
                true => known.whole.clone(),
                false => as_made(key.of.kind, &known.whole),
            };
            if let Some(metadata) = written["metadata"].as_object_mut() {
                metadata.shift_remove("managedFields");
                if !is_owned {
                    metadata.shift_remove("ownerReferences");
                }
            }
            // A recorder writes an empty status; an API server does not.
            if written["status"] == json!({}) {
                written
                    .as_object_mut()
                    .map(|fields| fields.shift_remove("status"));
            }
            self.stream.push(written);
        }
    }

    /// The whole object as last recorded.
    pub(super) fn whole(&self, key: &Key) -> Option<&Value> {
        self.known.get(key).map(|known| &known.whole)
    }

    /// An object of this namespace and name, of any kind.
    pub(super) fn namesake(&self, namespace: Option<&str>, name: &str) -> Option<&Value> {
        let mut all = self.known.iter();
        let found = all.find(|(key, _)| key.namespace.as_deref() == namespace && key.name == name);
        found.map(|(_, known)| &known.whole)
    }

    /// Records a new state of an object. `at` must not decrease.
    pub(super) fn set(&mut self, at: Span, object: &KubeObject, making: Making) {
        let Some(key) = Key::of(object) else {
            return self.left_out.unmodelled(object.kind());
        };
        let whole = object.to_json();
        let kind = key.of.kind;
        let known = self.known.get(&key);
        let is_owned = match known {
            Some(known) => known.is_owned,
            None => owner(&whole, &key).is_some_and(|owner| self.known.contains_key(&owner)),
        };
        let was_leaving = known.is_some_and(|known| known.is_leaving);
        let is_leaving = is_leaving(&whole);
        let act = match known {
            _ if is_owned => None,
            Some(_) if is_leaving && !was_leaving => Some(Act::Delete),
            Some(_) if is_leaving => None,
            Some(known) => changed(kind, &known.whole, &whole),
            None if is_leaving => None,
            None => {
                if !whole["metadata"]["ownerReferences"].is_null() {
                    self.left_out.n_orphans += 1;
                }
                let made = as_made(kind, &whole);
                Some(match making {
                    Making::Apply => Act::Apply(made),
                    Making::Create => Act::Create(made),
                })
            }
        };
        self.has_nodes |= kind == "Node";
        match act {
            Some(act) => self.timeline.add(at, key.target(), act),
            None if is_owned => self.left_out.n_owned += 1,
            None => self.left_out.n_idle += 1,
        }
        let known = Known {
            whole,
            is_owned,
            is_leaving,
        };
        self.known.insert(key, known);
    }

    /// Records that an object is gone.
    pub(super) fn delete(&mut self, at: Span, key: &Key) {
        match self.known.remove(key) {
            None => self.left_out.n_unknown += 1,
            Some(known) if known.is_owned => self.left_out.n_owned += 1,
            // The timeline has the deletion since it was requested.
            Some(known) if known.is_leaving => self.left_out.n_idle += 1,
            Some(_) => self.timeline.add(at, key.target(), Act::Delete),
        }
    }

    /// Returns the parts of the scenario.
    pub(super) fn finish(self) -> Told {
        Told {
            objects: self.stream,
            lasted: span(self.timeline.end()),
            steps: self.timeline.finish(),
            has_nodes: self.has_nodes,
            notes: self.left_out.notes(),
        }
    }
}

/// The change between two states, without the fields that the simulated cluster writes itself; `None` if there is none.
fn changed(kind: &str, before: &Value, after: &Value) -> Option<Act> {
    let (before, after) = (intent(kind, before), intent(kind, after));
    if before == after {
        return None;
    }
    let patch = difference(&before, &after);
    let replicas = patch["spec"]["replicas"]
        .as_u64()
        .filter(|n| u32::try_from(*n).is_ok());
    if let Some(replicas) = replicas
        && kinds::of_kind(kind).is_some_and(|row| row.scales)
        && patch == json!({"spec": {"replicas": replicas}})
    {
        return Some(Act::Scale(replicas));
    }
    Some(Act::Patch(patch))
}

fn is_leaving(whole: &Value) -> bool {
    !whole["metadata"]["deletionTimestamp"].is_null()
}

/// The controller that made the object, if the simulation has that kind of controller.
fn owner(whole: &Value, key: &Key) -> Option<Key> {
    let owners = whole["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    // The simulation runs the controllers of all kinds that make pods.
    let of = kinds::of_kind(owner["kind"].as_str()?).filter(|row| row.pods == Pods::Make)?;
    Some(Key {
        of,
        namespace: key.namespace.clone(),
        name: owner["name"].as_str()?.to_owned(),
    })
}
