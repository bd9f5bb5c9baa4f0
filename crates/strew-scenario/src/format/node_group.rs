//! Groups of equal nodes, made from a template.

use k8s_openapi::api::core::v1::Node;
use serde_json::Value;
use strew_apiserver::validation::Validate;
use strew_manifest::json::Json;
use strew_manifest::read::RawSchema;
use strew_model::Span;

use super::diagnostics;
use super::problems::Problems;
use super::value::At;
use super::vocabulary::NODE_GROUP;

/// Nodes named NAME-0, NAME-1, …
#[derive(Debug, Clone)]
pub struct NodeGroup {
    /// Its name.
    pub name: String,
    /// The autoscaler keeps at least this many nodes.
    pub min: u32,
    /// The autoscaler makes at most this many nodes.
    pub max: u32,
    /// Nodes at second 0.
    pub size: u32,
    /// From the request for a new node to its readiness; `None`: as the scenario's timing says.
    pub boot: Option<Span>,
    /// The template of its nodes, without a name.
    pub template: Node,
}

/// The most nodes of one group: ten times the largest clusters known.
const NODES_MAX: u32 = 100_000;

impl NodeGroup {
    /// The name of its node with this number.
    pub fn node_name(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    /// True if a node of this name can belong to the group.
    pub fn may_have(&self, node: &str) -> bool {
        let number = node
            .strip_prefix(&self.name)
            .and_then(|n| n.strip_prefix('-'));
        let number: Option<u32> = number.and_then(|n| n.parse().ok());
        number.is_some_and(|number| {
            number < self.max.max(self.size) && self.node_name(number) == node
        })
    }
}

pub(super) fn read(at: &At<'_>, problems: &mut Problems) -> Option<NodeGroup> {
    let fields = at.fields(&NODE_GROUP, problems)?;
    let name = fields.required("name", problems);
    let name = name.and_then(|at| group_name(&at, problems));
    let mut number = |name| {
        let at = fields.get(name)?;
        let number = at.count(problems)?;
        if number > NODES_MAX {
            problems.add(&at.path, diagnostics::too_many_nodes(NODES_MAX));
            return None;
        }
        Some(number)
    };
    let (min, max, size) = (number("min"), number("max"), number("size"));
    let has_number = fields.get("size").is_some() || fields.get("min").is_some();
    if !has_number {
        problems.add(&at.path, diagnostics::missing("size"));
    }
    let path = |name: &'static str| fields.path().child(name);
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let error = diagnostics::reversed(&min, &max);
        problems.add_pair(&path("min"), error, &path("max"), "no more than this");
    } else if let Some(size) = size {
        if let Some(min) = min.filter(|min| size < *min) {
            let error = diagnostics::size_outside(size, "less than min", min);
            problems.add_pair(&path("size"), error, &path("min"), "no less than this");
        }
        if let Some(max) = max.filter(|max| size > *max) {
            let error = diagnostics::size_outside(size, "more than max", max);
            problems.add_pair(&path("size"), error, &path("max"), "no more than this");
        }
    }
    let boot = fields.get("boot").and_then(|at| at.span(problems));
    let template = fields.required("template", problems)?;
    let template = node(&template, problems);
    let size = size.or(min)?;
    Some(NodeGroup {
        name: name?.to_owned(),
        min: min.unwrap_or(size),
        max: max.unwrap_or(size).max(size),
        size,
        boot,
        template: template?,
    })
}

/// A group's name must make valid names of nodes.
fn group_name<'v>(at: &At<'v>, problems: &mut Problems) -> Option<&'v str> {
    let name = at.name(problems)?;
    let is_plain = name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.');
    let has_ends = !name.starts_with(['-', '.']) && !name.ends_with(['-', '.']);
    if !is_plain || !has_ends || name.len() > 240 {
        problems.add(&at.path, diagnostics::bad_name(name));
        return None;
    }
    Some(name)
}

fn node(at: &At<'_>, problems: &mut Problems) -> Option<Node> {
    if !at.value.is_object() {
        problems.add(&at.path, diagnostics::wrong_type("a Node", at.value));
        return None;
    }
    if !at.value["metadata"]["name"].is_null() {
        let path = at.path.child("metadata.name");
        problems.add_key(&path, diagnostics::named_template());
    }
    let mut value = at.value.clone();
    value["apiVersion"] = Value::from("v1");
    value["kind"] = Value::from("Node");
    let faults = RawSchema::of("v1 Node").check(&mut value);
    if !faults.is_empty() {
        problems.add_faults(&at.path, faults);
        return None;
    }
    let mut node: Node = match Node::of_json(value) {
        Ok(node) => node,
        Err(error) => {
            problems.add(&at.path, diagnostics::undecodable(&error));
            return None;
        }
    };
    let mut named = node.clone();
    named.metadata.name = Some("template".to_owned());
    for error in named.validate() {
        problems.add(
            &at.path.join(&error.path),
            diagnostics::invalid_field(&error),
        );
    }
    node.metadata.name = None;
    Some(node)
}
