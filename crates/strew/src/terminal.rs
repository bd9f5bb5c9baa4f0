//! What the output can show: colour, characters, width; and the two streams.
//!
//! Renderers always write styles; the streams take them off where they are not wanted.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use crate::arguments::{Global, When};
use crate::failure::Failure;

/// What the output can show.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    /// Columns.
    pub(crate) width: usize,
    /// Whether characters beyond ASCII are drawn.
    pub(crate) unicode: bool,
    pub(crate) styles: Styles,
}

/// The few styles of strew; never the only carrier of a meaning.
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
const WIDTH_MAX: usize = 120;

impl Terminal {
    /// What the arguments and the environment say.
    pub(crate) fn of(global: &Global) -> Self {
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self {
            width: width.unwrap_or(WIDTH_DEFAULT).clamp(40, WIDTH_MAX),
            unicode: !global.ascii && speaks_utf8(),
            styles: Styles::new(),
        }
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
    locale.contains("utf-8")
        || locale.contains("utf8")
        || cfg!(windows)
        || cfg!(target_os = "macos")
}

/// Settles for both streams when to colour.
pub(crate) fn choose_color(when: When) {
    let choice = match when {
        When::Auto => anstream::ColorChoice::Auto,
        When::Always => anstream::ColorChoice::Always,
        When::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Whether progress has somebody to look at it.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Results. A reader that has gone, as `head` does, is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::outside(error)),
        _ => Ok(()),
    }
}

/// Text without what only Unicode can draw.
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

/// Words beside results.
pub(crate) fn say(text: &str) {
    // Nobody is there to hear of this failure.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
