//! The controller's part of the registration: if no replica has been ready or reached for a while, it removes the webhook, so that
//! pods can be created, and sets a condition on every WorkloadSpread.

use kube::Client;
use serde_json::Value;
use strew_model::time::{Instant, Span};
use strew_wire::workloadspread::registration::ADMIT;
use strew_workloadspread::facts::status::Webhook;
use tokio::sync::watch;

use super::calls::{Calls, Failures};
use super::configuration::{self, Registration};
use super::plan::{Act, Watcher};
use super::replicas::Replicas;
use super::way::{Way, bundle_of};
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
            patience: Span::from_secs(6),
            is_strict: false,
        }
    }
}

/// Watches replicas and registration; reports while this process leads.
pub struct Guard {
    calls: Calls,
    clock: Clock,
    leads: Leads,
    replicas: Replicas,
    /// The configuration as last read.
    object: Value,
    view: Watcher,
    /// The registered way, once it has led to a webhook from here.
    reached: Option<Way>,
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
                unreached_since: None,
                is_deleted: false,
                registration: Registration::Absent,
                said: Webhook::Unknown,
                not_before: Instant(0),
            },
            reached: None,
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
                self.try_way().await;
            }
            Err(error) => {
                self.replicas.not_read(self.clock.now());
                let (wait, is_news) = self.not_looked.add(&error);
                self.failed(("look at the webhook's replicas", wait, is_news), &error);
            }
        }
    }

    /// Asks by the registered way. A way that has never led to a webhook from here proves nothing: it may be open to
    /// the API server alone.
    async fn try_way(&mut self) {
        let config = &self.object["webhooks"][0]["clientConfig"];
        let is_ours = matches!(
            self.view.registration,
            Registration::In { is_ours: true, .. }
        );
        let way = Way::of(config, ADMIT).filter(|_| is_ours);
        let Some(way) = way else {
            self.view.unreached_since = None;
            return;
        };
        match way.ask(&bundle_of(config)).await {
            Ok(()) => {
                self.reached = Some(way);
                self.view.unreached_since = None;
            }
            Err(unreached) if unreached.is_certain && self.reached.as_ref() == Some(&way) => {
                let now = self.clock.now();
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
