use std::collections::BTreeMap;

use strew_cluster::{PodFact, PodHistory, PodSpec, Policy, SpreadConstraint};
use strew_model::{Labels, Resources, well_known};

use super::*;

/// A Deployment `web` with its ReplicaSet, three zones with two nodes each, and an API server.
struct KeptDeployment {
    keeper: Keeper,
    now: Instant,
    /// Uid, node and cost.
    pods: BTreeMap<String, (usize, Cost)>,
    /// By uid; 0 without a write.
    versions: BTreeMap<String, u64>,
    /// Pods of a WorkloadSpread.
    marked: BTreeSet<String>,
    n_writes: usize,
    n_conflicts: usize,
    left: Vec<Leaves>,
    /// No event tells of what is written.
    is_cut: bool,
}

const N_NODES: usize = 6;

impl KeptDeployment {
    fn new(wish: Option<Wish>) -> Self {
        let profiles = vec![Profile::default()];
        let keeper = Keeper::new(Interner::new(), profiles, Limits::production());
        let mut world = Self {
            keeper,
            now: Instant::from_secs(1_000),
            pods: BTreeMap::new(),
            versions: BTreeMap::new(),
            marked: BTreeSet::new(),
            n_writes: 0,
            n_conflicts: 0,
            left: Vec::new(),
            is_cut: false,
        };
        for node in 0..N_NODES {
            let names = world.keeper.names_mut();
            let name = names.intern(&format!("node-{node}"));
            let zone = names.intern(&format!("zone-{}", node % 3));
            let key = names.intern("topology.kubernetes.io/zone");
            world.tell(Input::NodeSet(Box::new(NodeFact {
                name,
                labels: Labels::new(vec![(key, zone), (well_known::HOSTNAME, name)]),
                taints: Box::default(),
                unschedulable: false,
                allocatable: Resources::default(),
                pods_max: 110,
                images: Box::default(),
            })));
        }
        let set = ReplicaSet {
            key: world.key(),
            deployment: Some(world.symbol("web")),
            wish: None,
            selector: None,
        };
        world.tell(Input::SetSet(Box::new(set)));
        world.ask(wish);
        world
    }

    fn symbol(&mut self, text: &str) -> Symbol {
        self.keeper.names_mut().intern(text)
    }

    fn key(&mut self) -> SetKey {
        (self.symbol("shop"), self.symbol("web-1"))
    }

    fn ask(&mut self, wish: Option<Wish>) {
        let deployment = (self.symbol("shop"), self.symbol("web"));
        self.tell(Input::DeploymentSet(deployment, wish));
    }

    fn tell(&mut self, input: Input) {
        self.keeper.handle(self.now, input);
    }

    fn tell_pod(&mut self, uid: &str, edit: impl FnOnce(&mut Pod)) {
        let (node, cost) = self.pods[uid];
        let (namespace, name) = self.key();
        let labels = Labels::new(vec![(self.symbol("app"), self.symbol("web"))]);
        let key = self.symbol("topology.kubernetes.io/zone");
        let constraint = SpreadConstraint {
            max_skew: 1,
            key,
            hard: true,
            selector: Selector::of_labels(labels.iter()),
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        };
        let fact = PodFact {
            uid: uid.into(),
            name: uid.into(),
            namespace,
            labels,
            owner: Some(OwnerRef {
                kind: OwnerKind::ReplicaSet,
                name,
            }),
            terminating: false,
            node: Some(self.symbol(&format!("node-{node}"))),
            spec: PodSpec {
                scheduler_name: self.symbol("default-scheduler"),
                spread: [constraint].into(),
                ..PodSpec::default()
            },
            history: PodHistory::default(),
        };
        let mut pod = Pod {
            fact,
            stage: READY,
            cost,
            is_of_spread: self.marked.contains(uid),
            version: self.version(uid),
        };
        edit(&mut pod);
        self.tell(Input::PodSet(Box::new(pod)));
    }

    fn version(&self, uid: &str) -> u64 {
        self.versions.get(uid).copied().unwrap_or(0)
    }

    /// Writes a cost.
    fn set_cost(&mut self, uid: &str, cost: Cost) {
        self.pods.get_mut(uid).unwrap().1 = cost;
        *self.versions.entry(uid.to_owned()).or_default() += 1;
    }

    fn create(&mut self, uids: impl IntoIterator<Item = usize>) {
        for uid in uids {
            let name = format!("{uid:03}");
            self.pods
                .insert(name.clone(), (uid % N_NODES, Cost::Absent));
            self.tell_pod(&name, |_| ());
        }
    }

    /// Lets time pass until nothing is due, and carries out all writes.
    fn run(&mut self) {
        loop {
            while let Some(effect) = self.keeper.poll_effect() {
                match effect {
                    Effect::Leave(_, why) => self.left.push(why),
                    Effect::SetCost {
                        id,
                        pod,
                        version,
                        cost,
                    } => {
                        let Some(&(_, before)) = self.pods.get(&*pod.uid) else {
                            self.tell(Input::Outcome(id, Outcome::Gone));
                            continue;
                        };
                        if version != self.version(&pod.uid) {
                            self.n_conflicts += 1;
                            self.tell(Input::Outcome(id, Outcome::Conflict));
                            // The watch catches up.
                            self.tell_pod(&pod.uid, |_| ());
                            continue;
                        }
                        self.n_writes += 1;
                        self.set_cost(&pod.uid, cost.map_or(Cost::Absent, Cost::Own));
                        let written = Outcome::Written(self.version(&pod.uid));
                        self.tell(Input::Outcome(id, written));
                        if self.is_cut {
                            continue;
                        }
                        // An event of an older state may still come.
                        self.tell_pod(&pod.uid, |pod| {
                            (pod.cost, pod.version) = (before, version);
                        });
                        self.tell_pod(&pod.uid, |_| ());
                    }
                }
            }
            let Some(wake) = self.keeper.next_wake() else {
                return;
            };
            self.now = self.now.max(wake);
            self.tell(Input::Tick);
        }
    }

    fn writes(&mut self) -> usize {
        let before = self.n_writes;
        self.run();
        self.n_writes - before
    }

    /// Deletes the pods with the lowest costs, as a ReplicaSet's controller does.
    fn scale_down(&mut self, n: usize) {
        for _ in 0..n {
            let cost = |(_, cost): &(usize, Cost)| cost.own().unwrap_or(0);
            let first = self.pods.iter().min_by_key(|(_, pod)| cost(pod));
            let uid = first.unwrap().0.clone();
            self.pods.remove(&uid);
            self.tell(Input::PodGone(uid.as_str().into()));
        }
    }

    fn per_zone(&self) -> [usize; 3] {
        let mut zones = [0; 3];
        for (node, _) in self.pods.values() {
            zones[node % 3] += 1;
        }
        zones
    }
}

#[test]
fn twelve_to_six_to_three_stays_even_with_one_write_per_pod() {
    let mut world = KeptDeployment::new(Some(Wish::Keep));
    world.create(0..12);
    assert_eq!(world.writes(), 12);
    for (n, expected) in [(6, [2; 3]), (3, [1; 3])] {
        world.scale_down(n);
        assert_eq!(world.per_zone(), expected);
        assert_eq!(world.writes(), 0);
    }
    assert_eq!(world.keeper.counters().reordered, 1);
    let key = world.key();
    let standings: Vec<_> = world.keeper.standings().collect();
    assert_eq!(standings, [(key, CostsDecision::Kept)]);
}

#[test]
fn who_does_not_ask_gets_nothing_and_who_asks_no_more_loses_all_costs() {
    let mut world = KeptDeployment::new(None);
    world.create(0..6);
    assert_eq!(world.writes(), 0);
    assert_eq!(world.keeper.next_wake(), None);
    let namespace = world.symbol("shop");
    world.tell(Input::NamespaceSet(namespace, Some(Wish::Keep)));
    assert_eq!(world.writes(), 6);
    world.ask(Some(Wish::Leave));
    assert_eq!(world.writes(), 6);
    assert!(world.pods.values().all(|(_, cost)| *cost == Cost::Absent));
}

#[test]
fn costs_of_others_and_pods_of_a_workloadspread_are_left_alone() {
    let mut world = KeptDeployment::new(Some(Wish::Keep));
    world.create(0..6);
    world.set_cost("003", Cost::Foreign);
    world.tell_pod("003", |_| ());
    assert_eq!(world.writes(), 0);
    assert_eq!(world.left, [Leaves::CostsOfOthers]);
    world.set_cost("003", Cost::Absent);
    world.tell_pod("003", |_| ());
    assert_eq!(world.writes(), 6);
    world.marked.insert("001".to_owned());
    world.tell_pod("001", |_| ());
    assert_eq!(world.writes(), 6, "its own costs are withdrawn");
    assert_eq!(world.left[1..], [Leaves::WorkloadSpread]);
}

/// The last write of a process that has died may arrive when its successor has taken the cost off.
#[test]
fn a_cost_that_another_process_writes_again_is_taken_off_again() {
    let mut world = KeptDeployment::new(Some(Wish::Keep));
    world.create(0..6);
    assert_eq!(world.writes(), 6);
    let before = world.pods["003"].1;
    // The watch shows nothing in between.
    world.is_cut = true;
    world.ask(Some(Wish::Leave));
    assert_eq!(world.writes(), 6);
    world.set_cost("003", before);
    world.tell_pod("003", |_| ());
    assert_eq!(world.writes(), 1);
    assert!(world.pods.values().all(|(_, cost)| *cost == Cost::Absent));
}

#[test]
fn a_cost_that_another_client_writes_while_the_watch_is_late_stays() {
    for is_withdrawn in [true, false] {
        let mut world = KeptDeployment::new(Some(Wish::Keep));
        world.create(0..12);
        if is_withdrawn {
            assert_eq!(world.writes(), 12);
            world.ask(Some(Wish::Leave));
        }
        world.set_cost("003", Cost::Foreign);
        world.run();
        assert_eq!(world.n_conflicts, 1);
        assert_eq!(world.pods["003"].1, Cost::Foreign);
        let mut others = world.pods.iter().filter(|(uid, _)| *uid != "003");
        assert!(others.all(|(_, (_, cost))| *cost == Cost::Absent));
        assert_eq!(world.keeper.counters().failed, 0);
    }
}

#[test]
fn a_pod_that_comes_needs_one_write_at_most_and_so_does_a_cost_that_was_removed() {
    let mut world = KeptDeployment::new(Some(Wish::Keep));
    world.create(0..12);
    world.run();
    world.create(12..13);
    assert!(world.writes() <= 1);
    world.set_cost("005", Cost::Absent);
    world.tell_pod("005", |_| ());
    let n_writes = world.writes();
    assert!(
        (1..=2).contains(&n_writes),
        "only pods without a cost get one: {n_writes}"
    );
    world.scale_down(7);
    let zones = world.per_zone();
    assert_eq!(zones.iter().sum::<usize>(), 6);
    assert_eq!(zones, [2; 3]);
}

#[test]
fn a_pod_that_is_not_ready_for_a_while_changes_no_order_and_one_that_stays_so_does() {
    let mut world = KeptDeployment::new(Some(Wish::Keep));
    world.create(0..12);
    world.run();
    let stumbles = |world: &mut KeptDeployment, is_ready| {
        let stage = Stage { is_ready, ..READY };
        world.tell_pod("009", |pod| pod.stage = stage);
    };
    stumbles(&mut world, false);
    world.now = world.now + Span::from_secs(30);
    let effect = world.keeper.poll_effect();
    assert!(effect.is_none(), "{effect:?}");
    stumbles(&mut world, true);
    assert_eq!(world.writes(), 0);
    assert_eq!(world.keeper.next_wake(), None);
    stumbles(&mut world, false);
    let before = world.now;
    let wake = world.keeper.next_wake().unwrap();
    world.now = wake;
    world.tell(Input::Tick);
    assert_eq!(world.keeper.poll_effect(), None);
    let wake = world.keeper.next_wake().unwrap();
    assert_eq!(wake, before + Span::from_secs(60));
    world.now = wake;
    world.tell(Input::Tick);
    assert!(
        world.keeper.poll_effect().is_some(),
        "it goes first now, so others of its zone go later"
    );
}

#[test]
fn a_failed_write_is_tried_again_later() {
    let mut world = KeptDeployment::new(Some(Wish::Keep));
    world.create(0..3);
    world.create([6, 9]);
    let mut n_tries = 0;
    while n_tries < 3 {
        let wake = world.keeper.next_wake().unwrap();
        world.now = world.now.max(wake);
        world.tell(Input::Tick);
        while let Some(effect) = world.keeper.poll_effect() {
            if let Effect::SetCost { id, .. } = effect {
                world.tell(Input::Outcome(id, Outcome::Failed));
            }
        }
        n_tries += 1;
    }
    assert!(world.now.since(Instant::from_secs(1_000)) > Span::from_secs(3));
    assert!(world.writes() > 0);
    assert_eq!(world.writes(), 0);
}

#[test]
fn strings_and_classes_of_the_past_are_freed() {
    let mut world = KeptDeployment::new(Some(Wish::Keep));
    for round in 0..80 {
        world.create((0..60).map(|uid| round * 60 + uid));
        world.run();
        let n = world.pods.len() - 3;
        world.scale_down(n);
        for uid in 0..400 {
            let name = world.symbol(&format!("name-{round}-{uid}"));
            world.tell(Input::NamespaceSet(name, None));
        }
    }
    world.run();
    assert!(
        world.keeper.names().len() < 14_000,
        "{}",
        world.keeper.names().len()
    );
    world.keeper.cluster.audit().unwrap();
}
