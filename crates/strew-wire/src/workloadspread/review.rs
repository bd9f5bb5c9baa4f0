//! `AdmissionReview` of `admission.k8s.io`: request and response.
//!
//! Source: spec/workloadspread §4.1, §4.7; `k8s.io/api/admission/v1`, v1.36.

use serde_json::{Value, json};

/// An admission review of a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// `request.uid`: the answer repeats it.
    pub uid: String,
    /// The operation.
    pub operation: Operation,
    /// The namespace of the request.
    pub namespace: String,
    /// The name in the request; empty if the API server has to generate it.
    pub name: String,
    /// The pod: for a creation the new one, for a deletion the old one.
    pub pod: Value,
    /// True if the request changes nothing.
    pub dry_run: bool,
    /// True for a subresource, such as an eviction.
    pub subresource: bool,
}

/// An operation on a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Create it.
    Create,
    /// Delete it.
    Delete,
}

/// Why a review can only be answered with 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadReview {
    /// It has no request with a uid.
    #[error("expected an AdmissionReview with a request")]
    NoRequest,
    /// It has no request with a uid and objects.
    #[error("expected a ConversionReview with a request")]
    NoConversion,
    /// The webhook is not registered for the operation.
    #[error("operation {operation:?} on {resource:?} is not for this webhook")]
    NotForUs {
        /// The operation.
        operation: String,
        /// The resource.
        resource: String,
    },
}

impl Review {
    /// Reads a review, and takes the pod out of it.
    ///
    /// # Errors
    /// The body is no review of a creation or deletion of a pod or of its subresource; then it stays unchanged.
    pub fn read(body: &mut Value) -> Result<Self, BadReview> {
        let request = &body["request"];
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let uid = text("uid");
        if uid.is_empty() {
            return Err(BadReview::NoRequest);
        }
        let resource = request["resource"]["resource"].as_str().unwrap_or_default();
        let subresource = text("subResource");
        let operation = match text("operation").as_str() {
            "CREATE" => Operation::Create,
            "DELETE" => Operation::Delete,
            other => {
                return Err(BadReview::NotForUs {
                    operation: other.to_owned(),
                    resource: resource.to_owned(),
                });
            }
        };
        if resource != "pods" {
            return Err(BadReview::NotForUs {
                operation: text("operation"),
                resource: resource.to_owned(),
            });
        }
        let of_options = request.pointer("/options/dryRun");
        let is_all = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        let mut review = Self {
            uid,
            namespace: text("namespace"),
            name: text("name"),
            pod: Value::Null,
            dry_run: request["dryRun"] == true || of_options.is_some_and(is_all),
            subresource: !subresource.is_empty(),
            operation,
        };
        let object = match operation {
            Operation::Create => "/request/object",
            Operation::Delete => "/request/oldObject",
        };
        review.pod = body
            .pointer_mut(object)
            .map(Value::take)
            .unwrap_or_default();
        Ok(review)
    }
}

/// The answer to a review.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// `request.uid`.
    pub uid: String,
    /// The pod to store, if it is changed.
    pub pod: Option<Value>,
    /// The JSON patch from the old pod to the new one.
    pub patch: Option<Value>,
    /// Status code and message of a refusal; `None` if it is allowed.
    pub refusal: Option<(u16, String)>,
    /// In how many seconds a refused client should try again; `None`: that is left to it.
    pub retry_after_s: Option<u32>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl Decision {
    /// Allows the request unchanged.
    pub fn allow(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            pod: None,
            patch: None,
            refusal: None,
            retry_after_s: None,
            warnings: Vec::new(),
        }
    }

    /// Refuses the request.
    pub fn refuse(uid: &str, code: u16, message: impl Into<String>) -> Self {
        Self {
            refusal: Some((code, message.into())),
            ..Self::allow(uid)
        }
    }

    /// The answer as a review of this API version; the patch is in base 64.
    pub fn to_review(&self, api_version: &str) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": self.refusal.is_none()});
        if let Some(patch) = &self.patch {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = base64(patch.to_string().as_bytes()).into();
        }
        if let Some((code, message)) = &self.refusal {
            response["status"] = json!({"code": code, "message": message});
        }
        if let Some(seconds) = self.retry_after_s {
            response["status"]["reason"] = "TooManyRequests".into();
            response["status"]["details"] = json!({"retryAfterSeconds": seconds});
        }
        if !self.warnings.is_empty() {
            response["warnings"] = self.warnings.as_slice().into();
        }
        json!({"apiVersion": api_version, "kind": "AdmissionReview", "response": response})
    }
}

/// Base 64 with padding. Source: RFC 4648 §4.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let letter = LETTERS[(group >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() { letter.into() } else { '=' });
        }
    }
    text
}
