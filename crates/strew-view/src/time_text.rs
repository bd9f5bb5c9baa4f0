//! Times for people.

use std::fmt::Write;

use strew_model::Span;

/// `1h2m5s`, in whole seconds.
pub fn time_text(time: Span) -> String {
    let seconds = time.0 / 1_000_000_000;
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m")];
    let mut text: String = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n}{unit}"))
        .collect();
    if !seconds.is_multiple_of(60) || text.is_empty() {
        let _ = write!(text, "{}s", seconds % 60);
    }
    text
}

/// How long something lasted: as [`time_text`], and `under 1s` for what lasted no whole second.
pub fn length_text(length: Span) -> String {
    match length.0 < 1_000_000_000 {
        true => "under 1s".to_owned(),
        false => time_text(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_without_empty_parts() {
        let text = |secs| time_text(Span::from_secs(secs));
        assert_eq!([text(0), text(61), text(3600)], ["0s", "1m1s", "1h"]);
        assert_eq!(length_text(Span(999_999_999)), "under 1s");
        assert_eq!(length_text(Span::from_secs(61)), "1m1s");
    }
}
