//! The CAs as the Secret stores them. Serving certificates are not stored: each process makes its own, and its key
//! never leaves the process.
//!
//! | key | content |
//! |---|---|
//! | `ca.crt`, `ca.key` | the CA that signs |
//! | `since` | when it began to sign |
//! | `next-ca.crt`, `next-ca.key` | the next CA, already trusted |
//! | `previous-ca.crt` | the previous CA, still trusted |
//! | `bundle.crt` | all trusted CAs, for programs that copy them into configurations |

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use strew_model::time::Instant;
use strew_runtime::authority::plan::{AuthorityState, AuthorityStep, Lifetimes};

use super::pair::{Authority, Dated, PairError};

const SIGNING: [&str; 2] = ["ca.crt", "ca.key"];
const SINCE: &str = "since";
const COMING: [&str; 2] = ["next-ca.crt", "next-ca.key"];
const LEAVING: &str = "previous-ca.crt";
const BUNDLE: &str = "bundle.crt";

/// The CAs of a Secret.
#[derive(Debug, Default)]
pub struct Stored {
    /// The CA that signs.
    pub signing: Option<Authority>,
    /// Since when it signs.
    pub since: Option<Instant>,
    /// The next CA.
    pub coming: Option<Authority>,
    /// The previous CA.
    pub leaving: Option<Dated>,
    /// The fields that cannot be used, with the reasons.
    pub faults: Vec<(&'static str, PairError)>,
}

impl Stored {
    /// Reads a Secret. A CA that can no longer sign may still be trusted.
    pub fn read(secret: &Secret, now: Instant) -> Self {
        let empty = BTreeMap::new();
        let data = secret.data.as_ref().unwrap_or(&empty);
        let bytes = |key: &str| data.get(key).map(|bytes| bytes.0.as_slice());
        let mut stored = Self::default();
        let mut pair = |[certificate, key]: [&'static str; 2], is_needed: bool| {
            let read = match (bytes(certificate), bytes(key)) {
                (None, None) if !is_needed => return None,
                (None, _) => Err(PairError::Missing(certificate)),
                (_, None) => Err(PairError::Missing(key)),
                (Some(certificate), Some(key)) => Authority::read(certificate, key, now),
            };
            let kept = read.map_err(|error| stored.faults.push((certificate, error)));
            kept.ok()
        };
        let signing = pair(SIGNING, true);
        let coming = pair(COMING, false);
        let dated = |key: &str| {
            let dated = Dated::read(bytes(key)?).ok();
            dated.filter(|dated| now < dated.period.until)
        };
        let unable = signing.is_none().then(|| dated(SIGNING[0])).flatten();
        stored.leaving = unable.or_else(|| dated(LEAVING));
        let since = bytes(SINCE).and_then(|text| std::str::from_utf8(text).ok());
        let since: Option<Timestamp> = since.and_then(|text| text.trim().parse().ok());
        let since = since.and_then(|since| u64::try_from(since.as_second()).ok());
        stored.since = since.map(Instant::from_secs);
        (stored.signing, stored.coming) = (signing, coming);
        stored
    }

    /// The state that [`plan`](strew_runtime::authority::plan) decides on.
    pub fn view(&self) -> AuthorityState {
        let period = |authority: &Authority| authority.certificate().period;
        AuthorityState {
            signing: self.signing.as_ref().map(period),
            since: self.since,
            coming: self.coming.as_ref().map(period),
            leaving: self.leaving.as_ref().map(|dated| dated.period),
        }
    }

    /// The state after a step.
    ///
    /// # Errors
    /// The CA cannot be made.
    pub fn after(
        self,
        step: AuthorityStep,
        now: Instant,
        lifetimes: &Lifetimes,
    ) -> Result<Self, PairError> {
        let make = || Authority::make(now, lifetimes.authority);
        let signed = |signing: Option<Authority>| signing.map(|a| a.certificate().clone());
        let faults = Vec::new();
        Ok(match step {
            AuthorityStep::Make => Self {
                signing: Some(make()?),
                since: Some(now),
                coming: None,
                leaving: signed(self.signing).or(self.leaving),
                faults,
            },
            AuthorityStep::Announce => Self {
                coming: Some(make()?),
                faults,
                ..self
            },
            AuthorityStep::Promote => Self {
                signing: self.coming,
                since: Some(now),
                coming: None,
                leaving: signed(self.signing).or(self.leaving),
                faults,
            },
            AuthorityStep::Retire => Self {
                leaving: None,
                faults,
                ..self
            },
        })
    }

    /// The certificates to trust, in PEM, sorted by age. The order does not depend on which one signs, so objects with
    /// the bundle are written only when a CA is added or removed.
    pub fn bundle(&self) -> String {
        let authorities = self.signing.iter().chain(&self.coming);
        let all = authorities.map(Authority::certificate).chain(&self.leaving);
        let mut all: Vec<&Dated> = all.collect();
        all.sort_by_key(|certificate| (certificate.period.from, &certificate.pem));
        all.iter()
            .map(|certificate| certificate.pem.as_str())
            .collect()
    }

    /// The Secret to write: `before`, if there is one, with new data.
    pub fn write(&self, name: &str, before: Option<&Secret>) -> Secret {
        let mut data = BTreeMap::new();
        let mut put = |key: &str, text: &str| {
            data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        };
        for ([certificate, key], authority) in [(SIGNING, &self.signing), (COMING, &self.coming)] {
            if let Some(authority) = authority {
                put(certificate, &authority.certificate().pem);
                put(key, &authority.key_pem());
            }
        }
        if let Some(leaving) = &self.leaving {
            put(LEAVING, &leaving.pem);
        }
        if let Some(since) = self.since {
            put(SINCE, &timestamp(since).to_string());
        }
        put(BUNDLE, &self.bundle());
        let mut secret = before.cloned().unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        });
        secret.data = Some(data);
        secret
    }
}

/// A moment in whole seconds.
pub(super) fn timestamp(at: Instant) -> Timestamp {
    let seconds = i64::try_from(at.secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strew_model::time::Span;
    use strew_runtime::authority::plan::{Next, next};

    const START: Instant = Instant::from_secs(1_795_000_000);
    const LIVES: Lifetimes = Lifetimes {
        authority: Span::from_secs(300),
        serving: Span::from_secs(30),
        overlap: Span::from_secs(10),
    };

    fn again(stored: &Stored, now: Instant) -> Stored {
        Stored::read(&stored.write("ca", None), now)
    }

    fn n_trusted(stored: &Stored) -> usize {
        stored.bundle().matches("BEGIN CERTIFICATE").count()
    }

    #[test]
    fn a_secret_tells_what_was_written_into_it() {
        let stored = Stored::default()
            .after(AuthorityStep::Make, START, &LIVES)
            .unwrap();
        let stored = stored
            .after(AuthorityStep::Announce, START, &LIVES)
            .unwrap();
        let read = again(&stored, START);
        assert_eq!(read.view(), stored.view());
        assert_eq!(read.since, Some(START));
        assert_eq!((read.faults.len(), read.bundle()), (0, stored.bundle()));
        let promoted = read.after(AuthorityStep::Promote, START, &LIVES).unwrap();
        assert_eq!(promoted.bundle(), stored.bundle());
        let read = again(&promoted, START);
        assert_eq!(read.view(), promoted.view());
        assert_eq!(n_trusted(&read), 2);
        let before = Secret {
            metadata: ObjectMeta {
                name: Some("ca".to_owned()),
                resource_version: Some("7".to_owned()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        let retired = read.after(AuthorityStep::Retire, START, &LIVES).unwrap();
        let written = retired.write("ca", Some(&before));
        assert_eq!(written.metadata, before.metadata);
        assert_eq!(n_trusted(&Stored::read(&written, START)), 1);
    }

    /// A broken Secret, its reported faults, and the result: a new CA, and whether the old one stays trusted.
    #[test]
    fn what_cannot_be_used_is_made_anew() {
        let made = Stored::default()
            .after(AuthorityStep::Make, START, &LIVES)
            .unwrap();
        let good = made.write("ca", None);
        let other = Stored::default()
            .after(AuthorityStep::Make, START, &LIVES)
            .unwrap();
        let other = other.write("ca", None).data.unwrap();
        let edit = |edit: &dyn Fn(&mut BTreeMap<String, ByteString>)| {
            let mut secret = good.clone();
            edit(secret.data.as_mut().unwrap());
            secret
        };
        let garbage = ByteString(b"-----BEGIN".to_vec());
        let late = START + LIVES.authority;
        for (secret, now, said, n_left) in [
            (Secret::default(), START, "ca.crt is missing", 0),
            (
                edit(&|d| drop(d.remove("ca.key"))),
                START,
                "ca.key is missing",
                1,
            ),
            (
                edit(&|d| drop(d.insert("ca.key".into(), garbage.clone()))),
                START,
                "the private key cannot be read",
                1,
            ),
            (
                edit(&|d| drop(d.insert("ca.crt".into(), garbage.clone()))),
                START,
                "the certificate cannot be read",
                0,
            ),
            (
                edit(&|d| drop(d.insert("ca.key".into(), other["ca.key"].clone()))),
                START,
                "certificates that it signs are rejected: ",
                1,
            ),
            (good.clone(), late, "it has expired", 0),
        ] {
            let stored = Stored::read(&secret, now);
            let (key, error) = &stored.faults[0];
            assert_eq!(*key, "ca.crt");
            assert!(error.to_string().starts_with(said), "{error}");
            assert_eq!(
                next(&stored.view(), now, &LIVES, true),
                Next::Do(AuthorityStep::Make)
            );
            let mended = again(
                &stored.after(AuthorityStep::Make, now, &LIVES).unwrap(),
                now,
            );
            assert_eq!(
                (mended.faults.len(), n_trusted(&mended)),
                (0, 1 + n_left),
                "{said}"
            );
        }
        // Other keys in the Secret are ignored.
        let odd = edit(&|d| {
            for key in ["since", "previous-ca.crt", "next-ca.crt"] {
                d.insert(key.into(), garbage.clone());
            }
        });
        let read = Stored::read(&odd, START);
        assert_eq!(
            (read.since, n_trusted(&read), read.faults.len()),
            (None, 1, 1)
        );
        assert!(matches!(
            next(&read.view(), START, &LIVES, true),
            Next::Wait(_)
        ));
    }
}
