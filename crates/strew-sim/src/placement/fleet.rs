//! A hub as stored, and what a newly started controller would do with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::server::Server;
use strew_manifest::ocm::ManagedCluster;
use strew_manifest::read::KubeObject;
use strew_model::Symbol;
use strew_model::time::Instant;
use strew_placement::Explanation;
use strew_placement::facts::placement::{
    PlacementFact, SpreadTerm, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::machine::{Effect, Limits, PlacementMachine};
use strew_placement::schedule::schedule;
use strew_runtime::Machine;
use strew_runtime::placement::{Placements, watches};
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::debug::not_selected::words;

use super::HOSTNAME;
use crate::auditor::kept;
use crate::component::Component;
use crate::network::Sender;

/// A hub as it is stored.
pub struct Fleet {
    controller: Component<Placements>,
    clusters: BTreeMap<Arc<str>, ManagedCluster>,
    now: Instant,
}

/// Selected clusters per value of a key, grouped by their topologies at the terms before.
pub type Topologies = BTreeMap<Vec<String>, BTreeMap<String, u32>>;

impl Fleet {
    /// The hub of a store.
    pub fn of(server: &Server, now: Instant) -> Self {
        let machine = Placements::new(HOSTNAME.to_owned(), Limits::production(), now);
        let sender = Sender::PlacementController;
        let clusters = server.tables().all_plain().filter_map(|plain| {
            let KubeObject::ManagedCluster(cluster) = &plain.object else {
                return None;
            };
            let mut cluster = ManagedCluster::clone(cluster);
            cluster.metadata = plain.meta.to_wire();
            Some((Arc::clone(&plain.meta.name.name), cluster))
        });
        Self {
            controller: Component::fresh(machine, watches(), sender, server, now),
            clusters: clusters.collect(),
            now,
        }
    }

    fn machine(&self) -> &PlacementMachine {
        self.controller.machine().machine()
    }

    fn fact(&self, namespace: &str, name: &str) -> Option<&PlacementFact> {
        let names = &self.machine().hub().names;
        let (namespace, name) = (names.get(namespace)?, names.get(name)?);
        self.machine().placement(namespace, name)
    }

    fn cel(&self) -> &CelSelectors {
        self.controller.machine().selectors()
    }

    fn text(&self, symbol: Symbol) -> &str {
        self.machine().hub().names.text(symbol)
    }

    /// The clusters that pass a placement's filters and have the keys of all hard terms, by name; `None` if the
    /// placement does not exist.
    pub fn eligible(&self, namespace: &str, name: &str) -> Option<BTreeSet<Arc<str>>> {
        let fact = self.fact(namespace, name)?;
        let decided = schedule(self.machine().hub(), self.now, fact, self.cel());
        let names = decided.scored.iter().map(|(name, _)| self.text(*name));
        let lacks_none = |name: &&str| {
            let place = self.clusters.get(*name);
            let mut hard = fact.spec.spread.iter().filter(|term| is_hard(term));
            hard.all(|term| place.is_some_and(|at| self.value(at, term).is_some()))
        };
        Some(names.filter(lacks_none).map(Into::into).collect())
    }

    /// A cluster's value of a term's key.
    fn value<'c>(&self, cluster: &'c ManagedCluster, term: &SpreadTerm) -> Option<&'c str> {
        let key = self.text(term.key);
        match term.key_type {
            TopologyKeyType::Claim => value(cluster.claims(), key),
            _ => value(cluster.labels(), key),
        }
    }

    /// Counts these clusters by topology of a key; the topologies are those of clusters that pass the placement's
    /// filters. A key that is none of its terms has one group.
    pub fn topologies(
        &self,
        (namespace, name): (&str, &str),
        key: &str,
        held: &BTreeSet<Arc<str>>,
    ) -> Topologies {
        let terms = self.fact(namespace, name).map(|fact| &*fact.spec.spread);
        let terms = terms.unwrap_or_default();
        let place = terms.iter().position(|term| self.text(term.key) == key);
        let mut topologies = Topologies::new();
        let eligible = self.eligible(namespace, name).unwrap_or_default();
        for cluster in eligible.union(held) {
            let Some(at) = self.clusters.get(cluster) else {
                continue;
            };
            let own = match place {
                Some(i) => self.value(at, &terms[i]),
                None => value(at.labels().chain(at.claims()), key),
            };
            let above = terms[..place.unwrap_or(0)].iter();
            let above: Option<Vec<String>> = above
                .map(|term| self.value(at, term).map(str::to_owned))
                .collect();
            if let (Some(own), Some(above)) = (own, above) {
                let group = topologies.entry(above).or_default();
                *group.entry(own.to_owned()).or_default() += u32::from(held.contains(cluster));
            }
        }
        topologies
    }

    /// The placement's decision on a cluster, in words; `None` if the placement does not exist.
    pub fn why(&self, namespace: &str, name: &str, cluster: &str) -> Option<String> {
        let names = &self.machine().hub().names;
        let (namespace, name) = (names.get(namespace)?, names.get(name)?);
        let explained: Explanation = self.machine().explain(namespace, name, self.cel())?;
        let symbol = names.get(cluster);
        let mut verdicts = explained.verdicts.iter();
        let found = verdicts.find(|(candidate, _)| Some(*candidate) == symbol);
        Some(match found {
            None => "is no candidate".to_owned(),
            Some((_, verdict)) => words(verdict, names),
        })
    }

    /// The first write of a newly started controller for each placement, in words.
    pub fn would_write(mut self) -> Vec<String> {
        let effects = self.controller.tell(|placements, _| {
            placements.tick(self.now);
            let mut effects = Vec::new();
            loop {
                match placements.poll_effect() {
                    Some(effect) => effects.push(effect),
                    // Expressions are evaluated in slices.
                    None if placements.next_wake().is_some_and(|at| at <= self.now) => {
                        placements.tick(self.now);
                    }
                    None => return effects,
                }
            }
        });
        let mut wanted = Vec::new();
        for effect in effects {
            let text = |symbol| self.machine().hub().names.text(symbol);
            match &effect {
                Effect::WriteDecision {
                    placement, write, ..
                } => wanted.push(format!(
                    "{}: would write {} ({:?}, {:?})",
                    text(placement.name),
                    text(write.name),
                    write.kind,
                    write.decisions.as_ref().map(|decisions| {
                        let clusters = decisions.iter().map(|d| text(d.cluster));
                        clusters.collect::<Vec<_>>()
                    }),
                )),
                Effect::WriteStatus {
                    placement, status, ..
                } => wanted.push(format!(
                    "{}: would write its status, {:?}",
                    text(placement.name),
                    status.conditions
                )),
                Effect::Event(_) => {}
            }
        }
        wanted
    }

    /// The hard limits that the stored decisions exceed: recounted from labels and claims.
    pub(crate) fn broken_limits(&self, tables: &Tables) -> Vec<String> {
        let mut broken = Vec::new();
        for plain in tables.all_plain() {
            let KubeObject::Placement(_) = &plain.object else {
                continue;
            };
            let (namespace, name) = (&*plain.meta.name.namespace, &*plain.meta.name.name);
            let Some(fact) = self.fact(namespace, name) else {
                continue;
            };
            let held = kept::union(tables, namespace, name);
            let eligible = self.eligible(namespace, name).unwrap_or_default();
            for term in fact.spec.spread.iter().filter(|term| is_hard(term)) {
                let key = self.text(term.key);
                let groups = self.topologies((namespace, name), key, &held);
                // Once as many topologies as may be are used, the others are compared with nothing.
                let bound = term.groups.max;
                let is_open = bound.is_none_or(|max| used(&groups) < max);
                for (above, counts) in &groups {
                    let compared = || counts.values().copied().filter(move |&n| is_open || n > 0);
                    let (max, min) = (compared().max(), compared().min());
                    let (max, min) = (max.unwrap_or(0), min.unwrap_or(0));
                    if i64::from(max - min) > i64::from(term.max_skew.max(1)) {
                        let limit = term.max_skew;
                        broken.push(format!(
                            "{name}: {key} under {above:?} is {counts:?}, beyond maxSkew {limit}"
                        ));
                    }
                }
            }
            for term in &fact.spec.spread {
                let key = self.text(term.key);
                let used = used(&self.topologies((namespace, name), key, &held));
                if let Some(max) = term.groups.max.filter(|&max| used > max) {
                    broken.push(format!("{name}: {used} of {key}, beyond maxGroups {max}"));
                }
            }
            if let (Ok(Some(division)), false) = (&fact.spec.replicas, fact.ignored) {
                let given = kept::replicas(tables, namespace, name);
                let names: BTreeSet<Arc<str>> = given.keys().cloned().collect();
                let sum: u64 = given.values().sum();
                let is_divided = held.is_empty() || sum == u64::from(division.total);
                if names != held || !is_divided {
                    let total = division.total;
                    broken.push(format!(
                        "{name}: {given:?} is no division of {total} over {held:?}"
                    ));
                }
            }
            let strangers: Vec<&str> = held
                .iter()
                .filter(|cluster| !eligible.contains(*cluster))
                .map(|cluster| &**cluster)
                .collect();
            if !strangers.is_empty() && !fact.ignored {
                broken.push(format!(
                    "{name} holds {strangers:?}, which no filter lets pass"
                ));
            }
        }
        broken
    }
}

fn value<'c>(mut pairs: impl Iterator<Item = (&'c str, &'c str)>, key: &str) -> Option<&'c str> {
    let own = pairs.find(|(own, _)| *own == key);
    own.map(|(_, value)| value)
}

/// How many topologies hold a cluster.
fn used(topologies: &Topologies) -> i64 {
    let counts = topologies.values().flat_map(BTreeMap::values);
    i64::try_from(counts.filter(|&&n| n > 0).count()).unwrap_or(i64::MAX)
}

fn is_hard(term: &SpreadTerm) -> bool {
    term.when == WhenUnsatisfiable::DoNotSchedule
}
