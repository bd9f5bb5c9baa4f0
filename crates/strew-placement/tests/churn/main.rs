//! Memory is freed: a machine that has seen many Placements and clusters come and go is as large as one that has seen
//! few. The allocator counts for the whole process, so this is a program with one test.

#[path = "../it/hub.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod hub;

use std::collections::VecDeque;

use hub::Live;
use peak_alloc::PeakAlloc;
use strew_placement::facts::placement::{
    PlacementSpec, SpreadTerm, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::machine::Input;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The number of Placements and clusters at a time.
const PLACEMENTS: usize = 40;
const CLUSTERS: usize = 12;

/// A hub on which each step creates a Placement and deletes the oldest one, and sometimes a cluster, too.
struct Churn {
    live: Live,
    placements: VecDeque<String>,
    clusters: VecDeque<String>,
    next: usize,
}

impl Churn {
    fn new() -> Self {
        let mut churn = Self {
            live: Live::new(),
            placements: VecDeque::new(),
            clusters: VecDeque::new(),
            next: 0,
        };
        (0..CLUSTERS).for_each(|_| churn.add_cluster());
        churn
    }

    fn add_cluster(&mut self) {
        let number = self.next;
        self.next += 1;
        let name = format!("fleet-{number}");
        let labels = [
            ("site", &*format!("site-{}", number % 1_000 / 3)),
            ("serial", &format!("serial-{number}")),
        ];
        let fact = self.live.cluster(&name, &labels);
        self.live.tell(Input::ClusterSet(fact));
        self.clusters.push_back(name);
    }

    fn step(&mut self) {
        if self.next.is_multiple_of(10) {
            self.add_cluster();
            let oldest = self.clusters.pop_front().expect("there are some");
            let gone = Input::ClusterGone(self.live.name(&oldest));
            self.live.tell(gone);
            self.live.rest();
        }
        let name = format!("release-{}", self.next);
        self.next += 1;
        let site = self.live.name("site");
        let spec = PlacementSpec {
            number_of_clusters: Some(3),
            spread: [SpreadTerm {
                key: site,
                key_type: TopologyKeyType::Label,
                max_skew: 1,
                when: WhenUnsatisfiable::ScheduleAnyway,
                weights: None,
                groups: Default::default(),
            }]
            .into(),
            ..PlacementSpec::default()
        };
        self.live.place(&name, spec);
        self.live.rest();
        assert_eq!(self.live.held(&name).len(), 3, "{name}");
        self.placements.push_back(name);
        if self.placements.len() > PLACEMENTS
            && let Some(oldest) = self.placements.pop_front()
        {
            self.end(&oldest);
        }
        // State of the helper that other tests need.
        self.live.facts.clear();
        self.live.events.clear();
    }

    /// Deletes a Placement with its decisions.
    fn end(&mut self, name: &str) {
        let (namespace, name) = (self.live.name("ns"), self.live.name(name));
        self.live.placements.remove(&(namespace, name));
        let now = self.live.now;
        let gone = Input::PlacementGone { namespace, name };
        self.live.machine.handle(now, gone);
        let decisions = self.live.decisions.values();
        let own = decisions.filter(|decision| decision.placement == Some(name));
        let own: Vec<_> = own.map(|decision| decision.name).collect();
        for name in own {
            self.live.decisions.remove(&(namespace, name));
            let gone = Input::DecisionGone { namespace, name };
            self.live.machine.handle(now, gone);
        }
        self.live.rest();
    }
}

/// Runs `n` more steps. Returns the largest memory use on the way.
fn after(churn: &mut Churn, steps: usize) -> usize {
    const WINDOW: usize = 400;
    (0..steps - WINDOW).for_each(|_| churn.step());
    ALLOCATOR.reset_peak_usage();
    (0..WINDOW).for_each(|_| churn.step());
    ALLOCATOR.peak_usage()
}

#[test]
fn placements_and_clusters_that_are_gone_cost_no_memory() {
    let mut churn = Churn::new();
    let early = after(&mut churn, 1_000);
    let late = after(&mut churn, 4_000);
    assert!(late * 10 <= early * 12, "{early}, then {late}");
    let names = churn.live.machine.hub().names.len();
    assert!(names < 2_000, "{names} strings");
}
