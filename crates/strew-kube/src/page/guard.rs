//! Whether a request comes from the page itself, or from a person who opens it.
//!
//! The server listens on this machine alone, but every site that a browser shows can send requests there. A site whose
//! name points to this machine (DNS rebinding) is refused by its Host, a request of another site by its Origin, and
//! what browsers send without an Origin by Sec-Fetch-Site.

use http::HeaderMap;
use http::header::{HOST, HeaderName, ORIGIN};

/// The names of this machine.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Who sent a request that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// The page itself, or a person who opens it.
    Page,
    /// A page of the origin that is allowed to read the data.
    Allowed,
}

/// Refuses what is neither the page's own request nor a visit, nor one of the `allowed` origin.
///
/// # Errors
/// Why, for a person.
pub(super) fn check(headers: &HeaderMap, allowed: Option<&str>) -> Result<Asker, &'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(Ok(host)), None) = (hosts.next().map(|host| host.to_str()), hosts.next()) else {
        return Err("a request has one Host");
    };
    if !NAMES.contains(&name(host)) {
        return Err("this page is served as localhost or 127.0.0.1 only");
    }
    let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
    let text = |header: &HeaderName| {
        headers
            .get(header)
            .map(|value| value.to_str().unwrap_or(""))
    };
    if allowed.is_some() && text(&ORIGIN) == allowed {
        return Ok(Asker::Allowed);
    }
    if text(&ORIGIN).is_some_and(|origin| !is_own(origin)) {
        return Err("a page of another origin sent this request");
    }
    let is_visit = || text(&MODE) == Some("navigate") && text(&DESTINATION) == Some("document");
    match text(&SITE) {
        None | Some("same-origin" | "none") => Ok(Asker::Page),
        // A link in a chat.
        Some(_) if is_visit() => Ok(Asker::Page),
        Some(_) => Err("another site sent this request"),
    }
}

/// A host without its port. A tunnel may have another port than the server.
fn name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
