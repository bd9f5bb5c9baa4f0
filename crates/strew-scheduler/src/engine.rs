//! One decision: where a pod goes now, or why nowhere.
//!
//! Source: spec/scheduler §2.3 to §2.5, all nodes looked at.

use std::rc::Rc;

use fixedbitset::FixedBitSet;
use strew_cluster::{ClassId, Cluster, NodeIdx, PodIdx, PodSpec};

use crate::columns::Columns;
use crate::plan::{ClassPlan, Plans};
use crate::plugins::{
    inter_pod_affinity, node_affinity, node_ports, node_resources_balanced_allocation,
    node_resources_fit, node_unschedulable, normalize, pod_topology_spread, selector_spread,
    taint_toleration, volumes,
};
use crate::profile::{PluginId, Profile, TieRule};
use crate::status::{Reason, Refusal, Unfit};
use crate::ties::heap_precedes;

/// Where a pod goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// To this node.
    Place {
        /// The node.
        node: NodeIdx,
        /// How many nodes would have done.
        feasible: usize,
        /// The node's total; absent where it was the only one, which is not scored.
        total: Option<i64>,
    },
    /// Nowhere, for now.
    Unfit(Rc<Unfit>),
}

/// One score plugin's part in a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginScores {
    /// Which.
    pub plugin: PluginId,
    /// Its weight.
    pub weight: i64,
    /// Per feasible node 0 to 100, before the weight; empty if the plugin had nothing to say.
    pub scores: Vec<i32>,
}

/// Everything that a decision looked at.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The nodes that passed every filter, in the order in which they were looked at.
    pub feasible: Vec<NodeIdx>,
    /// Filter plugins that had nothing to look at.
    pub skipped_filters: Vec<PluginId>,
    /// Score plugins in order; empty unless two or more nodes are feasible.
    pub scores: Vec<PluginScores>,
    /// Per feasible node the sum of weighted scores.
    pub totals: Vec<i64>,
    /// Places in `feasible` of the nodes with the highest total.
    pub best: Vec<usize>,
    /// The place in `feasible` that the tie rule takes.
    pub taken: Option<usize>,
    /// Why the nodes that did not pass were refused.
    pub refused: Option<Unfit>,
    /// The nodes to which PreFilter narrowed the search.
    pub narrowed: Option<Vec<NodeIdx>>,
}

/// Decides for one profile. Holds only what can be made anew from the cluster.
pub struct Engine {
    profile: Profile,
    plans: Plans,
    columns: Columns,
    scratch: Scratch,
    last_unfit: Option<LastUnfit>,
}

/// Lists that are used in every decision, kept so that nothing is allocated.
#[derive(Default)]
struct Scratch {
    mask: FixedBitSet,
    feasible: Vec<NodeIdx>,
    scores: Vec<i32>,
    totals: Vec<i32>,
    spread: pod_topology_spread::score::Workspace,
}

/// The last refusal, for the next pod of the class while nothing has changed.
struct LastUnfit {
    class: ClassId,
    state: ClusterState,
    unfit: Rc<Unfit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct ClusterState {
    usage: u64,
    structure: u64,
    owners: u64,
    evicted: u64,
}

impl ClusterState {
    fn of(cluster: &Cluster) -> Self {
        Self {
            usage: cluster.usage_changes().head(),
            structure: cluster.structure_changes().head(),
            owners: cluster.owners().version(),
            evicted: cluster.evicted(),
        }
    }
}

/// What every plugin looks at in one decision.
#[derive(Clone, Copy)]
struct Cycle<'a> {
    cluster: &'a Cluster,
    profile: &'a Profile,
    plan: &'a ClassPlan,
    spec: &'a PodSpec,
}

/// What PreFilter found.
enum Search {
    Nodes(Option<Vec<NodeIdx>>),
    Refused(Refusal),
}

impl Engine {
    /// An engine for a profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            plans: Plans::default(),
            columns: Columns::default(),
            scratch: Scratch::default(),
            last_unfit: None,
        }
    }

    /// The profile that it decides for.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The plan of a class: which constraints hold for it, and what they count.
    pub fn plan(&mut self, cluster: &mut Cluster, class: ClassId) -> &ClassPlan {
        self.plans
            .ensure(cluster, &mut self.columns, &self.profile, class)
    }

    /// Decides where a pod goes. The cluster's facts do not change; what is counted of them may grow.
    ///
    /// Cost: a few steps a node, none of which counts pods.
    pub fn decide(&mut self, cluster: &mut Cluster, pod: PodIdx) -> Decision {
        let class = cluster.pod(pod).class;
        cluster.refresh_order();
        if cluster.nodes_present() == 0 {
            return Decision::Unfit(Rc::new(Unfit::NoNodes));
        }
        let plan = self
            .plans
            .ensure(cluster, &mut self.columns, &self.profile, class);
        let state = ClusterState::of(cluster);
        if let Some(last) = self
            .last_unfit
            .as_ref()
            .filter(|l| l.class == class && l.state == state)
        {
            return Decision::Unfit(Rc::clone(&last.unfit));
        }
        let cx = Cycle::new(cluster, &self.profile, plan, class);
        let narrowed = match cx.pre_filter() {
            Search::Nodes(narrowed) => narrowed,
            Search::Refused(refusal) => return Decision::Unfit(Rc::new(Unfit::PreFilter(refusal))),
        };
        self.columns.sync(plan, cluster);
        find_feasible(cx, &self.columns, narrowed.as_deref(), &mut self.scratch);
        let feasible = self.scratch.feasible.len();
        match feasible {
            0 => {
                let unfit = Rc::new(cx.refusals(narrowed.as_deref()));
                self.last_unfit = Some(LastUnfit {
                    class,
                    state,
                    unfit: Rc::clone(&unfit),
                });
                Decision::Unfit(unfit)
            }
            1 => Decision::Place {
                node: self.scratch.feasible[0],
                feasible,
                total: None,
            },
            _ => {
                let taken = self.take_best(cluster, class);
                let total = Some(i64::from(self.scratch.totals[taken]));
                Decision::Place {
                    node: self.scratch.feasible[taken],
                    feasible,
                    total,
                }
            }
        }
    }

    /// Scores the feasible nodes of the scratch lists and returns the place of the one to take.
    fn take_best(&mut self, cluster: &mut Cluster, class: ClassId) -> usize {
        let plan = self
            .plans
            .ensure(cluster, &mut self.columns, &self.profile, class);
        let cx = Cycle::new(cluster, &self.profile, plan, class);
        let Scratch {
            feasible,
            scores,
            totals,
            spread,
            ..
        } = &mut self.scratch;
        totals.clear();
        totals.resize(feasible.len(), 0);
        for &(plugin, weight) in &self.profile.scores {
            match score_plugin(cx, &self.columns, plugin, feasible, spread, scores) {
                // The same for all nodes: it moves every total, and none past another.
                Scores::Same(score) => add_same(totals, weight as i32 * score),
                Scores::Each => add_each(totals, weight as i32, scores),
                Scores::None => {}
            }
        }
        take(cx, feasible, totals)
    }

    /// Runs the same plugin code as [`decide`](Self::decide) and keeps every number. A pod that is on a node is judged
    /// as things are, itself included: take it off first.
    pub fn evaluate(&mut self, cluster: &mut Cluster, pod: PodIdx) -> Evaluation {
        let class = cluster.pod(pod).class;
        cluster.refresh_order();
        let plan = self
            .plans
            .ensure(cluster, &mut self.columns, &self.profile, class);
        let cx = Cycle::new(cluster, &self.profile, plan, class);
        let mut evaluation = Evaluation {
            feasible: Vec::new(),
            skipped_filters: cx.skipped_filters(),
            scores: Vec::new(),
            totals: Vec::new(),
            best: Vec::new(),
            taken: None,
            refused: None,
            narrowed: None,
        };
        if cluster.nodes_present() == 0 {
            evaluation.refused = Some(Unfit::NoNodes);
            return evaluation;
        }
        let narrowed = match cx.pre_filter() {
            Search::Nodes(narrowed) => narrowed,
            Search::Refused(refusal) => {
                evaluation.refused = Some(Unfit::PreFilter(refusal));
                return evaluation;
            }
        };
        self.columns.sync(plan, cluster);
        find_feasible(cx, &self.columns, narrowed.as_deref(), &mut self.scratch);
        evaluation.feasible.clone_from(&self.scratch.feasible);
        if evaluation.feasible.len() < cluster.nodes_present() {
            evaluation.refused = Some(cx.refusals(narrowed.as_deref()));
        }
        evaluation.narrowed = narrowed;
        match evaluation.feasible.len() {
            0 => {}
            1 => {
                evaluation.best = vec![0];
                evaluation.taken = Some(0);
            }
            _ => self.evaluate_scores(cluster, class, &mut evaluation),
        }
        evaluation
    }

    fn evaluate_scores(
        &mut self,
        cluster: &mut Cluster,
        class: ClassId,
        evaluation: &mut Evaluation,
    ) {
        evaluation.scores = self.score_nodes(cluster, class, &evaluation.feasible);
        let taken = self.take_best(cluster, class);
        evaluation.taken = Some(taken);
        evaluation.totals = self.scratch.totals.iter().map(|&t| i64::from(t)).collect();
        let highest = evaluation.totals[taken];
        let totals = evaluation.totals.iter().enumerate();
        evaluation.best = totals
            .filter(|&(_, &t)| t == highest)
            .map(|(i, _)| i)
            .collect();
    }

    /// Per node the refusals of *all* plugins, not only of the first, in the order of nodes; nodes that pass are left
    /// out. Nothing if the pod is refused before any node is looked at. For explanations.
    pub fn all_refusals(
        &mut self,
        cluster: &mut Cluster,
        pod: PodIdx,
    ) -> Vec<(NodeIdx, Vec<Refusal>)> {
        let class = cluster.pod(pod).class;
        cluster.refresh_order();
        let plan = self
            .plans
            .ensure(cluster, &mut self.columns, &self.profile, class);
        let cx = Cycle::new(cluster, &self.profile, plan, class);
        let Search::Nodes(narrowed) = cx.pre_filter() else {
            return Vec::new();
        };
        let of_node = |&node: &NodeIdx| {
            let refusals = cx.all_refusals(narrowed.as_deref(), node);
            (!refusals.is_empty()).then_some((node, refusals))
        };
        cluster.node_order().iter().filter_map(of_node).collect()
    }

    /// Every score plugin's scores for a list of nodes, in the profile's order.
    pub fn score_nodes(
        &mut self,
        cluster: &mut Cluster,
        class: ClassId,
        nodes: &[NodeIdx],
    ) -> Vec<PluginScores> {
        let plan = self
            .plans
            .ensure(cluster, &mut self.columns, &self.profile, class);
        let cx = Cycle::new(cluster, &self.profile, plan, class);
        let Scratch { scores, spread, .. } = &mut self.scratch;
        let of_plugin = |&(plugin, weight): &(PluginId, i64)| {
            let kept = match score_plugin(cx, &self.columns, plugin, nodes, spread, scores) {
                Scores::Same(score) => vec![score; nodes.len()],
                Scores::Each => scores.clone(),
                Scores::None => Vec::new(),
            };
            PluginScores {
                plugin,
                weight,
                scores: kept,
            }
        };
        self.profile.scores.iter().map(of_plugin).collect()
    }
}

impl<'a> Cycle<'a> {
    fn new(
        cluster: &'a Cluster,
        profile: &'a Profile,
        plan: &'a ClassPlan,
        class: ClassId,
    ) -> Self {
        let tables = cluster.tables();
        let spec = tables.spec(tables.class(class).key.spec);
        Self {
            cluster,
            profile,
            plan,
            spec,
        }
    }

    fn pre_filter(self) -> Search {
        let narrowed = match node_affinity::narrow(&self.spec.node_affinity) {
            Ok(narrowed) => narrowed,
            Err(refusal) => return Search::Refused(refusal),
        };
        if let Some(refusal) = volumes::refuse(self.spec) {
            return Search::Refused(refusal);
        }
        let present = |name| {
            let node = self.cluster.find_node(name)?;
            self.cluster.node(node).fact().map(|_| node)
        };
        Search::Nodes(narrowed.map(|names| {
            // Upstream walks a map here, in random order; ours is that of all nodes.
            let named: Vec<NodeIdx> = names.into_iter().filter_map(present).collect();
            self.cluster
                .node_order()
                .iter()
                .copied()
                .filter(|n| named.contains(n))
                .collect()
        }))
    }

    /// Why each node was refused that did not pass, in the order of nodes.
    fn refusals(self, narrowed: Option<&[NodeIdx]>) -> Unfit {
        let of_node = |&node: &NodeIdx| {
            let refusal = match narrowed {
                Some(named) if !named.contains(&node) => {
                    let reason = Reason::NarrowedOut(PluginId::NodeAffinity);
                    Some(Refusal::unresolvable(PluginId::NodeAffinity, reason))
                }
                _ => self.first_refusal(node),
            };
            refusal.map(|refusal| (node, refusal))
        };
        Unfit::EveryNode(
            self.cluster
                .node_order()
                .iter()
                .filter_map(of_node)
                .collect(),
        )
    }

    /// The refusals of all plugins that refuse a node. One that the search was narrowed past has that as its first.
    fn all_refusals(self, narrowed: Option<&[NodeIdx]>, node: NodeIdx) -> Vec<Refusal> {
        let past = narrowed.is_some_and(|named| !named.contains(&node));
        let reason = Reason::NarrowedOut(PluginId::NodeAffinity);
        let first = past.then(|| Refusal::unresolvable(PluginId::NodeAffinity, reason));
        let plugins = self.profile.filters.iter().copied();
        let others = plugins.filter(|&p| !(past && p == PluginId::NodeAffinity));
        first
            .into_iter()
            .chain(others.filter_map(|plugin| self.filter(plugin, node)))
            .collect()
    }

    /// The refusal of the first plugin that refuses a node.
    fn first_refusal(self, node: NodeIdx) -> Option<Refusal> {
        self.profile
            .filters
            .iter()
            .find_map(|&plugin| self.filter(plugin, node))
    }

    fn filter(self, plugin: PluginId, node: NodeIdx) -> Option<Refusal> {
        let (cluster, spec) = (self.cluster, self.spec);
        let row = cluster.node(node);
        let fact = row.fact()?;
        let unless =
            |allowed: bool, reason| (!allowed).then(|| Refusal::unresolvable(plugin, reason));
        match plugin {
            PluginId::NodeUnschedulable => unless(
                node_unschedulable::allows(fact, &spec.tolerations),
                Reason::Cordoned,
            ),
            PluginId::TaintToleration => unless(
                taint_toleration::allows(fact, &spec.tolerations),
                Reason::UntoleratedTaint,
            ),
            PluginId::NodeAffinity => {
                let allowed = spec.node_affinity.is_none() || self.node_affinity_allows(node);
                unless(allowed, Reason::NodeAffinity)
            }
            PluginId::NodePorts => {
                let allowed = node_ports::allows(row, &spec.host_ports);
                (!allowed).then(|| Refusal::unschedulable(plugin, Reason::Ports))
            }
            PluginId::NodeResourcesFit => node_resources_fit::filter(cluster, row, &spec.requests),
            PluginId::PodTopologySpread => {
                pod_topology_spread::filter::filter(cluster, &self.plan.spread, node)
            }
            PluginId::InterPodAffinity => {
                inter_pod_affinity::filter(cluster, &self.plan.affinity, node)
            }
            _ => None,
        }
    }

    fn node_affinity_allows(self, node: NodeIdx) -> bool {
        let row = self.cluster.node(node);
        let Some(fact) = row.fact() else {
            return false;
        };
        let affinity = &self.spec.node_affinity;
        let names = &self.cluster.names;
        let any = |terms: &[strew_model::NodeSelectorTerm]| {
            terms
                .iter()
                .any(|t| t.matches(fact.name, &fact.labels, names))
        };
        fact.labels.contains_all(&affinity.node_selector)
            && affinity.terms.as_deref().is_none_or(any)
    }

    /// Filter plugins that have nothing to look at for this pod, as PreFilter's Skip tells upstream.
    fn skipped_filters(self) -> Vec<PluginId> {
        let skipped = |&plugin: &PluginId| match plugin {
            PluginId::NodeAffinity => self.spec.node_affinity.is_none(),
            PluginId::NodePorts => self.spec.host_ports.is_empty(),
            PluginId::PodTopologySpread => self.plan.spread.hard.is_empty(),
            PluginId::InterPodAffinity => self.plan.affinity.filter_is_skipped(self.cluster),
            PluginId::VolumeRestrictions
            | PluginId::NodeVolumeLimits
            | PluginId::VolumeBinding
            | PluginId::VolumeZone
            | PluginId::DynamicResources
            | PluginId::NodeDeclaredFeatures => true,
            _ => false,
        };
        self.profile
            .filters
            .iter()
            .copied()
            .filter(skipped)
            .collect()
    }
}

/// Lists the nodes that pass every filter, in the order of nodes.
///
/// Nodes x (two bits of a set + one domain a hard constraint); pods are not touched.
fn find_feasible(
    cx: Cycle<'_>,
    columns: &Columns,
    narrowed: Option<&[NodeIdx]>,
    scratch: &mut Scratch,
) {
    let Cycle {
        cluster,
        plan,
        spec,
        ..
    } = cx;
    let Scratch { mask, feasible, .. } = scratch;
    mask.clone_from(columns.admitted(plan));
    mask.intersect_with(&columns.shape(plan).fits);
    let asks_affinity = !plan.affinity.filter_is_skipped(cluster);
    let passes = |&node: &NodeIdx| {
        mask.contains(node.index())
            && (spec.host_ports.is_empty()
                || node_ports::allows(cluster.node(node), &spec.host_ports))
            && (!asks_affinity
                || inter_pod_affinity::filter(cluster, &plan.affinity, node).is_none())
    };
    let nodes = narrowed.unwrap_or_else(|| cluster.node_order());
    feasible.clear();
    feasible.extend(nodes.iter().copied().filter(passes));
    pod_topology_spread::filter::retain_passing(cluster, &plan.spread, feasible);
}

/// What a score plugin said.
enum Scores {
    /// Nothing: it is not scored.
    None,
    /// The same for every node.
    Same(i32),
    /// A score a node, in the list.
    Each,
}

fn score_plugin(
    cx: Cycle<'_>,
    columns: &Columns,
    plugin: PluginId,
    feasible: &[NodeIdx],
    spread: &mut pod_topology_spread::score::Workspace,
    out: &mut Vec<i32>,
) -> Scores {
    let Cycle {
        cluster,
        plan,
        spec,
        ..
    } = cx;
    let each_if = |scored: bool| if scored { Scores::Each } else { Scores::None };
    let gather = |values: &[i32], out: &mut Vec<i32>| {
        out.clear();
        out.extend(feasible.iter().map(|n| values[n.index()]));
    };
    match plugin {
        PluginId::TaintToleration => {
            let column = columns.prefer_taints(plan);
            if column.nonzero == 0 {
                return Scores::Same(100);
            }
            gather(&column.values, out);
            normalize(out, true);
            Scores::Each
        }
        PluginId::NodeAffinity => {
            let Some(column) = columns.preferred_nodes(plan) else {
                return Scores::None;
            };
            gather(&column.values, out);
            normalize(out, false);
            Scores::Each
        }
        PluginId::NodeResourcesFit => {
            let scores = &columns.shape(plan).scores;
            out.clear();
            out.extend(feasible.iter().map(|n| i32::from(scores[n.index()].fit)));
            Scores::Each
        }
        PluginId::NodeResourcesBalancedAllocation => {
            if !node_resources_balanced_allocation::applies(&spec.requests) {
                return Scores::None;
            }
            let scores = &columns.shape(plan).scores;
            out.clear();
            out.extend(
                feasible
                    .iter()
                    .map(|n| i32::from(scores[n.index()].balanced)),
            );
            Scores::Each
        }
        PluginId::PodTopologySpread => each_if(pod_topology_spread::score::score(
            cluster,
            &plan.spread,
            feasible,
            spread,
            out,
            None,
        )),
        PluginId::InterPodAffinity => each_if(inter_pod_affinity::score(
            cluster,
            &plan.affinity,
            feasible,
            out,
        )),
        PluginId::ImageLocality => {
            let column = columns.images(plan);
            if column.nonzero == 0 {
                return Scores::Same(0);
            }
            gather(&column.values, out);
            Scores::Each
        }
        PluginId::SelectorSpread => match &plan.selector_spread {
            Some(plan) => each_if(selector_spread::score(cluster, plan, feasible, out)),
            None => Scores::None,
        },
        // Without claims it scores every node 0; with claims the pod is not tried.
        PluginId::DynamicResources => Scores::Same(0),
        _ => Scores::None,
    }
}

fn add_same(totals: &mut [i32], weighted: i32) {
    if weighted != 0 {
        totals.iter_mut().for_each(|total| *total += weighted);
    }
}

fn add_each(totals: &mut [i32], weight: i32, scores: &[i32]) {
    for (total, &score) in totals.iter_mut().zip(scores) {
        *total += weight * score;
    }
}

/// The place of the node to take among those with the highest total.
fn take(cx: Cycle<'_>, feasible: &[NodeIdx], totals: &[i32]) -> usize {
    let highest = totals.iter().copied().max().unwrap_or(0);
    let tied = totals
        .iter()
        .enumerate()
        .filter(|&(_, &t)| t == highest)
        .map(|(i, _)| i);
    let name = |place: usize| {
        cx.cluster
            .names
            .text(cx.cluster.node(feasible[place]).name())
    };
    let first = |a: usize, b: usize| {
        let b_first = match cx.profile.ties {
            TieRule::Upstream136 => heap_precedes(b, a),
            TieRule::FirstName => name(b) < name(a),
        };
        if b_first { b } else { a }
    };
    tied.reduce(first).unwrap_or(0)
}
