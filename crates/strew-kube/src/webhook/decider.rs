//! The loop that owns the driver of admission, on a thread of its own: it answers neither connections nor probes, so that no
//! decision delays them. What it waits for (timers, watches, requests) is carried by the thread that does.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use strew_runtime::Event;
use strew_runtime::admission::{self, AdmissionMachine};
use strew_scheduler::metrics::Family;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::calls::{Connections, Say};
use super::meter::Meter;
use super::metrics;
use super::pages::Pages;
use crate::discovery;
use crate::metrics::unreadable;
use crate::watch::Kind;
use crate::work::Worker;

/// The code by which the API server says that it cannot make a list, whatever the reason: perhaps that no webhook
/// converts its objects.
const CANNOT_LIST: u16 = 500;

/// So much is taken in before the machine decides again.
const TAKEN_MAX: usize = 512;

/// Until the cluster is known, what keeps it from being known is looked at so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The loop turns at least this often, and so shows that it does not hang.
const TURNS_EVERY: Duration = Duration::from_secs(5);

/// How long the end waits for calls that are not answered, and for slots to be given back.
const END_WITHIN: Duration = Duration::from_secs(8);

/// The driver of admission, between connections and the API server.
pub(super) struct Decider {
    pub(super) worker: Worker<AdmissionMachine>,
    pub(super) connections: Connections,
    pub(super) said: mpsc::Receiver<Say>,
    pub(super) served: mpsc::Receiver<discovery::Served>,
    pub(super) ready: watch::Sender<bool>,
    pub(super) meter: Arc<Meter>,
    pub(super) pages: Pages,
}

impl Decider {
    /// Decides until `end`, and then until every review that came before is answered and `registering` is over: it takes
    /// the registration out if this replica is the last, so that no review comes any more.
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

    /// Waits until there is something to do, and does it.
    async fn turn(&mut self, end: &CancellationToken) {
        self.pages.turns.beat();
        let wait = match *self.ready.borrow() {
            true => TURNS_EVERY,
            false => LOOK_EVERY,
        };
        tokio::select! {
            () = end.cancelled() => return,
            Some(asked) = self.pages.asked.next() => asked.answer(self.families()),
            Some(say) = self.said.recv() => self.listen(say),
            Some(served) = self.served.recv() => {
                self.worker.tell(|machine, watches| machine.serve(served, watches));
            }
            () = tokio::time::sleep(wait) => {}
            () = self.worker.work() => {}
        }
        self.reply();
        self.tell_ready();
    }

    /// Takes in what is said, and has the machine decide at once: somebody waits.
    fn listen(&mut self, first: Say) {
        self.hear(first);
        for _ in 0..TAKEN_MAX {
            let Ok(say) = self.said.try_recv() else {
                break;
            };
            self.hear(say);
        }
        self.worker.act();
    }

    fn hear(&mut self, say: Say) {
        let event = match say {
            Say::Ask(id, call, answer) => {
                self.connections.put(id, answer);
                Event::Asked(id, call)
            }
            Say::GiveUp(id) => {
                self.connections.give_up(id);
                Event::GaveUp(id)
            }
        };
        self.worker.handle(event);
    }

    fn reply(&mut self) {
        for (id, decision) in self.worker.take_replies() {
            self.connections.reply(id, *decision);
        }
    }

    fn tell_ready(&mut self) {
        if *self.ready.borrow() {
            return;
        }
        let driver = self.worker.driver();
        let watches = driver.watches();
        if !driver.is_ready() {
            // No API server calls a process that is not ready. If all that is left is a list of WorkloadSpreads that the
            // API server cannot make, it may be this process that it needs for it.
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
        families.extend(self.meter.families());
        families.push(unreadable(self.worker.driver().watches().unreadable()));
        families
    }
}
