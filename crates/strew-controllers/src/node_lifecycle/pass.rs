//! The pass over the nodes, every 5 s.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::object::{Name, Node, Stored, Truth};
use strew_model::time::Instant;

use super::zone::{self, ZoneKey, ZoneState, zone_of};
use super::{Look, NodeLifecycle, SOURCE, condition, mark_not_ready, pass, ready, taint};
use crate::api::{Api, Event};
use crate::controller::Context;
use crate::write::{self, Part};

/// The probability, in quarters, that a queue hands out nodes once between two steps of one pass: after nodes were put
/// into it and before its rate is set. So "often one node, rarely none" slips through (spec/controllers §7.4, quirk).
const SLIPS_THROUGH: u64 = 3;

/// The findings of a pass.
#[derive(Default)]
struct Findings {
    /// Nodes for the queues of their zones; `None`: a settled one, which has its place.
    lost: Vec<Option<Arc<Node>>>,
    /// Nodes that this pass found silent and that the cache has as ready, by zone.
    n_marked: BTreeMap<ZoneKey, usize>,
}

impl NodeLifecycle {
    pub(super) fn pass(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        self.greet(cx)?;
        let mut findings = Findings::default();
        for candidate in self.candidates(cx) {
            let Some(name) = candidate else {
                findings.lost.push(None);
                continue;
            };
            if let Some(node) = cx.cache.get::<Node>(&Name::new("", name)) {
                self.look_at(node, &mut findings, cx)?;
            }
        }
        cx.dice.shuffle(&mut findings.lost);
        for node in findings.lost.into_iter().flatten() {
            self.queue_up(&node);
        }
        self.judge_zones(&findings.n_marked, cx)?;
        while self.next_pass <= cx.now {
            self.next_pass = self.next_pass + self.settings.monitor_period;
        }
        cx.queue.add_at(&pass(), self.next_pass);
        Ok(())
    }

    /// Handles new and deleted nodes. A restarted controller treats every node as new, and removes its NoExecute
    /// taints.
    fn greet(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        for node in std::mem::take(&mut self.gone) {
            let note = node_event(
                &node,
                &format!("Removing Node {} from Controller", node.meta.name.name),
            );
            let node = Node::into_object(node);
            cx.api
                .record(Event::normal(SOURCE, &node, "RemovingNode", note));
        }
        while let Some(name) = self.new.first().cloned() {
            if let Some(node) = cx.cache.get::<Node>(&Name::new("", Arc::clone(&name))) {
                clear_execute(node, cx.api)?;
                self.zones.of(zone_of(node), &self.settings).remove(&name);
                let note = node_event(node, &format!("Registered Node {name} in Controller"));
                let object = Node::into_object(Arc::clone(node));
                cx.api
                    .record(Event::normal(SOURCE, &object, "RegisteredNode", note));
            }
            self.new.remove(&name);
        }
        Ok(())
    }

    /// The nodes that the pass checks, in the order of their names; `None` for a settled one. All others are ready,
    /// without taints of this controller, and renew their Leases.
    pub(super) fn candidates(&self, cx: &Context<'_>) -> Vec<Option<Arc<str>>> {
        let silent = cx.api.silent_nodes();
        let others = silent.unwrap_or_else(|| self.nodes.keys().cloned().collect());
        let mut others = others.into_iter().peekable();
        let mut candidates = Vec::with_capacity(self.suspects.len());
        for (name, look) in &self.suspects {
            while let Some(before) = others.next_if(|other| other < name) {
                candidates.push(Some(before));
            }
            others.next_if_eq(name);
            candidates.push(match look {
                Look::Due => Some(Arc::clone(name)),
                Look::Settled => None,
            });
        }
        candidates.extend(others.map(Some));
        candidates
    }

    /// Queues a lost node in its zone, if it is not there yet. The next look at it would change nothing if it is Unknown
    /// already, and no pod on it is left to mark: it waits in the queue, or was handed out and has its taint.
    fn queue_up(&mut self, node: &Arc<Node>) {
        let name = &node.meta.name.name;
        self.zones.of(zone_of(node), &self.settings).add(name);
        let is_settled = condition::is_unknown(&node.status) && !self.retries.contains(name);
        if let Some(look) = self.suspects.get_mut(name).filter(|_| is_settled) {
            *look = Look::Settled;
        }
    }

    fn look_at(
        &mut self,
        node: &Arc<Node>,
        findings: &mut Findings,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let observed = ready(&node.status);
        let mut current = observed;
        if self.is_silent(node, cx) {
            let marked = mark_unknown(node, cx.api, cx.now);
            match marked {
                Ok(true) if observed == Some(Truth::True) && zone::counts(node) => {
                    *findings.n_marked.entry(zone_of(node)).or_default() += 1;
                }
                Ok(_) => {}
                Err(ApiError::Lost) => return Err(ApiError::Lost),
                // The next pass retries; the pods are left alone until then.
                Err(_) => return Ok(()),
            }
            if matches!(marked, Ok(true)) {
                current = Some(Truth::Unknown);
            }
        }
        let Some(current) = current else {
            return Ok(());
        };
        self.taint_or_free(node, observed.unwrap_or_default(), findings, cx)?;
        self.mark_pods(node, observed, current, cx)
    }

    /// True if the grace period has passed since the pass that last saw a heartbeat. Upstream asks for more than the
    /// period, but its passes take time, so that the tenth pass after a heartbeat is always a little later than 50 s.
    fn is_silent(&self, node: &Node, cx: &Context<'_>) -> bool {
        let name = &node.meta.name.name;
        let known = self.nodes.get(name);
        let heard = known.map_or(cx.now, |health| health.heard);
        let renewed = cx.api.heartbeat(name);
        // Without the condition Ready, only the Lease and the node's creation count.
        let (probe, grace) = match ready(&node.status) {
            None => {
                let renewed = renewed.map(|at| self.pass_after(at, cx.now));
                (
                    node.meta.created.max(renewed.unwrap_or_default()),
                    self.settings.startup_grace,
                )
            }
            Some(_) => {
                let last = heard.max(renewed.unwrap_or_default());
                (self.pass_after(last, cx.now), self.settings.grace)
            }
        };
        cx.now >= probe + grace
    }

    /// The first pass at or after a moment; the present one is at `now`.
    fn pass_after(&self, moment: Instant, now: Instant) -> Instant {
        let period = self.settings.monitor_period.0.max(1);
        let n_passes = now.since(moment).0 / period;
        Instant(now.0.saturating_sub(n_passes * period))
    }

    /// Puts a lost node into the queue of its zone, and removes the NoExecute taints of a ready one.
    fn taint_or_free(
        &mut self,
        node: &Arc<Node>,
        observed: Truth,
        findings: &mut Findings,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let name = &node.meta.name.name;
        let zone = self.zones.of(zone_of(node), &self.settings);
        if observed == Truth::True {
            zone.remove(name);
            if clear_execute(node, cx.api)? {
                self.suspects.remove(name);
            }
            return Ok(());
        }
        let (key, opposite) = taint::execute_keys(observed);
        if taint::has_execute(&node.spec, opposite) {
            let swap = |node: &mut Node| {
                taint::swap_execute(Arc::make_mut(&mut node.spec), key, opposite, cx.now)
            };
            return unless_lost(write::change(cx.api, node, Part::Spec, swap)).map(drop);
        }
        if !node
            .spec
            .taints
            .iter()
            .flatten()
            .any(|taint| taint.key == key)
        {
            zone.let_go(name);
        }
        findings.lost.push(Some(Arc::clone(node)));
        Ok(())
    }

    /// Marks the pods of a node not ready that has just become not ready.
    fn mark_pods(
        &mut self,
        node: &Arc<Node>,
        observed: Option<Truth>,
        current: Truth,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let name = &node.meta.name.name;
        let has_turned = current != Truth::True && observed == Some(Truth::True);
        let is_retry = self.retries.contains(name) && observed != Some(Truth::True);
        if has_turned {
            let note = format!("Node {name} status is now: NodeNotReady");
            let object = Node::into_object(Arc::clone(node));
            cx.api
                .record(Event::normal(SOURCE, &object, "NodeNotReady", note));
        }
        let mut is_done = true;
        if has_turned || is_retry {
            for pod in cx.cache.pods_on(name) {
                let marked = mark_not_ready(pod, cx.api, cx.now);
                is_done &= marked.is_ok();
                unless_lost(marked)?;
            }
        }
        if is_done {
            self.retries.remove(name);
        } else {
            self.retries.insert(Arc::clone(name));
        }
        Ok(())
    }

    /// Computes the states of the zones, and sets the rates of their queues.
    fn judge_zones(
        &mut self,
        n_marked: &BTreeMap<ZoneKey, usize>,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let mut states = BTreeMap::new();
        let (mut all_are_full, mut all_were_full) = (true, true);
        for (key, zone) in self.zones.iter_mut() {
            if zone.n_nodes == 0 {
                zone.state = None;
                continue;
            }
            let n_not_ready = zone.n_not_ready + n_marked.get(key).copied().unwrap_or(0);
            let state = zone::state(&self.settings, zone.n_nodes, n_not_ready);
            all_are_full &= state == ZoneState::FullDisruption;
            all_were_full &= zone.state == Some(ZoneState::FullDisruption);
            states.insert(key.clone(), state);
        }
        if states.is_empty() || (all_are_full && all_were_full) {
            return Ok(());
        }
        let rate_of = |zone: &zone::Zone, state| match all_are_full {
            true => None,
            false => zone::interval(&self.settings, state, zone.n_nodes),
        };
        let stops = |(key, zone): (&ZoneKey, &zone::Zone)| {
            let state = states.get(key);
            zone.has_queue()
                && zone.bucket.interval().is_some()
                && state.is_some_and(|state| rate_of(zone, *state).is_none())
        };
        if self.zones.iter().any(stops) && cx.dice.chance(SLIPS_THROUGH, 4) {
            self.hand_out(cx)?;
        }
        for (key, zone) in self.zones.iter_mut() {
            let Some(state) = states.get(key).copied() else {
                continue;
            };
            if all_are_full {
                zone.bucket.set_interval(None, cx.now);
            } else if all_were_full || zone.state != Some(state) {
                let interval = zone::interval(&self.settings, state, zone.n_nodes);
                zone.bucket.set_interval(interval, cx.now);
            }
            zone.state = Some(state);
        }
        if all_are_full {
            self.enter_master_disruption(cx)?;
        } else if all_were_full {
            for health in self.nodes.values_mut() {
                health.heard = cx.now;
            }
        }
        Ok(())
    }

    /// All nodes are silent: the control plane is more likely cut off than all nodes are lost. Taints from this same
    /// pass stay, since the cache does not have them yet.
    fn enter_master_disruption(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        for (name, look) in &mut self.suspects {
            *look = Look::Due;
            if let Some(node) = cx.cache.get::<Node>(&Name::new("", Arc::clone(name))) {
                self.zones.of(zone_of(node), &self.settings).remove(name);
                clear_execute(node, cx.api)?;
            }
        }
        Ok(())
    }
}

fn node_event(node: &Node, event: &str) -> String {
    format!("Node {} event: {event}", node.meta.name.name)
}

/// A refused write is retried in the next pass; only a lost answer ends this one.
fn unless_lost<T>(result: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ApiError::Lost) => Err(ApiError::Lost),
        Err(_) => Ok(None),
    }
}

/// Removes the NoExecute taints. Returns false if one is left.
fn clear_execute(node: &Arc<Node>, api: &mut dyn Api) -> Result<bool, ApiError> {
    let clear = |node: &mut Node| {
        taint::has_any_execute(&node.spec) && taint::clear_execute(Arc::make_mut(&mut node.spec))
    };
    Ok(unless_lost(write::change(api, node, Part::Spec, clear))?.is_some())
}

/// Sets its conditions to Unknown, unless the kubelet has reported meanwhile. Returns true if they are Unknown now.
fn mark_unknown(node: &Arc<Node>, api: &mut dyn Api, now: Instant) -> Result<bool, ApiError> {
    let mut is_heard = false;
    write::change(api, node, Part::Status, |fresh| {
        is_heard = condition::heartbeat(&fresh.status) != condition::heartbeat(&node.status);
        !is_heard && condition::mark_unknown(&mut fresh.status, fresh.meta.created, now)
    })?;
    Ok(!is_heard)
}
