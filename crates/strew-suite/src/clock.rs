//! Spans of virtual time as text.

use strew_model::Span;

const SECOND: u64 = 1_000_000_000;

/// `10m`, `1h30m`, `42.5s`: exact, so that `--until` accepts it.
pub fn clock(span: Span) -> String {
    let (hours, rest) = (span.0 / (3600 * SECOND), span.0 % (3600 * SECOND));
    let (minutes, rest) = (rest / (60 * SECOND), rest % (60 * SECOND));
    let mut text = String::new();
    if hours > 0 {
        text.push_str(&format!("{hours}h"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}m"));
    }
    let (seconds, nanos) = (rest / SECOND, rest % SECOND);
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        text.push_str(&format!("{seconds}.{}s", digits.trim_end_matches('0')));
    } else if seconds > 0 || text.is_empty() {
        text.push_str(&format!("{seconds}s"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short_and_exact() {
        let cases = [
            (0, "0s"),
            (90 * SECOND, "1m30s"),
            (600 * SECOND, "10m"),
            (5400 * SECOND, "1h30m"),
            (42 * SECOND + 317_000_000, "42.317s"),
            (1, "0.000000001s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(clock(Span(nanos)), text);
        }
    }
}
