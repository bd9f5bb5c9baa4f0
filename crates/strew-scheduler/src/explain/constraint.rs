//! Each spread constraint, domain by domain.

use strew_cluster::{
    ClassId, Cluster, KeyId, NodeIdx, OwnerKind, OwnerRef, PodIdx, SpreadConstraint, TallyId,
};
use strew_model::{Operator, Selector, Symbol};
use strew_spread::{DomainIdx, Limit, Minimum, SkewCheck};

use super::refused::RefusedNode;
use crate::engine::Engine;
use crate::plugins::pod_topology_spread::score::{Weighed, Workspace, weigh_all};
use crate::plugins::pod_topology_spread::{HardConstraint, SoftConstraint, SpreadPlan};
use crate::profile::Profile;
use crate::status::Reason;

/// The source of a default constraint's selector (KEP-1258, spec/scheduler §1.5).
#[derive(Debug, Clone)]
pub struct Deduced {
    /// Services whose selector matches the pod.
    pub services: Vec<Symbol>,
    /// The pod's controller.
    pub owner: Option<OwnerRef>,
    /// True if the controller exists, and its kind has a selector.
    pub owner_used: bool,
    /// The default constraints, their selectors not filled in; they hold only if something was deduced.
    pub defaults: Vec<SpreadConstraint>,
}

/// A profile leaves parts of `PodTopologySpread` out.
#[derive(Debug, Clone)]
pub struct SpreadOff {
    /// The profile's `schedulerName`.
    pub profile: String,
    /// The filter is off: hard constraints have no effect.
    pub filter: bool,
    /// The score is off: soft constraints have no effect.
    pub score: bool,
    /// The constraints that have no effect for this reason, with their indexes in the pod's spec or in the defaults.
    pub without_effect: Vec<(usize, SpreadConstraint)>,
}

/// A label key of `matchLabelKeys`, with the pod's present value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedKey {
    /// The key.
    pub key: Symbol,
    /// The pod's value; `None` if it has none, and then the key adds nothing.
    pub value: Option<Symbol>,
}

/// A probable mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// No `labelSelector`: no pod counts.
    NoSelector,
    /// `labelSelector: {}`: no pod counts, although all match.
    EmptySelector,
    /// The selector does not match the pod itself: placing the pod changes no count.
    NotItself,
    /// The selector requires two different values of this label, so no pod matches. The pod's label was changed after
    /// its creation, when its value had been merged (spec/scheduler §1.3).
    Contradiction(Symbol),
    /// No node has the topology label.
    UnknownKey,
    /// This many domains exist only through nodes that the pod cannot use, and hold fewer pods than every domain that
    /// it can use: without them the minimum would be higher.
    UnusableMinimum(usize),
}

/// The common part of hard and soft constraints.
#[derive(Debug, Clone)]
pub struct Common {
    /// Its index in the spec, or in the defaults.
    pub index: usize,
    /// The effective constraint: match label keys merged, a default's selector deduced.
    pub constraint: SpreadConstraint,
    /// The keys that `matchLabelKeys` merged.
    pub merged: Vec<MergedKey>,
    /// True if the pod would be counted itself.
    pub self_match: bool,
    /// Probable mistakes.
    pub warnings: Vec<Warning>,
    /// Nodes that lack the label.
    pub lacking: Vec<NodeIdx>,
}

/// A hard constraint.
#[derive(Debug, Clone)]
pub struct HardExplained {
    /// The common part.
    pub common: Common,
    /// The minimum that is subtracted from every count.
    pub minimum: Minimum,
    /// The number of existing domains.
    pub domains_existing: u32,
    /// All values of the label on nodes, sorted by text.
    pub domains: Vec<Domain>,
    /// The pods that count in existing domains.
    pub counted: Vec<PodIdx>,
    /// The number of nodes with this label that are left out because they lack the label of another hard constraint.
    pub left_out: usize,
}

/// A domain of a constraint.
#[derive(Debug, Clone)]
pub struct Domain {
    /// The domain.
    pub domain: DomainIdx,
    /// The label's value.
    pub value: Symbol,
    /// Pods counted there.
    pub count: i32,
    /// The number of nodes with this value.
    pub nodes: usize,
    /// The number of these nodes that count for the constraint. If it is 0, the domain does not exist for it.
    pub eligible: usize,
    /// The number of these nodes that the pod could use, regardless of other pods: not cordoned, taints tolerated,
    /// affinity met.
    pub usable: usize,
    /// The number of these nodes that only this constraint refuses.
    pub open: usize,
    /// True if no existing domain has fewer pods.
    pub is_emptiest: bool,
    /// The verdict; `None` for soft constraints.
    pub check: Option<SkewCheck>,
    /// Other reasons against nodes here: the first reason of each such node, with the number of nodes, most first.
    pub other_reasons: Vec<(Reason, usize)>,
}

impl Domain {
    /// True if it exists for the constraint: at least one of its nodes counts.
    pub fn exists(&self) -> bool {
        self.eligible > 0
    }

    /// True if it exists only through nodes that the pod cannot use.
    pub fn exists_for_others_only(&self) -> bool {
        self.exists() && self.usable == 0
    }
}

/// A soft constraint.
#[derive(Debug, Clone)]
pub struct SoftExplained {
    /// The common part.
    pub common: Common,
    /// Its weight among the feasible nodes; `None` unless there are at least two.
    pub weighed: Option<Weighed>,
    /// All values of the label on nodes, sorted by text.
    pub domains: Vec<Domain>,
}

/// The hard constraints of a class, explained.
pub(crate) fn hard(
    cluster: &Cluster,
    class: ClassId,
    plan: &SpreadPlan,
    refused: &[RefusedNode],
) -> Vec<HardExplained> {
    let by_node = by_node(cluster, refused);
    let explain = |hard: &HardConstraint| explain_hard(cluster, class, plan, hard, &by_node);
    plan.hard.iter().map(explain).collect()
}

/// For each node, its refusal, if there is one.
fn by_node<'a>(cluster: &Cluster, refused: &'a [RefusedNode]) -> Vec<Option<&'a RefusedNode>> {
    let mut by_node = vec![None; cluster.node_rows()];
    for node in refused {
        by_node[node.node.index()] = Some(node);
    }
    by_node
}

fn explain_hard(
    cluster: &Cluster,
    class: ClassId,
    plan: &SpreadPlan,
    hard: &HardConstraint,
    refused: &[Option<&RefusedNode>],
) -> HardExplained {
    let tally = cluster.tally(hard.tally);
    let mut domains = domains(cluster, hard.key, hard.tally, Some(hard.index), refused);
    let minimum = tally.minimum();
    for domain in &mut domains {
        let there = domain.domain;
        domain.count = tally.count(there);
        domain.is_emptiest = tally.exists(there) && Some(domain.count) == minimum;
        domain.check = Some(hard.limit.check(tally, there, hard.self_match));
    }
    let mut common = common(cluster, class, plan, hard.index, hard.key);
    let refuses = domains
        .iter()
        .any(|d| d.check.is_some_and(|c| !c.allowed()));
    let holding = holding_down(&domains, &hard.limit);
    if holding > 0 && refuses {
        common.warnings.push(Warning::UnusableMinimum(holding));
    }
    let lacks_another = |node: &&NodeIdx| {
        cluster.column(hard.key).domain(**node).is_some()
            && plan
                .hard
                .iter()
                .any(|other| cluster.column(other.key).domain(**node).is_none())
    };
    HardExplained {
        minimum: hard.limit.minimum(tally),
        domains_existing: tally.domains(),
        left_out: cluster.node_order().iter().filter(lacks_another).count(),
        counted: counted(cluster, class, hard, &common.constraint.selector),
        domains,
        common,
    }
}

/// The pods that a constraint of a class counts: those of the namespace that do not terminate and that its selector
/// matches, on the nodes that count.
fn counted(
    cluster: &Cluster,
    class: ClassId,
    hard: &HardConstraint,
    selector: &Selector,
) -> Vec<PodIdx> {
    let namespace = cluster.tables().class(class).key.namespace;
    let counts = |&pod: &PodIdx| {
        cluster.class_of(pod).key.namespace == namespace
            && !cluster.class_of(pod).key.terminating
            && selector.matches(cluster.labels_of(pod))
    };
    let eligible = cluster.tally_nodes(hard.tally);
    let nodes = cluster.node_order().iter();
    let nodes = nodes.filter(|node| eligible.contains(node.index()));
    nodes
        .flat_map(|&node| cluster.node(node).pods().iter().copied().filter(counts))
        .collect()
}

/// The number of domains that keep the minimum low although the pod cannot use them: those with fewer pods than every
/// domain that it can use. With fewer domains than minDomains the minimum is 0 in any case.
fn holding_down(domains: &[Domain], limit: &Limit) -> usize {
    let usable = domains.iter().filter(|d| d.exists() && d.usable > 0);
    let n_usable = usable.clone().count() as i64;
    let Some(lowest) = usable.map(|d| d.count).min() else {
        return 0;
    };
    if n_usable < i64::from(limit.min_domains) {
        return 0;
    }
    let lower = |d: &&Domain| d.exists_for_others_only() && d.count < lowest;
    domains.iter().filter(lower).count()
}

/// Explains the soft constraints of a class, for the feasible nodes.
pub(crate) fn soft(
    engine: &Engine,
    cluster: &Cluster,
    class: ClassId,
    plan: &SpreadPlan,
    feasible: &[NodeIdx],
    refused: &[RefusedNode],
) -> Vec<SoftExplained> {
    let by_node = by_node(cluster, refused);
    let scored = feasible.len() > 1 && engine.profile().weight(super::choice::SPREAD) > 0;
    let weighed = scored.then(|| weigh_all(cluster, plan, feasible, &mut Workspace::default()).0);
    let explain = |(place, soft): (usize, &SoftConstraint)| SoftExplained {
        common: common(cluster, class, plan, soft.index, soft.key),
        weighed: weighed.as_ref().map(|w| w[place]),
        domains: soft_domains(cluster, soft, &by_node),
    };
    plan.soft.iter().enumerate().map(explain).collect()
}

fn soft_domains(
    cluster: &Cluster,
    soft: &SoftConstraint,
    refused: &[Option<&RefusedNode>],
) -> Vec<Domain> {
    if let Some(tally) = soft.tally {
        let mut domains = domains(cluster, soft.key, tally, None, refused);
        let tally = cluster.tally(tally);
        for domain in &mut domains {
            domain.count = tally.count(domain.domain);
            domain.is_emptiest = Some(domain.count) == tally.minimum();
        }
        return domains;
    }
    // Hostnames are counted per node, whatever the inclusion policies say.
    let per_node = cluster.census(soft.census).per_node();
    let column = cluster.column(soft.key);
    let mut domains = values(cluster, soft.key);
    for &node in cluster.node_order() {
        if let Some(row) = column.domain(node).and_then(|d| find(&mut domains, d)) {
            row.count += per_node[node.index()];
            row.nodes += 1;
            row.eligible += 1;
            let causes = refused[node.index()].map_or(&[][..], |r| &r.causes);
            row.usable += usize::from(!causes.iter().any(|c| c.is_unusable()));
            row.open += usize::from(causes.is_empty());
        }
    }
    finish(cluster, domains)
}

fn common(
    cluster: &Cluster,
    class: ClassId,
    plan: &SpreadPlan,
    index: usize,
    key: KeyId,
) -> Common {
    let constraint = plan.effective.constraints[index].clone();
    let self_match = plan.effective.self_match[index];
    let tables = cluster.tables();
    let labels = tables.labels(tables.class(class).key.labels);
    let keys = constraint.match_label_keys.iter();
    let column = cluster.column(key);
    let order = cluster.node_order();
    let lacking: Vec<NodeIdx> = order
        .iter()
        .copied()
        .filter(|&node| column.domain(node).is_none())
        .collect();
    let mut warnings = selector_warnings(&constraint.selector, self_match);
    if !order.is_empty() && lacking.len() == order.len() {
        warnings.push(Warning::UnknownKey);
    }
    let merge = |&key: &Symbol| MergedKey {
        key,
        value: labels.get(key),
    };
    Common {
        index,
        merged: keys.map(merge).collect(),
        constraint,
        self_match,
        warnings,
        lacking,
    }
}

fn selector_warnings(selector: &Selector, self_match: bool) -> Vec<Warning> {
    let Selector::AllOf(requirements) = selector else {
        return vec![Warning::NoSelector];
    };
    if requirements.is_empty() {
        return vec![Warning::EmptySelector];
    }
    let values = |i: usize| match &requirements[i].operator {
        Operator::In(values) => Some((requirements[i].key, values)),
        _ => None,
    };
    let contradicts = |i: usize, j: usize| match (values(i), values(j)) {
        (Some((key, a)), Some((other, b))) => key == other && !a.iter().any(|v| b.contains(v)),
        _ => false,
    };
    let mut pairs = (0..requirements.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    if let Some((i, _)) = pairs.find(|&(i, j)| contradicts(i, j)) {
        return vec![Warning::Contradiction(requirements[i].key)];
    }
    match self_match {
        true => Vec::new(),
        false => vec![Warning::NotItself],
    }
}

/// The parts of the plugin that the profile disables.
pub(crate) fn spread_off(profile: &Profile, plan: &SpreadPlan) -> Option<SpreadOff> {
    let [filter, score] = [true, false].map(|hard| !SpreadPlan::is_on(profile, hard));
    let constraints = plan.effective.constraints.iter().enumerate();
    (filter || score).then(|| SpreadOff {
        profile: profile.scheduler_name.clone(),
        filter,
        score,
        without_effect: constraints
            .filter(|(_, constraint)| !SpreadPlan::is_on(profile, constraint.hard))
            .map(|(index, constraint)| (index, constraint.clone()))
            .collect(),
    })
}

/// The source of the selector of default constraints; `None` if the pod has its own constraints, or there are no
/// defaults.
pub(crate) fn deduced(profile: &Profile, cluster: &Cluster, class: ClassId) -> Option<Deduced> {
    let tables = cluster.tables();
    let key = &tables.class(class).key;
    let defaults = profile.default_constraints.constraints();
    if !tables.spec(key.spec).spread.is_empty() || defaults.is_empty() {
        return None;
    }
    let labels = tables.labels(key.labels);
    let owners = cluster.owners();
    let services = owners.services_of(key.namespace, labels);
    let mut services: Vec<Symbol> = services.map(|(name, _)| name).collect();
    services.sort_by_key(|&name| cluster.names.text(name));
    let looked_at = key.owner.filter(|o| o.kind != OwnerKind::Other);
    let selector = looked_at.and_then(|o| owners.controller(key.namespace, o));
    Some(Deduced {
        services,
        owner: key.owner,
        owner_used: selector.is_some_and(|s| matches!(s, Selector::AllOf(_))),
        defaults,
    })
}

/// A row for each value of a key on nodes, with the numbers of nodes; `constraint` is not among the other reasons.
fn domains(
    cluster: &Cluster,
    key: KeyId,
    tally: TallyId,
    constraint: Option<usize>,
    refused: &[Option<&RefusedNode>],
) -> Vec<Domain> {
    let column = cluster.column(key);
    let eligible = cluster.tally_nodes(tally);
    let mut domains = values(cluster, key);
    for &node in cluster.node_order() {
        let Some(row) = column.domain(node).and_then(|d| find(&mut domains, d)) else {
            continue;
        };
        let causes = refused[node.index()].map_or(&[][..], |r| &r.causes);
        row.nodes += 1;
        row.eligible += usize::from(eligible.contains(node.index()));
        row.usable += usize::from(!causes.iter().any(|c| c.is_unusable()));
        let mut others = causes
            .iter()
            .filter(|c| c.constraint() != constraint || constraint.is_none());
        match others.next().and_then(|cause| cause.reason()) {
            None => row.open += 1,
            Some(reason) => match row.other_reasons.iter_mut().find(|(r, _)| *r == reason) {
                Some((_, n)) => *n += 1,
                None => row.other_reasons.push((reason, 1)),
            },
        }
    }
    finish(cluster, domains)
}

/// An empty row for each value.
fn values(cluster: &Cluster, key: KeyId) -> Vec<Domain> {
    let column = cluster.column(key);
    let row = |i: usize| {
        let domain = DomainIdx(i as u32);
        Domain {
            domain,
            value: column.value(domain),
            count: 0,
            nodes: 0,
            eligible: 0,
            usable: 0,
            open: 0,
            is_emptiest: false,
            check: None,
            other_reasons: Vec::new(),
        }
    };
    (0..column.len()).map(row).collect()
}

fn find(domains: &mut [Domain], domain: DomainIdx) -> Option<&mut Domain> {
    domains.get_mut(domain.index())
}

/// The rows with at least one node, by text; the reasons with most nodes first.
fn finish(cluster: &Cluster, mut domains: Vec<Domain>) -> Vec<Domain> {
    domains.retain(|d| d.nodes > 0);
    domains.sort_by_key(|d| cluster.names.text(d.value));
    for domain in &mut domains {
        domain
            .other_reasons
            .sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    }
    domains
}
