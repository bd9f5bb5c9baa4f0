//! `strew sweep --audit`: the dump of each cluster is audited by a pod of its own.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::anyhow;

use super::{SweepArgs, job};
use crate::context::Context;
use crate::destination;
use crate::diagnostics::say_note;
use crate::failure::{EXIT_INPUT, Failure};
use crate::inputs::Input;
use crate::manifest::written;
use crate::output::Format;
use crate::scenario::{self, Question, ScenarioArgs};

/// The annotation of a Job with the names of the audited clusters by index, as a list in JSON.
pub(super) const CLUSTERS: &str = "sweep.strew.dev/clusters";

/// Prints the Job, after each dump was read: errors are better reported here than by pods.
///
/// # Errors
/// A file is no dump, or two have one name; the files are too large.
pub(super) fn print(
    args: &SweepArgs,
    inputs: Vec<Input>,
    format: &str,
    context: &Context,
) -> Result<u8, Failure> {
    if args.world.scheduling.config.is_some() {
        let error = anyhow!("--audit and --config: a pod has one dump, and no further file");
        return Err(Failure::input(error).with_hint("strew audit --config audits a dump here"));
    }
    let mut clusters: Vec<String> = Vec::new();
    let mut files = job::files(&inputs)?;
    for (index, file) in files.iter_mut().enumerate() {
        let path = Path::new(&file.path);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        clusters.push(stem.into_owned());
        // Each pod reads the folder of its index.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        file.path = format!("{index}/{name}");
    }
    let mut known = BTreeSet::new();
    if let Some(twice) = clusters.iter().find(|name| !known.insert(*name)) {
        let error = anyhow!("two dumps are called {twice}");
        return Err(Failure::input(error).with_hint("name each file after its cluster"));
    }
    let scenario = ScenarioArgs::default();
    let mut digest = String::new();
    let mut words = Vec::new();
    for input in inputs {
        if scenario::is_in(std::slice::from_ref(&input)) {
            let error = anyhow!("{} holds a Scenario, and an audit plays dumps", input.name);
            return Err(Failure::input(error));
        }
        let names = [input.name.clone()];
        let question = Question {
            // With the digest of the file, of which the name is made.
            output: Some(Format::Summary),
            ..Question::of(&scenario, &args.world, &names)
        };
        let Some(ready) = scenario::ready(&question, vec![input], context)? else {
            return Ok(EXIT_INPUT);
        };
        digest.push_str(&ready.inputs);
        // The words of all are the same but for the file.
        words = scenario::words(&question, context)?;
    }
    let options = words.drain(..).skip(2);
    let mut words = vec!["audit".to_owned(), "$(JOB_COMPLETION_INDEX)".to_owned()];
    words.extend(job::literal(options.collect()));
    if let Some(key) = &args.by {
        words.extend(job::literal(vec!["--by".to_owned(), key.clone()]));
    }
    if let Some(n) = args.losing {
        words.extend(["--losing".to_owned(), n.to_string()]);
    }
    let own = ["--no-fix", "--fail-on", "NEVER", "-o", "json"];
    words.extend(own.map(str::to_owned));
    let completions = u32::try_from(clusters.len()).unwrap_or(u32::MAX);
    let name = match &args.job.name {
        Some(name) => name.clone(),
        None => job::name(&format!("{digest} {words:?}"), completions),
    };
    let names = serde_json::to_string(&clusters).map_err(Failure::outside)?;
    let played = job::Played {
        comment: "One completion for each dump, in the folder of its index. Pods are spread over zones; a pod that is lost\n\
             is made again.",
        completions,
        words,
        annotations: vec![(CLUSTERS, names)],
    };
    let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let manifests = job::manifests(&args.job, &name, files, &played)?;
    destination::write(args.out.as_deref(), &written(&manifests, format)?)?;
    let program = context.program;
    say_note(
        &format!("Job {name}; when it is complete: {program} sweep --collect {name}"),
        context,
    );
    if let Some(claim) = &args.job.files_claim {
        let paths = paths.join(", ");
        let folder = format!("folder {name} of volume claim {claim}");
        say_note(
            &format!("before it: copy the dumps into {folder}, as {paths}"),
            context,
        );
    }
    Ok(0)
}
