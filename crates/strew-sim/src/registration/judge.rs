//! Judges what docs/webhook.md promises about the registration. It looks at the cluster, not at the machines.

use strew_model::time::{Instant, Span};

use crate::auditor::Rule;

/// A replica that is not reached is the reason for refused creations for this long at most.
const REFUSED_MAX: Span = Span::from_secs(10);

/// A replica that is reached registers itself within this long: a review every 2 s, a question that may get no answer
/// for 3 s, and three requests.
const UNREGISTERED_MAX: Span = Span::from_secs(8);

/// A replica that was reached for this long is the reason that the registration stays.
const REACHED_MIN: Span = Span::from_secs(10);

/// After a fault of requests, processes may wait for this long before they send the next one.
const RECOVERS_WITHIN: Span = Span::from_secs(65);

/// What became of the API server's question about a new pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewOutcome {
    /// No webhook is registered.
    Unreviewed,
    /// A replica was reached.
    Reached,
    /// No replica was reached.
    Unreached,
    /// The replica's certificate is not trusted.
    Untrusted,
}

/// The state of the cluster at an instant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scene {
    /// A webhook is registered in the store by strew.
    pub(super) is_registered: bool,
    /// The configuration exists.
    pub(super) is_installed: bool,
    /// Creations would be refused.
    pub(super) is_blocked: bool,
    /// Since when one and the same replica is reached, and reaches the API server, by all that a story does.
    pub(super) reached_since: Option<Instant>,
    /// Since when a controller works without a fault.
    pub(super) guarded_since: Option<Instant>,
    /// A fault of requests is active, or no process reaches the registered port.
    pub(super) is_stormy: bool,
    /// A replica answers its own reviews late.
    pub(super) is_busy: bool,
    /// The API server trusts every replica, if it asks.
    pub(super) is_trusted: bool,
    /// It asks, and trusts at least one replica and every one, about creations and deletions. Without a replica nothing is
    /// proven: the next one may begin with another CA.
    pub(super) is_proven: bool,
}

/// What was seen so far, and the violations found.
#[derive(Debug, Default)]
pub(super) struct Judge {
    is_strict: bool,
    last: Scene,
    blocked_since: Option<Instant>,
    idle_since: Option<Instant>,
    /// When a fault of requests was last active.
    storm: Instant,
    /// When a replica was last busy.
    busy: Instant,
    /// When a user last changed the configuration.
    edited: Instant,
    /// A user has changed what is trusted, and it is not proven since that every replica is.
    is_doubtful: bool,
    found: Vec<(Rule, String, String)>,
}

impl Judge {
    pub(super) fn new(is_strict: bool) -> Self {
        Self {
            is_strict,
            ..Self::default()
        }
    }

    /// A user changes the configuration.
    pub(super) fn edited(&mut self, now: Instant) {
        self.edited = now;
        self.last.is_registered = false;
        self.idle_since = None;
    }

    /// A user changes what is trusted: the replica that keeps the certificates mends it, once one is elected.
    pub(super) fn doubted(&mut self) {
        self.is_doubtful = true;
    }

    /// The violations since the last call.
    pub(super) fn take(&mut self) -> Vec<(Rule, String, String)> {
        std::mem::take(&mut self.found)
    }

    fn blame(&mut self, rule: Rule, text: String) {
        self.found
            .push((rule, "the webhook's registration".to_owned(), text));
    }

    /// The API server has asked about a new pod, or not.
    pub(super) fn called(&mut self, now: Instant, outcome: ReviewOutcome) {
        let is_late = now >= self.edited + REFUSED_MAX && !self.is_doubtful;
        if outcome == ReviewOutcome::Untrusted && is_late {
            let text = "the API server does not trust the certificate of a replica".to_owned();
            self.blame(Rule::WebhookTrust, text);
        }
        let is_ours = !self.is_strict || now < self.edited + REFUSED_MAX;
        if outcome == ReviewOutcome::Unreviewed && !is_ours && self.last.is_registered {
            let text = "a pod is created without a review, though the webhook stays registered";
            self.blame(Rule::WebhookRegistered, text.to_owned());
        }
    }

    /// The cluster at an instant. Between two instants nothing changes.
    pub(super) fn see(&mut self, now: Instant, scene: Scene) {
        self.judge_refusals(now, scene);
        self.judge_absence(now, scene);
        self.judge_removal(now, scene);
        if scene.is_stormy {
            self.storm = now;
        }
        let is_late = now >= self.edited + REFUSED_MAX && !self.is_doubtful;
        if !scene.is_trusted && self.last.is_trusted && is_late {
            let text = "the API server does not trust the certificate of a replica".to_owned();
            self.blame(Rule::WebhookTrust, text);
        }
        if scene.is_proven && now >= self.edited + REFUSED_MAX {
            self.is_doubtful = false;
        }
        if scene.is_busy {
            self.busy = now;
        }
        self.last = scene;
    }

    fn judge_refusals(&mut self, now: Instant, scene: Scene) {
        if let (Some(blocked), Some(guarded)) = (self.blocked_since, self.last.guarded_since)
            && !self.is_strict
        {
            let since = blocked.max(guarded).max(self.edited);
            if now > since + REFUSED_MAX {
                let text = format!("creations are refused for {}", now.since(since));
                self.blame(Rule::WebhookRefuses, text);
                // Once is enough.
                self.blocked_since = Some(now);
            }
        }
        self.blocked_since = match (scene.is_blocked, self.blocked_since) {
            (false, _) => None,
            (true, since) => Some(since.unwrap_or(now)),
        };
    }

    /// What is reached is registered.
    fn judge_absence(&mut self, now: Instant, scene: Scene) {
        if let (Some(idle), Some(reached)) = (self.idle_since, self.last.reached_since) {
            let since = idle.max(reached).max(self.edited);
            let since = since.max(self.storm + RECOVERS_WITHIN).max(self.busy);
            if now > since + UNREGISTERED_MAX {
                let lasts = now.since(since);
                let text = format!("not registered for {lasts}, though a replica is reached");
                self.blame(Rule::WebhookRegistered, text);
                self.idle_since = Some(now);
            }
        }
        let is_idle = scene.is_installed && !scene.is_registered;
        self.idle_since = match (is_idle, self.idle_since) {
            (false, _) => None,
            (true, since) => Some(since.unwrap_or(now)),
        };
    }

    /// What is reached stays registered, whatever the load.
    fn judge_removal(&mut self, now: Instant, scene: Scene) {
        let is_removed = self.last.is_registered && scene.is_installed && !scene.is_registered;
        let is_calm = now > self.storm + RECOVERS_WITHIN;
        let Some(reached) = self.last.reached_since.filter(|_| is_removed && is_calm) else {
            return;
        };
        if now > reached + REACHED_MIN && scene.reached_since.is_some() {
            let text = format!(
                "taken out, though a replica has been reached for {}",
                now.since(reached)
            );
            self.blame(Rule::WebhookRegistered, text);
        }
    }
}
