use super::*;
use crate::registration::failures::Failures;

/// Seconds after a moment that is far from both ends of time.
const fn at(second: u64) -> Instant {
    Instant::from_secs(1_000_000 + second)
}

const OURS: Registration = Registration::In {
    is_ours: true,
    is_right: true,
};

const WRONG: Registration = Registration::In {
    is_ours: true,
    is_right: false,
};

const FIXED: Registration = Registration::In {
    is_ours: false,
    is_right: true,
};

/// A replica that was ready at second 10, and registered.
fn registered() -> Replica {
    Replica {
        can_serve: true,
        asked: Some(at(10)),
        served: Some(at(10)),
        present: Some(at(10)),
        seen: Some((at(10), OURS)),
        is_announced: true,
        ..Replica::default()
    }
}

#[test]
fn a_replica_registers_when_it_has_served() {
    let starts = Replica::default();
    let serves = Replica {
        can_serve: true,
        ..starts
    };
    let failed = Replica {
        asked: Some(at(10)),
        ..serves
    };
    let served = Replica {
        served: Some(at(10)),
        ..failed
    };
    let present = Replica {
        present: Some(at(10)),
        ..served
    };
    let seen = |registration| Replica {
        seen: Some((at(10), registration)),
        ..present
    };
    let announced = |registration| Replica {
        is_announced: true,
        ..seen(registration)
    };
    for (name, replica, now, expected) in [
        ("starts", starts, 10, RegistrationStep::Wait(at(12))),
        ("serves", serves, 10, RegistrationStep::Review),
        ("failed", failed, 10, RegistrationStep::Wait(at(12))),
        ("failed, later", failed, 12, RegistrationStep::Review),
        ("served", served, 10, RegistrationStep::Renew),
        ("present", present, 10, RegistrationStep::Look),
        (
            "out",
            seen(Registration::Out),
            10,
            RegistrationStep::Register,
        ),
        (
            "nothing is there",
            seen(Registration::Absent),
            10,
            RegistrationStep::Wait(at(12)),
        ),
        (
            "by another replica",
            seen(OURS),
            10,
            RegistrationStep::Register,
        ),
        ("by hand", announced(FIXED), 10, RegistrationStep::Register),
        ("changed", announced(WRONG), 10, RegistrationStep::Register),
        (
            "taken out",
            announced(Registration::Out),
            10,
            RegistrationStep::Register,
        ),
        (
            "registered",
            announced(OURS),
            11,
            RegistrationStep::Wait(at(12)),
        ),
        (
            "registered, later",
            announced(OURS),
            12,
            RegistrationStep::Review,
        ),
        (
            "again",
            Replica {
                asked: Some(at(12)),
                served: Some(at(12)),
                ..registered()
            },
            12,
            RegistrationStep::Renew,
        ),
        (
            "looks again",
            Replica {
                asked: Some(at(12)),
                served: Some(at(12)),
                present: Some(at(12)),
                ..registered()
            },
            12,
            RegistrationStep::Look,
        ),
        (
            "others could not be told",
            Replica {
                not_before: at(11),
                ..served
            },
            10,
            RegistrationStep::Wait(at(11)),
        ),
        (
            "it could not register: others hear of it all the same",
            Replica {
                register_not_before: at(60),
                ..seen(Registration::Out)
            },
            10,
            RegistrationStep::Wait(at(12)),
        ),
    ] {
        assert_eq!(replica.next(at(now)), expected, "{name}");
    }
}

#[test]
fn a_replica_that_answers_no_longer_withdraws() {
    let failing = |asked| Replica {
        asked: Some(at(asked)),
        ..registered()
    };
    for (replica, now, expected) in [
        (failing(12), 12, RegistrationStep::Wait(at(14))),
        (failing(16), 17, RegistrationStep::Wait(at(18))),
        (failing(16), 18, RegistrationStep::Review),
        (failing(18), 18, RegistrationStep::Withdraw),
        (
            Replica {
                present: None,
                ..failing(18)
            },
            18,
            RegistrationStep::Wait(at(20)),
        ),
        (
            Replica {
                can_serve: false,
                ..registered()
            },
            17,
            RegistrationStep::Wait(at(19)),
        ),
        (
            Replica {
                can_serve: false,
                ..registered()
            },
            18,
            RegistrationStep::Withdraw,
        ),
    ] {
        assert_eq!(replica.next(at(now)), expected, "{replica:?} at {now}");
    }
}

#[test]
fn the_last_that_ends_takes_the_webhook_out() {
    let ending = Replica {
        is_ending: true,
        seen: None,
        ..registered()
    };
    let seen = |registration| Replica {
        seen: Some((at(11), registration)),
        ..ending
    };
    let left = |registration| Replica {
        present: None,
        has_left: true,
        ..seen(registration)
    };
    let never_ready = Replica {
        present: None,
        ..ending
    };
    let beside_others = Replica {
        has_others: true,
        ..left(OURS)
    };
    let strict = Replica {
        is_strict: true,
        ..left(OURS)
    };
    for (name, replica, expected) in [
        ("never ready", never_ready, RegistrationStep::Done),
        ("looks first", ending, RegistrationStep::Look),
        ("then withdraws", seen(OURS), RegistrationStep::Withdraw),
        ("is the last", left(OURS), RegistrationStep::TakeOut),
        (
            "is the last, with other webhooks",
            left(WRONG),
            RegistrationStep::TakeOut,
        ),
        ("is not the last", beside_others, RegistrationStep::Done),
        ("is strict", strict, RegistrationStep::Done),
        (
            "what others wrote stays",
            left(FIXED),
            RegistrationStep::Done,
        ),
        ("is out", left(Registration::Out), RegistrationStep::Done),
        (
            "is not there",
            left(Registration::Absent),
            RegistrationStep::Done,
        ),
        (
            "lost a race: looks, withdraws, decides again",
            Replica {
                seen: None,
                ..left(OURS)
            },
            RegistrationStep::Look,
        ),
    ] {
        assert_eq!(replica.next(at(11)), expected, "{name}");
    }
}

#[test]
fn the_controller_takes_out_what_no_replica_serves() {
    use Webhook::{Answers as Served, NotReady as Waiting, NotRegistered as Unregistered};
    let watcher = |registration, silent_since, said| Watcher {
        leads: true,
        is_strict: false,
        patience: Span::from_secs(30),
        looked: Some(at(100)),
        silent_since: Some(at(silent_since)),
        unreached_since: None,
        is_deleted: false,
        registration,
        said,
        not_before: Instant(0),
    };
    let strict = |w: Watcher| Watcher {
        is_strict: true,
        ..w
    };
    let (quiet, wait) = (70, Act::Wait(at(102)));
    let out = Registration::Out;
    for (name, watcher, expected) in [
        ("served", watcher(OURS, 100, Served), wait),
        ("silent, not long enough", watcher(OURS, 71, Served), wait),
        ("silent", watcher(OURS, quiet, Served), Act::TakeOut),
        (
            "taken out",
            watcher(out, quiet, Served),
            Act::Say(Unregistered),
        ),
        ("said", watcher(out, quiet, Unregistered), wait),
        ("a replica is back", watcher(out, 100, Unregistered), wait),
        (
            "registered again",
            watcher(OURS, 100, Unregistered),
            Act::Say(Served),
        ),
        ("before the first replica", watcher(out, 100, Served), wait),
        (
            "strict",
            strict(watcher(OURS, quiet, Served)),
            Act::Say(Waiting),
        ),
        ("strict, said", strict(watcher(OURS, quiet, Waiting)), wait),
        (
            "strict, back",
            strict(watcher(OURS, 100, Waiting)),
            Act::Say(Served),
        ),
        (
            "strict, none registered",
            strict(watcher(out, quiet, Served)),
            Act::Say(Unregistered),
        ),
        ("by hand", watcher(FIXED, quiet, Served), wait),
        (
            "by hand after all",
            watcher(FIXED, quiet, Unregistered),
            Act::Say(Served),
        ),
        (
            "not installed",
            watcher(Registration::Absent, quiet, Served),
            wait,
        ),
        (
            "silent, and another one leads or nobody does",
            Watcher {
                leads: false,
                ..watcher(OURS, quiet, Served)
            },
            Act::TakeOut,
        ),
        (
            "only the one that leads reports",
            Watcher {
                leads: false,
                ..watcher(out, quiet, Served)
            },
            wait,
        ),
        (
            "announced, and not reached for too short a time",
            Watcher {
                unreached_since: Some(at(97)),
                ..watcher(OURS, 100, Served)
            },
            wait,
        ),
        (
            "announced, and not reached",
            Watcher {
                unreached_since: Some(at(96)),
                ..watcher(OURS, 100, Served)
            },
            Act::TakeOut,
        ),
        (
            "deleted by hand",
            Watcher {
                is_deleted: true,
                ..watcher(Registration::Absent, 100, Served)
            },
            Act::Say(Unregistered),
        ),
        (
            "has not looked",
            Watcher {
                looked: None,
                ..watcher(out, quiet, Served)
            },
            Act::Look,
        ),
        (
            "looks again",
            Watcher {
                looked: Some(at(99)),
                ..watcher(OURS, 99, Served)
            },
            Act::Look,
        ),
        (
            "a question without an answer took longer than the next look is away",
            Watcher {
                looked: Some(at(99)),
                silent_since: Some(at(69)),
                ..watcher(OURS, quiet, Served)
            },
            Act::TakeOut,
        ),
        (
            "could not look",
            Watcher {
                looked: Some(at(90)),
                not_before: at(102),
                ..watcher(OURS, quiet, Served)
            },
            wait,
        ),
    ] {
        assert_eq!(watcher.next(at(101)), expected, "{name}");
    }
}

/// How often each step is taken in ten minutes by a replica that serves, if `refused` fails always.
fn steps_in_ten_minutes(refused: RegistrationStep, code: u16) -> (usize, usize) {
    let is_race = matches!(code, 409 | 422);
    let (mut of_lease, mut of_configuration) = (Failures::default(), Failures::default());
    let mut view = Replica {
        can_serve: true,
        ..Replica::default()
    };
    let (mut now, mut n_refused, mut n_looks) = (at(0), 0, 0);
    while now < at(600) {
        let step = view.next(now);
        n_looks += usize::from(step == RegistrationStep::Look);
        if step == refused {
            n_refused += 1;
            match step {
                RegistrationStep::Renew => view.not_before = now + of_lease.add(is_race).0,
                _ => {
                    view.register_not_before = now + of_configuration.add(is_race).0;
                    view.seen = None;
                }
            }
            continue;
        }
        match step {
            RegistrationStep::Review => (view.asked, view.served) = (Some(now), Some(now)),
            RegistrationStep::Renew => view.present = Some(now),
            RegistrationStep::Look => view.seen = Some((now, Registration::Out)),
            RegistrationStep::Wait(until) => now = until,
            RegistrationStep::Register
            | RegistrationStep::Withdraw
            | RegistrationStep::TakeOut
            | RegistrationStep::Done => panic!("{step:?}"),
        }
    }
    (n_refused, n_looks)
}

#[test]
fn what_is_refused_for_ever_is_tried_less_and_less() {
    for code in [403, 409, 422, 500] {
        for step in [
            RegistrationStep::Renew,
            RegistrationStep::Look,
            RegistrationStep::Register,
        ] {
            let (n, looks) = steps_in_ten_minutes(step, code);
            assert!((2..=20).contains(&n), "{step:?} {code}: {n}");
            assert!(looks <= 20, "{step:?} {code}: {looks} looks");
        }
    }
}
