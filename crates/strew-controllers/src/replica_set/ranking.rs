//! Chooses the pods that a scale-down deletes.
//!
//! Source: spec/controllers §1.3.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use strew_apiserver::object::{Phase, Pod};
use strew_model::Prng;
use strew_model::time::Instant;

/// The annotation with a pod's deletion cost; pods with lower costs are deleted first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// A pod that may be deleted, with the inputs of the rules.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// The pod.
    pub pod: &'a Arc<Pod>,
    /// The number of related pods on its node.
    pub rank: usize,
    cost: i32,
    ready_since: Option<Instant>,
}

/// Rules 1 to 5, and the bucket of rule 6: smaller keys are deleted first.
type Foremost = (bool, Phase, bool, i32, Reverse<usize>, i32);

impl<'a> Candidate<'a> {
    /// `rank`: the number of related pods on its node.
    pub fn new(pod: &'a Arc<Pod>, rank: usize) -> Self {
        Self {
            pod,
            rank,
            cost: deletion_cost(pod.meta.annotation(DELETION_COST)),
            ready_since: pod.ready_since(),
        }
    }

    fn foremost(&self, now: Instant) -> Foremost {
        (
            self.pod.node.is_some(),
            self.pod.status.phase,
            self.ready_since.is_some(),
            self.cost,
            Reverse(self.rank),
            self.ready_since.map_or(0, |since| bucket(since, now)),
        )
    }

    /// Rules 6 (by uid) to 8. This is no total order if some times are equal and others are not: of three pods, each
    /// may come before the next, in a circle.
    fn compare_hindmost(&self, other: &Self, now: Instant) -> Ordering {
        let (a, b) = (self.pod, other.pod);
        if self.ready_since != other.ready_since {
            return a.meta.uid.cmp(&b.meta.uid);
        }
        let restarts = |pod: &Pod| Reverse((pod.status.restarts, pod.status.sidecar_restarts));
        let by_restarts = restarts(a).cmp(&restarts(b));
        by_restarts.then_with(|| {
            let buckets = [a, b].map(|pod| bucket(pod.meta.created, now));
            match a.meta.created == b.meta.created {
                true => Ordering::Equal,
                false => buckets[0]
                    .cmp(&buckets[1])
                    .then_with(|| a.meta.uid.cmp(&b.meta.uid)),
            }
        })
    }
}

/// The value of the annotation; 0 if it is no int32 in Go's format.
fn deletion_cost(value: Option<&str>) -> i32 {
    let value = value.unwrap_or_default();
    let is_plain = value == "0" || value.starts_with(|c| matches!(c, '-' | '1'..='9'));
    match is_plain {
        true => value.parse().unwrap_or(0),
        false => 0,
    }
}

/// floor(log2(age in nanoseconds)); -1 without an age.
fn bucket(since: Instant, now: Instant) -> i32 {
    let age = now.since(since).0.checked_ilog2();
    age.and_then(|log| i32::try_from(log).ok()).unwrap_or(-1)
}

/// Which of two pods is deleted first, by rules 1 to 8. `Equal`: rule 9 decides.
pub fn compare(a: &Candidate<'_>, b: &Candidate<'_>, now: Instant) -> Ordering {
    let foremost = a.foremost(now).cmp(&b.foremost(now));
    foremost.then_with(|| a.compare_hindmost(b, now))
}

/// The `n` pods to delete. Where the rules leave a choice, `dice` decides.
///
/// Cost: linear in the number of pods on average.
pub fn first_to_go<'a>(
    candidates: Vec<Candidate<'a>>,
    n: usize,
    now: Instant,
    dice: &mut Prng,
) -> Vec<&'a Arc<Pod>> {
    let keys: Vec<Foremost> = candidates.iter().map(|c| c.foremost(now)).collect();
    let mut chosen: Vec<&'a Arc<Pod>> = Vec::with_capacity(n.min(keys.len()));
    let border = (n < keys.len()).then(|| {
        // These keys have a total order, as the standard library's selection demands.
        *keys.clone().select_nth_unstable(n).1
    });
    let mut tied = Vec::new();
    for (key, candidate) in keys.into_iter().zip(candidates) {
        match border.map_or(Ordering::Less, |border| key.cmp(&border)) {
            Ordering::Less => chosen.push(candidate.pod),
            Ordering::Equal => tied.push(candidate),
            Ordering::Greater => (),
        }
    }
    let n_left = n.saturating_sub(chosen.len());
    settle_ties(tied, n_left, now, dice, &mut chosen);
    chosen
}

/// Rules 6 to 9, by partitioning around a pivot, which needs no total order.
fn settle_ties<'a>(
    mut open: Vec<Candidate<'a>>,
    mut n: usize,
    now: Instant,
    dice: &mut Prng,
    chosen: &mut Vec<&'a Arc<Pod>>,
) {
    while n > 0 && !open.is_empty() {
        let pivot = open[open.len() / 2].clone();
        let (mut before, mut equal, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in open {
            match candidate.compare_hindmost(&pivot, now) {
                Ordering::Less => before.push(candidate),
                Ordering::Equal => equal.push(candidate),
                Ordering::Greater => after.push(candidate),
            }
        }
        if n < before.len() {
            open = before;
            continue;
        }
        n -= before.len();
        chosen.extend(before.iter().map(|c| c.pod));
        if n < equal.len() {
            dice.shuffle(&mut equal);
        }
        equal.truncate(n);
        n -= equal.len();
        chosen.extend(equal.iter().map(|c| c.pod));
        open = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod_of;
    use strew_apiserver::object::Truth;
    use strew_model::time::Span;

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
            let (a, b) = (Candidate::new(&a, 0), Candidate::new(&b, 0));
            assert_eq!(compare(&a, &b, NOW), Ordering::Less, "{rule}");
            assert_eq!(compare(&b, &a, NOW), Ordering::Greater, "{rule}");
        }
    }

    #[test]
    fn a_fuller_node_comes_after_the_cost_and_before_the_age() {
        let (a, b) = (pod("z", |p| ready(p, 9000)), pod("a", |p| ready(p, 1)));
        let first = |ranks: [usize; 2]| {
            compare(
                &Candidate::new(&a, ranks[0]),
                &Candidate::new(&b, ranks[1]),
                NOW,
            )
        };
        assert_eq!(first([2, 1]), Ordering::Less);
        assert_eq!(first([1, 1]), Ordering::Greater);
        let cheap = pod("c", |p| cost(p, "-1"));
        let order = compare(&Candidate::new(&a, 9), &Candidate::new(&cheap, 0), NOW);
        assert_eq!(order, Ordering::Greater);
    }

    #[test]
    fn buckets_end_at_powers_of_two() {
        let millis = |n| bucket(NOW - Span::from_millis(n), NOW);
        let table = [
            (1073, 29),
            (1074, 30),
            (2147, 30),
            (2148, 31),
            (68_719, 35),
            (68_720, 36),
        ];
        for (age, expected) in table {
            assert_eq!(millis(age), expected, "{age} ms");
        }
        assert_eq!(bucket(NOW + Span::from_secs(1), NOW), -1);
        assert_eq!(bucket(NOW, NOW), -1);
    }

    #[test]
    fn in_one_bucket_the_uid_decides_and_not_the_age() {
        let (a, b) = (pod("a", |p| ready(p, 130)), pod("b", |p| ready(p, 70)));
        let order = compare(&Candidate::new(&a, 0), &Candidate::new(&b, 0), NOW);
        assert_eq!(order, Ordering::Less);
        let (a, b) = (pod("a", |p| created(p, 130)), pod("b", |p| created(p, 70)));
        let order = compare(&Candidate::new(&a, 0), &Candidate::new(&b, 0), NOW);
        assert_eq!(order, Ordering::Less);
    }

    #[test]
    fn costs_are_read_as_go_reads_them() {
        for (value, expected) in [
            ("5", 5),
            ("-5", -5),
            ("-05", -5),
            ("0", 0),
            ("00", 0),
            ("+5", 0),
            ("2147483647", i32::MAX),
            ("2147483648", 0),
            ("1e3", 0),
            ("", 0),
        ] {
            assert_eq!(deletion_cost(Some(value)), expected, "{value:?}");
        }
        assert_eq!(deletion_cost(None), 0);
    }

    fn go(pods: &[Arc<Pod>], n: usize, seed: u64) -> Vec<String> {
        let candidates = pods.iter().map(|pod| Candidate::new(pod, 0)).collect();
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
            let [a, b] = [i, j].map(|i: usize| Candidate::new(&circle[i], 0));
            compare(&a, &b, NOW)
        };
        assert_eq!([order(0, 1), order(1, 2), order(2, 0)], [Ordering::Less; 3]);
        for n in 0..=3 {
            assert_eq!(go(&circle, n, 1).len(), n);
        }
    }
}
