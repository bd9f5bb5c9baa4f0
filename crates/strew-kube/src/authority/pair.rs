//! A CA with its key, and the serving certificates that it signs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use strew_model::time::{Instant, Span};
use strew_runtime::authority::plan::{BACKDATED, Period};

use crate::der::Fields;
use crate::serve::certificate::provider;

/// The subject of each CA. CAs differ in their keys.
const AUTHORITY_NAME: &str = "strew-webhook-ca";

/// The subject of serving certificates; clients read the subject alternative names.
const SERVING_NAME: &str = "strew-webhook";

/// Why a certificate cannot be made or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// The file or field has no certificate or key.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The certificate cannot be read.
    #[error("the certificate cannot be read")]
    Certificate,
    /// The key cannot be read. The reason is not reported, because it may contain the key.
    #[error("the private key cannot be read")]
    Key,
    /// The certificate has expired.
    #[error("it has expired")]
    Ended,
    /// A certificate signed by the CA is not accepted: its key or subject differs.
    #[error("certificates that it signs are rejected: {0}")]
    Refused(String),
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(String),
}

/// A certificate with its validity.
#[derive(Clone, PartialEq, Eq)]
pub struct Dated {
    /// In PEM.
    pub pem: String,
    /// In DER.
    pub der: CertificateDer<'static>,
    /// Its validity.
    pub period: Period,
}

impl Dated {
    /// Reads PEM; of several certificates, the first.
    ///
    /// # Errors
    /// The text has no certificate, or an invalid one.
    pub fn read(pem: &[u8]) -> Result<Self, PairError> {
        let der = CertificateDer::from_pem_slice(pem).map_err(|_| PairError::Certificate)?;
        let dates = Fields::of(&der).and_then(|fields| fields.dates());
        let [from, until] = dates.ok_or(PairError::Certificate)?;
        let pem = std::str::from_utf8(pem).map_err(|_| PairError::Certificate)?;
        Ok(Self {
            pem: format!("{}\n", pem.trim()),
            der: der.into_owned(),
            period: Period { from, until },
        })
    }
}

/// A CA certificate and its key.
pub struct Authority {
    certificate: Dated,
    key: KeyPair,
}

/// A serving certificate, with the CA that signed it.
pub struct Serving {
    /// The certificate with its private key.
    pub key: Arc<CertifiedKey>,
    /// Its validity.
    pub period: Period,
    /// The CA's certificate.
    pub signer: CertificateDer<'static>,
}

impl fmt::Debug for Dated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dated").field(&self.period).finish()
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = &self.certificate.period;
        f.debug_tuple("Authority").field(period).finish()
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Serving").field(&self.period).finish()
    }
}

impl Authority {
    /// Makes a new CA that is valid for `life` from now on.
    ///
    /// # Errors
    /// The system has no randomness, or the certificate cannot be made.
    pub fn make(now: Instant, life: Span) -> Result<Self, PairError> {
        let key = KeyPair::generate().map_err(make_error)?;
        let mut params = params_of_authority();
        set_dates(&mut params, now - BACKDATED, now + life);
        let made = params.self_signed(&key).map_err(make_error)?;
        let certificate = Dated::read(made.pem().as_bytes())?;
        Ok(Self { certificate, key })
    }

    /// Reads a stored CA, which must be able to sign now.
    ///
    /// # Errors
    /// What is wrong with it. The error does not contain the key.
    pub fn read(certificate: &[u8], key: &[u8], now: Instant) -> Result<Self, PairError> {
        let certificate = Dated::read(certificate)?;
        let key = std::str::from_utf8(key).map_err(|_| PairError::Key)?;
        let key = KeyPair::from_pem(key).map_err(|_| PairError::Key)?;
        let read = Self { certificate, key };
        // A wrong key, subject or purpose shows in a certificate that it signs.
        read.issue(&["localhost".to_owned()], now, Span::from_secs(1))?;
        Ok(read)
    }

    /// Its certificate.
    pub fn certificate(&self) -> &Dated {
        &self.certificate
    }

    /// Its key in PEM, to be stored.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Makes a serving certificate for these names and addresses, valid for `life` but not longer than the CA. Clients
    /// that trust the CA accept it.
    ///
    /// # Errors
    /// A name that a certificate cannot hold; a CA that is not valid now, or cannot sign.
    pub fn issue(&self, names: &[String], now: Instant, life: Span) -> Result<Serving, PairError> {
        let ends = self.certificate.period.until;
        if now >= ends {
            return Err(PairError::Ended);
        }
        let until = (now + life).min(ends);
        let mut params = CertificateParams::new(names).map_err(make_error)?;
        params.distinguished_name = name(SERVING_NAME);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_dates(&mut params, now - BACKDATED, until);
        let issuer = Issuer::new(params_of_authority(), &self.key);
        let key = KeyPair::generate().map_err(make_error)?;
        let made = params.signed_by(&key, &issuer).map_err(make_error)?;
        self.accepts(made.der(), names, now)?;
        let private = PrivateKeyDer::try_from(key.serialize_der());
        let private = private.map_err(|_| PairError::Key)?;
        let key = CertifiedKey::from_der(vec![made.der().clone()], private, &provider());
        let key = key.map_err(|error| PairError::Make(error.to_string()))?;
        Ok(Serving {
            key: Arc::new(key),
            period: Dated::read(made.pem().as_bytes())?.period,
            signer: self.certificate.der.clone(),
        })
    }

    /// Verifies a certificate as a client that trusts this CA would.
    fn accepts(
        &self,
        certificate: &CertificateDer<'_>,
        names: &[String],
        now: Instant,
    ) -> Result<(), PairError> {
        let refused = |error: &dyn fmt::Display| PairError::Refused(error.to_string());
        let mut roots = RootCertStore::empty();
        let added = roots.add(self.certificate.der.clone());
        added.map_err(|error| refused(&error))?;
        let (roots, provider) = (Arc::new(roots), Arc::new(provider()));
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| refused(&error))?;
        let now = UnixTime::since_unix_epoch(Duration::from_nanos(now.0));
        for name in names {
            let name = ServerName::try_from(name.as_str()).map_err(|error| refused(&error))?;
            let verified = verifier.verify_server_cert(certificate, &[], &name, &[], now);
            verified.map_err(|error| refused(&error))?;
        }
        Ok(())
    }
}

/// The parameters of every CA, without its validity.
fn params_of_authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn make_error(error: rcgen::Error) -> PairError {
    PairError::Make(error.to_string())
}

/// Sets the validity, which certificates hold in whole seconds.
fn set_dates(params: &mut CertificateParams, from: Instant, until: Instant) {
    let start = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = start + Duration::from_secs(from.secs());
    params.not_after = start + Duration::from_secs(until.secs());
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1_795_000_000);
    const DAY: Span = Span::from_secs(86_400);

    fn names() -> Vec<String> {
        ["strew-webhook.strew-system.svc", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec()
    }

    fn stored(authority: &Authority) -> [String; 2] {
        [authority.certificate().pem.clone(), authority.key_pem()]
    }

    #[test]
    fn what_was_stored_signs_for_all_names() {
        let made = Authority::make(NOW, DAY).unwrap();
        let period = made.certificate().period;
        assert_eq!((period.from, period.until), (NOW - BACKDATED, NOW + DAY));
        let [certificate, key] = stored(&made);
        let read = Authority::read(certificate.as_bytes(), key.as_bytes(), NOW).unwrap();
        assert_eq!(read.certificate(), made.certificate());
        let hour = Span::from_secs(3600);
        let serving = read.issue(&names(), NOW, hour).unwrap();
        assert_eq!(serving.period.until, NOW + hour);
        assert_eq!(serving.signer, made.certificate().der);
        // Not longer than the CA is valid.
        let until = read
            .issue(&names(), NOW, Span(DAY.0 * 2))
            .unwrap()
            .period
            .until;
        assert_eq!(until, NOW + DAY);
    }

    #[test]
    fn what_cannot_sign_is_told_apart() {
        let authority = Authority::make(NOW, DAY).unwrap();
        let [certificate, key] = stored(&authority);
        let [_, other_key] = stored(&Authority::make(NOW, DAY).unwrap());
        let leaf = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names()).unwrap();
        let leaf_pem = params.self_signed(&leaf).unwrap().pem();
        let of_others = {
            let mut params = params_of_authority();
            params.distinguished_name = name("somebody else");
            params.self_signed(&leaf).unwrap().pem()
        };
        let read = |certificate: &str, key: &str, now: Instant| {
            let read = Authority::read(certificate.as_bytes(), key.as_bytes(), now);
            read.map(drop).unwrap_err()
        };
        let leaf_key = leaf.serialize_pem();
        assert_eq!(read("", &key, NOW), PairError::Certificate);
        assert_eq!(read(&certificate, "", NOW), PairError::Key);
        assert_eq!(read(&certificate, &certificate, NOW), PairError::Key);
        assert_eq!(read(&certificate, &key, NOW + DAY), PairError::Ended);
        for (certificate, key) in [
            (&certificate, &other_key),
            (&leaf_pem, &leaf_key),
            (&of_others, &leaf_key),
        ] {
            let wrong = read(certificate, key, NOW);
            assert!(matches!(wrong, PairError::Refused(_)), "{wrong:?}");
        }
        // A clock that is behind is no reason to make another CA.
        let late = Authority::read(certificate.as_bytes(), key.as_bytes(), NOW - DAY);
        assert!(late.is_ok());
    }

    #[test]
    fn no_key_is_printed() {
        let authority = Authority::make(NOW, DAY).unwrap();
        let serving = authority.issue(&names(), NOW, DAY).unwrap();
        let key = authority.key_pem();
        let secret = key.lines().nth(1).unwrap();
        let printed = format!("{authority:?} {serving:?} {:?}", authority.certificate());
        assert!(
            !printed.contains(secret) && printed.len() < 400,
            "{printed}"
        );
    }
}
