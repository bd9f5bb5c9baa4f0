//! User and groups from a certificate's subject. The signature has been checked before.

use crate::der::{Der, Fields, OBJECT_ID, SEQUENCE, SET};

/// The names in a subject. Source: RFC 5280 §4.1; k8s.io/apiserver `x509.CommonNameUserConversion`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Subject {
    /// The last common name: the user.
    pub(super) common_name: String,
    /// The organizations: the groups.
    pub(super) organizations: Vec<String>,
}

/// UTF8String, PrintableString, IA5String: the accepted types of text.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// 2.5.4.3 and 2.5.4.10.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

impl Subject {
    /// The subject of a certificate in DER; `None` if it is invalid.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let mut names = Der(Fields::of(certificate)?.subject);
        let mut subject = Self::default();
        while names.peek().is_some() {
            let mut set = Der(names.take(SET)?);
            while set.peek().is_some() {
                let mut pair = Der(set.take(SEQUENCE)?);
                let kind = pair.take(OBJECT_ID)?;
                let (tag, value) = pair.any()?;
                subject.note(kind, tag, value);
            }
        }
        Some(subject)
    }

    fn note(&mut self, kind: &[u8], tag: u8, value: &[u8]) {
        let Ok(value) = std::str::from_utf8(value) else {
            return;
        };
        if !TEXTS.contains(&tag) {
            return;
        }
        if kind == COMMON_NAME {
            value.clone_into(&mut self.common_name);
        } else if kind == ORGANIZATION {
            self.organizations.push(value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_subject_names_user_and_group() {
        let subject = Subject::of(&certificate(&[
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "monitors"),
            (DnType::CommonName, "pr\u{f6}m"),
        ]));
        let expected = Subject {
            common_name: "pr\u{f6}m".to_owned(),
            organizations: vec!["monitors".to_owned()],
        };
        assert_eq!(subject, Some(expected));
        let nobody = Subject::of(&certificate(&[]));
        assert_eq!(nobody, Some(Subject::default()));
    }

    /// Truncated or changed certificates cause no panic and yield no other name.
    #[test]
    fn broken_certificates_name_nobody_else() {
        let whole = certificate(&[(DnType::CommonName, "admin")]);
        for length in 0..whole.len() {
            assert_eq!(Subject::of(&whole[..length]), None, "{length}");
        }
        for i in 0..whole.len() {
            let mut broken = whole.clone();
            broken[i] ^= 0xff;
            drop(Subject::of(&broken));
        }
        assert_eq!(Subject::of(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(Subject::of(&[0x30, 0x80]), None);
    }
}
