//! What Linux and macOS have in common.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Monotonic nanoseconds.
pub(crate) fn stopwatch() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// The CPU time of this thread, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// The name of this host.
pub(crate) fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

pub(super) fn nanos(time: Timespec) -> u64 {
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    let secs = part(time.tv_sec).saturating_mul(1_000_000_000);
    secs.saturating_add(part(time.tv_nsec))
}
