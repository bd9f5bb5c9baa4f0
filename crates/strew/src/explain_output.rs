//! An explanation, written out.

use serde_json::{Value, json};
use strew_api::explanation::PodExplanation;

use crate::arguments::Context;
use crate::explain::Explained;
use crate::failure::Failure;
use crate::simulate::{Format, serialized};

/// The explanation as text, JSON or YAML.
pub(crate) fn write(
    explained: Explained,
    output: Option<Format>,
    context: &Context,
) -> Result<String, Failure> {
    let wire = PodExplanation::from((&explained.explanation, &explained.world.cluster));
    if let Some(format) = output {
        let mut value = serde_json::to_value(&wire).map_err(Failure::outside)?;
        if let Value::Object(fields) = &mut value {
            // Which moment it is about, beside what it says.
            let moment = json!(explained.moment.name());
            fields.shift_insert(3.min(fields.len()), "moment".to_owned(), moment);
        }
        return serialized(&value, format);
    }
    let title = context.terminal.styles.title;
    let dim = context.terminal.styles.dim;
    Ok(format!(
        "{title}pod/{}{title:#} -n {}\n{}\n{dim}({}){dim:#}\n",
        wire.metadata.name,
        wire.metadata.namespace,
        wire.message,
        explained.heading(),
    ))
}
