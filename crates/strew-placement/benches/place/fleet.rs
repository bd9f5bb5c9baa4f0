//! Many placements decided from nothing, then one change of a cluster.

use strew_model::{Interner, Prng};
use strew_placement::NoCel;
use strew_placement::facts::cluster::ClusterFact;
use strew_placement::machine::{Effect, Input, Limits, Outcome, PlacementMachine};

use crate::clock::{cpu_ns, rss_mib};
use crate::world::{NOW, ZONES, cluster, everything, placement, spec};

/// The change is repeated this often, or for this long: CPU time comes in ticks of some milliseconds.
const ROUNDS_MIN: usize = 20;
const NS_MIN: u64 = 300_000_000;

/// The targets: seconds and memory for deciding everything from nothing, milliseconds for one change.
const TARGETS: (f64, f64, f64) = (10.0, 300.0, 50.0);

/// The numbers of placements and clusters.
pub(crate) struct Fleet {
    pub(crate) placements: usize,
    pub(crate) clusters: usize,
    pub(crate) levels: usize,
}

impl Fleet {
    pub(crate) fn name(&self) -> String {
        format!(
            "fleet/{}/{}/{}",
            self.placements, self.clusters, self.levels
        )
    }

    pub(crate) fn run(&self) -> bool {
        let mut machine = PlacementMachine::new(Interner::new(), Limits::production(), NOW);
        let mut dice = Prng::new(2);
        let set = everything(machine.names_mut());
        let global = set.name;
        machine.handle(NOW, Input::ClusterSetSet(set));
        let clusters: Vec<ClusterFact> = (0..self.clusters)
            .map(|i| cluster(machine.names_mut(), &mut dice, i, ZONES))
            .collect();
        for fact in &clusters {
            machine.handle(NOW, Input::ClusterSet(fact.clone()));
        }
        for i in 0..50 {
            let namespace = machine.names_mut().intern(&format!("ns-{i}"));
            let name = global;
            machine.handle(NOW, Input::BindingSet { namespace, name });
        }
        for i in 0..self.placements {
            let spec = spec(machine.names_mut(), i, self.levels);
            let namespace = format!("ns-{}", i % 50);
            let fact = placement(machine.names_mut(), &namespace, &format!("p-{i}"), spec);
            machine.handle(NOW, Input::PlacementSet(Box::new(fact)));
        }
        let before = rss_mib();
        let start = cpu_ns();
        let writes = rest(&mut machine);
        let (seconds, rss) = ((cpu_ns() - start) as f64 / 1e9, rss_mib());
        let (target_s, target_mib, _) = TARGETS;
        println!(
            "{{\"name\":\"{}\",\"writes\":{writes},\"cpu_s\":{seconds:.3},\"target_s\":{target_s},\"rss_before_mib\":{before:.0},\"rss_mib\":{rss:.0},\"target_mib\":{target_mib}}}",
            self.name()
        );
        let is_met = seconds <= target_s && rss <= target_mib;
        self.changes(&mut machine, &clusters[17]) && is_met
    }

    /// One cluster gets another label, or leaves; then it is restored.
    fn changes(&self, machine: &mut PlacementMachine, cluster: &ClusterFact) -> bool {
        let mut is_met = true;
        for (key, value) in [
            ("team", "team-new"),
            ("app", "app-7"),
            ("noise", "1"),
            ("zone", "zone-new"),
        ] {
            let names = machine.names_mut();
            let pair = (names.intern(key), names.intern(value));
            let fact = ClusterFact {
                labels: cluster.labels.with([pair]),
                ..cluster.clone()
            };
            is_met &= self.change(
                machine,
                key,
                [&fact, cluster].map(|f| Input::ClusterSet(f.clone())),
            );
        }
        let goes = Input::ClusterGone(cluster.name);
        self.change(machine, "join", [goes, Input::ClusterSet(cluster.clone())]) && is_met
    }

    /// Adds and removes something repeatedly.
    fn change(&self, machine: &mut PlacementMachine, what: &str, inputs: [Input; 2]) -> bool {
        let decided = machine.counters().decided;
        let start = cpu_ns();
        let mut rounds = 0;
        while rounds < ROUNDS_MIN || cpu_ns() - start < NS_MIN {
            for input in &inputs {
                machine.handle(NOW, input.clone());
                rest(machine);
            }
            rounds += inputs.len();
        }
        let ms = (cpu_ns() - start) as f64 / 1e6 / rounds as f64;
        let decided = (machine.counters().decided - decided) as usize / rounds;
        let target = TARGETS.2;
        println!(
            "{{\"name\":\"{}\",\"change\":\"{what}\",\"decided\":{decided},\"cpu_ms\":{ms:.2},\"target_ms\":{target}}}",
            self.name()
        );
        // A cluster that joins or leaves touches every placement. No target is set for that.
        ms <= target || what == "join"
    }
}

/// Carries out all effects. Returns the number of writes.
fn rest(machine: &mut PlacementMachine) -> usize {
    let mut writes = 0;
    while let Some(effect) = machine.poll_effect(&NoCel) {
        let (Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. }) = effect else {
            continue;
        };
        writes += 1;
        let outcome = Outcome::Ok {
            revision: 10 + writes as u64,
        };
        machine.handle(
            NOW,
            Input::Outcome {
                effect: id,
                outcome,
            },
        );
    }
    writes
}
