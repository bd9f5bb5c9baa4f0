//! Claims as CEL expressions over `pods`, `nodes`, `objects` and `now`.

use serde_json::{Value as Json, json};
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Pod, moment};
use strew_apiserver::server::Cursor;
use strew_cel::{Program, Unknown, Value, Variables};
use strew_manifest::read::nearest;
use strew_sim::Simulation;

use super::{Answer, Verdict};

/// The variables of expressions, built once per state of the store and shared by all expressions judged in that state.
#[derive(Default)]
pub struct Views {
    /// The variables, with the position in the change log at which they were built.
    made: Option<(Cursor, Variables)>,
}

impl Views {
    /// Judges an expression.
    pub fn judge(&mut self, simulation: &Simulation, program: &Program) -> Verdict {
        let server = simulation.server();
        self.made.take_if(|(seen, _)| server.is_behind(seen));
        let (_, variables) = self
            .made
            .get_or_insert_with(|| (server.listen(), variables(simulation)));
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

fn variables(simulation: &Simulation) -> Variables {
    let tables = simulation.server().tables();
    let list = |values: Vec<Json>| Value::list(values.iter().map(Value::from_json));
    let pods = tables.of::<Pod>().iter().map(|pod| self::pod(tables, pod));
    let nodes = tables
        .of::<Node>()
        .iter()
        .map(|node| self::node(tables, node));
    let objects = tables.all().into_iter();
    let objects = objects.filter(|object| {
        use strew_apiserver::object::Object;
        !matches!(object, Object::Pod(_) | Object::Node(_))
    });
    let now = moment::to_wire(simulation.now()).0.to_string();
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
