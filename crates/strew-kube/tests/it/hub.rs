//! An API server as small as may be: it stores objects, lists and watches them, and does to a request what a test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock::{SendResponse, pair};

/// What is done to a request.
pub(crate) enum Fault {
    /// This is done before it is carried out.
    Before(Box<dyn FnOnce(&mut State) + Send>),
    /// It is carried out, and its answer is lost.
    LostAnswer,
    /// It is carried out, and answered after a time; the function runs before the answer.
    Then(Duration, Box<dyn FnOnce(&mut State) + Send>),
}

/// The hub's state.
#[derive(Default)]
pub(crate) struct State {
    version: u64,
    /// By plural name, then by namespace and name.
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    /// What changed: plural name, version, line of a watch.
    log: Vec<(String, u64, String)>,
    watchers: Vec<(String, u64, SendResponse<Response<Body>>)>,
    /// All that was asked for but lists, watches and leases: method, path without query.
    pub(crate) writes: Vec<String>,
    /// Beginnings of such texts, and what is done to the next request like that.
    pub(crate) faults: Vec<(&'static str, Fault)>,
    /// Kinds that discovery tells: group, version, kind, plural name.
    pub(crate) kinds: Vec<[&'static str; 4]>,
    /// Plural names of the kinds that are forbidden.
    pub(crate) forbidden: Vec<&'static str>,
    /// Whether leases may not be renewed.
    pub(crate) leases_are_taken: bool,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Mutex<State>>);

impl Hub {
    /// An empty one, and a client of it.
    pub(crate) fn start() -> (Client, Self) {
        let (service, mut handle) = pair::<Request<Body>, Response<Body>>();
        let hub = Self(Arc::default());
        let served = hub.clone();
        tokio::spawn(async move {
            while let Some((request, send)) = handle.next_request().await {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let query = parts.uri.query().unwrap_or_default();
                served
                    .lock()
                    .take(parts.method.as_str(), parts.uri.path(), query, body, send);
            }
        });
        (Client::new(service, "default"), hub)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&State) -> bool) {
        for _ in 0..2_000 {
            if holds(&self.lock()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what}; asked was {:#?}", self.lock().writes);
    }
}

impl State {
    /// An object is there, as it is given, with what a server adds.
    pub(crate) fn set(&mut self, plural: &str, mut object: Value) -> Value {
        self.version += 1;
        let key = key_of(&object);
        let all = self.objects.entry(plural.to_owned()).or_default();
        let known = all.get(&key);
        let uid = known.map_or_else(
            || format!("uid-{}", self.version),
            |known| text(known, "/metadata/uid").to_owned(),
        );
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let what = if known.is_some() { "MODIFIED" } else { "ADDED" };
        all.insert(key, object.clone());
        self.tell(plural, what, &object);
        object
    }

    pub(crate) fn get(&self, plural: &str, key: &str) -> Option<&Value> {
        self.objects.get(plural)?.get(key)
    }

    pub(crate) fn all(&self, plural: &str) -> impl Iterator<Item = &Value> {
        self.objects
            .get(plural)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// True if a kind is watched, and so was listed.
    pub(crate) fn has_watched(&self, plural: &str) -> bool {
        self.watchers.iter().any(|(watched, ..)| watched == plural)
    }

    pub(crate) fn delete(&mut self, plural: &str, key: &str) -> Option<Value> {
        self.version += 1;
        let mut gone = self.objects.get_mut(plural)?.remove(key)?;
        gone["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.tell(plural, "DELETED", &gone);
        Some(gone)
    }

    fn tell(&mut self, plural: &str, what: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": what, "object": object}));
        self.log.push((plural.to_owned(), self.version, line));
        self.feed();
    }

    /// Watches with news deliver them and end; the client begins the next.
    fn feed(&mut self) {
        let mut waiting = Vec::new();
        for (plural, since, send) in std::mem::take(&mut self.watchers) {
            let news = self.log.iter();
            let news = news.filter(|(of, version, _)| *of == plural && *version > since);
            let lines: String = news.map(|(_, _, line)| line.as_str()).collect();
            match lines.is_empty() {
                true => waiting.push((plural, since, send)),
                false => respond(send, 200, lines),
            }
        }
        self.watchers = waiting;
    }

    fn take(
        &mut self,
        method: &str,
        path: &str,
        query: &str,
        body: Value,
        send: SendResponse<Response<Body>>,
    ) {
        if let "/api" | "/apis" = path {
            return respond(send, 200, self.discovery(path).to_string());
        }
        let place = Place::of(path);
        if method == "GET" && place.name.is_empty() {
            if self.forbidden.contains(&place.plural.as_str()) {
                return respond(send, 403, refused(403, "no role says so").1.to_string());
            }
            if query.contains("watch=true") {
                let since = query
                    .split('&')
                    .find_map(|p| p.strip_prefix("resourceVersion="));
                let since = since.and_then(|v| v.parse().ok()).unwrap_or(0);
                self.watchers.push((place.plural, since, send));
                return self.feed();
            }
            let items = self.all(&place.plural);
            let items = items.filter(|item| {
                place.namespace.is_empty() || text(item, "/metadata/namespace") == place.namespace
            });
            let items: Vec<&Value> = items.collect();
            let list = json!({
                "kind": "List", "apiVersion": "v1", "items": items,
                "metadata": {"resourceVersion": self.version.to_string()},
            });
            return respond(send, 200, list.to_string());
        }
        let what = format!("{method} {path}");
        let fault = match place.plural.as_str() {
            "leases" => None,
            _ => {
                let hit = self
                    .faults
                    .iter()
                    .position(|(part, _)| what.starts_with(part));
                self.writes.push(what);
                hit.map(|place| self.faults.remove(place).1)
            }
        };
        let fault = match fault {
            Some(Fault::Before(act)) => {
                act(self);
                None
            }
            fault => fault,
        };
        let (code, answer) = self.carry_out(method, &place, body);
        match fault {
            Some(Fault::LostAnswer) => send.send_error("the connection was cut"),
            Some(Fault::Then(after, act)) => {
                act(self);
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    respond(send, code, answer.to_string());
                });
            }
            Some(Fault::Before(_)) | None => respond(send, code, answer.to_string()),
        }
    }

    fn carry_out(&mut self, method: &str, place: &Place, body: Value) -> (u16, Value) {
        let plural = place.plural.as_str();
        if plural == "leases" && self.leases_are_taken && method != "GET" {
            return refused(409, "the object has been modified");
        }
        if let "tokenreviews" | "subjectaccessreviews" | "selfsubjectaccessreviews" = plural {
            return (201, reviewed(plural, body));
        }
        let known = self.get(plural, &place.key()).cloned();
        match (method, known) {
            ("POST", _) => {
                let (key, mut body) = (key_of(&body), body);
                if self.get(plural, &key).is_some() {
                    return refused(409, "already exists");
                }
                if let Some(fields) = body.as_object_mut() {
                    // A subresource is not created along.
                    fields.shift_remove("status");
                }
                (201, self.set(plural, body))
            }
            (_, None) => refused(404, "not found"),
            ("GET", Some(known)) => (200, known),
            ("DELETE", Some(_)) => (200, self.delete(plural, &place.key()).unwrap_or_default()),
            (_, Some(known)) => {
                let asked = text(&body, "/metadata/resourceVersion");
                if !asked.is_empty() && asked != text(&known, "/metadata/resourceVersion") {
                    return refused(409, "the object has been modified");
                }
                let mut object = known.clone();
                match (method, place.subresource.as_str()) {
                    ("PATCH", _) => merge(&mut object, &body),
                    (_, "status") => object["status"] = body["status"].clone(),
                    _ => object = body,
                }
                match object == known {
                    true => (200, known),
                    false => (200, self.set(plural, object)),
                }
            }
        }
    }

    fn discovery(&self, path: &str) -> Value {
        let kinds = self.kinds.iter().filter(|_| path == "/apis");
        let item = |[group, version, kind, plural]: &[&str; 4]| {
            json!({"metadata": {"name": group}, "versions": [{"version": version, "resources": [
                {"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced"},
            ]}]})
        };
        let items: Vec<Value> = kinds.map(item).collect();
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
    }
}

/// `good` is a user who may read namespace `shop`, and pages.
fn reviewed(plural: &str, mut review: Value) -> Value {
    review["status"] = match plural {
        "tokenreviews" => json!({
            "authenticated": review["spec"]["token"] == "good",
            "user": {"username": "reader", "groups": []},
        }),
        "subjectaccessreviews" => {
            let asked = &review["spec"]["resourceAttributes"];
            let allowed = (asked["namespace"] == "shop" && asked["verb"] == "get")
                || review["spec"]["nonResourceAttributes"]["path"] == "/metrics";
            json!({"allowed": allowed, "reason": "no role says so"})
        }
        _ => json!({"allowed": true}),
    };
    review
}

/// What a path names.
struct Place {
    namespace: String,
    plural: String,
    name: String,
    subresource: String,
}

impl Place {
    fn of(path: &str) -> Self {
        let skipped = if path.starts_with("/api/") { 3 } else { 4 };
        let mut parts = path.split('/').skip(skipped).peekable();
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let first = next();
        let (namespace, plural) = match first.as_str() {
            "namespaces" => (next(), next()),
            _ => (String::new(), first),
        };
        Self {
            namespace,
            plural,
            name: next(),
            subresource: next(),
        }
    }

    fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn key_of(object: &Value) -> String {
    let [namespace, name] =
        ["namespace", "name"].map(|f| text(&object["metadata"], &format!("/{f}")));
    format!("{namespace}/{name}")
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        match value {
            Value::Null => drop(target.as_object_mut().map(|map| map.shift_remove(key))),
            value => merge(&mut target[key], value),
        }
    }
}

fn refused(code: u16, message: &str) -> (u16, Value) {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        _ => "Conflict",
    };
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}),
    )
}

fn respond(send: SendResponse<Response<Body>>, code: u16, body: String) {
    let response = Response::builder().status(StatusCode::from_u16(code).expect("a code"));
    let body = Body::from(body.into_bytes());
    send.send_response(response.body(body).expect("a response"));
}
