//! Times in kwok's records: `$(time-offset-nanosecond -5000000000)`, relative to the beginning of the record.

use serde_json::Value;
use strew_apiserver::object::moment;
use strew_model::time::Instant;
use strew_sim::simulation::START;

const BEFORE: &str = "$(time-offset-nanosecond ";

/// Replaces relative times by times of the simulation.
pub(super) fn put_in(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(BEFORE) => *text = absolute(text),
        Value::Array(elements) => elements.iter_mut().for_each(put_in),
        Value::Object(fields) => fields.values_mut().for_each(put_in),
        _ => {}
    }
}

/// A text that is no time is returned unchanged.
fn absolute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEFORE) {
        let after = &rest[at + BEFORE.len()..];
        let offset = after.find(')').map(|end| (&after[..end], end));
        let moment = offset.and_then(|(text, end)| Some((time(text)?, end)));
        out.push_str(&rest[..at]);
        match moment {
            Some((time, end)) => {
                out.push_str(&time);
                rest = &after[end + 1..];
            }
            None => {
                out.push_str(BEFORE);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn time(offset: &str) -> Option<String> {
    let offset: i64 = offset.parse().ok()?;
    let moment = START.0.saturating_add_signed(offset);
    Some(moment::to_wire(Instant(moment)).0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_times_of_the_simulation() {
        let cases = [
            ("$(time-offset-nanosecond 0)", "2026-01-01T00:00:00Z"),
            (
                "$(time-offset-nanosecond -86400000000000)",
                "2025-12-31T00:00:00Z",
            ),
            (
                "a $(time-offset-nanosecond 1000000000) b",
                "a 2026-01-01T00:00:01Z b",
            ),
            ("$(time-offset-nanosecond x)", "$(time-offset-nanosecond x)"),
            ("$(time-offset-nanosecond ", "$(time-offset-nanosecond "),
            ("$(HOME)", "$(HOME)"),
        ];
        for (text, expected) in cases {
            assert_eq!(absolute(text), expected);
        }
    }
}
