//! An HTTPS client with explicit CAs, headers and timeouts.
//!
//! Tests use it to call webhooks and pages, also with malformed requests.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

/// A connection to a port of this machine; the server's certificate is not verified.
pub struct Https(StreamOwned<ClientConnection, TcpStream>);

/// What was answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// What came with it.
    pub body: String,
}

impl Https {
    /// Connects; each wait, from now on, is no longer than this.
    ///
    /// # Errors
    /// If nothing listens, or the server does not speak TLS in time.
    pub fn connect(port: u16, patience: Duration) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let mut connection = ClientConnection::new(Arc::new(client_config()?), name)?;
        let mut stream = stream;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Self(StreamOwned::new(connection, stream)))
    }

    /// The certificates that were shown, in DER, the server's own first.
    #[must_use]
    pub fn certificates(&self) -> Vec<Vec<u8>> {
        let shown = self.0.conn.peer_certificates().unwrap_or_default();
        shown.iter().map(|shown| shown.as_ref().to_vec()).collect()
    }

    /// Says these bytes as they are.
    ///
    /// # Errors
    /// The other side hangs up, or does not read in time.
    pub fn say(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.0.write_all(bytes)?;
        Ok(self.0.flush()?)
    }

    /// Reads the answer until the other side hangs up; `None`: it hung up without a byte.
    ///
    /// # Errors
    /// It says nothing in time, or no HTTP.
    pub fn reply(self) -> anyhow::Result<Option<Reply>> {
        let mut bytes = Vec::new();
        // Only reads: bytes that could not be sent because the other side had read enough do not matter.
        let StreamOwned { mut conn, mut sock } = self.0;
        loop {
            match conn.read_tls(&mut sock) {
                Ok(0) => break,
                Ok(_) => {}
                // Hung up in the middle of what was said.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => return Err(error.into()),
            }
            let state = conn.process_new_packets()?;
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            conn.reader().read_exact(&mut plain)?;
            bytes.extend(plain);
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").context("no end of headers")?;
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        Ok(Some(Reply {
            status: status.with_context(|| format!("no status in {head:?}"))?,
            body: body.to_owned(),
        }))
    }
}

/// Asks once. HTTP/1.0, so that the answer is all that comes until its end.
///
/// # Errors
/// If no answer comes in time.
pub fn ask(
    port: u16,
    patience: Duration,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> anyhow::Result<Option<Reply>> {
    let mut https = Https::connect(port, patience)?;
    let mut head = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    https.say(head.as_bytes())?;
    // A server that refuses a request in the middle of a long body has answered it.
    if let Err(error) = https.say(body)
        && body.is_empty()
    {
        return Err(error);
    }
    https.reply()
}

/// A client's side of TLS that takes every certificate.
///
/// # Errors
/// The provider of cryptography knows no version of TLS.
pub fn client_config() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let trusting = Arc::new(Trusting(provider.clone()));
    let configuration = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(trusting)
        .with_no_client_auth();
    Ok(configuration)
}

/// Accepts every certificate: this program started all servers on this machine's ports.
#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
