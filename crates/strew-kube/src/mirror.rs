//! The objects of a cluster as they change, for a view of it: read-only, without secrets.
//!
//! Each object is scrubbed before it is decoded, and so is never kept whole. A watch that breaks resumes, or lists again
//! ([`crate::watch`]): no change is lost. Kinds that the API server does not serve are skipped, forbidden ones are left
//! out.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Node, Pod, ReplicationController, Service};
use kube::Client;
use strew_manifest::kinds;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::kruise::workloads::CloneSet;
use strew_manifest::ocm::{ManagedCluster, Placement, PlacementDecision};
use strew_manifest::read::KubeObject;
use strew_manifest::snapshot::Scrubber;
use strew_runtime::reads::Reads;
use strew_runtime::watch::{
    Failure, Kind, Object, Reading, Scope, Served, Update, WatchEvent, WatchId, Watches,
};
use strew_wire::facts::Named;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::discovery;
use crate::permission::{Permission, rights};
use crate::watch::{Streams, decoded};

/// The kinds that a view of a cluster reads.
pub const READS: &[Reads] = &[
    Reads::of::<Node>("the domains, and their room"),
    Reads::of::<Pod>("what runs in each domain, and what is Pending"),
    Reads::of::<Service>("default constraints: the pods that a Service selects"),
    Reads::of::<ReplicationController>("the workload of a pod"),
    Reads::of::<Deployment>("the workload of a pod"),
    Reads::of::<ReplicaSet>("the workload of a pod"),
    Reads::of::<StatefulSet>("the workload of a pod"),
    Reads::of::<DaemonSet>("the workload of a pod"),
    Reads::of::<Job>("the workload of a pod"),
    Reads::of::<CronJob>("the workload of a pod"),
    Reads::of::<CloneSet>("the workload of a pod"),
    Reads::of::<WorkloadSpread>("the subsets of a workload, with their limits"),
    Reads::of::<Placement>("how many clusters are asked for, and whether they are found"),
    Reads::of::<PlacementDecision>("the clusters of a Placement"),
    Reads::of::<ManagedCluster>("the clusters of a fleet, by their labels"),
];

/// The rights that it takes: none to write, and none to read Secrets or ConfigMaps.
pub fn permissions() -> Vec<Permission> {
    rights(READS, &["list", "watch"], &[])
}

/// The most events handled at once.
const TAKEN_MAX: usize = 4096;

/// How soon an API server is asked whether it answers, after a watch of it failed.
const ASK_AFTER: Duration = Duration::from_secs(2);

/// The pause after failed watches were started again.
const PAUSE: Duration = Duration::from_secs(10);

/// The time limit for that question.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A change of the cluster.
#[derive(Debug)]
pub enum Change {
    /// The present state of an object.
    Set(KubeObject),
    /// The remains of a deleted object: its kind and its name.
    Gone(KubeObject),
}

/// How complete the mirror is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorState {
    /// True if every kind was listed once, except those that are left out.
    pub is_whole: bool,
    /// The kinds that may not be read, in the API server's words.
    pub left_out: Vec<String>,
    /// Watches that fail, with the error: what is shown of these kinds may be old.
    pub failing: Vec<String>,
    /// The number of objects that cannot be decoded.
    pub unreadable: usize,
}

/// A mirror of a cluster.
pub struct Mirror {
    client: Client,
    watches: Watches,
    streams: Streams,
    served: mpsc::Receiver<Served>,
    is_served: bool,
    changes: Vec<Change>,
    n_unreadable: usize,
    /// When failing watches are looked after; `None` while none fails.
    look_after: Option<Instant>,
}

impl Mirror {
    /// Begins to read. Needs a runtime.
    pub fn begin(client: Client) -> Self {
        Self {
            watches: Watches::default(),
            streams: Streams::new(client.clone()),
            served: discovery::look(client.clone()),
            is_served: false,
            changes: Vec::new(),
            n_unreadable: 0,
            look_after: None,
            client,
        }
    }

    /// Waits for an event and returns the changes so far, in order; none if only the [standing](Self::standing) changed.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Vec<Change> {
        let look_after = self.look_after;
        let later = async {
            match look_after {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            (id, event) = self.streams.next() => self.take_in(id, event),
            Some(served) = self.served.recv() => self.watch(&served),
            () = later => self.look_after().await,
        }
        for _ in 0..TAKEN_MAX {
            let Some((id, event)) = self.streams.try_next() else {
                break;
            };
            self.take_in(id, event);
        }
        if self.look_after.is_none() && self.failures().next().is_some() {
            self.look_after = Some(Instant::now() + ASK_AFTER);
        }
        std::mem::take(&mut self.changes)
    }

    /// How complete it is.
    pub fn standing(&self) -> MirrorState {
        let told = |(kind, failure): (&Kind, &Failure)| format!("{kind}: {}", failure.text);
        let forbidden = |kind: &Kind| {
            let failure = self.watches.failure(kind);
            failure.is_some_and(|failure| is_forbidden(kind, failure))
        };
        let mut kinds = self.watches.kinds();
        let all = || {
            self.watches
                .kinds()
                .filter_map(|(kind, _)| self.failed(kind))
        };
        let left_out = all().filter(|(kind, failure)| is_forbidden(kind, failure));
        MirrorState {
            is_whole: self.is_served && kinds.all(|(kind, listed)| listed || forbidden(kind)),
            left_out: left_out.map(told).collect(),
            failing: self.failures().map(told).collect(),
            unreadable: self.n_unreadable,
        }
    }

    fn failed<'s>(&'s self, kind: &'s Kind) -> Option<(&'s Kind, &'s Failure)> {
        Some((kind, self.watches.failure(kind)?))
    }

    /// Watches that fail, except those of forbidden kinds.
    fn failures(&self) -> impl Iterator<Item = (&Kind, &Failure)> {
        let all = self.watches.kinds();
        let all = all.filter_map(|(kind, _)| self.failed(kind));
        all.filter(|(kind, failure)| !is_forbidden(kind, failure))
    }

    /// Watches the kinds that are served and not watched yet.
    fn watch(&mut self, served: &Served) {
        self.is_served = true;
        for read in READS {
            let row = &read.row;
            if self.watches.kind_of(row.group, row.kind).is_some() {
                continue;
            }
            let versions = served.versions(row.group, row.kind).iter();
            let known = kinds::versions(row.group, row.kind);
            let mut versions = versions.filter(|v| known.contains(&&*v.kind.version));
            if let Some(version) = versions.next() {
                let reading = Reading::Custom { has_scale: false };
                self.watches
                    .start(version.kind.clone(), reading, &Scope::default());
            }
        }
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.watches.poll() {
            self.streams.carry_out(action);
        }
    }

    fn take_in(&mut self, id: WatchId, event: WatchEvent) {
        self.watches.take_in(id, event);
        self.carry_out();
        while let Some(update) = self.watches.next_update() {
            let change = match update {
                Update::Set(_, _, object) => self.read(*object),
                Update::Gone(kind, named) => remains(&kind, &named),
                Update::Listed(_) | Update::Again(..) => None,
            };
            self.changes.extend(change);
        }
    }

    fn read(&mut self, object: Object) -> Option<Change> {
        let object = match object {
            Object::Custom(mut custom) => {
                Scrubber::default().scrub(&mut custom.object);
                decoded(custom.object).ok()
            }
            object => object.into_known(),
        };
        self.n_unreadable += usize::from(object.is_none());
        object.map(Change::Set)
    }

    /// Starts failed watches again as soon as the API server answers. By themselves they would wait longer, and a quiet
    /// kind would not tell that its watch goes on.
    async fn look_after(&mut self) {
        let failed: Vec<Kind> = self.failures().map(|(kind, _)| kind.clone()).collect();
        if failed.is_empty() {
            self.look_after = None;
            return;
        }
        // If this is cancelled, it is tried again.
        self.look_after = Some(Instant::now() + ASK_AFTER);
        let answer = timeout(ANSWERS_WITHIN, self.client.apiserver_version()).await;
        let answers = matches!(answer, Ok(Ok(_)));
        if answers {
            failed.iter().for_each(|kind| self.watches.restart(kind));
            self.carry_out();
        }
        let pause = if answers { PAUSE } else { ASK_AFTER };
        self.look_after = Some(Instant::now() + pause);
    }
}

/// True if a view can do without a kind that may not be read.
fn is_forbidden(kind: &Kind, failure: &Failure) -> bool {
    failure.code == Some(403) && !matches!(&*kind.plural, "nodes" | "pods")
}

fn remains(kind: &Kind, named: &Named) -> Option<Change> {
    kind.known_remains(named).map(Change::Gone)
}
