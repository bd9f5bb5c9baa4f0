//! A tenant that asks at full speed, over TLS and loopback, of a webhook that is served as `strew webhook` serves it.
//!
//! What is judged is an order: how much of the crowd is answered while one other is. Times are printed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use strew_kube::serve::{Certificate, Limits, Listen, Server};
use strew_kube::webhook::limits;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

/// The number of reviews of the crowd that are under way at any moment.
const CROWD: usize = 32;

/// So often is asked beside it.
const ASKED: usize = 48;

/// A server that is asked.
#[derive(Clone)]
struct Door {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
}

impl Door {
    async fn connect(&self) -> Line {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.expect("it listens");
        let name = ServerName::try_from("node-1").expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.expect("TLS");
        Line(BufReader::new(stream))
    }
}

/// A connection that is kept.
struct Line(BufReader<TlsStream<TcpStream>>);

impl Line {
    /// Code and text of an answer.
    async fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        let asked = [head.as_bytes(), body.as_bytes()].concat();
        self.0.write_all(&asked).await.expect("it reads");
        let (mut code, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.expect("a line");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(status) = line.strip_prefix("http/1.1 ") {
                code = status[..3].parse().expect("a code");
            }
            if let Some(number) = line.strip_prefix("content-length: ") {
                length = number.parse().expect("a length");
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.expect("a body");
        (code, String::from_utf8(body).expect("a text"))
    }
}

/// A webhook at work, served.
struct Served {
    hooks: Door,
    pages: Door,
    end: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// One thread has connections, probes and the process, as in `strew webhook`.
async fn serve(world: &FakeApiServer) -> Served {
    let end = CancellationToken::new();
    let (to, doors) = tokio::sync::oneshot::channel();
    let (connection, told) = (world.connection(), end.clone());
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (process, served) =
                Process::start(blueprint(), &connection, Clock::new(), told.clone());
            let hooks = door(served.hooks, limits(), &told).await;
            let pages = door(served.pages, Limits::default(), &told).await;
            assert!(to.send([hooks, pages]).is_ok(), "the test waits");
            process.run(told).await;
        });
    });
    let [hooks, pages] = doors.await.expect("the process starts");
    let served = Served { hooks, pages, end };
    wait(async || {
        let mut line = served.pages.connect().await;
        line.ask("GET", "/readyz/watches", "").await.0 == 200
    })
    .await;
    served
}

async fn door(pages: Router, limits: Limits, end: &CancellationToken) -> Door {
    let listen = Listen {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        certificate: Certificate::SelfSigned {
            host: "node-1".to_owned(),
        },
    };
    let server = Server::bind_any(listen, None, limits).await;
    let server = server.expect("a port is free");
    let door = Door {
        address: server.address(),
        certificate: server.certificate().certificate().expect("it was made"),
    };
    tokio::spawn(server.run(pages, end.clone()));
    door
}

/// The same of a tenant `eve`, whose WorkloadSpread asks whether nodes take her pods.
fn crowded_world() -> FakeApiServer {
    let world = world();
    let of_eve = |mut object: Value| {
        object["metadata"]["namespace"] = "eve".into();
        object["metadata"]["uid"] = format!("eve-{}", object["metadata"]["uid"]).into();
        object
    };
    world.set(DEPLOYMENTS, of_eve(deployment()));
    world.set(REPLICA_SETS, of_eve(replica_set()));
    let mut spread = of_eve(spread());
    spread["spec"]["scheduleStrategy"] = json!({"type": "Adaptive", "adaptive": {}});
    spread["spec"]["subsets"][0]["maxReplicas"] = Value::Null;
    world.set(SPREADS, spread);
    for i in 0..20 {
        let zone = ["a", "b"][i % 2];
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("n{i}"), "labels": {"zone": zone}},
            "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
        });
        world.set("/api/v1/nodes", node);
    }
    world
}

/// A pod of eve: just below what simulated scheduling answers for, and each of its own class.
fn of_eve(n: usize) -> String {
    let mut review = review("CREATE", &format!("web-7-{n}"));
    review["request"]["namespace"] = "eve".into();
    let pod = &mut review["request"]["object"];
    pod["metadata"]["namespace"] = "eve".into();
    let terms: Vec<Value> = (0..64)
        .map(|i| {
            let labels = json!({"app": format!("{n}-{i}")});
            json!({"topologyKey": "zone", "labelSelector": {"matchLabels": labels}})
        })
        .collect();
    pod["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    let environment = (0..250).map(|i| json!({"name": format!("E{i}"), "value": "v"}));
    pod["spec"]["containers"][0]["env"] = environment.collect();
    review.to_string()
}

/// A tenant at full speed: as soon as a review is answered, another one comes.
struct Crowd {
    answered: Arc<AtomicUsize>,
    _asking: JoinSet<()>,
}

impl Crowd {
    fn of(hooks: &Door) -> Self {
        let (asked, answered) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let mut asking = JoinSet::new();
        for _ in 0..CROWD {
            let (hooks, asked) = (hooks.clone(), Arc::clone(&asked));
            let answered: Arc<AtomicUsize> = Arc::clone(&answered);
            asking.spawn(async move {
                let mut line = hooks.connect().await;
                loop {
                    let review = of_eve(asked.fetch_add(1, Ordering::Relaxed));
                    let (code, text) = line.ask("POST", "/admit/pods", &review).await;
                    assert_eq!(code, 200, "{text}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self {
            answered,
            _asking: asking,
        }
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Asks something again and again, and returns how many reviews of the crowd were answered while it was, and the
    /// longest time that it took.
    ///
    /// Of the numbers, it is the lower quartile: a thread that counts may itself have waited for a core, and then counts
    /// more. Without any order, each of the numbers is nearly all of the crowd.
    async fn beside(&self, ask: impl AsyncFn(usize) -> u16) -> (usize, Duration) {
        wait(async || self.answered() >= CROWD).await;
        let (mut between, mut longest) = (Vec::new(), Duration::ZERO);
        for n in 0..ASKED {
            let (before, began) = (self.answered(), Instant::now());
            assert_eq!(ask(n).await, 200);
            between.push(self.answered() - before);
            longest = longest.max(began.elapsed());
        }
        between.sort_unstable();
        (between[ASKED / 4], longest)
    }
}

/// Before, each step of a probe's handshake waited until all that had come was decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_keeps_no_probe_waiting() {
    let served = serve(&crowded_world()).await;
    let crowd = Crowd::of(&served.hooks);
    // As a kubelet asks: on a connection of its own each time.
    let probe = async |_| {
        let mut line = served.pages.connect().await;
        line.ask("GET", "/livez", "").await.0
    };
    let (between, longest) = crowd.beside(probe).await;
    println!("{between} reviews of the crowd are answered while a probe is; {longest:?} at most");
    assert!(between <= CROWD / 2, "{between}");
}

/// Before, a review waited for all earlier ones, of any namespace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_one_namespace_holds_up_no_other() {
    let served = serve(&crowded_world()).await;
    let line = tokio::sync::Mutex::new(served.hooks.connect().await);
    let of_shop = async |n: usize| {
        let review = review("CREATE", &format!("web-7-{n}")).to_string();
        let (code, text) = line.lock().await.ask("POST", "/admit/pods", &review).await;
        let answer: Value = serde_json::from_str(&text).expect("a review");
        assert!(answer["response"]["patch"].is_string(), "{text}");
        code
    };
    let crowd = Crowd::of(&served.hooks);
    let (between, longest) = crowd.beside(of_shop).await;
    println!("{between} reviews of the crowd are answered while another is; {longest:?} at most");
    assert!(between <= CROWD / 4, "{between}");
}
