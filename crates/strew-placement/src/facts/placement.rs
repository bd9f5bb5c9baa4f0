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
    /// Its specification.
    pub spec: PlacementSpec,
    /// Its status.
    pub status: PlacementStatus,
    /// True if it is being deleted, or disabled by its annotation: nothing is written for it.
    pub ignored: bool,
    /// The resourceVersion, as a number that grows.
    pub revision: u64,
}

/// The specification of a Placement. The default equals an empty `spec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementSpec {
    /// `clusterSets`; empty: all bound sets.
    pub cluster_sets: Box<[Symbol]>,
    /// `numberOfClusters`; `None`: all clusters that match.
    pub number_of_clusters: Option<i32>,
    /// `predicates`, one of which must match; or the error, such as a CEL expression that does not compile.
    pub predicates: Result<Box<[ClusterPredicates]>, Arc<str>>,
    /// `prioritizerPolicy`.
    pub prioritizers: PrioritizerPolicy,
    /// `spreadPolicy.spreadConstraints`, most important first.
    pub spread: Box<[SpreadTerm]>,
    /// The annotation `strew.dev/topology-weights` by topology key, or why it cannot be read.
    pub topology_weights: Result<Box<[(Symbol, TopologyWeights)]>, Arc<str>>,
    /// The annotation `strew.dev/topology-groups` by topology key, or why it cannot be read.
    pub topology_groups: Result<Box<[(Symbol, GroupBounds)]>, Arc<str>>,
    /// `tolerations`.
    pub tolerations: Box<[ClusterToleration]>,
    /// `decisionStrategy.groupStrategy`.
    pub groups: GroupStrategy,
    /// `sortBy`.
    pub sort_by: SortBy,
    /// `scoreRateLimit`.
    pub score_rate_limit: Span,
    /// The annotation `strew.dev/on-misconfigured`.
    pub on_misconfigured: OnMisconfigured,
    /// The annotation `strew.dev/spread-rebalance`.
    pub rebalance: Rebalance,
    /// The annotations `strew.dev/replicas` and `strew.dev/replica-division`, or why they cannot be read; `None`: no
    /// replicas are divided.
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

/// One entry of `predicates`: all three parts must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPredicates {
    /// `labelSelector`, matched against labels. A missing one equals `{}`.
    pub labels: Selector,
    /// `claimSelector`, matched against claims.
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

/// Compiled CEL expressions, evaluated by a [`ClusterPredicate`](crate::ClusterPredicate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CelSelector {
    /// Identifies them for the evaluator. Equal ids mean equal expressions.
    pub id: CelId,
    /// The names of the AddOnPlacementScores that they read; `None` if a name is computed, so that it can be any.
    pub scores: Option<Box<[Symbol]>>,
}

/// Identifies a list of compiled CEL expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CelId(pub u32);

/// `prioritizerPolicy`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrioritizerPolicy {
    /// `mode` as written: `Exact`, `Additive` or empty.
    pub mode: Arc<str>,
    /// `configurations`.
    pub configurations: Box<[PrioritizerConfig]>,
}

/// One entry of `configurations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrioritizerConfig {
    /// `scoreCoordinate`; `None` if it is missing.
    pub coordinate: Option<ScoreCoordinate>,
    /// `weight`.
    pub weight: i32,
}

/// The score that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoreCoordinate {
    /// A built-in prioritizer, by name.
    BuiltIn(Arc<str>),
    /// An add-on's score; `None` if `addOn` is missing.
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
    /// `topologyWeights`, which take precedence over the annotation.
    pub weights: Option<TopologyWeights>,
    /// `minGroups` and `maxGroups`, each of which takes precedence over the annotation.
    pub groups: GroupBounds,
}

/// The bounds on the number of topologies of a term that a selection uses, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupBounds {
    /// `minGroups`; `None`: no bound.
    pub min: Option<i64>,
    /// `maxGroups`; `None`: no bound.
    pub max: Option<i64>,
}

/// Where the value of a topology is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyKeyType {
    /// From a label.
    Label,
    /// From a claim.
    Claim,
    /// Any other text.
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
    /// Checks the bounds against `number`, which is `numberOfClusters`; 0 contradicts no bound.
    ///
    /// # Errors
    /// The first invalid bound.
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

/// An invalid bound on topologies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongBound {
    /// True for `maxGroups`, false for `minGroups`.
    pub is_max: bool,
    /// The message.
    pub message: String,
}

/// What happens if the skew of a term cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhenUnsatisfiable {
    /// Fewer clusters are selected: the term is hard.
    DoNotSchedule,
    /// The term is a preference: it is soft. This is the default.
    ScheduleAnyway,
    /// Any other text.
    Unknown(Arc<str>),
}

/// The share of each topology of a level, compared with its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyWeights {
    /// By value.
    pub values: Box<[(Symbol, i64)]>,
    /// The weight of all other values (`*`), 1 by default.
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
    /// `value`; empty if missing.
    pub value: Symbol,
    /// `effect`; `None` matches any.
    pub effect: Option<super::cluster::TaintEffect>,
    /// `tolerationSeconds`; `None`: for ever.
    pub seconds: Option<i64>,
}

/// How a toleration compares values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TolerationOperator {
    /// The values must be equal. This is the default.
    Equal,
    /// Any value matches.
    Exists,
    /// Any other text: it matches nothing.
    Other,
}

/// `decisionStrategy.groupStrategy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStrategy {
    /// `decisionGroups`, or why they cannot be read.
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

/// The largest number of clusters in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupSize {
    /// A number; less than 1 means no limit.
    Count(i32),
    /// A percentage of the selected clusters, rounded up.
    Percent(u32),
    /// A text that is not a percentage.
    NotAPercentage(Arc<str>),
}

/// The order of clusters inside a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// By name; decisions carry no score.
    ClusterName,
    /// By score, highest first, then by name; decisions carry the score.
    Score,
}

/// What happens to the decisions of a placement whose specification is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMisconfigured {
    /// All clusters are dropped, as upstream does.
    Empty,
    /// All clusters stay.
    Keep,
}

/// Whether a cluster that still matches may be removed to make the spread more even.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebalance {
    /// It may be removed.
    OnChange,
    /// Selected clusters that still match stay; only missing ones are added.
    Never,
}

/// The replicas that the selected clusters get in total, and how they are divided. Source: spec/placement §3.11.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// The total.
    pub total: u32,
    /// What the part of a cluster is proportional to.
    pub by: DivideBy,
    /// The least part of a cluster with a weight, as far as the total suffices.
    pub min_per_cluster: u32,
}

/// What the part of a cluster is proportional to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DivideBy {
    /// Weights from the specification.
    Weights {
        /// The first entry that matches a cluster counts.
        entries: Box<[ReplicaWeight]>,
        /// The weight of clusters that no entry matches.
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
