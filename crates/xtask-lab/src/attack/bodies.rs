//! Request bodies that cost much to parse.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::tally::Tally;
use super::{HOOK, Way, connect_by_tls};

/// The largest body that the hooks accept.
const BODY: usize = 8 << 20;

/// The pause after a failed connection.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Longer than any answer takes.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A request with as many values as its body can hold.
pub(super) fn values() -> Arc<[u8]> {
    let n = (BODY - "[[0]]".len()) / "[0],".len();
    let body = format!("[{}[0]]", "[0],".repeat(n));
    let length = body.len();
    format!("{}Content-Length: {length}\r\n\r\n{body}", head())
        .into_bytes()
        .into()
}

/// A chunked request that sends one byte of its body.
pub(super) fn stalled() -> Arc<[u8]> {
    format!("{}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n", head())
        .into_bytes()
        .into()
}

fn head() -> String {
    format!(
        "POST {HOOK}?timeout=10s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    )
}

/// Sends the request again and again, each on its own connection, as soon as the one before is answered.
pub(super) async fn post(way: Way, request: Arc<[u8]>, tally: Arc<Tally>) -> Infallible {
    loop {
        match timeout(ANSWER_WITHIN, once(way, &request)).await {
            Ok(Ok(status)) => tally.count(status),
            Ok(Err(_)) => {
                tally.count("refused");
                sleep(AGAIN_AFTER).await;
            }
            Err(_) => tally.count("not answered"),
        }
    }
}

async fn once(way: Way, request: &[u8]) -> anyhow::Result<String> {
    let mut stream = connect_by_tls(way, "http/1.1").await?;
    let mut begin = [0; 12];
    // The answer may come before the whole request is sent; the server does not read the rest then.
    let (mut read, mut write) = tokio::io::split(&mut stream);
    let send = async {
        if write.write_all(request).await.is_ok() {
            drop(write.flush().await);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = send => {}
        read = read.read_exact(&mut begin) => drop(read?),
    }
    // "HTTP/1.1 413"
    Ok(String::from_utf8_lossy(&begin[9..]).into_owned())
}

#[test]
fn a_body_of_values_is_as_large_as_the_hooks_take() {
    let request = values();
    let text = std::str::from_utf8(&request).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    assert!(body.len() <= BODY && body.len() > BODY - 8);
    assert!(body.starts_with("[[0],[0],") && body.ends_with("[0],[0]]"));
}
