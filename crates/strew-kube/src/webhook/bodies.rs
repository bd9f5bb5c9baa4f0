//! Limits on request bodies: size, time, and memory.
//!
//! Any client in the cluster's network can send requests, because an API server shows no certificate by default. So the
//! memory of all bodies together is bounded, including what parsing takes, and a peer gets at most a quarter of that for
//! usual bodies. Memory is reserved as bytes arrive; if none is left, the peer that has most gives up a body for a peer
//! that has less: first the one that has been incomplete for longest, since an honest body is complete within
//! milliseconds. A peer that has its share waits for itself.
//!
//! Large bodies have their own share, so that a tenant with large pods does not block the others.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::hooks::peer_of;
use crate::serve::pages::error;
use crate::serve::room::{Held, Room};

/// The largest body in bytes. It fits a pod of etcd's largest size twice, as in an update, with room for JSON escapes.
pub(super) const BODY_MAX: usize = 8 << 20;

/// The most values in one body: five times those of a pod of etcd's largest size.
const VALUES_MAX: usize = 250_000;

/// The memory of a parsed value beside its text, in bytes.
const BYTES_OF_VALUE: usize = 96;

/// The largest body that does not count as large, in KiB, its values included: a multiple of usual pods.
const USUAL_MAX_KIB: u32 = 256;

/// The memory of all usual bodies in progress, in KiB: hundreds of them.
const ALL_USUAL_MAX_KIB: u64 = 48 << 10;

/// The memory of all large bodies in progress, in KiB: the largest one, or several.
const ALL_LARGE_MAX_KIB: u64 = 32 << 10;

/// The time limit for a body to arrive, its wait for memory included.
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// Bodies from this size in bytes on are parsed on another thread, one after the other.
const LARGE: usize = 128 << 10;

/// The memory for bodies.
#[derive(Clone)]
pub(super) struct Bodies {
    usual: Room,
    large: Room,
    parsing: Arc<Semaphore>,
}

/// The bytes of a body in blocks: a growing vector takes up to three times its content while it is copied.
#[derive(Default)]
struct Blocks {
    /// All blocks but the last one are full.
    blocks: Vec<Vec<u8>>,
}

impl Blocks {
    /// Bytes in a block.
    const SIZE: usize = 64 << 10;

    fn len(&self) -> usize {
        let full = self.blocks.len().saturating_sub(1) * Self::SIZE;
        full + self.blocks.last().map_or(0, Vec::len)
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self
                .blocks
                .last()
                .is_none_or(|last| last.len() == Self::SIZE)
            {
                let is_first = self.blocks.is_empty();
                // Most bodies are one small block.
                let size = if is_first { bytes.len() } else { Self::SIZE };
                self.blocks.push(Vec::with_capacity(size.min(Self::SIZE)));
            }
            let Some(last) = self.blocks.last_mut() else {
                return;
            };
            let (now, later) = bytes.split_at(bytes.len().min(Self::SIZE - last.len()));
            last.extend_from_slice(now);
            bytes = later;
        }
    }

    fn iter(&self) -> impl Iterator<Item = &u8> {
        self.blocks.iter().flatten()
    }

    /// All bytes in one vector; each block is freed after it is copied.
    fn joined(mut self) -> Vec<u8> {
        if self.blocks.len() == 1 {
            return self.blocks.remove(0);
        }
        let mut bytes = Vec::with_capacity(self.len());
        for block in self.blocks {
            bytes.extend_from_slice(&block);
        }
        bytes
    }
}

impl Default for Bodies {
    fn default() -> Self {
        Self {
            usual: Room::new(ALL_USUAL_MAX_KIB, ALL_USUAL_MAX_KIB / 4),
            // One peer may need all of it, for the largest body.
            large: Room::new(ALL_LARGE_MAX_KIB, ALL_LARGE_MAX_KIB),
            parsing: Arc::new(Semaphore::new(1)),
        }
    }
}

/// A body with its reserved memory, which is released with it.
pub(super) struct BufferedBody {
    pub(super) value: Value,
    /// True if it is much larger than reviews of usual pods.
    pub(super) is_large: bool,
    /// Given back when the review is answered; given up for a peer with less memory.
    pub(super) held: Held,
}

impl BufferedBody {
    /// Drops all of the body, and gives its memory back but for this part, which was taken out of it.
    pub(super) fn keep(&mut self, part: &Value) {
        self.value = Value::Null;
        self.held.shrink(kib_of(bytes_of(part)).max(1).into());
    }
}

/// The memory of a body that is arriving.
struct Taken<'a> {
    bodies: &'a Bodies,
    peer: IpAddr,
    held: Held,
    kib: u32,
    is_large: bool,
}

impl Taken<'_> {
    /// Reserves memory up to this amount. A body that becomes large moves to the memory of large bodies.
    async fn grow(&mut self, kib: u32) {
        if !self.is_large && kib > USUAL_MAX_KIB {
            self.held = self.bodies.large.take_in_turn(self.peer, kib.into()).await;
            self.is_large = true;
        } else if kib > self.kib {
            self.held.grow((kib - self.kib).into()).await;
        }
        self.kib = self.kib.max(kib);
    }
}

/// Why a body is not read.
enum Fault {
    TooLarge,
    TooManyValues,
    GivenUp,
    Ends,
    Broken(String),
}

impl Bodies {
    /// Reads the JSON body of a request.
    ///
    /// # Errors
    /// The response: 413 for a body that is too large, 408 for one that is late or dropped for another one, 400 for
    /// invalid JSON.
    pub(super) async fn read(&self, request: Request<Body>) -> Result<BufferedBody, Box<Response>> {
        if length(request.headers()) > BODY_MAX {
            return Err(Fault::TooLarge.answer());
        }
        let peer = peer_of(&request);
        let read = self.take(peer.address, request.into_body());
        let read = timeout(BODY_WITHIN, read).await;
        read.unwrap_or(Err(Fault::GivenUp)).map_err(|fault| {
            if !matches!(fault, Fault::Ends) {
                peer.refused();
            }
            fault.answer()
        })
    }

    async fn take(&self, peer: IpAddr, mut body: Body) -> Result<BufferedBody, Fault> {
        let mut bytes = Blocks::default();
        let mut taken = Taken {
            bodies: self,
            peer,
            held: self.usual.take_in_turn(peer, 1).await,
            kib: 1,
            is_large: false,
        };
        loop {
            let given_up = taken.held.given_up.clone();
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = given_up.cancelled() => return Err(Fault::GivenUp),
            };
            let Some(frame) = frame else {
                break;
            };
            let frame = frame
                .map_err(|error| Fault::Broken(format!("the body cannot be read: {error}")))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > BODY_MAX {
                return Err(Fault::TooLarge);
            }
            taken.grow(kib_of(bytes.len() + data.len())).await;
            bytes.add(&data);
        }
        let n_values = values_in(bytes.iter());
        if n_values > VALUES_MAX {
            return Err(Fault::TooManyValues);
        }
        let kib = kib_of(bytes.len()) + kib_of(n_values * BYTES_OF_VALUE);
        taken.grow(kib).await;
        taken.held.complete();
        let value = self.parsed(bytes).await?;
        Ok(BufferedBody {
            value,
            is_large: taken.is_large,
            held: taken.held,
        })
    }

    async fn parsed(&self, bytes: Blocks) -> Result<Value, Fault> {
        let parsed = match bytes.len() < LARGE {
            true => serde_json::from_slice(&bytes.joined()),
            false => {
                let _turn = self.parsing.acquire().await.map_err(|_| Fault::Ends)?;
                let parse = move || serde_json::from_slice(&bytes.joined());
                let parsing = tokio::task::spawn_blocking(parse);
                parsing
                    .await
                    .map_err(|error| Fault::Broken(error.to_string()))?
            }
        };
        parsed.map_err(|error| Fault::Broken(format!("the body is no JSON: {error}")))
    }
}

fn kib_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX)
}

/// The memory of a parsed value with its texts, in bytes.
fn bytes_of(value: &Value) -> usize {
    let inner: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(bytes_of).sum(),
        Value::Object(all) => all.iter().map(|(key, v)| key.len() + bytes_of(v)).sum(),
        _ => 0,
    };
    BYTES_OF_VALUE + inner
}

/// An upper bound of the number of values in a JSON text; characters in strings do not count.
fn values_in<'a>(mut bytes: impl Iterator<Item = &'a u8>) -> usize {
    let mut n_values = 1;
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'[' | b'{' | b':' => n_values += 1,
            b'"' => {
                while let Some(inner) = bytes.next() {
                    match inner {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    n_values
}

impl Fault {
    fn answer(self) -> Box<Response> {
        let (code, why) = match self {
            Self::TooLarge => {
                let why = format!("the body is larger than {} MiB", BODY_MAX >> 20);
                (StatusCode::PAYLOAD_TOO_LARGE, why)
            }
            Self::TooManyValues => {
                let why = format!("the body holds more than {VALUES_MAX} values");
                (StatusCode::PAYLOAD_TOO_LARGE, why)
            }
            Self::GivenUp => {
                let why = "the body did not come in time";
                (StatusCode::REQUEST_TIMEOUT, why.to_owned())
            }
            Self::Ends => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the webhook ends".to_owned(),
            ),
            Self::Broken(why) => (StatusCode::BAD_REQUEST, why),
        };
        Box::new(error(code, &why))
    }
}

/// The length that the headers announce, in bytes.
fn length(headers: &HeaderMap) -> usize {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|text| text.to_str().ok()?.parse().ok());
    length.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::serve::Peer;

    async fn read(bodies: &Bodies, length: Option<&str>, body: Body) -> Result<Value, u16> {
        let mut request = Request::post("/");
        if let Some(length) = length {
            request = request.header(CONTENT_LENGTH, length);
        }
        let read = bodies.read(request.body(body).unwrap()).await;
        read.map(|room| room.value)
            .map_err(|answer| answer.status().as_u16())
    }

    /// The blocks of a body take little more than its bytes.
    #[test]
    fn blocks_hold_what_came_and_little_more() {
        for piece in [1, 1000, Blocks::SIZE, Blocks::SIZE + 1, 1 << 20] {
            let sent: Vec<u8> = (0..3 * (1 << 20) + 5).map(|n: u32| n as u8).collect();
            let mut blocks = Blocks::default();
            for piece in sent.chunks(piece) {
                blocks.add(piece);
            }
            assert_eq!(blocks.len(), sent.len(), "{piece}");
            let room: usize = blocks.blocks.iter().map(Vec::capacity).sum();
            assert!(room < sent.len() + 2 * Blocks::SIZE, "{piece}: {room}");
            assert!(blocks.iter().eq(&sent), "{piece}");
            assert_eq!(blocks.joined(), sent, "{piece}");
        }
        assert_eq!(Blocks::default().joined(), Vec::<u8>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_has_an_answer() {
        let bodies = Bodies::default();
        let of = |text: &str| Body::from(text.to_owned());
        let large = "1".repeat(BODY_MAX + 1);
        let deep = "[".repeat(200_000);
        let nothing =
            Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
        let cases = [
            (
                Some("9"),
                of(r#"{"a": 1}"#),
                Ok(serde_json::json!({"a": 1})),
            ),
            (None, of("7"), Ok(7.into())),
            (Some("8388609"), of(""), Err(413)),
            (
                Some("18446744073709551616"),
                of("{}"),
                Ok(serde_json::json!({})),
            ),
            (None, of(&large), Err(413)),
            (Some("0"), of(""), Err(400)),
            (None, of("{"), Err(400)),
            (None, of(&deep), Err(400)),
            (Some("9"), nothing, Err(408)),
        ];
        for (length, body, expected) in cases {
            assert_eq!(read(&bodies, length, body).await, expected, "{length:?}");
        }
        for shelf in [&bodies.usual, &bodies.large] {
            assert_eq!(shelf.held(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_share_their_room() {
        let bodies = Bodies::default();
        // One KiB for its text, and one for its value.
        let many = (0..ALL_USUAL_MAX_KIB / 8).map(|_| async {
            let request = Request::post("/").header(CONTENT_LENGTH, "2");
            bodies
                .read(request.body(Body::from("{}")).unwrap())
                .await
                .ok()
        });
        let held = futures::future::join_all(many).await;
        assert!(held.iter().all(Option::is_some));
        assert_eq!(read(&bodies, Some("2"), Body::from("{}")).await, Err(408));
        drop(held);
        assert!(read(&bodies, Some("2"), Body::from("{}")).await.is_ok());
    }

    /// Before, the bodies of one peer that waited for their answers took all memory, and every other body was refused.
    #[tokio::test(start_paused = true)]
    async fn bodies_of_four_peers_hold_up_no_other() {
        let bodies = Bodies::default();
        let of = |last: u8| {
            let request = Request::post("/").body(Body::from("{}")).unwrap();
            let (mut head, body) = request.into_parts();
            head.extensions.insert(Peer::at([127, 0, 0, last].into()));
            Request::from_parts(head, body)
        };
        let mut held = Vec::new();
        for n in 0..ALL_USUAL_MAX_KIB / 2 {
            let body = bodies.read(of(2 + u8::try_from(n % 4).unwrap())).await;
            held.extend(body.ok());
        }
        assert_eq!(held.len(), usize::try_from(ALL_USUAL_MAX_KIB / 2).unwrap());
        let begun = tokio::time::Instant::now();
        assert!(bodies.read(of(1)).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let given_up = held.iter().filter(|body| body.held.given_up.is_cancelled());
        assert_eq!(given_up.count(), 1);
    }

    /// Large pods that wait for their decisions must not delay other reviews.
    #[tokio::test(start_paused = true)]
    async fn large_bodies_hold_up_no_usual_one() {
        let bodies = Bodies::default();
        let large = format!("[{}1]", "1,".repeat(200_000));
        let mut attack = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (bodies, large) = (bodies.clone(), large.clone());
            attack.spawn(async move {
                let request = Request::post("/").body(Body::from(large)).unwrap();
                let room = bodies.read(request).await;
                // Its decision takes long.
                tokio::time::sleep(Duration::from_secs(60)).await;
                drop(room);
            });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begun = tokio::time::Instant::now();
        assert!(read(&bodies, None, Body::from("{}")).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    /// Bodies that never arrive must not delay others: a body without a length reserves memory only as its bytes
    /// arrive.
    #[tokio::test(start_paused = true)]
    async fn bodies_that_do_not_come_hold_up_no_other() {
        let bodies = Bodies::default();
        let stalled = |text: String| {
            let begin = futures::stream::iter([Ok::<_, std::io::Error>(text)]);
            Body::from_stream(begin.chain(futures::stream::pending()))
        };
        let mut attack = tokio::task::JoinSet::new();
        for text in std::iter::repeat_n("1".repeat(BODY_MAX - 1), 5)
            .chain(std::iter::repeat_n("[".to_owned(), 10_000))
        {
            let (bodies, body) = (bodies.clone(), stalled(text));
            attack.spawn(async move { read(&bodies, None, body).await });
        }
        tokio::task::yield_now().await;
        let begun = tokio::time::Instant::now();
        let pod = format!("\"{}\"", "p".repeat(1 << 20));
        for body in ["{}".to_owned(), pod] {
            let length = body.len().to_string();
            assert!(read(&bodies, Some(&length), Body::from(body)).await.is_ok());
        }
        assert!(begun.elapsed() < Duration::from_millis(100));
        // The stalled bodies end with an error.
        while let Some(answer) = attack.join_next().await {
            assert_eq!(answer.unwrap(), Err(408));
        }
    }

    /// Before, a review that waited for a right kept all room that its body had needed.
    #[tokio::test]
    async fn what_is_not_needed_of_a_body_takes_no_memory() {
        let bodies = Bodies::default();
        let text = format!(
            "{{\"pod\": [\"{}\"], \"more\": [{}0]}}",
            "p".repeat(2000),
            "0,".repeat(1000)
        );
        let request = Request::post("/").body(Body::from(text)).unwrap();
        let Ok(mut body) = bodies.read(request).await else {
            panic!("it is small");
        };
        assert!(bodies.usual.held() > 90, "{}", bodies.usual.held());
        let pod = body.value["pod"].take();
        body.keep(&pod);
        assert_eq!((bodies.usual.held(), &body.value), (3, &Value::Null));
        drop(body);
        assert_eq!(bodies.usual.held(), 0);
    }

    #[tokio::test]
    async fn values_have_a_bound_and_text_has_not() {
        let bodies = Bodies::default();
        let of = |text: String| read(&bodies, None, Body::from(text));
        let bomb = format!("[{}[0]]", "[0],".repeat(2_000_000));
        assert_eq!(of(bomb).await, Err(413));
        let text = format!("\"{}\\\"\"", "[0],".repeat(2_000_000));
        assert!(of(text).await.is_ok());
        assert_eq!(
            values_in(br#"{"a": [1, 2, {"b": "c,[\""}], "d": {}}"#.iter()),
            11
        );
    }
}
