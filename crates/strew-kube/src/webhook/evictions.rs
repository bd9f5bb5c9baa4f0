//! Reviews of evictions, for budgets by zone: `/admit/evictions`.
//!
//! A loop of its own owns the driver of [`strew_runtime::zones`], so that no other review delays it. It goes on until the
//! process ends: a replica that stops answers what still arrives.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{Request, StatusCode};
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use rustc_hash::FxHashMap;
use strew_manifest::json::Json;
use strew_runtime::watch::Watches;
use strew_runtime::zones::{self, Eviction, ZoneMachine};
use strew_runtime::{CallId, Event};
use strew_wire::workloadspread::review::{Decision, Review};
use strew_wire::zones::{decision, evicted};
use strew_zones::Answer;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::hooks::{
    Hooks, Inner, REGISTERED, deadline, not_read, patience, peer_of, reviewed, version_of,
};
use super::rights::Right;
use crate::clock::Clock;
use crate::leading::Leads;
use crate::send::Patience;
use crate::serve::access::User;
use crate::serve::pages::error;
use crate::work::{Links, Worker};

/// The number of queued reviews; with more, connections wait.
const EVENTS_MAX: usize = 256;

/// The most reviews of one peer that wait; further ones are not answered.
const OF_PEER_MAX: usize = 200;

/// The time limits of the machine's requests.
const PATIENCE: Patience = Patience {
    in_all: zones::PATIENCE,
    answer: Duration::from_secs(2),
};

/// The refusal of an eviction while the cluster is not known.
const NOT_KNOWN: &str = "strew does not know the cluster's budgets yet";

/// A message of a connection to the loop.
pub(super) enum ZoneEvent {
    Ask(Ask),
    /// The API server has stopped waiting.
    GiveUp(CallId),
}

/// A review for the loop.
pub(super) struct Ask {
    id: CallId,
    peer: IpAddr,
    eviction: Eviction,
    /// True if the user is known to have the right to evict.
    is_permitted: bool,
    answer: oneshot::Sender<Taken>,
}

/// What the loop does with a review.
enum Taken {
    Answered(Answer),
    /// It may write a claim, and the user's right is not checked yet.
    RightUnknown,
}

/// The way to the loop.
#[derive(Clone)]
pub(super) struct ToZones(mpsc::Sender<ZoneEvent>);

/// Starts the loop.
pub(super) fn start(client: &Client, writes: Option<&Client>, clock: Clock) -> ToZones {
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let links = Links {
        client: client.clone(),
        writes: writes.unwrap_or(client).clone(),
        clock,
        leads: Leads::always(clock),
        patience: PATIENCE,
    };
    let decider = Decider {
        worker: Worker::new(ZoneMachine::new(), zones::watches(), links),
        events,
        waiting: FxHashMap::default(),
    };
    tokio::spawn(decider.run());
    ToZones(sender)
}

struct Decider {
    worker: Worker<ZoneMachine>,
    events: mpsc::Receiver<ZoneEvent>,
    waiting: FxHashMap<CallId, (IpAddr, oneshot::Sender<Taken>)>,
}

impl Decider {
    /// Answers until the server of the hooks has ended.
    async fn run(mut self) {
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.on_event(event),
                    None => return,
                },
                () = self.worker.work() => {}
            }
            self.worker.take_in();
            self.worker.act();
            for (id, answer) in self.worker.take_replies() {
                self.reply(id, *answer);
            }
        }
    }

    fn on_event(&mut self, event: ZoneEvent) {
        match event {
            ZoneEvent::Ask(ask) => self.on_ask(ask),
            ZoneEvent::GiveUp(id) => {
                if self.waiting.remove(&id).is_some() {
                    self.worker.handle(Event::GaveUp(id));
                }
            }
        }
    }

    fn on_ask(&mut self, ask: Ask) {
        let Ask {
            id,
            peer,
            eviction,
            is_permitted,
            answer,
        } = ask;
        let driver = self.worker.driver();
        let machine = driver.machine();
        let is_known = driver.is_ready() && machine.is_known(&eviction.namespace);
        let taken = match is_known {
            false if is_failing(driver.watches()) => Some(Taken::Answered(Answer::Open)),
            false => Some(Taken::Answered(Answer::Refused(NOT_KNOWN.into()))),
            true if !machine.machine().has_budgets_in(&eviction.namespace) => {
                Some(Taken::Answered(Answer::Pass))
            }
            true if !is_permitted => Some(Taken::RightUnknown),
            true => None,
        };
        if let Some(taken) = taken {
            // The client may have closed the connection.
            drop(answer.send(taken));
            return;
        }
        let of_peer = self.waiting.values().filter(|(other, _)| *other == peer);
        if of_peer.count() >= OF_PEER_MAX {
            let busy = Answer::Refused("too many evictions wait".into());
            drop(answer.send(Taken::Answered(busy)));
            return;
        }
        self.waiting.insert(id, (peer, answer));
        self.worker.handle(Event::Asked(id, Box::new(eviction)));
    }

    fn reply(&mut self, id: CallId, reply: Answer) {
        if let Some((_, connection)) = self.waiting.remove(&id) {
            // The client may have closed the connection.
            drop(connection.send(Taken::Answered(reply)));
        }
    }
}

/// True if a kind cannot be read: evictions must not wait for that.
fn is_failing(watches: &Watches) -> bool {
    let kinds = zones::READS.iter().map(strew_runtime::reads::Reads::kind);
    { kinds }.any(|kind| watches.failure(&kind).is_some())
}

/// If it is dropped before the answer, it tells the loop that the connection was closed.
struct Waiting<'a> {
    id: CallId,
    to: &'a ToZones,
    is_answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // Without room, the claim is made in vain, and ends by itself.
            drop(self.to.0.try_send(ZoneEvent::GiveUp(self.id)));
        }
    }
}

impl ToZones {
    /// The loop's answer; `None` if it has ended.
    async fn ask(
        &self,
        id: CallId,
        peer: IpAddr,
        eviction: Eviction,
        is_permitted: bool,
    ) -> Option<Taken> {
        let (answer, taken) = oneshot::channel();
        let ask = Ask {
            id,
            peer,
            eviction,
            is_permitted,
            answer,
        };
        self.0.send(ZoneEvent::Ask(ask)).await.ok()?;
        let mut waiting = Waiting {
            id,
            to: self,
            is_answered: false,
        };
        let taken = taken.await.ok();
        waiting.is_answered = true;
        taken
    }
}

/// The hook.
pub(super) async fn evict(State(hooks): State<Hooks>, request: Request<Body>) -> Response {
    let inner = hooks.inner();
    let until = Instant::now() + deadline(patience(request.uri()).min(REGISTERED));
    let peer = peer_of(&request);
    let mut body = match timeout_at(until, inner.bodies.read(request)).await {
        Ok(Ok(body)) => body,
        Ok(Err(answer)) => return *answer,
        Err(_) => {
            peer.refused();
            return error(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
        }
    };
    let version = version_of(&body.value);
    let review = match Review::read(&mut body.value) {
        Ok(review) => review,
        Err(bad) => {
            peer.refused();
            return not_read(&body.value, version, &bad);
        }
    };
    let Some((namespace, pod, is_dry_run)) = evicted(&review) else {
        return reviewed(&Decision::allow(&review.uid), version);
    };
    let eviction = Eviction {
        namespace: namespace.into(),
        pod: pod.into(),
        is_dry_run,
    };
    let user = UserInfo::of_json(body.value["request"]["userInfo"].clone());
    let user = User::of(user.unwrap_or_default());
    let decided = decide(inner, &review, &user, eviction, peer.address);
    let (result, answer) = match timeout_at(until, decided).await {
        Ok(Ok(decided)) => {
            let result = result(&decided);
            (result, reviewed(&decided, version))
        }
        Ok(Err(why)) => ("failed", error(StatusCode::SERVICE_UNAVAILABLE, &why)),
        Err(_) => {
            let late = error(StatusCode::GATEWAY_TIMEOUT, "no answer in time");
            ("timed_out", late)
        }
    };
    inner.meter.evicted(result);
    answer
}

fn result(decision: &Decision) -> &'static str {
    match (&decision.refusal, decision.warnings.is_empty()) {
        (Some(_), _) => "refused",
        (None, true) => "allowed",
        (None, false) => "unclaimed",
    }
}

/// The decision. A dry run changes nothing, so that its user needs no right.
async fn decide(
    inner: &Inner,
    review: &Review,
    user: &User,
    eviction: Eviction,
    peer: IpAddr,
) -> Result<Decision, String> {
    let is_permitted = eviction.is_dry_run || inner.rights.is_known(user, review);
    let ask = |is_permitted| {
        inner
            .zones
            .ask(inner.next_call(), peer, eviction.clone(), is_permitted)
    };
    match ask(is_permitted).await {
        Some(Taken::Answered(answer)) => return Ok(decision(&review.uid, &answer)),
        Some(Taken::RightUnknown) => {}
        None => return Err("the webhook ends".to_owned()),
    }
    match inner.rights.of(peer, user, review).await {
        Right::Given => match ask(true).await {
            Some(Taken::Answered(answer)) => Ok(decision(&review.uid, &answer)),
            _ => Err("the webhook ends".to_owned()),
        },
        Right::Lacking(decision) => Ok(*decision),
        Right::Unknown(why) => Err(why),
    }
}
