//! Finds the known name that is most similar to a wrong one.

use strsim::osa_distance;

/// Longer names are not compared, because the cost is quadratic.
const NAME_LENGTH_MAX: usize = 64;

/// The candidate most similar to `name`, if its edit distance (a swap of neighbours is one edit) is at most one edit in
/// three characters; letter case does not count. Of equals, the first.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_LENGTH_MAX {
        return None;
    }
    let lower = name.to_lowercase();
    let length = lower.chars().count();
    let distance_max = (length / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len() > NAME_LENGTH_MAX || candidate == name {
            continue;
        }
        let distance = osa_distance(&lower, &candidate.to_lowercase());
        // A name of one or two letters is one edit from all names of its length.
        let is_near = distance == 0 || (distance <= distance_max && length > 2);
        if is_near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Labels of nodes that Kubernetes and its cloud providers set. Those of a row mean the same: the later ones are earlier
/// names of the first.
const OF_NODES: [&[&str]; 6] = [
    &[
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/zone",
    ],
    &[
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/region",
    ],
    &["kubernetes.io/hostname"],
    &["kubernetes.io/os", "beta.kubernetes.io/os"],
    &["kubernetes.io/arch", "beta.kubernetes.io/arch"],
    &[
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
    ],
];

fn row_of(label: &str) -> Option<&'static [&'static str]> {
    OF_NODES.into_iter().find(|row| row.contains(&label))
}

/// The well-known label of nodes that this one is a letter or two away from, before or after the slash; `None` for a
/// well-known one, and for a label of another meaning.
pub fn known_label(label: &str) -> Option<&'static str> {
    if row_of(label).is_some() {
        return None;
    }
    let mut known = OF_NODES.into_iter().map(|row| row[0]);
    known.find(|known| is_label_near(label, known))
}

/// The label of nodes that was probably meant. A well-known label, or one that is nearly one, means that one or another
/// name of it, and never a well-known label of another meaning: zone is no slip for region. Names that differ in what
/// they count ([`is_counted_apart`]) are different names.
pub fn nearest_label<'a>(
    label: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut candidates = candidates.into_iter();
    if let Some(row) = row_of(label).or_else(|| row_of(known_label(label)?)) {
        return candidates.find(|candidate| *candidate != label && row.contains(candidate));
    }
    candidates.find(|candidate| {
        row_of(candidate).is_none()
            && is_label_near(label, candidate)
            && !is_counted_apart(label, candidate)
    })
}

/// True if the prefixes and the names of two labels are equal or near, and not both equal.
fn is_label_near(label: &str, other: &str) -> bool {
    let parts = |label: &'_ str| match label.split_once('/') {
        Some((prefix, name)) => (prefix.to_owned(), name.to_owned()),
        None => (String::new(), label.to_owned()),
    };
    let ((prefix, name), (other_prefix, other_name)) = (parts(label), parts(other));
    // `failure-domain.beta` is another prefix, however long it is.
    let is_prefix = prefix == other_prefix
        || (prefix.len().abs_diff(other_prefix.len()) <= 2
            && nearest(&prefix, [other_prefix.as_str()]).is_some());
    let is_name = name == other_name || nearest(&name, [other_name.as_str()]).is_some();
    is_prefix && is_name && label != other
}

/// The words of a name: runs of letters, and runs of digits.
fn words(name: &str) -> Vec<&str> {
    let parts = name.split(|c: char| !c.is_alphanumeric());
    let mut words: Vec<&str> = Vec::new();
    for mut part in parts.filter(|part| !part.is_empty()) {
        while let Some(first) = part.chars().next() {
            let is_digit = first.is_ascii_digit();
            let end = part.find(|c: char| c.is_ascii_digit() != is_digit);
            let (word, rest) = part.split_at(end.unwrap_or(part.len()));
            words.push(word);
            part = rest;
        }
    }
    words
}

/// True if two names differ as those of several things of one kind do: in a number, or in a word of one letter, that
/// one of them may lack (`team-a` and `team-b`, `kafka` and `kafka2`).
pub fn is_counted_apart(name: &str, other: &str) -> bool {
    let counts = |word: &&str| word.chars().count() == 1 || word.starts_with(char::is_numeric);
    let split = |name: &str| -> (Vec<String>, Vec<String>) {
        let name = name.to_lowercase();
        let words = words(&name).into_iter().map(str::to_owned);
        words.partition(|word| counts(&word.as_str()))
    };
    split(name).0 != split(other).0
}

/// The name that was probably meant by one that may be right: of names that others choose, only a slip of the hand
/// inside a word counts. That is a swap of neighbours, or a letter missing, doubled, added or replaced which is not the
/// first or the last of its word, unless that is the s of a plural, in a word of at least four letters; two of them in a word of eight. All other words
/// are equal, so that another number, letter or word (`team-b`, `stage2`, `shop-prd`) is another name.
pub fn misspelt<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_it = |candidate: &&str| is_slip(&name.to_lowercase(), &candidate.to_lowercase());
    candidates.into_iter().find(is_it)
}

fn is_slip(name: &str, other: &str) -> bool {
    if name.len().max(other.len()) > NAME_LENGTH_MAX {
        return false;
    }
    let (words, others) = (words(name), words(other));
    let mut different = words.iter().zip(&others).filter(|(a, b)| a != b);
    match (different.next(), different.next()) {
        (Some((word, other)), None) if words.len() == others.len() => is_slip_of_word(word, other),
        // A hyphen that is missing.
        _ => name != other && words.concat() == others.concat() && !is_counted_apart(name, other),
    }
}

fn is_slip_of_word(word: &str, other: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
    let n = a.len().max(b.len());
    let is_word = |word: &[char]| word.iter().all(|c| c.is_alphabetic());
    if n < 4 || !is_word(&a) || !is_word(&b) {
        return false;
    }
    let distance = osa_distance(word, other);
    if distance > (n / 4).min(2) {
        return false;
    }
    let sorted = |letters: &[char]| {
        let mut letters = letters.to_vec();
        letters.sort_unstable();
        letters
    };
    let is_swap = sorted(&a) == sorted(&b);
    let is_plural = |one: &str, many: &str| many.strip_suffix('s') == Some(one);
    is_swap
        || is_plural(word, other)
        || is_plural(other, word)
        || (a.first() == b.first() && a.last() == b.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let fields = [
            "maxSkew",
            "minDomains",
            "topologyKey",
            "whenUnsatisfiable",
            "name",
        ];
        let cases = [
            ("maxSkw", Some("maxSkew")),
            ("maxskew", Some("maxSkew")),
            ("toplogyKye", Some("topologyKey")),
            ("whenUnsatisfied", Some("whenUnsatisfiable")),
            ("nmae", Some("name")),
            ("replicas", None),
            ("", None),
            ("x", None),
        ];
        for (name, meant) in cases {
            assert_eq!(nearest(name, fields), meant, "{name}");
        }
    }

    #[test]
    fn a_label_of_another_meaning_was_not_meant() {
        let zone = "topology.kubernetes.io/zone";
        let cases = [
            (zone, "topology.kubernetes.io/region", None),
            (zone, "failure-domain.beta.kubernetes.io/zone", Some(())),
            ("failure-domain.beta.kubernetes.io/zone", zone, Some(())),
            ("failure-domain.beta.kubernetes.io/region", zone, None),
            ("topology.kubernetes.io/zones", zone, Some(())),
            ("topology.kubernets.io/zone", zone, Some(())),
            (
                "topology.kubernetes.io/zome",
                "topology.kubernetes.io/region",
                None,
            ),
            ("topology.kubernetes.io/rack", zone, None),
            ("kubernetes.io/arch", "kubernetes.io/os", None),
            ("example.com/rakc", "example.com/rack", Some(())),
            ("example.com/rack1", "example.com/rack2", None),
            ("rack", "kubernetes.io/hostname", None),
        ];
        for (label, there, meant) in cases {
            let found = nearest_label(label, [there]);
            assert_eq!(found, meant.map(|()| there), "{label}");
        }
    }

    #[test]
    fn a_name_that_counts_or_says_another_word_is_no_slip() {
        let slips = [
            ("defualt", "default"),
            ("monitorng", "monitoring"),
            ("moonitoring", "monitoring"),
            ("shpo", "shop"),
            ("kube-montioring", "kube-monitoring"),
            ("payments-prdo", "payments-prod"),
            ("cert-manger", "cert-manager"),
            ("certmanager", "cert-manager"),
            ("payment", "payments"),
        ];
        for (name, meant) in slips {
            assert_eq!(misspelt(name, [meant]), Some(meant), "{name}");
        }
        let others = [
            ("team-b", "team-a"),
            ("prod-2", "prod-1"),
            ("stage2", "stage1"),
            ("kafka2", "kafka"),
            ("shop-prd", "shop-dev"),
            ("shop-prod", "shop-dev"),
            ("team-blue", "team-glue"),
            ("teamb", "teama"),
            ("prod-eu", "prod-us"),
            ("web", "wep"),
            ("app1-prod", "app2-prod"),
            ("shop", "shop-a"),
        ];
        for (name, other) in others {
            assert_eq!(misspelt(name, [other]), None, "{name}");
        }
    }
}
