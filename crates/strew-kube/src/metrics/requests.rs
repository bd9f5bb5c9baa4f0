//! Counts requests to the API server by status code.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::{Request, Response};
use strew_scheduler::metrics::{Family, Value};
use tower::{Layer, Service};

use super::catalogue;

/// Method and status code; `None`: no answer.
type Key = (http::Method, Option<u16>);

/// Counts requests: a layer for a client's services. Clones share their counts.
#[derive(Debug, Clone)]
pub struct Requests {
    host: Arc<str>,
    counts: Arc<Mutex<Vec<(Key, u64)>>>,
}

/// The most combinations of method and code; further ones are not counted.
const KEYS_MAX: usize = 128;

impl Requests {
    /// Without any request; for this server: its host, and its port if it is not the default one.
    pub fn to(host: &str) -> Self {
        Self {
            host: host.into(),
            counts: Arc::default(),
        }
    }

    /// Counts a request with the code of its answer; `None`: no answer.
    pub fn count(&self, method: &http::Method, code: Option<u16>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(key, _): &(Key, u64)| key.0 == method && key.1 == code;
        match counts.iter().position(same) {
            Some(place) => counts[place].1 += 1,
            None if counts.len() < KEYS_MAX => {
                counts.push(((method.clone(), code), 1));
            }
            None => {}
        }
    }

    /// The metric.
    pub fn families(&self) -> Vec<Family> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts = counts.clone();
        counts.sort_by(|((a, b), _), ((c, d), _)| (a.as_str(), b).cmp(&(c.as_str(), d)));
        let mut family = Family::new(&catalogue::REST_REQUESTS);
        for ((method, code), count) in counts {
            let code = code.map_or("<error>".to_owned(), |code| code.to_string());
            let host = self.host.to_string();
            let labels = [code.into(), method.to_string().into(), host.into()];
            family.push(labels, Value::Count(count));
        }
        vec![family]
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, service: S) -> Counted<S> {
        Counted {
            service,
            requests: self.clone(),
        }
    }
}

/// A service whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    service: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = futures::future::BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.method().clone();
        let requests = self.requests.clone();
        let answered = self.service.call(request);
        Box::pin(async move {
            let answer = answered.await;
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            requests.count(&method, code);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn answers_and_failures_are_counted_apart() {
        let requests = Requests::to("api.example");
        let service = tower::service_fn(async |request: Request<()>| match request.uri().path() {
            "/gone" => Err("broken pipe"),
            _ => Ok(Response::new(())),
        });
        for path in ["/", "/gone", "/"] {
            // The host is added further down in the client.
            let request = Request::get(path).body(()).unwrap();
            drop(requests.layer(service).oneshot(request).await);
        }
        let families = requests.families();
        let told: Vec<String> = families[0]
            .samples
            .iter()
            .map(|sample| format!("{} {:?}", sample.labels.join(" "), sample.value))
            .collect();
        assert_eq!(
            told,
            [
                "<error> GET api.example Count(1)",
                "200 GET api.example Count(2)"
            ]
        );
    }
}
