//! `kubectl drain` as a machine: returns the next request, handles answers, and says when it wakes and what it prints.
//!
//! It cordons all nodes, then empties one after the other. The caller carries out each [`DrainAction`] of [`Drain::poll`],
//! passes answers to [`Drain::answer`], and polls again at [`Drain::next_wake`].
//!
//! Source: spec/controllers §8.3; upstream `k8s.io/kubectl/pkg/drain`, `pkg/cmd/drain`, v1.36.

mod filter;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use strew_apiserver::object::{Key, Kind, Name, Node, Pod};
use strew_apiserver::{ApiError, DeleteOptions, Tables};
use strew_model::Prng;
use strew_model::time::{Instant, Span};

/// The wait after a 429.
const RETRY: Span = Span::from_secs(5);

/// The interval of checks whether an evicted pod is gone.
const POLL: Span = Span::from_secs(1);

/// The flags of kubectl drain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrainOptions {
    /// `--ignore-daemonsets`
    pub ignore_daemon_sets: bool,
    /// `--delete-emptydir-data`
    pub delete_empty_dir_data: bool,
    /// `--force`
    pub force: bool,
    /// `--disable-eviction`
    pub disable_eviction: bool,
    /// `--timeout`, for each node; `None`: no limit.
    pub timeout: Option<Span>,
    /// `--grace-period`; `None`: each pod's own.
    pub grace: Option<Span>,
    /// Pods that declare a controller in their cluster, though they have none here: it is not in the files.
    pub owned: Arc<BTreeSet<Name>>,
}

/// A step that the caller carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainAction {
    /// Set `spec.unschedulable` of this node.
    Cordon(Name),
    /// Request the eviction of this pod, and call [`answer`](Drain::answer).
    Evict(Key, DeleteOptions),
    /// Delete this pod, and call [`answer`](Drain::answer).
    Delete(Key, DeleteOptions),
    /// Print a line to standard output.
    Print(String),
    /// Print a line to standard error.
    Complain(String),
}

/// A drain in progress.
#[derive(Debug)]
pub struct Drain {
    options: DrainOptions,
    waiting: VecDeque<Name>,
    steps: VecDeque<DrainAction>,
    is_begun: bool,
    node: Option<NodeDrain>,
    /// Nodes that could not be drained, with the reasons.
    failed: Vec<(Name, String)>,
    left: Vec<Left>,
    is_done: bool,
}

/// A pod that was still there when the timeout of its node was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The node.
    pub node: Arc<str>,
    /// The pod.
    pub pod: Name,
    /// The last refusal of its eviction; `None` if it terminates and does not end.
    pub refusal: Option<ApiError>,
}

/// The node that is being emptied.
#[derive(Debug)]
struct NodeDrain {
    node: Name,
    /// When its timeout is over.
    end: Option<Instant>,
    pods: BTreeMap<Name, Leaving>,
    left: Vec<Left>,
    errors: Vec<String>,
}

#[derive(Debug)]
struct Leaving {
    uid: Arc<str>,
    state: State,
    /// The last refusal.
    refusal: Option<ApiError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be requested at this moment.
    Try(Instant),
    /// Requested, without an answer yet.
    Asked,
    /// Accepted; to be checked at this moment.
    Gone(Instant),
}

impl Drain {
    /// A drain of these nodes, in this order.
    pub fn new(options: DrainOptions, nodes: Vec<Name>) -> Self {
        Self {
            options,
            waiting: nodes.into(),
            steps: VecDeque::new(),
            is_begun: false,
            node: None,
            failed: Vec::new(),
            left: Vec::new(),
            is_done: false,
        }
    }

    /// The next step; `None` if the drain waits for an answer or for time, or is done. `dice` decides which pods of a
    /// node are evicted first.
    pub fn poll(&mut self, now: Instant, tables: &Tables, dice: &mut Prng) -> Option<DrainAction> {
        if !self.is_begun {
            self.is_begun = true;
            self.cordon(tables);
        }
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(step);
            }
            if self.is_done {
                return None;
            }
            match self.node.take() {
                None => self.begin_node(now, tables, dice),
                Some(mut node) => {
                    node.advance(now, tables, &self.options, &mut self.steps);
                    let is_waiting = self.steps.is_empty() && !node.pods.is_empty();
                    if node.pods.is_empty() {
                        self.end_node(node, tables);
                    } else {
                        self.node = Some(node);
                    }
                    if is_waiting {
                        return None;
                    }
                }
            }
        }
    }

    /// The answer to an eviction or deletion.
    pub fn answer(&mut self, now: Instant, pod: &Name, answer: Result<(), ApiError>) {
        let Some(node) = &mut self.node else { return };
        let Some(leaving) = node.pods.get_mut(pod) else {
            return;
        };
        let verb = if self.options.disable_eviction {
            "deleting"
        } else {
            "evicting"
        };
        let what = format!(
            "error when {verb} pods/{:?} -n {:?}",
            pod.name, pod.namespace
        );
        match answer {
            Ok(()) => {
                leaving.state = State::Gone(now);
                leaving.refusal = None;
            }
            // The pod is gone already: nothing is printed.
            Err(ApiError::NotFound(_)) => {
                node.pods.remove(pod);
            }
            Err(error @ ApiError::TooManyRequests { .. }) if !self.options.disable_eviction => {
                leaving.state = State::Try(now + RETRY);
                let line = format!("{what} (will retry after 5s): {error}");
                self.steps.push_back(DrainAction::Complain(line));
                leaving.refusal = Some(error);
            }
            Err(error) => {
                node.pods.remove(pod);
                node.errors.push(format!("{what}: {error}"));
            }
        }
    }

    /// The next time at which it has a step without an answer.
    pub fn next_wake(&self) -> Option<Instant> {
        let pods = self.node.as_ref()?.pods.values();
        pods.filter_map(|pod| match pod.state {
            State::Try(at) | State::Gone(at) => Some(at),
            State::Asked => None,
        })
        .min()
    }

    /// `Some` when it is done: true if kubectl would exit with 0.
    pub fn outcome(&self) -> Option<bool> {
        (self.is_done && self.steps.is_empty()).then_some(self.failed.is_empty())
    }

    /// The pods that were on nodes when it gave these up.
    pub fn left(&self) -> &[Left] {
        &self.left
    }

    /// True if it gave nodes up because the time was over, and none for another reason.
    pub fn has_only_timed_out(&self) -> bool {
        let has_left = |node: &Name| self.left.iter().any(|left| left.node == node.name);
        !self.failed.is_empty() && self.failed.iter().all(|(node, _)| has_left(node))
    }

    fn cordon(&mut self, tables: &Tables) {
        for name in &self.waiting {
            let node = tables.get::<Node>(name);
            let is_cordoned = node.is_some_and(|node| node.spec.unschedulable == Some(true));
            if is_cordoned {
                let line = format!("node/{} already cordoned", name.name);
                self.steps.push_back(DrainAction::Print(line));
            } else {
                self.steps.push_back(DrainAction::Cordon(name.clone()));
                self.steps
                    .push_back(DrainAction::Print(format!("node/{} cordoned", name.name)));
            }
        }
    }

    fn begin_node(&mut self, now: Instant, tables: &Tables, dice: &mut Prng) {
        let Some(name) = self.waiting.pop_front() else {
            self.finish();
            return;
        };
        let sorted = filter::sort(&name.name, &self.options, tables);
        let mut node = NodeDrain {
            end: self.options.timeout.map(|timeout| now + timeout),
            node: name,
            pods: BTreeMap::new(),
            left: Vec::new(),
            errors: sorted.errors,
        };
        if !node.errors.is_empty() {
            self.give_up(&node);
            return;
        }
        if !sorted.warnings.is_empty() {
            self.steps.push_back(DrainAction::Complain(format!(
                "WARNING: {}",
                sorted.warnings
            )));
        }
        let mut pods = sorted.pods;
        dice.shuffle(&mut pods);
        for pod in pods {
            let leaving = Leaving {
                uid: Arc::clone(&pod.meta.uid),
                state: State::Asked,
                refusal: None,
            };
            node.ask(&pod.meta.name, &leaving.uid, &self.options, &mut self.steps);
            node.pods.insert(pod.meta.name.clone(), leaving);
        }
        self.node = Some(node);
    }

    fn end_node(&mut self, mut node: NodeDrain, tables: &Tables) {
        self.left.append(&mut node.left);
        if node.errors.is_empty() {
            self.steps.push_back(DrainAction::Print(format!(
                "node/{} drained",
                node.node.name
            )));
            return;
        }
        let pending = filter::sort(&node.node.name, &self.options, tables).pods;
        if !pending.is_empty() {
            let line = format!(
                "There are pending pods in node {:?} when an error occurred: {}",
                node.node.name,
                text::aggregate(&node.errors)
            );
            self.steps.push_back(DrainAction::Complain(line));
            for pod in pending {
                self.steps
                    .push_back(DrainAction::Complain(format!("pod/{}", pod.meta.name.name)));
            }
        }
        self.give_up(&node);
    }

    /// The node stays cordoned; the drain continues with the next one.
    fn give_up(&mut self, node: &NodeDrain) {
        let error = text::aggregate(&node.errors);
        let name = &node.node.name;
        let line = format!(
            "error: unable to drain node {name:?} due to error: {error}, continuing command..."
        );
        self.steps.push_back(DrainAction::Complain(line));
        self.failed.push((node.node.clone(), error));
    }

    fn finish(&mut self) {
        self.is_done = true;
        if self.failed.is_empty() {
            return;
        }
        let line = "There are pending nodes to be drained:".to_owned();
        self.steps.push_back(DrainAction::Complain(line));
        for (node, _) in &self.failed {
            self.steps
                .push_back(DrainAction::Complain(format!(" {}", node.name)));
        }
        for (_, error) in &self.failed {
            self.steps
                .push_back(DrainAction::Complain(format!("error: {error}")));
        }
    }
}

impl NodeDrain {
    /// Retries evictions, checks accepted ones, and gives up when the timeout is over.
    fn advance(
        &mut self,
        now: Instant,
        tables: &Tables,
        options: &DrainOptions,
        steps: &mut VecDeque<DrainAction>,
    ) {
        let is_over = self.end.is_some_and(|end| now >= end);
        let due: Vec<Name> = self
            .pods
            .iter()
            .filter(|(_, pod)| matches!(pod.state, State::Try(at) | State::Gone(at) if at <= now))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            let Some(pod) = self.pods.get_mut(&name) else {
                continue;
            };
            match pod.state {
                State::Try(_) if is_over => {
                    self.leave(&name);
                    self.errors.push(timed_out("evicting", &name, options));
                }
                State::Try(_) => {
                    pod.state = State::Asked;
                    let uid = Arc::clone(&pod.uid);
                    self.ask(&name, &uid, options, steps);
                }
                State::Gone(_) => self.look_for(&name, is_over, now, tables, options, steps),
                State::Asked => {}
            }
        }
    }

    fn ask(
        &self,
        pod: &Name,
        uid: &Arc<str>,
        options: &DrainOptions,
        steps: &mut VecDeque<DrainAction>,
    ) {
        let key = Key {
            kind: Kind::Pod,
            name: pod.clone(),
        };
        let delete = DeleteOptions {
            grace: options.grace,
            ..DeleteOptions::of_uid(uid)
        };
        if options.disable_eviction {
            steps.push_back(DrainAction::Delete(key, delete));
        } else {
            steps.push_back(DrainAction::Print(format!("evicting pod {pod}")));
            steps.push_back(DrainAction::Evict(key, delete));
        }
    }

    /// Gives a pod up.
    fn leave(&mut self, name: &Name) {
        if let Some(pod) = self.pods.remove(name) {
            self.left.push(Left {
                node: Arc::clone(&self.node.name),
                pod: name.clone(),
                refusal: pod.refusal,
            });
        }
    }

    /// Checks an accepted pod: it is gone, replaced by another one of its name, or still there.
    fn look_for(
        &mut self,
        name: &Name,
        is_over: bool,
        now: Instant,
        tables: &Tables,
        options: &DrainOptions,
        steps: &mut VecDeque<DrainAction>,
    ) {
        let Some(pod) = self.pods.get_mut(name) else {
            return;
        };
        let is_there = tables
            .get::<Pod>(name)
            .is_some_and(|known| known.meta.uid == pod.uid);
        if is_there && !is_over {
            pod.state = State::Gone(now + POLL);
            return;
        }
        if is_there {
            self.leave(name);
            self.errors.push(timed_out("waiting for", name, options));
            return;
        }
        self.pods.remove(name);
        let verb = if options.disable_eviction {
            "deleted"
        } else {
            "evicted"
        };
        steps.push_back(DrainAction::Print(format!("pod/{} {verb}", name.name)));
    }
}

fn timed_out(verb: &str, pod: &Name, options: &DrainOptions) -> String {
    let limit = text::duration(options.timeout.unwrap_or_default());
    let (name, namespace) = (&pod.name, &pod.namespace);
    if verb == "evicting" {
        return format!(
            "error when evicting pods/{name:?} -n {namespace:?}: global timeout reached: {limit}"
        );
    }
    format!(
        "error when waiting for pod {name:?} in namespace {namespace:?} to terminate: global timeout reached: {limit}"
    )
}
