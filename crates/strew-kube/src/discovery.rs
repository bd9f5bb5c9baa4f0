//! Which kinds the API server serves, polled because CustomResourceDefinitions are added and removed.
//!
//! Two requests fetch everything (aggregated discovery, Kubernetes 1.30); without a change the answer is 304. Every
//! authenticated user may send them. Source: KEP-3352.

use std::time::Duration;

use http::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use strew_runtime::Warning;
use strew_runtime::watch::Kind;
pub use strew_runtime::watch::{Served, ServedKind};
use tokio::sync::mpsc;

use crate::causes::in_a_line;
use crate::panics::kept;
use crate::waits::Waits;

/// The requested media type.
const FORM: HeaderValue = HeaderValue::from_static(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
);

/// The longest answer that is read, in bytes: thousands of kinds take far less.
const ANSWER_MAX: usize = 64 << 20;

/// Paths of the group lists: the core group, and all others.
const PATHS: [&str; 2] = ["/api", "/apis"];

/// How often new definitions are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Pause before the next poll after a failure.
pub(crate) const AGAIN: &str =
    "again and again, after waits that grow; told once until it is something else";

/// The kinds in a response; `None` if it is no discovery response.
fn read(list: &Value) -> Option<Vec<ServedKind>> {
    let mut kinds = Vec::new();
    if list["kind"] != "APIGroupDiscoveryList" {
        return None;
    }
    for group in list["items"].as_array()? {
        let name = text(&group["metadata"], "name");
        for version in array(group, "versions") {
            let number = text(version, "version");
            for resource in array(version, "resources") {
                let kind = text(&resource["responseKind"], "kind");
                let plural = text(resource, "resource");
                let mut below = array(resource, "subresources").iter();
                kinds.push(ServedKind {
                    kind: Kind::new(name, number, kind, plural),
                    has_scale: below.any(|sub| sub["subresource"] == "scale"),
                });
            }
        }
    }
    Some(kinds)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Why discovery failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot discover the kinds of the API server: GET {path}: {text}")]
pub struct DiscoveryError {
    path: &'static str,
    text: String,
}

/// Polls the API server, and keeps the last answers.
pub struct Discovery {
    client: Client,
    parts: [Part; 2],
}

/// The result of one request.
#[derive(Default)]
struct Part {
    tag: Option<HeaderValue>,
    kinds: Vec<ServedKind>,
}

impl Discovery {
    /// Nothing is known before the first [`ask`](Self::ask).
    pub fn new(client: Client) -> Self {
        Self {
            client,
            parts: Default::default(),
        }
    }

    /// Asks the API server. Returns true if something changed.
    ///
    /// # Errors
    /// The API server did not answer, or the answer is invalid. What was known before stays known.
    pub async fn ask(&mut self) -> Result<bool, DiscoveryError> {
        let mut is_new = false;
        for (place, path) in PATHS.into_iter().enumerate() {
            let asked = self.parts[place].ask(&self.client, path).await;
            is_new |= asked.map_err(|text| DiscoveryError { path, text })?;
        }
        Ok(is_new)
    }

    /// All served kinds.
    pub fn served(&self) -> Served {
        let parts = self.parts.iter();
        parts.flat_map(|part| part.kinds.iter().cloned()).collect()
    }
}

impl Part {
    async fn ask(&mut self, client: &Client, path: &str) -> Result<bool, String> {
        let mut request = Request::get(path).header(ACCEPT, FORM);
        if let Some(tag) = &self.tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let request = request.body(Body::empty());
        let request = request.map_err(|error| error.to_string())?;
        let answer = client.send(request).await;
        let answer = answer.map_err(|error| in_a_line(&error))?;
        let (status, tag) = (answer.status(), answer.headers().get(ETAG).cloned());
        if status == StatusCode::NOT_MODIFIED {
            return Ok(false);
        }
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if status != StatusCode::OK {
            let told: Value = serde_json::from_slice(&body).unwrap_or_default();
            return Err(match text(&told, "message") {
                "" => format!("status {status}"),
                text => text.to_owned(),
            });
        }
        let list: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let kinds = read(&list).ok_or("it is not told in the form of Kubernetes 1.30")?;
        self.tag = tag;
        let is_new = kinds != self.kinds;
        self.kinds = kinds;
        Ok(is_new)
    }
}

/// Polls in a task; every change arrives in the channel.
pub fn look(client: Client) -> mpsc::Receiver<Served> {
    let (to, served) = mpsc::channel(1);
    kept(move || look_again(Discovery::new(client.clone()), to.clone()));
    served
}

async fn look_again(mut discovery: Discovery, to: mpsc::Sender<Served>) {
    let (mut told, mut failure, mut waits) = (false, None, Waits::default());
    loop {
        let wait = match discovery.ask().await {
            Ok(is_new) => {
                failure = None;
                if (is_new || !told) && to.send(discovery.served()).await.is_err() {
                    return;
                }
                told = true;
                LOOK_EVERY
            }
            Err(error) => {
                let text = error.to_string();
                if failure.as_ref() != Some(&text) {
                    let list = Warning {
                        kind: "APIGroupDiscoveryList",
                        namespace: "",
                        name: "",
                        node: None,
                        action: "list kinds",
                        error: &text,
                        next: AGAIN,
                    };
                    list.log();
                    failure = Some(text);
                }
                waits.next(false)
            }
        };
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_read_in_their_versions() {
        let resource = |kind: &str, plural: &str, below: &[&str]| {
            let below: Vec<Value> = below.iter().map(|b| json!({"subresource": b})).collect();
            json!({
                "resource": plural, "scope": "Namespaced", "subresources": below,
                "responseKind": {"group": "", "version": "", "kind": kind},
            })
        };
        let version = |name: &str, all: Vec<Value>| json!({"version": name, "resources": all});
        let list = json!({
            "kind": "APIGroupDiscoveryList",
            "items": [
                {"metadata": {"name": "games.example.org"}, "versions": [
                    version("v2", vec![resource("Game", "games", &["status", "scale"])]),
                    version("v1", vec![resource("Game", "games", &[]), resource("Cup", "cups", &[])]),
                ]},
                {"metadata": {"name": "empty.example.org"}},
            ],
        });
        let served: Served = read(&list).unwrap().into_iter().collect();
        let told = |kind: &str| -> Vec<String> {
            let all = served.versions("games.example.org", kind).iter();
            all.map(|s| format!("{} {} {}", s.kind.version, s.kind, s.has_scale))
                .collect()
        };
        assert_eq!(
            told("Game"),
            [
                "v2 games.games.example.org true",
                "v1 games.games.example.org false"
            ]
        );
        assert_eq!(told("Cup"), ["v1 cups.games.example.org false"]);
        assert_eq!(told("Ball"), Vec::<String>::new());
        assert!(served.has(&Kind::new("games.example.org", "v1", "Game", "games")));
        assert!(!served.has(&Kind::new("games.example.org", "v3", "Game", "games")));
        assert_eq!(read(&json!({"kind": "APIGroupList", "groups": []})), None);
    }
}
