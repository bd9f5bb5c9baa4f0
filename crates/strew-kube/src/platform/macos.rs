//! macOS, where the monotonic clock continues while the machine sleeps: clock_gettime(3).

use std::io;

/// Monotonic nanoseconds that continue while the machine is suspended.
pub(crate) fn since_boot() -> u64 {
    super::unix::stopwatch()
}

/// Does nothing: there are no transparent huge pages.
pub(crate) fn disable_huge_pages() -> io::Result<()> {
    Ok(())
}
