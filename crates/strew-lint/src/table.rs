//! The table of rules.

use super::Found;
use super::files::Files;
use super::rules::{autoscaler, budget, claim, constraint, domains, job, labels, namespace, node};

/// A rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its stable name, in findings and in SARIF.
    pub code: &'static str,
    /// What it finds: a phrase without a full stop.
    pub what: &'static str,
    /// Why that is probably a mistake, and what to do: whole sentences.
    pub why: &'static str,
    /// `None`: the rule is applied where its objects are read or decided, not by [`lint`](super::lint).
    pub(super) check: Option<Check>,
}

type Check = fn(&Files<'_>) -> Vec<Found>;

const fn rule(code: &'static str, what: &'static str, why: &'static str, check: Check) -> Rule {
    Rule {
        code,
        what,
        why,
        check: Some(check),
    }
}

/// A rule that is applied elsewhere.
const fn text(code: &'static str, what: &'static str, why: &'static str) -> Rule {
    Rule {
        code,
        what,
        why,
        check: None,
    }
}

/// Every rule.
pub const RULES: &[Rule] = &[
    // Spread constraints.
    rule(
        "constraint-counts-none",
        "A topology spread constraint counts none of its workload's pods",
        "A constraint compares the pods that its labelSelector selects. Pods that it does not count are not spread, \
         whatever maxSkew says. Let the selector select the labels of the pod template.",
        constraint::counts_none,
    ),
    rule(
        "constraint-counts-some",
        "A topology spread constraint counts some of its workload's pods, and others not",
        "The selector asks for a label that not every pod of the workload has, such as the name of one pod of a \
         StatefulSet. Let it select the labels that all pods have.",
        constraint::counts_some,
    ),
    rule(
        "match-label-key-missing",
        "A key of matchLabelKeys that no pod of the workload has",
        "The scheduler ignores keys that the incoming pod does not have. pod-template-hash is the key that tells the \
         revisions of a Deployment apart.",
        constraint::unknown_match_label_key,
    ),
    rule(
        "topology-key-missing",
        "The topology key of a constraint is on no node",
        "With DoNotSchedule no pod can be placed, with ScheduleAnyway the constraint does nothing. Without nodes in the \
         files, only misspelt well-known keys are found.",
        domains::unknown_key,
    ),
    rule(
        "topology-key-partial",
        "Some of the nodes that the pods may use lack the topology key",
        "With DoNotSchedule no pod goes to nodes without the label; with ScheduleAnyway they are the last choice, which \
         is a note. Label them, or keep the pods off them by a node selector.",
        domains::partial_key,
    ),
    rule(
        "one-domain",
        "All nodes that count for a constraint are in one domain",
        "Skew is a difference between domains: with one domain it is always 0, and the constraint limits nothing. With \
         ScheduleAnyway this is a note. minDomains asks for a number of domains.",
        domains::one_domain,
    ),
    // Budgets and autoscalers.
    rule(
        "budget-elsewhere",
        "A PodDisruptionBudget is in another namespace than the pods that it selects",
        "A budget protects pods of its own namespace only.",
        budget::elsewhere,
    ),
    rule(
        "budget-selects-none",
        "A PodDisruptionBudget selects no pod",
        "It protects nothing. Compare its selector with the labels of the pod templates. It is a note where the pods \
         may be made by a kind that strew does not know, or get the label while they run.",
        budget::selects_none,
    ),
    rule(
        "budget-allows-none",
        "A PodDisruptionBudget allows no eviction even when all pods are healthy",
        "Drains of the nodes of these pods, and with them upgrades, wait until somebody deletes the budget. \
         maxUnavailable: 1 lets one pod go at a time.",
        budget::allows_none,
    ),
    rule(
        "budgets-overlap",
        "Two PodDisruptionBudgets select the same pods",
        "The eviction API refuses pods with more than one budget, so that drains of their nodes never end.",
        budget::two,
    ),
    rule(
        "autoscaler-target-missing",
        "A HorizontalPodAutoscaler names a target that the files do not have",
        "It scales nothing. Nothing is said if the files have no workload of its namespace.",
        autoscaler::no_target,
    ),
    // Selectors, nodes, namespaces, volumes.
    rule(
        "selectors-overlap",
        "Two workloads of a namespace select each other's pods",
        "Controllers follow owner references, but budgets, autoscalers and spread constraints count by labels, and count \
         both. Give each workload a label of its own.",
        labels::overlapping_selectors,
    ),
    rule(
        "service-selects-none",
        "A Service selects no pod, and is a letter or two from one that exists",
        "It has no endpoints; the default spread constraints of a cluster select pods by their Services, too.",
        labels::service_typo,
    ),
    rule(
        "hostname-shared",
        "Two nodes have one kubernetes.io/hostname label",
        "Spread constraints and anti-affinity by hostname take them for one node. Cloned machines are the usual cause.",
        node::shared_hostname,
    ),
    rule(
        "namespace-misspelt",
        "A namespace that the files do not define, and that is a letter or two from one that they define",
        "Objects of a misspelt namespace do not meet: budgets, quotas, claims and Services are looked up by namespace.",
        namespace::misspelt,
    ),
    rule(
        "claim-shared",
        "Several pods share a claim that one node at a time can mount",
        "A ReadWriteOnce volume is attached to one node. The scheduler does not look at that, so pods on other nodes are \
         placed and never start.",
        claim::shared,
    ),
    rule(
        "claim-missing",
        "A claim that pods name is not among those of their namespace",
        "Its pods stay Pending. Nothing is said if the files have no claim of the namespace.",
        claim::missing,
    ),
    rule(
        "suspended",
        "A Job or a CronJob is suspended",
        "It makes no pods, so that nothing of it is judged. It is a note; a Job is resumed by spec.suspend: false.",
        job::suspended,
    ),
    // Elsewhere: what the API server says, WorkloadSpreads, Placements.
    text(
        "api-server-warning",
        "The API server accepts the object and warns",
        "kubectl shows the same warning when the object is applied.",
    ),
    text(
        "assumed-priority-class",
        "A priority class is named that the files do not hold",
        "Its value decides which pods are evicted for which. Add the PriorityClass, or give --priority-class NAME=VALUE.",
    ),
    text(
        "assumed-runtime-class",
        "Pods of a dump name a runtime class that the files do not hold",
        "Its node selector and tolerations decide where new pods go. Add the RuntimeClasses of the cluster.",
    ),
    text(
        "assumed-service-account",
        "A service account is named that the files do not hold",
        "The API server refuses pods whose service account is not there. Add the ServiceAccount.",
    ),
    text(
        "assumed-storage-class",
        "A storage class is named that the files do not hold, and they hold none",
        "Its binding mode decides in which zones volumes are made. Add the StorageClass, or give --storage-class \
         NAME=immediate or NAME=wait.",
    ),
    text(
        "missing-storage-class",
        "A storage class is named that is not among those of the files",
        "Claims of a class that is not there stay Pending, and so do their pods. Correct the name, or add the \
         StorageClass.",
    ),
    text(
        "target-missing",
        "The target of a WorkloadSpread is not in the files",
        "Nothing is spread.",
    ),
    text(
        "target-deleting",
        "The target of a WorkloadSpread is being deleted",
        "None of its pods is counted.",
    ),
    text(
        "unknown-target-kind",
        "The webhook does not know the target's kind by name",
        "Annotate the WorkloadSpread, or put the kind into the white list.",
    ),
    text(
        "unreachable-subset",
        "A subset gets no pods",
        "An earlier subset without maxReplicas takes any number.",
    ),
    text(
        "no-room",
        "The limits of all subsets are less than the replicas",
        "The rest goes to any node.",
    ),
    text(
        "starved-subset",
        "A subset's share is rounded to nothing",
        "Shares are rounded up, so that earlier subsets take all pods.",
    ),
    text(
        "no-node",
        "No node of the files belongs to a subset",
        "Compare requiredNodeSelector with the labels of the nodes.",
    ),
    text(
        "no-node-possible",
        "A subset contradicts itself, or the pod template",
        "No node can ever take its pods.",
    ),
    text(
        "untolerated-taint",
        "None of a subset's nodes takes its pods",
        "Add tolerations to the subset.",
    ),
    text(
        "fixed-node",
        "The pod template names its node",
        "Its pods are there, whatever their subset.",
    ),
    text(
        "unknown-patch-field",
        "A patch sets a field that pods do not have",
        "The API server drops it.",
    ),
    text(
        "leaves-budget",
        "A patched label takes pods out of a budget",
        "The budget no longer protects them.",
    ),
    text(
        "job-stays",
        "Pods of a Job cannot be rescheduled",
        "The Job would count them as failed.",
    ),
    text(
        "stuck-rollout",
        "A rollout waits for what old pods hold",
        "New pods have no room until old ones go, and those wait for new ones.",
    ),
    text(
        "short-after-rollout",
        "A rollout passes a subset that old pods fill",
        "New pods go to later subsets and stay there.",
    ),
    text(
        "patch-replaces",
        "A patch replaces what its subset injects",
        "Lists are replaced, not merged.",
    ),
    text(
        "acts-as-fixed",
        "Adaptive without settings acts as Fixed",
        "Set adaptive.rescheduleCriticalSeconds.",
    ),
    text(
        "no-selector",
        "A target filter without a selector",
        "Kruise's own webhook would take no pod.",
    ),
    text(
        "no-effect",
        "An annotation that nothing looks at",
        "Leave it out, or correct its name.",
    ),
    text(
        "same-nodes",
        "Two subsets that nothing tells apart",
        "Give each its own requiredNodeSelector.",
    ),
    text(
        "unknown-topology-key",
        "A Placement spreads by a key that no cluster has",
        "Compare it with the labels and claims of the clusters.",
    ),
    text(
        "unknown-topology",
        "A Placement weighs a topology that no cluster is in",
        "Compare it with the values of the clusters.",
    ),
    text(
        "too-few-topologies",
        "A Placement asks for more topologies than the clusters are in",
        "It can never be met.",
    ),
    text(
        "unmatched-weight",
        "A weight of replicas matches no cluster",
        "Its part goes to no cluster.",
    ),
];
