//! `strew snapshot`: writes a cluster into a file that simulate and explain read.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use strew_manifest::anonymous::anonymize;
use strew_manifest::read::{Severity, documents, is_namespaced, render};
use strew_manifest::snapshot::Scrubber;
use strew_suite::input::sources;

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::inputs::{self, AsArgs, ReadArgs};
use crate::output::{Format, serialized};
use crate::{cluster, terminal};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM snapshot > dump.json                          all that decides, of the current context
  PROGRAM snapshot --context staging --file dump.json
  PROGRAM explain pod/web-7 -n shop dump.json           and later: why was it Pending then?
  PROGRAM simulate dump.json new-app.yaml               would this find room, too?
  PROGRAM snapshot dump.json --anonymize --names names.json > public.json    for a report of a bug

It reads and writes nothing else. Secrets are not read; environments, arguments, probes and annotations that decide
nothing are taken away.

Exit codes: 0 done; 2 wrong usage or kubeconfig; 3 the API server cannot be used, or a file not read or written.";

/// Arguments of `strew snapshot`.
#[derive(Args, Debug)]
pub(crate) struct SnapshotArgs {
    /// Dumps to take instead of a cluster, as kubectl get -o json or strew snapshot writes them; '-' is standard input
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Replace names (of objects, namespaces, nodes, zones, labels, images), equal ones by equal ones: the dump decides
    /// alike, and can be shown to others
    #[arg(long)]
    anonymize: bool,
    /// The file that gets each replaced name with the new one, to read answers about the dump; keep it
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    names: Option<PathBuf>,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "json", value_parser = ["json", "yaml"])]
    output: String,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    access: AccessArgs,
}

pub(crate) fn run(args: &SnapshotArgs, context: &Context) -> Result<u8, Failure> {
    let mut list = match args.files.is_empty() {
        true => cluster::fetch(&args.access, context.quiet)?,
        false => recorded(args, context)?,
    };
    if args.anonymize {
        let objects = list["items"].as_array_mut();
        let names = objects
            .map(|objects| anonymize(objects))
            .unwrap_or_default();
        if let Some(file) = &args.names {
            let names = serde_json::to_value(&names).map_err(Failure::outside)?;
            write(file, &serialized(&names, Format::Json)?)?;
        }
    }
    let format = match args.output.as_str() {
        "yaml" => Format::Yaml,
        _ => Format::Json,
    };
    let text = serialized(&list, format)?;
    match &args.file {
        None => terminal::print(&text)?,
        Some(file) => write(file, &text)?,
    }
    if !context.quiet && args.file.is_some() {
        let n_objects = list["items"].as_array().map_or(0, Vec::len);
        terminal::say(&format!("{n_objects} objects\n"));
    }
    Ok(0)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(Failure::outside)
}

/// The objects of the files, without secrets, as one `List`.
fn recorded(args: &SnapshotArgs, context: &Context) -> Result<Value, Failure> {
    let how = AsArgs::default().how(format!("{} snapshot -", context.program));
    let inputs = args.read.read(&args.files, how)?;
    for file in [&args.file, &args.names].into_iter().flatten() {
        inputs::check_output(file, &inputs)?;
    }
    let sources = sources(inputs);
    let (documents, mut diagnostics) = documents(&sources);
    diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    if !diagnostics.is_empty() {
        terminal::say(&format!("{}\n", render(&diagnostics, &sources, true)));
        return Err(Failure::input(anyhow!("the files cannot be read")));
    }
    let mut objects: Vec<Value> = documents
        .into_iter()
        .flat_map(|document| items(document.value))
        .filter(decides)
        .collect();
    let mut scrubber = Scrubber::default();
    for object in &mut objects {
        scrubber.scrub(object);
    }
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": objects}))
}

/// True for objects of kinds that strew reads. Others decide nothing, and may hold secrets (Secret, ConfigMap) or texts
/// for people (Event).
fn decides(object: &Value) -> bool {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    is_namespaced(text("apiVersion"), text("kind")).is_some()
}

/// The document, or the items of a list; those of a `PodList` need not say that they are pods.
fn items(mut document: Value) -> Vec<Value> {
    let kind = document["kind"].as_str().unwrap_or_default();
    let Some(kind) = kind.strip_suffix("List").map(str::to_owned) else {
        return vec![document];
    };
    let version = document["apiVersion"].clone();
    let items = document["items"].as_array_mut().map(std::mem::take);
    let mut items = items.unwrap_or_default();
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        if !kind.is_empty() && !item.contains_key("kind") {
            item.insert("apiVersion".to_owned(), version.clone());
            item.insert("kind".to_owned(), kind.clone().into());
        }
    }
    items
}
