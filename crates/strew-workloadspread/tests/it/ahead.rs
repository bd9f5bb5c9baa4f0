//! Slots taken ahead: who comes fast waits for nobody, and subsets fill as if one replica took one pod at a time.

use std::sync::Arc;

use strew_model::{Prng, Span};
use strew_workloadspread::NoPatches;
use strew_workloadspread::admission::{Effect, Input, Outcome};
use strew_workloadspread::slot::taken_by;

use crate::replicas::*;
use crate::world::*;

#[test]
fn who_comes_at_a_steady_pace_waits_for_no_write() {
    for gap_ms in [10, 3] {
        let mut replicas = Replicas::new(1, vec![subset("a", count(10_000))]);
        replicas.come(1_000, gap_ms);
        replicas.pass(100);
        assert_eq!(replicas.counts(), [("a", 1_000)]);
        let waited = replicas.waited.iter().filter(|ms| **ms > 1).count();
        assert!(waited <= 5, "every {gap_ms} ms: {waited} waited");
        let writes = replicas.writes;
        assert!(writes <= 20, "every {gap_ms} ms: {writes} writes");
    }
}

/// As a controller manager asks for the pods of a ReplicaSet: 500 at a time, in batches of 1, 2, 4… 256, each when the one
/// before is answered; from an API server whose writes take long, while the controller of WorkloadSpreads writes, too.
#[test]
fn slots_last_until_a_slow_write_is_done() {
    for (pace, longer_at_most) in [(QUICK, 50), (BUSY, 2_500)] {
        let subsets = vec![
            subset("a", count(666)),
            subset("b", count(666)),
            subset("c", count(10_000)),
        ];
        let mut replicas = Replicas::of(1, 2_000, subsets);
        replicas.pace = pace;
        let mut left = 2_000;
        while left > 0 {
            let mut of_this_sync = left.min(500);
            left -= of_this_sync;
            let mut batch = 1;
            while of_this_sync > 0 {
                let n = batch.min(of_this_sync);
                of_this_sync -= n;
                batch *= 2;
                for _ in 0..n {
                    replicas.ask(0, None);
                    replicas.pass_synced(5);
                }
                while replicas.waited.len() < replicas.asked_at.len() {
                    replicas.pass_synced(1);
                }
            }
        }
        assert_eq!(replicas.counts(), [("a", 666), ("b", 666), ("c", 668)]);
        replicas.waited.sort_unstable();
        let of_100 = |n: usize| replicas.waited[replicas.waited.len() * n / 100];
        assert_eq!(of_100(75), 1, "a write takes {} ms", pace.write);
        assert!(of_100(90) < 2 * pace.write, "{} ms", of_100(90));
        let longer = replicas.now_ms - 2_000 * 5;
        assert!(longer <= longer_at_most, "{longer} ms");
    }
}

/// An API server that goes away takes no room with it: what its last writes entered is found again.
#[test]
fn no_room_is_lost_with_an_api_server() {
    for seed in 0..50 {
        let mut dice = Prng::new(seed);
        let subsets = vec![subset("a", count(300)), subset("b", None)];
        let mut replicas = Replicas::of(1, 500, subsets);
        replicas.pace = [QUICK, BUSY][seed as usize % 2];
        replicas.come(dice.between(30, 120) as usize, 5);
        replicas.down = Some(dice.clone());
        replicas.pass(dice.between(0, [8_000, 25_000][seed as usize % 2]));
        replicas.down = None;
        // Watches begin anew later than requests succeed.
        replicas.deaf_until = replicas.now_ms + dice.between(0, 6_000);
        replicas.pass(5_000);
        while replicas.asked_at.len() - (replicas.refused as usize) < 500 {
            replicas.ask(0, None);
            replicas.pass(5);
        }
        replicas.pass(5_000);
        assert_eq!(replicas.counts(), [("a", 300), ("b", 200)], "seed {seed}");
        assert_eq!(replicas.entered(0), (0, 300), "seed {seed}");
    }
}

/// What a write was to do that nobody knows the outcome of is not done for a WorkloadSpread that is gone.
#[test]
fn nothing_is_left_of_a_workload_spread_that_goes_while_it_is_written() {
    for outcome in [Outcome::Gone, Outcome::Lost, Outcome::Conflict] {
        let mut replicas = Replicas::new(1, vec![subset("a", count(1_000))]);
        replicas.come(100, 5);
        replicas.ask(0, None);
        while replicas.due.is_empty() {
            replicas.ask(0, None);
            replicas.pass(1);
        }
        let (_, _, effect) = replicas.due.remove(0);
        let Effect::WriteStatus { id, key, .. } = effect else {
            panic!("a write: {effect:?}");
        };
        let server = &mut replicas.servers[0];
        server.tell(Input::SpreadGone(key));
        server.tell(Input::Outcome(id, outcome.clone()));
        for seconds in [0, 40, 40, 40] {
            server.now = server.now + Span::from_secs(seconds);
            server.tell(Input::Tick);
            while let Some(effect) = server.machine.poll_effect(&mut NoPatches) {
                if let Effect::ReadSpread { id, .. } = effect {
                    server.tell(Input::Outcome(id, Outcome::Gone));
                }
            }
        }
        assert_eq!(server.machine.next_wake(), None, "{outcome:?}");
    }
}

/// Where minimums come first, nobody claims what another was refused for.
#[test]
fn a_lost_slot_does_not_go_before_a_minimum() {
    let mut least = subset("b", count(100));
    least.min_replicas = 2;
    let mut replicas = Replicas::new(1, vec![subset("a", count(100)), least]);
    replicas.come(2, 20);
    replicas.down = Some(Prng::new(1));
    replicas.come(5, 10);
    replicas.pass(300);
    replicas.down = None;
    replicas.pass(100);
    let (_, entered) = replicas.entered(0);
    assert!(entered > replicas.by_subset["a"] as i64, "some are lost");
    // The pods of the minimum are gone, and the next one is asked for at once.
    replicas.change(|object| {
        let status = Arc::make_mut(&mut object.status);
        for rows in status.versioned.values_mut() {
            rows[1].creating.clear();
            rows[1].missing = 100;
        }
    });
    replicas.pass(10);
    let before = replicas.by_subset["b"];
    replicas.come(1, 50);
    assert_eq!(replicas.by_subset["b"], before + 1);
}

/// Of a kind of somebody's own it may not be known how many pods it asks for: -1.
#[test]
fn slots_are_taken_where_the_total_is_not_known() {
    let mut replicas = Replicas::of(1, -1, vec![subset("a", count(1_000))]);
    replicas.come(100, 5);
    replicas.pass(100);
    let (_, entered) = replicas.entered(0);
    assert!(entered > 100, "{entered}");
}

/// Slots are held from when they stand in the ledger on.
#[test]
fn slots_of_a_write_that_takes_long_are_good() {
    let mut replicas = Replicas::new(1, vec![subset("a", count(1_000))]);
    replicas.come(100, 5);
    replicas.pace.write = 3_000;
    while !replicas
        .due
        .iter()
        .any(|(at, ..)| *at > replicas.now_ms + 2_500)
    {
        replicas.come(1, 5);
    }
    replicas.pass(3_000);
    let before = replicas.waited.len();
    replicas.come(10, 5);
    assert_eq!(replicas.waited[before..], [1; 10]);
}

/// Nor for more pods than are asked for: nobody has to give them back.
#[test]
fn slots_are_taken_for_pods_that_are_asked_for() {
    let mut replicas = Replicas::of(1, 120, vec![subset("a", count(1_000))]);
    replicas.come(100, 5);
    replicas.pass(100);
    assert_eq!(replicas.entered(0), (880, 120));
}

/// They are not among the pods that there are: the last of a scale-up would wait for news of more.
#[test]
fn slots_taken_ahead_are_no_pods() {
    let subsets = vec![subset("a", count(1)), subset("b", count(10_000))];
    let mut replicas = Replicas::of(2, 400, subsets);
    replicas.ask(0, None);
    replicas.pass(100);
    for round in 0..299 {
        replicas.ask(round % 2, None);
        replicas.pass(5);
        if round % 20 == 0 {
            replicas.sync();
        }
    }
    (0..100).for_each(|_| replicas.ask(0, None));
    replicas.pass(50);
    assert_eq!(replicas.counts(), [("a", 1), ("b", 399)]);
    let longest = replicas.waited.iter().max();
    assert!(longest < Some(&100), "{longest:?} ms");
}

#[test]
fn what_nobody_claims_is_given_back() {
    let mut replicas = Replicas::new(1, vec![subset("a", count(1_000))]);
    replicas.come(100, 5);
    replicas.pass(100);
    let (missing, creating) = replicas.entered(0);
    assert!(creating > 100, "some were taken ahead");
    assert_eq!(missing, 1_000 - i32::try_from(creating).unwrap());
    replicas.pass(5_500);
    assert_eq!(replicas.entered(0), (900, 100));
}

/// Replicas that are asked in turn, in bursts and by chance, while a controller writes, too, fill the first subsets to the
/// last pod before others are used.
#[test]
fn replicas_fill_subsets_as_one_would() {
    let (mut refused, mut asked) = (0, 0);
    for seed in 0..200 {
        let mut dice = Prng::new(seed);
        let n_replicas = dice.between(1, 3) as usize;
        let (a, b) = (dice.between(1, 300), dice.between(1, 300));
        let limits = [("a", count(a as u32)), ("b", count(b as u32)), ("c", None)];
        let subsets = limits.map(|(name, max)| subset(name, max)).to_vec();
        let mut replicas = Replicas::new(n_replicas, subsets);
        let n = a + b + dice.between(0, 100);
        let mut left = n;
        while left > 0 {
            let at = dice.index(n_replicas);
            let burst = match dice.chance(1, 20) {
                true => dice.between(1, 120).min(left),
                false => 1,
            };
            (0..burst).for_each(|_| replicas.ask(at, None));
            left -= burst;
            replicas.pass(dice.between(0, 12));
            if dice.chance(1, 50) {
                replicas.sync();
            }
        }
        replicas.pass(5_000);
        let wanted = [("a", a), ("b", b), ("c", n - a - b)];
        let wanted: Vec<_> = wanted.into_iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(replicas.counts(), wanted, "seed {seed}");
        refused += replicas.refused;
        asked += n;
        assert_eq!(replicas.entered(0), (0, a as i64), "seed {seed}");
        assert_eq!(replicas.entered(1), (0, b as i64), "seed {seed}");
    }
    // Three replicas and a controller at once: without slots taken ahead it is half of that.
    assert!(refused * 200 < asked, "{refused} of {asked}");
}

/// Two replicas, each asked fifty times a second: they seldom meet, and nobody meets another four times.
#[test]
fn replicas_that_take_ahead_seldom_meet() {
    let mut replicas = Replicas::new(2, vec![subset("a", count(10_000))]);
    let mut dice = Prng::new(7);
    for _ in 0..20_000 {
        for at in 0..2 {
            if dice.between(0, 19) == 0 {
                replicas.ask(at, None);
            }
        }
        replicas.pass(1);
    }
    replicas.pass(5_000);
    let n = replicas.asked_at.len() as u64;
    assert!(n > 1_500, "{n}");
    assert_eq!((replicas.counts(), replicas.refused), (vec![("a", n)], 0));
    assert!(
        replicas.conflicts * 50 < n,
        "{} conflicts",
        replicas.conflicts
    );
    replicas.waited.sort_unstable();
    let p99 = replicas.waited[replicas.waited.len() * 99 / 100];
    assert!(p99 <= 10, "{p99} ms");
}

#[test]
fn a_limit_that_is_lowered_is_kept() {
    let mut replicas = Replicas::new(1, vec![subset("a", count(200)), subset("b", None)]);
    replicas.come(100, 5);
    replicas.pass(100);
    // The controller would write what is missing of a limit of 100 with what stands there.
    replicas.change(|object| {
        let spec = Arc::make_mut(&mut object.spec);
        spec.subsets[0].max_replicas = count(100);
        let status = Arc::make_mut(&mut object.status);
        status
            .versioned
            .values_mut()
            .for_each(|rows| rows[0].missing = 0);
    });
    // They ask when it is told.
    replicas.pass(3);
    for _ in 0..50 {
        replicas.ask(0, None);
    }
    replicas.pass(3_000);
    assert_eq!(replicas.counts(), [("a", 100), ("b", 50)]);
    assert_eq!(replicas.entered(0), (0, 100));
}

#[test]
fn a_pod_with_a_name_is_entered_by_it() {
    let mut replicas = Replicas::new(1, vec![subset("a", count(150)), subset("b", None)]);
    replicas.come(100, 5);
    let (missing, creating) = replicas.entered(0);
    assert!(creating > 100, "some were taken ahead");
    assert_eq!(missing, 150 - i32::try_from(creating).unwrap());
    // So that it is known when it asks again; and as long as such come, none are taken.
    replicas.ask(0, Some("p"));
    replicas.pass(200);
    assert_eq!(replicas.counts(), [("a", 101)]);
    let row = &replicas.object.status.rows("versionIgnored")[0];
    assert!(row.creating.contains_key("p"));
    assert_eq!(replicas.entered(0), (49, 101));
}

/// A webhook that is restarted takes no room with it, nor what a write of it enters just then.
#[test]
fn who_ends_gives_back_what_it_holds() {
    for is_writing in [false, true] {
        let mut replicas = Replicas::new(1, vec![subset("a", count(1_000))]);
        replicas.come(99, 5);
        replicas.pass(100);
        replicas.come(1, 1);
        while is_writing && replicas.due.is_empty() {
            replicas.come(1, 1);
        }
        let n = replicas.waited.len() as i64;
        replicas.servers[0].tell(Input::Ends);
        assert!(replicas.servers[0].machine.held() > 0);
        replicas.pass(100);
        assert_eq!(replicas.entered(0).1, n);
        assert_eq!(replicas.servers[0].machine.held(), 0);
        // Who comes on a connection that is still there is entered alone.
        replicas.come(20, 1);
        replicas.pass(100);
        assert_eq!(replicas.entered(0).1, n + 20);
    }
}

/// The last room of a subset is taken with the first of the next: who comes as fast as before waits for no write between.
#[test]
fn who_goes_on_into_the_next_subset_waits_for_no_write() {
    let subsets = vec![
        subset("a", count(300)),
        subset("b", count(300)),
        subset("c", None),
        // Nobody comes so far.
        subset("d", count(300)),
    ];
    let mut replicas = Replicas::new(1, subsets);
    replicas.come(100, 5);
    let begun = replicas.waited.len();
    let writes = replicas.writes;
    for _ in 0..550 {
        replicas.come(1, 5);
        assert_eq!(replicas.entered(3), (300, 0));
    }
    replicas.pass(100);
    assert_eq!(replicas.counts(), [("a", 300), ("b", 300), ("c", 50)]);
    assert_eq!(replicas.waited[begun..].iter().max(), Some(&1));
    let writes = replicas.writes - writes;
    assert!(writes <= 8, "{writes} writes");
}

/// A subset that is full of slots that nobody claims has room again soon: another replica waits for it, and the next subset
/// is not used before.
#[test]
fn slots_that_fill_a_subset_are_not_held_for_long() {
    let mut replicas = Replicas::new(2, vec![subset("a", count(300)), subset("b", count(300))]);
    while replicas
        .object
        .status
        .rows("versionIgnored")
        .first()
        .is_none_or(|row| row.missing > 0)
    {
        replicas.come(1, 5);
    }
    replicas.pass(50);
    let n = replicas.asked_at.len() as u64;
    assert!(n < 280, "{n}");
    assert!(replicas.entered(1).1 > 0, "some of the next");
    replicas.ask(1, None);
    replicas.pass(1_000);
    assert_eq!(replicas.counts(), [("a", n + 1)]);
    let waited = replicas.waited[n as usize];
    assert!((300..700).contains(&waited), "{waited} ms");
    // What is held of the next subset goes back, too: this one comes first again.
    assert_eq!(replicas.entered(0), (299 - n as i32, n as i64 + 1));
    assert_eq!(replicas.entered(1).1, 0);
}

/// A controller manager rests between its bursts: slots that filled a subset have gone back by then, and whoever comes after
/// the rest has new ones at once.
#[test]
fn after_a_rest_slots_are_taken_as_before_it() {
    let mut replicas = Replicas::new(1, vec![subset("a", count(300)), subset("b", count(300))]);
    replicas.come(20, 5);
    while replicas.entered(0).0 > 0 {
        replicas.come(1, 5);
    }
    replicas.pass(700);
    let n = replicas.waited.len();
    assert!(n < 280, "{n}");
    assert_eq!(replicas.entered(0).1, n as i64, "they went back");
    replicas.come(200, 5);
    replicas.pass(100);
    let waited = replicas.waited[n..].iter().filter(|ms| **ms > 1).count();
    assert!(waited <= 5, "{waited} waited");
}

/// Who sees that another replica holds slots leaves the last room to whoever comes.
#[test]
fn no_subset_is_filled_beside_another_replica() {
    let mut replicas = Replicas::new(2, vec![subset("a", count(300)), subset("b", None)]);
    for _ in 0..20 {
        replicas.ask(1, None);
        replicas.pass(5);
    }
    assert!(replicas.servers[1].machine.held() > 0);
    let mut most = 0;
    while replicas.entered(0).0 > 0 {
        most = most.max(replicas.servers[0].machine.held());
        replicas.come(1, 5);
    }
    assert!(most > 50, "{most} held");
    assert_eq!(replicas.servers[0].machine.held(), 0);
}

/// Others are asked, too: some of the room is left to them, and it is not taken by and by.
#[test]
fn not_all_of_the_room_is_held() {
    let mut replicas = Replicas::new(1, vec![subset("a", count(150)), subset("b", None)]);
    replicas.come(64, 15);
    let writes = replicas.writes;
    replicas.pass(200);
    assert!(replicas.writes <= writes + 1);
    let held = replicas.servers[0].machine.held();
    assert!((30..=64).contains(&held), "{held} of 86");
}

/// Who comes now and then is written for, and leaves nothing to be given back.
#[test]
fn for_who_comes_slowly_nothing_is_taken() {
    let mut replicas = Replicas::of(1, 1_000, vec![subset("a", count(1_000))]);
    for _ in 0..10 {
        replicas.pass(1_000);
        replicas.come(1, 1);
    }
    replicas.pass(100);
    assert_eq!((replicas.entered(0), replicas.writes), ((990, 10), 10));
}

/// A percentage of a total that falls: slots that are too many go back, and whoever comes next finds the room that is left.
#[test]
fn slots_of_a_percentage_follow_the_total() {
    let subsets = vec![subset("a", percent(50)), subset("b", count(100))];
    let mut replicas = Replicas::of(1, 100, subsets);
    replicas.come(20, 5);
    replicas.pass(100);
    let (_, entered) = replicas.entered(0);
    assert!(entered > 30, "{entered}");
    replicas.scale(60);
    replicas.come(10, 5);
    replicas.pass(100);
    assert_eq!(replicas.counts(), [("a", 30)]);
    replicas.come(10, 5);
    replicas.pass(100);
    assert_eq!(replicas.counts(), [("a", 30), ("b", 10)]);
    assert!(replicas.servers[0].machine.held() > 0, "some of b");
    replicas.scale(200);
    replicas.come(10, 5);
    replicas.pass(100);
    assert_eq!(replicas.counts(), [("a", 40), ("b", 10)]);
}

/// Who claimed a slot is a pod: one that is more than is asked for waits for news of how many are.
#[test]
fn claimed_slots_are_pods() {
    let halves = vec![subset("a", percent(50)), subset("b", percent(50))];
    let mut replicas = Replicas::of(1, 20, halves);
    replicas.come(20, 5);
    replicas.pass(100);
    assert_eq!(replicas.counts(), [("a", 10), ("b", 10)]);
    let rows = replicas.object.status.rows("versionIgnored");
    let ids = rows.iter().flat_map(|row| row.creating.keys());
    assert!(ids.filter(|id| taken_by(id).is_some()).count() > 5);
    replicas.ask(0, None);
    replicas.pass(500);
    assert_eq!(replicas.waited.len(), 20, "it waits");
    replicas.scale(40);
    replicas.pass(100);
    assert_eq!(replicas.counts(), [("a", 11), ("b", 10)]);
}
