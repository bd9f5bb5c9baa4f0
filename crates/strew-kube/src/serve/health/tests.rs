use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::*;

async fn ask(pages: &Router, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer = pages.clone().oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    let nosniff = &answer.headers()["x-content-type-options"];
    assert_eq!(nosniff, "nosniff");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn pages_speak_as_kubernetes_do() {
    let synced = Arc::new(Awaited::handlers_synchronized());
    let stop = CancellationToken::new();
    let ready: [Arc<dyn Check>; 2] = [synced.clone(), Arc::new(Shutdown(stop.clone()))];
    let pages = Health {
        ready: ready.to_vec(),
        ..Health::default()
    }
    .pages();
    let cases = [
        ("/livez", 200, "ok"),
        ("/livez?verbose", 200, "[+]ping ok\nlivez check passed\n"),
        (
            "/readyz",
            500,
            "[-]sched-handler-sync failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n",
        ),
        (
            "/readyz/sched-handler-sync",
            500,
            "internal server error: handlers are not fully synchronized\n",
        ),
        (
            "/readyz?verbose=&exclude=sched-handler-sync",
            200,
            "[+]sched-handler-sync excluded: ok\n[+]shutdown ok\nreadyz check passed\n",
        ),
        (
            "/healthz?exclude=ping&exclude=pong&verbose",
            200,
            "[+]ping excluded: ok\n\
             warn: some health checks cannot be excluded: no matches for \"pong\"\n\
             healthz check passed\n",
        ),
        ("/readyz/shutdown", 200, "ok"),
    ];
    for (path, code, text) in cases {
        assert_eq!(ask(&pages, path).await, (code, text.to_owned()), "{path}");
    }
    synced.set(true);
    assert_eq!(ask(&pages, "/readyz").await, (200, "ok".to_owned()));
    stop.cancel();
    assert_eq!(ask(&pages, "/readyz").await.0, 500);
    assert_eq!(
        ask(&pages, "/readyz/shutdown").await.1,
        "internal server error: process is shutting down\n"
    );
}

/// Probes are answered by another thread than the one that decides: it must not say that all is well when that one hangs.
#[test]
fn a_loop_that_hangs_is_found_out() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let heartbeat = Heartbeat::new("decisions", Span::from_secs(30), || {
        Span::from_secs(NOW.load(Ordering::Relaxed)).0
    });
    let at = |secs: u64| {
        NOW.store(secs, Ordering::Relaxed);
        heartbeat.check()
    };
    assert_eq!(at(30), Ok(()));
    assert_eq!(at(31), Err("no turn of the loop for 31 s".to_owned()));
    heartbeat.beat();
    assert_eq!(at(61), Ok(()));
    assert!(at(62).is_err());
}

#[test]
fn a_leader_that_hangs_is_found_out_after_its_lease_and_twenty_seconds() {
    let now = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now);
    let dog = LeaderWatchdog::new(
        "strew-scheduler".to_owned(),
        Span::from_secs(15),
        Box::new(move || Instant::from_secs(clock.load(Ordering::Relaxed))),
    );
    let at = |secs: u64| {
        now.store(secs, Ordering::Relaxed);
        dog.check()
    };
    assert_eq!(at(1000), Ok(()), "a follower need not renew");
    dog.renewed(Instant::from_secs(1000));
    assert_eq!(at(1035), Ok(()));
    let hangs = "failed election to renew leadership on lease strew-scheduler";
    assert_eq!(at(1036), Err(hangs.to_owned()));
    dog.follows();
    assert_eq!(at(1037), Ok(()));
}
