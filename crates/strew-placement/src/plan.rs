//! A checked specification, made when the specification changes.

use std::sync::Arc;

use strew_model::Interner;

use crate::decisions::replicas;
use crate::facts::placement::{GroupSize, PlacementSpec};
use crate::filter::taint;
use crate::prioritize::prioritizer::Prioritizer;
use crate::prioritize::weights::Weights;
use crate::select::levels::{self, Level};

/// An error in a placement, and the plugin that reports it. `Display` writes it as in the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The plugin; empty for errors outside of plugins.
    pub plugin: Arc<str>,
    /// The message.
    pub message: Arc<str>,
}

impl Problem {
    /// An error of `plugin`.
    pub(crate) fn new(plugin: &str, message: impl Into<Arc<str>>) -> Self {
        Self {
            plugin: plugin.into(),
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.plugin, self.message)
    }
}

/// A checked specification. Each error is kept in the field that needs the value.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Reported first.
    pub(crate) number: Result<(), Problem>,
    /// Reported if there are candidates.
    pub(crate) predicates: Result<(), Problem>,
    /// Reported if a cluster passes the predicates.
    pub(crate) tolerations: Result<(), Problem>,
    /// Reported after the filters.
    pub(crate) selection: Result<Selection, Problem>,
}

/// How clusters that pass are scored and selected.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) weights: Weights,
    pub(crate) levels: Vec<Level>,
}

impl Plan {
    /// Checks a specification.
    pub(crate) fn of(spec: &PlacementSpec, names: &Interner) -> Self {
        let number = match spec.number_of_clusters {
            Some(n) if n < 0 => Err(Problem::new("", "numberOfClusters must not be negative")),
            _ => Ok(()),
        };
        let predicates = spec.predicates.as_ref();
        let tolerations = taint::validate(&spec.tolerations);
        Self {
            number,
            predicates: predicates
                .map(|_| ())
                .map_err(|text| Problem::new("Predicate", Arc::clone(text))),
            tolerations: tolerations.map_err(|text| Problem::new("TaintToleration", text)),
            selection: Selection::of(spec, names),
        }
    }

    /// True if it has no error.
    pub(crate) fn sound(&self) -> Option<&Selection> {
        let all = self.number.as_ref().and(self.predicates.as_ref());
        all.and(self.tolerations.as_ref()).ok()?;
        self.selection.as_ref().ok()
    }
}

impl Selection {
    fn of(spec: &PlacementSpec, names: &Interner) -> Result<Self, Problem> {
        let weights = Weights::of(&spec.prioritizers).map_err(|text| Problem::new("", text))?;
        let levels = levels::of(spec, names).map_err(|text| Problem::new("Spread", text))?;
        let groups = spec.groups.groups.as_ref();
        groups.map_err(|text| Problem::new("", Arc::clone(text)))?;
        if let GroupSize::NotAPercentage(text) = &spec.groups.size {
            let message = format!("{text} invalid type: string is not a percentage");
            return Err(Problem::new("", message));
        }
        let wrong = |text: Arc<str>| Problem::new("Replicas", text);
        let division = spec.replicas.as_ref();
        if let Some(division) = division.map_err(|text| wrong(Arc::clone(text)))? {
            replicas::check(division).map_err(|text| wrong(text.into()))?;
        }
        Ok(Self { weights, levels })
    }

    /// True if a run must be repeated with its own result until the result is stable. Source: spec/placement §3.7,
    /// "settle".
    pub(crate) fn settles(&self) -> bool {
        !self.levels.is_empty() || self.weights.weight(Prioritizer::Steady) < 0
    }
}
