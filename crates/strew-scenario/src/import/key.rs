//! The identity of a recorded object.

use strew_manifest::kinds::{self, KindRow};
use strew_manifest::read::KubeObject;

/// An object of a kind that strew models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) of: &'static KindRow,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl Key {
    /// `None` if strew does not model the kind.
    pub(super) fn of(object: &KubeObject) -> Option<Self> {
        if matches!(object, KubeObject::Other(_)) {
            return None;
        }
        let of = kinds::of_kind(object.kind())?;
        Some(Self {
            of,
            namespace: object.namespace().map(str::to_owned),
            name: object.name().to_owned(),
        })
    }

    /// The object's name in scenarios: `dsb/deployment/web`, `deployment/web`, `node/n1`.
    pub(super) fn target(&self) -> String {
        let kind = self.of.kind.to_lowercase();
        match self.namespace.as_deref() {
            None | Some("default") => format!("{kind}/{}", self.name),
            Some(namespace) => format!("{namespace}/{kind}/{}", self.name),
        }
    }

    fn parts(&self) -> (&str, Option<&str>, &str) {
        (self.of.kind, self.namespace.as_deref(), &self.name)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}
