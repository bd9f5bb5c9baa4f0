//! Renders diagnostics as rustc does.

use annotate_snippets::{
    AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use super::diagnostic::{Diagnostic, Severity};
use super::source::{Place, Sources, floor_char_boundary};
use crate::printable::printable_line;

/// Formats all diagnostics, each with its source line, separated by empty lines.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, color: bool) -> String {
    let renderer = match color {
        true => Renderer::styled(),
        false => Renderer::plain(),
    };
    let mut text = String::new();
    for (index, diagnostic) in diagnostics.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&renderer.render(&[group(diagnostic, sources)]));
        text.push('\n');
    }
    text
}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str());
    let mut group = Group::with_title(title.id(diagnostic.code));
    if let Some(place) = diagnostic.place {
        group = group.elements(source_line(place, sources, AnnotationKind::Primary, ""));
    }
    for related in &diagnostic.related {
        let kind = AnnotationKind::Context;
        group = group.elements(source_line(related.place, sources, kind, &related.label));
    }
    if let Some(mut subject) = subject(diagnostic) {
        subject = printable_line(&subject).into_owned();
        subject.truncate(floor_char_boundary(&subject, SUBJECT_MAX));
        group = group.element(Level::NOTE.message(normalize_untrusted_str(&subject)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    if let Some(fix) = &diagnostic.fix {
        // A note may be meant so: what would take it away is not written by --fix.
        let mut text = match diagnostic.severity {
            Severity::Note => format!("if that is not meant: {}", fix.change),
            _ => format!("fix: {}", fix.change),
        };
        if let Some(verified) = &fix.verified {
            text += &format!(" (verified: {verified})");
        }
        group = group.element(Level::HELP.message(normalize_untrusted_str(&text)));
    }
    group
}

/// The object and the field, unless the message names them.
fn subject(diagnostic: &Diagnostic) -> Option<String> {
    let path = diagnostic.path.as_ref().map(ToString::to_string);
    let path = path.filter(|path| !path.is_empty() && !diagnostic.message.starts_with(path));
    let object = diagnostic.object.as_ref()?;
    Some(match path {
        Some(path) => format!("{object}: {path}"),
        None => object.clone(),
    })
}

/// The most bytes of an object and a path: enough for the longest names that Kubernetes allows.
const SUBJECT_MAX: usize = 1000;

/// The most bytes of a line shown before the place; a line of a dump may have megabytes.
const BEFORE_MAX: usize = 60;
const AFTER_MAX: usize = 100;

fn source_line<'a>(
    place: Place,
    sources: &'a Sources,
    kind: AnnotationKind,
    label: &'a str,
) -> Vec<Element<'a>> {
    let file = sources.file(place.file);
    let text = file.text();
    let start = place.span.start;
    let window_start = floor_char_boundary(text, start.saturating_sub(BEFORE_MAX));
    let window_end = floor_char_boundary(text, start.saturating_add(AFTER_MAX));
    let before = &text[window_start..start];
    let line_start = before.rfind('\n').map(|end| window_start + end + 1);
    let is_cut = line_start.is_none() && window_start > 0;
    let shown_start = line_start.unwrap_or(window_start);
    let rest = &text[start..window_end];
    let shown_end = rest.find('\n').map_or(window_end, |end| start + end);
    let end = place.span.end.min(shown_end);
    let span = start - shown_start..end - shown_start;
    let label = Some(label).filter(|label| !label.is_empty());
    let snippet = Snippet::source(&text[shown_start..shown_end])
        .line_start(place.line as usize)
        .annotation(kind.span(span).label(label));
    if !is_cut {
        return vec![snippet.path(file.name()).into()];
    }
    // A snippet with a path would count columns from the cut.
    let origin = Origin::path(file.name())
        .line(place.line as usize)
        .char_column(place.column as usize);
    vec![origin.into(), snippet.into()]
}
