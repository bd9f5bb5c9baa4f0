//! The loop of a replica around [`strew_runtime::registration::registrar`]: reviews of its own, requests, waits.

use std::net::SocketAddr;
use std::sync::Arc;

use kube::Client;
use strew_model::time::Instant;
use strew_runtime::Moment;
use strew_runtime::registration::registrar::{END_WITHIN, Registrar as Machine, Settings, Task};
use strew_wire::request::Request;
use strew_wire::workloadspread::registration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::own_review::OwnReview;
use super::{answer_within, way};
use crate::clock::{Clock, duration};
use crate::send;
use crate::serve::health::Shown;
use crate::serve::{CutOff, OwnConnections};

/// The name of the line of `/readyz`.
const SHOWN: &str = "registration";

/// The settings of the registrar.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What is registered.
    pub registration: registration::Registration,
    /// `--strict`: the registration stays, whichever replica ends.
    pub is_strict: bool,
    /// Where the webhook's server listens.
    pub address: SocketAddr,
    /// How this process connects to that server.
    pub own: OwnConnections,
    /// Where that server hears that the replica does not reach the API server.
    pub cut_off: CutOff,
    /// The replica's unique name, which becomes part of an annotation's key.
    pub replica: String,
}

/// Registers the webhook for one replica.
pub struct Registrar {
    machine: Machine,
    client: Client,
    clock: Clock,
    own: OwnReview,
    /// Shows on `/readyz` why the webhook is not registered.
    shown: Arc<Shown>,
    cut_off: CutOff,
    /// True once the cluster is known.
    ready: watch::Receiver<bool>,
    /// The CAs to trust, in PEM; empty until there is a certificate.
    bundle: watch::Receiver<Arc<str>>,
}

impl Registrar {
    /// A registrar before its first review; `secret`: as given to the server.
    pub fn new(
        setup: Setup,
        client: Client,
        clock: Clock,
        ready: watch::Receiver<bool>,
        bundle: watch::Receiver<Arc<str>>,
        secret: Arc<str>,
    ) -> Self {
        let namespace = &setup.registration.namespace;
        let own = OwnReview::new(setup.address, setup.own, namespace, secret);
        let machine = Machine::new(Settings {
            registration: setup.registration,
            is_strict: setup.is_strict,
            replica: setup.replica,
        });
        let unready = machine.unready().unwrap_or_default();
        Self {
            shown: Arc::new(Shown::new(SHOWN, unready)),
            machine,
            client,
            clock,
            own,
            cut_off: setup.cut_off,
            ready,
            bundle,
        }
    }

    /// The line of `/readyz` that says why this replica does not count as ready.
    pub fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }

    /// Runs until `end`; then until another replica is ready or the webhook is removed, within a time limit.
    pub async fn run(mut self, end: CancellationToken) {
        while !end.is_cancelled() {
            self.work(&end).await;
        }
        self.machine.end(self.clock.now());
        let settled = async { while self.work(&CancellationToken::new()).await {} };
        let within = duration(END_WITHIN);
        if tokio::time::timeout(within, settled).await.is_err() {
            self.machine.has_not_settled();
        }
    }

    /// Carries out the next task. Returns false if there is none left. `end` cancels no request: the API server might
    /// still carry it out later.
    async fn work(&mut self, end: &CancellationToken) -> bool {
        self.machine
            .serve(*self.ready.borrow(), &self.bundle.borrow());
        let at = Moment {
            now: self.clock.now(),
            wall: self.clock.wall(),
        };
        let task = self.machine.next(at);
        self.cut_off.set(self.machine.is_cut_off());
        match task {
            Task::Review(bundle) => tokio::select! {
                answer = self.own.ask(&bundle) => self.machine.reviewed(self.clock.now(), answer),
                () = end.cancelled() => {}
            },
            Task::Ask(way, bundle) => tokio::select! {
                answer = way::ask(&way, &bundle) => self.machine.asked(self.clock.now(), answer),
                () = end.cancelled() => {}
            },
            Task::Send(request) => self.send(request).await,
            Task::Wait(until) => self.wait(until, end).await,
            Task::Done => return false,
        }
        self.shown.set(self.machine.unready().map(str::to_owned));
        true
    }

    async fn send(&mut self, request: Request) {
        let mut next = Some(request);
        while let Some(request) = next {
            let answer = send::once(&self.client, &request, answer_within()).await;
            next = self.machine.answered(self.clock.now(), &answer);
        }
    }

    async fn wait(&mut self, until: Instant, end: &CancellationToken) {
        let wait = self.clock.until(until);
        tokio::select! {
            () = end.cancelled() => {}
            Ok(()) = self.ready.changed() => {}
            Ok(()) = self.bundle.changed() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}
