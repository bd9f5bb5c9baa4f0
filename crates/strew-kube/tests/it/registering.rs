//! Replicas of the webhook that register themselves, each behind a port of its own, on an API server in memory.

use std::net::{IpAddr, Ipv4Addr};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use strew_kube::authority::rotator::Setup as Keeping;
use strew_kube::authority::{CertificateRotator, Lifetimes, Place};
use strew_kube::clock::Clock;
use strew_kube::leading::Leads;
use strew_kube::registration::{Guard, Setup, guard};
use strew_kube::serve::{Certificate, Exchange, Listen, Server};
use strew_kube::webhook::{About, Blueprint, Process, limits};
use strew_model::Interner;
use strew_model::time::Span;
use strew_scheduler::Profile;
use strew_wire::config::LeaderElection;
use strew_wire::lease::Settings;
use strew_wire::workloadspread::registration::{Reach, Registration};
use strew_workloadspread::facts::status::Webhook;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::FakeApiServer;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";
const SPREADS: &str = "/apis/apps.kruise.io/v1beta1/workloadspreads";
const NAMESPACE: &str = "strew-system";

fn registration() -> Registration {
    Registration {
        reach: Reach::Service(NAMESPACE.to_owned()),
        namespace: NAMESPACE.to_owned(),
        failure_policy: "Fail",
        excluded: Vec::new(),
        daemon_sets: false,
    }
}

/// A cluster in which WorkloadSpreads are known, and the webhook is installed.
fn installed() -> FakeApiServer {
    let world = FakeApiServer::default();
    world.set(MUTATING, registration().mutating());
    world.set(
        SPREADS,
        json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
            "metadata": {"name": "ws", "namespace": "shop", "uid": "ws"},
            "spec": {"subsets": [{"name": "own"}]},
        }),
    );
    world
}

/// A replica's process in a thread.
struct Replica {
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Replica {
    fn start(world: &FakeApiServer, name: &'static str, is_strict: bool) -> Self {
        let end = CancellationToken::new();
        let (world, told) = (world.clone(), end.clone());
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("a runtime");
            runtime.block_on(work(&world, name, is_strict, told));
        });
        Self {
            end,
            thread: Some(thread),
        }
    }

    /// Ends in good order.
    fn end(mut self) {
        self.end.cancel();
        let thread = self.thread.take().expect("it has not ended");
        thread.join().expect("it ends");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

async fn work(world: &FakeApiServer, name: &str, is_strict: bool, end: CancellationToken) {
    let connection = world.connection();
    let (client, clock) = (connection.client.clone(), Clock::new());
    let exchange = Exchange::default();
    let listen = Listen {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        certificate: Certificate::Exchanged(exchange.clone()),
    };
    let server = Server::bind_any(listen, None, limits()).await;
    let server = server.expect("a port");
    let rotator = CertificateRotator::new(keeping(name), client, clock, exchange.clone());
    let blueprint = Blueprint {
        profiles: vec![Profile::default()],
        names: Interner::new(),
        namespace: NAMESPACE.to_owned(),
        allowed_patches: Vec::new(),
        daemon_sets: false,
        writes: None,
        callers: None,
        seed: 1,
        about: About {
            version: "0".to_owned(),
            kubernetes: "v1.36.3".to_owned(),
            configuration: "{}".to_owned(),
        },
        exchange,
        rotator: Some(rotator),
        registration: Some(Setup {
            registration: registration(),
            is_strict,
            address: server.address(),
            own: server.own().clone(),
            cut_off: server.cut_off().clone(),
            replica: name.to_owned(),
        }),
    };
    let (process, served) = Process::start(blueprint, &connection, clock, end.clone());
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.run(served.hooks, stop.clone()));
    process.run(end).await;
    stop.cancel();
    drop(serving.await);
}

fn keeping(identity: &str) -> Keeping {
    let election = LeaderElection {
        resource_name: "strew-webhook".to_owned(),
        resource_namespace: NAMESPACE.to_owned(),
        ..LeaderElection::default()
    };
    Keeping {
        place: Place {
            namespace: NAMESPACE.to_owned(),
            service: "strew-webhook".to_owned(),
            url: None,
        },
        names: vec![format!("strew-webhook.{NAMESPACE}.svc")],
        lifetimes: Lifetimes::default(),
        manages: true,
        election: Settings::of(&election, identity.to_owned()),
        seed: 1,
    }
}

fn configuration(world: &FakeApiServer) -> Value {
    world.objects(MUTATING).remove(0)
}

fn is_registered(world: &FakeApiServer) -> bool {
    !configuration(world)["webhooks"][0].is_null()
}

/// The replica that wrote the configuration last.
fn mark(world: &FakeApiServer) -> String {
    let mark = &configuration(world)["metadata"]["annotations"]["webhook.strew.dev/registered-by"];
    mark.as_str().unwrap_or_default().to_owned()
}

/// The replicas that say that they are ready.
fn ready(world: &FakeApiServer) -> Vec<String> {
    let leases = world.objects(LEASES);
    let mut leases = leases.iter();
    let lease = leases.find(|lease| lease["metadata"]["name"] == "strew-webhook-replicas");
    let annotations = lease.and_then(|lease| lease["metadata"]["annotations"].as_object());
    let names = annotations.into_iter().flatten().map(|(name, _)| name);
    let names = names.filter_map(|name| name.strip_prefix("replica.webhook.strew.dev/"));
    names.map(str::to_owned).collect()
}

async fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not so: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_registers_itself_and_the_last_one_takes_it_out() {
    let world = installed();
    assert!(!is_registered(&world));
    let first = Replica::start(&world, "first", false);
    wait("the first has registered", || mark(&world) == "first").await;
    let webhook = configuration(&world)["webhooks"][0].clone();
    assert!(webhook["clientConfig"]["caBundle"].is_string(), "{webhook}");
    assert_eq!(webhook["failurePolicy"], "Fail");
    assert_eq!(ready(&world), ["first"]);
    let second = Replica::start(&world, "second", false);
    wait("the second has registered, too", || {
        mark(&world) == "second"
    })
    .await;
    assert_eq!(ready(&world), ["first", "second"]);
    tokio::task::block_in_place(|| first.end());
    assert!(is_registered(&world));
    assert_eq!(ready(&world), ["second"]);
    tokio::task::block_in_place(|| second.end());
    assert!(!is_registered(&world));
    assert!(ready(&world).is_empty());
}

/// The controller's eye, which says what it finds; it ends with the receiver.
fn guard(world: &FakeApiServer, is_strict: bool) -> tokio::sync::watch::Receiver<Webhook> {
    let settings = guard::Settings {
        patience: Span::from_secs(3),
        is_strict,
    };
    let (client, clock) = (world.connection().client, Clock::new());
    let (guard, said) = Guard::new(settings, client, NAMESPACE, clock, Leads::always(clock));
    tokio::spawn(guard.run());
    said
}

/// A configuration that a replica has written which is no more.
fn abandoned() -> FakeApiServer {
    let world = installed();
    let mut configuration = registration().mutating_registered();
    configuration["metadata"]["annotations"] = json!({"webhook.strew.dev/registered-by": "gone"});
    world.set(MUTATING, configuration);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_takes_out_what_no_replica_serves() {
    let world = abandoned();
    let said = guard(&world, false);
    wait("it is taken out", || !is_registered(&world)).await;
    wait("it is said", || *said.borrow() == Webhook::NotRegistered).await;
    let replica = Replica::start(&world, "back", false);
    wait("a replica is back", || is_registered(&world)).await;
    wait("that is said, too", || *said.borrow() == Webhook::Answers).await;
    drop(replica);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_controller_only_says_that_no_replica_is_ready() {
    let world = abandoned();
    let said = guard(&world, true);
    wait("it is said", || *said.borrow() == Webhook::NotReady).await;
    assert!(is_registered(&world));
    // What another program registered is not the controller's.
    world.set(MUTATING, registration().mutating_registered());
    wait("it is none of ours", || *said.borrow() == Webhook::Answers).await;
    assert!(is_registered(&world));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_without_the_right_asks_less_and_less() {
    let world = abandoned();
    world.break_path(&format!("{MUTATING}/strew-webhook"), 403, "forbidden");
    let said = guard(&world, false);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(*said.borrow(), Webhook::Unknown);
    let n_asked = world.n_refused();
    assert!((3..=7).contains(&n_asked), "{n_asked} requests in 5 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_end_at_once_do_not_count_on_each_other() {
    let world = installed();
    let first = Replica::start(&world, "first", false);
    wait("the first has registered", || mark(&world) == "first").await;
    let second = Replica::start(&world, "second", false);
    wait("both are ready", || ready(&world).len() == 2).await;
    first.end.cancel();
    tokio::task::block_in_place(|| {
        second.end();
        first.end();
    });
    assert!(!is_registered(&world));
    assert!(ready(&world).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_while_the_last_one_ends_stays_registered() {
    let world = installed();
    let first = Replica::start(&world, "first", false);
    wait("the first has registered", || mark(&world) == "first").await;
    let second = Replica::start(&world, "second", false);
    tokio::task::block_in_place(|| first.end());
    wait("the second has registered", || mark(&world) == "second").await;
    assert!(is_registered(&world));
    tokio::task::block_in_place(|| second.end());
    assert!(!is_registered(&world));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_webhook_stays_registered() {
    let world = installed();
    let replica = Replica::start(&world, "strict", true);
    wait("it has registered", || mark(&world) == "strict").await;
    tokio::task::block_in_place(|| replica.end());
    assert!(is_registered(&world));
    assert!(ready(&world).is_empty());
}
