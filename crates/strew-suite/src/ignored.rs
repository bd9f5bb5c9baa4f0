//! Findings that a comment of their file accepts: `# strew:ignore RULE reason`.

use strew_lint::{Ignore, RULES, ignores};
use strew_manifest::read::{Diagnostic, FileId, Severity, Sources, Span, nearest};

/// Removes the findings that comments accept. Errors stay: no comment makes the API server accept an object. Returns
/// what is wrong with the comments themselves.
pub fn accept(found: &mut Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for (file, source) in sources.iter() {
        // Most files have none, and some are large.
        if !source.text().contains("strew:ignore") {
            continue;
        }
        for ignore in ignores(source.text()) {
            if ignore.reason.is_empty() {
                let message = match ignore.rule.as_str() {
                    "" => "strew:ignore names no rule".to_owned(),
                    rule => format!("strew:ignore {rule} has no reason, so it accepts nothing"),
                };
                let said = Diagnostic::warning("ignore-without-reason", message)
                    .at(place(sources, file, &ignore))
                    .with_help("write # strew:ignore RULE and then why, for those who read the file after you");
                wrong.push(said);
                continue;
            }
            let n_before = found.len();
            found.retain(|diagnostic| !accepts(&ignore, file, diagnostic));
            if found.len() == n_before {
                wrong.push(unused(sources, file, &ignore));
            }
        }
    }
    wrong
}

fn accepts(ignore: &Ignore, file: FileId, diagnostic: &Diagnostic) -> bool {
    let (first, last) = ignore.lines;
    diagnostic.code == ignore.rule
        && diagnostic.severity != Severity::Error
        && diagnostic
            .place
            .is_some_and(|place| place.file == file && (first..=last).contains(&place.line))
}

fn unused(sources: &Sources, file: FileId, ignore: &Ignore) -> Diagnostic {
    let rule = &ignore.rule;
    let is_known = RULES.iter().any(|known| known.code == rule);
    let (message, help) = match is_known {
        true => (
            format!(
                "strew:ignore {rule} accepts nothing: the rule finds nothing in lines {} to {}",
                ignore.lines.0, ignore.lines.1
            ),
            "remove the comment; it may hide a later finding".to_owned(),
        ),
        false => (
            format!("strew:ignore {rule} names no rule"),
            match nearest(rule, RULES.iter().map(|known| known.code)) {
                Some(meant) => format!("did you mean {meant}?"),
                None => "strew lint --rules lists them".to_owned(),
            },
        ),
    };
    Diagnostic::warning("ignore-unused", message)
        .at(place(sources, file, ignore))
        .with_help(help)
}

/// The comment.
fn place(sources: &Sources, file: FileId, ignore: &Ignore) -> strew_manifest::read::Place {
    let text = sources.file(file).text();
    let number = usize::try_from(ignore.line).unwrap_or(1).saturating_sub(1);
    let mut lines = text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(number).map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let at = line.find("strew:ignore").unwrap_or(0);
    let at = line[..at].rfind('#').unwrap_or(0);
    let end = line.trim_end().len();
    sources.place(file, Span::new(start + at, start + end))
}
