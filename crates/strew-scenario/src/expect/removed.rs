//! Claims about pods that were deleted, or are terminating, since the last step.

use strew_apiserver::Tables;
use strew_apiserver::object::Pod;

use super::spread::{ByDomain, agree, domain_of, text};
use super::{Present, Verdict, subject};
use crate::format::RemovedClaim;

/// Judges a claim; `before` holds the objects at the end of the last step.
pub fn judge(present: &dyn Present, claim: &RemovedClaim, before: Option<&Tables>) -> Verdict {
    let Some(before) = before else {
        return Verdict::new(false, "there is no step before this one");
    };
    let now = present.server().tables();
    let stays = |pod: &Pod| {
        let found = now.get::<Pod>(&pod.meta.name);
        found.is_some_and(|found| found.meta.uid == pod.meta.uid && found.is_active())
    };
    let mut counts = ByDomain::new();
    for pod in subject::of_target(before, &claim.of) {
        if pod.is_active()
            && !stays(pod)
            && let Some(domain) = domain_of(before, pod, &claim.by)
        {
            *counts.entry(domain.to_owned()).or_default() += 1;
        }
    }
    let n: u32 = counts.values().sum();
    let found = match n {
        0 => "none was removed".to_owned(),
        _ => format!("removed {}", text(&counts, super::spread::skew(&counts))),
    };
    Verdict::new(agree(&claim.counts, &counts), found)
}
