//! The cluster autoscaler: adds nodes for pods that fit nowhere, and removes nodes that are not needed.
//!
//! It uses strew's own filters, as the real one uses kube-scheduler's. Reading order: this file (groups, the scan),
//! `view` (its input), `scale_up`, `scale_down`.
//!
//! Source: spec/controllers §11.

mod scale_down;
mod scale_up;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Object};
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use scale_down::Removing;
use view::View;

use crate::feed::Feed;
use crate::scheduler::Blueprint;
use crate::timing::Between;

/// A group of equal nodes, `NAME-0`, `NAME-1`, ….
#[derive(Debug, Clone, PartialEq)]
pub struct NodeGroup {
    /// The prefix of its nodes' names.
    pub name: Arc<str>,
    /// The smallest size.
    pub min: u32,
    /// The largest size.
    pub max: u32,
    /// The time until a new node is ready; `None`: as for all nodes.
    pub boot: Option<Between>,
    /// The template of its nodes.
    pub template: core::Node,
}

impl NodeGroup {
    /// The node with this number.
    pub fn node(&self, number: u32) -> core::Node {
        let name = format!("{}-{number}", self.name);
        let mut node = self.template.clone();
        let labels = node.metadata.labels.get_or_insert_default();
        labels.insert("kubernetes.io/hostname".to_owned(), name.clone());
        node.metadata.name = Some(name);
        node
    }

    /// The number of a node of this group; `None` for other nodes.
    fn number_of(&self, node: &str) -> Option<u32> {
        let rest = node.strip_prefix(&*self.name)?.strip_prefix('-')?;
        rest.parse().ok()
    }
}

/// When and how groups grow and shrink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoscalerSettings {
    /// `--scan-interval`
    pub scan_every: Span,
    /// `--scale-down-unneeded-time`
    pub unneeded: Span,
    /// `--scale-down-delay-after-add`
    pub delay_after_add: Span,
    /// `--scale-down-delay-after-failure`
    pub delay_after_failure: Span,
    /// `--expander`
    pub expander: Expander,
    /// False: groups never shrink.
    pub scales_down: bool,
}

/// Which of several groups grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expander {
    /// The group that leaves the least CPU and memory idle.
    #[default]
    LeastWaste,
    /// The group that takes the most pods.
    MostPods,
    /// A random group.
    Random,
}

impl Default for AutoscalerSettings {
    /// Source: spec/controllers §12.
    fn default() -> Self {
        Self {
            scan_every: Span::from_secs(10),
            unneeded: Span::from_secs(600),
            delay_after_add: Span::from_secs(600),
            delay_after_failure: Span::from_secs(180),
            expander: Expander::LeastWaste,
            scales_down: true,
        }
    }
}

/// A node that was requested and does not exist yet.
#[derive(Debug, Clone)]
struct Ordered {
    group: usize,
    number: u32,
    ready_at: Instant,
}

/// The autoscaler.
pub struct Autoscaler {
    settings: AutoscalerSettings,
    groups: Vec<NodeGroup>,
    boot: Between,
    blueprint: Blueprint,
    feed: Feed,
    seen: Tables,
    next_scan: Instant,
    ordered: Vec<Ordered>,
    last_growth: Option<Instant>,
    last_failure: Option<Instant>,
    /// Since when each unneeded node has been unneeded.
    unneeded: BTreeMap<Arc<str>, Instant>,
    removing: Vec<Removing>,
}

impl Autoscaler {
    /// An autoscaler that lists the store first; the time of its first scan is drawn from `dice`.
    pub fn new(
        settings: AutoscalerSettings,
        groups: Vec<NodeGroup>,
        boot: Between,
        blueprint: Blueprint,
        server: &Server,
        now: Instant,
        dice: &mut Prng,
    ) -> Self {
        let phase = dice.between(0, settings.scan_every.0.saturating_sub(1));
        Self {
            next_scan: now + Span(phase),
            settings,
            groups,
            boot,
            blueprint,
            feed: Feed::new(server),
            seen: Tables::default(),
            ordered: Vec::new(),
            last_growth: None,
            last_failure: None,
            unneeded: BTreeMap::new(),
            removing: Vec::new(),
        }
    }

    /// The next node of each group that may grow.
    pub(crate) fn next_nodes(&self) -> Vec<core::Node> {
        let groups = 0..self.groups.len();
        let open = groups.filter(|&group| self.size(group) < self.groups[group].max);
        let nodes = open.filter_map(|group| {
            let number = self.free_numbers(group, 1).first().copied()?;
            Some(self.groups[group].node(number))
        });
        nodes.collect()
    }

    /// The time of the next scan, or of the next requested node's arrival.
    pub fn next_wake(&self) -> Option<Instant> {
        let arrivals = self.ordered.iter().map(|ordered| ordered.ready_at);
        arrivals.chain([self.next_scan]).min()
    }

    /// Does what is due. Returns true if it did anything.
    pub(crate) fn step(&mut self, now: Instant, server: &mut Server, dice: &mut Prng) -> bool {
        let mut told = false;
        while let Some(change) = self.feed.next(now, server, &self.seen, None, dice) {
            told = true;
            match change.new {
                Some(object) => self.seen.set(object),
                None => self.seen.remove(&change.key),
            };
        }
        if let Some(place) = self
            .ordered
            .iter()
            .position(|ordered| ordered.ready_at <= now)
        {
            let ordered = self.ordered.remove(place);
            self.arrive(now, &ordered, server);
            return true;
        }
        if now < self.next_scan {
            return told;
        }
        self.next_scan = now + self.settings.scan_every;
        self.scan(now, server, dice);
        true
    }

    /// Registers a requested node.
    fn arrive(&mut self, now: Instant, ordered: &Ordered, server: &mut Server) {
        let node = self.groups[ordered.group].node(ordered.number);
        let created = server.create(now, Object::of_wire(node.into()));
        if created.is_err() {
            // A node of this name exists already: the request fails.
            self.last_failure = Some(now);
        }
    }

    fn scan(&mut self, now: Instant, server: &mut Server, dice: &mut Prng) {
        let waiting = view::waiting(&self.seen);
        if !waiting.is_empty() {
            let view = View::new(&self.seen, &self.blueprint);
            self.scale_up(now, view, &waiting, dice);
        }
        if self.settings.scales_down {
            self.go_on_removing(now, server);
            let recently = |at: Option<Instant>, span: Span| at.is_some_and(|at| now < at + span);
            let rests = recently(self.last_growth, self.settings.delay_after_add)
                || recently(self.last_failure, self.settings.delay_after_failure)
                || !self.ordered.is_empty();
            self.look_for_unneeded(now);
            if !rests && self.removing.is_empty() {
                self.begin_removing(now, server);
            }
        }
    }

    /// The existing nodes of a group.
    fn members(&self, group: usize) -> Vec<&Arc<Node>> {
        let group = &self.groups[group];
        let nodes = self.seen.of::<Node>().iter();
        nodes
            .filter(|node| group.number_of(&node.meta.name.name).is_some())
            .collect()
    }

    /// The nodes of a group, requested ones included.
    fn size(&self, group: usize) -> u32 {
        let n_ordered = self
            .ordered
            .iter()
            .filter(|ordered| ordered.group == group)
            .count();
        u32::try_from(self.members(group).len() + n_ordered).unwrap_or(u32::MAX)
    }

    /// The next unused numbers of a group's nodes.
    fn free_numbers(&self, group: usize, n: u32) -> Vec<u32> {
        let ordered = self.ordered.iter().filter(|ordered| ordered.group == group);
        let ordered: Vec<u32> = ordered.map(|ordered| ordered.number).collect();
        let name = |number: u32| Name::new("", format!("{}-{number}", self.groups[group].name));
        let is_free = |number: &u32| {
            !ordered.contains(number) && self.seen.get::<Node>(&name(*number)).is_none()
        };
        (0..u32::MAX).filter(is_free).take(n as usize).collect()
    }
}
