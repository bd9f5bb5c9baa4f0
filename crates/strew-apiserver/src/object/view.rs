//! Access to stored pods for the conversion to facts.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use strew_wire::facts::{ConditionView, OwnerView, PodView};

use super::{Pairs, Pod};

impl PodView for Pod {
    fn namespace(&self) -> &str {
        &self.meta.name.namespace
    }

    fn name(&self) -> &str {
        &self.meta.name.name
    }

    fn uid(&self) -> &str {
        &self.meta.uid
    }

    fn generation(&self) -> Option<i64> {
        (self.meta.generation != 0).then_some(self.meta.generation)
    }

    fn labels(&self) -> Option<&Pairs> {
        Some(&self.meta.labels)
    }

    fn controller(&self) -> Option<OwnerView<'_>> {
        let owner = self.meta.controller()?;
        Some(OwnerView {
            api_version: &owner.api_version,
            kind: &owner.kind,
            name: &owner.name,
        })
    }

    fn is_terminating(&self) -> bool {
        self.meta.is_terminating()
    }

    fn is_finished(&self) -> bool {
        Pod::is_finished(self)
    }

    fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    fn nominated(&self) -> Option<&str> {
        self.status.nominated.as_deref()
    }

    fn started_s(&self) -> Option<i64> {
        self.status
            .started
            .and_then(|at| i64::try_from(at.secs()).ok())
    }

    fn condition(&self, kind: &str) -> Option<ConditionView<'_>> {
        let found = self.status.condition(kind)?;
        Some(ConditionView {
            status: found.status.name(),
            reason: &found.reason,
            message: &found.message,
            since: Some(found.since),
        })
    }

    fn spec(&self) -> Option<&core::PodSpec> {
        Some(&self.spec)
    }

    fn status(&self) -> Option<&core::PodStatus> {
        self.status.resized()
    }

    fn shared(&self) -> Option<(&Arc<core::PodSpec>, &Arc<Pairs>)> {
        let is_shared = self.status.resized().is_none();
        is_shared.then_some((&self.spec, &self.meta.labels))
    }

    fn to_wire(&self) -> core::Pod {
        Pod::to_wire(self)
    }
}
