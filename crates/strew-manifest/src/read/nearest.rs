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
}
