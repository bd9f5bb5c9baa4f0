//! Topology spread constraints on the wire.

use serde::{Deserialize, Serialize};
use strew_cluster::{Cluster, OwnerKind, Policy, SpreadConstraint};
use strew_scheduler::explain::constraint::{self as tree, Common, Warning};
use strew_scheduler::plugins::pod_topology_spread::Origin;
use strew_scheduler::{Explanation, Reason};
use strew_spread::{Minimum, SkewCheck};

use super::words;

/// The topology spread constraints that hold for the pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Constraints {
    /// `Pod`, `SystemDefaults` or `ListDefaults` (the scheduler's configuration), or `None`.
    pub origin: String,
    /// What the selector of default constraints is deduced from, for a pod without constraints of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduced: Option<Deduced>,
    /// The constraints that filter.
    pub hard: Vec<Constraint>,
    /// The constraints that score.
    pub soft: Vec<Constraint>,
    /// What the scheduler's profile leaves out of PodTopologySpread; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<SpreadOff>,
}

/// A profile leaves PodTopologySpread out, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadOff {
    /// The profile's `schedulerName`.
    pub profile: String,
    /// `filter` (hard constraints have no effect), `score` (soft ones have none), or both.
    pub points: Vec<String>,
    /// The constraints that would hold for the pod and have no effect for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_effect: Vec<WithoutEffect>,
}

/// A constraint that nothing looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WithoutEffect {
    /// Its place in `spec.topologySpreadConstraints`, or in the defaults, from 0.
    pub index: usize,
    /// The node label whose values are the domains.
    pub topology_key: String,
    /// What it would allow.
    pub max_skew: i32,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: String,
}

/// What the selector of default constraints is deduced from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deduced {
    /// Services whose selector matches the pod.
    pub services: Vec<String>,
    /// The pod's controller, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// How many default constraints there are; they hold only if something was deduced.
    pub defaults: usize,
}

/// A pod's controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// `ReplicationController`, `ReplicaSet`, `StatefulSet`, or `other`, from which nothing is deduced.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether its selector is part of what was deduced.
    pub used: bool,
}

/// A constraint, and what it counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Constraint {
    /// Its place in `spec.topologySpreadConstraints`, or in the defaults, from 0.
    pub index: usize,
    /// The node label whose values are the domains.
    pub topology_key: String,
    /// What it allows.
    pub max_skew: i32,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: String,
    /// Which pods of the namespace count, as `kubectl -l` takes it; `<none>` or `{}` where none do.
    pub selector: String,
    /// Whether the pod itself would count.
    pub self_match: bool,
    /// What `matchLabelKeys` added to the selector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<MergedKey>,
    /// With fewer domains than this, the minimum is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// `Honor` or `Ignore`.
    pub node_affinity_policy: String,
    /// `Honor` or `Ignore`.
    pub node_taints_policy: String,
    /// What is subtracted from each count; hard constraints only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i32>,
    /// How many domains exist; hard constraints only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains_existing: Option<u32>,
    /// Its weight; soft constraints only, where nodes are scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
    /// Every value of the label that a node has.
    pub domains: Vec<Domain>,
    /// The other workloads whose pods count, most pods first; hard constraints only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<CountedWorkload>,
    /// Nodes that lack the label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes_without_key: Vec<String>,
    /// Nodes that have the label, but lack that of another hard constraint, and so count for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nodes_left_out: usize,
    /// What is likely not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A workload whose pods a constraint counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedWorkload {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How many of its pods count.
    pub pods: usize,
}

/// A key of `matchLabelKeys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedKey {
    /// The key.
    pub key: String,
    /// The pod's value; absent: the pod lacks the label, and nothing is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The weight of a soft constraint.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Weight {
    /// How many domains the scored nodes make up; for hostnames, how many nodes are scored.
    pub size: usize,
    /// `ln(size + 2)`, to six decimals.
    pub weight: f64,
}

/// A domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Domain {
    /// The label's value.
    pub value: String,
    /// Pods counted there.
    pub pods: i32,
    /// Nodes that have the value.
    pub nodes: usize,
    /// How many of them count for the constraint; with none, the domain does not exist for it.
    pub eligible_nodes: usize,
    /// How many of them the pod could use: not cordoned, taints tolerated, node affinity met.
    pub usable_nodes: usize,
    /// How many of them nothing but this constraint would keep the pod off.
    pub open_nodes: usize,
    /// Whether no existing domain holds fewer.
    pub emptiest: bool,
    /// The verdict; hard constraints only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
    /// What else keeps the pod off nodes here, most nodes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_reasons: Vec<OtherReason>,
}

/// The verdict on a domain, with its sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Skew {
    /// The skew that the pod would make.
    pub skew: i64,
    /// What is allowed.
    pub max_skew: i32,
    /// Whether it is allowed.
    pub allowed: bool,
    /// The sum in words.
    pub sum: String,
    /// The sum in numbers.
    pub short_sum: String,
}

/// A reason, and how many nodes have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtherReason {
    /// kube-scheduler's reason; of another constraint, just that.
    pub reason: String,
    /// How many nodes.
    pub nodes: usize,
}

impl Constraints {
    pub(crate) fn of(explanation: &Explanation, cluster: &Cluster) -> Self {
        let origin = match explanation.origin {
            Origin::Pod => "Pod",
            Origin::SystemDefaults => "SystemDefaults",
            Origin::ListDefaults => "ListDefaults",
            Origin::None => "None",
        };
        let deduced = explanation.deduced.as_ref();
        Self {
            origin: origin.to_owned(),
            deduced: deduced.map(|deduced| Deduced::of(deduced, cluster)),
            hard: explanation
                .hard
                .iter()
                .map(|c| Constraint::hard(c, cluster))
                .collect(),
            soft: explanation
                .soft
                .iter()
                .map(|c| Constraint::soft(c, cluster))
                .collect(),
            off: explanation
                .spread_off
                .as_ref()
                .map(|off| SpreadOff::of(off, cluster)),
        }
    }
}

impl SpreadOff {
    fn of(off: &tree::SpreadOff, cluster: &Cluster) -> Self {
        let points = [("filter", off.filter), ("score", off.score)].into_iter();
        let without_effect = off.without_effect.iter();
        Self {
            profile: off.profile.clone(),
            points: points
                .filter(|&(_, is_off)| is_off)
                .map(|(point, _)| point.to_owned())
                .collect(),
            without_effect: without_effect
                .map(|(index, constraint)| WithoutEffect {
                    index: *index,
                    topology_key: cluster.names.text(constraint.key).to_owned(),
                    max_skew: constraint.max_skew,
                    when_unsatisfiable: when_unsatisfiable(constraint).to_owned(),
                })
                .collect(),
        }
    }
}

fn when_unsatisfiable(constraint: &SpreadConstraint) -> &'static str {
    match constraint.hard {
        true => "DoNotSchedule",
        false => "ScheduleAnyway",
    }
}

impl Deduced {
    fn of(deduced: &tree::Deduced, cluster: &Cluster) -> Self {
        let text = |symbol| cluster.names.text(symbol).to_owned();
        Self {
            services: deduced.services.iter().map(|&s| text(s)).collect(),
            owner: deduced.owner.map(|owner| Owner {
                kind: match owner.kind {
                    OwnerKind::ReplicationController => "ReplicationController",
                    OwnerKind::ReplicaSet => "ReplicaSet",
                    OwnerKind::StatefulSet => "StatefulSet",
                    OwnerKind::Other => "other",
                }
                .to_owned(),
                name: text(owner.name),
                used: deduced.owner_used,
            }),
            defaults: deduced.defaults.len(),
        }
    }
}

impl Constraint {
    fn hard(hard: &tree::HardExplained, cluster: &Cluster) -> Self {
        Self {
            minimum: Some(hard.minimum.value()),
            domains_existing: Some(hard.domains_existing),
            nodes_left_out: hard.left_out,
            domains: domains(&hard.domains, cluster),
            ..Self::common(&hard.common, cluster)
        }
    }

    fn soft(soft: &tree::SoftExplained, cluster: &Cluster) -> Self {
        Self {
            weight: soft.weighed.map(|w| Weight {
                size: w.size,
                weight: words::decimals(w.weight),
            }),
            domains: domains(&soft.domains, cluster),
            ..Self::common(&soft.common, cluster)
        }
    }

    fn common(common: &Common, cluster: &Cluster) -> Self {
        let names = &cluster.names;
        let constraint: &SpreadConstraint = &common.constraint;
        let policy = |policy| match policy {
            Policy::Honor => "Honor".to_owned(),
            Policy::Ignore => "Ignore".to_owned(),
        };
        let merged = common.merged.iter().map(|merged| MergedKey {
            key: names.text(merged.key).to_owned(),
            value: merged.value.map(|v| names.text(v).to_owned()),
        });
        Self {
            index: common.index,
            topology_key: names.text(constraint.key).to_owned(),
            max_skew: constraint.max_skew,
            when_unsatisfiable: when_unsatisfiable(constraint).to_owned(),
            selector: constraint.selector.text(names),
            self_match: common.self_match,
            match_label_keys: merged.collect(),
            min_domains: constraint.min_domains,
            node_affinity_policy: policy(constraint.node_affinity_policy),
            node_taints_policy: policy(constraint.node_taints_policy),
            minimum: None,
            domains_existing: None,
            weight: None,
            domains: Vec::new(),
            others: Vec::new(),
            nodes_without_key: common
                .lacking
                .iter()
                .map(|&n| words::node(cluster, n))
                .collect(),
            nodes_left_out: 0,
            warnings: common
                .warnings
                .iter()
                .map(|w| warning(*w, common, cluster))
                .collect(),
        }
    }
}

fn warning(warning: Warning, common: &Common, cluster: &Cluster) -> String {
    let hard = common.constraint.hard;
    let without_effect = match hard {
        true => "the constraint refuses no node",
        false => "the constraint prefers no node",
    };
    match warning {
        Warning::NoSelector => format!("labelSelector is absent: no pod counts, {without_effect}"),
        Warning::EmptySelector => {
            format!(
                "labelSelector is {{}}: it matches every pod, and yet none counts; {without_effect}"
            )
        }
        Warning::NotItself => {
            "the selector does not match the pod itself: it does not spread its own kind".to_owned()
        }
        Warning::Contradiction(key) => format!(
            "the selector wants two different values of {}: it matches no pod, {without_effect} \
             (was the label changed after the pod was created?)",
            cluster.names.text(key)
        ),
        Warning::UnknownKey => match hard {
            true => "no node has this label: every node is refused".to_owned(),
            false => "no node has this label".to_owned(),
        },
        Warning::UnusableMinimum(n) => format!(
            "{} through nodes that the pod cannot use, and hold{} the minimum down",
            words::count(n, "domain")
                + if n == 1 {
                    " exists only"
                } else {
                    " exist only"
                },
            if n == 1 { "s" } else { "" },
        ),
    }
}

fn domains(domains: &[tree::Domain], cluster: &Cluster) -> Vec<Domain> {
    let wire = |domain: &tree::Domain| Domain {
        value: cluster.names.text(domain.value).to_owned(),
        pods: domain.count,
        nodes: domain.nodes,
        eligible_nodes: domain.eligible,
        usable_nodes: domain.usable,
        open_nodes: domain.open,
        emptiest: domain.is_emptiest,
        skew: domain.check.map(Skew::of),
        other_reasons: domain
            .other_reasons
            .iter()
            .map(|(reason, nodes)| OtherReason {
                reason: match reason {
                    Reason::Skew | Reason::MissingTopologyLabel => {
                        "refused by another constraint".to_owned()
                    }
                    reason => reason.text(&cluster.names),
                },
                nodes: *nodes,
            })
            .collect(),
    };
    domains.iter().map(wire).collect()
}

impl Skew {
    pub(crate) fn of(check: SkewCheck) -> Self {
        let allowed = check.allowed();
        let minimum = match check.minimum {
            Minimum::Emptiest(count) => count,
            Minimum::TooFewDomains { .. } => 0,
        };
        let sign = if allowed { "<=" } else { ">" };
        Self {
            skew: check.skew(),
            max_skew: check.max_skew,
            allowed,
            sum: check.to_string(),
            short_sum: format!(
                "{} + {} - {minimum} = {} {sign} {}",
                check.there,
                u8::from(check.self_match),
                check.skew(),
                check.max_skew
            ),
        }
    }
}
