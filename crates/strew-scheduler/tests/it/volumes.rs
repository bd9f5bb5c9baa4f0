//! Pods with claims: where their volumes let them go. Source: spec/scheduler §3.12.

use std::sync::Arc;

use strew_cluster::volumes::AccessModes;
use strew_cluster::{ClaimFact, PodClaim, PodFact, PodSpec, StorageClassFact, VolumeFact};
use strew_model::{NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Symbol, well_known};
use strew_scheduler::preemption::{Budgets, Nominations, Outcome, preempt};
use strew_scheduler::{Compat, Decision, Engine, Profile};

use crate::reasons::{Make, Scene};
use crate::world::{RandomCluster, profile};

/// Every reason of the volume plugins, for the test that collects them.
pub(crate) const CASES: [(Make, &str); 15] = [
    (
        |scene| web(scene, &["data"]),
        "0/1 nodes are available: persistentvolumeclaim \"data\" not found.",
    ),
    (
        ephemeral,
        "0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim \
         \"web-data\".",
    ),
    (
        |scene| {
            scene.claim("web-data", |claim| claim.owner = Some("other".into()));
            ephemeral(scene)
        },
        "0/1 nodes are available: PVC default/web-data was not created for pod default/web (pod is not owner).",
    ),
    (
        |scene| {
            scene.claim("data", |claim| claim.lost = true);
            web(scene, &["data"])
        },
        "0/1 nodes are available: persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"pv-data\".",
    ),
    (
        |scene| {
            scene.claim("data", |claim| claim.terminating = true);
            web(scene, &["data"])
        },
        "0/1 nodes are available: persistentvolumeclaim \"data\" is being deleted.",
    ),
    (
        |scene| {
            scene.claim("data", |claim| claim.bound = false);
            web(scene, &["data"])
        },
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
    ),
    (
        |scene| {
            scene.claim("data", |_| {});
            web(scene, &["data"])
        },
        "0/1 nodes are available: persistentvolume \"pv-data\" not found.",
    ),
    (
        |scene| {
            scene.claim("web-data", |claim| claim.owner = Some("web".into()));
            ephemeral(scene)
        },
        "0/1 nodes are available: 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).",
    ),
    (
        |scene| {
            scene.claim("data", |claim| claim.once_pod = true);
            scene.volume("data", |_| {});
            let fact = web(scene, &["data"]);
            scene.bound("other", fact.spec.clone());
            fact
        },
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
         mode already in-use by another pod.",
    ),
    (
        |scene| {
            let fact = web(scene, &["data"]);
            full(scene);
            fact
        },
        "0/1 nodes are available: 1 node(s) exceed max volume count.",
    ),
    (
        |scene| {
            let b = scene.name("b");
            scene.claim("data", |_| {});
            scene.volume("data", |volume| volume.terms = Some([in_zone(b)].into()));
            web(scene, &["data"])
        },
        "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity.",
    ),
    (
        |scene| {
            let b = scene.name("b");
            scene.claim("data", |_| {});
            scene.volume("data", |volume| {
                volume.zones = [(well_known::ZONE_BETA, [b].into())].into();
            });
            web(scene, &["data"])
        },
        "0/1 nodes are available: 1 node(s) had no available volume zone.",
    ),
    (
        |scene| {
            scene.claim("data", |claim| {
                (claim.volume, claim.unattended) = (None, true);
            });
            web(scene, &["data"])
        },
        "0/1 nodes are available: strew does not implement what this pod needs: volume \"data\" uses \
         persistentvolumeclaim \"data\", which has no volume, and nothing here binds claims.",
    ),
    (
        |scene| {
            scene.profile.binds_claims = true;
            waiting(scene);
            web(scene, &["data"])
        },
        "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.",
    ),
    (
        |scene| {
            let fast = scene.name("fast");
            let class = StorageClassFact {
                waits: true,
                ..StorageClassFact::default()
            };
            scene.cluster.set_storage_class(fast, Some(class));
            scene.claim("data", |claim| {
                (claim.volume, claim.bound, claim.class) = (None, false, Some(fast));
            });
            web(scene, &["data"])
        },
        "0/1 nodes are available: strew does not implement what this pod needs: volume \"data\" uses \
         persistentvolumeclaim \"data\" of storage class \"fast\", which is not bound before its first pod is placed.",
    ),
];

impl Scene {
    /// A claim that is bound to the volume `pv-NAME`, changed.
    fn claim(&mut self, name: &str, change: impl FnOnce(&mut ClaimFact)) {
        let mut fact = bound_to(self.name(&format!("pv-{name}")));
        change(&mut fact);
        let name = self.name(name);
        let namespace = well_known::DEFAULT_NAMESPACE;
        self.cluster.set_claim(namespace, name, Some(fact));
    }

    /// The volume of such a claim, which any node takes, changed.
    fn volume(&mut self, claim: &str, change: impl FnOnce(&mut VolumeFact)) {
        let mut fact = VolumeFact::default();
        change(&mut fact);
        let name = self.name(&format!("pv-{claim}"));
        self.cluster.set_volume(name, Some(fact));
    }
}

pub(crate) fn bound_to(volume: Symbol) -> ClaimFact {
    ClaimFact {
        volume: Some(volume),
        bound: true,
        ..ClaimFact::default()
    }
}

pub(crate) fn in_zone(zone: Symbol) -> NodeSelectorTerm {
    NodeSelectorTerm::AllOf {
        expressions: [NodeExpression {
            key: well_known::ZONE,
            operator: NodeOperator::Label(Operator::In([zone].into())),
        }]
        .into(),
        fields: Box::default(),
    }
}

/// Class `local`, whose claims wait for a volume that is there already, and claim `data` of it: 10 bytes.
fn waiting(scene: &mut Scene) {
    let local = scene.name("local");
    let class = StorageClassFact {
        waits: true,
        ..StorageClassFact::default()
    };
    scene.cluster.set_storage_class(local, Some(class));
    scene.claim("data", |claim| {
        (claim.volume, claim.bound, claim.class) = (None, false, Some(local));
        (claim.size, claim.modes) = (10, AccessModes::of(["ReadWriteOnce"]));
    });
}

/// Node a1, and a pod with volumes of these claims, each named like its claim.
fn web(scene: &mut Scene, claims: &[&str]) -> PodFact {
    scene.node("a1", |_| {});
    let claims = claims.iter().map(|claim| PodClaim {
        volume: scene.name(claim),
        named: Some(scene.name(claim)),
    });
    let claims = claims.collect();
    scene.pod(
        "web",
        PodSpec {
            claims,
            ..PodSpec::default()
        },
    )
}

/// Node a1, and a pod `web` with a generic ephemeral volume `data`.
fn ephemeral(scene: &mut Scene) -> PodFact {
    let mut fact = web(scene, &["data"]);
    fact.spec.claims[0].named = None;
    fact
}

/// Two claims `data` and `logs` of a driver that attaches one volume to node a1, where `logs` is used.
fn full(scene: &mut Scene) {
    let driver = scene.name("ebs.csi.aws.com");
    for claim in ["data", "logs"] {
        let handle = scene.name(&format!("vol-{claim}"));
        scene.claim(claim, |_| {});
        scene.volume(claim, |volume| volume.attached = Some((driver, handle)));
    }
    let node = scene.name("a1");
    let limits = [(driver, 1)].into();
    scene.cluster.set_attach_limits(node, Some(limits));
    let other = web(scene, &["logs"]);
    scene.bound("logger", other.spec);
}

#[test]
fn decisions_on_pods_with_claims_equal_the_oracle() {
    let mut placed = 0;
    for seed in 0..150 {
        let mut world = RandomCluster::storing(seed);
        let mut profile = profile(seed);
        profile.binds_claims = seed % 2 == 1;
        let mut engine = Engine::new(profile);
        let mut asked: Vec<Arc<str>> = Vec::new();
        for step in 0..120 {
            world.step();
            if step % 3 != 0 {
                continue;
            }
            let known = { asked.get(step / 6) }
                .filter(|_| step % 6 == 0)
                .and_then(|uid| world.cluster.find_pod(uid));
            let pod = known.unwrap_or_else(|| world.set_pod(false));
            asked.push(world.cluster.pod(pod).uid.clone());
            world.cluster.unbind(pod);
            let compared = world
                .compare(&mut engine, pod)
                .and_then(|()| world.cluster.audit());
            if let Err(why) = compared {
                panic!("seed {seed}, step {step}: {why}");
            }
            if let Decision::Place { node, .. } = engine.decide(&mut world.cluster, pod) {
                placed += usize::from(!world.cluster.spec_of(pod).claims.is_empty());
                world.cluster.bind(pod, node);
            }
        }
    }
    assert!(placed > 300, "{placed} pods with claims were placed");
}

/// A volume of class `local` with room for claim `data`, changed.
fn local(scene: &mut Scene, name: &str, change: impl FnOnce(&mut VolumeFact)) {
    let class = Some(scene.name("local"));
    scene.volume(name, |volume| {
        volume.class = class;
        (volume.capacity, volume.available) = (10, true);
        volume.modes = AccessModes::of(["ReadWriteOnce", "ReadOnlyMany"]);
        change(volume);
    });
}

#[test]
fn a_claim_that_waits_gets_the_smallest_volume_that_fits_and_that_the_node_reaches() {
    let mut scene = Scene::new();
    waiting(&mut scene);
    let fact = web(&mut scene, &["data"]);
    let pod = scene.cluster.set_pod(fact);
    let (a, b) = (scene.name("a"), scene.name("b"));
    let key = (well_known::DEFAULT_NAMESPACE, scene.name("data"));
    let a1 = scene.name("a1");
    let node = scene.cluster.find_node(a1).unwrap();
    let fit = |scene: &mut Scene| {
        let profile = Profile {
            binds_claims: true,
            ..Profile::default()
        };
        let decision = Engine::new(profile).decide(&mut scene.cluster, pod);
        matches!(decision, Decision::Place { .. })
    };
    // Each is as it must be but for one thing.
    local(&mut scene, "small", |volume| volume.capacity = 9);
    local(&mut scene, "block", |volume| volume.block = true);
    local(&mut scene, "released", |volume| volume.available = false);
    local(&mut scene, "goes", |volume| volume.terminating = true);
    local(&mut scene, "many", |volume| {
        volume.modes = AccessModes::of(["ReadOnlyMany"])
    });
    local(&mut scene, "of-none", |volume| volume.class = None);
    local(&mut scene, "elsewhere", |volume| {
        volume.terms = Some([in_zone(b)].into())
    });
    let other = (key.0, scene.name("logs"));
    local(&mut scene, "kept", |volume| {
        volume.claim = Some((other, "".into()))
    });
    assert!(!fit(&mut scene));
    local(&mut scene, "large", |volume| volume.capacity = 20);
    local(&mut scene, "right", |volume| {
        volume.terms = Some([in_zone(a)].into())
    });
    assert!(fit(&mut scene));
    scene.cluster.bind(pod, node);
    let assumed = scene.cluster.volumes().assumed(key);
    assert_eq!(assumed, Some(scene.name("pv-right")));
    scene.cluster.unbind(pod);
    assert_eq!(scene.cluster.volumes().assumed(key), None);
    // A volume that is kept for the claim is the only one, even where it is of no use.
    local(&mut scene, "its", |volume| {
        volume.claim = Some((key, "".into()))
    });
    assert!(fit(&mut scene));
    local(&mut scene, "its", |volume| {
        volume.claim = Some((key, "".into()));
        volume.terms = Some([in_zone(b)].into());
    });
    assert!(!fit(&mut scene));
    // Kept for an earlier claim of this name.
    local(&mut scene, "its", |volume| {
        volume.claim = Some((key, "old".into()))
    });
    assert!(fit(&mut scene));
}

#[test]
fn no_two_claims_are_promised_one_volume() {
    let mut scene = Scene::new();
    waiting(&mut scene);
    let local_class = scene.name("local");
    scene.claim("logs", |claim| {
        (claim.volume, claim.bound, claim.class) = (None, false, Some(local_class));
        claim.size = 5;
    });
    local(&mut scene, "one", |_| {});
    let both = web(&mut scene, &["data", "logs"]);
    let profile = Profile {
        binds_claims: true,
        ..Profile::default()
    };
    let mut engine = Engine::new(profile);
    let pod = scene.cluster.set_pod(both);
    let is_placed = |decision| matches!(decision, Decision::Place { .. });
    assert!(!is_placed(engine.decide(&mut scene.cluster, pod)));
    local(&mut scene, "two", |volume| volume.capacity = 6);
    assert!(is_placed(engine.decide(&mut scene.cluster, pod)));
    // A pod that got a node keeps its volume until the volume controller has written it down.
    let a1 = scene.name("a1");
    let node = scene.cluster.find_node(a1).unwrap();
    scene.cluster.bind(pod, node);
    let [data, logs, one, two] = ["data", "logs", "pv-one", "pv-two"].map(|n| scene.name(n));
    let of = |scene: &Scene, claim| {
        let key = (well_known::DEFAULT_NAMESPACE, claim);
        scene.cluster.volumes().assumed(key)
    };
    assert_eq!((of(&scene, data), of(&scene, logs)), (Some(one), Some(two)));
    scene.claim("more", |claim| {
        (claim.volume, claim.bound, claim.class) = (None, false, Some(local_class));
    });
    let mut third = web(&mut scene, &["more"]);
    (third.uid, third.name) = ("third".into(), "third".into());
    let third = scene.cluster.set_pod(third);
    assert!(!is_placed(engine.decide(&mut scene.cluster, third)));
    scene.cluster.unbind(pod);
    assert!(is_placed(engine.decide(&mut scene.cluster, third)));
}

#[test]
fn a_pod_follows_its_volume_and_what_is_known_of_it() {
    let mut scene = Scene::new();
    let fact = web(&mut scene, &["data"]);
    let b = scene.name("b");
    scene.node("b1", |node| {
        node.labels = node.labels.with([(well_known::ZONE, b)])
    });
    scene.claim("data", |_| {});
    let mut engine = Engine::new(Profile::default());
    let pod = scene.cluster.set_pod(fact);
    let mut goes_to = |scene: &mut Scene| match engine.decide(&mut scene.cluster, pod) {
        Decision::Place { node, .. } => {
            let name = scene.cluster.node(node).name();
            scene.cluster.names.text(name).to_owned()
        }
        Decision::Unfit(why) => why.message(2, &scene.cluster.names),
    };
    let missing = "0/2 nodes are available: persistentvolume \"pv-data\" not found.";
    assert_eq!(goes_to(&mut scene), missing);
    for (zone, expected) in [("b", "b1"), ("a", "a1"), ("b", "b1")] {
        let zone = scene.name(zone);
        scene.volume("data", |volume| volume.terms = Some([in_zone(zone)].into()));
        assert_eq!(goes_to(&mut scene), expected);
    }
    let c = scene.name("c");
    scene.volume("data", |volume| volume.terms = Some([in_zone(c)].into()));
    let nowhere =
        "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.";
    assert_eq!(goes_to(&mut scene), nowhere);
    // The same class, the same pods, the same nodes: only the volume is another.
    scene.volume("data", |volume| {
        volume.zones = [(well_known::ZONE, [b].into())].into()
    });
    assert_eq!(goes_to(&mut scene), "b1");
}

#[test]
fn a_shared_volume_and_one_that_is_there_already_are_counted_once() {
    let mut scene = Scene::new();
    let fact = web(&mut scene, &["logs"]);
    full(&mut scene);
    let pod = scene.cluster.set_pod(fact);
    let decision = Engine::new(Profile::default()).decide(&mut scene.cluster, pod);
    assert!(matches!(decision, Decision::Place { .. }), "{decision:?}");
}

/// They are of one class, and have volumes of their own.
#[test]
fn pods_of_a_workload_with_ephemeral_volumes_each_follow_their_own() {
    let mut scene = Scene::new();
    let first = ephemeral(&mut scene);
    let second = PodFact {
        uid: "web2".into(),
        name: "web2".into(),
        ..first.clone()
    };
    let (b, c) = (scene.name("b"), scene.name("c"));
    scene.node("b1", |node| {
        node.labels = node.labels.with([(well_known::ZONE, b)])
    });
    for (pod, zone) in [("web", c), ("web2", b)] {
        let claim = format!("{pod}-data");
        scene.claim(&claim, |claim| claim.owner = Some(pod.into()));
        scene.volume(&claim, |volume| volume.terms = Some([in_zone(zone)].into()));
    }
    let [first, second] = [first, second].map(|fact| scene.cluster.set_pod(fact));
    let class = |pod| scene.cluster.pod(pod).class;
    assert_eq!(class(first), class(second));
    let mut engine = Engine::new(Profile::default());
    let nowhere = engine.decide(&mut scene.cluster, first);
    assert!(matches!(nowhere, Decision::Unfit(_)), "{nowhere:?}");
    let placed = engine.decide(&mut scene.cluster, second);
    assert!(matches!(placed, Decision::Place { .. }), "{placed:?}");
}

/// The holder of the claim or of the last place is evicted, if its priority is lower.
#[test]
fn preemption_frees_claims_and_places_for_volumes() {
    let in_use: Make = |scene| {
        scene.claim("data", |claim| claim.once_pod = true);
        scene.volume("data", |_| {});
        let fact = web(scene, &["data"]);
        scene.bound("victim", fact.spec.clone());
        fact
    };
    let exceeded: Make = |scene| {
        let fact = web(scene, &["data"]);
        full(scene);
        fact
    };
    for make in [in_use, exceeded] {
        let mut scene = Scene::new();
        let mut fact = make(&mut scene);
        fact.spec.priority = 10;
        let pod = scene.cluster.set_pod(fact);
        let victim = scene.cluster.pods().map(|(p, _)| p).find(|&p| p != pod);
        let found = preempt_for(&mut scene, pod);
        let Outcome::Preempt(eviction) = found else {
            panic!("{found:?}");
        };
        assert_eq!(eviction.victims, Vec::from_iter(victim));
    }
}

/// kube-scheduler takes a claim of that name in any namespace for the claim that is in use.
#[test]
fn preemption_for_a_claim_in_use_looks_at_namespaces_only_where_asked_to() {
    for (compat, helped) in [(Compat::V1_36, true), (Compat::Strew, false)] {
        let mut scene = Scene::new();
        scene.profile.compat = compat;
        scene.claim("data", |claim| claim.once_pod = true);
        scene.volume("data", |_| {});
        let mut fact = web(&mut scene, &["data"]);
        let mut holder = scene.pod("holder", fact.spec.clone());
        holder.spec.priority = 20;
        holder.node = Some(scene.name("a1"));
        let mut stranger = PodFact {
            uid: "stranger".into(),
            namespace: scene.name("other"),
            ..holder.clone()
        };
        stranger.spec.priority = 0;
        scene.cluster.set_pod(holder);
        scene.cluster.set_pod(stranger);
        fact.spec.priority = 10;
        let pod = scene.cluster.set_pod(fact);
        let found = preempt_for(&mut scene, pod);
        assert_eq!(matches!(found, Outcome::Preempt(_)), helped, "{found:?}");
    }
}

fn preempt_for(scene: &mut Scene, pod: strew_cluster::PodIdx) -> Outcome {
    let mut engine = Engine::new(scene.profile.clone());
    let cluster = &mut scene.cluster;
    let (budgets, nominations) = (Budgets::default(), Nominations::new());
    let Decision::Unfit(unfit) = engine.decide_with(cluster, pod, &nominations) else {
        panic!("it fits");
    };
    preempt(&mut engine, cluster, pod, &unfit, &budgets, &nominations, 0).outcome
}
