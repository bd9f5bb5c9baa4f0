//! The cases, one function each; what they apply lies in `e2e/cases`.

mod beside;
mod faults;
mod pages;
mod parity;
mod queue;
mod spread;
mod telling;
mod wrong;

use super::stage::Stage;

/// Something that users see.
pub(super) struct Case {
    /// Its namespace too.
    pub(super) name: &'static str,
    /// In a line.
    pub(super) story: &'static str,
    pub(super) play: fn(&mut Stage) -> anyhow::Result<()>,
}

/// In the order in which they are played.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "defaults-racks",
        story: "KEP-1258: an operator spreads all workloads over racks and hosts",
        play: spread::racks,
    },
    Case {
        name: "defaults-zones",
        story: "KEP-1258: a service and a ReplicationController spread over zones",
        play: spread::zones,
    },
    Case {
        name: "min-domains",
        story: "KEP-3022: ten pods over at least five nodes, of which two come later",
        play: spread::min_domains,
    },
    Case {
        name: "match-label-keys",
        story: "KEP-3243: twelve pods 4/4/4 on three nodes, and so after a rollout",
        play: spread::match_label_keys,
    },
    Case {
        name: "before-the-merge",
        story: "KEP-3243: a pod that an older API server admitted is spread by its matchLabelKeys all the same",
        play: spread::before_the_merge,
    },
    Case {
        name: "messages",
        story: "condition and event of a refused pod say what kube-scheduler says; of a placed one too",
        play: telling::messages,
    },
    Case {
        name: "event-series",
        story: "a pod that is tried again raises a count, and makes no new event",
        play: telling::series,
    },
    Case {
        name: "scheduling-gates",
        story: "a gated pod is left alone until its gate is gone",
        play: queue::gates,
    },
    Case {
        name: "preemption",
        story: "a pod of high priority takes the place of one that no budget protects",
        play: queue::preemption,
    },
    Case {
        name: "two-profiles",
        story: "one process packs the pods of one name and spreads those of another",
        play: beside::profiles,
    },
    Case {
        name: "alongside",
        story: "kube-scheduler and strew serve their own pods on the same nodes, and refuse in the same words",
        play: beside::alongside,
    },
    Case {
        name: "wrong-configuration",
        story: "what is wrong with a configuration is said with its place, and nothing is started",
        play: wrong::configuration,
    },
    Case {
        name: "wrong-access",
        story: "an API server that is not there, a kubeconfig that is none, credentials that hold no longer",
        play: wrong::access,
    },
    Case {
        name: "missing-rights",
        story: "a service account that lacks one right is told which; with it, it is enough",
        play: wrong::rights,
    },
    Case {
        name: "pages",
        story: "health is for everybody, metrics for those who may read them",
        play: pages::play,
    },
    Case {
        name: "credentials-end",
        story: "credentials that end while a scheduler works: it says so, and goes on with new ones",
        play: pages::credentials,
    },
    Case {
        name: "set-aside",
        story: "a pod and a node with absurd amounts are set aside, and the others go on",
        play: wrong::set_aside,
    },
    Case {
        name: "leader-killed",
        story: "kill -9 of the leader in the middle of a rollout, with a warm follower",
        play: faults::leader,
    },
    Case {
        name: "only-one-killed",
        story: "kill -9 of the only replica in the middle of a rollout, and another start",
        play: faults::only,
    },
    Case {
        name: "server-killed",
        story: "kill -9 of the API server in the middle of a rollout, and its start",
        play: faults::server,
    },
    Case {
        name: "store-killed",
        story: "kill -9 of etcd in the middle of a rollout, and its start",
        play: faults::store,
    },
    Case {
        name: "leader-stopped",
        story: "SIGSTOP of the leader in the middle of a rollout: when it goes on, it sends nothing",
        play: faults::stopped,
    },
    Case {
        name: "parity",
        story: "kube-scheduler and strew place the same pods one at a time: same nodes, same refusals",
        play: parity::play,
    },
];
