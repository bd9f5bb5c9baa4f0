//! A hub for tests: one namespace, one set that holds every cluster, scores that an add-on gives.

use std::sync::Arc;

use strew_model::{Instant, Interner, Labels, Selector, Symbol};
use strew_placement::explain::{self, Explanation};
use strew_placement::facts::cluster::ClusterFact;
use strew_placement::facts::cluster_set::{ClusterSetFact, SetSelector};
use strew_placement::facts::decision::{Decision, DecisionFact, GroupLabels};
use strew_placement::facts::placement::{
    AddOnCoordinate, PlacementFact, PlacementSpec, PrioritizerConfig, PrioritizerPolicy,
    ScoreCoordinate, SpreadTerm, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::facts::scores::ScoresFact;
use strew_placement::facts::status::PlacementStatus;
use strew_placement::{Hub, NoCel, Schedule, schedule};

/// The time of most tests.
pub(crate) const NOW: Instant = Instant::from_secs(1_000);

/// A hub and one placement.
pub(crate) struct HubWithPlacement {
    pub(crate) hub: Hub,
    pub(crate) placement: PlacementFact,
}

impl HubWithPlacement {
    /// A placement `ns/p` that selects all clusters.
    pub(crate) fn new() -> Self {
        let mut hub = Hub::new(Interner::new());
        let names = &mut hub.names;
        let (namespace, all) = (names.intern("ns"), names.intern("all"));
        let placement = PlacementFact {
            namespace,
            name: names.intern("p"),
            uid: "uid-p".into(),
            spec: PlacementSpec::default(),
            status: PlacementStatus::default(),
            ignored: false,
            revision: 1,
        };
        hub.set_cluster_set(ClusterSetFact {
            name: all,
            selector: SetSelector::Labels(Selector::all_of(vec![])),
        });
        hub.set_binding(namespace, all);
        Self { hub, placement }
    }

    /// The symbol of a text.
    pub(crate) fn name(&mut self, text: &str) -> Symbol {
        self.hub.names.intern(text)
    }

    /// Clusters `NAME PRIOR key=value ...`, one per line. Only the priors and the spread count.
    pub(crate) fn clusters(mut self, picture: &str) -> Self {
        for line in picture.lines().filter(|l| !l.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let name = words.next().expect("it is there");
            let prior: i32 = words
                .next()
                .expect("it is there")
                .parse()
                .expect("it is there");
            let labels: Vec<&str> = words.collect();
            self.cluster(name, prior, &labels);
        }
        self
    }

    /// One cluster.
    pub(crate) fn cluster(&mut self, name: &str, prior: i32, labels: &[&str]) {
        let pair = |label: &&str| {
            let (key, value) = label.split_once('=').expect("it is there");
            (self.hub.names.intern(key), self.hub.names.intern(value))
        };
        let labels = Labels::new(labels.iter().map(pair).collect());
        let name = self.name(name);
        let fact = ClusterFact {
            labels,
            ..ClusterFact::named(name)
        };
        self.hub.set_cluster(fact);
        let prior_name = self.name("prior");
        self.hub.set_scores(ScoresFact {
            cluster: name,
            name: prior_name,
            values: [(prior_name, prior)].into(),
            valid_until: None,
        });
    }

    /// Only the priors count, and `Spread` with this weight.
    pub(crate) fn weight(mut self, spread: i32) -> Self {
        let prior = self.name("prior");
        self.placement.spec.prioritizers = policy(
            "Exact",
            &[
                (add_on(prior, prior), 1),
                (ScoreCoordinate::BuiltIn("Spread".into()), spread),
            ],
        );
        self
    }

    /// A term over labels: `zone soft 1`, `region hard 2`.
    pub(crate) fn spread(mut self, terms: &[&str]) -> Self {
        let term = |text: &&str| {
            let words: Vec<&str> = text.split(' ').collect();
            SpreadTerm {
                key: self.hub.names.intern(words[0]),
                key_type: TopologyKeyType::Label,
                max_skew: words[2].parse().expect("it is there"),
                when: match words[1] {
                    "hard" => WhenUnsatisfiable::DoNotSchedule,
                    _ => WhenUnsatisfiable::ScheduleAnyway,
                },
                weights: None,
                groups: Default::default(),
            }
        };
        self.placement.spec.spread = terms.iter().map(term).collect();
        self
    }

    /// `numberOfClusters`.
    pub(crate) fn number(mut self, n: i32) -> Self {
        self.placement.spec.number_of_clusters = Some(n);
        self
    }

    /// The placement holds these clusters.
    pub(crate) fn hold(&mut self, clusters: &[String]) {
        let named: Vec<&str> = clusters.iter().map(String::as_str).collect();
        self.decision("p-decision-1", "p", &named);
    }

    /// A PlacementDecision of some placement.
    pub(crate) fn decision(&mut self, name: &str, placement: &str, clusters: &[&str]) {
        let decision = |cluster: &&str| Decision {
            cluster: self.hub.names.intern(cluster),
            score: None,
        };
        let decisions = clusters.iter().map(decision).collect();
        let (name, placement) = (self.name(name), self.name(placement));
        self.hub.ledger.set(DecisionFact {
            namespace: self.placement.namespace,
            name,
            placement: Some(placement),
            group: GroupLabels {
                index: Some(0),
                name: Some(strew_model::well_known::EMPTY),
            },
            decisions,
            replicas: Default::default(),
            has_reason: false,
            revision: 1,
        });
    }

    pub(crate) fn decide(&self) -> Schedule {
        schedule::schedule(&self.hub, NOW, &self.placement, &NoCel)
    }

    pub(crate) fn explain(&self) -> Explanation {
        explain::explain(&self.hub, NOW, &self.placement, &NoCel)
    }

    /// The clusters selected, in the order of selection.
    pub(crate) fn picks(&self) -> Vec<String> {
        let picks = self.decide().picks;
        picks.iter().map(|pick| self.text(pick.cluster)).collect()
    }

    pub(crate) fn text(&self, symbol: Symbol) -> String {
        self.hub.names.text(symbol).to_owned()
    }
}

/// A score of an add-on.
pub(crate) fn add_on(resource: Symbol, score: Symbol) -> ScoreCoordinate {
    ScoreCoordinate::AddOn(Some(AddOnCoordinate { resource, score }))
}

/// A policy of coordinates with weights.
pub(crate) fn policy(mode: &str, entries: &[(ScoreCoordinate, i32)]) -> PrioritizerPolicy {
    let config = |(coordinate, weight): &(ScoreCoordinate, i32)| PrioritizerConfig {
        coordinate: Some(coordinate.clone()),
        weight: *weight,
    };
    PrioritizerPolicy {
        mode: Arc::from(mode),
        configurations: entries.iter().map(config).collect(),
    }
}
