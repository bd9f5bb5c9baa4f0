//! The whole as a process uses it: a scheduler, its pages, TLS, and an API server that reviews users.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strew_model::{Instant, Interner};
use strew_scheduler::Profile;
use strew_scheduler::machine::{Input, Limits as MachineLimits, Scheduler};

use super::access::clients::tests::Authority;
use super::access::tests::api_server;
use super::access::{Clients, Paths};
use super::health::Awaited;
use super::pages::{guarded, json_page};
use super::server::tests::{Running, start_with};
use super::{Access, Check, Health, Limits};
use crate::metrics::{Metrics, MetricsRequests, channel};

fn clock() -> u64 {
    static NANOS: AtomicU64 = AtomicU64::new(0);
    NANOS.fetch_add(1_000, Ordering::Relaxed)
}

/// A loop with a machine in it, which is no other thread's.
async fn run(mut requests: MetricsRequests) {
    let now = Instant::from_secs(1);
    let profiles = vec![Profile::default()];
    let limits = MachineLimits::production();
    let mut scheduler = Scheduler::new(Interner::new(), profiles, limits, now);
    scheduler.measure_with(clock);
    scheduler.handle(now, Input::Tick);
    while let Some(request) = requests.next().await {
        request.answer(scheduler.metrics());
    }
}

struct Process {
    server: Running,
    synced: Arc<Awaited>,
    requests: MetricsRequests,
    authority: Authority,
}

async fn process() -> Process {
    let (source, requests) = channel();
    let synced = Arc::new(Awaited::handlers_synchronized());
    let check: Arc<dyn Check> = Arc::clone(&synced) as _;
    let health = Health {
        ready: vec![check],
        ..Health::default()
    };
    let authority = Authority::new("kubernetes");
    let clients = Arc::new(Clients::of_authority(&authority.pem).unwrap());
    let verifier = clients.verifier();
    let access = Access::new(api_server(Arc::default()), Paths::default(), Some(clients));
    let pages = [
        health.pages(),
        Metrics::new(source).pages(),
        json_page("/configz", "{}".into()),
    ];
    let server = start_with(guarded(pages, access), Some(verifier), Limits::default()).await;
    Process {
        server,
        synced,
        requests,
        authority,
    }
}

async fn get(server: &Running, path: &str, token: &str) -> String {
    let token = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{token}\r\n");
    server.ask(&request).await
}

#[tokio::test]
async fn a_process_tells_each_what_it_may_see() {
    let Process {
        server,
        synced,
        requests,
        ..
    } = process().await;
    let told = async {
        let cases = [
            ("/livez", "", "200 OK", "ok"),
            ("/readyz", "", "500 ", "[-]sched-handler-sync failed"),
            ("/metrics", "", "403 ", "system:anonymous"),
            ("/metrics", "bad", "401 ", "Unauthorized"),
            (
                "/metrics",
                "good",
                "200 OK",
                "scheduler_pending_pods{queue=\"active\"} 0.0",
            ),
            ("/configz", "good", "403 ", "prometheus"),
            ("/configz", "root", "200 OK", "{}"),
            ("/nothing", "", "403 ", "/nothing"),
            ("/nothing", "root", "404 ", "404 page not found"),
        ];
        for (path, token, code, part) in cases {
            let answer = get(&server, path, token).await;
            let expected = format!("HTTP/1.1 {code}");
            assert!(answer.starts_with(&expected), "{path} {token}: {answer}");
            assert!(answer.contains(part), "{path} {token}: {answer}");
        }
        synced.set(true);
        let answer = get(&server, "/readyz?verbose", "").await;
        assert!(answer.ends_with("readyz check passed\n"), "{answer}");
    };
    tokio::select! {
        () = told => {}
        () = run(requests) => unreachable!("somebody can still ask"),
    }
}

/// Every line of the plain text is a comment, or a name with labels and a number; every name has a type.
#[tokio::test]
async fn the_text_parses() {
    let Process {
        server, requests, ..
    } = process().await;
    let text = tokio::select! {
        text = get(&server, "/metrics", "good") => text,
        () = run(requests) => unreachable!("somebody can still ask"),
    };
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{head}"
    );
    let mut of_type = ("", "");
    let mut samples = 0;
    for line in body.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            of_type = typed.split_once(' ').unwrap();
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (series, number) = line.rsplit_once(' ').unwrap();
        assert!(number.parse::<f64>().is_ok(), "{line}");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert!(labels.ends_with('}'), "{line}");
        let suffixes: &[&str] = match of_type.1 {
            "histogram" => &["_sum", "_count", "_bucket"],
            _ => &[""],
        };
        let fits = |suffix: &&str| name == format!("{}{suffix}", of_type.0);
        assert!(suffixes.iter().any(fits), "{line} after {of_type:?}");
        samples += 1;
    }
    assert!(samples > 20, "{body}");
}

/// A certificate of the cluster's CA identifies a user. Another certificate identifies none, but does no harm beside a
/// valid token.
#[tokio::test]
async fn a_client_is_known_by_its_certificate() {
    use rcgen::ExtendedKeyUsagePurpose::ClientAuth;
    let process = process().await;
    let stranger = Authority::new("kubernetes");
    let request = |token: &str| {
        format!("GET /configz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{token}\r\n")
    };
    let token = "Authorization: Bearer root\r\n";
    let cases = [
        (&process.authority, "system:masters", "", "200 OK"),
        (&process.authority, "nobodies", "", "403 Forbidden"),
        (&stranger, "system:masters", "", "401 Unauthorized"),
        (&stranger, "system:masters", token, "200 OK"),
    ];
    for (authority, group, token, code) in cases {
        let shown = authority.sign("kubernetes-admin", group, ClientAuth);
        let answer = process.server.ask_as(Some(shown), &request(token)).await;
        let expected = format!("HTTP/1.1 {code}");
        assert!(answer.starts_with(&expected), "{group}: {answer}");
    }
}
