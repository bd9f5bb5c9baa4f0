//! A hub that carries out effects at once and checks each state that a watcher could have seen.

use std::collections::{BTreeMap, BTreeSet};

use strew_model::{Instant, Interner, Labels, Selector, Symbol};
use strew_placement::NoCel;
use strew_placement::decisions::writes::WriteKind;
use strew_placement::facts::cluster::ClusterFact;
use strew_placement::facts::cluster_set::{ClusterSetFact, SetSelector};
use strew_placement::facts::decision::{DecisionFact, GroupLabels};
use strew_placement::facts::placement::{PlacementFact, PlacementSpec};
use strew_placement::facts::status::{ConditionType, PlacementStatus};
use strew_placement::machine::{Effect, EffectId, Input, Limits, Outcome, PlacementMachine};

/// The stored objects of a hub, and a machine that decides on them.
pub(crate) struct Live {
    pub(crate) machine: PlacementMachine,
    pub(crate) now: Instant,
    pub(crate) decisions: BTreeMap<(Symbol, Symbol), DecisionFact>,
    pub(crate) placements: BTreeMap<(Symbol, Symbol), PlacementFact>,
    /// All other facts, in order.
    pub(crate) facts: Vec<Input>,
    revision: u64,
    pub(crate) events: Vec<String>,
    pub(crate) writes: usize,
    /// Clusters that must be in some decision after every write.
    pub(crate) watched: BTreeSet<Symbol>,
}

impl Live {
    /// The namespace `ns`, bound to the set `all` that holds every cluster.
    pub(crate) fn new() -> Self {
        let now = Instant::from_secs(1_000);
        let mut machine = PlacementMachine::new(Interner::new(), Limits::production(), now);
        let (namespace, all) = (
            machine.names_mut().intern("ns"),
            machine.names_mut().intern("all"),
        );
        let mut live = Self {
            machine,
            now,
            decisions: BTreeMap::new(),
            placements: BTreeMap::new(),
            facts: Vec::new(),
            revision: 10,
            events: Vec::new(),
            writes: 0,
            watched: BTreeSet::new(),
        };
        live.tell(Input::ClusterSetSet(ClusterSetFact {
            name: all,
            selector: SetSelector::Labels(Selector::all_of(vec![])),
        }));
        live.tell(Input::BindingSet {
            namespace,
            name: all,
        });
        live
    }

    pub(crate) fn name(&mut self, text: &str) -> Symbol {
        self.machine.names_mut().intern(text)
    }

    pub(crate) fn text(&self, symbol: Symbol) -> String {
        self.machine.hub().names.text(symbol).to_owned()
    }

    /// Adds a fact other than a placement or a decision.
    pub(crate) fn tell(&mut self, input: Input) {
        self.facts.push(input.clone());
        self.machine.handle(self.now, input);
    }

    /// A cluster with labels.
    pub(crate) fn cluster(&mut self, name: &str, labels: &[(&str, &str)]) -> ClusterFact {
        let pair = |&(key, value): &(&str, &str)| {
            let names = self.machine.names_mut();
            (names.intern(key), names.intern(value))
        };
        let labels = Labels::new(labels.iter().map(pair).collect());
        let name = self.name(name);
        ClusterFact {
            labels,
            ..ClusterFact::named(name)
        }
    }

    /// Sets the specification of the placement `ns/NAME`.
    pub(crate) fn place(&mut self, name: &str, spec: PlacementSpec) {
        let (namespace, name) = (self.name("ns"), self.name(name));
        self.revision += 1;
        let revision = self.revision;
        let fact = self
            .placements
            .entry((namespace, name))
            .or_insert(PlacementFact {
                namespace,
                name,
                uid: "uid".into(),
                spec: PlacementSpec::default(),
                status: PlacementStatus::default(),
                ignored: false,
                revision,
            });
        (fact.spec, fact.revision) = (spec, revision);
        let fact = Box::new(fact.clone());
        self.machine.handle(self.now, Input::PlacementSet(fact));
    }

    /// Carries out effects until there is none, and reports facts after each write. Returns the number of writes.
    pub(crate) fn rest(&mut self) -> usize {
        let before = self.writes;
        while let Some(effect) = self.machine.poll_effect(&NoCel) {
            self.carry_out(effect);
            assert!(self.writes - before < 1_000, "it does not come to rest");
        }
        self.writes - before
    }

    /// Carries out an effect, and reports its outcome and the new fact.
    pub(crate) fn carry_out(&mut self, effect: Effect) {
        let effect = match effect {
            Effect::Event(event) => {
                let warning = if event.warning { "Warning " } else { "" };
                let line = format!("{warning}{} {}", event.kind.names().0, event.note);
                return self.events.push(line);
            }
            effect => effect,
        };
        let (id, fact) = self.store(effect);
        let outcome = Outcome::Ok {
            revision: self.revision,
        };
        self.machine.handle(
            self.now,
            Input::Outcome {
                effect: id,
                outcome,
            },
        );
        self.machine.handle(self.now, fact);
    }

    /// Carries out an effect. The watch reports the first request of a write, which sets the decisions, before the
    /// second request, which sets labels and annotation, is answered. `others` changes the object between the two.
    pub(crate) fn carry_out_in_halves(
        &mut self,
        effect: Effect,
        others: impl Fn(&mut DecisionFact),
    ) {
        let before = match &effect {
            Effect::WriteDecision {
                placement, write, ..
            } => {
                let key = (placement.namespace, write.name);
                self.decisions.get(&key).cloned()
            }
            _ => None,
        };
        let Some(before) = before else {
            return self.carry_out(effect);
        };
        let (effect, fact) = self.store(effect);
        let Input::DecisionSet(mut whole) = fact else {
            panic!("an update stays");
        };
        let mut half = DecisionFact {
            decisions: whole.decisions.clone(),
            revision: whole.revision,
            ..before
        };
        others(&mut half);
        self.machine.handle(self.now, Input::DecisionSet(half));
        self.revision += 1;
        let revision = self.revision;
        whole.revision = revision;
        let key = (whole.namespace, whole.name);
        self.decisions.insert(key, whole.clone());
        let outcome = Outcome::Ok { revision };
        self.machine
            .handle(self.now, Input::Outcome { effect, outcome });
        self.machine.handle(self.now, Input::DecisionSet(whole));
    }

    /// Carries out an effect without reporting it.
    pub(crate) fn store(&mut self, effect: Effect) -> (EffectId, Input) {
        self.revision += 1;
        let revision = self.revision;
        let stored = match effect {
            Effect::Event(_) => panic!("events are not stored"),
            Effect::WriteStatus {
                id,
                placement,
                status,
                revision: known,
            } => {
                let fact = self
                    .placements
                    .get_mut(&(placement.namespace, placement.name))
                    .expect("it is there");
                assert_eq!(fact.revision, known, "a stale write");
                (fact.status, fact.revision) = (status, revision);
                (id, Input::PlacementSet(Box::new(fact.clone())))
            }
            Effect::WriteDecision {
                id,
                decision: _,
                placement,
                write,
                revision: known,
            } => {
                let key = (placement.namespace, write.name);
                assert_eq!(
                    self.decisions.get(&key).map(|d| d.revision),
                    known,
                    "a stale write"
                );
                let (namespace, name) = key;
                if write.kind == WriteKind::Delete {
                    self.decisions.remove(&key).expect("it is there");
                    (id, Input::DecisionGone { namespace, name })
                } else {
                    let fact = self.decisions.entry(key).or_insert(DecisionFact {
                        namespace,
                        name,
                        placement: Some(placement.name),
                        group: GroupLabels {
                            index: None,
                            name: None,
                        },
                        decisions: Box::default(),
                        replicas: Default::default(),
                        has_reason: false,
                        revision,
                    });
                    fact.revision = revision;
                    if let Some(group) = write.group {
                        // The three labels are written together.
                        (fact.group, fact.placement) = (group, Some(placement.name));
                    }
                    fact.replicas = write.replicas.unwrap_or_else(|| fact.replicas.clone());
                    fact.has_reason &= write.decisions.is_none();
                    fact.decisions = write.decisions.unwrap_or_else(|| fact.decisions.clone());
                    (id, Input::DecisionSet(fact.clone()))
                }
            }
        };
        self.writes += 1;
        let decisions = self
            .decisions
            .values()
            .flat_map(|fact| fact.decisions.iter());
        let held: BTreeSet<Symbol> = decisions.map(|decision| decision.cluster).collect();
        assert!(held.is_superset(&self.watched), "somebody is missing");
        stored
    }

    /// Lets time pass, and carries out the effects that follow.
    pub(crate) fn wait(&mut self, secs: u64) {
        let end = Instant::from_secs(self.now.secs() + secs);
        while let Some(at) = self.machine.next_wake().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.machine.handle(self.now, Input::Tick);
            self.rest();
        }
        self.now = end;
        self.machine.handle(self.now, Input::Tick);
        self.rest();
    }

    /// The clusters that placement `ns/NAME` holds.
    pub(crate) fn held(&mut self, name: &str) -> Vec<String> {
        let name = self.name(name);
        let own = self
            .decisions
            .values()
            .filter(|d| d.placement == Some(name));
        let clusters: BTreeSet<String> = own
            .flat_map(|d| d.decisions.iter())
            .map(|d| self.text(d.cluster))
            .collect();
        clusters.into_iter().collect()
    }

    /// A condition of placement `ns/NAME` as `True Reason message`.
    pub(crate) fn condition(&mut self, name: &str, kind: ConditionType) -> Option<String> {
        let key = (self.name("ns"), self.name(name));
        let condition = self.placements[&key].status.condition(kind)?;
        let status = if condition.status { "True" } else { "False" };
        Some(format!(
            "{status} {} {}",
            condition.reason.name(),
            condition.message
        ))
    }

    /// A new machine with all present facts.
    pub(crate) fn restarted(&self) -> PlacementMachine {
        let names = self.machine.hub().names.clone();
        let mut fresh = PlacementMachine::new(names, Limits::production(), self.now);
        let decisions = self.decisions.values().cloned().map(Input::DecisionSet);
        let placements = self.placements.values().cloned().map(Box::new);
        let facts = self.facts.iter().cloned().chain(decisions);
        for input in facts.chain(placements.map(Input::PlacementSet)) {
            fresh.handle(self.now, input);
        }
        fresh
    }
}
