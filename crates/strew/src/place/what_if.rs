//! `--what-if`: clusters that are lost, added, tainted or labelled, and Placements that are edited.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use strew_manifest::ocm::{ManagedCluster, Taint};
use strew_manifest::read::KubeObject;
use strew_model::{Instant, Interner, Symbol};
use strew_placement::facts::cluster::ClusterFact;
use strew_placement::facts::placement::PlacementFact;
use strew_placement::machine::Input;
use strew_plan::written::{Effects, LabelEdit, MemberVerb, TaintEdit, Written};
use strew_plan::{Member, Part};
use strew_wire::placement::facts;
use strew_wire::placement::schema::EFFECTS;

use super::difference::clusters;
use super::fleet::{self, Fleet};
use crate::failure::Failure;
use crate::parts;

/// The changes of `--what-if`.
pub(super) const HELP: &str = "lose=CLUSTERS, lose-each=KEY, add=NAME[,NAME...][:KEY=VALUE,...], add=FILE, \
                    taint=CLUSTERS:KEY[=VALUE][:EFFECT], untaint=CLUSTERS:KEY[:EFFECT], \
                    label=CLUSTERS:KEY=VALUE, unlabel=CLUSTERS:KEY, edit=FILE";

/// The effects of clusters' taints.
const CLUSTER_EFFECTS: Effects<&str> = Effects {
    all: &[
        (EFFECTS[0], EFFECTS[0]),
        (EFFECTS[1], EFFECTS[1]),
        (EFFECTS[2], EFFECTS[2]),
    ],
    default: Some(EFFECTS[0]),
};

/// The help of `--what-if`.
pub(crate) fn help() -> String {
    format!(
        "The changes to try: {HELP}; CLUSTERS are names or KEY=VALUE (a label or claim), with commas between"
    )
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// As written.
    text: String,
    verb: Verb,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verb {
    Clusters(ClusterVerb, Vec<Part>),
    LoseEach(String),
    /// Names, with the labels of each.
    Add(Vec<String>, Vec<(String, String)>),
    /// Objects that are added, or replace those of the same name.
    File(String),
}

type ClusterVerb = MemberVerb<&'static str>;

/// Reads the value of `--what-if`.
pub(super) fn asked(text: &str) -> Result<Asked, String> {
    let written = Written::of(text);
    let known =
        || format!("known are {HELP}; CLUSTERS are names or KEY=VALUE, with commas between");
    if written.subject.is_empty() {
        return Err(known());
    }
    // A file's name may have colons and blanks.
    let rest = text.trim()[written.verb.len()..].trim_start_matches(['=', ':', ' ']);
    let verb = match (written.verb, written.argument) {
        ("lose-each", None) => Verb::LoseEach(written.subject.to_owned()),
        ("add", _) if is_file(rest) => Verb::File(rest.to_owned()),
        ("add", argument) => {
            let names = written.subject.split(',').map(str::to_owned).collect();
            let labels = argument.into_iter().flat_map(|list| list.split(','));
            Verb::Add(names, labels.map(pair).collect::<Result<_, _>>()?)
        }
        ("edit", _) => Verb::File(rest.to_owned()),
        _ => {
            let (verb, parts) = written.members(&CLUSTER_EFFECTS).ok_or_else(known)??;
            let has_it = matches!(
                verb,
                MemberVerb::Lose | MemberVerb::Taint(_) | MemberVerb::Label(_)
            );
            match has_it {
                true => Verb::Clusters(verb, parts),
                false => return Err(known()),
            }
        }
    };
    Ok(Asked {
        text: text.to_owned(),
        verb,
    })
}

/// A cluster's name is a subdomain: it has no slash, and rarely such an ending.
fn is_file(text: &str) -> bool {
    text.contains('/')
        || [".yaml", ".yml", ".json"]
            .iter()
            .any(|end| text.ends_with(end))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The fleet after all changes.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    /// The changes in order.
    pub(super) words: Vec<String>,
    /// All facts except Placements.
    pub(super) facts: Vec<Input>,
    /// By namespace and name.
    pub(super) placements: Vec<PlacementFact>,
    /// The clusters that a change names, with what it does to them.
    pub(super) touched: BTreeMap<Symbol, &'static str>,
    /// True if clusters are lost and nothing else is changed.
    pub(super) is_loss: bool,
    /// The keys whose values are lost one at a time.
    pub(super) each: Vec<String>,
}

const WORDS: parts::Words = parts::Words {
    noun: "cluster",
    place: " in the files",
    source: ", as a label or a claim",
    domain: "region or zone is lost by lose=KEY/VALUE",
};

impl Changed {
    /// The fleet after changes, in order. Strings and clusters are added to the given fleet, which is not used
    /// afterwards.
    ///
    /// # Errors
    /// A word that names no cluster, or a file that cannot be read.
    pub(super) fn of(all: &[Asked], fleet: &mut Fleet, now: Instant) -> Result<Self, Failure> {
        let mut changed = Self {
            words: Vec::new(),
            facts: fleet.facts.clone(),
            placements: fleet.placements.clone(),
            touched: BTreeMap::new(),
            is_loss: true,
            each: Vec::new(),
        };
        for asked in all {
            changed.apply(asked, fleet, now)?;
        }
        Ok(changed)
    }

    fn apply(&mut self, asked: &Asked, fleet: &mut Fleet, now: Instant) -> Result<(), Failure> {
        match &asked.verb {
            Verb::LoseEach(key) => {
                self.each.push(key.clone());
                return Ok(());
            }
            Verb::Clusters(MemberVerb::Lose, parts) => {
                let lost = find(parts, &self.facts, &fleet.names)?;
                self.words.extend(parts.iter().map(Part::to_string));
                self.lose(&lost);
                return Ok(());
            }
            Verb::Clusters(verb, parts) => {
                for name in find(parts, &self.facts, &fleet.names)? {
                    self.edit(name, verb, fleet, now);
                }
            }
            Verb::Add(names, labels) => {
                for name in names {
                    let known = fleet.names.get(name);
                    if known.is_some_and(|name| clusters(&self.facts).contains_key(&name)) {
                        let error = anyhow!("there is a cluster {name:?} already");
                        return Err(Failure::input(error));
                    }
                    let mut cluster = ManagedCluster::default();
                    cluster.metadata.name = Some(name.clone());
                    cluster.metadata.labels = Some(labels.iter().cloned().collect());
                    self.put(
                        KubeObject::ManagedCluster(Box::new(cluster)),
                        "added",
                        fleet,
                    );
                }
            }
            Verb::File(name) => {
                for object in fleet::objects_of(name)? {
                    self.put(object, "edited", fleet);
                }
            }
        }
        self.is_loss = false;
        self.words.push(asked.text.clone());
        Ok(())
    }

    /// Removes clusters.
    pub(super) fn lose(&mut self, lost: &BTreeSet<Symbol>) {
        let is_lost =
            |input: &Input| matches!(input, Input::ClusterSet(c) if lost.contains(&c.name));
        self.facts.retain(|input| !is_lost(input));
        self.touched.extend(lost.iter().map(|&name| (name, "lost")));
    }

    fn edit(&mut self, name: Symbol, verb: &ClusterVerb, fleet: &mut Fleet, now: Instant) {
        let Some(mut cluster) = fleet.clusters.get(&name).cloned() else {
            return;
        };
        let labels = cluster.metadata.labels.get_or_insert_default();
        let spec = cluster.spec.get_or_insert_default();
        let taints = spec.taints.get_or_insert_default();
        let is = |taint: &Taint, key: &str, effect: Option<&&str>| {
            taint.key == key && effect.is_none_or(|effect| taint.effect == *effect)
        };
        let word = match verb {
            MemberVerb::Taint(TaintEdit::Add { key, value, effect }) => {
                taints.retain(|taint| !is(taint, key, Some(effect)));
                let added = Timestamp::from_nanosecond(i128::from(now.0));
                taints.push(Taint {
                    key: key.clone(),
                    value: Some(value.clone()).filter(|value| !value.is_empty()),
                    effect: (*effect).to_owned(),
                    time_added: added.ok().map(Time),
                });
                "tainted"
            }
            MemberVerb::Taint(TaintEdit::Remove { key, effect }) => {
                taints.retain(|taint| !is(taint, key, effect.as_ref()));
                "untainted"
            }
            MemberVerb::Label(LabelEdit::Set(key, value)) => {
                labels.insert(key.clone(), value.clone());
                "relabelled"
            }
            MemberVerb::Label(LabelEdit::Remove(key)) => {
                labels.remove(key);
                "relabelled"
            }
            // Clusters are not cordoned, and their loss is that of the object.
            _ => return,
        };
        self.put(KubeObject::ManagedCluster(Box::new(cluster)), word, fleet);
    }

    /// Sets an object.
    fn put(&mut self, mut object: KubeObject, word: &'static str, fleet: &mut Fleet) {
        if let KubeObject::ManagedCluster(cluster) = &mut object
            && fleet.assumes_sets
        {
            fleet::join_default(cluster);
        }
        let Some(input) = facts::inputs(&object, &mut fleet.names, &mut fleet.cel) else {
            return;
        };
        match (input, object) {
            (Input::ClusterSet(fact), KubeObject::ManagedCluster(cluster)) => {
                let name = fact.name;
                self.touched.insert(name, word);
                fleet.clusters.insert(name, *cluster);
                let is_this =
                    |input: &&mut Input| matches!(input, Input::ClusterSet(c) if c.name == name);
                match self.facts.iter_mut().find(is_this) {
                    Some(known) => *known = Input::ClusterSet(fact),
                    None => self.facts.push(Input::ClusterSet(fact)),
                }
            }
            (Input::PlacementSet(fact), KubeObject::Placement(written)) => {
                let key = (fact.namespace, fact.name);
                fleet.written.insert(key, *written);
                self.placements
                    .retain(|known| (known.namespace, known.name) != key);
                self.facts.extend(fleet.binding_of(&fact));
                self.placements.push(*fact);
                fleet::sort(&mut self.placements, &fleet.names);
            }
            // The later of two counts.
            (input, _) => self.facts.push(input),
        }
    }
}

/// The clusters that parts name.
fn find(parts: &[Part], facts: &[Input], names: &Interner) -> Result<BTreeSet<Symbol>, Failure> {
    let all = clusters(facts);
    let all: Vec<Cluster<'_>> = all.values().map(|&fact| Cluster { fact, names }).collect();
    let mut found = BTreeSet::new();
    for part in parts {
        let each = parts::find(part, &all, &WORDS)?;
        found.extend(each.iter().map(|cluster| cluster.fact.name));
    }
    Ok(found)
}

/// The clusters of each value of a key, by value.
///
/// # Errors
/// No cluster has the key.
pub(super) fn domains(
    key: &str,
    facts: &[Input],
    names: &Interner,
) -> Result<BTreeMap<String, BTreeSet<Symbol>>, Failure> {
    let mut domains = BTreeMap::<String, BTreeSet<Symbol>>::new();
    for (&name, &fact) in &clusters(facts) {
        for value in (Cluster { fact, names }).domains(key) {
            domains.entry(value.to_owned()).or_default().insert(name);
        }
    }
    match domains.is_empty() {
        true => Err(Failure::input(anyhow!(
            "no cluster has {key}, as a label or a claim"
        ))),
        false => Ok(domains),
    }
}

struct Cluster<'a> {
    fact: &'a ClusterFact,
    names: &'a Interner,
}

impl Member for Cluster<'_> {
    fn name(&self) -> &str {
        self.names.text(self.fact.name)
    }

    fn domains(&self, key: &str) -> impl Iterator<Item = &str> {
        let key = self.names.get(key);
        let both = key.map(|key| [self.fact.labels.get(key), self.fact.claims.get(key)]);
        let values = both.into_iter().flatten().flatten();
        values.map(|value| self.names.text(value))
    }
}
