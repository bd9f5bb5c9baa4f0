//! Asks the loop that owns the machine for its counters.

use std::time::Duration;

use strew_scheduler::metrics::Family;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// The time limit for an answer. Prometheus stops a scrape after 10 s anyway.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of queued questions; a further one waits.
const WAITING_MAX: usize = 4;

/// Both ends.
pub fn channel() -> (MetricsSource, MetricsRequests) {
    let (ask, asked) = mpsc::channel(WAITING_MAX);
    (MetricsSource(ask), MetricsRequests(asked))
}

/// Asks the loop; can be cloned.
#[derive(Debug, Clone)]
pub struct MetricsSource(mpsc::Sender<MetricsRequest>);

/// The receiving end, for the loop.
#[derive(Debug)]
pub struct MetricsRequests(mpsc::Receiver<MetricsRequest>);

/// A question, with the channel for its answer.
#[derive(Debug)]
pub struct MetricsRequest(oneshot::Sender<Vec<Family>>);

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The loop is busy, or hangs.
    #[error("the process did not answer within {} s", PATIENCE.as_secs())]
    Busy,
    /// The loop has ended.
    #[error("the process has stopped")]
    Stopped,
}

impl MetricsSource {
    /// The metrics at this moment.
    ///
    /// # Errors
    /// The loop did not answer in time, or has ended.
    pub async fn families(&self) -> Result<Vec<Family>, SourceError> {
        let asked = async {
            let (answer, answered) = oneshot::channel();
            let request = MetricsRequest(answer);
            let sent = self.0.send(request).await;
            sent.map_err(|_| SourceError::Stopped)?;
            answered.await.map_err(|_| SourceError::Stopped)
        };
        let answered = timeout(PATIENCE, asked).await;
        answered.map_err(|_| SourceError::Busy)?
    }
}

impl MetricsRequests {
    /// The next question; `None` when all senders are dropped. Cancel-safe.
    pub async fn next(&mut self) -> Option<MetricsRequest> {
        self.0.recv().await
    }
}

impl MetricsRequest {
    /// Answers the question. The page may have given up, which is no error.
    pub fn answer(self, families: Vec<Family>) {
        drop(self.0.send(families));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_loop_answers() {
        let (source, mut requests) = channel();
        let answers = async {
            let request = requests.next().await;
            request.unwrap().answer(Vec::new());
        };
        let (families, ()) = tokio::join!(source.families(), answers);
        assert_eq!(families, Ok(Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_hangs_or_ended_is_told_apart() {
        let (source, requests) = channel();
        assert_eq!(source.families().await, Err(SourceError::Busy));
        drop(requests);
        assert_eq!(source.families().await, Err(SourceError::Stopped));
    }
}
