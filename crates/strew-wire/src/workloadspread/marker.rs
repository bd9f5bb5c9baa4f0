//! The marker annotation of a pod.
//!
//! It is written byte for byte as Go's `encoding/json` does, and read with its rules: keys match in any letter case,
//! the last of several equal keys counts, unknown keys are ignored.
//!
//! Source: spec/workloadspread §4.6; `encoding/json` of Go 1.24.

use std::fmt::Write;
use std::sync::Arc;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use strew_workloadspread::{Marked, Marker};

/// The value of the annotation.
pub fn write(marker: &Marker) -> String {
    let mut text = String::from("{");
    for (i, (key, value)) in marker.fields().enumerate() {
        if i > 0 {
            text.push(',');
        }
        let _ = write!(text, "\"{key}\":");
        quote(value, &mut text);
    }
    text.push('}');
    text
}

/// The marker in an annotation's text.
pub fn read(text: Option<&str>) -> Marked {
    let Some(text) = text else {
        return Marked::No;
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = reader.deserialize_any(Fields);
    match read.and_then(|fields| reader.end().map(|()| fields)) {
        Ok([workload_spread, subset, uid]) => Marked::As(Marker {
            workload_spread,
            subset,
            uid: Some(uid).filter(|uid| !uid.is_empty()),
        }),
        Err(_) => Marked::Unreadable,
    }
}

/// Go escapes characters with a meaning in HTML and JavaScript.
fn quote(value: &str, text: &mut String) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
}

/// Name, subset and uid; empty if they are missing or null.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = [Arc<str>; 3];

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    /// `null` leaves the value unset.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(["".into(), "".into(), "".into()])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found: Self::Value = ["".into(), "".into(), "".into()];
        while let Some(key) = map.next_key::<String>()? {
            let names = ["name", "subset", "uid"];
            match names.iter().position(|name| key.eq_ignore_ascii_case(name)) {
                Some(at) => {
                    if let Some(value) = map.next_value::<Option<String>>()? {
                        found[at] = value.into();
                    }
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(name: &str, subset: &str, uid: Option<&str>) -> Marker {
        Marker {
            workload_spread: name.into(),
            subset: subset.into(),
            uid: uid.map(Into::into),
        }
    }

    #[test]
    fn a_marker_is_written_as_go_writes_it() {
        for (given, expected) in [
            (marker("ws", "a", None), r#"{"name":"ws","subset":"a"}"#),
            (
                marker("ws", "a", Some("1-2")),
                r#"{"name":"ws","subset":"a","uid":"1-2"}"#,
            ),
            (
                marker("ws", "<a>&\"\\\n\u{1}\u{2028}ä", None),
                "{\"name\":\"ws\",\"subset\":\"\\u003ca\\u003e\\u0026\\\"\\\\\\n\\u0001\\u2028ä\"}",
            ),
        ] {
            assert_eq!(write(&given), expected);
            assert_eq!(read(Some(expected)), Marked::As(given));
        }
    }

    #[test]
    fn a_marker_is_read_as_go_reads_it() {
        let old = r#"{"Name":"ws","SUBSET":"a","more":[1,{"name":2}]}"#;
        assert_eq!(read(Some(old)), Marked::As(marker("ws", "a", None)));
        let twice = r#"{"name":"x","subset":"a","Name":"ws","uid":""}"#;
        assert_eq!(read(Some(twice)), Marked::As(marker("ws", "a", None)));
        let nulls = r#"{"name":"ws","subset":null}"#;
        assert_eq!(read(Some(nulls)), Marked::As(marker("ws", "", None)));
        assert_eq!(read(Some(" null ")), Marked::As(marker("", "", None)));
        assert_eq!(read(None), Marked::No);
        for broken in [
            "",
            "{",
            "[]",
            "\"ws\"",
            "7",
            "{\"name\":7}",
            "{} {}",
            "subset-a",
        ] {
            assert_eq!(read(Some(broken)), Marked::Unreadable, "{broken:?}");
        }
        let deep = format!("{}{}", "{\"x\":[".repeat(10_000), "]}".repeat(10_000));
        assert_eq!(read(Some(&deep)), Marked::As(marker("", "", None)));
    }
}
