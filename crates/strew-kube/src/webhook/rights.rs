//! Checks whether the user of a review has the right to the reviewed operation.
//!
//! An API server calls admission only for allowed requests, so the answer is yes unless the review is forged or the
//! right has just been removed. In a namespace without WorkloadSpreads a review changes no ledger, and nothing is
//! checked.
//!
//! A forged review can name a user that has the right; only the API server's certificate ([`door`](super::door))
//! excludes that.

use std::net::IpAddr;
use std::time::Duration;

use kube::Client;
use strew_wire::workloadspread::review::{Decision, Operation, Review};

use crate::serve::access::{Deed, Reviews, User};

/// How long an answer is kept: controllers create thousands of pods in one namespace, and a question costs a request.
const KEEP: Duration = Duration::from_secs(300);

/// The number of answers kept: a user in a namespace with WorkloadSpreads takes some 100 bytes.
const KEPT_MAX: usize = 4096;

/// Asks the API server about rights, and keeps the answers.
pub(super) struct Rights(Reviews);

/// Whether a user has a right.
pub(super) enum Right {
    /// The user has it.
    Given,
    /// The user lacks it; this is the answer to the review. A deletion is allowed, but not counted.
    Lacking(Box<Decision>),
    /// The right could not be checked, for this reason.
    Unknown(String),
}

impl Rights {
    pub(super) fn new(client: Client) -> Self {
        Self(Reviews::keeping(client, KEEP, KEPT_MAX))
    }

    /// True if a kept answer says that the user has the right.
    pub(super) fn is_known(&self, user: &User, review: &Review) -> bool {
        self.0.is_known_to_be_allowed(user, deed(review))
    }

    /// Asks the API server for a client, unless the answer is known.
    pub(super) async fn of(&self, peer: IpAddr, user: &User, review: &Review) -> Right {
        match self.0.may_do(peer, user, deed(review)).await {
            Ok(Ok(())) => Right::Given,
            Ok(Err(_)) if review.operation == Operation::Create => {
                let (name, namespace) = (&user.name, &review.namespace);
                let what = match review.subresource {
                    true => "evict",
                    false => "create",
                };
                let why = format!("user {name:?} may not {what} pods in namespace {namespace:?}");
                Right::Lacking(Box::new(Decision::refuse(&review.uid, 403, why)))
            }
            Ok(Err(_)) => Right::Lacking(Box::new(Decision::allow(&review.uid))),
            Err(error) => Right::Unknown(error.to_string()),
        }
    }
}

fn deed(review: &Review) -> Deed<'_> {
    let verb = match review.operation {
        Operation::Create => "create",
        Operation::Delete => "delete",
    };
    Deed {
        verb,
        group: "",
        resource: "pods",
        subresource: match review.subresource {
            true => "eviction",
            false => "",
        },
        namespace: &review.namespace,
    }
}
