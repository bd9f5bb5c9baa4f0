//! When the controller writes: the first of several changes at once, then less and less often while they keep coming.

use strew_model::{Instant, Span};
use strew_workloadspread::controller::{Effect, Input, Limits, Outcome};
use strew_workloadspread::{NoPatches, WorkloadFact};

use crate::desk::{self, Desk};
use crate::world::*;

/// A controller that has written nothing for a minute, with its writes from then on.
struct Quiet {
    desk: Desk,
    web: WorkloadFact,
    began: Instant,
    /// Milliseconds since the beginning.
    writes: Vec<u64>,
}

impl Quiet {
    fn new() -> Self {
        let words = words();
        let web = workload(words.web(), 3);
        let ws = spread(words.web(), vec![subset("a", None)]);
        let mut desk = Desk::with(Limits::production(), &words, ws, std::slice::from_ref(&web));
        desk.run();
        desk.pass(60);
        let began = desk.now;
        Self {
            desk,
            web,
            began,
            writes: Vec::new(),
        }
    }

    fn run(&mut self) {
        let before = self.desk.writes;
        self.desk.run();
        for _ in before..self.desk.writes {
            self.writes
                .push(self.desk.now.since(self.began).0 / 1_000_000);
        }
    }

    /// Lets time pass until then, with every wake-up on the way.
    fn until(&mut self, ms: u64) {
        let end = self.began + Span::from_millis(ms);
        while let Some(wake) = self.desk.machine.next_wake().filter(|wake| *wake < end) {
            self.desk.now = wake.max(self.desk.now);
            self.desk.tell(Input::Tick);
            self.run();
        }
        self.desk.now = end;
        self.desk.tell(Input::Tick);
        self.run();
    }

    /// A pod with the right deletion cost is added.
    fn add(&mut self, name: &str) {
        let mut pod = desk::pod(&self.web, name, Some("a"));
        pod.cost = Some("100".into());
        self.desk.add(pod);
        self.run();
    }
}

/// The times at which pods come, and the times of writes, in milliseconds.
#[track_caller]
fn check(changes: &[u64], writes: &[u64]) {
    let mut quiet = Quiet::new();
    for (i, ms) in changes.iter().enumerate() {
        quiet.until(*ms);
        quiet.add(&format!("p{i}"));
    }
    quiet.until(60_000);
    assert_eq!(quiet.writes, writes, "{changes:?}");
    assert_eq!(quiet.desk.overall(), [format!("a {}/-1", changes.len())]);
    assert!(quiet.desk.machine.is_at_rest());
}

#[test]
fn the_first_change_is_written_at_once_and_others_after_a_pause_that_grows() {
    check(&[0], &[0]);
    check(&[0, 0, 0], &[0, 40]);
    check(&[0, 10, 39], &[0, 40]);
    check(&[0, 10, 50, 130], &[0, 40, 120, 280]);
    // A pause that ended longer ago than it lasted is forgotten.
    check(&[0, 79, 158], &[0, 79, 159]);
    check(&[0, 80, 90], &[0, 80, 120]);
    check(
        &[0, 10, 50, 130, 1000, 1010],
        &[0, 40, 120, 280, 1000, 1040],
    );
}

/// 20 pods a second is what a controller manager creates by default.
#[test]
fn while_many_pods_come_few_writes_report_them() {
    let burst = |n: u64, every_ms: u64| {
        let mut quiet = Quiet::new();
        for i in 0..n {
            quiet.until(i * every_ms);
            quiet.add(&format!("p{i}"));
        }
        let last = (n - 1) * every_ms;
        quiet.until(last + 1_000);
        assert_eq!(quiet.desk.overall(), [format!("a {n}/-1")], "1 s later");
        quiet.writes.len()
    };
    assert_eq!(burst(2_000, 5), 15);
    assert_eq!(burst(400, 50), 25);
}

/// Admission wrote, and its pods may wait for its next write: the controller pauses for it.
#[test]
fn after_a_conflict_the_first_pause_alone_passes() {
    let mut quiet = Quiet::new();
    quiet.desk.faults = vec![Outcome::Conflict];
    quiet.add("p0");
    quiet.until(39);
    assert_eq!(quiet.writes, [0; 0]);
    quiet.until(60_000);
    assert_eq!(quiet.writes, [40]);
    assert_eq!(quiet.desk.machine.counters().conflicts, 1);
}

#[test]
fn a_conflict_while_changes_keep_coming_costs_no_long_pause() {
    let mut quiet = Quiet::new();
    for i in 0..1_000 {
        quiet.until(i * 5);
        quiet.add(&format!("p{i}"));
    }
    let last = *quiet.writes.last().expect("a write");
    quiet.desk.faults = vec![Outcome::Conflict];
    quiet.until(last + 1_100);
    assert_eq!(quiet.writes.last(), Some(&(last + 1_040)));
}

#[test]
fn what_comes_during_a_write_waits_for_the_pause() {
    let mut quiet = Quiet::new();
    quiet.desk.change(|ws| ws.generation += 1);
    let writing = quiet.desk.machine.poll_effect(&mut NoPatches);
    let Some(Effect::WriteStatus { id, .. }) = writing else {
        panic!("a write: {writing:?}");
    };
    quiet.add("p0");
    quiet.desk.tell(Input::Outcome(id, Outcome::Ok));
    quiet.until(39);
    assert_eq!(quiet.writes, [0; 0]);
    quiet.until(40);
    assert_eq!(quiet.writes, [40]);
}
