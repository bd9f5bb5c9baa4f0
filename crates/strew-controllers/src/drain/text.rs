//! Errors and durations as Go writes them.

use strew_model::time::Span;

/// One error as it is; several in brackets.
pub(super) fn aggregate(errors: &[String]) -> String {
    match errors {
        [error] => error.clone(),
        _ => format!("[{}]", errors.join(", ")),
    }
}

/// A duration in whole seconds: `25s`, `1m30s`, `2h0m0s`.
pub(super) fn duration(span: Span) -> String {
    let seconds = span.0 / 1_000_000_000;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (seconds, expected) in [
            (0, "0s"),
            (25, "25s"),
            (90, "1m30s"),
            (7200, "2h0m0s"),
            (3661, "1h1m1s"),
        ] {
            assert_eq!(duration(Span::from_secs(seconds)), expected);
        }
    }
}
