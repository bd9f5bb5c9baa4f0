//! JUnit XML, which CI systems read.

use std::fmt::Write;

/// The errors of the input, one case each: otherwise a reader of test results would see no tests.
pub(crate) fn wrong_input(errors: &[String]) -> String {
    let n = errors.len();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"strew simulate\" tests=\"{n}\" errors=\"{n}\">\n  \
         <testsuite name=\"input\" tests=\"{n}\" errors=\"{n}\">\n"
    );
    for error in errors {
        let first = escaped(error.lines().next().unwrap_or_default());
        let _ = writeln!(
            out,
            "    <testcase classname=\"input\" name=\"{first}\"><error message=\"{first}\">{}</error></testcase>",
            escaped(error)
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// Text for XML; characters that XML 1.0 cannot represent become question marks.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_takes_every_text() {
        assert_eq!(
            escaped("a<b & \"c\"\n\u{1}"),
            "a&lt;b &amp; &quot;c&quot;&#10;?"
        );
    }
}
