//! Settings that Kruise does not have, as annotations of a WorkloadSpread. The fields stay Kruise's, so that Kruise can
//! take over at any time.
//!
//! | annotation | value | effect |
//! |---|---|---|
//! | [`MIN_REPLICAS`] | `{"own": 2, "elastic": 1}` | pods that a subset gets before any subset gets more than its minimum |
//! | [`WINDOW_SECONDS`] | `600` | how long a subset stays closed; default 300 |
//! | [`ANY_KIND`] | `true` | the target may be of any kind with a scale, without the white list |
//! | [`LIMIT_SCOPE`] | `revision`, `workload` | over which pods limits hold; default: over each revision of a Deployment, and over all pods of a CloneSet |
//! | [`MOVE_BACK`] | `60` | the interval in seconds at which a pod of a later subset may move back to an earlier one with room |
//! | [`TARGET_SELECTOR`] | `app=shop` | workloads of the namespace whose pods have these labels are spread together with the target |
//! | [`DELETION_COST`] | `true` | pods of a custom kind get deletion costs, too |
//! | [`WHEN_NO_ROOM`] | `Pending`, `Reject` | what becomes of a pod for which no subset has room; default: it passes as it is |
//!
//! Each answers a request of Kruise's users.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use strew_model::Span;
use strew_workloadspread::{LimitScope, WhenNoRoom};

use super::facts::scale::selector_of;

/// The minimum of each subset, as a JSON object.
pub const MIN_REPLICAS: &str = "strew.dev/min-replicas";

/// For how many seconds a subset takes no pods after some of its pods could not be scheduled.
pub const WINDOW_SECONDS: &str = "strew.dev/unschedulable-window-seconds";

/// `true`: the kind of the target needs no entry in the white list of custom kinds.
pub const ANY_KIND: &str = "strew.dev/any-kind";

/// The pods that limits count: `revision` or `workload`.
pub const LIMIT_SCOPE: &str = "strew.dev/limit-scope";

/// What happens to a pod if no subset has room: `Unconstrained`, `Pending` or `Reject`.
pub const WHEN_NO_ROOM: &str = "strew.dev/when-no-room";

/// The interval in seconds in which a pod of a later subset may move back to an earlier one with room.
pub const MOVE_BACK: &str = "strew.dev/move-back-seconds";

/// `true`: pods of a custom kind get deletion costs, which its controller looks at.
pub const DELETION_COST: &str = "strew.dev/deletion-cost";

/// Which workloads are spread together with the target, by the labels of their pods: a selector as `kubectl -l` takes it.
pub const TARGET_SELECTOR: &str = "strew.dev/target-selector";

/// All of them.
pub const KNOWN: [&str; 8] = [
    TARGET_SELECTOR,
    DELETION_COST,
    MOVE_BACK,
    MIN_REPLICAS,
    WINDOW_SECONDS,
    ANY_KIND,
    LIMIT_SCOPE,
    WHEN_NO_ROOM,
];

/// The longest time that a subset may be closed: a day.
pub const WINDOW_SECONDS_MAX: u32 = 86_400;

/// An invalid annotation, which is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnnotation {
    /// [`MIN_REPLICAS`] is invalid.
    #[error("must be a JSON object with a number for each subset, such as {{\"own\": 2}}")]
    MinReplicas,
    /// [`WINDOW_SECONDS`] is invalid.
    #[error("must be a number of seconds between 1 and {WINDOW_SECONDS_MAX}")]
    ClosedSeconds,
    /// [`MOVE_BACK`] is invalid.
    #[error("must be a number of seconds between 1 and {WINDOW_SECONDS_MAX}")]
    MoveBack,
    /// [`TARGET_SELECTOR`] is invalid.
    #[error("must be a label selector that is not empty, such as `app=shop,tier in (web, api)`")]
    TargetSelector,
    /// [`LIMIT_SCOPE`] is invalid.
    #[error("must be `revision` or `workload`")]
    LimitScope,
    /// [`WHEN_NO_ROOM`] is invalid.
    #[error("must be `Unconstrained`, `Pending` or `Reject`")]
    WhenNoRoom,
}

fn text<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let all = metadata.annotations.as_ref()?;
    all.get(key).map(String::as_str)
}

/// The minimum of each subset that has one.
///
/// # Errors
/// The annotation is no JSON object of numbers.
pub fn min_replicas(metadata: &ObjectMeta) -> Result<BTreeMap<String, u32>, BadAnnotation> {
    let Some(text) = text(metadata, MIN_REPLICAS) else {
        return Ok(BTreeMap::new());
    };
    let read: BTreeMap<String, u32> =
        serde_json::from_str(text).map_err(|_| BadAnnotation::MinReplicas)?;
    // Numbers of pods are signed 32-bit integers.
    let fits = read.values().all(|n| i32::try_from(*n).is_ok());
    fits.then_some(read).ok_or(BadAnnotation::MinReplicas)
}

/// How long a subset stays closed; `None` without the annotation.
///
/// # Errors
/// The annotation is no number of seconds within bounds.
pub fn closed_for(metadata: &ObjectMeta) -> Result<Option<Span>, BadAnnotation> {
    seconds(metadata, WINDOW_SECONDS, BadAnnotation::ClosedSeconds)
}

/// The interval of moves back to an earlier subset; `None` without the annotation.
///
/// # Errors
/// The annotation is no number of seconds within bounds.
pub fn move_back(metadata: &ObjectMeta) -> Result<Option<Span>, BadAnnotation> {
    seconds(metadata, MOVE_BACK, BadAnnotation::MoveBack)
}

fn seconds(
    metadata: &ObjectMeta,
    key: &str,
    bad: BadAnnotation,
) -> Result<Option<Span>, BadAnnotation> {
    let Some(text) = text(metadata, key) else {
        return Ok(None);
    };
    let seconds: Option<u32> = text.parse().ok();
    let seconds = seconds.filter(|s| (1..=WINDOW_SECONDS_MAX).contains(s));
    let seconds = seconds.ok_or(bad)?;
    Ok(Some(Span::from_secs(u64::from(seconds))))
}

/// Which workloads are spread together with the target, if there are to be any.
///
/// # Errors
/// If the annotation is no selector, or one that takes every workload.
pub fn target_selector(metadata: &ObjectMeta) -> Result<Option<LabelSelector>, BadAnnotation> {
    let Some(text) = text(metadata, TARGET_SELECTOR) else {
        return Ok(None);
    };
    let read = selector_of(text).filter(|read| read.match_expressions.is_some());
    read.map(Some).ok_or(BadAnnotation::TargetSelector)
}

/// The pods that limits count.
///
/// # Errors
/// The annotation has an unknown value.
pub fn limit_scope(metadata: &ObjectMeta) -> Result<LimitScope, BadAnnotation> {
    match text(metadata, LIMIT_SCOPE) {
        None => Ok(LimitScope::Kind),
        Some("revision") => Ok(LimitScope::Revision),
        Some("workload") => Ok(LimitScope::Workload),
        Some(_) => Err(BadAnnotation::LimitScope),
    }
}

/// What happens to a pod if no subset has room.
///
/// # Errors
/// The annotation has an unknown value.
pub fn when_no_room(metadata: &ObjectMeta) -> Result<WhenNoRoom, BadAnnotation> {
    match text(metadata, WHEN_NO_ROOM) {
        None | Some("Unconstrained") => Ok(WhenNoRoom::Unconstrained),
        Some("Pending") => Ok(WhenNoRoom::Pending),
        Some("Reject") => Ok(WhenNoRoom::Reject),
        Some(_) => Err(BadAnnotation::WhenNoRoom),
    }
}

/// True if an annotation is `true`.
pub fn is_true(metadata: &ObjectMeta, key: &str) -> bool {
    text(metadata, key) == Some("true")
}
