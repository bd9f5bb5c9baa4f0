use strew_manifest::patch::{json_patch, merge_patch};
use strew_wire::request::{Resource, Verb};
use strew_wire::workloadspread::registration::{REGISTERED_BY, Reach};

use super::*;
use crate::registration::replicas::EXPIRES;

const BUNDLE: &str = "PEM";

fn installed() -> registration::Registration {
    registration::Registration {
        reach: Reach::Service("strew-system".to_owned()),
        namespace: "strew-system".to_owned(),
        failure_policy: "Fail",
        excluded: Vec::new(),
        daemon_sets: false,
    }
}

/// An API server with the two objects, and what replicas find when they ask themselves.
struct FakeServer {
    now: Instant,
    configuration: Value,
    lease: Value,
    own: Result<(), Failed>,
    way: Result<(), Unreached>,
    version: u64,
}

impl FakeServer {
    fn new() -> Self {
        let mut configuration = installed().mutating();
        configuration["metadata"]["resourceVersion"] = "1".into();
        Self {
            now: Instant::from_secs(1_795_000_000),
            configuration,
            lease: Value::Null,
            own: Ok(()),
            way: Ok(()),
            version: 1,
        }
    }

    fn execute(&mut self, request: &Request) -> Answer {
        let stored = match request.resource {
            Resource::LEASES => &mut self.lease,
            _ => &mut self.configuration,
        };
        let changed = match request.verb {
            Verb::Create => request.body.clone(),
            _ if stored.is_null() => return Answer::of(404, None, b"{}"),
            Verb::Get => return Answer::of(200, None, stored.to_string().as_bytes()),
            Verb::MergePatch => merge_patch(stored, &request.body),
            _ => match json_patch(stored, &request.body) {
                Ok(changed) => changed,
                Err(_) => return Answer::of(422, None, b"{}"),
            },
        };
        self.version += 1;
        *stored = changed;
        stored["metadata"]["resourceVersion"] = self.version.to_string().into();
        Answer::of(200, None, stored.to_string().as_bytes())
    }

    /// Carries out tasks until the replica waits, or has nothing left to do. Returns until when it waits.
    fn settle(&mut self, replica: &mut Registrar) -> Option<Instant> {
        for _ in 0..20 {
            let at = Moment {
                now: self.now,
                wall: self.now,
            };
            match replica.next(at) {
                Task::Review(bundle) => {
                    assert_eq!(&*bundle, BUNDLE);
                    replica.reviewed(self.now, self.own.clone());
                }
                Task::Ask(way, _) => {
                    assert!(way.is_service);
                    replica.asked(self.now, self.way.clone());
                }
                Task::Send(request) => {
                    let mut next = Some(request);
                    while let Some(request) = next {
                        let answer = self.execute(&request);
                        next = replica.answered(self.now, &answer);
                    }
                }
                Task::Wait(until) => return Some(until),
                Task::Done => return None,
            }
        }
        panic!("it never waits");
    }

    /// Lets time pass, with the replica at work.
    fn pass(&mut self, replica: &mut Registrar, span: Span) {
        let end = self.now + span;
        while let Some(until) = self.settle(replica).filter(|until| *until <= end) {
            assert!(until > self.now, "time stands still");
            self.now = until;
        }
        self.now = end;
    }

    fn is_registered(&self) -> bool {
        self.configuration["webhooks"][0].is_object()
    }

    fn n_ready(&self) -> usize {
        let annotations = self.lease["metadata"]["annotations"].as_object();
        annotations.map_or(0, serde_json::Map::len)
    }
}

fn replica(name: &str) -> Registrar {
    let mut replica = Registrar::new(Settings {
        registration: installed(),
        is_strict: false,
        replica: name.to_owned(),
    });
    replica.serve(true, &BUNDLE.into());
    replica
}

fn wrong() -> Failed {
    Failed::Wrong("refused".to_owned())
}

#[test]
fn a_replica_registers_itself_and_the_last_one_takes_it_out() {
    let mut world = FakeServer::new();
    let (mut first, mut second) = (replica("first"), replica("second"));
    world.settle(&mut first);
    assert_eq!((world.is_registered(), world.n_ready()), (true, 1));
    assert_eq!(first.unready(), None);
    world.settle(&mut second);
    let mark = &world.configuration["metadata"]["annotations"][REGISTERED_BY];
    assert_eq!((mark, world.n_ready()), (&"second".into(), 2));
    first.end(world.now);
    assert_eq!(world.settle(&mut first), None);
    assert_eq!((world.is_registered(), world.n_ready()), (true, 1));
    second.end(world.now);
    // It answers for a while.
    assert_eq!(world.settle(&mut second), Some(world.now + LINGERS));
    assert_eq!((world.is_registered(), world.n_ready()), (false, 0));
    world.now = world.now + LINGERS;
    assert_eq!(world.settle(&mut second), None);
}

/// Other replicas count on the annotation, and leave the webhook registered without a replica.
#[test]
fn an_announcement_whose_answer_is_lost_is_withdrawn_at_the_end() {
    let mut world = FakeServer::new();
    let mut first = replica("first");
    world.settle(&mut first);
    let mut second = replica("second");
    loop {
        let at = Moment {
            now: world.now,
            wall: world.now,
        };
        match second.next(at) {
            Task::Review(_) => second.reviewed(world.now, Ok(())),
            Task::Ask(..) => second.asked(world.now, Ok(())),
            Task::Send(request) => {
                world.execute(&request);
                drop(second.answered(world.now, &Answer::Lost("no answer".into())));
                break;
            }
            task => panic!("{task:?}"),
        }
    }
    assert_eq!(world.n_ready(), 2);
    second.end(world.now);
    world.settle(&mut second);
    assert_eq!((world.is_registered(), world.n_ready()), (true, 1));
    first.end(world.now);
    world.settle(&mut first);
    assert_eq!((world.is_registered(), world.n_ready()), (false, 0));
}

#[test]
fn an_end_between_a_review_and_the_question_by_the_way_does_not_wait_for_that() {
    let mut world = FakeServer::new();
    let mut replica = replica("a");
    world.settle(&mut replica);
    replica.reviewed(world.now, Ok(()));
    replica.end(world.now);
    let at = Moment {
        now: world.now,
        wall: world.now,
    };
    let task = replica.next(at);
    assert!(matches!(task, Task::Send(_)), "{task:?}");
}

#[test]
fn without_a_certificate_nothing_is_registered() {
    let mut world = FakeServer::new();
    let mut replica = replica("a");
    replica.serve(true, &"".into());
    world.pass(&mut replica, Span::from_secs(10));
    assert!(!world.is_registered() && replica.unready().is_some());
}

/// Load that keeps the replica busy must not turn limits off.
#[test]
fn a_late_review_withdraws_nothing_and_a_server_that_is_gone_does() {
    let mut world = FakeServer::new();
    let mut replica = replica("a");
    let late = Err(Failed::Late("busy".to_owned()));
    // A replica that has never served does not become ready by a late answer.
    world.own = late.clone();
    world.pass(&mut replica, EXPIRES);
    assert_eq!((world.is_registered(), world.n_ready()), (false, 0));
    world.own = Ok(());
    world.pass(&mut replica, EXPIRES);
    assert_eq!((world.is_registered(), world.n_ready()), (true, 1));
    world.own = late;
    world.way = Err(Unreached {
        why: "no answer".to_owned(),
        is_certain: false,
    });
    world.pass(&mut replica, Span::from_secs(60));
    assert_eq!((world.is_registered(), world.n_ready()), (true, 1));
    assert!(!replica.is_cut_off());
    world.own = Err(wrong());
    world.pass(&mut replica, Span::from_secs(10));
    assert_eq!(world.n_ready(), 0);
}

#[test]
fn a_way_that_ends_elsewhere_withdraws_at_once() {
    let mut world = FakeServer::new();
    let mut replica = replica("a");
    world.settle(&mut replica);
    assert_eq!(world.n_ready(), 1);
    world.way = Err(Unreached {
        why: "connection refused".to_owned(),
        is_certain: true,
    });
    world.pass(&mut replica, Span::from_secs(2));
    assert_eq!(world.n_ready(), 0);
    world.way = Ok(());
    world.pass(&mut replica, Span::from_secs(4));
    assert_eq!(world.n_ready(), 1);
}

#[test]
fn what_others_change_comes_back() {
    let mut world = FakeServer::new();
    let mut replica = replica("a");
    world.settle(&mut replica);
    let ours = world.configuration["webhooks"].clone();
    for (path, value) in [
        ("/webhooks", Value::Null),
        ("/webhooks/0/failurePolicy", "Ignore".into()),
        ("/metadata/annotations", Value::Null),
    ] {
        *world.configuration.pointer_mut(path).expect(path) = value;
        world.version += 1;
        world.configuration["metadata"]["resourceVersion"] = world.version.to_string().into();
        world.pass(&mut replica, Span::from_secs(3));
        assert_eq!(world.configuration["webhooks"], ours, "{path}");
    }
    world.configuration = Value::Null;
    world.pass(&mut replica, Span::from_secs(4));
    assert!(world.configuration.is_null(), "uninstalled on purpose");
    world.configuration = installed().mutating();
    world.configuration["metadata"]["resourceVersion"] = "7".into();
    world.pass(&mut replica, Span::from_secs(4));
    assert!(world.is_registered());
}

#[test]
fn a_replica_that_cannot_write_sends_its_clients_elsewhere() {
    let mut world = FakeServer::new();
    let mut replica = replica("a");
    world.settle(&mut replica);
    while !replica.is_cut_off() {
        let at = Moment {
            now: world.now,
            wall: world.now,
        };
        match replica.next(at) {
            Task::Review(_) => replica.reviewed(world.now, Ok(())),
            Task::Ask(..) => replica.asked(world.now, Ok(())),
            Task::Send(_) => {
                drop(replica.answered(world.now, &Answer::Lost("no answer".into())));
            }
            Task::Wait(until) => world.now = until,
            Task::Done => panic!("it has not ended"),
        }
        assert!(world.now < Instant::from_secs(1_795_000_010));
    }
    world.settle(&mut replica);
    world.pass(&mut replica, Span::from_secs(4));
    assert!(!replica.is_cut_off());
}
