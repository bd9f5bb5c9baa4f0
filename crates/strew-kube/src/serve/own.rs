//! Connections that the process makes to its own server. No other client can take or close their places.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpSocket, TcpStream};

/// The addresses of the process's own ends of connections to its own server.
#[derive(Debug, Clone, Default)]
pub struct OwnConnections(Arc<Mutex<BTreeSet<SocketAddr>>>);

/// An own connection; its address is forgotten when it is dropped.
#[derive(Debug)]
pub(crate) struct OwnEnd {
    connections: OwnConnections,
    address: SocketAddr,
}

impl OwnConnections {
    fn ends(&self) -> MutexGuard<'_, BTreeSet<SocketAddr>> {
        // A panic elsewhere leaves the set consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the process itself is at the other end.
    pub(super) fn has(&self, peer: SocketAddr) -> bool {
        self.ends().contains(&peer)
    }

    /// Connects to the server, from its own address.
    ///
    /// # Errors
    /// The server does not listen there.
    pub(crate) async fn connect(&self, to: SocketAddr) -> std::io::Result<(OwnEnd, TcpStream)> {
        let socket = match to.ip() {
            IpAddr::V4(_) => TcpSocket::new_v4(),
            IpAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        socket.bind(SocketAddr::new(to.ip(), 0))?;
        let address = socket.local_addr()?;
        // Before it connects: the server may look before this task has its next turn.
        self.ends().insert(address);
        let end = OwnEnd {
            connections: self.clone(),
            address,
        };
        Ok((end, socket.connect(to).await?))
    }
}

impl Drop for OwnEnd {
    fn drop(&mut self) {
        self.connections.ends().remove(&self.address);
    }
}
