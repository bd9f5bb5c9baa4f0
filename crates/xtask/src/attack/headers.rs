//! Streams of HTTP/2 whose headers take memory.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tokio::time::{sleep, timeout};

use super::tally::Tally;
use super::{AGAIN_AFTER, HOOK, Way, connect_by_tls};

/// Of one request's headers.
const HEADERS: usize = 15 << 10;

/// A server that takes no further stream in this time has all that it takes.
const ROOM_WITHIN: Duration = Duration::from_secs(1);

/// Opens streams until the server takes no more, holds them, and begins anew when the connection has ended.
pub(super) async fn streams(way: Way, tally: Arc<Tally>) -> Infallible {
    loop {
        if once(way, &tally).await.is_err() {
            tally.count("refused");
        }
        sleep(AGAIN_AFTER).await;
    }
}

async fn once(way: Way, tally: &Tally) -> anyhow::Result<()> {
    let stream = connect_by_tls(way, "h2").await?;
    let mut client = h2::client::Builder::new();
    client.initial_max_send_streams(1_000);
    let (mut requests, connection) = client.handshake::<_, &'static [u8]>(stream).await?;
    let connection = tokio::spawn(connection);
    tally.count("opened");
    let mut held = Vec::new();
    // It ends with the connection, or when no further stream is taken.
    while let Ok(Ok(ready)) = timeout(ROOM_WITHIN, requests.ready()).await {
        requests = ready;
        let text = "h".repeat(HEADERS);
        let request = Request::post(format!("https://localhost{HOOK}"));
        let request = request.header("x-large", text).body(())?;
        match requests.send_request(request, false) {
            Ok(stream) => held.push(stream),
            Err(_) => break,
        }
        tally.count("streams");
        // A server that refuses each at once always has room for the next.
        tokio::task::yield_now().await;
    }
    // What is held is given up with the connection, which the server ends.
    let ended = connection.await;
    tally.count(if ended.is_ok_and(|e| e.is_ok()) {
        "closed"
    } else {
        "broken off"
    });
    drop(held);
    Ok(())
}
