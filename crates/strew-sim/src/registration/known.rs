//! What the API server knows of the configuration: its watch is late.

use std::collections::VecDeque;

use serde_json::Value;
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::registration::way::bundle_of;
use strew_wire::request::Resource;
use strew_wire::workloadspread::registration::NAME;

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
    /// The version of the last change that was sent.
    version: Option<String>,
    /// Changes under way.
    coming: VecDeque<(Instant, Option<Terms>)>,
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
        let version = stored.and_then(|object| object["metadata"]["resourceVersion"].as_str());
        if version != self.version.as_deref() {
            self.version = version.map(str::to_owned);
            let millis = lag.0 / 1_000_000;
            let due = now + Span::from_millis(rng.between(0, millis));
            // A watch shows changes in their order.
            let due = self.coming.back().map_or(due, |(last, _)| due.max(*last));
            self.coming.push_back((due, stored.and_then(Terms::of)));
        }
        let before = self.terms.clone();
        while let Some((_, terms)) = self.coming.pop_front_if(|(due, _)| *due <= now) {
            self.terms = terms;
        }
        self.terms != before
    }

    /// How the API server asks; `None` if no webhook is registered as far as it knows.
    pub(super) fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// When the next change arrives.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.coming.front().map(|(due, _)| *due)
    }
}
