//! The cases, one function each; their manifests are in `e2e/cases`.

mod audit;
mod beside;
mod default_policy;
mod faults;
mod installed;
mod keep;
mod kubernetes_suite;
mod looking;
mod pages;
mod parity;
mod placement;
mod queue;
mod real;
mod rights;
mod spread;
mod telling;
mod ui;
mod workloadspread;
mod wrong;

use std::time::Duration;

use super::stage::Stage;

/// Something that users see.
pub(super) struct Case {
    /// The case's name, which is also its namespace.
    pub(super) name: &'static str,
    /// What the case shows, in one line.
    pub(super) story: &'static str,
    pub(super) play: Play,
    /// Whether the case runs only in full size, unless it is named.
    pub(super) only_full: bool,
}

type Play = fn(&mut Stage) -> anyhow::Result<()>;

const fn case(name: &'static str, story: &'static str, play: Play) -> Case {
    Case {
        name,
        story,
        play,
        only_full: false,
    }
}

/// A case that takes long, or that concerns size.
const fn full(name: &'static str, story: &'static str, play: Play) -> Case {
    Case {
        only_full: true,
        ..case(name, story, play)
    }
}

/// The cases in the order in which they run.
pub(super) const CASES: &[Case] = &[
    case(
        "defaults-racks",
        "KEP-1258: an operator spreads all workloads over racks and hosts",
        spread::racks,
    ),
    case(
        "defaults-zones",
        "KEP-1258: a service and a ReplicationController spread over zones",
        spread::zones,
    ),
    case(
        "default-policy",
        "KEP-1258 without the scheduler's configuration: the API server adds the constraints by strew defaults",
        default_policy::play,
    ),
    case(
        "min-domains",
        "KEP-3022: ten pods over at least five nodes, of which two come later",
        spread::min_domains,
    ),
    case(
        "match-label-keys",
        "KEP-3243: twelve pods 4/4/4 on three nodes, and so after a rollout",
        spread::match_label_keys,
    ),
    case(
        "before-the-merge",
        "KEP-3243: a pod that an older API server admitted is spread by its matchLabelKeys all the same",
        spread::before_the_merge,
    ),
    case(
        "messages",
        "condition and event of a refused pod say what kube-scheduler says; of a placed one too",
        telling::messages,
    ),
    case(
        "looked-at",
        "explain and snapshot of a cluster: as it is, without secrets, and the same from the snapshot",
        looking::look,
    ),
    case(
        "ui",
        "the page's stream of a live cluster tells a Deployment that is scaled, with the rights that strew ui names",
        ui::play,
    ),
    case(
        "audited",
        "a workload in one zone does not survive its loss, says a metric; spread over three zones it does",
        audit::play,
    ),
    case(
        "keep",
        "12 to 6 to 3 pods over three zones stay even, because deletion costs say which go first",
        keep::play,
    ),
    case(
        "event-series",
        "a pod that is tried again raises a count, and makes no new event",
        telling::series,
    ),
    case(
        "scheduling-gates",
        "a gated pod is left alone until its gate is gone",
        queue::gates,
    ),
    case(
        "preemption",
        "a pod of high priority takes the place of one that no budget protects",
        queue::preemption,
    ),
    case(
        "two-profiles",
        "one process packs the pods of one name and spreads those of another",
        beside::profiles,
    ),
    case(
        "alongside",
        "kube-scheduler and strew serve their own pods on the same nodes, and refuse in the same words",
        beside::alongside,
    ),
    case(
        "wrong-configuration",
        "what is wrong with a configuration is said with its place, and nothing is started",
        wrong::configuration,
    ),
    case(
        "wrong-access",
        "a kubeconfig that is none, credentials that hold no longer",
        wrong::access,
    ),
    case(
        "late-server",
        "processes that begin while the API server does not answer wait, not ready, and go on with it",
        wrong::late,
    ),
    case(
        "missing-rights",
        "the scheduler names the one right that its service account lacks, and works with it; a second installation is refused",
        wrong::rights,
    ),
    case(
        "pages",
        "health is for everybody, metrics for those who may read them",
        pages::play,
    ),
    case(
        "credentials-end",
        "credentials that end while a scheduler works: it says so, and goes on with new ones",
        pages::credentials,
    ),
    case(
        "set-aside",
        "a pod and a node with absurd amounts are set aside, and the others go on",
        wrong::set_aside,
    ),
    case(
        "leader-killed",
        "kill -9 of the leader in the middle of a rollout, with a warm follower",
        faults::leader,
    ),
    case(
        "only-one-killed",
        "kill -9 of the only replica in the middle of a rollout, and another start",
        faults::only,
    ),
    case(
        "server-killed",
        "kill -9 of the API server in the middle of a rollout, and its start",
        faults::server,
    ),
    case(
        "store-killed",
        "kill -9 of etcd in the middle of a rollout, and its start",
        faults::store,
    ),
    case(
        "leader-stopped",
        "SIGSTOP of the leader in the middle of a rollout: when it goes on, it sends nothing",
        faults::stopped,
    ),
    case(
        "parity",
        "kube-scheduler and strew place the same pods one at a time: same nodes, same refusals",
        parity::play,
    ),
    case(
        "installed",
        "what strew install prints is valid, fits its namespace, and gathers the rights on custom kinds",
        installed::manifests,
    ),
    case(
        "installed-limited",
        "where critical classes are limited, as GKE does it, pods of what strew install prints are created",
        installed::critical,
    ),
    full(
        "each-rule",
        "each rule of the printed roles is needed: without it a process does not start, and names it",
        rights::each_rule,
    ),
    case(
        "rivals",
        "strew install warns of another scheduler that has its profile",
        rights::rivals,
    ),
    case(
        "ws-elastic",
        "WorkloadSpread, use case 1: so many pods on own nodes, the rest on elastic ones, which shrink first",
        workloadspread::elastic,
    ),
    case(
        "ws-zones",
        "WorkloadSpread, use case 3: zones 1:1:3, while a Deployment is scaled up and down",
        workloadspread::zones,
    ),
    case(
        "ws-patched",
        "WorkloadSpread, use case 4: each architecture has resources of its own; a StatefulSet goes by ordinals",
        workloadspread::patched,
    ),
    case(
        "ws-simulated",
        "WorkloadSpread, use case 2: own nodes until they are full, by simulated scheduling",
        workloadspread::simulated,
    ),
    case(
        "ws-rescheduled",
        "a pod that stays unschedulable is replaced in the next subset",
        workloadspread::rescheduled,
    ),
    full(
        "ws-adopted",
        "pods that were there before their WorkloadSpread are counted where they are",
        workloadspread::adopted,
    ),
    case(
        "ws-full",
        "Kruise's case: pods that found no room have no deletion cost yet, and go first",
        workloadspread::full,
    ),
    case(
        "ws-evicted",
        "evictions that a budget refuses make no room, those that it lets through do",
        workloadspread::evicted,
    ),
    case(
        "ws-two-owners",
        "a WorkloadSpread of a Deployment and one of its ReplicaSet: the second is refused, the younger has no pods",
        workloadspread::two_owners,
    ),
    case(
        "ws-without-room",
        "pods for which no subset has room wait with a gate until there is some, or are refused",
        workloadspread::without_room,
    ),
    case(
        "ws-moved-back",
        "pods of a later subset move back one by one when an earlier one has room again",
        workloadspread::moved_back,
    ),
    case(
        "ws-prompt",
        "status and deletion costs are right the moment a workload is ready, and 100 ms after its last pod is",
        workloadspread::prompt,
    ),
    case(
        "ws-versions",
        "v1alpha1 and v1beta1 are one object; what must not be is refused with its place",
        workloadspread::versions,
    ),
    case(
        "ws-burst",
        "two replicas of the webhook, and pods all at once: no subset gets one too many",
        workloadspread::burst,
    ),
    case(
        "ws-killed",
        "kill -9 of a webhook and of the controller while pods are made",
        workloadspread::killed,
    ),
    full(
        "ws-rotated",
        "the webhook's authority is exchanged while pods are made",
        workloadspread::rotated,
    ),
    case(
        "ws-registered",
        "the webhook is asked while a replica is ready, and at no other time",
        workloadspread::registered,
    ),
    case(
        "ws-wrong-port",
        "a webhook whose URL has a port that is not served is never registered, and says why",
        workloadspread::wrong_port,
    ),
    case(
        "ws-half-dead",
        "a replica that does not reach the API server is taken out within 10 s",
        workloadspread::half_dead,
    ),
    case(
        "ws-half-dead-beside",
        "beside a healthy replica, pods are reviewed again within 10 s, and it stays registered",
        workloadspread::half_dead_beside,
    ),
    case(
        "ws-killed-at-once",
        "all replicas and the leading controller are killed: pods are created within 10 s",
        workloadspread::killed_at_once,
    ),
    case(
        "ws-deleted",
        "the configuration is deleted by hand: that is said, and mended within 10 s of its return",
        workloadspread::deleted,
    ),
    case(
        "ws-bounded",
        "the accounts of webhook and controller change what they keep, and nothing else of it",
        workloadspread::bounded,
    ),
    case(
        "ws-callers",
        "with --client-ca-file reviews are answered only of API servers that show a certificate",
        workloadspread::callers,
    ),
    case(
        "ws-down",
        "no webhook, and strict: strew and the system start all the same, other pods wait",
        workloadspread::down,
    ),
    case(
        "ws-wrong",
        "what nobody should say to a webhook, what somebody writes over it, a right that is missing",
        workloadspread::wrong,
    ),
    full(
        "ws-given",
        "a certificate that is given: one that has ended, one that nobody trusts, one that serves",
        workloadspread::given,
    ),
    full(
        "ws-denied",
        "creations that a quota denies are given back to the ledger, and evictions that a budget denies make no room",
        workloadspread::denied,
    ),
    full(
        "ws-server-killed",
        "kill -9 of the API server while pods are made, and its start",
        workloadspread::server_killed,
    ),
    full(
        "ws-speed",
        "a Deployment from 0 to 2,000 pods, with a WorkloadSpread and without; memory with 10,000",
        workloadspread::speed,
    ),
    full(
        "soak-live",
        "churn, faults and attacks for some seconds each: pods of others come, probes are answered, memory stays",
        soak_live,
    ),
    case(
        "placement-use-cases",
        "the proposal's use cases on a hub",
        placement::use_cases,
    ),
    case(
        "placement-read",
        "strew place and strew explain placement/NAME on a hub, by --context",
        placement::read,
    ),
    case(
        "placement-fleet",
        "200 clusters: spread over regions, a region lost and back, scores that change",
        placement::fleet,
    ),
    case(
        "placement-kept",
        "kill -9 while PlacementDecisions of 250 clusters are rewritten: a cluster that stays is never absent",
        placement::kept,
    ),
    full(
        "placement-failover",
        "kill -9 of the leader on a hub: the follower goes on",
        placement::failover,
    ),
    case(
        "placement-definitions",
        "CustomResourceDefinitions that come later, and those of others",
        placement::definitions,
    ),
    full(
        "placement-server-killed",
        "kill -9 of a hub's API server while PlacementDecisions are rewritten, and its start",
        placement::server_killed,
    ),
    full(
        "placement-conflicts",
        "somebody else writes the status all the time",
        placement::conflicts,
    ),
    full(
        "placement-hundred",
        "OCM's hundred placements over a hundred clusters",
        placement::hundred,
    ),
    full(
        "placement-speed",
        "a label's change on a hub of 2,000 clusters and 200 placements",
        placement::speed,
    ),
    full(
        "real-nodes",
        "strew's own Deployments on three real nodes (root on Linux, containerd): install, spread, subsets, restart, a zone cut, uninstall",
        real::play,
    ),
    full(
        "kubernetes-suite",
        "Kubernetes' own end-to-end suite for scheduling on three real nodes, strew in the place of kube-scheduler",
        kubernetes_suite::play,
    ),
];

/// The duration of each attack.
const ATTACK: Duration = Duration::from_secs(10);

fn soak_live(stage: &mut Stage) -> anyhow::Result<()> {
    crate::soak_live::case(stage, ATTACK)
}
