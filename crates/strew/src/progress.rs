//! How far long work has come: on a terminal, after a second, beside the result.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;

/// Work that is quicker than this needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that shows itself when it is worth it.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Nothing is shown yet; nothing ever if nobody watches.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = (!quiet && terminal::is_watched()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            bar.with_style(style())
        });
        Self(bar)
    }

    /// What is being done, how often in all.
    pub(crate) fn start(&self, what: &'static str, total: usize) {
        if let Some(bar) = &self.0 {
            bar.set_message(what);
            bar.set_length(total as u64);
        }
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        let Some(bar) = &self.0 else { return };
        bar.inc(1);
        if bar.is_hidden() && bar.position() % 64 == 0 && bar.elapsed() > PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Takes it away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    let template = "{msg} {wide_bar} {human_pos}/{human_len}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
