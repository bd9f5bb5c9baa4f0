//! Kinds that may be there or not: those of CustomResourceDefinitions. Which there are is looked at again and again, so
//! that a definition that is installed later is found, and one that is missing is no reason to end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::Resource;
use kube::Client;
use serde_json::Value;
use strew_api::workloadspread::facts::white_list::WhiteList;
use strew_api::workloadspread::v1beta1::WorkloadSpread;
use strew_api::workloadspread::workloads::{AdvancedStatefulSet, CloneSet};
use strew_api::workloadspread::{GROUP, v1alpha1};
use tokio::sync::{mpsc, watch};

use super::lookup::{get, is_segment, spreads};
use crate::watch::{Kind, Reading};

/// Definitions are looked for again after so long.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A kind as a list of rights has it: group, version and kind.
pub(super) type Named = [String; 3];

/// A kind that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) has_scale: bool,
}

/// Which kinds are looked for, and which are watched.
pub(super) struct Customs {
    /// Tells whoever looks.
    wanted: watch::Sender<BTreeSet<String>>,
    /// `None` until somebody has looked.
    found: Option<Vec<Found>>,
    pub(super) list: WhiteList,
    /// Kinds of targets that WorkloadSpreads make known themselves, by namespace and name.
    asked: BTreeMap<[String; 2], Named>,
    /// Those that are watched, and how they are read.
    watched: BTreeMap<Kind, Reading>,
    /// Whether kinds beside Kruise's are watched, too.
    is_open: bool,
}

/// What is to be watched from now on, and what not any more.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Change {
    pub(super) start: Vec<(Kind, Reading)>,
    pub(super) stop: Vec<Kind>,
}

/// Looks which kinds there are; what there is comes by the second.
pub(super) fn look(client: Client) -> (Customs, mpsc::Receiver<Vec<Found>>) {
    let (wanted, wants) = watch::channel(kruises());
    let (to, found) = mpsc::channel(1);
    tokio::spawn(look_again(client, wants, to));
    let customs = Customs {
        wanted,
        found: None,
        list: WhiteList::default(),
        asked: BTreeMap::new(),
        watched: BTreeMap::new(),
        is_open: false,
    };
    (customs, found)
}

/// The versions of Kruise's group that have kinds that are looked at.
fn kruises() -> BTreeSet<String> {
    let all = [
        WorkloadSpread::API_VERSION,
        v1alpha1::WorkloadSpread::API_VERSION,
    ];
    all.map(str::to_owned).into()
}

impl Customs {
    /// Whether somebody has looked.
    pub(super) fn is_known(&self) -> bool {
        self.found.is_some()
    }

    /// These kinds are there.
    pub(super) fn found(&mut self, found: Vec<Found>) -> Change {
        let has = |all: &[Found]| all.iter().any(|found| found.kind == spreads());
        let before = self.found.as_deref().map(has);
        if !has(&found) && before != Some(false) {
            let is_old = found.iter().any(|f| *f.kind.kind == *WorkloadSpread::KIND);
            match is_old {
                true => tracing::warn!(
                    "the CustomResourceDefinition workloadspreads.{GROUP} serves no v1beta1: a later one is waited for"
                ),
                false => tracing::warn!(
                    "the CustomResourceDefinition workloadspreads.{GROUP} is not installed: it is waited for"
                ),
            }
        }
        self.found = Some(found);
        self.change()
    }

    /// The list of custom kinds is like this now.
    pub(super) fn listed(&mut self, list: WhiteList) -> Change {
        self.list = list;
        self.want()
    }

    /// A WorkloadSpread makes this kind known; `None`: none, or it is gone.
    pub(super) fn asked(&mut self, spread: [String; 2], kind: Option<Named>) -> Change {
        let before = match kind.clone() {
            Some(kind) => self.asked.insert(spread, kind),
            None => self.asked.remove(&spread),
        };
        match before == kind {
            true => Change::default(),
            false => self.want(),
        }
    }

    /// From now on kinds beside Kruise's are watched, too: one that cannot be read must not keep others waiting.
    pub(super) fn open(&mut self) -> Change {
        self.is_open = true;
        self.change()
    }

    /// The version in which a custom kind is watched, and how.
    pub(super) fn watched(&self, group: &str, kind: &str) -> Option<(&Kind, Reading)> {
        let mut all = self.watched.iter();
        let found = all.find(|(watched, _)| &*watched.group == group && &*watched.kind == kind);
        found.map(|(kind, reading)| (kind, *reading))
    }

    fn want(&mut self) -> Change {
        let customs = self.customs().into_iter();
        let versions = customs.map(|[group, version, _]| match group.as_str() {
            "" => version,
            _ => format!("{group}/{version}"),
        });
        let wanted: BTreeSet<String> = kruises().into_iter().chain(versions).collect();
        if *self.wanted.borrow() != wanted {
            self.wanted.send_replace(wanted);
        }
        self.change()
    }

    /// Kinds beside Kruise's that are to be known.
    fn customs(&self) -> BTreeSet<Named> {
        let mut all: BTreeSet<Named> = self.asked.values().cloned().collect();
        for listed in &self.list.workloads {
            all.insert([
                listed.group.clone(),
                listed.version.clone(),
                listed.kind.clone(),
            ]);
            all.extend(listed.sub_resources.iter().cloned());
        }
        all
    }

    fn change(&mut self) -> Change {
        let customs = self.customs();
        let mut wanted = BTreeMap::new();
        let own = [
            spreads(),
            Kind::of::<CloneSet>(),
            Kind::of::<AdvancedStatefulSet>(),
        ];
        for Found { kind, has_scale } in self.found.iter().flatten() {
            let [group, version, of] = [&kind.group, &kind.version, &kind.kind];
            let named = [group.to_string(), version.to_string(), of.to_string()];
            if own.contains(kind) {
                wanted.insert(kind.clone(), Reading::Known);
            } else if self.is_open
                && customs.contains(&named)
                && super::lookup::known(group, of).is_none()
            {
                let has_scale = *has_scale;
                wanted.insert(kind.clone(), Reading::Custom { has_scale });
            }
        }
        let mut change = Change::default();
        for kind in self.watched.keys() {
            if !wanted.contains_key(kind) {
                change.stop.push(kind.clone());
            }
        }
        for (kind, reading) in &wanted {
            if !self.watched.contains_key(kind) {
                change.start.push((kind.clone(), *reading));
            }
        }
        self.watched = wanted;
        change
    }
}

async fn look_again(
    client: Client,
    mut wants: watch::Receiver<BTreeSet<String>>,
    to: mpsc::Sender<Vec<Found>>,
) {
    let mut failure = None;
    loop {
        let wanted = wants.borrow_and_update().clone();
        match all_of(&client, &wanted).await {
            Ok(found) => {
                failure = None;
                if to.send(found).await.is_err() {
                    return;
                }
            }
            Err(text) if failure.as_ref() != Some(&text) => {
                tracing::warn!("which custom resources there are is not known: {text}");
                failure = Some(text);
            }
            Err(_) => {}
        }
        let changed = tokio::time::timeout(LOOK_EVERY, wants.changed()).await;
        if matches!(changed, Ok(Err(_))) {
            return;
        }
    }
}

async fn all_of(client: &Client, versions: &BTreeSet<String>) -> Result<Vec<Found>, String> {
    let mut all = Vec::new();
    for version in versions {
        let (group, of_group) = version.split_once('/').unwrap_or(("", version));
        // Somebody's list may hold anything.
        if !(group.is_empty() || is_segment(group)) || !is_segment(of_group) {
            continue;
        }
        let path = match group {
            "" => format!("/api/{of_group}"),
            _ => format!("/apis/{version}"),
        };
        if let Some(list) = get(client, &path).await? {
            all.extend(kinds_of(group, of_group, &list));
        }
    }
    Ok(all)
}

/// The kinds of an `APIResourceList`.
fn kinds_of(group: &str, version: &str, list: &Value) -> Vec<Found> {
    let all = list["resources"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |resource: &Value| resource["name"].as_str().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = all.iter().map(name).collect();
    let of = |resource: &Value| {
        let plural = name(resource);
        let is_own = !plural.contains('/') && is_segment(&plural) && resource["namespaced"] == true;
        let kind = Kind::new(group, version, resource["kind"].as_str()?, &plural);
        let has_scale = names.contains(&format!("{plural}/scale"));
        is_own.then_some(Found { kind, has_scale })
    };
    all.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list() -> Value {
        json!({"resources": [
            {"name": "games", "kind": "Game", "namespaced": true},
            {"name": "games/scale", "kind": "Scale", "namespaced": true},
            {"name": "games/status", "kind": "Game", "namespaced": true},
            {"name": "halls", "kind": "Hall", "namespaced": true},
            {"name": "worlds", "kind": "World", "namespaced": false},
            {"name": "../odd", "kind": "Odd", "namespaced": true},
            "what",
        ]})
    }

    fn customs() -> Customs {
        Customs {
            wanted: watch::channel(kruises()).0,
            found: None,
            list: WhiteList::default(),
            asked: BTreeMap::new(),
            watched: BTreeMap::new(),
            is_open: false,
        }
    }

    fn names(all: &[(Kind, Reading)]) -> Vec<String> {
        all.iter().map(|(kind, _)| kind.to_string()).collect()
    }

    #[test]
    fn a_list_tells_which_kinds_have_a_scale() {
        let found = kinds_of("example.org", "v1", &list());
        let told: Vec<(String, bool)> = found
            .iter()
            .map(|found| (found.kind.to_string(), found.has_scale))
            .collect();
        let expected = [("games.example.org", true), ("halls.example.org", false)];
        assert_eq!(told, expected.map(|(name, has)| (name.to_owned(), has)));
        assert!(kinds_of("", "v1", &json!(7)).is_empty());
    }

    #[test]
    fn kinds_are_watched_while_they_are_there_and_somebody_wants_them() {
        let mut customs = customs();
        assert!(!customs.is_known());
        let spread = Found {
            kind: spreads(),
            has_scale: false,
        };
        let mut all = kinds_of("example.org", "v1", &list());
        assert_eq!(customs.found(all.clone()), Change::default());
        assert!(customs.is_known());
        all.push(spread);
        let change = customs.found(all.clone());
        assert_eq!(names(&change.start), ["workloadspreads.apps.kruise.io"]);
        // Custom kinds wait until the others are known.
        let text = r#"{"workloads": [{"Group": "example.org", "Version": "v1", "Kind": "Hall",
            "subResources": [{"Group": "example.org", "Version": "v1", "Kind": "Game"}]}]}"#;
        let list = WhiteList::read(text).unwrap();
        assert_eq!(customs.listed(list), Change::default());
        assert!(customs.wanted.borrow().contains("example.org/v1"));
        let change = customs.open();
        assert_eq!(
            names(&change.start),
            ["games.example.org", "halls.example.org"]
        );
        assert_eq!(change.start[0].1, Reading::Custom { has_scale: true });
        // Wanted twice, it stays when one does not want it any more.
        let hall = ["example.org", "v1", "Hall"].map(str::to_owned);
        let ws = ["shop", "ws"].map(str::to_owned);
        assert_eq!(customs.asked(ws.clone(), Some(hall)), Change::default());
        let change = customs.listed(WhiteList::default());
        assert_eq!((change.start.len(), change.stop.len()), (0, 1));
        assert_eq!(change.stop[0].to_string(), "games.example.org");
        assert_eq!(
            customs.asked(ws, None).stop[0].to_string(),
            "halls.example.org"
        );
        // A definition that was deleted.
        all.pop();
        assert_eq!(customs.found(all).stop, [spreads()]);
    }
}
