//! Feature gates: the values of `--feature-gates` and of a scenario's `featureGates`.
//!
//! Source: spec/scheduler §1.3; `k8s.io/component-base/featuregate`, v1.36. Gates that 1.36 no longer has still work,
//! with a note, because KEP-1258 and KEP-3022 describe what they switch.

use std::collections::BTreeMap;

use strew_scheduler::SchedulerGates;

use super::AdmissionOptions;
use strew_manifest::read::nearest;

/// The gates that strew can switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureGates {
    /// `DefaultPodTopologySpread`: default constraints instead of the plugin SelectorSpread.
    pub default_pod_topology_spread: bool,
    /// `MinDomainsInPodTopologySpread`: the field `minDomains`.
    pub min_domains: bool,
    /// `NodeInclusionPolicyInPodTopologySpread`: the fields `nodeAffinityPolicy` and `nodeTaintsPolicy`.
    pub node_inclusion_policy: bool,
    /// `MatchLabelKeysInPodTopologySpread`: the field `matchLabelKeys`.
    pub match_label_keys: bool,
    /// `MatchLabelKeysInPodTopologySpreadSelectorMerge`: the API server merges `matchLabelKeys` into the selector.
    /// Without the previous gate it has no effect.
    pub match_label_keys_merge: bool,
    /// Notes for the user about the given gates.
    pub notes: Vec<String>,
}

impl FeatureGates {
    /// Kubernetes 1.36 without `--feature-gates`: all on.
    pub const KUBERNETES_1_36: Self = Self {
        default_pod_topology_spread: true,
        min_domains: true,
        node_inclusion_policy: true,
        match_label_keys: true,
        match_label_keys_merge: true,
        notes: Vec::new(),
    };

    /// Parses the value of `--feature-gates`: `A=true,B=false`. If a gate is given twice, the last value counts.
    ///
    /// # Errors
    /// All errors in the text.
    pub fn parse(text: &str) -> Result<Self, Vec<GateError>> {
        let (given, mut errors) = Self::pairs(text);
        match Self::of(given.into_iter()) {
            Ok(gates) if errors.is_empty() => Ok(gates),
            Ok(_) => Err(errors),
            Err(more) => {
                errors.extend(more);
                Err(errors)
            }
        }
    }

    /// The gates in such a text, known or not, and the errors of parts that are no pairs.
    pub fn pairs(text: &str) -> (BTreeMap<&str, bool>, Vec<GateError>) {
        let mut given = BTreeMap::new();
        let mut errors = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            match pair_of(pair) {
                Ok((name, value)) => {
                    given.insert(name, value);
                }
                Err(error) => errors.push(error),
            }
        }
        (given, errors)
    }

    /// Sets the given gates; the others keep their defaults.
    ///
    /// # Errors
    /// Each unknown gate, and each gate that strew cannot switch.
    pub fn of<'a>(given: impl Iterator<Item = (&'a str, bool)>) -> Result<Self, Vec<GateError>> {
        let mut gates = Self::KUBERNETES_1_36;
        let mut errors = Vec::new();
        for (name, value) in given {
            errors.extend(gates.set(name, value).err());
        }
        if gates.match_label_keys_merge && !gates.match_label_keys {
            gates.notes.push(format!(
                "{MERGE} is without effect while {MATCH_LABEL_KEYS} is off"
            ));
        }
        match errors.is_empty() {
            true => Ok(gates),
            false => Err(errors),
        }
    }

    /// Sets one gate.
    ///
    /// # Errors
    /// The gate is unknown, or strew cannot switch it.
    pub fn set(&mut self, name: &str, value: bool) -> Result<(), GateError> {
        let gate = match name {
            DEFAULT_SPREAD => &mut self.default_pod_topology_spread,
            MIN_DOMAINS => &mut self.min_domains,
            INCLUSION_POLICY => &mut self.node_inclusion_policy,
            MATCH_LABEL_KEYS => &mut self.match_label_keys,
            MERGE => &mut self.match_label_keys_merge,
            other => return self.set_other(other, value),
        };
        *gate = value;
        if let Some((_, release)) = RETIRED.iter().find(|(retired, _)| *retired == name) {
            self.notes.push(format!(
                "{name} is no gate of Kubernetes 1.36: what it switches is always on since {release}; strew still obeys it"
            ));
        }
        Ok(())
    }

    /// Accepts a gate that strew does not switch if its value is the default.
    fn set_other(&mut self, name: &str, value: bool) -> Result<(), GateError> {
        let Some((known, default)) = OTHERS.iter().find(|(known, _)| *known == name) else {
            let all = OBEYED.iter().copied();
            let all = all.chain(OTHERS.iter().map(|(known, _)| *known));
            let hint = match nearest(name, all) {
                Some(meant) => format!(", did you mean {meant:?}?"),
                None => format!(": strew obeys {}", OBEYED.join(", ")),
            };
            let name = name.to_owned();
            return Err(GateError::Unknown { name, hint });
        };
        if value != *default {
            return Err(GateError::NotImplemented {
                name: known,
                value,
                default: *default,
            });
        }
        self.notes.push(format!(
            "{known}={value} is what strew does anyway: it has no such gate"
        ));
        Ok(())
    }

    /// The gates that scheduling decisions depend on.
    pub fn scheduler(&self) -> SchedulerGates {
        SchedulerGates {
            min_domains: self.min_domains,
            node_inclusion_policy: self.node_inclusion_policy,
            match_label_keys: self.match_label_keys,
        }
    }

    /// The options with these gates.
    pub fn admission(&self, options: AdmissionOptions) -> AdmissionOptions {
        AdmissionOptions {
            merge_spread_match_label_keys: self.match_label_keys && self.match_label_keys_merge,
            spread_match_label_keys: self.match_label_keys,
            spread_min_domains: self.min_domains,
            spread_node_inclusion_policy: self.node_inclusion_policy,
            ..options
        }
    }
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self::KUBERNETES_1_36
    }
}

/// An invalid gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The gate is unknown.
    #[error("unrecognized feature gate: {name}{hint}")]
    Unknown {
        /// The name, as given.
        name: String,
        /// The most similar name, or all names.
        hint: String,
    },
    /// The gate has no value.
    #[error("missing bool value for {name}")]
    NoValue {
        /// The name, as given.
        name: String,
    },
    /// The value is not a boolean.
    #[error("invalid value of {name}={value}: expected true or false")]
    BadValue {
        /// The gate.
        name: String,
        /// The value, as given.
        value: String,
    },
    /// strew implements only the default of this gate of 1.36.
    #[error(
        "strew does not implement {name}={value}: the gate can only stay at its default, {default}"
    )]
    NotImplemented {
        /// The gate.
        name: &'static str,
        /// The given value.
        value: bool,
        /// The default.
        default: bool,
    },
}

fn pair_of(pair: &str) -> Result<(&str, bool), GateError> {
    let Some((name, value)) = pair.split_once('=') else {
        let name = pair.to_owned();
        return Err(GateError::NoValue { name });
    };
    let (name, value) = (name.trim(), value.trim());
    // Go's strconv.ParseBool.
    match value {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok((name, true)),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok((name, false)),
        _ => Err(GateError::BadValue {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
    }
}

const DEFAULT_SPREAD: &str = "DefaultPodTopologySpread";
const MIN_DOMAINS: &str = "MinDomainsInPodTopologySpread";
const INCLUSION_POLICY: &str = "NodeInclusionPolicyInPodTopologySpread";
const MATCH_LABEL_KEYS: &str = "MatchLabelKeysInPodTopologySpread";
const MERGE: &str = "MatchLabelKeysInPodTopologySpreadSelectorMerge";

const OBEYED: [&str; 5] = [
    DEFAULT_SPREAD,
    MIN_DOMAINS,
    INCLUSION_POLICY,
    MATCH_LABEL_KEYS,
    MERGE,
];

/// Retired gates, with the release that locked them on.
const RETIRED: [(&str, &str); 3] = [
    (DEFAULT_SPREAD, "1.24"),
    (MIN_DOMAINS, "1.30"),
    (INCLUSION_POLICY, "1.33"),
];

/// Gates of 1.36 that a scheduler reads and strew does not switch, with their defaults. Source: spec/scheduler, its
/// gate marks.
const OTHERS: [(&str, bool); 16] = [
    ("AllAlpha", false),
    ("AllBeta", false),
    ("DRASchedulerFilterTimeout", true),
    ("DynamicResourceAllocation", true),
    ("GangScheduling", false),
    ("GenericWorkload", false),
    ("MatchLabelKeysInPodAffinity", true),
    ("NodeDeclaredFeatures", true),
    ("NominatedNodeNameForExpectation", true),
    ("OpportunisticBatching", true),
    ("PodLevelResources", true),
    ("SchedulerAsyncPreemption", true),
    ("StorageCapacityScoring", false),
    ("TaintTolerationComparisonOperators", false),
    ("TopologyAwareWorkloadScheduling", false),
    ("WorkloadAwarePreemption", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        match FeatureGates::parse(text) {
            Ok(gates) => gates.notes,
            Err(errors) => errors.iter().map(|e| format!("error: {e}")).collect(),
        }
    }

    #[test]
    fn what_is_said() {
        let cases: [(&str, &[&str]); 12] = [
            ("", &[]),
            ("MatchLabelKeysInPodTopologySpread=true", &[]),
            (
                "MatchLabelKeysInPodTopologySpread=false,MatchLabelKeysInPodTopologySpreadSelectorMerge=false",
                &[],
            ),
            (
                "MatchLabelKeysInPodTopologySpread=0",
                &[
                    "MatchLabelKeysInPodTopologySpreadSelectorMerge is without effect while MatchLabelKeysInPodTopologySpread is off",
                ],
            ),
            (
                "DefaultPodTopologySpread=false",
                &[
                    "DefaultPodTopologySpread is no gate of Kubernetes 1.36: what it switches is always on since 1.24; strew still obeys it",
                ],
            ),
            (
                "MinDomainsInPodTopologySpread=true",
                &[
                    "MinDomainsInPodTopologySpread is no gate of Kubernetes 1.36: what it switches is always on since 1.30; strew still obeys it",
                ],
            ),
            (
                "NodeInclusionPolicyInPodTopologySpread=f",
                &[
                    "NodeInclusionPolicyInPodTopologySpread is no gate of Kubernetes 1.36: what it switches is always on since 1.33; strew still obeys it",
                ],
            ),
            (
                "MinDomainInPodTopologySpread=true",
                &[
                    "error: unrecognized feature gate: MinDomainInPodTopologySpread, did you mean \"MinDomainsInPodTopologySpread\"?",
                ],
            ),
            (
                "Nonsense=true",
                &[
                    "error: unrecognized feature gate: Nonsense: strew obeys DefaultPodTopologySpread, MinDomainsInPodTopologySpread, NodeInclusionPolicyInPodTopologySpread, MatchLabelKeysInPodTopologySpread, MatchLabelKeysInPodTopologySpreadSelectorMerge",
                ],
            ),
            (
                "A,MinDomainsInPodTopologySpread=maybe",
                &[
                    "error: missing bool value for A",
                    "error: invalid value of MinDomainsInPodTopologySpread=maybe: expected true or false",
                ],
            ),
            (
                "SchedulerAsyncPreemption=true",
                &["SchedulerAsyncPreemption=true is what strew does anyway: it has no such gate"],
            ),
            (
                "GangScheduling=true",
                &[
                    "error: strew does not implement GangScheduling=true: the gate can only stay at its default, false",
                ],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(said(text), expected, "{text}");
        }
    }

    #[test]
    fn what_they_switch() {
        let off = FeatureGates::parse("MinDomainsInPodTopologySpread=false").expect("a known gate");
        assert!(!off.scheduler().min_domains);
        let options = off.admission(AdmissionOptions::KUBERNETES_1_36);
        assert!(!options.spread_min_domains && options.merge_spread_match_label_keys);
        // The merge alone is without effect.
        let off = FeatureGates::parse("MatchLabelKeysInPodTopologySpread=false").expect("known");
        assert!(!off.scheduler().match_label_keys);
        let options = off.admission(AdmissionOptions::KUBERNETES_1_36);
        assert!(!options.spread_match_label_keys && !options.merge_spread_match_label_keys);
        // The scheduler merges in memory even if the API server does not.
        let text = "MatchLabelKeysInPodTopologySpreadSelectorMerge=false";
        let off = FeatureGates::parse(text).expect("known");
        assert!(off.scheduler().match_label_keys);
        let options = off.admission(AdmissionOptions::KUBERNETES_1_36);
        assert!(options.spread_match_label_keys && !options.merge_spread_match_label_keys);
        let defaults = FeatureGates::default();
        let options = defaults.admission(AdmissionOptions::KUBERNETES_1_36);
        assert_eq!(options, AdmissionOptions::KUBERNETES_1_36);
    }
}
