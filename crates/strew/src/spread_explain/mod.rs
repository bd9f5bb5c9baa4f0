//! Explains WorkloadSpreads: the subset and deletion cost of a pod, and the ledger of a WorkloadSpread compared with
//! the pods. The real controller's machine answers; nothing is decided here.

mod ledger;
mod lines;
mod pod;

use std::collections::BTreeMap;

use anyhow::anyhow;
use serde_json::Value;
use strew_apiserver::object::Object;
use strew_manifest::read::{KubeObject, Located, nearest};
use strew_model::{Instant, Interner, Span};
use strew_wire::workloadspread::facts::Translator;
use strew_wire::workloadspread::pending_reviews::{Patcher, PodSource};
pub(crate) use strew_wire::workloadspread::status::time_text;
use strew_workloadspread::controller::{Limits, SpreadController};
use strew_workloadspread::{UNLIMITED, WorkloadSpread, WsKey};

use crate::failure::Failure;
use crate::scenario::Seen;
pub(crate) use ledger::ledger;
pub(crate) use lines::{Line, lines};
pub(crate) use pod::{PodSpread, of_pod};

/// The WorkloadSpreads of files, and a controller with all facts.
pub(crate) struct Spreads {
    machine: SpreadController,
    translator: Translator,
    pods: Stored,
    /// The newest time in the files: the reader's clock has no meaning for them.
    now: Instant,
    source: Source,
}

/// The origin of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From files.
    Files,
    /// From a live cluster.
    Cluster,
    /// From a simulation, this long after its start.
    Simulation(Span),
}

/// The pods of the files, by uid.
#[derive(Default)]
struct Stored(BTreeMap<String, Value>);

impl PodSource for Stored {
    fn by_uid(&self, uid: &str) -> Option<Value> {
        self.0.get(uid).cloned()
    }
}

impl Spreads {
    /// Of the objects of files; `None` if there is no WorkloadSpread.
    pub(crate) fn of(objects: &[Located], source: Source) -> Option<Self> {
        let objects = objects.iter().map(|located| &located.object);
        Self::of_objects(&objects.collect::<Vec<_>>(), source)
    }

    /// Of a moment of a run; `None` if there is no WorkloadSpread.
    pub(crate) fn of_moment(seen: Seen<'_>) -> Option<Self> {
        let objects = seen.moment.tables.all();
        let objects: Vec<KubeObject> = objects.iter().map(Object::to_kube).collect();
        let now = seen.now;
        let source = Source::Simulation(now.since(seen.start));
        let mut spreads = Self::of_objects(&objects.iter().collect::<Vec<_>>(), source)?;
        spreads.now = now;
        Some(spreads)
    }

    fn of_objects(objects: &[&KubeObject], source: Source) -> Option<Self> {
        let objects = || objects.iter().copied();
        let is_spread = |object: &KubeObject| matches!(object, KubeObject::WorkloadSpread(_));
        if !objects().any(is_spread) {
            return None;
        }
        let mut translator = Translator::default();
        let mut machine = SpreadController::new(Interner::new(), Limits::production());
        let mut pods = Stored::default();
        let mut now = Instant(0);
        // WorkloadSpreads first: their filters name the numbers that are read from workloads.
        let (spreads, others): (Vec<_>, Vec<_>) = objects().partition(|object| is_spread(object));
        for object in spreads.into_iter().chain(others) {
            now = now.max(newest(object));
            if let KubeObject::Pod(pod) = object {
                let uid = strew_wire::workloadspread::facts::pod::uid(&pod.metadata);
                pods.0.insert(uid.to_string(), object.to_json());
            }
            for input in translator.controller(object, machine.names_mut()) {
                machine.handle(Instant(0), input);
            }
        }
        Some(Self {
            machine,
            translator,
            pods,
            now,
            source,
        })
    }

    fn patcher(&self) -> Patcher<'_> {
        Patcher {
            contents: &self.translator.contents,
            reviews: None,
            pods: &self.pods,
        }
    }

    fn namespace(&self, key: &WsKey) -> &str {
        self.machine.names().text(key.namespace)
    }

    /// The WorkloadSpread of a name, in a namespace or in the only one that has the name.
    pub(crate) fn find(&self, name: &str, namespace: Option<&str>) -> Result<WsKey, Failure> {
        let all: Vec<&WorkloadSpread> = self.machine.spreads().iter().map(|ws| &**ws).collect();
        let of_name = all.iter().filter(|ws| &*ws.key.name == name);
        let of_name: Vec<&WsKey> = of_name.map(|ws| &ws.key).collect();
        let wanted = namespace.unwrap_or("default");
        let here = of_name.iter().find(|key| self.namespace(key) == wanted);
        match (here, namespace, of_name.as_slice()) {
            (Some(key), ..) | (None, None, [key]) => return Ok((*key).clone()),
            _ => {}
        }
        let place = match self.source {
            Source::Files => "in the files",
            Source::Cluster => "in the cluster",
            Source::Simulation(_) => "then",
        };
        let error = anyhow!("there is no workloadspread {name:?} {place}");
        let failure = Failure::input(error);
        let places: Vec<&str> = of_name.iter().map(|key| self.namespace(key)).collect();
        if !places.is_empty() {
            return Err(failure.with_hint(format!("choose with -n: {}", places.join(", "))));
        }
        Err(match nearest(name, all.iter().map(|ws| &*ws.key.name)) {
            Some(close) => failure.with_hint(format!("did you mean {close}?")),
            None => failure,
        })
    }
}

/// The newest time in an object: of its creation, its conditions, its ledger.
fn newest(object: &KubeObject) -> Instant {
    let mut newest = object
        .metadata()
        .and_then(|m| m.creation_timestamp.as_ref())
        .map_or(0, |time| time.0.as_second());
    let mut see = |time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        newest = newest.max(time.map_or(0, |time| time.0.as_second()));
    };
    match object {
        KubeObject::Pod(pod) => {
            let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
            for condition in conditions.into_iter().flatten() {
                see(condition.last_transition_time.as_ref());
            }
        }
        KubeObject::WorkloadSpread(ws) => {
            let status = ws.status.as_ref();
            let overall = status.and_then(|s| s.subset_statuses.as_ref());
            let versioned = status.and_then(|s| s.versioned_subset_statuses.as_ref());
            let versioned = versioned.into_iter().flat_map(|v| v.values().flatten());
            for row in overall.into_iter().flatten().chain(versioned) {
                let entries = [row.creating_pods.as_ref(), row.deleting_pods.as_ref()];
                for time in entries.into_iter().flatten().flat_map(|all| all.values()) {
                    see(Some(time));
                }
                for condition in row.conditions.iter().flatten() {
                    see(Some(&condition.last_transition_time));
                }
            }
        }
        _ => {}
    }
    Instant::from_secs(u64::try_from(newest).unwrap_or(0))
}

/// `8`, or `any number`.
fn limit_text(max: i32) -> String {
    match max {
        UNLIMITED => "any number".to_owned(),
        max => max.to_string(),
    }
}
