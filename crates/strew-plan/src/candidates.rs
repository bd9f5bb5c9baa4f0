//! Which changes are worth a try: read off the causes, kind by kind, the most promising first.

use rustc_hash::FxHashSet;
use strew_cluster::{Cluster, NodeIdx, PodIdx, Policy, SpreadConstraint};
use strew_model::{
    NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Requirement, Resources, Selector,
    Symbol, Taint, well_known,
};
use strew_scheduler::Explanation;
use strew_scheduler::explain::{Cause, RefusedNode};
use strew_scheduler::plugins::node_affinity::{Gap, TermGap, narrow};
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};
use strew_scheduler::plugins::pod_topology_spread::{HardConstraint, SpreadPlan};
use strew_spread::{DomainIdx, Minimum};

use crate::change::Change;
use crate::node_words::{is_trouble, says_what_a_node_is};
use crate::suggest::TRIES_OF_A_KIND_MAX;

/// What is worth a try.
pub(crate) struct Candidates<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) pod: PodIdx,
    pub(crate) plan: &'a SpreadPlan,
    pub(crate) refused: &'a [RefusedNode],
    /// The constraints as the pod could have them itself.
    pub(crate) constraints: &'a [SpreadConstraint],
}

impl Candidates<'_> {
    /// The changes to try, kind by kind; inside a kind the best first.
    pub(crate) fn all(&self, explanation: &Explanation) -> Vec<Vec<Change>> {
        if explanation.nodes == 0 {
            return vec![vec![Change::AddFirstNode]];
        }
        if explanation.refused_outright.is_some() {
            return self.outright();
        }
        let mut kinds = vec![
            self.uncordon(),
            self.label_for_topology(),
            self.label_for_affinity(),
            self.tolerate(),
        ];
        kinds.extend(self.constraint_changes());
        kinds.extend(self.resource_changes());
        kinds.push(self.delete_blocker());
        kinds.push(self.delete_for_volumes());
        kinds.push(self.start_pod());
        kinds.push(self.add_node_like());
        kinds.push(self.add_node_in_new_domain());
        kinds.extend(self.node_affinity_changes());
        kinds.push(self.drop_host_port());
        kinds.extend(self.drop_pod_affinity());
        kinds
    }

    fn outright(&self) -> Vec<Vec<Change>> {
        let spec = self.cluster.spec_of(self.pod);
        let drop = |need| Change::DropUnsupported { need };
        let drop_claim = |claim| Change::DropClaim { claim };
        vec![
            (0..spec.claims.len()).map(drop_claim).collect(),
            (0..spec.unsupported.len()).map(drop).collect(),
            vec![Change::DropNodeAffinity],
        ]
    }

    /// The nodes of which just one cause keeps the pod off.
    pub(crate) fn one_cause(&self) -> impl Iterator<Item = (NodeIdx, &Cause)> {
        self.refused.iter().filter_map(|r| match &r.causes[..] {
            [cause] => Some((r.node, cause)),
            _ => None,
        })
    }

    fn uncordon(&self) -> Vec<Change> {
        let cordoned = self.one_cause().filter(|(_, c)| **c == Cause::Cordoned);
        cordoned
            .map(|(node, _)| Change::Uncordon { node })
            .collect()
    }

    fn tolerate(&self) -> Vec<Change> {
        let mut taints: Vec<(&Taint, usize)> = Vec::new();
        for (_, cause) in self.one_cause() {
            let Cause::Taint(taint) = cause else {
                continue;
            };
            // A pod that tolerates the trouble of a node waits there.
            if is_trouble(self.cluster.names.text(taint.key)) {
                continue;
            }
            match taints.iter_mut().find(|(t, _)| *t == taint) {
                Some((_, n)) => *n += 1,
                None => taints.push((taint, 1)),
            }
        }
        taints.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        let tolerate = |(taint, nodes): (&Taint, usize)| Change::Tolerate {
            taint: taint.clone(),
            nodes,
        };
        taints.into_iter().map(tolerate).collect()
    }

    /// A label where only that of one hard constraint is lacking, with the values of the emptiest domains.
    fn label_for_topology(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (node, cause) in self.one_cause() {
            let &Cause::NoTopologyLabel { constraint, key } = cause else {
                continue;
            };
            let is_topology = key != well_known::HOSTNAME;
            let label = |value| Change::LabelNode {
                node,
                key,
                value,
                is_topology,
            };
            let mut values = match is_topology {
                true => self.values_by_count(constraint),
                false => Vec::new(),
            };
            // A value that no node has: the name of the node itself.
            if values.is_empty() {
                values.push(self.cluster.node(node).name());
            }
            changes.extend(values.into_iter().take(2).map(label));
            if changes.len() >= TRIES_OF_A_KIND_MAX {
                break;
            }
        }
        changes
    }

    /// The existing domains of a hard constraint, emptiest first.
    fn values_by_count(&self, constraint: usize) -> Vec<Symbol> {
        let Some(hard) = self.plan.hard.iter().find(|h| h.index == constraint) else {
            return Vec::new();
        };
        let tally = self.cluster.tally(hard.tally);
        let column = self.cluster.column(hard.key);
        let mut domains: Vec<DomainIdx> = tally.existing().collect();
        domains.sort_by_key(|&d| (tally.count(d), self.cluster.names.text(column.value(d))));
        domains.into_iter().map(|d| column.value(d)).collect()
    }

    /// A label where only one pair of the pod's node selector, or one expression of a term, is lacking.
    fn label_for_affinity(&self) -> Vec<Change> {
        let change = |(node, cause): (NodeIdx, &Cause)| {
            let Cause::NodeAffinity(gap) = cause else {
                return None;
            };
            let (key, value) = self.missing_label(gap)?;
            if says_what_a_node_is(self.cluster.names.text(key)) {
                return None;
            }
            // To change a label that is there would change what the node is.
            self.label(node, key)
                .is_none()
                .then_some(Change::LabelNode {
                    node,
                    key,
                    value,
                    is_topology: false,
                })
        };
        let changes = self.one_cause().filter_map(change);
        changes.take(TRIES_OF_A_KIND_MAX).collect()
    }

    /// The one label that closes a gap, if there is one.
    fn missing_label(&self, gap: &Gap) -> Option<(Symbol, Symbol)> {
        if gap.no_terms {
            return None;
        }
        match (&gap.pairs[..], gap.terms.is_empty()) {
            ([pair], true) => Some((pair.key, pair.wanted)),
            ([], false) => gap.terms.iter().find_map(|term| match term {
                TermGap::Fails {
                    expressions,
                    name: false,
                } => match &expressions[..] {
                    [one] => wanted_label(one),
                    _ => None,
                },
                _ => None,
            }),
            _ => None,
        }
    }

    /// Changes of each hard constraint that refuses some node.
    fn constraint_changes(&self) -> Vec<Vec<Change>> {
        let causes = || self.refused.iter().flat_map(|r| &r.causes);
        let mut kinds = Vec::new();
        for hard in &self.plan.hard {
            let constraint = hard.index;
            let own = &self.constraints[constraint];
            if !causes().any(|c| c.constraint() == Some(constraint)) {
                continue;
            }
            let policy = |on_taints, now| Change::Policy {
                constraint,
                on_taints,
                to: match now {
                    Policy::Honor => Policy::Ignore,
                    Policy::Ignore => Policy::Honor,
                },
            };
            let requires_nodes = !self.cluster.spec_of(self.pod).node_affinity.is_none();
            kinds.push(vec![policy(true, own.node_taints_policy)]);
            if requires_nodes {
                kinds.push(vec![policy(false, own.node_affinity_policy)]);
            }
            kinds.push(self.larger_max_skews(constraint, hard.limit.max_skew));
            if let Minimum::TooFewDomains {
                domains,
                min_domains,
            } = hard.limit.minimum(self.cluster.tally(hard.tally))
            {
                let to = i32::try_from(domains).unwrap_or(i32::MAX).max(1);
                kinds.push(if to < min_domains {
                    vec![Change::MinDomains {
                        constraint,
                        from: min_domains,
                        to,
                    }]
                } else {
                    Vec::new()
                });
            }
            // One hard and one soft constraint may share a key, two soft ones may not.
            let twin = |c: &SpreadConstraint| !c.hard && c.key == own.key;
            kinds.push(vec![match self.constraints.iter().any(twin) {
                true => Change::DropConstraint { constraint },
                false => Change::ScheduleAnyway { constraint },
            }]);
        }
        kinds
    }

    /// The skews that a constraint refused, on nodes that nothing else refuses, smallest first.
    fn larger_max_skews(&self, constraint: usize, from: i32) -> Vec<Change> {
        let skew = |(_, cause): (NodeIdx, &Cause)| match cause {
            Cause::Skew {
                constraint: c,
                check,
                ..
            } if *c == constraint => i32::try_from(check.skew()).ok(),
            _ => None,
        };
        let mut skews: Vec<i32> = self.one_cause().filter_map(skew).collect();
        skews.sort_unstable();
        skews.dedup();
        let change = |to| Change::MaxSkew {
            constraint,
            from,
            to,
        };
        skews.into_iter().map(change).collect()
    }

    /// Nodes of which only a lack of resources keeps the pod off, the smallest lack first.
    fn short_nodes(&self) -> Vec<(NodeIdx, Vec<Shortage>)> {
        let short = |r: &RefusedNode| {
            let shortage = |c: &Cause| match c {
                Cause::Shortage(s) => Some(*s),
                _ => None,
            };
            let all: Option<Vec<Shortage>> = r.causes.iter().map(shortage).collect();
            all.map(|all| (r.node, all))
        };
        let mut nodes: Vec<_> = self.refused.iter().filter_map(short).collect();
        nodes.sort_by_key(|(_, short)| lack(short));
        nodes
    }

    fn resource_changes(&self) -> Vec<Vec<Change>> {
        let nodes = self.short_nodes();
        let free = |(node, short): &(NodeIdx, Vec<Shortage>)| Change::FreeResources {
            node: *node,
            short: short.clone(),
        };
        let delete = nodes.iter().take(4).filter_map(|(node, short)| {
            let pod = self.smallest_that_covers(*node, short)?;
            Some(Change::DeletePod { pod })
        });
        vec![
            self.request_less(&nodes),
            // No pod of it frees what a node does not have at all.
            nodes
                .iter()
                .filter(|(_, short)| short.iter().all(|short| short.allocatable > 0))
                .take(1)
                .map(free)
                .collect(),
            delete.collect(),
        ]
    }

    /// Per resource the most that fits somewhere.
    fn request_less(&self, nodes: &[(NodeIdx, Vec<Shortage>)]) -> Vec<Change> {
        let mut most: Vec<Shortage> = Vec::new();
        for (_, short) in nodes {
            let [one] = short[..] else {
                continue;
            };
            if one.free <= 0 || one.resource == Lacking::Pods {
                continue;
            }
            match most.iter_mut().find(|s| s.resource == one.resource) {
                Some(best) if best.free >= one.free => {}
                Some(best) => *best = one,
                None => most.push(one),
            }
        }
        let change = |s: Shortage| Change::RequestLess {
            resource: s.resource,
            from: s.requested,
            to: s.free,
        };
        most.into_iter().map(change).collect()
    }

    /// A pod for the pod's required affinity, on a node that has nothing else against it.
    fn start_pod(&self) -> Vec<Change> {
        let class = self.cluster.class_of(self.pod);
        let terms = &self.cluster.spec_of(self.pod).affinity.required;
        let own = class.key.namespace;
        let Some(term) = terms.first() else {
            return Vec::new();
        };
        let namespace = match term.is_own_namespace() {
            true => own,
            false => term.namespaces.first().copied().unwrap_or(own),
        };
        // One pod must meet all terms (spec/scheduler §3.10).
        let mut labels: Vec<(Symbol, Symbol)> = Vec::new();
        for term in terms {
            labels.extend(labels_for(&term.selector));
        }
        let lacks_pods = |r: &&RefusedNode| {
            let lacks = |c: &Cause| matches!(c, Cause::PodAffinity { labelled: true, .. });
            r.causes.iter().all(lacks)
        };
        let nodes = self.refused.iter().filter(lacks_pods).take(1);
        let change = |r: &RefusedNode| Change::StartPod {
            node: r.node,
            namespace,
            labels: labels.clone(),
        };
        nodes.map(change).collect()
    }

    /// A node for each place that has a node which the pod could be on if it were empty.
    fn add_node_like(&self) -> Vec<Change> {
        let places: Vec<Symbol> = match self.plan.hard.iter().map(|h| h.key).collect::<Vec<_>>() {
            keys if keys.is_empty() => vec![well_known::ZONE],
            keys => keys
                .into_iter()
                .map(|k| self.cluster.column(k).key())
                .collect(),
        };
        let shared = |key: &&Symbol| **key != well_known::HOSTNAME;
        let places: Vec<Symbol> = places.iter().filter(shared).copied().collect();
        let mut seen: FxHashSet<Vec<Option<Symbol>>> = FxHashSet::default();
        let mut templates: Vec<(i64, &RefusedNode)> = Vec::new();
        for refused in self.refused {
            if !refused.causes.iter().all(|c| self.goes_with_the_node(c)) {
                continue;
            }
            let value = |&key: &Symbol| self.label(refused.node, key);
            if seen.insert(places.iter().map(value).collect()) {
                templates.push((self.crowd(refused.node), refused));
            }
        }
        templates.sort_by_key(|&(crowd, _)| crowd);
        let change = |(_, like): (i64, &RefusedNode)| Change::AddNodeLike {
            like: like.node,
            place: places
                .first()
                .and_then(|&key| Some((key, self.label(like.node, key)?))),
        };
        templates.into_iter().map(change).collect()
    }

    /// True if a new node of the same kind would not refuse the pod for this reason.
    fn goes_with_the_node(&self, cause: &Cause) -> bool {
        match cause {
            Cause::Cordoned | Cause::Port { .. } | Cause::Nominated { .. } => true,
            Cause::Shortage(s) => s.requested <= s.allocatable,
            Cause::AntiAffinity { key, .. } | Cause::ExistingAntiAffinity { key, .. } => {
                *key == well_known::HOSTNAME
            }
            Cause::Skew { constraint, .. } => {
                self.constraints[*constraint].key == well_known::HOSTNAME
            }
            // Only taints of trouble go with the node; trying tells which those are.
            Cause::Taint(taint) => taint.value == well_known::EMPTY,
            _ => false,
        }
    }

    /// How many counted pods are around a node, over all hard constraints.
    fn crowd(&self, node: NodeIdx) -> i64 {
        let around = |h: &HardConstraint| {
            let domain = self.cluster.column(h.key).domain(node);
            domain.map_or(0, |d| i64::from(self.cluster.tally(h.tally).count(d)))
        };
        self.plan.hard.iter().map(around).sum()
    }

    fn label(&self, node: NodeIdx, key: Symbol) -> Option<Symbol> {
        self.cluster.node(node).fact()?.labels.get(key)
    }

    /// For each hard constraint that refuses: a node where there is none yet.
    fn add_node_in_new_domain(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for hard in &self.plan.hard {
            let key = self.cluster.column(hard.key).key();
            let cured =
                |c: &Cause| c.constraint() == Some(hard.index) || self.goes_with_the_node(c);
            let skewed = |c: &Cause| matches!(c, Cause::Skew { constraint, .. } if *constraint == hard.index);
            let like = self
                .refused
                .iter()
                .find(|r| r.causes.iter().any(skewed) && r.causes.iter().all(cured));
            if let Some(like) = like.filter(|_| key != well_known::HOSTNAME) {
                changes.push(Change::AddNodeInNewDomain {
                    like: like.node,
                    key,
                });
            }
        }
        changes
    }

    fn node_affinity_changes(&self) -> Vec<Vec<Change>> {
        let affinity = &self.cluster.spec_of(self.pod).node_affinity;
        // The controller that made it for one node makes it for that node again.
        let is_owned = self.cluster.class_of(self.pod).key.owner.is_some();
        if is_owned && matches!(narrow(affinity), Ok(Some(names)) if names.len() == 1) {
            return Vec::new();
        }
        let pairs = affinity.node_selector.iter();
        let drop_pairs = pairs.map(|(key, value)| Change::DropNodeSelector { key, value });
        let terms = affinity.terms.as_deref().unwrap_or_default();
        let mut drop_expressions = Vec::new();
        for (term, read) in terms.iter().enumerate() {
            let NodeSelectorTerm::AllOf {
                expressions,
                fields,
            } = read
            else {
                continue;
            };
            // A term without anything matches no node: of a term with one expression, that cannot go alone.
            if expressions.len() + fields.len() > 1 {
                drop_expressions.extend(expressions.iter().map(|e| Change::DropNodeExpression {
                    term,
                    expression: e.clone(),
                }));
            }
        }
        let drop_terms = affinity.terms.iter().map(|_| Change::DropNodeAffinity);
        vec![drop_pairs.collect(), drop_expressions, drop_terms.collect()]
    }

    fn drop_host_port(&self) -> Vec<Change> {
        let mut ports: Vec<i32> = Vec::new();
        let causes = self.refused.iter().flat_map(|r| &r.causes);
        for cause in causes {
            if let Cause::Port { port, .. } = cause
                && !ports.contains(&port.port)
            {
                ports.push(port.port);
            }
        }
        ports
            .into_iter()
            .map(|port| Change::DropHostPort { port })
            .collect()
    }

    fn drop_pod_affinity(&self) -> Vec<Vec<Change>> {
        let affinity = &self.cluster.spec_of(self.pod).affinity;
        let drop = |n: usize, anti| (0..n).map(move |term| Change::DropPodAffinity { term, anti });
        vec![
            drop(affinity.required.len(), false).collect(),
            drop(affinity.required_anti.len(), true).collect(),
        ]
    }
}

/// How much is lacking, in thousandths of what is asked for.
fn lack(short: &[Shortage]) -> i128 {
    let share = |s: &Shortage| {
        let missing = i128::from(s.requested) - i128::from(s.free);
        missing * 1000 / i128::from(s.requested.max(1))
    };
    short.iter().map(share).sum()
}

pub(crate) fn amount(amounts: &Resources, resource: Lacking) -> i64 {
    match resource {
        Lacking::Pods => 1,
        Lacking::Cpu => amounts.cpu_milli,
        Lacking::Memory => amounts.memory,
        Lacking::EphemeralStorage => amounts.ephemeral_storage,
        Lacking::Scalar(name) => amounts.scalar(name),
    }
}

/// A label that meets an expression of node affinity.
fn wanted_label(expression: &NodeExpression) -> Option<(Symbol, Symbol)> {
    match &expression.operator {
        NodeOperator::Label(Operator::In(values)) => {
            values.first().map(|&value| (expression.key, value))
        }
        NodeOperator::Label(Operator::Exists) => Some((expression.key, well_known::EMPTY)),
        _ => None,
    }
}

/// Labels that a selector matches, as far as they can be told from it.
fn labels_for(selector: &Selector) -> Vec<(Symbol, Symbol)> {
    let Selector::AllOf(requirements) = selector else {
        return Vec::new();
    };
    let label = |r: &Requirement| match &r.operator {
        Operator::In(values) => values.first().map(|&value| (r.key, value)),
        Operator::Exists => Some((r.key, well_known::EMPTY)),
        _ => None,
    };
    requirements.iter().filter_map(label).collect()
}
