//! Claims as CEL expressions over `pods`, `nodes`, `objects` and `now`.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use strew_apiserver::object::{Node, Pod, Stored, moment};
use strew_apiserver::server::{Cursor, Server};
use strew_cel::{Program, Unknown, Value, Variables};
use strew_manifest::conditions::node_ready;
use strew_manifest::read::nearest;

use super::{Answer, Present, Verdict};

/// The variables of expressions. A list is made when an expression asks for it, once per state of the store; a pod, node
/// or object is made anew if it has changed.
pub struct Views {
    pods: Listed,
    nodes: Listed,
    objects: Listed,
    /// True if pods have their `spec`.
    has_specs: bool,
}

impl Views {
    /// For expressions with these texts: pods have their `spec`, which is large, only if one of them names it.
    pub fn new<'a>(mut texts: impl Iterator<Item = &'a str>) -> Self {
        Self {
            pods: Listed::default(),
            nodes: Listed::default(),
            objects: Listed::default(),
            has_specs: texts.any(|text| text.contains("spec")),
        }
    }

    /// Judges an expression.
    pub fn judge(&mut self, present: &dyn Present, program: &Program) -> Verdict {
        match program.holds(&self.variables(present, program)) {
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

    /// The variables that the expression asks for; the others are empty.
    fn variables(&mut self, present: &dyn Present, program: &Program) -> Variables {
        let (server, has_specs) = (present.server(), self.has_specs);
        let tables = server.tables();
        let pods = || {
            let nodes = tables.of::<Node>().iter();
            let nodes: HashMap<&str, &Arc<Node>> =
                nodes.map(|node| (&*node.meta.name.name, node)).collect();
            tables.of::<Pod>().iter().map(move |pod| {
                let node = pod
                    .node
                    .as_deref()
                    .and_then(|node| nodes.get(node).copied());
                let version = node.map_or(0, |node| node.meta.version);
                ((pod.meta.version, version), move || {
                    self::pod(pod, node, has_specs)
                })
            })
        };
        let nodes = || {
            tables.of::<Node>().iter().map(|node| {
                let on_it = tables.pods_on(&node.meta.name.name);
                let n_pods = on_it.filter(|pod| pod.is_active()).count();
                ((node.meta.version, n_pods as u64), move || {
                    self::node(node, n_pods)
                })
            })
        };
        let objects = || {
            let all = tables.all().into_iter();
            all.map(|object| ((object.meta().version, 0), move || object.to_json()))
        };
        let asks = |variable| program.mentions(variable);
        let now = moment::to_wire(present.now()).0.to_string();
        let now = Value::timestamp(&now).unwrap_or_else(|| Value::from_json(&Json::Null));
        Variables::scenario(
            self.pods.get(server, asks("pods"), pods),
            self.nodes.get(server, asks("nodes"), nodes),
            self.objects.get(server, asks("objects"), objects),
            now,
        )
    }
}

/// What an element of a list is made of: versions of objects, which no two states of an object share.
type Versions = (u64, u64);

/// A list of values, with the position in the change log at which it was made.
#[derive(Default)]
struct Listed {
    made: Option<(Cursor, Value)>,
    /// In the order of the list.
    elements: Vec<(Versions, Value)>,
}

impl Listed {
    fn get<I, M>(&mut self, server: &Server, is_asked: bool, items: impl FnOnce() -> I) -> Value
    where
        I: Iterator<Item = (Versions, M)>,
        M: FnOnce() -> Json,
    {
        if !is_asked {
            return Value::list([]);
        }
        self.made.take_if(|(seen, _)| server.is_behind(seen));
        let elements = &mut self.elements;
        let (_, list) = self.made.get_or_insert_with(|| {
            let mut known = Known::new(std::mem::take(elements));
            let value = |(versions, make): (Versions, M)| {
                let known = known.take(versions);
                let value = known.unwrap_or_else(|| Value::from_json(&make()));
                elements.push((versions, value.clone()));
                value
            };
            let list = Value::list(items().map(value));
            (server.listen(), list)
        });
        list.clone()
    }
}

/// The elements of the last list. The next one has nearly the same in the same order, so an element is looked for where
/// the last one was found; if that fails often, by its versions.
struct Known {
    elements: Vec<(Versions, Value)>,
    next: usize,
    n_missed: usize,
    by_versions: Option<HashMap<Versions, usize>>,
}

impl Known {
    /// How many elements may have gone between two that stay.
    const NEAR: usize = 8;
    /// After this many elements that were not near, the versions find all others.
    const MISSED_MAX: usize = 32;

    fn new(elements: Vec<(Versions, Value)>) -> Self {
        Self {
            elements,
            next: 0,
            n_missed: 0,
            by_versions: None,
        }
    }

    fn take(&mut self, versions: Versions) -> Option<Value> {
        let mut near = self.elements.iter().skip(self.next).take(Self::NEAR);
        let mut found = near
            .position(|(known, _)| *known == versions)
            .map(|place| self.next + place);
        if found.is_none() {
            self.n_missed += 1;
        }
        if found.is_none() && self.n_missed > Self::MISSED_MAX {
            let by_versions = self.by_versions.get_or_insert_with(|| {
                let each = self.elements.iter().enumerate();
                each.map(|(place, (versions, _))| (*versions, place))
                    .collect()
            });
            found = by_versions.get(&versions).copied();
        }
        self.next = found? + 1;
        self.elements.get(found?).map(|(_, value)| value.clone())
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

/// A pod as a CEL value; `domains` holds the labels of its node.
fn pod(pod: &Arc<Pod>, node: Option<&Arc<Node>>, has_spec: bool) -> Json {
    let mut value = json!({
        "name": &*pod.meta.name.name,
        "namespace": &*pod.meta.name.namespace,
        "labels": *pod.meta.labels,
        "annotations": *pod.meta.annotations,
        "phase": pod.status.phase.name(),
        "node": pod.node.as_deref().unwrap_or_default(),
        "ready": pod.is_ready(),
        "terminating": pod.meta.is_terminating(),
        "domains": node.map(|node| (*node.meta.labels).clone()).unwrap_or_default(),
    });
    if has_spec {
        value["spec"] = Pod::into_object(Arc::clone(pod)).to_json()["spec"].take();
    }
    value
}

fn node(node: &Node, n_pods: usize) -> Json {
    json!({
        "name": &*node.meta.name.name,
        "labels": *node.meta.labels,
        "ready": node_ready(&node.status) == Some("True"),
        "unschedulable": node.spec.unschedulable.unwrap_or(false),
        "pods": n_pods,
    })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use strew_cel::Environment;
    use strew_manifest::read::Sources;
    use strew_sim::Simulation;

    use super::*;
    use crate::format::load;
    use crate::run::{Plan, Watcher, play, scheduler_of};

    /// Compares the variables that are kept with those that are made anew, at each instant.
    struct Comparison {
        kept: Views,
        all: Program,
        n_instants: usize,
    }

    fn views() -> Views {
        Views::new(["pods.map(p, p.spec)"].into_iter())
    }

    impl Watcher for Comparison {
        fn instant(&mut self, simulation: &Simulation) -> ControlFlow<()> {
            let kept = self.kept.variables(simulation, &self.all);
            let anew = views().variables(simulation, &self.all);
            assert_eq!(format!("{kept:?}"), format!("{anew:?}"));
            self.n_instants += 1;
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn variables_that_are_kept_are_those_made_anew() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/rollout.yaml");
        let mut sources = Sources::new();
        sources.add("rollout.yaml", std::fs::read_to_string(path).unwrap());
        let loaded = load(&sources);
        let variant = &loaded.variants[0];
        let gates = &variant.scenario.feature_gates;
        let scheduler = scheduler_of(&sources, &variant.objects, gates).unwrap();
        let plan = Plan::new(&variant.scenario, &variant.objects, scheduler).unwrap();
        let all = "pods.size() + nodes.size() + objects.size() > 0";
        let mut comparison = Comparison {
            kept: views(),
            all: Program::compile(all, Environment::Scenario).unwrap(),
            n_instants: 0,
        };
        play(&plan, 0, None, &mut comparison).unwrap();
        assert!(comparison.n_instants > 20, "{}", comparison.n_instants);
    }
}
