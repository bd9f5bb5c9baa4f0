//! The white list of custom kinds: a JSON text in a ConfigMap.
//!
//! Source: spec/workloadspread §6.3.

use serde_json::{Map, Value};
use strew_model::Interner;
use strew_workloadspread::GroupKind;

/// The ConfigMap of the list, in the namespace of the manager.
pub const CONFIG_MAP: &str = "kruise-configuration";

/// The key of the list in the ConfigMap.
pub const KEY: &str = "WorkloadSpread_Watch_Custom_Workload_WhiteList";

/// Kinds that may be targets beside the built-in ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhiteList {
    /// In the order of the text.
    pub workloads: Vec<Listed>,
}

/// A kind that may be a target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// Its group; empty for the core.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Kinds that it controls and that control pods: group, version and kind.
    pub sub_resources: Vec<[String; 3]>,
    /// The path of its number of replicas; empty: its scale has the number.
    pub replicas_path: String,
}

/// The text is no JSON white list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the white list of custom workloads must be a JSON object with a list \"workloads\"")]
pub struct BadWhiteList;

impl WhiteList {
    /// The list of a ConfigMap; empty if it has none, or if there is no ConfigMap (`null`).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_config_map(config_map: &Value) -> Result<Self, BadWhiteList> {
        let text = config_map["data"][KEY].as_str();
        Ok(text.map(Self::read).transpose()?.unwrap_or_default())
    }

    /// Parses the text. Keys match in any letter case.
    ///
    /// # Errors
    /// The text is no JSON object, or fields have another type.
    pub fn read(text: &str) -> Result<Self, BadWhiteList> {
        let value: Value = serde_json::from_str(text).map_err(|_| BadWhiteList)?;
        let top = value.as_object().ok_or(BadWhiteList)?;
        let list = match field(top, "workloads") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(list)) => list,
            Some(_) => return Err(BadWhiteList),
        };
        let workloads: Result<_, _> = list.iter().map(listed).collect();
        let workloads = workloads?;
        Ok(Self { workloads })
    }

    /// True if a kind may be a target. Its version does not matter, and kinds that it controls do not count.
    pub fn allows(&self, group: &str, kind: &str) -> bool {
        let mut all = self.workloads.iter();
        all.any(|listed| listed.group == group && listed.kind == kind)
    }

    /// The listed version of a kind that may be a target, or that such a kind controls.
    pub fn version(&self, group: &str, kind: &str) -> Option<&str> {
        let own = self.workloads.iter();
        let own = own.map(|l| [&l.group, &l.version, &l.kind]);
        let below = self.workloads.iter().flat_map(|l| &l.sub_resources);
        let mut all = own.chain(below.map(|gvk| gvk.each_ref()));
        let found = all.find(|[g, _, k]| *g == group && *k == kind);
        found.map(|[_, version, _]| version.as_str())
    }

    /// All kinds whose objects are read, for [`Input::KindsListed`](strew_workloadspread::admission::Input).
    pub fn kinds(&self, names: &mut Interner) -> Box<[GroupKind]> {
        let own = |listed: &Listed| [listed.group.clone(), listed.kind.clone()];
        let below = |listed: &Listed| {
            let all = listed.sub_resources.iter();
            let all = all.map(|[group, _, kind]| [group.clone(), kind.clone()]);
            all.collect::<Vec<_>>()
        };
        let all = self.workloads.iter();
        all.flat_map(|listed| std::iter::once(own(listed)).chain(below(listed)))
            .map(|[group, kind]| GroupKind {
                group: names.intern(&group),
                kind: names.intern(&kind),
            })
            .collect()
    }

    /// The path of the number of replicas of exactly this kind; `None`: its scale has the number.
    pub fn replicas_path(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        let mut all = self.workloads.iter();
        let found = all.find(|l| l.group == group && l.version == version && l.kind == kind)?;
        Some(found.replicas_path.as_str()).filter(|path| !path.is_empty())
    }
}

fn field<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut all = map.iter().rev();
    let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}

fn text(map: &Map<String, Value>, name: &str) -> Result<String, BadWhiteList> {
    match field(map, name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(BadWhiteList),
    }
}

fn listed(value: &Value) -> Result<Listed, BadWhiteList> {
    let map = value.as_object().ok_or(BadWhiteList)?;
    let below = match field(map, "subResources") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(list)) => list,
        Some(_) => return Err(BadWhiteList),
    };
    let gvk = |value: &Value| {
        let map = value.as_object().ok_or(BadWhiteList)?;
        Ok([
            text(map, "Group")?,
            text(map, "Version")?,
            text(map, "Kind")?,
        ])
    };
    Ok(Listed {
        group: text(map, "Group")?,
        version: text(map, "Version")?,
        kind: text(map, "Kind")?,
        sub_resources: below.iter().map(gvk).collect::<Result<_, _>>()?,
        replicas_path: text(map, "replicasPath")?,
    })
}
