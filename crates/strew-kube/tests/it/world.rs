//! A small API server in memory: lists, watches that tell what is changed later, reads, and writes.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Body as Answer;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use strew_kube::connect::Connection;
use strew_manifest::patch::{json_patch, merge_patch};
use tokio::sync::{mpsc, oneshot};

type Line = Result<String, Infallible>;

#[derive(Default)]
struct State {
    version: u64,
    /// Objects by the path of their collection in all namespaces: `/apis/apps/v1/replicasets`.
    objects: BTreeMap<String, Vec<Value>>,
    watches: BTreeMap<String, Vec<mpsc::UnboundedSender<Line>>>,
    /// Paths that are answered with an error.
    broken: BTreeMap<String, (u16, String)>,
    /// How often they were asked.
    n_refused: u32,
    /// How many SubjectAccessReviews were asked for.
    n_rights: u32,
    /// Writes: method and path, and the body.
    written: Vec<(String, Value)>,
    /// While a test holds writes, they wait here.
    held: Option<VecDeque<oneshot::Sender<()>>>,
    /// The number of writes that are answered with a conflict before one is carried out.
    conflicts: u32,
    /// What is refused, by how the request begins, as in `PATCH /api/v1/nodes`; a watch ends with `?watch`.
    refused: Vec<(String, Refusal)>,
    /// How often each of those was sent.
    n_sent: BTreeMap<String, usize>,
}

/// How something is refused, always.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    Code(u16),
    NoConnection,
}

/// The API server.
#[derive(Clone, Default)]
pub(crate) struct FakeApiServer(Arc<Mutex<State>>);

/// Group and version of a path, and what is after them: `apps/v1`, `namespaces/shop/replicasets/web`.
fn parts(path: &str) -> Option<(String, Vec<&str>)> {
    let mut rest = path.split('/').skip(1);
    let prefix = match rest.next()? {
        "api" => format!("/api/{}", rest.next()?),
        "apis" => format!("/apis/{}/{}", rest.next()?, rest.next()?),
        _ => return None,
    };
    Some((prefix, rest.collect()))
}

impl FakeApiServer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }

    pub(crate) fn connection(&self) -> Connection {
        let world = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let world = world.clone();
            async move {
                match world.refusal(&request) {
                    None => Ok(world.answer(request).await),
                    Some(Refusal::Code(code)) => Ok(status(code, "refused")),
                    Some(Refusal::NoConnection) => {
                        Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))
                    }
                }
            }
        });
        Connection {
            client: Client::new(service, "default"),
            requests: strew_kube::metrics::Requests::to("api.test"),
            server: "https://api.example".to_owned(),
            version: "v1.36.3".to_owned(),
            namespace: "default".to_owned(),
            warning: None,
        }
    }

    /// Stores an object, and sends it to the watches of its collection.
    pub(crate) fn set(&self, collection: &str, object: Value) {
        drop(self.state().set(collection, object));
    }

    /// What is asked below this path fails.
    pub(crate) fn break_path(&self, path: &str, code: u16, message: &str) {
        let broken = (code, message.to_owned());
        self.state().broken.insert(path.to_owned(), broken);
    }

    /// What is asked so is refused from now on.
    pub(crate) fn refuse(&self, beginning: &str, refusal: Refusal) {
        let refused = (beginning.to_owned(), refusal);
        self.state().refused.push(refused);
    }

    /// How often each request was sent that was refused so.
    pub(crate) fn n_sent(&self) -> BTreeMap<String, usize> {
        self.state().n_sent.clone()
    }

    fn refusal(&self, request: &Request<Body>) -> Option<Refusal> {
        let uri = request.uri();
        let is_watch = uri
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let watch = if is_watch { "?watch" } else { "" };
        let asked = format!("{} {}{watch}", request.method(), uri.path());
        let mut state = self.state();
        let mut all = state.refused.iter();
        let (_, refusal) = all.find(|(beginning, _)| asked.starts_with(beginning.as_str()))?;
        let refusal = *refusal;
        *state.n_sent.entry(asked).or_default() += 1;
        Some(refusal)
    }

    /// How often what is broken was asked for.
    pub(crate) fn n_refused(&self) -> u32 {
        self.state().n_refused
    }

    /// How many SubjectAccessReviews were asked for.
    pub(crate) fn n_rights(&self) -> u32 {
        self.state().n_rights
    }

    /// What was written until now.
    pub(crate) fn written(&self) -> Vec<(String, Value)> {
        self.state().written.clone()
    }

    /// Writes wait from now on.
    pub(crate) fn hold(&self) {
        self.state().held = Some(VecDeque::new());
    }

    /// How many writes wait.
    pub(crate) fn n_held(&self) -> usize {
        self.state().held.as_ref().map_or(0, VecDeque::len)
    }

    /// Writes that wait are carried out, and no more wait.
    pub(crate) fn release(&self) {
        for waiting in self.state().held.take().into_iter().flatten() {
            // The process that wrote may have ended.
            let _ = waiting.send(());
        }
    }

    /// The next writes meet a conflict.
    pub(crate) fn conflict(&self, times: u32) {
        self.state().conflicts = times;
    }

    async fn answer(&self, request: Request<Body>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
        let broken = self.state().broken.get(path).cloned();
        if let Some((code, message)) = broken {
            self.state().n_refused += 1;
            return status(code, &message);
        }
        match head.method {
            Method::PUT if path.ends_with("/status") => return self.write(path, body).await,
            Method::POST => return self.create(path, body),
            Method::PUT => return self.replace(path, |_| Some(body.clone())),
            Method::PATCH => {
                let kind = head.headers.get(CONTENT_TYPE);
                let is_merge = kind.is_some_and(|kind| kind == "application/merge-patch+json");
                let patched = |object: &Value| match is_merge {
                    true => Some(merge_patch(object, &body)),
                    false => json_patch(object, &body).ok(),
                };
                return self.replace(path, patched);
            }
            _ => {}
        }
        if query.contains("watch=true") {
            return self.watch(path);
        }
        self.read(path)
    }

    fn watch(&self, path: &str) -> Response<Answer> {
        let Some((collection, _)) = collection_of(path) else {
            return status(404, "not found");
        };
        let (to, lines) = mpsc::unbounded_channel();
        self.state().watches.entry(collection).or_default().push(to);
        let lines = futures::stream::unfold(lines, async |mut lines| {
            let line = lines.recv().await?;
            Some((line, lines))
        });
        Response::new(Answer::from_stream(lines))
    }

    fn read(&self, path: &str) -> Response<Answer> {
        let state = self.state();
        if let "/api" | "/apis" = path {
            return discovery(&state, path);
        }
        let Some((collection, named)) = collection_of(path) else {
            return status(404, "not found");
        };
        let Some(all) = state.objects.get(&collection) else {
            return match named.1 {
                None => list(&state, Vec::new()),
                Some(_) => status(404, "not found"),
            };
        };
        let (namespace, name) = named;
        let is_in =
            |object: &&Value| namespace.is_none_or(|n| object["metadata"]["namespace"] == n);
        let mut inside = all.iter().filter(is_in);
        match name {
            None => list(&state, inside.cloned().collect()),
            Some(name) => match inside.find(|object| object["metadata"]["name"] == name) {
                Some(object) => answered(200, object),
                None => status(404, "not found"),
            },
        }
    }

    fn create(&self, path: &str, body: Value) -> Response<Answer> {
        if path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" {
            self.state().n_rights += 1;
            // Mallory may do nothing.
            let mut review = body;
            review["status"] = json!({"allowed": review["spec"]["user"] != "mallory"});
            return answered(201, &review);
        }
        let Some((collection, (namespace, _))) = collection_of(path) else {
            return status(404, "not found");
        };
        let mut body = body;
        if let Some(namespace) = namespace {
            body["metadata"]["namespace"] = namespace.into();
        }
        let mut state = self.state();
        if state.place(&collection, &body).is_some() {
            return status(409, "already exists");
        }
        let uid = format!("made-{}", state.version);
        let mut object = body;
        object["metadata"]["uid"] = uid.into();
        answered(200, &state.set(&collection, object))
    }

    /// Another object in the place of one; `None`: it is invalid.
    fn replace(&self, path: &str, with: impl Fn(&Value) -> Option<Value>) -> Response<Answer> {
        let Some((collection, (_, Some(name)))) = collection_of(path) else {
            return status(404, "not found");
        };
        // The lock is held from the read to the write.
        let mut state = self.state();
        let mut all = state.objects.get(&collection).into_iter().flatten();
        let Some(before) = all.find(|object| object["metadata"]["name"] == name) else {
            return status(404, "not found");
        };
        let Some(after) = with(before) else {
            return status(422, "the patch does not hold");
        };
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        match version(&after) == version(before) {
            true => answered(200, &state.set(&collection, after)),
            false => status(409, "the object has been modified"),
        }
    }

    /// The objects of a collection.
    pub(crate) fn objects(&self, collection: &str) -> Vec<Value> {
        let state = self.state();
        state.objects.get(collection).cloned().unwrap_or_default()
    }

    async fn write(&self, path: &str, body: Value) -> Response<Answer> {
        let waits = {
            let mut state = self.state();
            state.held.as_mut().map(|held| {
                let (to, waits) = oneshot::channel();
                held.push_back(to);
                waits
            })
        };
        if let Some(waits) = waits {
            drop(waits.await);
        }
        let collection = collection_of(path).map(|(collection, _)| collection);
        let collection = collection.expect("an object is written");
        let mut state = self.state();
        state.written.push((format!("PUT {path}"), body.clone()));
        if state.conflicts > 0 {
            state.conflicts -= 1;
            return status(409, "the object has been modified");
        }
        let name = body["metadata"]["name"].clone();
        let all = state.objects.entry(collection.clone()).or_default();
        let Some(place) = all
            .iter()
            .position(|object| object["metadata"]["name"] == name)
        else {
            return status(404, "not found");
        };
        if all[place]["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
            return status(409, "the object has been modified");
        }
        state.version += 1;
        let version = state.version.to_string();
        let object = &mut state.objects.get_mut(&collection).expect("it was found")[place];
        object["status"] = body["status"].clone();
        object["metadata"]["resourceVersion"] = version.into();
        let object = object.clone();
        state.tell(&collection, "MODIFIED", &object);
        answered(200, &object)
    }
}

impl State {
    /// The place of the object with the namespace and name of this one.
    fn place(&self, collection: &str, object: &Value) -> Option<usize> {
        let mut all = self.objects.get(collection)?.iter();
        all.position(|other| {
            let same = |key: &&str| other["metadata"][*key] == object["metadata"][*key];
            ["name", "namespace"].iter().all(same)
        })
    }

    /// Stores an object, and sends it to the watches of its collection. Returns it with its version.
    fn set(&mut self, collection: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let place = self.place(collection, &object);
        let all = self.objects.entry(collection.to_owned()).or_default();
        let event = match place {
            Some(place) => {
                all[place] = object.clone();
                "MODIFIED"
            }
            None => {
                all.push(object.clone());
                "ADDED"
            }
        };
        self.tell(collection, event, &object);
        object
    }

    fn tell(&mut self, collection: &str, event: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": event, "object": object}));
        for watch in self.watches.get(collection).into_iter().flatten() {
            drop(watch.send(Ok(line.clone())));
        }
    }
}

/// The collection in all namespaces of a path, and the namespace and the name in it.
type Named<'a> = (Option<&'a str>, Option<&'a str>);

fn collection_of(path: &str) -> Option<(String, Named<'_>)> {
    let (prefix, rest) = parts(path)?;
    let (namespace, rest) = match rest.as_slice() {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        rest => (None, rest),
    };
    let plural = rest.first()?;
    Some((
        format!("{prefix}/{plural}"),
        (namespace, rest.get(1).copied()),
    ))
}

fn list(state: &State, items: Vec<Value>) -> Response<Answer> {
    let version = state.version.to_string();
    let list = json!({
        "kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items,
    });
    answered(200, &list)
}

/// The kinds that have objects: groups of aggregated discovery.
fn discovery(state: &State, path: &str) -> Response<Answer> {
    let mut items = Vec::new();
    for (collection, objects) in &state.objects {
        let (Some(first), Some((prefix, rest))) = (objects.first(), parts(collection)) else {
            continue;
        };
        let Some((group, version)) = prefix
            .strip_prefix("/apis/")
            .and_then(|prefix| prefix.split_once('/'))
        else {
            continue;
        };
        let resource = json!({"resource": rest[0], "responseKind": {"kind": first["kind"]}});
        items.push(json!({
            "metadata": {"name": group},
            "versions": [{"version": version, "resources": [resource]}],
        }));
    }
    if path == "/api" {
        items.clear();
    }
    answered(
        200,
        &json!({"kind": "APIGroupDiscoveryList", "items": items}),
    )
}

fn status(code: u16, message: &str) -> Response<Answer> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "", "code": code,
    });
    answered(code, &status)
}

fn answered(code: u16, body: &Value) -> Response<Answer> {
    let body = Answer::from(body.to_string());
    Response::builder()
        .status(code)
        .body(body)
        .expect("a response")
}

#[test]
fn patches_at_the_same_time_all_hold() {
    const CONFIG_MAPS: &str = "/api/v1/configmaps";
    let world = FakeApiServer::default();
    let config_map = json!({"metadata": {"name": "one", "namespace": "shop"}});
    world.set(CONFIG_MAPS, config_map);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let world = &world;
            scope.spawn(move || {
                for n in 0..200 {
                    let patch = json!({"data": {format!("{thread}-{n}"): "set"}});
                    let path = "/api/v1/namespaces/shop/configmaps/one";
                    world.replace(path, |object| Some(merge_patch(object, &patch)));
                }
            });
        }
    });
    let data = &world.objects(CONFIG_MAPS)[0]["data"];
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(400));
}
