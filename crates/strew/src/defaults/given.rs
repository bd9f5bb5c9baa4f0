//! The file with the default constraints.

use anyhow::anyhow;
use strew_model::Interner;
use strew_suite::configuration::SchedulingArgs;
use strew_suite::input;
use strew_wire::config::{Given as Source, configure};
use strew_wire::default_policy::Defaults;

use crate::context::Context;
use crate::diagnostics::{print_diagnostics, say_note, say_problems};
use crate::failure::Failure;
use crate::inputs;
use crate::output::Format;

/// What the file says.
pub(super) struct Given {
    pub(super) defaults: Defaults,
    /// True for a whole configuration, which may decide about other things, too.
    pub(super) is_configuration: bool,
}

/// Reads the file; `None` if it has errors, which were reported.
///
/// # Errors
/// The file cannot be read, or has no default constraints.
pub(super) fn read(
    file: &str,
    scheduling: &SchedulingArgs,
    format: Option<Format>,
    context: &Context,
) -> Result<Option<Given>, Failure> {
    if std::path::Path::new(file).is_dir() {
        let error = anyhow!("{file} is a folder");
        return Err(Failure::input(error).with_hint("FILE is one scheduler configuration"));
    }
    let sources = input::sources(inputs::read_one(file)?);
    let mut names = Interner::new();
    let (gates, mut errors) = scheduling.gates();
    let configuration = match configure(Source::Defaults(&sources), &gates, &mut names) {
        Ok(configuration) => Some(configuration),
        Err(found) => {
            errors.extend(found);
            None
        }
    };
    let said = [(errors, &sources)];
    let Some(configuration) = configuration.filter(|_| said[0].0.is_empty()) else {
        print_diagnostics("defaults", &said, format)?;
        say_problems(&said, "printed", context);
        return Ok(None);
    };
    for note in &configuration.notes {
        say_note(note, context);
    }
    let Some(defaults) = Defaults::of(&configuration, &names) else {
        let error = anyhow!(
            "{file} names no default constraint: kube-scheduler's own, and none at all, need no policy"
        );
        let hint = "write `defaultingType: List`, and one or more defaultConstraints, into the args of PodTopologySpread";
        return Err(Failure::input(error).with_hint(hint));
    };
    Ok(Some(Given {
        defaults,
        is_configuration: is_configuration(&sources),
    }))
}

/// Whether the document is more than the arguments of PodTopologySpread.
fn is_configuration(sources: &strew_manifest::read::Sources) -> bool {
    let (documents, _) = strew_manifest::read::documents(sources);
    let mut documents = documents.iter().filter(|d| !d.value.is_null());
    documents
        .next()
        .is_some_and(|document| document.value["kind"] != "PodTopologySpreadArgs")
}
