//! `strew lint`: finds errors and probable mistakes in the WorkloadSpreads and Placements of files.

use anyhow::anyhow;
use clap::Args;
use strew_manifest::field::{FieldPath, Step};
use strew_manifest::finding::Finding;
use strew_manifest::read::{
    self, Broken, Diagnostic, KubeObject, Locator, Origin, Severity, Sources, document_at, render,
};
use strew_wire::workloadspread::lint::{What, lint};

use crate::context::Context;
use crate::diagnostics::print_diagnostics;
use crate::failure::{EXIT_NO, Failure};
use crate::inputs::{AsArgs, ReadArgs};
use crate::output::Format;
use crate::{inputs, place, terminal};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM lint spread.yaml web.yaml                 with its workload, patches are checked, too
  PROGRAM lint placement.yaml fleet/                do clusters have the keys and values it names?
  PROGRAM lint deploy/                              everything below a folder
  PROGRAM lint spread.yaml -o json | jq '.items[].message'
  PROGRAM lint deploy/ -o sarif > strew.sarif       for code scanning
  kubectl get ws,deploy,nodes -A -o json | PROGRAM lint -

WorkloadSpreads and Placements are looked at, and the clusters of a hub; the other objects tell what is there.

Exit codes: 0 nothing found; 1 something was; 2 wrong usage, or a file that cannot be read as objects;
3 something outside failed.";

/// Arguments of `strew lint`.
#[derive(Args, Debug)]
pub(crate) struct LintArgs {
    /// Files and folders with manifests; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// More files; the same as naming them as arguments
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    filename: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    as_: AsArgs,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml", "sarif"])]
    output: Option<String>,
}

/// `Diagnostics`, as `-o json` writes it, and so do the other commands of wrong input.
#[derive(schemars::JsonSchema)]
#[schemars(rename = "Diagnostics", rename_all = "camelCase")]
#[expect(dead_code, reason = "the shape of a value")]
struct Written {
    api_version: String,
    kind: String,
    items: Vec<Finding>,
}

/// The JSON schema of diagnostics.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(Written).to_value()
}

/// Input that cannot be read as objects.
const EXIT_UNDECODABLE: u8 = 2;

pub(crate) fn run(args: &LintArgs, context: &Context) -> Result<u8, Failure> {
    let names: Vec<String> = args.files.iter().chain(&args.filename).cloned().collect();
    if names.is_empty() {
        let hint = format!("{} lint FILE...", context.program);
        return Err(Failure::input(anyhow!("no file to look into")).with_hint(hint));
    }
    let how = args.as_.how(format!("{} lint -", context.program));
    let sources = inputs::sources(args.read.read(&names, how)?);
    let found = look(&sources);
    let all = found.diagnostics;
    match args.output.as_deref() {
        Some(format) => {
            let format = match format {
                "yaml" => Format::Yaml,
                "sarif" => Format::Sarif,
                _ => Format::Json,
            };
            print_diagnostics("lint", &[(all.clone(), &sources)], Some(format))?;
        }
        None => {
            let text = match all.is_empty() {
                true => String::new(),
                false => render(&all, &sources, true) + "\n",
            };
            let summary = match context.quiet {
                true => String::new(),
                false => summary(&all, found.n_spreads, found.n_placements) + "\n",
            };
            terminal::print(&(text + &summary))?;
        }
    }
    Ok(match (found.is_undecodable, all.is_empty()) {
        (true, _) => EXIT_UNDECODABLE,
        (false, false) => EXIT_NO,
        (false, true) => 0,
    })
}

/// All findings.
struct Found {
    diagnostics: Vec<Diagnostic>,
    n_spreads: usize,
    n_placements: usize,
    /// True if some object could not be read completely.
    is_undecodable: bool,
}

/// Objects that cannot be read completely are checked as far as they could be read.
fn look(sources: &Sources) -> Found {
    let reading = read::read(sources);
    let is_undecodable = reading.has_errors();
    let whole = reading.objects.iter().map(|located| (located, None));
    let broken = reading.broken.iter().map(|b| (&b.located, Some(b)));
    let all: Vec<(&read::Located, Option<&Broken>)> = whole.chain(broken).collect();
    let objects: Vec<&KubeObject> = all.iter().map(|(located, _)| &located.object).collect();
    let mut locator = Locator::new(sources);
    let mut diagnostics = reading.diagnostics.clone();
    for finding in lint(&objects) {
        let (located, broken) = all[finding.object];
        let label = located.object.label();
        let place = |locator: &mut Locator<'_>, path: &FieldPath| {
            locator.place(&located.origin, &as_written(path, sources, &located.origin))
        };
        diagnostics.push(match finding.what {
            What::Refused(error) => {
                // Errors that follow from a field that could not be read are left out.
                if broken.is_some_and(|broken| broken.follows(&error)) {
                    continue;
                }
                let place = place(&mut locator, &error.path);
                Diagnostic::from_field_error(&error, label, place)
            }
            What::Suspicious(warning) => {
                let place = place(&mut locator, &warning.path);
                Diagnostic::warning(warning.code, warning.message)
                    .about(label)
                    .at(place)
                    .in_field(warning.path)
                    .with_help(warning.help)
            }
        });
    }
    let (n_placements, of_placements) = place::lint::lint(&reading, sources);
    diagnostics.extend(of_placements);
    diagnostics.sort_by_key(|d| (d.place.is_none(), d.place));
    let is_spread = |object: &&&KubeObject| matches!(object, KubeObject::WorkloadSpread(_));
    Found {
        n_spreads: objects.iter().filter(is_spread).count(),
        n_placements,
        diagnostics,
        is_undecodable,
    }
}

/// Paths are those of v1beta1, and below a patch those of the patched pod's spec. The file may use a field's name in
/// v1alpha1, and its patch has only a part of the patched pod's lists.
fn as_written(path: &FieldPath, sources: &Sources, origin: &Origin) -> FieldPath {
    let mut steps: Vec<Step> = path.steps().to_vec();
    let is_name = |step: &Step, wanted: &str| matches!(step, Step::Name(name) if name == wanted);
    if let Some(at) = steps.iter().position(|step| is_name(step, "patch")) {
        let below = steps.split_off(at + 1).into_iter();
        let is_whole = below
            .as_slice()
            .first()
            .is_some_and(|step| is_name(step, "spec") || is_name(step, "metadata"));
        if !is_whole {
            steps.push(Step::Name("spec".into()));
        }
        steps.extend(below.take_while(|step| !matches!(step, Step::Index(_))));
    }
    let renamed = [
        ("requiredNodeSelector", "requiredNodeSelectorTerm"),
        ("preferredNodeSelector", "preferredNodeSelectorTerms"),
    ];
    for (new, old) in renamed {
        if let Some(at) = steps.iter().position(|step| is_name(step, new)) {
            let document = document_at(sources, origin);
            if document.is_some_and(|d| d.value["apiVersion"] == "apps.kruise.io/v1alpha1") {
                steps[at] = Step::Name(old.into());
            }
        }
    }
    FieldPath::from(steps.as_slice())
}

fn summary(all: &[Diagnostic], n_spreads: usize, n_placements: usize) -> String {
    let of = |severity| all.iter().filter(|d| d.severity == severity).count();
    let count = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let (spreads, placements) = (
        count(n_spreads, "WorkloadSpread"),
        count(n_placements, "Placement"),
    );
    let subjects = match (n_spreads, n_placements) {
        (_, 0) => spreads,
        (0, _) => placements,
        _ => format!("{spreads}, {placements}"),
    };
    match (of(Severity::Error), of(Severity::Warning)) {
        (0, 0) => format!("{subjects}: nothing found"),
        (errors, warnings) => format!(
            "{subjects}: {}, {}",
            count(errors, "error"),
            count(warnings, "warning")
        ),
    }
}
