//! Client certificates of API servers (`--client-ca-file`).
//!
//! An API server shows a certificate only if its own configuration names one (`--admission-control-config-file`), so
//! none is required by default. Health and metrics are on another port, so kubelets need no certificate.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::hooks::peer_of;
use crate::serve::access::Clients;
use crate::serve::pages::error;
use crate::serve::server::PeerCertificates;

/// How long the rest of a refused request's body is read and dropped.
const DRAINED_WITHIN: Duration = Duration::from_secs(1);

/// The clients whose reviews are answered.
#[derive(Debug, Clone)]
pub struct Callers {
    /// The CAs of their certificates.
    pub clients: Arc<Clients>,
    /// The common names of their certificates; empty: any name.
    pub names: Vec<String>,
}

impl Callers {
    /// Status and message if a client with these certificates is refused; `None` if it is accepted.
    fn refusal(&self, shown: &PeerCertificates) -> Option<(StatusCode, &'static str)> {
        let Some(user) = self.clients.user_of(&shown.0) else {
            let why =
                "a client certificate is needed: docs/security.md tells how an API server gets one";
            return Some((StatusCode::UNAUTHORIZED, why));
        };
        match self.names.is_empty() || self.names.contains(&user.name) {
            true => None,
            false => Some((
                StatusCode::FORBIDDEN,
                "the client certificate has another name",
            )),
        }
    }
}

/// Passes a request on, or refuses it without parsing its body.
pub(super) async fn door(
    State(callers): State<Arc<Callers>>,
    request: Request,
    next: Next,
) -> Response {
    let shown = request.extensions().get::<PeerCertificates>().cloned();
    let peer = peer_of(&request);
    match callers.refusal(&shown.unwrap_or_default()) {
        None => {
            peer.trust();
            next.run(request).await
        }
        Some((code, why)) => {
            peer.refused();
            // With HTTP/2, a client that still sends would see a broken stream instead of the answer.
            let mut body = request.into_body();
            let drained = async { while let Some(Ok(_)) = body.frame().await {} };
            drop(timeout(DRAINED_WITHIN, drained).await);
            error(code, why)
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::post;
    use rcgen::ExtendedKeyUsagePurpose::ClientAuth;
    use tower::ServiceExt;

    use super::*;
    use crate::serve::access::clients::tests::Authority;

    #[tokio::test]
    async fn only_who_shows_the_named_certificate_is_answered() {
        let (ours, others) = (Authority::new("webhooks"), Authority::new("webhooks"));
        let answered = async |names: &[&str], shown: Option<(&Authority, &str)>| -> u16 {
            let callers = Callers {
                clients: Arc::new(Clients::of_authority(&ours.pem).unwrap()),
                names: names.iter().map(|name| (*name).to_owned()).collect(),
            };
            let pages = Router::new().route("/admit/pods", post(async || "yes"));
            let pages = pages.route_layer(from_fn_with_state(Arc::new(callers), door));
            let mut request = Request::post("/admit/pods").body(Body::empty()).unwrap();
            if let Some((authority, name)) = shown {
                let (certificate, _) = authority.sign(name, "group", ClientAuth);
                let shown = PeerCertificates([certificate].into());
                request.extensions_mut().insert(shown);
            }
            pages.oneshot(request).await.unwrap().status().as_u16()
        };
        assert_eq!(answered(&[], None).await, 401);
        assert_eq!(answered(&[], Some((&others, "apiserver"))).await, 401);
        assert_eq!(answered(&[], Some((&ours, "apiserver"))).await, 200);
        assert_eq!(
            answered(&["apiserver"], Some((&ours, "apiserver"))).await,
            200
        );
        assert_eq!(
            answered(&["apiserver"], Some((&ours, "kubelet"))).await,
            403
        );
    }
}
