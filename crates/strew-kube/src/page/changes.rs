//! Server-sent events: the whole data first, then changes.
//!
//! Each page has its own position. A page that reads slowly gets several changes as one, and no queue grows; a page that
//! reads nothing loses its connection. A page that connects again gets everything again.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::stream;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::sync::watch;
use tokio::time::timeout;

use super::rows::Rows;
use crate::serve::GoesOn;

/// How often a page that nothing changes for is told that the connection is alive.
const BEAT: Duration = Duration::from_secs(10);

/// How soon a browser connects again by itself.
const RETRY: &str = "retry: 1000\n";

/// The events of these rows. They end with their source.
pub(super) fn answer(rows: watch::Receiver<Arc<Rows>>) -> Response {
    let events = stream::unfold((rows, None), async |(mut rows, sent)| {
        let (event, sent) = next(&mut rows, sent).await?;
        Some((Ok::<_, std::convert::Infallible>(event), (rows, Some(sent))))
    });
    let mut answer = Response::new(Body::from_stream(events));
    let of_type = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(CONTENT_TYPE, of_type);
    answer.extensions_mut().insert(GoesOn);
    answer
}

/// The next event of a page that has these rows; `None` when there will be none.
async fn next(
    rows: &mut watch::Receiver<Arc<Rows>>,
    sent: Option<Arc<Rows>>,
) -> Option<(String, Arc<Rows>)> {
    let Some(sent) = sent else {
        let now = Arc::clone(&rows.borrow_and_update());
        return Some((format!("{RETRY}{}", event("whole", &now.whole())), now));
    };
    loop {
        match timeout(BEAT, rows.changed()).await {
            Err(_) => return Some((event("beat", "{}"), sent)),
            Ok(Err(_)) => return None,
            Ok(Ok(())) => {}
        }
        let now = Arc::clone(&rows.borrow_and_update());
        if let Some(change) = now.since(&sent) {
            return Some((event("change", &change), now));
        }
    }
}

/// JSON has no line break outside of its texts, and none inside.
fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
