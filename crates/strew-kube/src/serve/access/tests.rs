use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::routing::get;
use http_body_util::BodyExt;
use kube::client::Body as KubeBody;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

/// Answers reviews as a cluster would that knows one user, and counts them. `None`: it refuses connections.
pub(crate) fn api_server(asked: Arc<AtomicUsize>) -> kube::Client {
    let (service, mut handle) =
        tower_test::mock::pair::<http::Request<KubeBody>, http::Response<KubeBody>>();
    tokio::spawn(async move {
        while let Some((request, send)) = handle.next_request().await {
            asked.fetch_add(1, Ordering::Relaxed);
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            match answer(&path, review) {
                Some((code, body)) => {
                    let answer = http::Response::builder().status(code);
                    let body = KubeBody::from(serde_json::to_vec(&body).unwrap());
                    send.send_response(answer.body(body).unwrap());
                }
                None => send.send_error("connection refused"),
            }
        }
    });
    kube::Client::new(service, "default")
}

fn answer(path: &str, mut review: Value) -> Option<(u16, Value)> {
    let status = match path {
        "/apis/authentication.k8s.io/v1/tokenreviews" => match review["spec"]["token"].as_str()? {
            "good" => json!({"authenticated": true, "user": {
                "username": "prometheus", "uid": "7", "groups": ["monitors"],
                "extra": {"scopes": ["metrics"]},
            }}),
            "root" => json!({"authenticated": true, "user": {
                "username": "admin", "groups": ["system:masters"],
            }}),
            "unreachable" => return None,
            "not-allowed" => {
                return Some((
                    403,
                    json!({
                        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "message": "tokenreviews is forbidden", "reason": "Forbidden", "code": 403,
                    }),
                ));
            }
            _ => json!({"authenticated": false, "error": "unknown"}),
        },
        "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
            let spec = &review["spec"];
            let asked = &spec["nonResourceAttributes"];
            if asked["path"] == "/broken" {
                return None;
            }
            let allowed = json!({"user": "prometheus", "uid": "7", "groups": ["monitors"],
                "extra": {"scopes": ["metrics"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
            match *spec == allowed {
                true => json!({"allowed": true}),
                false if asked["path"] == "/<b>" => {
                    json!({"allowed": false, "reason": "no rule"})
                }
                false => json!({"allowed": false}),
            }
        }
        _ => return Some((404, json!({}))),
    };
    review["status"] = status;
    Some((201, review))
}

fn pages(client: kube::Client) -> Router {
    let page = async |headers: HeaderMap| format!("seen {}", headers.contains_key(AUTHORIZATION));
    let pages = Router::new()
        .route("/metrics", get(page))
        .route("/livez", get(page))
        .fallback(page);
    Access::new(client, Paths::default(), None).guard(pages)
}

async fn ask(pages: &Router, method: &str, path: &str, token: Option<&str>) -> (u16, String) {
    ask_from(1, pages, method, path, token).await
}

async fn ask_from(
    peer: u8,
    pages: &Router,
    method: &str,
    path: &str,
    token: Option<&str>,
) -> (u16, String) {
    let mut request = http::Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token);
    }
    let mut request = request.body(Body::empty()).unwrap();
    let address = Ipv4Addr::new(10, 0, 0, peer).into();
    request.extensions_mut().insert(Peer::at(address));
    let answer = pages.clone().oneshot(request);
    let answer = answer.await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn who_asks_and_what_for_decides() {
    let pages = pages(api_server(Arc::default()));
    let anonymous = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \"system:anonymous\" cannot get path \"/metrics\"","reason":"Forbidden","details":{},"code":403}"#;
    let unauthorized = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
    let cases = [
        ("GET", "/metrics", Some("Bearer good"), 200, "seen false"),
        (
            "GET",
            "/metrics",
            Some("bearer good more"),
            200,
            "seen false",
        ),
        (
            "POST",
            "/metrics",
            Some("Bearer good"),
            403,
            "cannot post path",
        ),
        (
            "GET",
            "/configz",
            Some("Bearer good"),
            403,
            "User \\\"prometheus\\\"",
        ),
        ("GET", "/configz", Some("Bearer root"), 200, "seen false"),
        ("GET", "/metrics", None, 403, anonymous),
        ("GET", "/metrics", Some("Basic good"), 403, anonymous),
        ("GET", "/metrics", Some("Bearer  good"), 403, anonymous),
        ("GET", "/metrics", Some("Bearer bad"), 401, unauthorized),
        ("GET", "/livez", None, 200, "seen false"),
        ("GET", "/livez?verbose", None, 200, "seen false"),
        ("GET", "/livez", Some("Bearer bad"), 401, unauthorized),
        ("GET", "/livez/ping", None, 403, "/livez/ping"),
        (
            "GET",
            "/broken",
            Some("Bearer good"),
            500,
            "connection refused",
        ),
        (
            "GET",
            "/metrics",
            Some("Bearer unreachable"),
            500,
            "cannot send a TokenReview",
        ),
        (
            "GET",
            "/metrics",
            Some("Bearer not-allowed"),
            500,
            "tokenreviews is forbidden",
        ),
    ];
    for (method, path, token, code, part) in cases {
        let (got, text) = ask(&pages, method, path, token).await;
        assert_eq!(got, code, "{method} {path} {token:?}: {text}");
        assert!(text.contains(part), "{method} {path} {token:?}: {text}");
    }
}

#[tokio::test]
async fn a_path_is_no_markup() {
    let answer = forbidden("<i>", "get", "/<b>", "no rule");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        body["message"],
        "forbidden: User \"&lt;i&gt;\" cannot get path \"/&lt;b&gt;\": no rule"
    );
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_ten_seconds_and_failures_are_not() {
    let asked = Arc::new(AtomicUsize::new(0));
    let pages = pages(api_server(Arc::clone(&asked)));
    let mut counts = Vec::new();
    for (token, wait) in [
        ("Bearer good", 0),
        ("Bearer good", 9),
        ("Bearer good", 1),
        ("Bearer bad", 0),
        ("Bearer bad", 0),
        ("Bearer unreachable", 0),
        ("Bearer unreachable", 0),
    ] {
        tokio::time::advance(Duration::from_secs(wait)).await;
        asked.store(0, Ordering::Relaxed);
        ask(&pages, "GET", "/metrics", Some(token)).await;
        counts.push(asked.load(Ordering::Relaxed));
    }
    assert_eq!(counts, [2, 0, 2, 1, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_lets_nobody_in() {
    let (service, mut handle) =
        tower_test::mock::pair::<http::Request<KubeBody>, http::Response<KubeBody>>();
    let silent = tokio::spawn(async move {
        let request = handle.next_request().await;
        std::future::pending::<()>().await;
        drop(request);
    });
    let pages = pages(kube::Client::new(service, "default"));
    let (code, text) = ask(&pages, "GET", "/metrics", Some("Bearer good")).await;
    assert_eq!(code, 500);
    let expected = "the API server did not answer a TokenReview within 10 s";
    assert!(text.contains(expected), "{text}");
    silent.abort();
}

/// The attack of 64 connections: 8,103 TokenReviews in 12 s.
#[tokio::test(start_paused = true)]
async fn invalid_tokens_of_one_peer_cost_few_reviews() {
    let asked = Arc::new(AtomicUsize::new(0));
    let pages = pages(api_server(Arc::clone(&asked)));
    let mut refused = 0;
    for round in 0..120 {
        let junk = (0..64).map(async |n| {
            let token = format!("Bearer junk-{round}-{n}");
            ask_from(1, &pages, "GET", "/metrics", Some(&token)).await
        });
        for (code, text) in futures::future::join_all(junk).await {
            refused += usize::from(code == 429);
            assert!([401, 429].contains(&code), "{code} {text}");
        }
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    let asked = asked.load(Ordering::Relaxed);
    // 20 at once, one per second, and those under way.
    assert!((20..=45).contains(&asked), "{asked} reviews");
    assert!(refused > 7_000, "{refused}");
    // Another client is not concerned, and this one is asked for again after a while.
    let by = async |peer| {
        let token = Some("Bearer good");
        ask_from(peer, &pages, "GET", "/metrics", token).await.0
    };
    assert_eq!(by(2).await, 200);
    // What is known of a token is still answered.
    assert_eq!(by(1).await, 200);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(by(1).await, 200);
}

/// Before, eight questions of one peer were asked at once, and all others waited without bound.
#[tokio::test(start_paused = true)]
async fn questions_of_one_peer_hold_up_no_other() {
    let (service, mut handle) =
        tower_test::mock::pair::<http::Request<KubeBody>, http::Response<KubeBody>>();
    let reviews = Arc::new(Reviews::new(kube::Client::new(service, "default")));
    let ask = |peer: u8, name: String| {
        let reviews = Arc::clone(&reviews);
        tokio::spawn(async move {
            let user = User {
                name,
                ..(*User::anonymous()).clone()
            };
            let peer = Ipv4Addr::new(10, 0, 0, peer).into();
            reviews.may(peer, &user, "get", "/metrics").await.is_ok()
        })
    };
    let flood: Vec<_> = (0..1_000).map(|n| ask(2, format!("forged-{n}"))).collect();
    tokio::task::yield_now().await;
    let honest = ask(1, "prometheus".to_owned());
    let mut names = Vec::new();
    for _ in 0..10 {
        let (request, send) = handle.next_request().await.unwrap();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        names.push(review["spec"]["user"].as_str().unwrap().to_owned());
        review["status"] = json!({"allowed": true});
        let body = KubeBody::from(serde_json::to_vec(&review).unwrap());
        send.send_response(http::Response::builder().status(201).body(body).unwrap());
        tokio::task::yield_now().await;
    }
    let place = names.iter().position(|name| name == "prometheus");
    assert!(place.is_some_and(|place| place <= 8), "{names:?}");
    assert!(honest.await.unwrap());
    // Of the flood, those beyond 128 waiting ones were refused at once.
    let ended = flood.iter().filter(|asked| asked.is_finished()).count();
    assert!(ended >= 1_000 - 128 - 8, "{ended}");
}
