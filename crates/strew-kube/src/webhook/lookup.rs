//! Reads an object from the API server while a review waits.

use kube::Client;
use serde_json::Value;
use strew_model::time::Span;
use strew_wire::request::Answer;

use crate::send;

/// The time limit with retries: the API server itself waits for the review meanwhile.
const ANSWER_WITHIN: Span = Span::from_secs(4);

/// Reads a path; `None` if nothing is there.
///
/// # Errors
/// Why the answer is unknown, for messages.
pub(super) async fn get(client: &Client, path: &str) -> Result<Option<Value>, String> {
    let answer = send::read(client, path, ANSWER_WITHIN).await;
    match answer {
        Answer::Status { code: 404, .. } => Ok(None),
        Answer::Status {
            code: 200..=299,
            body,
            ..
        } => Ok(Some(body)),
        _ => Err(answer.words().to_string()),
    }
}

/// True if a text can be a segment of a path, as names of objects can.
pub(super) fn is_segment(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    !text.is_empty() && text.bytes().all(is_plain) && !matches!(text, "." | "..")
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// The result of reads from an API server that gives these answers in turn, and the number of reads.
    async fn got(answers: Vec<(u16, Value)>) -> (Result<Option<Value>, String>, usize) {
        let (service, mut handle) = tower_test::mock::pair::<http::Request<Body>, _>();
        let served = tokio::spawn(async move {
            let mut n = 0;
            for (code, body) in answers {
                let Some((_, send)) = handle.next_request().await else {
                    break;
                };
                n += 1;
                let body = Body::from(body.to_string().into_bytes());
                let answer = http::Response::builder().status(code).body(body);
                send.send_response(answer.expect("an answer"));
            }
            n
        });
        let client = Client::new(service, "default");
        let got = get(&client, "/api/v1/namespaces/shop/pods/web").await;
        drop(client);
        (got, served.await.expect("the API server"))
    }

    /// After a change of a definition, its objects are not served for a second.
    #[tokio::test(start_paused = true)]
    async fn a_busy_api_server_is_asked_again() {
        let busy = json!({
            "kind": "Status", "status": "Failure", "reason": "TooManyRequests", "code": 429,
            "message": "storage is (re)initializing", "details": {"retryAfterSeconds": 1},
        });
        let found = json!({"kind": "Pod"});
        let twice = vec![
            (429, busy.clone()),
            (429, busy.clone()),
            (200, found.clone()),
        ];
        assert_eq!(got(twice).await, (Ok(Some(found)), 3));
        let (answer, n) = got(vec![(429, busy); 20]).await;
        assert_eq!(answer, Err("storage is (re)initializing".to_owned()));
        assert!(n > 1 && n <= 11, "{n}");
        assert_eq!(got(vec![(404, json!({}))]).await, (Ok(None), 1));
        let forbidden = json!({"kind": "Status", "message": "no", "code": 403});
        assert_eq!(got(vec![(403, forbidden)]).await, (Err("no".to_owned()), 1));
    }

    #[test]
    fn only_names_are_parts_of_paths() {
        for text in ["web-1", "a.b_C", "7"] {
            assert!(is_segment(text), "{text}");
        }
        for text in ["", ".", "..", "a/b", "a?b", "a b", "%2e", "\u{e9}"] {
            assert!(!is_segment(text), "{text}");
        }
    }
}
