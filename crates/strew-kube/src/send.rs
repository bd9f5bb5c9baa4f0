//! Requests out: each as `strew-api` made it, sent again where `strew-api` says so, a bounded number at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use rustc_hash::FxHashMap;
use serde_json::Value;
use strew_api::request::{Answer, Request, outcome_of};
use strew_api::retry::{Retry, Retrying};
use strew_model::time::Span;
use strew_scheduler::machine::{EffectId, Outcome};
use tokio::sync::{Semaphore, mpsc};

use crate::clock::{Clock, duration};
use crate::leading::Leads;

/// No request is sent again after so long.
const PATIENCE: Span = Span::from_secs(60);

/// How long one answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// What is read of an answer: no object of ours is near.
const ANSWER_MAX: usize = 4 << 20;

/// So many requests are on their way at once: what one API server takes from one client without queueing.
const AT_ONCE: usize = 64;

/// So many events are on their way at once, beside the others: a thousand refusals must not keep a bind waiting.
const EVENTS_AT_ONCE: usize = 8;

/// So many effects may wait for their outcome before no more are asked for.
const WAITING_MAX: usize = 256;

/// So many events may wait to be sent; those beyond are dropped.
const EVENTS_MAX: usize = 4096;

/// What a request that somebody waits for came to.
#[derive(Debug)]
pub struct Done {
    /// Which effect.
    pub effect: EffectId,
    /// What it came to.
    pub outcome: Outcome,
    /// Which pod it was about, by uid.
    about: Arc<str>,
}

/// Requests on their way.
pub struct Outbox {
    client: Client,
    clock: Clock,
    leads: Leads,
    permits: Arc<Semaphore>,
    event_permits: Arc<Semaphore>,
    /// Places of events that wait.
    events: Arc<Semaphore>,
    waiting: usize,
    /// Pods with an effect on its way, by uid, and the effects that come after it: what is asked for of one pod is asked
    /// in order, or a refusal would overtake the bind that came after it.
    under_way: FxHashMap<Arc<str>, VecDeque<(EffectId, Vec<Request>)>>,
    dropped: u64,
    to_done: mpsc::UnboundedSender<Done>,
    done: mpsc::UnboundedReceiver<Done>,
}

impl Outbox {
    /// An empty one.
    pub fn new(client: Client, clock: Clock, leads: Leads) -> Self {
        let (to_done, done) = mpsc::unbounded_channel();
        Self {
            client,
            clock,
            leads,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            event_permits: Arc::new(Semaphore::new(EVENTS_AT_ONCE)),
            events: Arc::new(Semaphore::new(EVENTS_MAX)),
            waiting: 0,
            under_way: FxHashMap::default(),
            dropped: 0,
            to_done,
            done,
        }
    }

    /// Whether no more effects should be asked for before some are done.
    pub fn is_full(&self) -> bool {
        self.waiting >= WAITING_MAX
    }

    /// How many effects wait for their outcome.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many events were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sends the requests of an effect, one after another, when the effects before about the same pod (by its uid) are
    /// done; its outcome comes by [`done`](Self::done).
    pub fn send(&mut self, effect: EffectId, about: &Arc<str>, requests: Vec<Request>) {
        self.waiting += 1;
        match self.under_way.get_mut(about) {
            Some(after) => after.push_back((effect, requests)),
            None => {
                self.under_way.insert(Arc::clone(about), VecDeque::new());
                self.start(effect, Arc::clone(about), requests);
            }
        }
    }

    fn start(&self, effect: EffectId, about: Arc<str>, requests: Vec<Request>) {
        let courier = self.courier(&self.permits);
        let to_done = self.to_done.clone();
        tokio::spawn(async move {
            let outcome = courier.bring(requests).await;
            // Nobody waits any more: the process ends.
            let _ = to_done.send(Done {
                effect,
                outcome,
                about,
            });
        });
    }

    /// Sends what nobody waits for; dropped if too much waits already.
    pub fn tell(&mut self, request: Request) {
        let Ok(place) = Arc::clone(&self.events).try_acquire_owned() else {
            self.dropped += 1;
            return;
        };
        let courier = self.courier(&self.event_permits);
        tokio::spawn(async move {
            let outcome = courier.bring(vec![request]).await;
            if let Some(text) = failure(&outcome) {
                tracing::warn!("an event was not recorded: {text}");
            }
            drop(place);
        });
    }

    /// The next outcome.
    pub async fn done(&mut self) -> Done {
        loop {
            // Never closed: this end holds a sender.
            if let Some(done) = self.done.recv().await {
                self.is_done(&done);
                return done;
            }
        }
    }

    /// The next outcome, if there is one.
    pub fn try_done(&mut self) -> Option<Done> {
        let done = self.done.try_recv().ok()?;
        self.is_done(&done);
        Some(done)
    }

    /// The next effect about the same pod has its turn.
    fn is_done(&mut self, done: &Done) {
        self.waiting -= 1;
        let next = self.under_way.get_mut(&done.about);
        match next.and_then(VecDeque::pop_front) {
            Some((effect, requests)) => self.start(effect, Arc::clone(&done.about), requests),
            None => {
                self.under_way.remove(&done.about);
            }
        }
    }

    fn courier(&self, permits: &Arc<Semaphore>) -> Courier {
        Courier {
            client: self.client.clone(),
            clock: self.clock,
            leads: self.leads.clone(),
            permits: Arc::clone(permits),
        }
    }
}

/// Why an effect was not carried out, in words.
pub fn failure(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Gone => Some("not found"),
        Outcome::Conflict(text) | Outcome::Failed(text) => Some(text),
    }
}

/// Brings the requests of one effect.
struct Courier {
    client: Client,
    clock: Clock,
    leads: Leads,
    permits: Arc<Semaphore>,
}

impl Courier {
    async fn bring(&self, requests: Vec<Request>) -> Outcome {
        let mut retrying = Retrying::new(self.clock.now() + PATIENCE);
        for request in requests {
            let outcome = self.bring_one(&request, &mut retrying).await;
            if outcome != Outcome::Ok {
                return outcome;
            }
        }
        Outcome::Ok
    }

    async fn bring_one(&self, request: &Request, retrying: &mut Retrying) -> Outcome {
        loop {
            let answer = {
                let Ok(_permit) = self.permits.acquire().await else {
                    return Outcome::Failed("the process ends".into());
                };
                // Asked at the last moment: another replica may act by now. Whether an earlier try was carried out,
                // facts will tell.
                if !self.leads.now() {
                    return Outcome::Failed("this replica does not lead any more".into());
                }
                once(&self.client, request, ANSWER_WITHIN).await
            };
            let now = self.clock.now();
            // Any number does: it only keeps replicas from trying in step.
            match retrying.next(request, &answer, now, now.0) {
                Retry::After(wait) => tokio::time::sleep(duration(wait)).await,
                Retry::GiveUp => return outcome_of(request, &answer, retrying.repeated()),
            }
        }
    }
}

/// Sends a request once.
pub async fn once(client: &Client, request: &Request, within: Duration) -> Answer {
    let body = match &request.body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let built = http::Request::builder()
        .method(request.verb.method())
        .uri(request.path())
        .header(CONTENT_TYPE, request.verb.content_type())
        .body(Body::from(body));
    let built = match built {
        Ok(built) => built,
        Err(error) => return Answer::Refused(error.to_string().into()),
    };
    match tokio::time::timeout(within, exchange(client, built)).await {
        Ok(answer) => answer,
        Err(_) => Answer::Lost(format!("no answer within {} s", within.as_secs()).into()),
    }
}

async fn exchange(client: &Client, request: http::Request<Body>) -> Answer {
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(error) => return failed(&error),
    };
    let code = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok().map(str::to_owned));
    match Limited::new(response.into_body(), ANSWER_MAX)
        .collect()
        .await
    {
        Ok(body) => Answer::of(code, retry_after.as_deref(), &body.to_bytes()),
        Err(error) => Answer::Lost(error.to_string().into()),
    }
}

/// Whether a request was never sent, or nobody knows.
fn failed(error: &kube::Error) -> Answer {
    let text = crate::connect::chain(error).into();
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let is_connect = cause
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect);
        if is_connect {
            return Answer::Refused(text);
        }
        next = cause.source();
    }
    match error {
        // What never left this process: no credentials, no request.
        kube::Error::Auth(_) | kube::Error::HttpError(_) => Answer::Refused(text),
        _ => Answer::Lost(text),
    }
}
