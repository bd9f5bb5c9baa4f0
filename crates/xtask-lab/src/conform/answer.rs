//! strew's answer to a case, in the form of the vectors.

use serde_json::{Map, Value, json};
use strew_model::Interner;
use strew_scheduler::{Reason, Refusal};

use super::{preemption, spread, whole};

/// The fields that strew answers.
pub(crate) struct Answer {
    pub(crate) fields: Map<String, Value>,
}

/// Decides a case; `None` for kinds that strew does not decide yet.
pub(crate) fn answer(case: &Value) -> anyhow::Result<Option<Answer>> {
    let fields = match case["kind"].as_str() {
        Some("pts") => spread::plugin(case)?,
        Some("pts-update") => spread::update(case)?,
        Some("queueing-hint") => spread::hint(case)?,
        Some("profile") => whole::profile(case)?,
        Some("sequence") => whole::sequence(case)?,
        Some("preemption") => preemption::preemption(case)?,
        _ => return Ok(None),
    };
    Ok(Some(Answer { fields }))
}

/// A refusal as the vectors write it.
pub(crate) fn refusal(refusal: &Refusal, names: &Interner, with_plugin: bool) -> Value {
    let reasons: Vec<String> = refusal.reasons.iter().map(|r| r.text(names)).collect();
    let mut written = json!({"code": refusal.code.name(), "reasons": reasons});
    if with_plugin && !is_narrowed_out(refusal) {
        written["plugin"] = json!(refusal.plugin.name());
    }
    written
}

/// Whether PreFilter's result left the node out, so that no filter plugin looked at it.
pub(super) fn is_narrowed_out(refusal: &Refusal) -> bool {
    matches!(
        refusal.reasons.first(),
        Some(Reason::NarrowedOut(_) | Reason::NarrowedOutBeside(..))
    )
}

/// Names in byte order.
pub(crate) fn sorted(mut names: Vec<&str>) -> Value {
    names.sort_unstable();
    json!(names)
}
