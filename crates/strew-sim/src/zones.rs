//! The webhook of budgets by zone in the simulated cluster: its replicas, and the reviews of evictions.
//!
//! It starts with the first PodDisruptionBudget that has the annotation. A review is answered within the instant: the
//! write of a claim passes on the replica's own clock. Without an answer in time the plain budget alone decides
//! (`failurePolicy: Ignore`).
//!
//! Source: docs/budgets.md.

use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::eviction::budgets_of;
use strew_apiserver::object::pod::DISRUPTION_TARGET;
use strew_apiserver::object::{Budget, Node, Object, Pod, Truth};
use strew_apiserver::server::{Change, Server};
use strew_apiserver::{Selection, Tables, eviction};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::Event;
use strew_runtime::zones::{Eviction, ZoneMachine, watches};
use strew_zones::{Answer, RETRY_AFTER_S, UNREVIEWED, ZONE_AWARE};

use crate::auditor::Rule;
use crate::component::{Component, Surroundings};
use crate::fault::{Crash, Hits};
use crate::network::Sender;
use crate::replicas::Replicas;
use crate::simulation::Simulation;
use crate::slot::Slot;
use crate::workloadspread::Webhooks;

/// How long the API server waits for an answer, as registered.
const TIMEOUT: Span = Span::from_secs(3);

/// The name of the webhook, as registered.
const NAME: &str = "evictions.webhook.strew.dev";

/// All replicas.
pub(crate) struct ZoneWebhook {
    replicas: Replicas<Component<ZoneMachine>>,
    /// True once an eviction was left to the plain budget: then nothing is promised any more.
    is_open: bool,
    /// Broken promises.
    found: Vec<(Rule, String, String)>,
}

/// A step of a replica.
fn step(replica: &mut Component<ZoneMachine>, around: &mut Surroundings<'_>) -> bool {
    replica.step(around, &mut ())
}

impl ZoneWebhook {
    /// Starts this many replicas, which list the store first.
    fn new(n_replicas: usize, mut rng: Prng, now: Instant, server: &Server) -> Self {
        let order = Prng::new(rng.next_u64());
        let mut webhook = Self {
            replicas: Replicas::new(rng, order),
            is_open: false,
            found: Vec::new(),
        };
        for _ in 0..n_replicas {
            let replica = webhook.replica(now, server);
            webhook.replicas.slots.push(Slot::new(replica));
        }
        webhook
    }

    fn replica(&mut self, now: Instant, server: &Server) -> Component<ZoneMachine> {
        let seed = self.replicas.rng.next_u64();
        let machine = ZoneMachine::new();
        let mut replica = Component::new(machine, watches(), Sender::Zones, server, now, seed);
        // The watches that the first ones begin.
        replica.list_all(now, server);
        replica
    }

    /// The next time at which it has something to do without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let works = self.replicas.alive().filter_map(Component::next_wake);
        let restarts = self.replicas.slots.iter().filter_map(|slot| slot.restart);
        works.chain(restarts).min()
    }

    /// Restarts replicas that are due.
    fn pass_time(&mut self, now: Instant, server: &Server) {
        for index in self.replicas.due(now) {
            self.replicas.slots[index] = Slot::new(self.replica(now, server));
        }
    }

    /// Lets replicas take in watch events and act. Returns false if there was nothing to do.
    fn step(&mut self, now: Instant, server: &mut Server) -> bool {
        let mut acted = false;
        for index in 0..self.replicas.slots.len() {
            acted |= self.replicas.step(index, (now, now), server, step);
        }
        acted
    }

    /// Asks a live replica whether a pod may be evicted.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Pod,
    ) -> Result<(), ApiError> {
        if UNREVIEWED.contains(&&*pod.meta.name.namespace) {
            return Ok(());
        }
        match self.answer(now, server, pod) {
            Some(Answer::Refused(text)) => {
                self.replicas.hit("eviction refused by zone");
                Err(denied(&text))
            }
            Some(Answer::Granted) => {
                self.replicas.hit("eviction granted by zone");
                self.judge(server.tables(), pod);
                Ok(())
            }
            Some(Answer::Pass) => Ok(()),
            Some(Answer::Open) | None => {
                self.replicas.hit("eviction without a claim");
                self.is_open = true;
                Ok(())
            }
        }
    }

    /// The answer of a replica that is drawn; `None` if none comes in time.
    fn answer(&mut self, now: Instant, server: &mut Server, pod: &Pod) -> Option<Answer> {
        let index = self.replicas.draw()?;
        if self.replicas.draw_loss() {
            return None;
        }
        let id = self.replicas.new_call();
        let call = Eviction {
            namespace: (&*pod.meta.name.namespace).into(),
            pod: (&*pod.meta.name.name).into(),
            is_dry_run: false,
        };
        // What the watches have brought is taken in first.
        while self.replicas.step(index, (now, now), server, step) {}
        let replica = self.replicas.slots[index].alive.as_mut()?;
        replica.handle(now, Event::Asked(id, Box::new(call)));
        let answer = self.replicas.wait(index, id, (now, TIMEOUT), server, step);
        answer.ok()
    }

    /// Notes a promise that is broken: while pods of one zone terminate because they were evicted, none of another zone
    /// is evicted.
    fn judge(&mut self, tables: &Tables, pod: &Pod) {
        if self.is_open {
            return;
        }
        let budgets = budgets_of(pod, tables);
        let Some((budget, key)) = budgets
            .iter()
            .find_map(|budget| Some((budget, budget.meta.annotation(ZONE_AWARE)?)))
        else {
            return;
        };
        let own = domain(pod, key, tables);
        for other in pods_of(budget, tables) {
            let theirs = domain(&other, key, tables);
            if is_leaving(&other) && theirs != own {
                let text = format!(
                    "{} of {own:?} may be evicted while {} of {theirs:?} is being evicted",
                    pod.meta.name.name, other.meta.name.name
                );
                self.found
                    .push((Rule::ZoneBudget, budget.meta.name.to_string(), text));
                return;
            }
        }
    }
}

/// The pods that a budget selects.
fn pods_of(budget: &Budget, tables: &Tables) -> Vec<Arc<Pod>> {
    let selection = budget.spec.selector.as_ref().and_then(Selection::of);
    let pods = tables.of::<Pod>().in_namespace(&budget.meta.name.namespace);
    let selected = |pod: &&Arc<Pod>| {
        let selection = selection.as_ref();
        selection.is_some_and(|selection| selection.matches(&pod.meta.labels))
    };
    pods.filter(selected).cloned().collect()
}

fn domain(pod: &Pod, key: &str, tables: &Tables) -> Option<String> {
    let nodes = tables.of::<Node>();
    let mut nodes = nodes.iter();
    let node = pod.node.as_deref()?;
    let node = nodes.find(|known| *known.meta.name.name == *node)?;
    node.meta.label(key).map(str::to_owned)
}

/// True if a pod that was ready is being evicted.
fn is_leaving(pod: &Pod) -> bool {
    let mut conditions = pod.status.conditions.iter();
    let is_target = conditions.any(|condition| {
        &*condition.kind == DISRUPTION_TARGET
            && condition.status == Truth::True
            && &*condition.reason == eviction::REASON
    });
    pod.meta.is_terminating() && is_target && pod.is_ready()
}

fn denied(text: &str) -> ApiError {
    ApiError::TooManyRequests {
        message: format!("admission webhook {NAME:?} denied the request: {text}").into(),
        cause: "".into(),
        retry_after: Some(Span::from_secs(RETRY_AFTER_S.into())),
    }
}

/// True if a budget with the annotation was written.
fn asks(change: &Change) -> bool {
    match &change.new {
        Some(Object::Budget(budget)) => budget.meta.annotation(ZONE_AWARE).is_some(),
        _ => false,
    }
}

fn zone_webhook(server: &Server) -> Option<&ZoneWebhook> {
    server.webhooks::<Webhooks>()?.zones.as_ref()
}

fn with_zones<T>(
    server: &mut Server,
    act: impl FnOnce(&mut ZoneWebhook, &mut Server) -> T,
) -> Option<T> {
    let done = server.with_webhooks(|webhooks: &mut Webhooks, server| {
        let zones = webhooks.zones.as_mut()?;
        Some(act(zones, server))
    });
    done.flatten()
}

impl Simulation {
    /// Starts the webhook with the first budget that asks for it, and its replicas again after a crash.
    pub(crate) fn begin_zoning(&mut self) {
        if self.annotated.comes(&self.server, asks) {
            let dice = Prng::new(self.dice.zones.next_u64());
            let zones = ZoneWebhook::new(self.n_webhooks, dice, self.now, &self.server);
            if let Some(webhooks) = self.server.webhooks_mut::<Webhooks>() {
                webhooks.zones = Some(zones);
            }
        }
        let (now, faults) = (self.now, &self.faults);
        with_zones(&mut self.server, |zones, server| {
            zones.replicas.faults = faults.clone();
            zones.pass_time(now, server);
        });
    }

    /// True if budgets by zone are kept.
    pub(crate) fn is_zoning(&self) -> bool {
        zone_webhook(&self.server).is_some()
    }

    pub(crate) fn step_zoning(&mut self) -> bool {
        let now = self.now;
        with_zones(&mut self.server, |zones, server| zones.step(now, server)).unwrap_or(false)
    }

    pub(crate) fn zoning_wake(&self) -> Option<Instant> {
        zone_webhook(&self.server)?.next_wake()
    }

    pub(crate) fn crash_zoning(&mut self, crash: Crash, only_one: bool) {
        let now = self.now;
        with_zones(&mut self.server, |zones, _| {
            zones.replicas.crash(now, crash, only_one);
        });
    }

    pub(crate) fn calm_zoning(&mut self) {
        let now = self.now;
        with_zones(&mut self.server, |zones, server| {
            zones.replicas.calm(now);
            zones.pass_time(now, server);
        });
    }

    /// The broken promises of budgets by zone since the last call.
    pub(crate) fn take_zones_found(&mut self) -> Vec<(Rule, String, String)> {
        let found = with_zones(&mut self.server, |zones, _| {
            std::mem::take(&mut zones.found)
        });
        found.unwrap_or_default()
    }

    /// How often faults have hit the webhook of budgets by zone, by kind.
    pub fn zone_hits(&self) -> Hits {
        zone_webhook(&self.server).map_or_else(Hits::default, |zones| zones.replicas.hits.clone())
    }
}
