//! The time at which a dump was taken, as far as its objects tell: the newest time that something in them has happened.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use strew_apiserver::object::moment;
use strew_manifest::json::Json;
use strew_model::time::Instant;

/// Fields with times of what has happened; others may be in the future.
const FIELDS: [&str; 11] = [
    "creationTimestamp",
    "lastTransitionTime",
    "lastHeartbeatTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastTimestamp",
    "eventTime",
    "renewTime",
    "startTime",
    "startedAt",
    "finishedAt",
];

/// The length of `2026-11-20T02:51:00`.
const LENGTH: usize = 19;

/// The newest time of a field of [`FIELDS`] in a text of YAML or JSON; `None` if there is none. The text is not parsed:
/// a large dump is read once already.
pub(super) fn newest(text: &[u8]) -> Option<Instant> {
    let mut newest: Option<&[u8]> = None;
    let mut from = 0;
    while let Some(found) = text[from..].iter().position(|byte| *byte == b'T') {
        let at = from + found;
        from = at + 1;
        let Some(time) = at
            .checked_sub(10)
            .and_then(|begin| text.get(begin..begin + LENGTH))
        else {
            continue;
        };
        if newest.is_none_or(|newest| newest < time) && is_time(time) && is_named(&text[..at - 10])
        {
            newest = Some(time);
        }
    }
    let text = std::str::from_utf8(newest?).ok()?;
    let time = Time::of_json(Value::from(format!("{text}Z"))).ok()?;
    moment::of_wire(Some(&time))
}

/// True for `2026-11-20T02:51:00`.
fn is_time(text: &[u8]) -> bool {
    let expected = b"0000-00-00T00:00:00";
    let mut pairs = text.iter().zip(expected);
    text.len() == LENGTH
        && pairs.all(|(found, expected)| match expected {
            b'0' => found.is_ascii_digit(),
            other => found == other,
        })
}

/// True if a text ends with the name of one of the fields, as in `"lastTimestamp": "` and `lastTimestamp: `.
fn is_named(before: &[u8]) -> bool {
    let is_sign = |byte: &u8| matches!(byte, b'"' | b'\'' | b':' | b' ');
    let end = before.iter().rposition(|byte| !is_sign(byte));
    let name = end.map_or(&[][..], |end| &before[..=end]);
    FIELDS.iter().any(|field| name.ends_with(field.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_time_of_what_happened_counts() {
        let secs = |text: &str| newest(text.as_bytes()).map(Instant::secs);
        let json = r#"{"creationTimestamp": "2026-11-20T02:00:00Z", "renewTime":"2026-11-20T02:51:00.123456Z",
            "notAfter": "2036-11-20T02:51:00Z", "T": "2026-11-20T"}"#;
        assert_eq!(secs(json), Some(1_795_143_060));
        assert_eq!(
            secs("creationTimestamp: 2026-11-20T02:51:00Z\n"),
            Some(1_795_143_060)
        );
        assert_eq!(secs("T"), None);
        assert_eq!(secs("expires: 2026-11-20T02:51:00Z"), None);
        assert_eq!(secs("creationTimestamp: 2026-99-99T02:51:00Z"), None);
    }
}
