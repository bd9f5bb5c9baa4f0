//! Watches of a server that goes on, cuts, and forgets.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use strew_kube::watch::Streams;
use strew_runtime::watch::{Kind, Object, Reading, Scope, Update, Watches};

use crate::server::{Server, start};

fn node(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": version},
    })
}

fn list(version: &str, items: &[Value]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "NodeList",
        "metadata": {"resourceVersion": version},
        "items": items,
    })
}

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

/// Watches, and the streams that bring their events.
struct Watching {
    watches: Watches,
    streams: Streams,
}

impl Watching {
    fn new() -> (Self, Server) {
        let (client, server) = start();
        let watching = Self {
            watches: Watches::default(),
            streams: Streams::new(client),
        };
        (watching, server)
    }

    fn start(&mut self, kind: Kind, reading: Reading) {
        self.tell(|watches| watches.start(kind, reading, &Scope::default()));
    }

    fn tell(&mut self, f: impl FnOnce(&mut Watches)) {
        f(&mut self.watches);
        while let Some(action) = self.watches.poll() {
            self.streams.carry_out(action);
        }
    }

    async fn next(&mut self) -> Update {
        loop {
            if let Some(update) = self.watches.next_update() {
                return update;
            }
            let (id, event) = self.streams.next().await;
            self.watches.take_in(id, event);
        }
    }
}

fn start_watch() -> (Watching, Server) {
    let (mut watching, server) = Watching::new();
    watching.start(Kind::of::<Node>(), Reading::Known);
    (watching, server)
}

/// What is told next, in short.
async fn next(watches: &mut Watching) -> String {
    match watches.next().await {
        Update::Listed(_) => "listed".to_owned(),
        Update::Set(_, named, object) => match &*object {
            Object::Known(_) | Object::Pod(_) => format!("set {}", named.name),
            Object::Custom(custom) => match &custom.scale {
                Some(scale) => format!("set {} of {}", named.name, scale["spec"]["replicas"]),
                None => format!("set {} without scale", named.name),
            },
        },
        Update::Gone(_, named) => format!("gone {}", named.name),
        Update::Again(_, namespace, objects) => format!("{} again in {namespace}", objects.len()),
    }
}

async fn several(watches: &mut Watching, n: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..n {
        all.push(next(watches).await);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_goes_on_where_it_stopped() {
    let (mut told, mut server) = start_watch();
    server
        .next()
        .await
        .answer(200, list("10", &[node("a", "5")]));
    let asked = server.next().await;
    assert!(asked.what.contains("watch=true") && asked.what.contains("resourceVersion=10"));
    asked.answer_with(200, &[], line("ADDED", &node("b", "11")));
    assert_eq!(several(&mut told, 3).await, ["set a", "listed", "set b"]);
    // The stream has ended: the next one begins after what was told last.
    let asked = server.next().await;
    assert!(asked.what.contains("resourceVersion=11"), "{}", asked.what);
    asked.answer_with(200, &[], line("DELETED", &node("a", "12")));
    assert_eq!(next(&mut told).await, "gone a");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_has_forgotten_begins_anew_with_a_list() {
    let (mut told, mut server) = start_watch();
    server
        .next()
        .await
        .answer(200, list("10", &[node("a", "5"), node("b", "6")]));
    let gone = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410,
        "reason": "Expired", "message": "too old resource version",
    });
    server
        .next()
        .await
        .answer_with(200, &[], line("ERROR", &gone));
    let before = several(&mut told, 3).await;
    assert_eq!(before, ["set a", "set b", "listed"]);
    assert!(told.watches.is_whole());
    // What has gone meanwhile, and what has the name of another, is told as well.
    let mut another = node("b", "80");
    another["metadata"]["uid"] = json!("another");
    let asked = server.next().await;
    assert!(!asked.what.contains("watch=true"), "{}", asked.what);
    asked.answer(200, list("90", &[another, node("c", "81")]));
    assert_eq!(
        several(&mut told, 5).await,
        ["gone b", "set b", "set c", "gone a", "listed"]
    );
    assert_eq!(told.watches.len(&Kind::of::<Node>()), 2);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_as_long_as_it_asks() {
    let (mut told, mut server) = start_watch();
    let busy = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
        "reason": "TooManyRequests", "message": "later", "details": {"retryAfterSeconds": 9},
    });
    let begun = tokio::time::Instant::now();
    server.next().await.answer(429, busy);
    let (told, ()) = tokio::join!(next(&mut told), async {
        server.next().await.answer(200, list("10", &[]));
        assert!(begun.elapsed().as_secs() >= 9, "{:?}", begun.elapsed());
    });
    assert_eq!(told, "listed");
}

fn game(name: &str, version: &str) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": version},
        "spec": {"replicas": 3},
    })
}

fn games() -> Kind {
    Kind::new("example.org", "v1", "Game", "games")
}

#[tokio::test(start_paused = true)]
async fn an_object_of_a_custom_kind_comes_with_its_scale_and_in_order() {
    let (mut watches, mut server) = Watching::new();
    let reading = Reading::Custom { has_scale: true };
    watches.start(games(), reading);
    server
        .next()
        .await
        .answer(200, list("10", &[game("a", "5"), game("b", "6")]));
    let scale =
        |n: u32| json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": n}});
    let (told, ()) = tokio::join!(several(&mut watches, 3), async {
        // The watch goes on meanwhile.
        let watch = server.next().await;
        assert!(watch.what.contains("watch=true"), "{}", watch.what);
        let first = server.next().await;
        assert_eq!(
            first.what,
            "GET /apis/example.org/v1/namespaces/shop/games/a/scale"
        );
        // The second is asked for before the first has come, and told after it.
        server.next().await.answer(200, scale(7));
        first.answer(200, scale(5));
    });
    assert_eq!(told, ["set a of 5", "set b of 7", "listed"]);

    watches.tell(|watches| watches.stop(&games()));
    assert_eq!(several(&mut watches, 2).await, ["gone a", "gone b"]);
    assert!(watches.watches.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_does_not_stop_the_others() {
    let (mut watches, mut server) = Watching::new();
    let clusters = Kind::new(
        "cluster.open-cluster-management.io",
        "v1",
        "ManagedCluster",
        "managedclusters",
    );
    watches.start(clusters.clone(), Reading::Known);
    let mut odd = json!({"metadata": {"name": "odd", "uid": "1"}, "spec": {"taints": "none"}});
    let good = json!({"metadata": {"name": "good", "uid": "2"}});
    server
        .next()
        .await
        .answer(200, list("10", &[odd.clone(), good]));
    assert_eq!(several(&mut watches, 2).await, ["set good", "listed"]);
    // It counts as there, and is told when it is mended.
    assert_eq!(watches.watches.len(&clusters), 2);
    odd["spec"] = json!({});
    odd["metadata"]["resourceVersion"] = json!("11");
    server
        .next()
        .await
        .answer_with(200, &[], line("MODIFIED", &odd));
    assert_eq!(next(&mut watches).await, "set odd");
}

fn pod(name: &str, uid: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name, "uid": uid, "resourceVersion": "5"}})
}

#[tokio::test(start_paused = true)]
async fn what_is_read_again_is_only_what_is_there() {
    let (mut watches, mut server) = Watching::new();
    watches.start(Kind::of::<Pod>(), Reading::Known);
    let all = [pod("a", "1"), pod("b", "2")];
    server.next().await.answer(200, list("10", &all));
    assert_eq!(several(&mut watches, 3).await, ["set a", "set b", "listed"]);
    let watch = server.next().await;
    watches.tell(|watches| watches.read_again(&Kind::of::<Pod>(), "shop"));
    let asked = server.next().await;
    assert!(
        asked.what.starts_with("GET /api/v1/namespaces/shop/pods?"),
        "{}",
        asked.what
    );
    // One is another object by now, one was not told of yet.
    let again = [pod("a", "1"), pod("b", "3"), pod("c", "4")];
    asked.answer(200, list("11", &again));
    assert_eq!(next(&mut watches).await, "1 again in shop");

    // Begun anew, all is told once more, and what the old watch would still have said is not.
    watches.tell(|watches| watches.restart(&Kind::of::<Pod>()));
    drop(watch);
    server
        .next()
        .await
        .answer(200, list("12", &[pod("b", "3")]));
    assert_eq!(
        several(&mut watches, 4).await,
        ["gone b", "set b", "gone a", "listed"]
    );
}
