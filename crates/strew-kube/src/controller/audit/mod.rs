//! The controller `audit`: on a timer it lists the cluster, lets an [`Auditor`] play what each domain's loss would do, and
//! serves the results as metrics. It writes nothing.
//!
//! Reading order: `survey` (the frame), this file, `metrics`.

pub mod metrics;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde_json::Value;

use super::survey::{self, Running, Survey, cut};
use crate::clock::Clock;
use crate::leading::Leads;
pub use metrics::{Metric, Series};

/// Audits a cluster of these objects. Returns the series, the worst first.
///
/// # Errors
/// The audit was not possible; the text says why.
pub type Auditor = Arc<dyn Fn(Vec<Value>) -> Result<Vec<Series>, String> + Send + Sync>;

/// How the cluster is audited.
#[derive(Clone)]
pub struct Settings {
    /// The pause between two audits.
    pub every: Duration,
    /// The most series about workloads, budgets and domains.
    pub max_series: usize,
    /// Plays the audit.
    pub auditor: Auditor,
}

/// The running controller.
pub(super) type Audits = Running<Vec<Series>, ()>;

/// Starts the controller.
pub(super) fn begin(client: Client, clock: Clock, leads: Leads, settings: Settings) -> Audits {
    let links = (client, clock, leads);
    survey::begin("audit", links, move |survey| run(survey, settings.clone()))
}

async fn run(survey: Survey<Vec<Series>, ()>, settings: Settings) {
    loop {
        let began = survey.led().await;
        let auditor = Arc::clone(&settings.auditor);
        let looked = survey.look(auditor, |auditor, _, objects| auditor(objects));
        match looked.await.1 {
            Ok(mut series) => {
                let left_out = cut(&mut series, settings.max_series);
                let n_series = series.len();
                let seconds = survey.keep(began, series, left_out).0 / 1_000_000_000;
                tracing::info!(series = n_series, left_out, seconds, "audited");
            }
            Err(error) => {
                let next = "after --audit-every; the series of the last audit stay";
                survey.failed("audit", &error, next);
            }
        }
        tokio::time::sleep(settings.every).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// An API server with one node and nothing else.
    fn client() -> Client {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let items = match request.uri().path().ends_with("/nodes") {
                true => json!([{"metadata": {"name": "n", "managedFields": [{"manager": "m"}]}}]),
                false => json!([]),
            };
            let body =
                json!({"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items});
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, tower::BoxError>(Response::new(body))
        });
        Client::new(service, "default")
    }

    fn series(n: usize) -> Vec<Series> {
        let one = |n| Series {
            metric: Metric::Survives,
            labels: ["ns", "w", "zone", "a", "loss"].map(str::to_owned).to_vec(),
            value: n as f64,
        };
        (0..n).map(one).collect()
    }

    /// The samples of a metric that are served.
    fn values(audits: &Audits, name: &str) -> Vec<f64> {
        let families = audits.families();
        let family = families.iter().find(|family| family.info.name == name);
        let samples = family.into_iter().flat_map(|family| &family.samples);
        let number = |value: &strew_scheduler::metrics::Value| match value {
            strew_scheduler::metrics::Value::Number(number) => *number,
            strew_scheduler::metrics::Value::Count(count) => *count as f64,
            strew_scheduler::metrics::Value::Histogram(_) => f64::NAN,
        };
        samples.map(|sample| number(&sample.value)).collect()
    }

    async fn audits(clock: Clock, auditor: Auditor, max_series: usize) -> Audits {
        let settings = Settings {
            every: Duration::from_secs(600),
            max_series,
            auditor,
        };
        begin(client(), clock, Leads::always(clock), settings)
    }

    /// Waits until a number of audits has ended, well or not.
    async fn ended(audits: &Audits, n: f64) {
        while values(audits, "strew_audit_runs_total").iter().sum::<f64>() < n {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_worst_series_are_served_and_the_others_counted() {
        let clock = Clock::of_timers();
        let auditor: Auditor = Arc::new(|objects| {
            assert_eq!(objects.len(), 1, "{objects:?}");
            assert!(objects[0]["metadata"]["managedFields"].is_null());
            Ok(series(5))
        });
        let audits = audits(clock, auditor, 3).await;
        assert_eq!(
            values(&audits, "strew_audit_last_success_timestamp_seconds"),
            [0.0; 0]
        );
        ended(&audits, 1.0).await;
        assert_eq!(
            values(&audits, "strew_audit_workload_survives"),
            [0.0, 1.0, 2.0]
        );
        assert_eq!(values(&audits, "strew_audit_series_left_out"), [2.0]);
        assert_eq!(
            values(&audits, "strew_audit_last_success_timestamp_seconds").len(),
            1
        );
    }

    #[tokio::test]
    async fn an_audit_that_fails_or_panics_is_counted_and_the_process_goes_on() {
        let clock = Clock::of_timers();
        let n = Arc::new(AtomicUsize::new(0));
        let auditor: Auditor = Arc::new(move |_| match n.fetch_add(1, Ordering::Relaxed) {
            0 => Err("no node has the key".to_owned()),
            _ => panic!("gone"),
        });
        let settings = Settings {
            every: Duration::from_millis(1),
            max_series: 3,
            auditor,
        };
        let audits = begin(client(), clock, Leads::always(clock), settings);
        ended(&audits, 3.0).await;
        assert_eq!(values(&audits, "strew_audit_runs_total")[0], 0.0);
    }

    /// A long audit leaves this thread to others: they answer while it waits for them.
    #[tokio::test]
    async fn an_audit_blocks_no_other_task() {
        let (say, heard) = std::sync::mpsc::channel::<()>();
        let heard = Mutex::new(heard);
        let auditor: Auditor = Arc::new(move |_| {
            let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = heard.recv_timeout(Duration::from_secs(30));
            waited.map_err(|error| error.to_string())?;
            Ok(series(1))
        });
        let audits = audits(Clock::of_timers(), auditor, 3).await;
        let other = tokio::spawn(async move { say.send(()) });
        other
            .await
            .expect("it does not panic")
            .expect("the audit waits");
        ended(&audits, 1.0).await;
        assert_eq!(values(&audits, "strew_audit_workload_survives"), [0.0]);
    }
}
