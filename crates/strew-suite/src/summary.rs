//! What came of all seeds, in sum: kind `SimulationSummary`, which `strew merge` adds up.
//!
//! A sum depends neither on the order in which runs and parts are added nor on how the seeds were divided: numbers are
//! added, and details are kept for the smallest seeds, up to a bound that the sum contains.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strew_manifest::finding::Finding;
use strew_manifest::read::{Place, Severity};
use strew_model::Span;
use strew_scenario::expect::spread::ByDomain;
use strew_scenario::run::POD_CREATION;
use strew_view::natural_order::natural_order;

use crate::clock::clock;
pub use crate::remarks::RemarkSum;
use crate::seeds::{Seeds, Shard};
use crate::verdicts;

/// The kind of the document.
pub const KIND: &str = "SimulationSummary";

/// The largest number of seeds that a row lists, the smallest ones.
pub const BREACHES_MAX: usize = 1000;

/// The largest number of different counts that a row lists, the most even ones.
const SHAPES_MAX: usize = 1000;

/// `SimulationSummary`: the results of every scenario, variant and expectation, summed over the played seeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SimulationSummary")]
pub struct Summary {
    pub api_version: String,
    pub kind: String,
    /// The version of strew that played the seeds, with its commit where it is known.
    pub strew: String,
    /// The kube-scheduler whose decisions these are.
    pub kubernetes: String,
    /// Whose decisions: `1.36`, or `strew`.
    pub compat: String,
    /// SHA-256 of the files with their names, and of the options that affect results.
    pub inputs: String,
    /// The arguments that play all seeds, after the name of the program.
    pub command: String,
    /// `I/N`: the part of the seeds; absent if it is all of them, or made of several parts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shard: Option<Shard>,
    /// The first file; `<stdin>` for standard input.
    pub first_file: String,
    /// A warning fails the command: `--fail-on warnings`.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub fails_on_warnings: bool,
    /// What a person should know about the files, and about what came of them: errors first, then by place.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<Finding>,
    pub scenarios: Vec<ScenarioSum>,
}

/// The sum of a Scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScenarioSum {
    pub file: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub story: Option<String>,
    /// It is the built-in story, which is in no file.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub built_in: bool,
    /// What was read of the files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read: Option<ReadSum>,
    pub variants: Vec<VariantSum>,
}

/// The numbers of what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadSum {
    /// Files, standard input among them.
    pub files: u64,
    /// Objects of these files, a Scenario among them.
    pub objects: u64,
}

/// The sum of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VariantSum {
    pub name: String,
    pub must: Must,
    /// The seeds of the whole sweep.
    pub seeds: Seeds,
    /// The completed seeds: in order, adjacent ranges joined.
    pub played: Vec<Seeds>,
    /// The number of broken seeds.
    pub broken: u64,
    /// Runs were ended early by `--until`.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub cut: bool,
    /// The virtual time of all runs.
    pub virtual_milliseconds: u64,
    /// The arguments that play one seed, after the name of the program; `--seed N` and `--until TIME` are appended.
    pub replay: String,
    /// Claims of `always` first, then step by step.
    pub rows: Vec<RowSum>,
}

/// The result that a variant must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Must {
    /// It must hold with every seed.
    Hold,
    /// It must break with some seed.
    Fail,
    /// It may do either.
    MayFail,
}

impl Must {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Fail => "fail",
            Self::MayFail => "mayFail",
        }
    }
}

/// An expectation, or a verb that may be refused, over all seeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RowSum {
    /// The name or the time of its step; absent: it is judged after every instant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub when: Option<String>,
    pub text: String,
    /// It is a verb.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub verb: bool,
    /// For a spread expectation: whose pods are counted by which key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub counted: Option<String>,
    /// The claim names the number of pods of each domain: counts are kept by domain.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub by_domain: bool,
    /// Its place in the file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<LineAndColumn>,
    /// Whether its breach breaks the run: `--fail-on` may name other steps.
    pub decides: bool,
    /// When its step began, in the smallest seed so far.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub began: Option<SeedAt>,
    pub held: u64,
    /// Seeds whose run was ended before it was decided.
    pub open: u64,
    pub broken: u64,
    /// Seeds in which it already held right after the verbs of its step, before these had an effect.
    pub held_at_once: u64,
    /// The counts that were found, with the number of seeds of each; at most 1000, the most even ones.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shapes: Vec<ShapeSum>,
    /// Seeds with other counts than these.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub other_shapes: u64,
    /// The breach of the smallest seed, or the refusal of a verb that does not fail the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first: Option<Breach>,
    /// Seeds in which it broke, and when; at most the 1000 smallest.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub seeds_broken: Vec<SeedAt>,
    /// What a person should know of it, the worst first; at most 1000.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remarks: Vec<RemarkSum>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A place in the scenario's file, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LineAndColumn {
    pub line: u32,
    pub column: u32,
}

impl LineAndColumn {
    pub fn of(place: Place) -> Self {
        let Place { line, column, .. } = place;
        Self { line, column }
    }
}

/// A moment of a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeedAt {
    pub seed: u64,
    #[serde(with = "exact")]
    #[schemars(with = "String")]
    pub at: Span,
}

/// Counts that several seeds share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShapeSum {
    /// Most pods first: pods of a domain, and the number of domains with that many.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counts: Vec<(u32, u32)>,
    /// Pods by domain, if the claim names domains; `counts` is empty then.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub domains: Vec<(String, u32)>,
    pub skew: u32,
    pub seeds: u64,
}

/// The largest number of domains that are named.
const DOMAINS_NAMED_MAX: usize = 12;

/// Counts, pods by domain, and skew.
type ShapeKey<'a> = (&'a [(u32, u32)], &'a [(String, u32)], u32);

impl ShapeSum {
    /// What distinguishes it from the other shapes of its row.
    pub fn key(&self) -> ShapeKey<'_> {
        (&self.counts, &self.domains, self.skew)
    }
}

/// A breach with its details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Breach {
    pub seed: u64,
    #[serde(with = "exact")]
    #[schemars(with = "String")]
    pub at: Span,
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub counts: Option<ByDomain>,
}

impl Breach {
    pub fn moment(&self) -> SeedAt {
        SeedAt {
            seed: self.seed,
            at: self.at,
        }
    }
}

/// A variant's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Result {
    Held,
    Broken,
    BrokeAsItMust,
    /// It must break, and broke in no seed.
    BrokeNowhere,
    /// It may break, and broke.
    BrokeAsItMay,
    /// It must break, and not all of its seeds were played.
    Unknown,
    /// Each run was ended before anything was judged.
    NotJudged,
}

impl Result {
    pub fn is_red(self) -> bool {
        matches!(self, Self::Broken | Self::BrokeNowhere | Self::NotJudged)
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Broken => "broken",
            Self::BrokeAsItMust => "brokeAsItMust",
            Self::BrokeNowhere => "brokeNowhere",
            Self::BrokeAsItMay => "brokeAsItMay",
            Self::Unknown => "unknown",
            Self::NotJudged => "notJudged",
        }
    }
}

impl Summary {
    pub fn variants(&self) -> impl Iterator<Item = &VariantSum> + Clone {
        self.scenarios.iter().flat_map(|s| &s.variants)
    }

    /// True if the exit code is 1.
    pub fn is_red(&self) -> bool {
        let is_warned = self.fails_on_warnings && self.n_warnings() > 0;
        is_warned || self.variants().any(|variant| variant.result().is_red())
    }

    /// The number of findings on which a person should act.
    pub fn n_warnings(&self) -> usize {
        let findings = self.remarks();
        let findings = findings.iter().filter(|f| f.is_warning_or_worse());
        findings.filter(|f| !verdicts::is_unavoidable(f)).count()
    }

    /// Findings of the files, and what played steps tell beside their failures, which are rows of their own.
    pub fn remarks(&self) -> Vec<Finding> {
        let played = verdicts::findings(self).into_iter();
        let played = played.filter(|finding| finding.severity > Severity::Error);
        self.findings.iter().cloned().chain(played).collect()
    }

    /// Adds findings, of which none is there twice.
    pub fn add_findings(&mut self, findings: Vec<Finding>) {
        let known = std::mem::take(&mut self.findings);
        self.findings = Finding::in_order(known.into_iter().chain(findings));
    }

    /// One line, as `-o summary` writes it.
    ///
    /// # Errors
    /// Never: each field can be represented in JSON.
    pub fn line(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|text| text + "\n")
    }
}

impl VariantSum {
    /// The number of completed seeds.
    pub fn n_played(&self) -> u64 {
        let counts = self.played.iter().map(|seeds| seeds.count);
        counts.fold(0, u64::saturating_add)
    }

    /// True if every seed of the sweep was played.
    pub fn is_whole(&self) -> bool {
        self.missing().is_empty()
    }

    /// The seeds of the sweep that were not played.
    pub fn missing(&self) -> Vec<Seeds> {
        let mut missing = Vec::new();
        let mut next = u128::from(self.seeds.first);
        let ends = std::iter::once(self.seeds.end());
        let starts = self.played.iter().map(|part| u128::from(part.first));
        let after = self.played.iter().map(|part| part.end());
        for (start, after) in starts.chain(ends.clone()).zip(after.chain(ends)) {
            if let (Ok(first), Some(count)) = (u64::try_from(next), start.checked_sub(next))
                && let Ok(count @ 1..) = u64::try_from(count)
            {
                missing.push(Seeds { first, count });
            }
            next = after;
        }
        missing
    }

    /// Its result.
    pub fn result(&self) -> Result {
        match (self.must, self.broken) {
            (Must::Hold | Must::MayFail, 0) if self.is_unjudged() => Result::NotJudged,
            (Must::Hold | Must::MayFail, 0) => Result::Held,
            (Must::Hold, _) => Result::Broken,
            (Must::MayFail, _) => Result::BrokeAsItMay,
            (Must::Fail, 0) if !self.cut && self.is_whole() => Result::BrokeNowhere,
            (Must::Fail, 0) => Result::Unknown,
            (Must::Fail, _) => Result::BrokeAsItMust,
        }
    }

    /// True if `--until` ended each run before the first of its claims was decided: a green result would say nothing. A
    /// Scenario without claims is played to be looked at.
    fn is_unjudged(&self) -> bool {
        let is_claim = |row: &&RowSum| !row.verb && row.text != POD_CREATION;
        let mut claims = self.rows.iter().filter(is_claim).peekable();
        let has_claims = claims.peek().is_some();
        self.cut
            && self.n_played() > 0
            && has_claims
            && claims.all(|row| row.held + row.broken == 0)
    }

    /// The command that plays a seed again, up to a moment.
    pub fn again(&self, program: &str, at: SeedAt) -> String {
        let Self { replay, .. } = self;
        let until = clock(at.at);
        format!("{program} {replay} --seed {} --until {until}", at.seed)
    }

    /// Adds played seeds, which must be new.
    pub fn add_played(&mut self, seeds: Seeds) {
        if seeds.count == 0 {
            return;
        }
        let at = self.played.partition_point(|part| part.first < seeds.first);
        self.played.insert(at, seeds);
        if let [here, next, ..] = &mut self.played[at..]
            && here.end() == u128::from(next.first)
        {
            here.count = here.count.saturating_add(next.count);
            self.played.remove(at + 1);
        }
        if let Some(before) = at.checked_sub(1)
            && let [before, here, ..] = &mut self.played[before..]
            && before.end() == u128::from(here.first)
        {
            before.count = before.count.saturating_add(here.count);
            self.played.remove(at);
        }
    }

    /// The first seeds that both have.
    pub fn in_common(&self, other: &Self) -> Option<Seeds> {
        let mut pairs = self
            .played
            .iter()
            .flat_map(|a| other.played.iter().map(move |b| (a, b)));
        pairs.find_map(|(a, b)| {
            let first = a.first.max(b.first);
            let n = a.end().min(b.end()).checked_sub(u128::from(first))?;
            let count = u64::try_from(n).ok().filter(|n| *n > 0)?;
            Some(Seeds { first, count })
        })
    }

    /// Adds the results of other seeds of the same variant.
    pub fn add(&mut self, other: Self) {
        for part in other.played {
            self.add_played(part);
        }
        self.broken = self.broken.saturating_add(other.broken);
        let time = &mut self.virtual_milliseconds;
        *time = time.saturating_add(other.virtual_milliseconds);
        for (row, more) in self.rows.iter_mut().zip(other.rows) {
            row.add(more);
        }
    }
}

impl RowSum {
    /// The beginning of the row: its step, or `always`.
    pub fn when(&self) -> &str {
        self.when.as_deref().unwrap_or("always")
    }

    /// The number of seeds so far.
    pub fn n_reached(&self) -> u64 {
        let both = self.held.saturating_add(self.broken);
        both.saturating_add(self.open)
    }

    /// The number of broken seeds that are not in the list.
    pub fn n_more_broken(&self) -> u64 {
        self.broken.saturating_sub(self.seeds_broken.len() as u64)
    }

    pub fn add_began(&mut self, at: SeedAt) {
        self.began = self.began.into_iter().chain([at]).min();
    }

    pub fn add_first(&mut self, breach: Breach) {
        let seed = breach.seed;
        if self.first.as_ref().is_none_or(|first| seed < first.seed) {
            self.first = Some(breach);
        }
    }

    pub fn add_broken(&mut self, at: SeedAt) {
        let place = self.seeds_broken.partition_point(|known| *known < at);
        if place < BREACHES_MAX {
            self.seeds_broken.insert(place, at);
            self.seeds_broken.truncate(BREACHES_MAX);
        }
    }

    /// Adds the counts of a run.
    pub fn add_counts(&mut self, counts: &ByDomain, skew: u32) {
        if self.by_domain && counts.len() <= DOMAINS_NAMED_MAX {
            let named = counts.iter().map(|(domain, n)| (domain.clone(), *n));
            let mut domains: Vec<(String, u32)> = named.collect();
            domains.sort_by(|a, b| natural_order(&a.0, &b.0));
            return self.add_shape(ShapeSum {
                counts: Vec::new(),
                domains,
                skew,
                seeds: 1,
            });
        }
        let mut domains: BTreeMap<u32, u32> = BTreeMap::new();
        for n in counts.values() {
            let domains = domains.entry(*n).or_default();
            *domains = domains.saturating_add(1);
        }
        self.add_shape(ShapeSum {
            counts: domains.into_iter().rev().collect(),
            domains: Vec::new(),
            skew,
            seeds: 1,
        });
    }

    /// If there are too many, the last ones in their order are dropped. A kept one was never dropped before, neither
    /// here nor in a part.
    fn add_shape(&mut self, shape: ShapeSum) {
        let found = self
            .shapes
            .binary_search_by(|known| known.key().cmp(&shape.key()));
        match found {
            Ok(at) => {
                if let Some(known) = self.shapes.get_mut(at) {
                    known.seeds = known.seeds.saturating_add(shape.seeds);
                }
            }
            Err(at) => self.shapes.insert(at, shape),
        }
        if self.shapes.len() > SHAPES_MAX
            && let Some(last) = self.shapes.pop()
        {
            self.other_shapes = self.other_shapes.saturating_add(last.seeds);
        }
    }

    fn add(&mut self, other: Self) {
        for remark in other.remarks {
            self.add_remark(remark);
        }
        other.began.into_iter().for_each(|at| self.add_began(at));
        for (sum, more) in [
            (&mut self.held, other.held),
            (&mut self.open, other.open),
            (&mut self.broken, other.broken),
            (&mut self.held_at_once, other.held_at_once),
            (&mut self.other_shapes, other.other_shapes),
        ] {
            *sum = sum.saturating_add(more);
        }
        for shape in other.shapes {
            self.add_shape(shape);
        }
        if let Some(first) = other.first {
            self.add_first(first);
        }
        for at in other.seeds_broken {
            self.add_broken(at);
        }
    }
}

/// Times as text, to the nanosecond.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use strew_manifest::duration::GoDuration;
    use strew_model::Span;

    pub(super) fn serialize<S: Serializer>(
        span: &Span,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::clock(*span))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Span, D::Error> {
        let text = String::deserialize(deserializer)?;
        let duration = GoDuration::parse(&text).filter(|duration| *duration >= GoDuration::ZERO);
        let duration = duration.ok_or_else(|| D::Error::custom(format!("{text:?} is no time")))?;
        Ok(Span(duration.nanos()))
    }
}

/// The JSON schema of the summary.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Summary).to_value()
}

#[cfg(test)]
mod tests;
