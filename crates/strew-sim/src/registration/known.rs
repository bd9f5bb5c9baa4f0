//! What the API server knows of the configuration: its watch is late.

use serde_json::Value;
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::registration::way::bundle_of;
use strew_wire::request::Resource;
use strew_wire::workloadspread::registration::NAME;

use super::follow::Follow;

/// How the API server asks about a new pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    /// `timeoutSeconds`
    pub(crate) timeout: Span,
    /// `failurePolicy: Fail`
    pub(crate) is_needed: bool,
    /// The CAs that it trusts, in PEM.
    pub(crate) bundle: String,
}

impl Terms {
    /// The terms of a webhook that is registered always, and trusted.
    pub(crate) fn always(timeout: Span) -> Self {
        Self {
            timeout,
            is_needed: true,
            bundle: String::new(),
        }
    }

    /// The terms of a configuration; `None` if it has no webhook.
    fn of(configuration: &Value) -> Option<Self> {
        let webhook = configuration["webhooks"].get(0)?;
        let secs = webhook["timeoutSeconds"].as_u64().unwrap_or(10);
        Some(Self {
            timeout: Span::from_secs(secs),
            is_needed: webhook["failurePolicy"] == "Fail",
            bundle: bundle_of(&webhook["clientConfig"]),
        })
    }
}

/// The configuration as the API server's watch has shown it.
#[derive(Debug, Default)]
pub(super) struct Known {
    terms: Option<Terms>,
    watch: Follow,
}

impl Known {
    /// Takes in what has changed, and what has arrived. Returns true if the terms have changed.
    pub(super) fn update(
        &mut self,
        now: Instant,
        server: &Server,
        lag: Span,
        rng: &mut Prng,
    ) -> bool {
        let stored = server.document(Resource::MUTATING_WEBHOOKS, "", NAME);
        let Some(shown) = self.watch.next(now, stored, lag, rng) else {
            return false;
        };
        let terms = Terms::of(&shown);
        let is_news = terms != self.terms;
        self.terms = terms;
        is_news
    }

    /// How the API server asks; `None` if no webhook is registered as far as it knows.
    pub(super) fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// When the next change arrives.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.watch.next_wake()
    }
}
