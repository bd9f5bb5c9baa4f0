//! The loop of a replica that registers the webhook, and removes the registration if it is the last one to shut down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::Client;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_model::time::{Instant, Span};
use strew_wire::workloadspread::registration;
use strew_wire::workloadspread::status::time_text;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::calls::{Calls, Failures};
use super::configuration::{self, Registration};
use super::own_review::{Failed, OwnReview};
use super::plan::{Replica, Step};
use super::replicas::{Replicas, withdrawal};
use super::way::Way;
use super::{TRIED_AGAIN, warn};
use crate::causes::in_a_line;
use crate::clock::Clock;
use crate::serve::health::Shown;
use crate::serve::{CutOff, OwnConnections};

/// The time limit for the shutdown, [`LINGERS`] included.
const END_WITHIN: Duration = Duration::from_secs(5);

/// How long the last replica still answers after removing the registration, because API servers learn of it by watches.
const LINGERS: Duration = Duration::from_secs(2);

/// A replica that could not tell the others for this long that it is ready sends its clients elsewhere: what it would
/// write into a status, it cannot. Two renewals and an answer that does not come have their time.
const CUT_OFF_AFTER: Span = Span::from_secs(5);

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
    calls: Calls,
    clock: Clock,
    own: OwnReview,
    /// How the API server will reach the webhook.
    way: Option<Way>,
    wanted: Vec<Value>,
    /// Shows on `/readyz` why the webhook is not registered.
    shown: Arc<Shown>,
    cut_off: CutOff,
    replica: String,
    /// True once the cluster is known.
    ready: watch::Receiver<bool>,
    /// The CAs to trust, in PEM; empty until there is a certificate.
    bundle: watch::Receiver<Arc<str>>,
    replicas: Replicas,
    /// The configuration as last read.
    object: Value,
    view: Replica,
    lease_failures: Failures,
    configuration_failures: Failures,
    /// The last failure, which is logged once.
    failure: Option<String>,
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
        let wanted = setup.registration.webhooks();
        let config = wanted.first().map(|webhook| &webhook["clientConfig"]);
        Self {
            way: config.and_then(|config| Way::of(config, registration::ADMIT)),
            calls: Calls::new(client, namespace),
            clock,
            own: OwnReview::new(setup.address, setup.own, namespace, secret),
            wanted,
            shown: Arc::new(Shown::new(
                SHOWN,
                "this replica has not answered its own review",
            )),
            cut_off: setup.cut_off,
            replica: setup.replica,
            ready,
            bundle,
            replicas: Replicas::default(),
            object: Value::Null,
            view: Replica {
                is_strict: setup.is_strict,
                ..Replica::default()
            },
            lease_failures: Failures::default(),
            configuration_failures: Failures::default(),
            failure: None,
        }
    }

    /// The line of `/readyz` that says why this replica does not count as ready.
    pub fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }

    /// Runs until `end`; then until another replica is ready or the webhook is removed, within a time limit.
    pub async fn run(mut self, end: CancellationToken) {
        // A request is not cancelled: the API server might still carry it out later.
        while !end.is_cancelled() {
            self.work(&end).await;
        }
        self.begin_end();
        let settled = async { while self.work(&CancellationToken::new()).await {} };
        if tokio::time::timeout(END_WITHIN, settled).await.is_err() {
            let error = format!("not settled within {} s", END_WITHIN.as_secs());
            warn(
                "end",
                &error,
                "the controller takes it out if no replica is ready",
            );
        }
    }

    fn begin_end(&mut self) {
        let view = &mut self.view;
        view.is_ending = true;
        view.seen = None;
        view.not_before = Instant(0);
        view.register_not_before = Instant(0);
        if std::mem::take(&mut view.has_left) {
            // The last announcement may be old. The answer to a further withdrawal shows the replicas that are ready
            // now.
            view.present = Some(self.clock.now());
        }
    }

    /// Takes the next step. Returns false if there is none left.
    async fn work(&mut self, end: &CancellationToken) -> bool {
        self.view.can_serve = *self.ready.borrow() && !self.bundle.borrow().is_empty();
        let now = self.clock.now();
        self.view.has_others = self.replicas.has_others(&self.replica, now);
        let cut_off_at = self.view.present.map(|present| present + CUT_OFF_AFTER);
        let is_cut_off = !self.view.is_ending && cut_off_at.is_some_and(|at| now >= at);
        if is_cut_off && !self.cut_off.is() {
            let error = "this replica does not reach the API server";
            warn("serve", error, "its clients are sent to other replicas");
        }
        self.cut_off.set(is_cut_off);
        match self.view.next(now) {
            Step::Review => self.review().await,
            Step::Renew => self.renew().await,
            Step::Look => self.look().await,
            Step::Register => self.register().await,
            Step::Withdraw => self.withdraw().await,
            Step::TakeOut => self.take_out().await,
            Step::Wait(until) => {
                let until = cut_off_at
                    .filter(|at| *at > now)
                    .map_or(until, |at| at.min(until));
                let wait = self.clock.until(until);
                tokio::select! {
                    () = end.cancelled() => {}
                    Ok(()) = self.ready.changed() => {}
                    Ok(()) = self.bundle.changed() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
            Step::Done => return false,
        }
        true
    }

    async fn review(&mut self) {
        let bundle = Arc::clone(&self.bundle.borrow());
        let mut answer = self.own.ask(&bundle).await;
        if answer.is_ok()
            && let Some(way) = &self.way
            && let Err(unreached) = way.ask(&bundle).await
        {
            if unreached.is_certain {
                // The API server cannot reach it either: it must not count as ready until a question is answered.
                self.view.served = None;
            }
            // What load can cause takes nothing out.
            if way.forbids(&unreached) && (unreached.is_certain || self.view.present.is_none()) {
                answer = Err(Failed::Wrong(format!(
                    "the API server will not reach it: {}",
                    unreached.why
                )));
            }
        }
        let now = self.clock.now();
        self.view.asked = Some(now);
        let why = answer.as_ref().err().map(|failed| failed.why().to_owned());
        self.shown.set(why);
        match answer {
            Ok(()) => self.view.served = Some(now),
            Err(failed) => {
                self.failed("a review of its own", failed.why());
                // It was there before, and is.
                if matches!(failed, Failed::Late(_)) && self.view.present.is_some() {
                    self.view.served = Some(now);
                }
            }
        }
    }

    async fn renew(&mut self) {
        let value = time_text(self.clock.wall());
        let patch = self
            .replicas
            .renewal(&self.replica, &value, self.clock.now());
        match self.calls.renew(&patch).await {
            Ok(lease) => {
                let now = self.clock.now();
                self.replicas.take_in(now, &lease);
                self.view.present = Some(now);
                self.lease_failures.end();
            }
            Err(error) => self.not_told("tell other replicas", &error),
        }
    }

    async fn withdraw(&mut self) {
        match self.calls.annotate(&withdrawal(&self.replica)).await {
            Ok(lease) => {
                self.replicas.take_in(self.clock.now(), &lease);
                self.view.present = None;
                self.view.is_announced = false;
                self.view.has_left = true;
                if !self.view.is_ending {
                    let error = "this replica does not answer its own reviews, or is not reached";
                    warn("serve", error, "it is not counted as ready until it does");
                }
            }
            Err(error) => self.not_told("withdraw", &error),
        }
    }

    async fn look(&mut self) {
        match self.calls.configuration().await {
            Ok(object) => self.see(object),
            Err(error) => self.not_registered("read the webhook's configuration", &error),
        }
    }

    fn see(&mut self, object: Value) {
        let registration = Registration::of(&object, &self.wanted);
        let before = self.view.seen.map(|(_, before)| before);
        if registration == Registration::Absent && before != Some(Registration::Absent) {
            let next =
                "no pod gets a subset until it is there; `strew install workloadspread` prints it";
            warn("register", "it does not exist", next);
        }
        self.view.seen = Some((self.clock.now(), registration));
        self.object = object;
    }

    async fn register(&mut self) {
        let was_in = matches!(self.view.seen, Some((_, Registration::In { .. })));
        let bundle = ByteString(self.bundle.borrow().as_bytes().to_vec());
        let bundle = bundle.to_json();
        let patch = configuration::register(&self.object, &self.wanted, &bundle, &self.replica);
        match self.calls.change(&patch).await {
            Ok(object) => {
                self.see(object);
                self.view.is_announced = true;
                self.configuration_failures.end();
                self.failure = None;
                match was_in {
                    true => tracing::info!("the webhook is registered, by this replica too"),
                    false => tracing::info!("the webhook is registered: pods get their subsets"),
                }
            }
            Err(error) => self.not_registered("register the webhook", &error),
        }
    }

    async fn take_out(&mut self) {
        match self
            .calls
            .change(&configuration::take_out(&self.object))
            .await
        {
            Ok(object) => {
                self.see(object);
                tracing::info!(
                    "the last replica ends and the webhook is taken out: pods are created in no subset"
                );
                tokio::time::sleep(LINGERS).await;
            }
            Err(error) => self.not_registered("take the webhook out", &error),
        }
    }

    fn not_told(&mut self, action: &str, error: &kube::Error) {
        let (wait, is_news) = self.lease_failures.add(error);
        self.view.not_before = self.clock.now() + wait;
        if is_news {
            self.failed(action, &in_a_line(error));
        }
    }

    /// Handles a failed write. It is retried; after a lost race the configuration is read first.
    fn not_registered(&mut self, action: &str, error: &kube::Error) {
        let (wait, is_news) = self.configuration_failures.add(error);
        let now = self.clock.now();
        self.view.register_not_before = now + wait;
        self.view.seen = None;
        // A new replica may have written it: the answer to a further withdrawal shows that replica.
        if self.view.is_ending && self.view.has_left {
            self.view.present = Some(now);
        }
        if is_news {
            self.failed(action, &in_a_line(error));
        }
    }

    fn failed(&mut self, action: &str, error: &str) {
        if self.failure.as_deref() != Some(error) {
            warn(action, error, TRIED_AGAIN);
            self.failure = Some(error.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use kube::client::Body;
    use strew_wire::workloadspread::registration::Reach;
    use tokio::net::TcpListener;

    use super::*;
    use crate::registration::replicas::EXPIRES;

    /// Load that keeps the replica busy for 8 s must not turn limits off.
    #[tokio::test(start_paused = true)]
    async fn a_late_review_withdraws_nothing_and_a_server_that_is_gone_does() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let setup = Setup {
            registration: registration::Registration {
                reach: Reach::Service("strew-system".to_owned()),
                namespace: "strew-system".to_owned(),
                failure_policy: "Fail",
                excluded: Vec::new(),
                daemon_sets: false,
            },
            is_strict: false,
            address: listener.local_addr().unwrap(),
            own: OwnConnections::default(),
            cut_off: CutOff::default(),
            replica: "a".to_owned(),
        };
        let (service, _api_server) =
            tower_test::mock::pair::<http::Request<Body>, http::Response<Body>>();
        let client = Client::new(service, "default");
        let (_ready, ready) = watch::channel(true);
        let (_bundle, bundle) = watch::channel(Arc::from(""));
        let clock = Clock::of_timers();
        let mut registrar = Registrar::new(setup, client, clock, ready, bundle, "".into());
        registrar.view.can_serve = true;
        // A replica that has never served does not become ready by a late answer.
        registrar.review().await;
        assert_eq!(registrar.view.served, None);
        registrar.view.served = Some(clock.now());
        registrar.view.present = Some(clock.now());
        for _ in 0..5 {
            registrar.review().await;
            assert_ne!(registrar.view.next(clock.now()), Step::Withdraw);
        }
        drop(listener);
        let over = registrar.view.served.unwrap() + EXPIRES;
        tokio::time::advance(clock.until(over)).await;
        registrar.review().await;
        assert_eq!(registrar.view.next(clock.now()), Step::Withdraw);
    }
}
