//! Converts times between the simulation and the wire. The API keeps whole seconds.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use strew_model::time::Instant;

/// The wire's time: whole seconds, the rest is cut off.
pub fn to_wire(moment: Instant) -> Time {
    let seconds = i64::try_from(moment.secs()).unwrap_or(i64::MAX);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// A moment of the wire; those before 1970 are the beginning.
pub fn of_wire(wire: Option<&Time>) -> Option<Instant> {
    let seconds = wire?.0.as_second();
    Some(Instant::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// A moment as the API remembers it.
pub fn whole_seconds(moment: Instant) -> Instant {
    Instant::from_secs(moment.secs())
}
