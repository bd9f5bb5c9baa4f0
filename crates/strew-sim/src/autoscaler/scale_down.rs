//! Scale-down: drains and removes nodes that were unneeded for a while. Source: spec/controllers §11.

use std::sync::Arc;

use strew_apiserver::DeleteOptions;
use strew_apiserver::eviction::{Eviction, budgets_of, decide};
use strew_apiserver::object::{Key, Kind, Name, Node, Object, Part, Pod};
use strew_apiserver::server::{Server, pod_key};
use strew_model::time::{Instant, Span};

use super::Autoscaler;
use super::view::View;

/// A node is unneeded only below this utilisation of CPU and of memory, in percent.
const UTILISATION_MAX: u64 = 50;

/// The most empty nodes removed at once.
const EMPTY_MAX: usize = 10;

/// How long evictions from a node are retried.
const EVICTION_PATIENCE: Span = Span::from_secs(120);

/// The taint of a node that is being removed.
const REMOVED: &str = "ToBeDeletedByClusterAutoscaler";

/// The annotation with which a pod keeps its node.
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// A node that is being removed.
#[derive(Debug, Clone)]
pub(super) struct Removing {
    node: Arc<str>,
    since: Instant,
}

impl Autoscaler {
    /// Records which nodes are unneeded, and since when.
    pub(super) fn look_for_unneeded(&mut self, now: Instant) {
        let mut candidates = Vec::new();
        for group in 0..self.groups.len() {
            let members = self.members(group);
            if members.len() <= self.groups[group].min as usize {
                continue;
            }
            let idle = members.into_iter().filter(|node| self.is_idle(now, node));
            candidates.extend(idle.map(|node| Arc::clone(&node.meta.name.name)));
        }
        if candidates.is_empty() {
            self.unneeded.clear();
            return;
        }
        let mut view = View::new(&self.seen, &self.blueprint);
        // The pods of one candidate use up room that the next candidate's pods cannot have.
        candidates.retain(|node| match self.moved_away(node, &view) {
            Some(after) => {
                view = after;
                true
            }
            None => false,
        });
        self.unneeded.retain(|node, _| candidates.contains(node));
        for node in candidates {
            self.unneeded.entry(node).or_insert(now);
        }
    }

    /// True if a node has low utilisation and no pod that blocks its removal.
    fn is_idle(&self, now: Instant, node: &Node) -> bool {
        let name = &node.meta.name.name;
        let pods = self.seen.pods_on(name).filter(|pod| !pod.is_finished());
        let mut used = (0, 0);
        for pod in pods {
            let budgets = budgets_of(pod, &self.seen);
            let is_refused = matches!(decide(pod, &budgets, now), Eviction::Refuse(_));
            if stays(pod) || (is_refused && !is_daemon(pod)) {
                return false;
            }
            let (cpu, memory) = requests(pod);
            used = (used.0 + cpu, used.1 + memory);
        }
        let allocatable = node.status.allocatable.as_ref();
        let amount = |key: &str| {
            let quantity = allocatable.and_then(|list| list.get(key));
            quantity.map_or(0, |quantity| milli(&quantity.0))
        };
        let below =
            |used: u64, of: u64| used * 100 < of * UTILISATION_MAX || (used == 0 && of == 0);
        below(used.0, amount("cpu")) && below(used.1, amount("memory"))
    }

    /// The cluster without a node, its pods on other nodes; `None` if they do not fit.
    fn moved_away(&self, node: &Arc<str>, view: &View) -> Option<View> {
        let mut view = view.fork();
        let pods: Vec<_> = self
            .seen
            .pods_on(node)
            .filter(|pod| pod.is_active() && !is_daemon(pod))
            .filter_map(|pod| view.pod(pod))
            .collect();
        for &pod in &pods {
            view.cluster.unbind(pod);
        }
        view.remove_node(node);
        pods.into_iter().all(|pod| view.place(pod)).then_some(view)
    }

    /// Starts to remove the nodes that were unneeded for long enough: several empty ones, or one with pods.
    pub(super) fn begin_removing(&mut self, now: Instant, server: &mut Server) {
        let due = |(_, since): &(&Arc<str>, &Instant)| now >= **since + self.settings.unneeded;
        let due: Vec<Arc<str>> = self
            .unneeded
            .iter()
            .filter(due)
            .map(|(n, _)| n.clone())
            .collect();
        let is_empty = |node: &Arc<str>| {
            let mut pods = self.seen.pods_on(node);
            pods.all(|pod| pod.is_finished() || is_daemon(pod))
        };
        let mut empty: Vec<Arc<str>> = due.iter().filter(|n| is_empty(n)).cloned().collect();
        empty.truncate(EMPTY_MAX);
        let mut chosen = match empty.is_empty() {
            true => due.into_iter().take(1).collect(),
            false => empty,
        };
        self.keep_minimum(&mut chosen);
        for node in chosen {
            taint(&node, server);
            self.unneeded.remove(&node);
            self.removing.push(Removing { node, since: now });
        }
        if !self.removing.is_empty() {
            self.go_on_removing(now, server);
        }
    }

    fn keep_minimum(&self, chosen: &mut Vec<Arc<str>>) {
        for (index, group) in self.groups.iter().enumerate() {
            let mut spare = self.members(index).len().saturating_sub(group.min as usize);
            chosen.retain(|node| {
                if group.number_of(node).is_none() {
                    return true;
                }
                let keeps = spare > 0;
                spare = spare.saturating_sub(1);
                keeps
            });
        }
    }

    /// Evicts the remaining pods of nodes being removed, and deletes the nodes that are empty.
    pub(super) fn go_on_removing(&mut self, now: Instant, server: &mut Server) {
        let removing = std::mem::take(&mut self.removing);
        for Removing { node, since } in removing {
            let pods: Vec<Arc<Pod>> = server
                .tables()
                .pods_on(&node)
                .filter(|pod| !pod.is_finished() && !is_daemon(pod))
                .cloned()
                .collect();
            if pods.is_empty() {
                let key = Key {
                    kind: Kind::Node,
                    name: Name::new("", Arc::clone(&node)),
                };
                // The node may be gone already.
                let _ = server.delete(now, &key, &DeleteOptions::default());
                continue;
            }
            if now >= since + EVICTION_PATIENCE {
                self.last_failure = Some(now);
                untaint(&node, server);
                continue;
            }
            for pod in pods.iter().filter(|pod| pod.is_active()) {
                let options = DeleteOptions::of_uid(&pod.meta.uid);
                // A budget may refuse the eviction: the next scan retries it.
                let _ = server.evict(now, &pod_key(&pod.meta.name), &options);
            }
            self.removing.push(Removing { node, since });
        }
    }
}

fn is_daemon(pod: &Pod) -> bool {
    pod.meta
        .controller()
        .is_some_and(|owner| &*owner.kind == "DaemonSet")
}

/// True if a pod blocks the removal of its node. Source: spec/controllers §11 ("Blocks").
fn stays(pod: &Pod) -> bool {
    match pod.meta.annotation(SAFE_TO_EVICT) {
        Some("true") => return false,
        Some("false") => return true,
        _ => {}
    }
    let has_local_storage = || {
        let mut volumes = pod.spec.volumes.iter().flatten();
        volumes.any(|v| v.empty_dir.is_some() || v.host_path.is_some())
    };
    match pod.meta.controller() {
        None => true,
        Some(_) if is_daemon(pod) => false,
        Some(_) => &*pod.meta.name.namespace == "kube-system" || has_local_storage(),
    }
}

/// A pod's requests of CPU and memory, in thousandths.
fn requests(pod: &Pod) -> (u64, u64) {
    let of = |key: &str| {
        let lists = pod
            .spec
            .containers
            .iter()
            .filter_map(|c| c.resources.as_ref()?.requests.as_ref());
        lists
            .filter_map(|list| list.get(key))
            .map(|q| milli(&q.0))
            .sum::<u64>()
    };
    (of("cpu"), of("memory"))
}

fn milli(text: &str) -> u64 {
    let parsed = strew_manifest::quantity::Quantity::parse(text).ok();
    let milli = parsed.and_then(|quantity| quantity.checked_milli_value().ok());
    milli
        .and_then(|milli| u64::try_from(milli).ok())
        .unwrap_or(0)
}

fn taint(node: &Arc<str>, server: &mut Server) {
    change_taints(node, server, |taints| {
        taints.push(k8s_openapi::api::core::v1::Taint {
            key: REMOVED.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Default::default()
        });
    });
}

fn untaint(node: &Arc<str>, server: &mut Server) {
    change_taints(node, server, |taints| {
        taints.retain(|taint| taint.key != REMOVED)
    });
}

fn change_taints(
    node: &Arc<str>,
    server: &mut Server,
    change: impl FnOnce(&mut Vec<k8s_openapi::api::core::v1::Taint>),
) {
    let Some(node) = server
        .tables()
        .get::<Node>(&Name::new("", Arc::clone(node)))
    else {
        return;
    };
    let mut node = (**node).clone();
    change(Arc::make_mut(&mut node.spec).taints.get_or_insert_default());
    node.meta.version = 0;
    // The node may be gone already.
    let _ = server.update(Part::Main, Object::from(node));
}
