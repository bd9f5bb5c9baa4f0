//! Requests out: each as `strew-api` made it, sent again where `strew-api` says so, a bounded number at once.
//!
//! What a machine wants is an [`Errand`]: one request, or several, each made of the answer to the one before. An
//! [`Outbox`] brings the requests; what an answer means is asked of the errand, by the loop that has the machine and so
//! all that is needed to tell: [`Outbox::done`] gives what has [`Arrived`], [`Outbox::settle`] sends what comes next, or
//! tells what came of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use strew_scheduler::machine::Outcome;
use tokio::sync::{Semaphore, mpsc};

use crate::clock::{Clock, duration};
use crate::leading::Leads;

/// What is read of an answer: no object of ours is near.
const ANSWER_MAX: usize = 4 << 20;

/// The same of what is looked up: it may be all objects of a namespace.
const LIST_MAX: usize = 64 << 20;

/// So many requests are on their way at once: what one API server takes from one client without queueing.
const AT_ONCE: usize = 64;

/// So many events are on their way at once, beside the others: a thousand refusals must not keep a bind waiting.
const EVENTS_AT_ONCE: usize = 8;

/// So many errands may wait for their outcome before no more are asked for.
const WAITING_MAX: usize = 256;

/// So many events may wait to be sent; those beyond are dropped.
const EVENTS_MAX: usize = 4096;

/// What a machine wants done.
pub trait Errand: Send + 'static {
    /// What is needed beside an answer to tell what it means.
    type Context<'a>;
    /// What comes of it in the end.
    type Outcome;

    /// What comes after the answer to its last request.
    fn answered(&mut self, answered: &Answered, cx: Self::Context<'_>) -> Next<Self::Outcome>;
}

/// What comes after an answer.
#[derive(Debug)]
pub enum Next<O> {
    /// This is sent.
    Send(Box<Request>),
    /// All is done, or cannot be.
    Done(O),
}

/// A request, and its last answer.
#[derive(Debug)]
pub struct Answered {
    /// What was asked.
    pub request: Request,
    /// What was answered.
    pub answer: Answer,
    /// Whether it was asked before, and may have been carried out then.
    pub repeated: bool,
}

/// An errand whose request was answered.
#[derive(Debug)]
#[must_use = "what comes after it waits for `Outbox::settle`"]
pub struct Arrived<E> {
    errand: E,
    about: Arc<str>,
    answered: Answered,
}

/// How long requests are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// No request is sent again after so long.
    pub in_all: Span,
    /// How long one answer is waited for.
    pub answer: Duration,
}

impl Default for Patience {
    /// For what nobody but the machine waits for.
    fn default() -> Self {
        Self {
            in_all: Span::from_secs(60),
            answer: Duration::from_secs(30),
        }
    }
}

/// Errands on their way.
pub struct Outbox<E> {
    client: Client,
    clock: Clock,
    leads: Leads,
    patience: Patience,
    permits: Arc<Semaphore>,
    events: Arc<Mutex<Events>>,
    waiting: usize,
    /// Subjects with an errand on its way, and the errands that come after it: what is asked for of one pod is asked in
    /// order, or a refusal would overtake the bind that came after it.
    under_way: FxHashMap<Arc<str>, VecDeque<(E, Request)>>,
    dropped: u64,
    to_done: mpsc::UnboundedSender<Arrived<E>>,
    done: mpsc::UnboundedReceiver<Arrived<E>>,
}

impl<E: Errand> Outbox<E> {
    /// An empty one.
    pub fn new(client: Client, clock: Clock, leads: Leads) -> Self {
        let (to_done, done) = mpsc::unbounded_channel();
        Self {
            client,
            clock,
            leads,
            patience: Patience::default(),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            events: Arc::default(),
            waiting: 0,
            under_way: FxHashMap::default(),
            dropped: 0,
            to_done,
            done,
        }
    }

    /// The same, for who waits longer, or not so long.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Whether no more errands should be asked for before some are done.
    pub fn is_full(&self) -> bool {
        self.waiting >= WAITING_MAX
    }

    /// How many errands wait for their outcome.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether what is sent now goes out.
    pub fn leads(&self) -> bool {
        self.leads.now()
    }

    /// How many events were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sends the first request of an errand when the errands before about the same subject (a pod by its uid) are done.
    pub fn send(&mut self, about: &Arc<str>, errand: E, request: Request) {
        self.waiting += 1;
        match self.under_way.get_mut(about) {
            Some(after) => after.push_back((errand, request)),
            None => {
                self.under_way.insert(Arc::clone(about), VecDeque::new());
                self.start(Arc::clone(about), errand, request);
            }
        }
    }

    fn start(&self, about: Arc<str>, errand: E, request: Request) {
        let courier = self.courier();
        let to_done = self.to_done.clone();
        tokio::spawn(async move {
            let text = text_of(&request.body);
            let answered = courier.bring(request, &text).await;
            // Nobody waits any more: the process ends.
            let _ = to_done.send(Arrived {
                errand,
                about,
                answered,
            });
        });
    }

    /// Sends what nobody waits for; dropped if too much waits already.
    pub fn tell(&mut self, request: Request) {
        let mut events = lock(&self.events);
        if events.waiting.len() >= EVENTS_MAX {
            self.dropped += 1;
            return;
        }
        events.waiting.push_back(Event::of(request));
        if events.couriers < EVENTS_AT_ONCE {
            events.couriers += 1;
            // What nobody waits for takes none of the others' places.
            let mut courier = self.courier();
            courier.permits = Arc::new(Semaphore::new(1));
            tokio::spawn(courier.tell_all(Arc::clone(&self.events)));
        }
    }

    /// The next errand whose request was answered.
    pub async fn done(&mut self) -> Arrived<E> {
        loop {
            // Never closed: this end holds a sender.
            if let Some(arrived) = self.done.recv().await {
                return arrived;
            }
        }
    }

    /// The next one, if there is one.
    pub fn try_done(&mut self) -> Option<Arrived<E>> {
        self.done.try_recv().ok()
    }

    /// Asks an errand what its answer means; `None`: it goes on, with another request.
    pub fn settle(&mut self, arrived: Arrived<E>, cx: E::Context<'_>) -> Option<E::Outcome> {
        let Arrived {
            mut errand,
            about,
            answered,
        } = arrived;
        let outcome = match errand.answered(&answered, cx) {
            Next::Send(request) => {
                self.start(about, errand, *request);
                return None;
            }
            Next::Done(outcome) => outcome,
        };
        self.waiting -= 1;
        // The next errand about the same subject has its turn.
        let after = self.under_way.get_mut(&about);
        match after.and_then(VecDeque::pop_front) {
            Some((errand, request)) => self.start(about, errand, request),
            None => {
                self.under_way.remove(&about);
            }
        }
        Some(outcome)
    }

    fn courier(&self) -> Courier {
        Courier {
            client: self.client.clone(),
            clock: self.clock,
            leads: self.leads.clone(),
            patience: self.patience,
            permits: Arc::clone(&self.permits),
        }
    }
}

/// Events on their way.
#[derive(Default)]
struct Events {
    waiting: VecDeque<Event>,
    /// How many couriers bring them.
    couriers: usize,
}

/// An event that waits: thousands may, so it is small.
struct Event {
    /// Without its body.
    request: Request,
    text: Box<[u8]>,
}

impl Event {
    fn of(mut request: Request) -> Self {
        let text = text_of(&request.body).into();
        request.body = Value::Null;
        Self { request, text }
    }
}

fn lock(events: &Mutex<Events>) -> MutexGuard<'_, Events> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why an effect was not carried out, in words.
pub fn failure(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Gone => Some("not found"),
        Outcome::Conflict(text) | Outcome::Failed(text) => Some(text),
    }
}

/// Brings one request.
struct Courier {
    client: Client,
    clock: Clock,
    leads: Leads,
    patience: Patience,
    permits: Arc<Semaphore>,
}

impl Courier {
    /// Brings events until none waits any more.
    async fn tell_all(self, events: Arc<Mutex<Events>>) {
        while let Some(Event { request, text }) = Self::next_of(&events) {
            let Answered {
                request,
                answer,
                repeated,
            } = self.bring(request, &text).await;
            let outcome = outcome_of(&request, &answer, repeated);
            if let Some(text) = failure(&outcome) {
                tracing::warn!("an event was not recorded: {text}");
            }
        }
    }

    /// The next event; `None`: this courier is not needed any more.
    fn next_of(events: &Mutex<Events>) -> Option<Event> {
        let mut events = lock(events);
        let next = events.waiting.pop_front();
        if next.is_none() {
            events.couriers -= 1;
            events.waiting.shrink_to_fit();
        }
        next
    }

    async fn bring(&self, request: Request, text: &[u8]) -> Answered {
        let mut retrying = Retrying::new(self.clock.now() + self.patience.in_all);
        let answer = loop {
            let answer = {
                let Ok(_permit) = self.permits.acquire().await else {
                    break Answer::Refused("the process ends".into());
                };
                // Asked at the last moment: another replica may act by now. Whether an earlier try was carried out,
                // facts will tell.
                if !self.leads.now() {
                    break Answer::Refused("this replica does not lead any more".into());
                }
                once_with(&self.client, &request, text, self.patience.answer).await
            };
            let now = self.clock.now();
            // Any number does: it only keeps replicas from trying in step.
            match retrying.next(&request, &answer, now, now.0) {
                Retry::After(wait) => tokio::time::sleep(duration(wait)).await,
                Retry::GiveUp => break answer,
            }
        };
        Answered {
            request,
            answer,
            repeated: retrying.repeated(),
        }
    }
}

/// Sends a request once.
pub async fn once(client: &Client, request: &Request, within: Duration) -> Answer {
    once_with(client, request, &text_of(&request.body), within).await
}

/// A body as it is sent.
fn text_of(body: &Value) -> Vec<u8> {
    match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    }
}

async fn once_with(client: &Client, request: &Request, text: &[u8], within: Duration) -> Answer {
    let built = http::Request::builder()
        .method(request.verb.method())
        .uri(request.path())
        .header(CONTENT_TYPE, request.verb.content_type())
        .body(Body::from(text.to_vec()));
    answer_within(client, built, ANSWER_MAX, within).await
}

/// Reads what is at a path, asking again while the API server may answer something else in a moment.
pub async fn read(client: &Client, path: &str, within: Span) -> Answer {
    let clock = Clock::new();
    let end = clock.now() + within;
    let mut retrying = Retrying::new(end);
    loop {
        let built = http::Request::get(path).body(Body::empty());
        let answer = answer_within(client, built, LIST_MAX, clock.until(end)).await;
        let now = clock.now();
        match retrying.next_read(&answer, now, now.0) {
            Retry::After(wait) => tokio::time::sleep(duration(wait)).await,
            Retry::GiveUp => return answer,
        }
    }
}

async fn answer_within(
    client: &Client,
    built: http::Result<http::Request<Body>>,
    max: usize,
    within: Duration,
) -> Answer {
    let built = match built {
        Ok(built) => built,
        Err(error) => return Answer::Refused(error.to_string().into()),
    };
    match tokio::time::timeout(within, exchange(client, built, max)).await {
        Ok(answer) => answer,
        Err(_) => Answer::Lost(format!("no answer within {:.1} s", within.as_secs_f64()).into()),
    }
}

async fn exchange(client: &Client, request: http::Request<Body>, max: usize) -> Answer {
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(error) => return failed(&error),
    };
    let code = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok().map(str::to_owned));
    match Limited::new(response.into_body(), max).collect().await {
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
