//! A StatefulSet's pods by ordinal, its status, and the pods to update next.
//!
//! Source: spec/controllers §3.2, §3.3.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_apiserver::object::{Phase, Pod};
use strew_model::time::{Instant, Span};

use super::identity::{ordinal_of, wanted};
use crate::sets::{REVISION_LABEL, available_at};

/// An ordinal with its pod.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The ordinal.
    pub(super) ordinal: u32,
    /// The pod with this ordinal, if it exists.
    pub(super) pod: Option<Arc<Pod>>,
}

/// The pods in their places.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// One place for each wanted ordinal, ascending.
    pub(super) replicas: Vec<Place>,
    /// Pods with other ordinals, descending.
    pub(super) condemned: Vec<(u32, Arc<Pod>)>,
    min_ready: Span,
    now: Instant,
}

impl Places {
    pub(super) fn new<'a>(
        set: &str,
        spec: &StatefulSetSpec,
        pods: impl Iterator<Item = &'a Arc<Pod>>,
        now: Instant,
    ) -> Self {
        let range = wanted(spec);
        let place = |ordinal| Place { ordinal, pod: None };
        let mut replicas: Vec<Place> = range.clone().map(place).collect();
        let mut condemned = Vec::new();
        for pod in pods {
            let Some(ordinal) = ordinal_of(set, &pod.meta.name.name) else {
                continue;
            };
            if range.contains(&ordinal) {
                let index = usize::try_from(ordinal - range.start).unwrap_or(usize::MAX);
                replicas[index].pod = Some(Arc::clone(pod));
            } else {
                condemned.push((ordinal, Arc::clone(pod)));
            }
        }
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        Self {
            replicas,
            condemned,
            min_ready: crate::sets::min_ready(spec.min_ready_seconds),
            now,
        }
    }

    /// All pods, in range or not.
    pub(super) fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let here = self.replicas.iter().filter_map(|place| place.pod.as_ref());
        here.chain(self.condemned.iter().map(|(_, pod)| pod))
    }

    /// True if the pod is running and has been ready for `minReadySeconds`.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        is_running_and_ready(pod)
            && available_at(pod, self.min_ready).is_some_and(|at| at <= self.now)
    }

    /// True if the pod is missing, not available, or terminating.
    pub(super) fn is_unavailable(&self, pod: Option<&Arc<Pod>>) -> bool {
        pod.is_none_or(|pod| !self.is_available(pod) || pod.meta.is_terminating())
    }

    /// The lowest unavailable ordinal; wanted ordinals come before condemned ones.
    pub(super) fn first_unavailable(&self) -> Option<u32> {
        let mut replicas = self.replicas.iter();
        let wanted = replicas.find(|place| self.is_unavailable(place.pod.as_ref()));
        wanted.map(|place| place.ordinal).or_else(|| {
            let mut condemned = self.condemned.iter().rev();
            let first = condemned.find(|(_, pod)| self.is_unavailable(Some(pod)));
            first.map(|(ordinal, _)| *ordinal)
        })
    }

    /// When the next pod becomes available.
    pub(super) fn next_available(&self) -> Option<Instant> {
        let running = self.pods().filter(|pod| is_running_and_ready(pod));
        let moments = running.filter_map(|pod| available_at(pod, self.min_ready));
        moments.filter(|&at| at > self.now).min()
    }

    /// Sets the counters of a status.
    pub(super) fn count(&self, current: &str, update: &str, status: &mut StatefulSetStatus) {
        let mut counts = [0; 5];
        for pod in self.pods() {
            let of = |revision| {
                !pod.meta.is_terminating() && pod.meta.label(REVISION_LABEL) == Some(revision)
            };
            let counted = [
                true,
                is_running_and_ready(pod),
                self.is_available(pod),
                of(current),
                of(update),
            ];
            for (count, is_counted) in counts.iter_mut().zip(counted) {
                *count += i32::from(is_counted);
            }
        }
        let [replicas, ready, available, of_current, of_update] = counts;
        status.replicas = replicas;
        status.ready_replicas = Some(ready);
        status.available_replicas = Some(available);
        status.current_replicas = Some(of_current);
        status.updated_replicas = Some(of_update);
    }

    /// The pods that a rolling update deletes now, from the highest ordinal down. `max_unavailable`: the limit with the
    /// gate MaxUnavailableStatefulSet.
    pub(super) fn update_victims(
        &self,
        update: &str,
        partition: usize,
        max_unavailable: Option<usize>,
    ) -> Vec<Arc<Pod>> {
        let border = partition.min(self.replicas.len());
        let updated = self.replicas[border..].iter().rev();
        let is_outdated = |pod: &&Arc<Pod>| {
            pod.meta.label(REVISION_LABEL) != Some(update) && !pod.meta.is_terminating()
        };
        if let Some(limit) = max_unavailable {
            let places = self.replicas.iter();
            let n_unavailable = places
                .filter(|place| self.is_unavailable(place.pod.as_ref()))
                .count();
            let outdated = updated.filter_map(|place| place.pod.as_ref());
            return outdated
                .filter(is_outdated)
                .take(limit.saturating_sub(n_unavailable))
                .cloned()
                .collect();
        }
        for place in updated {
            if let Some(pod) = place.pod.as_ref().filter(is_outdated) {
                return vec![Arc::clone(pod)];
            }
            if self.is_unavailable(place.pod.as_ref()) {
                break;
            }
        }
        Vec::new()
    }
}

/// True if the phase is Running and the condition Ready is True.
pub(super) fn is_running_and_ready(pod: &Pod) -> bool {
    pod.status.phase == Phase::Running && pod.is_ready()
}

/// The number of pods that may be unavailable at once, with the gate: at least 1.
pub(super) fn max_unavailable(given: Option<&IntOrString>, replicas: usize) -> usize {
    let allowed = match given {
        None => 1,
        Some(IntOrString::Int(n)) => usize::try_from(*n).unwrap_or(0),
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|n| n.parse::<usize>().ok());
            percent.unwrap_or(0).saturating_mul(replicas) / 100
        }
    };
    allowed.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: Instant = Instant::from_secs(1000);

    fn spec(fields: &Value) -> StatefulSetSpec {
        let mut spec = json!({"selector": {}, "template": {}});
        let given = fields.as_object().unwrap().clone();
        spec.as_object_mut().unwrap().extend(given);
        serde_json::from_value(spec).unwrap()
    }

    /// A pod for each word: ordinal, revision and state: `+` available, `-` pending, `!` terminating.
    fn places(fields: &Value, picture: &str) -> Places {
        let pods = picture.split_whitespace().map(|word| {
            let (ordinal, rest) = word.split_at(word.len() - 2);
            let (revision, state) = rest.split_at(1);
            let mut wire = json!({
                "metadata": {"name": format!("web-{ordinal}"), "labels": {REVISION_LABEL: revision}},
                "status": {"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:16:30Z"},
                ]},
            });
            match state {
                "+" => {}
                "-" => wire["status"] = json!({"phase": "Pending"}),
                "!" => wire["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:20:00Z"),
                other => panic!("no state {other}"),
            }
            Arc::new(Pod::of_wire(serde_json::from_value(wire).unwrap()))
        });
        let pods: Vec<Arc<Pod>> = pods.collect();
        Places::new("web", &spec(fields), pods.iter(), NOW)
    }

    fn names(pods: &[Arc<Pod>]) -> String {
        let names: Vec<&str> = pods.iter().map(|pod| &*pod.meta.name.name).collect();
        names.join(" ")
    }

    #[test]
    fn one_pod_at_a_time_is_updated_from_the_top() {
        for (picture, partition, expected) in [
            ("0a+ 1a+ 2a+", 0, "web-2"),
            ("0a+ 1a+ 2b-", 0, ""),
            ("0a+ 1a+ 2b+", 0, "web-1"),
            ("0a+ 1a+ 2a!", 0, ""),
            ("0a- 1a+ 2b+", 0, "web-1"),
            ("0a+ 1a+ 2b+", 2, ""),
            ("0a+ 1a- 2b+", 0, "web-1"),
            ("0a+ 1a+", 0, ""),
            ("0a+ 1a+ 2b+", 9, ""),
        ] {
            let places = places(&json!({"replicas": 3}), picture);
            let victims = places.update_victims("b", partition, None);
            assert_eq!(names(&victims), expected, "{picture} {partition}");
        }
    }

    #[test]
    fn with_the_gate_several_are_updated_at_once() {
        for (picture, limit, expected) in [
            ("0a+ 1a+ 2a+ 3a+", 2, "web-3 web-2"),
            ("0a+ 1a+ 2a+ 3b-", 2, "web-2"),
            ("0a+ 1a+ 2b- 3b-", 2, ""),
            ("0a- 1a+ 2a+ 3b+", 2, "web-2"),
            ("0a+ 1a+ 2b+ 3b+", 9, "web-1 web-0"),
        ] {
            let places = places(&json!({"replicas": 4}), picture);
            let victims = places.update_victims("b", 0, Some(limit));
            assert_eq!(names(&victims), expected, "{picture} {limit}");
        }
    }

    #[test]
    fn percentages_are_rounded_down_and_one_is_always_allowed() {
        for (given, replicas, expected) in [
            (None, 10, 1),
            (Some(json!(3)), 10, 3),
            (Some(json!("25%")), 10, 2),
            (Some(json!("5%")), 10, 1),
        ] {
            let given: Option<IntOrString> = given.map(|g| serde_json::from_value(g).unwrap());
            assert_eq!(max_unavailable(given.as_ref(), replicas), expected);
        }
    }

    #[test]
    fn places_and_counters() {
        let places = places(
            &json!({"replicas": 2, "ordinals": {"start": 1}}),
            "0a+ 2b! 5a- 1b+",
        );
        let condemned: Vec<u32> = places.condemned.iter().map(|(o, _)| *o).collect();
        assert_eq!(condemned, [5, 0]);
        assert_eq!(places.first_unavailable(), Some(2));
        let mut status = StatefulSetStatus::default();
        places.count("a", "b", &mut status);
        let counts = [
            Some(status.replicas),
            status.ready_replicas,
            status.available_replicas,
            status.current_replicas,
            status.updated_replicas,
        ];
        assert_eq!(counts, [4, 3, 3, 2, 1].map(Some));
    }

    #[test]
    fn min_ready_seconds_delay_availability() {
        // Ready since 990.
        for (seconds, unavailable, next) in [(10, None, None), (11, Some(0), Some(1001))] {
            let places = places(&json!({"replicas": 1, "minReadySeconds": seconds}), "0a+");
            assert_eq!(places.first_unavailable(), unavailable);
            assert_eq!(places.next_available(), next.map(Instant::from_secs));
        }
    }
}
