//! The loop that owns the driver of admission. It has its own thread, so that no decision delays connections or probes;
//! the async threads run its timers, watches and requests.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use strew_runtime::admission::{self, AdmissionMachine, Crowded, Payer, Turns};
use strew_runtime::{CallId, Event};
use strew_scheduler::metrics::{Family, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::calls::{Ask, CallEvent, Connections, NotTaken};
use super::costs::Costs;
use super::meter::Meter;
use super::metrics;
use super::pages::Pages;
use crate::discovery;
use crate::metrics::unreadable;
use crate::serve::health::TURNS_EVERY;
use crate::watch::Kind;
use crate::work::Worker;

/// The code with which the API server answers when it cannot make a list; one reason is that no webhook converts the
/// objects.
const CANNOT_LIST: u16 = 500;

/// The most messages handled before the machine decides again.
const TAKEN_MAX: usize = 512;

/// The most WorkloadSpreads that one question of validation gets.
const RIVALS_MAX: usize = 16;

/// How often the loop checks why the cluster is not known yet.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the shutdown waits for open calls, and for places in subsets to be given back.
const END_WITHIN: Duration = Duration::from_secs(8);

/// The driver of admission, between connections and the API server.
pub(super) struct Decider {
    pub(super) worker: Worker<AdmissionMachine, Costs>,
    /// Reviews that the machine has not seen yet.
    pub(super) reviews: Turns<IpAddr>,
    pub(super) connections: Connections,
    pub(super) events: mpsc::Receiver<CallEvent>,
    pub(super) served: mpsc::Receiver<discovery::Served>,
    pub(super) ready: watch::Sender<bool>,
    pub(super) meter: Arc<Meter>,
    pub(super) pages: Pages,
}

impl Decider {
    /// Decides until `end`; then until every earlier review is answered and `registering` has finished. That task
    /// removes the registration if this replica is the last one, so that no further review arrives.
    pub(super) async fn run(mut self, end: CancellationToken, mut registering: JoinHandle<()>) {
        while !end.is_cancelled() {
            self.turn(&end).await;
        }
        let over = tokio::time::sleep(END_WITHIN);
        let mut over = std::pin::pin!(over);
        let now = CancellationToken::new();
        let mut is_settled = false;
        while (!is_settled || !self.connections.is_empty()) && !over.is_elapsed() {
            tokio::select! {
                () = &mut over => {}
                _ = &mut registering, if !is_settled => is_settled = true,
                () = self.turn(&now) => {}
            }
        }
    }

    /// Waits until there is something to do, and handles what has arrived and at most one new review.
    async fn turn(&mut self, end: &CancellationToken) {
        self.pages.turns.beat();
        let wait = match *self.ready.borrow() {
            true => TURNS_EVERY,
            false => LOOK_EVERY,
        };
        tokio::select! {
            () = end.cancelled() => return,
            Some(asked) = self.pages.asked.next() => asked.answer(self.families()),
            Some(event) = self.events.recv() => self.on_event(event),
            Some(served) = self.served.recv() => {
                self.worker.tell(|machine, watches| machine.serve(served, watches));
            }
            () = tokio::time::sleep(wait) => {}
            () = self.worker.work() => {}
            () = tokio::task::yield_now(), if self.reviews.is_ready() => {}
        }
        for _ in 0..TAKEN_MAX {
            let Ok(event) = self.events.try_recv() else {
                break;
            };
            self.on_event(event);
        }
        self.worker.take_in();
        let is_busy = self.worker.act();
        self.settle();
        if !is_busy {
            self.decide_next();
        }
        self.tell_ready();
    }

    fn on_event(&mut self, event: CallEvent) {
        match event {
            CallEvent::Ask(ask) => self.on_ask(ask),
            CallEvent::Rivals(asked) => {
                let machine = self.worker.driver().machine();
                let rivals = machine.rivals(&asked.namespace, &asked.target, RIVALS_MAX);
                // The client may have closed the connection.
                drop(asked.answer.send(rivals));
            }
            CallEvent::GiveUp(id) => self.give_up(id),
        }
    }

    fn on_ask(&mut self, ask: Ask) {
        let Ask {
            id,
            call,
            peer,
            is_permitted,
            answer,
        } = ask;
        let watches = self.worker.driver().watches();
        // Without a WorkloadSpread in the namespace, no right needs to be checked.
        if !is_permitted && watches.has_in(&admission::spreads(), &call.review.namespace) {
            drop(answer.send(Err(NotTaken::RightUnknown(call))));
            return;
        }
        let now = self.worker.now();
        match self.reviews.put(now, peer, id, call) {
            Ok(()) => self.connections.put(id, answer),
            // The client may have closed the connection.
            Err(Crowded) => drop(answer.send(Err(NotTaken::Crowded))),
        }
    }

    fn give_up(&mut self, id: CallId) {
        self.connections.give_up(id);
        if self.reviews.give_up(id) {
            self.worker.handle(Event::GaveUp(id));
        }
    }

    /// Lets the machine decide on the next review of the queue.
    fn decide_next(&mut self) {
        let Some((id, call)) = self.reviews.next(self.worker.now()) else {
            return;
        };
        self.worker.observer_mut().begin();
        self.worker.handle(Event::Asked(id, call));
        let payer = Payer::Call(id);
        self.worker.observer_mut().was_for(payer);
        self.worker.act();
        self.settle();
    }

    /// Charges peers and their namespaces for their decisions, and sends the answers.
    fn settle(&mut self) {
        let now = self.worker.now();
        for (payer, cost) in self.worker.observer_mut().take() {
            self.reviews.charge(now, payer, cost);
        }
        for (id, decision) in self.worker.take_replies() {
            self.reviews.answered(id);
            self.connections.reply(id, Ok(*decision));
        }
    }

    fn tell_ready(&mut self) {
        if *self.ready.borrow() {
            return;
        }
        let driver = self.worker.driver();
        let watches = driver.watches();
        if !driver.is_ready() {
            // An API server calls only ready processes. If the list of WorkloadSpreads is all that is missing, and the
            // API server cannot make it, the API server may need this process to convert them.
            let spreads = admission::spreads();
            let failure = watches.failure(&spreads);
            let cannot = failure.is_some_and(|failure| failure.code == Some(CANNOT_LIST));
            if cannot && watches.are_listed(|kind| *kind != spreads) {
                self.pages.synced();
            }
            return;
        }
        let [nodes, pods, spreads] = [Kind::of::<Node>(), Kind::of::<Pod>(), admission::spreads()]
            .map(|kind| watches.len(&kind));
        self.ready.send_replace(true);
        self.pages.synced();
        tracing::info!(
            nodes,
            pods,
            workload_spreads = spreads,
            "the cluster is known"
        );
    }

    fn families(&self) -> Vec<Family> {
        let mut families = metrics::of_machine(self.worker.driver().machine());
        families.push(Family::of(
            &metrics::QUEUED,
            Value::number(self.reviews.n_waiting()),
        ));
        let beyond = Value::Count(self.reviews.n_beyond_budget());
        families.push(Family::of(&metrics::BEYOND_BUDGET, beyond));
        families.extend(self.meter.families());
        families.push(unreadable(self.worker.driver().watches().unreadable()));
        families
    }
}
