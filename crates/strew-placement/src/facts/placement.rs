//! A Placement's specification, parsed. Source: spec/placement §1.1, §3.1, §3.7, §3.8.

use std::sync::Arc;

use strew_model::{Holds, Marks, Selector, Span, Symbol};

use super::status::PlacementStatus;

/// A Placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementFact {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// Its uid.
    pub uid: Arc<str>,
    /// What is asked for.
    pub spec: PlacementSpec,
    /// What was answered last.
    pub status: PlacementStatus,
    /// Whether it is being deleted, or disabled by its annotation: it is left alone.
    pub ignored: bool,
    /// The resourceVersion, as a number that grows.
    pub revision: u64,
}

/// What a Placement asks for. The default is that of an empty `spec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementSpec {
    /// `clusterSets`; empty: every set that is bound.
    pub cluster_sets: Box<[Symbol]>,
    /// `numberOfClusters`; absent: all that match.
    pub number_of_clusters: Option<i32>,
    /// `predicates`, any of which suffices; or why they are none (a CEL expression that does not compile, ...).
    pub predicates: Result<Box<[ClusterPredicates]>, Arc<str>>,
    /// `prioritizerPolicy`.
    pub prioritizers: PrioritizerPolicy,
    /// `spreadPolicy.spreadConstraints`, most important first.
    pub spread: Box<[SpreadTerm]>,
    /// Annotation `strew.dev/topology-weights`, by topology key; or why it cannot be read.
    pub topology_weights: Result<Box<[(Symbol, TopologyWeights)]>, Arc<str>>,
    /// Annotation `strew.dev/topology-groups`, by topology key; or why it cannot be read.
    pub topology_groups: Result<Box<[(Symbol, GroupBounds)]>, Arc<str>>,
    /// `tolerations`.
    pub tolerations: Box<[ClusterToleration]>,
    /// `decisionStrategy.groupStrategy`.
    pub groups: GroupStrategy,
    /// `sortBy`.
    pub sort_by: SortBy,
    /// `scoreRateLimit`.
    pub score_rate_limit: Span,
    /// Annotation `strew.dev/on-misconfigured`.
    pub on_misconfigured: OnMisconfigured,
    /// Annotation `strew.dev/spread-rebalance`.
    pub rebalance: Rebalance,
    /// Annotations `strew.dev/replicas` and `strew.dev/replica-division`; `None`: no replicas are divided; or why they
    /// cannot be read.
    pub replicas: Result<Option<Division>, Arc<str>>,
}

impl Default for PlacementSpec {
    fn default() -> Self {
        Self {
            cluster_sets: Box::default(),
            number_of_clusters: None,
            predicates: Ok(Box::default()),
            prioritizers: PrioritizerPolicy::default(),
            spread: Box::default(),
            topology_weights: Ok(Box::default()),
            topology_groups: Ok(Box::default()),
            tolerations: Box::default(),
            groups: GroupStrategy::default(),
            sort_by: SortBy::ClusterName,
            score_rate_limit: Span::from_secs(60),
            on_misconfigured: OnMisconfigured::Empty,
            rebalance: Rebalance::OnChange,
            replicas: Ok(None),
        }
    }
}

/// One entry of `predicates`: all three must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPredicates {
    /// `labelSelector`, over labels. An absent one is `{}`.
    pub labels: Selector,
    /// `claimSelector`, over claims.
    pub claims: Selector,
    /// `celSelector`, if it has expressions.
    pub cel: Option<CelSelector>,
}

impl Default for ClusterPredicates {
    fn default() -> Self {
        Self {
            labels: Selector::all_of(vec![]),
            claims: Selector::all_of(vec![]),
            cel: None,
        }
    }
}

/// Compiled CEL expressions, which a [`ClusterPredicate`](crate::ClusterPredicate) answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CelSelector {
    /// Names them to whoever answers. Equal ids are equal expressions.
    pub id: CelId,
    /// The names of AddOnPlacementScores that they read; `None` where a name is computed, so that it may be any.
    pub scores: Option<Box<[Symbol]>>,
}

/// Names a list of compiled CEL expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CelId(pub u32);

/// `prioritizerPolicy`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrioritizerPolicy {
    /// `mode`, as written: `Exact`, `Additive`, or nothing.
    pub mode: Arc<str>,
    /// `configurations`.
    pub configurations: Box<[PrioritizerConfig]>,
}

/// One entry of `configurations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrioritizerConfig {
    /// `scoreCoordinate`, if it is there.
    pub coordinate: Option<ScoreCoordinate>,
    /// `weight`.
    pub weight: i32,
}

/// Which score is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoreCoordinate {
    /// A prioritizer of ours, by name.
    BuiltIn(Arc<str>),
    /// An add-on's score; `None` where `addOn` is missing.
    AddOn(Option<AddOnCoordinate>),
}

/// An add-on's score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddOnCoordinate {
    /// The name of the AddOnPlacementScore.
    pub resource: Symbol,
    /// The name of the score in it.
    pub score: Symbol,
}

/// One entry of `spreadConstraints`, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadTerm {
    /// `topologyKey`.
    pub key: Symbol,
    /// `topologyKeyType`.
    pub key_type: TopologyKeyType,
    /// `maxSkew`; less than 1 counts as 1.
    pub max_skew: i32,
    /// `whenUnsatisfiable`.
    pub when: WhenUnsatisfiable,
    /// `topologyWeights`, which win over the annotation.
    pub weights: Option<TopologyWeights>,
    /// `minGroups` and `maxGroups`, each of which wins over the annotation.
    pub groups: GroupBounds,
}

/// How many topologies of a term a selection uses, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupBounds {
    /// `minGroups`; `None`: no bound.
    pub min: Option<i64>,
    /// `maxGroups`; `None`: no bound.
    pub max: Option<i64>,
}

/// Where a topology's value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyKeyType {
    /// In a label.
    Label,
    /// In a claim.
    Claim,
    /// Something else was written.
    Unknown(Arc<str>),
}

impl TopologyKeyType {
    /// As written.
    pub fn name(&self) -> &str {
        match self {
            Self::Label => "Label",
            Self::Claim => "Claim",
            Self::Unknown(text) => text,
        }
    }
}

impl GroupBounds {
    /// Checks the bounds; `number`: `numberOfClusters`, of which 0 contradicts nothing.
    ///
    /// # Errors
    /// The first bound that makes no sense.
    pub fn check(self, number: Option<i32>) -> Result<(), WrongBound> {
        let (min, max) = (self.min.unwrap_or(0), self.max);
        let wrong = |is_max, message: String| Err(WrongBound { is_max, message });
        if self.min.is_some_and(|min| min < 1) {
            return wrong(false, "minGroups must be at least 1".to_owned());
        }
        if max.is_some_and(|max| max < 1) {
            return wrong(true, "maxGroups must be at least 1".to_owned());
        }
        if let Some(max) = max.filter(|&max| min > max) {
            return wrong(
                false,
                format!("minGroups {min} is more than maxGroups {max}"),
            );
        }
        match number {
            Some(n) if n > 0 && min > i64::from(n) => wrong(
                false,
                format!("minGroups {min} is more than numberOfClusters {n}"),
            ),
            _ => Ok(()),
        }
    }
}

/// A bound on topologies that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongBound {
    /// Whether it is `maxGroups`, not `minGroups`.
    pub is_max: bool,
    /// What is wrong.
    pub message: String,
}

/// What a term does where its skew cannot be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhenUnsatisfiable {
    /// Selects fewer clusters: the term is hard.
    DoNotSchedule,
    /// Only prefers: the term is soft. Also where nothing is written.
    ScheduleAnyway,
    /// Something else was written.
    Unknown(Arc<str>),
}

/// How much each topology of a level should hold, compared with its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyWeights {
    /// By value.
    pub values: Box<[(Symbol, i64)]>,
    /// Of all other values (`*`), 1 if not written.
    pub default: i64,
}

impl TopologyWeights {
    /// The weight of `value`.
    pub fn of(&self, value: Symbol) -> i64 {
        let found = self.values.iter().find(|&&(v, _)| v == value);
        found.map_or(self.default, |&(_, weight)| weight)
    }
}

/// A toleration of a cluster's taint, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterToleration {
    /// `key`; `None` where it is empty.
    pub key: Option<Symbol>,
    /// `operator`.
    pub operator: TolerationOperator,
    /// `value`, empty where absent.
    pub value: Symbol,
    /// `effect`; `None` for any.
    pub effect: Option<super::cluster::TaintEffect>,
    /// `tolerationSeconds`; absent: for ever.
    pub seconds: Option<i64>,
}

/// How a toleration compares values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TolerationOperator {
    /// The values are equal; also where nothing is written.
    Equal,
    /// The value does not matter.
    Exists,
    /// Something else was written: it matches nothing.
    Other,
}

/// `decisionStrategy.groupStrategy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStrategy {
    /// `decisionGroups`; or why they cannot be read.
    pub groups: Result<Box<[DecisionGroup]>, Arc<str>>,
    /// `clustersPerDecisionGroup`.
    pub size: GroupSize,
}

impl Default for GroupStrategy {
    fn default() -> Self {
        Self {
            groups: Ok(Box::default()),
            size: GroupSize::Percent(100),
        }
    }
}

/// One entry of `decisionGroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionGroup {
    /// `groupName`.
    pub name: Symbol,
    /// The label selector of `groupClusterSelector`.
    pub labels: Selector,
    /// The claim selector of `groupClusterSelector`.
    pub claims: Selector,
}

/// How many clusters a group may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupSize {
    /// So many; less than 1 is no limit.
    Count(i32),
    /// So many of a hundred selected ones, rounded up.
    Percent(u32),
    /// A text that is no percentage.
    NotAPercentage(Arc<str>),
}

/// The order of clusters inside a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// By name; decisions carry no score.
    ClusterName,
    /// By score, highest first, then by name; decisions carry it.
    Score,
}

/// What becomes of the decisions of a placement that cannot be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMisconfigured {
    /// All clusters are dropped, as upstream does.
    Empty,
    /// They stay.
    Keep,
}

/// Whether a cluster that is still selectable may be dropped for the sake of evenness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebalance {
    /// It may.
    OnChange,
    /// Surviving decisions are kept, and only filled up.
    Never,
}

/// How many replicas the selected clusters get together, and by what they are divided. Source: spec/placement §3.11.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// All of them.
    pub total: u32,
    /// What a cluster's part grows with.
    pub by: DivideBy,
    /// A cluster with a weight gets at least so many, as far as the total suffices.
    pub min_per_cluster: u32,
}

/// What the part of a cluster grows with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DivideBy {
    /// Weights that are written.
    Weights {
        /// The first that matches a cluster counts.
        entries: Box<[ReplicaWeight]>,
        /// Of clusters that none matches.
        default: i64,
    },
    /// Allocatable CPU.
    AllocatableCpu,
    /// Allocatable memory.
    AllocatableMemory,
    /// The score of an add-on.
    AddOn(AddOnCoordinate),
}

/// The weight of clusters that match both selectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaWeight {
    /// `labelSelector`, over labels.
    pub labels: Selector,
    /// `claimSelector`, over claims.
    pub claims: Selector,
    /// `weight`.
    pub weight: i64,
}

// === the symbols in it ===

impl Holds for PlacementFact {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            namespace,
            name,
            uid: _,
            spec,
            status,
            ignored: _,
            revision: _,
        } = self;
        (*namespace, *name).mark(marks);
        spec.mark(marks);
        status.mark(marks);
    }
}

impl Holds for PlacementSpec {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            cluster_sets,
            number_of_clusters: _,
            predicates,
            prioritizers,
            spread,
            topology_weights,
            topology_groups,
            tolerations,
            groups,
            sort_by: _,
            score_rate_limit: _,
            on_misconfigured: _,
            rebalance: _,
            replicas,
        } = self;
        cluster_sets.mark(marks);
        predicates.iter().for_each(|all| all.mark(marks));
        for config in &prioritizers.configurations {
            if let Some(ScoreCoordinate::AddOn(Some(add_on))) = &config.coordinate {
                (add_on.resource, add_on.score).mark(marks);
            }
        }
        spread.mark(marks);
        topology_weights.iter().for_each(|all| all.mark(marks));
        for (key, _) in topology_groups.iter().flat_map(|all| all.iter()) {
            key.mark(marks);
        }
        tolerations.mark(marks);
        groups.groups.iter().for_each(|all| all.mark(marks));
        replicas.iter().for_each(|division| division.mark(marks));
    }
}

impl Holds for ClusterPredicates {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            labels,
            claims,
            cel,
        } = self;
        labels.mark(marks);
        claims.mark(marks);
        let scores = cel.as_ref().and_then(|cel| cel.scores.as_ref());
        scores.iter().for_each(|names| names.mark(marks));
    }
}

impl Holds for SpreadTerm {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            key_type: _,
            max_skew: _,
            when: _,
            weights,
            groups: _,
        } = self;
        key.mark(marks);
        weights.mark(marks);
    }
}

impl Holds for TopologyWeights {
    fn mark(&self, marks: &mut Marks) {
        self.values.mark(marks);
    }
}

impl Holds for ClusterToleration {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            operator: _,
            value,
            effect: _,
            seconds: _,
        } = self;
        key.mark(marks);
        value.mark(marks);
    }
}

impl Holds for DecisionGroup {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            name,
            labels,
            claims,
        } = self;
        name.mark(marks);
        labels.mark(marks);
        claims.mark(marks);
    }
}

impl Holds for Division {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            total: _,
            by,
            min_per_cluster: _,
        } = self;
        match by {
            DivideBy::Weights {
                entries,
                default: _,
            } => entries.mark(marks),
            DivideBy::AllocatableCpu | DivideBy::AllocatableMemory => {}
            DivideBy::AddOn(add_on) => (add_on.resource, add_on.score).mark(marks),
        }
    }
}

impl Holds for ReplicaWeight {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            labels,
            claims,
            weight: _,
        } = self;
        labels.mark(marks);
        claims.mark(marks);
    }
}
