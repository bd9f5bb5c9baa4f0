//! Turns files into scenarios, and scenarios into plans.

pub mod inspect;

use std::sync::Arc;

use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::printable::printable_line;
use strew_manifest::read::{
    self, Broken, Diagnostic, KubeObject, Located, Locator, Origin, Severity, Sources,
};
use strew_model::Interner;
use strew_scenario::expect::expression::there_are;
use strew_scenario::format::{GROUP, Loaded, Variant, load_read};
use strew_scenario::run::{Configure, Plan, Unplayable, admission};
use strew_view::moment::Frame;
use strew_wire::config::{AdmissionOptions, FeatureGates, is_configuration};

use crate::assumed;
use crate::configuration::{SchedulingArgs, blueprint};
use crate::cure::Edit;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::options::Options;
use crate::options::Until;
use crate::ready::check_seeds;
use crate::seeds::{Seeds, SeedsArg};
use crate::story;
use crate::streams::{holds_scenario, split};
use crate::summary::ReadSum;
use crate::{digest, rules};

/// A scenario, ready to play.
pub struct Suite {
    /// True for the built-in story.
    pub is_story: bool,
    /// The file that holds it.
    pub file: String,
    /// The files to name to read it again: all files of the options, if they make one scenario.
    pub replay: Vec<String>,
    /// The name of the Scenario.
    pub name: String,
    /// What it says it is about.
    pub story: Option<String>,
    /// What was read.
    pub read: ReadSum,
    /// The number of nodes that were made because the files have none and none were asked for.
    pub n_assumed_nodes: usize,
    /// The scenario as written first.
    pub variants: Vec<Cast>,
}

impl Suite {
    /// True if its runs are shown step by step: the built-in story, and a Scenario without expectations.
    pub fn is_stepwise(&self) -> bool {
        let expects_nothing = |cast: &Cast| cast.variant.scenario.expects_nothing();
        self.is_story || self.variants.iter().all(expects_nothing)
    }
}

/// A variant with its plan.
pub struct Cast {
    /// The variant.
    pub variant: Variant,
    /// What is played.
    pub plan: Plan,
    /// True if the steps after the step of `--until` were left out.
    pub is_cut: bool,
    /// All seeds, of which a shard plays a part.
    pub sweep: Seeds,
    /// The seeds to play.
    pub seeds: Seeds,
}

impl Cast {
    /// The state that views of the variant share; workloads are also counted by these keys.
    pub fn frame(&self, keys: &[String]) -> Frame {
        let blueprint = self.plan.blueprint();
        Frame {
            names: blueprint.names.clone(),
            profiles: blueprint.profiles.clone(),
            workloads: self.plan.admitted().workloads.clone(),
            keys: keys.to_vec(),
        }
    }

    /// True if a run with this seed is the example: the first seed.
    pub fn is_example(&self, seed: u64) -> bool {
        seed == self.seeds.first
    }
}

/// The result of reading one scenario's files.
pub struct StagedSuite {
    /// The texts.
    pub sources: Arc<Sources>,
    /// What is wrong with them, and what a person should know.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` if they have errors.
    pub suite: Option<Suite>,
}

/// The result of reading all files.
pub struct Staged {
    /// One for each Scenario.
    pub suites: Vec<StagedSuite>,
    /// Errors in `--config` or `--feature-gates`; places are in the file of `--config`.
    pub elsewhere: (Vec<Diagnostic>, Arc<Sources>),
    /// The built-in story as a file; `None` if Scenarios are played.
    pub story: Option<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The name of the first text; empty if there is none.
    pub first_file: String,
    /// The digest of the texts with their names, if it is wanted.
    pub(crate) digest: String,
}

/// Makes plans of all scenarios; of files without one, the built-in story's.
///
/// # Errors
/// Arguments that contradict each other, and files that cannot be read.
pub fn stage(options: &Options, inputs: Vec<Input>) -> Result<Staged, Failure> {
    stage_edited(options, inputs, None)
}

/// The same, with the story's manifests changed.
///
/// # Errors
/// As [`stage`].
pub fn stage_edited(
    options: &Options,
    inputs: Vec<Input>,
    edit: Option<&Edit<'_>>,
) -> Result<Staged, Failure> {
    check_seeds(options)?;
    let names = inputs.iter().map(|input| input.name.as_bytes());
    let bytes = inputs.iter().map(|input| input.bytes.as_slice());
    let digest = match options.keep.digest {
        true => digest::of_parts(names.chain(bytes)),
        false => String::new(),
    };
    let first_file = inputs.first().map(|input| input.name.clone());
    let scheduling = &options.scheduling;
    let mut staging = Staging {
        options,
        config: options.config.clone(),
        until: options.play.until()?,
        notes: Vec::new(),
        elsewhere: Vec::new(),
    };
    let mut text = None;
    let mut suites = Vec::new();
    if inputs.iter().any(holds_scenario) {
        check_words(options)?;
        for (inputs, replay) in split(options, inputs, &mut staging.elsewhere) {
            let file = inputs.iter().find(|input| holds_scenario(input));
            let file = file.map(|input| input.name.clone()).unwrap_or_default();
            let mut sources = input::sources(inputs);
            let loaded = complete(&mut sources, options);
            let sources = Arc::new(sources);
            suites.push(staging.suite(file, replay, sources, loaded));
        }
    } else {
        let story = story::story(options, inputs, edit)?;
        text = Some(story.text);
        let gates = scheduling.gates().1;
        staging.elsewhere.extend(gates);
        let (sources, replay) = (Arc::new(story.sources), options.files.to_vec());
        let file = story::FILE.to_owned();
        let mut staged = staging.suite(file, replay, sources, story.loaded);
        if let Some(suite) = &mut staged.suite {
            suite.n_assumed_nodes = story.n_assumed_nodes;
        }
        suites.push(staged);
        staging.notes.extend(story.notes);
    }
    check_names(options, &suites)?;
    check_fail_on(options, &suites)?;
    staging.check_until(&suites)?;
    let nowhere = suites.first().map(|staged| Arc::clone(&staged.sources));
    let Staging {
        config,
        notes,
        elsewhere,
        ..
    } = staging;
    Ok(Staged {
        suites,
        elsewhere: (elsewhere, config.or(nowhere).unwrap_or_default()),
        story: text,
        notes,
        first_file: first_file.unwrap_or_default(),
        digest,
    })
}

/// Loads the files of a Scenario, with what they name and do not hold.
fn complete(sources: &mut Sources, options: &Options) -> Loaded {
    let reading = read::read(sources);
    let assumed = assumed::assumed(&reading.objects, sources, &options.assumed);
    let objects = assumed.objects.iter();
    let text: String = objects
        .map(|object| format!("---\n{}\n", object.to_json()))
        .collect();
    let reading = match text.is_empty() {
        true => reading,
        false => {
            sources.add(ASSUMED, text);
            read::read(sources)
        }
    };
    let mut loaded = load_read(sources, reading);
    loaded.diagnostics.extend(assumed.diagnostics);
    loaded
}

/// The name of the file with objects that a Scenario's files lack.
const ASSUMED: &str = "<assumed>";

/// Refuses arguments that a Scenario has fields for.
fn check_words(options: &Options) -> Result<(), Failure> {
    if !options.scheduling.feature_gates.is_empty() {
        let error = "--feature-gates is not for a Scenario";
        return Err(Failure::input(error).with_hint("write featureGates into its spec"));
    }
    if !options.nodes.to_args().is_empty() {
        let error = "a Scenario has its own nodes";
        let hint = "leave --nodes and its kin out, or write nodeGroups into its spec";
        return Err(Failure::input(error).with_hint(hint));
    }
    if let Some(option) = options.assumed.to_args().first() {
        let error = format!("{option} is not for a Scenario");
        return Err(Failure::input(error).with_hint("put the class among the manifests"));
    }
    Ok(())
}

/// Refuses variants that no scenario has.
fn check_names(options: &Options, suites: &[StagedSuite]) -> Result<(), Failure> {
    let Some(all) = suites
        .iter()
        .map(|staged| staged.suite.as_ref())
        .collect::<Option<Vec<_>>>()
    else {
        // Errors of the files come first.
        return Ok(());
    };
    let is_known = |name: &String| {
        let mut casts = all.iter().flat_map(|suite| &suite.variants);
        casts.any(|cast| cast.variant.name == *name)
    };
    match options.play.variant.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(
            Failure::input(format!("no scenario has a variant {name:?}"))
                .with_hint("strew simulate -o name lists the variants"),
        ),
    }
}

/// Refuses a step of `--fail-on` that no scenario has.
fn check_fail_on(options: &Options, suites: &[StagedSuite]) -> Result<(), Failure> {
    let suites = suites.iter().map(|staged| staged.suite.as_ref());
    let Some(suites) = suites.collect::<Option<Vec<_>>>() else {
        // Errors of the files come first.
        return Ok(());
    };
    let names = step_names(&suites);
    let asked = options.play.deciding_steps();
    match asked.iter().find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let error = format!("--fail-on {name}: no step is called so");
            Err(Failure::input(error).with_hint(match names.as_slice() {
                [] => "no step has a name: write name: into those that are to decide, or the word warnings"
                    .to_owned(),
                names => format!("steps are {}; the word warnings adds warnings", names.join(", ")),
            }))
        }
    }
}

/// The names of all steps, without duplicates.
fn step_names<'a>(suites: &[&'a Suite]) -> Vec<&'a str> {
    let casts = suites.iter().flat_map(|suite| &suite.variants);
    let steps = casts.flat_map(|cast| &cast.variant.scenario.timeline);
    let mut names: Vec<&str> = Vec::new();
    for name in steps.filter_map(|step| step.name.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

struct Staging<'a> {
    options: &'a Options,
    config: Option<Arc<Sources>>,
    until: Option<Until>,
    notes: Vec<String>,
    elsewhere: Vec<Diagnostic>,
}

/// The largest number of errors of one scenario's files: each costs time to locate.
const ERRORS_MAX: usize = 1000;

impl Staging<'_> {
    fn suite(
        &mut self,
        file: String,
        replay: Vec<String>,
        sources: Arc<Sources>,
        loaded: Loaded,
    ) -> StagedSuite {
        let is_good = !loaded.has_errors();
        let is_story = file == story::FILE;
        let n_files = sources.iter().count() - usize::from(is_story);
        let read = ReadSum {
            files: n_files as u64,
            objects: loaded.n_read as u64,
        };
        let mut stage = Stage {
            staging: self,
            locator: Locator::new(&sources),
            sources: &sources,
            diagnostics: loaded.diagnostics,
            leaves_out: false,
        };
        let mut casts = Vec::new();
        match is_good {
            true => {
                // The last variant takes the objects.
                drop(loaded.objects);
                for variant in loaded.variants {
                    casts.extend(stage.cast(variant));
                }
            }
            false => stage.judge(&loaded.objects, &loaded.broken),
        }
        let mut diagnostics = stage.finish();
        let mut all = diagnostics.iter().chain(&self.elsewhere);
        let is_good = all.all(|d| d.severity != Severity::Error);
        // With an additional hint if there is no scenario after all.
        if is_good && casts.is_empty() && self.options.play.variant.is_empty() {
            diagnostics.push(Diagnostic::error(
                "no-scenario",
                format!("no Scenario in {file}"),
            ));
        }
        diagnostics.sort_by_key(|d| (d.place.is_none(), d.place));
        let first = casts.first().map(|cast: &Cast| &cast.variant.scenario);
        let (name, story) = first.map_or((String::new(), None), |scenario| {
            let story = scenario.story();
            let story = story.map(|story| printable_line(story).into_owned());
            (scenario.name.clone(), story)
        });
        StagedSuite {
            sources,
            suite: is_good.then_some(Suite {
                is_story,
                file,
                read,
                replay,
                name,
                story,
                n_assumed_nodes: 0,
                variants: casts,
            }),
            diagnostics,
        }
    }

    /// Refuses a step of `--until` that no scenario has.
    fn check_until(&self, suites: &[StagedSuite]) -> Result<(), Failure> {
        let Some(Until::Step(name)) = &self.until else {
            return Ok(());
        };
        let suites = suites.iter().map(|staged| staged.suite.as_ref());
        let Some(suites) = suites.collect::<Option<Vec<_>>>() else {
            // Errors of the files come first.
            return Ok(());
        };
        let casts = || suites.iter().flat_map(|suite| &suite.variants);
        if casts().any(|cast| cast.is_cut) {
            return Ok(());
        }
        let names = step_names(&suites);
        let error = format!("--until {name}: no duration, and no step is called so");
        Err(Failure::input(error).with_hint(match names.as_slice() {
            [] => "90s, 15m and 1h30m are durations".to_owned(),
            names => format!(
                "steps are {}; 90s and 1h30m are durations",
                names.join(", ")
            ),
        }))
    }

    fn scheduling(&self) -> SchedulingArgs {
        SchedulingArgs {
            // A seed plays one run, which equals its run among many.
            seed: None,
            ..self.options.scheduling.clone()
        }
    }

    fn configure(&self, sources: &Arc<Sources>, documents: Vec<Origin>) -> Configure {
        let (config, sources) = (self.config.clone(), Arc::clone(sources));
        let scheduling = self.scheduling();
        Arc::new(move |gates: &FeatureGates| {
            let mut names = Interner::new();
            let config = config.as_deref();
            let configured = scheduling.configure(config, &sources, &documents, gates, &mut names);
            let configuration = configured.configuration?;
            if !configured.elsewhere.is_empty() {
                return None;
            }
            Some(blueprint(&configuration, configured.is_given, names))
        })
    }
}

/// A scenario while it is read.
struct Stage<'a, 'q> {
    staging: &'a mut Staging<'q>,
    sources: &'a Arc<Sources>,
    locator: Locator<'a>,
    diagnostics: Vec<Diagnostic>,
    /// The list is not complete.
    leaves_out: bool,
}

impl Stage<'_, '_> {
    /// Finds further errors of files that cannot be played: one run of strew should report all errors.
    fn judge(&mut self, objects: &[Located], broken: &[Broken]) {
        let gates = self.staging.options.scheduling.gates().0;
        let options = gates.admission(AdmissionOptions::KUBERNETES_1_36);
        let judged = admission::judge(objects, broken, &options, &mut |_, _| ());
        for (number, errors) in judged.refused {
            self.refuse(&Named::of(&objects[number]), &errors);
        }
        self.warn(&judged.warnings, |number| Named::of(&objects[number]));
        for (number, errors) in judged.also_broken {
            self.refuse(&Named::of(&broken[number].located), &errors);
        }
        let documents = objects.iter().filter(|located| is_config(located));
        let documents: Vec<Origin> = documents.map(|located| located.origin.clone()).collect();
        self.configured(&gates, &documents);
    }

    /// Makes the plan of a variant, if it is played.
    fn cast(&mut self, mut variant: Variant) -> Option<Cast> {
        let is_cut = match &self.staging.until {
            Some(Until::Step(name)) => variant.scenario.end_after(name),
            _ => false,
        };
        let mut objects = Arc::unwrap_or_clone(std::mem::take(&mut variant.objects));
        if self.staging.options.keep.objects {
            variant.objects = Arc::new(asked_about(&objects));
        }
        let documents = objects.extract_if(.., |located| is_config(located));
        let documents: Vec<Origin> = documents.map(|located| located.origin).collect();
        let configure = self.staging.configure(self.sources, documents.clone());
        let gates = &variant.scenario.feature_gates;
        self.configured(gates, &documents);
        let found = rules::of_variant(&variant, &objects, self.sources, &mut self.locator);
        let names: Vec<Named> = objects.iter().map(Named::of).collect();
        let plan = Plan::of(&variant.scenario, objects, configure);
        let options = self.staging.options;
        match plan {
            Ok(plan) => {
                self.say_admitted(&plan, &names);
                found.into_iter().for_each(|found| self.say(found));
                let is_asked =
                    options.play.variant.is_empty() || options.play.variant.contains(&variant.name);
                let seed = options.scheduling.seed;
                let first = seed.unwrap_or(variant.scenario.seed);
                let sweep = match (options.play.seeds, seed) {
                    (Some(SeedsArg::Range(seeds)), _) => seeds,
                    (Some(SeedsArg::Count(n)), _) => Seeds::new(first, n.get().into()),
                    // One run, equal to its run among many.
                    (None, Some(_)) => Seeds::new(first, 1),
                    (None, None) => Seeds::new(first, variant.scenario.seeds.get().into()),
                };
                let seeds = options.shard.map_or(sweep, |shard| sweep.of_shard(shard));
                is_asked.then_some(Cast {
                    is_cut,
                    variant,
                    plan,
                    sweep,
                    seeds,
                })
            }
            Err(problems) => {
                for problem in problems {
                    match problem {
                        Unplayable::Refused(number, errors) => {
                            self.refuse(&names[number], &errors);
                        }
                        Unplayable::Expression(expectation, error) => {
                            let found = self.wrong_expression(&expectation.path, &error);
                            self.say(found);
                        }
                        // Reported by `configured`.
                        Unplayable::Configuration => {}
                    }
                }
                None
            }
        }
    }

    /// Warnings about valid objects.
    fn say_admitted(&mut self, plan: &Plan, names: &[Named]) {
        let admitted = plan.admitted();
        self.warn(&admitted.warnings, |number| names[number].clone());
        for note in &admitted.notes {
            self.note(note);
        }
    }

    /// The diagnostics of the scheduler's configuration with these gates.
    fn configured(&mut self, gates: &FeatureGates, documents: &[Origin]) {
        let mut names = Interner::new();
        let config = self.staging.config.clone();
        let scheduling = self.staging.scheduling();
        let configured = scheduling.configure(
            config.as_deref(),
            self.sources,
            documents,
            gates,
            &mut names,
        );
        for diagnostic in configured.in_manifests {
            self.say(diagnostic);
        }
        for diagnostic in configured.elsewhere {
            if !self.staging.elsewhere.contains(&diagnostic) {
                self.staging.elsewhere.push(diagnostic);
            }
        }
        for note in configured.configuration.iter().flat_map(|c| &c.notes) {
            self.note(note);
        }
    }

    fn note(&mut self, note: &str) {
        let notes = &mut self.staging.notes;
        if notes.iter().all(|known| known != note) {
            notes.push(note.to_owned());
        }
    }

    /// An error of a later check about a field mostly repeats the earlier one in other words.
    fn refuse(&mut self, named: &Named, errors: &[FieldError]) {
        let n_known = self.diagnostics.len();
        for error in errors {
            if self.diagnostics.len() >= ERRORS_MAX {
                self.leaves_out = true;
                return;
            }
            let path = rules::as_written(&error.path, &mut self.locator, &named.origin);
            let place = self.locator.place(&named.origin, &path);
            let found = Diagnostic::from_field_error(error, named.label.clone(), place);
            let is_same = |known: &Diagnostic| {
                known.severity == Severity::Error
                    && (known.place, &known.path) == (found.place, &found.path)
            };
            if !self.diagnostics[..n_known].iter().any(is_same) {
                self.say(found);
            }
        }
    }

    /// An error of the base is not repeated for each variant.
    fn say(&mut self, diagnostic: Diagnostic) {
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    fn finish(mut self) -> Vec<Diagnostic> {
        const TOO_MANY: &str = "too-many";
        let is_said = self.diagnostics.iter().any(|d| d.code == TOO_MANY);
        if self.leaves_out && !is_said {
            let message = "there are more problems, which are not listed";
            self.diagnostics.push(Diagnostic::error(TOO_MANY, message));
        }
        self.diagnostics
    }

    /// An error in a CEL expression, at its character if the text is in the file unchanged.
    fn wrong_expression(
        &mut self,
        path: &FieldPath,
        error: &strew_cel::CompileError,
    ) -> Diagnostic {
        let mut diagnostic =
            Diagnostic::error("expression", error.message.clone()).in_field(path.child("cel"));
        if let Some(unknown) = error.unknown.as_deref() {
            diagnostic = diagnostic.with_help(there_are(unknown));
        }
        let reading = read::read(self.sources);
        let scenario = reading.objects.iter().find(|located| {
            matches!(&located.object, KubeObject::Other(other) if other.api_version.starts_with(GROUP))
        });
        let Some(scenario) = scenario else {
            return diagnostic;
        };
        let mut place = self.locator.place(&scenario.origin, &path.child("cel"));
        let text = self.sources.file(place.file).text();
        let quote = usize::from(text[place.span.start..].starts_with(['"', '\'']));
        let at = place.span.start + quote + error.offset;
        // A plain or quoted scalar on one line; for other forms the beginning is shown.
        if error.line == 1 && at < place.span.end && text.is_char_boundary(at) {
            let span = read::Span::new(at, place.span.end.max(at + 1) - quote.min(1));
            place = self.sources.place(place.file, span);
        }
        diagnostic.at(place)
    }
}

/// What a diagnostic says of an object that may have been moved elsewhere.
#[derive(Debug, Clone)]
pub struct Named {
    label: String,
    origin: Origin,
}

impl Named {
    /// Of this object.
    pub fn of(located: &Located) -> Self {
        Self {
            label: located.object.label(),
            origin: located.origin.clone(),
        }
    }
}

/// What is asked about the objects of the files after a run: the recorded events; and all of them where a WorkloadSpread
/// is among them, whose controller reads all.
fn asked_about(objects: &[Located]) -> Vec<Located> {
    let is_spread = |located: &Located| matches!(located.object, KubeObject::WorkloadSpread(_));
    let reads_all = objects.iter().any(is_spread);
    let asked = objects.iter();
    let asked = asked.filter(|located| reads_all || located.object.event().is_some());
    asked.cloned().collect()
}

fn is_config(located: &Located) -> bool {
    matches!(&located.object, KubeObject::Other(other) if is_configuration(&other.api_version, &other.kind))
}
