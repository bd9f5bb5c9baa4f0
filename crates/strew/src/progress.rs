//! How far a life has come: on a terminal, beside the result.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strew_model::time::Span;

use crate::terminal;
use crate::text::time_text;

/// How often it is drawn.
const TICK: Duration = Duration::from_millis(200);

/// A line that tells the step and the virtual time.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Nothing is shown ever if nobody watches.
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

    /// The step, and how far its time has come.
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

    /// One more is done.
    pub(crate) fn step(&self) {
        if let Some(line) = &self.0 {
            line.inc(1);
        }
    }

    /// Takes it away.
    pub(crate) fn finish(&self) {
        if let Some(line) = &self.0 {
            line.finish_and_clear();
        }
    }
}
