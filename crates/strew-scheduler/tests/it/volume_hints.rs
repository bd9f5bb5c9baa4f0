//! When pods with claims are tried again. Source: spec/scheduler §3.12, §4.3.

use strew_cluster::{ClaimFact, PodClaim, StorageClassFact, VolumeFact};
use strew_model::{Labels, Resources, Span, well_known};
use strew_scheduler::machine::Input;

use crate::queue::Bench;
use crate::volumes::{bound_to, in_zone};

type Change = fn(&mut Bench);

/// A pod with the claim `data` that one plugin refuses; what happens; whether it is tried again before time makes it be.
#[test]
fn hints_of_the_volume_plugins() {
    let no_claim: Change = |b| volume(b, "pv", |_| {});
    let no_volume: Change = |b| claim(b, "data", |_| {});
    let unbound: Change = |b| claim(b, "data", |c| c.bound = false);
    let waits: Change = |b| {
        class(b, true);
        let fast = b.name("fast");
        claim(b, "data", |c| {
            (c.volume, c.bound, c.class) = (None, false, Some(fast));
        });
    };
    let in_use: Change = |b| {
        claim(b, "data", |c| c.once_pod = true);
        volume(b, "pv", |_| {});
        let mut holder = b.bound("holder", "n1");
        holder.spec.used = Resources::default();
        holder.spec.claims = [used(b, "data")].into();
        b.set(&holder);
    };
    let other_zone: Change = |b| {
        claim(b, "data", |_| {});
        let zone = b.name("b");
        volume(b, "pv", |v| {
            v.zones = [(well_known::ZONE, [zone].into())].into()
        });
    };
    let other_affinity: Change = |b| {
        claim(b, "data", |_| {});
        let zone = b.name("b");
        volume(b, "pv", |v| v.terms = Some([in_zone(zone)].into()));
    };
    let exceeded: Change = |b| {
        let (driver, handle) = (b.name("ebs"), b.name("vol-1"));
        claim(b, "data", |_| {});
        volume(b, "pv", |v| v.attached = Some((driver, handle)));
        limits(b, 0);
        let mut other = b.bound("holder", "n1");
        other.spec.used = Resources::default();
        other.spec.claims = [used(b, "elsewhere")].into();
        b.set(&other);
    };

    let the_claim: Change = |b| claim(b, "data", |_| {});
    let same_claim_again: Change = |b| claim(b, "data", |c| c.bound = false);
    let another_claim: Change = |b| claim(b, "logs", |_| {});
    let namesake: Change = |b| {
        let (namespace, name, pv) = (b.name("other"), b.name("data"), b.name("pv"));
        let claim = Some(bound_to(pv));
        b.handle(Input::ClaimSet {
            namespace,
            name,
            claim,
        });
    };
    let claim_gone: Change = |b| {
        let name = b.name("data");
        b.handle(Input::ClaimSet {
            namespace: well_known::DEFAULT_NAMESPACE,
            name,
            claim: None,
        });
    };
    let the_volume: Change = |b| volume(b, "pv", |_| {});
    let another_volume: Change = |b| volume(b, "pv-2", |_| {});
    let reattached: Change = |b| {
        let (driver, handle, zone) = (b.name("ebs"), b.name("vol-1"), b.name("b"));
        volume(b, "pv", |v| {
            v.zones = [(well_known::ZONE, [zone].into())].into();
            v.attached = Some((driver, handle));
        });
    };
    let waiting_class: Change = |b| class(b, true);
    let immediate_class: Change = |b| class(b, false);
    let more: Change = |b| limits(b, 1);
    let fewer: Change = |b| limits(b, -1);
    let holder_gone: Change = |b| b.handle(Input::PodGone("holder".into()));
    let stranger_gone: Change = |b| b.handle(Input::PodGone("there".into()));
    let new_node: Change = |b| {
        let node = b.node("n2", "a");
        b.handle(Input::NodeSet(node));
    };
    let moved: Change = |b| {
        let node = b.node("n1", "b");
        b.handle(Input::NodeSet(node));
    };
    let cases: &[(&str, Change, Change, bool)] = &[
        ("no claim: it came", no_claim, the_claim, true),
        ("no claim: another came", no_claim, another_claim, false),
        ("no claim: one elsewhere", no_claim, namesake, false),
        ("no claim: a node came", no_claim, new_node, true),
        ("no claim: a volume came", no_claim, another_volume, false),
        ("unbound: bound now", unbound, the_claim, true),
        ("unbound: as it was", unbound, same_claim_again, false),
        ("unbound: it went", unbound, claim_gone, false),
        ("unbound: a volume came", unbound, the_volume, true),
        ("unbound: a class came", unbound, immediate_class, true),
        ("waits: bound now", waits, the_claim, true),
        ("waits: another claim", waits, another_claim, false),
        ("no volume: it came", no_volume, the_volume, true),
        ("no volume: another came", no_volume, another_volume, true),
        ("no volume: the claim again", no_volume, unbound, true),
        ("no volume: a waiting class", no_volume, waiting_class, true),
        (
            "no volume: another class",
            no_volume,
            immediate_class,
            false,
        ),
        ("in use: the holder went", in_use, holder_gone, true),
        ("in use: another went", in_use, stranger_gone, false),
        ("in use: a node came", in_use, new_node, true),
        ("in use: a volume came", in_use, another_volume, false),
        ("zone: the node moved", other_zone, moved, true),
        ("zone: the volume did", other_zone, the_volume, true),
        ("zone: another driver", other_zone, reattached, false),
        ("affinity: the node moved", other_affinity, moved, true),
        (
            "affinity: a volume came",
            other_affinity,
            another_volume,
            true,
        ),
        ("affinity: a pod went", other_affinity, stranger_gone, false),
        ("limit: it grew", exceeded, more, true),
        ("limit: it shrank", exceeded, fewer, false),
        (
            "limit: a pod with a claim went",
            exceeded,
            holder_gone,
            true,
        ),
        ("limit: a pod without went", exceeded, stranger_gone, false),
        ("limit: a node came", exceeded, new_node, false),
        ("limit: a volume came", exceeded, another_volume, false),
    ];
    for &(what, before, change, retried) in cases {
        let mut bench = Bench::new();
        let node = bench.node("n1", "a");
        bench.handle(Input::NodeSet(node));
        let mut there = bench.bound("there", "n1");
        there.spec.used = Resources::default();
        bench.set(&there);
        before(&mut bench);
        let mut pod = bench.pod("p", |_| {});
        pod.spec.claims = [used(&mut bench, "data")].into();
        bench.set(&pod);
        assert_eq!(bench.poll(), (vec![], 1), "{what}: refused at first");
        assert_eq!(bench.counts().unschedulable, 1, "{what}");
        // Longer than any back-off.
        bench.now = bench.now + Span::from_secs(20);
        change(&mut bench);
        let counts = bench.counts();
        assert_eq!(counts.unschedulable == 0, retried, "{what}: {counts:?}");
    }
}

fn used(bench: &mut Bench, claim: &str) -> PodClaim {
    let claim = bench.name(claim);
    PodClaim {
        volume: claim,
        named: Some(claim),
    }
}

fn claim(bench: &mut Bench, name: &str, change: impl FnOnce(&mut ClaimFact)) {
    let mut fact = bound_to(bench.name("pv"));
    change(&mut fact);
    let name = bench.name(name);
    bench.handle(Input::ClaimSet {
        namespace: well_known::DEFAULT_NAMESPACE,
        name,
        claim: Some(fact),
    });
}

fn volume(bench: &mut Bench, name: &str, change: impl FnOnce(&mut VolumeFact)) {
    let mut fact = VolumeFact::default();
    change(&mut fact);
    let name = bench.name(name);
    let volume = Some(fact);
    bench.handle(Input::VolumeSet { name, volume });
}

fn class(bench: &mut Bench, waits: bool) {
    let name = bench.name("fast");
    let class = Some(StorageClassFact {
        waits,
        ..StorageClassFact::default()
    });
    bench.handle(Input::StorageClassSet { name, class });
}

fn limits(bench: &mut Bench, more: i64) {
    let (node, driver) = (bench.name("n1"), bench.name("ebs"));
    let limits = Some([(driver, more)].into());
    bench.handle(Input::AttachLimitsSet { node, limits });
}

#[test]
fn a_pod_of_a_workload_is_placed_as_soon_as_its_claim_is_bound() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    let mut pod = bench.pod("p", |_| {});
    pod.labels = Labels::default();
    pod.spec.claims = [used(&mut bench, "data")].into();
    bench.set(&pod);
    assert_eq!(bench.poll(), (vec![], 1));
    bench.now = bench.now + Span::from_secs(20);
    volume(&mut bench, "pv", |_| {});
    claim(&mut bench, "data", |c| c.bound = false);
    assert_eq!(bench.poll(), (vec![], 1));
    bench.now = bench.now + Span::from_secs(20);
    claim(&mut bench, "data", |_| {});
    assert_eq!(bench.poll(), (vec!["p".into()], 0));
}
