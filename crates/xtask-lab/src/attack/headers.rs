//! HTTP/2 streams whose headers take memory.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::tally::Tally;
use super::{AGAIN_AFTER, HOOK, Way, connect_by_tls};

/// The size of one request's headers.
const HEADERS: usize = 15 << 10;

/// Streams of a connection that are in flight at most. Each holds its headers in this process too: 20 connections hold
/// 150 MiB at most.
const STREAMS_MAX: usize = 500;

/// A server that accepts no further stream in this time has reached its limit.
const ROOM_WITHIN: Duration = Duration::from_secs(1);

/// Opens streams until the server accepts no more, holds them, and begins anew when the connection has ended.
pub(super) async fn streams(way: Way, tally: Arc<Tally>) -> Infallible {
    loop {
        if once(way, &tally).await.is_err() {
            tally.count("refused");
        }
        sleep(AGAIN_AFTER).await;
    }
}

async fn once(way: Way, tally: &Tally) -> anyhow::Result<()> {
    fill(connect_by_tls(way, "h2").await?, tally).await
}

/// Fills a connection with streams; returns when the connection has ended.
async fn fill<T>(stream: T, tally: &Tally) -> anyhow::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut client = h2::client::Builder::new();
    client.initial_max_send_streams(STREAMS_MAX);
    let (mut requests, connection) = client.handshake::<_, &'static [u8]>(stream).await?;
    let connection = tokio::spawn(connection);
    tally.count("opened");
    let mut held = FuturesUnordered::new();
    // The loop ends with the connection, or when the server accepts no further stream.
    loop {
        if held.len() == STREAMS_MAX {
            // A server that refuses each stream at once always has room for the next.
            match timeout(ROOM_WITHIN, held.next()).await {
                Ok(_) => continue,
                Err(_) => break,
            }
        }
        let Ok(Ok(ready)) = timeout(ROOM_WITHIN, requests.ready()).await else {
            break;
        };
        requests = ready;
        let text = "h".repeat(HEADERS);
        let request = Request::post(format!("https://localhost{HOOK}"));
        let request = request.header("x-large", text).body(())?;
        let Ok((answer, body)) = requests.send_request(request, false) else {
            break;
        };
        held.push(async move {
            let answered = answer.await.is_ok();
            // The request ends only when its body is dropped.
            drop(body);
            answered
        });
        tally.count("streams");
    }
    // The server ends the connection; the held streams end with it.
    let ended = connection.await;
    tally.count(if ended.is_ok_and(|e| e.is_ok()) {
        "closed"
    } else {
        "broken off"
    });
    drop(held);
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// A server that takes any number of streams; it refuses so many of them, and answers none of the others. It ends the
    /// connection when no further stream comes. Returns how many it got.
    async fn streams_taken(n_refused: usize) -> usize {
        let (near, far) = duplex(1 << 16);
        let server = tokio::spawn(async move {
            let mut server = h2::server::Builder::new();
            server.max_concurrent_streams(u32::MAX);
            server.max_header_list_size(1 << 20);
            let mut server = server.handshake::<_, &'static [u8]>(far).await.unwrap();
            let (mut held, mut n_taken) = (Vec::new(), 0);
            while let Ok(Some(stream)) = timeout(2 * ROOM_WITHIN, server.accept()).await {
                let (request, mut answer) = stream.unwrap();
                n_taken += 1;
                if n_taken <= n_refused {
                    answer.send_reset(h2::Reason::REFUSED_STREAM);
                } else {
                    held.push((request, answer));
                }
            }
            n_taken
        });
        let tally = Tally::default();
        fill(near, &tally).await.unwrap();
        let n_taken = server.await.unwrap();
        let told = tally.to_string();
        assert!(told.contains(&format!(r#""streams":{n_taken}"#)), "{told}");
        n_taken
    }

    #[tokio::test]
    async fn an_attack_has_a_bound_of_its_own() {
        let (few, many) = tokio::join!(streams_taken(0), streams_taken(2_000));
        assert_eq!((few, many), (STREAMS_MAX, 2_000 + STREAMS_MAX));
    }
}
