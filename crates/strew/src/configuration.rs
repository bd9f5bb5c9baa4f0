//! The file of `--config`.

use anyhow::anyhow;
use strew_manifest::read::Sources;
use strew_suite::configuration::SchedulingArgs;
use strew_suite::input;

use crate::failure::Failure;
use crate::inputs;

/// Refuses standard input for the configuration and for files.
///
/// # Errors
/// It is named twice.
pub(crate) fn check(scheduling: &SchedulingArgs, files: &[String]) -> Result<(), Failure> {
    let is_stdin = |name: &str| name == "-";
    if scheduling.config.as_deref().is_some_and(is_stdin) && files.iter().any(|f| is_stdin(f)) {
        let error = anyhow!("standard input is read once: for --config, or for manifests");
        let hint = "a configuration may stand among the manifests, too";
        return Err(Failure::input(error).with_hint(hint));
    }
    Ok(())
}

/// Reads the file of `--config`; `None` without the flag.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read(scheduling: &SchedulingArgs) -> Result<Option<Sources>, Failure> {
    let Some(name) = &scheduling.config else {
        return Ok(None);
    };
    if std::path::Path::new(name).is_dir() {
        return Err(Failure::input(anyhow!("--config {name}: it is a folder")));
    }
    let inputs = inputs::read_one(name)?;
    Ok(Some(input::sources(inputs)))
}
