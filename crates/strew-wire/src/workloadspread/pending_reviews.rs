//! Reviews of pods that wait for an answer. Turns reviews into inputs of the machine and its answers into decisions,
//! and keeps the pods' JSON for patches.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use strew_cluster::PodFact;
use strew_model::Interner;
use strew_workloadspread::admission::request::{PodAsked, Request, RequestId};
use strew_workloadspread::admission::{self, Answer, Denial, Verdict};
use strew_workloadspread::facts::pod::is_active;
use strew_workloadspread::{PatchId, PodPatcher, Subset};

use super::bounds;
use super::facts::{controller_of, pod as pod_facts};
use super::inject;
use super::review::{Decision, Operation, Review};
use super::subset_contents::SubsetContents;
use crate::facts as common;
use strew_manifest::json::Json;
use strew_manifest::patch::{Schema, json_diff, strategic};

/// Access to stored pods.
pub trait PodSource {
    /// The pod with a uid.
    fn by_uid(&self, uid: &str) -> Option<Value>;
}

/// Without stored pods.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPods;

impl PodSource for NoPods {
    fn by_uid(&self, _: &str) -> Option<Value> {
        None
    }
}

/// Reviews that wait for an answer.
#[derive(Debug, Default)]
pub struct PendingReviews {
    next: u64,
    waiting: BTreeMap<RequestId, Review>,
}

impl PendingReviews {
    /// The machine's request for a review.
    ///
    /// `fresh_uid` is a new UUID. It stands for the pod in the ledger if its name is not known.
    ///
    /// # Errors
    /// The final answer, if the pod cannot be read.
    pub fn ask(
        &mut self,
        review: Review,
        fresh_uid: Arc<str>,
        names: &mut Interner,
    ) -> Result<Request, Box<Decision>> {
        let pod = match Pod::of_json(review.pod.clone()) {
            Ok(pod) => pod,
            // The object of a subresource is no pod.
            Err(_) if review.subresource => Pod::default(),
            Err(error) => {
                let message = format!("read the pod: {error}");
                return Err(Box::new(Decision::refuse(&review.uid, 400, message)));
            }
        };
        let pod = in_namespace(pod, &review.namespace);
        let id = RequestId(self.next);
        self.next += 1;
        let request = Request {
            id,
            operation: match review.operation {
                Operation::Create => admission::Operation::Create {
                    fact: simulated(&pod, names).map(Box::new),
                    fresh_uid,
                },
                Operation::Delete => admission::Operation::Delete,
            },
            dry_run: review.dry_run,
            subresource: review.subresource,
            pod: asked(&pod, &review.name, names),
        };
        self.waiting.insert(id, review);
        Ok(request)
    }

    /// The decision for an answer of the machine; `None` if no review waits for it.
    pub fn answer(
        &mut self,
        answer: &Answer,
        contents: &SubsetContents,
        names: &Interner,
    ) -> Option<Decision> {
        let review = self.waiting.remove(&answer.request)?;
        let uid = &review.uid;
        Some(match &answer.verdict {
            Verdict::Untouched(_) | Verdict::Counted => Decision::allow(uid),
            Verdict::Gate => {
                let pod = inject::gated(&review.pod);
                Decision {
                    patch: Some(json_diff(&review.pod, &pod)),
                    pod: Some(pod),
                    ..Decision::allow(uid)
                }
            }
            Verdict::Deny(denial) => {
                let code = denial.code(review.operation == Operation::Create);
                Decision::refuse(uid, code, sentence(*denial, names))
            }
            Verdict::Inject(injection) => {
                let form = contents.form(injection.subset().form).cloned();
                let form = form.unwrap_or_default();
                match inject::inject(&review.pod, &form, injection) {
                    Ok(pod) => Decision {
                        patch: Some(json_diff(&review.pod, &pod)),
                        pod: Some(pod),
                        ..Decision::allow(uid)
                    },
                    Err(error) => Decision::refuse(uid, 500, chain(&error)),
                }
            }
        })
    }

    /// The review of an open request.
    pub fn review(&self, id: RequestId) -> Option<&Review> {
        self.waiting.get(&id)
    }

    /// The API server has stopped waiting for the answer to a request.
    pub fn forget(&mut self, id: RequestId) {
        self.waiting.remove(&id);
    }

    /// Takes back the review of an answered request, to ask again; its client continues to wait.
    pub fn take_back(&mut self, id: RequestId) -> Option<Review> {
        self.waiting.remove(&id)
    }

    /// The number of waiting reviews.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// A pod without a namespace is in that of the request.
fn in_namespace(mut pod: Pod, namespace: &str) -> Pod {
    let own = pod.metadata.namespace.as_deref().unwrap_or_default();
    if own.is_empty() && !namespace.is_empty() {
        pod.metadata.namespace = Some(namespace.to_owned());
    }
    pod
}

/// A pod for simulated scheduling; `None` beyond its bounds.
fn simulated(pod: &Pod, names: &mut Interner) -> Option<PodFact> {
    match bounds::is_simulated(pod) {
        true => common::pod(pod, names).ok().flatten(),
        false => None,
    }
}

fn asked(pod: &Pod, name: &str, names: &mut Interner) -> PodAsked {
    let metadata = &pod.metadata;
    let own = metadata.name.as_deref().unwrap_or(name);
    let deleting = metadata.deletion_timestamp.is_some();
    PodAsked {
        namespace: super::facts::namespace(metadata, names),
        name: Some(own).filter(|name| !name.is_empty()).map(Into::into),
        labels: common::labels(metadata.labels.as_ref(), names),
        controller: controller_of(metadata, names),
        active: is_active(pod_facts::phase(pod), deleting),
        marker: pod_facts::marked(metadata),
    }
}

/// The message of a refusal; the client retries.
fn sentence(denial: Denial, names: &Interner) -> String {
    match denial {
        Denial::OwnerNotFound(owner) => {
            let (kind, name) = (names.text(owner.kind), names.text(owner.name));
            format!("the pod's owner {kind} {name:?} was not found")
        }
        Denial::NoRoom => {
            "no subset of the WorkloadSpread has room (strew.dev/when-no-room)".to_owned()
        }
        Denial::Conflicts(attempts) => {
            format!("the WorkloadSpread's status changed meanwhile, {attempts} times")
        }
        Denial::Failed => "the WorkloadSpread's status could not be written".to_owned(),
        Denial::Lost => "nobody knows whether the WorkloadSpread's status was written".to_owned(),
        Denial::Overloaded => "too many pods wait for the WorkloadSpread".to_owned(),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Gives both machines the patches of subsets, the pods under review, and stored pods.
pub struct Patcher<'a> {
    /// The patches.
    pub contents: &'a SubsetContents,
    /// Pods under review; `None` for the controller, which has none.
    pub reviews: Option<&'a PendingReviews>,
    /// Pods that are stored.
    pub pods: &'a dyn PodSource,
}

impl PodPatcher for Patcher<'_> {
    fn candidate(
        &mut self,
        names: &mut Interner,
        request: RequestId,
        pod: &PodFact,
        subset: &Subset,
    ) -> Option<PodFact> {
        let form = self.contents.form(subset.form)?;
        let review = self.reviews?.waiting.get(&request)?;
        let patched = inject::candidate(&review.pod, form).ok()?;
        let patched = in_namespace(patched, &review.namespace);
        let fact = simulated(&patched, names)?;
        Some(PodFact {
            labels: fact.labels,
            spec: fact.spec,
            ..pod.clone()
        })
    }

    fn is_in_effect(&mut self, pod_uid: &str, patch: PatchId) -> bool {
        let (Some(patch), Some(pod)) = (self.contents.patch(patch), self.pods.by_uid(pod_uid))
        else {
            return false;
        };
        let Ok(mut patched) = strategic::patch(Schema::Pod, &pod, patch) else {
            return false;
        };
        let annotations = pod.pointer("/metadata/annotations").cloned();
        if let Some(Value::Object(metadata)) = patched.get_mut("metadata") {
            match annotations {
                Some(annotations) => metadata.insert("annotations".to_owned(), annotations),
                None => metadata.shift_remove("annotations"),
            };
        }
        patched == pod
    }
}
