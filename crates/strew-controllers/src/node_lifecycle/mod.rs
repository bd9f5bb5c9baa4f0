//! Node lifecycle: detects nodes whose kubelet is silent, and taints them.
//!
//! A pass every 5 s checks the nodes that may be unhealthy. Nodes that are ready and renew their Leases cost nothing, and
//! neither does a lost node until something changes: a large zone is lost for hours, thousands of passes long.
//! The pass is in `pass`, zones and their rates in `zone`, the taints in `taint`.
//!
//! Source: spec/controllers §7.1–7.4; upstream `pkg/controller/nodelifecycle`, v1.36.

mod condition;
mod pass;
mod settings;
mod taint;
#[cfg(test)]
mod tests;
mod zone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_model::Prng;
use strew_model::time::{Instant, Span};

pub(crate) use condition::ready;
pub use settings::Settings;
use strew_apiserver::object::pod::READY;
use strew_apiserver::object::{Name, Node, Pod, Stored, Truth};
use strew_apiserver::{ApiError, Tables};
use zone::Zones;

use crate::api::{Api, Event};
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::workers;
use crate::write::{self, Part};

/// The source of its events.
const SOURCE: &str = "node-controller";

/// The interval of checks of the zones' queues.
const TICK: Span = Span::from_millis(100);

/// The node lifecycle controller.
#[derive(Debug)]
pub struct NodeLifecycle {
    settings: Settings,
    /// When the next pass is due.
    next_pass: Instant,
    /// The time of one tick; all ticks are multiples of 100 ms apart.
    tick: Instant,
    nodes: BTreeMap<Arc<str>, Health>,
    /// Nodes that no pass has seen.
    new: BTreeSet<Arc<str>>,
    /// Nodes deleted since the last pass.
    gone: Vec<Arc<Node>>,
    /// Nodes that a pass must check: not ready, tainted, or in a queue.
    suspects: BTreeMap<Arc<str>, Look>,
    /// Nodes on which some pods could not be marked.
    retries: BTreeSet<Arc<str>>,
    zones: Zones,
}

/// What a pass does with a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It looks at the node.
    Due,
    /// Nothing would come of it: a pass has looked at the lost node, and nothing has happened to it since.
    Settled,
}

/// The state of a node beside the cache.
#[derive(Debug, Clone, Copy)]
struct Health {
    /// When its kubelet last wrote its status.
    heard: Instant,
}

impl NodeLifecycle {
    /// A controller that has seen no node.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            next_pass: Instant::default(),
            tick: Instant::default(),
            nodes: BTreeMap::new(),
            new: BTreeSet::new(),
            gone: Vec::new(),
            suspects: BTreeMap::new(),
            retries: BTreeSet::new(),
            zones: Zones::default(),
        }
    }

    fn observe_node(
        &mut self,
        now: Instant,
        old: Option<&Arc<Node>>,
        new: Option<&Arc<Node>>,
        queue: &mut Queue,
    ) {
        self.zones
            .recount(&self.settings, old.map(|n| &**n), new.map(|n| &**n));
        let Some(node) = new else {
            self.forget_node(old);
            return;
        };
        let name = &node.meta.name.name;
        let is_same = old.is_some_and(|old| old.meta.uid == node.meta.uid);
        if !is_same {
            self.forget_node(old);
            self.new.insert(Arc::clone(name));
        }
        let heard = |node: &Arc<Node>| condition::heartbeat(&node.status).cloned();
        let had_ready = |node: &Arc<Node>| ready(&node.status).is_some();
        let is_heard =
            old.is_none_or(|old| heard(old) != heard(node) || had_ready(old) != had_ready(node));
        if is_heard || !is_same {
            self.nodes.insert(Arc::clone(name), Health { heard: now });
        }
        let is_suspect =
            || ready(&node.status) != Some(Truth::True) || taint::has_any_execute(&node.spec);
        if self.suspects.contains_key(name) || is_suspect() {
            self.suspects.insert(Arc::clone(name), Look::Due);
        }
        if !taint::schedule_taints_are_right(&node.spec, &node.status) {
            queue.add(&node.meta.name);
        }
    }

    fn forget_node(&mut self, node: Option<&Arc<Node>>) {
        let Some(node) = node else { return };
        let name = &node.meta.name.name;
        self.nodes.remove(name);
        self.suspects.remove(name);
        self.retries.remove(name);
        if !self.new.remove(name) {
            self.gone.push(Arc::clone(node));
        }
    }

    /// Sets the NoSchedule taints for conditions and cordon.
    fn taint_by_condition(&self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(node) = cx.cache.get::<Node>(name) else {
            return Ok(());
        };
        let now = cx.now;
        write::change(cx.api, node, Part::Spec, |node| {
            let is_right = taint::schedule_taints_are_right(&node.spec, &node.status);
            if !is_right {
                taint::set_schedule_taints(Arc::make_mut(&mut node.spec), &node.status, now);
            }
            !is_right
        })?;
        Ok(())
    }

    /// Every 100 ms, each zone's queue hands out nodes while it has tokens.
    fn hand_out(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        for (_, zone) in self.zones.iter_mut() {
            while let Some(node) = zone.hand_out(cx.now) {
                if let Some(look) = self.suspects.get_mut(&node) {
                    *look = Look::Due;
                }
                match taint_no_execute(&node, cx) {
                    Ok(()) => {}
                    Err(error) => {
                        zone.take_back(node);
                        if error == ApiError::Lost {
                            return Err(error);
                        }
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Queues the next tick at which a queue can hand out a node.
    fn wake_tick(&self, now: Instant, queue: &mut Queue) {
        let waiting = self.zones.iter().filter(|(_, zone)| zone.has_queue());
        if let Some(next) = waiting.filter_map(|(_, zone)| zone.bucket.next()).min() {
            let soonest = next.max(now + Span(1));
            let since = soonest.since(self.tick).0;
            let at = self.tick + Span(since.div_ceil(TICK.0) * TICK.0);
            queue.add_at(&tick(), at);
        }
    }
}

/// The queue key of the pass. No node or pod has an empty name.
fn pass() -> Name {
    Name::new("pass", "")
}

/// The queue key of the tick.
fn tick() -> Name {
    Name::new("tick", "")
}

impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn n_workers(&self) -> usize {
        workers::TAINTS
    }

    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        self.next_pass =
            now + Span(dice.between(0, self.settings.monitor_period.0.saturating_sub(1)));
        self.tick = now + Span(dice.between(0, TICK.0 - 1));
        queue.add_at(&pass(), self.next_pass);
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        match change.object() {
            Some(object) if Node::of_object(object).is_some() => {
                let old = change.old.and_then(Node::of_object);
                self.observe_node(now, old, change.new.and_then(Node::of_object), queue);
            }
            _ => {
                if let Some((old, Some(pod))) = change.of::<Pod>()
                    && let Some(node) = &pod.node
                    && old.is_none_or(|old| old.node.is_none())
                    && is_known_not_ready(node, cache)
                {
                    queue.add(&pod.meta.name);
                }
            }
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        if name.name.is_empty() {
            if *name == pass() {
                self.pass(cx)?;
            } else {
                self.hand_out(cx)?;
            }
            self.wake_tick(cx.now, cx.queue);
            return Ok(());
        }
        if name.namespace.is_empty() {
            return self.taint_by_condition(name, cx);
        }
        match cx.cache.get::<Pod>(name) {
            Some(pod)
                if pod
                    .node
                    .as_ref()
                    .is_some_and(|node| is_known_not_ready(node, cx.cache)) =>
            {
                mark_not_ready(pod, cx.api, cx.now)
            }
            _ => Ok(()),
        }
    }
}

fn is_known_not_ready(node: &Arc<str>, cache: &Tables) -> bool {
    let node = cache.get::<Node>(&Name::new("", Arc::clone(node)));
    let ready = node.and_then(|node| ready(&node.status));
    ready.is_some_and(|ready| ready != Truth::True)
}

/// Marks a pod not ready, because its node is not.
fn mark_not_ready(pod: &Arc<Pod>, api: &mut dyn Api, now: Instant) -> Result<(), ApiError> {
    let written = write::change(api, pod, Part::Status, |pod| {
        let Some(known) = pod.status.condition(READY).cloned() else {
            return false;
        };
        pod.status
            .set_condition(READY, Truth::False, &known.reason, &known.message, now)
    })?;
    if let Some(pod) = written {
        let pod = Pod::into_object(pod);
        api.record(Event::warning(
            SOURCE,
            &pod,
            "NodeNotReady",
            "Node is not ready",
        ));
    }
    Ok(())
}

/// Sets the NoExecute taint on a node from a queue, unless it has recovered.
fn taint_no_execute(node: &Arc<str>, cx: &mut Context<'_>) -> Result<(), ApiError> {
    let Some(node) = cx.cache.get::<Node>(&Name::new("", Arc::clone(node))) else {
        return Ok(());
    };
    let now = cx.now;
    write::change(cx.api, node, Part::Spec, |node| match ready(&node.status) {
        None | Some(Truth::True) => false,
        Some(not_ready) => {
            let (add, remove) = taint::execute_keys(not_ready);
            taint::swap_execute(Arc::make_mut(&mut node.spec), add, remove, now)
        }
    })?;
    Ok(())
}
