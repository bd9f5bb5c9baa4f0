//! One watch, as a stream of events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::BoxStream;
use http::Request;
use kube::api::ListParams;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::Value;
use strew_manifest::kruise::read_back;
use strew_manifest::read::KubeObject;
use strew_runtime::Warning;
use strew_runtime::watch::{Custom, Failure, Kind, Object, Reading, Scope, WatchEvent, WatchId};
use strew_wire::facts::{Named, identity};
use tokio::sync::mpsc;

use super::patience::{is_forbidden, patiently};
use crate::untyped::Untyped;
use crate::waits::Waits;

/// Objects per page of a list; a page is held in memory as a whole.
const PAGE: u32 = 250;

/// The number of scales read concurrently.
const SCALES_AT_ONCE: usize = 8;

/// How often a failing read of a scale is tried; once if the previous scale failed too.
const SCALE_TRIES: usize = 3;

/// The events of a watch, with waits after failures.
pub(super) type Events = BoxStream<'static, WatchEvent>;

/// Sends events until the receiver is dropped.
pub(super) async fn run(mut events: Events, id: WatchId, to: mpsc::Sender<(WatchId, WatchEvent)>) {
    while let Some(event) = events.next().await {
        if to.send((id, event)).await.is_err() {
            return;
        }
    }
}

/// A watch of a kind.
pub(super) fn events(client: Client, kind: &Kind, reading: Reading, scope: &Scope) -> Events {
    let resource = api_resource(kind);
    let api = match &scope.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::<Untyped>::all_with(client.clone(), &resource),
    };
    let has_scale = reading == Reading::Custom { has_scale: true };
    let at_once = if has_scale { SCALES_AT_ONCE } else { 1 };
    let mut config = watcher::Config::default().page_size(PAGE);
    if let Some(fields) = &scope.fields {
        config = config.fields(fields);
    }
    let events = patiently(watcher::watcher(api, config));
    let of_kind = kind.clone();
    let events = events.map(move |event| told(event, |object| read(&of_kind, reading, object)));
    let scales = has_scale.then(|| Arc::new(Scales::new(client, kind)));
    let events = events.map(move |event| scaled(scales.clone(), event));
    // Keeps the order of the events, whichever scale arrives first.
    events.buffered(at_once).boxed()
}

fn told(
    event: Result<Event<Untyped>, watcher::Error>,
    read: impl FnOnce(Untyped) -> WatchEvent,
) -> WatchEvent {
    match event {
        Ok(Event::Init) => WatchEvent::ListBegins,
        Ok(Event::InitApply(object) | Event::Apply(object)) => read(object),
        Ok(Event::Delete(object)) => WatchEvent::Gone(identity(&object.metadata)),
        Ok(Event::InitDone) => WatchEvent::ListEnds,
        Err(error) => failed(&error),
    }
}

/// Lists all objects of a namespace.
pub(super) async fn list(client: Client, kind: &Kind, namespace: &str) -> Vec<(Named, Object)> {
    let api = Api::<Untyped>::namespaced_with(client, namespace, &api_resource(kind));
    let mut all = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    let mut waits = Waits::default();
    loop {
        match api.list(&page).await {
            Ok(list) => {
                let read = |object| match read(kind, Reading::Known, object) {
                    WatchEvent::Set(named, object) => Some((named, *object)),
                    _ => None,
                };
                all.extend(list.items.into_iter().filter_map(read));
                match list.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => page = page.continue_token(&token),
                    None => return all,
                }
            }
            Err(error) => {
                let text = crate::causes::in_a_line(&error);
                // Starts from the beginning: the token may have expired.
                all.clear();
                page = ListParams::default().limit(PAGE);
                let refused = matches!(&error, kube::Error::Api(status) if is_forbidden(status));
                let wait = waits.next(refused);
                let list = Warning {
                    kind: &kind.kind,
                    namespace,
                    name: "",
                    node: None,
                    action: "list",
                    error: &text,
                    next: &format!("in {wait:?}"),
                };
                list.log();
                tokio::time::sleep(wait).await;
            }
        }
    }
}

fn api_resource(kind: &Kind) -> ApiResource {
    ApiResource {
        group: kind.group.to_string(),
        version: kind.version.to_string(),
        api_version: kind.api_version(),
        kind: kind.kind.to_string(),
        plural: kind.plural.to_string(),
    }
}

// === objects ===

fn read(kind: &Kind, reading: Reading, object: Untyped) -> WatchEvent {
    let named = identity(&object.metadata);
    let mut value = object.value;
    // Items in a list of a built-in kind have no `kind`.
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = (&*kind.kind).into();
    match reading {
        Reading::Custom { .. } => {
            let custom = Custom {
                object: value,
                scale: None,
            };
            WatchEvent::Set(named, Box::new(Object::Custom(custom)))
        }
        Reading::Known => match decoded(value) {
            Ok(object) => WatchEvent::Set(named, Box::new(Object::Known(object))),
            Err(text) => WatchEvent::Broken(named, text),
        },
    }
}

/// A WorkloadSpread is decoded leniently, another object strictly.
pub(crate) fn decoded(value: Value) -> Result<KubeObject, String> {
    use k8s_openapi::Resource;
    use strew_manifest::kruise::v1beta1::WorkloadSpread;
    if value["kind"] != WorkloadSpread::KIND {
        return KubeObject::of_json(value).map_err(|error| error.to_string());
    }
    let (object, faults) = read_back(value).ok_or("it is of a version that is not known")?;
    for fault in faults {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        tracing::debug!("WorkloadSpread {name}: {} is passed over", fault.path);
    }
    Ok(object.into())
}

/// Adds the scale to an object; `scales`: where to read it, if the kind has one.
async fn scaled(scales: Option<Arc<Scales>>, event: WatchEvent) -> WatchEvent {
    match (scales, event) {
        (Some(scales), WatchEvent::Set(named, mut object)) => {
            if let Object::Custom(custom) = &mut *object {
                custom.scale = scales.get(&named).await;
            }
            WatchEvent::Set(named, object)
        }
        (_, event) => event,
    }
}

/// The scales of a kind.
struct Scales {
    client: Client,
    kind: Kind,
    /// Rights apply to kinds: a read that fails for one object may fail for all, and each change of each object reads.
    waits: Mutex<Waits>,
}

impl Scales {
    fn new(client: Client, kind: &Kind) -> Self {
        Self {
            client,
            kind: kind.clone(),
            waits: Mutex::default(),
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` if the object is gone, or its scale cannot be read.
    async fn get(&self, named: &Named) -> Option<Value> {
        let (is_too_early, has_failed) = {
            let waits = self.waits();
            (waits.until().is_some(), waits.n_failures() > 0)
        };
        if is_too_early {
            return None;
        }
        let mut waits = Waits::default();
        let path = format!("{}/scale", self.kind.path(&named.namespace, &named.name));
        for left in (0..if has_failed { 1 } else { SCALE_TRIES }).rev() {
            let request = Request::get(&path).body(Vec::new()).ok()?;
            let (error, is_last) = match self.client.request::<Value>(request).await {
                Ok(scale) => {
                    *self.waits() = Waits::default();
                    return Some(scale);
                }
                Err(kube::Error::Api(status)) if status.code == 404 => return None,
                Err(kube::Error::Api(status)) if is_forbidden(&status) => {
                    (status.message.clone(), true)
                }
                Err(error) => (crate::causes::in_a_line(&error), left == 0),
            };
            let wait = match is_last {
                true => self.waits().next(true),
                false => waits.next(false),
            };
            let next = match is_last {
                true => format!("when an object of the kind changes, not before {wait:?}"),
                false => format!("in {wait:?}"),
            };
            let read = Warning {
                kind: &self.kind.kind,
                namespace: &named.namespace,
                name: &named.name,
                node: None,
                action: "read scale",
                error: &error,
                next: &next,
            };
            read.log();
            if is_last {
                return None;
            }
            tokio::time::sleep(wait).await;
        }
        None
    }
}

// === failures ===

/// The event for an error, in the API server's words if it has answered.
fn failed(error: &watcher::Error) -> WatchEvent {
    let status = status(error);
    let code = status.map(|status| status.code);
    match status {
        // 410 leads to a new list and is no failure.
        Some(_) if code == Some(410) => WatchEvent::Forgotten,
        Some(status) if !status.message.is_empty() => WatchEvent::Failed(Failure {
            text: status.message.clone(),
            code,
        }),
        _ => WatchEvent::Failed(Failure {
            text: crate::causes::in_a_line(error),
            code,
        }),
    }
}

/// The API server's answer, if the error has one.
pub(super) fn status(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}
