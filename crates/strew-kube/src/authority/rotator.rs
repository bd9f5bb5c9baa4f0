//! The loop that carries out what [`plan`](super::plan) decides about certificates.
//!
//! It runs after every change and at least once a minute, because the wall clock can jump and a timer would not notice.

use std::collections::BTreeMap;
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
use strew_model::time::Instant;
use strew_runtime::Warning;
use strew_wire::lease::Settings;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::bundle::{Holder, Place, mend};
use super::pair::Serving;
use super::plan::{Lifetimes, Next, Step, next, serving_lasts};
use super::stored::{Stored, timestamp};
use crate::causes::in_a_line;
use crate::clock::{Clock, duration};
use crate::discovery::AGAIN;
use crate::leading::{Leading, Turn};
use crate::panics::kept;
use crate::serve::Exchange;
use crate::untyped::Untyped;
use crate::waits::Waits;
use crate::watch::patiently;

/// The Secret with the CAs.
pub const SECRET: &str = "strew-webhook-ca";

/// Everything is checked again after this long.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How long the rotator waits for one answer: less than the duration of its lease, which is renewed meanwhile.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The lost races in a row after which one is logged: a replica usually loses one or two.
const RACES_MAX: u32 = 5;

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
pub struct Standing {
    authority_until: Arc<AtomicU64>,
    renewed: Arc<AtomicU64>,
}

impl Standing {
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

/// Renews certificates and keeps `caBundle` current.
pub struct CertificateRotator {
    client: Client,
    clock: Clock,
    setup: Setup,
    leading: Leading,
    exchange: Exchange,
    standing: Standing,
    news: mpsc::Receiver<WatchEvent>,
    /// `None` until the Secret has been read.
    seen: Option<Seen>,
    serving: Option<Serving>,
    /// The CAs to trust, in PEM; empty until the server has a certificate.
    bundle: watch::Sender<Arc<str>>,
    /// The last known state of the objects with a `caBundle`; `None` for those that do not exist.
    holders: BTreeMap<Holder, Option<Value>>,
    /// The objects whose last write failed, with their waits.
    waits: BTreeMap<ObjectName, Waits>,
}

/// The kind and the name of an object.
type ObjectName = [&'static str; 2];

const OF_SECRET: ObjectName = ["Secret", SECRET];

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
                let [_, _, kind, _] = holder.resource();
                let object = [kind, holder.name()];
                kept(move || follow(objects.clone(), object, to.clone(), told));
            }
        }
        let election = Some(setup.election.clone());
        Self {
            leading: Leading::new(election, client.clone(), clock, setup.seed),
            client,
            clock,
            setup,
            exchange,
            standing: Standing::default(),
            news,
            seen: None,
            serving: None,
            bundle: watch::Sender::default(),
            holders: BTreeMap::new(),
            waits: BTreeMap::new(),
        }
    }

    /// For readers of the certificates' state.
    pub fn standing(&self) -> &Standing {
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
                if object.is_none() && self.holders.get(&holder) != Some(&None) {
                    let [_, _, kind, _] = holder.resource();
                    tracing::info!("{kind} {} is not there: nobody asks by it", holder.name());
                }
                self.holders.insert(holder, object);
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
        self.seen = Some(Seen { secret, stored });
    }

    /// Does what is due. Returns how long nothing is due, unless something changes.
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
        if self.seen.is_some() {
            self.step(leads).await;
            self.show();
            self.publish();
            if leads && self.setup.manages {
                self.mend().await;
            }
        }
        self.wait()
    }

    fn wait(&self) -> Duration {
        let wall = self.clock.wall();
        let mut wait = LOOK_EVERY;
        if let Some(at) = self.leading.next_wake() {
            wait = wait.min(self.clock.until(at));
        }
        for until in self.waits.values().filter_map(Waits::until) {
            wait = wait.min(until.saturating_duration_since(tokio::time::Instant::now()));
        }
        let lasts = serving_lasts(self.shown(), wall);
        let step = self.seen.as_ref().map(|seen| self.next(seen, wall));
        let due = match step {
            Some(Next::Wait(until)) => Some(until),
            _ => None,
        };
        let dues = [lasts, due].into_iter().flatten();
        dues.map(|due| duration(due.since(wall)))
            .fold(wait, Duration::min)
    }

    fn next(&self, seen: &Seen, now: Instant) -> Next {
        next(
            &seen.stored.view(),
            now,
            &self.setup.lifetimes,
            self.is_published(&seen.stored),
        )
    }

    /// True if every `caBundle` is known to have all trusted CAs.
    fn is_published(&self, stored: &Stored) -> bool {
        let bundle = stored.bundle();
        let trusts = |holder: &Holder| match self.holders.get(holder) {
            None => false,
            Some(None) => true,
            Some(Some(object)) => mend(*holder, object, &bundle, &self.setup.place).is_none(),
        };
        !self.setup.manages || Holder::ALL.iter().all(trusts)
    }

    /// Takes the next step, if it is due and this replica may take it. Every replica may create the first Secret:
    /// without it no replica could serve, and only one creation succeeds.
    async fn step(&mut self, leads: bool) {
        if self.is_waiting(&OF_SECRET) {
            return;
        }
        let now = self.clock.wall();
        let Some(seen) = self.seen.take() else {
            return;
        };
        let due = match self.next(&seen, now) {
            Next::Do(step) if leads || seen.secret.is_none() => Some(step),
            _ => None,
        };
        let Some(step) = due else {
            self.seen = Some(seen);
            return;
        };
        let Seen { secret, stored } = seen;
        let after = match stored.after(step, now, &self.setup.lifetimes) {
            Ok(after) => after,
            Err(error) => {
                // The Secret stays as it was.
                self.see(secret);
                return self.failed(OF_SECRET, "make an authority", &error.to_string());
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
                self.waits.remove(&OF_SECRET);
                self.see(Some(written));
            }
            Err(error) => {
                self.see(secret);
                self.not_written(OF_SECRET, "write", &error);
            }
        }
    }

    /// The validity of the present certificate, and whether the signing CA has signed it.
    fn shown(&self) -> Option<(super::plan::Period, bool)> {
        let serving = self.serving.as_ref()?;
        let signing = self.seen.as_ref()?.stored.signing.as_ref();
        let is_of_ours = signing.is_some_and(|s| s.certificate().der == serving.signer);
        Some((serving.period, is_of_ours))
    }

    /// Makes a new serving certificate, if one is due.
    fn show(&mut self) {
        let now = self.clock.wall();
        let is_due = serving_lasts(self.shown(), now).is_none();
        let stored = self.seen.as_ref().map(|seen| &seen.stored);
        let Some(signing) = stored.and_then(|stored| stored.signing.as_ref()) else {
            return;
        };
        let until = signing.certificate().period.until.0;
        self.standing
            .authority_until
            .store(until, Ordering::Release);
        if !is_due || self.is_waiting(&OF_SECRET) {
            return;
        }
        match signing.issue(&self.setup.names, now, self.setup.lifetimes.serving) {
            Ok(serving) => {
                self.exchange.put(Arc::clone(&serving.key));
                tracing::info!(
                    names = self.setup.names.join(","),
                    until = %timestamp(serving.period.until),
                    "a certificate was made for the webhook"
                );
                self.serving = Some(serving);
            }
            Err(error) => {
                self.failed(OF_SECRET, "sign a certificate", &error.to_string());
            }
        }
    }

    fn publish(&self) {
        let Some(seen) = self.seen.as_ref().filter(|_| self.serving.is_some()) else {
            return;
        };
        let bundle = seen.stored.bundle();
        self.bundle.send_if_modified(|known| {
            let is_new = **known != *bundle;
            if is_new {
                *known = bundle.into();
            }
            is_new
        });
    }

    /// Writes the trusted CAs into every `caBundle`.
    async fn mend(&mut self) {
        let Some(seen) = &self.seen else {
            return;
        };
        let bundle = seen.stored.bundle();
        if seen.stored.signing.is_none() {
            return;
        }
        for holder in Holder::ALL {
            let Some(Some(object)) = self.holders.get(&holder) else {
                continue;
            };
            let Some(patch) = mend(holder, object, &bundle, &self.setup.place) else {
                continue;
            };
            // Two replicas that both believe to lead would overwrite each other's changes.
            if !self.leading.leads().now() {
                return;
            }
            let [_, _, kind, _] = holder.resource();
            let name = [kind, holder.name()];
            if self.is_waiting(&name) {
                continue;
            }
            let objects = objects(&self.client, holder);
            let Ok(patch) = serde_json::from_value(patch) else {
                continue;
            };
            let params = PatchParams::default();
            let patch = Patch::Json::<()>(patch);
            match within(objects.patch(holder.name(), &params, &patch)).await {
                Ok(object) => {
                    tracing::info!(kind, name = holder.name(), "caBundle was written");
                    self.waits.remove(&name);
                    let object = Some(excerpt(holder, object));
                    self.holders.insert(holder, object);
                }
                Err(error) => self.not_written(name, "write caBundle", &error),
            }
        }
    }

    /// True if an object must not be written again yet.
    fn is_waiting(&self, object: &ObjectName) -> bool {
        let waits = self.waits.get(object);
        waits.is_some_and(|waits| waits.until().is_some())
    }

    /// Handles a write that lost a race, which the watch will report, or that failed.
    fn not_written(&mut self, object: ObjectName, action: &str, why: &kube::Error) {
        // The API server reports a JSON patch with a failed test as invalid (422).
        let is_race = matches!(why, kube::Error::Api(status) if matches!(status.code, 409 | 422));
        let waits = self.waits.entry(object).or_default();
        match is_race && waits.n_failures() < RACES_MAX {
            true => {
                waits.next(false);
                let [kind, name] = object;
                tracing::debug!(kind, name, action, "another replica wrote first");
            }
            false => self.failed(object, action, &in_a_line(why)),
        }
    }

    /// Logs the failure; the step is retried with the state known then.
    fn failed(&mut self, object: ObjectName, action: &str, why: &str) {
        let wait = self.waits.entry(object).or_default().next(false);
        let next = format!("in {wait:?}");
        self.warn(object, action, &why, &next);
    }

    /// Logs a warning about an object.
    fn warn(
        &self,
        [kind, name]: [&str; 2],
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

fn said(step: Step) -> &'static str {
    match step {
        Step::Make => "a new authority signs",
        Step::Announce => "the next authority is trusted from now on",
        Step::Promote => "the next authority signs from now on",
        Step::Retire => "the authority before is trusted no more",
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
