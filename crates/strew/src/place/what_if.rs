//! Clusters that are lost: `lose=region/us-east`, `lose=east-1,east-2`.

use std::collections::BTreeSet;

use strew_model::{Interner, Symbol};
use strew_placement::facts::cluster::ClusterFact;
use strew_placement::machine::Input;
use strew_plan::{Member, Part};

use super::fleet::Fleet;
use crate::failure::Failure;
use crate::parts;

/// What is lost.
#[derive(Debug)]
pub(super) struct Loss {
    /// As it was asked for.
    pub(super) words: Vec<String>,
    /// Which clusters these are.
    pub(super) clusters: BTreeSet<Symbol>,
}

/// Reads the value of `--what-if`.
pub(super) fn words(text: &str) -> Result<Words, String> {
    let list = text.strip_prefix("lose=").filter(|list| !list.is_empty());
    let list = list.ok_or("only lose=KEY/VALUE and lose=CLUSTER[,CLUSTER...] are known")?;
    Part::parse_list(list).map(Words)
}

/// What is lost, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(Vec<Part>);

impl Loss {
    /// What the words mean in a fleet; `None` if there are none.
    ///
    /// # Errors
    /// A word that means no cluster.
    pub(super) fn of(all: &[Words], fleet: &Fleet) -> Result<Option<Self>, Failure> {
        const WORDS: parts::Words = parts::Words {
            noun: "cluster",
            place: " in the files",
            source: ", as a label or a claim",
            domain: "region or zone is lost by lose=KEY/VALUE",
        };
        let names = &fleet.names;
        let clusters = fleet.facts.iter().filter_map(|input| match input {
            Input::ClusterSet(fact) => Some(Cluster { fact, names }),
            _ => None,
        });
        let clusters: Vec<Cluster<'_>> = clusters.collect();
        let mut loss = Self {
            words: Vec::new(),
            clusters: BTreeSet::new(),
        };
        for part in all.iter().flat_map(|words| &words.0) {
            let found = parts::find(part, &clusters, &WORDS)?;
            loss.words.push(part.to_string());
            loss.clusters.extend(found.iter().map(|c| c.fact.name));
        }
        Ok((!loss.words.is_empty()).then_some(loss))
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
