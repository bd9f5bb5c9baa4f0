//! The requests `TokenReview` and `SubjectAccessReview`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use strew_model::time::Span;
use tokio::time::timeout;

use super::cache::{Cache, Digest};
use crate::serve::turns::{Crowded, Turn, Turns};

/// How long an answer is kept. Source: kube-scheduler's `--authentication-token-webhook-cache-ttl` and related flags.
const KEEP: Duration = Duration::from_secs(10);

/// The number of answers kept of each type.
const KEPT_MAX: usize = 1024;

/// The time limit for an answer. Source: `DelegatingAuthenticationOptions.TokenRequestTimeout`.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of concurrent reviews.
const ASKED_MAX: usize = 8;

/// The number of waiting reviews, of all peers.
const WAITING_MAX: usize = 128;

/// The charge of an invalid token. A peer may send 20 at once, then one per second; further tokens are not reviewed.
const INVALID: Span = Span::from_secs(1);

/// A user, as the API server identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, which distinguishes two users of one name.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A client without credentials.
    pub fn anonymous() -> Arc<Self> {
        Arc::new(Self {
            name: "system:anonymous".to_owned(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".to_owned()],
            extra: BTreeMap::new(),
        })
    }

    /// A user as the API server reports it.
    pub fn of(info: UserInfo) -> Self {
        Self {
            name: info.username.unwrap_or_default(),
            uid: info.uid.unwrap_or_default(),
            groups: info.groups.unwrap_or_default(),
            extra: info.extra.unwrap_or_default(),
        }
    }
}

/// An operation on the objects of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deed<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The subresource, such as `eviction`; empty: the object itself.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The API server did not answer in time.
    #[error("the API server did not answer a {kind} within {} s", PATIENCE.as_secs())]
    TooLate {
        /// The type of the review.
        kind: &'static str,
    },
    /// The API server refused the review, or could not be reached.
    #[error("cannot send a {kind} to the API server")]
    NotAsked {
        /// The type of the review.
        kind: &'static str,
        /// The error.
        source: Box<kube::Error>,
    },
    /// Too many reviews wait, and the client has no fewer of them than any other.
    #[error("too many questions about rights wait")]
    Crowded,
    /// The client has sent too many invalid tokens.
    #[error("too many invalid tokens came from this address")]
    TooManyInvalid,
    /// The answer has no status.
    #[error("the API server answered a {kind} without a status")]
    NoStatus {
        /// The type of the review.
        kind: &'static str,
    },
}

/// Sends reviews to the API server and keeps its answers for a short time. Failures are not kept.
pub struct Reviews {
    client: kube::Client,
    users: Cache<Arc<User>, ()>,
    verdicts: Cache<(), Arc<str>>,
    /// Turns of clients, and of the namespaces that each asks about; of paths and tokens there is none.
    turns: Turns<Box<str>>,
}

impl Reviews {
    /// Sends reviews with this client.
    pub fn new(client: kube::Client) -> Self {
        Self::keeping(client, KEEP, KEPT_MAX)
    }

    /// Keeps answers for `keep`, and at most `kept_max` of each type.
    pub fn keeping(client: kube::Client, keep: Duration, kept_max: usize) -> Self {
        Self {
            client,
            users: Cache::new(keep, kept_max),
            verdicts: Cache::new(keep, kept_max),
            turns: Turns::new(ASKED_MAX, WAITING_MAX),
        }
    }

    /// The user of a token that a peer shows; `None` if the token is invalid.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn user_of(
        &self,
        peer: IpAddr,
        token: &str,
    ) -> Result<Option<Arc<User>>, ReviewError> {
        let kind = "TokenReview";
        let digest = self.users.digest(&token);
        let ask = async {
            let turn = self.turn(peer, "").await?;
            // Another task may have got the same answer meanwhile.
            if let Some(answer) = self.users.get(digest) {
                return Ok(answer);
            }
            if !turn.is_within_budget {
                return Err(ReviewError::TooManyInvalid);
            }
            let review = TokenReview {
                spec: TokenReviewSpec {
                    token: token.to_owned(),
                    audiences: None,
                },
                ..Default::default()
            };
            let status = self.post(kind, review).await?.status;
            let status = status.ok_or(ReviewError::NoStatus { kind })?;
            if status.authenticated != Some(true) {
                turn.charge(INVALID);
                return Ok(Err(()));
            }
            Ok(Ok(Arc::new(User::of(status.user.unwrap_or_default()))))
        };
        let found = ask_once(kind, &self.users, (peer, "", digest), ask).await?;
        Ok(found.ok())
    }

    /// Whether a user of a peer may use this verb on a path; the inner error is the reason of the refusal.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn may(
        &self,
        peer: IpAddr,
        user: &User,
        verb: &str,
        path: &str,
    ) -> Result<Result<(), Arc<str>>, ReviewError> {
        let spec = SubjectAccessReviewSpec {
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some(verb.to_owned()),
            }),
            ..Default::default()
        };
        let digest = self.verdicts.digest(&(user, verb, path));
        self.judged((peer, "", digest), user, spec).await
    }

    /// Whether a user of a peer may do this to objects of a namespace; the inner error is the reason of the refusal.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn may_do(
        &self,
        peer: IpAddr,
        user: &User,
        deed: Deed<'_>,
    ) -> Result<Result<(), Arc<str>>, ReviewError> {
        let spec = SubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(deed.verb.to_owned()),
                group: Some(deed.group.to_owned()),
                resource: Some(deed.resource.to_owned()),
                subresource: Some(deed.subresource.to_owned()).filter(|text| !text.is_empty()),
                namespace: Some(deed.namespace.to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let digest = self.verdicts.digest(&(user, deed));
        self.judged((peer, deed.namespace, digest), user, spec)
            .await
    }

    /// True if a kept answer says that a user may do this; sends no review.
    pub fn is_known_to_be_allowed(&self, user: &User, deed: Deed<'_>) -> bool {
        let digest = self.verdicts.digest(&(user, deed));
        matches!(self.verdicts.get(digest), Some(Ok(())))
    }

    async fn judged(
        &self,
        (peer, namespace, digest): (IpAddr, &str, Digest),
        user: &User,
        spec: SubjectAccessReviewSpec,
    ) -> Result<Result<(), Arc<str>>, ReviewError> {
        let kind = "SubjectAccessReview";
        let ask = async {
            let _turn = self.turn(peer, namespace).await?;
            // Another task may have got the same answer meanwhile.
            if let Some(answer) = self.verdicts.get(digest) {
                return Ok(answer);
            }
            let review = SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(user.name.clone()),
                    uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
                    groups: Some(user.groups.clone()),
                    extra: Some(user.extra.clone()),
                    ..spec
                },
                ..Default::default()
            };
            let status = self.post(kind, review).await?.status;
            let status = status.ok_or(ReviewError::NoStatus { kind })?;
            Ok(match status.allowed && status.denied != Some(true) {
                true => Ok(()),
                false => Err(status.reason.unwrap_or_default().into()),
            })
        };
        let key = (peer, namespace, digest);
        ask_once(kind, &self.verdicts, key, ask).await
    }

    async fn turn(&self, peer: IpAddr, namespace: &str) -> Result<Turn<Box<str>>, ReviewError> {
        let turn = self.turns.take(peer, namespace.into()).await;
        turn.map_err(|Crowded| ReviewError::Crowded)
    }

    async fn post<K>(&self, kind: &'static str, review: K) -> Result<K, ReviewError>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
            + k8s_openapi::Resource
            + Serialize
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        answer.map_err(|source| ReviewError::NotAsked {
            kind,
            source: Box::new(source),
        })
    }
}

/// The kept answer, or else a new one.
async fn ask_once<Y: Clone, N: Clone>(
    kind: &'static str,
    kept: &Cache<Y, N>,
    (peer, namespace, digest): (IpAddr, &str, Digest),
    ask: impl Future<Output = Result<Result<Y, N>, ReviewError>>,
) -> Result<Result<Y, N>, ReviewError> {
    if let Some(answer) = kept.get(digest) {
        return Ok(answer);
    }
    let asked = timeout(PATIENCE, ask).await;
    let answer = asked.map_err(|_| ReviewError::TooLate { kind })??;
    kept.put((peer, namespace), digest, answer.clone());
    Ok(answer)
}
