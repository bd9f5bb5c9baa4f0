//! Flags that become names in a cluster are checked here: `kubectl apply` of half a component is worse than an error.

pub(crate) use crate::manifest::namespace;

/// The longest name of an image's repository in registries.
const REPOSITORY_MAX: usize = 255;

/// The longest tag.
const TAG_MAX: usize = 128;

/// A reference to a container image: `[HOST[:PORT]/]REPOSITORY[:TAG][@DIGEST]`. Source: the reference grammar of
/// distribution, which container runtimes parse with.
pub(crate) fn image(text: &str) -> Result<String, String> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Err(
            "the part after @ is not a digest such as sha256: and 64 hexadecimal digits".to_owned(),
        );
    }
    // A colon before the last slash belongs to a port.
    let name_start = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[name_start..].split_once(':') {
        Some((name, tag)) => (&rest[..name_start + name.len()], Some(tag)),
        None => (rest, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err(format!(
            "the part after the last colon is not a tag: letters, digits, _ . -, at most {TAG_MAX}"
        ));
    }
    let (host, path) = match name.split_once('/') {
        Some((first, path)) if is_host(first) => (Some(first), path),
        _ => (None, name),
    };
    let is_path = path.split('/').all(is_path_component);
    if !is_path || host.is_some_and(|host| !is_address(host)) || name.len() > REPOSITORY_MAX {
        return Err("not an image such as registry.example.com/strew:0.1.0: a host, a path in lower case, a tag".to_owned());
    }
    Ok(text.to_owned())
}

/// True if the first component is the host of a registry and not a part of the path.
fn is_host(text: &str) -> bool {
    text == "localhost" || text.contains(['.', ':'])
}

/// `HOST[:PORT]`; an IPv6 address is in brackets.
fn is_address(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|number| number > 0);
    let is_ipv6 = |host: &str| {
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
    };
    let is_label = |label: &str| {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty()
            && label.chars().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    port.is_none_or(is_port) && (is_ipv6(host) || host.split('.').all(is_label))
}

/// Lower case letters and digits, with `.`, `_`, `__` or dashes between them.
fn is_path_component(text: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = text
        .split(is_alphanumeric)
        .filter(|separator| !separator.is_empty());
    let is_separator =
        |text: &str| matches!(text, "." | "_" | "__") || text.chars().all(|c| c == '-');
    text.starts_with(is_alphanumeric)
        && text.ends_with(is_alphanumeric)
        && separators.into_iter().all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= TAG_MAX
        && text.starts_with(is_word)
        && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_digest(text: &str) -> bool {
    let is_hex = |text: &str| text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    match text.split_once(':') {
        Some(("sha256", hex)) => hex.len() == 64 && is_hex(hex),
        Some(("sha512", hex)) => hex.len() == 128 && is_hex(hex),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_one_that_runtimes_parse() {
        let digest = format!("strew@sha256:{}", "0a".repeat(32));
        let long_tag = format!("strew:{}", "a".repeat(TAG_MAX + 1));
        for (text, is_good) in [
            ("strew", true),
            ("strew:0.1.0", true),
            ("registry.example.com/strew:0.1.0", true),
            ("registry.example.com:5000/team/strew", true),
            ("localhost/strew:dev", true),
            ("[fd00::1]:5000/strew", true),
            ("team/a__b-c.d---e:V1_2", true),
            (&digest, true),
            ("", false),
            (":0.1.0", false),
            ("strew:", false),
            ("strew:0.1.0:1", false),
            ("Strew:0.1.0", false),
            ("UPPER/strew:0.1.0", false),
            ("https://registry.example.com/strew", false),
            ("registry.example.com:0/strew", false),
            ("registry.example.com:x/strew", false),
            ("-a.example.com/strew", false),
            ("team//strew", false),
            ("team/strew-", false),
            ("team/a..b", false),
            ("strew 0.1.0", false),
            ("strew@sha256:00", false),
            ("strew@0.1.0", false),
            (&long_tag, false),
        ] {
            assert_eq!(image(text).is_ok(), is_good, "{text}: {:?}", image(text));
        }
    }

    #[test]
    fn a_namespace_is_a_dns_label() {
        for (text, is_good) in [
            ("strew-system", true),
            ("Strew", false),
            ("a.b", false),
            ("-a", false),
            ("", false),
        ] {
            assert_eq!(namespace(text).is_ok(), is_good, "{text}");
        }
        assert!(namespace(&"a".repeat(64)).is_err());
    }
}
