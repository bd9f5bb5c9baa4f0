//! The judge can fail: whoever breaks a rule on purpose is found out.

use std::ops::ControlFlow;
use std::sync::Arc;

use strew_controllers::object::{Key, Kind, Name, Object, Pod, Truth};
use strew_controllers::{ApiError, Change, Context, Controller, Queue, Tables};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_scheduler::PluginId;
use strew_sim::auditor::{Rule, Sent, Witness, Written};
use strew_sim::chaos::{Parts, Story, generate, play, shrink};
use strew_sim::{Component, Crash};

use crate::life::{Life, nodes};

/// The first story whose life with these parts breaks the rule.
fn found(parts: &Parts, rule: Rule, seeds: std::ops::Range<u64>) -> Option<Story> {
    seeds.map(generate).find(|story| {
        let violations = play(story, parts).violations;
        violations.iter().any(|violation| violation.rule == rule)
    })
}

/// Schedulers that leave a filter out.
#[test]
fn a_bind_that_a_filter_forbids_is_found_out() {
    for filter in [
        PluginId::PodTopologySpread,
        PluginId::InterPodAffinity,
        PluginId::NodeResourcesFit,
        PluginId::TaintToleration,
        PluginId::NodeUnschedulable,
    ] {
        let mut parts = Parts::real();
        for profile in &mut parts.scheduler.profiles {
            profile.filters.retain(|plugin| *plugin != filter);
        }
        let story = found(&parts, Rule::Bind, 0..60);
        assert!(story.is_some(), "{filter:?} can be left out");
    }
}

/// All controllers but those of this name.
fn without(name: &'static str) -> Parts {
    let mut parts = Parts::real();
    parts.controllers = Arc::new(move || {
        let mut all = strew_sim::controllers();
        all.retain(|controller| controller.name() != name);
        all
    });
    parts
}

#[test]
fn a_controller_that_does_nothing_is_found_out() {
    for (name, rule) in [
        ("replicaset-controller", Rule::Replicas),
        ("garbage-collector-controller", Rule::Orphan),
        ("disruption-controller", Rule::Budget),
    ] {
        let names: Vec<&str> = strew_sim::controllers().iter().map(|c| c.name()).collect();
        assert!(names.contains(&name), "{names:?}");
        assert!(found(&without(name), rule, 0..60).is_some(), "{name}");
    }
}

/// A controller that never hears that a pod is ready.
struct HardOfHearing(Box<dyn Controller>);

impl Controller for HardOfHearing {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        self.0.start(now, dice, queue);
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        let is_ready = |pod: Option<&Pod>| pod.is_some_and(Pod::is_ready);
        let (_, new) = change.of::<Pod>().unwrap_or_default();
        if !is_ready(new) {
            self.0.observe(now, change, cache, queue);
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        self.0.sync(name, cx)
    }
}

fn hard_of_hearing() -> Parts {
    let mut parts = Parts::real();
    parts.controllers = Arc::new(|| {
        let all = strew_sim::controllers().into_iter();
        all.map(|inner| -> Box<dyn Controller> {
            match inner.name() {
                "replicaset-controller" => Box::new(HardOfHearing(inner)),
                _ => inner,
            }
        })
        .collect()
    });
    parts
}

#[test]
fn a_bad_story_is_made_small() {
    let parts = hard_of_hearing();
    let story = found(&parts, Rule::Status, 0..60).expect("whoever does not hear miscounts");
    let small = shrink(&story, Rule::Status, &parts);
    let broken = play(&small, &parts).violations;
    assert!(broken.iter().any(|v| v.rule == Rule::Status), "{broken:?}");
    assert_eq!(small.events, [], "{small}");
    assert_eq!(small.world.workloads.len(), 1, "{small}");
    assert_eq!(small.world.workloads[0].replicas, 1, "{small}");
    let text = small.to_string();
    assert!(
        text.starts_with("seed: ") && text.contains("calm: true"),
        "{text}"
    );
}

#[test]
fn a_pod_that_nobody_schedules_is_found_out() {
    let pod = "
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, image: nginx}]}
";
    for (down, is_found) in [(5, false), (1000, true)] {
        let mut life = Life::of(&(nodes(2, 2) + pod), 1);
        life.sim.watch_closely();
        life.sim.crash(Crash {
            component: Component::Scheduler,
            after_writes: 0,
            down: Span::from_secs(down),
        });
        let end = Span::from_secs(60);
        let ended = life.sim.run_until(end, &mut |_| ControlFlow::Continue(()));
        assert!(ended.unwrap().is_continue());
        life.sim.audit_rest();
        let violations = life.sim.violations();
        let rules: Vec<Rule> = violations.iter().map(|v| v.rule).collect();
        let expected = match is_found {
            true => vec![Rule::PendingThoughItFits],
            false => vec![],
        };
        assert_eq!(rules, expected, "{violations:?}");
    }
}

// === histories made by hand ===

fn pod(uid: &str, version: u64, node: Option<&str>) -> Object {
    let wire = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "uid": uid, "resourceVersion": version.to_string()},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], "nodeName": node},
    });
    Object::of_wire(strew_api::read::KubeObject::of_json(wire).unwrap())
}

fn finished(mut object: Object, version: u64) -> Object {
    object.meta_mut().version = version;
    if let Object::Pod(pod) = &mut object {
        Arc::make_mut(pod).status.phase = strew_controllers::object::Phase::Succeeded;
        Arc::make_mut(pod)
            .status
            .set_condition("Ready", Truth::False, "", "", Instant::default());
    }
    object
}

/// What a witness finds in these states of one pod, one after another.
fn rules(states: &[Option<Object>]) -> Vec<Rule> {
    let mut witness = Witness::new(Instant::default(), &Tables::default());
    let mut old = None;
    for new in states {
        let key = Key {
            kind: Kind::Pod,
            name: Name::new("default", "a"),
        };
        let new = new.clone();
        witness.written(&Written {
            key,
            old: old.clone(),
            new: new.clone(),
        });
        old = new;
    }
    witness.take().into_iter().map(|v| v.rule).collect()
}

#[test]
fn histories_that_cannot_be_are_found_out() {
    let at = |version, node| Some(pod("u", version, node));
    let cases: [(&[Option<Object>], &[Rule]); 7] = [
        (
            &[at(1, None), at(2, Some("n1")), at(3, Some("n1")), None],
            &[],
        ),
        (&[at(1, Some("n1")), at(2, Some("n2"))], &[Rule::BoundTwice]),
        (&[at(1, Some("n1")), at(2, None)], &[Rule::BoundTwice]),
        (&[at(2, None), at(1, None)], &[Rule::History]),
        (&[at(1, None), None, at(2, None)], &[Rule::History]),
        (&[at(1, None), Some(pod("v", 2, None))], &[Rule::History]),
        (
            &[
                at(1, None),
                Some(finished(pod("u", 1, None), 2)),
                at(3, None),
            ],
            &[Rule::History],
        ),
    ];
    for (states, expected) in cases {
        let uid_changed = matches!(states, [_, Some(new)] if &*new.meta().uid == "v");
        let found = rules(states);
        assert_eq!(found, expected, "{states:?}");
        assert!(!uid_changed || !found.is_empty());
    }
}

#[test]
fn a_write_over_what_was_not_seen_is_found_out() {
    let mut witness = Witness::new(Instant::default(), &Tables::default());
    let key = Key {
        kind: Kind::Pod,
        name: Name::new("default", "a"),
    };
    let mut write = |old: Option<Object>, new: Option<Object>| {
        let key = key.clone();
        witness.written(&Written { key, old, new });
        let found = witness.take();
        found.iter().map(|v| v.rule).collect::<Vec<Rule>>()
    };
    assert_eq!(write(None, Some(pod("u", 1, None))), []);
    let first = Some(pod("u", 1, None));
    assert_eq!(write(first.clone(), Some(pod("u", 2, None))), []);
    assert_eq!(write(first, Some(pod("u", 3, None))), [Rule::LostWrite]);
}

#[test]
fn a_store_that_forgot_a_write_is_found_out() {
    let mut tables = Tables::default();
    tables.set(pod("u", 1, None));
    let mut witness = Witness::new(Instant::default(), &tables);
    witness.compare(&tables);
    assert!(witness.take().is_empty());
    witness.compare(&Tables::default());
    assert_eq!(witness.take()[0].rule, Rule::LostWrite);
}

#[test]
fn binds_after_a_lease_and_two_leaders_are_found_out() {
    let mut witness = Witness::new(Instant::default(), &Tables::default());
    let at = Instant::from_secs;
    let sent = |replica, secs, elects| Sent {
        replica,
        clock: at(secs),
        elects,
        pod: "a",
    };
    witness.renewed("one", at(100), Span::from_secs(10));
    for (sent, is_found) in [
        (sent("one", 109, true), false),
        (sent("one", 110, true), true),
        (sent("two", 105, true), true),
        (sent("two", 105, false), false),
    ] {
        witness.sent(sent);
        let rules: Vec<Rule> = witness.take().iter().map(|v| v.rule).collect();
        let expected = if is_found { vec![Rule::Lease] } else { vec![] };
        assert_eq!(rules, expected, "{sent:?}");
    }
    witness.leaders(["one"]);
    assert!(witness.take().is_empty());
    witness.leaders(["one", "two"]);
    assert_eq!(witness.take()[0].rule, Rule::TwoLeaders);
}
