//! Which pods a ReplicaSet's controller deletes when there are too many.
//!
//! The simulated controller and `--what-if scale=N` choose by it, and so it is known what deletion costs can do: they
//! decide within a [`Stage`] only.
//!
//! Source: spec/controllers §1.3.

mod ordered;

use std::cmp::{Ordering, Reverse};

use strew_model::Prng;
use strew_model::time::Instant;

pub use self::ordered::{Member, Ordered};

/// The annotation with a pod's deletion cost; pods with lower costs are deleted first.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// How far a pod has come in its start. Only active pods are deleted, so ended ones have no stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// `status.phase` is Pending.
    Pending,
    /// `status.phase` is Unknown.
    Unknown,
    /// `status.phase` is Running.
    Running,
}

/// Rules 1 to 3: pods of lower stages are deleted first, whatever their costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stage {
    /// Rule 1: it is assigned to a node.
    pub is_assigned: bool,
    /// Rule 2.
    pub progress: Progress,
    /// Rule 3: its condition Ready is True.
    pub is_ready: bool,
}

impl Stage {
    /// Its place among all stages: of two, the lower one has the lower place.
    pub fn place(self) -> u32 {
        let [assigned, ready] = [self.is_assigned, self.is_ready].map(u32::from);
        assigned * 6 + self.progress as u32 * 2 + ready
    }
}

/// What decides about a pod, beside its identity and its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// `metadata.creationTimestamp`
    pub created: Instant,
    /// How far its start has come.
    pub progress: Progress,
    /// Since when it has been ready; `None` if it is not.
    pub ready_since: Option<Instant>,
    /// Its deletion cost; 0 without one.
    pub cost: i32,
    /// The most restarts of one of its containers, and of one of its sidecars.
    pub restarts: (u32, u32),
}

/// Of a pod about which nothing is known: it is ready, and as old as all others of these.
impl Default for Life {
    fn default() -> Self {
        Self {
            created: Instant::default(),
            progress: Progress::Running,
            ready_since: Some(Instant::default()),
            cost: 0,
            restarts: (0, 0),
        }
    }
}

/// The properties of a pod by which it is chosen.
#[derive(Debug, Clone, Copy)]
pub struct Properties<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// True if it is assigned to a node.
    pub is_assigned: bool,
    /// The rest.
    pub life: Life,
}

impl Properties<'_> {
    fn stage(&self) -> Stage {
        Stage {
            is_assigned: self.is_assigned,
            progress: self.life.progress,
            is_ready: self.life.ready_since.is_some(),
        }
    }

    fn foremost(&self, rank: usize, now: Instant) -> Foremost {
        let Life {
            cost, ready_since, ..
        } = self.life;
        let bucket = ready_since.map_or(0, |since| bucket(since, now));
        (self.stage(), cost, Reverse(rank), bucket)
    }
}

/// A pod that may be deleted.
#[derive(Debug, Clone)]
pub struct Candidate<'a, P> {
    /// The pod.
    pub pod: P,
    /// The number of related pods on its node.
    pub rank: usize,
    /// What decides.
    pub properties: Properties<'a>,
}

/// Rules 1 to 5, and the bucket of rule 6: smaller keys are deleted first.
type Foremost = (Stage, i32, Reverse<usize>, i32);

impl<P> Candidate<'_, P> {
    fn foremost(&self, now: Instant) -> Foremost {
        self.properties.foremost(self.rank, now)
    }

    /// Rules 6 (by uid) to 8. This is no total order if some times are equal and others are not: of three pods, each
    /// may come before the next, in a circle.
    fn compare_hindmost<Q>(&self, other: &Candidate<'_, Q>, now: Instant) -> Ordering {
        let by_uid = || self.properties.uid.cmp(other.properties.uid);
        let (a, b) = (&self.properties.life, &other.properties.life);
        if a.ready_since != b.ready_since {
            return by_uid();
        }
        let by_restarts = Reverse(a.restarts).cmp(&Reverse(b.restarts));
        by_restarts.then_with(|| match a.created == b.created {
            true => Ordering::Equal,
            false => {
                let [of_a, of_b] = [a, b].map(|pod| bucket(pod.created, now));
                of_a.cmp(&of_b).then_with(by_uid)
            }
        })
    }
}

/// The cost in an annotation; 0 if it is no int32 in Go's format.
pub fn cost_of(annotation: Option<&str>) -> i32 {
    let value = annotation.unwrap_or_default();
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
pub fn compare<P, Q>(a: &Candidate<'_, P>, b: &Candidate<'_, Q>, now: Instant) -> Ordering {
    let foremost = a.foremost(now).cmp(&b.foremost(now));
    foremost.then_with(|| a.compare_hindmost(b, now))
}

/// The `n` pods to delete. Where the rules leave a choice, `dice` decides.
///
/// Cost: linear in the number of pods on average.
pub fn first_to_go<P: Copy>(
    candidates: Vec<Candidate<'_, P>>,
    n: usize,
    now: Instant,
    dice: &mut Prng,
) -> Vec<P> {
    let keys: Vec<Foremost> = candidates.iter().map(|c| c.foremost(now)).collect();
    let mut chosen: Vec<P> = Vec::with_capacity(n.min(keys.len()));
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
fn settle_ties<P: Copy>(
    mut open: Vec<Candidate<'_, P>>,
    mut n: usize,
    now: Instant,
    dice: &mut Prng,
    chosen: &mut Vec<P>,
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
    use strew_model::time::Span;

    #[test]
    fn the_place_of_a_stage_is_its_order() {
        let mut stages = Vec::new();
        for is_assigned in [false, true] {
            for progress in [Progress::Pending, Progress::Unknown, Progress::Running] {
                for is_ready in [false, true] {
                    stages.push(Stage {
                        is_assigned,
                        progress,
                        is_ready,
                    });
                }
            }
        }
        assert!(stages.is_sorted());
        let places: Vec<u32> = stages.into_iter().map(Stage::place).collect();
        assert!(places.into_iter().eq(0..12));
    }

    #[test]
    fn buckets_end_at_powers_of_two() {
        const NOW: Instant = Instant::from_secs(1_000_000);
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
            assert_eq!(cost_of(Some(value)), expected, "{value:?}");
        }
        assert_eq!(cost_of(None), 0);
    }
}
