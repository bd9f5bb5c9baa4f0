//! What is around the runs: how many are played at once, what is shown meanwhile, and what ends them early.

use std::io::Write;

use strew_model::Span;
use strew_scenario::format::Step;
use strew_scenario::run::StepResult;
use strew_sim::Simulation;
use strew_view::skews::Skews;
use strew_view::view::View;

use crate::failure::Failure;
use crate::ready::Ready;
use crate::shown::Shown;
use crate::suite::{Cast, Staged, Suite};
use crate::work::Work;

/// What is around the runs, seen from many threads.
pub trait Host: Sync {
    /// The number of runs at the same time; 1: no thread is started.
    fn n_threads(&self) -> usize {
        1
    }

    /// True if no run shall begin and those that have begun shall end.
    fn is_stopped(&self) -> bool {
        false
    }

    /// The only run is in this step, after this time.
    fn show(&self, _step: &str, _elapsed: Span) {}

    /// A run has ended.
    fn step(&self) {}

    /// What writes the steps of the run that is shown; `None` if they are not written.
    fn screen<'a>(&'a self, _: &'a Suite, _: &'a Cast, _seed: u64) -> Option<Box<dyn Screen + 'a>> {
        None
    }
}

/// Writes a run step by step, for people.
pub trait Screen {
    /// The run begins.
    fn begin(&mut self, start: &View);

    /// A step is over; the views are of its beginning and its end.
    fn step(
        &mut self,
        step: &Step,
        result: &StepResult,
        views: [&View; 2],
        run: (&Skews, &Simulation),
        shown: &Shown,
    );

    /// What was written.
    fn finish(self: Box<Self>) -> Written;
}

/// A run as text.
pub struct Written {
    /// What a person should know about its start.
    pub notes: Vec<String>,
    /// The steps.
    pub steps: String,
    /// The summary of the first step, and of the last.
    pub summary: String,
    /// `deploy ok`, for each step with expectations.
    pub verdicts: Vec<String>,
    /// The names of the shown workloads, as in `kubectl get -o name`.
    pub names: Vec<String>,
}

/// What is told while texts become a result.
pub trait Teller {
    /// Why the face that calls has to end.
    type Error: From<Failure>;

    /// The texts were read; they may have errors.
    ///
    /// # Errors
    /// Nothing shall be played.
    fn read(&mut self, staged: &Staged) -> Result<(), Self::Error>;

    /// The runs begin.
    ///
    /// # Errors
    /// Nothing shall be played.
    fn begin(&mut self, ready: &Ready, work: &Work<'_>) -> Result<(), Self::Error>;

    /// Takes the log of all runs in their order, as it grows; `None`: there is none.
    fn log(&mut self) -> Option<&mut dyn Write>;
}

/// Tells nothing: the result has it all.
impl Teller for () {
    type Error = Failure;

    fn read(&mut self, _: &Staged) -> Result<(), Failure> {
        Ok(())
    }

    fn begin(&mut self, _: &Ready, _: &Work<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn log(&mut self) -> Option<&mut dyn Write> {
        None
    }
}

/// Plays one run at a time, and shows nothing.
pub struct Alone;

impl Host for Alone {}

/// A host that shows nothing of these runs.
pub struct Muted<'a>(pub &'a dyn Host);

impl Host for Muted<'_> {
    fn n_threads(&self) -> usize {
        self.0.n_threads()
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}
