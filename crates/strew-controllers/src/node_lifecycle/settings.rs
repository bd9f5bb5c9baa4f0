//! The numbers of kube-controller-manager's flags about nodes.

use strew_model::time::Span;

/// The flags of the node lifecycle controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `--node-monitor-period`
    pub monitor_period: Span,
    /// `--node-monitor-grace-period`
    pub grace: Span,
    /// `--node-startup-grace-period`
    pub startup_grace: Span,
    /// The time between two nodes of a zone, 1 / `--node-eviction-rate`; `None`: the rate is 0.
    pub eviction_interval: Option<Span>,
    /// As `eviction_interval`, in a large zone in partial disruption: 1 / `--secondary-node-eviction-rate`.
    pub secondary_eviction_interval: Option<Span>,
    /// `--unhealthy-zone-threshold`, in percent.
    pub unhealthy_zone_percent: u32,
    /// `--large-cluster-size-threshold`: zones with more nodes are large.
    pub large_zone_nodes: usize,
}

impl Settings {
    /// The defaults of v1.36. Source: spec/controllers §12.
    pub const KUBERNETES_1_36: Self = Self {
        monitor_period: Span::from_secs(5),
        grace: Span::from_secs(50),
        startup_grace: Span::from_secs(60),
        eviction_interval: Some(Span::from_secs(10)),
        secondary_eviction_interval: Some(Span::from_secs(100)),
        unhealthy_zone_percent: 55,
        large_zone_nodes: 50,
    };
}
