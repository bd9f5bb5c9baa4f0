//! Rules for the characters of names and values.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation`, v1.36. Each function returns the API server's messages, none if
//! the text is valid.

/// A rule that upstream writes as a regular expression.
struct Rule {
    message: &'static str,
    regex: &'static str,
    examples: &'static [&'static str],
}

const LABEL: Rule = Rule {
    message: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
    regex: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "123-abc"],
};
const SUBDOMAIN: Rule = Rule {
    message: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
    regex: r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    examples: &["example.com"],
};
const LABEL_1035: Rule = Rule {
    message: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
    regex: "[a-z]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "abc-123"],
};
const QUALIFIED_NAME: Rule = Rule {
    message: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    regex: "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    examples: &["MyName", "my.name", "123-abc"],
};
const LABEL_VALUE: Rule = Rule {
    message: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    regex: "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    examples: &["MyValue", "my_value", "12345"],
};
const PERCENT: Rule = Rule {
    message: "a valid percent string must be a numeric string followed by an ending '%'",
    regex: "[0-9]+%",
    examples: &["1%", "93%"],
};

const N_LABEL_CHARS_MAX: usize = 63;
const N_SUBDOMAIN_CHARS_MAX: usize = 253;

impl Rule {
    /// Source: `RegexError`, which has two spaces between its examples.
    fn sentence(&self) -> String {
        let examples: Vec<String> = self.examples.iter().map(|e| format!("'{e}', ")).collect();
        format!(
            "{} (e.g. {}regex used for validation is '{}')",
            self.message,
            examples.join(" or "),
            self.regex
        )
    }
}

/// A DNS label: namespaces, containers, StatefulSets.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut sentences = too_long(text, N_LABEL_CHARS_MAX);
    if !is_dns_label(text) {
        sentences.push(if is_dns_subdomain(text) {
            "must not contain dots".to_string()
        } else {
            LABEL.sentence()
        });
    }
    sentences
}

/// Labels with dots between: most objects.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut sentences = too_long(text, N_SUBDOMAIN_CHARS_MAX);
    if !is_dns_subdomain(text) {
        sentences.push(SUBDOMAIN.sentence());
    }
    sentences
}

/// A DNS label that starts with a letter: Services.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut sentences = too_long(text, N_LABEL_CHARS_MAX);
    let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts_well || !is_dns_label(text) {
        sentences.push(LABEL_1035.sentence());
    }
    sentences
}

/// `name` or `example.com/name`: the keys of labels and annotations, extended resources, gates.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                sentences.push("prefix part must be non-empty".to_string());
            } else {
                let of_prefix = dns_subdomain(prefix).into_iter();
                sentences.extend(of_prefix.map(|sentence| format!("prefix part {sentence}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                QUALIFIED_NAME.sentence()
            )];
        }
    };
    if name.is_empty() {
        sentences.push("name part must be non-empty".to_string());
    }
    let of_name = too_long(name, N_LABEL_CHARS_MAX).into_iter();
    sentences.extend(of_name.map(|sentence| format!("name part {sentence}")));
    if name.is_empty() || !is_label_value(name) {
        sentences.push(format!("name part {}", QUALIFIED_NAME.sentence()));
    }
    sentences
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut sentences = too_long(text, N_LABEL_CHARS_MAX);
    if !is_label_value(text) {
        sentences.push(LABEL_VALUE.sentence());
    }
    sentences
}

/// A segment of a URL path: any name that is referred to. Source: `IsValidPathSegmentName`.
pub fn path_segment(text: &str) -> Vec<String> {
    if let "." | ".." = text {
        return vec![format!("may not be '{text}'")];
    }
    let broken = ["/", "%"].into_iter().filter(|part| text.contains(part));
    broken
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// The name of a container's port.
pub fn port_name(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    if text.len() > 15 {
        sentences.push("must be no more than 15 bytes".to_string());
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rules = [
        (
            !text.is_empty() && text.chars().all(allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            text.contains(|c: char| c.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (!text.contains("--"), "must not contain consecutive hyphens"),
        (
            !text.starts_with('-') && !text.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    let broken = rules.iter().filter(|(holds, _)| !holds);
    sentences.extend(broken.map(|(_, sentence)| sentence.to_string()));
    sentences
}

/// The name of a variable of a container's environment. Source: `IsRelaxedEnvVarName`.
pub fn variable_name(text: &str) -> Vec<String> {
    let is_allowed = |c: char| matches!(c, ' '..='~') && c != '=';
    if text.chars().all(is_allowed) {
        return Vec::new();
    }
    let sentence = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    vec![sentence.to_owned()]
}

/// An IP address. Leading zeros are allowed, as in objects that older versions have stored.
pub fn ip(text: &str) -> Vec<String> {
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let is_ip = match text.contains(':') {
        true => text.parse::<core::net::IpAddr>().is_ok(),
        false => {
            let parts: Vec<String> = text.split('.').map(plain).collect();
            parts.join(".").parse::<core::net::Ipv4Addr>().is_ok()
        }
    };
    if is_ip {
        return Vec::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}

/// `25%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![PERCENT.sentence()]
}

fn too_long(text: &str, n_max: usize) -> Vec<String> {
    if text.len() > n_max {
        vec![format!("must be no more than {n_max} bytes")]
    } else {
        Vec::new()
    }
}

fn is_dns_label(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inside) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

fn is_label_value(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let at_end = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.bytes().all(inside) && at_end(text.chars().next()) && at_end(text.chars().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: fn(&str) -> Vec<String>, good: &[&str], bad: &[(&str, &str)]) {
        for text in good {
            assert_eq!(rule(text), Vec::<String>::new(), "{text:?}");
        }
        for (text, start) in bad {
            let sentences = rule(text);
            let first = sentences.first().cloned().unwrap_or_default();
            assert!(first.starts_with(start), "{text:?}: {sentences:?}");
        }
    }

    #[test]
    fn rules() {
        let long = "x".repeat(64);
        let too_long = "must be no more than 63 bytes";
        check(
            dns_label,
            &["a", "0", "a-b", "a--b"],
            &[
                ("a.b", "must not contain dots"),
                ("", "a low"),
                ("A", "a low"),
                ("-a", "a low"),
                (&long, too_long),
            ],
        );
        check(
            dns_subdomain,
            &["a", "a.b", "0.1"],
            &[("a..b", "a low"), ("a_b", "a low"), (".", "a low")],
        );
        check(
            dns_1035_label,
            &["a", "a-0"],
            &[("0a", "a DNS-1035 label"), ("a.b", "a DNS-1035 label")],
        );
        check(
            qualified_name,
            &["a", "A_b.c", "example.com/Name"],
            &[
                ("", "name part must be non-empty"),
                ("/a", "prefix part must be non-empty"),
                ("a/b/c", "a qualified name must consist of"),
                ("A/b", "prefix part a lowercase RFC 1123 subdomain"),
                ("a b", "name part must consist of"),
                (&long, "name part must be no more than 63 bytes"),
            ],
        );
        check(
            label_value,
            &["", "a", "A-b_c.d"],
            &[
                ("-a", "a valid label"),
                ("a b", "a valid label"),
                (&long, too_long),
            ],
        );
        check(
            port_name,
            &["http", "a-1"],
            &[
                ("1", "must contain at least"),
                ("a--b", "must not contain"),
                ("HTTP", "must contain only"),
            ],
        );
        check(
            variable_name,
            &["A", "a.b-c", "1 2"],
            &[("A=B", "a valid env"), ("\u{fc}", "a valid env")],
        );
        check(
            ip,
            &["10.0.0.1", "010.001.000.1", "::1", "2001:db8::ffff"],
            &[
                ("300.1.1.1", "must be a valid IP"),
                ("10.0.0", "must be a valid IP"),
                ("a", "must be a valid IP"),
                ("", "must be a valid IP"),
            ],
        );
        check(
            percent,
            &["0%", "100%"],
            &[
                ("%", "a valid percent"),
                ("5", "a valid percent"),
                ("-5%", "a valid percent"),
            ],
        );
    }

    #[test]
    fn sentences_have_upstreams_spacing() {
        assert_eq!(
            dns_label("A")[0],
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        );
    }
}
