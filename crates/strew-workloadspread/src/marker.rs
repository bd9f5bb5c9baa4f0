//! The annotation that names a pod's subset.
//!
//! Source: spec/workloadspread §4.6. Its JSON is written and read outside this crate; its keys have the order of the
//! fields.

use std::sync::Arc;

/// The value of [`MARKER_ANNOTATION`](crate::MARKER_ANNOTATION): `{"name":…,"subset":…}`, with `,"uid":…` if one was
/// issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Key `name`: the WorkloadSpread, in the pod's namespace.
    pub workload_spread: Arc<str>,
    /// Key `subset`.
    pub subset: Arc<str>,
    /// Key `uid`, omitted if there is none: identifies the pod in `creatingPods` if its name was unknown.
    pub uid: Option<Arc<str>>,
}

impl Marker {
    /// Keys and values in the order of the annotation.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let both = [("name", &*self.workload_spread), ("subset", &*self.subset)];
        both.into_iter()
            .chain(self.uid.as_deref().map(|uid| ("uid", uid)))
    }
}

/// The content of a pod's annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Marked {
    /// There is no annotation.
    #[default]
    No,
    /// The value is not the JSON of a marker.
    Unreadable,
    /// A marker; its subset may be empty, or may not exist.
    As(Marker),
}

impl Marked {
    /// The marker; `None` unless it can be read.
    pub fn marker(&self) -> Option<&Marker> {
        match self {
            Self::As(marker) => Some(marker),
            Self::No | Self::Unreadable => None,
        }
    }
}
