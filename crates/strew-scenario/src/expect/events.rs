//! Claims about events: how many events match, counted since the start of the run.

use strew_apiserver::server::Recorded;

use super::{Present, Verdict};
use crate::format::EventsClaim;

/// Judges a claim.
pub fn judge(present: &dyn Present, claim: &EventsClaim) -> Verdict {
    let counts = |event: &&Recorded| {
        let of = claim.of.as_ref().is_none_or(|target| {
            let key = &event.regarding;
            let namespace = target.namespace.as_deref().unwrap_or_default();
            key.kind.name() == target.type_name.kind
                && *key.name.name == *target.name
                && (*key.name.namespace == *namespace || target.namespace.is_none())
        });
        let reason = claim
            .reason
            .as_ref()
            .is_none_or(|reason| *event.reason == **reason);
        let contains = claim
            .contains
            .as_ref()
            .is_none_or(|text| event.note.contains(text.as_str()));
        of && reason && contains
    };
    let counted: Vec<&Recorded> = present.server().events().iter().filter(counts).collect();
    let n = u32::try_from(counted.len()).unwrap_or(u32::MAX);
    let last = counted
        .last()
        .map(|event| format!(", the last: {}", event.note));
    let why = format!("{n} events{}", last.unwrap_or_default());
    Verdict::new(claim.count.contains(n), why)
}
