//! Plays cases on all cores; results are in the order of the cases.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use strew_scenario::audit::Question;
use strew_scenario::audit::fix::Edit;
use strew_scenario::audit::play::play_case;
use strew_scenario::audit::values::Case;
use strew_scenario::run::RunError;

use super::Base;
use crate::failure::Failure;

/// Plays these cases of the cluster with these edits.
///
/// # Errors
/// A run could not continue.
pub(super) fn play_all(
    base: &Base<'_>,
    questions: &[Question],
    edits: &[Edit],
) -> Result<Vec<Case>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Case, RunError>)>> = Mutex::new(Vec::new());
    let thread = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(question) = questions.get(number) else {
                return;
            };
            let played = play_case(base.plan, question, edits, base.seed);
            let mut done = done
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            done.push((number, played));
        }
    };
    match base.jobs.min(questions.len()) {
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
            let question = &questions[number];
            let domains = question.domains.join(", ");
            let what = format!("{} of {domains} could not be played", question.event.name());
            Failure::stuck(stuck).context(what)
        })
    });
    each.collect()
}
