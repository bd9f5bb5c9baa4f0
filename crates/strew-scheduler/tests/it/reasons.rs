//! Every reason that a node is refused for, met in a case made for it, in kube-scheduler's words.
//!
//! Source: spec/scheduler §2.9, §3.

use std::collections::BTreeSet;
use std::rc::Rc;

use strew_cluster::{AffinityTerm, Cluster, NodeFact, PodFact, Policy, SpreadConstraint};
use strew_cluster::{HostPort, PodHistory, PodSpec};
use strew_model::{
    Effect, FieldMatch, Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator,
    Resources, Selector, Symbol, Taint, well_known,
};
use strew_scheduler::{
    AddedAffinity, Compat, Decision, DefaultConstraints, Engine, Profile, Reason, Unfit,
};

use crate::volumes;

/// All but `OtherNodeName`: a pod that names its node is never in the queue.
const MET: [&str; 32] = [
    "AddedAffinity",
    "ClaimInUse",
    "ClaimLost",
    "ClaimMissing",
    "ClaimOfAnother",
    "ClaimTerminating",
    "ConflictingNames",
    "Cordoned",
    "Cpu",
    "EphemeralClaimMissing",
    "EphemeralStorage",
    "ExistingAntiAffinity",
    "Memory",
    "MissingTopologyLabel",
    "NarrowedOut",
    "NarrowedOutBeside",
    "NoVolumeToBind",
    "NodeAffinity",
    "PodAffinity",
    "PodAntiAffinity",
    "Ports",
    "Scalar",
    "Skew",
    "TooManyPods",
    "UnboundClaims",
    "Unsupported",
    "UntoleratedTaint",
    "VolumeLimit",
    "VolumeMissing",
    "VolumeNodeAffinity",
    "VolumeZone",
    "VolumesMissing",
];

/// A new variant has no name here until it has a case below.
fn variant(reason: &Reason) -> &'static str {
    match reason {
        Reason::Cordoned => "Cordoned",
        Reason::OtherNodeName => "OtherNodeName",
        Reason::UntoleratedTaint => "UntoleratedTaint",
        Reason::NodeAffinity => "NodeAffinity",
        Reason::AddedAffinity => "AddedAffinity",
        Reason::ConflictingNames => "ConflictingNames",
        Reason::NarrowedOut(_) => "NarrowedOut",
        Reason::NarrowedOutBeside(..) => "NarrowedOutBeside",
        Reason::Ports => "Ports",
        Reason::TooManyPods => "TooManyPods",
        Reason::Cpu => "Cpu",
        Reason::Memory => "Memory",
        Reason::EphemeralStorage => "EphemeralStorage",
        Reason::Scalar(_) => "Scalar",
        Reason::Skew => "Skew",
        Reason::MissingTopologyLabel => "MissingTopologyLabel",
        Reason::PodAffinity => "PodAffinity",
        Reason::PodAntiAffinity => "PodAntiAffinity",
        Reason::ExistingAntiAffinity => "ExistingAntiAffinity",
        Reason::ClaimMissing(_) => "ClaimMissing",
        Reason::EphemeralClaimMissing(_) => "EphemeralClaimMissing",
        Reason::ClaimOfAnother { .. } => "ClaimOfAnother",
        Reason::ClaimLost(..) => "ClaimLost",
        Reason::ClaimTerminating(_) => "ClaimTerminating",
        Reason::UnboundClaims => "UnboundClaims",
        Reason::VolumeMissing(_) => "VolumeMissing",
        Reason::VolumesMissing => "VolumesMissing",
        Reason::ClaimInUse => "ClaimInUse",
        Reason::VolumeLimit => "VolumeLimit",
        Reason::VolumeNodeAffinity => "VolumeNodeAffinity",
        Reason::NoVolumeToBind => "NoVolumeToBind",
        Reason::VolumeZone => "VolumeZone",
        Reason::Unsupported(_) => "Unsupported",
    }
}

/// Makes a cluster of the node `a1`, and what else a case needs; gives the pod that is refused.
pub(crate) type Make = fn(&mut Scene) -> PodFact;

#[test]
fn every_reason_is_met_in_its_own_words() {
    let cases: [(Make, &str); 18] = [
        (
            cordoned,
            "0/1 nodes are available: 1 node(s) were unschedulable.",
        ),
        (
            tainted,
            "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        ),
        (
            node_affinity,
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        ),
        (
            added_affinity,
            "0/1 nodes are available: 1 node(s) didn't match scheduler-enforced node affinity.",
        ),
        (
            conflicting_names,
            "0/1 nodes are available: pod affinity terms conflict.",
        ),
        (
            narrowed_out,
            "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable.",
        ),
        (
            narrowed_out_beside,
            "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity NodeUnschedulable], \
             2 node(s) were unschedulable.",
        ),
        (
            ports,
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
        ),
        (too_many_pods, "0/1 nodes are available: 1 Too many pods."),
        (cpu, "0/1 nodes are available: 1 Insufficient cpu."),
        (memory, "0/1 nodes are available: 1 Insufficient memory."),
        (
            ephemeral_storage,
            "0/1 nodes are available: 1 Insufficient ephemeral-storage.",
        ),
        (
            scalar,
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        ),
        (
            skew,
            "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.",
        ),
        (
            missing_topology_label,
            "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label).",
        ),
        (
            pod_affinity,
            "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
        ),
        (
            pod_anti_affinity,
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
        ),
        (
            existing_anti_affinity,
            "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
        ),
    ];
    let mut met = BTreeSet::new();
    for (make, sentence) in cases.into_iter().chain(volumes::CASES) {
        let mut scene = Scene::new();
        let fact = make(&mut scene);
        let Scene {
            mut cluster,
            profile,
        } = scene;
        let pod = cluster.set_pod(fact);
        let Decision::Unfit(unfit) = Engine::new(profile).decide(&mut cluster, pod) else {
            panic!("placed, for all of: {sentence}");
        };
        assert_eq!(
            unfit.message(cluster.nodes_present(), &cluster.names),
            sentence
        );
        match &*unfit {
            Unfit::NoNodes => {}
            Unfit::PreFilter(refusal) => met.extend(refusal.reasons.iter().map(variant)),
            Unfit::EveryNode(refusals) => {
                let reasons = refusals.counted().flat_map(|(refusal, _)| &refusal.reasons);
                met.extend(reasons.map(variant));
            }
        }
    }
    assert_eq!(met.into_iter().collect::<Vec<_>>(), MET);
}

/// kube-scheduler reads the match label keys of default constraints, and drops them (kubernetes#129198).
#[test]
fn match_label_keys_of_defaults_hold_for_strew_only() {
    for (compat, n_feasible) in [(Compat::V1_36, 1), (Compat::Strew, 2)] {
        let mut scene = Scene::new();
        scene.node("a1", |_| {});
        let b = scene.name("b");
        scene.node("b1", |node| {
            node.labels = node.labels.with([(well_known::ZONE, b)])
        });
        let (app, web, rev) = (scene.name("app"), scene.name("web"), scene.name("rev"));
        let (old, new) = (scene.name("1"), scene.name("2"));
        let of_web = Labels::new(vec![(app, web)]);
        scene
            .cluster
            .set_service(well_known::DEFAULT_NAMESPACE, web, Some(of_web.clone()));
        let by_zone = SpreadConstraint {
            match_label_keys: [rev].into(),
            selector: Selector::Nothing,
            ..scene.constraint(well_known::ZONE)
        };
        scene.profile.default_constraints = DefaultConstraints::List(vec![by_zone]);
        scene.profile.compat = compat;
        let mut before = scene.pod("web-1", PodSpec::default());
        before.labels = of_web.with([(rev, old)]);
        before.node = Some(scene.name("a1"));
        scene.cluster.set_pod(before);
        let mut fact = scene.pod("web-2", PodSpec::default());
        fact.labels = of_web.with([(rev, new)]);
        let pod = scene.cluster.set_pod(fact);
        let mut engine = Engine::new(scene.profile);
        let evaluation = engine.evaluate(&mut scene.cluster, pod);
        // The old revision's pod in zone a counts only where its revision does not matter.
        assert_eq!(evaluation.feasible.len(), n_feasible, "{compat:?}");
    }
}

/// A pod's own match label keys hold, unless their gate is off: the API server of before v1.34 did not merge them.
#[test]
fn match_label_keys_of_pods_hold() {
    for (gate, n_feasible) in [(true, 2), (false, 1)] {
        let mut scene = Scene::new();
        scene.node("a1", |_| {});
        let b = scene.name("b");
        scene.node("b1", |node| {
            node.labels = node.labels.with([(well_known::ZONE, b)])
        });
        let (app, web, rev) = (scene.name("app"), scene.name("web"), scene.name("rev"));
        let (old, new) = (scene.name("1"), scene.name("2"));
        let of_web = Labels::new(vec![(app, web)]);
        scene.profile.gates.match_label_keys = gate;
        let mut before = scene.pod("web-1", PodSpec::default());
        before.labels = of_web.with([(rev, old)]);
        before.node = Some(scene.name("a1"));
        scene.cluster.set_pod(before);
        let by_zone = SpreadConstraint {
            match_label_keys: [rev].into(),
            selector: Selector::of_labels([(app, web)]),
            ..scene.constraint(well_known::ZONE)
        };
        let spec = PodSpec {
            spread: [by_zone].into(),
            ..PodSpec::default()
        };
        let mut fact = scene.pod("web-2", spec);
        fact.labels = of_web.with([(rev, new)]);
        let pod = scene.cluster.set_pod(fact);
        let mut engine = Engine::new(scene.profile);
        let evaluation = engine.evaluate(&mut scene.cluster, pod);
        assert_eq!(evaluation.feasible.len(), n_feasible, "gate on: {gate}");
    }
}

fn cordoned(scene: &mut Scene) -> PodFact {
    scene.node("a1", |node| node.unschedulable = true);
    scene.pod("web", PodSpec::default())
}

fn tainted(scene: &mut Scene) -> PodFact {
    let key = scene.name("dedicated");
    let taint = Taint {
        key,
        value: well_known::EMPTY,
        effect: Effect::NoSchedule,
    };
    scene.node("a1", |node| node.taints = [taint].into());
    scene.pod("web", PodSpec::default())
}

fn node_affinity(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let pair = (scene.name("disk"), scene.name("ssd"));
    let mut spec = PodSpec::default();
    spec.node_affinity.node_selector = Labels::new(vec![pair]);
    scene.pod("web", spec)
}

fn added_affinity(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let (key, value) = (scene.name("disk"), scene.name("ssd"));
    let expression = NodeExpression {
        key,
        operator: NodeOperator::Label(Operator::In([value].into())),
    };
    scene.profile.added_affinity = AddedAffinity {
        required: Some(vec![NodeSelectorTerm::AllOf {
            expressions: [expression].into(),
            fields: Box::default(),
        }]),
        preferred: Vec::new(),
    };
    scene.pod("web", PodSpec::default())
}

fn conflicting_names(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let names = [scene.name("a1"), scene.name("b1")];
    let spec = named(&names);
    scene.pod("web", spec)
}

fn narrowed_out(scene: &mut Scene) -> PodFact {
    scene.node("a1", |node| node.unschedulable = true);
    scene.node("b1", |_| {});
    let names = [scene.name("a1")];
    let spec = named(&names);
    scene.pod("web", spec)
}

/// PreFilter does not look whether a node exists: the name stays in its result, and every node is left out by it.
#[test]
fn a_name_without_a_node_narrows_the_search_too() {
    let left_out = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
    let cases = [
        (&["z1"][..], format!("3 {left_out}")),
        (
            &["z1", "a1"],
            format!("1 node(s) were unschedulable, 2 {left_out}"),
        ),
    ];
    for (wanted, expected) in cases {
        let mut scene = Scene::new();
        scene.node("a1", |node| node.unschedulable = true);
        scene.node("b1", |_| {});
        scene.node("c1", |_| {});
        let names: Vec<Symbol> = wanted.iter().map(|name| scene.name(name)).collect();
        let mut spec = PodSpec::default();
        let each = names
            .iter()
            .map(|&name| named(&[name]).node_affinity.terms.unwrap()[0].clone());
        spec.node_affinity.terms = Some(each.collect());
        let fact = scene.pod("web", spec);
        let pod = scene.cluster.set_pod(fact);
        let mut engine = Engine::new(scene.profile);
        let evaluation = engine.evaluate(&mut scene.cluster, pod);
        assert_eq!(evaluation.narrowed, Some(names));
        assert_eq!(evaluation.feasible, []);
        match engine.decide(&mut scene.cluster, pod) {
            Decision::Unfit(unfit) => {
                let message = unfit.message(3, &scene.cluster.names);
                assert_eq!(message, format!("0/3 nodes are available: {expected}."));
                assert_eq!(evaluation.refused.as_ref(), Some(&*unfit));
            }
            placed => panic!("{placed:?}"),
        }
    }
}

/// The node that the pod was nominated to is tried first, in vain: the plugin that refused it is named, too.
fn narrowed_out_beside(scene: &mut Scene) -> PodFact {
    scene.node("a1", |node| node.unschedulable = true);
    scene.node("b1", |node| node.unschedulable = true);
    scene.node("c1", |_| {});
    let names = [scene.name("a1")];
    let mut pod = scene.pod("web", named(&names));
    pod.history.nominated = Some(scene.name("b1"));
    pod
}

/// Onto the node that has all of these names.
fn named(names: &[Symbol]) -> PodSpec {
    let mut spec = PodSpec::default();
    let fields = names.iter().map(|&name| FieldMatch { name, is_in: true });
    spec.node_affinity.terms = Some(
        [NodeSelectorTerm::AllOf {
            expressions: Box::default(),
            fields: fields.collect(),
        }]
        .into(),
    );
    spec
}

fn ports(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let port = HostPort {
        ip: scene.name("0.0.0.0"),
        any_ip: true,
        protocol: scene.name("TCP"),
        port: 80,
    };
    let spec = PodSpec {
        host_ports: [port].into(),
        ..PodSpec::default()
    };
    scene.bound("web-1", spec.clone());
    scene.pod("web-2", spec)
}

fn too_many_pods(scene: &mut Scene) -> PodFact {
    scene.node("a1", |node| node.pods_max = 1);
    scene.bound("web-1", PodSpec::default());
    scene.pod("web-2", PodSpec::default())
}

fn cpu(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    scene.asking(Resources::of(4001, 0))
}

fn memory(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    scene.asking(Resources::of(0, 8001))
}

fn ephemeral_storage(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let mut requests = Resources::default();
    requests.ephemeral_storage = 1;
    scene.asking(requests)
}

fn scalar(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let gpu = scene.name("nvidia.com/gpu");
    let mut requests = Resources::default();
    requests.set_scalar(gpu, 1);
    scene.asking(requests)
}

fn skew(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    scene.bound("web-1", PodSpec::default());
    let constraint = SpreadConstraint {
        min_domains: Some(2),
        ..scene.constraint(well_known::ZONE)
    };
    scene.pod(
        "web-2",
        PodSpec {
            spread: [constraint].into(),
            ..PodSpec::default()
        },
    )
}

fn missing_topology_label(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let rack = scene.name("rack");
    let constraint = scene.constraint(rack);
    scene.pod(
        "web",
        PodSpec {
            spread: [constraint].into(),
            ..PodSpec::default()
        },
    )
}

fn pod_affinity(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let db = scene.name("db");
    let mut spec = PodSpec::default();
    spec.affinity.required = [scene.term(db)].into();
    scene.pod("web", spec)
}

fn pod_anti_affinity(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    scene.bound("web-1", PodSpec::default());
    let web = scene.name("web");
    let mut spec = PodSpec::default();
    spec.affinity.required_anti = [scene.term(web)].into();
    scene.pod("web-2", spec)
}

fn existing_anti_affinity(scene: &mut Scene) -> PodFact {
    scene.node("a1", |_| {});
    let web = scene.name("web");
    let mut spec = PodSpec::default();
    spec.affinity.required_anti = [scene.term(web)].into();
    scene.bound("web-1", spec);
    scene.pod("web-2", PodSpec::default())
}

/// A cluster, and the profile that decides in it.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) profile: Profile,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            cluster: Cluster::new(),
            profile: Profile::default(),
        }
    }

    pub(crate) fn name(&mut self, text: &str) -> Symbol {
        self.cluster.names.intern(text)
    }

    /// A node of zone a with 4 CPUs, 8000 bytes and room for ten pods, changed.
    pub(crate) fn node(&mut self, name: &str, change: impl FnOnce(&mut NodeFact)) {
        let (name, zone) = (self.name(name), self.name("a"));
        let labels = vec![(well_known::HOSTNAME, name), (well_known::ZONE, zone)];
        let mut fact = NodeFact {
            name,
            labels: Labels::new(labels),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(4000, 8000),
            pods_max: 10,
            images: Box::default(),
        };
        change(&mut fact);
        self.cluster.set_node(fact);
    }

    /// A pod with the label app=web.
    pub(crate) fn pod(&mut self, name: &str, spec: PodSpec) -> PodFact {
        let label = (self.name("app"), self.name("web"));
        PodFact {
            uid: name.into(),
            name: name.into(),
            namespace: well_known::DEFAULT_NAMESPACE,
            labels: Labels::new(vec![label]),
            owner: None,
            terminating: false,
            node: None,
            spec,
            history: PodHistory::default(),
        }
    }

    fn asking(&mut self, requests: Resources) -> PodFact {
        self.pod(
            "web",
            PodSpec {
                requests,
                ..PodSpec::default()
            },
        )
    }

    /// A pod on node a1.
    pub(crate) fn bound(&mut self, name: &str, spec: PodSpec) {
        let mut fact = self.pod(name, spec);
        fact.node = Some(self.name("a1"));
        self.cluster.set_pod(fact);
    }

    fn constraint(&mut self, key: Symbol) -> SpreadConstraint {
        let label = (self.name("app"), self.name("web"));
        SpreadConstraint {
            max_skew: 1,
            key,
            hard: true,
            selector: Selector::of_labels([label]),
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        }
    }

    /// Pods of an app in the same zone.
    pub(crate) fn term(&mut self, app: Symbol) -> AffinityTerm {
        let key = self.name("app");
        AffinityTerm {
            key: well_known::ZONE,
            selector: Selector::of_labels([(key, app)]),
            namespaces: Box::default(),
            namespace_selector: Selector::Nothing,
        }
    }
}

/// A refusal costs what changed since the last one of the class: the list of all nodes is made once.
#[test]
fn a_refusal_is_followed_where_nodes_change() {
    let mut scene = Scene::new();
    let fact = skew(&mut scene);
    for n in 2..=9 {
        scene.node(&format!("a{n}"), |_| {});
    }
    let pod = scene.cluster.set_pod(fact);
    let mut engine = Engine::new(Profile::default());
    let mut refused = |scene: &mut Scene| {
        let unfit = |engine: &mut Engine, cluster: &mut Cluster| match engine.decide(cluster, pod) {
            Decision::Unfit(unfit) => unfit,
            placed => panic!("{placed:?}"),
        };
        let followed = unfit(&mut engine, &mut scene.cluster);
        let anew = unfit(&mut Engine::new(Profile::default()), &mut scene.cluster);
        assert_eq!(followed, anew);
        followed
    };
    let first = refused(&mut scene);
    scene.node("a5", |node| node.pods_max = 20);
    let alike = refused(&mut scene);
    assert!(Rc::ptr_eq(&first, &alike), "nothing is listed again");
    scene.node("a5", |node| node.unschedulable = true);
    let cordoned = refused(&mut scene);
    assert_ne!(cordoned, first);
    scene.node("a5", |_| {});
    assert_eq!(refused(&mut scene), first);
    // A domain more, and the same node order but for it.
    let zone = (well_known::ZONE, scene.name("b"));
    scene.node("b1", |node| {
        node.labels = node.labels.with([zone]);
        node.unschedulable = true;
    });
    assert_ne!(refused(&mut scene), first);
    scene.node("b1", |node| node.labels = node.labels.with([zone]));
    let placed = engine.decide(&mut scene.cluster, pod);
    assert!(matches!(placed, Decision::Place { .. }), "{placed:?}");
}
