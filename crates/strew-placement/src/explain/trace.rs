//! Records every number of a run, called by the deciding code. Without a trace, recording costs nothing.

use strew_model::Symbol;

use super::{Detail, Measured, TopologyReport};
use crate::hub::ClusterIdx;
use crate::prioritize::prioritizer::Prioritizer;
use crate::select::even_spread::{EvenSpread, Step};
use crate::select::measure::Exclusion;
use crate::select::tree::{NodeId, Place, ROOT};

/// The largest number of recorded picks. Source: spec/placement §3.7.
const PICKS_MAX: usize = 200;

/// The largest number of recorded scores over all picks: more than twenty picks of ten thousand clusters would fill
/// memory.
const SCORES_MAX: usize = 200_000;

/// The recorded numbers.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) detail: Detail,
    /// `None` if the run ended before this.
    pub(crate) passed_predicates: Option<Vec<ClusterIdx>>,
    /// `None` if the run ended before this.
    pub(crate) passing: Option<Vec<ClusterIdx>>,
    pub(crate) scores: Vec<(Prioritizer, i32, Vec<Option<i64>>)>,
    pub(crate) priors: Vec<i64>,
    pub(crate) picks: Vec<u32>,
    pub(crate) steps: Vec<StepTrace>,
    /// The scores of each pick of the selector, in order.
    pub(crate) decisive: Vec<Decisive>,
    /// By position: why a cluster is not eligible, or which limit excludes it. If enough clusters were found, that is a
    /// limit at the last pick; otherwise a limit that admits no more clusters.
    pub(crate) kept_out: Vec<Option<KeptOut>>,
    /// At the end: each topology, by node without the root.
    pub(crate) topologies: Vec<TopologyReport>,
    /// By position: the cluster's node in `topologies`, counted from 1; 0 if it is in none.
    pub(crate) nodes: Vec<NodeId>,
}

/// The numbers of a pick.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decisive {
    pub(crate) normalized: i64,
    pub(crate) total: i64,
}

/// One step of the selector. Clusters are positions in the list of clusters that pass.
#[derive(Debug)]
pub(crate) struct StepTrace {
    pub(crate) counts: Vec<(Vec<Symbol>, i32)>,
    pub(crate) excluded: Vec<(u32, Symbol, Exclusion)>,
    pub(crate) scored: Vec<Scored>,
    pub(crate) pick: u32,
}

/// The scores of one cluster in a step.
#[derive(Debug)]
pub(crate) struct Scored {
    pub(crate) place: u32,
    pub(crate) levels: Vec<i64>,
    pub(crate) raw: i64,
    pub(crate) normalized: i64,
    pub(crate) total: i64,
}

/// Why a cluster that passes all filters cannot be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptOut {
    Lacks(Symbol),
    Weightless(Symbol),
    Excluded(Symbol, Exclusion),
}

impl Trace {
    pub(crate) fn new(detail: Detail) -> Self {
        Self {
            detail,
            passed_predicates: None,
            passing: None,
            scores: Vec::new(),
            priors: Vec::new(),
            picks: Vec::new(),
            steps: Vec::new(),
            decisive: Vec::new(),
            kept_out: Vec::new(),
            topologies: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Records a step before its pick.
    pub(crate) fn step(&mut self, selector: &EvenSpread<'_>, step: &Step) {
        let (_, normalized, total) = selector.scores(step, selector.node_of(step), step.pick);
        self.decisive.push(Decisive { normalized, total });
        if self.detail == Detail::Outline {
            return;
        }
        if selector.is_last() && !step.limits_ignored {
            self.keep_out(selector, Some(step));
        }
        let told: usize = self.steps.iter().map(|step| step.scored.len()).sum();
        if self.steps.len() >= PICKS_MAX || told >= SCORES_MAX {
            return;
        }
        let (mut excluded, mut scored) = (Vec::new(), Vec::new());
        for (leaf, place) in selector.left() {
            match selector.exclusion(leaf.node, Some(step)) {
                Some((level, exclusion)) => {
                    excluded.push((place, selector.tree.levels[level].key, exclusion));
                }
                None => {
                    let (raw, normalized, total) = selector.scores(step, leaf.node, place);
                    scored.push(Scored {
                        place,
                        levels: level_scores(selector, leaf.node),
                        raw,
                        normalized,
                        total,
                    });
                }
            }
        }
        excluded.sort_by_key(|&(place, ..)| place);
        scored.sort_by_key(|scored| scored.place);
        let nodes = 1..selector.tree.nodes.len() as NodeId;
        let counts = nodes.map(|id| (selector.tree.tuple(id), selector.tree.count(id)));
        self.steps.push(StepTrace {
            counts: counts.collect(),
            excluded,
            scored,
            pick: step.pick,
        });
    }

    /// Records that no step is left.
    pub(crate) fn end(&mut self, selector: &EvenSpread<'_>) {
        self.measure(selector);
        if self.detail == Detail::Outline {
            return;
        }
        if !selector.is_complete() || self.kept_out.is_empty() {
            self.keep_out(selector, None);
        }
    }
}

impl Trace {
    /// `step` is the last one, before its pick; `None` if there was none.
    fn keep_out(&mut self, selector: &EvenSpread<'_>, step: Option<&Step>) {
        let why = |place: &Place| match *place {
            Place::At(_) => None,
            Place::Lacks(level) => Some(KeptOut::Lacks(selector.tree.levels[level as usize].key)),
            Place::Weightless(level) => Some(KeptOut::Weightless(
                selector.tree.levels[level as usize].key,
            )),
        };
        self.kept_out = selector.places.iter().map(why).collect();
        for (leaf, place) in selector.left() {
            let excluded = selector.exclusion(leaf.node, step);
            self.kept_out[place as usize] = excluded.map(|(level, exclusion)| {
                KeptOut::Excluded(selector.tree.levels[level].key, exclusion)
            });
        }
    }

    fn measure(&mut self, selector: &EvenSpread<'_>) {
        let tree = &selector.tree;
        let mut clusters = vec![0; tree.nodes.len()];
        self.nodes = Vec::with_capacity(selector.places.len());
        for place in selector.places {
            let Place::At(at) = *place else {
                self.nodes.push(ROOT);
                continue;
            };
            self.nodes.push(at);
            for node in tree.path(at) {
                clusters[node as usize] += 1;
            }
        }
        let nodes = 1..tree.nodes.len() as NodeId;
        let topology = |id: NodeId| TopologyReport {
            tuple: tree.tuple(id),
            selected: tree.count(id),
            clusters: clusters[id as usize],
            weight: tree.weight(id),
            measured: measured(tree.skew(id)),
        };
        self.topologies = nodes.map(topology).collect();
    }
}

fn measured(skew: Option<(i64, i32)>) -> Option<Measured> {
    skew.map(|(skew, minimum)| Measured { skew, minimum })
}

/// The scores of a cluster at each level; 0 below the end of its tuple.
fn level_scores(selector: &EvenSpread<'_>, node: NodeId) -> Vec<i64> {
    let path = selector.tree.path(node);
    let score = |level: usize| path.get(level).map_or(0, |&n| selector.tree.score(n).1);
    (0..selector.tree.levels.len()).map(score).collect()
}
