//! Linux.

use std::io;

use rustix::time::{ClockId, clock_gettime};

use super::unix::nanos;

/// Monotonic nanoseconds that continue while the machine is suspended.
pub(crate) fn since_boot() -> u64 {
    nanos(clock_gettime(ClockId::Boottime))
}

/// Asks the kernel for no further transparent huge pages for this process.
pub(crate) fn disable_huge_pages() -> io::Result<()> {
    Ok(rustix::thread::disable_transparent_huge_pages(true)?)
}
