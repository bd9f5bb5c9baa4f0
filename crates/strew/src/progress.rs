//! The progress of a run, shown on a terminal besides the result.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strew_model::time::Span;

use crate::terminal;
use crate::text::time_text;

/// The interval between two drawings.
const TICK: Duration = Duration::from_millis(200);

/// A line with the step and the virtual time.
pub(crate) struct Progress(Option<ProgressBar>);

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
        Self(line)
    }

    /// The step, and the virtual time so far.
    pub(crate) fn show(&self, step: &str, time: Span) {
        if let Some(line) = &self.0 {
            line.set_message(format!("{step}: {} of virtual time", time_text(time)));
        }
    }

    /// Begins to count up to a number.
    pub(crate) fn start(&self, doing: &str, n: u64) {
        if let Some(line) = &self.0 {
            let style =
                ProgressStyle::with_template("{spinner} {msg} {pos}/{len} [{wide_bar}] {eta}");
            line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            line.set_length(n);
            line.set_message(doing.to_owned());
        }
    }

    /// Counts one more.
    pub(crate) fn step(&self) {
        if let Some(line) = &self.0 {
            line.inc(1);
        }
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        if let Some(line) = &self.0 {
            line.finish_and_clear();
        }
    }
}
