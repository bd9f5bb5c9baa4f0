//! Reads a stream of manifests with a scenario among them.

use std::sync::Arc;

use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{
    Broken, Diagnostic, KubeObject, Located, Locator, Origin, Reading, Severity, Sources,
    document_with_letters, read, read_edited,
};

use super::diagnostics;
use super::existence::{ObjectKey, check_targets};
use super::params::put_into_object;
use super::problems::{Problem, Problems};
use super::variant::{Draft, ObjectPatch, Variant, expand};
use super::{API_VERSION, GROUP, KIND};

/// The contents of the files.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The objects of the stream without the scenario, as far as they could be read, with the base's parameters put in.
    pub objects: Arc<Vec<Located>>,
    /// The number of objects that were read, scenarios among them.
    pub n_read: usize,
    /// The objects that could not be read.
    pub broken: Vec<Broken>,
    /// The variants, the base first; empty without a scenario, or if it has errors.
    pub variants: Vec<Variant>,
    /// Everything wrong with the stream, the scenario and its variants, by place.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// True if at least one diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        let mut diagnostics = self.diagnostics.iter();
        diagnostics.any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Reads all files, with the scenario, if there is one, and all its variants.
pub fn load(sources: &Sources) -> Loaded {
    load_read(sources, read(sources))
}

/// As [`load`], of files that were read already.
pub fn load_read(sources: &Sources, mut reading: Reading) -> Loaded {
    let n_read = reading.objects.len() + reading.applied.len() + reading.broken.len();
    let origins = take_scenarios(&mut reading);
    let Some((first, version_error)) = origins.first().cloned() else {
        return Loaded {
            objects: Arc::new(reading.objects),
            n_read,
            broken: reading.broken,
            diagnostics: reading.diagnostics,
            ..Loaded::default()
        };
    };
    let mut placing = Placing {
        locator: Locator::new(sources),
        origin: &first,
        found: Vec::new(),
        label: KIND.to_owned(),
    };
    for (other, _) in &origins[1..] {
        placing.surplus(other);
    }
    let document = document_with_letters(sources, &first).map(|document| document.value);
    let mut drafts = match (&document, version_error) {
        (Some(_), Some(error)) => {
            let mut problems = Problems::default();
            problems.add(&FieldPath::root().child(error.0), error.1);
            placing.problems(problems, None);
            Vec::new()
        }
        (Some(document), None) => expand(document),
        (None, _) => Vec::new(),
    };
    if let Some(base) = drafts.first_mut() {
        if !base.scenario.name.is_empty() {
            placing.label = format!("{KIND} {}", base.scenario.name);
        }
        if !base.scenario.params.is_empty() {
            reading = read_edited(sources, &|value| edit(base, value));
            take_scenarios(&mut reading);
        }
    }
    let Reading {
        objects,
        // The story applies them.
        applied: _,
        broken,
        mut diagnostics,
    } = reading;
    let stream = Stream {
        objects: Arc::new(objects),
        broken,
    };
    let variants = finish(drafts, sources, &stream, &mut diagnostics, &mut placing);
    diagnostics.append(&mut placing.found);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.place.is_none(), diagnostic.place));
    Loaded {
        objects: stream.objects,
        n_read,
        broken: stream.broken,
        variants,
        diagnostics,
    }
}

/// The contents of the files beside the scenario.
struct Stream {
    objects: Arc<Vec<Located>>,
    broken: Vec<Broken>,
}

/// Why a document of this group cannot be read: the field, and the error.
type HeadError = Option<(&'static str, Diagnostic)>;

/// Removes the documents that are, or try to be, scenarios from the objects.
fn take_scenarios(reading: &mut Reading) -> Vec<(Origin, HeadError)> {
    let mut found = Vec::new();
    reading.objects.retain(|located| {
        let KubeObject::Other(other) = &located.object else {
            return true;
        };
        let (group, _) = other.api_version.split_once('/').unwrap_or_default();
        if group != GROUP {
            return true;
        }
        let error = match (other.api_version.as_str(), other.kind.as_str()) {
            (API_VERSION, KIND) => None,
            (_, KIND) => Some((
                "apiVersion",
                diagnostics::unknown_version(&other.api_version),
            )),
            (_, kind) => Some(("kind", diagnostics::unknown_kind(kind))),
        };
        found.push((located.origin.clone(), error));
        false
    });
    found
}

/// Applies the variant's patches to an object of the stream.
fn edit(draft: &Draft, value: &mut Value) {
    put_into_object(value, &draft.scenario.params);
    for patch in patches_of(draft, value) {
        // Failures were reported before.
        let _ = patch.patch.apply(value);
    }
}

fn patches_of<'d>(draft: &'d Draft, value: &Value) -> Vec<&'d ObjectPatch> {
    if draft.patches.is_empty() {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let key = ObjectKey {
        kind: text(&value["kind"]).unwrap_or_default(),
        namespace: text(&value["metadata"]["namespace"]),
        name: text(&value["metadata"]["name"]).unwrap_or_default(),
    };
    let patches = draft.patches.iter();
    patches.filter(|patch| key.is(&patch.target)).collect()
}

/// Checks every variant against the stream; returns the variants if none has errors.
fn finish(
    drafts: Vec<Draft>,
    sources: &Sources,
    stream: &Stream,
    diagnostics: &mut Vec<Diagnostic>,
    placing: &mut Placing<'_>,
) -> Vec<Variant> {
    let base_params = drafts.first().map(|base| base.scenario.params.clone());
    let mut variants = Vec::new();
    let mut is_good = true;
    for mut draft in drafts {
        check_patches(&mut draft, &mut placing.locator, stream);
        check_deadlines(&mut draft);
        let mut objects = Arc::clone(&stream.objects);
        let is_own =
            !draft.patches.is_empty() || Some(&draft.scenario.params) != base_params.as_ref();
        if draft.path.is_some() && is_own && draft.problems.found.is_empty() {
            let mut own = read_edited(sources, &|value| edit(&draft, value));
            take_scenarios(&mut own);
            for mut diagnostic in own.diagnostics {
                if !diagnostics.iter().any(|known| is_same(known, &diagnostic)) {
                    diagnostic.help = Some(diagnostics::in_variant(&draft.name));
                    diagnostics.push(diagnostic);
                }
            }
            objects = Arc::new(own.objects);
        }
        let broken = stream.broken.iter().map(|broken| &broken.located);
        let all: Vec<&Located> = objects.iter().chain(broken).collect();
        check_targets(&draft.scenario, &all, &mut draft.problems);
        is_good &= draft.problems.found.is_empty();
        if draft.problems.found.is_empty() {
            let Placing {
                locator, origin, ..
            } = placing;
            draft.scenario.locate(|path| locator.place(origin, path));
        }
        let is_variant = draft.path.is_some();
        placing.problems(draft.problems, is_variant.then_some(draft.name.as_str()));
        variants.push(Variant {
            name: draft.name,
            scenario: draft.scenario,
            patches: draft.patches,
            expected: draft.expected,
            objects,
        });
    }
    if !is_good {
        variants.clear();
    }
    variants
}

/// Reports patches of objects that do not exist, and operations that cannot be applied.
fn check_patches(draft: &mut Draft, locator: &mut Locator<'_>, stream: &Stream) {
    let broken = stream.broken.iter().map(|broken| &broken.located);
    for patch in &draft.patches {
        let mut objects = stream.objects.iter().chain(broken.clone());
        let object = objects.find(|located| ObjectKey::of(&located.object).is(&patch.target));
        let Some(located) = object else {
            let keys = stream.objects.iter().map(|o| ObjectKey::of(&o.object));
            let keys: Vec<ObjectKey> = keys.collect();
            let kind = patch.target.type_name.kind;
            let same_kind = keys.iter().filter(|key| key.kind == kind);
            let error = diagnostics::not_there(&patch.target, same_kind);
            draft.problems.add_target(&patch.path, error);
            continue;
        };
        let Some(mut value) = locator.value(&located.origin) else {
            continue;
        };
        put_into_object(&mut value, &draft.scenario.params);
        if let Err(error) = patch.patch.apply(&mut value) {
            let path = patch.path.index(error.step);
            draft.problems.add(
                &path,
                diagnostics::not_patched(&patch.target, &error.message),
            );
        }
    }
}

/// Reports deadlines in steps that wait for rest: their claims are judged once, at rest, so that the deadline would begin
/// when all is over.
fn check_deadlines(draft: &mut Draft) {
    let steps = draft.scenario.timeline.iter();
    let at_rest = steps.filter(|step| step.rest.is_some());
    let deadlines = at_rest.flat_map(|step| &step.expect);
    for expectation in deadlines.filter(|e| e.within.is_some_and(|within| within.0 > 0)) {
        let path = expectation.path.child("within");
        draft.problems.add(&path, diagnostics::deadline_at_rest());
    }
}

fn is_same(a: &Diagnostic, b: &Diagnostic) -> bool {
    (a.place, a.code, &a.message) == (b.place, b.code, &b.message)
}

/// Gives problems their places in the document.
struct Placing<'a> {
    locator: Locator<'a>,
    origin: &'a Origin,
    found: Vec<Diagnostic>,
    label: String,
}

impl Placing<'_> {
    fn problems(&mut self, problems: Problems, variant: Option<&str>) {
        for problem in problems.found {
            self.problem(problem, variant);
        }
        if problems.n_left_out > 0 {
            self.found.push(diagnostics::too_many(problems.n_left_out));
        }
    }

    /// A problem of the base is not repeated for each variant.
    fn problem(&mut self, problem: Problem, variant: Option<&str>) {
        let Problem {
            path,
            is_key,
            diagnostic,
            related,
        } = problem;
        let place = match is_key {
            true => self.locator.key_place(self.origin, &path),
            false => self.locator.place(self.origin, &path),
        };
        let mut diagnostic = diagnostic.at(place).in_field(path);
        if let Some((path, label)) = related {
            let place = self.locator.key_place(self.origin, &path);
            diagnostic = diagnostic.with_related(place, label);
        }
        if self.found.iter().any(|known| is_same(known, &diagnostic)) {
            return;
        }
        let label = match variant {
            Some(variant) => format!("{} (variant {variant})", self.label),
            None => self.label.clone(),
        };
        self.found.push(diagnostic.about(label));
    }

    fn surplus(&mut self, origin: &Origin) {
        let root = FieldPath::root().child("kind");
        let first = self.locator.place(self.origin, &root);
        let place = self.locator.place(origin, &root);
        let error = diagnostics::second_scenario().with_related(first, "first here");
        self.found.push(error.at(place));
    }
}
