//! All plugins with their extension points, and which of them are enabled by default.
//!
//! Source: spec/scheduler §2.10, v1.36.3.

use strew_scheduler::PluginId;

use super::wire::{PluginSetWire, PluginsWire};

/// An extension point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Point {
    /// Before a pod enters the active queue.
    PreEnqueue,
    /// The order of the queue.
    QueueSort,
    /// Once per pod, before the nodes.
    PreFilter,
    /// Whether a node can take the pod.
    Filter,
    /// When no node can take the pod.
    PostFilter,
    /// Once per pod, before the scores.
    PreScore,
    /// The score of a node.
    Score,
    /// After a node was chosen.
    Reserve,
    /// A wait before binding.
    Permit,
    /// Before binding.
    PreBind,
    /// Binding.
    Bind,
    /// After binding.
    PostBind,
    /// Generates placements of a pod group.
    PlacementGenerate,
    /// The score of a placement.
    PlacementScore,
}

impl Point {
    /// All points, in the order in which kube-scheduler expands `multiPoint`: the first error of a plugin is reported
    /// at the first point.
    pub(super) const ALL: [Self; 14] = [
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::Reserve,
        Self::PreScore,
        Self::Score,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
        Self::Permit,
        Self::PreEnqueue,
        Self::QueueSort,
        Self::PlacementGenerate,
        Self::PlacementScore,
    ];

    /// Its key in the file.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::PreEnqueue => "preEnqueue",
            Self::QueueSort => "queueSort",
            Self::PreFilter => "preFilter",
            Self::Filter => "filter",
            Self::PostFilter => "postFilter",
            Self::PreScore => "preScore",
            Self::Score => "score",
            Self::Reserve => "reserve",
            Self::Permit => "permit",
            Self::PreBind => "preBind",
            Self::Bind => "bind",
            Self::PostBind => "postBind",
            Self::PlacementGenerate => "placementGenerate",
            Self::PlacementScore => "placementScore",
        }
    }

    /// The name of its Go interface, which messages use.
    pub(super) fn interface(self) -> String {
        let key = self.key();
        let first = key[..1].to_uppercase();
        format!("{first}{}Plugin", &key[1..])
    }

    pub(super) fn of(self, plugins: &PluginsWire) -> Option<&PluginSetWire> {
        let set = match self {
            Self::PreEnqueue => &plugins.pre_enqueue,
            Self::QueueSort => &plugins.queue_sort,
            Self::PreFilter => &plugins.pre_filter,
            Self::Filter => &plugins.filter,
            Self::PostFilter => &plugins.post_filter,
            Self::PreScore => &plugins.pre_score,
            Self::Score => &plugins.score,
            Self::Reserve => &plugins.reserve,
            Self::Permit => &plugins.permit,
            Self::PreBind => &plugins.pre_bind,
            Self::Bind => &plugins.bind,
            Self::PostBind => &plugins.post_bind,
            Self::PlacementGenerate => &plugins.placement_generate,
            Self::PlacementScore => &plugins.placement_score,
        };
        set.as_ref()
    }
}

/// A known plugin.
#[derive(Debug)]
pub(super) struct Plugin {
    pub(super) name: &'static str,
    /// Its default weight, 0 if it does not score.
    pub(super) weight: i32,
    /// Its extension points.
    pub(super) points: &'static [Point],
    /// Its id in decisions; `None` if decisions do not use it.
    pub(super) id: Option<PluginId>,
    pub(super) kind: PluginKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PluginKind {
    /// In the default `multiPoint`.
    Default,
    /// Used only if it is enabled, or if a gate is off.
    Legacy,
    /// In kube-scheduler behind a gate that is off; strew does not have it.
    Missing,
}

impl Plugin {
    pub(super) fn extends(&self, point: Point) -> bool {
        self.points.contains(&point)
    }
}

macro_rules! plugins {
    (@ $name:ident) => { None };
    (@ $name:ident decides) => { Some(PluginId::$name) };
    ($($kind:ident $weight:literal $name:ident $($decides:ident)?: $($point:ident)*;)*) => {
        /// All plugins, those of the default profile first and in its order.
        pub(super) static PLUGINS: &[Plugin] = &[$(Plugin {
            name: stringify!($name),
            weight: $weight,
            points: &[$(Point::$point),*],
            id: plugins!(@ $name $($decides)?),
            kind: PluginKind::$kind,
        }),*];
    };
}

// Kind, weight, name, `decides` if decisions use it, extension points.
plugins! {
    Default 0 SchedulingGates decides: PreEnqueue;
    Default 0 PrioritySort: QueueSort;
    Default 0 NodeUnschedulable decides: Filter;
    Default 0 NodeName decides: Filter;
    Default 3 TaintToleration decides: Filter PreScore Score;
    Default 2 NodeAffinity decides: PreFilter Filter PreScore Score;
    Default 0 NodePorts decides: PreFilter Filter;
    Default 1 NodeResourcesFit decides: PreFilter Filter PreScore Score;
    Default 0 VolumeRestrictions decides: PreFilter Filter;
    Default 0 NodeVolumeLimits decides: PreFilter Filter;
    Default 0 VolumeBinding decides: PreFilter Filter Reserve PreBind PreScore Score;
    Default 0 VolumeZone decides: PreFilter Filter;
    Default 2 PodTopologySpread decides: PreFilter Filter PreScore Score;
    Default 2 InterPodAffinity decides: PreFilter Filter PreScore Score;
    Default 2 DynamicResources decides: PreEnqueue PreFilter Filter PostFilter Reserve PreBind Score;
    Default 0 DefaultPreemption: PreEnqueue PostFilter;
    Default 1 NodeResourcesBalancedAllocation decides: PreScore Score;
    Default 1 ImageLocality decides: Score;
    Default 0 DefaultBinder: Bind;
    Default 0 NodeDeclaredFeatures decides: PreFilter Filter;
    Legacy 1 SelectorSpread decides: PreScore Score;
    Missing 0 GangScheduling: PreEnqueue Reserve Permit;
    Missing 0 TopologyPlacementGenerator: PlacementGenerate;
    Missing 1 PodGroupPodsCount: PlacementScore;
}

/// The plugin of this name.
pub(super) fn find(name: &str) -> Option<&'static Plugin> {
    PLUGINS.iter().find(|plugin| plugin.name == name)
}

/// The names that a user may write.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let known = PLUGINS
        .iter()
        .filter(|plugin| plugin.kind != PluginKind::Missing);
    known.map(|plugin| plugin.name)
}
