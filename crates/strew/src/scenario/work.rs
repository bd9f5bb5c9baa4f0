//! Plays every variant with every seed on a number of threads; results are in order.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

use serde_json::json;
use strew_scenario::run::{Played, play};

use super::arguments::Until;
use super::decision::Decision;
use super::log::Log;
use super::recorder::{Ledger, Recorder};
use super::replay::{explain, replay};
use super::screen::{Screen, Written};
use super::series::Series;
use super::standing::{Answer, Standings};
use super::suite::{Cast, Suite};
use super::{Question, frame, stuck};
use crate::context::Context;
use crate::failure::Failure;
use crate::html::Tape;
use crate::output::Format;
use crate::progress::Progress;
use crate::report::API_VERSION;
use crate::shown::Choice;
use crate::text::Look;
use strew_view::values::{MaxSkew, MomentValues};

/// A completed run.
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) played: Played,
    /// By step; empty if no report needs it.
    pub(super) moments: Vec<MomentValues>,
    pub(super) max_skew: Vec<MaxSkew>,
    /// The text step by step, if it is shown so.
    pub(super) written: Option<Written>,
    /// The whole log, for the page of the variant.
    pub(super) tape: Option<Tape>,
    /// Empty if decisions are not wanted.
    pub(super) decisions: Vec<Decision>,
}

/// A run to play.
#[derive(Clone, Copy)]
struct Task {
    suite: usize,
    cast: usize,
    seed: u64,
}

/// The work.
pub(super) struct Work<'a> {
    suites: &'a [Suite],
    question: &'a Question<'a>,
    context: &'a Context,
    until: Option<Until>,
    /// How many runs.
    n_tasks: u64,
}

/// The result that a thread sends.
type Done = Result<(Run, String), Failure>;

impl<'a> Work<'a> {
    /// All runs of all scenarios.
    ///
    /// # Errors
    /// `--until` is wrong.
    pub(super) fn new(
        suites: &'a [Suite],
        question: &'a Question<'a>,
        context: &'a Context,
    ) -> Result<Self, Failure> {
        let casts = suites.iter().flat_map(|suite| &suite.variants);
        Ok(Self {
            suites,
            question,
            context,
            until: question.args.play.until()?,
            n_tasks: casts.map(|cast| cast.seeds.count).sum(),
        })
    }

    /// The number of runs.
    pub(super) fn len(&self) -> u64 {
        self.n_tasks
    }

    /// The number of runs that are kept.
    pub(super) fn n_kept(&self) -> u64 {
        let casts = self.suites.iter().flat_map(|suite| &suite.variants);
        match self.keeps_all() {
            true => self.n_tasks,
            false => casts.count() as u64,
        }
    }

    /// True if each run is kept; otherwise only sums, and one example of each variant.
    fn keeps_all(&self) -> bool {
        let format = self.question.output;
        self.question.html.is_some() || format.is_some_and(Format::is_for_programs)
    }

    /// The run of this number, in the order of scenarios, variants and seeds.
    fn task(&self, number: u64) -> Option<Task> {
        let mut number = number;
        for (suite, s) in self.suites.iter().enumerate() {
            for (cast, c) in s.variants.iter().enumerate() {
                match number.checked_sub(c.seeds.count) {
                    Some(rest) => number = rest,
                    None => {
                        let seed = c.seeds.first.saturating_add(number);
                        return Some(Task { suite, cast, seed });
                    }
                }
            }
        }
        None
    }

    /// Plays the runs, and adds them up in `standings`.
    ///
    /// # Errors
    /// The first run, in order, that could not be played; or the log that could not be written.
    pub(super) fn run(
        &self,
        mut standings: Standings,
        n_threads: usize,
        interrupt: &AtomicBool,
        progress: &Progress,
        mut log: Option<&mut super::LogFile>,
    ) -> Result<Answer, Failure> {
        let logs = log.is_some();
        let next = AtomicU64::new(0);
        let failed = AtomicBool::new(false);
        let (sender, receiver) = channel();
        let mut errors = BTreeMap::new();
        // The log of the one run that is shown.
        let mut shown_log = String::new();
        let n_tasks = usize::try_from(self.n_tasks).unwrap_or(usize::MAX);
        std::thread::scope(|scope| {
            for _ in 0..n_threads.clamp(1, n_tasks.max(1)) {
                let sender = sender.clone();
                scope.spawn(|| self.thread(&next, [interrupt, &failed], logs, progress, sender));
            }
            drop(sender);
            // The texts of runs whose turn has not come.
            let mut waiting = BTreeMap::new();
            let mut written = 0;
            for (number, task, done) in receiver {
                progress.step();
                let text = match done {
                    Ok((run, text)) => {
                        if !run.played.is_partial {
                            self.add(&mut standings, task, run);
                        }
                        text
                    }
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        errors.insert(number, error);
                        String::new()
                    }
                };
                let Some(file) = log.as_deref_mut() else {
                    continue;
                };
                if self.keeps_one(&self.suites[task.suite]) {
                    shown_log.push_str(&text);
                    continue;
                }
                waiting.insert(number, text);
                while let Some(text) = waiting.remove(&written) {
                    written += 1;
                    if let Err(error) = file.write_all(text.as_bytes()) {
                        failed.store(true, Ordering::Relaxed);
                        errors.insert(number, Failure::outside(error));
                    }
                }
            }
        });
        if let Some(error) = errors.into_values().next() {
            return Err(error);
        }
        if !interrupt.load(Ordering::Relaxed) {
            let again = self.show_worst(&mut standings, interrupt, logs, progress)?;
            shown_log = again.unwrap_or(shown_log);
        }
        if let Some(file) = log {
            let written = file.write_all(shown_log.as_bytes());
            written.map_err(Failure::outside)?;
        }
        Ok(standings.finish(self.n_tasks))
    }

    /// Plays again what a person should see first, if that is not the first seed: which seed it is, is known only now.
    /// Returns the log of the run, if it is the only one that is logged.
    fn show_worst(
        &self,
        standings: &mut Standings,
        interrupt: &AtomicBool,
        logs: bool,
        progress: &Progress,
    ) -> Result<Option<String>, Failure> {
        let mut log = None;
        for (s, suite) in self.suites.iter().enumerate() {
            let casts = suite.variants.iter().enumerate();
            for (c, cast) in casts.filter(|_| suite.is_stepwise()) {
                let first = cast.seeds.first;
                let seed = standings.shown([s, c], first);
                if seed == first || !self.shows_steps(suite) {
                    continue;
                }
                let task = Task {
                    suite: s,
                    cast: c,
                    seed,
                };
                let is_shown = self.question.html.is_some();
                let logs = logs && self.keeps_one(suite);
                let (run, text) = self.play(task, [true, is_shown], interrupt, logs, progress)?;
                if logs {
                    log = Some(text);
                }
                if !run.played.is_partial {
                    standings.show([s, c], cast, run);
                }
            }
        }
        Ok(log)
    }

    /// True if the steps of one run are written, for people or for programs.
    fn shows_steps(&self, suite: &Suite) -> bool {
        match self.question.output {
            Some(Format::Junit | Format::Sarif | Format::Summary) => false,
            Some(format) if format.is_for_programs() => self.keeps_one(suite),
            _ => true,
        }
    }

    /// True if only one run of the suite is kept with the state of the cluster after each step: its seeds are many by
    /// themselves, not because somebody asked for them.
    fn keeps_one(&self, suite: &Suite) -> bool {
        suite.is_story && self.question.args.play.seeds.is_none()
    }

    fn add(&self, standings: &mut Standings, task: Task, run: Run) {
        let Task { suite, cast, seed } = task;
        let of = &self.suites[suite].variants[cast];
        let is_kept = self.keeps_all() || of.is_example(seed);
        standings.add([suite, cast], of, run, is_kept);
    }

    fn thread(
        &self,
        next: &AtomicU64,
        stops: [&AtomicBool; 2],
        logs: bool,
        progress: &Progress,
        sender: Sender<(u64, Task, Done)>,
    ) {
        loop {
            if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                return;
            }
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.task(number) else {
                return;
            };
            let is_example = self.suites[task.suite].variants[task.cast].is_example(task.seed);
            let is_shown = self.question.html.is_some() && is_example;
            let logs = logs && (is_example || !self.keeps_one(&self.suites[task.suite]));
            let done = self.play(task, [is_example, is_shown], stops[0], logs, progress);
            if sender.send((number, task, done)).is_err() {
                return;
            }
        }
    }

    /// Plays a run again, to be shown on the page.
    ///
    /// # Errors
    /// It could not be played.
    pub(super) fn again(
        &self,
        suite: usize,
        cast: usize,
        seed: u64,
        interrupt: &AtomicBool,
        progress: &Progress,
    ) -> Result<Run, Failure> {
        let task = Task { suite, cast, seed };
        let (run, _) = self.play(task, [false, true], interrupt, false, progress)?;
        Ok(run)
    }

    /// `is_example`: it is written step by step; `is_shown`: it is on the page.
    fn play(
        &self,
        task: Task,
        [is_example, is_shown]: [bool; 2],
        interrupt: &AtomicBool,
        logs: bool,
        progress: &Progress,
    ) -> Done {
        let suite = &self.suites[task.suite];
        let cast = &suite.variants[task.cast];
        let seed = task.seed;
        let tells = self.context.verbose > 0 && is_example && !suite.is_stepwise();
        let mut recorder = Recorder {
            interrupt,
            progress: (self.n_tasks == 1).then_some(progress),
            log: (logs || is_shown).then(|| self.log(suite, cast, seed)),
            ledger: self.ledger(suite, cast, seed, [is_example, is_shown]),
            decisions: tells.then(Vec::new),
            step: String::new(),
        };
        let until = match &self.until {
            Some(Until::At(at)) => Some(*at),
            _ => None,
        };
        let played = play(&cast.plan, seed, until, &mut recorder).map_err(|error| {
            let name = &cast.variant.name;
            stuck(
                &format!("{} (variant {name}, seed {seed})", suite.file),
                error,
            )
        })?;
        let Recorder {
            log,
            ledger,
            decisions,
            ..
        } = recorder;
        let max_skew = ledger.as_ref().map_or_else(Vec::new, Ledger::max_skews);
        let (moments, screen, series) = match ledger {
            Some(ledger) => (ledger.moments, ledger.screen, ledger.series),
            None => Default::default(),
        };
        let series = series.map(Series::finish).unwrap_or_default();
        let text = log.map(|log| log.finish(played.ended, played.is_partial));
        let text = text.unwrap_or_default();
        let run = Run {
            seed,
            tape: is_shown.then(|| Tape {
                log: text.clone(),
                series,
            }),
            played,
            moments: moments.unwrap_or_default(),
            max_skew,
            written: screen.map(Screen::finish),
            decisions: decisions.unwrap_or_default(),
        };
        Ok((run, if logs { text } else { String::new() }))
    }

    /// Begins with the command that plays the run again.
    fn log(&self, suite: &Suite, cast: &Cast, seed: u64) -> Log {
        let program = self.context.program;
        let until = self.until.as_ref();
        Log::new(&json!({
            "type": "run",
            "apiVersion": API_VERSION,
            "scenario": suite.name,
            "file": suite.file,
            "variant": cast.variant.name,
            "seed": seed,
            "replay": replay(program, self.question, suite, cast, seed, until),
        }))
    }

    /// What is kept of a run's steps, if an output needs it.
    fn ledger(
        &self,
        suite: &'a Suite,
        cast: &'a Cast,
        seed: u64,
        [is_example, is_shown]: [bool; 2],
    ) -> Option<Ledger<'a>> {
        let question = self.question;
        let is_report = question.output.is_some_and(Format::is_for_programs)
            && (is_example || !self.keeps_one(suite));
        let is_screen = is_example
            && suite.is_stepwise()
            && !matches!(
                question.output,
                Some(Format::Junit | Format::Sarif | Format::Summary)
            );
        let keeps = is_shown || is_report;
        (keeps || is_screen).then(|| {
            let top = match keeps {
                // Programs get all workloads.
                true => usize::MAX,
                false => question.choice.top,
            };
            let choice = Choice {
                top,
                ..question.choice
            };
            let mut ledger = Ledger::new(
                frame(cast, question.by),
                choice,
                is_example,
                cast.plan.objects(),
            );
            ledger.moments = keeps.then(Vec::new);
            ledger.series = is_shown.then(Series::default);
            ledger.screen = is_screen.then(|| Screen::new(self.look(suite, cast, seed)));
            ledger
        })
    }

    fn look(&self, suite: &'a Suite, cast: &'a Cast, seed: u64) -> Look<'a> {
        let (question, context) = (self.question, self.context);
        Look {
            terminal: &context.terminal,
            wide: question.output == Some(Format::Wide),
            pods: context.verbose > 0,
            headers: question.headers,
            explain: Box::new(move |pod: &str, namespace: &str| {
                explain(context.program, question, suite, cast, seed, pod, namespace)
            }),
            in_namespace: question.choice.namespace.is_some(),
        }
    }
}
