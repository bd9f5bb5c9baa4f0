//! The table of rules.

use super::files::Files;
use super::rules::{
    autoscaler, budget, claim, constraint, domains, ideal, job, labels, namespace, node, opted,
    placed, quota, rollout, template, zone,
};
use super::{Depth, Found};

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
    /// The depth from which on it is applied.
    pub(super) depth: Depth,
}

type Check = fn(&Files<'_>) -> Vec<Found>;

const fn rule(code: &'static str, what: &'static str, why: &'static str, check: Check) -> Rule {
    Rule {
        code,
        what,
        why,
        check: Some(check),
        depth: Depth::Written,
    }
}

/// A rule of `strew lint` alone: a run of `strew simulate` shows what it is about.
const fn tried(code: &'static str, what: &'static str, why: &'static str, check: Check) -> Rule {
    Rule {
        depth: Depth::Tried,
        ..rule(code, what, why, check)
    }
}

/// A rule that is applied elsewhere.
const fn text(code: &'static str, what: &'static str, why: &'static str) -> Rule {
    Rule {
        code,
        what,
        why,
        check: None,
        depth: Depth::Written,
    }
}

/// Every rule.
pub const RULES: &[Rule] = &[
    // Spread constraints.
    rule(
        "constraint-counts-none",
        "A topology spread constraint counts none of its workload's pods",
        "A constraint compares the pods that its labelSelector selects. Pods that it does not count are not spread, \
         whatever maxSkew says. The scheduler counts none for a selector that is missing, and none for an empty one. Let the selector select the labels of the pod template.",
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
    tried(
        "one-domain-satisfies",
        "A hard constraint holds with all pods in one domain, since minDomains is not set",
        "Skew is a difference between domains that exist. With one zone there is nothing to compare, and the constraint \
         is satisfied: on a cluster that grows from one zone, or while the others are down. It is a note, and nothing is \
         said where the files have nodes and nothing that adds some. minDomains: 2 counts missing domains as empty.",
        ideal::one_domain_satisfies,
    ),
    tried(
        "max-skew-allows-all",
        "maxSkew lets all pods of the workload into one domain",
        "A maxSkew that is not below the number of replicas refuses nothing. Nothing is said of workloads with an \
         autoscaler.",
        ideal::max_skew_allows_all,
    ),
    tried(
        "constraint-counts-others",
        "A constraint counts the pods of other workloads, too",
        "Both together are spread then, and one of them alone may be in one domain. It is a note: a canary and a stable \
         version may be meant to be spread together.",
        constraint::counts_others,
    ),
    tried(
        "defaults-count-others",
        "Default constraints would count the pods of another workload behind the same Service",
        "Pods without constraints get those of the scheduler's configuration, or the built-in soft ones over nodes and \
         zones. Their selector is made of the Services that select the pod, and of its ReplicaSet, StatefulSet or \
         ReplicationController. For a CloneSet or a Job the Services are all there is. It is a note, and a warning where \
         the configuration has hard ones; nothing is said where it has none.",
        constraint::defaults_count_others,
    ),
    tried(
        "soft-only-majority",
        "A StatefulSet of 3, 5, 7… pods is spread by preferences only",
        "Such numbers are chosen for a majority. A preference gives way to every other score, so that one domain may \
         have the majority, and its loss stops all. It is a note.",
        constraint::soft_majority,
    ),
    tried(
        "constraints-contradict",
        "Constraints, affinity and node selector that no placement can keep together",
        "Each alone can be kept. Pods are placed on the nodes of the files, and without nodes on empty nodes in enough \
         domains.",
        placed::contradictions,
    ),
    // Workloads on the nodes of the files, placed by the scheduler's engine one workload at a time.
    tried(
        "tainted-domain-counts",
        "Nodes that take no pod of the workload count as a domain, and hold the others back",
        "Nodes with taints and cordoned nodes count for a constraint unless nodeTaintsPolicy is Honor. Their domain stays \
         the emptiest, so that the others may have no more than maxSkew pods. Honor looks at taints: a node that is cordoned \
         and lacks the taint of it counts all the same.",
        placed::tainted_domain,
    ),
    tried(
        "unselected-domain-counts",
        "Nodes that the node selector or node affinity excludes count as a domain, and hold the others back",
        "With nodeAffinityPolicy: Ignore all nodes count for a constraint, those too that no pod of the workload may use. \
         Their domain stays the emptiest. Honor is the default.",
        placed::unselected_domain,
    ),
    tried(
        "min-domains-unmet",
        "minDomains is above the number of domains, so that pods find no node",
        "With fewer domains than minDomains the emptiest counts as 0, and each domain takes no more than maxSkew pods. \
         Nothing is said where the files have something that adds nodes.",
        placed::min_domains_unmet,
    ),
    tried(
        "full-domain-holds-back",
        "A domain without room for more pods holds the others back",
        "A constraint looks at labels and taints, not at room: a full node or zone counts, and stays the emptiest. With \
         hostname and maxSkew 1 one full node is enough.",
        placed::full_domain,
    ),
    tried(
        "default-constraints-hold-back",
        "Hard default constraints of the scheduler's configuration keep pods from the nodes",
        "Pods without constraints get those of the configuration among the files, or of --config. Hard ones hold back \
         what the workload itself does not restrict. Nothing is said where the files have something that adds nodes.",
        placed::defaults,
    ),
    tried(
        "anti-affinity-over-domains",
        "Required anti-affinity asks for more domains than take pods",
        "It lets one pod go to each domain, and the others stay Pending.",
        placed::anti_affinity,
    ),
    tried(
        "selector-matches-no-node",
        "Node selector or required node affinity match no node of the files",
        "No pod of the workload finds a node.",
        placed::no_node,
    ),
    tried(
        "pods-do-not-fit",
        "The pods of a workload do not fit on the nodes of the files",
        "They are placed alone, beside the pods that run already, without the other workloads of the files; only those that \
         a required podAffinity asks for are placed first. Of a CronJob, the pods of one Job count; of a DaemonSet without \
         running pods, one pod that tolerates all taints. Nothing is said where the files have something that adds nodes.",
        placed::no_room,
    ),
    tried(
        "volume-pins-pods",
        "A volume of one zone keeps pods there that have to go elsewhere",
        "All pods that use the claim go to the nodes of its volume. A hard constraint over zones then lets only maxSkew \
         of them start. The nodes of its volume may have no room, too.",
        placed::volume_pins,
    ),
    // Rollouts.
    tried(
        "rollout-stuck",
        "A rollout that never ends: a new pod finds no place, and no more old ones may go",
        "With maxUnavailable 0 an old pod goes when a new one is ready. Required anti-affinity, host ports, constraints \
         or full nodes leave no place for it. Where the engine sees no room for all new pods beside all old ones, the \
         rollout is played 10 times on the nodes of the files, alone beside the pods that run; a cluster of more than \
         2,000 nodes and pods is not played, and there only a first new pod without a place is told. A new pod waits for a \
         ReadWriteOncePod claim of the old one in any case.",
        placed::stuck_rollout,
    ),
    tried(
        "rollout-uneven",
        "A rollout leaves a hard constraint broken",
        "New pods are spread together with the old ones, which then go. The rollout of each such Deployment is played 20 \
         times on nodes with room for all: 12, in as many domains as the nodes have that the pods may use, or three; for a \
         constraint over hostnames, as many nodes as the pods may use. Equal rollouts are played \
         once; large ones, and those beyond 5,000 pods in all, are not played, which is a note. matchLabelKeys: \
         [pod-template-hash] counts one revision; it is no fix where the constraint counts other workloads, too.",
        rollout::ends_uneven,
    ),
    tried(
        "rollout-takes-all-down",
        "A rollout takes all pods away at once",
        "Recreate stops all of them first, which is a note: some programs need it. A maxUnavailable of all pods is a \
         warning.",
        rollout::takes_all_down,
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
         maxUnavailable: 1 lets one pod go at a time. A budget with neither minAvailable nor maxUnavailable allows none \
         either. Where an autoscaler (a HorizontalPodAutoscaler, a ScaledObject of KEDA) \
         chooses the number, its smallest counts; that of an unknown kind is not known. Nothing is said of DaemonSets and \
         Jobs: kubectl drain leaves pods of DaemonSets where they are, and those of Jobs end.",
        budget::allows_none,
    ),
    rule(
        "budgets-overlap",
        "Two PodDisruptionBudgets select the same pods",
        "The eviction API refuses pods with more than one budget, so that drains of their nodes never end.",
        budget::two,
    ),
    rule(
        "zone-aware-unknown",
        "A PodDisruptionBudget has an annotation that is nearly strew.dev/zone-aware",
        "An annotation that nobody reads changes nothing: the budget is kept by pods, and pods of two zones may be away \
         at once.",
        zone::unknown_annotation,
    ),
    rule(
        "zone-aware-key-missing",
        "No node has the topology key of a budget by zone",
        "Nodes without the label are one zone together, so that no eviction waits for another zone. Without nodes in the \
         files, only misspelt well-known keys are found.",
        zone::unknown_key,
    ),
    rule(
        "zone-aware-unreviewed",
        "A budget by zone is in a namespace whose evictions are not reviewed",
        "The webhook leaves kube-system and strew's own namespace alone, so that it can never hold up the control plane:          there the plain budget decides.",
        zone::unreviewed,
    ),
    rule(
        "label-of-strew-unknown",
        "A label is nearly one by which strew is asked for something, or has a value that asks for nothing",
        "keep.strew.dev/spread and rebalance.strew.dev/spread are set to true or false, on a workload or its namespace. \
         strew ignores any other label or value.",
        opted::unknown,
    ),
    rule(
        "keep-without-effect",
        "A workload has the label keep.strew.dev/spread, and no deletion cost can be written or is read",
        "Only the controller of ReplicaSets looks at deletion costs, and strew leaves alone pods that have a cost of \
         their template or of a WorkloadSpread.",
        opted::kept_in_vain,
    ),
    tried(
        "budget-below-zone-loss",
        "A budget asks for more pods than the loss of a zone leaves",
        "Until replacements are ready, no pod may be evicted and no node be drained, elsewhere too. It is a note.",
        placed::budget_below_zone_loss,
    ),
    tried(
        "autoscaler-min-unplaced",
        "The pods that minReplicas asks for do not all find a node",
        "They are placed as those of the workload. Nothing is said where the files have something that adds nodes.",
        placed::autoscaler_min,
    ),
    tried(
        "autoscaler-min-below-domains",
        "minReplicas is below minDomains",
        "At its smallest the workload is not in as many domains as its constraint asks for. It is a note.",
        autoscaler::min_below_domains,
    ),
    tried(
        "priority-evicts",
        "The nodes do not hold all workloads of the files, and one of them evicts others",
        "Pods of a higher priority take the place of lower ones. It is a note.",
        placed::priority_evicts,
    ),
    tried(
        "service-zone-without-replica",
        "A Service keeps traffic in its zone, and a zone has none of its pods",
        "Clients of that zone use other zones, or all of them do. It is a note.",
        placed::zone_without_endpoint,
    ),
    rule(
        "autoscaler-target-missing",
        "A HorizontalPodAutoscaler or a ScaledObject names a target that the files do not have",
        "It scales nothing. Nothing is said if the files have no workload of its namespace.",
        autoscaler::no_target,
    ),
    rule(
        "autoscalers-share-target",
        "Two autoscalers scale one workload",
        "Each sets the number of replicas that it wants, and takes back what the other has set: the workload never comes to \
         rest. Leave one, with the metrics of both.",
        autoscaler::shared_target,
    ),
    // Selectors, nodes, namespaces, volumes.
    rule(
        "selectors-overlap",
        "Two workloads of a namespace select each other's pods",
        "Controllers follow owner references, but budgets, autoscalers and spread constraints count by labels, and count \
         both. Give each workload a label of its own. A Job or a CronJob whose pods have the labels is told where a budget, \
         a Service or a constraint of the workload counts them.",
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
        "A namespace that the files do not define, and that is a slip of the hand from one that they define",
        "A slip is a swap of neighbours, or a letter missing, doubled, added or replaced inside a word of at least four \
         letters. Names that differ in a number, in a letter of its own, in the first or last letter of a word or in a whole \
         word are different names: team-a and team-b, kafka and kafka2, shop-dev and shop-prd. Objects of a misspelt namespace do not meet: budgets, quotas, claims and Services are looked up by namespace.",
        namespace::misspelt,
    ),
    rule(
        "quota-too-small",
        "A ResourceQuota does not allow all pods that the workloads of its namespace ask for",
        "The API server refuses the others, which are then not even Pending. Its own sum, in the order of the files; \
         nothing is said of a namespace whose pods are in the files.",
        quota::too_small,
    ),
    rule(
        "image-not-rendered",
        "An image is a template that was not filled in",
        "The API server stores any text as an image, and no node can pull this one. Render the file first.",
        template::unrendered,
    ),
    rule(
        "limit-range-refuses",
        "A LimitRange forbids every pod of a workload",
        "The API server stores the workload and refuses its pods, which are then not even Pending. A default limit of \
         the LimitRange may be below the request that is written.",
        quota::limit_range,
    ),
    rule(
        "claim-shared",
        "Several pods share a claim that one node or one pod at a time can use",
        "A ReadWriteOnce volume is attached to one node. The scheduler does not look at that, so pods on other nodes are \
         placed and never start. Of a ReadWriteOncePod claim it lets one pod have the volume, and the others stay Pending. \
         Of a Job, the pods count that run at once.",
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
        "A Job or a CronJob is suspended, or a Deployment paused",
        "It makes no pods. Nothing of a Job is judged then; a Deployment is not rolled out, and fails the steps of simulate. \
         It is a note; a Job is resumed by spec.suspend: false, a Deployment by spec.paused: false.",
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
        "no-pods-asked",
        "No workload that is played asks for a pod: all have replicas: 0",
        "Nothing is judged. Give the number of replicas that is to be judged.",
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
        "subset-over-room",
        "A subset takes more pods than its nodes hold",
        "Under Fixed the rest stays Pending, under Adaptive it waits and then goes to later subsets.",
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
        "filter-selects-none",
        "A target filter that selects no pod of the target",
        "None of its pods is spread.",
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
        "unmatched-predicate",
        "A predicate of a Placement matches no cluster",
        "No cluster is selected by it. The finding has the nearest label, claim or value, or each cluster's reason.",
    ),
    text(
        "unbound-placement",
        "A Placement's namespace is bound to none of the sets that it may choose from",
        "No cluster can be chosen. Bind a ManagedClusterSet that is there.",
    ),
    text(
        "empty-decision-group",
        "A decision group that is chosen by hand matches no cluster",
        "A rollout by groups passes over it.",
    ),
    text(
        "unknown-score",
        "A Placement weighs a score that no cluster has",
        "It adds nothing. Compare it with the AddOnPlacementScores.",
    ),
    text(
        "unmatched-weight",
        "A weight of replicas matches no cluster",
        "Its part goes to no cluster.",
    ),
];
