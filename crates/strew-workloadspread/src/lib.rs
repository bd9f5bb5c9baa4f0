//! Admission and controller of WorkloadSpread: assign pods to subsets, decided from facts.
//!
//! A WorkloadSpread names a workload and an ordered list of subsets. [`Admission`] puts each new pod into the first
//! subset with room and keeps the count in the WorkloadSpread's status, the ledger. [`SpreadController`] compares the
//! ledger with the pods, adopts pods without a marker, writes deletion costs, and closes subsets whose pods cannot be
//! scheduled.
//!
//! Reading order: [`facts`], [`marker`], [`quota`], [`revision`], [`rollout`], [`workloads`], [`targets`], [`spreads`],
//! [`choose`] (the subset of a pod), [`inject`], [`room`] (whether a node takes the pod), `waiting` (its queues), `work`
//! (its bound), [`admission`], [`controller`], [`explain`], [`invariants`].
//!
//! Source of all rules: spec/workloadspread, from OpenKruise at 07169cfa and the text that introduced WorkloadSpread.
//! This crate has no clock, no sockets and no JSON. An implementation of [`PodPatcher`] outside applies patches.
//!
//! Eight pods in the first subset, the rest in the second, from the rows of the ledger:
//!
//! ```
//! use strew_workloadspread::{
//!     FormId, LimitScope, MaxReplicas, Spec, Status, Strategy, Subset, WhenNoRoom, choose,
//! };
//! let subset = |name: &str, max_replicas| Subset {
//!     name: name.into(),
//!     max_replicas,
//!     min_replicas: 0,
//!     required: None,
//!     preferred: Box::default(),
//!     tolerations: Box::default(),
//!     patch: None,
//!     labels: None,
//!     form: FormId::default(),
//! };
//! let spec = Spec {
//!     any_kind: false,
//!     target: None,
//!     also: None,
//!     filter: None,
//!     subsets: [subset("own", Some(MaxReplicas::Percent(80))), subset("elastic", None)].into(),
//!     strategy: Strategy::Fixed,
//!     limit_scope: LimitScope::Kind,
//!     when_no_room: WhenNoRoom::Unconstrained,
//!     move_back: None,
//!     deletion_costs: false,
//! };
//! let mut rows = choose::first_rows(&spec, 10);
//! assert_eq!((rows[0].missing, rows[1].missing), (8, -1));
//! let place = |rows: &[_]| choose::choose(&spec, &Status::default(), rows, Some("web-7"), None).place;
//! assert_eq!(place(&rows), Some(0));
//! rows[0].missing = 0;
//! assert_eq!(place(&rows), Some(1));
//! ```

pub mod admission;
pub mod choose;
pub mod controller;
pub mod explain;
pub mod facts;
pub mod inject;
pub mod invariants;
pub mod marker;
pub mod quota;
pub mod revision;
pub mod rollout;
pub mod room;
pub mod spreads;
pub mod targets;
mod turns;
mod waiting;
mod work;
pub mod workloads;

pub use admission::Admission;
pub use choose::{Choice, Finding, Fit, Ground, SubsetFinding};
pub use controller::SpreadController;
pub use facts::kinds::{GroupKind, Kind, Kinds};
pub use facts::pod::{Phase, Pod};
pub use facts::spec::{
    Adaptive, FilterSelector, FormId, LabelPatch, LimitScope, MaxReplicas, PatchId, Spec, Strategy,
    Subset, TargetFilter, TargetRef, WhenNoRoom, WorkloadSpread, WsKey,
};
pub use facts::status::{Entries, Row, Schedulable, Status, UNLIMITED};
pub use facts::workload::{Controller, Rolling, TemplateId, WorkloadFact, WorkloadKey};
pub use inject::{NoPatches, PodPatcher};
pub use marker::{Marked, Marker};
pub use rollout::Misfit;
pub use room::Room;
pub use targets::Targets;
pub use work::WORK_MAX;

use strew_model::Span;

/// The annotation of a pod that names its subset; its value is a [`Marker`].
pub const MARKER_ANNOTATION: &str = "apps.kruise.io/matched-workloadspread";

/// The annotation of a pod by which workload controllers choose the pods to delete.
pub const COST_ANNOTATION: &str = strew_cluster::scale_down::DELETION_COST;

/// The annotation of a WorkloadSpread that keeps metadata of patches off adopted pods, if it is `true`.
pub const IGNORE_PATCH_ANNOTATION: &str =
    "workloadspread.kruise.io/ignore-patch-existing-pods-metadata";

/// The scheduling gate of a pod that waits for room in a subset ([`WhenNoRoom::Pending`]).
pub const GATE: &str = "strew.dev/no-room";

/// How long a subset stays closed after pods of it were unschedulable. Source: spec/workloadspread §5.7.
pub const CLOSED_FOR: Span = Span::from_secs(300);
