//! Plays cases on all cores; results are in the order of the cases.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use strew_scenario::audit::Question;
use strew_scenario::audit::fix::Edit;
use strew_scenario::audit::play::play_case;
use strew_scenario::audit::seeds::worst;
use strew_scenario::audit::values::Case;
use strew_scenario::run::RunError;

use super::Base;
use crate::failure::Failure;

/// A case, played once.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) question: &'a Question,
    pub(super) seed: u64,
}

/// Plays these cases of the cluster with these edits and all seeds.
///
/// # Errors
/// A run could not continue.
pub(super) fn play_all<'q>(
    base: &Base<'_>,
    questions: impl Iterator<Item = &'q Question> + Clone,
    edits: &[Edit],
) -> Result<Vec<Case>, Failure> {
    let runs = questions.clone();
    let runs = runs.flat_map(|question| base.seeds.iter().map(move |seed| Run { question, seed }));
    let runs: Vec<Run<'_>> = runs.collect();
    let mut played = play_runs(base, &runs, edits)?.into_iter();
    let n_seeds = base.seeds.iter().count();
    let of_question = |_| worst(played.by_ref().take(n_seeds).collect());
    Ok(questions.filter_map(of_question).collect())
}

/// Plays these runs with these edits.
///
/// # Errors
/// A run could not continue.
pub(super) fn play_runs(
    base: &Base<'_>,
    runs: &[Run<'_>],
    edits: &[Edit],
) -> Result<Vec<Case>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Case, RunError>)>> = Mutex::new(Vec::new());
    let thread = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(number) else {
                return;
            };
            let played = play_case(base.plan, run.question, edits, run.seed);
            let mut done = done
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            done.push((number, played));
        }
    };
    match base.jobs.min(runs.len()) {
        // Where there are no threads, this one plays all.
        1 => thread(),
        n_threads => std::thread::scope(|scope| {
            for _ in 0..n_threads {
                scope.spawn(thread);
            }
        }),
    }
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    let each = done.into_iter().map(|(number, played)| {
        played.map_err(|RunError::Stuck(stuck)| {
            let Run { question, seed } = runs[number];
            let domains = question.domains.join(", ");
            let event = question.event.name();
            let what = format!("{event} of {domains} could not be played with seed {seed}");
            Failure::stuck(stuck).context(what)
        })
    });
    each.collect()
}
