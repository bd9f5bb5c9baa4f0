//! Bodies of requests: their sizes, and how long they may take.
//!
//! Anybody in the cluster's network can send something here, and an API server shows no certificate by default. So the
//! memory of all bodies together is bounded, and who sends slowly is cut off before others wait for long.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::serve::pages::error;

/// The largest body. A pod of etcd's largest size twice, as an update has it, and room for what JSON escapes.
pub(super) const BODY_MAX: usize = 8 << 20;

/// All bodies that are being answered, in KiB: some large ones, or thousands of usual ones.
const ALL_MAX_KIB: u32 = 32 << 10;

/// How long a body may take to come, its turn among others included.
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// The room for bodies.
#[derive(Clone)]
pub(super) struct Bodies(Arc<Semaphore>);

impl Default for Bodies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL_MAX_KIB as usize)))
    }
}

/// A body, and its room, which is given back with it.
pub(super) struct Room {
    pub(super) value: Value,
    _permit: OwnedSemaphorePermit,
}

impl Bodies {
    /// Reads the JSON of a request.
    ///
    /// # Errors
    /// The answer: 413 for one that is too large, 408 for one that does not come, 400 for what is no JSON.
    pub(super) async fn read(&self, request: Request<Body>) -> Result<Room, Box<Response>> {
        let length = length(request.headers());
        if length > BODY_MAX {
            return Err(too_large());
        }
        let read = async {
            let kib = u32::try_from(length.div_ceil(1 << 10)).unwrap_or(u32::MAX);
            let permit = Arc::clone(&self.0).acquire_many_owned(kib).await;
            let body = Limited::new(request.into_body(), length).collect().await;
            (permit, body)
        };
        let Ok((permit, body)) = timeout(BODY_WITHIN, read).await else {
            let why = "the body did not come in time";
            return Err(refused(StatusCode::REQUEST_TIMEOUT, why));
        };
        let Ok(permit) = permit else {
            let why = "the webhook ends";
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        let body = match body {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
            Err(error) => {
                let why = format!("the body cannot be read: {error}");
                return Err(refused(StatusCode::BAD_REQUEST, &why));
            }
        };
        match serde_json::from_slice(&body) {
            Ok(value) => Ok(Room {
                value,
                _permit: permit,
            }),
            Err(error) => {
                let why = format!("the body is no JSON: {error}");
                Err(refused(StatusCode::BAD_REQUEST, &why))
            }
        }
    }
}

/// How long the body is; where nobody says so, as long as it may be.
fn length(headers: &HeaderMap) -> usize {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|text| text.to_str().ok()?.parse().ok());
    length.unwrap_or(BODY_MAX)
}

fn too_large() -> Box<Response> {
    let why = format!("the body is larger than {} MiB", BODY_MAX >> 20);
    refused(StatusCode::PAYLOAD_TOO_LARGE, &why)
}

fn refused(code: StatusCode, why: &str) -> Box<Response> {
    Box::new(error(code, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bodies: &Bodies, length: Option<&str>, body: Body) -> Result<Value, u16> {
        let mut request = Request::post("/");
        if let Some(length) = length {
            request = request.header(CONTENT_LENGTH, length);
        }
        let read = bodies.read(request.body(body).unwrap()).await;
        read.map(|room| room.value)
            .map_err(|answer| answer.status().as_u16())
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_has_an_answer() {
        let bodies = Bodies::default();
        let of = |text: &str| Body::from(text.to_owned());
        let large = "1".repeat(BODY_MAX + 1);
        let deep = "[".repeat(1_000_000);
        let nothing =
            Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
        let cases = [
            (
                Some("9"),
                of(r#"{"a": 1}"#),
                Ok(serde_json::json!({"a": 1})),
            ),
            (None, of("7"), Ok(7.into())),
            (Some("8388609"), of(""), Err(413)),
            (
                Some("18446744073709551616"),
                of("{}"),
                Ok(serde_json::json!({})),
            ),
            (None, of(&large), Err(413)),
            (Some("2"), of("{\"a\": 1}"), Err(413)),
            (Some("0"), of(""), Err(400)),
            (None, of("{"), Err(400)),
            (None, of(&deep), Err(400)),
            (Some("9"), nothing, Err(408)),
        ];
        for (length, body, expected) in cases {
            assert_eq!(read(&bodies, length, body).await, expected, "{length:?}");
        }
        assert_eq!(bodies.0.available_permits(), ALL_MAX_KIB as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_share_their_room() {
        let bodies = Bodies::default();
        let many = (0..ALL_MAX_KIB).map(|_| async {
            let request = Request::post("/").header(CONTENT_LENGTH, "2");
            bodies
                .read(request.body(Body::from("{}")).unwrap())
                .await
                .ok()
        });
        let held = futures::future::join_all(many).await;
        assert!(held.iter().all(Option::is_some));
        assert_eq!(read(&bodies, Some("2"), Body::from("{}")).await, Err(408));
        drop(held);
        assert!(read(&bodies, Some("2"), Body::from("{}")).await.is_ok());
    }
}
