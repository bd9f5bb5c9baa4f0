//! Formats values as one line of YAML, for reports.

use serde_json::Value;

/// The value in YAML's flow style: `{of: deployment/web, counts: [2, 2]}`. Cuts it after `LENGTH_MAX` characters.
pub(super) fn line(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    if let Some((end, _)) = text.char_indices().nth(LENGTH_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The fields of an object without its braces: `spread: {…}, within: 2m`.
pub(super) fn fields(value: &Value) -> String {
    let text = line(value);
    let inside = text.strip_prefix('{');
    let inside = inside.map(|text| text.strip_suffix('}').unwrap_or(text));
    inside.unwrap_or(&text).to_owned()
}

/// The longest line in characters; a manifest may have megabytes.
const LENGTH_MAX: usize = 1000;

fn write(value: &Value, text: &mut String) {
    if text.len() > 4 * LENGTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                separate(i, text);
                scalar(name, text);
                text.push_str(": ");
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(elements) => {
            text.push('[');
            for (i, value) in elements.iter().enumerate() {
                separate(i, text);
                write(value, text);
            }
            text.push(']');
        }
        Value::String(string) => scalar(string, text),
        other => text.push_str(&other.to_string()),
    }
}

fn separate(i: usize, text: &mut String) {
    if i > 0 {
        text.push_str(", ");
    }
}

/// Writes a string without quotes if YAML reads that back as the same string.
fn scalar(string: &str, text: &mut String) {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "/._-=() ".contains(c);
    let is_word = string.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && string.chars().all(is_safe)
        && !string.ends_with(' ');
    let is_taken = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| string.eq_ignore_ascii_case(word));
    match is_word && !is_taken {
        true => text.push_str(string),
        false => text.push_str(&Value::from(string).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_fit_on_a_line() {
        let cases = [
            (
                json!({"spread": {"of": "deployment/web", "counts": [2, 2]}}),
                "spread: {of: deployment/web, counts: [2, 2]}",
            ),
            (json!({"cel": "size(nodes) == 5"}), "cel: size(nodes) == 5"),
            (
                json!({"a": "5", "b": "no", "c": null, "d": ""}),
                r#"a: "5", b: "no", c: null, d: """#,
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(fields(&value), expected);
        }
    }
}
