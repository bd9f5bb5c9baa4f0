//! Windows, for commands that ask an API server. Processes that run until a signal end with an error there.

use std::io;
use std::sync::OnceLock;
use std::time::Instant;

/// Monotonic nanoseconds since the first call. The performance counter behind it continues while the machine sleeps.
pub(crate) fn since_boot() -> u64 {
    stopwatch()
}

/// Monotonic nanoseconds since the first call.
pub(crate) fn stopwatch() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "a clock of the system, as those of the files beside this one"
    )]
    let began = BEGAN.get_or_init(Instant::now);
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The elapsed time in place of the CPU time of this thread, which std does not have.
pub(crate) fn thread_cpu() -> u64 {
    stopwatch()
}

/// The name of this host; empty if the environment does not have it.
pub(crate) fn hostname() -> String {
    let name = std::env::var_os("COMPUTERNAME").unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Does nothing: there are no transparent huge pages.
pub(crate) fn disable_huge_pages() -> io::Result<()> {
    Ok(())
}
