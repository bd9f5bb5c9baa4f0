//! Queueing hints of every plugin, through the machine. Source: spec/scheduler §1.13, §3, §4.3.

use strew_cluster::{AffinityTerm, HostPort, NodeFact, PodSpec};
use strew_model::{
    Effect as TaintEffect, Labels, Resources, Selector, Span, Taint, Toleration,
    TolerationOperator, well_known,
};
use strew_scheduler::machine::Input;

use crate::queue::Bench;

type Change = fn(&mut Bench);
type Spec = fn(&mut Bench, &mut PodSpec);

/// A pod that one plugin refuses; what happens; whether it is tried again before time makes it be.
#[test]
fn hints_of_every_plugin() {
    let too_large: Spec = |_, spec| spec.requests.cpu_milli = 5_000;
    let wants_all: Spec = |_, spec| spec.requests.cpu_milli = 4_000;
    let other_zone: Spec = |b, spec| {
        let zone = b.name("b");
        spec.node_affinity.node_selector = Labels::new(vec![(well_known::ZONE, zone)]);
    };
    let port: Spec = |b, spec| {
        spec.requests = Resources::default();
        spec.host_ports = [http(b)].into();
    };
    let apart: Spec = |b, spec| {
        spec.requests = Resources::default();
        spec.affinity.required_anti = [term(b)].into();
    };
    let together: Spec = |b, spec| {
        let mut term = term(b);
        let db = b.name("db");
        term.selector = Selector::of_labels([(b.app, db)]);
        spec.requests = Resources::default();
        spec.affinity.required = [term].into();
    };
    let spread: Spec = |b, spec| {
        spec.requests = Resources::default();
        let mut constraint = b.constraint();
        constraint.min_domains = Some(2);
        spec.spread = [constraint].into();
    };
    let unready: Spec = |_, _| {};
    let claim: Spec = |b, spec| {
        let name = b.name("data");
        spec.unsupported = [strew_cluster::Unsupported::ResourceClaim(name)].into();
    };

    let nothing_new: Change = |b| change_node(b, |_, _| {});
    let more_cpu: Change = |b| change_node(b, |_, n| n.allocatable.cpu_milli = 6_000);
    let less_cpu: Change = |b| change_node(b, |_, n| n.allocatable.cpu_milli = 3_000);
    let more_memory: Change = |b| change_node(b, |_, n| n.allocatable.memory = 9_000);
    let more_pods: Change = |b| change_node(b, |_, n| n.pods_max = 11);
    let moved: Change = |b| {
        change_node(b, |b, n| {
            let zone = b.name("b");
            n.labels = n.labels.with([(well_known::ZONE, zone)]);
        });
    };
    let other_label: Change = |b| change_node(b, |b, n| n.labels = n.labels.with([(b.app, b.web)]));
    let tainted: Change = |b| change_node(b, |b, n| n.taints = [taint(b)].into());
    let new_node: Change = |b| {
        let node = b.node("n2", "a");
        b.handle(Input::NodeSet(node));
    };
    let node_gone: Change = |b| {
        let name = b.name("n1");
        b.handle(Input::NodeGone(name));
    };
    let pod_gone: Change = |b| b.handle(Input::PodGone("there".into()));
    let pod_came: Change = |b| {
        let pod = b.bound("other", "n1");
        b.set(&pod);
    };
    let pod_shrank: Change = |b| {
        let mut pod = b.bound("there", "n1");
        pod.spec.host_ports = [http(b)].into();
        pod.spec.used.cpu_milli = 500;
        b.set(&pod);
    };
    let pod_leaves: Change = |b| {
        let mut pod = b.bound("there", "n1");
        pod.spec.host_ports = [http(b)].into();
        pod.terminating = true;
        b.set(&pod);
    };
    let relabelled: Change = |b| {
        let db = b.name("db");
        let mut pod = b.bound("there", "n1");
        pod.spec.host_ports = [http(b)].into();
        pod.labels = Labels::new(vec![(b.app, db)]);
        b.set(&pod);
    };
    let tolerates: Change = |b| {
        let mut pod = b.pod("p", |_| {});
        pod.spec.tolerations = [Toleration {
            key: None,
            operator: TolerationOperator::Exists,
            value: well_known::EMPTY,
            effect: None,
        }]
        .into();
        b.set(&pod);
    };
    let cordon: Change = |b| change_node(b, |_, n| n.unschedulable = true);
    let taint_first: Change = |b| change_node(b, |b, n| n.taints = [taint(b)].into());
    let as_is: Change = |_| {};
    let clean: Change = |b| change_node(b, |_, _| {});

    let cases: &[(&str, Change, Spec, Change, bool)] = &[
        (
            "fit: more of what is asked for",
            as_is,
            too_large,
            more_cpu,
            true,
        ),
        ("fit: less", as_is, wants_all, less_cpu, false),
        (
            "fit: more of something else is more",
            as_is,
            wants_all,
            more_memory,
            true,
        ),
        (
            "fit: more, and still too little",
            as_is,
            too_large,
            more_memory,
            false,
        ),
        ("fit: more pods", as_is, wants_all, more_pods, true),
        (
            "fit: new and large enough",
            as_is,
            wants_all,
            new_node,
            true,
        ),
        ("fit: new and too small", as_is, too_large, new_node, false),
        ("fit: a pod went", as_is, wants_all, pod_gone, true),
        ("fit: a pod shrank", as_is, wants_all, pod_shrank, true),
        ("fit: a pod came", as_is, wants_all, pod_came, false),
        ("fit: a pod is leaving", as_is, wants_all, pod_leaves, false),
        ("fit: labels", as_is, wants_all, other_label, false),
        ("fit: nothing", as_is, wants_all, nothing_new, false),
        ("affinity: matches now", as_is, other_zone, moved, true),
        (
            "affinity: another label",
            as_is,
            other_zone,
            other_label,
            false,
        ),
        (
            "affinity: new, no match",
            as_is,
            other_zone,
            new_node,
            false,
        ),
        ("affinity: room", as_is, other_zone, more_cpu, false),
        ("ports: its holder went", as_is, port, pod_gone, true),
        ("ports: new node", as_is, port, new_node, true),
        (
            "ports: its holder was relabelled",
            as_is,
            port,
            relabelled,
            false,
        ),
        ("ports: room", as_is, port, more_cpu, false),
        (
            "anti-affinity: the other went",
            as_is,
            apart,
            pod_gone,
            true,
        ),
        (
            "anti-affinity: the other is another",
            as_is,
            apart,
            relabelled,
            true,
        ),
        ("anti-affinity: one more", as_is, apart, pod_came, false),
        ("anti-affinity: the node moved", as_is, apart, moved, true),
        (
            "anti-affinity: another label",
            as_is,
            apart,
            other_label,
            false,
        ),
        ("anti-affinity: new node", as_is, apart, new_node, true),
        (
            "affinity to pods: one matches now",
            as_is,
            together,
            relabelled,
            true,
        ),
        (
            "affinity to pods: one that does not",
            as_is,
            together,
            pod_came,
            false,
        ),
        (
            "affinity to pods: one went",
            as_is,
            together,
            pod_gone,
            false,
        ),
        (
            "affinity to pods: new node with the key",
            as_is,
            together,
            new_node,
            true,
        ),
        ("spread: a match went", as_is, spread, pod_gone, true),
        ("spread: a match came", as_is, spread, pod_came, true),
        (
            "spread: a match is one no more",
            as_is,
            spread,
            relabelled,
            true,
        ),
        (
            "spread: a match is leaving",
            as_is,
            spread,
            pod_leaves,
            false,
        ),
        ("spread: the domain changed", as_is, spread, moved, true),
        ("spread: another label", as_is, spread, other_label, false),
        ("spread: taints", as_is, spread, tainted, true),
        ("spread: new node", as_is, spread, new_node, true),
        ("spread: node gone", as_is, spread, node_gone, true),
        ("spread: room", as_is, spread, more_cpu, false),
        ("cordoned: no more", cordon, unready, clean, true),
        ("cordoned: room", cordon, unready, cordon_and_room, false),
        ("cordoned: tolerated now", cordon, unready, tolerates, true),
        ("taint: gone", taint_first, unready, clean, true),
        (
            "taint: tolerated now",
            taint_first,
            unready,
            tolerates,
            true,
        ),
        (
            "taint: new node without",
            taint_first,
            unready,
            new_node,
            true,
        ),
        ("taint: a pod went", taint_first, unready, pod_gone, false),
        ("no such need: a new node", as_is, claim, new_node, false),
        ("no such need: a pod went", as_is, claim, pod_gone, false),
    ];
    for &(what, before, spec, change, retried) in cases {
        let mut bench = Bench::new();
        change_node(&mut bench, |_, _| {});
        let mut there = bench.bound("there", "n1");
        there.spec.host_ports = [http(&mut bench)].into();
        bench.set(&there);
        before(&mut bench);
        let mut pod = bench.pod("p", |_| {});
        spec(&mut bench, &mut pod.spec);
        bench.set(&pod);
        assert_eq!(bench.poll(), (vec![], 1), "{what}: refused at first");
        assert_eq!(bench.counts().unschedulable, 1, "{what}");
        // Longer than any back-off.
        bench.now = bench.now + Span::from_secs(20);
        change(&mut bench);
        let counts = bench.counts();
        let tried = counts.unschedulable == 0;
        assert_eq!(tried, retried, "{what}: {counts:?}");
    }
}

fn cordon_and_room(b: &mut Bench) {
    change_node(b, |_, n| {
        n.unschedulable = true;
        n.allocatable.cpu_milli = 9_000;
    });
}

fn change_node(bench: &mut Bench, change: fn(&mut Bench, &mut NodeFact)) {
    let mut node = bench.node("n1", "a");
    change(bench, &mut node);
    bench.handle(Input::NodeSet(node));
}

fn http(bench: &mut Bench) -> HostPort {
    HostPort {
        ip: bench.name("0.0.0.0"),
        any_ip: true,
        protocol: bench.name("TCP"),
        port: 80,
    }
}

fn taint(bench: &mut Bench) -> Taint {
    Taint {
        key: bench.name("dedicated"),
        value: well_known::EMPTY,
        effect: TaintEffect::NoSchedule,
    }
}

fn term(bench: &mut Bench) -> AffinityTerm {
    AffinityTerm {
        key: well_known::ZONE,
        selector: Selector::of_labels([(bench.app, bench.web)]),
        namespaces: Box::default(),
        namespace_selector: Selector::Nothing,
    }
}
