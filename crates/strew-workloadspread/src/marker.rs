//! The annotation that tells which subset a pod is in.
//!
//! Source: spec/workloadspread §4.6. Its JSON is written and read outside; the order of its keys is that of the fields.

use std::sync::Arc;

/// The value of [`MARKER_ANNOTATION`](crate::MARKER_ANNOTATION): `{"name":…,"subset":…}`, and `,"uid":…` where one was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Key `name`: the WorkloadSpread, of the pod's namespace.
    pub workload_spread: Arc<str>,
    /// Key `subset`.
    pub subset: Arc<str>,
    /// Key `uid`, left out where there is none: what stands for the pod in `creatingPods` if its name was not known.
    pub uid: Option<Arc<str>>,
}

impl Marker {
    /// Keys and values as they stand in the annotation.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let both = [("name", &*self.workload_spread), ("subset", &*self.subset)];
        both.into_iter()
            .chain(self.uid.as_deref().map(|uid| ("uid", uid)))
    }
}

/// What stands in a pod's annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Marked {
    /// There is none.
    #[default]
    No,
    /// It is not the JSON of a marker.
    Unreadable,
    /// A marker; its subset may be empty, and need not exist.
    As(Marker),
}

impl Marked {
    /// The marker, if it can be read.
    pub fn marker(&self) -> Option<&Marker> {
        match self {
            Self::As(marker) => Some(marker),
            Self::No | Self::Unreadable => None,
        }
    }
}
