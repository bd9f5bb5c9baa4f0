//! An explanation, written out.

use serde_json::json;

use crate::arguments::Context;
use crate::explain::Explained;
use crate::failure::Failure;
use crate::report;
use crate::simulate::{Format, serialized};

/// The explanation as text, JSON or YAML.
pub(crate) fn write(
    explained: Explained,
    output: Option<Format>,
    context: &Context,
) -> Result<String, Failure> {
    let pod = &explained.world.pods[explained.entry];
    if let Some(format) = output {
        let value = json!({
            "apiVersion": report::API_VERSION,
            "kind": "PodExplanation",
            "metadata": {"name": &*pod.name, "namespace": &*pod.namespace},
            "message": explained.explanation.sentence,
        });
        return serialized(&value, format);
    }
    let title = context.terminal.styles.title;
    let dim = context.terminal.styles.dim;
    Ok(format!(
        "{title}pod/{}{title:#} -n {}\n{}\n{dim}({}){dim:#}\n",
        pod.name,
        pod.namespace,
        explained.explanation.sentence,
        explained.heading(),
    ))
}
