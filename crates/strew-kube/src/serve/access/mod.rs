//! Authentication and authorization of clients, delegated to the API server.
//!
//! A bearer token is reviewed (`TokenReview`), a client certificate is checked against the cluster's CA, and a client
//! with neither is `system:anonymous`. Then the user's right to the path is reviewed (`SubjectAccessReview`). Without
//! an answer access is denied.
//!
//! Status codes, as of k8s.io/apiserver's delegating filters: 401 for an invalid token or certificate, 403 for a
//! missing right, 500 if the API server could not be asked; beyond them 429 for a client that asks too much. One difference on purpose: a *token* that could not be
//! reviewed is 500 with a text; k8s.io/apiserver answers 401, which suggests the wrong cause.
//!
//! Source: `pkg/endpoints/filters`, `pkg/authentication`, `pkg/authorization` of k8s.io/apiserver v1.36.3;
//! spec/scheduler §5.5.

mod cache;
pub mod clients;
pub mod paths;
pub mod review;
mod subject;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

use super::pages::{error, status};
use super::places::Peer;
use super::server::PeerCertificates;
pub use clients::{Clients, ClientsError};
pub use paths::Paths;
pub use review::{Deed, ReviewError, Reviews, User};
use strew_runtime::Warning;

/// Members of this group may do everything. Source: `NewDelegatingAuthorizationOptions`.
const MASTERS: &str = "system:masters";

/// Authenticates and authorizes requests for pages.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    reviews: Reviews,
    always_allowed: Paths,
    /// Paths whose pages authorize the user themselves.
    judged_there: Paths,
    clients: Option<Arc<Clients>>,
}

/// The credentials of a request. Not printable, because the token is a secret.
struct Shown {
    peer: IpAddr,
    token: Option<String>,
    certificates: PeerCertificates,
}

impl Shown {
    /// Removes the credentials from a request, so that no page can use or show them.
    fn take(request: &mut Request) -> Self {
        let token = bearer_token(request.headers()).map(str::to_owned);
        request.headers_mut().remove(AUTHORIZATION);
        let certificates = request.extensions_mut().remove().unwrap_or_default();
        let peer: Peer = request.extensions().get().cloned().unwrap_or_default();
        Self {
            peer: peer.address,
            token,
            certificates,
        }
    }
}

/// The client.
enum Caller {
    /// An authenticated or anonymous user.
    Known(Arc<User>),
    /// A client with invalid credentials.
    Impostor,
}

impl Access {
    /// Reviews at this client's API server; paths in `always_allowed` need no authorization. Client certificates count
    /// if `clients` has the cluster's CA and the server requests them.
    pub fn new(client: kube::Client, always_allowed: Paths, clients: Option<Arc<Clients>>) -> Self {
        Self(Arc::new(Inner {
            reviews: Reviews::new(client),
            always_allowed,
            judged_there: Paths::none(),
            clients,
        }))
    }

    /// Adds paths that only authenticate: their pages authorize the [`Asker`] themselves.
    #[must_use]
    pub fn judged_there(self, paths: Paths) -> Self {
        // No page shares it before it is used; if one does, the value stays unchanged.
        match Arc::try_unwrap(self.0) {
            Ok(inner) => Self(Arc::new(Inner {
                judged_there: paths,
                ..inner
            })),
            Err(shared) => Self(shared),
        }
    }

    /// Puts pages behind authentication and authorization.
    pub fn guard(self, pages: Router) -> Router {
        pages.layer(from_fn_with_state(self, guard))
    }

    async fn caller(&self, shown: Shown) -> Result<Caller, ReviewError> {
        let certificates = &shown.certificates.0;
        let clients = self.0.clients.as_ref();
        if let Some(user) = clients.and_then(|clients| clients.user_of(certificates)) {
            return Ok(Caller::Known(Arc::new(user)));
        }
        let Some(token) = shown.token else {
            // A certificate of an unknown CA is invalid; it does not make the client anonymous.
            return Ok(match clients.is_some() && !certificates.is_empty() {
                true => Caller::Impostor,
                false => Caller::Known(User::anonymous()),
            });
        };
        let user = self.0.reviews.user_of(shown.peer, &token).await?;
        Ok(user.map_or(Caller::Impostor, Caller::Known))
    }
}

/// The client of a page, in the request's extensions, for pages that authorize it themselves.
#[derive(Clone)]
pub struct Asker {
    peer: IpAddr,
    user: Arc<User>,
    access: Access,
}

impl Asker {
    /// Whether the client may do this; the inner error is the reason of the refusal.
    ///
    /// # Errors
    /// The API server did not answer.
    pub async fn may(&self, deed: Deed<'_>) -> Result<Result<(), Arc<str>>, ReviewError> {
        match is_master(&self.user) {
            true => Ok(Ok(())),
            false => {
                let reviews = &self.access.0.reviews;
                reviews.may_do(self.peer, &self.user, deed).await
            }
        }
    }
}

fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

async fn guard(State(access): State<Access>, mut request: Request, next: Next) -> Response {
    let verb = request.method().as_str().to_ascii_lowercase();
    let path = request.uri().path().to_owned();
    let shown = Shown::take(&mut request);
    let peer = shown.peer;
    let user = match access.caller(shown).await {
        Ok(Caller::Known(user)) => user,
        Ok(Caller::Impostor) => {
            return status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
        }
        Err(why) => return not_answered(&path, &why),
    };
    request.extensions_mut().insert(Asker {
        peer,
        user: Arc::clone(&user),
        access: access.clone(),
    });
    let is_free = access.0.always_allowed.contain(&path) || access.0.judged_there.contain(&path);
    if is_free || is_master(&user) {
        return next.run(request).await;
    }
    match access.0.reviews.may(peer, &user, &verb, &path).await {
        Ok(Ok(())) => next.run(request).await,
        Ok(Err(reason)) => forbidden(&user.name, &verb, &path, &reason),
        Err(why) => not_answered(&path, &why),
    }
}

/// The token of `Authorization: Bearer TOKEN`. Source: k8s.io/apiserver `bearertoken.go`.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Source: k8s.io/apiserver `responsewriters.Forbidden`.
fn forbidden(user: &str, verb: &str, path: &str, reason: &str) -> Response {
    let what = format!("User {user:?} cannot {verb} path {path:?}");
    let what = match reason.is_empty() {
        true => format!("forbidden: {}", plain(&what)),
        false => format!("forbidden: {}: {reason}", plain(&what)),
    };
    status(StatusCode::FORBIDDEN, "Forbidden", &what)
}

/// Source: k8s.io/apiserver `responsewriters.InternalError`.
fn not_answered(path: &str, why: &ReviewError) -> Response {
    if let ReviewError::Crowded | ReviewError::TooManyInvalid = why {
        // No warning: the client can make as many of these as it likes.
        let (code, why) = (StatusCode::TOO_MANY_REQUESTS, why.to_string());
        return status(code, "TooManyRequests", &why);
    }
    let why = super::certificate::whole_text(why);
    let review = Warning {
        kind: "page",
        namespace: "",
        name: path,
        node: None,
        action: "review access",
        error: &why,
        next: "when it is asked again",
    };
    review.log();
    let text = format!("Internal Server Error: {path:?}: {why}");
    error(StatusCode::INTERNAL_SERVER_ERROR, &plain(&text))
}

/// Escapes a text so that no browser reads it as HTML.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
pub(crate) mod tests;
