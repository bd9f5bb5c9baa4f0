//! Accepts connections and enforces their limits.

use std::convert::Infallible;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::DefaultBodyLimit;
use axum::response::Response;
use axum::{BoxError, Router};
use futures::{StreamExt, stream};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{Acceptor, NoClientAuth};
use socket2::SockRef;
use strew_runtime::Warning;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::certificate::{Certificate, Exchange, Shown, provider};
use super::distrust::Distrust;
use super::listen::{Listen, ServeError};
use super::own::OwnConnections;
use super::pages::error;
use super::patience::Patient;
use super::places::{NoPlace, Place, Places, Seat, UnderWay};
use crate::panics::{caught, kept};

/// The wait after a connection could not be accepted, because no file handles are left.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How long a connection whose place another one needs may take to end.
const FAREWELL: Duration = Duration::from_millis(100);

/// The longest headers of a request in bytes, for HTTP/2 and HTTP/1.1. Tokens of service accounts take 1 to 2 KiB.
const HEADERS_MAX: (u32, usize) = (8 << 10, 16 << 10);

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Concurrent connections, a quarter of them per peer; a further one closes a connection of the fullest peer.
    pub connections_max: usize,
    /// Concurrent requests, a quarter of them per peer; a further one gives up a request of the fullest peer.
    pub requests_max: usize,
    /// How often a peer without rights may be refused at once; further ones end its connections, and for a while it gets
    /// no new ones. `None`: without bound, for pages, since a kubelet shares its address with other clients.
    pub refusals_max: Option<u32>,
    /// The time limit for a connection's first request, its TLS handshake included.
    pub first_request: Duration,
    /// The time limit for a request's headers, and for a connection without requests. Source: k8s.io/apiserver
    /// `secure_serving.go` (32 s).
    pub headers: Duration,
    /// The time limit for an answer.
    pub request: Duration,
    /// The time limit for a client to read a part of an answer.
    pub write: Duration,
    /// The longest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// Concurrent requests on one HTTP/2 connection; 1: HTTP/1.1 only.
    pub requests_at_once: u32,
    /// How long connections may take to end during the shutdown.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 256,
            requests_max: 256,
            refusals_max: None,
            first_request: Duration::from_secs(5),
            headers: Duration::from_secs(32),
            request: Duration::from_secs(30),
            write: Duration::from_secs(30),
            body_bytes_max: 64 << 10,
            // Pages need no concurrent requests, and a client can hold up less without them.
            requests_at_once: 1,
            goodbye: Duration::from_secs(5),
        }
    }
}

/// A client's certificates, its own first; their signatures are not checked yet.
#[derive(Debug, Clone, Default)]
pub struct PeerCertificates(pub Arc<[rustls::pki_types::CertificateDer<'static>]>);

/// Whether the process is cut off from what its answers need.
///
/// While it is, each connection gets one request and GOAWAY: the client's next connection may find another replica. A
/// client that keeps its connection, as API servers do, would send it everything for ever.
#[derive(Debug, Clone, Default)]
pub struct CutOff(watch::Sender<bool>);

impl CutOff {
    /// Says whether it is.
    pub fn set(&self, is_cut_off: bool) {
        self.0
            .send_if_modified(|is| std::mem::replace(is, is_cut_off) != is_cut_off);
    }

    /// True if it is.
    pub fn is(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it is cut off and this connection has had a request; `begun` hears of each.
    async fn with_a_request(&self, seat: &Seat, begun: &Notify) {
        let mut is = self.0.subscribe();
        // The sender lives as long as `self`.
        while is.wait_for(|is| *is).await.is_ok() && seat.n_begun() == 0 {
            begun.notified().await;
        }
    }
}

/// In the extensions of an answer whose body goes on: its request counts as not answered until the body ends. The body
/// ends when the server stops, or when a peer with fewer requests needs the place.
#[derive(Debug, Clone, Copy)]
pub struct GoesOn;

/// A stream with or without TLS.
type Spoken = Either<TlsStream<Patient<TcpStream>>, Patient<TcpStream>>;

/// A listening server. It belongs to no runtime until it [runs](Server::run).
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    certificate: Arc<Shown>,
    /// `None`: HTTP without TLS.
    tls: Option<TlsAcceptor>,
    limits: Limits,
    own: OwnConnections,
    cut_off: CutOff,
}

impl Server {
    /// Listens; `None` for port 0. `clients` says which client certificates are requested.
    ///
    /// # Errors
    /// The address cannot be used, or the certificate's files are invalid.
    pub async fn bind(
        listen: Listen,
        clients: Option<Arc<dyn ClientCertVerifier>>,
        limits: Limits,
    ) -> Result<Option<Self>, ServeError> {
        match listen.port {
            0 => Ok(None),
            _ => Self::bind_any(listen, clients, limits).await.map(Some),
        }
    }

    /// As [`bind`](Self::bind); port 0 means any free port.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub async fn bind_any(
        listen: Listen,
        clients: Option<Arc<dyn ClientCertVerifier>>,
        limits: Limits,
    ) -> Result<Self, ServeError> {
        let certificate = Arc::new(Shown::new(listen.certificate, listen.address)?);
        let protocols: &[&[u8]] = match limits.requests_at_once {
            0 | 1 => &[b"http/1.1"],
            _ => &[b"h2", b"http/1.1"],
        };
        let tls = acceptor(Arc::clone(&certificate), clients, protocols);
        let tls = tls.map_err(ServeError::Tls)?;
        let address = SocketAddr::new(listen.address, listen.port);
        Self::listening(address, certificate, Some(tls), limits).await
    }

    /// Listens without TLS, for clients on this machine only; port 0 means any free port.
    ///
    /// # Errors
    /// The port cannot be used.
    pub async fn bind_loopback(port: u16, limits: Limits) -> Result<Self, ServeError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let none = Certificate::Exchanged(Exchange::default());
        let certificate = Arc::new(Shown::new(none, address.ip())?);
        Self::listening(address, certificate, None, limits).await
    }

    async fn listening(
        address: SocketAddr,
        certificate: Arc<Shown>,
        tls: Option<TlsAcceptor>,
        limits: Limits,
    ) -> Result<Self, ServeError> {
        let bound = TcpListener::bind(address).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener.into_std()?)));
        let (address, listener) = bound.map_err(|source| ServeError::Bind { address, source })?;
        Ok(Self {
            listener,
            address,
            certificate,
            tls,
            limits,
            own: OwnConnections::default(),
            cut_off: CutOff::default(),
        })
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The holder of its certificate; of a server without TLS, of none.
    pub fn certificate(&self) -> &Exchange {
        self.certificate.exchange()
    }

    /// How the process itself connects, with a place that no other client can take.
    pub fn own(&self) -> &OwnConnections {
        &self.own
    }

    /// Where the process says that it is cut off from what its answers need.
    pub fn cut_off(&self) -> &CutOff {
        &self.cut_off
    }

    /// As [`run`](Self::run), on a thread of its own: it answers while the caller's runtime is busy.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn run_apart(self, pages: Router, stop: CancellationToken) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let serve = move || runtime.block_on(self.run(pages, stop));
        let thread = std::thread::Builder::new().name("pages".to_owned());
        thread.spawn(serve).map(drop)
    }

    /// Serves until it is stopped; then open requests may finish.
    pub async fn run(self, pages: Router, stop: CancellationToken) {
        let (certificate, until) = (Arc::clone(&self.certificate), stop.clone());
        let follow = kept(move || Arc::clone(&certificate).follow(until.clone()));
        let pages = pages.layer(DefaultBodyLimit::max(self.limits.body_bytes_max));
        let Limits {
            connections_max,
            requests_max,
            refusals_max,
            ..
        } = self.limits;
        let places = Places::new(connections_max, requests_max, refusals_max, self.own);
        let places = Arc::new(places);
        let mut connections = JoinSet::new();
        let distrust = Arc::new(Distrust::default());
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => {
                let server = self.address.to_string();
                let serve = Warning {
                    kind: "server",
                    namespace: "",
                    name: &server,
                    node: None,
                    action: "serve",
                    error: &error.to_string(),
                    next: "none: its pages are away",
                };
                return serve.log();
            }
        };
        while let Some((stream, place)) = stop.run_until_cancelled(accept(&listener, &places)).await
        {
            while connections.try_join_next().is_some() {}
            let connection = Connection {
                tls: self.tls.clone(),
                distrust: Arc::clone(&distrust),
                limits: self.limits,
                stop: stop.clone(),
                cut_off: self.cut_off.clone(),
                place,
            };
            connections.spawn(connection.serve(stream, pages.clone()));
        }
        drop(listener);
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(self.limits.goodbye, all).await.is_err() {
            connections.shutdown().await;
        }
        drop(follow.await);
    }
}

async fn accept(listener: &TcpListener, places: &Arc<Places>) -> (TcpStream, Place) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!("a connection could not be taken: {error}");
                sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            }
        };
        let Some(place) = place(places, peer).await else {
            tracing::debug!(
                "a connection of {peer} was refused: it has too many, or was refused too often"
            );
            continue;
        };
        // With Nagle's algorithm, an answer of several frames would wait for the peer's acknowledgement, 40 ms on Linux.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("a connection is slower than it could be: {error}");
        }
        return (stream, place);
    }
}

/// A place for a connection of this peer; `None` if all of its connections are answering requests, or it is turned away.
async fn place(places: &Arc<Places>, peer: SocketAddr) -> Option<Place> {
    loop {
        match places.take(peer) {
            Ok(place) => return Some(place),
            Err(NoPlace::AllBusy | NoPlace::TurnedAway) => return None,
            Err(NoPlace::NotLookedAt) => places.looked().await,
        }
    }
}

pub(super) fn acceptor(
    certificate: Arc<Shown>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    protocols: &[&[u8]],
) -> Result<TlsAcceptor, rustls::Error> {
    let clients = clients.unwrap_or_else(|| Arc::new(NoClientAuth));
    let config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients);
    let mut config = config.with_cert_resolver(certificate);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// One connection.
struct Connection {
    tls: Option<TlsAcceptor>,
    distrust: Arc<Distrust>,
    limits: Limits,
    stop: CancellationToken,
    cut_off: CutOff,
    place: Place,
}

impl Connection {
    async fn serve(self, stream: TcpStream, pages: Router) {
        let began = Instant::now();
        self.place.0.look(has_data(&stream));
        let stream = Patient::new(stream, self.limits.write);
        let handshake = timeout(self.limits.first_request, self.handshake(stream));
        let stream = tokio::select! {
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return self.distrust.tell(&error),
                Err(_) => return,
            },
            () = self.place.0.closed.cancelled() => return,
            () = self.stop.cancelled() => return,
        };
        let peer = match &stream {
            Either::Left(stream) => stream.get_ref().1.peer_certificates(),
            Either::Right(_) => None,
        };
        let peer = PeerCertificates(peer.map(<[_]>::to_vec).unwrap_or_default().into());
        let patience = self.limits.request;
        let seat = Arc::clone(&self.place.0);
        let begun = Arc::new(Notify::new());
        let begins = Arc::clone(&begun);
        let stop = self.stop.clone();
        let service = tower::service_fn(move |request: Request<_>| {
            let (mut head, body) = request.into_parts();
            head.extensions.insert(peer.clone());
            head.extensions.insert(seat.peer());
            let under_way = seat.begin().map(Arc::new);
            begins.notify_one();
            let seat = Arc::clone(&seat);
            let (pages, stop) = (pages.clone(), stop.clone());
            async move {
                let Ok(under_way) = under_way else {
                    return Ok::<_, Infallible>(too_many());
                };
                let body = arriving(body, Arc::clone(&under_way));
                let answer = caught(pages.oneshot(Request::from_parts(head, body)));
                let answer = tokio::select! {
                    answer = timeout(patience, answer) => answer,
                    () = under_way.given_up() => {
                        seat.refused();
                        return Ok(too_many());
                    }
                };
                Ok(match answer {
                    Ok(Ok(Ok(answer))) => answering(answer, under_way, stop),
                    Ok(Err(_)) => error(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
                    Err(_) => too_late(),
                })
            }
        });
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .max_buf_size(HEADERS_MAX.1);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.requests_at_once)
            .max_header_list_size(HEADERS_MAX.0)
            .initial_connection_window_size(1 << 20)
            .initial_stream_window_size(256 << 10);
        if self.limits.requests_at_once <= 1 {
            http = http.http1_only();
        }
        let io = TokioIo::new(stream);
        let connection = http.serve_connection(io, TowerToHyperService::new(service));
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = until_unused(&self.place.0, self.limits.headers, &self.stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = self.cut_off.with_a_request(&self.place.0, &begun) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = self.without_request(began) => {
                // GOAWAY: the client sends its next request on another connection, and loses none.
                connection.as_mut().graceful_shutdown();
                drop(timeout(FAREWELL, connection).await);
                return;
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a connection broke: {error}");
        }
    }

    async fn handshake(&self, stream: Patient<TcpStream>) -> io::Result<Spoken> {
        let Some(tls) = &self.tls else {
            return Ok(Either::Right(stream));
        };
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        self.place.0.greet();
        let stream = begun.into_stream(Arc::clone(tls.config())).await?;
        Ok(Either::Left(stream))
    }

    /// Returns when another connection needs the place, or the first request is late.
    async fn without_request(&self, began: Instant) {
        let first = async {
            sleep_until(began + self.limits.first_request).await;
            if self.place.0.n_begun() > 0 {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = first => {}
            () = self.place.0.closed.cancelled() => {}
        }
    }
}

/// Returns when a connection was idle for this long, or must stop. HTTP/1.1 has its own limit for that.
async fn until_unused(seat: &Seat, idle: Duration, stop: &CancellationToken) {
    let mut seen = None;
    while stop.run_until_cancelled(sleep(idle)).await.is_some() {
        let begun = seat.n_begun();
        if seen == Some(begun) && !seat.any() {
            return;
        }
        seen = Some(begun);
    }
}

/// True if bytes of the client wait to be read. Asks the kernel: tokio knows only after its next turn.
fn has_data(stream: &TcpStream) -> bool {
    // The socket does not block: without data it is an error.
    let peeked = SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
    peeked.is_ok_and(|n| n > 0)
}

/// The body of a request. Its request is complete when the body has arrived.
fn arriving<B>(body: B, under_way: Arc<UnderWay>) -> Body
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    if body.is_end_stream() {
        under_way.complete();
        return Body::empty();
    }
    let parts = stream::unfold((body, under_way), |(mut body, under_way)| async move {
        loop {
            let frame = body.frame().await;
            if frame.is_none() || body.is_end_stream() {
                under_way.complete();
            }
            match frame?.map(|frame| frame.into_data()) {
                Ok(Ok(data)) => return Some((Ok(data), (body, under_way))),
                Ok(Err(_trailers)) => {}
                Err(error) => return Some((Err(error), (body, under_way))),
            }
        }
    });
    Body::from_stream(parts)
}

/// The answer; one that goes on keeps its request under way.
fn answering(answer: Response, under_way: Arc<UnderWay>, stop: CancellationToken) -> Response {
    if answer.extensions().get::<GoesOn>().is_none() {
        return answer;
    }
    let end = Box::pin(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = under_way.given_up() => {}
        }
    });
    answer.map(|body| Body::from_stream(body.into_data_stream().take_until(end)))
}

fn too_many() -> Response {
    let why = "too many requests of this client are under way";
    error(StatusCode::SERVICE_UNAVAILABLE, why)
}

fn too_late() -> Response {
    let mut answer = Response::new("the request took too long\n".into());
    *answer.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    answer
}

#[cfg(test)]
pub(crate) mod tests;
