//! Kinds that may be there or not: those of CustomResourceDefinitions. A definition that is installed later is watched
//! from then on, and one that is missing is no reason to end.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use strew_api::workloadspread::GROUP;
use strew_api::workloadspread::facts::white_list::WhiteList;
use strew_api::workloadspread::v1beta1::WorkloadSpread;
use strew_api::workloadspread::workloads::{AdvancedStatefulSet, CloneSet};

use crate::watch::{Kind, Reading, Served};

/// A kind as a list of rights has it: group, version and kind.
pub(super) type Named = [String; 3];

/// Which kinds are wanted, which there are, and which are watched.
#[derive(Default)]
pub(super) struct Customs {
    /// `None` until somebody has looked.
    served: Option<Served>,
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

/// The kind of WorkloadSpreads.
pub fn spreads() -> Kind {
    Kind::of::<WorkloadSpread>()
}

/// A kind of workloads that is known by its group and kind, in the version that is read.
pub fn known(group: &str, kind: &str) -> Option<Kind> {
    let all = [
        Kind::of::<Deployment>(),
        Kind::of::<ReplicaSet>(),
        Kind::of::<StatefulSet>(),
        Kind::of::<Job>(),
        Kind::of::<CloneSet>(),
        Kind::of::<AdvancedStatefulSet>(),
    ];
    all.into_iter()
        .find(|known| &*known.group == group && &*known.kind == kind)
}

impl Customs {
    /// Whether somebody has looked.
    pub(super) fn is_known(&self) -> bool {
        self.served.is_some()
    }

    /// These kinds are there.
    pub(super) fn served(&mut self, served: Served) -> Change {
        let before = self.served.as_ref().map(|before| before.has(&spreads()));
        if !served.has(&spreads()) && before != Some(false) {
            let all = served.versions(GROUP, WorkloadSpread::KIND);
            let what = match all.is_empty() {
                true => "is not installed",
                false => "serves no v1beta1",
            };
            tracing::warn!(
                "the CustomResourceDefinition workloadspreads.{GROUP} {what}: pods pass as they are until it does"
            );
        }
        self.served = Some(served);
        self.change()
    }

    /// The list of custom kinds is like this now.
    pub(super) fn listed(&mut self, list: WhiteList) -> Change {
        self.list = list;
        self.change()
    }

    /// A WorkloadSpread makes this kind known; `None`: none, or it is gone.
    pub(super) fn asked(&mut self, spread: [String; 2], kind: Option<Named>) -> Change {
        let before = match kind.clone() {
            Some(kind) => self.asked.insert(spread, kind),
            None => self.asked.remove(&spread),
        };
        match before == kind {
            true => Change::default(),
            false => self.change(),
        }
    }

    /// From now on kinds beside Kruise's are watched, too: one that cannot be read must not keep others waiting.
    pub(super) fn open(&mut self) -> Change {
        self.is_open = true;
        self.change()
    }

    /// Whether kinds beside Kruise's are watched.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The version in which a custom kind is watched, and how.
    pub(super) fn watched(&self, group: &str, kind: &str) -> Option<(&Kind, Reading)> {
        let mut all = self.watched.iter();
        let found = all.find(|(watched, _)| &*watched.group == group && &*watched.kind == kind);
        found.map(|(kind, reading)| (kind, *reading))
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
        let mut wanted = BTreeMap::new();
        if let Some(served) = &self.served {
            let own = [
                spreads(),
                Kind::of::<CloneSet>(),
                Kind::of::<AdvancedStatefulSet>(),
            ];
            let own = own.into_iter().filter(|kind| served.has(kind));
            wanted.extend(own.map(|kind| (kind, Reading::Known)));
            for [group, version, kind] in self.customs() {
                let mut all = served.versions(&group, &kind).iter();
                let found = all.find(|served| *served.kind.version == *version);
                if let Some(found) = found
                    && self.is_open
                    && known(&group, &kind).is_none()
                {
                    let has_scale = found.has_scale;
                    wanted.insert(found.kind.clone(), Reading::Custom { has_scale });
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::ServedKind;

    fn of(kind: Kind, has_scale: bool) -> ServedKind {
        ServedKind { kind, has_scale }
    }

    fn games(version: &str) -> ServedKind {
        of(Kind::new("example.org", version, "Game", "games"), true)
    }

    fn halls() -> ServedKind {
        of(Kind::new("example.org", "v1", "Hall", "halls"), false)
    }

    fn names(all: &[(Kind, Reading)]) -> Vec<String> {
        all.iter().map(|(kind, _)| kind.to_string()).collect()
    }

    #[test]
    fn kinds_are_watched_while_they_are_there_and_somebody_wants_them() {
        let mut customs = Customs::default();
        assert!(!customs.is_known());
        let all = [games("v2"), games("v1"), halls()];
        assert_eq!(
            customs.served(all.clone().into_iter().collect()),
            Change::default()
        );
        assert!(customs.is_known());
        let with_spreads = [all.to_vec(), vec![of(spreads(), false)]].concat();
        let change = customs.served(with_spreads.into_iter().collect());
        assert_eq!(names(&change.start), ["workloadspreads.apps.kruise.io"]);
        // Custom kinds wait until the others are known, and are watched in the version of the list.
        let text = r#"{"workloads": [{"Group": "example.org", "Version": "v1", "Kind": "Hall",
            "subResources": [{"Group": "example.org", "Version": "v1", "Kind": "Game"}]},
            {"Group": "example.org", "Version": "v1", "Kind": "Absent"}]}"#;
        let list = WhiteList::read(text).unwrap();
        assert_eq!(customs.listed(list), Change::default());
        let change = customs.open();
        assert_eq!(
            names(&change.start),
            ["games.example.org", "halls.example.org"]
        );
        assert_eq!(&*change.start[0].0.version, "v1");
        assert_eq!(change.start[0].1, Reading::Custom { has_scale: true });
        // Wanted twice, it stays when one does not want it any more.
        let hall = ["example.org", "v1", "Hall"].map(str::to_owned);
        let ws = ["shop", "ws"].map(str::to_owned);
        assert_eq!(customs.asked(ws.clone(), Some(hall)), Change::default());
        let change = customs.listed(WhiteList::default());
        assert_eq!((change.start.len(), change.stop.len()), (0, 1));
        assert_eq!(change.stop[0].to_string(), "games.example.org");
        let change = customs.asked(ws, None);
        assert_eq!(change.stop[0].to_string(), "halls.example.org");
        // A definition that was deleted.
        assert_eq!(customs.served(all.into_iter().collect()).stop, [spreads()]);
    }

    /// A kind that is known by itself is watched as such, whatever a list says of it.
    #[test]
    fn a_list_changes_nothing_for_known_kinds() {
        let mut customs = Customs::default();
        let kind = Kind::of::<CloneSet>();
        customs.open();
        let text = r#"{"workloads": [{"Group": "apps.kruise.io", "Version": "v1alpha1", "Kind": "CloneSet"}]}"#;
        customs.listed(WhiteList::read(text).unwrap());
        let change = customs.served([of(kind.clone(), true)].into_iter().collect());
        assert_eq!(change.start, [(kind, Reading::Known)]);
    }
}
