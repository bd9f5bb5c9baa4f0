//! JSON-RPC 2.0 as the Model Context Protocol uses it: one message per line.
//!
//! Source: JSON-RPC 2.0, sections 4 and 5; Model Context Protocol, revision 2025-06-18.

use serde_json::{Map, Value, json};

use super::about;

/// Source: JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;

/// The supported revisions of the protocol, the newest first. They do not differ in what this server uses.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A request.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// A text or a whole number.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// A message.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request(Request),
    /// The request of this id is cancelled.
    Cancelled(Value),
    /// A notification without effect, or an empty line.
    Nothing,
    /// An invalid message; this is the answer.
    Wrong(Value),
}

/// Reads a message.
pub(super) fn parse(text: &[u8]) -> Incoming {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Incoming::Nothing;
    }
    let wrong = |id: &Value, code: i32, what: &str| Incoming::Wrong(failed(id, code, what));
    let message: Value = match serde_json::from_slice(text) {
        Ok(message) => message,
        Err(error) => return wrong(&Value::Null, PARSE_ERROR, &error.to_string()),
    };
    let Value::Object(mut message) = message else {
        return wrong(&Value::Null, INVALID_REQUEST, "a message is an object");
    };
    let id = message.remove("id");
    // A larger number, or a fraction, would come back as another one.
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let known = id.clone().filter(is_id).unwrap_or(Value::Null);
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return wrong(&known, INVALID_REQUEST, "jsonrpc is not \"2.0\"");
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        // An answer to a question that was never asked.
        None if message.contains_key("result") || message.contains_key("error") => {
            return Incoming::Nothing;
        }
        _ => return wrong(&known, INVALID_REQUEST, "method is no text"),
    };
    let params = match message.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return wrong(&known, INVALID_PARAMS, "params is no object"),
    };
    match id {
        None if method == "notifications/cancelled" => match params.get("requestId") {
            Some(id) => Incoming::Cancelled(id.clone()),
            None => Incoming::Nothing,
        },
        None => Incoming::Nothing,
        Some(id) if is_id(&id) => Incoming::Request(Request { id, method, params }),
        Some(_) => wrong(
            &Value::Null,
            INVALID_REQUEST,
            "id is no text and no whole number of 64 bits",
        ),
    }
}

/// The answer to a request other than a call of a tool.
pub(super) fn answer(request: &Request, tools: impl FnOnce() -> Value) -> Value {
    let id = &request.id;
    match request.method.as_str() {
        "initialize" => {
            let asked = request.params.get("protocolVersion");
            let asked = asked.and_then(Value::as_str).unwrap_or_default();
            let spoken = REVISIONS.iter().find(|revision| **revision == asked);
            let mut about = about();
            about["protocolVersion"] = json!(spoken.unwrap_or(&REVISIONS[0]));
            done(id, &about)
        }
        "ping" => done(id, &json!({})),
        "tools/list" => done(id, &json!({"tools": tools()})),
        method => failed(id, METHOD_NOT_FOUND, &format!("no method {method:?}")),
    }
}

/// A result.
pub(super) fn done(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// An error of the protocol. The failure of a tool is a result.
pub(super) fn failed(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_answered_as_one() {
        let code = |text: &str| match parse(text.as_bytes()) {
            Incoming::Wrong(answer) => answer["error"]["code"].as_i64().unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(code("{"), -32700);
        for text in [
            "[]",
            "1",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            // 2^70 came back as 1.1805916207174113e+21.
            r#"{"jsonrpc":"2.0","id":1180591620717411303424,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        ] {
            assert_eq!(code(text), -32600, "{text}");
        }
        let params = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#;
        assert_eq!(code(params), -32602);
        for text in [
            "",
            " ",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            assert_eq!(parse(text.as_bytes()), Incoming::Nothing, "{text}");
        }
    }
}
