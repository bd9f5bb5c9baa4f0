//! Recordings of real or simulated clusters, turned into scenarios: SimKube's traces, kwok's records.
//!
//! What people and foreign programs did becomes a stream that `strew simulate` plays: the objects of second 0, then a
//! `Scenario` whose steps stand at the time since the first event. What the simulated cluster does by itself (status, the
//! objects that its controllers make) is left out and counted in a note, as are kinds that strew does not model.
//!
//! Reading order: `simkube` and `kwok` (texts into states of objects, one after another), `input` (what is wrong
//! with them, at its place), `intent` (what of an object somebody has written), `history` (states into changes),
//! `timeline` (changes into steps), `left_out`.
//!
//! ```
//! use strew_api::read::Sources;
//! use strew_scenario::import::{Recording, import};
//!
//! let mut sources = Sources::new();
//! sources.add("trace.json", r#"{"version": 2, "config": {"trackedObjects": {}}, "events": [], "index": {},
//!     "pod_lifecycles": {}}"#);
//! let imported = import(Recording::SimKube, &sources, "calm");
//! assert!(imported.diagnostics.is_empty());
//! assert_eq!(imported.scenario["metadata"]["name"], "calm");
//! ```

mod diagnostics;
mod history;
mod input;
mod intent;
mod key;
mod kwok;
mod left_out;
mod simkube;
mod timeline;
mod times;

use serde_json::{Value, json};
use strew_api::read::{Diagnostic, Severity, Sources};

use history::History;
use input::Input;

use crate::format::{API_VERSION, KIND};

/// Who has written a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// A trace of SimKube, version 2, as JSON.
    SimKube,
    /// What `kwokctl snapshot record` writes: objects, then ResourcePatches.
    Kwok,
}

/// A recording as a scenario.
#[derive(Debug, Default)]
pub struct Imported {
    /// The objects of second 0; none if something is wrong.
    pub objects: Vec<Value>,
    /// The document of kind Scenario; `null` if something is wrong.
    pub scenario: Value,
    /// Whether there is a node at second 0, or later.
    pub has_nodes: bool,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// All that is wrong with the recording, in the order of places.
    pub diagnostics: Vec<Diagnostic>,
}

/// Turns a recording, which is the only one of the files, into a scenario of this name.
///
/// Cost: each recorded object is checked and decoded once.
pub fn import(recording: Recording, sources: &Sources, name: &str) -> Imported {
    let mut input = Input::new(sources);
    let mut history = History::default();
    let (recorder, n_events) = match recording {
        Recording::SimKube => ("SimKube", simkube::read(&mut input, &mut history)),
        Recording::Kwok => ("kwok", kwok::read(&mut input, &mut history)),
    };
    let diagnostics = input.finish();
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        return Imported {
            diagnostics,
            ..Imported::default()
        };
    }
    let told = history.finish();
    let story = format!(
        "recorded by {recorder}: {n_events} events, the last change after {}",
        told.lasted
    );
    let scenario = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "annotations": {"story": story}},
        "spec": {"timeline": told.steps},
    });
    Imported {
        objects: told.objects,
        scenario,
        has_nodes: told.has_nodes,
        notes: told.notes,
        diagnostics,
    }
}

impl Imported {
    /// Gives the scenario its `nodeGroups`.
    pub fn set_node_groups(&mut self, groups: Vec<Value>) {
        let timeline = self.scenario["spec"]["timeline"].take();
        self.scenario["spec"] = json!({"nodeGroups": groups, "timeline": timeline});
    }
}
