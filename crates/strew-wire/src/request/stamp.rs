//! Times in the API's format.

use jiff::Timestamp;
use strew_model::time::Instant;

/// `metav1.Time`: whole seconds.
pub(crate) fn time(moment: Instant) -> String {
    timestamp(moment).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metav1.MicroTime`: six digits below the second.
pub(crate) fn micro_time(moment: Instant) -> String {
    timestamp(moment)
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string()
}

/// 64 bits of nanoseconds end in the year 2554, well within the range.
pub(crate) fn timestamp(moment: Instant) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(moment.0)).unwrap_or(Timestamp::MAX)
}
