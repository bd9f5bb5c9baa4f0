//! Comments that accept a finding: `# strew:ignore RULE reason`.

/// A comment that accepts findings of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignore {
    /// The line of the comment, from 1.
    pub line: u32,
    /// The rule.
    pub rule: String,
    /// Why; empty if nothing is written.
    pub reason: String,
    /// The lines of findings that it accepts, the last one included.
    pub lines: (u32, u32),
}

const MARK: &str = "strew:ignore";

/// The comments of a YAML file.
///
/// One behind a field is about this line. One on a line of its own is about the next line and what is indented below
/// it; before the first field of a document, about the whole document.
pub fn ignores(text: &str) -> Vec<Ignore> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some((before, comment)) = comment(line) else {
            continue;
        };
        let mut words = comment.split_whitespace();
        let rule = words.next().unwrap_or_default().to_owned();
        let reason: Vec<&str> = words.collect();
        let covered = match before.trim().is_empty() {
            false => (index, index),
            true => block(&lines, index),
        };
        let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
        found.push(Ignore {
            line: number(index),
            rule,
            reason: reason.join(" "),
            lines: (number(covered.0), number(covered.1)),
        });
    }
    found
}

/// What stands before a comment that begins with the mark, and what follows the mark.
fn comment(line: &str) -> Option<(&str, &str)> {
    let at = line.find(MARK)?;
    let before = line[..at].trim_end().strip_suffix('#')?;
    let is_comment = before.is_empty() || before.ends_with([' ', '\t']);
    let rest = &line[at + MARK.len()..];
    (is_comment && (rest.is_empty() || rest.starts_with(' '))).then_some((before, rest))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn is_marker(line: &str) -> bool {
    line.starts_with("---") || line.starts_with("...")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The lines that a comment at this line is about.
fn block(lines: &[&str], at: usize) -> (usize, usize) {
    let mut rest = (at + 1..lines.len()).filter(|index| !is_blank(lines[*index]));
    let Some(mut first) = rest.next() else {
        return (at, at);
    };
    let above = lines[..at].iter().rev().find(|line| !is_blank(line));
    let is_head = above.is_none_or(|line| is_marker(line)) || is_marker(lines[first]);
    if is_head {
        if is_marker(lines[first]) {
            first += 1;
        }
        let end = (first..lines.len()).find(|index| is_marker(lines[*index]));
        return (first, end.unwrap_or(lines.len()).saturating_sub(1));
    }
    let own = indent(lines[first]);
    let is_after = |index: &usize| {
        let line = lines[*index];
        !is_blank(line)
            && (is_marker(line)
                || indent(line) < own
                || (indent(line) == own && !is_same_list(lines[first], line)))
    };
    let end = (first + 1..lines.len()).find(is_after);
    (first, end.unwrap_or(lines.len()) - 1)
}

/// True for the elements of a list below a key of the same indent: `ports:`, `- port: 80`.
fn is_same_list(first: &str, line: &str) -> bool {
    !first.trim_start().starts_with("- ") && line.trim_start().starts_with("- ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_about_its_line_its_block_or_its_document() {
        let text = "# strew:ignore a whole document
apiVersion: v1
spec:
  x: 1 # strew:ignore b this line
  # strew:ignore c the element
  - maxSkew: 1
    key: z

  - maxSkew: 2
  text: 'strew:ignore d no comment'
---
# strew:ignore
kind: X
";
        let found = ignores(text);
        let found: Vec<_> = found
            .iter()
            .map(|i| (i.line, &*i.rule, &*i.reason, i.lines))
            .collect();
        assert_eq!(
            found,
            [
                (1, "a", "whole document", (2, 10)),
                (4, "b", "this line", (4, 4)),
                (5, "c", "the element", (6, 8)),
                (12, "", "", (13, 13)),
            ]
        );
    }
}
