//! One object, asked of the API server while somebody waits.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use serde_json::Value;
use strew_api::workloadspread::v1beta1::WorkloadSpread;
use strew_api::workloadspread::workloads::{AdvancedStatefulSet, CloneSet};

use crate::connect::chain;
use crate::watch::Kind;

/// How long an answer is waited for: the API server waits for us all the while.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// What is at a path; `None`: nothing.
///
/// # Errors
/// Why nobody knows, in words.
pub(super) async fn get(client: &Client, path: &str) -> Result<Option<Value>, String> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(|error| error.to_string())?;
    match tokio::time::timeout(ANSWER_WITHIN, client.request::<Value>(request)).await {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err("the API server does not answer".to_owned()),
    }
}

/// The kind of WorkloadSpreads.
pub(super) fn spreads() -> Kind {
    Kind::of::<WorkloadSpread>()
}

/// A kind of workloads that is known by its group and kind, in the version that is read.
pub(super) fn known(group: &str, kind: &str) -> Option<Kind> {
    let all = [
        Kind::of::<Deployment>(),
        Kind::of::<ReplicaSet>(),
        Kind::of::<StatefulSet>(),
        Kind::of::<Job>(),
        Kind::of::<CloneSet>(),
        Kind::of::<AdvancedStatefulSet>(),
    ];
    all.into_iter()
        .find(|known| &*known.group == group && &*known.kind == kind)
}

/// Whether a text can be part of a path: names of objects can.
pub(super) fn is_segment(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    !text.is_empty() && text.bytes().all(is_plain) && !matches!(text, "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

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
