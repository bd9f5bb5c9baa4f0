//! The API server's settings that admission and validation read.

/// The API server's flags and feature gates that admission looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionOptions {
    /// `--default-not-ready-toleration-seconds`
    pub not_ready_toleration_seconds: i64,
    /// `--default-unreachable-toleration-seconds`
    pub unreachable_toleration_seconds: i64,
    /// Gate `MatchLabelKeysInPodTopologySpreadSelectorMerge` (and the gate it needs): the API
    /// server merges `matchLabelKeys` into the selector of a spread constraint.
    pub merge_spread_match_label_keys: bool,
    /// Gate `MatchLabelKeysInPodTopologySpread`; off, the field `matchLabelKeys` of spread constraints is dropped.
    pub spread_match_label_keys: bool,
    /// Gate `MinDomainsInPodTopologySpread`; off, the field `minDomains` is dropped.
    pub spread_min_domains: bool,
    /// Gate `NodeInclusionPolicyInPodTopologySpread`; off, the fields `nodeAffinityPolicy` and `nodeTaintsPolicy` of
    /// spread constraints are dropped.
    pub spread_node_inclusion_policy: bool,
}

impl AdmissionOptions {
    /// The settings of a kube-apiserver 1.36 without flags.
    pub const KUBERNETES_1_36: Self = Self {
        not_ready_toleration_seconds: 300,
        unreachable_toleration_seconds: 300,
        merge_spread_match_label_keys: true,
        spread_match_label_keys: true,
        spread_min_domains: true,
        spread_node_inclusion_policy: true,
    };

    /// True if the API server merges `matchLabelKeys` of spread constraints, which needs both gates.
    pub fn merges_spread_match_label_keys(&self) -> bool {
        self.merge_spread_match_label_keys && self.spread_match_label_keys
    }
}
