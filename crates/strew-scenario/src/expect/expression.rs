//! Claims as CEL expressions over `pods`, `nodes`, `objects` and `now`.

use serde_json::{Value as Json, json};
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Pod, moment};
use strew_apiserver::server::Cursor;
use strew_cel::{Program, Value, Variables};
use strew_sim::Simulation;

use super::Verdict;

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
            Err(error) => Verdict::new(false, error.message),
        }
    }
}

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
