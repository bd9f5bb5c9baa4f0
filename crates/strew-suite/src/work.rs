//! Plays every variant with every seed on a number of threads; results are in order.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

use serde_json::json;
use strew_scenario::run::{Played, RunError, play};
use strew_view::values::{MaxSkew, MomentValues};

use crate::decision::Decision;
use crate::failure::Failure;
use crate::host::{Host, Muted, Written};
use crate::log::Log;
use crate::options::{Keep, Options, Until};
use crate::recorder::{Ledger, Recorder};
use crate::replay::{explain, replay};
use crate::report::API_VERSION;
use crate::series::Series;
use crate::shown::Choice;
use crate::standing::{Answer, Standings};
use crate::suite::{Cast, Suite};

/// A run with its whole log.
#[derive(Debug, Clone)]
pub struct Tape {
    /// JSON lines as `--events` writes them; the first one names the run. Of a large run only those that are not about
    /// one object, and the first warnings.
    pub log: String,
    /// JSON lines of pods by workload, state and domain: each line changes the state of the lines before.
    pub series: String,
    /// Of a run that is too large to be seen pod by pod: a JSON list of sums, at the start and at the end of each step.
    pub sums: Option<String>,
    /// The files and options of the command that explains a pod of the run.
    pub explain: String,
}

/// A completed run.
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// What came of it.
    pub played: Played,
    /// By step; empty if no report needs it.
    pub moments: Vec<MomentValues>,
    /// The largest skews of the workloads that are told.
    pub max_skew: Vec<MaxSkew>,
    /// The text step by step, if it is shown so.
    pub written: Option<Written>,
    /// The whole log, for the page of the variant.
    pub tape: Option<Tape>,
    /// Empty if decisions are not wanted.
    pub decisions: Vec<Decision>,
}

/// A run to play.
#[derive(Clone, Copy)]
struct Task {
    suite: usize,
    cast: usize,
    seed: u64,
}

/// The work.
pub struct Work<'a> {
    suites: &'a [Suite],
    options: &'a Options,
    host: &'a dyn Host,
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
    pub fn new(
        suites: &'a [Suite],
        options: &'a Options,
        host: &'a dyn Host,
    ) -> Result<Self, Failure> {
        let casts = suites.iter().flat_map(|suite| &suite.variants);
        Ok(Self {
            suites,
            options,
            host,
            until: options.play.until()?,
            n_tasks: casts.map(|cast| cast.seeds.count).sum(),
        })
    }

    /// The number of runs.
    pub fn n_runs(&self) -> u64 {
        self.n_tasks
    }

    /// The number of runs that are kept.
    pub fn n_kept(&self) -> u64 {
        let casts = self.suites.iter().flat_map(|suite| &suite.variants);
        match self.keeps_all() {
            true => self.n_tasks,
            false => casts.count() as u64,
        }
    }

    /// True if each run is kept; otherwise only sums, and one example of each variant.
    fn keeps_all(&self) -> bool {
        let Keep { reports, pages, .. } = self.options.keep;
        reports || pages
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
    pub fn run(
        &self,
        standings: Standings,
        log: Option<&mut dyn Write>,
    ) -> Result<Answer, Failure> {
        let logs = log.is_some();
        let next = AtomicU64::new(0);
        let failed = AtomicBool::new(false);
        let mut collected = Collected {
            work: self,
            standings,
            errors: BTreeMap::new(),
            log,
            shown_log: String::new(),
            waiting: BTreeMap::new(),
            n_written: 0,
            failed: &failed,
        };
        let n_tasks = usize::try_from(self.n_tasks).unwrap_or(usize::MAX);
        match self.host.n_threads().clamp(1, n_tasks.max(1)) {
            1 => {
                while let Some((number, task, done)) = self.next(&next, &failed, logs) {
                    collected.add(number, task, done);
                }
            }
            n_threads => std::thread::scope(|scope| {
                let (sender, receiver) = channel();
                for _ in 0..n_threads {
                    let (sender, next, failed) = (sender.clone(), &next, &failed);
                    scope.spawn(move || {
                        while let Some(done) = self.next(next, failed, logs) {
                            if sender.send(done).is_err() {
                                return;
                            }
                        }
                    });
                }
                drop(sender);
                for (number, task, done) in receiver {
                    collected.add(number, task, done);
                }
            }),
        }
        let Collected {
            mut standings,
            errors,
            log,
            mut shown_log,
            ..
        } = collected;
        if let Some(error) = errors.into_values().next() {
            return Err(error);
        }
        if !self.host.is_stopped() {
            let again = self.show_worst(&mut standings, logs)?;
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
    fn show_worst(&self, standings: &mut Standings, logs: bool) -> Result<Option<String>, Failure> {
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
                let is_shown = self.options.keep.pages;
                let logs = logs && self.keeps_one(suite);
                let (run, text) = self.play(task, [true, is_shown], logs, self.host)?;
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
        let Keep { steps, reports, .. } = self.options.keep;
        steps && (!reports || self.keeps_one(suite))
    }

    /// True if only one run of the suite is kept with the state of the cluster after each step: its seeds are many by
    /// themselves, not because somebody asked for them.
    fn keeps_one(&self, suite: &Suite) -> bool {
        suite.is_story && self.options.play.seeds.is_none()
    }

    fn add(&self, standings: &mut Standings, task: Task, run: Run) {
        let Task { suite, cast, seed } = task;
        let of = &self.suites[suite].variants[cast];
        let is_kept = self.keeps_all() || of.is_example(seed);
        standings.add([suite, cast], of, run, is_kept);
    }

    /// Plays the next run; `None` if there is none, or the runs are to end.
    fn next(&self, next: &AtomicU64, failed: &AtomicBool, logs: bool) -> Option<(u64, Task, Done)> {
        if self.host.is_stopped() || failed.load(Ordering::Relaxed) {
            return None;
        }
        let number = next.fetch_add(1, Ordering::Relaxed);
        let task = self.task(number)?;
        let is_example = self.suites[task.suite].variants[task.cast].is_example(task.seed);
        let is_shown = self.options.keep.pages && is_example;
        let logs = logs && (is_example || !self.keeps_one(&self.suites[task.suite]));
        let done = self.play(task, [is_example, is_shown], logs, self.host);
        Some((number, task, done))
    }

    /// Plays a run again, to be shown on the page.
    ///
    /// # Errors
    /// It could not be played.
    pub fn again(&self, suite: usize, cast: usize, seed: u64) -> Result<Run, Failure> {
        let task = Task { suite, cast, seed };
        let (run, _) = self.play(task, [false, true], false, &Muted(self.host))?;
        Ok(run)
    }

    /// `is_example`: it is written step by step; `is_shown`: it is on the page.
    fn play(
        &self,
        task: Task,
        [is_example, is_shown]: [bool; 2],
        logs: bool,
        host: &dyn Host,
    ) -> Done {
        let suite = &self.suites[task.suite];
        let cast = &suite.variants[task.cast];
        let seed = task.seed;
        let tells = self.options.keep.decisions && is_example && !suite.is_stepwise();
        let mut recorder = Recorder {
            host,
            is_alone: self.n_tasks == 1,
            log: (logs || is_shown).then(|| self.log(suite, cast, seed)),
            ledger: self.ledger(suite, cast, seed, [is_example, is_shown]),
            is_for_page: !logs,
            decisions: tells.then(Vec::new),
            step: String::new(),
        };
        let until = match &self.until {
            Some(Until::At(at)) => Some(*at),
            _ => None,
        };
        let played = play(&cast.plan, seed, until, &mut recorder).map_err(|error| {
            let name = &cast.variant.name;
            let RunError::Stuck(source) = error;
            Failure::Stuck {
                name: format!("{} (variant {name}, seed {seed})", suite.file),
                source,
            }
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
        let (series, sums) = series.map(Series::finish).unwrap_or_default();
        let log = log.map(|log| log.finish(played.ended, played.is_partial));
        let [text, story] = log.unwrap_or_default();
        let run = Run {
            seed,
            tape: is_shown.then(|| Tape {
                log: match sums {
                    Some(_) => story,
                    None => text.clone(),
                },
                series,
                sums,
                explain: self.explain(suite, cast, seed),
            }),
            played,
            moments: moments.unwrap_or_default(),
            max_skew,
            written: screen.map(|screen| screen.finish()),
            decisions: decisions.unwrap_or_default(),
        };
        Ok((run, if logs { text } else { String::new() }))
    }

    /// Begins with the command that plays the run again.
    fn log(&self, suite: &Suite, cast: &Cast, seed: u64) -> Log {
        let program = &self.options.program;
        let until = self.until.as_ref();
        Log::new(&json!({
            "type": "run",
            "apiVersion": API_VERSION,
            "scenario": suite.name,
            "file": suite.file,
            "variant": cast.variant.name,
            "seed": seed,
            "replay": replay(program, self.options, suite, cast, seed, until),
        }))
    }

    /// The files and options of the command that explains a pod of a run.
    fn explain(&self, suite: &Suite, cast: &Cast, seed: u64) -> String {
        let (_, mut rest) = explain(self.options, suite, cast, seed, "", "");
        if suite.is_story && self.options.scheduling.seed.is_none() {
            rest.push_str(&format!(" --seed {seed}"));
        }
        rest
    }

    /// What is kept of a run's steps, if an output needs it.
    fn ledger(
        &self,
        suite: &'a Suite,
        cast: &'a Cast,
        seed: u64,
        [is_example, is_shown]: [bool; 2],
    ) -> Option<Ledger<'a>> {
        let options = self.options;
        let is_report = options.keep.reports && (is_example || !self.keeps_one(suite));
        let is_screen = is_example && suite.is_stepwise() && options.keep.steps;
        let keeps = is_shown || is_report;
        (keeps || is_screen).then(|| {
            let top = match keeps {
                // Programs get all workloads.
                true => usize::MAX,
                false => options.choice.top,
            };
            let choice = Choice {
                top,
                ..options.choice.clone()
            };
            let mut ledger = Ledger::new(
                cast.frame(&options.by),
                choice,
                is_example && is_report,
                cast.plan.objects(),
            );
            ledger.moments = keeps.then(Vec::new);
            ledger.series = is_shown.then(Series::default);
            ledger.screen = match is_screen {
                true => self.host.screen(suite, cast, seed),
                false => None,
            };
            ledger
        })
    }
}

/// The results so far.
struct Collected<'a, 'w> {
    work: &'a Work<'a>,
    standings: Standings,
    errors: BTreeMap<u64, Failure>,
    log: Option<&'w mut dyn Write>,
    /// The log of the one run that is shown.
    shown_log: String,
    /// The texts of runs whose turn has not come.
    waiting: BTreeMap<u64, String>,
    n_written: u64,
    failed: &'a AtomicBool,
}

impl Collected<'_, '_> {
    fn add(&mut self, number: u64, task: Task, done: Done) {
        self.work.host.step();
        let text = match done {
            Ok((run, text)) => {
                if !run.played.is_partial {
                    self.work.add(&mut self.standings, task, run);
                }
                text
            }
            Err(error) => {
                self.fail(number, error);
                String::new()
            }
        };
        if self.log.is_none() {
            return;
        }
        if self.work.keeps_one(&self.work.suites[task.suite]) {
            self.shown_log.push_str(&text);
            return;
        }
        self.waiting.insert(number, text);
        while let Some(text) = self.waiting.remove(&self.n_written) {
            self.n_written += 1;
            let file = self.log.as_deref_mut();
            if let Some(Err(error)) = file.map(|file| file.write_all(text.as_bytes())) {
                self.fail(number, Failure::outside(error));
            }
        }
    }

    fn fail(&mut self, number: u64, error: Failure) {
        self.failed.store(true, Ordering::Relaxed);
        self.errors.insert(number, error);
    }
}
