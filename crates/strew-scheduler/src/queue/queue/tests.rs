use std::rc::Rc;
use std::sync::Arc;

use strew_cluster::{Cluster, NodeFact, PodFact, PodHistory, PodSpec};
use strew_model::{Labels, Resources, well_known};

use super::*;
use crate::profile::{PluginId, Profile};
use crate::profiles::Profiles;

fn pod(cluster: &mut Cluster, uid: &str) -> PodIdx {
    pod_of(cluster, uid, 1_000)
}

fn pod_of(cluster: &mut Cluster, uid: &str, cpu_milli: i64) -> PodIdx {
    let uid: Arc<str> = uid.into();
    let requests = Resources::of(cpu_milli, 0);
    cluster.set_pod(PodFact {
        uid: uid.clone(),
        name: uid,
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        node: None,
        spec: PodSpec {
            used: requests.clone(),
            requests,
            ..PodSpec::default()
        },
        history: PodHistory::default(),
    })
}

fn node(cluster: &mut Cluster, cpu_milli: i64) -> Rc<NodeFact> {
    Rc::new(NodeFact {
        name: cluster.names.intern("n1"),
        labels: Labels::default(),
        taints: Box::default(),
        unschedulable: false,
        allocatable: Resources::of(cpu_milli, 0),
        pods_max: 10,
        images: Box::default(),
    })
}

/// Events count from the pop on, and only those that help; they are kept as long as a pod is in flight.
#[test]
fn what_happens_in_flight_is_not_missed() {
    let now = Instant::from_secs(100);
    let refused: PluginSet = [PluginId::NodeResourcesFit].into_iter().collect();
    // What happens before the pop, and after it; whether the pod is tried again at once.
    for (before, after, retried) in [
        (None, None, false),
        (Some(2_000), None, false),
        (None, Some(2_000), true),
        (None, Some(500), false),
        (Some(500), Some(2_000), true),
    ] {
        let mut cluster = Cluster::new();
        let profiles = Profiles::new(&mut cluster.names, vec![Profile::default()]);
        let (first, second) = (pod(&mut cluster, "first"), pod(&mut cluster, "second"));
        let mut large = |cpu_milli| Event::node_added(node(&mut cluster, cpu_milli));
        let (before, after) = (before.map(&mut large), after.map(large));
        let cx = Context {
            cluster: &cluster,
            profiles: &profiles,
        };
        let mut queue = Queue::new(QueueLimits::production(), now);
        queue.add(cx, first);
        queue.add(cx, second);
        assert_eq!(queue.pop(), Some(first));
        before.iter().for_each(|event| queue.on_event(cx, event));
        assert_eq!(queue.pop(), Some(second));
        after.iter().for_each(|event| queue.on_event(cx, event));
        queue.requeue(cx, second, refused);
        let counts = queue.counts();
        let expected = (usize::from(retried), usize::from(!retried));
        assert_eq!((counts.backoff, counts.unschedulable), expected);
        // The other one has seen all of it.
        queue.requeue(cx, first, refused);
        let helped = [&before, &after].into_iter().flatten().any(|event| {
            matches!(&event.subject, super::super::event::Subject::Node(_, Some(n)) if n.allocatable.cpu_milli > 1_000)
        });
        let waiting = usize::from(!retried) + usize::from(!helped);
        assert_eq!(queue.counts().unschedulable, waiting);
        assert_eq!(queue.in_flight.len(), 0);
        assert_eq!(queue.audit(), Ok(()));
    }
}

/// A pod that changes while it is in flight is worth another try for that, and no other pod is.
#[test]
fn its_own_change_in_flight_is_not_missed() {
    let refused: PluginSet = [PluginId::NodeResourcesFit].into_iter().collect();
    for (cpu_milli, retried) in [(500, true), (1_000, false), (2_000, false)] {
        let mut cluster = Cluster::new();
        let profiles = Profiles::new(&mut cluster.names, vec![Profile::default()]);
        let (changes, stays) = (pod(&mut cluster, "changes"), pod(&mut cluster, "stays"));
        let mut queue = Queue::new(QueueLimits::production(), Instant::from_secs(100));
        let cx = Context {
            cluster: &cluster,
            profiles: &profiles,
        };
        queue.add(cx, changes);
        queue.add(cx, stays);
        assert_eq!((queue.pop(), queue.pop()), (Some(changes), Some(stays)));
        let old = view(&cluster, changes);
        pod_of(&mut cluster, "changes", cpu_milli);
        let cx = Context {
            cluster: &cluster,
            profiles: &profiles,
        };
        let events = Event::of_pod_update(&cluster, old, view(&cluster, changes));
        queue.update(cx, changes, &events);
        queue.requeue(cx, stays, refused);
        assert_eq!(queue.counts().unschedulable, 1, "{cpu_milli}");
        queue.requeue(cx, changes, refused);
        assert_eq!(queue.counts().backoff, usize::from(retried), "{cpu_milli}");
        assert_eq!(queue.audit(), Ok(()));
    }
}

/// Groups give back the pods that were put in, whichever goes first.
#[test]
fn waiting_pods_are_found_in_their_groups() {
    let now = Instant::from_secs(100);
    let mut cluster = Cluster::new();
    let profiles = Profiles::new(&mut cluster.names, vec![Profile::default()]);
    let names = ["a", "b", "c", "d", "e"];
    let pods: Vec<PodIdx> = names.iter().map(|uid| pod(&mut cluster, uid)).collect();
    let cx = Context {
        cluster: &cluster,
        profiles: &profiles,
    };
    let mut queue = Queue::new(QueueLimits::production(), now);
    let refused: PluginSet = [PluginId::NodeAffinity].into_iter().collect();
    for &pod in &pods {
        queue.add(cx, pod);
        queue.pop();
        queue.requeue(cx, pod, refused);
    }
    for (gone, left) in [(1, 4), (4, 3), (0, 2), (3, 1), (2, 0)] {
        queue.remove(pods[gone]);
        assert_eq!(queue.counts().unschedulable, left);
        assert_eq!(queue.audit(), Ok(()));
    }
}

/// Two pods that an event made worth another try before their wait is over: the second follows at its pace.
#[test]
fn early_tries_keep_their_pace() {
    let start = Instant::from_secs(100);
    let at = |millis| start + Span::from_millis(millis);
    let mut cluster = Cluster::new();
    let profiles = Profiles::new(&mut cluster.names, vec![Profile::default()]);
    let pods = [pod(&mut cluster, "first"), pod(&mut cluster, "second")];
    let room = Event::node_added(node(&mut cluster, 2_000));
    let cx = Context {
        cluster: &cluster,
        profiles: &profiles,
    };
    let refused: PluginSet = [PluginId::NodeResourcesFit].into_iter().collect();
    for (pace_ms, second_at_ms) in [(0, 1), (5, 6)] {
        let limits = QueueLimits {
            early_every: Span::from_millis(pace_ms),
            ..QueueLimits::production()
        };
        let mut queue = Queue::new(limits, start);
        for pod in pods {
            queue.add(cx, pod);
            assert_eq!(queue.pop(), Some(pod));
            queue.requeue(cx, pod, refused);
        }
        assert_eq!(queue.pop(), None, "nothing has happened");
        queue.advance(cx, at(1));
        queue.on_event(cx, &room);
        assert_eq!(queue.counts().backoff, 2);
        assert_eq!(queue.pop(), Some(pods[0]));
        let is_paced = pace_ms > 0;
        assert_eq!(queue.is_ready(), !is_paced);
        if is_paced {
            assert_eq!(queue.next_wake(), Some(at(second_at_ms)));
            queue.advance(cx, at(second_at_ms - 1));
            assert_eq!(queue.pop(), None);
        }
        queue.advance(cx, at(second_at_ms));
        assert_eq!(queue.pop(), Some(pods[1]), "{pace_ms} ms");
    }
}

/// A pod whose victims were asked only after it had become too old waits for the next check of ages. Until then nothing
/// is due: a wake in the past would be asked for again and again.
#[test]
fn a_pod_released_too_old_waits_for_the_next_check() {
    let start = Instant::from_secs(100);
    let mut cluster = Cluster::new();
    let profiles = Profiles::new(&mut cluster.names, vec![Profile::default()]);
    let pod = pod(&mut cluster, "preempts");
    let cx = Context {
        cluster: &cluster,
        profiles: &profiles,
    };
    let refused: PluginSet = [PluginId::NodeResourcesFit].into_iter().collect();
    let limits = QueueLimits {
        unschedulable_max: Span::from_secs(30),
        ..QueueLimits::production()
    };
    let mut queue = Queue::new(limits, start);
    queue.add(cx, pod);
    assert_eq!(queue.pop(), Some(pod));
    queue.hold(pod);
    queue.requeue(cx, pod, refused);
    queue.advance(cx, start + Span::from_secs(95));
    queue.release(cx, pod, Preempted::Asked);
    assert_eq!(queue.counts().unschedulable, 1);
    let check = start + Span::from_secs(120);
    assert_eq!(queue.next_wake(), Some(check));
    queue.advance(cx, check);
    assert_eq!(queue.pop(), Some(pod));
}
