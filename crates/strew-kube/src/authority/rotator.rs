//! The loop that carries out what [`strew_runtime::authority::rotator`] decides about certificates: keys, requests, waits.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::watcher::watch_object;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use strew_model::time::{Instant, Span};
use strew_runtime::authority::bundle::{Holder, Place};
use strew_runtime::authority::plan::{AuthorityStep, Lifetimes};
use strew_runtime::authority::rotator::{
    Rotator, SecretState, Settings as MachineSettings, Target, Task,
};
use strew_runtime::{Moment, Warning};
use strew_wire::lease::Settings;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::stored::{Stored, timestamp};
use crate::causes::in_a_line;
use crate::clock::{Clock, duration};
use crate::discovery::AGAIN;
use crate::leading::{Leading, Turn};
use crate::panics::kept;
use crate::serve::Exchange;
use crate::untyped::Untyped;
use crate::watch::patiently;

/// The Secret with the CAs.
pub const SECRET: &str = "strew-webhook-ca";

/// How long the rotator waits for one answer: less than the duration of its lease, which is renewed meanwhile.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How long the shutdown waits for the release of the lease.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The settings of the rotator.
pub struct Setup {
    /// The webhook's place; the Secret is in its namespace.
    pub place: Place,
    /// The host names and addresses of the serving certificate.
    pub names: Vec<String>,
    /// How long certificates live.
    pub lifetimes: Lifetimes,
    /// True if this process maintains `caBundle`; otherwise another program copies it.
    pub manages: bool,
    /// The election of the replica that takes the steps.
    pub election: Settings,
    /// The seed of jitter.
    pub seed: u64,
}

/// Receives the state of the certificates.
#[derive(Debug, Clone, Default)]
pub struct CertificateState {
    authority_until: Arc<AtomicU64>,
    renewed: Arc<AtomicU64>,
}

impl CertificateState {
    /// When the signing CA expires; `None` if there is none yet.
    pub fn authority_until(&self) -> Option<Instant> {
        some(&self.authority_until)
    }

    /// When this process renewed its lease; `None` if it does not lead.
    pub fn renewed(&self) -> Option<Instant> {
        some(&self.renewed)
    }
}

fn some(moment: &AtomicU64) -> Option<Instant> {
    let moment = moment.load(Ordering::Acquire);
    (moment != 0).then_some(Instant(moment))
}

/// An event of a watch.
enum WatchEvent {
    Secret(Option<Box<Secret>>),
    Holder(Holder, Option<Value>),
}

/// The Secret and its CAs.
struct Seen {
    secret: Option<Secret>,
    stored: Stored,
}

impl Seen {
    /// What the machine decides on.
    fn state(&self) -> SecretState {
        let signing = self.stored.signing.as_ref();
        SecretState {
            is_stored: self.secret.is_some(),
            state: self.stored.view(),
            signing: signing.map(|signing| signing.certificate().pem.as_str().into()),
            bundle: self.stored.bundle().into(),
        }
    }
}

/// Renews certificates and keeps `caBundle` current.
pub struct CertificateRotator {
    machine: Rotator,
    client: Client,
    clock: Clock,
    setup: Setup,
    leading: Leading,
    exchange: Exchange,
    standing: CertificateState,
    news: mpsc::Receiver<WatchEvent>,
    /// `None` until the Secret has been read.
    seen: Option<Seen>,
    /// The CAs to trust, in PEM; empty until the server has a certificate.
    bundle: watch::Sender<Arc<str>>,
}

/// The kind and the name of an object.
type ObjectName = [&'static str; 2];

const OF_SECRET: ObjectName = ["Secret", SECRET];

fn name_of(target: Target) -> ObjectName {
    match target {
        Target::Secret => OF_SECRET,
        Target::Holder(holder) => {
            let [_, _, kind, _] = holder.resource();
            [kind, holder.name()]
        }
    }
}

impl CertificateRotator {
    /// A rotator that reads the cluster first; it puts serving certificates into `exchange`.
    pub fn new(setup: Setup, client: Client, clock: Clock, exchange: Exchange) -> Self {
        let (to, news) = mpsc::channel(16);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &setup.place.namespace);
        let told = |secret: Option<Secret>| WatchEvent::Secret(secret.map(Box::new));
        let to_news = to.clone();
        kept(move || follow(secrets.clone(), OF_SECRET, to_news.clone(), told));
        if setup.manages {
            for holder in Holder::ALL {
                let told = move |object: Option<Untyped>| {
                    WatchEvent::Holder(holder, object.map(|object| excerpt(holder, object)))
                };
                let (objects, to) = (objects(&client, holder), to.clone());
                let object = name_of(Target::Holder(holder));
                kept(move || follow(objects.clone(), object, to.clone(), told));
            }
        }
        let election = Some(setup.election.clone());
        Self {
            machine: Rotator::new(MachineSettings {
                place: setup.place.clone(),
                lifetimes: setup.lifetimes,
                manages: setup.manages,
            }),
            leading: Leading::new(election, client.clone(), clock, setup.seed),
            client,
            clock,
            setup,
            exchange,
            standing: CertificateState::default(),
            news,
            seen: None,
            bundle: watch::Sender::default(),
        }
    }

    /// For readers of the certificates' state.
    pub fn standing(&self) -> &CertificateState {
        &self.standing
    }

    /// The CAs to trust, in PEM; empty until the server has a certificate.
    pub fn bundle(&self) -> watch::Receiver<Arc<str>> {
        self.bundle.subscribe()
    }

    /// Runs until it is asked to stop; then releases the lease.
    pub async fn run(mut self, end: CancellationToken) {
        loop {
            let wait = self.turn().await;
            tokio::select! {
                biased;
                () = end.cancelled() => break,
                () = self.leading.answered() => {}
                Some(news) = self.news.recv() => self.take(news),
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.leading.give_back(END_WITHIN).await;
    }

    fn take(&mut self, news: WatchEvent) {
        match news {
            WatchEvent::Secret(secret) => self.see(secret.map(|secret| *secret)),
            WatchEvent::Holder(holder, object) => {
                if self.machine.see_holder(holder, object) {
                    let [kind, name] = name_of(Target::Holder(holder));
                    tracing::info!("{kind} {name} does not exist: nothing asks by it");
                }
            }
        }
    }

    /// The Secret's current state. A watch event may be older than the last write of this process.
    fn see(&mut self, secret: Option<Secret>) {
        let version = |secret: &Secret| secret.resource_version()?.parse::<u64>().ok();
        let known = self.seen.as_ref().and_then(|seen| seen.secret.as_ref());
        if let (Some(new), Some(known)) = (&secret, known)
            && new.uid() == known.uid()
            && version(new) <= version(known)
        {
            return;
        }
        let now = self.clock.wall();
        let stored = secret.as_ref().map(|secret| Stored::read(secret, now));
        let stored = stored.unwrap_or_default();
        for (key, error) in &stored.faults {
            let of_key = format!("read {key}");
            self.warn(OF_SECRET, &of_key, error, "when it changes");
        }
        let seen = Seen { secret, stored };
        self.machine.see_secret(seen.state());
        self.seen = Some(seen);
    }

    /// Carries out the next task. Returns how long nothing is due, unless something changes.
    async fn turn(&mut self) -> Duration {
        match self.leading.turn() {
            Some(Turn::Begins) => tracing::info!("this replica keeps the certificates"),
            Some(Turn::Ends(_)) => tracing::info!("another replica keeps the certificates"),
            None => {}
        }
        let leads = self.leading.leads().now();
        let renewed = self.leading.renewed().filter(|_| leads);
        let renewed = renewed.map_or(0, |at| at.0);
        self.standing.renewed.store(renewed, Ordering::Release);
        self.machine.lead(leads);
        let at = Moment {
            now: self.clock.now(),
            wall: self.clock.wall(),
        };
        let mut wait = Duration::ZERO;
        match self.machine.next(at) {
            Task::Step(step) => self.step(step).await,
            Task::Issue => self.issue(),
            Task::Mend(holder, patch) => self.mend(holder, patch).await,
            Task::Wait(span) => wait = duration(span),
        }
        self.publish();
        match self.leading.next_wake() {
            Some(at) => wait.min(self.clock.until(at)),
            None => wait,
        }
    }

    /// Takes a step, and writes the Secret.
    async fn step(&mut self, step: AuthorityStep) {
        let Some(Seen { secret, stored }) = self.seen.take() else {
            return;
        };
        let now = self.clock.wall();
        let after = match stored.after(step, now, &self.setup.lifetimes) {
            Ok(after) => after,
            Err(error) => {
                // The Secret stays as it was.
                self.see(secret);
                return self.failed(Target::Secret, "make an authority", &error.to_string());
            }
        };
        let next = after.write(SECRET, secret.as_ref());
        let secrets: Api<Secret> =
            Api::namespaced(self.client.clone(), &self.setup.place.namespace);
        let post = PostParams::default();
        let written = match secret {
            None => within(secrets.create(&post, &next)).await,
            Some(_) => within(secrets.replace(SECRET, &post, &next)).await,
        };
        match written {
            Ok(written) => {
                tracing::info!("{}", said(step));
                self.see(Some(written));
                if let Some(seen) = &self.seen {
                    self.machine.wrote(seen.state());
                }
            }
            Err(error) => {
                self.see(secret);
                self.not_written(Target::Secret, "write", &error);
            }
        }
    }

    /// Makes a new serving certificate.
    fn issue(&mut self) {
        let now = self.clock.wall();
        let signing = self
            .seen
            .as_ref()
            .and_then(|seen| seen.stored.signing.as_ref());
        let Some(signing) = signing else {
            return;
        };
        let (names, life) = (&self.setup.names, self.setup.lifetimes.serving);
        match signing.issue(names, now, life) {
            Ok(serving) => {
                self.exchange.put(Arc::clone(&serving.key));
                tracing::info!(
                    names = names.join(","),
                    until = %timestamp(serving.period.until),
                    "a certificate was made for the webhook"
                );
                self.machine.issued(serving.period);
            }
            Err(error) => {
                self.failed(Target::Secret, "sign a certificate", &error.to_string());
            }
        }
    }

    fn publish(&self) {
        let until = self.machine.authority_until();
        let until = until.map_or(0, |until| until.0);
        self.standing
            .authority_until
            .store(until, Ordering::Release);
        let Some(bundle) = self.machine.bundle() else {
            return;
        };
        self.bundle.send_if_modified(|known| {
            let is_new = known != bundle;
            if is_new {
                *known = Arc::clone(bundle);
            }
            is_new
        });
    }

    /// Writes the trusted CAs into a `caBundle`.
    async fn mend(&mut self, holder: Holder, patch: Value) {
        let [kind, name] = name_of(Target::Holder(holder));
        let objects = objects(&self.client, holder);
        let patch = match serde_json::from_value(patch) {
            Ok(patch) => Patch::Json::<()>(patch),
            Err(error) => {
                let error = error.to_string();
                return self.failed(Target::Holder(holder), "write caBundle", &error);
            }
        };
        let params = PatchParams::default();
        match within(objects.patch(name, &params, &patch)).await {
            Ok(object) => {
                tracing::info!(kind, name, "caBundle was written");
                self.machine.mended(holder, excerpt(holder, object));
            }
            Err(error) => self.not_written(Target::Holder(holder), "write caBundle", &error),
        }
    }

    /// Handles a write that lost a race, which the watch will report, or that failed.
    fn not_written(&mut self, target: Target, action: &str, why: &kube::Error) {
        // The API server reports a JSON patch with a failed test as invalid (422).
        let is_race = matches!(why, kube::Error::Api(status) if matches!(status.code, 409 | 422));
        match self.machine.failed(self.clock.now(), target, is_race) {
            Some(wait) => self.warn_again(target, action, &in_a_line(why), wait),
            None => {
                let [kind, name] = name_of(target);
                tracing::debug!(kind, name, action, "another replica wrote first");
            }
        }
    }

    /// Logs the failure; the step is retried with the state known then.
    fn failed(&mut self, target: Target, action: &str, why: &str) {
        if let Some(wait) = self.machine.failed(self.clock.now(), target, false) {
            self.warn_again(target, action, why, wait);
        }
    }

    fn warn_again(&self, target: Target, action: &str, why: &str, wait: Span) {
        let next = format!("in {wait}");
        self.warn(name_of(target), action, &why, &next);
    }

    /// Logs a warning about an object.
    fn warn(
        &self,
        [kind, name]: ObjectName,
        action: &str,
        error: &(dyn Display + Sync),
        next: &str,
    ) {
        let namespace = match kind {
            "Secret" => self.setup.place.namespace.as_str(),
            _ => "",
        };
        let object = Warning {
            kind,
            namespace,
            name,
            node: None,
            action,
            error,
            next,
        };
        object.log();
    }
}

fn said(step: AuthorityStep) -> &'static str {
    match step {
        AuthorityStep::Make => "a new authority signs",
        AuthorityStep::Announce => "the next authority is trusted from now on",
        AuthorityStep::Promote => "the next authority signs from now on",
        AuthorityStep::Retire => "the authority before is trusted no more",
    }
}

fn objects(client: &Client, holder: Holder) -> Api<Untyped> {
    let [group, version, kind, plural] = holder.resource();
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(&kind, plural),
    )
}

/// The parts of an object that the rotator reads: schemas are large.
fn excerpt(holder: Holder, object: Untyped) -> Value {
    let mut data = object.value;
    let mut of = |path: &str| data.pointer_mut(path).map(Value::take).unwrap_or_default();
    let mut excerpt = match holder {
        Holder::Mutating | Holder::Validating => serde_json::json!({"webhooks": of("/webhooks")}),
        Holder::Definition => {
            serde_json::json!({"spec": {"conversion": of("/spec/conversion")}})
        }
    };
    excerpt["metadata"] = serde_json::json!({"resourceVersion": object.metadata.resource_version});
    excerpt
}

/// Limits the wait for an answer.
async fn within<T>(answer: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let answer = tokio::time::timeout(ANSWER_WITHIN, answer).await;
    answer.unwrap_or_else(|late| Err(kube::Error::Service(late.into())))
}

/// Watches one object until the receiver is dropped.
async fn follow<K>(
    api: Api<K>,
    [kind, name]: [&'static str; 2],
    to: mpsc::Sender<WatchEvent>,
    told: impl Fn(Option<K>) -> WatchEvent + Send,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let objects = patiently(watch_object(api, name));
    let mut objects = std::pin::pin!(objects);
    let mut failure = None;
    while let Some(object) = objects.next().await {
        match object {
            Ok(object) => {
                failure = None;
                if to.send(told(object)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                let text = in_a_line(&error);
                // The watch is retried; only a new error is logged.
                if failure.as_ref() != Some(&text) {
                    let watch = Warning {
                        kind,
                        namespace: "",
                        name,
                        node: None,
                        action: "watch",
                        error: &text,
                        next: AGAIN,
                    };
                    watch.log();
                    failure = Some(text);
                }
            }
        }
    }
}
