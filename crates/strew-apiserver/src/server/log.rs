//! The log of changes, and cursors that read it.
//!
//! A listener has a [`Cursor`]. The log keeps a change until every cursor has passed it; a dropped cursor does not
//! count.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::Server;
use crate::object::{Key, Kind, Object};

/// A write of the store.
#[derive(Debug, Clone)]
pub struct Change {
    /// The object.
    pub key: Key,
    /// The previous state; `None` if the object is new.
    pub old: Option<Object>,
    /// The present state; `None` if the object is gone.
    pub new: Option<Object>,
}

impl Change {
    /// True if the object is of this kind.
    pub fn is_of(&self, kind: &Kind) -> bool {
        self.key.kind == *kind
    }
}

/// A position in the log of one server: the number of the next change to read.
#[derive(Debug)]
pub struct Cursor(Arc<AtomicU64>);

impl Cursor {
    fn position(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn move_to(&mut self, position: u64) {
        self.0.store(position, Ordering::Relaxed);
    }
}

/// The length at which the log drops changes that every cursor has passed.
const TRIM_AT_MIN: usize = 1_024;

/// Changes that some cursor has not passed; the first one has number `start`.
#[derive(Debug, Default)]
pub(super) struct Log {
    changes: VecDeque<Change>,
    start: u64,
    cursors: RefCell<Vec<Weak<AtomicU64>>>,
    trim_at: usize,
}

impl Log {
    pub(super) fn push(&mut self, change: Change) {
        if self.changes.len() >= self.trim_at {
            self.trim();
        }
        self.changes.push_back(change);
    }

    fn end(&self) -> u64 {
        self.start + self.changes.len() as u64
    }

    fn get(&self, number: u64) -> Option<&Change> {
        let index = number.checked_sub(self.start)?;
        self.changes.get(usize::try_from(index).ok()?)
    }

    /// Drops changes that every cursor has passed. Cost: linear in the cursors and the dropped changes.
    fn trim(&mut self) {
        let end = self.end();
        let cursors = self.cursors.get_mut();
        cursors.retain(|cursor| cursor.strong_count() > 0);
        let positions = cursors.iter().filter_map(Weak::upgrade);
        let slowest = positions.map(|cursor| cursor.load(Ordering::Relaxed)).min();
        let slowest = slowest.unwrap_or(end);
        let n_passed = usize::try_from(slowest.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.changes.drain(..n_passed.min(self.changes.len()));
        self.start = slowest.max(self.start);
        self.trim_at = TRIM_AT_MIN.max(2 * self.changes.len());
    }
}

impl Server {
    /// A cursor after the last change.
    pub fn listen(&self) -> Cursor {
        let position = Arc::new(AtomicU64::new(self.log.end()));
        let mut cursors = self.log.cursors.borrow_mut();
        cursors.push(Arc::downgrade(&position));
        Cursor(position)
    }

    /// The next change, if there is one; the cursor moves past it.
    pub fn next_change(&self, cursor: &mut Cursor) -> Option<&Change> {
        let position = cursor.position();
        let change = self.log.get(position)?;
        cursor.move_to(position + 1);
        Some(change)
    }

    /// True if there are changes that the cursor has not passed.
    pub fn is_behind(&self, cursor: &Cursor) -> bool {
        cursor.position() < self.log.end()
    }

    /// Moves the cursor past the last change. Returns whether it passed any.
    pub fn catch_up(&self, cursor: &mut Cursor) -> bool {
        let is_behind = self.is_behind(cursor);
        cursor.move_to(self.log.end());
        is_behind
    }

    /// True if there are changes since the last call with `seen`, which holds the position; true on the first call.
    pub fn has_changed(&self, seen: &mut Option<Cursor>) -> bool {
        match seen {
            Some(seen) => self.catch_up(seen),
            None => {
                *seen = Some(self.listen());
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use strew_model::Prng;
    use strew_model::time::Instant;
    use strew_wire::config::AdmissionOptions;

    use super::*;
    use crate::object::Part;

    fn node(name: &str) -> Object {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        Object::of_wire(node.into())
    }

    fn write(server: &mut Server, n_nodes: usize) {
        for number in 0..n_nodes {
            server.preload(Instant::from_secs(100), node(&format!("n{number}")));
        }
    }

    #[test]
    fn a_change_tells_what_was_and_what_is() {
        let now = Instant::from_secs(100);
        let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(1));
        let mut cursor = server.listen();
        write(&mut server, 1);
        let mut changed = server.tables().all()[0].clone();
        let key = changed.key();
        changed.meta_mut().annotate("a", "b");
        server.update(Part::Main, changed).unwrap();
        server
            .delete(now, &key, &crate::DeleteOptions::default())
            .unwrap();
        let mut versions = Vec::new();
        while let Some(Change { old, new, .. }) = server.next_change(&mut cursor) {
            let version = |object: &Option<Object>| object.as_ref().map(|o| o.meta().version);
            versions.push((version(old), version(new)));
        }
        assert_eq!(
            versions,
            [(None, Some(1)), (Some(1), Some(2)), (Some(2), None)]
        );
    }

    #[test]
    fn the_slowest_cursor_decides_what_is_kept() {
        let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(1));
        let (mut fast, mut slow) = (server.listen(), server.listen());
        let gone = server.listen();
        drop(gone);
        for _ in 0..10 {
            write(&mut server, 1_000);
            assert!(server.catch_up(&mut fast));
        }
        assert_eq!(server.log.changes.len(), 10_000);
        let read = std::iter::from_fn(|| server.next_change(&mut slow).map(|_| ()));
        assert_eq!(read.count(), 10_000);
        assert!(!server.is_behind(&slow));
        for _ in 0..30 {
            write(&mut server, 1_000);
            server.catch_up(&mut fast);
            server.catch_up(&mut slow);
        }
        assert!(server.log.changes.len() <= 2 * TRIM_AT_MIN);
        drop((fast, slow));
        write(&mut server, 2 * TRIM_AT_MIN);
        assert!(server.log.changes.len() <= TRIM_AT_MIN);
    }
}
