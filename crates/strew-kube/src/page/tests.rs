use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::serve::Server;

/// A served page: where, how its rows change, and its end.
struct Served {
    address: SocketAddr,
    rows: watch::Sender<Arc<Rows>>,
    stop: CancellationToken,
    ended: tokio::task::JoinHandle<()>,
}

fn rows(replicas: u32) -> Arc<Rows> {
    let mut rows = Rows::default();
    rows.set("workload web", &json!({"replicas": replicas}));
    Arc::new(rows)
}

async fn serve(limits: Limits) -> Served {
    serve_to(limits, None).await
}

async fn serve_to(limits: Limits, allowed_origin: Option<HeaderValue>) -> Served {
    let server = Server::bind_loopback(0, limits).await.unwrap();
    let (rows, data) = watch::channel(rows(1));
    let page = Page {
        document: Bytes::from_static(b"<!doctype html>hello"),
        script: Bytes::from_static(b"run()"),
        style: Bytes::from_static(b"body{}"),
        data: Data::Live(data),
        allowed_origin,
    };
    let address = server.address();
    let stop = CancellationToken::new();
    let ended = tokio::spawn(server.run(page.routes(), stop.clone()));
    Served {
        address,
        rows,
        stop,
        ended,
    }
}

impl Served {
    /// The whole answer to a request with these headers.
    async fn ask(&self, line: &str, headers: &[(&str, &str)]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let each = headers.iter();
        let headers: String = each
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let request = format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer).await);
        answer
    }

    async fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path}"), &[("Host", "localhost")])
            .await
    }

    async fn events(&self) -> Events {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = "GET /events HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        Events(BufReader::new(stream))
    }
}

/// The lines of a stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event of this name; `None` if the stream ends before.
    async fn next(&mut self, name: &str) -> Option<Value> {
        let mut current = String::new();
        loop {
            let mut line = String::new();
            let read = timeout(Duration::from_secs(20), self.0.read_line(&mut line)).await;
            if read.expect("an event or the end").ok()? == 0 {
                return None;
            }
            if let Some(event) = line.trim_end().strip_prefix("event: ") {
                event.clone_into(&mut current);
            } else if let Some(data) = line.trim_end().strip_prefix("data: ")
                && current == name
            {
                return serde_json::from_str(data).ok();
            }
        }
    }
}

#[tokio::test]
async fn the_parts_of_a_page_have_their_types_and_a_policy_without_inline_script() {
    let page = serve(limits()).await;
    for (path, of_type, body) in [
        ("/", HTML, "<!doctype html>hello"),
        ("/script.js", SCRIPT, "run()"),
        ("/style.css", STYLE, "body{}"),
        (
            "/data.json",
            JSON,
            r#"{"rows":{"workload web":{"replicas":1}}}"#,
        ),
    ] {
        let answer = page.get(path).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(
            answer.contains(&format!("content-type: {of_type}\r\n")),
            "{answer}"
        );
        assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
        assert!(answer.contains("script-src 'self';"), "{answer}");
        assert!(answer.contains("frame-ancestors 'none'"), "{answer}");
        assert!(!answer.contains("unsafe-inline"), "{answer}");
        assert!(
            answer.contains("cross-origin-resource-policy: same-origin"),
            "{answer}"
        );
        assert!(!answer.contains("access-control-"), "{answer}");
    }
    let head = page.ask("HEAD /data.json", &[("Host", "localhost")]).await;
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    assert!(page.get("/other").await.starts_with("HTTP/1.1 404 "));
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = page
            .ask(&format!("{method} /"), &[("Host", "localhost")])
            .await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    }
}

#[tokio::test]
async fn a_request_of_another_site_is_refused() {
    let page = serve(limits()).await;
    let own = ("Host", "127.0.0.1:8080");
    let site = |site| ("Sec-Fetch-Site", site);
    let visit = [
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    let good: [&[(&str, &str)]; 6] = [
        &[own],
        &[("Host", "localhost")],
        &[("Host", "[::1]:1")],
        &[own, ("Origin", "http://127.0.0.1:8080")],
        &[own, site("same-origin")],
        &[own, site("cross-site"), visit[0], visit[1]],
    ];
    for headers in good {
        let answer = page.ask("GET /data.json", headers).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{headers:?} {answer}");
    }
    let bad: [&[(&str, &str)]; 9] = [
        // The name of a site that was made to point here.
        &[("Host", "evil.example")],
        &[("Host", "evil.example:8080")],
        &[("Host", "localhost.evil.example")],
        &[own, ("Host", "localhost")],
        &[own, ("Origin", "http://evil.example")],
        &[own, ("Origin", "http://localhost:8080")],
        &[own, ("Origin", "null")],
        &[own, site("cross-site")],
        &[
            own,
            site("same-site"),
            visit[0],
            ("Sec-Fetch-Dest", "iframe"),
        ],
    ];
    for headers in bad {
        for path in ["/", "/data.json", "/events"] {
            let answer = page.ask(&format!("GET {path}"), headers).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{headers:?} {answer}");
            assert!(!answer.contains("replicas"), "{answer}");
        }
    }
}

#[tokio::test]
async fn changes_arrive_and_a_page_that_connects_again_gets_all() {
    let page = serve(limits()).await;
    let mut events = page.events().await;
    let whole = events.next("whole").await;
    assert_eq!(whole.unwrap()["rows"]["workload web"]["replicas"], 1);
    page.rows.send_replace(rows(2));
    let change = events.next("change").await;
    assert_eq!(change.unwrap()["set"]["workload web"]["replicas"], 2);
    // Equal rows are no change: the next event has the third state.
    page.rows.send_replace(rows(2));
    page.rows.send_replace(rows(3));
    let change = events.next("change").await;
    assert_eq!(change.unwrap()["set"]["workload web"]["replicas"], 3);
    drop(events);
    let mut again = page.events().await;
    let whole = again.next("whole").await;
    assert_eq!(whole.unwrap()["rows"]["workload web"]["replicas"], 3);
    // The end of the server ends the stream at once.
    page.stop.cancel();
    assert_eq!(again.next("change").await, None);
    let ended = timeout(Duration::from_secs(20), page.ended).await;
    assert!(ended.is_ok(), "open pages hold up the end");
}

#[tokio::test]
async fn a_page_that_reads_nothing_is_let_go_and_others_are_told_all() {
    let limits = Limits {
        write: Duration::from_secs(2),
        ..limits()
    };
    let page = serve(limits).await;
    let mut hears = page.events().await;
    assert!(hears.next("whole").await.is_some());
    let n_before = page.rows.receiver_count();
    let mut deaf = page.events().await;
    assert!(deaf.next("whole").await.is_some());
    // More and more, until no socket's buffer holds it.
    let long = "x".repeat(1 << 20);
    let mut last = 0;
    let begun = tokio::time::Instant::now();
    while page.rows.receiver_count() > n_before {
        last += 1;
        let mut rows = Rows::default();
        rows.set("long", &json!([last, long]));
        page.rows.send_replace(Arc::new(rows));
        let change = hears.next("change").await.unwrap();
        assert_eq!(change["set"]["long"][0], last);
        let so_far = begun.elapsed();
        assert!(
            so_far < Duration::from_secs(60),
            "a page that reads nothing is kept"
        );
    }
    let mut heard = 0;
    while let Some(change) = deaf.next("change").await {
        heard = change["set"]["long"][0].as_u64().unwrap();
    }
    assert!(heard < last, "it was told all: {heard} of {last}");
}

#[tokio::test]
async fn pages_are_bounded_and_open_ones_are_not_displaced() {
    let limits = Limits {
        connections_max: 16,
        requests_max: 16,
        first_request: Duration::from_secs(2),
        ..limits()
    };
    let page = serve(limits).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut events = page.events().await;
        assert!(events.next("whole").await.is_some());
        open.push(events);
    }
    // A fifth has no place.
    let mut fifth = page.events().await;
    assert_eq!(fifth.next("whole").await, None);
    page.rows.send_replace(rows(7));
    for events in &mut open {
        let change = events.next("change").await;
        assert_eq!(change.unwrap()["set"]["workload web"]["replicas"], 7);
    }
    open.pop();
    let mut found = None;
    while found.is_none() {
        found = page.events().await.next("whole").await;
    }
}

#[tokio::test]
async fn an_allowed_origin_reads_the_data_and_no_other_one_does() {
    const HEADLAMP: &str = "http://localhost:4466";
    let page = serve_to(limits(), Some(HeaderValue::from_static(HEADLAMP))).await;
    let ask = async |origin: &str, host: &str| {
        let headers = [
            ("Host", host),
            ("Origin", origin),
            ("Sec-Fetch-Site", "cross-site"),
        ];
        page.ask("GET /data.json", &headers).await
    };
    let allowed = ask(HEADLAMP, "localhost").await;
    assert!(allowed.starts_with("HTTP/1.1 200 "), "{allowed}");
    let header = format!("access-control-allow-origin: {HEADLAMP}\r\n");
    assert!(allowed.contains(&header), "{allowed}");
    assert!(allowed.contains("vary: origin\r\n"), "{allowed}");
    for (origin, host) in [
        ("http://localhost:4467", "localhost"),
        ("http://localhost:44660", "localhost"),
        ("null", "localhost"),
        // A name that another site made point to this machine.
        (HEADLAMP, "evil.example"),
    ] {
        let refused = ask(origin, host).await;
        assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
        assert!(!refused.contains("access-control-"), "{refused}");
    }
    let own = page.get("/data.json").await;
    assert!(!own.contains("access-control-"), "{own}");
}
