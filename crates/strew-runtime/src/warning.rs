//! Warnings of a process in one form; a missing field does not compile.

use std::fmt::Display;

use strew_wire::request::Request;

/// A failed action.
#[derive(Clone, Copy)]
pub struct Warning<'a> {
    /// The kind of the object: `Pod`, `Lease`; or a name for something that is no object.
    pub kind: &'a str,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Its name; empty if it concerns all objects of the kind.
    pub name: &'a str,
    /// The node for the object.
    pub node: Option<&'a str>,
    /// The failed action, such as `bind`.
    pub action: &'a str,
    /// The error.
    pub error: &'a (dyn Display + Sync),
    /// When it is retried, or what happens next.
    pub next: &'a str,
}

impl<'a> Warning<'a> {
    /// A failed request.
    pub fn of(
        request: &'a Request,
        action: &'a str,
        error: &'a (dyn Display + Sync),
        next: &'a str,
    ) -> Self {
        let kind = match request.resource.plural {
            "events" => "Event",
            "leases" => "Lease",
            "placementdecisions" => "PlacementDecision",
            "placements" => "Placement",
            "pods" => "Pod",
            "workloadspreads" => "WorkloadSpread",
            plural => plural,
        };
        let of_body = |path| request.body.pointer(path).and_then(|node| node.as_str());
        Self {
            kind,
            namespace: &request.namespace,
            name: &request.name,
            node: of_body("/target/name").or_else(|| of_body("/status/nominatedNodeName")),
            action,
            error,
            next,
        }
    }

    /// Writes it to the log.
    pub fn log(&self) {
        let some = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        tracing::warn!(
            kind = self.kind,
            namespace = some(self.namespace),
            name = some(self.name),
            node = self.node,
            action = self.action,
            error = %self.error,
            next = self.next,
            "{} failed",
            self.action
        );
    }
}
