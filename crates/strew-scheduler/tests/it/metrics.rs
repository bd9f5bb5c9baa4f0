//! What a scheduler counts and measures of itself.

use std::sync::atomic::{AtomicU64, Ordering};

use strew_cluster::{OwnerKind, OwnerRef};
use strew_model::{Instant, Labels, Resources, Selector, Span};
use strew_scheduler::machine::{Effect, Input, Outcome};
use strew_scheduler::metrics::{Family, Value, catalogue};

use crate::api::Api;
use crate::queue::{Bench, pod_set};

/// A clock on which a millisecond passes each time it is read.
fn clock() -> u64 {
    static NANOS: AtomicU64 = AtomicU64::new(0);
    NANOS.fetch_add(1_000_000, Ordering::Relaxed)
}

/// `name{label=value} number`, histograms by how much they counted; what is 0 is left out.
fn picture(families: &[Family]) -> Vec<String> {
    let mut lines = Vec::new();
    for family in families {
        for sample in &family.samples {
            let labels = family.info.labels.iter().zip(&sample.labels);
            let labels: Vec<String> = labels.map(|(k, v)| format!("{k}={v}")).collect();
            let number = match &sample.value {
                Value::Count(count) => count.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Histogram(histogram) => histogram.count().to_string(),
            };
            if number != "0" {
                let name = family.info.name;
                lines.push(format!("{name}{{{}}} {number}", labels.join(" ")));
            }
        }
    }
    lines
}

#[track_caller]
fn check(families: &[Family], expected: &[&str]) {
    let lines = picture(families);
    for line in expected {
        assert!(lines.iter().any(|l| l == line), "no {line} in {lines:#?}");
    }
}

/// Takes every bind, a second later.
fn bind_all(bench: &mut Bench) {
    let mut binds = Vec::new();
    while let Some(effect) = bench.scheduler.poll_effect() {
        if let Effect::Bind { id, .. } = effect {
            binds.push(id);
        }
    }
    bench.now = bench.now + Span::from_secs(1);
    for effect in binds {
        let outcome = Outcome::Ok;
        bench.handle(Input::Outcome { effect, outcome });
    }
}

/// Three pods for two zones with a node each, maxSkew 1; the node of one takes a single pod.
fn three_pods(bench: &mut Bench) {
    bench.scheduler.measure_with(clock);
    let (mut small, large) = (bench.node("n1", "a"), bench.node("n2", "b"));
    small.allocatable = Resources::of(1_000, 4_000);
    bench.handle(Input::NodeSet(small));
    bench.handle(Input::NodeSet(large));
    let (hash, value) = (bench.name("pod-template-hash"), bench.name("5f6b"));
    let owner = bench.name("web-5f6b");
    let constraint = bench.constraint();
    for uid in ["p1", "p2", "p3", "p4"] {
        let mut pod = bench.pod(uid, |spec| spec.spread = [constraint.clone()].into());
        pod.labels = Labels::new(vec![(bench.app, bench.web), (hash, value)]);
        pod.owner = Some(OwnerRef {
            kind: OwnerKind::ReplicaSet,
            name: owner,
        });
        bench.set(&pod);
    }
    bind_all(bench);
}

#[test]
fn attempts_waits_and_refusals_are_counted() {
    let mut bench = Bench::new();
    three_pods(&mut bench);
    check(
        &bench.scheduler.metrics(),
        &[
            "scheduler_schedule_attempts_total{result=scheduled profile=default-scheduler} 3",
            "scheduler_schedule_attempts_total{result=unschedulable profile=default-scheduler} 1",
            "scheduler_scheduling_attempt_duration_seconds{result=scheduled profile=default-scheduler} 3",
            "scheduler_e2e_scheduling_duration_seconds{result=unschedulable profile=default-scheduler} 1",
            "scheduler_scheduling_algorithm_duration_seconds{} 4",
            "scheduler_framework_extension_point_duration_seconds{extension_point=PreFilter status=Success profile=default-scheduler} 4",
            "scheduler_framework_extension_point_duration_seconds{extension_point=Filter status=Success profile=default-scheduler} 4",
            "scheduler_framework_extension_point_duration_seconds{extension_point=Score status=Success profile=default-scheduler} 1",
            "scheduler_framework_extension_point_duration_seconds{extension_point=PostFilter status=Unschedulable profile=default-scheduler} 1",
            "scheduler_framework_extension_point_duration_seconds{extension_point=Bind status=Success profile=default-scheduler} 3",
            "scheduler_plugin_execution_duration_seconds{plugin=PodTopologySpread extension_point=Filter status=Success} 1",
            "scheduler_plugin_execution_duration_seconds{plugin=NodeResourcesFit extension_point=Score status=Success} 1",
            "scheduler_pod_scheduling_sli_duration_seconds{attempts=1} 3",
            "scheduler_pod_scheduling_attempts{} 3",
            "scheduler_pending_pods{queue=unschedulable} 1",
            "scheduler_queue_incoming_pods_total{queue=active event=UnschedulablePodAdd} 4",
            "scheduler_queue_incoming_pods_total{queue=unschedulable event=ScheduleAttemptFailure} 1",
            "scheduler_unschedulable_pods{plugin=NodeResourcesFit profile=default-scheduler} 1",
            "scheduler_unschedulable_pods{plugin=PodTopologySpread profile=default-scheduler} 1",
            "scheduler_cache_size{type=nodes} 2",
            "scheduler_cache_size{type=pods} 3",
            "scheduler_cache_size{type=assumed_pods} 3",
            "scheduler_event_handling_duration_seconds{event=NodeAdd} 2",
            "scheduler_event_handling_duration_seconds{event=UnschedulablePodAdd} 4",
        ],
    );
}

/// The last pod: zone a has no room, zone b has two already and would be one too many.
#[test]
fn refusals_name_plugin_and_topology_key() {
    let mut bench = Bench::new();
    three_pods(&mut bench);
    let refused = [
        "strew_filter_rejections_total{plugin=NodeResourcesFit topology_key= result=unschedulable profile=default-scheduler} 1",
        "strew_filter_rejections_total{plugin=PodTopologySpread topology_key=topology.kubernetes.io/zone result=unschedulable profile=default-scheduler} 1",
    ];
    check(&bench.scheduler.metrics(), &refused);
}

/// A pod that found a node passed others by: one decision of ten tells why, the first among them.
#[test]
fn one_decision_of_ten_tells_who_rejected_other_nodes() {
    let mut bench = Bench::new();
    bench.scheduler.measure_with(clock);
    let (mut node, mut cordoned) = (bench.node("n1", "a"), bench.node("n2", "b"));
    node.pods_max = 20;
    cordoned.unschedulable = true;
    bench.handle(Input::NodeSet(node));
    bench.handle(Input::NodeSet(cordoned));
    for i in 0..12 {
        let uid = format!("p{i}");
        let pod = bench.pod(&uid, |spec| spec.requests = Resources::default());
        bench.set(&pod);
    }
    bind_all(&mut bench);
    let refused = "strew_filter_rejections_total{plugin=NodeUnschedulable topology_key= result=scheduled profile=default-scheduler} 2";
    check(&bench.scheduler.metrics(), &[refused]);
}

#[test]
fn skew_is_told_by_deployment_and_domain() {
    let mut bench = Bench::new();
    three_pods(&mut bench);
    let of_zone = "namespace=default workload=web topology_key=topology.kubernetes.io/zone when_unsatisfiable=DoNotSchedule";
    let expected = [
        format!("strew_spread_skew{{{of_zone}}} 1"),
        format!("strew_spread_max_skew{{{of_zone}}} 1"),
        format!("strew_spread_pods{{{of_zone} domain=a}} 1"),
        format!("strew_spread_pods{{{of_zone} domain=b}} 2"),
    ];
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&bench.scheduler.metrics(), &expected);
}

/// Pods without a controller go by the selector of their constraint: two kinds of them do not share a series.
#[test]
fn bare_pods_go_by_what_their_constraint_counts() {
    let mut bench = Bench::new();
    for (name, zone) in [("n1", "a"), ("n2", "b")] {
        let node = bench.node(name, zone);
        bench.handle(Input::NodeSet(node));
    }
    let constraint = bench.constraint();
    let (app, other) = (bench.name("app"), bench.name("other"));
    let pods = [
        ("p1", "n1", None),
        ("p2", "n1", None),
        ("o1", "n2", Some(other)),
    ];
    for (uid, node, value) in pods {
        let mut constraint = constraint.clone();
        if let Some(value) = value {
            constraint.selector = Selector::of_labels([(app, value)]);
        }
        let mut pod = bench.pod(uid, |spec| spec.spread = [constraint].into());
        if let Some(value) = value {
            pod.labels = Labels::new(vec![(app, value)]);
        }
        pod.node = Some(bench.name(node));
        bench.set(&pod);
    }
    let skew = |workload: &str, skew: i32| {
        format!(
            "strew_spread_skew{{namespace=default workload={workload} topology_key=topology.kubernetes.io/zone \
             when_unsatisfiable=DoNotSchedule}} {skew}"
        )
    };
    let families = bench.scheduler.metrics();
    check(&families, &[&skew("app=web", 2), &skew("app=other", 1)]);
}

/// The number of series has a bound, whatever the number of workloads; the rest is counted.
#[test]
fn series_are_bounded() {
    let mut bench = Bench::new();
    let mut node = bench.node("n1", "a");
    node.allocatable = Resources::of(1_000_000, 1_000_000);
    node.pods_max = 1_000;
    bench.scheduler.handle(bench.now, Input::NodeSet(node));
    let constraint = bench.constraint();
    for i in 0..520 {
        let namespace = bench.name(&format!("namespace-{i}"));
        let uid = format!("pod-{i}");
        let mut pod = bench.pod(&uid, |spec| spec.spread = [constraint.clone()].into());
        pod.namespace = namespace;
        pod.node = Some(bench.name("n1"));
        bench.scheduler.handle(bench.now, pod_set(&pod));
    }
    let families = bench.scheduler.metrics();
    let told = |info| {
        let family = families.iter().find(|family| family.info == info);
        family.unwrap().samples.len()
    };
    assert_eq!(told(&catalogue::SPREAD_SKEW), 500);
    assert_eq!(told(&catalogue::SPREAD_PODS), 500);
    check(&families, &["strew_spread_left_out{what=workloads} 20"]);
}

/// A constraint with a domain for each node is told by its skew alone.
#[test]
fn many_domains_are_left_out() {
    let mut bench = Bench::new();
    for i in 0..40 {
        let node = bench.node(&format!("node-{i}"), &format!("zone-{i}"));
        bench.handle(Input::NodeSet(node));
    }
    let constraint = bench.constraint();
    let mut pod = bench.pod("p", |spec| spec.spread = [constraint].into());
    pod.node = Some(bench.name("node-7"));
    bench.set(&pod);
    let of_zone = "namespace=default workload=app=web topology_key=topology.kubernetes.io/zone when_unsatisfiable=DoNotSchedule";
    let skew = format!("strew_spread_skew{{{of_zone}}} 1");
    let families = bench.scheduler.metrics();
    check(
        &families,
        &[&skew, "strew_spread_left_out{what=domains} 40"],
    );
    let lines = picture(&families);
    assert!(
        !lines
            .iter()
            .any(|line| line.starts_with("strew_spread_pods"))
    );
}

/// The first decision is looked at closely: which plugin said how much.
#[test]
fn scores_tell_what_the_chosen_node_got() {
    let mut bench = Bench::new();
    three_pods(&mut bench);
    let families = bench.scheduler.metrics();
    let of_fit = |name: &str| {
        let mut families = families.iter();
        let family = families.find(|family| family.info.name == name).unwrap();
        let mut samples = family.samples.iter();
        let sample = samples.find(|sample| sample.labels[0] == "NodeResourcesFit");
        match &sample.unwrap().value {
            Value::Histogram(histogram) => histogram.sum(),
            _ => unreachable!(),
        }
    };
    // n2 keeps 3 of 4 CPUs free and 3 of 4 of its memory; n1 nothing of its CPU.
    assert_eq!(of_fit("strew_plugin_score_chosen"), 75.0);
    assert_eq!(of_fit("strew_plugin_score_range"), 38.0);
}

/// Without a clock there are counts, and no durations.
#[test]
fn without_a_clock_there_are_counts() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    let pod = bench.pod("p", |_| {});
    bench.set(&pod);
    bind_all(&mut bench);
    let attempts =
        "scheduler_schedule_attempts_total{result=scheduled profile=default-scheduler} 1";
    check(&bench.scheduler.metrics(), &[attempts]);
    let lines = picture(&bench.scheduler.metrics());
    for absent in ["attempt_duration", "event_handling", "plugin_execution"] {
        assert!(!lines.iter().any(|line| line.contains(absent)), "{absent}");
    }
}

/// From the first entry into the active queue until bound, whatever happened between.
#[test]
fn the_wait_of_a_pod_that_needed_two_attempts() {
    let mut bench = Bench::new();
    let pod = bench.pod("p", |_| {});
    bench.set(&pod);
    bench.poll();
    bench.now = bench.now + Span::from_secs(9);
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    bench.now = Instant::from_secs(bench.now.secs() + 30);
    bench.handle(Input::Tick);
    bind_all(&mut bench);
    let families = bench.scheduler.metrics();
    check(
        &families,
        &["scheduler_pod_scheduling_sli_duration_seconds{attempts=2} 1"],
    );
    let sli = &catalogue::POD_SCHEDULING_SLI_DURATION;
    let family = families.iter().find(|family| family.info == sli).unwrap();
    match &family.samples[0].value {
        Value::Histogram(histogram) => assert_eq!(histogram.sum(), 40.0),
        _ => unreachable!(),
    }
}

/// Every metric of the catalogue is told once, in its order, with as many labels as it has.
#[test]
fn all_of_the_catalogue_is_told() {
    let mut bench = Bench::new();
    three_pods(&mut bench);
    let families = bench.scheduler.metrics();
    let told: Vec<&str> = families.iter().map(|family| family.info.name).collect();
    let all: Vec<&str> = catalogue::ALL.iter().map(|info| info.name).collect();
    assert_eq!(told, all);
    for family in &families {
        for sample in &family.samples {
            let info = family.info;
            assert_eq!(sample.labels.len(), info.labels.len(), "{}", info.name);
        }
    }
}

/// Measuring, and reading the measurements, changes no decision.
#[test]
fn measuring_changes_no_decision() {
    for seed in 0..40 {
        let life = |measured: bool| {
            let mut api = Api::new(seed);
            (0..10).for_each(|_| api.change());
            for step in 0..200 {
                if measured && step % 7 == 0 {
                    api.scheduler.measure_with(clock);
                }
                api.step();
                if measured && step % 3 == 0 {
                    assert!(!api.scheduler.metrics().is_empty());
                }
            }
            (api.asked, api.now, api.dice.next_u64())
        };
        assert_eq!(life(true), life(false), "seed {seed}");
    }
}
