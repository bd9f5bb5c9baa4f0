//! A stand-in for a Service of Kubernetes where no Service network exists: one address, which forwards to the ready
//! replicas behind it, in turn.
//!
//! It forwards connections as bytes: certificates, timeouts and hang-ups are those of the replica.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;

use super::https::ask;
use super::wait::rest;

/// The pause between two probes of readiness; a kubelet's are further apart.
const PROBE_EVERY: Duration = Duration::from_millis(200);

/// A replica that does not answer a probe in this time is not ready.
const PROBE_WITHIN: Duration = Duration::from_secs(1);

/// A connection to a port of this machine is made at once, or not at all.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// The stack of a thread that forwards bytes.
const STACK: usize = 64 << 10;

/// Forwards until it is dropped.
pub struct Service {
    port: u16,
    replicas: Arc<Mutex<Replicas>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The replicas behind the address.
#[derive(Default)]
struct Replicas {
    all: Vec<Replica>,
    /// The index of the next replica.
    turn: usize,
    /// The port of the only replica that gets connections, if one is chosen.
    only: Option<u16>,
    /// Both sides of the forwarded connections.
    passed_on: Vec<Weak<TcpStream>>,
}

#[derive(Clone, Copy)]
struct Replica {
    port: u16,
    /// The port of `/readyz`.
    pages: u16,
    is_ready: bool,
}

impl Service {
    /// An address without a replica.
    ///
    /// If there is no port, or no thread.
    /// No port, or no thread.
    pub fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let replicas = Arc::new(Mutex::new(Replicas::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let mut service = Self {
            port,
            replicas: replicas.clone(),
            is_over: is_over.clone(),
            threads: Vec::new(),
        };
        let (known, over) = (replicas.clone(), is_over.clone());
        service.spawn("accept", move || accept(&listener, &known, &over))?;
        service.spawn("probe", move || probe(&replicas, &is_over))?;
        Ok(service)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds a replica, which serves one port, and reports its readiness at `/readyz` of another one.
    pub fn add(&self, port: u16, pages: u16) {
        lock(&self.replicas).all.push(Replica {
            port,
            pages,
            is_ready: false,
        });
    }

    /// Gives new connections only to the replica of this port; existing connections stay.
    pub fn give_only(&self, port: u16) {
        lock(&self.replicas).only = Some(port);
    }

    /// Ends all forwarded connections: both sides see the end.
    pub fn cut(&self) {
        let sides = std::mem::take(&mut lock(&self.replicas).passed_on);
        for side in sides.iter().filter_map(Weak::upgrade) {
            // It may have ended by itself.
            drop(side.shutdown(Shutdown::Both));
        }
    }

    /// The number of replicas that were ready at the last probe.
    #[must_use]
    pub fn n_ready(&self) -> usize {
        let replicas = lock(&self.replicas);
        replicas.all.iter().filter(|r| r.is_ready).count()
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(work).context("starting a thread")?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // The accepting thread waits for a connection: this one wakes it, and it sees that the service is over.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        for thread in self.threads.drain(..) {
            // A panic of the thread could not be reported here.
            drop(thread.join());
        }
    }
}

fn probe(replicas: &Mutex<Replicas>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Acquire) {
        // Probes without the lock: connections must not wait for an answer.
        let all = lock(replicas).all.clone();
        for asked in all {
            let reply = ask(asked.pages, PROBE_WITHIN, "GET", "/readyz", &[], &[]);
            let is_ready = reply.is_ok_and(|reply| reply.is_some_and(|r| r.status == 200));
            let mut replicas = lock(replicas);
            let known = replicas.all.iter_mut().find(|r| r.port == asked.port);
            if let Some(known) = known {
                known.is_ready = is_ready;
            }
        }
        rest(PROBE_EVERY);
    }
}

fn accept(listener: &TcpListener, replicas: &Mutex<Replicas>, is_over: &AtomicBool) {
    for client in listener.incoming() {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        // Without a ready replica it hangs up, as a Service without endpoints does.
        if let Ok(client) = client
            && let Some(server) = connect(replicas)
        {
            // If no thread can be started, the connection ends.
            drop(pass_on(client, server, replicas));
        }
    }
}

/// A connection to the next ready replica; a replica that does not listen is not ready, whatever its last probe said.
fn connect(replicas: &Mutex<Replicas>) -> Option<TcpStream> {
    loop {
        let port = {
            let mut replicas = lock(replicas);
            let takes =
                |r: &&Replica| r.is_ready && replicas.only.is_none_or(|only| only == r.port);
            let ready: Vec<u16> = replicas.all.iter().filter(takes).map(|r| r.port).collect();
            let turn = replicas.turn;
            replicas.turn = turn.wrapping_add(1);
            *ready.get(turn.checked_rem(ready.len())?)?
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if let Ok(stream) = TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            return Some(stream);
        }
        let mut replicas = lock(replicas);
        for replica in replicas.all.iter_mut().filter(|r| r.port == port) {
            replica.is_ready = false;
        }
    }
}

/// Copies both ways until both sides have ended.
fn pass_on(client: TcpStream, server: TcpStream, known: &Mutex<Replicas>) -> io::Result<()> {
    // Nothing waits here for what may come after it.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client, server) = (Arc::new(client), Arc::new(server));
    {
        let passed_on = &mut lock(known).passed_on;
        passed_on.retain(|side| side.strong_count() > 0);
        passed_on.extend([&client, &server].map(Arc::downgrade));
    }
    let ways = [(Arc::clone(&client), Arc::clone(&server)), (server, client)];
    for (from, to) in ways {
        let copy = move || {
            // How it ended is for the two sides to know.
            drop(io::copy(&mut &*from, &mut &*to));
            drop(to.shutdown(Shutdown::Write));
        };
        thread::Builder::new().stack_size(STACK).spawn(copy)?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// A replica that says its name and hangs up.
    fn replica(name: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                stream.unwrap().write_all(name.as_bytes()).unwrap();
            }
        });
        port
    }

    fn said(service: &Service) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, service.port())).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// The service asks no replica: the test says which are ready.
    fn service(replicas: &[(u16, bool)]) -> Service {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let all = replicas.iter().map(|&(port, is_ready)| Replica {
            port,
            pages: 0,
            is_ready,
        });
        let mut service = Service {
            port: listener.local_addr().unwrap().port(),
            replicas: Arc::new(Mutex::new(Replicas {
                all: all.collect(),
                ..Replicas::default()
            })),
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        let (known, over) = (service.replicas.clone(), service.is_over.clone());
        let accept = move || accept(&listener, &known, &over);
        service.spawn("accept", accept).unwrap();
        service
    }

    #[test]
    fn replicas_that_are_ready_take_turns() {
        let (a, b, c) = (replica("a"), replica("b"), replica("c"));
        let service = service(&[(a, true), (b, true), (c, false)]);
        assert_eq!(service.n_ready(), 2);
        let heard: Vec<String> = (0..4).map(|_| said(&service)).collect();
        assert_eq!(heard, ["a", "b", "a", "b"]);
        service.give_only(b);
        let heard: Vec<String> = (0..3).map(|_| said(&service)).collect();
        assert_eq!(heard, ["b", "b", "b"]);
    }

    #[test]
    fn connections_that_are_cut_end_and_others_come() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = service(&[(port, true)]);
        for _ in 0..2 {
            let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, service.port())).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"a").unwrap();
            server.read_exact(&mut [0]).unwrap();
            service.cut();
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            assert_eq!(server.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn who_does_not_listen_is_passed_over_and_nobody_is_an_end() {
        // No process listens on port 1.
        let service = service(&[(1, true), (replica("b"), true)]);
        assert_eq!(said(&service), "b");
        assert_eq!(service.n_ready(), 1);
        lock(&service.replicas).all.clear();
        assert_eq!(said(&service), "");
    }

    #[test]
    fn a_replica_without_pages_is_not_ready() {
        let service = Service::start().unwrap();
        service.add(replica("a"), 1);
        assert_eq!(service.n_ready(), 0);
        assert_eq!(said(&service), "");
    }
}
