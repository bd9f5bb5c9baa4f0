//! Systems with processes and signals: Linux, macOS and Windows.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use signal_hook::flag::{register, register_conditional_shutdown};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// True if standard error goes to what shows progress and is no terminal.
pub(crate) const TELLS_PROGRESS: bool = false;

/// A flag that the first Ctrl-C sets; the second one ends the program at once, with this exit code.
///
/// # Errors
/// The system refuses.
pub(crate) fn interrupts(exit: u8) -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    // In this order: the first signal finds the flag unset.
    register_conditional_shutdown(SIGINT, i32::from(exit), Arc::clone(&flag))?;
    register(SIGINT, Arc::clone(&flag))?;
    Ok(flag)
}

/// The number of this process, which no other one that runs has.
pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// The number of runs at the same time: as many as `asked` for, or one a core.
pub(crate) fn jobs(asked: Option<NonZeroUsize>) -> usize {
    let cores = || std::thread::available_parallelism().ok();
    asked.or_else(cores).map_or(1, NonZeroUsize::get)
}

/// The absolute path without links; equal for equal files.
///
/// # Errors
/// The file does not exist, or a folder of it cannot be read.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}
