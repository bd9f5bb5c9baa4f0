//! A hub as stored, and what a newly started controller would do with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::Pairs;
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;
use strew_model::{Interner, Symbol};
use strew_placement::Explanation;
use strew_placement::facts::placement::{
    PlacementFact, SpreadTerm, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::machine::{Effect, Input, Limits, PlacementMachine};
use strew_placement::schedule::schedule;
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::debug::not_selected::words;
use strew_wire::placement::facts::inputs;

use super::wire_of;
use crate::auditor::kept;

/// The labels, claims and state of a cluster.
#[derive(Debug, Default)]
struct Place {
    labels: Pairs,
    claims: Pairs,
}

/// A hub as it is stored.
pub struct Fleet {
    machine: PlacementMachine,
    cel: CelSelectors,
    places: BTreeMap<Arc<str>, Place>,
    now: Instant,
}

/// Selected clusters per value of a key, grouped by their topologies at the terms before.
pub type Topologies = BTreeMap<Vec<String>, BTreeMap<String, u32>>;

impl Fleet {
    /// The hub of a store.
    pub fn of(tables: &Tables, now: Instant) -> Self {
        let mut fleet = Self {
            machine: PlacementMachine::new(Interner::new(), Limits::production(), now),
            cel: CelSelectors::new(),
            places: BTreeMap::new(),
            now,
        };
        for plain in tables.all_plain() {
            let object = strew_apiserver::object::Object::Plain(Arc::clone(plain));
            let Some(wire) = wire_of(&object) else {
                continue;
            };
            if let KubeObject::ManagedCluster(cluster) = &wire {
                let status = cluster.status.clone().unwrap_or_default();
                let claims = status.cluster_claims.into_iter().flatten();
                let place = Place {
                    labels: (*plain.meta.labels).clone(),
                    claims: claims.map(|claim| (claim.name, claim.value)).collect(),
                };
                fleet
                    .places
                    .insert(Arc::clone(&plain.meta.name.name), place);
            }
            let names = fleet.machine.names_mut();
            if let Some(input) = inputs(&wire, names, &mut fleet.cel) {
                fleet.machine.handle(now, input);
            }
        }
        fleet
    }

    fn fact(&self, namespace: &str, name: &str) -> Option<&PlacementFact> {
        let names = &self.machine.hub().names;
        let (namespace, name) = (names.get(namespace)?, names.get(name)?);
        self.machine.placement(namespace, name)
    }

    fn text(&self, symbol: Symbol) -> &str {
        self.machine.hub().names.text(symbol)
    }

    /// The clusters that pass a placement's filters and have the keys of all hard terms, by name; `None` if the
    /// placement does not exist.
    pub fn eligible(&self, namespace: &str, name: &str) -> Option<BTreeSet<Arc<str>>> {
        let fact = self.fact(namespace, name)?;
        let decided = schedule(self.machine.hub(), self.now, fact, &self.cel);
        let names = decided.scored.iter().map(|(name, _)| self.text(*name));
        let lacks_none = |name: &&str| {
            let place = self.places.get(*name);
            let mut hard = fact.spec.spread.iter().filter(|term| is_hard(term));
            hard.all(|term| place.is_some_and(|at| self.value(at, term).is_some()))
        };
        Some(names.filter(lacks_none).map(Into::into).collect())
    }

    /// A cluster's value of a term's key.
    fn value<'p>(&self, place: &'p Place, term: &SpreadTerm) -> Option<&'p String> {
        let pairs = match term.key_type {
            TopologyKeyType::Claim => &place.claims,
            _ => &place.labels,
        };
        pairs.get(self.text(term.key))
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
            let Some(at) = self.places.get(cluster) else {
                continue;
            };
            let own = match place {
                Some(i) => self.value(at, &terms[i]),
                None => at.labels.get(key).or_else(|| at.claims.get(key)),
            };
            let above = terms[..place.unwrap_or(0)].iter();
            let above: Option<Vec<String>> =
                above.map(|term| self.value(at, term).cloned()).collect();
            if let (Some(own), Some(above)) = (own, above) {
                let group = topologies.entry(above).or_default();
                *group.entry(own.clone()).or_default() += u32::from(held.contains(cluster));
            }
        }
        topologies
    }

    /// The placement's decision on a cluster, in words; `None` if the placement does not exist.
    pub fn why(&self, namespace: &str, name: &str, cluster: &str) -> Option<String> {
        let names = &self.machine.hub().names;
        let (namespace, name) = (names.get(namespace)?, names.get(name)?);
        let explained: Explanation = self.machine.explain(namespace, name, &self.cel)?;
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
        self.machine.handle(self.now, Input::Tick);
        let mut wanted = Vec::new();
        while let Some(effect) = self.machine.next_effect(&self.cel) {
            let text = |symbol| self.machine.hub().names.text(symbol);
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

/// How many topologies hold a cluster.
fn used(topologies: &Topologies) -> i64 {
    let counts = topologies.values().flat_map(BTreeMap::values);
    i64::try_from(counts.filter(|&&n| n > 0).count()).unwrap_or(i64::MAX)
}

fn is_hard(term: &SpreadTerm) -> bool {
    term.when == WhenUnsatisfiable::DoNotSchedule
}
