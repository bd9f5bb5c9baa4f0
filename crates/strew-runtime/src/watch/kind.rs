//! Kinds of objects, as URL paths and RBAC rules name them.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_manifest::read::KubeObject;
use strew_wire::facts::Named;

/// A kind of objects in a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: Arc<str>,
    /// The version in the group.
    pub version: Arc<str>,
    /// The kind: `Deployment`.
    pub kind: Arc<str>,
    /// The plural name: `deployments`.
    pub plural: Arc<str>,
}

impl Kind {
    /// A kind by its names.
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
        }
    }

    /// The kind of a type.
    pub fn of<K: k8s_openapi::Resource>() -> Self {
        Self::new(K::GROUP, K::VERSION, K::KIND, K::URL_PATH_SEGMENT)
    }

    /// `apps/v1`, `v1`.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of an object, below which its subresources are.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let (group, version, plural) = (&self.group, &self.version, &self.plural);
        let mut path = match &**group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        if !namespace.is_empty() {
            path = format!("{path}/namespaces/{namespace}");
        }
        format!("{path}/{plural}/{name}")
    }

    /// JSON for a deleted object, of which only the name is known.
    pub fn remains(&self, named: &Named) -> Value {
        let mut metadata = json!({"name": &*named.name, "uid": &*named.uid});
        if !named.namespace.is_empty() {
            metadata["namespace"] = (&*named.namespace).into();
        }
        json!({"apiVersion": self.api_version(), "kind": &*self.kind, "metadata": metadata})
    }

    /// [`Self::remains`] as an object, if strew knows the kind: for machines that get deletions as objects.
    pub fn known_remains(&self, named: &Named) -> Option<KubeObject> {
        KubeObject::of_json(self.remains(named)).ok()
    }
}

/// `pods`, `deployments.apps`: in the form of `kubectl auth can-i`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.group {
            "" => f.write_str(&self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Node;

    use super::*;

    #[test]
    fn a_kind_has_paths_and_names() {
        let deployments = Kind::of::<Deployment>();
        assert_eq!(
            deployments.path("shop", "web"),
            "/apis/apps/v1/namespaces/shop/deployments/web"
        );
        assert_eq!(deployments.to_string(), "deployments.apps");
        let nodes = Kind::of::<Node>();
        assert_eq!(nodes.path("", "n1"), "/api/v1/nodes/n1");
        assert_eq!(nodes.to_string(), "nodes");
    }

    #[test]
    fn what_is_left_of_an_object_names_it() {
        let named = Named {
            namespace: "shop".into(),
            name: "web".into(),
            uid: "1".into(),
        };
        let left = Kind::of::<Deployment>().known_remains(&named).unwrap();
        let metadata = left.metadata().unwrap();
        assert_eq!(
            (left.kind(), left.namespace()),
            ("Deployment", Some("shop"))
        );
        assert_eq!(metadata.uid.as_deref(), Some("1"));
        let custom = Kind::new("example.org", "v1", "Game", "games");
        assert!(custom.known_remains(&named).is_none());
    }
}
