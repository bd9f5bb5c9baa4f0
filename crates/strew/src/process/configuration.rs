//! The scheduler's configuration of a process.

use strew_manifest::read::Sources;
use strew_model::Interner;
use strew_suite::configuration::SchedulingArgs;
use strew_wire::config::Configuration;

use crate::context::Context;
use crate::diagnostics::say_problems;

/// The configuration of the file of `--config`, or the default one; `None` if it is invalid, which was reported.
pub(crate) fn configured(
    scheduling: &SchedulingArgs,
    file: Option<&Sources>,
    names: &mut Interner,
    context: &Context,
) -> Option<Configuration> {
    let (gates, mut wrong) = scheduling.gates();
    let nothing = Sources::new();
    let configured = scheduling.configure(file, &nothing, &[], &gates, names);
    wrong.extend(configured.elsewhere);
    let is_wrong = !wrong.is_empty();
    say_problems(&[(wrong, file.unwrap_or(&nothing))], "started", context);
    configured.configuration.filter(|_| !is_wrong)
}
