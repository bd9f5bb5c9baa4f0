//! Responses of the wire: objects, and `Status` for errors.

use serde_json::{Value, json};
use strew_wire::request::Answer;

use crate::ApiError;

pub(super) fn answer(code: u16, body: Value) -> Answer {
    Answer::Status {
        code,
        retry_after: None,
        body,
    }
}

/// A `Status` without an object.
pub(super) fn success(code: u16) -> Answer {
    let body = json!({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": code});
    answer(code, body)
}

pub(super) fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    });
    answer(code, body)
}

/// A `Status` for an invalid object, with the field among its causes.
pub(super) fn invalid(field: &str, message: &str) -> Answer {
    let mut answer = failure(422, "Invalid", message);
    if let Answer::Status { body, .. } = &mut answer {
        body["details"] = json!({"causes": [{"field": field}]});
    }
    answer
}

/// The `Status` of an error.
pub(super) fn refusal(error: &ApiError) -> Answer {
    let message = error.to_string();
    match error {
        ApiError::NotFound(_) => failure(404, "NotFound", &message),
        ApiError::AlreadyExists(_) => failure(409, "AlreadyExists", &message),
        ApiError::Conflict(_) => failure(409, "Conflict", &message),
        ApiError::Invalid(_) => {
            let errors = message.split_once(" is invalid: ");
            let first = errors.map_or(&*message, |(_, errors)| errors.trim_start_matches('['));
            let field = first.split(':').next().unwrap_or_default();
            invalid(field, &message)
        }
        ApiError::Forbidden(_) => failure(403, "Forbidden", &message),
        ApiError::TooManyRequests {
            cause, retry_after, ..
        } => {
            let mut answer = failure(429, "TooManyRequests", &message);
            if let Answer::Status {
                body,
                retry_after: header,
                ..
            } = &mut answer
            {
                *header = *retry_after;
                if !cause.is_empty() {
                    body["details"] =
                        json!({"causes": [{"reason": "DisruptionBudget", "message": &**cause}]});
                }
            }
            answer
        }
        ApiError::Internal(_) => failure(500, "InternalError", &message),
        ApiError::Lost | ApiError::Later => Answer::Lost(message.into()),
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        refusal(&error)
    }
}
