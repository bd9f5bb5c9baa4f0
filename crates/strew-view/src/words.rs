//! Numbers with their nouns, and short names.

/// `1 pod`, `2 pods`, `10,000 pods`.
pub fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(n))
}

/// Groups digits in threes, for numbers of five digits or more.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let first = (digits.len() - 1) % 3 + 1;
    let mut text = digits[..first].to_owned();
    for at in (first..digits.len()).step_by(3) {
        text.push(',');
        text.push_str(&digits[at..at + 3]);
    }
    text
}

/// Short names of well-known keys.
pub fn short_key(key: &str) -> &str {
    match key {
        "kubernetes.io/hostname" => "hostname",
        "topology.kubernetes.io/zone" => "zone",
        "topology.kubernetes.io/region" => "region",
        key => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(count(1, "pod"), "1 pod");
        assert_eq!(count(8152, "pod"), "8152 pods");
        assert_eq!(count(150_000, "pod"), "150,000 pods");
        assert_eq!(count(1_000_001, "pod"), "1,000,001 pods");
    }
}
