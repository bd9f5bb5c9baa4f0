//! `--what-if`: clusters that are lost, added, tainted or labelled, and Placements that are edited.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use strew_apiserver::object::moment;
use strew_manifest::ocm::{ManagedCluster, Taint};
use strew_manifest::read::KubeObject;
use strew_model::Instant;
use strew_plan::written::{Effects, FleetVerb, LabelEdit, MemberVerb, TaintEdit};
use strew_plan::{Member, Part};
use strew_wire::placement::schema::EFFECTS;

use super::fleet::{self, Fleet};
use crate::failure::Failure;
use crate::parts;
use crate::what_if::Asked;

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
    let verbs = FleetVerb::HELP;
    format!(
        "The changes to try: {verbs}; CLUSTERS are names or KEY=VALUE (a label or claim), with commas between"
    )
}

/// Reads the value of `--what-if`.
pub(super) fn asked(text: &str) -> Result<Asked<FleetVerb>, String> {
    let read = FleetVerb::parse(text, &CLUSTER_EFFECTS);
    Asked::of(text, read, (FleetVerb::HELP, "CLUSTERS"))
}

/// The fleet after all changes.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    /// The changes in order.
    pub(super) words: Vec<String>,
    pub(super) fleet: Fleet,
    /// The clusters that a change names, with what it does to them.
    pub(super) touched: BTreeMap<String, &'static str>,
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
    /// What is asked about: `region=eu is lost`.
    pub(super) fn asked(&self) -> String {
        let words = self.words.join(", ");
        match (self.is_loss, self.words.len()) {
            (true, 1) => format!("{words} is lost"),
            (true, _) => format!("{words} are lost"),
            (false, _) => words,
        }
    }

    /// The fleet after changes, in order.
    ///
    /// # Errors
    /// A word that names no cluster, or a file that cannot be read.
    pub(super) fn of(
        all: &[Asked<FleetVerb>],
        fleet: &Fleet,
        now: Instant,
    ) -> Result<Self, Failure> {
        let mut changed = Self {
            words: Vec::new(),
            fleet: fleet.clone(),
            touched: BTreeMap::new(),
            is_loss: true,
            each: Vec::new(),
        };
        for asked in all {
            changed.apply(asked, now)?;
        }
        Ok(changed)
    }

    fn apply(&mut self, asked: &Asked<FleetVerb>, now: Instant) -> Result<(), Failure> {
        match &asked.verb {
            FleetVerb::LoseEach(key) => {
                self.each.push(key.clone());
                return Ok(());
            }
            FleetVerb::Clusters(MemberVerb::Lose, parts) => {
                let lost = find(parts, &self.fleet)?;
                self.words.extend(parts.iter().map(Part::to_string));
                self.lose(&lost);
                return Ok(());
            }
            FleetVerb::Clusters(verb, parts) => {
                for name in find(parts, &self.fleet)? {
                    self.edit(name, verb, now);
                }
            }
            FleetVerb::Add(names, labels) => {
                for name in names {
                    if self.fleet.clusters.contains_key(name) {
                        let error = anyhow!("there is a cluster {name:?} already");
                        return Err(Failure::input(error));
                    }
                    let mut cluster = ManagedCluster::default();
                    cluster.metadata.name = Some(name.clone());
                    cluster.metadata.labels = Some(labels.iter().cloned().collect());
                    self.touched.insert(name.clone(), "added");
                    self.fleet.put(cluster.into());
                }
            }
            FleetVerb::File(name) => {
                for object in fleet::objects_of(name)? {
                    if let KubeObject::ManagedCluster(_) = &object {
                        self.touched.insert(object.name().to_owned(), "edited");
                    }
                    self.fleet.put(object);
                }
            }
        }
        self.is_loss = false;
        self.words.push(asked.text.clone());
        Ok(())
    }

    /// Removes clusters.
    pub(super) fn lose(&mut self, lost: &BTreeSet<String>) {
        self.fleet.clusters.retain(|name, _| !lost.contains(name));
        let lost = lost.iter().map(|name| (name.clone(), "lost"));
        self.touched.extend(lost);
    }

    fn edit(&mut self, name: String, verb: &MemberVerb<&'static str>, now: Instant) {
        let Some(cluster) = self.fleet.clusters.get_mut(&name) else {
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
                taints.push(Taint {
                    key: key.clone(),
                    value: Some(value.clone()).filter(|value| !value.is_empty()),
                    effect: (*effect).to_owned(),
                    time_added: Some(moment::to_wire(now)),
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
        self.touched.insert(name, word);
    }
}

/// The clusters that parts name.
fn find(parts: &[Part], fleet: &Fleet) -> Result<BTreeSet<String>, Failure> {
    let all: Vec<Cluster<'_>> = fleet.clusters.iter().map(Cluster::of).collect();
    let mut found = BTreeSet::new();
    for part in parts {
        let each = parts::find(part, &all, &WORDS)?;
        found.extend(each.iter().map(|cluster| cluster.name.to_owned()));
    }
    Ok(found)
}

/// The clusters of each value of a key, by value.
///
/// # Errors
/// No cluster has the key.
pub(super) fn domains(
    key: &str,
    fleet: &Fleet,
) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let mut domains = BTreeMap::<String, BTreeSet<String>>::new();
    for cluster in fleet.clusters.iter().map(Cluster::of) {
        for value in cluster.domains(key) {
            let names = domains.entry(value.to_owned()).or_default();
            names.insert(cluster.name.to_owned());
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
    name: &'a str,
    object: &'a ManagedCluster,
}

impl<'a> Cluster<'a> {
    fn of((name, object): (&'a String, &'a ManagedCluster)) -> Self {
        Self { name, object }
    }
}

impl Member for Cluster<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn domains(&self, key: &str) -> impl Iterator<Item = &str> {
        let pairs = self.object.labels().chain(self.object.claims());
        let own = pairs.filter(move |(own, _)| *own == key);
        own.map(|(_, value)| value)
    }
}
