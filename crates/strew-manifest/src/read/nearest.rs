//! Finds the known name that is most similar to a wrong one.

/// Longer names are not compared, because the cost is quadratic.
const NAME_LENGTH_MAX: usize = 64;

/// The candidate most similar to `name`, if its edit distance is at most one edit in three characters; letter case does
/// not count. Of equals, the first.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_LENGTH_MAX {
        return None;
    }
    let lower: Vec<char> = name.to_lowercase().chars().collect();
    let distance_max = (lower.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len() > NAME_LENGTH_MAX || candidate == name {
            continue;
        }
        let other: Vec<char> = candidate.to_lowercase().chars().collect();
        let distance = edit_distance(&lower, &other);
        // A name of one or two letters is one edit from all names of its length.
        let is_near = distance == 0 || (distance <= distance_max && lower.len() > 2);
        if is_near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut row = vec![0; b.len() + 1];
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swap {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[b.len()]
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
