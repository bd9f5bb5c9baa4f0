//! Claims as CEL expressions over `pods`, `nodes`, `objects` and `now`.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Pod, Stored, moment};
use strew_apiserver::server::Cursor;
use strew_cel::{Program, Unknown, Value, Variables};
use strew_manifest::read::nearest;

use super::{Answer, Present, Verdict};

/// The variables of expressions, built once per state of the store and shared by all expressions judged in that state.
pub struct Views {
    /// The variables, with the position in the change log at which they were built.
    made: Option<(Cursor, Variables)>,
    /// True if pods have their `spec`.
    has_specs: bool,
}

impl Views {
    /// For expressions with these texts: pods have their `spec`, which is large, only if one of them names it.
    pub fn new<'a>(mut texts: impl Iterator<Item = &'a str>) -> Self {
        Self {
            made: None,
            has_specs: texts.any(|text| text.contains("spec")),
        }
    }

    /// Judges an expression.
    pub fn judge(&mut self, present: &dyn Present, program: &Program) -> Verdict {
        let server = present.server();
        self.made.take_if(|(seen, _)| server.is_behind(seen));
        let (_, variables) = self
            .made
            .get_or_insert_with(|| (server.listen(), variables(present, self.has_specs)));
        match program.holds(variables) {
            Ok(true) => Verdict::new(true, String::new()),
            Ok(false) => Verdict::new(false, "the expression is false"),
            Err(error) => {
                let there = error.unknown.as_deref().map(there_are);
                let there = there.map_or_else(String::new, |there| format!("; {there}"));
                let why = format!("the expression ended in an error: {error}{there}");
                Verdict::of(Answer::Unknown, why)
            }
        }
    }
}

/// The fields that there are instead of one that is not, and the nearest one.
pub fn there_are(unknown: &Unknown) -> String {
    let Unknown { of, name, known } = unknown;
    let told = known.iter().take(KEYS_TOLD).map(String::as_str);
    let mut list = told.collect::<Vec<_>>().join(", ");
    if known.len() > KEYS_TOLD {
        list += &format!(", … {} more", known.len() - KEYS_TOLD);
    }
    let has = match known.is_empty() {
        true => format!("{of} has none"),
        false => format!("{of} has {list}"),
    };
    match meant(name, known.iter().map(String::as_str)) {
        Some(meant) => format!("{has}; did you mean {meant}?"),
        None => has,
    }
}

/// The nearest of the known names, or the longest that begins or ends the name: `node` for `nodeName`, `ready` for
/// `isReady`.
pub fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let is_part = |known: &&str| {
        let known = known.to_lowercase();
        !known.is_empty() && (lower.starts_with(&known) || lower.ends_with(&known))
    };
    let part = || {
        known
            .clone()
            .filter(is_part)
            .max_by_key(|known| known.len())
    };
    nearest(name, known.clone()).or_else(part)
}

/// Fields that an error lists by name.
const KEYS_TOLD: usize = 20;

fn variables(present: &dyn Present, has_specs: bool) -> Variables {
    let tables = present.server().tables();
    let list = |values: Vec<Json>| Value::list(values.iter().map(Value::from_json));
    let pods = tables.of::<Pod>().iter().map(|pod| {
        let mut value = self::pod(tables, pod);
        if has_specs {
            value["spec"] = Pod::into_object(Arc::clone(pod)).to_json()["spec"].take();
        }
        value
    });
    let nodes = tables
        .of::<Node>()
        .iter()
        .map(|node| self::node(tables, node));
    let objects = tables.all().into_iter();
    let objects = objects.filter(|object| {
        use strew_apiserver::object::Object;
        !matches!(object, Object::Pod(_) | Object::Node(_))
    });
    let now = moment::to_wire(present.now()).0.to_string();
    let now = Value::timestamp(&now).unwrap_or_else(|| Value::from_json(&Json::Null));
    let pods = list(pods.collect());
    let nodes = list(nodes.collect());
    let objects = list(objects.map(|object| object.to_json()).collect());
    Variables::scenario(pods, nodes, objects, now)
}

/// A pod as a CEL value; `domains` holds the labels of its node.
fn pod(tables: &Tables, pod: &Pod) -> Json {
    let node = pod.node.as_deref().unwrap_or_default();
    let found = tables.get::<Node>(&Name::new("", node));
    json!({
        "name": &*pod.meta.name.name,
        "namespace": &*pod.meta.name.namespace,
        "labels": *pod.meta.labels,
        "annotations": *pod.meta.annotations,
        "phase": pod.status.phase.name(),
        "node": node,
        "ready": pod.is_ready(),
        "terminating": pod.meta.is_terminating(),
        "domains": found.map(|node| (*node.meta.labels).clone()).unwrap_or_default(),
    })
}

fn node(tables: &Tables, node: &Node) -> Json {
    let name = &*node.meta.name.name;
    let mut conditions = node.status.conditions.iter().flatten();
    json!({
        "name": name,
        "labels": *node.meta.labels,
        "ready": conditions.any(|c| c.type_ == "Ready" && c.status == "True"),
        "unschedulable": node.spec.unschedulable.unwrap_or(false),
        "pods": tables.pods_on(name).filter(|pod| pod.is_active()).count(),
    })
}
