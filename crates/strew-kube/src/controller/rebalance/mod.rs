//! The controller `rebalance`: on a timer it lists the cluster, lets a [`Rebalancer`] plan evictions for the workloads
//! that ask for it, and sends them, one step at a time.
//!
//! The rebalancer decides and asks nothing; this module sends and waits. Only the leader acts: the lease is asked right
//! before each eviction, and each names the uid of its pod. Nothing is kept beyond the process: a new leader begins with
//! what the cluster says, and waits until the step of the one before is over.
//!
//! Reading order: `survey` (the frame), this file, `metrics`.

pub mod metrics;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde_json::Value;
use strew_model::time::Span;
use strew_wire::request::{Answer, Next, Request};

use super::survey::{self, LOOKS_EVERY, Running, Survey, cut};
use crate::clock::{Clock, duration};
use crate::leading::Leads;
use crate::send::{once, read};

/// Decides what is evicted. Times are since the start of the process.
pub trait Rebalancer: Send {
    /// Makes a plan for a cluster of these objects, which takes the place of the one before.
    ///
    /// # Errors
    /// No plan was possible; the text says why.
    fn plan(&mut self, now: Span, objects: Vec<Value>) -> Result<Found, String>;

    /// The namespace of the step that is next, or under way; `None` if nothing is to be done before the next plan.
    fn namespace(&self) -> Option<String>;

    /// What is next, after a look at the pods of that namespace: a PodList.
    fn look(&mut self, now: Span, pods: &Value) -> Next;

    /// What is next, after the answer to the eviction.
    fn answered(&mut self, now: Span, answer: &Answer) -> Next;
}

/// What a look at the whole cluster found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The workloads that ask to be rebalanced.
    pub n_labelled: usize,
    /// Those of them with a constraint that the plan mends or leaves.
    pub n_uneven: usize,
    /// Those of them that are not looked at now.
    pub n_waiting: usize,
    /// The evictions of the plan.
    pub n_evictions: usize,
    /// The constraints that the plan leaves uneven, the most uneven first.
    pub left: Vec<Left>,
    /// What a person should know, one line each.
    pub notes: Vec<String>,
}

/// A constraint that stays uneven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The namespace.
    pub namespace: String,
    /// `Deployment/web`
    pub workload: String,
    /// `topologyKey`
    pub topology_key: String,
    /// The least number of pods that must change their domain.
    pub moves: u64,
}

impl Left {
    /// The values of its labels, in their order.
    pub fn labels(&self) -> [String; 3] {
        [&self.namespace, &self.workload, &self.topology_key].map(Clone::clone)
    }
}

/// How the cluster is rebalanced.
#[derive(Clone)]
pub struct Settings {
    /// The pause between two looks at the whole cluster, unless there is more to do.
    pub every: Duration,
    /// The most series about constraints that stay uneven.
    pub max_series: usize,
    /// Makes what decides.
    pub rebalancer: Arc<dyn Fn() -> Box<dyn Rebalancer> + Send + Sync>,
}

/// The pause after a plan of which steps were carried out.
const GOES_ON_AFTER: Duration = Duration::from_secs(10);

/// The time limit for the answer to an eviction.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The time limit for a list of pods.
const LISTS_WITHIN: Span = Span::from_secs(60);

/// What came of all steps.
#[derive(Debug, Default)]
pub(super) struct Counters {
    n_evicted: u64,
    n_refused: u64,
    n_lost: u64,
    n_stopped: u64,
}

/// The running controller.
pub(super) type Rebalances = Running<Found, Counters>;

/// Starts the controller.
pub(super) fn begin(client: Client, clock: Clock, leads: Leads, settings: Settings) -> Rebalances {
    let links = (client, clock, leads);
    survey::begin("rebalance", links, move |survey| {
        run(survey, settings.clone())
    })
}

async fn run(survey: Survey<Found, Counters>, settings: Settings) {
    let mut rebalancer = (settings.rebalancer)();
    loop {
        let began = survey.led().await;
        let looked = survey.look(rebalancer, |decides, now, objects| {
            decides.plan(now, objects)
        });
        let (again, planned) = looked.await;
        rebalancer = again.unwrap_or_else(|| (settings.rebalancer)());
        let pause = match planned {
            Ok(mut found) => {
                let n_left_out = cut(&mut found.left, settings.max_series);
                log(&found, survey.state().found.as_ref());
                survey.keep(began, found, n_left_out);
                carry_out(&survey, settings.every, &mut *rebalancer).await
            }
            Err(error) => {
                survey.failed("plan", &error, "after --rebalance-every");
                settings.every
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Logs the notes that the look before did not have.
fn log(found: &Found, before: Option<&Found>) {
    let before = before.map_or(&[][..], |before| &before.notes);
    for note in found.notes.iter().filter(|note| !before.contains(note)) {
        tracing::info!("rebalance: {note}");
    }
}

/// Carries the plan out, as long as this replica leads. Returns the pause before the next look at the cluster.
async fn carry_out(
    survey: &Survey<Found, Counters>,
    every: Duration,
    rebalancer: &mut dyn Rebalancer,
) -> Duration {
    let mut has_evicted = false;
    while let Some(namespace) = rebalancer.namespace() {
        if !survey.leads.now() {
            return LOOKS_EVERY;
        }
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let listed = read(&survey.client, &path, LISTS_WITHIN).await;
        let Some(pods) = listed.object() else {
            survey.warn("list pods", &listed.words(), "with the next plan");
            return every;
        };
        let mut next = rebalancer.look(survey.now(), pods);
        if let Next::Evict(request) = &next {
            // The list may have taken long.
            if !survey.leads.now() {
                return LOOKS_EVERY;
            }
            let answer = once(&survey.client, request, ANSWERS_WITHIN).await;
            has_evicted |= survey.state().counters.told(request, &answer);
            next = rebalancer.answered(survey.now(), &answer);
        }
        match next {
            Next::Look(after) => tokio::time::sleep(duration(after)).await,
            Next::Evict(_) => {}
            Next::Done => break,
            Next::Stop(why) => {
                survey.state().counters.n_stopped += 1;
                survey.warn("carry out the plan", &why, "with a new plan");
                break;
            }
        }
    }
    match has_evicted {
        true => GOES_ON_AFTER.min(every),
        false => every,
    }
}

impl Counters {
    /// Counts and logs an eviction; returns whether the pod is evicted.
    fn told(&mut self, request: &Request, answer: &Answer) -> bool {
        match answer {
            Answer::Status { .. } if answer.object().is_some() => {
                self.n_evicted += 1;
                tracing::info!(
                    namespace = request.namespace,
                    name = request.name,
                    uid = request.precondition.uid.as_deref().unwrap_or_default(),
                    "evicted a pod"
                );
                return true;
            }
            Answer::Lost(_) => self.n_lost += 1,
            Answer::Status { .. } | Answer::Refused(_) => self.n_refused += 1,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use http::{Method, Request as HttpRequest, Response};
    use kube::client::Body;
    use serde_json::json;
    use strew_wire::request::{Precondition, Resource, Verb};

    use super::*;

    /// An API server with one node that grants or refuses every eviction, and counts them.
    fn client(evictions: Arc<AtomicUsize>, code: u16) -> Client {
        let service = tower::service_fn(move |request: HttpRequest<Body>| {
            let evictions = Arc::clone(&evictions);
            async move {
                let is_node = request.uri().path().ends_with("/nodes");
                let (code, body) = match *request.method() {
                    Method::POST => {
                        evictions.fetch_add(1, Ordering::Relaxed);
                        (
                            code,
                            json!({"kind": "Status", "message": "as the test says"}),
                        )
                    }
                    _ => {
                        let items = if is_node {
                            json!([{"metadata": {"name": "n"}}])
                        } else {
                            json!([])
                        };
                        (
                            200,
                            json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}),
                        )
                    }
                };
                let body = Body::from(body.to_string().into_bytes());
                let response = Response::builder().status(code).body(body);
                response.map_err(tower::BoxError::from)
            }
        });
        Client::new(service, "default")
    }

    /// Evicts the pods of a list, one after the other; the first plan has all, later ones have none.
    struct Script {
        pods: Vec<&'static str>,
        n_plans: Arc<AtomicUsize>,
        /// Until when the replica leads; it ends between the look and the eviction if `loses`.
        until: Arc<AtomicU64>,
        loses: bool,
        panics: bool,
    }

    impl Rebalancer for Script {
        fn plan(&mut self, _: Span, objects: Vec<Value>) -> Result<Found, String> {
            assert_eq!(objects.len(), 1);
            assert!(!self.panics, "planning fails");
            self.n_plans.fetch_add(1, Ordering::Relaxed);
            let left = |moves| Left {
                namespace: "shop".to_owned(),
                workload: "Deployment/web".to_owned(),
                topology_key: "zone".to_owned(),
                moves,
            };
            Ok(Found {
                n_labelled: 3,
                n_uneven: 1,
                n_evictions: self.pods.len(),
                left: vec![left(5), left(3)],
                ..Found::default()
            })
        }

        fn namespace(&self) -> Option<String> {
            (!self.pods.is_empty()).then(|| "shop".to_owned())
        }

        fn look(&mut self, _: Span, pods: &Value) -> Next {
            assert!(pods["items"].is_array());
            if self.loses {
                self.until.store(0, Ordering::Relaxed);
            }
            Next::Evict(Box::new(Request {
                verb: Verb::Create,
                resource: Resource::PODS,
                namespace: "shop".to_owned(),
                name: self.pods.remove(0).to_owned(),
                subresource: "eviction",
                body: json!({}),
                precondition: Precondition::uid("uid"),
            }))
        }

        fn answered(&mut self, _: Span, answer: &Answer) -> Next {
            match answer.object() {
                Some(_) => Next::Look(Span::from_millis(1)),
                None => Next::Stop("refused".to_owned()),
            }
        }
    }

    #[derive(Clone, Copy)]
    struct Given {
        code: u16,
        panics: bool,
        leads: bool,
        loses: bool,
    }

    const LEADS: Given = Given {
        code: 201,
        panics: false,
        leads: true,
        loses: false,
    };

    struct Stage {
        rebalances: Rebalances,
        n_plans: Arc<AtomicUsize>,
        evictions: Arc<AtomicUsize>,
    }

    fn begun(pods: &[&'static str], given: Given) -> Stage {
        let clock = Clock::of_timers();
        let until = Arc::new(AtomicU64::new(if given.leads { u64::MAX } else { 0 }));
        let (n_plans, evictions) = (Arc::<AtomicUsize>::default(), Arc::default());
        let of_script = (Arc::clone(&n_plans), pods.to_vec(), Arc::clone(&until));
        let settings = Settings {
            every: Duration::from_millis(5),
            max_series: 1,
            rebalancer: Arc::new(move || {
                Box::new(Script {
                    pods: of_script.1.clone(),
                    n_plans: Arc::clone(&of_script.0),
                    until: Arc::clone(&of_script.2),
                    loses: given.loses,
                    panics: given.panics,
                })
            }),
        };
        let client = client(Arc::clone(&evictions), given.code);
        let leads = Leads::of_test(clock, until);
        Stage {
            rebalances: begin(client, clock, leads, settings),
            n_plans,
            evictions,
        }
    }

    /// The sums of a metric's samples, of those with a label value if one is given.
    fn value(stage: &Stage, name: &str, label: &str) -> f64 {
        let families = stage.rebalances.families();
        let family = families.iter().find(|family| family.info.name == name);
        let samples = family.into_iter().flat_map(|family| &family.samples);
        let meant = samples.filter(|s| label.is_empty() || s.labels.iter().any(|l| l == label));
        let number = |value: &strew_scheduler::metrics::Value| match value {
            strew_scheduler::metrics::Value::Number(number) => *number,
            strew_scheduler::metrics::Value::Count(count) => *count as f64,
            strew_scheduler::metrics::Value::Histogram(_) => f64::NAN,
        };
        meant.map(|sample| number(&sample.value)).sum()
    }

    async fn until(mut is_so: impl FnMut() -> bool) {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn steps_are_sent_one_after_the_other_and_counted() {
        let stage = begun(&["web-0", "web-1"], LEADS);
        until(|| stage.n_plans.load(Ordering::Relaxed) >= 2).await;
        assert_eq!(stage.evictions.load(Ordering::Relaxed), 2);
        let evictions = "strew_rebalance_evictions_total";
        assert_eq!(value(&stage, evictions, "evicted"), 2.0);
        assert_eq!(value(&stage, evictions, "refused"), 0.0);
        assert_eq!(value(&stage, "strew_rebalance_workloads", "even"), 2.0);
        // The most uneven one has the only place.
        assert_eq!(value(&stage, "strew_rebalance_left_uneven", ""), 5.0);
        assert_eq!(value(&stage, "strew_rebalance_series_left_out", ""), 1.0);
    }

    #[tokio::test]
    async fn a_refusal_ends_the_plan_and_is_counted() {
        let stage = begun(&["web-0"], Given { code: 429, ..LEADS });
        until(|| stage.n_plans.load(Ordering::Relaxed) >= 2).await;
        let evictions = "strew_rebalance_evictions_total";
        assert_eq!(value(&stage, evictions, "refused"), 1.0);
        assert_eq!(
            value(&stage, "strew_rebalance_plans_stopped_total", ""),
            1.0
        );
    }

    #[tokio::test]
    async fn planning_that_panics_is_counted_and_the_process_goes_on() {
        let given = Given {
            panics: true,
            ..LEADS
        };
        let stage = begun(&["web-0"], given);
        let runs = "strew_rebalance_runs_total";
        until(|| value(&stage, runs, "error") >= 2.0).await;
        assert_eq!(value(&stage, runs, "success"), 0.0);
        assert_eq!(stage.evictions.load(Ordering::Relaxed), 0);
    }

    /// A replica that does not lead neither plans nor evicts, and serves nothing about the cluster.
    #[tokio::test]
    async fn a_replica_that_does_not_lead_does_nothing() {
        let given = Given {
            leads: false,
            ..LEADS
        };
        let stage = begun(&["web-0"], given);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(stage.n_plans.load(Ordering::Relaxed), 0);
        assert_eq!(stage.evictions.load(Ordering::Relaxed), 0);
        assert_eq!(value(&stage, "strew_rebalance_workloads", ""), 0.0);
    }

    /// The lease is lost after the pods were listed: the eviction is not sent.
    #[tokio::test]
    async fn the_lease_is_asked_right_before_an_eviction() {
        let given = Given {
            loses: true,
            ..LEADS
        };
        let stage = begun(&["web-0"], given);
        until(|| stage.n_plans.load(Ordering::Relaxed) >= 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(stage.evictions.load(Ordering::Relaxed), 0);
    }
}
