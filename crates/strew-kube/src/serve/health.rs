//! `/livez`, `/readyz`, `/healthz`: named checks, with Kubernetes' texts.
//!
//! Source: k8s.io/apiserver `pkg/server/healthz` and `cmd/kube-scheduler/app/server.go`, v1.36.3; spec/scheduler §5.5.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;
use strew_model::{Instant, Span};
use strew_runtime::Warning;
use tokio_util::sync::CancellationToken;

use super::pages::{error, text};

/// How long after the end of its lease a leader may take to notice. Source: kube-scheduler, `server.go`.
const TOLERATED: Span = Span::from_secs(20);

/// A named health check.
pub trait Check: Send + Sync + 'static {
    /// Its name, which is the last part of its path.
    fn name(&self) -> &str;

    /// Runs the check.
    ///
    /// # Errors
    /// What is unhealthy, in words.
    fn check(&self) -> Result<(), String>;

    /// True if its failure is shown, and does not make the page fail.
    fn is_shown_only(&self) -> bool {
        false
    }
}

/// The checks of each page.
#[derive(Default, Clone)]
pub struct Health {
    /// Checks of `/livez`: if one fails, the process should be restarted.
    pub live: Vec<Arc<dyn Check>>,
    /// Checks of `/readyz`: if one fails, the process cannot do its work now.
    pub ready: Vec<Arc<dyn Check>>,
    /// Checks of `/healthz`, for older probes.
    pub health: Vec<Arc<dyn Check>>,
}

impl Health {
    /// The three pages, and one page per check. A page without checks has `ping`.
    pub fn pages(self) -> Router {
        let pages = [
            ("livez", self.live),
            ("readyz", self.ready),
            ("healthz", self.health),
        ];
        let mut router = Router::new();
        for (name, mut checks) in pages {
            if checks.is_empty() {
                checks.push(Arc::new(Ping));
            }
            for check in &checks {
                let path = format!("/{name}/{}", check.name());
                let check = Arc::clone(check);
                router = router.route(&path, get(async move || one(&*check)));
            }
            let checks: Arc<[_]> = checks.into();
            let page = get(async move |RawQuery(query): RawQuery| {
                all(name, &checks, query.as_deref().unwrap_or_default())
            });
            router = router.route(&format!("/{name}"), page);
        }
        router
    }
}

/// The response of one check.
fn one(check: &dyn Check) -> Response {
    match check.check() {
        Ok(()) => text(StatusCode::OK, "ok".to_owned()),
        Err(why) => {
            let why = format!("internal server error: {why}");
            error(StatusCode::INTERNAL_SERVER_ERROR, &why)
        }
    }
}

/// The response of all checks of a page, except those that `exclude=NAME` names.
fn all(page: &str, checks: &[Arc<dyn Check>], query: &str) -> Response {
    let parameters: Vec<(&str, &str)> = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    let of = |wanted: &'static str| {
        let all = parameters.iter().filter(move |(key, _)| *key == wanted);
        all.map(|(_, value)| *value)
    };
    let mut excluded: BTreeSet<&str> = of("exclude").collect();
    let mut lines = String::new();
    let mut failed = Vec::new();
    for check in checks {
        let name = check.name();
        let line = match excluded.remove(name) {
            true => format!("[+]{name} excluded: ok"),
            false => match check.check() {
                Ok(()) => format!("[+]{name} ok"),
                Err(why) if check.is_shown_only() => format!("[!]{name}: {why}"),
                Err(why) => {
                    failed.push(format!("{name} ({why})"));
                    format!("[-]{name} failed: reason withheld")
                }
            },
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(", ");
        let warning = "warn: some health checks cannot be excluded: no matches for";
        lines.push_str(&format!("{warning} {names}\n"));
    }
    if !failed.is_empty() {
        let check = Warning {
            kind: "page",
            namespace: "",
            name: page,
            node: None,
            action: "health check",
            error: &failed.join(", "),
            next: "when it is asked again",
        };
        check.log();
        let why = format!("{lines}{page} check failed");
        return error(StatusCode::INTERNAL_SERVER_ERROR, &why);
    }
    let verbose = of("verbose").next().is_some();
    let passed = match verbose {
        true => format!("{lines}{page} check passed\n"),
        false => "ok".to_owned(),
    };
    text(StatusCode::OK, passed)
}

// === checks ===

/// Always healthy.
#[derive(Debug, Clone, Copy)]
pub struct Ping;

impl Check for Ping {
    fn name(&self) -> &str {
        "ping"
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Healthy once it has been set: `sched-handler-sync`.
#[derive(Debug)]
pub struct Awaited {
    name: &'static str,
    until_then: &'static str,
    done: AtomicBool,
}

impl Awaited {
    /// A check with its message until it becomes healthy.
    pub fn new(name: &'static str, until_then: &'static str) -> Self {
        let done = AtomicBool::new(false);
        Self {
            name,
            until_then,
            done,
        }
    }

    /// Healthy once the cluster has been listed: the check of kube-scheduler's `/readyz`.
    pub fn handlers_synchronized() -> Self {
        Self::new("sched-handler-sync", "handlers are not fully synchronized")
    }

    /// Sets whether it is healthy.
    pub fn set(&self, done: bool) {
        self.done.store(done, Ordering::Relaxed);
    }
}

impl Check for Awaited {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&self) -> Result<(), String> {
        match self.done.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(self.until_then.to_owned()),
        }
    }
}

/// A state that a page shows; the page does not fail. If it did, no Service would lead to the process, and the state
/// could not end.
#[derive(Debug)]
pub struct Shown {
    name: &'static str,
    why: Mutex<Option<String>>,
}

impl Shown {
    /// A state with its first fault.
    pub fn new(name: &'static str, why: &str) -> Self {
        let why = Mutex::new(Some(why.to_owned()));
        Self { name, why }
    }

    /// Sets the fault; `None`: all is well.
    pub fn set(&self, why: Option<String>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

impl Check for Shown {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&self) -> Result<(), String> {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone().map_or(Ok(()), Err)
    }

    fn is_shown_only(&self) -> bool {
        true
    }
}

/// The loop of a machine hangs if it has not turned for this long. A turn takes a small part of this.
const HANGS_AFTER: Span = Span::from_secs(30);

/// The loop of a machine turns at least this often.
pub(crate) const TURNS_EVERY: Duration = Duration::from_secs(5);

/// Healthy while a loop keeps turning; a hanging thread stops beating.
#[derive(Debug)]
pub struct Heartbeat {
    name: &'static str,
    hangs_after: Span,
    /// Monotonic nanoseconds.
    clock: fn() -> u64,
    beat_at: AtomicU64,
}

impl Heartbeat {
    /// The loop of a machine, which has turned just now.
    pub(crate) fn of_decisions() -> Self {
        Self::new("decisions", HANGS_AFTER, crate::clock::stopwatch)
    }

    /// A loop that has turned just now, and counts as hanging after this long without a turn.
    pub fn new(name: &'static str, hangs_after: Span, clock: fn() -> u64) -> Self {
        Self {
            name,
            hangs_after,
            clock,
            beat_at: AtomicU64::new(clock()),
        }
    }

    /// Records a turn of the loop.
    pub fn beat(&self) {
        self.beat_at.store((self.clock)(), Ordering::Relaxed);
    }
}

impl Check for Heartbeat {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&self) -> Result<(), String> {
        let beat_at = self.beat_at.load(Ordering::Relaxed);
        let silent = Span((self.clock)().saturating_sub(beat_at));
        match silent > self.hangs_after {
            true => Err(format!(
                "no turn of the loop for {} s",
                silent.0 / 1_000_000_000
            )),
            false => Ok(()),
        }
    }
}

/// Healthy until the process is asked to stop.
#[derive(Debug, Clone)]
pub struct Shutdown(pub CancellationToken);

impl Check for Shutdown {
    fn name(&self) -> &str {
        "shutdown"
    }

    fn check(&self) -> Result<(), String> {
        match self.0.is_cancelled() {
            true => Err("process is shutting down".to_owned()),
            false => Ok(()),
        }
    }
}

/// The clock for the end of a lease.
pub type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// Unhealthy if a leader still believes to lead long after its lease has ended: then it hangs.
pub struct LeaderWatchdog {
    lease: String,
    lease_duration: Span,
    clock: Clock,
    leads: AtomicBool,
    /// In nanoseconds of `clock`.
    renewed_at: AtomicU64,
}

impl LeaderWatchdog {
    /// For a lease of this name and duration. `clock` is the election's.
    pub fn new(lease: String, lease_duration: Span, clock: Clock) -> Self {
        Self {
            lease,
            lease_duration,
            clock,
            leads: AtomicBool::new(false),
            renewed_at: AtomicU64::new(0),
        }
    }

    /// This process leads, with a lease renewed at this moment.
    pub fn renewed(&self, at: Instant) {
        self.renewed_at.store(at.0, Ordering::Release);
        self.leads.store(true, Ordering::Release);
    }

    /// This process no longer leads.
    pub fn follows(&self) {
        self.leads.store(false, Ordering::Release);
    }
}

impl Check for LeaderWatchdog {
    fn name(&self) -> &str {
        "leaderElection"
    }

    fn check(&self) -> Result<(), String> {
        if !self.leads.load(Ordering::Acquire) {
            return Ok(());
        }
        let renewed_at = Instant(self.renewed_at.load(Ordering::Acquire));
        match (self.clock)() > renewed_at + self.lease_duration + TOLERATED {
            true => Err(format!(
                "failed election to renew leadership on lease {}",
                self.lease
            )),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
