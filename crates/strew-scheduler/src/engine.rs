//! One decision: the node that a pod gets, or why it gets none.
//!
//! Source: spec/scheduler §2.3 to §2.5; all nodes are checked.

use std::rc::Rc;

use strew_cluster::{ClassId, Cluster, NodeIdx, PodIdx, Sweep};
use strew_model::{Holds, Marks, Symbol};

use crate::by_class::ByClass;
use crate::columns::{Columns, Rules};
use crate::cycle::{Cycle, Search, list_feasible};
use crate::group_limits::GroupLimits;
use crate::groups::{GroupsByClass, Representatives};
use crate::metrics::meter::{Meter, Rejections};
use crate::metrics::{Point, SUCCESS, Stopwatch};
use crate::plan::{ClassPlan, Plans};
use crate::plugins::node_affinity;
use crate::plugins::pod_topology_spread::filter::Passing;
use crate::plugins::pod_topology_spread::score::Scored;
use crate::plugins::pod_volumes::PodVolumes;
use crate::preemption::nominations::{Barred, NO_EFFECTS, NominationEffects, Nominations};
use crate::preemption::tryout::Tryout;
use crate::profile::{PluginId, Profile};
use crate::scoring::{Chance, PluginScores, Sums, take};
use crate::status::{Refusal, Unfit};

/// The result of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The pod goes to this node.
    Place {
        /// The node.
        node: NodeIdx,
        /// The number of feasible nodes.
        feasible: usize,
        /// The node's total; `None` if it was the only feasible node, which is not scored.
        total: Option<i64>,
    },
    /// No node takes the pod now.
    Unfit(Rc<Unfit>),
}

/// Everything that a decision computed.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The nodes that passed every filter, in the order in which they were found.
    pub feasible: Vec<NodeIdx>,
    /// Filter plugins that PreFilter skipped.
    pub skipped_filters: Vec<PluginId>,
    /// Score plugins in order; empty unless two or more nodes are feasible.
    pub scores: Vec<PluginScores>,
    /// The sum of weighted scores per feasible node.
    pub totals: Vec<i64>,
    /// Indexes in `feasible` of the nodes with the highest total.
    pub best: Vec<usize>,
    /// The index in `feasible` that the tie rule chooses.
    pub taken: Option<usize>,
    /// Why the other nodes were refused.
    pub refused: Option<Unfit>,
    /// The node names to which PreFilter narrowed the search, existing or not, as in kube-scheduler's
    /// `PreFilterResult`; `None`: all nodes.
    pub narrowed: Option<Vec<Symbol>>,
}

/// Why a node refuses a pod.
#[derive(Debug, Clone)]
pub struct NodeRefusals {
    /// The node.
    pub node: NodeIdx,
    /// The first plugin's refusal after the pods nominated to the node are added, with these pods.
    pub beside: Option<Barred>,
    /// The refusals of each plugin without nominated pods.
    pub alone: Vec<Refusal>,
}

/// Decides for one profile. Its state can be rebuilt from the cluster.
pub struct Engine {
    grounds: Grounds,
    columns: Columns,
    feasible: Vec<NodeIdx>,
    sums: Sums,
    groups: GroupsByClass,
    representatives: Representatives,
    unfit: ByClass<LastUnfit>,
    chance: Chance,
    /// Where the next sampled search begins, in the order of nodes.
    start: usize,
}

/// The state that every cycle of an engine reads.
struct Grounds {
    profile: Profile,
    plans: Plans,
    /// The volumes of the pod to decide on.
    volumes: PodVolumes,
}

impl Grounds {
    /// Begins a cycle: updates the order of nodes, the plan of the pod's class, and the state of its volumes.
    #[inline(always)]
    fn cycle<'a>(
        &'a mut self,
        columns: &mut Columns,
        cluster: &'a mut Cluster,
        pod: PodIdx,
        start: usize,
    ) -> Cycle<'a> {
        let class = cluster.pod(pod).class;
        cluster.refresh_order();
        let plan = self.plans.ensure(cluster, columns, &self.profile, class);
        self.volumes.find(cluster, &self.profile, pod);
        Cycle::new(cluster, &self.profile, plan, class, &self.volumes, start)
    }
}

/// The last refusal of a class: reused for its next pod while nothing has changed, and followed where nodes have.
struct LastUnfit {
    state: ClusterState,
    unfit: Rc<Unfit>,
    /// What its hard spread constraints let pass; `None` if a change of one node may change the refusal of another one in
    /// further ways.
    passing: Option<Passing>,
    /// How many nodes each plugin rejected, if that is measured.
    rejections: Rejections,
}

impl LastUnfit {
    /// The refusal of the same class now, if the nodes that changed since show that all nodes still refuse it: the others
    /// are as they were.
    ///
    /// Cost: the filters of each changed node, and a comparison of the order of nodes.
    fn follow(&self, cx: Cycle<'_>, state: ClusterState) -> Option<Rc<Unfit>> {
        let Unfit::EveryNode(refusals) = &*self.unfit else {
            return None;
        };
        let cluster = cx.cluster;
        let is_same = self.state.but_for_nodes() == state.but_for_nodes()
            && cx.spread_decides_alone()
            && self.passing.as_ref()?.is_so(cluster, &cx.plan.spread)
            && refusals.nodes() == cluster.node_order();
        if !is_same {
            return None;
        }
        let usage = cluster.usage_changes().since(self.state.usage)?;
        let structure = cluster.structure_changes().since(self.state.structure)?;
        if usage.len() + structure.len() >= refusals.nodes().len() {
            return None;
        }
        let mut unfit = Rc::clone(&self.unfit);
        for node in usage.chain(structure) {
            let place = cluster.node_position(node)?;
            let refusal = cx.first_refusal(node)?;
            if *refusals.at(place) != refusal
                && let Unfit::EveryNode(refusals) = Rc::make_mut(&mut unfit)
            {
                refusals.replace(place, refusal);
            }
        }
        Some(unfit)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct ClusterState {
    usage: u64,
    structure: u64,
    owners: u64,
    evicted: u64,
    /// 0 for pods without claims, which do not depend on volumes.
    volumes: u64,
}

impl ClusterState {
    fn of(cluster: &Cluster, volumes: &PodVolumes) -> Self {
        Self {
            volumes: match volumes.has_claims() {
                true => cluster.volumes().version(),
                false => 0,
            },
            usage: cluster.usage_changes().head(),
            structure: cluster.structure_changes().head(),
            owners: cluster.owners().version(),
            evicted: cluster.evicted(),
        }
    }
}

impl ClusterState {
    /// The part that does not concern single nodes.
    fn but_for_nodes(self) -> Self {
        Self {
            usage: 0,
            structure: 0,
            ..self
        }
    }
}

impl Engine {
    /// An engine for a profile.
    pub fn new(profile: Profile) -> Self {
        let chance = Chance::of(&profile);
        let columns = Columns::new(Rules::of(&profile));
        Self {
            grounds: Grounds {
                profile,
                plans: Plans::default(),
                volumes: PodVolumes::default(),
            },
            columns,
            feasible: Vec::new(),
            sums: Sums::default(),
            groups: GroupsByClass::new(GroupLimits::PRODUCTION),
            representatives: Representatives::default(),
            unfit: ByClass::default(),
            chance,
            start: 0,
        }
    }

    /// Sets when it evaluates one node per group of equal nodes.
    pub fn set_group_limits(&mut self, limits: GroupLimits) {
        self.groups = GroupsByClass::new(limits);
    }

    /// Measures its decisions from now on.
    pub(crate) fn measure_with(&mut self, clock: Stopwatch) {
        self.sums.meter = Some(Box::new(Meter::new(clock)));
    }

    /// Its measurements; `None` if it does not measure.
    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.sums.meter.as_deref()
    }

    /// Forgets where its last search ended and what it drew: the next decision is that of a new engine.
    pub fn rewind(&mut self) {
        self.chance = Chance::of(&self.grounds.profile);
        self.start = 0;
    }

    /// Its profile.
    pub fn profile(&self) -> &Profile {
        &self.grounds.profile
    }

    /// Takes part in a [sweep](Cluster::begin_sweep) of its cluster: drops what belongs to classes that are gone, and
    /// marks what it still reads. An engine that takes no part makes its plans again at the next decision.
    pub fn sweep(&mut self, cluster: &mut Cluster, sweep: &mut Sweep) {
        let plans = &mut self.grounds.plans;
        plans.sweep(cluster, &self.columns, sweep);
        self.columns.sweep(plans);
        self.groups.sweep(plans);
        self.unfit.clear();
    }

    /// Marks the symbols that it holds outside of its profile.
    pub fn mark(&self, marks: &mut Marks) {
        if let Some(meter) = &self.sums.meter {
            meter.mark(marks);
        }
    }

    /// The numbers of its plans, columns and groups.
    pub fn kept(&self) -> [usize; 3] {
        let plans = self.grounds.plans.iter().count();
        [plans, self.columns.len(), self.groups.len()]
    }

    /// The plan of a class: its constraints, and what they count.
    pub fn plan(&mut self, cluster: &mut Cluster, class: ClassId) -> &ClassPlan {
        let Grounds { profile, plans, .. } = &mut self.grounds;
        plans.ensure(cluster, &mut self.columns, profile, class)
    }

    /// Decides where a pod goes. The cluster's facts do not change, but new tallies may be counted.
    ///
    /// Cost: a few steps per group of equal nodes, or per node if all nodes differ; no pod is counted.
    #[inline]
    pub fn decide(&mut self, cluster: &mut Cluster, pod: PodIdx) -> Decision {
        self.decide_with(cluster, pod, &Nominations::new())
    }

    /// Decides where a pod goes, given nominations. If the pod's own nominated node takes it, it goes there. Otherwise
    /// it goes to a node that takes it with and without the pods nominated there whose priority is not below its own.
    /// Source: spec/scheduler §2.4, step 3, and §2.6.
    ///
    /// Cost: that of [`decide`](Self::decide), plus trying the nodes to which such pods are nominated.
    pub fn decide_with(
        &mut self,
        cluster: &mut Cluster,
        pod: PodIdx,
        nominations: &Nominations,
    ) -> Decision {
        if let Some(meter) = &mut self.sums.meter {
            meter.begin();
        }
        let decision = self.look_for(cluster, pod, nominations);
        if let Some(meter) = &mut self.sums.meter {
            meter.end();
        }
        decision
    }

    fn look_for(
        &mut self,
        cluster: &mut Cluster,
        pod: PodIdx,
        nominations: &Nominations,
    ) -> Decision {
        if cluster.nodes_present() == 0 {
            return Decision::Unfit(Rc::new(Unfit::NoNodes));
        }
        let cx = self
            .grounds
            .cycle(&mut self.columns, cluster, pod, self.start);
        let Cycle {
            cluster,
            plan,
            volumes,
            ..
        } = cx;
        let class = cluster.pod(pod).class;
        let found = NominationEffects::of(cx, pod, nominations);
        let effects = found.as_ref().unwrap_or(&NO_EFFECTS);
        // Generic ephemeral volumes differ between pods of one class.
        let unclaimed = effects.is_empty() && !volumes.has_ephemeral();
        let state = ClusterState::of(cluster, volumes);
        let last = self
            .unfit
            .get(class)
            .filter(|last| unclaimed && last.state == state);
        if let Some(last) = last {
            if let Some(meter) = &mut self.sums.meter {
                meter.refused_alike(&last.rejections);
            }
            return Decision::Unfit(Rc::clone(&last.unfit));
        }
        let cx = Cycle { effects, ..cx };
        let narrowed = match cx.pre_filter() {
            Search::Nodes(narrowed) => narrowed,
            Search::Refused(refusal) => {
                if let Some(meter) = &mut self.sums.meter {
                    meter.passed(Point::PreFilter, refusal.code.name());
                }
                return Decision::Unfit(Rc::new(Unfit::PreFilter(refusal)));
            }
        };
        if let Some(node) = effects.granted() {
            return Decision::Place {
                node,
                feasible: 1,
                total: None,
            };
        }
        let may_follow = unclaimed && narrowed.is_none();
        let last = self.unfit.get(class).filter(|_| may_follow);
        let followed = last.and_then(|last| last.follow(cx, state));
        // Racing workers draw in each search, and so in this one.
        let is_clear = followed.is_some() && self.chance.workers.is_none();
        if !is_clear {
            self.columns.sync(plan, cluster);
        }
        let sampled = cx.profile.percentage_of_nodes_to_score.is_some();
        let grouped = !is_clear
            && narrowed.is_none()
            && !sampled
            && effects.barred.is_empty()
            && !volumes.asks_nodes()
            && self.groups.sync(class, cluster, plan, &self.columns);
        if let Some(meter) = &mut self.sums.meter {
            meter.passed(Point::PreFilter, SUCCESS);
        }
        let decision = match grouped {
            _ if is_clear => None,
            true => self.groups.decide(
                class,
                cx,
                &self.columns,
                &mut self.representatives,
                &mut self.sums,
                &mut self.chance,
            ),
            false => {
                let feasible = &mut self.feasible;
                let visited = list_feasible(
                    cx,
                    &self.columns,
                    narrowed.as_deref(),
                    feasible,
                    self.chance.workers.as_mut(),
                    self.sums.meter.as_deref_mut(),
                );
                self.start = (self.start + visited) % cluster.node_order().len();
                decide_among(
                    cx,
                    &self.columns,
                    feasible,
                    &mut self.sums,
                    &mut self.chance,
                )
            }
        };
        let meter = &mut self.sums.meter;
        if let Some(decision) = decision {
            if let Some(meter) = meter {
                meter.placed(cx);
            }
            return decision;
        }
        let unfit =
            followed.unwrap_or_else(|| Rc::new(Unfit::EveryNode(cx.refusals(narrowed.as_deref()))));
        let mut rejections = Rejections::new();
        if let Some(meter) = meter {
            meter.passed(Point::Filter, SUCCESS);
            rejections = meter.refused(cx, &unfit);
        }
        if unclaimed {
            let last = LastUnfit {
                state,
                unfit: Rc::clone(&unfit),
                passing: { may_follow && cx.spread_decides_alone() }
                    .then(|| Passing::of(cx.cluster, &plan.spread)),
                rejections,
            };
            self.unfit.put(class, last, cx.cluster.node_order().len());
        }
        Decision::Unfit(unfit)
    }

    /// Copies of what the filters of a pod read, to evaluate changed sets of pods.
    pub(crate) fn tryout<'a>(&'a mut self, cluster: &'a mut Cluster, pod: PodIdx) -> Tryout<'a> {
        let cx = self
            .grounds
            .cycle(&mut self.columns, cluster, pod, self.start);
        Tryout::new(cx, cx.cluster.pod(pod).class)
    }

    /// Runs the same plugin code as [`decide`](Self::decide) and keeps every number. A pod on a node is counted like
    /// the others: unbind it first.
    pub fn evaluate(&mut self, cluster: &mut Cluster, pod: PodIdx) -> Evaluation {
        self.evaluate_with(cluster, pod, &Nominations::new())
    }

    /// As [`evaluate`](Self::evaluate), for [`decide_with`](Self::decide_with). If the pod's nominated node takes it,
    /// that is the only feasible node, and no other one is checked.
    pub fn evaluate_with(
        &mut self,
        cluster: &mut Cluster,
        pod: PodIdx,
        nominations: &Nominations,
    ) -> Evaluation {
        let cx = self
            .grounds
            .cycle(&mut self.columns, cluster, pod, self.start);
        let Cycle { cluster, plan, .. } = cx;
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
        let found = NominationEffects::of(cx, pod, nominations);
        let effects = found.as_ref().unwrap_or(&NO_EFFECTS);
        let cx = Cycle { effects, ..cx };
        let narrowed = match cx.pre_filter() {
            Search::Nodes(narrowed) => narrowed,
            Search::Refused(refusal) => {
                evaluation.refused = Some(Unfit::PreFilter(refusal));
                return evaluation;
            }
        };
        if let Some(node) = effects.granted() {
            evaluation.feasible = vec![node];
            evaluation.best = vec![0];
            evaluation.taken = Some(0);
            return evaluation;
        }
        evaluation.narrowed = node_affinity::narrow(&cx.spec.node_affinity).unwrap_or_default();
        self.columns.sync(plan, cluster);
        // The next decision makes the same random choices.
        let mut chance = self.chance.clone();
        list_feasible(
            cx,
            &self.columns,
            narrowed.as_deref(),
            &mut evaluation.feasible,
            chance.workers.as_mut(),
            None,
        );
        if evaluation.feasible.len() < cluster.nodes_present() {
            evaluation.refused = Some(Unfit::EveryNode(cx.refusals(narrowed.as_deref())));
        }
        match evaluation.feasible.len() {
            0 => {}
            1 => {
                evaluation.best = vec![0];
                evaluation.taken = Some(0);
            }
            _ => {
                let nodes = &evaluation.feasible;
                evaluation.scores = self.sums.by_plugin(cx, &self.columns, nodes);
                self.sums.add_up(cx, &self.columns, Scored::each(nodes));
                let highest = self.sums.highest();
                evaluation.totals = self.sums.totals().iter().map(|&t| i64::from(t)).collect();
                let places = 0..nodes.len();
                evaluation.best = places
                    .filter(|&place| self.sums.totals()[place] == highest)
                    .collect();
                let best = evaluation.best.iter().map(|&place| (place, nodes[place]));
                evaluation.taken = take(cx, best, &mut chance).map(|(place, _)| place);
            }
        }
        evaluation
    }

    /// Per node the refusals of *all* plugins, in the order of nodes, for explanations; nodes that pass are left out.
    /// Empty if the pod is refused before any node is checked.
    pub fn all_refusals(
        &mut self,
        cluster: &mut Cluster,
        pod: PodIdx,
        nominations: &Nominations,
    ) -> Vec<NodeRefusals> {
        let cx = self
            .grounds
            .cycle(&mut self.columns, cluster, pod, self.start);
        let Search::Nodes(narrowed) = cx.pre_filter() else {
            return Vec::new();
        };
        let found = NominationEffects::of(cx, pod, nominations);
        let effects = found.as_ref().unwrap_or(&NO_EFFECTS);
        let of_node = |&node: &NodeIdx| {
            let refusals = NodeRefusals {
                node,
                beside: effects.barred_by(node).cloned(),
                alone: cx.all_refusals(narrowed.as_deref(), node),
            };
            let is_refused = refusals.beside.is_some() || !refusals.alone.is_empty();
            is_refused.then_some(refusals)
        };
        let nodes = cx.cluster.node_order().iter();
        nodes.filter_map(of_node).collect()
    }

    /// Why a pod may not go to a node, by PreFilter and Filter, without scores; `None` if it may. The cluster
    /// autoscaler uses this. Source: spec/controllers §11.
    pub fn refusal_on(
        &mut self,
        cluster: &mut Cluster,
        pod: PodIdx,
        node: NodeIdx,
    ) -> Option<Refusal> {
        let cx = self
            .grounds
            .cycle(&mut self.columns, cluster, pod, self.start);
        match cx.pre_filter() {
            Search::Refused(refusal) => Some(refusal),
            Search::Nodes(narrowed) => {
                let refusals = cx.all_refusals(narrowed.as_deref(), node);
                refusals.into_iter().next()
            }
        }
    }
}

/// Chooses one of these feasible nodes; `None` if there is none.
fn decide_among(
    cx: Cycle<'_>,
    columns: &Columns,
    feasible: &[NodeIdx],
    sums: &mut Sums,
    chance: &mut Chance,
) -> Option<Decision> {
    if feasible.is_empty() {
        return None;
    }
    if let Some(meter) = &mut sums.meter {
        meter.passed(Point::Filter, SUCCESS);
    }
    if let [node] = feasible {
        return Some(Decision::Place {
            node: *node,
            feasible: 1,
            total: None,
        });
    }
    sums.add_up(cx, columns, Scored::each(feasible));
    let highest = sums.highest();
    let each = feasible.iter().copied().enumerate();
    let (place, node) = take(
        cx,
        each.filter(|&(place, _)| sums.totals()[place] == highest),
        chance,
    )?;
    if let Some(meter) = &mut sums.meter {
        meter.chose(place);
        meter.passed(Point::Score, SUCCESS);
    }
    Some(Decision::Place {
        node,
        feasible: feasible.len(),
        total: Some(i64::from(highest)),
    })
}
