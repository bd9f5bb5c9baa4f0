//! Scenarios that can be played.

use std::collections::BTreeSet;

use strew_apiserver::object::Kind;
use strew_manifest::finding::Finding;
use strew_manifest::read::{Diagnostic, Severity, Sources, nearest};
use strew_scenario::run::Plan;
use strew_sim::Size;

use crate::digest::of_parts;
use crate::failure::Failure;
use crate::options::Options;
use crate::replay;
use crate::seeds::{Seeds, SeedsArg};
use crate::suite::{Staged, Suite};

/// Scenarios that can be played.
pub struct Ready {
    /// The scenarios.
    pub suites: Vec<Suite>,
    /// The built-in story as a file; `None` if Scenarios are played.
    pub story: Option<String>,
    /// The digest of all input that affects results.
    pub inputs: String,
    /// The name of the first file.
    pub first_file: String,
    /// What a person should know about the files.
    pub findings: Vec<Finding>,
}

/// Diagnostics, each list with the texts that its places are in.
pub type Said<'a> = Vec<(Vec<Diagnostic>, &'a Sources)>;

impl Staged {
    /// What is wrong with the texts, and what a person should know.
    pub fn said(&self) -> Said<'_> {
        let (elsewhere, config) = &self.elsewhere;
        let each = self.suites.iter();
        let each = each.map(|staged| (staged.diagnostics.clone(), &*staged.sources));
        std::iter::once((elsewhere.clone(), &**config))
            .chain(each)
            .collect()
    }

    /// True if nothing can be played.
    pub fn has_errors(&self) -> bool {
        let of_suites = self.suites.iter().flat_map(|staged| &staged.diagnostics);
        let mut all = self.elsewhere.0.iter().chain(of_suites);
        all.any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The same as findings, with the notes, the worst first.
    pub fn findings(&self) -> Vec<Finding> {
        let notes = self.notes.iter();
        let notes = notes.map(|text| Finding::new(Severity::Note, "note", text));
        Finding::in_order(findings(&self.said()).chain(notes))
    }

    /// What can be played, with what a person should know; `None` if there are errors.
    pub fn sound(self) -> Option<(Vec<Suite>, Vec<Finding>)> {
        let findings = self.findings();
        (!self.has_errors()).then(|| {
            let suites = self.suites.into_iter().filter_map(|staged| staged.suite);
            (suites.collect(), findings)
        })
    }

    /// What can be played as these options ask; `None` if there are errors.
    ///
    /// # Errors
    /// Options that do not fit the texts.
    pub fn ready(self, options: &Options) -> Result<Option<Ready>, Failure> {
        let config = &self.elsewhere.1;
        let config = options.scheduling.config.as_ref().map(|_| config);
        let config: Vec<u8> = config
            .iter()
            .flat_map(|sources| sources.iter().map(|(_, file)| file.text().as_bytes()))
            .flatten()
            .copied()
            .collect();
        let (digest, story) = (self.digest.clone(), self.story.clone());
        let first_file = self.first_file.clone();
        let Some((suites, findings)) = self.sound() else {
            return Ok(None);
        };
        check_choice(options, &suites)?;
        check_keys(&options.by, &suites)?;
        check_number(options.max_seeds, &suites)?;
        let words = replay::whole(options);
        let words = words.iter().map(String::as_bytes);
        let parts = [digest.as_bytes(), config.as_slice()]
            .into_iter()
            .chain(words);
        Ok(Some(Ready {
            inputs: format!("sha256:{}", of_parts(parts)),
            suites,
            story,
            first_file,
            findings,
        }))
    }
}

/// Diagnostics as findings; each list has places in its own files.
pub fn findings<'a>(
    said: &'a [(Vec<Diagnostic>, &'a Sources)],
) -> impl Iterator<Item = Finding> + 'a {
    let each = said.iter();
    each.flat_map(|(all, sources)| all.iter().map(|d| d.to_finding(sources)))
}

impl Ready {
    /// The plan of the built-in story, and its seeds; `None` if Scenarios are played.
    pub fn into_story(self) -> Option<(Plan, Seeds)> {
        let suite = self.suites.into_iter().find(|suite| suite.is_story)?;
        let cast = suite.variants.into_iter().next()?;
        Some((cast.plan, cast.seeds))
    }

    /// The largest number of seeds of a variant.
    pub fn n_seeds(&self) -> u64 {
        let casts = self.suites.iter().flat_map(|suite| &suite.variants);
        casts.map(|cast| cast.seeds.count).max().unwrap_or(0)
    }
}

/// Refuses more seeds than allowed.
fn check_number(max: Option<u64>, suites: &[Suite]) -> Result<(), Failure> {
    let each = suites
        .iter()
        .flat_map(|suite| suite.variants.iter().map(move |cast| (suite, cast)));
    for (suite, cast) in each {
        let n = cast.seeds.count;
        if let Some(max) = max.filter(|max| n > *max) {
            let (file, name) = (&suite.file, &cast.variant.name);
            let error =
                format!("{file} (variant {name}) has {n} seeds, more than --max-seeds {max}");
            return Err(Failure::input(error).with_hint(format!("--seeds {max} plays fewer")));
        }
    }
    Ok(())
}

/// Refuses two arguments that set the first seed.
pub(crate) fn check_seeds(options: &Options) -> Result<(), Failure> {
    let is_range = matches!(options.play.seeds, Some(SeedsArg::Range(_)));
    match is_range && options.scheduling.seed.is_some() {
        false => Ok(()),
        true => {
            let error = "--seed and --seeds A..B both say which seed is the first";
            Err(Failure::input(error).with_hint("--seed N --seeds M plays M seeds from N on"))
        }
    }
}

/// Refuses filters that match no workload of the story. A Scenario may create workloads later.
fn check_choice(options: &Options, suites: &[Suite]) -> Result<(), Failure> {
    let stories = suites.iter().filter(|suite| suite.is_story);
    let casts = stories.flat_map(|suite| &suite.variants);
    for cast in casts {
        options.choice.check(&cast.plan.admitted().workloads.list)?;
    }
    Ok(())
}

/// Refuses keys of `--by` that no node has. A Scenario may label nodes later.
fn check_keys(keys: &[String], suites: &[Suite]) -> Result<(), Failure> {
    let stories = suites.iter().filter(|suite| suite.is_story);
    for cast in stories.flat_map(|suite| &suite.variants) {
        let nodes = cast.plan.objects().iter();
        let nodes = nodes.filter(|object| object.kind() == Kind::Node);
        let known = nodes.flat_map(|node| node.meta().labels.keys().map(|key| &**key));
        let known: BTreeSet<&str> = known.collect();
        let is_unknown = |key: &&String| *key != HOSTNAME && !known.contains(key.as_str());
        if let Some(key) = keys.iter().find(is_unknown) {
            let failure = Failure::input(format!("--by {key}: no node has this label"));
            let meant = nearest(key, known.iter().copied());
            return Err(match meant {
                Some(meant) => failure.with_hint(format!("did you mean {meant}?")),
                None => failure,
            });
        }
    }
    Ok(())
}

/// Every kubelet sets it on its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The size of the largest variant, at second 0.
pub fn largest(suites: &[Suite]) -> Size {
    let casts = suites.iter().flat_map(|suite| &suite.variants);
    let sizes = casts.map(|cast| Size::of(cast.plan.objects()));
    sizes
        .max_by_key(|size| size.n_pods + size.n_nodes)
        .unwrap_or_default()
}

/// The most steps of a variant.
pub fn n_steps(suites: &[Suite]) -> u64 {
    let casts = suites.iter().flat_map(|suite| &suite.variants);
    let numbers = casts.map(|cast| cast.variant.scenario.timeline.len() as u64);
    numbers.max().unwrap_or_default()
}
