//! Adds summaries of parts up to the summary of all, in any order; a part that comes twice counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use anyhow::anyhow;
use serde::Deserialize;

use crate::failure::Failure;
use strew_suite::digest;
use strew_suite::report::API_VERSION;
use strew_suite::seeds::{Seeds, Shard};
use strew_suite::summary::{BREACHES_MAX, KIND, RowSum, Summary, VariantSum};

/// The beginning of a summary's line: a pod's log may have other lines.
const HEAD: &str = "{\"apiVersion\":\"report.strew.dev/";

/// The hint for an incomplete part.
const AGAIN: &str = "play its shard again (strew simulate … --shard I/N --out FILE), and merge the others meanwhile";

/// Adds summaries one at a time.
#[derive(Default)]
pub(crate) struct Merger {
    sum: Option<Summary>,
    /// The origin and digest of each summary, by its seeds.
    parts: BTreeMap<Vec<Vec<Seeds>>, (String, String)>,
    shards: BTreeSet<Shard>,
    /// True if some part was not a shard.
    has_others: bool,
}

/// Whether a summary was new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Added {
    /// It was new.
    New,
    /// The same seeds came before, from this file, with the same result.
    Twice(String),
}

/// The sum of all summaries.
pub(crate) struct Merged {
    pub(crate) summary: Summary,
    /// The missing parts as text; empty if there is none.
    pub(crate) missing: Vec<String>,
    /// The missing shards, if all parts were shards of one division.
    pub(crate) missing_shards: Vec<Shard>,
}

impl Merger {
    /// Adds the summary in a text; `name` is its origin.
    ///
    /// # Errors
    /// It has no complete summary, or one that does not fit the previous ones: nothing was added.
    pub(crate) fn add(&mut self, name: &str, text: &[u8]) -> Result<Added, Failure> {
        let mut summary = read(name, text)?;
        check(&summary).map_err(|what| {
            let error = anyhow!("{name} contradicts itself: {what}");
            Failure::input(error).with_hint(AGAIN)
        })?;
        let shard = summary.shard.take();
        let key: Vec<Vec<Seeds>> = summary.variants().map(|v| v.played.clone()).collect();
        let line = summary.line().map_err(Failure::outside)?;
        let digest = digest::of_text(&line);
        if let Some((known, same)) = self.parts.get(&key) {
            if *same == digest {
                let twice = Added::Twice(known.clone());
                self.note(shard);
                return Ok(twice);
            }
            if let Some(sum) = &self.sum {
                check_related(sum, &summary, [known, name])?;
            }
            let error = anyhow!("{known} and {name} have the same seeds and different results");
            let hint = "equal seeds give equal results: one of the files was changed, or strew has a bug; play both again";
            return Err(Failure::input(error).with_hint(hint));
        }
        match &mut self.sum {
            None => self.sum = Some(summary),
            Some(sum) => {
                let first = self.parts.values().next();
                let first = first.map_or("", |(name, _)| name.as_str());
                check_related(sum, &summary, [first, name])?;
                check_disjoint(sum, &summary, name)?;
                sum.add_findings(summary.findings);
                let sums = sum.scenarios.iter_mut().flat_map(|s| &mut s.variants);
                let others = summary.scenarios.into_iter().flat_map(|s| s.variants);
                for (sum, other) in sums.zip(others) {
                    sum.add(other);
                }
            }
        }
        self.note(shard);
        self.parts.insert(key, (name.to_owned(), digest));
        Ok(Added::New)
    }

    fn note(&mut self, shard: Option<Shard>) {
        match shard {
            Some(shard) => drop(self.shards.insert(shard)),
            None => self.has_others = true,
        }
    }

    /// The sum; `None` if nothing was added.
    pub(crate) fn finish(self) -> Option<Merged> {
        let mut summary = self.sum?;
        let is_whole = summary.variants().all(VariantSum::is_whole);
        let of: BTreeSet<NonZeroU32> = self.shards.iter().map(|shard| shard.of).collect();
        let of = of
            .iter()
            .next()
            .filter(|_| of.len() == 1 && !self.has_others);
        if self.parts.len() == 1 && !is_whole {
            summary.shard = self.shards.first().copied();
        }
        let missing_shards: Vec<Shard> = match of {
            Some(&of) if !is_whole => {
                let all = (0..of.get()).map(|index| Shard { index, of });
                let is_missing = |shard: &Shard| {
                    let mut variants = summary.variants();
                    !self.shards.contains(shard)
                        && variants.any(|v| v.seeds.of_shard(*shard).count > 0)
                };
                all.filter(is_missing).collect()
            }
            _ => Vec::new(),
        };
        let missing = match missing_shards.as_slice() {
            [] => missing_seeds(&summary),
            shards => shards
                .iter()
                .map(|shard| format!("shard {shard}"))
                .collect(),
        };
        Some(Merged {
            summary,
            missing,
            missing_shards,
        })
    }
}

fn missing_seeds(summary: &Summary) -> Vec<String> {
    let of_variant = |variant: &VariantSum| {
        let seeds = variant.missing();
        let seeds: Vec<String> = seeds.iter().map(Seeds::to_string).collect();
        let name = &variant.name;
        (!seeds.is_empty()).then(|| format!("seeds {} of variant {name}", seeds.join(", ")))
    };
    summary.variants().filter_map(of_variant).collect()
}

/// The first fields of each document of strew.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    api_version: String,
    kind: String,
    #[serde(default)]
    strew: Option<String>,
}

/// The summaries of a text: each line that begins as one, where there are several; else the whole text.
pub(crate) fn summaries(text: &[u8]) -> Vec<&[u8]> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines
        .filter(|line| line.starts_with(HEAD.as_bytes()))
        .collect();
    match lines.len() {
        0 | 1 => vec![text],
        _ => lines,
    }
}

fn read(name: &str, text: &[u8]) -> Result<Summary, Failure> {
    let none = |what: &str| {
        let error = anyhow!("{name} {what}");
        Failure::input(error).with_hint("strew simulate FILES --shard I/N --out FILE writes one")
    };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(none("is empty: it holds no SimulationSummary").with_hint(AGAIN));
    }
    let text = match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
        Ok(_) => text,
        Err(_) => {
            let mut lines = text.split(|byte| *byte == b'\n').rev();
            let line = lines.find(|line| line.starts_with(HEAD.as_bytes()));
            line.or_else(|| text.starts_with(b"{").then_some(text))
                .ok_or_else(|| none("holds no SimulationSummary"))?
        }
    };
    let head: Head = serde_json::from_slice(text).map_err(|error| match error.is_eof() {
        true => {
            let error = anyhow!("{name} ends in the midst of its summary");
            Failure::input(error).with_hint(AGAIN)
        }
        false => none("holds no SimulationSummary"),
    })?;
    if (head.api_version.as_str(), head.kind.as_str()) != (API_VERSION, KIND) {
        let Head {
            api_version, kind, ..
        } = head;
        return Err(none(&format!(
            "holds a {kind} of {api_version}, and no {KIND} of {API_VERSION}"
        )));
    }
    let here = strew_suite::build();
    match head.strew {
        Some(there) if there != here => {
            let error = anyhow!("{name} was written by strew {there}, and this is strew {here}");
            Err(Failure::input(error).with_hint("play all shards with one version"))
        }
        _ => serde_json::from_slice(text).map_err(|error| {
            let error = anyhow!(error).context(format!("{name} is no {KIND}"));
            Failure::input(error).with_hint(AGAIN)
        }),
    }
}

/// Refuses a summary that strew did not write.
fn check(summary: &Summary) -> Result<(), String> {
    for variant in summary.variants() {
        let of = |what: &str| format!("{what} of variant {}", variant.name);
        let mut after = u128::from(variant.seeds.first);
        for (number, part) in variant.played.iter().enumerate() {
            // Adjacent ranges are joined.
            let gap = u128::from(number > 0);
            if part.count == 0 || u128::from(part.first) < after + gap {
                return Err(of("the seeds that were played"));
            }
            after = part.end();
        }
        let last = u128::from(u64::MAX) + 1;
        if after > variant.seeds.end() || variant.seeds.end() > last {
            return Err(of("the seeds"));
        }
        let n_played = variant.n_played();
        if variant.broken > n_played {
            return Err(of("the number of broken seeds"));
        }
        for row in &variant.rows {
            let is_sum = row.n_reached() <= n_played && row.held_at_once <= n_played;
            if !is_sum || !is_in_order(row) {
                return Err(of(&format!("{:?}", row.text)));
            }
        }
    }
    Ok(())
}

fn is_in_order(row: &RowSum) -> bool {
    let seeds = &row.seeds_broken;
    seeds.len() <= BREACHES_MAX
        && seeds.len() as u64 <= row.broken
        && seeds.is_sorted_by(|a, b| a.seed < b.seed)
        && row.shapes.is_sorted_by(|a, b| a.key() < b.key())
}

/// Refuses a summary of other input.
fn check_related(sum: &Summary, other: &Summary, names: [&str; 2]) -> Result<(), Failure> {
    let [first, name] = names;
    let refuse = |what: String, hint: &str| {
        Err(Failure::input(anyhow!("{name} does not go with {first}: {what}")).with_hint(hint))
    };
    if sum.command != other.command {
        let what = format!(
            "it was played by `{}`, and the other by `{}`",
            other.command, sum.command
        );
        return refuse(
            what,
            "all shards are played by one command, but for --shard",
        );
    }
    if sum.inputs != other.inputs {
        let what = "the files had other contents".to_owned();
        return refuse(what, "all shards are played with the same files");
    }
    match skeleton(sum) == skeleton(other) {
        true => Ok(()),
        false => refuse("it lists other expectations".to_owned(), AGAIN),
    }
}

/// The fields of a summary that do not depend on the played seeds.
fn skeleton(summary: &Summary) -> Vec<(&str, Option<&str>, bool, Vec<Bones<'_>>)> {
    let scenarios = summary.scenarios.iter();
    let each = scenarios.map(|s| {
        let variants = s.variants.iter().map(bones);
        (&*s.file, s.story.as_deref(), s.built_in, variants.collect())
    });
    each.collect()
}

type RowBones<'a> = (Option<&'a str>, &'a str, bool, bool);
type Bones<'a> = (
    &'a str,
    &'static str,
    Seeds,
    bool,
    &'a str,
    Vec<RowBones<'a>>,
);

fn bones(variant: &VariantSum) -> Bones<'_> {
    let rows = variant.rows.iter();
    let rows = rows.map(|row| (row.when.as_deref(), &*row.text, row.verb, row.decides));
    (
        &variant.name,
        variant.must.name(),
        variant.seeds,
        variant.cut,
        &variant.replay,
        rows.collect(),
    )
}

/// Refuses seeds that were added before.
fn check_disjoint(sum: &Summary, other: &Summary, name: &str) -> Result<(), Failure> {
    let mut pairs = sum.variants().zip(other.variants());
    let common = pairs.find_map(|(a, b)| Some((a, a.in_common(b)?)));
    let Some((variant, seeds)) = common else {
        return Ok(());
    };
    let variant = &variant.name;
    let error = anyhow!("{name} has seeds {seeds} of variant {variant} that came before");
    let hint = "merge shards of one division, and no file that is made of others beside them";
    Err(Failure::input(error).with_hint(hint))
}
