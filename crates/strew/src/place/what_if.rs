//! Clusters that are lost: `lose=region/us-east`, `lose=east-1,east-2`.

use std::collections::BTreeSet;

use anyhow::anyhow;
use strew_api::read::nearest;
use strew_model::Symbol;
use strew_placement::facts::cluster::ClusterFact;
use strew_placement::machine::Input;

use super::fleet::Fleet;
use crate::failure::Failure;

/// What is lost, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(Vec<Word>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// The clusters whose label or claim `key` has this value.
    Domain { key: String, value: String },
    /// The cluster of this name.
    Cluster(String),
}

/// What is lost.
#[derive(Debug)]
pub(super) struct Loss {
    /// In words, as they were given.
    pub(super) words: Vec<String>,
    /// Which clusters these are.
    pub(super) clusters: BTreeSet<Symbol>,
}

/// Reads the value of `--what-if`.
pub(super) fn words(text: &str) -> Result<Words, String> {
    let list = text.strip_prefix("lose=").filter(|list| !list.is_empty());
    let list = list.ok_or("only lose=KEY/VALUE and lose=CLUSTER[,CLUSTER...] are known")?;
    let word = |text: &str| match text.rsplit_once('/') {
        // A key may have slashes, a value has none.
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(Word::Domain {
            key: key.to_owned(),
            value: value.to_owned(),
        }),
        Some(_) => Err(format!("{text:?} is no KEY/VALUE")),
        None if text.is_empty() => Err("a name is missing between the commas".to_owned()),
        None => Ok(Word::Cluster(text.to_owned())),
    };
    let words: Result<Vec<Word>, String> = list.split(',').map(word).collect();
    words.map(Words)
}

impl Loss {
    /// What the words mean in a fleet; `None` if there are none.
    ///
    /// # Errors
    /// A word that means no cluster: asked like that, nothing would move, and that would mislead.
    pub(super) fn of(all: &[Words], fleet: &Fleet) -> Result<Option<Self>, Failure> {
        let mut loss = Self {
            words: Vec::new(),
            clusters: BTreeSet::new(),
        };
        for word in all.iter().flat_map(|words| &words.0) {
            let found = match word {
                Word::Cluster(name) => named(name, fleet)?,
                Word::Domain { key, value } => of_domain(key, value, fleet)?,
            };
            loss.words.push(match word {
                Word::Cluster(name) => name.clone(),
                Word::Domain { key, value } => format!("{key}={value}"),
            });
            loss.clusters.extend(found);
        }
        Ok((!loss.words.is_empty()).then_some(loss))
    }
}

fn clusters(fleet: &Fleet) -> impl Iterator<Item = &ClusterFact> {
    fleet.facts.iter().filter_map(|input| match input {
        Input::ClusterSet(cluster) => Some(cluster),
        _ => None,
    })
}

fn named(name: &str, fleet: &Fleet) -> Result<Vec<Symbol>, Failure> {
    let text = |cluster: &ClusterFact| fleet.names.text(cluster.name);
    let found = clusters(fleet).find(|cluster| text(cluster) == name);
    if let Some(cluster) = found {
        return Ok(vec![cluster.name]);
    }
    let error = anyhow!("there is no cluster {name:?} in the files");
    let failure = Failure::input(error);
    let known = clusters(fleet).map(text);
    Err(match nearest(name, known) {
        Some(meant) => failure.with_hint(format!(
            "did you mean {meant}? A region or zone is lost by lose=KEY/VALUE"
        )),
        None => failure.with_hint("a region or zone is lost by lose=KEY/VALUE"),
    })
}

fn of_domain(key: &str, value: &str, fleet: &Fleet) -> Result<Vec<Symbol>, Failure> {
    let symbols = fleet.names.get(key);
    let values = |cluster: &ClusterFact| {
        let both = symbols.map(|key| [cluster.labels.get(key), cluster.claims.get(key)]);
        both.into_iter()
            .flatten()
            .flatten()
            .collect::<Vec<Symbol>>()
    };
    let is_there = |cluster: &&ClusterFact| {
        values(cluster)
            .iter()
            .any(|&v| fleet.names.text(v) == value)
    };
    let found: Vec<Symbol> = clusters(fleet).filter(is_there).map(|c| c.name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known: BTreeSet<&str> = clusters(fleet)
        .flat_map(values)
        .map(|v| fleet.names.text(v))
        .collect();
    let error = anyhow!("no cluster has {key}={value}, as a label or a claim");
    let failure = Failure::input(error);
    Err(
        match (known.is_empty(), nearest(value, known.iter().copied())) {
            (true, _) => failure.with_hint(format!("no cluster has {key} at all")),
            (false, Some(meant)) => failure.with_hint(format!("did you mean {key}/{meant}?")),
            (false, None) => {
                let some: Vec<&str> = known.into_iter().take(10).collect();
                failure.with_hint(format!("there are {}", some.join(", ")))
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_lost() {
        let domain = |key: &str, value: &str| Word::Domain {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let cluster = |name: &str| Word::Cluster(name.to_owned());
        let cases = [
            (
                "lose=region/us-east",
                Some(vec![domain("region", "us-east")]),
            ),
            (
                "lose=topology.kubernetes.io/zone/a,c1",
                Some(vec![
                    domain("topology.kubernetes.io/zone", "a"),
                    cluster("c1"),
                ]),
            ),
            ("lose=", None),
            ("lose=a,,b", None),
            ("lose=/a", None),
            ("lose=a/", None),
            ("add=a", None),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text).ok(), expected.map(Words), "{text}");
        }
    }
}
