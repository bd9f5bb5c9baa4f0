//! `--events`: everything that happens in a run, one JSON object per line.
//!
//! A line of type `run` has the command that plays the run again; then come changes of stored objects (`created`,
//! `updated`, `deleted`), recorded events (`event`), steps with a name (`step`), verbs and faults (`verb`), and the
//! `end`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use strew_apiserver::object::{Key, Kind, Name, Object, Pod, WorkloadSpread};
use strew_apiserver::server::{Change, Cursor};
use strew_manifest::kruise::v1beta1::SubsetStatus;
use strew_model::Span;
use strew_sim::Simulation;
use strew_wire::workloadspread::marker;
use strew_workloadspread::{COST_ANNOTATION, MARKER_ANNOTATION};

use crate::clock::clock;

/// The events of a story: a page says the first of them.
const STORY_EVENTS_MAX: usize = 500;

/// The lines so far.
#[derive(Default)]
pub struct Log {
    text: String,
    n_lines: usize,
    /// The lines that are not about one object, and the first warnings.
    story: String,
    n_story_events: usize,
    /// True if nothing but the story is written any more.
    is_story: bool,
    /// `None`: it does not follow a simulation.
    seen: Option<Cursor>,
    /// The last written fields of each object.
    known: BTreeMap<Key, Known>,
    n_events: usize,
}

struct Known {
    version: u64,
    fields: Map<String, Value>,
}

/// The fields of an object that is not a pod, each with its path.
const FIELDS: [(&str, &str); 9] = [
    ("replicas", "/spec/replicas"),
    ("unschedulable", "/spec/unschedulable"),
    ("taints", "/spec/taints"),
    ("found", "/status/replicas"),
    ("updated", "/status/updatedReplicas"),
    ("readyReplicas", "/status/readyReplicas"),
    ("available", "/status/availableReplicas"),
    ("active", "/status/active"),
    ("succeeded", "/status/succeeded"),
];

impl Log {
    /// Begins with the command that plays the run again.
    pub fn new(header: &Value) -> Self {
        let mut log = Self::default();
        log.tell(header);
        log
    }

    /// How many lines there are that say more than a version.
    pub fn n_lines(&self) -> usize {
        self.n_lines
    }

    /// From now on only the story is written; what [`Self::finish`] returns as all lines is empty then.
    pub fn only_story(&mut self) {
        self.is_story = true;
        self.text = String::new();
        self.known = BTreeMap::new();
    }

    /// Follows a simulation from its start.
    pub fn follow(&mut self, simulation: &mut Simulation) {
        self.seen = simulation.listen_from_start();
    }

    /// Writes the changes and events since the last call.
    pub fn listen(&mut self, simulation: &Simulation) {
        let at = clock(simulation.elapsed());
        if let Some(mut seen) = self.seen.take() {
            while let Some(change) = simulation.server().next_change(&mut seen) {
                if !self.is_story {
                    self.change(&at, change);
                }
            }
            self.seen = Some(seen);
        }
        let events = simulation.server().events();
        for event in events.from(self.n_events) {
            let is_told = event.is_warning && self.n_story_events < STORY_EVENTS_MAX;
            if self.is_story && !is_told {
                continue;
            }
            let line = json!({
                "at": clock(event.at.since(simulation.start())),
                "type": "event",
                "regarding": event.regarding.to_string(),
                "warning": event.is_warning,
                "reason": &*event.reason,
                "note": &*event.note,
                "source": &*event.source,
            });
            match is_told {
                true => self.tell(&line),
                false => self.line(&line),
            }
            self.n_story_events += usize::from(is_told);
        }
        self.n_events = events.len();
    }

    /// A step with a name begins.
    pub fn step(&mut self, at: Span, name: &str) {
        self.tell(&json!({"at": clock(at), "type": "step", "step": name}));
    }

    /// A verb or a fault.
    pub fn verb(&mut self, at: Span, text: &str, refused: Option<&str>) {
        let mut line = json!({"at": clock(at), "type": "verb", "verb": text});
        if let Some(why) = refused {
            line["refused"] = why.into();
        }
        self.tell(&line);
    }

    /// Returns all lines, with the last one, and those of the story.
    pub fn finish(mut self, ended: Span, is_partial: bool) -> [String; 2] {
        self.tell(&json!({"at": clock(ended), "type": "end", "interrupted": is_partial}));
        [self.text, self.story]
    }

    fn change(&mut self, at: &str, change: &Change) {
        let key = change.key.to_string();
        let Some(object) = &change.new else {
            let version = self.known.remove(&change.key).map(|known| known.version);
            let line = json!({"at": at, "type": "deleted", "key": key, "resourceVersion": version});
            return self.line(&line);
        };
        let version = object.meta().version;
        let fields = fields(object);
        let known = Known {
            version,
            fields: fields.clone(),
        };
        let (kind, changed) = match self.known.insert(change.key.clone(), known) {
            None => ("created", fields),
            Some(before) => ("updated", difference(&before.fields, &fields)),
        };
        let mut line = json!({"at": at, "type": kind, "key": key, "resourceVersion": version});
        if !changed.is_empty() {
            line["changed"] = Value::Object(changed);
        }
        self.line(&line);
    }

    fn line(&mut self, line: &Value) {
        // An update of nothing but the version says nothing.
        self.n_lines += usize::from(line["type"] != "updated" || line.get("changed").is_some());
        if !self.is_story {
            push(&mut self.text, line);
        }
    }

    /// A line of the story.
    fn tell(&mut self, line: &Value) {
        push(&mut self.story, line);
        self.line(line);
    }
}

fn push(text: &mut String, line: &Value) {
    text.push_str(&line.to_string());
    text.push('\n');
}

/// The fields that differ: old and new value.
fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut changed = Map::new();
    for (name, value) in after {
        let was = before.get(name).unwrap_or(&Value::Null);
        if was != value {
            changed.insert(name.clone(), json!([was, value]));
        }
    }
    for (name, was) in before {
        if !after.contains_key(name) {
            changed.insert(name.clone(), json!([was, null]));
        }
    }
    changed
}

/// The fields of an object that are written.
fn fields(object: &Object) -> Map<String, Value> {
    let mut fields = match object {
        Object::Pod(pod) => of_pod(pod),
        Object::WorkloadSpread(spread) => of_spread(spread),
        Object::Plain(_) => Map::new(),
        other => {
            let whole = other.to_json();
            let mut fields = Map::new();
            for (name, place) in FIELDS {
                if let Some(value) = whole.pointer(place) {
                    fields.insert(name.to_owned(), value.clone());
                }
            }
            if let Object::Node(_) = other
                && let Some(conditions) = whole["status"]["conditions"].as_array()
            {
                let ready = conditions.iter().find(|c| c["type"] == "Ready");
                let status = ready.map_or(Value::Null, |ready| ready["status"].clone());
                fields.insert("ready".to_owned(), status);
            }
            fields
        }
    };
    let meta = object.meta();
    if let Object::Node(_) = object {
        let labels = meta
            .labels
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string().into()));
        fields.insert("labels".to_owned(), Value::Object(labels.collect()));
    }
    if let Some(owner) = meta.controller() {
        let key = Key {
            kind: Kind::of_group(&owner.api_version, &owner.kind),
            name: Name::new(Arc::clone(&meta.name.namespace), Arc::clone(&owner.name)),
        };
        fields.insert("owner".to_owned(), key.to_string().into());
    }
    fields.insert("generation".to_owned(), meta.generation.into());
    if object.meta().is_terminating() {
        fields.insert("terminating".to_owned(), true.into());
    }
    fields
}

/// The ledger: each number by subset, over all revisions (`own.replicas`) and of each (`7/own.missing`).
fn of_spread(spread: &WorkloadSpread) -> Map<String, Value> {
    let mut fields = Map::new();
    let status = &spread.status;
    let overall = status.subset_statuses.iter().flatten();
    overall.for_each(|row| add_row(&mut fields, "", row));
    for (revision, rows) in status.versioned_subset_statuses.iter().flatten() {
        let before = format!("{revision}/");
        rows.iter()
            .for_each(|row| add_row(&mut fields, &before, row));
    }
    fields
}

fn add_row(fields: &mut Map<String, Value>, before: &str, row: &SubsetStatus) {
    let mut add = |field: &str, value: Value| {
        fields.insert(format!("{before}{}.{field}", row.name), value);
    };
    add("replicas", row.replicas.into());
    add("missing", row.missing_replicas.into());
    let n = |entries: &Option<BTreeMap<_, _>>| entries.as_ref().map_or(0, BTreeMap::len);
    for (field, n) in [
        ("creating", n(&row.creating_pods)),
        ("deleting", n(&row.deleting_pods)),
    ] {
        if n > 0 {
            add(field, n.into());
        }
    }
    for condition in row.conditions.iter().flatten() {
        add(&condition.type_, condition.status.as_str().into());
    }
}

fn of_pod(pod: &Pod) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("phase".to_owned(), pod.status.phase.name().into());
    fields.insert("ready".to_owned(), pod.is_ready().into());
    if let Some(node) = &pod.node {
        fields.insert("node".to_owned(), (**node).into());
    }
    if let Some(node) = &pod.status.nominated {
        fields.insert("nominatedNode".to_owned(), (**node).into());
    }
    if let Some(marker) = marker::read(pod.meta.annotation(MARKER_ANNOTATION)).marker() {
        fields.insert("subset".to_owned(), (*marker.subset).into());
    }
    if let Some(cost) = pod.meta.annotation(COST_ANNOTATION) {
        fields.insert("deletionCost".to_owned(), cost.into());
    }
    fields
}
