//! One pick of the selector: the clusters selected so far, the excluded ones, and the scores of the others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strew_model::Interner;
use strew_placement::Exclusion;
use strew_placement::explain::{ClusterScore, PickReport, sum};
use strew_spread::SkewCheck;

use super::{Topology, by_name, texts};

/// One pick. Source: spec/placement §3.4, §3.7.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PickResult {
    /// The selected count table before the pick, by values.
    pub counts: Vec<SelectedCount>,
    /// Clusters that a term excludes from this pick, and the key of the term.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excluded: BTreeMap<String, String>,
    /// The sum of its `maxSkew`, by cluster, where that is the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Excluded>,
    /// Its `minGroups` or `maxGroups` in words, by cluster, where that is the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// The scores of the others, 0 to 63, from the first term down.
    pub scores: BTreeMap<String, Vec<i64>>,
    /// These scores combined, six bits each.
    pub combined: BTreeMap<String, i64>,
    /// The combined score on the scale of -100 to 100.
    pub normalized: BTreeMap<String, i64>,
    /// The weighted score plus the prioritizers' sum. The highest is picked; of equal ones, the first by name.
    #[serde(rename = "final")]
    pub total: BTreeMap<String, i64>,
    /// The picked cluster.
    pub picked: String,
}

/// A row of the selected count table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectedCount {
    /// The topology's values, from the first term down.
    pub topology: Vec<String>,
    /// Selected clusters in it and below.
    pub selected: i32,
    /// Its weight among its siblings, if its term has weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// With weights, the number that is compared instead of the count: (2 × selected + 1) / weight, rounded to
    /// hundredths. Absent if the weight is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
}

impl SelectedCount {
    fn of(topology: Vec<String>, selected: i32, all: &[Topology]) -> Self {
        let known = all.binary_search_by(|other| other.topology.cmp(&topology));
        let weight = known.ok().and_then(|i| all[i].weight);
        let load = |weight: u32| {
            let hundredths = (200 * i64::from(selected) + 100) / i64::from(weight);
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        };
        Self {
            load: weight.filter(|&weight| weight > 0).map(load),
            weight,
            topology,
            selected,
        }
    }
}

/// Why a limit excludes a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Excluded {
    /// Selected clusters in its topology.
    pub there: i32,
    /// The number that one more cluster would be compared with.
    pub minimum: i32,
    /// The resulting skew.
    pub skew: i64,
    /// The allowed skew.
    pub max_skew: i32,
    /// The comparison in words.
    pub sum: String,
}

impl PickResult {
    /// `topologies`: all of them, by their values.
    pub(super) fn of(pick: &PickReport, topologies: &[Topology], names: &Interner) -> Self {
        let counts = pick.counts.iter();
        let mut counts: Vec<SelectedCount> = counts
            .map(|(tuple, n)| SelectedCount::of(texts(tuple, names), *n, topologies))
            .collect();
        counts.sort_by(|a, b| a.topology.cmp(&b.topology));
        let excluded = pick.excluded.iter();
        let key = |&(cluster, key, _): &_| (cluster, names.text(key).to_owned());
        let limits = pick.excluded.iter();
        let limit = |&(cluster, _, by): &(_, _, Exclusion)| match by {
            Exclusion::MaxSkew(check) => Some((cluster, check.into())),
            _ => None,
        };
        let bounds = pick.excluded.iter();
        let bound = |&(cluster, _, by): &(_, _, Exclusion)| match by {
            Exclusion::MaxSkew(_) => None,
            by => Some((cluster, words(by))),
        };
        let number = |of: fn(&ClusterScore) -> i64| {
            by_name(pick.scores.iter().map(|s| (s.cluster, of(s))), names)
        };
        Self {
            counts,
            excluded: by_name(excluded.map(key), names),
            limits: by_name(limits.filter_map(limit), names),
            groups: by_name(bounds.filter_map(bound), names),
            scores: by_name(
                pick.scores.iter().map(|s| (s.cluster, s.levels.clone())),
                names,
            ),
            combined: number(|s| s.spread),
            normalized: number(|s| s.normalized),
            total: number(|s| s.total),
            picked: names.text(pick.picked).to_owned(),
        }
    }
}

/// Which rule of a term excludes a cluster, in words that follow the term's key.
pub fn words(exclusion: Exclusion) -> String {
    match exclusion {
        Exclusion::MaxSkew(check) => sum(check).to_string(),
        Exclusion::MaxGroups(max) => format!("maxGroups {max}: others are used"),
        Exclusion::TooSmall(max) => {
            format!("maxGroups {max}: with its own among them they hold too few clusters")
        }
        Exclusion::MinGroups(min) => {
            format!("minGroups {min}: the picks that are left are kept for others")
        }
    }
}

impl From<SkewCheck> for Excluded {
    fn from(check: SkewCheck) -> Self {
        Self {
            there: check.there,
            minimum: check.minimum.value(),
            skew: check.skew(),
            max_skew: check.max_skew,
            sum: sum(check).to_string(),
        }
    }
}
