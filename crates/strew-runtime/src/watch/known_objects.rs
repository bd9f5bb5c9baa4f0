//! The names and uids of one kind's objects that a watch has reported.
//!
//! A broken watch resumes; one that is too old starts again with a list, and a list does not contain deleted objects.
//! [`KnownObjects`] finds them: it remembers which objects existed.

use std::collections::BTreeMap;
use std::ops::Bound;

use strew_wire::facts::Named;

/// The objects of one kind that a watch has reported.
#[derive(Debug, Default)]
pub struct KnownObjects {
    /// By namespace and name, with a slash between them.
    known: BTreeMap<Box<str>, Entry>,
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
        self.known.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// True if there is an object in this namespace.
    pub fn has_in(&self, namespace: &str) -> bool {
        let first = key(namespace, "");
        let from = (Bound::Included(&*first), Bound::Unbounded);
        let mut from = self.known.range::<str, _>(from);
        from.next().is_some_and(|(key, _)| key.starts_with(&*first))
    }

    /// True if the object with this uid exists.
    pub fn has(&self, object: &Named) -> bool {
        let entry = self.known.get(&key(&object.namespace, &object.name));
        entry.is_some_and(|entry| entry.uid == object.uid)
    }

    /// Begins a list.
    pub fn list_begins(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// Adds an object. Returns the object that had this name before with another uid, whose deletion was not reported.
    pub fn set(&mut self, namespace: &str, name: &str, uid: &str) -> Option<Named> {
        let key = key(namespace, name);
        let list = self.list;
        if let Some(entry) = self.known.get_mut(&key) {
            entry.list = list;
            if &*entry.uid == uid {
                return None;
            }
            let uid = std::mem::replace(&mut entry.uid, uid.into());
            return Some(named(&key, uid));
        }
        let uid = uid.into();
        self.known.insert(key, Entry { uid, list });
        None
    }

    /// Adds an object that this replica created, before a watch reports it. If it is deleted before, the next list
    /// lacks it.
    pub fn made(&mut self, namespace: &str, name: &str, uid: &str) {
        let (key, list) = (key(namespace, name), self.list);
        self.known.entry(key).or_insert_with(|| Entry {
            uid: uid.into(),
            list,
        });
    }

    /// Removes an object.
    pub fn gone(&mut self, namespace: &str, name: &str) {
        self.known.remove(&key(namespace, name));
    }

    /// Ends a list. Returns the objects that are missing from it, by namespace and name.
    pub fn list_ends(&mut self) -> Vec<Named> {
        let list = self.list;
        let gone = self.known.extract_if(.., |_, entry| entry.list != list);
        gone.map(|(key, entry)| named(&key, entry.uid)).collect()
    }
}

fn key(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into()
}

fn named(key: &str, uid: Box<str>) -> Named {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    Named {
        namespace: namespace.into(),
        name: name.into(),
        uid,
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
