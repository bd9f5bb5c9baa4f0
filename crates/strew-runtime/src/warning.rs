//! Warnings of a process in one form; a missing field does not compile.

use std::fmt::Display;

use strew_api::request::Request;

/// Something that was tried and failed.
#[derive(Clone, Copy)]
pub struct Warning<'a> {
    /// The kind of the object that it is about: `Pod`, `Lease`; of what is no object, what it is.
    pub kind: &'a str,
    /// Its namespace; empty where its kind has none.
    pub namespace: &'a str,
    /// Its name; empty where it is about all objects of the kind.
    pub name: &'a str,
    /// The node that the object was meant for.
    pub node: Option<&'a str>,
    /// What was tried, such as `bind`.
    pub action: &'a str,
    /// Why it failed.
    pub error: &'a (dyn Display + Sync),
    /// When it is tried again, or what holds from now on.
    pub next: &'a str,
}

impl<'a> Warning<'a> {
    /// A request has failed.
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

    /// Writes it into the log.
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
