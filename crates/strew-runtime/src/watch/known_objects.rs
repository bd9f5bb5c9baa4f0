//! The names and uids of one kind's objects that a watch has reported.
//!
//! A broken watch resumes; one that is too old starts again with a list, and a list does not contain deleted objects.
//! [`KnownObjects`] finds them: it remembers which objects existed.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use strew_wire::facts::Named;

/// The objects of one kind that a watch has reported.
#[derive(Debug, Default)]
pub struct KnownObjects {
    /// By namespace, then by name; no namespace is empty.
    known: BTreeMap<Box<str>, FxHashMap<Box<str>, Entry>>,
    /// The number of the present list, to find objects that are missing from it.
    list: u32,
}

#[derive(Debug)]
struct Entry {
    uid: Box<str>,
    list: u32,
}

impl KnownObjects {
    /// The number of objects.
    pub fn len(&self) -> usize {
        self.known.values().map(FxHashMap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// True if there is an object in this namespace.
    pub fn has_in(&self, namespace: &str) -> bool {
        self.known.contains_key(namespace)
    }

    /// True if the object with this uid exists.
    pub fn has(&self, object: &Named) -> bool {
        let names = self.known.get(&object.namespace);
        let entry = names.and_then(|names| names.get(&object.name));
        entry.is_some_and(|entry| entry.uid == object.uid)
    }

    /// Begins a list.
    pub fn list_begins(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// Adds an object. Returns the object that had this name before with another uid, whose deletion was not reported.
    pub fn set(&mut self, namespace: &str, name: &str, uid: &str) -> Option<Named> {
        let list = self.list;
        let names = self.names(namespace);
        if let Some(entry) = names.get_mut(name) {
            entry.list = list;
            if &*entry.uid == uid {
                return None;
            }
            let uid = std::mem::replace(&mut entry.uid, uid.into());
            return Some(Named {
                namespace: namespace.into(),
                name: name.into(),
                uid,
            });
        }
        let uid = uid.into();
        names.insert(name.into(), Entry { uid, list });
        None
    }

    /// Adds an object that this replica created, before a watch reports it. If it is deleted before, the next list
    /// lacks it.
    pub fn made(&mut self, namespace: &str, name: &str, uid: &str) {
        let list = self.list;
        let entry = self.names(namespace).entry(name.into());
        entry.or_insert_with(|| Entry {
            uid: uid.into(),
            list,
        });
    }

    /// Removes an object.
    pub fn gone(&mut self, namespace: &str, name: &str) {
        if let Some(names) = self.known.get_mut(namespace) {
            names.remove(name);
            if names.is_empty() {
                self.known.remove(namespace);
            }
        }
    }

    /// Ends a list. Returns the objects that are missing from it, by namespace and name.
    pub fn list_ends(&mut self) -> Vec<Named> {
        let list = self.list;
        let mut all_gone = Vec::new();
        self.known.retain(|namespace, names| {
            let gone = names.extract_if(|_, entry| entry.list != list);
            let mut gone: Vec<(Box<str>, Entry)> = gone.collect();
            gone.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            all_gone.extend(gone.into_iter().map(|(name, entry)| Named {
                namespace: namespace.clone(),
                name,
                uid: entry.uid,
            }));
            !names.is_empty()
        });
        all_gone
    }

    /// The objects of a namespace, to which one is added.
    fn names(&mut self, namespace: &str) -> &mut FxHashMap<Box<str>, Entry> {
        self.known.entry(namespace.into()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(gone: &[Named]) -> Vec<String> {
        let each = gone.iter();
        each.map(|n| format!("{}/{} {}", n.namespace, n.name, n.uid))
            .collect()
    }

    #[test]
    fn a_list_tells_what_is_gone() {
        let mut known = KnownObjects::default();
        known.list_begins();
        for (name, uid) in [("c", "3"), ("b", "2"), ("a", "1")] {
            assert_eq!(known.set("shop", name, uid), None);
        }
        assert!(known.list_ends().is_empty());
        known.gone("shop", "b");
        let named = |name: &str, uid: &str| Named {
            namespace: "shop".into(),
            name: name.into(),
            uid: uid.into(),
        };
        let there = [("a", "1"), ("a", "2"), ("b", "2")].map(|(n, u)| known.has(&named(n, u)));
        assert_eq!(there, [true, false, false]);
        known.list_begins();
        known.set("shop", "d", "4");
        assert_eq!(names(&known.list_ends()), ["shop/a 1", "shop/c 3"]);
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn another_object_of_a_name_tells_that_the_first_is_gone() {
        let mut known = KnownObjects::default();
        assert_eq!(known.set("", "node-1", "1"), None);
        assert_eq!(known.set("", "node-1", "1"), None);
        let old = known.set("", "node-1", "2");
        assert_eq!(names(old.as_slice()), ["/node-1 1"]);
        assert!(!known.is_empty());
    }

    #[test]
    fn what_comes_between_two_lists_stays() {
        let mut known = KnownObjects::default();
        known.list_begins();
        known.set("shop", "a", "1");
        assert!(known.list_ends().is_empty());
        known.set("shop", "b", "2");
        known.list_begins();
        known.set("shop", "a", "1");
        known.set("shop", "b", "2");
        assert!(known.list_ends().is_empty());
    }
}
