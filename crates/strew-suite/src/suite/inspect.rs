//! Reads files as `strew simulate` does, and plays nothing: for `strew lint`.

use std::sync::Arc;

use strew_lint::Scheduling;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{
    Broken, Diagnostic, KubeObject, Located, Locator, Origin, Reading, Severity, Sources,
    document_at, read,
};
use strew_model::Interner;
use strew_scenario::format::GROUP;
use strew_wire::config::is_configuration;
use strew_wire::workloadspread::lint::refused;

use super::{Input, Named, Stage, Staging, holds_scenario, is_config, stage};
use crate::assumed;
use crate::failure::Failure;
use crate::input;
use crate::options::Options;
use crate::rules::{self, Pass, Placed};

/// What was found in one set of files.
pub struct Inspected {
    /// The files.
    pub sources: Arc<Sources>,
    /// Errors of reading and of the API server, its warnings, and what the rules found.
    pub diagnostics: Vec<Diagnostic>,
    /// True if some object cannot be read, or the API server refuses it; WorkloadSpreads are their webhook's.
    pub is_refused: bool,
    /// What was read; `None` where a Scenario took it.
    pub reading: Option<Reading>,
}

/// Reads these files: each Scenario with its files, and the other files together.
///
/// # Errors
/// Arguments that contradict each other.
pub fn inspect(options: &Options, inputs: Vec<Input>) -> Result<Vec<Inspected>, Failure> {
    let n_scenarios = inputs.iter().filter(|input| holds_scenario(input)).count();
    let (of_scenarios, others): (Vec<Input>, Vec<Input>) = match n_scenarios {
        0 => (Vec::new(), inputs),
        1 => (inputs, Vec::new()),
        // A Scenario does not use what was found beside it.
        _ => inputs
            .into_iter()
            .partition(|input| holds_scenario(input) || !input.is_found),
    };
    let mut inspected = Vec::new();
    if n_scenarios > 0 {
        let staged = stage(options, of_scenarios)?;
        inspected.extend(staged.suites.into_iter().map(|suite| Inspected {
            is_refused: suite.suite.is_none(),
            reading: None,
            sources: suite.sources,
            diagnostics: suite.diagnostics,
        }));
    }
    if !others.is_empty() {
        inspected.push(manifests(options, others));
    }
    Ok(inspected)
}

/// Files without a Scenario. They may have no nodes and no workloads.
fn manifests(options: &Options, inputs: Vec<Input>) -> Inspected {
    let sources = Arc::new(input::sources(inputs));
    let mut reading = read(&sources);
    let mut staging = Staging {
        options,
        config: None,
        until: None,
        notes: Vec::new(),
        elsewhere: Vec::new(),
    };
    let mut stage = Stage {
        staging: &mut staging,
        locator: Locator::new(&sources),
        sources: &sources,
        diagnostics: std::mem::take(&mut reading.diagnostics),
        leaves_out: false,
    };
    let n_read = reading.objects.len();
    let classes = classes(&mut stage, &reading.objects);
    reading.objects.extend(classes);
    stage.judge(&reading.objects, &reading.broken);
    reading.objects.truncate(n_read);
    let scheduling = stage.scheduling(&reading.objects);
    // Objects that could not be read completely are looked at as far as they could be read.
    let whole = reading.objects.iter().map(|located| (located, None));
    let broken = reading
        .broken
        .iter()
        .map(|broken| (&broken.located, Some(broken)));
    let all: Vec<(&Located, Option<&Broken>)> = whole.chain(broken).collect();
    let objects: Vec<&KubeObject> = all.iter().map(|(located, _)| &located.object).collect();
    // Those of a dump may be older than the webhook, and are looked at here.
    for (number, mut errors) in refused(&objects) {
        let (located, broken) = all[number];
        errors.retain(|error| broken.is_none_or(|broken| !broken.follows(error)));
        stage.refuse(&Named::of(located), &errors);
    }
    let is_of_webhook = |d: &Diagnostic| {
        let label = d.object.as_deref().unwrap_or_default();
        let path = d.path.as_ref().map(ToString::to_string);
        // The API server itself looks at metadata, of every kind.
        let is_metadata = path.is_some_and(|path| path.starts_with("metadata"));
        d.code == "invalid-field" && label.starts_with("WorkloadSpread ") && !is_metadata
    };
    let errors = stage.diagnostics.iter();
    let mut errors = errors.filter(|d| d.severity == Severity::Error);
    let is_refused = !reading.broken.is_empty() || errors.any(|d| !is_of_webhook(d));
    let placed: Vec<Placed<'_>> = all
        .iter()
        .map(|(located, _)| (&located.object, Some(&located.origin)))
        .collect();
    let pass = Pass::Linted(&scheduling);
    let found = rules::diagnostics(&placed, pass, &sources, &mut stage.locator);
    found.into_iter().for_each(|found| stage.say(found));
    let mut diagnostics = stage.finish();
    diagnostics.sort_by_key(|d| (d.place.is_none(), d.place));
    Inspected {
        sources,
        diagnostics,
        is_refused,
        reading: Some(reading),
    }
}

/// The priority classes that the objects name and that are not among them: those are the cluster's. Where the files hold
/// others it is a warning, else a note.
fn classes(stage: &mut Stage<'_, '_>, objects: &[Located]) -> Vec<Located> {
    let assumed = assumed::assumed(objects, stage.sources, &stage.staging.options.assumed);
    let is_class = |object: &KubeObject| matches!(object, KubeObject::PriorityClass(_));
    let severity = match objects.iter().any(|located| is_class(&located.object)) {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let told = { assumed.diagnostics.into_iter() }.filter(|d| d.code == "assumed-priority-class");
    told.for_each(|told| stage.say(Diagnostic { severity, ..told }));
    let Some(first) = objects.first() else {
        return Vec::new();
    };
    let classes = assumed.objects.into_iter().filter(is_class);
    let located = classes.map(|object| Located {
        object,
        origin: first.origin.clone(),
        from_dump: first.from_dump,
    });
    located.collect()
}

/// True if strew reads a kind that is none of Kubernetes' objects: a Scenario, or the scheduler's configuration.
pub fn is_read(api_version: &str, kind: &str) -> bool {
    api_version.starts_with(GROUP) || is_configuration(api_version, kind)
}

impl Stage<'_, '_> {
    /// The scheduler of a configuration among the objects, else kube-scheduler's default. What is wrong with the
    /// configuration was said.
    fn scheduling(&self, objects: &[Located]) -> Scheduling {
        let documents = objects.iter().filter(|located| is_config(located));
        let documents: Vec<Origin> = documents.map(|located| located.origin.clone()).collect();
        let Some(document) = { documents.first() }.and_then(|o| document_at(self.sources, o))
        else {
            return Scheduling::default();
        };
        let scheduling = &self.staging.options.scheduling;
        let (gates, mut names) = (scheduling.gates().0, Interner::new());
        let configured = scheduling.configure(None, self.sources, &documents, &gates, &mut names);
        let configuration = configured.configuration;
        let given =
            configuration.and_then(|c| Scheduling::of(&c, names, document.value.to_string()));
        given.unwrap_or_default()
    }

    /// The API server's warnings.
    pub(super) fn warn(&mut self, warnings: &[(usize, String)], named: impl Fn(usize) -> Named) {
        for (number, text) in warnings {
            let warning = warning(text, named(*number), &mut self.locator);
            self.say(warning);
        }
    }
}

/// A warning of the API server about an object, at the field that it begins with.
pub fn warning(text: &str, named: Named, locator: &mut Locator<'_>) -> Diagnostic {
    let path = text.split_once(": ").map(|(path, _)| path);
    let path = path.map(path_of).unwrap_or_default();
    let place = locator.place(&named.origin, &path);
    let warning = Diagnostic::warning("api-server-warning", text);
    let warning = warning.about(named.label).at(place);
    warning.in_field(path)
}

/// The path that a text such as `spec.containers[0].name` names, up to its first part in another form.
fn path_of(text: &str) -> FieldPath {
    let mut path = FieldPath::root();
    for part in text.split('.') {
        let (name, rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() || !name.chars().all(char::is_alphanumeric) {
            break;
        }
        path = path.child_owned(name.to_owned());
        let index = rest
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        match index.map(str::parse) {
            None if rest.is_empty() => {}
            Some(Ok(index)) => path = path.index(index),
            _ => break,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_its_field() {
        let text = "spec.template.spec.topologySpreadConstraints[0].labelSelector";
        assert_eq!(path_of(text).to_string(), text);
        assert_eq!(
            path_of("metadata.annotations[a/b].c").to_string(),
            "metadata.annotations"
        );
        assert_eq!(path_of("unknown field \"x\""), FieldPath::root());
    }
}
