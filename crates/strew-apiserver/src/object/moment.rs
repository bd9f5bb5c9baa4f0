//! Converts times between the simulation and the wire. The API keeps whole seconds.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use strew_model::time::Instant;

/// A time of the wire: whole seconds, truncated.
pub fn to_wire(moment: Instant) -> Time {
    let seconds = i64::try_from(moment.secs()).unwrap_or(i64::MAX);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// Reads a time of the wire; times before 1970 become 1970.
pub fn of_wire(wire: Option<&Time>) -> Option<Instant> {
    let seconds = wire?.0.as_second();
    Some(Instant::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// A time in whole seconds, as the API stores it.
pub fn whole_seconds(moment: Instant) -> Instant {
    Instant::from_secs(moment.secs())
}
