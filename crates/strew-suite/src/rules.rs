//! Applies the rules of [`strew_lint`] to the objects of files, and finds the places.

use std::collections::HashSet;

use strew_lint::{Depth, Found, Scheduling, lint, lint_with_fixes};
use strew_manifest::field::{FieldPath, PathSegment};
use strew_manifest::read::{Diagnostic, KubeObject, Located, Locator, Origin, Sources};
use strew_scenario::format::{BASE, LocatedVerb, Variant, Verb};
use strew_scenario::run::plan::nodes_of_groups;

use crate::{ignored, story};

/// The most findings: each costs time to locate.
const FOUND_MAX: usize = 1000;

/// An object with its place in the files; `None`: it is in none.
pub type Placed<'a> = (&'a KubeObject, Option<&'a Origin>);

/// What the rules are applied for.
#[derive(Debug, Clone, Copy)]
pub enum Pass<'a> {
    /// For files that are played. With `more_come`, objects may be added later, and nothing is said about what is
    /// missing.
    Played {
        /// True if objects may be added later.
        more_come: bool,
    },
    /// For `strew lint`: the engine of this scheduler tries what the files do not say, and each fix.
    Linted(&'a Scheduling),
}

/// The findings of all rules about these objects.
pub fn diagnostics(
    objects: &[Placed<'_>],
    pass: Pass<'_>,
    sources: &Sources,
    locator: &mut Locator<'_>,
) -> Vec<Diagnostic> {
    let wire: Vec<&KubeObject> = objects.iter().map(|(object, _)| *object).collect();
    let mut found = match pass {
        Pass::Played { more_come } => lint(&wire, more_come, Depth::Written),
        Pass::Linted(scheduling) => lint_with_fixes(&wire, scheduling),
    };
    let n_more = found.len().saturating_sub(FOUND_MAX);
    found.truncate(FOUND_MAX);
    let located = found.into_iter();
    let located = located.map(|found| diagnostic(found, objects, sources, locator));
    let mut all: Vec<Diagnostic> = located.collect();
    if n_more > 0 {
        let message = format!("there are {n_more} more findings, which are not listed");
        all.push(Diagnostic::warning("too-many", message));
    }
    all
}

/// What the rules find in the objects of a scenario as written; variants may be mistakes on purpose.
pub fn of_variant(
    variant: &Variant,
    objects: &[Located],
    sources: &Sources,
    locator: &mut Locator<'_>,
) -> Vec<Diagnostic> {
    if variant.name != BASE {
        return Vec::new();
    }
    let mut placed = of_files(objects);
    let given = objects.iter().filter_map(|located| match &located.object {
        KubeObject::Node(node) => node.metadata.name.as_deref(),
        _ => None,
    });
    let given: HashSet<&str> = given.collect();
    let nodes = nodes_of_groups(&variant.scenario);
    let nodes = nodes.filter(|node| !given.contains(&*node.meta().name.name));
    let made: Vec<KubeObject> = nodes.map(|node| node.to_kube()).collect();
    placed.extend(made.iter().map(|node| (node, None)));
    let verbs = variant.scenario.timeline.iter();
    let mut verbs = verbs.flat_map(|step| &step.verbs);
    let adds = |located: &LocatedVerb| {
        use Verb::{Apply, Create, Label, Patch};
        matches!(located.verb, Apply(_) | Create(_) | Patch(_) | Label(_))
    };
    let more_come = variant.scenario.autoscaler.is_some() || verbs.any(adds);
    let mut found = diagnostics(&placed, Pass::Played { more_come }, sources, locator);
    // strew lint says what is wrong with the comments.
    ignored::accept(&mut found, sources);
    found
}

/// The objects with their places.
pub fn of_files(objects: &[Located]) -> Vec<Placed<'_>> {
    let placed = objects.iter();
    placed
        .map(|located| (&located.object, Some(&located.origin)))
        .collect()
}

fn diagnostic(
    found: Found,
    objects: &[Placed<'_>],
    sources: &Sources,
    locator: &mut Locator<'_>,
) -> Diagnostic {
    let (object, origin) = objects[found.object];
    let mut diagnostic = Diagnostic {
        severity: found.severity,
        numbers: found.numbers,
        help: found.help,
        fix: found.fix,
        ..Diagnostic::warning(found.code, found.message)
    }
    .about(object.label());
    if let Some(origin) = origin.filter(|origin| is_written(origin, sources)) {
        let path = as_written(&found.path, locator, origin);
        diagnostic = diagnostic.at(locator.place(origin, &path));
    }
    for (other, label) in found.related {
        let origin = objects[other].1;
        if let Some(origin) = origin.filter(|origin| is_written(origin, sources)) {
            let name = FieldPath::root().child("metadata.name");
            diagnostic = diagnostic.with_related(locator.place(origin, &name), label);
        }
    }
    diagnostic.in_field(found.path)
}

/// True if the user can look at it: the story's objects are in no file.
fn is_written(origin: &Origin, sources: &Sources) -> bool {
    sources.file(origin.file).name() != story::FILE
}

/// Paths are those of v1beta1, and below a patch those of the patched pod's spec. The file may use a field's name in
/// v1alpha1, and its patch has only a part of the patched pod's lists.
pub fn as_written(path: &FieldPath, locator: &mut Locator<'_>, origin: &Origin) -> FieldPath {
    let mut steps: Vec<PathSegment> = path.steps().to_vec();
    let is_name = |step: &PathSegment, wanted: &str| matches!(step, PathSegment::Name(name) if name == wanted);
    if let Some(at) = steps.iter().position(|step| is_name(step, "patch")) {
        let below = steps.split_off(at + 1).into_iter();
        let is_whole = below
            .as_slice()
            .first()
            .is_some_and(|step| is_name(step, "spec") || is_name(step, "metadata"));
        if !is_whole {
            steps.push(PathSegment::Name("spec".into()));
        }
        steps.extend(below.take_while(|step| !matches!(step, PathSegment::Index(_))));
    }
    let renamed = [
        ("requiredNodeSelector", "requiredNodeSelectorTerm"),
        ("preferredNodeSelector", "preferredNodeSelectorTerms"),
    ];
    for (new, old) in renamed {
        if let Some(at) = steps.iter().position(|step| is_name(step, new)) {
            let written = locator.value(origin);
            if written.is_some_and(|value| value["apiVersion"] == "apps.kruise.io/v1alpha1") {
                steps[at] = PathSegment::Name(old.into());
            }
        }
    }
    FieldPath::from(steps.as_slice())
}
