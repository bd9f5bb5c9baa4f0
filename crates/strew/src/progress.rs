//! The progress of a run, shown on a terminal besides the result, or told to what shows it.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strew_model::time::Span;

use crate::platform::TELLS_PROGRESS;
use crate::terminal;
use crate::text::time_text;

/// The interval between two drawings.
const TICK: Duration = Duration::from_millis(200);

/// A line with the step and the virtual time.
pub(crate) struct Progress {
    line: Option<ProgressBar>,
    told: Option<Told>,
}

impl Progress {
    /// Nothing is ever shown if the output is not a terminal.
    pub(crate) fn new(quiet: bool) -> Self {
        let line = (!quiet && terminal::is_watched()).then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {msg}");
            let line = line.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            line.enable_steady_tick(TICK);
            line
        });
        let told = (!quiet && TELLS_PROGRESS).then(Told::default);
        Self { line, told }
    }

    /// The step, and the virtual time so far.
    pub(crate) fn show(&self, step: &str, time: Span) {
        if let Some(line) = &self.line {
            line.set_message(format!("{step}: {} of virtual time", time_text(time)));
        }
    }

    /// Begins to count up to a number.
    pub(crate) fn start(&self, doing: &str, n: u64) {
        if let Some(line) = &self.line {
            let style =
                ProgressStyle::with_template("{spinner} {msg} {pos}/{len} [{wide_bar}] {eta}");
            line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            line.set_length(n);
            line.set_message(doing.to_owned());
        }
        if let Some(told) = &self.told {
            told.n.store(n, Ordering::Relaxed);
        }
    }

    /// Counts one more.
    pub(crate) fn step(&self) {
        if let Some(line) = &self.line {
            line.inc(1);
        }
        if let Some(told) = &self.told {
            told.step();
        }
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

/// Counts what is done, and tells each percent with the sequence that terminals take for progress.
#[derive(Default)]
struct Told {
    n_done: AtomicU64,
    n: AtomicU64,
}

impl Told {
    fn step(&self) {
        let n = self.n.load(Ordering::Relaxed).max(1);
        let n_done = self.n_done.fetch_add(1, Ordering::Relaxed);
        let percent = |n_done: u64| n_done.saturating_mul(100) / n;
        let (before, now) = (percent(n_done), percent(n_done + 1));
        if now > before {
            // There is no other stream to report the failure on.
            let _ = std::io::stderr().write_all(sequence(now).as_bytes());
        }
    }
}

/// Written in one piece, so that it can be told from other text.
fn sequence(percent: u64) -> String {
    format!("\u{1b}]9;4;1;{percent}\u{7}")
}
