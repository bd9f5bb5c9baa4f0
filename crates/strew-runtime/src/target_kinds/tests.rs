use serde_json::{Value, json};
use strew_wire::workloadspread::annotations::TARGET_SELECTOR;
use strew_wire::workloadspread::facts::white_list::KEY;

use super::*;
use crate::watch::{WatchAction, WatchEvent};

fn served(kinds: &[(&str, &str, &str)]) -> Arc<Served> {
    let all = kinds.iter().map(|&(group, version, kind)| ServedKind {
        kind: Kind::new(group, version, kind, &kind.to_lowercase()),
        has_scale: kind == "Game",
    });
    Arc::new(all.collect())
}

fn config_map(list: &Value) -> Value {
    json!({"data": {KEY: list.to_string()}})
}

fn spread(name: &str, api_version: &str, kind: &str, any_kind: bool) -> WorkloadSpread {
    let spread = json!({
        "metadata": {
            "namespace": "shop", "name": name,
            "annotations": {(ANY_KIND): any_kind.to_string()},
        },
        "spec": {"targetRef": {"apiVersion": api_version, "kind": kind, "name": "t"}, "subsets": []},
    });
    serde_json::from_value(spread).unwrap()
}

/// The watches that began (`+`) and ended (`-`) since the last call.
fn changes(watches: &mut Watches, ids: &mut BTreeMap<u64, Kind>) -> Vec<String> {
    let mut changes = Vec::new();
    while let Some(action) = watches.poll() {
        match action {
            WatchAction::Begin { id, kind, .. } => {
                changes.push(format!("+{} {}", kind.kind, kind.version));
                ids.insert(id.0, kind);
            }
            WatchAction::End(id) => {
                let kind = ids.remove(&id.0).unwrap();
                changes.push(format!("-{} {}", kind.kind, kind.version));
            }
            WatchAction::ReadAgain { .. } => {}
        }
    }
    changes
}

struct ServerOfKinds {
    kinds: TargetKinds,
    watches: Watches,
    ids: BTreeMap<u64, Kind>,
}

impl ServerOfKinds {
    fn new(kinds: TargetKinds) -> Self {
        Self {
            kinds,
            watches: Watches::default(),
            ids: BTreeMap::new(),
        }
    }

    fn serve(&mut self, kinds: &[(&str, &str, &str)]) -> Vec<String> {
        self.kinds.serve(served(kinds), &mut self.watches);
        self.changes()
    }

    fn configure(&mut self, list: &Value) -> Vec<String> {
        self.kinds.configure(&config_map(list), &mut self.watches);
        self.changes()
    }

    fn name(&mut self, wire: &WorkloadSpread) -> Vec<String> {
        self.kinds.name(wire, &mut self.watches);
        self.changes()
    }

    fn settle(&mut self, wire: &WorkloadSpread) -> Vec<String> {
        self.kinds.settle(wire, &mut self.watches);
        self.changes()
    }

    fn forget(&mut self, name: &str) -> Vec<String> {
        self.kinds.forget("shop", name, &mut self.watches);
        self.changes()
    }

    fn changes(&mut self) -> Vec<String> {
        changes(&mut self.watches, &mut self.ids)
    }

    /// The list of a kind is complete, and empty.
    fn list(&mut self, kind: &str) {
        let mut all = self.ids.iter();
        let (&id, found) = all.find(|(_, of)| *of.kind == *kind).unwrap();
        let id = crate::watch::WatchId(id);
        self.watches.take_in(id, WatchEvent::ListBegins);
        self.watches.take_in(id, WatchEvent::ListEnds);
        self.kinds.listed(found);
    }

    fn known_kinds(&self) -> usize {
        self.kinds.known_kinds(&mut Interner::new()).len()
    }
}

const GAME_V1: (&str, &str, &str) = ("example.org", "v1", "Game");
const GAME_V2: (&str, &str, &str) = ("example.org", "v2", "Game");
const HALL: (&str, &str, &str) = ("example.org", "v1", "Hall");
const CLONE_SET: (&str, &str, &str) = (KRUISE, "v1alpha1", "CloneSet");

#[test]
fn every_kind_is_watched_while_it_is_there_and_wanted() {
    let mut world = ServerOfKinds::new(TargetKinds::of_every());
    assert!(!world.kinds.is_served());
    let all = [GAME_V2, GAME_V1, HALL];
    assert_eq!(world.serve(&all), [""; 0]);
    assert!(world.kinds.is_served());
    let with_clone_sets = [&all[..], &[CLONE_SET]].concat();
    assert_eq!(world.serve(&with_clone_sets), ["+CloneSet v1alpha1"]);
    // Custom kinds wait until the others are known, and are watched in the version of the list.
    let list = json!({"workloads": [
        {"Group": "example.org", "Version": "v1", "Kind": "Hall",
         "subResources": [{"Group": "example.org", "Version": "v1", "Kind": "Game"}]},
        {"Group": "example.org", "Version": "v1", "Kind": "Absent"},
        {"Group": KRUISE, "Version": "v1alpha1", "Kind": "CloneSet"},
    ]});
    assert_eq!(world.configure(&list), [""; 0]);
    world.kinds.open(&mut world.watches);
    assert_eq!(world.changes(), ["+Game v1", "+Hall v1"]);
    // A kind of the list is none before its objects are known.
    assert_eq!(world.known_kinds(), 0);
    world.list("Hall");
    assert_eq!(world.known_kinds(), 1);
    // The version of the list may change.
    let mut other = list.clone();
    other["workloads"][0]["subResources"][0]["Version"] = json!("v2");
    assert_eq!(world.configure(&other), ["-Game v1", "+Game v2"]);
    // Wanted twice, it stays when one does not want it any more.
    let ws = spread("ws", "example.org/v1", "Hall", true);
    assert_eq!((world.name(&ws), world.settle(&ws)), (vec![], vec![]));
    assert_eq!(world.configure(&json!({})), ["-Game v2"]);
    assert_eq!(world.forget("ws"), ["-Hall v1"]);
    // A definition that was deleted.
    assert_eq!(world.serve(&all), ["-CloneSet v1alpha1"]);
}

#[test]
fn of_named_kinds_those_are_watched_that_may_be_targets() {
    let all = [GAME_V2, GAME_V1, HALL, CLONE_SET];
    let mut world = ServerOfKinds::new(TargetKinds::of_named(served(&all)));
    assert_eq!(
        world.name(&spread("a", "example.org/v1", "Game", false)),
        [""; 0]
    );
    let clones = spread("b", "apps.kruise.io/v1alpha1", "CloneSet", false);
    assert_eq!(world.name(&clones), ["+CloneSet v1alpha1"]);
    assert!(!world.kinds.is_known(&clones, &world.watches));
    world.list("CloneSet");
    assert!(world.kinds.is_known(&clones, &world.watches));
    // In the version of the list, if it is there; else in the target's own.
    let list = |version| json!({"workloads": [{"Group": "example.org", "Version": version, "Kind": "Game"}]});
    assert_eq!(world.configure(&list("v3")), ["+Game v1"]);
    // It stays while it is named, whatever the list and the API server say.
    assert_eq!(world.configure(&list("v2")), [""; 0]);
    assert_eq!(world.configure(&json!({})), [""; 0]);
    assert_eq!(world.serve(&[HALL, CLONE_SET]), [""; 0]);
    assert_eq!(world.forget("a"), ["-Game v1"]);
}

/// A CloneSet that a WorkloadSpread takes by its labels was not known where nothing named a CloneSet as target: its pods
/// were not counted, and a subset got more than its limit.
#[test]
fn a_spread_that_takes_further_workloads_has_clone_sets_watched() {
    let deployment = spread("a", "apps/v1", "Deployment", false);
    let mut taking = deployment.clone();
    let annotations = taking.metadata.annotations.get_or_insert_default();
    annotations.insert(TARGET_SELECTOR.to_owned(), "app=shop".to_owned());
    let mut world = ServerOfKinds::new(TargetKinds::of_named(served(&[HALL])));
    assert_eq!(world.name(&taking), [""; 0]);
    assert!(world.kinds.is_known(&taking, &world.watches), "none exist");
    assert_eq!(world.serve(&[HALL, CLONE_SET]), ["+CloneSet v1alpha1"]);
    assert!(!world.kinds.is_known(&taking, &world.watches));
    world.list("CloneSet");
    assert!(world.kinds.is_known(&taking, &world.watches));
    assert_eq!(world.name(&deployment), [""; 0]);
    assert_eq!(world.settle(&deployment), ["-CloneSet v1alpha1"]);
}

/// Until the machine knows of the new target, it goes on with the old one.
#[test]
fn a_spread_that_names_another_kind_keeps_the_old_one_until_it_is_settled() {
    let all = [HALL, CLONE_SET];
    let mut world = ServerOfKinds::new(TargetKinds::of_named(served(&all)));
    let before = spread("a", "apps.kruise.io/v1alpha1", "CloneSet", false);
    assert_eq!(world.name(&before), ["+CloneSet v1alpha1"]);
    assert_eq!(world.settle(&before), [""; 0]);
    let after = spread("a", "example.org/v1", "Hall", true);
    assert_eq!(world.name(&after), ["+Hall v1"]);
    assert_eq!(world.settle(&after), ["-CloneSet v1alpha1"]);
}

#[test]
fn objects_are_told_again_where_their_replicas_are_counted_elsewhere() {
    for kinds in [TargetKinds::of_every(), TargetKinds::of_named(served(&[]))] {
        let mut world = ServerOfKinds::new(kinds);
        world.serve(&[GAME_V1]);
        world.kinds.open(&mut world.watches);
        let game = spread("a", "example.org/v1", "Game", false);
        world.name(&game);
        let list = |path| {
            json!({"workloads": [{"Group": "example.org", "Version": "v1", "Kind": "Game",
                "replicasPath": path}]})
        };
        assert_eq!(world.configure(&list("spec.a")), ["+Game v1"]);
        world.list("Game");
        assert_eq!(world.configure(&list("spec.a")), [""; 0]);
        assert_eq!(world.configure(&list("spec.b")), ["-Game v1", "+Game v1"]);
        // Its objects are known still, as they were before.
        assert_eq!(world.known_kinds(), 1);
    }
}

#[test]
fn a_list_that_cannot_be_read_changes_nothing() {
    let mut world = ServerOfKinds::new(TargetKinds::of_every());
    world.serve(&[HALL]);
    world.kinds.open(&mut world.watches);
    let list = json!({"workloads": [{"Group": "example.org", "Version": "v1", "Kind": "Hall"}]});
    assert_eq!(world.configure(&list), ["+Hall v1"]);
    let broken = json!({"data": {KEY: "["}});
    let (kinds, watches) = (&mut world.kinds, &mut world.watches);
    assert!(!kinds.configure(&broken, watches));
    assert!(kinds.configure(&Value::Null, watches));
    assert_eq!(world.changes(), ["-Hall v1"]);
}

/// The machine has its own watch of them.
#[test]
fn kinds_that_are_watched_anyway_are_left_alone() {
    let mut world = ServerOfKinds::new(TargetKinds::of_named(served(&[("", "v1", "Widget")])));
    let widgets = Kind::new("", "v1", "Widget", "widgets");
    world
        .watches
        .start(widgets.clone(), Reading::Known, &Scope::default());
    world.changes();
    let ws = spread("a", "v1", "Widget", true);
    assert_eq!(world.name(&ws), [""; 0]);
    assert!(!world.kinds.follows(&widgets));
    assert!(world.kinds.is_known(&ws, &world.watches));
}
