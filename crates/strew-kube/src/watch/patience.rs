//! Pauses after failures of a watch, so that a refused watch does not list again and again.

use std::time::Duration;

use futures::stream::unfold;
use futures::{Stream, StreamExt};
use kube::core::Status;
use kube::runtime::watcher;

use super::stream::status;
use crate::waits::Waits;

/// True if the API server refuses the client (401, 403), not the request.
pub(super) fn is_forbidden(status: &Status) -> bool {
    matches!(status.code, 401 | 403)
}

/// Adds a wait after each failure of the stream. Waits grow, and are as long as a busy API server asks for, except
/// after the first failure of a watch.
pub(crate) fn patiently<T>(
    events: impl Stream<Item = Result<T, watcher::Error>> + Send,
) -> impl Stream<Item = Result<T, watcher::Error>> + Send
where
    T: Send,
{
    let begin = (Box::pin(events), Waits::default(), None);
    unfold(begin, async |(mut events, mut waits, wait)| {
        if let Some(wait) = wait {
            tokio::time::sleep(wait).await;
        }
        let event = events.next().await?;
        let failure = event.as_ref().err().map(status);
        let wait = failure.map(|status| {
            let is_forbidden = status.is_some_and(is_forbidden);
            let asked = status.and_then(|status| status.details.as_ref());
            let asked = asked.map_or(0, |details| details.retry_after_seconds);
            let may_hurry = !matches!(&event, Err(watcher::Error::InitialListFailed(_)));
            waits.next_asked(is_forbidden, Duration::from_secs(asked.into()), may_hurry)
        });
        Some((event, (events, waits, wait)))
    })
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use tokio::time::Instant;

    use super::*;

    fn refused(code: u16) -> watcher::Error {
        let status = Status::failure("no", "Forbidden").with_code(code).boxed();
        watcher::Error::InitialListFailed(kube::Error::Api(status))
    }

    /// The number of failed lists in ten minutes, if each fails with this code and kube reports its beginning as a
    /// success.
    async fn failures_in_ten_minutes(code: u16) -> usize {
        let begin = Instant::now();
        let lists = stream::iter(0..).flat_map(move |_| stream::iter([Ok(()), Err(refused(code))]));
        let in_time = patiently(lists).take_while(|_| {
            let is_in_time = begin.elapsed() < Duration::from_secs(600);
            std::future::ready(is_in_time)
        });
        let all: Vec<_> = in_time.collect().await;
        all.iter().filter(|event| event.is_err()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_refused_for_ever_asks_less_and_less() {
        assert_eq!(failures_in_ten_minutes(403).await, 18);
        assert_eq!(failures_in_ten_minutes(500).await, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_is_asked_for_is_kept_from_the_second_failure_on() {
        let busy = || {
            let details = serde_json::json!({"retryAfterSeconds": 3});
            let details = serde_json::from_value(details).unwrap();
            let status = Status::failure("storage is (re)initializing", "TooManyRequests");
            let status = status.with_code(429).with_details(details).boxed();
            watcher::Error::WatchStartFailed(kube::Error::Api(status))
        };
        let begin = Instant::now();
        let failures = stream::iter(0..4).map(|_| Err::<(), _>(busy()));
        let times = patiently(failures).map(|_| begin.elapsed().as_millis());
        let times: Vec<_> = times.collect().await;
        assert_eq!(times, [0, 200, 3200, 6200]);
    }
}
