//! What a machine hears of a watch that is cut, begun anew, or told wrong.

use serde_json::json;
use strew_manifest::read::KubeObject;
use strew_runtime::Event;
use strew_runtime::watch::{
    Custom, Kind, Object, Reading, Scope, WatchAction, WatchEvent, WatchId, Watches,
};
use strew_wire::request::Answer;

use crate::toy::{ToyDriver, named, object};

fn games() -> Kind {
    Kind::new("example.org", "v1", "Game", "games")
}

fn set(name: &str, uid: &str) -> WatchEvent {
    let object = Custom {
        object: object(name),
        scale: None,
    };
    WatchEvent::Set(named(name, uid), Box::new(Object::Custom(object)))
}

/// A world that watches games, and its watch.
fn world() -> (ToyDriver, WatchId) {
    let mut watches = Watches::default();
    let reading = Reading::Custom { has_scale: false };
    watches.start(games(), reading, &Scope::default());
    let mut world = ToyDriver::new(watches);
    world.want("a", &["a1"]);
    assert_eq!(world.poll(), "", "nothing is known yet");
    let id = begun(&mut world);
    (world, id)
}

#[track_caller]
fn begun(world: &mut ToyDriver) -> WatchId {
    let asked = std::mem::take(&mut world.asked);
    let mut ids = asked.into_iter().filter_map(|action| match action {
        WatchAction::Begin { id, .. } => Some(id),
        _ => None,
    });
    ids.next().expect("a watch begins")
}

fn tell(world: &mut ToyDriver, id: WatchId, events: impl IntoIterator<Item = WatchEvent>) {
    for event in events {
        world.handle(Event::Watch(id, event));
    }
}

#[test]
fn nothing_is_decided_before_everything_was_listed() {
    let (mut world, id) = world();
    tell(&mut world, id, [WatchEvent::ListBegins, set("x", "1")]);
    assert_eq!(world.poll(), "");
    tell(&mut world, id, [WatchEvent::ListEnds]);
    assert_eq!(world.poll(), "a1");
    assert_eq!(world.heard(), ["set shop/x 1", "listed games.example.org"]);
}

#[test]
fn a_list_that_does_not_name_an_object_tells_that_it_is_gone() {
    let (mut world, id) = world();
    let first = [
        WatchEvent::ListBegins,
        set("x", "1"),
        set("y", "2"),
        set("z", "3"),
        WatchEvent::ListEnds,
    ];
    tell(&mut world, id, first);
    world.heard();
    // The API server has forgotten where the watch was: `x` went unseen, and `y` is another object by now.
    let again = [
        WatchEvent::Forgotten,
        WatchEvent::ListBegins,
        set("y", "7"),
        set("z", "3"),
        WatchEvent::ListEnds,
    ];
    tell(&mut world, id, again);
    let expected = [
        "gone shop/y 2",
        "set shop/y 7",
        "set shop/z 3",
        "gone shop/x 1",
        "listed games.example.org",
    ];
    assert_eq!(world.heard(), expected);
    assert_eq!(world.driver.watches().len(&games()), 2);
}

/// A machine knows what it has made by the answer. Where that is gone again before the watch has told of it, and the
/// watch begins anew with a list, nothing else says so.
#[test]
fn an_object_that_this_replica_made_is_gone_when_a_list_does_not_name_it() {
    let mut watches = Watches::default();
    let pods = Kind::new("", "v1", "Pod", "pods");
    let reading = Reading::Custom { has_scale: false };
    watches.start(pods, reading, &Scope::default());
    let mut world = ToyDriver::new(watches);
    world.poll();
    let id = begun(&mut world);
    tell(
        &mut world,
        id,
        [WatchEvent::ListBegins, WatchEvent::ListEnds],
    );
    world.driver.tell(|toy, _| toy.creates = true);
    world.want("a", &["made"]);
    assert_eq!(world.poll(), "made");
    let object = json!({"metadata": {"namespace": "shop", "name": "made", "uid": "7"}});
    let created = Answer::of(201, None, object.to_string().as_bytes());
    // A list that began before the answer need not show it.
    tell(&mut world, id, [WatchEvent::ListBegins]);
    world.answer("made", created);
    tell(&mut world, id, [WatchEvent::ListEnds]);
    assert_eq!(world.heard(), ["listed pods", "made: Ok", "listed pods"]);
    tell(
        &mut world,
        id,
        [WatchEvent::ListBegins, WatchEvent::ListEnds],
    );
    assert_eq!(world.heard(), ["gone shop/made 7", "listed pods"]);
}

#[test]
fn a_watch_that_begins_anew_is_another_one() {
    let (mut world, old) = world();
    let first = [WatchEvent::ListBegins, set("x", "1"), WatchEvent::ListEnds];
    tell(&mut world, old, first);
    world.driver.tell(|_, watches| watches.restart(&games()));
    world.poll();
    let new = begun(&mut world);
    world.heard();
    // What the old one still brings is not heard.
    tell(&mut world, old, [set("w", "9")]);
    let second = [WatchEvent::ListBegins, set("y", "2"), WatchEvent::ListEnds];
    tell(&mut world, new, second);
    let expected = ["set shop/y 2", "gone shop/x 1", "listed games.example.org"];
    assert_eq!(world.heard(), expected);
    world.driver.tell(|_, watches| watches.stop(&games()));
    world.poll();
    assert_eq!(world.heard(), ["gone shop/y 2"]);
    assert!(world.driver.watches().is_empty());
}

#[test]
fn an_object_that_cannot_be_read_stays_as_it_was_and_is_not_gone() {
    let (mut world, id) = world();
    let first = [WatchEvent::ListBegins, set("x", "1"), WatchEvent::ListEnds];
    tell(&mut world, id, first);
    let broken = WatchEvent::Broken(named("x", "1"), "no such field".to_owned());
    let second = [WatchEvent::ListBegins, broken, WatchEvent::ListEnds];
    tell(&mut world, id, second);
    let expected = [
        "set shop/x 1",
        "listed games.example.org",
        "listed games.example.org",
    ];
    assert_eq!(world.heard(), expected);
    let unreadable = |world: &ToyDriver| -> Vec<usize> {
        world
            .driver
            .watches()
            .unreadable()
            .map(|(_, n)| n)
            .collect()
    };
    assert_eq!(unreadable(&world), [1]);
    tell(&mut world, id, [set("x", "1")]);
    assert_eq!(unreadable(&world), [0]);
}

/// Objects that are read again are heard as far as they are known, also where their watch began anew meanwhile.
#[test]
fn what_is_read_again_outlives_its_watch() {
    let (mut world, id) = world();
    let first = [WatchEvent::ListBegins, set("x", "1"), WatchEvent::ListEnds];
    tell(&mut world, id, first);
    world
        .driver
        .tell(|_, watches| watches.read_again(&games(), "shop"));
    world.poll();
    let reading = world.asked.iter().find_map(|action| match action {
        WatchAction::ReadAgain { id, .. } => Some(*id),
        _ => None,
    });
    let reading = reading.expect("it is asked for");
    world.driver.tell(|_, watches| watches.restart(&games()));
    world.heard();
    let known = |name: &str| {
        Object::Custom(Custom {
            object: object(name),
            scale: None,
        })
    };
    let objects = vec![(named("x", "1"), known("x")), (named("y", "2"), known("y"))];
    tell(
        &mut world,
        reading,
        [WatchEvent::Again("shop".into(), objects)],
    );
    assert_eq!(world.heard(), ["1 in shop"]);
}

#[test]
fn what_is_left_of_an_object_is_an_object_where_its_kind_is_known() {
    let left = Kind::new("", "v1", "Pod", "pods").known_remains(&named("web", "1"));
    assert!(matches!(left, Some(KubeObject::Pod(_))));
    assert!(games().known_remains(&named("web", "1")).is_none());
}
