//! Makes a Job's new pods, and chooses the surplus ones to delete.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use strew_apiserver::object::{Job, Meta, Name, Owner, Pod, PodStatus};

use super::policy::Verdict;
use super::terms::{INDEX, INDEX_FAILURES, INDEX_IGNORED, TRACKING, Terms, number};

/// The longest prefix of a generated name.
const BASE_MAX: usize = 58;

/// A new pod. `replaced`: the failed pod of its index that it replaces, with a limit per index.
pub(super) fn pod(
    job: &Job,
    terms: &Terms<'_>,
    spec: &Arc<PodSpec>,
    index: Option<u32>,
    replaced: Option<&Pod>,
) -> Pod {
    let template = job.spec.template.metadata.clone().unwrap_or_default();
    let mut labels = template.labels.unwrap_or_default();
    for prefix in ["", "batch.kubernetes.io/"] {
        labels.insert(format!("{prefix}job-name"), job.meta.name.name.to_string());
        labels.insert(format!("{prefix}controller-uid"), job.meta.uid.to_string());
    }
    let mut annotations = template.annotations.unwrap_or_default();
    let mut spec = Arc::clone(spec);
    if let Some(index) = index {
        labels.insert(INDEX.to_owned(), index.to_string());
        annotations.insert(INDEX.to_owned(), index.to_string());
        Arc::make_mut(&mut spec).hostname = Some(format!("{}-{index}", job.meta.name.name));
    }
    if terms.limit_per_index.is_some() {
        let (mut failures, mut ignored) = (0, 0);
        if let Some(replaced) = replaced {
            failures = number(replaced, INDEX_FAILURES);
            ignored = number(replaced, INDEX_IGNORED);
            match terms.verdict(replaced) {
                Verdict::Ignore => ignored += 1,
                _ => failures += 1,
            }
        }
        annotations.insert(INDEX_FAILURES.to_owned(), failures.to_string());
        if ignored > 0 {
            annotations.insert(INDEX_IGNORED.to_owned(), ignored.to_string());
        }
    }
    let mut finalizers = template.finalizers.unwrap_or_default();
    finalizers.push(TRACKING.to_owned());
    let mut meta = Meta::new(Name::new(Arc::clone(&job.meta.name.namespace), ""));
    meta.generate_name = Some(base_name(&job.meta.name.name, index).into());
    meta.labels = Arc::new(labels);
    meta.annotations = Arc::new(annotations);
    meta.finalizers = finalizers.into();
    meta.owners = [owner(job)].into();
    let node = spec.node_name.clone().filter(|node| !node.is_empty());
    if node.is_some() {
        Arc::make_mut(&mut spec).node_name = None;
    }
    Pod {
        meta,
        spec,
        node: node.map(Into::into),
        status: PodStatus::default(),
    }
}

/// The owner reference to a controlling Job.
pub(super) fn owner(job: &Job) -> Owner {
    Owner {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: Arc::clone(&job.meta.name.name),
        uid: Arc::clone(&job.meta.uid),
        is_controller: true,
        blocks_deletion: true,
    }
}

fn base_name(job: &str, index: Option<u32>) -> String {
    let end = match index {
        Some(index) => format!("-{index}-"),
        None => "-".to_owned(),
    };
    let room = BASE_MAX.saturating_sub(end.len());
    let start: String = job.chars().take(room).collect();
    start + &end
}

/// The pods to delete, at least `at_least` if there are that many. Pods come first whose index another pod has too, or
/// that have no index.
pub(super) fn to_remove<'a>(
    terms: &Terms<'_>,
    active: &[&'a Arc<Pod>],
    at_least: usize,
) -> Vec<&'a Arc<Pod>> {
    let mut left = active.to_vec();
    left.sort_by_key(|pod| rank(pod));
    let mut removed = Vec::new();
    if terms.is_indexed {
        let mut n_of_index = BTreeMap::<u32, usize>::new();
        for index in left.iter().filter_map(|pod| terms.index(pod)) {
            *n_of_index.entry(index).or_default() += 1;
        }
        left.retain(|pod| {
            let n = terms
                .index(pod)
                .and_then(|index| n_of_index.get_mut(&index));
            let stays = match n {
                Some(1) => true,
                Some(n) => {
                    *n -= 1;
                    false
                }
                None => false,
            };
            if !stays {
                removed.push(*pod);
            }
            stays
        });
    }
    let n_more = at_least.saturating_sub(removed.len());
    removed.extend(left.into_iter().take(n_more));
    removed
}

/// The sort key: smaller keys are deleted first.
fn rank(pod: &Pod) -> impl Ord + use<> {
    (
        pod.node.is_some(),
        pod.status.phase,
        pod.is_ready(),
        Reverse(pod.ready_since()),
        Reverse(pod.status.restarts),
        Reverse(pod.meta.created),
    )
}

/// The lowest indexes without a pod that are not done, at most as many as requested.
pub(super) fn pending_indexes(
    n_indexes: u32,
    taken: &BTreeSet<u32>,
    is_done: impl Fn(u32) -> bool,
    n_max: usize,
) -> Vec<u32> {
    let free = (0..n_indexes).filter(|index| !taken.contains(index) && !is_done(*index));
    free.take(n_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use strew_apiserver::object::{Phase, Truth};
    use strew_model::time::Instant;

    fn active(text: &str) -> Arc<Pod> {
        let mut words = text.split_whitespace();
        let mut meta = Meta::new(Name::new("ns", words.next().unwrap()));
        let mut pod_spec = (None, PodStatus::default());
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let at = || Instant::from_secs(value.parse().unwrap());
            match key {
                "bound" => pod_spec.0 = Some("n".into()),
                "running" => pod_spec.1.phase = Phase::Running,
                "ready" => {
                    pod_spec.1.set_condition("Ready", Truth::True, "", "", at());
                }
                "created" => meta.created = at(),
                "index" => meta.annotate(INDEX, value),
                _ => panic!("{word}"),
            }
        }
        Arc::new(Pod {
            meta,
            spec: Arc::default(),
            node: pod_spec.0,
            status: pod_spec.1,
        })
    }

    #[track_caller]
    fn check(spec: serde_json::Value, n: usize, pods: &[&str], expected: &str) {
        let pods: Vec<_> = pods.iter().map(|text| active(text)).collect();
        let spec = serde_json::from_value(spec).unwrap();
        let removed = to_remove(&Terms::of(&spec), &pods.iter().collect::<Vec<_>>(), n);
        let names: Vec<&str> = removed.iter().map(|pod| &*pod.meta.name.name).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn what_has_come_least_far_goes_first() {
        check(
            json!({"template": {}}),
            6,
            &[
                "a bound running ready=50 created=1",
                "b bound running ready=60 created=2",
                "c bound running created=3",
                "d bound created=4",
                "e created=5",
                "f created=6",
                "g bound running ready=40 created=9",
            ],
            "f e d c b a",
        );
    }

    #[test]
    fn doubled_and_foreign_indexes_go_even_if_nothing_else_must() {
        check(
            json!({"template": {}, "completionMode": "Indexed", "completions": 3, "parallelism": 3}),
            0,
            &[
                "a index=0 bound running",
                "b index=0",
                "c index=1",
                "d index=7 bound running",
                "e bound running",
            ],
            "b d e",
        );
    }

    #[test]
    fn long_names_leave_room_for_the_index() {
        let long = "x".repeat(63);
        for (job, index, expected) in [
            ("web", None, "web-".to_owned()),
            ("web", Some(12), "web-12-".to_owned()),
            (&long, None, format!("{}-", "x".repeat(57))),
            (&long, Some(12), format!("{}-12-", "x".repeat(54))),
        ] {
            assert_eq!(base_name(job, index), expected);
        }
    }

    #[test]
    fn the_lowest_free_indexes_are_next() {
        let taken = [0, 2].into();
        assert_eq!(pending_indexes(7, &taken, |index| index == 3, 3), [1, 4, 5]);
        assert_eq!(pending_indexes(7, &taken, |_| true, 3), [0; 0]);
    }
}
