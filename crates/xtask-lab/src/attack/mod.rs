//! Misbehaving clients against a process on this machine: `cargo xtask attack`.
//!
//! An attack goes on until standard input ends, or for `--seconds`, and prints its result as one line of JSON.
//! [`connections`] take places, [`bodies`] and [`headers`] take memory, [`strangers`] send reviews of their own, [`pods`]
//! are objects of a tenant.

mod bodies;
mod connections;
mod headers;
mod pods;
mod strangers;
mod tally;

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use xtask_lab::lab::https::client_config;

pub(crate) use pods::Tenant;
use strangers::Sent;
use tally::Tally;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Attack {
    #[command(subcommand)]
    what: What,
    /// Seconds until it ends; the end of standard input ends it in any case
    #[arg(long, default_value_t = 60, global = true)]
    seconds: u64,
    /// The loopback address that connections come from: servers tell peers apart by it
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST, global = true)]
    from: Ipv4Addr,
}

/// Which attack. Ports are those of the loopback address.
#[derive(clap::Subcommand)]
enum What {
    /// Sockets that say nothing; one that is closed is opened again a second later
    Sockets(Connections),
    /// The same after a TLS handshake
    Sessions(Connections),
    /// Bodies of 8 MiB, `[[0],[0],…`, in a loop
    Values(Connections),
    /// Streams of HTTP/2 with 15 KiB of headers each, which never end
    Headers(Connections),
    /// Chunked bodies of which one byte comes
    Stalled(Connections),
    /// Bodies of one byte that never end, two on each connection of HTTP/2
    Unfinished(Reviews),
    /// Small valid reviews of pods, 64 on each connection
    Reviews(Reviews),
    /// Small valid reviews of WorkloadSpreads, 32 on each connection
    Validations(Reviews),
    /// Pods with many terms under a WorkloadSpread with simulated scheduling
    Pods(Tenant),
    /// Pods of which each has its own labels and a term on them; all go before the next thousand
    Churn(Tenant),
}

/// Connections to a port.
#[derive(clap::Args)]
struct Connections {
    /// The port
    #[arg(long)]
    port: u16,
    /// How many connections
    #[arg(long, default_value_t = 4)]
    connections: u32,
}

/// Connections that send reviews.
#[derive(clap::Args)]
struct Reviews {
    #[command(flatten)]
    connections: Connections,
    /// From how many loopback addresses they come, from --from on
    #[arg(long, default_value_t = 1)]
    peers: u32,
    /// The namespace of the objects in them
    #[arg(long, default_value = "default")]
    namespace: String,
}

/// The path of reviews of pods.
const HOOK: &str = "/admit/pods";

/// The pause before a closed connection is made again, so that an attack is not a flood of handshakes.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Attacks until the end of standard input, or of the time.
pub(crate) fn run(options: Attack) -> anyhow::Result<ExitCode> {
    let (over, is_over) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Any end of the input ends the attack.
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        let _ = over.send(());
    });
    let tally = Arc::new(Tally::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let attack = start(options.what, options.from, Arc::clone(&tally));
        tokio::select! {
            ended = attack => ended,
            _ = is_over => Ok(()),
            () = tokio::time::sleep(Duration::from_secs(options.seconds)) => Ok(()),
        }
    })?;
    println!("{tally}");
    // Does not wait for tasks that are under way.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn start(what: What, from: Ipv4Addr, tally: Arc<Tally>) -> anyhow::Result<()> {
    let way = |port| Way { from, port };
    let tally = || Arc::clone(&tally);
    match what {
        What::Sockets(Connections { port, connections }) => {
            many(connections, || connections::socket(way(port), tally())).await
        }
        What::Sessions(Connections { port, connections }) => {
            many(connections, || connections::session(way(port), tally())).await
        }
        What::Values(Connections { port, connections }) => {
            let body = bodies::values();
            many(connections, || {
                bodies::post(way(port), body.clone(), tally())
            })
            .await
        }
        What::Stalled(Connections { port, connections }) => {
            let body = bodies::stalled();
            many(connections, || {
                bodies::post(way(port), body.clone(), tally())
            })
            .await
        }
        What::Headers(Connections { port, connections }) => {
            many(connections, || headers::streams(way(port), tally())).await
        }
        What::Unfinished(reviews) => strange(reviews, from, Sent::Unfinished, tally()).await,
        What::Reviews(reviews) => strange(reviews, from, Sent::Pods, tally()).await,
        What::Validations(reviews) => strange(reviews, from, Sent::Spreads, tally()).await,
        What::Pods(tenant) => pods::hostile(tenant, tally()).await,
        What::Churn(tenant) => pods::churn(tenant, tally()).await,
    }
}

/// Busy connections, in turn from each address.
async fn strange(
    reviews: Reviews,
    from: Ipv4Addr,
    sent: Sent,
    tally: Arc<Tally>,
) -> anyhow::Result<()> {
    let Connections { port, connections } = reviews.connections;
    let namespace: Arc<str> = reviews.namespace.into();
    let number = Cell::new(0);
    many(connections, || {
        let peer = number.get() % reviews.peers.max(1);
        number.set(number.get() + 1);
        let from = Ipv4Addr::from_bits(from.to_bits() + peer);
        let way = Way { from, port };
        strangers::busy(way, sent, Arc::clone(&namespace), Arc::clone(&tally))
    })
    .await
}

/// Runs `n` futures at once; none of them ends by itself.
async fn many<F>(n: u32, make: impl Fn() -> F) -> anyhow::Result<()>
where
    F: Future<Output = std::convert::Infallible> + Send + 'static,
{
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..n {
        tasks.spawn(make());
    }
    while let Some(ended) = tasks.join_next().await {
        let _: std::convert::Infallible = ended?;
    }
    Ok(())
}

/// The source address and the port of an attack's connections.
#[derive(Clone, Copy)]
struct Way {
    from: Ipv4Addr,
    port: u16,
}

async fn connect(way: Way) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((way.from, 0)))?;
    let stream = socket
        .connect(SocketAddr::from((Ipv4Addr::LOCALHOST, way.port)))
        .await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A TLS connection that asks for this protocol.
async fn connect_by_tls(way: Way, protocol: &str) -> anyhow::Result<TlsStream<TcpStream>> {
    let mut config = client_config()?;
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::try_from("localhost")?;
    let stream = connect(way).await?;
    Ok(TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?)
}

/// Returns when the other side has closed the connection; ignores what it sends before.
async fn until_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut said = [0; 1024];
    while stream.read(&mut said).await.is_ok_and(|n| n > 0) {}
}
