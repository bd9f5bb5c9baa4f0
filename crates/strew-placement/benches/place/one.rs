//! One large placement, which selects a tenth of its clusters.

use std::hint::black_box;

use strew_model::{Interner, Prng};
use strew_placement::facts::placement::PlacementSpec;
use strew_placement::{Hub, NoCel, schedule};

use crate::clock::cpu_ns;
use crate::world::{NOW, ZONES, cluster, everything, levels, placement};

/// CPU time comes in ticks of some milliseconds: these rounds are enough for a good mean.
const ROUNDS: usize = 100;

/// The longest time of a run.
const TARGET_MS: f64 = 5.0;

/// One placement over this number of clusters.
pub(crate) struct One {
    pub(crate) clusters: usize,
    pub(crate) levels: usize,
    pub(crate) hard: bool,
}

impl One {
    pub(crate) fn name(&self) -> String {
        let kind = if self.hard { "hard" } else { "soft" };
        format!("one/{}/{}/{kind}", self.clusters, self.levels)
    }

    pub(crate) fn run(&self) -> bool {
        let mut hub = Hub::new(Interner::new());
        let mut dice = Prng::new(1);
        let set = everything(&mut hub.names);
        let namespace = hub.names.intern("ns");
        hub.set_binding(namespace, set.name);
        hub.set_cluster_set(set);
        for i in 0..self.clusters {
            let fact = cluster(&mut hub.names, &mut dice, i, ZONES);
            hub.set_cluster(fact);
        }
        let picks = self.clusters / 10;
        let spec = PlacementSpec {
            number_of_clusters: i32::try_from(picks).ok(),
            spread: levels(&mut hub.names, self.hard, self.levels),
            ..PlacementSpec::default()
        };
        let placement = placement(&mut hub.names, "ns", "large", spec);
        let start = cpu_ns();
        for _ in 0..ROUNDS {
            let schedule = black_box(schedule::schedule(&hub, NOW, &placement, &NoCel));
            assert_eq!(schedule.picks.len(), picks);
        }
        let mean = (cpu_ns() - start) as f64 / 1e6 / ROUNDS as f64;
        println!(
            "{{\"name\":\"{}\",\"zones\":{ZONES},\"picks\":{picks},\"cpu_ms\":{mean:.2},\"target_ms\":{TARGET_MS}}}",
            self.name()
        );
        mean <= TARGET_MS
    }
}
