//! Variants: changes under which a scenario runs again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use strew_manifest::field::{FieldPath, PathSegment};
use strew_manifest::read::Located;

use super::diagnostics;
use super::existence::Mention;
use super::expectation::Expectation;
use super::expectation_reader;
use super::params::{self, Params};
use super::patch::{self, Patch, merge};
use super::problems::Problems;
use super::scenario::Scenario;
use super::scenario_reader;
use super::target::{ObjectTarget, Targets, Wanted};
use super::value::{At, span_of};
use super::vocabulary::VARIANT;

/// The name of the scenario without changes.
pub const BASE: &str = "base";

/// One of the scenario's variants, ready to run.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name; [`BASE`] for the scenario as written.
    pub name: String,
    /// The whole scenario, with the variant's changes.
    pub scenario: Scenario,
    /// The changes of objects of the stream, already made in `objects`.
    pub patches: Vec<ObjectPatch>,
    /// The expected result.
    pub expected: ExpectedResult,
    /// The stream without the scenario, with parameters and patches applied.
    pub objects: Arc<Vec<Located>>,
}

/// A change of an object of the stream.
#[derive(Debug, Clone)]
pub struct ObjectPatch {
    /// The object.
    pub target: ObjectTarget,
    /// The change.
    pub patch: Patch,
    /// Its place in the document.
    pub path: FieldPath,
}

/// The result that a variant is expected to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedResult {
    /// Every expectation holds in every seed.
    MustHold,
    /// At least one expectation fails in at least one seed: the variant shows a defect.
    MustFail,
    /// Failures are reported, but do not fail the run.
    MayFail,
}

/// A variant, read from its document but not yet checked against the stream.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) scenario: Scenario,
    pub(super) patches: Vec<ObjectPatch>,
    pub(super) expected: ExpectedResult,
    /// Its mistakes; their paths lead into the document as written.
    pub(super) problems: Problems,
    /// The field that defines it; `None` for the base.
    pub(super) path: Option<FieldPath>,
}

/// The base, then each variant, as far as they can be read.
pub(super) fn expand(document: &Value) -> Vec<Draft> {
    let mut whole = document.clone();
    let variants = whole["spec"]
        .as_object_mut()
        .and_then(|spec| spec.shift_remove("variants"))
        .unwrap_or(Value::Null);
    let mut base = base(&whole);
    if variants.is_null() {
        return vec![base];
    }
    let path = FieldPath::root().child("spec").child("variants");
    let at = At {
        value: &variants,
        path,
    };
    let elements = at.list(&mut base.problems);
    let mut names: BTreeMap<String, FieldPath> = BTreeMap::new();
    let mut drafts = vec![base];
    for at in elements {
        let Some(draft) = variant(&whole, &at, &mut drafts[0].problems) else {
            continue;
        };
        let path = at.path.child("name");
        if draft.name == BASE {
            drafts[0]
                .problems
                .add(&path, diagnostics::reserved_name(BASE));
        } else if let Some(first) = names.insert(draft.name.clone(), path.clone()) {
            let error = diagnostics::same_name("variant", &draft.name);
            drafts[0]
                .problems
                .add_pair(&path, error, &first, "first here");
        }
        drafts.push(draft);
    }
    drafts
}

fn base(document: &Value) -> Draft {
    let mut problems = Problems::default();
    let (scenario, _) = read_with_params(document, &mut problems);
    Draft {
        name: BASE.to_owned(),
        scenario,
        patches: Vec::new(),
        expected: ExpectedResult::MustHold,
        problems,
        path: None,
    }
}

fn read_with_params(document: &Value, problems: &mut Problems) -> (Scenario, Params) {
    let path = FieldPath::root().child("spec");
    let mut document = document.clone();
    let mut params = Params::new();
    if let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(value) = spec.get("params").filter(|value| !value.is_null()) {
            let path = path.child("params");
            params = params::read(&At { value, path }, problems);
        }
        for (name, value) in spec.iter_mut().filter(|(name, _)| *name != "params") {
            params::put_in(value, &path.child_owned(name.clone()), &params, problems);
        }
    }
    (scenario_reader::read(&document, problems), params)
}

fn variant(whole: &Value, at: &At<'_>, of_base: &mut Problems) -> Option<Draft> {
    let fields = at.fields(&VARIANT, of_base)?;
    let name = fields.required("name", of_base);
    let name = name.and_then(|at| at.name(of_base));
    let flag = |name, problems: &mut Problems| {
        let at = fields.get(name)?;
        at.boolean(problems).filter(|is_set| *is_set).map(|_| at)
    };
    let must_fail = flag("mustFail", of_base);
    let may_fail = flag("mayFail", of_base);
    let expected = match (&must_fail, &may_fail) {
        (Some(must), Some(may)) => {
            of_base.add_pair(
                &may.path,
                diagnostics::must_and_may(),
                &must.path,
                "and this",
            );
            ExpectedResult::MustFail
        }
        (Some(_), None) => ExpectedResult::MustFail,
        (None, Some(_)) => ExpectedResult::MayFail,
        (None, None) => ExpectedResult::MustHold,
    };
    let mut merged = whole.clone();
    let set = fields.get("set");
    let set = set.filter(|at| set_is_mergeable(at, of_base));
    if let (Some(set), Some(document)) = (&set, merged.as_object_mut()) {
        let spec = document.entry("spec").or_insert(Value::Null);
        merge(spec, set.value);
    }
    let mut problems = Problems::default();
    let (mut scenario, params) = read_with_params(&merged, &mut problems);
    for problem in &mut problems.found {
        problem.path = written_at(&problem.path, set.as_ref());
        if let Some((path, _)) = &mut problem.related {
            *path = written_at(path, set.as_ref());
        }
    }
    let mut own = at.value.clone();
    for name in ["patch", "replace"] {
        if let Some(value) = own.get_mut(name) {
            params::put_in(value, &at.path.child(name), &params, &mut problems);
        }
    }
    let own = At {
        value: &own,
        path: at.path.clone(),
    };
    // Unknown fields were reported already.
    let own_fields = own.fields(&VARIANT, &mut Problems::default())?;
    let patches = own_fields.get("patch");
    let patches = patches.map(|at| object_patches(&at, &scenario.namespace, &mut problems));
    if let Some(at) = own_fields.get("replace") {
        replace(&at, &mut scenario, &mut problems);
    }
    Some(Draft {
        name: name?.to_owned(),
        scenario,
        patches: patches.unwrap_or_default(),
        expected,
        problems,
        path: Some(at.path.clone()),
    })
}

fn set_is_mergeable(at: &At<'_>, problems: &mut Problems) -> bool {
    let Some(set) = at.value.as_object() else {
        problems.add(&at.path, diagnostics::wrong_type("an object", at.value));
        return false;
    };
    if set.contains_key("variants") {
        problems.add_key(&at.path.child("variants"), diagnostics::nested_variants());
        return false;
    }
    true
}

/// The path in the document of a field of the merged spec: below `set` if that has the field, else below the spec.
/// Objects are merged, other values are replaced.
fn written_at(path: &FieldPath, set: Option<&At<'_>>) -> FieldPath {
    let (Some(set), Some((first, below))) = (set, path.steps().split_first()) else {
        return path.clone();
    };
    if *first != PathSegment::Name("spec".into()) || below.is_empty() {
        return path.clone();
    }
    let mut value = set.value;
    for step in below {
        let Value::Object(fields) = value else {
            break;
        };
        let next = match step {
            PathSegment::Name(name) => fields.get(name.as_ref()),
            PathSegment::Key(key) => fields.get(key.as_str()),
            PathSegment::Index(_) => None,
        };
        match next {
            Some(next) => value = next,
            None => return path.clone(),
        }
    }
    set.path.join(&FieldPath::from(below))
}

fn object_patches(at: &At<'_>, namespace: &str, problems: &mut Problems) -> Vec<ObjectPatch> {
    let mentions = RefCell::default();
    let targets = Targets {
        namespace,
        mentions: &mentions,
    };
    let wanted = Wanted {
        kinds: &[],
        by: "patch",
    };
    let mut patches = Vec::new();
    for (text, at) in at.entries(problems) {
        let target = targets.object(text, wanted, &at, problems);
        let patch = patch::read(&at, problems);
        if let (Some(target), Some(patch)) = (target, patch) {
            let path = at.path;
            patches.push(ObjectPatch {
                target,
                patch,
                path,
            });
        }
    }
    patches
}

/// Replaces the expectations of the steps at these times.
fn replace(at: &At<'_>, scenario: &mut Scenario, problems: &mut Problems) {
    let namespace = scenario.namespace.clone();
    let mentions = RefCell::default();
    let targets = Targets {
        namespace: &namespace,
        mentions: &mentions,
    };
    let mut replaced = Vec::new();
    for (text, at) in at.entries(problems) {
        let expectations: Vec<Expectation> = expectation_reader::read_all(&at, targets, problems);
        let mut named = scenario.timeline.iter_mut();
        if let Some(step) = named.find(|step| step.name.as_deref() == Some(text)) {
            step.expect = expectations;
            replaced.push(step.path.child("expect"));
            continue;
        }
        let moment = match span_of(text) {
            Ok(moment) => moment,
            Err(error) => {
                problems.add_key(&at.path, error);
                continue;
            }
        };
        let steps = scenario.timeline.iter_mut();
        let mut steps: Vec<_> = steps.filter(|step| step.at == Some(moment)).collect();
        if steps.len() > 1 {
            // Steps without expectations have nothing to replace.
            steps.retain(|step| !step.expect.is_empty());
        }
        match steps.as_mut_slice() {
            [step] => {
                step.expect = expectations;
                replaced.push(step.path.child("expect"));
            }
            [] => {
                let times = scenario
                    .timeline
                    .iter()
                    .filter_map(|step| step.at)
                    .collect();
                problems.add_key(&at.path, diagnostics::no_such_step(moment, times));
            }
            _ => problems.add_key(&at.path, diagnostics::several_such_steps(moment)),
        }
    }
    // Drops the mentions of the replaced expectations.
    let is_replaced = |mention: &Mention| replaced.iter().any(|field| mention.is_below(field));
    scenario
        .timeline_mentions
        .retain(|mention| !is_replaced(mention));
    scenario
        .always_mentions
        .extend(mentions.into_inner().into_iter().filter(Mention::is_name));
}
