//! A replica's part: it registers the webhook, and removes the registration if it is the last one to shut down.
//!
//! Sans-IO: [`Registrar::next`] returns one [`Task`] at a time; the shell carries it out and returns its result by the
//! method that the task names.

use std::sync::Arc;

use k8s_openapi::ByteString;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_model::time::{Instant, Span};
use strew_wire::request::{Answer, Request};
use strew_wire::workloadspread::registration;
use strew_wire::workloadspread::status::time_text;

use super::configuration::{self, Registration};
use super::failures::Failures;
use super::plan::{RegistrationStep, Replica};
use super::replicas::{Replicas, withdrawal};
use super::requests::{self, found};
use super::way::{Failed, Unreached, Way};
use super::{TRIED_AGAIN, warn};
use crate::driver::Moment;

/// The time limit for the shutdown, the time in which it still answers included.
pub const END_WITHIN: Span = Span::from_secs(5);

/// How long the last replica still answers after removing the registration, because API servers learn of it by watches.
const LINGERS: Span = Span::from_secs(2);

/// A replica that could not tell the others for this long that it is ready sends its clients elsewhere: what it would
/// write into a status, it cannot. Two renewals and an answer that does not come have their time.
const CUT_OFF_AFTER: Span = Span::from_secs(5);

/// The settings of a registrar.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What is registered.
    pub registration: registration::Registration,
    /// `--strict`: the registration stays, whichever replica ends.
    pub is_strict: bool,
    /// The replica's unique name, which becomes part of an annotation's key.
    pub replica: String,
}

/// What the replica does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Send itself a review, trusting these CAs (PEM); [`Registrar::reviewed`] takes the result.
    Review(Arc<str>),
    /// Ask by this way, trusting these CAs (PEM); [`Registrar::asked`] takes the result.
    Ask(Way, Arc<str>),
    /// Send a request; [`Registrar::answered`] takes the answer.
    Send(Request),
    /// Nothing before this moment, unless [`Registrar::serve`] or [`Registrar::end`] says something new.
    Wait(Instant),
    /// The replica has nothing left to do before it ends.
    Done,
}

/// A request without an answer.
#[derive(Debug, Clone)]
enum Sent {
    /// The renewal, with its patch.
    Renewal(Value),
    /// The creation of the Lease.
    Creation,
    Withdrawal,
    Look,
    Registration {
        /// True if webhooks were registered before.
        was_in: bool,
    },
    Removal,
}

/// Registers the webhook for one replica.
#[derive(Debug)]
pub struct Registrar {
    namespace: String,
    /// How the API server will reach the webhook.
    way: Option<Way>,
    wanted: Vec<Value>,
    replica: String,
    /// The CAs to trust, in PEM; empty until there is a certificate.
    bundle: Arc<str>,
    replicas: Replicas,
    /// The configuration as last read.
    object: Value,
    view: Replica,
    sent: Option<Sent>,
    /// True while its own review is answered, and the way is not asked yet.
    is_answered: bool,
    /// True once it has announced that it is ready, or may have.
    may_be_announced: bool,
    is_cut_off: bool,
    lease_failures: Failures,
    configuration_failures: Failures,
    /// Why the replica does not count as ready.
    unready: Option<String>,
    /// The last failure, which is logged once.
    failure: Option<String>,
}

impl Registrar {
    /// A registrar before its first review.
    pub fn new(settings: Settings) -> Self {
        let wanted = settings.registration.webhooks();
        let config = wanted.first().map(|webhook| &webhook["clientConfig"]);
        Self {
            way: config.and_then(|config| Way::of(config, registration::ADMIT)),
            namespace: settings.registration.namespace,
            wanted,
            replica: settings.replica,
            bundle: Arc::from(""),
            replicas: Replicas::default(),
            object: Value::Null,
            view: Replica {
                is_strict: settings.is_strict,
                ..Replica::default()
            },
            sent: None,
            is_answered: false,
            may_be_announced: false,
            is_cut_off: false,
            lease_failures: Failures::default(),
            configuration_failures: Failures::default(),
            unready: Some("this replica has not answered its own review".to_owned()),
            failure: None,
        }
    }

    /// Sets whether the cluster is known, and the CAs to trust, in PEM; empty until there is a certificate.
    pub fn serve(&mut self, is_ready: bool, bundle: &Arc<str>) {
        self.view.can_serve = is_ready && !bundle.is_empty();
        self.bundle = Arc::clone(bundle);
    }

    /// True if this replica has not reached the API server for a while: its clients are sent elsewhere.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Why the replica does not count as ready; `None` if its last review was answered.
    pub fn unready(&self) -> Option<&str> {
        self.unready.as_deref()
    }

    /// The replica shuts down: it withdraws, and removes the webhook if no other one is ready.
    pub fn end(&mut self, now: Instant) {
        let view = &mut self.view;
        view.is_ending = true;
        view.seen = None;
        view.not_before = Instant(0);
        view.register_not_before = Instant(0);
        view.has_left = false;
        if self.may_be_announced {
            // The last announcement may be old, or its answer is lost. The answer to a withdrawal shows the replicas
            // that are ready now.
            view.present = Some(now);
        }
    }

    /// Logs that the replica ends before its registration is settled.
    pub fn has_not_settled(&self) {
        let error = format!("not settled within {END_WITHIN}");
        let next = "the controller takes it out if no replica is ready";
        warn("end", &error, next);
    }

    /// What comes next. Each task but [`Task::Wait`] and [`Task::Done`] is returned once, and has a result.
    pub fn next(&mut self, at: Moment) -> Task {
        let now = at.now;
        self.view.has_others = self.replicas.has_others(&self.replica, now);
        let cut_off_at = self.view.present.map(|present| present + CUT_OFF_AFTER);
        let is_cut_off = !self.view.is_ending && cut_off_at.is_some_and(|at| now >= at);
        if is_cut_off && !self.is_cut_off {
            let error = "this replica does not reach the API server";
            warn("serve", error, "its clients are sent to other replicas");
        }
        self.is_cut_off = is_cut_off;
        if std::mem::take(&mut self.is_answered)
            && !self.view.is_ending
            && let Some(way) = &self.way
        {
            return Task::Ask(way.clone(), Arc::clone(&self.bundle));
        }
        match self.view.next(now) {
            RegistrationStep::Review => Task::Review(Arc::clone(&self.bundle)),
            RegistrationStep::Renew => {
                let value = time_text(at.wall);
                let patch = self.replicas.renewal(&self.replica, &value, now);
                let request = requests::annotate(&self.namespace, patch.clone());
                self.send(Sent::Renewal(patch), request)
            }
            RegistrationStep::Look => self.send(Sent::Look, requests::configuration()),
            RegistrationStep::Register => {
                let was_in = matches!(self.view.seen, Some((_, Registration::In { .. })));
                let bundle = ByteString(self.bundle.as_bytes().to_vec()).to_json();
                let (object, wanted) = (&self.object, &self.wanted);
                let patch = configuration::register(object, wanted, &bundle, &self.replica);
                self.send(Sent::Registration { was_in }, requests::change(patch))
            }
            RegistrationStep::Withdraw => {
                let patch = withdrawal(&self.replica);
                let request = requests::annotate(&self.namespace, patch);
                self.send(Sent::Withdrawal, request)
            }
            RegistrationStep::TakeOut => {
                let patch = configuration::take_out(&self.object);
                self.send(Sent::Removal, requests::change(patch))
            }
            RegistrationStep::Wait(until) => {
                let until = cut_off_at
                    .filter(|at| *at > now)
                    .map_or(until, |at| at.min(until));
                Task::Wait(until)
            }
            RegistrationStep::Done => Task::Done,
        }
    }

    fn send(&mut self, sent: Sent, request: Request) -> Task {
        self.sent = Some(sent);
        Task::Send(request)
    }

    /// Takes the result of its own review.
    pub fn reviewed(&mut self, now: Instant, answer: Result<(), Failed>) {
        match (&self.way, answer) {
            (Some(_), Ok(())) => self.is_answered = true,
            (_, answer) => self.judge(now, answer),
        }
    }

    /// Takes the result of a question by the registered way.
    pub fn asked(&mut self, now: Instant, answer: Result<(), Unreached>) {
        let mut judged = Ok(());
        if let (Err(unreached), Some(way)) = (answer, &self.way) {
            if unreached.is_certain {
                // The API server cannot reach it either: it must not count as ready until a question is answered.
                self.view.served = None;
            }
            // What load can cause takes nothing out.
            if way.forbids(&unreached) && (unreached.is_certain || self.view.present.is_none()) {
                judged = Err(Failed::Wrong(format!(
                    "the API server will not reach it: {}",
                    unreached.why
                )));
            }
        }
        self.judge(now, judged);
    }

    fn judge(&mut self, now: Instant, answer: Result<(), Failed>) {
        self.view.asked = Some(now);
        self.unready = answer.as_ref().err().map(|failed| failed.why().to_owned());
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

    /// Takes the answer to its request. Returns the next request of the same task, if there is one.
    pub fn answered(&mut self, now: Instant, answer: &Answer) -> Option<Request> {
        match self.sent.take()? {
            Sent::Renewal(patch) => match found(answer) {
                Ok(Value::Null) => {
                    self.sent = Some(Sent::Creation);
                    return Some(requests::create(&self.namespace, &patch));
                }
                Ok(lease) => self.renewed(now, lease),
                Err(answer) => self.not_announced(now, answer),
            },
            Sent::Creation => match answer.object() {
                Some(lease) => self.renewed(now, lease),
                None => self.not_announced(now, answer),
            },
            Sent::Withdrawal => match found(answer) {
                Ok(lease) => self.withdrawn(now, lease),
                Err(answer) => self.not_told(now, "withdraw", answer),
            },
            Sent::Look => match found(answer) {
                Ok(object) => self.see(now, object.clone()),
                Err(answer) => self.not_registered(now, "read the webhook's configuration", answer),
            },
            Sent::Registration { was_in } => match answer.object() {
                Some(object) => self.registered(now, object.clone(), was_in),
                None => self.not_registered(now, "register the webhook", answer),
            },
            Sent::Removal => match answer.object() {
                Some(object) => self.removed(now, object.clone()),
                None => self.not_registered(now, "take the webhook out", answer),
            },
        }
        None
    }

    fn renewed(&mut self, now: Instant, lease: &Value) {
        self.replicas.take_in(now, lease);
        self.view.present = Some(now);
        self.may_be_announced = true;
        self.lease_failures.end();
    }

    fn not_announced(&mut self, now: Instant, answer: &Answer) {
        // It may have been carried out.
        self.may_be_announced |=
            matches!(answer, Answer::Lost(_) | Answer::Status { code: 500.., .. });
        self.not_told(now, "tell other replicas", answer);
    }

    fn withdrawn(&mut self, now: Instant, lease: &Value) {
        self.replicas.take_in(now, lease);
        self.view.present = None;
        self.view.is_announced = false;
        self.view.has_left = true;
        if !self.view.is_ending {
            let error = "this replica does not answer its own reviews, or is not reached";
            warn("serve", error, "it is not counted as ready until it does");
        }
    }

    fn see(&mut self, now: Instant, object: Value) {
        let registration = Registration::of(&object, &self.wanted);
        let before = self.view.seen.map(|(_, before)| before);
        if registration == Registration::Absent && before != Some(Registration::Absent) {
            let next =
                "no pod gets a subset until it is there; `strew install workloadspread` prints it";
            warn("register", "it does not exist", next);
        }
        self.view.seen = Some((now, registration));
        self.object = object;
    }

    fn registered(&mut self, now: Instant, object: Value, was_in: bool) {
        self.see(now, object);
        self.view.is_announced = true;
        self.configuration_failures.end();
        self.failure = None;
        match was_in {
            true => tracing::info!("the webhook is registered, by this replica too"),
            false => tracing::info!("the webhook is registered: pods get their subsets"),
        }
    }

    fn removed(&mut self, now: Instant, object: Value) {
        self.see(now, object);
        tracing::info!(
            "the last replica ends and the webhook is taken out: pods are created in no subset"
        );
        self.view.not_before = now + LINGERS;
    }

    fn not_told(&mut self, now: Instant, action: &str, answer: &Answer) {
        let (wait, is_news) = self.lease_failures.add(answer.is_race());
        self.view.not_before = now + wait;
        if is_news {
            self.failed(action, &answer.words());
        }
    }

    /// Handles a failed write. It is retried; after a lost race the configuration is read first.
    fn not_registered(&mut self, now: Instant, action: &str, answer: &Answer) {
        let (wait, is_news) = self.configuration_failures.add(answer.is_race());
        self.view.register_not_before = now + wait;
        self.view.seen = None;
        // A new replica may have written it: the answer to a further withdrawal shows that replica.
        if self.view.is_ending && self.view.has_left {
            self.view.present = Some(now);
        }
        if is_news {
            self.failed(action, &answer.words());
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
mod tests;
