use std::net::{IpAddr, Ipv4Addr};

use axum::Extension;
use axum::routing::get;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::serve::{Certificate, Peer};

/// A server under test: its address, its certificate, and how to stop it.
pub(crate) struct Running {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    pub(crate) stop: CancellationToken,
    cut_off: CutOff,
    /// The page `/slow` is asked for.
    begun: Arc<Notify>,
    ended: tokio::task::JoinHandle<()>,
}

/// What a client shows: a certificate, with its key.
type Shows = (
    CertificateDer<'static>,
    rustls::pki_types::PrivateKeyDer<'static>,
);

async fn start(limits: Limits) -> Running {
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let slow = async move || {
        begins.notify_one();
        sleep(Duration::from_millis(200)).await;
        "late"
    };
    let echo = async |body: String| body;
    let pages = Router::new()
        .route("/", get(async || "hello"))
        .route("/slow", get(slow))
        .route("/echo", axum::routing::post(echo))
        .route("/never", get(async || std::future::pending::<&str>().await));
    Running {
        begun,
        ..start_with(pages, None, limits).await
    }
}

async fn bind(clients: Option<Arc<dyn ClientCertVerifier>>, limits: Limits) -> Server {
    let listen = Listen {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        certificate: Certificate::SelfSigned {
            host: "node-1".to_owned(),
        },
    };
    Server::bind_any(listen, clients, limits).await.unwrap()
}

pub(crate) async fn start_with(
    pages: Router,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    limits: Limits,
) -> Running {
    let server = bind(clients, limits).await;
    let address = server.address();
    let certificate = server.certificate.shown();
    let stop = CancellationToken::new();
    let cut_off = server.cut_off().clone();
    let ended = tokio::spawn(server.run(pages, stop.clone()));
    Running {
        address,
        certificate,
        stop,
        cut_off,
        begun: Arc::default(),
        ended,
    }
}

impl Running {
    async fn connect(&self) -> TlsStream<TcpStream> {
        self.connect_as(None).await
    }

    async fn connect_as(&self, client: Option<Shows>) -> TlsStream<TcpStream> {
        self.connect_by(client, &[]).await
    }

    async fn connect_by(&self, client: Option<Shows>, protocols: &[&str]) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let connector = TlsConnector::from(trusting(&self.certificate, client, protocols));
        let name = ServerName::try_from("node-1").unwrap();
        connector.connect(name, stream).await.unwrap()
    }

    /// A client that has not begun yet.
    fn client(&self, client: Option<Shows>, protocols: &[&str]) -> rustls::ClientConnection {
        let name = ServerName::try_from("node-1").unwrap();
        rustls::ClientConnection::new(trusting(&self.certificate, client, protocols), name).unwrap()
    }

    pub(crate) async fn ask(&self, request: &str) -> String {
        self.ask_as(None, request).await
    }

    pub(crate) async fn ask_as(&self, client: Option<Shows>, request: &str) -> String {
        let mut stream = self.connect_as(client).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        String::from_utf8(answer).unwrap()
    }
}

/// The settings of a client that trusts this certificate.
fn trusting(
    certificate: &CertificateDer<'static>,
    client: Option<Shows>,
    protocols: &[&str],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match client {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => config
            .with_client_auth_cert(vec![certificate], key)
            .unwrap(),
    };
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    Arc::new(config)
}

const CLOSE: &str = "HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";

#[tokio::test]
async fn a_page_is_served_over_tls_under_the_name_of_the_host() {
    let server = start(Limits::default()).await;
    let answer = server.ask(&format!("GET / {CLOSE}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
    server.stop.cancel();
    server.ended.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_page_that_panics_is_answered() {
    let panics = get(async || -> &'static str { panic!("secret") });
    let pages = Router::new().route("/", panics);
    let server = start_with(pages, None, Limits::default()).await;
    let answer = server.ask(&format!("GET / {CLOSE}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
}

#[tokio::test]
async fn a_body_has_its_limit() {
    let limits = Limits {
        body_bytes_max: 4,
        ..Limits::default()
    };
    let server = start(limits).await;
    for (body, code) in [("1234", "200 OK"), ("12345", "413 Payload Too Large")] {
        let length = body.len();
        let request = format!("POST /echo {CLOSE}Content-Length: {length}\r\n\r\n{body}");
        let answer = server.ask(&request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{answer}");
    }
}

#[tokio::test]
async fn who_is_slow_is_let_go_and_holds_up_nobody() {
    let short = Duration::from_secs(1);
    let limits = Limits {
        connections_max: 2,
        first_request: short,
        headers: short,
        request: short,
        ..Limits::default()
    };
    let server = start(limits).await;
    // One says nothing at all, one stops within its headers: both places are taken.
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = server.connect().await;
    half.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
    let answer = server.ask(&format!("GET / {CLOSE}\r\n")).await;
    assert!(answer.ends_with("hello"), "{answer}");
    let mut rest = Vec::new();
    drop(half.read_to_end(&mut rest).await);
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    drop(silent);
    let answer = server.ask(&format!("GET /never {CLOSE}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
}

/// Before, 450 idle sockets kept every probe of a kubelet from the pages: all places were taken for half a minute.
#[tokio::test]
async fn connections_that_say_nothing_keep_no_probe_out() {
    let server = start(Limits::default()).await;
    let mut sockets = Vec::new();
    for _ in 0..450 {
        sockets.push(TcpStream::connect(server.address).await.unwrap());
    }
    let mut sessions = Vec::new();
    for _ in 0..80 {
        sessions.push(server.connect().await);
    }
    let request = format!("GET / {CLOSE}\r\n");
    let answer = timeout(Duration::from_secs(10), server.ask(&request)).await;
    assert!(answer.unwrap().ends_with("hello"));
}

/// Before, as many sockets as a peer has places closed a connection of that peer before its first request.
#[tokio::test]
async fn sockets_that_say_nothing_go_before_a_connection_that_has_spoken() {
    let server = start(Limits::default()).await;
    let mut probe = server.connect().await;
    let mut sockets = Vec::new();
    for _ in 0..450 {
        sockets.push(TcpStream::connect(server.address).await.unwrap());
    }
    // They have been taken: the server answers those that come after them.
    drop(server.ask(&format!("GET / {CLOSE}\r\n")).await);
    let request = format!("GET / {CLOSE}\r\n");
    probe.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    probe.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
}

/// A TLS connection from this loopback address.
async fn connect_from(server: &Running, last: u8) -> io::Result<TlsStream<TcpStream>> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)))?;
    let stream = socket.connect(server.address).await?;
    let connector = TlsConnector::from(trusting(&server.certificate, None, &[]));
    connector
        .connect(ServerName::try_from("node-1").unwrap(), stream)
        .await
}

/// The end of a body never comes.
const UNFINISHED: &[u8] =
    b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n";

/// Before, four peers with one unfinished body on each of their connections kept all other clients out, connected ones
/// too.
#[tokio::test]
async fn unfinished_bodies_of_four_peers_keep_nobody_out() {
    let limits = Limits {
        connections_max: 64,
        ..Limits::default()
    };
    let server = start(limits).await;
    let mut connected = connect_from(&server, 1).await.unwrap();
    let request = format!("GET / {CLOSE}\r\n");
    let mut held = Vec::new();
    for n in 0..96 {
        let mut stream = connect_from(&server, 2 + n % 4).await.unwrap();
        stream.write_all(UNFINISHED).await.unwrap();
        held.push(stream);
    }
    connected.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connected.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    let answer = server.ask(&request).await;
    assert!(answer.ends_with("hello"), "{answer}");
}

/// Before, the replica's own review found no place either, and took the registration out.
#[tokio::test]
async fn a_client_of_the_own_process_needs_no_place() {
    let limits = Limits {
        connections_max: 2,
        requests_max: 1,
        ..Limits::default()
    };
    let server = bind(None, limits).await;
    let (address, own) = (server.address(), server.own().clone());
    let cut_off = server.cut_off().clone();
    let certificate = server.certificate.shown();
    let who = async |Extension(peer): Extension<Peer>| peer.address.to_string();
    let pages = Router::new()
        .route("/", get(who))
        .route("/never", get(async || std::future::pending::<&str>().await));
    let stop = CancellationToken::new();
    let ended = tokio::spawn(server.run(pages, stop.clone()));
    let server = Running {
        address,
        certificate,
        stop,
        cut_off,
        begun: Arc::default(),
        ended,
    };
    let mut held = Vec::new();
    for last in [1, 2, 3] {
        let mut stream = connect_from(&server, last).await.unwrap();
        let request = format!("GET /never {CLOSE}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        held.push(stream);
    }
    let (_end, stream) = own.connect(server.address).await.unwrap();
    let connector = TlsConnector::from(trusting(&server.certificate, None, &[]));
    let name = ServerName::try_from("node-1").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let request = format!("GET / {CLOSE}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    // No client has this address: it has a share of its own of all that is shared, memory and turns too.
    assert!(answer.ends_with("\r\n0.0.0.0"), "{answer}");
}

/// Before, an API server saw a broken connection, perhaps with a review on its way.
#[tokio::test]
async fn a_client_whose_place_another_one_needs_gets_goaway() {
    let server = start(Limits {
        connections_max: 8,
        requests_at_once: 100,
        ..Limits::default()
    })
    .await;
    let stream = server.connect_by(None, &["h2"]).await;
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let request = Request::get("https://node-1/").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut other = server.connect().await;
        other
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        assert!(other.read(&mut [0; 512]).await.unwrap() > 0);
        others.push(other);
    }
    let ended = timeout(Duration::from_secs(5), connection).await;
    ended.unwrap().unwrap().unwrap();
}

/// Before, an API server kept its connection to a replica that could answer nothing, beside one that could.
#[tokio::test]
async fn a_server_that_is_cut_off_gives_each_connection_one_request_and_goaway() {
    let server = start(Limits {
        requests_at_once: 100,
        ..Limits::default()
    })
    .await;
    let ask = async |client: &mut h2::client::SendRequest<axum::body::Bytes>| {
        let request = Request::get("https://node-1/").body(()).unwrap();
        let (answer, _) = client.send_request(request, true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
    };
    let connect = async || {
        let stream = server.connect_by(None, &["h2"]).await;
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        (client.ready().await.unwrap(), connection)
    };
    let (mut old, old_connection) = connect().await;
    ask(&mut old).await;
    ask(&mut old).await;
    server.cut_off.set(true);
    let ended = timeout(Duration::from_secs(5), old_connection).await;
    ended.unwrap().unwrap().unwrap();
    let (mut new, new_connection) = connect().await;
    ask(&mut new).await;
    let ended = timeout(Duration::from_secs(5), new_connection).await;
    ended.unwrap().unwrap().unwrap();
    server.cut_off.set(false);
    let (mut again, again_connection) = connect().await;
    ask(&mut again).await;
    ask(&mut again).await;
    assert!(!again_connection.is_finished());
}

/// Before, probes of the scheduler waited for its decisions: a pod with thousands of terms takes a part of a second.
#[test]
fn a_server_apart_answers_while_the_callers_runtime_is_busy() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let server = runtime.block_on(bind(None, Limits::default()));
    let (address, certificate) = (server.address(), server.certificate.shown());
    let pages = Router::new().route("/", get(async || "hello"));
    server.run_apart(pages, stop.clone()).unwrap();
    // From here on nothing runs on this thread's runtime.
    let name = ServerName::try_from("node-1").unwrap();
    let mut client =
        rustls::ClientConnection::new(trusting(&certificate, None, &[]), name).unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let within = Some(Duration::from_secs(10));
    stream.set_read_timeout(within).unwrap();
    let answer = ask_by(&mut client, &mut stream).unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    stop.cancel();
}

/// Asks for a page on a blocking stream.
fn ask_by(
    client: &mut rustls::ClientConnection,
    stream: &mut std::net::TcpStream,
) -> io::Result<String> {
    use std::io::{Read, Write};
    let mut stream = rustls::Stream::new(client, stream);
    stream.write_all(format!("GET / {CLOSE}\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Before, a burst of sockets closed a connection of the same peer that had sent its greeting: more were accepted than a
/// peer has places before the first was read.
#[tokio::test]
async fn a_burst_of_sockets_closes_no_connection_that_has_spoken() {
    let server = start(Limits::default()).await;
    let address = server.address;
    // Everything up to the last socket happens before the server, which is on this thread, has a turn.
    let mut probe = server.client(None, &[]);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    probe.write_tls(&mut stream).unwrap();
    let sockets: Vec<std::net::TcpStream> = (0..100)
        .map(|_| std::net::TcpStream::connect(address).unwrap())
        .collect();
    let asked = tokio::task::spawn_blocking(move || ask_by(&mut probe, &mut stream));
    let answer = asked.await.unwrap().unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    drop(sockets);
}

#[tokio::test]
async fn a_connection_without_a_request_is_let_go_and_one_with_requests_is_kept() {
    let limits = Limits {
        first_request: Duration::from_secs(2),
        ..Limits::default()
    };
    let server = start(limits).await;
    let mut used = server.connect().await;
    let mut silent = server.connect().await;
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    used.write_all(request).await.unwrap();
    let over = timeout(Duration::from_secs(5), silent.read(&mut [0])).await;
    assert!(!matches!(over.unwrap(), Ok(1..)));
    for _ in 0..2 {
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            assert_ne!(used.read_buf(&mut answer).await.unwrap(), 0);
        }
        used.write_all(request).await.unwrap();
    }
}

#[tokio::test]
async fn headers_have_a_limit() {
    let server = start(Limits {
        requests_at_once: 100,
        ..Limits::default()
    })
    .await;
    let stream = server.connect_by(None, &["h2"]).await;
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let mut ask = |length: usize| {
        let request = Request::get("https://node-1/").header("x", "a".repeat(length));
        let (answer, _) = client
            .send_request(request.body(()).unwrap(), true)
            .unwrap();
        answer
    };
    assert_eq!(ask(7 << 10).await.unwrap().status(), 200);
    assert_eq!(ask(15 << 10).await.unwrap().status(), 431);
    let long = format!("GET / {CLOSE}X: {}\r\n\r\n", "a".repeat(20 << 10));
    let answer = server.ask(&long).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn told_to_stop_it_ends_what_it_is_at() {
    let server = start(Limits::default()).await;
    let mut idle = server.connect().await;
    let mut busy = server.connect().await;
    let request = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
    busy.write_all(request.as_bytes()).await.unwrap();
    server.begun.notified().await;
    server.stop.cancel();
    let mut answer = Vec::new();
    drop(busy.read_to_end(&mut answer).await);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("late"));
    drop(idle.read_to_end(&mut Vec::new()).await);
    server.ended.await.unwrap();
}

#[tokio::test]
async fn many_requests_share_a_connection_where_they_may_and_an_unused_one_is_let_go() {
    let limits = Limits {
        requests_at_once: 100,
        headers: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = start(limits).await;
    let stream = server.connect_by(None, &["h2", "http/1.1"]).await;
    let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    assert_eq!(chosen.as_deref(), Some(&b"h2"[..]));
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let begun = tokio::time::Instant::now();
    let mut answers = JoinSet::new();
    for _ in 0..50 {
        client = client.ready().await.unwrap();
        let request = Request::get("https://node-1/slow").body(()).unwrap();
        let (answer, _) = client.send_request(request, true).unwrap();
        answers.spawn(answer);
    }
    while let Some(answer) = answers.join_next().await {
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    // One after the other they would take ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(5));
    let over = timeout(Duration::from_secs(5), connection).await;
    over.unwrap().unwrap().unwrap();

    // A client with HTTP/1.1 is served; a client that sends nothing is disconnected.
    let answer = server.ask(&format!("GET / {CLOSE}\r\n")).await;
    assert!(answer.ends_with("hello"), "{answer}");
    let mut silent = server.connect().await;
    let over = timeout(Duration::from_secs(5), silent.read(&mut [0])).await;
    assert!(!matches!(over.unwrap(), Ok(1..)));

    // With the default limits, the server negotiates HTTP/1.1 only.
    let server = start(Limits::default()).await;
    let stream = server.connect_by(None, &["h2", "http/1.1"]).await;
    let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    assert_eq!(chosen.as_deref(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn an_address_in_use_is_named_and_port_0_is_off() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut listen = Listen {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port,
        certificate: Certificate::SelfSigned {
            host: String::new(),
        },
    };
    let bound = Server::bind(listen.clone(), None, Limits::default()).await;
    let error = bound.err().unwrap();
    let text = crate::serve::certificate::whole_text(&error);
    let expected = format!("cannot listen on 127.0.0.1:{port}: Address already in use");
    assert!(text.starts_with(&expected), "{text}");
    listen.port = 0;
    let off = Server::bind(listen, None, Limits::default()).await;
    assert!(off.unwrap().is_none());
}
