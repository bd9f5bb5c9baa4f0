//! Panics of tasks: each is logged and counted, and the process goes on without the task's result, or ends.
//!
//! The async runtime catches a task's panic, so without this module neither logs nor pages would show it. [`install`]
//! reports panics of all threads and tasks; `caught`, `kept` and `vital` define what follows for the task.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use strew_scheduler::metrics::{Family, Value};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::metrics::catalogue;
use crate::waits::Waits;

/// Panics since the start of the process.
static N_PANICS: AtomicU64 = AtomicU64::new(0);

/// From now on every panic is counted and logged; if there is no log, the previous hook prints it.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            N_PANICS.fetch_add(1, Ordering::Relaxed);
            match tracing::enabled!(tracing::Level::ERROR) {
                true => log(info),
                false => before(info),
            }
        }));
    });
}

fn log(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let location = info.location().map(ToString::to_string);
    tracing::error!(
        thread = thread.name().unwrap_or_default(),
        location = location.unwrap_or_default(),
        error = words(info.payload()),
        "a task panicked"
    );
}

/// The metric.
pub fn families() -> Vec<Family> {
    let n = N_PANICS.load(Ordering::Relaxed);
    vec![Family::of(&catalogue::PANICS, Value::Count(n))]
}

/// The message of a panic.
fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no text")
}

/// Waits for a future.
///
/// # Errors
/// The message, if the future panics.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    // The future's state is dropped with it; it shares only channels and counters.
    let ended = AssertUnwindSafe(future).catch_unwind().await;
    ended.map_err(|payload| format!("the task panicked: {}", words(&*payload)))
}

/// A task that is restarted after a panic, with growing waits; it ends when its future returns.
pub(crate) fn kept<F>(mut begin: impl FnMut() -> F + Send + 'static) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        let mut waits = Waits::default();
        while caught(begin()).await.is_err() {
            tokio::time::sleep(waits.next(true)).await;
        }
    })
}

/// A task that the process needs: if it panics, the process ends and is restarted.
pub(crate) fn vital(
    end: CancellationToken,
    future: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        if caught(future).await.is_err() {
            end.cancel();
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_kept_begins_again_after_each_panic() {
        let n_begun = Arc::new(AtomicU64::new(0));
        let begun = Arc::clone(&n_begun);
        let task = kept(move || {
            let n = begun.fetch_add(1, Ordering::Relaxed);
            async move { assert!(n >= 3, "not yet") }
        });
        task.await.expect("the task itself does not panic");
        assert_eq!(n_begun.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn the_process_ends_without_a_vital_task() {
        let end = CancellationToken::new();
        vital(end.clone(), async { panic!("gone") }).await.unwrap();
        assert!(end.is_cancelled());
        let end = CancellationToken::new();
        vital(end.clone(), async {}).await.unwrap();
        assert!(!end.is_cancelled());
    }
}
