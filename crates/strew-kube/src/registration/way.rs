//! Asks by the way that the API server takes to the webhook.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use strew_runtime::registration::way::{Unreached, Way};
use strew_wire::workloadspread::registration::TIMEOUT_OF_PODS_S;
use tokio::net::TcpStream;

use super::own_review::{code_of, first_line, post};

/// Asks by a way; `bundle`: the CAs to trust, in PEM.
///
/// # Errors
/// Why no webhook of strew answered.
pub(super) async fn ask(way: &Way, bundle: &str) -> Result<(), Unreached> {
    let within = Duration::from_secs(TIMEOUT_OF_PODS_S.into());
    let asked = tokio::time::timeout(within, exchange(way, bundle)).await;
    let (error, is_certain) = match asked {
        Ok(Ok(line)) => match code_of(&line) {
            Some(401) => return Ok(()),
            code => (
                format!("another server answers: {line:?}"),
                code.is_some_and(|code| (300..500).contains(&code) && code != 429),
            ),
        },
        Ok(Err(error)) => (error.to_string(), is_certain(&error)),
        Err(_) => (format!("no answer within {} s", within.as_secs()), false),
    };
    let (host, port) = (&way.host, way.port);
    Err(Unreached {
        why: format!("https://{host}:{port}{}: {error}", way.path),
        is_certain,
    })
}

async fn exchange(way: &Way, bundle: &str) -> Result<String, Error> {
    let stream = TcpStream::connect((way.host.as_str(), way.port)).await?;
    let answer = post(stream, (&way.host, bundle), &way.path, None, "").await?;
    Ok(first_line(&answer))
}

/// True if no server is there, or one without strew's certificate. A connection that is closed may be the sign of load.
fn is_certain(error: &Error) -> bool {
    let inner = error.get_ref();
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    error.kind() == ErrorKind::ConnectionRefused
        || matches!(
            tls,
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::InvalidMessage(_))
        )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_closed_port_is_certain_and_a_closed_connection_is_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = json!({"url": format!("https://127.0.0.1:{port}/admit/pods")});
        let way = Way::of(&url, "/admit/pods").unwrap();
        let hang_up = async { drop(listener.accept().await) };
        let (asked, ()) = tokio::join!(ask(&way, ""), hang_up);
        let unreached = asked.unwrap_err();
        assert!(
            !unreached.is_certain && way.forbids(&unreached),
            "{unreached:?}"
        );
        drop(listener);
        let unreached = ask(&way, "").await.unwrap_err();
        assert!(unreached.is_certain, "{unreached:?}");
        assert!(unreached.why.contains(&port.to_string()), "{unreached:?}");
    }
}
