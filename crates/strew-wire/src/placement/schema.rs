//! Patterns and limits in the schemas of OCM's CRDs.

/// A pattern: its text, and a function with the same meaning.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// The text in the schema.
    pub regex: &'static str,
    /// Whether a text matches.
    pub matches: fn(&str) -> bool,
}

/// A label's key, or a claim's name.
pub const LABEL_KEY: Pattern = Pattern {
    regex: r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    matches: is_label_key,
};
/// A topology key: the same set of texts, written differently.
pub const TOPOLOGY_KEY: Pattern = Pattern {
    regex: r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
    matches: is_label_key,
};
/// The name of a decision group.
pub const GROUP_NAME: Pattern = Pattern {
    regex: "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$",
    matches: is_group_name,
};
/// The size of a decision group.
pub const GROUP_SIZE: Pattern = Pattern {
    regex: r"^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
    matches: is_group_size,
};
/// A short duration.
pub const RATE_LIMIT: Pattern = Pattern {
    regex: "^[0-9]+[hms]$",
    matches: is_rate_limit,
};

/// The longest key: a subdomain, a slash, a name.
pub const KEY_MAX: usize = 316;
/// The effects of taints.
pub const EFFECTS: [&str; 3] = ["NoSelect", "PreferNoSelect", "NoSelectIfNew"];
/// How a set selects its clusters.
pub const SELECTOR_TYPES: [&str; 2] = ["ExclusiveClusterSetLabel", "LabelSelector"];
/// The most spread constraints of a Placement.
pub const TERMS_MAX: usize = 8;
/// The longest name of a claim.
pub const CLAIM_NAME_MAX: usize = 253;
/// The longest value of a taint, toleration or claim.
pub const VALUE_MAX: usize = 1024;

fn is_label_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let label = |label: &str| {
        let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !label.is_empty()
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    prefix.is_none_or(|prefix| prefix.split('.').all(label)) && is_name(name)
}

fn is_name(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let at_end = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.bytes().all(inside) && at_end(bytes.first()) && at_end(bytes.last())
}

fn is_group_name(text: &str) -> bool {
    is_name(text) && (2..=63).contains(&text.len())
}

fn is_group_size(text: &str) -> bool {
    let is_number = |digits: &str| {
        !digits.starts_with('0') && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    match text.strip_suffix('%') {
        Some(percent) => is_number(percent) && (percent.len() <= 2 || percent == "100"),
        None => is_number(text),
    }
}

fn is_rate_limit(text: &str) -> bool {
    let digits = text.strip_suffix(['h', 'm', 's']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
