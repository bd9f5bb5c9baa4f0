//! Chooses the pods that a scale-down deletes: the stored pods for the rules of [`strew_cluster::scale_down`].
//!
//! Source: spec/controllers §1.3.

use std::sync::Arc;

use strew_apiserver::object::Pod;
use strew_cluster::scale_down::{self, Properties};

pub use strew_cluster::scale_down::{compare, first_to_go};

/// A pod that may be deleted.
pub type Candidate<'a> = scale_down::Candidate<'a, &'a Arc<Pod>>;

/// A candidate; `rank`: the number of related pods on its node.
pub fn candidate(pod: &Arc<Pod>, rank: usize) -> Candidate<'_> {
    let properties = Properties {
        uid: &pod.meta.uid,
        is_assigned: pod.node.is_some(),
        life: pod.life(),
    };
    Candidate {
        pod,
        rank,
        properties,
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::testing::pod_of;
    use strew_apiserver::object::{Phase, Truth};
    use strew_cluster::scale_down::DELETION_COST;
    use strew_model::Prng;
    use strew_model::time::{Instant, Span};

    const NOW: Instant = Instant::from_secs(1_000_000);

    /// A ready pod, created and ready for this many seconds.
    fn pod(uid: &str, edit: impl FnOnce(&mut Pod)) -> Arc<Pod> {
        let mut pod = pod_of("owner", uid);
        pod.meta.uid = uid.into();
        pod.meta.created = NOW - Span::from_secs(100);
        pod.node = Some("node".into());
        pod.status.phase = Phase::Running;
        ready(&mut pod, 100);
        edit(&mut pod);
        Arc::new(pod)
    }

    fn ready(pod: &mut Pod, secs: u64) {
        pod.status.conditions.clear();
        let since = NOW - Span::from_secs(secs);
        pod.status
            .set_condition("Ready", Truth::True, "", "", since);
    }

    fn created(pod: &mut Pod, secs: u64) {
        pod.meta.created = NOW - Span::from_secs(secs);
    }

    fn cost(pod: &mut Pod, value: &str) {
        pod.meta.annotate(DELETION_COST, value);
    }

    type Edit = fn(&mut Pod);

    #[test]
    fn the_first_rule_that_distinguishes_decides() {
        let table: [(&str, Edit, Edit); 13] = [
            (
                "1 not assigned",
                |p| p.node = None,
                |p| p.status.phase = Phase::Pending,
            ),
            (
                "2 Pending",
                |p| p.status.phase = Phase::Pending,
                |p| p.status.phase = Phase::Unknown,
            ),
            (
                "2 Unknown",
                |p| p.status.phase = Phase::Unknown,
                |p| p.status.conditions.clear(),
            ),
            (
                "3 not ready",
                |p| p.status.conditions.clear(),
                |p| cost(p, "-5"),
            ),
            ("4 cheaper", |p| cost(p, "-1"), |p| cost(p, "0")),
            ("4 a leading plus is 0", |p| cost(p, "+9"), |p| cost(p, "1")),
            ("4 a leading zero is 0", |p| cost(p, "09"), |p| cost(p, "1")),
            ("6 younger bucket", |p| ready(p, 60), |p| ready(p, 70)),
            (
                "6 before restarts",
                |p| ready(p, 60),
                |p| p.status.restarts = 9,
            ),
            (
                "7 restarts",
                |p| p.status.restarts = 2,
                |p| {
                    p.status.restarts = 1;
                    p.status.sidecar_restarts = 9;
                },
            ),
            (
                "7 sidecars",
                |p| p.status.sidecar_restarts = 1,
                |p| created(p, 1),
            ),
            ("8 younger bucket", |p| created(p, 60), |p| created(p, 70)),
            (
                "8 created in the future",
                |p| p.meta.created = NOW,
                |p| created(p, 1),
            ),
        ];
        for (rule, first, second) in table {
            // By uid the second would come first, but the uid must not count here.
            let (a, b) = (pod("z", first), pod("a", second));
            let (a, b) = (candidate(&a, 0), candidate(&b, 0));
            assert_eq!(compare(&a, &b, NOW), Ordering::Less, "{rule}");
            assert_eq!(compare(&b, &a, NOW), Ordering::Greater, "{rule}");
        }
    }

    #[test]
    fn a_fuller_node_comes_after_the_cost_and_before_the_age() {
        let (a, b) = (pod("z", |p| ready(p, 9000)), pod("a", |p| ready(p, 1)));
        let first =
            |ranks: [usize; 2]| compare(&candidate(&a, ranks[0]), &candidate(&b, ranks[1]), NOW);
        assert_eq!(first([2, 1]), Ordering::Less);
        assert_eq!(first([1, 1]), Ordering::Greater);
        let cheap = pod("c", |p| cost(p, "-1"));
        let order = compare(&candidate(&a, 9), &candidate(&cheap, 0), NOW);
        assert_eq!(order, Ordering::Greater);
    }

    #[test]
    fn in_one_bucket_the_uid_decides_and_not_the_age() {
        let (a, b) = (pod("a", |p| ready(p, 130)), pod("b", |p| ready(p, 70)));
        let order = compare(&candidate(&a, 0), &candidate(&b, 0), NOW);
        assert_eq!(order, Ordering::Less);
        let (a, b) = (pod("a", |p| created(p, 130)), pod("b", |p| created(p, 70)));
        let order = compare(&candidate(&a, 0), &candidate(&b, 0), NOW);
        assert_eq!(order, Ordering::Less);
    }

    fn go(pods: &[Arc<Pod>], n: usize, seed: u64) -> Vec<String> {
        let candidates = pods.iter().map(|pod| candidate(pod, 0)).collect();
        let gone = first_to_go(candidates, n, NOW, &mut Prng::new(seed));
        let mut uids: Vec<String> = gone.iter().map(|p| p.meta.uid.to_string()).collect();
        uids.sort();
        uids
    }

    #[test]
    fn the_selection_is_the_head_of_the_order_for_every_number() {
        // All ages differ; the order of names does not match.
        let age = |i: u64| 70 + (i * 37) % 60;
        let uid = |i: u64| format!("{:02}", (i * 29) % 60);
        let pods: Vec<_> = (0..60)
            .map(|i| pod(&uid(i), |p| ready(p, age(i))))
            .collect();
        for n in 0..=60 {
            let expected: Vec<String> = (0..n).map(|i| format!("{i:02}")).collect();
            assert_eq!(go(&pods, n, 1), expected);
        }
    }

    #[test]
    fn ties_are_drawn_and_only_ties() {
        let mut pods: Vec<_> = (0..20)
            .map(|i| pod(&format!("tied-{i:02}"), |_| ()))
            .collect();
        pods.push(pod("unassigned", |p| p.node = None));
        pods.push(pod("young", |p| ready(p, 60)));
        let drawn: Vec<_> = (0..5).map(|seed| go(&pods, 6, seed)).collect();
        for uids in &drawn {
            assert!(uids.contains(&"unassigned".to_owned()) && uids.contains(&"young".to_owned()));
            assert_eq!(uids.len(), 6);
        }
        assert!(drawn.iter().any(|uids| *uids != drawn[0]));
        assert_eq!(go(&pods, 6, 3), drawn[3]);
        assert_eq!(go(&pods, 22, 1).len(), 22);
    }

    #[test]
    fn rules_that_are_no_order_still_give_as_many_as_asked() {
        // Rule 6 by uid: a < b and b < c; but rule 7 says c < a, since these two became ready at the same time.
        let circle = [
            pod("a", |_| ()),
            pod("b", |p| ready(p, 101)),
            pod("c", |p| p.status.restarts = 1),
        ];
        let order = |i: usize, j: usize| {
            let [a, b] = [i, j].map(|i: usize| candidate(&circle[i], 0));
            compare(&a, &b, NOW)
        };
        assert_eq!([order(0, 1), order(1, 2), order(2, 0)], [Ordering::Less; 3]);
        for n in 0..=3 {
            assert_eq!(go(&circle, n, 1).len(), n);
        }
    }
}
