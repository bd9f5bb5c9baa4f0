//! Values as text for programs.

use serde::Serialize;
use strew_manifest::printable::{is_printable, make_all_printable};

use crate::failure::Failure;

/// The form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// Indented.
    Json,
    /// One document.
    Yaml,
}

/// Text for programs. Keys, such as those of labels, are the only text of others in it that may not be printable yet.
///
/// # Errors
/// The value has no such form.
pub fn serialized(value: &impl Serialize, format: Notation) -> Result<String, Failure> {
    let text = written(value, format)?;
    if is_printable(&text) {
        return Ok(text);
    }
    let mut value = serde_json::to_value(value).map_err(Failure::outside)?;
    make_all_printable(&mut value);
    written(&value, format)
}

fn written(value: &impl Serialize, format: Notation) -> Result<String, Failure> {
    let text = match format {
        Notation::Yaml => {
            serde_saphyr::to_string(value).map_err(|error| Failure::outside(error.to_string()))?
        }
        Notation::Json => serde_json::to_string_pretty(value).map_err(Failure::outside)?,
    };
    Ok(match text.ends_with('\n') {
        true => text,
        false => text + "\n",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Before, keys kept marks of direction and C1 controls, which some terminals act on.
    #[test]
    fn keys_are_printable_and_the_rest_stays() {
        let hostile =
            json!({"labels": {"a\u{202e}b": "\u{9b}31m", "z": 1.0, "c": ["\u{e4}"]}, "b": 0});
        let json = serialized(&hostile, Notation::Json).unwrap();
        assert!(is_printable(&json), "{json:?}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let shown =
            json!({"labels": {"a\\u{202e}b": "\\u{9b}31m", "z": 1.0, "c": ["\u{e4}"]}, "b": 0});
        assert_eq!(read, shown);
        assert!(
            json.find("labels") < json.find("\"b\""),
            "the order stays: {json}"
        );
        let yaml = serialized(&hostile, Notation::Yaml).unwrap();
        assert!(is_printable(&yaml), "{yaml:?}");
    }
}
