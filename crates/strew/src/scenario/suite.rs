//! Files into scenarios, and scenarios into plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::anyhow;
use strew_api::config::{FeatureGates, is_configuration};
use strew_api::field::FieldPath;
use strew_api::printable::printable_line;
use strew_api::read::{self, Diagnostic, KubeObject, Located, Locator, Origin, Severity, Sources};
use strew_model::Interner;
use strew_scenario::format::{GROUP, Variant, load};
use strew_scenario::run::{Configure, Plan, Unplayable};
use strew_sim::Blueprint;

use super::Question;
use crate::configuration::SchedulingArgs;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::setup;

/// A scenario, ready.
pub(super) struct Suite {
    /// The file that holds it.
    pub(super) file: String,
    /// What to name to read it again: all files of the question, if they make one scenario.
    pub(super) replay: Vec<String>,
    pub(super) name: String,
    pub(super) story: Option<String>,
    pub(super) variants: Vec<Cast>,
}

/// A variant, and how it is played.
pub(super) struct Cast {
    pub(super) variant: Variant,
    pub(super) plan: Plan,
    /// How its scheduler begins.
    pub(super) blueprint: Blueprint,
    pub(super) seeds: Vec<u64>,
}

/// What was made of one scenario's files.
pub(super) struct StagedSuite {
    pub(super) sources: Arc<Sources>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// None: something is wrong with them.
    pub(super) suite: Option<Suite>,
}

/// What was made of all files.
pub(super) struct Staged {
    pub(super) suites: Vec<StagedSuite>,
    /// What a reader should know.
    pub(super) notes: Vec<String>,
}

/// Whether a document of strew's simulation seems to be in the file; reading it tells for sure.
pub(super) fn holds_scenario(input: &Input) -> bool {
    let text = &input.bytes;
    let version = format!("{GROUP}/");
    let mut all = text.windows(version.len()).enumerate();
    all.any(|(at, part)| part == version.as_bytes() && is_api_version(&text[..at]))
}

/// Whether a text ends with the key `apiVersion`, in YAML or JSON: labels may begin with the group, too.
fn is_api_version(before: &[u8]) -> bool {
    let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b':' | b'"' | b'\'');
    let end = before.iter().rposition(|byte| !is_between(byte));
    let word = &before[..end.map_or(0, |at| at + 1)];
    let key = b"apiVersion";
    word.len() >= key.len() && word[word.len() - key.len()..].eq_ignore_ascii_case(key)
}

/// Makes plans of all scenarios.
pub(super) fn stage(question: &Question<'_>, inputs: Vec<Input>) -> Result<Staged, Failure> {
    let scheduling = &question.world.scheduling;
    if !scheduling.feature_gates.is_empty() {
        let error = anyhow!("--feature-gates is not for a Scenario");
        return Err(Failure::input(error).with_hint("write featureGates into its spec"));
    }
    if !question.world.nodes.to_args().is_empty() {
        let error = anyhow!("a Scenario has its own nodes");
        let hint = "leave --nodes and its kin out, or write nodeGroups into its spec";
        return Err(Failure::input(error).with_hint(hint));
    }
    let config = scheduling.read()?.map(Arc::new);
    let mut notes = Vec::new();
    let mut suites = Vec::new();
    for (inputs, replay) in split(question, inputs, &mut notes) {
        let file = inputs.iter().find(|input| holds_scenario(input));
        let file = file.map(|input| input.name.clone()).unwrap_or_default();
        let mut sources = Sources::new();
        inputs
            .into_iter()
            .for_each(|input| input.add_to(&mut sources));
        let stage = Stage {
            question,
            config: config.clone(),
            sources: Arc::new(sources),
        };
        suites.push(stage.suite(file, replay, &mut notes));
    }
    check_names(question, &suites)?;
    Ok(Staged { suites, notes })
}

/// Files that make one scenario each. Several files with a Scenario are several scenarios: each has the named files
/// without one beside it; what a folder holds beside is not theirs.
fn split(
    question: &Question<'_>,
    inputs: Vec<Input>,
    notes: &mut Vec<String>,
) -> Vec<(Vec<Input>, Vec<String>)> {
    let n_scenarios = inputs.iter().filter(|input| holds_scenario(input)).count();
    if n_scenarios < 2 {
        return vec![(inputs, question.files.to_vec())];
    }
    let (scenarios, others): (Vec<_>, Vec<_>) = inputs.into_iter().partition(holds_scenario);
    let (found, named): (Vec<_>, Vec<_>) = others.into_iter().partition(|input| input.is_found);
    if let [first, ..] = found.as_slice() {
        let more = match found.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        notes.push(format!(
            "passed over {}{more}: no Scenario in it, and each file of a folder is its own scenario",
            first.name
        ));
    }
    let each = scenarios.into_iter().map(|scenario| {
        let mut inputs = named.clone();
        inputs.push(scenario);
        let names = inputs.iter().map(|input| input.name.clone()).collect();
        (inputs, names)
    });
    each.collect()
}

/// Refuses variants that no scenario has.
fn check_names(question: &Question<'_>, suites: &[StagedSuite]) -> Result<(), Failure> {
    let Some(all) = suites
        .iter()
        .map(|staged| staged.suite.as_ref())
        .collect::<Option<Vec<_>>>()
    else {
        // What is wrong with the files comes first.
        return Ok(());
    };
    let is_known = |name: &String| {
        let mut casts = all.iter().flat_map(|suite| &suite.variants);
        casts.any(|cast| cast.variant.name == *name)
    };
    match question.args.variant.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(
            Failure::input(anyhow!("no scenario has a variant {name:?}"))
                .with_hint("strew simulate -o name lists the variants"),
        ),
    }
}

struct Stage<'a> {
    question: &'a Question<'a>,
    config: Option<Arc<Sources>>,
    sources: Arc<Sources>,
}

impl Stage<'_> {
    fn suite(self, file: String, replay: Vec<String>, notes: &mut Vec<String>) -> StagedSuite {
        let loaded = load(&self.sources);
        let is_good = !loaded.has_errors();
        let mut diagnostics = loaded.diagnostics;
        let mut casts = Vec::new();
        if is_good {
            say_skipped(&file, &loaded.reading.objects, notes);
            for variant in loaded.variants {
                casts.extend(self.cast(variant, &mut diagnostics));
            }
        }
        let is_good = diagnostics.iter().all(|d| d.severity != Severity::Error);
        // With one more word of what a scenario is, if there is none after all.
        if is_good && casts.is_empty() && self.question.args.variant.is_empty() {
            diagnostics.push(Diagnostic::error(
                "no-scenario",
                format!("no Scenario in {file}"),
            ));
        }
        diagnostics.sort_by_key(|d| (d.place.is_none(), d.place));
        let first = casts.first().map(|cast: &Cast| &cast.variant.scenario);
        let (name, story) = first.map_or((String::new(), None), |scenario| {
            (
                scenario.name.clone(),
                scenario
                    .story()
                    .map(|story| printable_line(story).into_owned()),
            )
        });
        StagedSuite {
            sources: self.sources,
            suite: is_good.then_some(Suite {
                file,
                replay,
                name,
                story,
                variants: casts,
            }),
            diagnostics,
        }
    }

    /// Makes a plan of a variant, if it is to be played.
    fn cast(&self, variant: Variant, diagnostics: &mut Vec<Diagnostic>) -> Option<Cast> {
        let (configurations, objects): (Vec<Located>, Vec<Located>) =
            variant.objects.iter().cloned().partition(is_config);
        let documents: Vec<Origin> = configurations.into_iter().map(|c| c.origin).collect();
        let configure = self.configure(documents.clone());
        let blueprint = configure(&variant.scenario.feature_gates);
        let plan = Plan::new(&variant.scenario, &objects, configure);
        let args = self.question.args;
        match plan {
            Ok(plan) => {
                let is_asked = args.variant.is_empty() || args.variant.contains(&variant.name);
                let n = args.seeds.unwrap_or(variant.scenario.seeds).get();
                let seeds = match self.question.world.scheduling.seed {
                    Some(seed) => vec![seed],
                    None => (1..=u64::from(n)).collect(),
                };
                let blueprint = blueprint.filter(|_| is_asked)?;
                Some(Cast {
                    variant,
                    plan,
                    blueprint,
                    seeds,
                })
            }
            Err(problems) => {
                let mut locator = Locator::new(&self.sources);
                for problem in problems {
                    let found = match problem {
                        Unplayable::Refused(number, errors) => {
                            let located = &objects[number];
                            let each = errors.iter();
                            each.map(|e| located.diagnose(e, &mut locator)).collect()
                        }
                        Unplayable::Expression(expectation, error) => {
                            vec![self.wrong_expression(&expectation.path, &error, &mut locator)]
                        }
                        Unplayable::Configuration => {
                            self.wrong_configuration(&variant.scenario.feature_gates, &documents)
                        }
                    };
                    for diagnostic in found {
                        // What is said of the base needs no second word for each variant.
                        if !diagnostics.contains(&diagnostic) {
                            diagnostics.push(diagnostic);
                        }
                    }
                }
                None
            }
        }
    }

    fn scheduling(&self) -> SchedulingArgs {
        SchedulingArgs {
            // A seed plays one run; it must be the same run as among many.
            seed: None,
            ..self.question.world.scheduling.clone()
        }
    }

    fn configure(&self, documents: Vec<Origin>) -> Configure {
        let (config, sources) = (self.config.clone(), Arc::clone(&self.sources));
        let scheduling = self.scheduling();
        Arc::new(move |gates: &FeatureGates| {
            let mut names = Interner::new();
            let config = config.as_deref();
            let configured = scheduling.configure(config, &sources, &documents, gates, &mut names);
            let configuration = configured.configuration?;
            if !configured.elsewhere.is_empty() {
                return None;
            }
            Some(setup::blueprint(&configuration, configured.is_given, names))
        })
    }

    fn wrong_configuration(&self, gates: &FeatureGates, documents: &[Origin]) -> Vec<Diagnostic> {
        let mut names = Interner::new();
        let config = self.config.as_deref();
        let scheduling = self.scheduling();
        let configured = scheduling.configure(config, &self.sources, documents, gates, &mut names);
        let mut found = configured.in_manifests;
        // Their places are in another file.
        found.extend(configured.elsewhere.into_iter().map(|mut diagnostic| {
            diagnostic.place = None;
            diagnostic.related.clear();
            let file = scheduling.config.as_deref().unwrap_or_default();
            diagnostic.message = format!("--config {file}: {}", diagnostic.message);
            diagnostic
        }));
        found
    }

    /// An expression that is none, at the character where it goes wrong if its text stands there as it is.
    fn wrong_expression(
        &self,
        path: &FieldPath,
        error: &strew_cel::CompileError,
        locator: &mut Locator<'_>,
    ) -> Diagnostic {
        let diagnostic =
            Diagnostic::error("expression", error.message.clone()).in_field(path.child("cel"));
        let reading = read::read(&self.sources);
        let scenario = reading.objects.iter().find(|located| {
            matches!(&located.object, KubeObject::Other(other) if other.api_version.starts_with(GROUP))
        });
        let Some(scenario) = scenario else {
            return diagnostic;
        };
        let mut place = locator.place(&scenario.origin, &path.child("cel"));
        let text = self.sources.file(place.file).text();
        let quote = usize::from(text[place.span.start..].starts_with(['"', '\'']));
        let at = place.span.start + quote + error.offset;
        // A plain or quoted scalar on one line; of another form the beginning is shown.
        if error.line == 1 && at < place.span.end && text.is_char_boundary(at) {
            let span = read::Span::new(at, place.span.end.max(at + 1) - quote.min(1));
            place = self.sources.place(place.file, span);
        }
        diagnostic.at(place)
    }
}

fn is_config(located: &Located) -> bool {
    matches!(&located.object, KubeObject::Other(other) if is_configuration(&other.api_version, &other.kind))
}

/// Kinds that strew does not model, counted and told once.
fn say_skipped(file: &str, objects: &[Located], notes: &mut Vec<String>) {
    let mut skipped = BTreeMap::<&str, usize>::new();
    for located in objects {
        if let KubeObject::Other(other) = &located.object
            && !is_config(located)
        {
            *skipped.entry(&other.kind).or_default() += 1;
        }
    }
    if skipped.is_empty() {
        return;
    }
    let each = skipped.iter().map(|(kind, n)| format!("{n} {kind}"));
    let each: Vec<String> = each.collect();
    notes.push(format!(
        "{file}: kinds that strew does not model have no effect: {}",
        each.join(", ")
    ));
}
