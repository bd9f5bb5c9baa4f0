//! CEL selectors of placements: OCM's `celSelector` in the filter `Predicate`, evaluated by `strew_cel`. Source:
//! spec/placement §2.3.
//!
//! A cluster is kept as JSON and converted when an expression first reads it. An answer is cached until the cluster, or
//! one of its scores, changes.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use strew_cel::{Budget, CompileError, Environment, EvalError, Program, Value, Variables};
use strew_manifest::json::Json as _;
use strew_model::{Interner, Symbol};
use strew_placement::facts::placement::{CelId, CelSelector};
use strew_placement::{Answer, ClusterPredicate, NoCel};

use super::wire::{AddOnPlacementScoreItem, ManagedCluster};
use crate::fnv::Fnv;

/// The number of compiled selectors at which unused ones are removed; each takes some kilobytes.
const SWEEP_MIN: usize = 64;

/// All CEL selectors of Placements, compiled, and all clusters.
#[derive(Debug, Default)]
pub struct CelSelectors {
    /// The ids by expressions, with the names of the scores that they read. Texts, because symbols are swept.
    by_text: BTreeMap<Vec<String>, (CelId, Option<Vec<String>>)>,
    /// By [`CelId`]; empty if the id is free.
    programs: Vec<Vec<Program>>,
    free: Vec<CelId>,
    /// The number of selectors at which the next sweep is due.
    sweep_at: usize,
    clusters: BTreeMap<Symbol, Cluster>,
    /// Scores of clusters by the object's name, as lists of name and value.
    scores: BTreeMap<Symbol, BTreeMap<String, Json>>,
}

fn selector_of(id: CelId, scores: Option<&[String]>, names: &mut Interner) -> CelSelector {
    let scores = scores.map(|all| all.iter().map(|name| names.intern(name)).collect());
    CelSelector { id, scores }
}

/// A cluster for expressions.
#[derive(Debug)]
struct Cluster {
    json: Box<str>,
    variables: OnceCell<Variables>,
    /// By [`CelId`].
    answers: RefCell<Vec<Option<Known>>>,
}

/// An answer about a cluster.
#[derive(Debug, Clone, Copy)]
struct Known {
    holds: bool,
    /// In cost units.
    cost: u32,
    /// True if the cluster, or its scores, have changed since.
    is_earlier: bool,
}

/// An expression that does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadExpression {
    /// Its index in the list.
    pub index: usize,
    /// What is wrong with it.
    pub error: CompileError,
}

/// What an expression gives for all clusters.
#[derive(Debug)]
pub struct Trial {
    /// All clusters.
    pub n_clusters: usize,
    /// Those for which it is true.
    pub n_true: usize,
    /// The number of those for which it ended in an error, and the first error.
    pub error: Option<(usize, EvalError)>,
}

impl CelSelectors {
    /// Without any selector.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the selector of these expressions, compiled if it is new; `None` if there are no expressions.
    ///
    /// # Errors
    /// Each expression that does not compile.
    pub fn selector(
        &mut self,
        expressions: &[String],
        names: &mut Interner,
    ) -> Result<Option<CelSelector>, Vec<BadExpression>> {
        if expressions.is_empty() {
            return Ok(None);
        }
        if let Some((id, scores)) = self.by_text.get(expressions) {
            return Ok(Some(selector_of(*id, scores.as_deref(), names)));
        }
        let programs = compile(expressions)?;
        let scores: Option<Vec<Vec<String>>> = programs.iter().map(Program::score_names).collect();
        let scores = scores.map(|lists| {
            let mut all: Vec<String> = lists.concat();
            all.sort();
            all.dedup();
            all
        });
        let id = self.free.pop().unwrap_or_else(|| {
            self.programs.push(Vec::new());
            CelId(u32::try_from(self.programs.len() - 1).unwrap_or(u32::MAX))
        });
        let selector = selector_of(id, scores.as_deref(), names);
        self.programs[id.0 as usize] = programs;
        self.by_text.insert(expressions.to_vec(), (id, scores));
        Ok(Some(selector))
    }

    /// The number of compiled selectors.
    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.by_text.is_empty()
    }

    /// True if the number of selectors has doubled since the last sweep.
    pub fn is_sweep_due(&self) -> bool {
        self.len() >= self.sweep_at.max(SWEEP_MIN)
    }

    /// Frees the selectors that are not `used`, with their answers. Their ids are reused, so no fact may hold them.
    pub fn sweep(&mut self, used: &BTreeSet<CelId>) {
        let Self {
            by_text,
            programs,
            free,
            clusters,
            ..
        } = self;
        let mut freed = Vec::new();
        by_text.retain(|_, (id, _)| {
            let is_used = used.contains(id);
            if !is_used {
                freed.push(*id);
            }
            is_used
        });
        for id in &freed {
            programs[id.0 as usize] = Vec::new();
        }
        for cluster in clusters.values_mut() {
            let answers = cluster.answers.get_mut();
            for id in &freed {
                if let Some(answer) = answers.get_mut(id.0 as usize) {
                    *answer = None;
                }
            }
        }
        free.append(&mut freed);
        self.sweep_at = 2 * self.len();
    }

    /// Sets the current state of a cluster. Returns a number that changes whenever the object changes.
    pub fn set_cluster(&mut self, name: Symbol, cluster: &ManagedCluster) -> u64 {
        let json = seen(cluster).to_string();
        let mut hash = Fnv::default();
        hash.add(json.as_bytes());
        let cluster = self.clusters.entry(name).or_insert_with(|| Cluster {
            json: json.as_str().into(),
            variables: OnceCell::new(),
            answers: RefCell::default(),
        });
        if *cluster.json != *json {
            cluster.json = json.into();
            self.forget(name);
        }
        hash.value()
    }

    /// Removes a cluster.
    pub fn remove_cluster(&mut self, name: Symbol) {
        self.clusters.remove(&name);
    }

    /// Sets the scores `object` of a cluster.
    pub fn set_scores(&mut self, cluster: Symbol, object: &str, items: &[AddOnPlacementScoreItem]) {
        let items = items
            .iter()
            .map(|item| json!({"name": item.name, "value": item.value}));
        let items = Json::Array(items.collect());
        let of_cluster = self.scores.entry(cluster).or_default();
        if of_cluster.get(object) != Some(&items) {
            of_cluster.insert(object.to_owned(), items);
            self.forget(cluster);
        }
    }

    /// Removes scores of a cluster.
    pub fn remove_scores(&mut self, cluster: Symbol, object: &str) {
        let Some(of_cluster) = self.scores.get_mut(&cluster) else {
            return;
        };
        let was = of_cluster.remove(object).is_some();
        if of_cluster.is_empty() {
            self.scores.remove(&cluster);
        }
        if was {
            self.forget(cluster);
        }
    }

    /// The cached answers about a cluster are earlier ones from now on.
    fn forget(&mut self, cluster: Symbol) {
        if let Some(cluster) = self.clusters.get_mut(&cluster) {
            cluster.variables = OnceCell::new();
            for known in cluster.answers.get_mut().iter_mut().flatten() {
                known.is_earlier = true;
            }
        }
    }

    /// What an expression gives for each cluster; `None` if it does not compile.
    pub fn tried(&self, expression: &str) -> Option<Trial> {
        let program = Program::compile(expression, Environment::ManagedCluster).ok()?;
        let mut trial = Trial {
            n_clusters: self.clusters.len(),
            n_true: 0,
            error: None,
        };
        for (name, cluster) in &self.clusters {
            let variables = cluster
                .variables
                .get_or_init(|| self.variables(*name, cluster));
            match program.holds(variables) {
                Ok(holds) => trial.n_true += usize::from(holds),
                Err(error) => trial.error.get_or_insert((0, error)).0 += 1,
            }
        }
        Some(trial)
    }

    fn variables(&self, name: Symbol, cluster: &Cluster) -> Variables {
        let object: Json = serde_json::from_str(&cluster.json).unwrap_or_default();
        let scores = self.scores.get(&name).into_iter().flatten();
        let scores = scores.map(|(name, items)| (name.clone(), Value::from_json(items)));
        Variables::managed_cluster(Value::from_json(&object), scores.collect())
    }

    fn evaluate(&self, programs: &[Program], name: Symbol, cluster: &Cluster) -> Known {
        let variables = cluster
            .variables
            .get_or_init(|| self.variables(name, cluster));
        let mut budget = Budget::new(Environment::COST_MAX_PER_SELECTOR);
        // An error in an expression counts as no match, silently, as in OCM.
        let mut all = programs.iter();
        let holds = all.all(|program| program.holds_within(variables, &mut budget) == Ok(true));
        Known {
            holds,
            cost: u32::try_from(budget.spent()).unwrap_or(u32::MAX),
            is_earlier: false,
        }
    }

    fn answered(&self, selector: CelId, name: Symbol, or_earlier: bool) -> Answer {
        let place = selector.0 as usize;
        // Of a free id no answer is kept: the next selector with this id must not find one.
        let programs = self.programs.get(place).filter(|all| !all.is_empty());
        let (Some(cluster), Some(programs)) = (self.clusters.get(&name), programs) else {
            return NoCel.answer(selector, name);
        };
        let known = cluster.answers.borrow().get(place).copied().flatten();
        let known = known.filter(|known| or_earlier || !known.is_earlier);
        let Known { holds, cost, .. } = known.unwrap_or_else(|| {
            let answer = self.evaluate(programs, name, cluster);
            let mut answers = cluster.answers.borrow_mut();
            if answers.len() <= place {
                answers.resize(place + 1, None);
            }
            answers[place] = Some(answer);
            answer
        });
        Answer {
            holds,
            cost,
            is_new: known.is_none(),
        }
    }
}

impl ClusterPredicate for CelSelectors {
    fn answer(&self, selector: CelId, name: Symbol) -> Answer {
        self.answered(selector, name, false)
    }

    fn earlier(&self, selector: CelId, name: Symbol) -> Answer {
        self.answered(selector, name, true)
    }
}

/// Compiles expressions.
///
/// # Errors
/// Each that does not compile.
pub(super) fn compile(expressions: &[String]) -> Result<Vec<Program>, Vec<BadExpression>> {
    let mut programs = Vec::with_capacity(expressions.len());
    let mut bad = Vec::new();
    for (index, text) in expressions.iter().enumerate() {
        match Program::compile(text, Environment::ManagedCluster) {
            Ok(program) => programs.push(program),
            Err(error) => bad.push(BadExpression { index, error }),
        }
    }
    match bad.is_empty() {
        true => Ok(programs),
        false => Err(bad),
    }
}

/// The object as OCM passes it to an expression, with the empty values that Go writes.
fn seen(cluster: &ManagedCluster) -> Json {
    let mut seen = cluster.to_json();
    if let Some(metadata) = seen["metadata"].as_object_mut() {
        // Expressions should not be evaluated again because a field manager changed.
        metadata.shift_remove("managedFields");
        metadata.shift_remove("resourceVersion");
    }
    if seen["spec"].is_null() {
        seen["spec"] = json!({"hubAcceptsClient": false});
    }
    if seen["status"].is_null() {
        seen["status"] = json!({});
    }
    if let Some(status) = seen["status"].as_object_mut() {
        status.entry("conditions").or_insert(Json::Null);
        status.entry("version").or_insert_with(|| json!({}));
    }
    seen
}
