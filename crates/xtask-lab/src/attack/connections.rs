//! Idle connections.

use std::convert::Infallible;
use std::sync::Arc;

use tokio::time::sleep;

use super::tally::Tally;
use super::{AGAIN_AFTER, Way, connect, connect_by_tls, until_closed};

/// Holds a socket, and opens it again after the server has closed it.
pub(super) async fn socket(way: Way, tally: Arc<Tally>) -> Infallible {
    loop {
        match connect(way).await {
            Ok(mut stream) => {
                tally.count("opened");
                until_closed(&mut stream).await;
                tally.count("closed");
            }
            Err(_) => tally.count("refused"),
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// Holds a connection after its TLS handshake, and opens it again after the server has closed it.
pub(super) async fn session(way: Way, tally: Arc<Tally>) -> Infallible {
    loop {
        match connect_by_tls(way, "http/1.1").await {
            Ok(mut stream) => {
                tally.count("opened");
                until_closed(&mut stream).await;
                tally.count("closed");
            }
            Err(_) => tally.count("refused"),
        }
        sleep(AGAIN_AFTER).await;
    }
}
