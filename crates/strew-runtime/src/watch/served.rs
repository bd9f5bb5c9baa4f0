//! The kinds that an API server serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Kind;

/// A served kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedKind {
    /// Group, version, kind and plural name.
    pub kind: Kind,
    /// True if it has the subresource `scale`.
    pub has_scale: bool,
}

/// The served kinds in each of their versions, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Served(BTreeMap<(Arc<str>, Arc<str>), Vec<ServedKind>>);

impl Served {
    /// The versions of a kind, the preferred one first.
    pub fn versions(&self, group: &str, kind: &str) -> &[ServedKind] {
        let found = self.0.get(&(group.into(), kind.into()));
        found.map_or(&[], Vec::as_slice)
    }

    /// True if a kind is served in its version.
    pub fn has(&self, kind: &Kind) -> bool {
        let versions = self.versions(&kind.group, &kind.kind);
        versions.iter().any(|served| served.kind == *kind)
    }
}

impl FromIterator<ServedKind> for Served {
    fn from_iter<T: IntoIterator<Item = ServedKind>>(all: T) -> Self {
        let mut served = Self::default();
        served.extend(all);
        served
    }
}

impl Extend<ServedKind> for Served {
    fn extend<T: IntoIterator<Item = ServedKind>>(&mut self, all: T) {
        for served in all {
            let kind = &served.kind;
            let key = (Arc::clone(&kind.group), Arc::clone(&kind.kind));
            self.0.entry(key).or_default().push(served);
        }
    }
}
