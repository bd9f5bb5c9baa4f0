//! What is around the runs of `strew simulate`: threads, progress, Ctrl-C, the log of `--events`, the text step by step.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use strew_model::Span;
use strew_suite::host::{self, Host, Teller};
use strew_suite::options::Options;
use strew_suite::ready::{Ready, largest, n_steps};
use strew_suite::replay::explain;
use strew_suite::suite::{Cast, Staged, Suite};
use strew_suite::work::Work;

use super::screen::Screen;
use super::{EXIT_INTERRUPTED, Question, say};
use crate::context::Context;
use crate::failure::Failure;
use crate::memory::Need;
use crate::output::Format;
use crate::platform::interrupts;
use crate::progress::Progress;
use crate::text::Look;

/// The terminal around the runs.
pub(super) struct Console<'a> {
    question: &'a Question<'a>,
    options: &'a Options,
    context: &'a Context,
    progress: Progress,
    /// Set when the runs begin: before, Ctrl-C ends the program at once.
    interrupt: OnceLock<Arc<AtomicBool>>,
}

impl<'a> Console<'a> {
    pub(super) fn new(
        question: &'a Question<'a>,
        options: &'a Options,
        context: &'a Context,
    ) -> Self {
        Self {
            question,
            options,
            context,
            progress: Progress::new(context.quiet),
            interrupt: OnceLock::new(),
        }
    }
}

impl Host for Console<'_> {
    fn n_threads(&self) -> usize {
        self.question.args.jobs()
    }

    fn is_stopped(&self) -> bool {
        let interrupt = self.interrupt.get();
        interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
    }

    fn show(&self, step: &str, elapsed: Span) {
        self.progress.show(step, elapsed);
    }

    fn step(&self) {
        self.progress.step();
    }

    fn screen<'a>(
        &'a self,
        suite: &'a Suite,
        cast: &'a Cast,
        seed: u64,
    ) -> Option<Box<dyn host::Screen + 'a>> {
        let (question, context) = (self.question, self.context);
        let look = Look {
            terminal: &context.terminal,
            wide: question.output == Some(Format::Wide),
            pods: context.verbose > 0,
            headers: question.headers,
            explain: Box::new(move |pod: &str, namespace: &str| {
                explain(self.options, suite, cast, seed, pod, namespace)
            }),
            in_namespace: question.choice.namespace.is_some(),
        };
        Some(Box::new(Screen::new(look)))
    }
}

/// Says what is wrong with the files, and keeps the log and the time of the runs.
pub(super) struct Desk<'a> {
    console: &'a Console<'a>,
    log: Option<BufWriter<File>>,
    began: Option<Instant>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(console: &'a Console<'a>) -> Self {
        Self {
            console,
            log: None,
            began: None,
        }
    }

    /// The runs are over: returns how long they took.
    ///
    /// # Errors
    /// The log could not be written.
    pub(super) fn finish(mut self) -> Result<Duration, Failure> {
        self.console.progress.finish();
        if let Some(log) = &mut self.log {
            log.flush().map_err(Failure::outside)?;
        }
        Ok(self.began.map_or(Duration::ZERO, |began| began.elapsed()))
    }
}

impl Teller for Desk<'_> {
    type Error = Failure;

    fn read(&mut self, staged: &Staged) -> Result<(), Failure> {
        say(staged, self.console.question, self.console.context)
    }

    fn begin(&mut self, ready: &Ready, work: &Work<'_>) -> Result<(), Failure> {
        let Console {
            question, progress, ..
        } = self.console;
        question.world.memory.check(Need {
            size: largest(&ready.suites),
            n_at_once: question.args.jobs() as u64,
            n_runs: work.n_runs(),
            n_kept: work.n_kept(),
            n_steps: n_steps(&ready.suites),
            is_page: question.html.is_some(),
        })?;
        #[allow(
            clippy::disallowed_methods,
            reason = "people are told how long it took; no report is"
        )]
        let began = Instant::now();
        self.began = Some(began);
        self.log = question.args.events.as_deref().map(open_log).transpose()?;
        let flag = interrupts(EXIT_INTERRUPTED).map_err(Failure::outside)?;
        let _ = self.console.interrupt.set(flag);
        if work.n_runs() > 1 {
            progress.start("playing", work.n_runs());
        }
        Ok(())
    }

    fn log(&mut self) -> Option<&mut dyn Write> {
        self.log.as_mut().map(|log| log as &mut dyn Write)
    }
}

fn open_log(path: &str) -> Result<BufWriter<File>, Failure> {
    let file = File::create(path)
        .with_context(|| format!("cannot write {path}"))
        .map_err(Failure::outside)?;
    Ok(BufWriter::new(file))
}
