//! Every variant with every seed, on as many threads as wanted; the results in order.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use serde_json::json;
use strew_model::Span;
use strew_scenario::run::{Played, play};

use super::decision::Decision;
use super::log::Log;
use super::recorder::{Ledger, Recorder};
use super::replay::replay;
use super::suite::{Cast, Suite};
use super::{Question, frame, stuck};
use crate::arguments::Context;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{API_VERSION, MaxSkew, WorkloadReport};
use crate::simulate::Format;

/// One life, played.
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) played: Played,
    /// By step; empty if no report tells it.
    pub(super) workloads: Vec<Vec<WorkloadReport>>,
    pub(super) max_skew: Vec<MaxSkew>,
    /// All that happened in it, for the page of the variant.
    pub(super) log: Option<String>,
    /// Empty if nobody wants to read them.
    pub(super) decisions: Vec<Decision>,
}

/// One life to be played.
#[derive(Clone, Copy)]
struct Task {
    suite: usize,
    cast: usize,
    seed: u64,
}

/// What is to be played.
pub(super) struct Work<'a> {
    suites: &'a [Suite],
    question: &'a Question<'a>,
    program: &'a str,
    until: Option<Span>,
    verbose: bool,
    tasks: Vec<Task>,
}

/// By scenario, variant and seed; `None`: not played to its end.
pub(super) type Runs = Vec<Vec<Vec<Option<Run>>>>;

/// What a thread hands over.
type Done = Result<(Run, String), Failure>;

impl<'a> Work<'a> {
    /// All runs of all scenarios.
    pub(super) fn new(
        suites: &'a [Suite],
        question: &'a Question<'a>,
        context: &'a Context,
        until: Option<Span>,
    ) -> Self {
        let mut tasks = Vec::new();
        for (suite, s) in suites.iter().enumerate() {
            for (cast, c) in s.variants.iter().enumerate() {
                tasks.extend(c.seeds.iter().map(|&seed| Task { suite, cast, seed }));
            }
        }
        Self {
            suites,
            question,
            program: context.program,
            until,
            verbose: context.global.verbose > 0,
            tasks,
        }
    }

    /// How many runs.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Plays them.
    ///
    /// # Errors
    /// The first run, in their order, that could not be played; the log that could not be written.
    pub(super) fn run(
        &self,
        n_threads: usize,
        interrupt: &AtomicBool,
        progress: &Progress,
        mut log: Option<&mut super::LogFile>,
    ) -> Result<Runs, Failure> {
        let logs = log.is_some();
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let (sender, receiver) = channel();
        let mut runs: Runs = self.places();
        let mut errors = BTreeMap::new();
        std::thread::scope(|scope| {
            for _ in 0..n_threads.clamp(1, self.tasks.len().max(1)) {
                let sender = sender.clone();
                scope.spawn(|| self.thread(&next, [interrupt, &failed], logs, sender));
            }
            drop(sender);
            // Texts of runs whose turn has not come.
            let mut waiting = BTreeMap::new();
            let mut written = 0;
            for (number, done) in receiver {
                progress.step();
                let text = match done {
                    Ok((run, text)) => {
                        let task = self.tasks[number];
                        if !run.played.is_partial {
                            let place = &self.suites[task.suite].variants[task.cast].seeds;
                            let place = place.iter().position(|&seed| seed == task.seed);
                            runs[task.suite][task.cast][place.unwrap_or(0)] = Some(run);
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
        match errors.into_values().next() {
            Some(error) => Err(error),
            None => Ok(runs),
        }
    }

    fn places(&self) -> Runs {
        let of_cast = |cast: &Cast| cast.seeds.iter().map(|_| None).collect();
        let of_suite = |suite: &Suite| suite.variants.iter().map(of_cast).collect();
        self.suites.iter().map(of_suite).collect()
    }

    fn thread(
        &self,
        next: &AtomicUsize,
        stops: [&AtomicBool; 2],
        logs: bool,
        sender: Sender<(usize, Done)>,
    ) {
        loop {
            if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                return;
            }
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(number) else {
                return;
            };
            if sender
                .send((number, self.play(*task, stops[0], logs)))
                .is_err()
            {
                return;
            }
        }
    }

    fn play(&self, task: Task, interrupt: &AtomicBool, logs: bool) -> Done {
        let suite = &self.suites[task.suite];
        let cast = &suite.variants[task.cast];
        let seed = task.seed;
        let header = || {
            let again = replay(self.program, self.question, suite, cast, seed, self.until);
            Log::new(&json!({
                "type": "run",
                "apiVersion": API_VERSION,
                "scenario": suite.name,
                "file": suite.file,
                "variant": cast.variant.name,
                "seed": seed,
                "replay": again,
            }))
        };
        let ledger = || Ledger {
            frame: frame(cast),
            steps: Vec::new(),
            skews: None,
        };
        let output = self.question.output;
        // Of many seeds the first is the example.
        let is_example = cast.seeds.first() == Some(&seed);
        let tells = self.verbose && is_example;
        let is_shown = self.question.html.is_some() && is_example;
        let keeps = is_shown || output.is_some_and(Format::is_for_programs);
        let mut recorder = Recorder {
            interrupt,
            log: (logs || is_shown).then(header),
            ledger: keeps.then(ledger),
            decisions: tells.then(Vec::new),
        };
        let played = play(&cast.plan, seed, self.until, &mut recorder).map_err(|error| {
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
        let (workloads, max_skew) = match ledger {
            Some(ledger) => {
                let max_skew = ledger.max_skews();
                (ledger.steps, max_skew)
            }
            None => Default::default(),
        };
        let text = log.map(|log| log.finish(played.ended, played.is_partial));
        let text = text.unwrap_or_default();
        let run = Run {
            seed,
            log: is_shown.then(|| text.clone()),
            played,
            workloads,
            max_skew,
            decisions: decisions.unwrap_or_default(),
        };
        Ok((run, if logs { text } else { String::new() }))
    }
}
