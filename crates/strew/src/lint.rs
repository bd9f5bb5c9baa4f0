//! `strew lint`: reads files as `strew simulate` does, and applies the rules.

mod fixes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use clap::Args;
use strew_lint::{RULES, rule_text};
use strew_manifest::finding::Finding;
use strew_manifest::printable::printable_line;
use strew_manifest::read::{Diagnostic, KubeObject, Located, Severity, read, render};
use strew_wire::config::is_configuration;

use fixes::Fixes;

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::diagnostics;
use crate::failure::{EXIT_INPUT, EXIT_NO, Failure};
use crate::inputs::{self, AsArgs, Input, ReadArgs};
use crate::output::{Format, serialized};
use crate::text::{count, widest};
use crate::world::WorldArgs;
use crate::{cluster, junit, place, sarif, terminal};
use strew_suite::options::Options;
use strew_suite::suite::inspect::{Inspected, inspect, is_read};
use strew_suite::{ignored, input};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM lint deploy/                              everything below a folder
  PROGRAM lint web.yaml budget.yaml                 do constraints and budgets find their pods?
  PROGRAM lint nodes.yaml web.yaml                  do the pods fit, can rollouts end?
  PROGRAM lint dump.json --config scheduler.yaml    with the cluster's own default constraints
  PROGRAM lint deploy/ --fix                        write the verified fixes into the files
  PROGRAM lint deploy/ -o patch | git apply         the same, as a patch
  PROGRAM lint deploy/ -o sarif > strew.sarif       for code scanning
  PROGRAM lint                                      the cluster of the kubeconfig, which is only read
  helm template app chart/ | PROGRAM lint -
  kubectl get ws,deploy,nodes -A -o json | PROGRAM lint -
  PROGRAM lint --rules                              what is looked for, and why

Files are read as strew simulate reads them: what it refuses is an error here, too. With nodes in the files,
the scheduler's engine places each workload on them; rollouts under hard constraints are played. A comment
accepts a finding: # strew:ignore RULE reason. docs/lint.md has the rules with examples.

Exit codes: 0 nothing found, or only notes; 1 a rule found something, or the webhook of
WorkloadSpreads or the controller of Placements would refuse an object; 2 wrong usage, or a file
that cannot be read, or that the API server refuses; 3 something outside failed.";

/// Arguments of `strew lint`.
#[derive(Args, Debug)]
pub(crate) struct LintArgs {
    /// Files and folders with manifests; - is standard input; without files: a live cluster, which is only read
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// More files; the same as naming them as arguments
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    filename: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    as_: AsArgs,
    /// How to write it; patch has the fixes only
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml", "sarif", "junit", "patch"])]
    output: Option<String>,
    /// Write the fixes into the files; comments and layout stay
    #[arg(long, conflicts_with = "output")]
    fix: bool,
    /// A KubeSchedulerConfiguration whose profile and default constraints place the pods; one among the files is used as
    /// well
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// If a rule has more findings than this, show the first, and begin with the rules; -o json has all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// List the rules
    #[arg(long, conflicts_with_all = ["fix", "output", "files", "filename"])]
    rules: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// `Diagnostics`, as `-o json` writes it, and so do the other commands of wrong input.
#[derive(schemars::JsonSchema)]
#[schemars(rename = "Diagnostics", rename_all = "camelCase")]
#[expect(dead_code, reason = "the shape of a value")]
struct Written {
    api_version: String,
    kind: String,
    /// The number of files that were read, and of objects in them; written by `strew lint`.
    files: Option<usize>,
    objects: Option<usize>,
    items: Vec<Finding>,
}

/// The JSON schema of diagnostics.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(Written).to_value()
}

impl LintArgs {
    fn format(&self) -> Option<Format> {
        let format = self.output.as_deref()?;
        Some(match format {
            "yaml" => Format::Yaml,
            "sarif" => Format::Sarif,
            "junit" => Format::Junit,
            "patch" => return None,
            _ => Format::Json,
        })
    }
}

pub(crate) fn run(args: &LintArgs, context: &Context) -> Result<u8, Failure> {
    if args.rules {
        terminal::print(&rules())?;
        return Ok(0);
    }
    let names = [&args.files[..], &args.filename].concat();
    let first = names.first().map_or(CLUSTER, String::as_str);
    look(args, &names, context).inspect_err(|failure| {
        diagnostics::print_failure("lint", failure, args.format(), first);
    })
}

/// The file of `--config`.
fn configuration(name: &str) -> Result<Vec<Input>, Failure> {
    let inputs = inputs::read_one(name)?;
    let sources = input::sources(inputs.clone());
    let is_scheduler = |located: &Located| matches!(&located.object, KubeObject::Other(o) if is_configuration(&o.api_version, &o.kind));
    match read(&sources).objects.iter().any(is_scheduler) {
        true => Ok(inputs),
        false => {
            let error = anyhow!("--config {name}: it holds no KubeSchedulerConfiguration");
            Err(Failure::input(error))
        }
    }
}

/// The name of a live cluster's objects as a file.
const CLUSTER: &str = "<cluster>";

/// Each rule with what it finds.
fn rules() -> String {
    let width = widest(RULES.iter().map(|rule| rule.code));
    let each = RULES.iter();
    let each = each.map(|rule| format!("{:width$}  {}\n", rule.code, rule.what));
    each.collect()
}

fn look(args: &LintArgs, names: &[String], context: &Context) -> Result<u8, Failure> {
    let how = args.as_.how(format!("{} lint -", context.program));
    let mut inputs = match names.is_empty() {
        true => {
            let list = cluster::fetch(&args.access, context.quiet)?;
            vec![Input::made(CLUSTER, list.to_string().into_bytes(), how)]
        }
        false => args.read.read(names, how)?,
    };
    if let Some(name) = &args.config {
        inputs.extend(configuration(name)?);
    }
    let first_file = inputs
        .first()
        .map_or(String::new(), |input| input.name.clone());
    if args.fix {
        return fix(args, names, inputs, context);
    }
    let looked = Looked::at(&args.read, names, inputs)?;
    let findings = &looked.findings;
    match args.format() {
        None if args.output.as_deref() == Some("patch") => {
            terminal::print(&looked.patch())?;
        }
        Some(Format::Sarif) => {
            let log = sarif::log(&sarif::of_findings(findings, &first_file));
            terminal::print(&format!("{log:#}\n"))?;
        }
        Some(Format::Junit) => {
            let suite = junit::of_findings(findings, &first_file, true);
            terminal::print(&junit::write("strew lint", &[suite]))?;
        }
        Some(format) => {
            let mut list = diagnostics::list(findings);
            list["files"] = looked.n_files.into();
            list["objects"] = looked.n_objects.into();
            terminal::print(&serialized(&list, format)?)?;
        }
        None => {
            let summary = match context.quiet {
                true => String::new(),
                false => looked.summary(&looked.fixes(), context) + "\n",
            };
            terminal::print(&(looked.text(args.top, context) + &summary))?;
        }
    }
    Ok(looked.exit())
}

/// How often what was written is looked at again for fixes that it made possible.
const ROUNDS: usize = 4;

/// Writes the fixes into the files, and says what is left in them.
fn fix(
    args: &LintArgs,
    names: &[String],
    mut inputs: Vec<Input>,
    context: &Context,
) -> Result<u8, Failure> {
    let mut looked = Looked::at(&args.read, names, inputs.clone())?;
    let (mut n_fixes, mut files) = (0, BTreeSet::new());
    for _ in 0..ROUNDS {
        let written = looked.write_fixes()?;
        if written.is_empty() {
            break;
        }
        for (name, (text, n)) in written {
            n_fixes += n;
            for input in inputs.iter_mut().filter(|input| input.name == name) {
                input.bytes = text.clone().into_bytes();
            }
            files.insert(name);
        }
        looked = Looked::at(&args.read, names, inputs.clone())?;
    }
    let left = looked.fixes();
    let by_hand = left.commands.iter();
    let by_hand: String = by_hand.map(|c| format!("to do by hand: {c}\n")).collect();
    let fixed = match n_fixes {
        0 => "nothing was written\n".to_owned(),
        n => format!(
            "{} fixed in {}\n",
            count(n, "finding"),
            count(files.len(), "file")
        ),
    };
    let (text, summary) = (
        looked.text(args.top, context),
        looked.summary(&left, context),
    );
    terminal::print(&format!("{text}{by_hand}{fixed}{summary}\n"))?;
    Ok(looked.exit())
}

/// Takes away the fixes of objects that have errors: what the API server refuses stays refused with them.
fn leave_refused(diagnostics: &mut [Diagnostic]) {
    let errors = { diagnostics.iter() }.filter(|found| found.severity == Severity::Error);
    let refused: BTreeSet<String> = errors.filter_map(|found| found.object.clone()).collect();
    for found in diagnostics {
        if found
            .object
            .as_ref()
            .is_some_and(|object| refused.contains(object))
        {
            found.fix = None;
        }
    }
}

/// What was found.
struct Looked {
    /// By place, for each set of files.
    findings: Vec<Finding>,
    inspected: Vec<Inspected>,
    n_files: usize,
    n_objects: usize,
    /// The number of objects of each kind that strew does not know.
    unknown: BTreeMap<String, usize>,
}

impl Looked {
    fn at(read_args: &ReadArgs, names: &[String], inputs: Vec<Input>) -> Result<Self, Failure> {
        let n_files = inputs.len();
        let world = WorldArgs {
            read: read_args.clone(),
            ..WorldArgs::default()
        };
        let options = Options {
            files: names.to_vec(),
            read_again: world.read_args(),
            ..Options::default()
        };
        let mut looked = Self {
            findings: Vec::new(),
            inspected: inspect(&options, inputs)?,
            n_files,
            n_objects: 0,
            unknown: BTreeMap::new(),
        };
        for inspected in &mut looked.inspected {
            let sources = &inspected.sources;
            let reading = &*inspected.reading.get_or_insert_with(|| read(sources));
            let whole = reading.objects.iter();
            let broken = reading.broken.iter().map(|broken| &broken.located);
            for located in whole.chain(broken) {
                looked.n_objects += 1;
                if let KubeObject::Other(other) = &located.object
                    && !is_read(&other.api_version, &other.kind)
                    && { other.scales.as_ref() }.is_none_or(|target| target.least.is_none())
                {
                    let group = other.api_version.split_once('/').map(|(group, _)| group);
                    let kind = match group {
                        Some(group) => format!("{}.{group}", other.kind),
                        None => other.kind.clone(),
                    };
                    let kind = printable_line(&kind).into_owned();
                    *looked.unknown.entry(kind).or_default() += 1;
                }
            }
            for found in place::lint::lint(reading, sources) {
                if !inspected.diagnostics.contains(&found) {
                    inspected.diagnostics.push(found);
                }
            }
            leave_refused(&mut inspected.diagnostics);
            let wrong = ignored::accept(&mut inspected.diagnostics, sources);
            inspected.diagnostics.extend(wrong);
            inspected
                .diagnostics
                .sort_by_key(|d| (d.place.is_none(), d.place));
            // Several Scenarios may share files.
            for finding in inspected.diagnostics.iter().map(|d| d.to_finding(sources)) {
                if !looked.findings.contains(&finding) {
                    looked.findings.push(finding);
                }
            }
        }
        if looked.n_objects == 0 && looked.n(Severity::Error) == 0 {
            let error = anyhow!("no objects in {}", count(n_files, "file"));
            return Err(Failure::input(error).with_hint(
                "the input is empty: look at what writes it, for example helm template or kustomize build",
            ));
        }
        Ok(looked)
    }

    fn n(&self, severity: Severity) -> usize {
        let all = self.findings.iter();
        all.filter(|finding| finding.severity == severity).count()
    }

    /// Each finding beside its line, `top` of each rule; if there are more, the rules with their numbers come first.
    /// Errors are all there, notes are left out with `-q`.
    fn text(&self, top: usize, context: &Context) -> String {
        let is_wanted = |d: &&Diagnostic| !context.quiet || d.severity != Severity::Note;
        let all = || {
            self.inspected
                .iter()
                .flat_map(|inspected| &inspected.diagnostics)
        };
        let mut by_rule: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
        for found in all().filter(is_wanted) {
            *by_rule.entry((found.severity, found.code)).or_default() += 1;
        }
        let is_cut = |(severity, n): (Severity, usize)| severity != Severity::Error && n > top;
        let mut text = match by_rule.iter().any(|((s, _), n)| is_cut((*s, *n))) {
            true => rules_first(&by_rule, top),
            false => String::new(),
        };
        let mut n_shown: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
        for Inspected {
            sources,
            diagnostics,
            ..
        } in &self.inspected
        {
            let shown = diagnostics.iter().filter(is_wanted).filter(|d| {
                let n = n_shown.entry((d.severity, d.code)).or_default();
                *n += 1;
                !is_cut((d.severity, *n))
            });
            let mut shown: Vec<Diagnostic> = shown.cloned().collect();
            // What is refused comes before what follows from it.
            shown.sort_by_key(|found| found.severity);
            if !shown.is_empty() {
                text += &(render(&shown, sources, true) + "\n");
            }
        }
        text
    }

    /// The fixes of all findings as a patch.
    fn patch(&self) -> String {
        let each = self.inspected.iter();
        let each = each.map(|inspected| fixes(inspected).patch(&inspected.sources));
        each.collect()
    }

    /// Writes the fixes into the files. Returns the text of each, with the number of its fixes. Of a file that several
    /// Scenarios share only the first one's fixes are written.
    fn write_fixes(&self) -> Result<BTreeMap<String, (String, usize)>, Failure> {
        let mut written = BTreeMap::new();
        for inspected in &self.inspected {
            let mut fixes = fixes(inspected);
            let name = |file| inspected.sources.file(file).name().to_owned();
            fixes
                .files
                .retain(|file, _| !written.contains_key(&name(*file)));
            fixes.write(&inspected.sources)?;
            let files = fixes.files.into_iter();
            written.extend(files.map(|(file, text)| (name(file), text)));
        }
        Ok(written)
    }

    /// What the fixes of all files come to, without the files' texts.
    fn fixes(&self) -> Left {
        let mut left = Left::default();
        for fixes in self.inspected.iter().map(fixes) {
            left.n_written += fixes.files.values().map(|(_, n)| n).sum::<usize>();
            left.n_by_hand += fixes.n_by_hand;
            left.commands.extend(fixes.commands);
        }
        left
    }

    /// `2 files, 9 objects: 1 error, 1 warning`
    fn summary(&self, left: &Left, context: &Context) -> String {
        let n_unknown: usize = self.unknown.values().sum();
        let kinds: Vec<&str> = self.unknown.keys().map(String::as_str).collect();
        let files = count(self.n_files, "file");
        let objects = count(self.n_objects, "object");
        let counts = [
            (Severity::Error, "error"),
            (Severity::Warning, "warning"),
            (Severity::Note, "note"),
        ];
        let counts = counts.map(|(severity, word)| (self.n(severity), word));
        let counts = counts.iter().filter(|(n, _)| *n > 0);
        let counts: Vec<String> = counts.map(|(n, word)| count(*n, word)).collect();
        let found = match (counts.is_empty(), self.n_objects - n_unknown) {
            (false, _) => format!(": {}", counts.join(", ")),
            (true, 0) => String::new(),
            (true, n) if n_unknown > 0 => format!(": nothing found in {n}"),
            (true, _) => ": nothing found".to_owned(),
        };
        let unknown = match n_unknown {
            0 => String::new(),
            n => format!(
                "; {n} not looked at, of kinds that strew does not know: {}",
                named(&kinds)
            ),
        };
        let ways = [
            (left.n_written, "can be fixed", "--fix"),
            (left.n_by_hand, "can be patched", "-o patch"),
        ];
        let ways = ways.iter().filter(|(n, ..)| *n > 0);
        let ways = ways.map(|(n, what, flag)| {
            let program = &context.program;
            format!("; {} {what}: {program} lint {flag}", count(*n, "finding"))
        });
        let fixes: String = ways.collect();
        format!("{files}, {objects}{found}{unknown}{fixes}")
    }

    fn exit(&self) -> u8 {
        let is_refused = self.inspected.iter().any(|inspected| inspected.is_refused);
        match (
            is_refused,
            self.n(Severity::Error) + self.n(Severity::Warning),
        ) {
            (true, _) => EXIT_INPUT,
            (false, 1..) => EXIT_NO,
            (false, 0) => 0,
        }
    }
}

/// Fixes that were not written yet.
#[derive(Default)]
struct Left {
    /// How many go into files.
    n_written: usize,
    /// How many only the commands make.
    n_by_hand: usize,
    commands: Vec<String>,
}

/// How many findings each rule has, worst and most first.
fn rules_first(by_rule: &BTreeMap<(Severity, &str), usize>, top: usize) -> String {
    let mut rules: Vec<_> = by_rule.iter().collect();
    rules.sort_by_key(|((severity, _), n)| (*severity, Reverse(**n)));
    let width = widest(rules.iter().map(|((_, code), _)| code));
    let n: usize = by_rule.values().sum();
    let mut text = format!("{n} findings by rule; of each, {top} are shown below (--top)\n");
    for ((severity, code), n) in rules {
        let what = rule_text(code).map_or("", |rule| rule.what);
        let line = format!("{n:>5} {:<7}  {code:width$}  {what}", severity.name());
        text += line.trim_end();
        text.push('\n');
    }
    text + "\n"
}

/// The fixes of what was found, in the text of its files.
fn fixes(inspected: &Inspected) -> Fixes {
    match &inspected.reading {
        Some(reading) => Fixes::of(&inspected.sources, reading, &inspected.diagnostics),
        None => Fixes::default(),
    }
}

/// The most kinds that are named.
const KINDS_MAX: usize = 10;

fn named(kinds: &[&str]) -> String {
    let some = kinds.iter().take(KINDS_MAX);
    let mut some: Vec<String> = some.map(|kind| (*kind).to_owned()).collect();
    if kinds.len() > KINDS_MAX {
        some.push(format!("and {} more", kinds.len() - KINDS_MAX));
    }
    some.join(", ")
}
