//! Finds which of the selected controllers can run: those whose kinds the API server serves.
//!
//! A CustomResourceDefinition can be installed at any time. If one is removed, its controller keeps running: it treats
//! the objects as deleted, and its watch continues when the definition returns. (An API server that has just started
//! may not serve all definitions yet.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use strew_runtime::Warning;
use tokio::sync::mpsc;

use super::name::{Choice, Name};
use super::permissions;
use crate::discovery::{AGAIN, Discovery, DiscoveryError, Served};
use crate::permission::{AskError, missing, missing_of};
use crate::waits::Waits;

/// How often the API server is asked.
const EVERY: Duration = Duration::from_secs(5);

/// A finding.
#[derive(Debug)]
pub(super) enum Found {
    /// This controller can run from now on.
    Ready(Name),
    /// The kinds that the API server serves now.
    Served(Arc<Served>),
}

/// Looks for the kinds of controllers.
pub struct Scout {
    client: Client,
    discovery: Discovery,
    choice: Choice,
    /// The namespace of the ConfigMap that names custom kinds.
    namespace: String,
    started: BTreeSet<Name>,
    /// The last report on each controller; each text is reported once.
    said: BTreeMap<Name, String>,
    /// When controllers with missing rights are checked again.
    denied: BTreeMap<Name, Waits>,
}

/// The state of a controller's kinds.
#[derive(Debug, PartialEq, Eq)]
enum KindsState {
    Ready,
    /// No kind is served.
    Absent,
    /// Some kinds are not served, or not in a known version; the text says which.
    Unfit(String),
}

impl Scout {
    /// Asks for the first time. `namespace`: that of the ConfigMap that names custom kinds.
    ///
    /// # Errors
    /// The API server does not answer which kinds it serves.
    pub async fn begin(
        client: Client,
        choice: Choice,
        namespace: String,
    ) -> Result<Self, DiscoveryError> {
        let mut discovery = Discovery::new(client.clone());
        discovery.ask().await?;
        Ok(Self {
            client,
            discovery,
            choice,
            namespace,
            started: BTreeSet::new(),
            said: BTreeMap::new(),
            denied: BTreeMap::new(),
        })
    }

    /// The controllers that can run now.
    pub fn ready(&self) -> Vec<Name> {
        let served = self.discovery.served();
        let wanted = self.choice.wanted();
        wanted
            .filter(|name| standing(&served, *name) == KindsState::Ready)
            .collect()
    }

    /// The rights that the controllers in `names` lack.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn denied(&self, names: &[Name]) -> Result<Vec<String>, AskError> {
        let mut denied: Vec<String> = Vec::new();
        for name in names {
            let needed = permissions::of_configuration(*name);
            let mut each = missing(&self.client, &permissions::of(*name), None).await?;
            each.extend(missing(&self.client, needed, Some(&self.namespace)).await?);
            let needed = permissions::of_replicas(*name);
            each.extend(missing_of(&self.client, needed, Some(&self.namespace)).await?);
            let needed = permissions::of_registration(*name);
            each.extend(missing_of(&self.client, needed, None).await?);
            // Both controllers record events; the right is listed once.
            each.retain(|text| !denied.contains(text));
            denied.extend(each);
        }
        Ok(denied)
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn served(&self) -> Arc<Served> {
        Arc::new(self.discovery.served())
    }

    /// Marks these controllers as running.
    pub(super) fn start(&mut self, names: &[Name]) {
        for name in names {
            tracing::info!("controller {name}: runs");
        }
        self.started.extend(names);
        self.tell(&self.discovery.served());
    }

    /// Asks again and again until the receiver is dropped.
    pub(super) async fn run(mut self, to: mpsc::Sender<Found>) {
        let (mut failure, mut waits) = (None, Waits::default());
        let mut wait = EVERY;
        loop {
            tokio::time::sleep(wait).await;
            wait = EVERY;
            match self.discovery.ask().await {
                Ok(is_new) => {
                    failure = None;
                    if is_new {
                        let served = self.served();
                        self.tell(&served);
                        if to.send(Found::Served(served)).await.is_err() {
                            return;
                        }
                    }
                }
                Err(error) if failure.as_ref() == Some(&error) => wait = waits.next(false),
                Err(error) => {
                    wait = waits.next(false);
                    let list = Warning {
                        kind: "APIGroupDiscoveryList",
                        namespace: "",
                        name: "",
                        node: None,
                        action: "list kinds",
                        error: &error,
                        next: AGAIN,
                    };
                    list.log();
                    failure = Some(error);
                }
            }
            for name in self.ready() {
                if self.started.contains(&name) || !self.may_start(name).await {
                    continue;
                }
                if to.send(Found::Ready(name)).await.is_err() {
                    return;
                }
                self.started.insert(name);
                self.said.remove(&name);
                tracing::info!("controller {name}: its kinds are there now; runs");
            }
            if to.is_closed() {
                return;
            }
        }
    }

    /// True if a controller has its rights. While it lacks some, it is checked at growing intervals.
    async fn may_start(&mut self, name: Name) -> bool {
        let waits = self.denied.entry(name).or_default();
        if waits.until().is_some() {
            return false;
        }
        waits.next(true);
        let text = match self.denied(&[name]).await {
            Ok(denied) if denied.is_empty() => return true,
            Ok(denied) => format!("the API server does not allow: {}", denied.join(", ")),
            Err(error) => error.to_string(),
        };
        self.say(name, true, format!("cannot run: {text}"));
        false
    }

    /// Logs for each controller why it does not run, or which kinds it lacks.
    fn tell(&mut self, served: &Served) {
        let wanted: Vec<Name> = self.choice.wanted().collect();
        for name in wanted {
            let runs = self.started.contains(&name);
            let text = match (standing(served, name), runs) {
                (KindsState::Ready, _) => {
                    if self.said.remove(&name).is_some() && runs {
                        tracing::info!("controller {name}: its CustomResourceDefinitions are back");
                    }
                    continue;
                }
                (KindsState::Absent, false) => {
                    let first = name.kinds().first().map(ToString::to_string);
                    let first = first.unwrap_or_default();
                    format!("waits for its CustomResourceDefinitions ({first})")
                }
                (KindsState::Absent, true) => {
                    "its CustomResourceDefinitions are gone; nothing to do until they are back"
                        .to_owned()
                }
                (KindsState::Unfit(text), false) => format!("cannot run: {text}"),
                (KindsState::Unfit(text), true) => text,
            };
            let is_missed = runs || text.starts_with("cannot") || self.choice.names(name);
            self.say(name, is_missed, text);
        }
    }

    fn say(&mut self, name: Name, is_missed: bool, text: String) {
        if self.said.get(&name) == Some(&text) {
            return;
        }
        match is_missed {
            true => {
                let run = Warning {
                    kind: "controller",
                    namespace: "",
                    name: name.text(),
                    node: None,
                    action: "run",
                    error: &text,
                    next: "when its kinds or rights change",
                };
                run.log();
            }
            false => tracing::info!("controller {name}: {text}"),
        }
        self.said.insert(name, text);
    }
}

fn standing(served: &Served, name: Name) -> KindsState {
    let kinds = name.kinds();
    let unfit: Vec<String> = kinds
        .iter()
        .filter(|kind| !served.has(kind))
        .map(|kind| {
            let there = served.versions(&kind.group, &kind.kind).iter();
            let there: Vec<&str> = there.map(|served| &*served.kind.version).collect();
            match there.is_empty() {
                true => format!("{kind} is not there"),
                false => format!(
                    "{kind} is served as {}, and strew knows {}",
                    there.join(", "),
                    kind.version
                ),
            }
        })
        .collect();
    let absent = |kind: &crate::watch::Kind| served.versions(&kind.group, &kind.kind).is_empty();
    match () {
        () if unfit.is_empty() => KindsState::Ready,
        () if kinds.iter().all(absent) => KindsState::Absent,
        () => KindsState::Unfit(unfit.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    const TEN_MINUTES: Duration = Duration::from_secs(600);

    /// How often each request is sent in ten minutes, while the API server serves WorkloadSpreads. `of_kinds`: the
    /// status of the second and later requests for kinds; `of_rights`: the status of requests about rights.
    async fn sent(of_kinds: u16, of_rights: u16) -> BTreeMap<String, usize> {
        let sent = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
        let counts = Arc::clone(&sent);
        let service = tower::service_fn(move |request: Request<Body>| {
            let counts = Arc::clone(&counts);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let asked = format!("{} {}", head.uri.path(), String::from_utf8_lossy(&body));
                let n = {
                    let mut counts = counts.lock().expect("nobody panics");
                    let n = counts.entry(asked).or_default();
                    *n += 1;
                    *n
                };
                let is_review = head.uri.path().contains("authorization");
                let code = match (is_review, n) {
                    (true, _) => of_rights,
                    (false, 1) => 200,
                    (false, _) => of_kinds,
                };
                let body = match is_review {
                    true => {
                        let mut review: Value = serde_json::from_slice(&body).unwrap_or_default();
                        review["status"] = json!({"allowed": false});
                        review
                    }
                    false => discovered(),
                };
                let answer = Response::builder().status(code);
                Ok::<_, tower::BoxError>(answer.body(Body::from(body.to_string().into_bytes()))?)
            }
        });
        let client = Client::new(service, "default");
        let choice = "*".parse().expect("all");
        let scout = Scout::begin(client, choice, "strew-system".to_owned()).await;
        let (to, mut found) = mpsc::channel(1);
        let run = scout.expect("kinds are told").run(to);
        drop(tokio::time::timeout(TEN_MINUTES, run).await);
        while let Ok(found) = found.try_recv() {
            assert!(matches!(found, Found::Served(_)), "its rights are missing");
        }
        let sent = sent.lock().expect("nobody panics");
        sent.clone()
    }

    fn discovered() -> Value {
        let kind = crate::watch::Kind::of::<strew_manifest::kruise::v1beta1::WorkloadSpread>();
        let resource = json!({"resource": &*kind.plural, "responseKind": {"kind": &*kind.kind}});
        json!({"kind": "APIGroupDiscoveryList", "items": [{
            "metadata": {"name": &*kind.group},
            "versions": [{"version": &*kind.version, "resources": [resource]}],
        }]})
    }

    #[tokio::test(start_paused = true)]
    async fn rights_that_are_missing_are_asked_for_less_and_less() {
        for of_rights in [201, 403, 500] {
            let sent = sent(200, of_rights).await;
            let of_rights = sent.iter().filter(|(asked, _)| asked.contains("Review"));
            let most = of_rights.map(|(_, n)| *n).max();
            assert!(most.is_some_and(|n| (2..=20).contains(&n)), "{sent:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_are_asked_for_less_and_less_while_nothing_is_told() {
        let sent = sent(500, 201).await;
        let of_kinds = sent.iter().filter(|(asked, _)| asked.starts_with("/api "));
        let most = of_kinds.map(|(_, n)| *n).max();
        // The first request succeeds.
        assert!(most.is_some_and(|n| (2..=21).contains(&n)), "{sent:?}");
    }
}
