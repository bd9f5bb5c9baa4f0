//! The abilities of the output: colour, characters, width; and the two streams.
//!
//! Renderers always write styles; the streams remove them if they are not wanted.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use crate::failure::Failure;
use crate::platform;

/// The abilities of the output.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    /// The number of columns for drawings.
    pub(crate) width: usize,
    /// The number of columns to break lines at; `None`: it is unknown, and lines stay whole.
    pub(crate) fit: Option<usize>,
    /// True if characters beyond ASCII are drawn.
    pub(crate) unicode: bool,
    pub(crate) styles: Styles,
}

/// The styles of strew; none is the only carrier of a meaning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Styles {
    pub(crate) title: Style,
    pub(crate) dim: Style,
    pub(crate) good: Style,
    pub(crate) bad: Style,
    pub(crate) bar: Style,
    pub(crate) error: Style,
    pub(crate) warning: Style,
    pub(crate) hint: Style,
}

const WIDTH_DEFAULT: usize = 80;
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 120;

impl Terminal {
    /// With the width and the locale of the environment.
    pub(crate) fn new(is_ascii: bool) -> Self {
        let columns = std::env::var("COLUMNS").ok();
        let columns = columns.and_then(|columns| columns.parse().ok());
        let screen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let columns = columns.filter(|columns| *columns > 0).or_else(screen);
        Self {
            width: columns.unwrap_or(WIDTH_DEFAULT).clamp(WIDTH_MIN, WIDTH_MAX),
            fit: columns.map(|columns| columns.max(WIDTH_MIN)),
            unicode: !is_ascii && speaks_utf8(),
            styles: Styles::new(),
        }
    }

    /// Says why a command failed: one `error:` line, the causes, the hint last. Returns the exit code.
    pub(crate) fn report(&self, failure: &Failure) -> u8 {
        let style = self.styles.error;
        let mut causes = crate::cluster::causes(failure.error().as_ref()).into_iter();
        let first = causes.next().unwrap_or_default();
        let mut text = format!("{style}error{style:#}: {first}\n");
        for cause in causes {
            text.push_str(&format!("  caused by: {cause}\n"));
        }
        if let Some(hint) = failure.hint() {
            let style = self.styles.hint;
            text.push_str(&format!("{style}hint{style:#}: {hint}\n"));
        }
        say(&text);
        failure.exit()
    }
}

impl Styles {
    const fn new() -> Self {
        Self {
            title: Style::new().bold(),
            dim: Style::new().dimmed(),
            good: colored(AnsiColor::Green),
            bad: colored(AnsiColor::Red).bold(),
            bar: colored(AnsiColor::Cyan),
            error: colored(AnsiColor::Red).bold(),
            warning: colored(AnsiColor::Yellow).bold(),
            hint: colored(AnsiColor::Cyan).bold(),
        }
    }
}

const fn colored(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(color)))
}

/// The locale, as C programs find it.
fn speaks_utf8() -> bool {
    let first = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let locale = first.unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8") || platform::SPEAKS_UTF8
}

/// True if progress is visible.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Writes results. A closed pipe, as with `head`, is not a failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::outside(error)),
        _ => Ok(()),
    }
}

/// Replaces characters beyond ASCII.
pub(crate) fn ascii(text: &str) -> String {
    let plain = |c: char| match c {
        '…' => "...".to_owned(),
        '×' => "x".to_owned(),
        '–' | '—' | '─' | '−' => "-".to_owned(),
        '→' => "->".to_owned(),
        '≤' => "<=".to_owned(),
        '≥' => ">=".to_owned(),
        '✓' => "+".to_owned(),
        '✗' => "x".to_owned(),
        '█' => "#".to_owned(),
        '·' => "-".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(plain).collect()
}

/// Lines broken at spaces to fit this number of columns; continued lines are indented. Commands stay whole, so that
/// they can be pasted, and so do words longer than a line.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let shown = anstream::adapter::strip_str(line).to_string();
        let is_command = ["again: ", "why: "]
            .iter()
            .any(|word| shown.trim_start().starts_with(word));
        match is_command || shown.trim_end().chars().count() <= columns {
            true => out.push_str(line),
            false => break_line(&mut out, line, columns),
        }
    }
    out
}

fn break_line(out: &mut String, line: &str, columns: usize) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let deeper = (indent + 4).min(columns / 2);
    let (mut rest, mut room) = (line, columns);
    while let Some(at) = break_at(rest, room) {
        out.push_str(rest[..at].trim_end());
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', deeper));
        rest = rest[at..].trim_start_matches(' ');
        room = columns - deeper;
    }
    out.push_str(rest);
}

/// The space to break at: the last one with at most `room` before it, else the first; `None` if the line fits, or has
/// no space.
fn break_at(line: &str, room: usize) -> Option<usize> {
    let end = line.trim_end().len();
    let start = line.len() - line.trim_start_matches(' ').len();
    let (mut shown, mut is_escape, mut last) = (0, false, None);
    for (at, c) in line[..end].char_indices() {
        match c {
            '\u{1b}' => is_escape = true,
            // Styles end with this letter, which they contain only there.
            'm' if is_escape => is_escape = false,
            _ if is_escape => {}
            ' ' if at >= start && (shown <= room || last.is_none()) => {
                last = Some(at);
                shown += 1;
            }
            _ => shown += 1,
        }
    }
    last.filter(|_| shown > room)
}

/// Writes text besides results.
pub(crate) fn say(text: &str) {
    // There is no other stream to report the failure on.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_commands_are_not() {
        let text = "short\n  one two three four five six seven\n  why: strew explain pod/web-7 shop.yaml\n  \u{1b}[1mone\u{1b}[0m two three four five\naverylongwordthatfitsnowhere\n";
        assert_eq!(
            fitted(text, 20),
            "short\n  one two three four\n      five six seven\n  why: strew explain pod/web-7 shop.yaml\n  \u{1b}[1mone\u{1b}[0m two three four\n      five\naverylongwordthatfitsnowhere\n"
        );
        assert_eq!(fitted("  a b\n", 40), "  a b\n");
    }
}
