//! The format of scenarios: ordinary manifests, with at most one document of kind `Scenario` among them.
//!
//! [`load`] reads files into [`Variant`]s; the first is the scenario as written. It reports all mistakes at once, each
//! at its place, also those of the variants. [`schema`] is the JSON schema of the document, [`starter`] a scenario to
//! begin with.
//!
//! Rules that the field names do not show:
//! - A *target* is `TYPE/NAME` by kubectl's names, with the namespace of the scenario's metadata, or
//!   `NAMESPACE/TYPE/NAME`; where nodes are meant also a bare name, or `KEY=VALUE` for all nodes with that label.
//! - Verbs of nodes also take targets that are resolved when the step begins: `KEY=<most pods>` (the nodes of the
//!   domain with most pods), `<most pods>` (the node with most pods), `<lost>` (the nodes that `lose` took and that are
//!   still lost).
//! - `${name}` stands for a number of `params`, in text values of the scenario and of the other documents.
//! - A variant's `set` is merged into the spec, so `null` removes a field and lists are replaced; `replace` gives the
//!   step at a time other expectations.
//!
//! ```
//! use strew_manifest::read::Sources;
//! use strew_scenario::format::{Verb, load};
//!
//! let mut sources = Sources::new();
//! sources.add("web.yaml", "
//! apiVersion: sim.strew.dev/v1alpha1
//! kind: Scenario
//! metadata: {name: calm}
//! spec:
//!   nodeGroups: [{name: n, size: 3, template: {}}]
//!   timeline: [{at: 90s, cordon: n-1}]
//! ");
//! let loaded = load(&sources);
//! assert!(!loaded.has_errors());
//! let step = &loaded.variants[0].scenario.timeline[0];
//! assert!(matches!(&step.verbs[0].verb, Verb::Cordon(nodes) if nodes.len() == 1));
//! ```

#![allow(
    clippy::result_large_err,
    reason = "a refusal is made once for each mistake of a person"
)]

mod claim_parts;
mod claim_vocabulary;
pub(crate) mod diagnostics;
mod edits;
mod event_reasons;
mod existence;
mod expectation;
mod expectation_reader;
mod fault;
mod flow;
mod known;
mod load;
mod manifest;
mod node_group;
mod params;
mod patch;
pub(crate) mod problems;
mod ratio;
mod scenario;
mod scenario_reader;
mod schema;
mod starter;
mod target;
mod timing;
pub(crate) mod value;
mod variant;
mod verb;
mod verb_reader;
pub(crate) mod vocabulary;

pub use edits::{ImageEdit, MetadataEdit, TaintEdit};
pub use event_reasons::ALL as EVENT_REASONS;
pub use existence::ObjectKey;
pub use expectation::{
    Claim, Clusters, CountRange, Counts, EventsClaim, Expectation, Phase, PlacementClaim,
    PodSubject, PodsClaim, RemovedClaim, Revision, SpreadClaim, Subject,
};
pub use fault::{Component, Crash, Fault};
pub use load::{Loaded, load, load_read};
pub use manifest::Manifest;
pub use node_group::NodeGroup;
pub use patch::{Operation, Patch, PatchError, Pointer, merge};
pub use ratio::Ratio;
pub use scenario::{Rest, Scenario, Step};
pub use scenario_reader::SEEDS_MAX;
pub use schema::schema;
pub use starter::starter;
pub use target::{Deleted, NodeTarget, ObjectTarget, PodTarget, Target};
pub use timing::{Autoscaler, Expander, SpanRange, Timing};
pub use variant::{BASE, ExpectedResult, ObjectPatch, Variant};
pub use verb::{LocatedVerb, Replicas, RolloutAction, Verb};

/// The group of strew's simulation.
pub const GROUP: &str = "sim.strew.dev";

/// The version of the format.
pub const API_VERSION: &str = "sim.strew.dev/v1alpha1";

/// The kind of the document.
pub const KIND: &str = "Scenario";
