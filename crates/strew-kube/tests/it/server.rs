//! An API server that answers as a test says.

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower_test::mock::{Handle, SendResponse, pair};

/// The other end of a client.
pub(crate) struct Server(Handle<Request<Body>, Response<Body>>);

/// One request that waits for its answer.
pub(crate) struct Asked {
    /// Method and path, with the query.
    pub(crate) what: String,
    /// What was sent.
    pub(crate) body: Value,
    answer: SendResponse<Response<Body>>,
}

/// A client, and the server that it asks.
pub(crate) fn start() -> (Client, Server) {
    let (service, handle) = pair::<Request<Body>, Response<Body>>();
    (Client::new(service, "default"), Server(handle))
}

impl Server {
    /// The next request.
    pub(crate) async fn next(&mut self) -> Asked {
        let (request, answer) = self.0.next_request().await.expect("somebody asks");
        let what = format!("{} {}", request.method(), request.uri());
        let body = request
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Asked { what, body, answer }
    }
}

impl Asked {
    /// Answers with an object, or a `Status`.
    pub(crate) fn answer(self, code: u16, body: Value) {
        self.answer_with(code, &[], body.to_string());
    }

    /// The same with headers, and any text.
    pub(crate) fn answer_with(self, code: u16, headers: &[(&str, &str)], text: String) {
        let mut response = Response::builder().status(StatusCode::from_u16(code).expect("a code"));
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let body = Body::from(text.into_bytes());
        self.answer
            .send_response(response.body(body).expect("a response"));
    }

    /// The connection ends without an answer.
    pub(crate) fn cut(self) {
        self.answer.send_error("the connection was cut");
    }
}
