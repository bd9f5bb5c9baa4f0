//! Turns recordings of real or simulated clusters into scenarios: SimKube's traces and kwok's records.
//!
//! The changes that users and other programs made become a stream for `strew simulate`: the objects of second 0, then a
//! `Scenario` whose steps are at the time since the first event. What the simulated cluster does by itself (status, the
//! objects of its controllers) is left out and counted in a note, and so are kinds that strew does not model.
//!
//! Reading order: `simkube` and `kwok` (texts into states of objects), `input` (diagnostics with their places),
//! `intent` (the part of an object that a user wrote), `history` (states into changes), `timeline` (changes into
//! steps), `left_out`.
//!
//! ```
//! use strew_manifest::read::Sources;
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
use strew_manifest::read::{Diagnostic, Severity, Sources};

use history::History;
use input::Input;

use crate::format::{API_VERSION, KIND};

/// The program that wrote a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// A trace of SimKube, version 2, as JSON.
    SimKube,
    /// A record of `kwokctl snapshot record`: objects, then ResourcePatches.
    Kwok,
}

/// A recording as a scenario.
#[derive(Debug, Default)]
pub struct Imported {
    /// The objects of second 0; empty if the recording has errors.
    pub objects: Vec<Value>,
    /// The document of kind Scenario; `null` if the recording has errors.
    pub scenario: Value,
    /// True if at least one node exists at second 0 or later.
    pub has_nodes: bool,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
    /// Everything wrong with the recording, by place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Turns a recording into a scenario of this name. The files must contain nothing but the recording.
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
