//! What a change names: a node by its name, or all nodes of a domain. Clusters of a fleet are named in the same way.

use std::fmt;

/// One member by its name, or a whole domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Those whose label (or claim) `key` has this value.
    Domain {
        /// The topology key.
        key: String,
        /// The domain.
        value: String,
    },
    /// The one of this name.
    Named(String),
}

/// A node, or a cluster of a fleet.
pub trait Member {
    /// Its name.
    fn name(&self) -> &str;

    /// The domains that it is in by a topology key.
    fn domains(&self, key: &str) -> impl Iterator<Item = &str>;
}

impl Part {
    /// Reads `KEY=VALUE` (or `KEY/VALUE`) or `NAME`, several with commas between them.
    ///
    /// # Errors
    /// A sentence about the word that is neither.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, String> {
        // A key may have slashes, a value has none.
        let part = |text: &str| match text.split_once('=').or_else(|| text.rsplit_once('/')) {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(Self::Domain {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            Some(_) => Err(format!("{text:?} is no KEY=VALUE")),
            None if text.is_empty() => Err("a name is missing between the commas".to_owned()),
            None => Ok(Self::Named(text.to_owned())),
        };
        list.split(',').map(part).collect()
    }

    /// Whether it means this one.
    pub fn means(&self, member: &impl Member) -> bool {
        match self {
            Self::Domain { key, value } => member.domains(key).any(|domain| domain == value),
            Self::Named(name) => member.name() == name,
        }
    }
}

/// `KEY=VALUE` or `NAME`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain { key, value } => write!(f, "{key}={value}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_domains() {
        let domain = |key: &str, value: &str| Part::Domain {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let named = |name: &str| Part::Named(name.to_owned());
        let cases = [
            ("region/us-east", Some(vec![domain("region", "us-east")])),
            (
                "topology.kubernetes.io/zone/a,c1",
                Some(vec![
                    domain("topology.kubernetes.io/zone", "a"),
                    named("c1"),
                ]),
            ),
            (
                "example.com/rack=1",
                Some(vec![domain("example.com/rack", "1")]),
            ),
            ("", None),
            ("=a", None),
            ("a=", None),
            ("a,,b", None),
            ("/a", None),
            ("a/", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Part::parse_list(text).ok(), expected, "{text}");
        }
    }
}
