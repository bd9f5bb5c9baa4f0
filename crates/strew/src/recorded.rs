//! What a cluster recorded for a pod: its condition `PodScheduled` and its events, beside strew's own verdict.

use serde::Serialize;
use strew_apiserver::object::pod::{POD_SCHEDULED, Truth};
use strew_apiserver::object::{Name, Pod, moment};
use strew_manifest::printable::printable_line;
use strew_manifest::read::{EventRecord, Located};
use strew_scheduler::explain::{Explanation, Whereabouts};

use crate::explain_text::Page;

/// The number of events, the latest ones.
const EVENTS_MAX: usize = 5;

/// The record of the cluster.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Recorded {
    /// The condition `PodScheduled`; absent: no scheduler has written it.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<Condition>,
    /// Oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    events: Vec<Event>,
    /// True if it agrees with strew's verdict.
    agrees: bool,
    /// If it does not: the possible reasons.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    may_differ_since: Vec<String>,
}

#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Condition {
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    message: String,
    /// `lastTransitionTime`.
    since: String,
}

#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Event {
    reason: String,
    message: String,
    count: u64,
    /// When it was last seen, as written.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    last: String,
}

impl Recorded {
    /// For a stored pod and the events among the objects of the files; `None` if there is nothing to compare.
    pub(crate) fn of(pod: &Pod, explanation: &Explanation, objects: &[Located]) -> Option<Self> {
        let condition = pod
            .status
            .condition(POD_SCHEDULED)
            .map(|condition| Condition {
                status: condition.status.name(),
                reason: condition.reason.to_string(),
                message: condition.message.to_string(),
                since: moment::to_wire(condition.since).0.to_string(),
            });
        let events = events_of(objects, &pod.meta.name);
        if pod.node.is_some() && events.is_empty() {
            return None;
        }
        let refuses = condition
            .as_ref()
            .filter(|condition| condition.status == Truth::False.name());
        let may_differ_since = match pod.node.is_some() {
            true => Vec::new(),
            false => differences(refuses, explanation, pod),
        };
        Some(Self {
            condition,
            events,
            agrees: may_differ_since.is_empty(),
            may_differ_since,
        })
    }

    /// True if it says what strew says, or nothing.
    pub(crate) fn agrees(&self) -> bool {
        self.agrees
    }

    /// The recorded reason in one line: of the condition, else of the last event. `None` if there is neither.
    pub(crate) fn line(&self) -> Option<String> {
        let condition = self.condition.as_ref();
        let condition = condition.filter(|condition| !condition.message.is_empty());
        let text = match (condition, self.events.last()) {
            (Some(condition), _) => {
                // A condition without a time is of 1970.
                let since = Some(&condition.since).filter(|since| !since.starts_with("1970-"));
                let since = since.map_or(String::new(), |since| format!(" {since}"));
                format!(
                    "recorded{since}: {}: {}",
                    condition.reason, condition.message
                )
            }
            (None, Some(event)) => return Some(event.line()),
            (None, None) => return None,
        };
        Some(printable_line(&text).into_owned())
    }

    pub(crate) fn text(&self, out: &mut Page) {
        out.heading("Recorded in the cluster");
        match &self.condition {
            None => out.wrapped(2, "no condition PodScheduled"),
            Some(condition) => {
                let reason = match condition.reason.as_str() {
                    "" => String::new(),
                    reason => format!(" ({reason})"),
                };
                let message = match condition.message.as_str() {
                    "" => String::new(),
                    message => format!(": {message}"),
                };
                let (status, since) = (condition.status, &condition.since);
                let text = format!("PodScheduled {status}{reason} since {since}{message}");
                // Text of other writers is shown as one printable line.
                out.wrapped(2, &printable_line(&text));
            }
        }
        for event in &self.events {
            let times = event.times();
            let last = match event.last.as_str() {
                "" => String::new(),
                last => format!(", last {last}"),
            };
            let (reason, message) = (&event.reason, &event.message);
            let text = format!("event {reason}{times}{last}: {message}");
            out.wrapped(2, &printable_line(&text));
        }
        if self.agrees {
            if self.condition.is_some() {
                out.wrapped(2, "It says what strew says.");
            }
            return;
        }
        out.wrapped(2, "It differs from strew's verdict. That may be since");
        for why in &self.may_differ_since {
            out.wrapped(2, &format!("- {}", printable_line(why)));
        }
    }
}

/// Why the recorded text may differ from strew's verdict on a pod without a node; empty if it does not.
fn differences(refuses: Option<&Condition>, explanation: &Explanation, pod: &Pod) -> Vec<String> {
    let other_moment = |since: &str| {
        format!(
            "the condition is as of {since} or later, and nodes or pods have changed since it was written: the \
             scheduler writes it when it tries the pod"
        )
    };
    let configuration =
        "the scheduler is configured in another way, or has another version: give its configuration with --config"
            .to_owned();
    let down = "the scheduler is not running, or has not come to this pod yet".to_owned();
    match (refuses, &explanation.standing) {
        // Nothing is said yet of a pod that no node takes: that is no difference.
        (None, standing) if !matches!(standing, Whereabouts::WouldGo { .. }) => Vec::new(),
        (None, _) => vec![
            down,
            format!(
                "no scheduler answers to schedulerName {:?}",
                pod.spec.scheduler_name.as_deref().unwrap_or("default-scheduler")
            ),
            "the objects were read before the scheduler's answer was written".to_owned(),
        ],
        (Some(condition), Whereabouts::Gated { .. }) if condition.reason == "SchedulingGated" => {
            Vec::new()
        }
        (Some(condition), Whereabouts::WouldGo { .. }) => vec![
            other_moment(&condition.since),
            "the pod is in back-off (up to 10 seconds), or no event has freed it yet: then it is tried again within 5 minutes"
                .to_owned(),
            down,
            configuration,
        ],
        (Some(condition), _) => match reasons(&condition.message) == reasons(&explanation.sentence) {
            true => Vec::new(),
            false => vec![other_moment(&condition.since), configuration],
        },
    }
}

/// The number of nodes and the reasons with their numbers, without the part about preemption: versions differ in that.
fn reasons(message: &str) -> Vec<&str> {
    let first = message.split_once(". ").map_or(message, |(first, _)| first);
    let (head, list) = first.split_once(": ").unwrap_or((first, ""));
    let mut reasons: Vec<&str> = list.split(", ").collect();
    reasons.sort_unstable();
    reasons.insert(0, head);
    reasons
        .iter_mut()
        .for_each(|r| *r = r.trim_end_matches('.'));
    reasons
}

/// The Events among the objects of files.
fn records(objects: &[Located]) -> impl Iterator<Item = &EventRecord> {
    objects.iter().filter_map(|located| located.object.event())
}

/// The latest events about a pod.
fn events_of(objects: &[Located], pod: &Name) -> Vec<Event> {
    let is_its = |event: &&EventRecord| {
        event.kind == "Pod" && event.name == *pod.name && event.namespace == *pod.namespace
    };
    let mut events: Vec<Event> = records(objects).filter(is_its).map(Event::of).collect();
    events.sort_by(|a, b| a.last.cmp(&b.last));
    events.drain(..events.len().saturating_sub(EVENTS_MAX));
    events
}

/// The events that pods were refused at creation.
pub(crate) struct Refusals<'a>(Vec<&'a EventRecord>);

impl<'a> Refusals<'a> {
    /// Those among the objects of files.
    pub(crate) fn of(objects: &'a [Located]) -> Self {
        let is_refusal = |event: &&EventRecord| event.reason == "FailedCreate";
        Self(records(objects).filter(is_refusal).collect())
    }

    /// The last one about a workload or one of its ReplicaSets, in one line; `None` if there is none.
    pub(crate) fn last(&self, namespace: &str, workload: &str) -> Option<String> {
        // A ReplicaSet has the name of its Deployment, and a hash without dashes.
        let is_set = |rest: &str| {
            rest.strip_prefix('-')
                .is_some_and(|hash| !hash.contains('-'))
        };
        let is_its = |event: &&&EventRecord| {
            let rest = event.name.strip_prefix(workload);
            event.namespace == namespace
                && rest.is_some_and(|rest| {
                    rest.is_empty() || (event.kind == "ReplicaSet" && is_set(rest))
                })
        };
        let of_it = self.0.iter().filter(is_its);
        let last = of_it.max_by_key(|event| &event.last)?;
        Some(Event::of(last).line())
    }
}

impl Event {
    fn of(record: &EventRecord) -> Self {
        Self {
            reason: record.reason.clone(),
            message: record.message.clone(),
            count: record.count,
            last: record.last.clone(),
        }
    }

    /// ` x7`; empty for an event that happened once.
    fn times(&self) -> String {
        match self.count {
            0 | 1 => String::new(),
            n => format!(" x{n}"),
        }
    }

    /// `recorded 2026-11-20T02:03:00Z: event FailedCreate x7: Error creating: …`
    fn line(&self) -> String {
        let times = self.times();
        let last = match self.last.as_str() {
            "" => String::new(),
            last => format!(" {last}"),
        };
        let (reason, message) = (&self.reason, &self.message);
        let text = format!("recorded{last}: event {reason}{times}: {message}");
        printable_line(&text).into_owned()
    }
}
