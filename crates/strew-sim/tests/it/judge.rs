//! The judge can fail: a machine that breaks a rule on purpose is found.

use std::ops::ControlFlow;
use std::sync::Arc;

use strew_apiserver::object::{Job, Key, Kind, Name, Object, Pod, Truth};
use strew_apiserver::server::Change as Written;
use strew_apiserver::{ApiError, Tables};
use strew_controllers::{Change, Context, Controller, Queue};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_scheduler::PluginId;
use strew_sim::auditor::{Rule, Sent, Witness};
use strew_sim::chaos::{
    Action, ClusterPlan, Event as StoryEvent, NodePlan, Parts, Spread, Story, Worker, Workload,
    generate, generate_registrations, play, shrink,
};
use strew_sim::{Component, Crash, MachineLimits, Sabotage};

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
        let story = found(&parts, Rule::Bind, 0..200);
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
        ("resourcequota-controller", Rule::Quota),
        ("horizontal-pod-autoscaler", Rule::Autoscaler),
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

    fn n_workers(&self) -> usize {
        self.0.n_workers()
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

    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        self.0.answered(name, answer, cx);
    }
}

#[test]
fn a_bad_story_is_made_small() {
    let parts = with("replicaset-controller", |inner| {
        Box::new(HardOfHearing(inner))
    });
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

/// A scheduler that does not count what it has bound until it is told.
#[test]
fn forgotten_assumed_pods_are_found_out() {
    let mut parts = Parts {
        sabotage: Some(Sabotage::ForgetsAssumed),
        ..Parts::real()
    };
    // What is forgotten shows where the next pod goes to the same of several equal nodes.
    parts.scheduler.parallelism = 1;
    assert!(found(&parts, Rule::Bind, 0..60).is_some());
}

/// The first story with a registration whose life with this defect breaks the rule.
fn found_in_registrations(sabotage: Sabotage, rule: Rule) -> Option<Story> {
    let parts = Parts {
        sabotage: Some(sabotage),
        ..Parts::real()
    };
    let stories = (0..60).map(generate_registrations);
    let mut stories = stories.filter(|story| story.world.registration.is_some());
    stories.find(|story| {
        let violations = play(story, &parts).violations;
        violations.iter().any(|violation| violation.rule == rule)
    })
}

#[test]
fn a_rotation_without_an_overlap_is_found_out() {
    let story = found_in_registrations(Sabotage::ReplacesBundle, Rule::WebhookTrust);
    assert!(story.is_some());
}

#[test]
fn a_controller_that_takes_nothing_out_is_found_out() {
    let story = found_in_registrations(Sabotage::KeepsRegistration, Rule::WebhookRefuses);
    assert!(story.is_some());
}

/// A controller to which pods that it makes seem to have come and gone at once: once an instant, or it would make pods
/// for ever.
struct Impatient {
    inner: Box<dyn Controller>,
    last: Instant,
}

impl Controller for Impatient {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn n_workers(&self) -> usize {
        self.inner.n_workers()
    }

    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        self.inner.start(now, dice, queue);
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.inner.observe(now, change, cache, queue);
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        self.inner.sync(name, cx)
    }

    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        self.inner.answered(name, answer, cx);
        let Some(pod) = answer.as_ref().ok().filter(|_| self.last < cx.now) else {
            return;
        };
        self.last = cx.now;
        let (came, went) = ((None, Some(pod)), (Some(pod), None));
        for (old, new) in [came, went] {
            let change = Change { old, new };
            self.inner.observe(cx.now, change, cx.cache, cx.queue);
        }
    }
}

/// A controller that never hears that a Job has ended.
struct DeafToJobs(Box<dyn Controller>);

impl Controller for DeafToJobs {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn n_workers(&self) -> usize {
        self.0.n_workers()
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        if change.of::<Job>().is_none() {
            self.0.observe(now, change, cache, queue);
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        self.0.sync(name, cx)
    }

    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        self.0.answered(name, answer, cx);
    }
}

#[test]
fn a_cron_job_that_forgets_its_jobs_is_found_out() {
    let parts = with("cronjob-controller", |inner| Box::new(DeafToJobs(inner)));
    assert!(found(&parts, Rule::Status, 0..200).is_some());
}

struct Panicking;

impl Controller for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn n_workers(&self) -> usize {
        1
    }

    fn observe(&mut self, _: Instant, _: Change<'_>, _: &Tables, _: &mut Queue) {
        panic!("on purpose");
    }

    fn sync(&mut self, _: &Name, _: &mut Context<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}

#[test]
fn a_panic_is_found_out() {
    let parts = with("replicaset-controller", |_| Box::new(Panicking));
    let violations = play(&circle(), &parts).violations;
    let found: Vec<(Rule, &str)> = violations.iter().map(|v| (v.rule, &*v.text)).collect();
    assert_eq!(found, [(Rule::Panic, "on purpose")]);
}

/// The real parts, but for the controller of this name.
fn with(name: &'static str, other: fn(Box<dyn Controller>) -> Box<dyn Controller>) -> Parts {
    let mut parts = Parts::real();
    parts.controllers = Arc::new(move || {
        let all = strew_sim::controllers().into_iter();
        all.map(|inner| match inner.name() == name {
            true => other(inner),
            false => inner,
        })
        .collect()
    });
    parts
}

#[test]
fn ignored_expectations_are_found_out() {
    let parts = with("replicaset-controller", |inner| {
        let last = Instant::default();
        Box::new(Impatient { inner, last })
    });
    assert!(found(&parts, Rule::Surplus, 0..60).is_some());
}

/// A controller that annotates what it looks at, each time anew, five minutes after the last time.
struct Fussy(Box<dyn Controller>);

impl Controller for Fussy {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn n_workers(&self) -> usize {
        self.0.n_workers()
    }

    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        self.0.start(now, dice, queue);
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.0.observe(now, change, cache, queue);
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        self.0.sync(name, cx)?;
        let key = Key {
            kind: Kind::ReplicaSet,
            name: name.clone(),
        };
        let Some(mut set) = cx.api.get(&key) else {
            return Ok(());
        };
        let annotations = &mut set.meta_mut().annotations;
        Arc::make_mut(annotations).insert("seen".to_owned(), format!("{:?}", cx.now));
        cx.queue.add_at(name, cx.now + Span::from_secs(300));
        cx.api.update(set).map(drop)
    }

    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        self.0.answered(name, answer, cx);
    }
}

/// A pod that is kept off a node by a constraint which counts pods of less importance: those go for it, and what comes in
/// their place does so before it is tried.
fn circle() -> Story {
    let workload = |name: &str, priority: u8| Workload {
        name: name.to_owned(),
        worker: Worker::ReplicaSet,
        replicas: 1,
        cpu: 900,
        priority,
        tolerates: false,
        has_port: false,
        spread: Vec::new(),
        anti: None,
        budget: None,
        is_zone_aware: false,
        keeps_spread: false,
        scaling: None,
        is_late: false,
    };
    let node = |name: &str, zone, cpu| NodePlan {
        name: name.to_owned(),
        zone: Some(zone),
        cpu,
        pods: 10,
        is_tainted: false,
        is_cordoned: false,
    };
    let spread = Spread {
        by_zone: true,
        max_skew: 1,
        is_hard: true,
        min_domains: 0,
        by_revision: false,
        honors_taints: false,
        of_all: true,
    };
    let vip = Workload {
        spread: vec![spread],
        is_late: true,
        ..workload("vip", 2)
    };
    Story {
        seed: 1,
        limits: MachineLimits::production(),
        world: ClusterPlan {
            spreads: Vec::new(),
            n_webhooks: 0,
            registration: None,
            nodes: vec![node("a", 0, 4000), node("b", 1, 100)],
            workloads: vec![workload("web", 0), vip],
            quota: None,
            group: None,
            elects: false,
        },
        events: vec![StoryEvent {
            at: Span::from_secs(20),
            action: Action::Create("vip".to_owned()),
        }],
        calm: Span::from_secs(30),
    }
}

#[test]
fn a_preemption_without_end_is_broken_and_all_else_must_rest() {
    let verdict = play(&circle(), &Parts::real());
    assert_eq!((verdict.violations, verdict.figures.circles), (vec![], 1));
    let fussy = with("replicaset-controller", |inner| Box::new(Fussy(inner)));
    let verdict = play(&circle(), &fussy);
    let rules: Vec<Rule> = verdict.violations.iter().map(|v| v.rule).collect();
    assert_eq!((rules, verdict.figures.circles), (vec![Rule::Rest], 1));
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
    Object::of_wire(strew_manifest::read::KubeObject::of_json(wire).unwrap())
}

fn finished(mut object: Object, version: u64) -> Object {
    object.meta_mut().version = version;
    if let Object::Pod(pod) = &mut object {
        Arc::make_mut(pod).status.phase = strew_apiserver::object::Phase::Succeeded;
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
