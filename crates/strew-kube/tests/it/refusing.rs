//! What an API server refuses for ever costs at most 20 requests in ten minutes: of everything that asks by itself.
//!
//! Requests of machines are tried in `strew-runtime`, what says when the webhook is registered beside its plan, and the
//! controller's search for kinds beside itself.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use serde_json::json;
use strew_kube::authority::rotator::Setup;
use strew_kube::authority::{CertificateRotator, Lifetimes, Place};
use strew_kube::clock::Clock;
use strew_kube::discovery;
use strew_kube::leading::{Leading, Leads};
use strew_kube::registration::{Guard, guard};
use strew_kube::serve::Exchange;
use strew_kube::watch::Streams;
use strew_runtime::watch::{Kind, Reading, Scope, Watches};
use strew_wire::config::LeaderElection;
use strew_wire::lease::Settings;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::world::{FakeApiServer, Refusal};

const TEN_MINUTES: Duration = Duration::from_secs(600);

const REQUESTS_MAX: usize = 20;

const REFUSALS: [Refusal; 5] = [
    Refusal::Code(403),
    Refusal::Code(409),
    Refusal::Code(422),
    Refusal::Code(500),
    Refusal::NoConnection,
];

const SECRETS: &str = "/api/v1/namespaces/strew-system/secrets";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/strew-system/leases";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const GAMES: &str = "/apis/example.org/v1/games";

/// Plays ten minutes with each refusal of what begins so, of which each request is sent `max` times at most.
async fn check<F: Future>(refused: &str, max: usize, play: impl Fn(FakeApiServer) -> F) {
    for refusal in REFUSALS {
        let world = FakeApiServer::default();
        world.refuse(refused, refusal);
        // It goes on for ever, or has ended since something is missing.
        drop(timeout(TEN_MINUTES, play(world.clone())).await);
        let sent = world.n_sent();
        let (asked, n) = sent.iter().max_by_key(|(_, n)| **n).unwrap_or_else(|| {
            panic!("{refused} is never asked: {refusal:?}");
        });
        assert!(*n <= max, "{asked}: {n} times in ten minutes, {refusal:?}");
    }
}

/// Watches a kind; one of the kind `Game` changes each second.
async fn watch(world: FakeApiServer, kind: Kind, reading: Reading) {
    let mut streams = Streams::new(world.connection().client);
    let mut watches = Watches::default();
    watches.start(kind, reading, &Scope::default());
    while let Some(action) = watches.poll() {
        streams.carry_out(action);
    }
    let mut round = 0;
    loop {
        let game = json!({
            "apiVersion": "example.org/v1", "kind": "Game",
            "metadata": {"name": "chess", "namespace": "shop", "uid": "1"}, "spec": {"round": round},
        });
        world.set(GAMES, game);
        round += 1;
        let second = sleep(Duration::from_secs(1));
        let mut second = std::pin::pin!(second);
        while !second.is_elapsed() {
            tokio::select! {
                (id, event) = streams.next() => watches.take_in(id, event),
                () = &mut second => {}
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_watches() {
    let nodes = |world| watch(world, Kind::of::<Node>(), Reading::Known);
    check("GET /api/v1/nodes", REQUESTS_MAX, nodes).await;
    check("GET /api/v1/nodes?watch", REQUESTS_MAX, nodes).await;
    let games = |world| {
        let kind = Kind::new("example.org", "v1", "Game", "games");
        watch(world, kind, Reading::Custom { has_scale: true })
    };
    check(&format!("GET {GAMES}"), REQUESTS_MAX, games).await;
    let scale = "GET /apis/example.org/v1/namespaces/shop/games/chess/scale";
    check(scale, REQUESTS_MAX, games).await;
}

#[tokio::test(start_paused = true)]
async fn of_the_list_of_kinds() {
    let look = async |world: FakeApiServer| {
        let mut served = discovery::look(world.connection().client);
        while served.recv().await.is_some() {}
    };
    check("GET /api", REQUESTS_MAX, look).await;
    check("GET /apis", REQUESTS_MAX, look).await;
}

fn election() -> Settings {
    let election = LeaderElection {
        resource_name: "strew-webhook".to_owned(),
        resource_namespace: "strew-system".to_owned(),
        ..LeaderElection::default()
    };
    Settings::of(&election, "here".to_owned())
}

async fn keep(world: FakeApiServer) {
    let setup = Setup {
        place: Place {
            namespace: "strew-system".to_owned(),
            service: "strew-webhook".to_owned(),
            url: None,
        },
        names: vec!["strew-webhook.strew-system.svc".to_owned()],
        lifetimes: Lifetimes::default(),
        manages: true,
        election: election(),
        seed: 1,
    };
    let client = json!({"service": {"namespace": "strew-system", "name": "strew-webhook"}});
    world.set(
        MUTATING,
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "strew-webhook"},
            "webhooks": [{"name": "pods.strew.dev", "clientConfig": client}],
        }),
    );
    let client = world.connection().client;
    let rotator = CertificateRotator::new(setup, client, Clock::of_timers(), Exchange::default());
    rotator.run(CancellationToken::new()).await;
}

#[tokio::test(start_paused = true)]
async fn of_who_keeps_certificates() {
    check(&format!("GET {SECRETS}"), REQUESTS_MAX, keep).await;
    check(&format!("POST {SECRETS}"), REQUESTS_MAX, keep).await;
    check(&format!("GET {MUTATING}"), REQUESTS_MAX, keep).await;
    check(&format!("PATCH {MUTATING}"), REQUESTS_MAX, keep).await;
}

/// The controller's eye on the webhook, of which no replica is ready.
async fn watch_over_webhook(world: FakeApiServer) {
    world.set(
        MUTATING,
        json!({
            "metadata": {"name": "strew-webhook", "annotations": {"webhook.strew.dev/registered-by": "gone"}},
            "webhooks": [{"name": "pods.strew.dev"}],
        }),
    );
    let (client, clock) = (world.connection().client, Clock::of_timers());
    let settings = guard::Settings::default();
    let (guard, said) = Guard::new(
        settings,
        client,
        "strew-system",
        clock,
        Leads::always(clock),
    );
    guard.run().await;
    drop(said);
}

#[tokio::test(start_paused = true)]
async fn of_who_takes_out_the_webhook() {
    check(&format!("GET {MUTATING}"), REQUESTS_MAX, watch_over_webhook).await;
    check(
        &format!("PATCH {MUTATING}"),
        REQUESTS_MAX,
        watch_over_webhook,
    )
    .await;
    check(&format!("GET {LEASES}"), REQUESTS_MAX, watch_over_webhook).await;
}

/// A lease is the exception: a leader must renew it within 10 s, and others must see soon that it did not. So a replica
/// tries again after half a retry period (2 s, as client-go's) and some jitter, whatever is answered: once a second at most.
#[tokio::test(start_paused = true)]
async fn of_leases() {
    let lead = async |world: FakeApiServer| {
        let client = world.connection().client;
        let clock = Clock::of_timers();
        let mut leading = Leading::new(Some(election()), client, clock, 1);
        loop {
            leading.turn();
            let wake = leading.next_wake().map(|at| clock.until(at));
            let wake = wake.unwrap_or(Duration::from_secs(1));
            tokio::select! {
                () = leading.answered() => {}
                () = sleep(wake) => {}
            }
        }
    };
    check(&format!("GET {LEASES}"), 600, lead).await;
    check(&format!("POST {LEASES}"), 600, lead).await;
}
