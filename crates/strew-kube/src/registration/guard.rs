//! The controller's part of the registration: if no replica has been ready for a while, it removes the webhook, so that
//! pods can be created, and sets a condition on every WorkloadSpread.

use kube::Client;
use serde_json::Value;
use strew_model::time::{Instant, Span};
use strew_workloadspread::facts::status::Webhook;
use tokio::sync::watch;

use super::calls::{Calls, Failures};
use super::configuration::{self, Registration};
use super::plan::{Act, Watcher};
use super::replicas::Replicas;
use super::{TRIED_AGAIN, warn};
use crate::causes::in_a_line;
use crate::clock::Clock;
use crate::leading::Leads;

/// The settings of the guard.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The webhook is removed after no replica was ready for this long.
    pub patience: Span,
    /// `--strict`: the webhook stays registered, and creations of pods fail until a replica is ready.
    pub is_strict: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patience: Span::from_secs(30),
            is_strict: false,
        }
    }
}

/// Watches replicas and registration while this process leads.
pub struct Guard {
    calls: Calls,
    clock: Clock,
    leads: Leads,
    replicas: Replicas,
    /// The configuration as last read.
    object: Value,
    view: Watcher,
    not_looked: Failures,
    not_taken_out: Failures,
    /// The last failure, which is logged once.
    failure: Option<String>,
    to: watch::Sender<Webhook>,
}

impl Guard {
    /// A guard, and the channel of its findings. `namespace`: strew's own.
    pub fn new(
        settings: Settings,
        client: Client,
        namespace: &str,
        clock: Clock,
        leads: Leads,
    ) -> (Self, watch::Receiver<Webhook>) {
        let (to, said) = watch::channel(Webhook::Unknown);
        let guard = Self {
            calls: Calls::new(client, namespace),
            clock,
            leads,
            replicas: Replicas::default(),
            object: Value::Null,
            view: Watcher {
                leads: false,
                is_strict: settings.is_strict,
                patience: settings.patience,
                looked: None,
                silent_since: None,
                registration: Registration::Absent,
                said: Webhook::Unknown,
                not_before: Instant(0),
            },
            not_looked: Failures::default(),
            not_taken_out: Failures::default(),
            failure: None,
            to,
        };
        (guard, said)
    }

    /// Runs until the receiver is dropped.
    pub async fn run(mut self) {
        while !self.to.is_closed() {
            self.view.leads = self.leads.now();
            match self.view.next(self.clock.now()) {
                Act::Look => self.look().await,
                Act::TakeOut => self.take_out().await,
                Act::Say(webhook) => self.say(webhook),
                Act::Wait(until) => {
                    tokio::select! {
                        () = self.to.closed() => return,
                        () = tokio::time::sleep(self.clock.until(until)) => {}
                    }
                }
            }
        }
    }

    /// Reads the configuration before the replicas. If a replica becomes ready in between, it writes the configuration,
    /// and a patch based on the read one fails.
    async fn look(&mut self) {
        let looked = async {
            let object = self.calls.configuration().await?;
            Ok((object, self.calls.replicas().await?))
        };
        match looked.await {
            Ok((object, lease)) => {
                let now = self.clock.now();
                self.replicas.take_in(now, &lease);
                self.see(object);
                self.view.looked = Some(now);
                self.view.silent_since = self.replicas.silent_since();
                self.not_looked.end();
            }
            Err(error) => {
                let (wait, is_news) = self.not_looked.add(&error);
                self.failed(("look at the webhook's replicas", wait, is_news), &error);
            }
        }
    }

    fn see(&mut self, object: Value) {
        self.view.registration = Registration::of(&object, &[]);
        self.object = object;
    }

    async fn take_out(&mut self) {
        match self
            .calls
            .change(&configuration::take_out(&self.object))
            .await
        {
            Ok(object) => {
                self.see(object);
                self.not_taken_out.end();
            }
            Err(error) => {
                // Another process may have written first.
                self.view.looked = None;
                let (wait, is_news) = self.not_taken_out.add(&error);
                self.failed(("take the webhook out", wait, is_news), &error);
            }
        }
    }

    fn say(&mut self, webhook: Webhook) {
        let silent = self.view.patience;
        match webhook {
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
        self.to.send_replace(webhook);
    }

    fn failed(&mut self, (action, wait, is_news): (&str, Span, bool), error: &kube::Error) {
        self.view.not_before = self.clock.now() + wait;
        let error = in_a_line(error);
        if is_news && self.failure.as_ref() != Some(&error) {
            warn(action, &error, TRIED_AGAIN);
            self.failure = Some(error);
        }
    }
}
