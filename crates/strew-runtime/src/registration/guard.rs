//! The controller's part: if no replica has been ready or reached for a while, it removes the webhook, so that pods can
//! be created, and reports it, for a condition on every WorkloadSpread.
//!
//! Sans-IO, as [`registrar`](super::registrar).

use std::sync::Arc;

use serde_json::Value;
use strew_model::time::{Instant, Span};
use strew_wire::request::{Answer, Request};
use strew_wire::workloadspread::registration::ADMIT;
use strew_workloadspread::facts::status::Webhook;

use super::configuration::{self, Registration};
use super::failures::Failures;
use super::plan::{Act, Watcher};
use super::replicas::Replicas;
use super::requests::{self, found};
use super::way::{Unreached, Way, bundle_of};
use super::{TRIED_AGAIN, warn};

/// The settings of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The webhook is removed after no replica was ready for this long.
    pub patience: Span,
    /// `--strict`: the webhook stays registered, and creations of pods fail until a replica is ready.
    pub is_strict: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patience: Span::from_secs(6),
            is_strict: false,
        }
    }
}

/// What the guard does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Send a request; [`Guard::answered`] takes the answer.
    Send(Request),
    /// Ask by this way, trusting these CAs (PEM); [`Guard::asked`] takes the result.
    Ask(Way, Arc<str>),
    /// Report how pods are created.
    Say(Webhook),
    /// Nothing before this moment.
    Wait(Instant),
}

/// A task without a result.
#[derive(Debug, Clone)]
enum Open {
    /// The read of the configuration.
    Configuration,
    /// The read of the replicas, after the configuration.
    Replicas(Value),
    /// The question by this way.
    Question(Way),
    Removal,
}

/// Watches replicas and registration.
#[derive(Debug)]
pub struct Guard {
    namespace: String,
    replicas: Replicas,
    /// The configuration as last read.
    object: Value,
    view: Watcher,
    /// The registered way, once it has led to a webhook from here.
    reached: Option<Way>,
    open: Option<Open>,
    /// The rest of a look.
    then: Option<Task>,
    not_looked: Failures,
    not_taken_out: Failures,
    /// The last failure, which is logged once.
    failure: Option<String>,
}

impl Guard {
    /// A guard that has not looked yet. `namespace`: strew's own.
    pub fn new(settings: Settings, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            replicas: Replicas::default(),
            object: Value::Null,
            view: Watcher {
                leads: false,
                is_strict: settings.is_strict,
                patience: settings.patience,
                looked: None,
                silent_since: None,
                unreached_since: None,
                is_deleted: false,
                registration: Registration::Absent,
                said: Webhook::Unknown,
                not_before: Instant(0),
            },
            reached: None,
            open: None,
            then: None,
            not_looked: Failures::default(),
            not_taken_out: Failures::default(),
            failure: None,
        }
    }

    /// Sets whether this process leads: only then it reports.
    pub fn lead(&mut self, leads: bool) {
        self.view.leads = leads;
    }

    /// When replicas and configuration were last read; `None` if the last attempt failed, and before the first.
    pub fn looked(&self) -> Option<Instant> {
        self.view.looked.filter(|_| self.not_looked.is_none())
    }

    /// What comes next. Each task but [`Task::Wait`] is returned once.
    pub fn next(&mut self, now: Instant) -> Task {
        if let Some(task) = self.then.take() {
            return task;
        }
        match self.view.next(now) {
            Act::Look => {
                self.open = Some(Open::Configuration);
                Task::Send(requests::configuration())
            }
            Act::TakeOut => {
                self.open = Some(Open::Removal);
                let patch = configuration::take_out(&self.object);
                Task::Send(requests::change(patch))
            }
            Act::Say(webhook) => {
                self.say(webhook);
                Task::Say(webhook)
            }
            Act::Wait(until) => Task::Wait(until),
        }
    }

    /// Takes the answer to its request.
    ///
    /// The configuration is read before the replicas. If a replica becomes ready in between, it writes the
    /// configuration, and a patch based on the read one fails.
    pub fn answered(&mut self, now: Instant, answer: &Answer) {
        match (self.open.take(), found(answer)) {
            (Some(Open::Configuration), Ok(object)) => {
                self.open = Some(Open::Replicas(object.clone()));
                self.then = Some(Task::Send(requests::replicas(&self.namespace)));
            }
            (Some(Open::Replicas(object)), Ok(lease)) => self.looked_at(now, object, lease),
            (Some(Open::Configuration | Open::Replicas(_)), Err(answer)) => {
                self.replicas.not_read(now);
                let (wait, is_news) = self.not_looked.add(answer.is_race());
                let action = "look at the webhook's replicas";
                self.failed(now, (action, wait, is_news), answer);
            }
            (Some(Open::Removal), _) => match answer.object() {
                Some(object) => {
                    self.see(object.clone());
                    self.not_taken_out.end();
                }
                None => {
                    // Another process may have written first.
                    self.view.looked = None;
                    let (wait, is_news) = self.not_taken_out.add(answer.is_race());
                    self.failed(now, ("take the webhook out", wait, is_news), answer);
                }
            },
            (Some(Open::Question(_)) | None, _) => {}
        }
    }

    fn looked_at(&mut self, now: Instant, object: Value, lease: &Value) {
        self.replicas.take_in(now, lease);
        self.see(object);
        self.view.looked = Some(now);
        self.view.silent_since = self.replicas.silent_since();
        self.not_looked.end();
        // Only a way that strew has registered is asked.
        let config = &self.object["webhooks"][0]["clientConfig"];
        let is_ours = matches!(
            self.view.registration,
            Registration::In { is_ours: true, .. }
        );
        match Way::of(config, ADMIT).filter(|_| is_ours) {
            // A question that gets no answer would delay the removal.
            Some(_) if self.view.has_no_replica() && !self.view.is_strict => {}
            None => self.view.unreached_since = None,
            Some(way) => {
                self.open = Some(Open::Question(way.clone()));
                self.then = Some(Task::Ask(way, bundle_of(config).into()));
            }
        }
    }

    /// Takes the result of a question by the registered way. A way that has never led to a webhook from here proves
    /// nothing: it may be open to the API server alone.
    pub fn asked(&mut self, now: Instant, answer: Result<(), Unreached>) {
        let Some(Open::Question(way)) = self.open.take() else {
            return;
        };
        match answer {
            Ok(()) => {
                self.reached = Some(way);
                self.view.unreached_since = None;
            }
            Err(unreached) if unreached.is_certain && self.reached.as_ref() == Some(&way) => {
                if self.view.unreached_since.is_none() {
                    warn("reach a replica", &unreached.why, "taken out if that lasts");
                }
                self.view.unreached_since.get_or_insert(now);
            }
            Err(_) => self.view.unreached_since = None,
        }
    }

    fn see(&mut self, object: Value) {
        self.view.is_deleted = object.is_null() && (self.view.is_deleted || !self.object.is_null());
        self.view.registration = Registration::of(&object, &[]);
        self.object = object;
    }

    fn say(&mut self, webhook: Webhook) {
        let silent = self.view.patience;
        match webhook {
            Webhook::NotRegistered if self.view.is_deleted => warn(
                "find the configuration",
                "it was deleted",
                "pods are created in no subset until it is there; `strew install workloadspread` prints it",
            ),
            Webhook::NotRegistered => warn(
                "reach a replica",
                &format!("none has been ready for {silent}"),
                "it is not registered: pods are created in no subset until a replica is ready",
            ),
            Webhook::NotReady => warn(
                "reach a replica",
                &format!("none has been ready for {silent}"),
                "it stays registered (--strict): creations of pods are refused until a replica is ready",
            ),
            Webhook::Answers if self.view.said != Webhook::Unknown => {
                tracing::info!("the webhook is registered, and a replica is ready");
            }
            Webhook::Answers | Webhook::Unknown => {}
        }
        self.view.said = webhook;
    }

    fn failed(
        &mut self,
        now: Instant,
        (action, wait, is_news): (&str, Span, bool),
        answer: &Answer,
    ) {
        self.view.not_before = now + wait;
        let error = answer.words();
        if is_news && self.failure.as_deref() != Some(&*error) {
            warn(action, &error, TRIED_AGAIN);
            self.failure = Some(error.as_ref().to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
