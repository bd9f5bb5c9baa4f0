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
use strew_placement::conditions::{too_few_words, unmet_words};
use strew_placement::decisions::replicas::Parts;
use strew_placement::{Code, Explanation, SpreadReport, explain, hub::Candidates};

use super::wire::Placement;
pub use not_selected::{NotSelected, Reason};
pub use pick::{Excluded, PickResult, SelectedCount};

/// Why a Placement got its clusters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DebugResult {
    /// The Placement: name, namespace, labels, annotations, spec.
    pub placement: Placement,
    /// The clusters that each filter let pass. Names accumulate; the last list is in the order of selection.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub filtered_pipeline_results: Vec<FilterResult>,
    /// The scores of each prioritizer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub prioritize_results: Vec<PrioritizerResult>,
    /// The weighted sums, highest first, then by name.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub aggregated_scores: Vec<AggregatedScore>,
    /// An error: the Placement is misconfigured, or a set cannot be read; or a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the spread policy names and no cluster that passes the filters has; and a term of which fewer topologies are
    /// used than its `minGroups`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// The bound sets that the Placement asks for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cluster_sets: Vec<String>,
    /// The number of their clusters.
    pub candidates: usize,
    /// How often it was decided until the result was stable; 0 if an error prevented a selection.
    pub runs: usize,
    /// The factor of the normalized scores of the spread policy; 0 without spread constraints.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub spread_weight: i32,
    /// The picks of the selector in order: the first 200, or fewer if there are many clusters; empty without spread
    /// constraints.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub selector_results: Vec<PickResult>,
    /// The selected clusters, in the order of selection.
    pub selected_clusters: Vec<String>,
    /// The other candidates, by the reason why they were not selected.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_selected: Vec<NotSelected>,
    /// The final counts of each topology, by its values.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub topologies: Vec<Topology>,
    /// How many topologies are used, of terms with `minGroups` or `maxGroups`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub groups: Vec<GroupsUsed>,
    /// Replicas of the selected clusters, in the order of selection; empty where none are divided.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub replicas: Vec<ClusterReplicas>,
}

/// How many topologies of a term are used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupsUsed {
    /// The term's key.
    pub topology_key: String,
    /// How many are used.
    pub used: u32,
    /// The `minGroups` of the term.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_groups: Option<u32>,
    /// The `maxGroups` of the term.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_groups: Option<u32>,
}

/// The replicas of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReplicas {
    /// Which cluster.
    pub cluster_name: String,
    /// How many.
    pub replicas: u32,
    /// What they are divided by: a weight, a score, thousandths of a CPU, bytes.
    pub weight: i64,
}

/// The clusters that a filter let pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilterResult {
    /// `Predicate`, or `Predicate,TaintToleration`.
    pub name: String,
    /// The clusters.
    pub filtered_clusters: Vec<String>,
}

/// The scores of a prioritizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerResult {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: i32,
    /// Its scores by cluster; clusters without a score are left out.
    pub scores: BTreeMap<String, i64>,
}

/// The total score of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedScore {
    /// The cluster.
    pub cluster_name: String,
    /// The weighted sum.
    pub score: i64,
}

/// The numbers of a selected cluster, for texts: they are no part of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The cluster.
    pub cluster_name: String,
    /// The values of its topology, from the first term down; empty if it is in none.
    pub topology: Vec<String>,
    /// How empty its topologies were when it was picked, from -100 to 100; 0 without spread constraints.
    pub normalized: i64,
    /// The deciding score: the prioritizers' sum plus the weighted `normalized`.
    pub score: i64,
}

impl Selected {
    fn of(selected: &explain::SelectedCluster, all: &Explanation, names: &Interner) -> Self {
        let topology = selected.topology.map(|index| index as usize);
        let topology = topology.and_then(|index| all.topologies.get(index));
        Self {
            cluster_name: names.text(selected.cluster).to_owned(),
            topology: topology.map_or_else(Vec::new, |t| texts(&t.tuple, names)),
            normalized: selected.normalized,
            score: selected.score,
        }
    }
}

/// The result with what texts say beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The result.
    pub result: DebugResult,
    /// The selected clusters, in the order of selection.
    pub selected: Vec<Selected>,
    /// The skew of each topology by its values, with the minimum that it is compared with; without those that are
    /// compared with nothing.
    pub measured: BTreeMap<Vec<String>, explain::Measured>,
    /// A plugin's warning about the decision, after its name.
    pub warning: Option<String>,
    /// False if a set cannot be read, as the result's error says: then nothing was decided.
    pub is_decided: bool,
}

impl Explained {
    /// An explained Placement.
    pub fn of(placement: &Placement, explanation: &Explanation, names: &Interner) -> Self {
        let selected = explanation.selected.iter();
        let schedule = &explanation.schedule;
        let measured = explanation.topologies.iter();
        let measured = measured.filter_map(|t| Some((texts(&t.tuple, names), t.measured?)));
        Self {
            measured: measured.collect(),
            result: DebugResult::of(placement, explanation, names),
            selected: selected
                .map(|selected| Selected::of(selected, explanation, names))
                .collect(),
            warning: match &schedule.code {
                Code::Warning(problem) => Some(format!("{}: {}", problem.plugin, problem.message)),
                _ => None,
            },
            is_decided: schedule.candidates.broken.is_none(),
        }
    }
}

/// The counts of a topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// Its values, from the first term down.
    pub topology: Vec<String>,
    /// Selected clusters in it and below.
    pub selected: i32,
    /// Eligible clusters in it and below, selected ones included.
    pub clusters: u32,
    /// Its weight among its siblings, if its term has weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

fn is_zero(n: &i32) -> bool {
    *n == 0
}

impl DebugResult {
    /// The result for an explained Placement.
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
            // No decision was made.
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
        // A parent's values are a prefix of its children's.
        topologies.sort_by(|a, b| a.topology.cmp(&b.topology));
        Self {
            filtered_pipeline_results: filters(&explanation.filters, names),
            prioritize_results: prioritizers(&explanation.prioritizers, names),
            aggregated_scores: aggregated(&explanation.aggregated, names),
            warnings: warnings(schedule.spread.as_ref(), names),
            groups: groups(schedule.spread.as_ref(), names),
            replicas: replicas(schedule.parts.as_ref(), names),
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

fn warnings(report: Option<&SpreadReport>, names: &Interner) -> Vec<String> {
    let unmet = report.into_iter().flat_map(|report| &report.unmet);
    let unmet = unmet.map(|unmet| unmet_words(unmet, names));
    let too_few = report.and_then(SpreadReport::too_few);
    unmet
        .chain(too_few.map(|groups| too_few_words(groups, names)))
        .collect()
}

fn groups(report: Option<&SpreadReport>, names: &Interner) -> Vec<GroupsUsed> {
    let groups = report.into_iter().flat_map(|report| &report.groups);
    let groups = groups.map(|groups| GroupsUsed {
        topology_key: names.text(groups.key).to_owned(),
        used: groups.used,
        min_groups: Some(groups.min).filter(|&min| min > 0),
        max_groups: groups.max,
    });
    groups.collect()
}

fn replicas(parts: Option<&Parts>, names: &Interner) -> Vec<ClusterReplicas> {
    let parts = parts.into_iter().flat_map(|parts| &parts.clusters);
    let parts = parts.map(|part| ClusterReplicas {
        cluster_name: names.text(part.cluster).to_owned(),
        replicas: part.replicas,
        weight: part.weight,
    });
    parts.collect()
}

/// The parts of a Placement that are shown.
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
