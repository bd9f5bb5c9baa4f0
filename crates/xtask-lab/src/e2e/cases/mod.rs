//! The cases: scenario files, and functions with manifests in `e2e/cases`.

mod audit;
mod beside;
mod beside_descheduler;
mod default_policy;
mod faults;
mod installed;
mod kubernetes_suite;
mod looking;
mod pages;
mod parity;
mod placement;
mod queue;
mod real;
mod rebalanced;
mod rights;
mod spread;
mod telling;
mod ui;
mod workloadspread;
mod wrong;
mod zone_budget;

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use xtask::top;

use super::stage::Stage;
use crate::fidelity::scenario;

/// Something that users see.
pub(super) struct Case {
    /// The case's name; also its namespace, if it is code.
    pub(super) name: Cow<'static, str>,
    /// What the case shows, in one line.
    pub(super) story: Cow<'static, str>,
    pub(super) play: Play,
    /// Whether the case runs only in full size, unless it is named.
    pub(super) only_full: bool,
}

/// How a case is played.
pub(super) enum Play {
    Code(Code),
    /// A scenario file, which the simulation plays as well.
    Scenario(PathBuf),
}

type Code = fn(&mut Stage) -> anyhow::Result<()>;

fn case(name: &'static str, story: &'static str, play: Code) -> Case {
    Case {
        name: Cow::Borrowed(name),
        story: Cow::Borrowed(story),
        play: Play::Code(play),
        only_full: false,
    }
}

/// A case that takes long, or that concerns size.
fn full(name: &'static str, story: &'static str, play: Code) -> Case {
    Case {
        only_full: true,
        ..case(name, story, play)
    }
}

/// The cases in the order in which they run: those that are code, and the files of `scenarios/e2e`.
///
/// # Errors
/// If a scenario file cannot be read.
pub(super) fn all() -> anyhow::Result<Vec<Case>> {
    let files = scenario::files(&top().join("scenarios/e2e"))?;
    let cases = files.into_iter().map(|file| {
        let scenario = scenario::read(&file)?;
        Ok(Case {
            name: scenario.name.into(),
            story: scenario.story.into(),
            play: Play::Scenario(file),
            only_full: false,
        })
    });
    // Cases that look at a fresh installation come before those that leave theirs.
    coded().into_iter().map(Ok).chain(cases).collect()
}

/// The cases that are code, in the order in which they run: each runs always, or in full size only.
macro_rules! coded {
    ($($when:ident $name:literal $play:path: $story:literal,)*) => {
        fn coded() -> Vec<Case> {
            vec![$($when($name, $story, $play),)*]
        }
    };
}

coded! {
    case "default-policy" default_policy::play:
        "KEP-1258 without the scheduler's configuration: the API server adds the constraints by strew defaults",
    case "before-the-merge" spread::before_the_merge:
        "KEP-3243: a pod that an older API server admitted is spread by its matchLabelKeys all the same",
    case "messages" telling::messages:
        "condition and event of a refused pod say what kube-scheduler says; of a placed one too",
    case "looked-at" looking::look:
        "explain and snapshot of a cluster: as it is, without secrets, and the same from the snapshot",
    case "ui" ui::play:
        "the page's stream of a live cluster tells a Deployment that is scaled, with the rights that strew ui names",
    case "audited" audit::play:
        "a workload in one zone does not survive its loss, says a metric; spread over three zones it does",
    case "event-series" telling::series: "a pod that is tried again raises a count, and makes no new event",
    case "scheduling-gates" queue::gates: "a gated pod is left alone until its gate is gone",
    case "preemption" queue::preemption: "a pod of high priority takes the place of one that no budget protects",
    case "two-profiles" beside::profiles: "one process packs the pods of one name and spreads those of another",
    case "alongside" beside::alongside:
        "kube-scheduler and strew serve their own pods on the same nodes, and refuse in the same words",
    case "wrong-configuration" wrong::configuration:
        "what is wrong with a configuration is said with its place, and nothing is started",
    case "wrong-access" wrong::access: "a kubeconfig that is none, credentials that hold no longer",
    case "late-server" wrong::late:
        "processes that begin while the API server does not answer wait, not ready, and go on with it",
    case "missing-rights" wrong::rights:
        "the scheduler names the one right that its service account lacks, and works with it; a second installation is refused",
    case "pages" pages::play: "health is for everybody, metrics for those who may read them",
    case "credentials-end" pages::credentials:
        "credentials that end while a scheduler works: it says so, and goes on with new ones",
    case "set-aside" wrong::set_aside: "a pod and a node with absurd amounts are set aside, and the others go on",
    case "leader-killed" faults::leader: "kill -9 of the leader in the middle of a rollout, with a warm follower",
    case "only-one-killed" faults::only: "kill -9 of the only replica in the middle of a rollout, and another start",
    case "server-killed" faults::server: "kill -9 of the API server in the middle of a rollout, and its start",
    case "store-killed" faults::store: "kill -9 of etcd in the middle of a rollout, and its start",
    case "leader-stopped" faults::stopped:
        "SIGSTOP of the leader in the middle of a rollout: when it goes on, it sends nothing",
    case "parity" parity::play: "kube-scheduler and strew place the same pods one at a time: same nodes, same refusals",
    case "installed" installed::manifests:
        "what strew install prints is valid, fits its namespace, and gathers the rights on custom kinds",
    case "installed-limited" installed::critical:
        "where critical classes are limited, as GKE does it, pods of what strew install prints are created",
    full "each-rule" rights::each_rule:
        "each rule of the printed roles is needed: without it a process does not start, and names it",
    case "rivals" rights::rivals: "strew install warns of another scheduler that has its profile",
    case "zone-budget" zone_budget::play:
        "while pods of one zone are away, none of another is evicted; without a webhook the plain budget decides",
    case "rebalanced" rebalanced::play:
        "a plan of evictions is saved, checked and carried out; cut off, or carried out twice at once, it evicts no pod twice",
    case "rebalance-kept" rebalanced::kept:
        "the controller makes a labelled workload even again, with one eviction for each move, though its leader is killed",
    full "rebalance-descheduler" beside_descheduler::play:
        "strew rebalance beside the descheduler on ten unbalanced clusters: evictions, what is left, whether it ends",
    case "ws-two-owners" workloadspread::two_owners:
        "a WorkloadSpread of a Deployment and one of its ReplicaSet: the second is refused, the younger has no pods",
    case "ws-prompt" workloadspread::prompt:
        "status and deletion costs are right the moment a workload is ready, and 100 ms after its last pod is",
    case "ws-versions" workloadspread::versions:
        "v1alpha1 and v1beta1 are one object; what must not be is refused with its place",
    case "ws-burst" workloadspread::burst:
        "two replicas of the webhook, and pods all at once: no subset gets one too many",
    case "ws-killed" workloadspread::killed: "kill -9 of a webhook and of the controller while pods are made",
    full "ws-rotated" workloadspread::rotated: "the webhook's authority is exchanged while pods are made",
    case "ws-registered" workloadspread::registered:
        "the webhook is asked while a replica is ready, and at no other time",
    case "ws-wrong-port" workloadspread::wrong_port:
        "a webhook whose URL has a port that is not served is never registered, and says why",
    case "ws-half-dead" workloadspread::half_dead:
        "a replica that does not reach the API server is taken out within 10 s",
    case "ws-half-dead-beside" workloadspread::half_dead_beside:
        "beside a healthy replica, pods are reviewed again within 10 s, and it stays registered",
    case "ws-killed-at-once" workloadspread::killed_at_once:
        "all replicas and the leading controller are killed: pods are created within 10 s",
    case "ws-deleted" workloadspread::deleted:
        "the configuration is deleted by hand: that is said, and mended within 10 s of its return",
    case "ws-bounded" workloadspread::bounded:
        "the accounts of webhook and controller change what they keep, and nothing else of it",
    case "ws-callers" workloadspread::callers:
        "with --client-ca-file reviews are answered only of API servers that show a certificate",
    case "ws-down" workloadspread::down:
        "no webhook, and strict: strew and the system start all the same, other pods wait",
    case "ws-wrong" workloadspread::wrong:
        "what nobody should say to a webhook, what somebody writes over it, a right that is missing",
    full "ws-given" workloadspread::given:
        "a certificate that is given: one that has ended, one that nobody trusts, one that serves",
    full "ws-server-killed" workloadspread::server_killed:
        "kill -9 of the API server while pods are made, and its start",
    full "ws-speed" workloadspread::speed:
        "a Deployment from 0 to 2,000 pods, with a WorkloadSpread and without; memory with 10,000",
    full "soak-live" soak_live:
        "churn, faults and attacks for some seconds each: pods of others come, probes are answered, memory stays",
    case "placement-read" placement::read: "strew place and strew explain placement/NAME on a hub, by --context",
    case "placement-fleet" placement::fleet:
        "200 clusters: spread over regions, a region lost and back, scores that change",
    case "placement-kept" placement::kept:
        "kill -9 while PlacementDecisions of 250 clusters are rewritten: a cluster that stays is never absent",
    full "placement-failover" placement::failover: "kill -9 of the leader on a hub: the follower goes on",
    case "placement-definitions" placement::definitions:
        "CustomResourceDefinitions that come later, and those of others",
    full "placement-server-killed" placement::server_killed:
        "kill -9 of a hub's API server while PlacementDecisions are rewritten, and its start",
    full "placement-conflicts" placement::conflicts: "somebody else writes the status all the time",
    full "placement-hundred" placement::hundred: "OCM's hundred placements over a hundred clusters",
    full "placement-speed" placement::speed: "a label's change on a hub of 2,000 clusters and 200 placements",
    full "real-nodes" real::play:
        "strew's own Deployments on three real nodes (root on Linux, containerd): install, spread, subsets, restart, a zone cut, uninstall",
    full "kubernetes-suite" kubernetes_suite::play:
        "Kubernetes' own end-to-end suite for scheduling on three real nodes, strew in the place of kube-scheduler",
}

/// The duration of each attack.
const ATTACK: Duration = Duration::from_secs(10);

fn soak_live(stage: &mut Stage) -> anyhow::Result<()> {
    crate::soak_live::case(stage, ATTACK)
}
