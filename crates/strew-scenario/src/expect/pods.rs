//! Claims about the number of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::pod::POD_SCHEDULED;
use strew_apiserver::object::{self, Pod, Truth};
use strew_scheduler::Profile;

use super::{Present, Verdict, subject};
use crate::format::{Phase, PodSubject, PodsClaim};

/// Judges a claim.
pub fn judge(present: &dyn Present, claim: &PodsClaim) -> Verdict {
    let tables = present.server().tables();
    let all = looked_at(tables, &claim.of);
    let counted: Vec<&&Arc<Pod>> = all
        .iter()
        .filter(|pod| counts(present, claim, pod))
        .collect();
    let n = u32::try_from(counted.len()).unwrap_or(u32::MAX);
    let holds = claim.count.contains(n);
    let why = match holds {
        true => format!("{n} of {}", all.len()),
        false => found(present, &all, n),
    };
    Verdict::new(holds, why)
}

fn looked_at<'a>(tables: &'a Tables, of: &PodSubject) -> Vec<&'a Arc<Pod>> {
    match of {
        PodSubject::All => tables.of::<Pod>().iter().collect(),
        PodSubject::Object(target) => subject::of_target(tables, target),
        PodSubject::Labels(labels) => {
            let has = |pod: &&Arc<Pod>| {
                let mut labels = labels.iter();
                labels.all(|(key, value)| pod.meta.label(key) == Some(value))
            };
            tables.of::<Pod>().iter().filter(has).collect()
        }
    }
}

fn counts(present: &dyn Present, claim: &PodsClaim, pod: &Pod) -> bool {
    let phase = claim.phase.is_none_or(|phase| is_in(pod, phase));
    let blocked = claim
        .blocked_by
        .is_none_or(|plugin| blocked_by(present, pod).contains(&plugin));
    let says = claim
        .message
        .as_ref()
        .is_none_or(|text| message(pod).contains(text.as_str()));
    phase && blocked && says && (!claim.waiting || waits(pod, present.profiles()))
}

/// True if the pod waits for one of these profiles, also while a scheduling gate holds it.
fn waits(pod: &Pod, profiles: &[Profile]) -> bool {
    pod.node.is_none() && pod.is_active() && other_scheduler(pod, profiles).is_none()
}

/// The scheduler of a pod, if it is none of these profiles'.
pub(in crate::expect) fn other_scheduler<'a>(
    pod: &'a Pod,
    profiles: &[Profile],
) -> Option<&'a str> {
    let scheduler = pod.spec.scheduler_name.as_deref();
    let scheduler = scheduler.unwrap_or("default-scheduler");
    let mut profiles = profiles.iter();
    let is_played = profiles.any(|profile| profile.scheduler_name == scheduler);
    (!is_played).then_some(scheduler)
}

fn is_in(pod: &Pod, phase: Phase) -> bool {
    use object::Phase as Is;
    let wanted = match phase {
        Phase::Pending => Is::Pending,
        Phase::Running => Is::Running,
        Phase::Succeeded => Is::Succeeded,
        Phase::Failed => Is::Failed,
        Phase::Unknown => Is::Unknown,
    };
    pod.status.phase == wanted
}

/// The plugins that refuse the pod on every node.
pub fn blocked_by(present: &dyn Present, pod: &Pod) -> Vec<&'static str> {
    let is_unscheduled = pod.node.is_none() && !pod.is_finished();
    let plugins = is_unscheduled.then(|| present.rejected_by(&pod.meta.uid));
    plugins
        .into_iter()
        .flat_map(|set| set.iter())
        .map(|plugin| plugin.name())
        .collect()
}

/// The scheduler's message in the condition of a pod that is on no node.
pub fn message(pod: &Pod) -> &str {
    let condition = pod.status.condition(POD_SCHEDULED);
    let condition = condition.filter(|condition| condition.status == Truth::False);
    condition.map_or("", |condition| &condition.message)
}

/// What was found instead: the pods by phase, and the plugins that block the pods on no node.
fn found(present: &dyn Present, pods: &[&Arc<Pod>], n: u32) -> String {
    let mut phases: BTreeMap<&str, u32> = BTreeMap::new();
    let mut blocked: BTreeMap<String, u32> = BTreeMap::new();
    for pod in pods {
        *phases.entry(pod.status.phase.name()).or_default() += 1;
        let by = blocked_by(present, pod);
        if !by.is_empty() {
            *blocked.entry(by.join(", ")).or_default() += 1;
        }
    }
    let phases: Vec<String> = phases
        .iter()
        .map(|(phase, n)| format!("{n} {phase}"))
        .collect();
    let blocked: Vec<String> = blocked
        .iter()
        .map(|(by, n)| format!("{n} blocked by {by}"))
        .collect();
    let all = phases
        .into_iter()
        .chain(blocked)
        .collect::<Vec<_>>()
        .join(", ");
    match all.as_str() {
        "" => format!("{n}: there is no such pod"),
        all => format!("{n}: there are {all}"),
    }
}
