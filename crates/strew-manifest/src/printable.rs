//! Makes text from objects and files safe to print.
//!
//! An API server accepts any characters in some fields (`schedulerName`, messages of conditions). Printed unchanged,
//! they could move a terminal's cursor, change its colours, or forge lines in a log.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::Value;

/// Replaces characters that change how text is displayed by `\u{1b}` and the like: control characters other than line
/// ends and tabs, and direction marks.
///
/// ```
/// use strew_manifest::printable::printable;
/// assert_eq!(printable("a\nb"), "a\nb");
/// assert_eq!(printable("\x1b[31mred\u{202e}"), "\\u{1b}[31mred\\u{202e}");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, changes_the_view)
}

/// As [`printable`], for a single line: line ends and tabs are replaced too.
///
/// ```
/// use strew_manifest::printable::printable_line;
/// assert_eq!(printable_line("web\nERROR fake"), "web\\u{a}ERROR fake");
/// ```
pub fn printable_line(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c.is_control() || changes_the_view(c))
}

/// A word, quoted for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,@%+=".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// True if [`printable`] would change the text.
pub fn is_printable(text: &str) -> bool {
    !text.chars().any(changes_the_view)
}

/// Makes every string in a value printable; keys stay, since places are found by them.
pub fn make_printable(value: &mut Value) {
    each_inner(value, make_printable);
}

/// As [`make_printable`], with the keys of mappings, for output.
///
/// ```
/// use strew_manifest::printable::make_all_printable;
/// let mut value = serde_json::json!({"a\u{202e}b": {"\u{9b}": "c"}, "d": 1});
/// make_all_printable(&mut value);
/// assert_eq!(value, serde_json::json!({"a\\u{202e}b": {"\\u{9b}": "c"}, "d": 1}));
/// ```
pub fn make_all_printable(value: &mut Value) {
    each_inner(value, make_all_printable);
    if let Value::Object(fields) = value
        && !fields.keys().all(|key| is_printable(key))
    {
        let all = std::mem::take(fields).into_iter();
        fields.extend(all.map(|(key, value)| (printable(&key).into_owned(), value)));
    }
}

fn each_inner(value: &mut Value, make: fn(&mut Value)) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = printable(text) {
                *text = shown;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(make),
        Value::Object(fields) => fields.values_mut().for_each(make),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replaced(text: &str, is_replaced: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_replaced(c) {
            true => {
                // Writing into a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Control characters (C0, C1), line separators, and marks that change the direction of writing (Unicode TR 36, §3.2).
fn changes_the_view(c: char) -> bool {
    match c {
        '\n' | '\r' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}
