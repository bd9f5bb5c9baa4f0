//! The HTTP paths that the API server calls: `/admit/pods`, `/admit/evictions`, `/validate/workloadspreads`,
//! `/convert/workloadspreads`.
//!
//! A status other than 200 means that the webhook could not decide; then `failurePolicy` applies. A readable review
//! always gets a review as its answer, whatever is wrong with its object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::post;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, StatusCode, Uri};
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_runtime::CallId;
use strew_runtime::Warning;
use strew_runtime::admission::Call;
use strew_wire::workloadspread::registration::TIMEOUT_OF_PODS_S;
use strew_wire::workloadspread::review::{BadReview, Decision, Review};
use strew_wire::workloadspread::{converting, validating};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::bodies::Bodies;
use super::calls::{Ask, CallEvent, NotTaken, ToDecider, Unanswered, Waiting};
use super::door::{Callers, door};
use super::evictions::{ToZones, evict};
use super::judge::{Judge, Rules};
use super::meter::{Meter, ReviewResult, Watched};
use super::rights::{Right, Rights};
use crate::identity;
use crate::registration::OWN_REVIEW;
use crate::serve::Peer;
use crate::serve::access::User;
use crate::serve::pages::{answer, error};

/// The API server's default timeout. Source: `timeoutSeconds` of `admissionregistration.k8s.io/v1`.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout with which the webhook is registered for pods.
pub(super) const REGISTERED: Duration = Duration::from_secs(TIMEOUT_OF_PODS_S as u64);

/// The longest timeout of the API server. Source: the same field.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// How much earlier than the API server the webhook gives up, at most a quarter of the timeout. So the client gets a
/// refusal with a reason instead of a timeout, and reserved places are given back.
const EARLIER: Duration = Duration::from_millis(500);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The handlers of the API server's requests.
#[derive(Clone)]
pub(super) struct Hooks(Arc<Inner>);

pub(super) struct Inner {
    decider: ToDecider,
    pub(super) zones: ToZones,
    judge: Judge,
    pub(super) rights: Rights,
    /// The secret that this process sends with its own reviews.
    secret: Arc<str>,
    pub(super) bodies: Bodies,
    pub(super) meter: Arc<Meter>,
    /// A meter for own reviews, which the metrics leave out.
    own_meter: Arc<Meter>,
    calls: AtomicU64,
}

impl Unanswered {
    fn result(&self) -> ReviewResult {
        match self {
            Self::NotReady | Self::Ends => ReviewResult::NotReady,
            Self::Crowded => ReviewResult::Crowded,
            Self::RightUnknown(_) => ReviewResult::RightUnknown,
        }
    }

    /// The answer. A client that asks too much is told apart from others by how often that is.
    fn answer_to(&self, peer: &Peer) -> Response {
        if let Self::Crowded = self {
            peer.refused();
        }
        let why = match self {
            Self::NotReady => "the webhook does not know the cluster yet",
            Self::Crowded => "too many reviews of the client or of its namespace wait",
            Self::RightUnknown(why) => why,
            Self::Ends => "the webhook ends",
        };
        error(StatusCode::SERVICE_UNAVAILABLE, why)
    }
}

/// The inputs of [`Hooks`].
pub(super) struct Setup<'a> {
    pub(super) decider: ToDecider,
    /// The loop of budgets by zone.
    pub(super) zones: ToZones,
    pub(super) client: Client,
    /// strew's own namespace.
    pub(super) namespace: &'a str,
    pub(super) rules: Rules,
    /// The secret that this process sends with its own reviews.
    pub(super) secret: Arc<str>,
    pub(super) meter: Arc<Meter>,
}

impl Hooks {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        let client = setup.client;
        Self(Arc::new(Inner {
            judge: Judge::new(
                client.clone(),
                setup.decider.clone(),
                setup.namespace,
                setup.rules,
            ),
            decider: setup.decider,
            zones: setup.zones,
            rights: Rights::new(client),
            secret: setup.secret,
            bodies: Bodies::default(),
            meter: setup.meter,
            own_meter: Arc::default(),
            calls: AtomicU64::new(0),
        }))
    }

    /// The state of the handlers.
    pub(super) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Creations and deletions may be registered under different paths; the handler distinguishes them by the review.
    ///
    /// `callers`: the clients that may send admission reviews. API servers show no certificate to a conversion webhook,
    /// whose answer reveals only what the request contains.
    pub(super) fn routes(self, callers: Option<Callers>) -> Router {
        let mut admission = Router::new()
            .route("/admit/pods", post(admit))
            .route("/admit/pods-end", post(admit))
            .route("/admit/evictions", post(evict))
            .route("/validate/workloadspreads", post(validate));
        if let Some(callers) = callers {
            admission = admission.route_layer(from_fn_with_state(Arc::new(callers), door));
        }
        admission
            .route(OWN_REVIEW, post(admit_own))
            .route("/convert/workloadspreads", post(convert))
            .with_state(self)
    }
}

async fn admit(State(Hooks(inner)): State<Hooks>, request: Request<Body>) -> Response {
    let watched = inner.meter.begin();
    review(&inner, watched, request, false).await
}

/// A review of this replica itself: it changes nothing, and is not counted.
async fn admit_own(State(Hooks(inner)): State<Hooks>, request: Request<Body>) -> Response {
    let shown = request.headers().get(AUTHORIZATION);
    let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if shown != Some(inner.secret.as_bytes()) {
        return error(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    let watched = inner.own_meter.begin();
    review(&inner, watched, request, true).await
}

async fn review(
    inner: &Inner,
    mut watched: Watched,
    request: Request<Body>,
    is_own: bool,
) -> Response {
    // A client other than an API server may say anything.
    let patience = patience(request.uri()).min(REGISTERED);
    let until = Instant::now() + deadline(patience);
    let peer = peer_of(&request);
    let mut body = match timeout_at(until, inner.bodies.read(request)).await {
        Ok(Ok(body)) => body,
        Ok(Err(answer)) => {
            watched.end(ReviewResult::Bad);
            return *answer;
        }
        Err(_) => {
            peer.refused();
            watched.end(ReviewResult::TimedOut);
            return error(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
        }
    };
    let version = version_of(&body.value);
    let review = match Review::read(&mut body.value) {
        Ok(review) => review,
        Err(bad) => {
            peer.refused();
            watched.end(ReviewResult::Bad);
            return not_read(&body.value, version, &bad);
        }
    };
    if is_own && !review.dry_run {
        watched.end(ReviewResult::Bad);
        return error(StatusCode::BAD_REQUEST, "only a dry run is answered here");
    }
    watched.about(review.operation);
    // A dry run changes nothing, and its answer reveals nothing.
    let user = (!review.dry_run).then(|| {
        let user = UserInfo::of_json(body.value["request"]["userInfo"].clone());
        User::of(user.unwrap_or_default())
    });
    body.keep(&review.pod);
    let given_up = body.held.given_up.clone();
    let decided = async {
        tokio::select! {
            decided = inner.decide(review, user, !body.is_large, &peer) => decided,
            // For a peer with less memory.
            () = given_up.cancelled() => Err(Unanswered::Crowded),
        }
    };
    match timeout_at(until, decided).await {
        Ok(Ok(decision)) => {
            watched.end(match (&decision.refusal, &decision.patch) {
                (Some(_), _) => ReviewResult::Denied,
                (None, Some(_)) => ReviewResult::Injected,
                (None, None) => ReviewResult::Passed,
            });
            reviewed(&decision, version)
        }
        Ok(Err(unanswered)) => {
            watched.end(unanswered.result());
            unanswered.answer_to(&peer)
        }
        Err(_) => {
            watched.end(ReviewResult::TimedOut);
            error(StatusCode::GATEWAY_TIMEOUT, "no answer in time")
        }
    }
}

async fn validate(State(Hooks(inner)): State<Hooks>, request: Request<Body>) -> Response {
    // Registered with the default.
    let until = Instant::now() + deadline(patience(request.uri()).min(TIMEOUT));
    let peer = peer_of(&request);
    let body = match inner.bodies.read(request).await {
        Ok(body) => body,
        Err(answer) => return *answer,
    };
    let version = version_of(&body.value);
    let decided = match validating::Review::read(&body.value) {
        Ok(validating::Read::Answered(decision)) => Ok(Ok(*decision)),
        Ok(validating::Read::Judge(review)) => {
            timeout_at(until, inner.judge.judge(&peer, &review)).await
        }
        Err(bad) => {
            peer.refused();
            return not_read(&body.value, version, &bad);
        }
    };
    match decided {
        Ok(Ok(decision)) => {
            inner.meter.validated(decision.refusal.is_none());
            reviewed(&decision, version)
        }
        Ok(Err(unanswered)) => unanswered.answer_to(&peer),
        Err(_) => error(StatusCode::GATEWAY_TIMEOUT, "no answer in time"),
    }
}

async fn convert(State(Hooks(inner)): State<Hooks>, request: Request<Body>) -> Response {
    let peer = peer_of(&request);
    let mut body = match inner.bodies.read(request).await {
        Ok(body) => body,
        Err(answer) => return *answer,
    };
    match converting::answer(body.value.take()) {
        Ok(review) => {
            let result = &review["response"]["result"];
            inner.meter.converted(result["status"] == "Success");
            if let Some(message) = result["message"].as_str() {
                let convert = Warning {
                    kind: "WorkloadSpread",
                    namespace: "",
                    name: "",
                    node: None,
                    action: "convert",
                    error: &message,
                    next: "when the API server asks again",
                };
                convert.log();
            }
            answer(StatusCode::OK, JSON, review.to_string())
        }
        Err(bad) => {
            peer.refused();
            error(StatusCode::BAD_REQUEST, &bad.to_string())
        }
    }
}

impl Inner {
    /// Lets the loop decide. `user`: its right is checked if the decision changes a ledger. If the future is dropped
    /// early, the loop is notified.
    async fn decide(
        &self,
        review: Review,
        user: Option<User>,
        is_simulated: bool,
        peer: &Peer,
    ) -> Result<Decision, Unanswered> {
        self.decider.ready().await?;
        let call = Box::new(Call {
            review,
            fresh_uid: identity::uuid(identity::random()).into(),
            is_simulated,
        });
        let is_permitted = match &user {
            None => true,
            Some(user) => self.rights.is_known(user, &call.review),
        };
        let call = match self.ask(call, is_permitted, peer).await? {
            Ok(decision) => {
                if is_permitted && user.is_some() {
                    peer.trust();
                }
                return Ok(decision);
            }
            Err(call) => call,
        };
        let right = match &user {
            None => Right::Given,
            Some(user) => self.rights.of(peer.address, user, &call.review).await,
        };
        match right {
            Right::Given => match self.ask(call, true, peer).await? {
                Ok(decision) => {
                    peer.trust();
                    Ok(decision)
                }
                Err(_) => Err(Unanswered::Ends),
            },
            Right::Lacking(decision) => {
                peer.refused();
                Ok(*decision)
            }
            Right::Unknown(why) => Err(Unanswered::RightUnknown(why)),
        }
    }

    /// The id of the next call.
    pub(super) fn next_call(&self) -> CallId {
        CallId(self.calls.fetch_add(1, Ordering::Relaxed))
    }

    /// The loop's decision, or the call if the user's right has to be checked first.
    async fn ask(
        &self,
        call: Box<Call>,
        is_permitted: bool,
        peer: &Peer,
    ) -> Result<Result<Decision, Box<Call>>, Unanswered> {
        let id = self.next_call();
        let (answer, decision) = oneshot::channel();
        let waiting = Waiting::new(id, self.decider.events.clone());
        let ask = Ask {
            id,
            call,
            peer: peer.address,
            is_permitted,
            answer,
        };
        let sent = self.decider.events.send(CallEvent::Ask(ask)).await;
        sent.map_err(|_| Unanswered::Ends)?;
        // The loop ends without an answer to this call.
        let decision = decision.await.map_err(|_| Unanswered::Ends)?;
        waiting.answered();
        match decision {
            Ok(decision) => Ok(Ok(decision)),
            Err(NotTaken::RightUnknown(call)) => Ok(Err(call)),
            Err(NotTaken::Crowded) => Err(Unanswered::Crowded),
        }
    }
}

/// The client of a request.
pub(super) fn peer_of(request: &Request<Body>) -> Peer {
    request.extensions().get().cloned().unwrap_or_default()
}

/// The API server's timeout, from the query of the URL.
pub(super) fn patience(uri: &Uri) -> Duration {
    let query = uri.query().unwrap_or_default();
    let told = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("timeout="));
    let told = told.and_then(strew_manifest::duration::GoDuration::parse);
    let told = told.map(strew_manifest::duration::GoDuration::to_std);
    told.filter(|told| !told.is_zero())
        .map_or(TIMEOUT, |told| told.min(TIMEOUT_MAX))
}

/// The time limit of a review here.
pub(super) fn deadline(patience: Duration) -> Duration {
    patience - EARLIER.min(patience / 4)
}

/// The version of AdmissionReview in requests and responses.
pub(super) fn version_of(body: &Value) -> &'static str {
    const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
    let asked = VERSIONS
        .iter()
        .find(|version| body["apiVersion"] == **version);
    asked.unwrap_or(&VERSIONS[0])
}

pub(super) fn reviewed(decision: &Decision, version: &str) -> Response {
    answer(
        StatusCode::OK,
        JSON,
        decision.to_review(version).to_string(),
    )
}

/// An invalid review gets a review as its answer if it has a uid, otherwise 400 with a message.
pub(super) fn not_read(body: &Value, version: &str, bad: &BadReview) -> Response {
    let uid = body["request"]["uid"].as_str().unwrap_or_default();
    match uid {
        "" => error(StatusCode::BAD_REQUEST, &bad.to_string()),
        uid => reviewed(&Decision::refuse(uid, 400, bad.to_string()), version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_says_how_long_it_waits() {
        for (uri, seconds) in [
            ("/admit/pods", 10),
            ("/admit/pods?timeout=3s", 3),
            ("/admit/pods?a=b&timeout=1m0s", 30),
            ("/admit/pods?timeout=", 10),
            ("/admit/pods?timeout=-3s", 10),
            ("/admit/pods?timeout=0s", 10),
        ] {
            let found = patience(&uri.parse().unwrap());
            assert_eq!(found, Duration::from_secs(seconds), "{uri}");
        }
    }

    #[test]
    fn the_webhook_gives_up_before_the_api_server() {
        for (told, expected) in [(1000, 750), (3000, 2500), (30_000, 29_500)] {
            let uri = format!("/admit/pods?timeout={told}ms");
            let found = deadline(patience(&uri.parse().unwrap()));
            assert_eq!(found, Duration::from_millis(expected), "{uri}");
        }
    }
}
