//! The results of an audit, as plain values.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strew_model::Span;
use strew_view::away::Headroom;
use strew_view::loss::{Loss, LossVerdict};

/// A value of the topology key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Domain {
    /// The value.
    pub name: String,
    /// Its nodes.
    pub nodes: usize,
    /// The pods on them before anything is played.
    pub pods: usize,
}

/// What happens to a domain.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// Its nodes stop, and their pods with them.
    Loss,
    /// Its nodes are cordoned, and its pods are out of all endpoints; they run on. Then each workload is restarted, as a
    /// rollout during the shift would.
    Shift,
    /// Its nodes are cordoned, and their pods evicted node by node, as by `kubectl drain`.
    Drain,
}

impl Event {
    /// All, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Loss, Self::Shift, Self::Drain];

    /// `loss`
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Shift => "shift",
            Self::Drain => "drain",
        }
    }
}

/// The results of all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Audit {
    /// `sim.strew.dev/v1alpha1`
    pub api_version: String,
    /// `Audit`
    pub kind: String,
    /// The name of the cluster, if several were merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The topology key.
    pub by: String,
    /// The first seed that all cases were played with.
    pub seed: u64,
    /// The number of seeds that all cases were played with: each decides ties, times and orders otherwise.
    #[serde(default = "one")]
    pub seeds: u64,
    /// The domains of the key.
    pub domains: Vec<Domain>,
    /// Nodes without the key, which nothing happens to.
    pub nodes_without_key: usize,
    /// The workloads, and pods without one, that were judged.
    pub workloads: usize,
    /// In the order of domains.
    pub cases: Vec<Case>,
    /// Budgets that allow no eviction though all their pods are healthy: each drain of their nodes waits for ever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck_budgets: Vec<StuckBudget>,
    /// Changes that prevent something, in the order in which they are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
}

/// The kind of the output.
pub const KIND: &str = "Audit";

/// What an event did to all workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// What happened.
    pub event: Event,
    /// The domains that it happened to.
    pub domains: Vec<String>,
    /// False if the cluster had not come to rest when the time was over: then numbers at rest are those of that moment.
    pub at_rest: bool,
    /// The time until rest.
    pub seconds: u64,
    /// The room that the pods of the domains need elsewhere.
    pub headroom: Headroom,
    /// The workloads, the worst first.
    pub workloads: Vec<Row>,
    /// Services with fewer endpoints at once.
    pub services: Vec<Endpoints>,
    /// Changes that the API server refused; they are not in the cluster.
    #[serde(skip)]
    pub refused: Vec<String>,
    /// Budgets that allow no eviction right before the event, though all their pods are healthy.
    #[serde(skip)]
    pub stuck_budgets: Vec<StuckBudget>,
    /// A drain: what keeps it from its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
}

/// What an event did to a workload, or to a pod without one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Row {
    /// `Deployment`
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `LOST`, `OUTAGE`, `DEGRADED`, `SURVIVES` or `UNKNOWN`.
    pub verdict: String,
    /// The pods that it asks for.
    pub wanted: u32,
    /// Its ready pods before the event.
    pub before: u32,
    /// Its ready pods in the instant of the event.
    pub at_once: u32,
    /// The fewest on the way.
    pub fewest: u32,
    /// Its ready pods at rest.
    pub ready: u32,
    /// The time with fewer ready pods than it asks for.
    pub seconds_short: u64,
    /// The time without one.
    pub seconds_without_ready: u64,
    /// Its ready pods from change to change, from those before the event on; empty if they do not change. Of very many
    /// changes, some are left out between the first and the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready_over_time: Vec<ReadyAt>,
    /// What its budgets ask for, at rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetRow>,
    /// The numbers as a sentence.
    pub sum: String,
    /// Why; `None` if it survives, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The seed of these numbers: the first of the worst ones.
    #[serde(default)]
    pub seed: u64,
    /// The number of seeds with this verdict; in the others it is better.
    #[serde(default = "one")]
    pub seeds: u64,
}

/// The seeds of an audit that was written before several were played.
fn one() -> u64 {
    1
}

/// The number of ready pods from a second on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadyAt {
    /// Seconds after the begin of the event.
    pub second: u64,
    /// The ready pods.
    pub ready: u32,
}

/// The healthy pods of a PodDisruptionBudget at rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetRow {
    /// Its name.
    pub name: String,
    /// The healthy pods.
    pub healthy: u32,
    /// What it asks for, or its workloads if that is less.
    pub asks: u32,
}

/// A PodDisruptionBudget that allows no eviction though all its pods are healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StuckBudget {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pods that it covers, all of them healthy.
    pub pods: u32,
    /// The healthy pods that it asks for.
    pub asks: u32,
}

impl Case {
    /// Puts the worst workload first.
    pub(super) fn in_order(&mut self) {
        self.workloads
            .sort_by_cached_key(|row| (row.judged(), row.of()));
    }
}

impl Row {
    /// The verdict; `Unknown` for a word that is none.
    pub fn judged(&self) -> LossVerdict {
        let mut all = LossVerdict::ALL.into_iter();
        let found = all.find(|verdict| verdict.name() == self.verdict);
        found.unwrap_or(LossVerdict::Unknown)
    }

    /// `deployment/web`, with its namespace if that is not `default`.
    pub fn of(&self) -> String {
        let kind = self.kind.to_lowercase();
        match self.namespace.as_str() {
            "default" | "" => format!("{kind}/{}", self.name),
            namespace => format!("{namespace}/{kind}/{}", self.name),
        }
    }

    /// True if a person should act: what asks for one pod can be no better than an outage.
    pub fn is_hurt(&self) -> bool {
        match self.judged() {
            LossVerdict::Lost | LossVerdict::Degraded => true,
            LossVerdict::Outage => self.wanted > 1,
            LossVerdict::Survives | LossVerdict::Unknown => false,
        }
    }

    /// Takes over the ready pods over time; nothing if they do not change.
    pub(super) fn set_over_time(&mut self, changes: &[(Span, u32)]) {
        if changes.len() > 1 {
            let each = changes.iter().map(|&(at, ready)| ReadyAt {
                second: at.0 / 1_000_000_000,
                ready,
            });
            self.ready_over_time = each.collect();
        }
    }

    pub(super) fn set(&mut self, loss: &Loss) {
        let seconds = |span: Span| span.0 / 1_000_000_000;
        self.verdict = loss.verdict().name().to_owned();
        (self.wanted, self.before) = (loss.wanted, loss.before);
        (self.at_once, self.fewest, self.ready) = (loss.at_once, loss.fewest, loss.ready);
        self.seconds_short = seconds(loss.short_for);
        self.seconds_without_ready = seconds(loss.none_for);
        self.sum = loss.sentence();
        let budgets = loss.budgets.iter().map(|budget| BudgetRow {
            name: budget.name.clone(),
            healthy: budget.healthy,
            asks: budget.asks,
        });
        self.budgets = budgets.collect();
    }
}

/// Why a workload is hurt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cause {
    /// A stable name.
    pub code: CauseCode,
    /// A sentence without a subject.
    pub text: String,
}

/// The causes that are told apart.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CauseCode {
    /// No room on the nodes that it may go to.
    NoHeadroom,
    /// Its node selector, affinity or the taints of other nodes keep it in the domain.
    SingleDomainPool,
    /// The other nodes are cordoned, not ready or unreachable.
    NodesClosed,
    /// Its volume exists in the domain only.
    VolumePin,
    /// No constraint over the key.
    ConstraintMissing,
    /// Its constraints are over keys that no node has.
    ConstraintKeyMissing,
    /// Its constraint over the key does not count its own pods.
    ConstraintSelectorMisses,
    /// Its constraint over the key is soft.
    ConstraintSoft,
    /// Its constraint over the key lets all pods into one domain.
    ConstraintMaxSkew,
    /// Its constraint over the key holds with all pods in one domain, as when there was only one.
    ConstraintHoldsInOneDomain,
    /// Its hard constraint counts the domain, though it takes no pod.
    ConstraintCountsTheLost,
    /// Its hard constraint counts a domain that is not lost, though it takes no pod of it.
    ConstraintCountsUnusable,
    /// Its hard constraint asks for more domains than are left.
    ConstraintMinDomains,
    /// Its hard constraint counts pods of other workloads, and refuses the nodes that are left for them.
    ConstraintCountsOthers,
    /// The API server refuses its pods: a ResourceQuota.
    Quota,
    /// It asks for one pod.
    SingleReplica,
    /// It asks for several pods, and for no more than domains are lost at once.
    FewReplicas,
    /// It is a pod without a workload.
    BarePod,
    /// The controller of the pod is not in the files, and what it does is not known.
    UnknownController,
    /// Its pods on lost nodes keep their names, and a StatefulSet makes no second one; or an earlier pod is not ready.
    StatefulSetWaits,
    /// Affinity to pods.
    PodAffinity,
    /// A budget asks for more pods than are left.
    Budget,
    /// Anything else.
    Other,
}

impl CauseCode {
    /// `no-headroom`
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or("other").to_owned()
    }
}

/// The endpoints of a Service, by its selector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Endpoints {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its ready pods before the event.
    pub before: usize,
    /// Those that are not in the domains.
    pub at_once: usize,
    /// If none is left: the workloads that call it, as far as their containers name its host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<String>,
}

impl Endpoints {
    /// `shop/cart (called by deployment/frontend)`; in namespace `default` the name alone.
    pub fn text(&self) -> String {
        let name = match self.namespace.as_str() {
            "default" | "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        };
        match self.callers.is_empty() {
            true => name,
            false => format!("{name} (called by {})", self.callers.join(", ")),
        }
    }
}

/// Pods of a workload that a drain could not evict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blocked {
    /// The workload, or the pod: `deployment/web`.
    pub object: String,
    /// Its pods that are left on the nodes.
    pub pods: usize,
    /// A stable name: `budget`, `bare-pod`, `refused` (by a webhook), `terminating`.
    pub code: String,
    /// Why they are left.
    pub why: String,
    /// The namespace and name of the budget, if one is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<[String; 2]>,
    /// The number of seeds in which they are left; in the others the drain ends.
    #[serde(default = "one")]
    pub seeds: u64,
}

/// A change that was played: the audit with it is better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fix {
    /// The workload that it is for.
    pub of: String,
    /// What it does, in words.
    pub change: String,
    /// The worst verdict of the workload without it; `BLOCKED` for a drain that never ends.
    pub from: String,
    /// The worst verdict with it.
    pub to: String,
    /// The changed objects.
    pub patches: Vec<ObjectPatch>,
    /// Nodes that it adds: how many, like which, in which domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<MoreNodes>,
}

/// A merge patch of an object (RFC 7386).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectPatch {
    /// `Deployment`
    pub kind: String,
    /// Its API version.
    pub api_version: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The fields to merge.
    pub patch: BTreeMap<String, Value>,
}

/// Nodes to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MoreNodes {
    /// How many.
    pub count: usize,
    /// The node that they are like.
    pub like: String,
    /// The domain that they are in.
    pub domain: String,
}
