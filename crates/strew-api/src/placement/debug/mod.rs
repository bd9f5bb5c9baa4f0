//! Explains a Placement's decision on the wire: OCM's debug answer with additions.
//!
//! It is the answer of the debug endpoint and the output of `strew place --explain -o json`; the text of `--explain` is
//! rendered from it. It has names instead of symbols, and numbers beside every sentence. Fields may be added; none
//! changes its meaning. Fields that OCM has mean what they mean there; `clusterSets` and all fields below it are
//! additions.
//!
//! Reading order: [`DebugResult`], [`pick`], [`not_selected`].
//!
//! Source: spec/placement §2.11, §3.7 ("Reporting"); the OCM spread proposal, "Implementation Example".

pub mod not_selected;
pub mod pick;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strew_model::{Interner, Symbol};
use strew_placement::conditions::unmet_words;
use strew_placement::{Code, Explanation, explain, hub::Candidates};

use super::wire::Placement;
pub use not_selected::{NotSelected, Reason};
pub use pick::{Excluded, PickResult, SelectedCount};

/// Why a Placement got the clusters it got.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DebugResult {
    /// The Placement: name, namespace, labels, annotations, spec.
    pub placement: Placement,
    /// What each filter let pass. Names accumulate; the last list is in the order of selection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filtered_pipeline_results: Vec<FilterResult>,
    /// What each prioritizer gave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prioritize_results: Vec<PrioritizerResult>,
    /// The weighted sums, highest first, then by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aggregated_scores: Vec<AggregatedScore>,
    /// What is wrong: the Placement makes no sense, a set cannot be read, or a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the spread policy names and no cluster that passes the filters has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The sets that are bound and asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// How many clusters they hold.
    pub candidates: usize,
    /// How often it was decided until the result stood; 0 where nothing could be selected for a mistake.
    pub runs: usize,
    /// What normalized scores of the spread policy are multiplied with; 0 without spread constraints.
    #[serde(skip_serializing_if = "is_zero")]
    pub spread_weight: i32,
    /// The picks of the selector, one after another; the first 200, or fewer of many clusters, and none without spread
    /// constraints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selector_results: Vec<PickResult>,
    /// What is selected, in the order of selection.
    pub selected_clusters: Vec<String>,
    /// What became of the other candidates, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_selected: Vec<NotSelected>,
    /// What each topology holds in the end, by its values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topologies: Vec<Topology>,
}

/// What a filter let pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilterResult {
    /// `Predicate`, or `Predicate,TaintToleration`.
    pub name: String,
    /// The clusters.
    pub filtered_clusters: Vec<String>,
}

/// What a prioritizer gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerResult {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: i32,
    /// Its scores by cluster; one that has none is left out.
    pub scores: BTreeMap<String, i64>,
}

/// What a cluster got from all prioritizers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedScore {
    /// Which cluster.
    pub cluster_name: String,
    /// The weighted sum.
    pub score: i64,
}

/// What a topology holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// Its values, from the first term down.
    pub topology: Vec<String>,
    /// Selected clusters in it and below.
    pub selected: i32,
    /// Eligible clusters in it and below, selected ones included.
    pub clusters: u32,
    /// Its weight among its siblings, where its term has weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

fn is_zero(n: &i32) -> bool {
    *n == 0
}

impl DebugResult {
    /// The answer for a Placement that was explained.
    pub fn of(placement: &Placement, explanation: &Explanation, names: &Interner) -> Self {
        let schedule = &explanation.schedule;
        let asked = Self {
            placement: shown(placement),
            error: error(&schedule.candidates, &schedule.code, names),
            cluster_sets: texts(&schedule.candidates.eligible, names),
            candidates: schedule.candidates.clusters.len(),
            ..Self::default()
        };
        if schedule.candidates.broken.is_some() {
            // Nothing was decided.
            return asked;
        }
        let picks = schedule.picks.iter();
        let mut topologies: Vec<Topology> = explanation
            .topologies
            .iter()
            .map(|t| Topology {
                topology: texts(&t.tuple, names),
                selected: t.selected,
                clusters: t.clusters,
                weight: t.weight,
            })
            .collect();
        // A parent's values are the beginning of its children's.
        topologies.sort_by(|a, b| a.topology.cmp(&b.topology));
        Self {
            filtered_pipeline_results: filters(&explanation.filters, names),
            prioritize_results: prioritizers(&explanation.prioritizers, names),
            aggregated_scores: aggregated(&explanation.aggregated, names),
            warnings: schedule
                .spread
                .iter()
                .flat_map(|report| &report.unmet)
                .map(|unmet| unmet_words(unmet, names))
                .collect(),
            runs: schedule.runs,
            spread_weight: explanation.spread_weight,
            selector_results: explanation
                .picks
                .iter()
                .map(|pick| PickResult::of(pick, &topologies, names))
                .collect(),
            selected_clusters: picks
                .map(|pick| names.text(pick.cluster).to_owned())
                .collect(),
            not_selected: not_selected::of(&explanation.verdicts, names),
            topologies,
            ..asked
        }
    }
}

/// What is shown of a Placement.
fn shown(placement: &Placement) -> Placement {
    let mut shown = Placement {
        spec: placement.spec.clone(),
        ..Placement::default()
    };
    let metadata = &placement.metadata;
    shown.metadata.name.clone_from(&metadata.name);
    shown.metadata.namespace.clone_from(&metadata.namespace);
    shown.metadata.labels.clone_from(&metadata.labels);
    shown.metadata.annotations.clone_from(&metadata.annotations);
    shown
}

fn error(candidates: &Candidates, code: &Code, names: &Interner) -> Option<String> {
    if let Some((set, why)) = &candidates.broken {
        return Some(format!("ManagedClusterSet {}: {why}", names.text(*set)));
    }
    match code {
        Code::Success => None,
        Code::Warning(problem) | Code::Misconfigured(problem) => Some(problem.to_string()),
    }
}

fn texts(symbols: &[Symbol], names: &Interner) -> Vec<String> {
    symbols.iter().map(|&s| names.text(s).to_owned()).collect()
}

fn filters(filters: &[explain::FilterResult], names: &Interner) -> Vec<FilterResult> {
    let filter = |filter: &explain::FilterResult| FilterResult {
        name: filter.name.to_owned(),
        filtered_clusters: texts(&filter.clusters, names),
    };
    filters.iter().map(filter).collect()
}

fn prioritizers(
    prioritizers: &[explain::PrioritizerResult],
    names: &Interner,
) -> Vec<PrioritizerResult> {
    let prioritizer = |p: &explain::PrioritizerResult| PrioritizerResult {
        name: p.name.clone(),
        weight: p.weight,
        scores: by_name(p.scores.iter().copied(), names),
    };
    prioritizers.iter().map(prioritizer).collect()
}

fn aggregated(scores: &[(Symbol, i64)], names: &Interner) -> Vec<AggregatedScore> {
    let score = |&(cluster, score): &(Symbol, i64)| AggregatedScore {
        cluster_name: names.text(cluster).to_owned(),
        score,
    };
    scores.iter().map(score).collect()
}

/// Values by the names of their clusters.
fn by_name<V>(values: impl Iterator<Item = (Symbol, V)>, names: &Interner) -> BTreeMap<String, V> {
    values
        .map(|(cluster, value)| (names.text(cluster).to_owned(), value))
        .collect()
}
