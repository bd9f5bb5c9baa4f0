//! WebAssembly with WASI: strew in a page of a browser (web/play), where files are texts in memory.
//!
//! There is one thread, no signal, no other process and no link between files; whatever starts strew ends it.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// True if terminals show UTF-8 without a locale that says so.
pub(crate) const SPEAKS_UTF8: bool = true;

/// True if standard error goes to what shows progress and is no terminal: the page does.
pub(crate) const TELLS_PROGRESS: bool = true;

/// The memory that WebAssembly can address.
const MEMORY: u64 = 4 << 30;

/// The text of a path, for messages, reports and commands to paste.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// There is no shell.
pub(crate) fn is_of_shell(_: &Path) -> bool {
    false
}

/// The bytes that this program may take.
pub(crate) fn available_memory() -> Option<u64> {
    Some(MEMORY)
}

/// A flag that nothing sets.
///
/// # Errors
/// Never.
pub(crate) fn interrupts(_exit: u8) -> io::Result<Arc<AtomicBool>> {
    Ok(Arc::default())
}

/// The number of this process, which is the only one.
pub(crate) fn process_id() -> u32 {
    1
}

/// The number of runs at the same time: 1, whatever is `asked` for.
pub(crate) fn jobs(_asked: Option<NonZeroUsize>) -> usize {
    1
}

/// The path from the root, without `.` and `..`; equal for equal files, since there are no links.
///
/// # Errors
/// The file does not exist.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.metadata()?;
    let mut real = PathBuf::from("/");
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => real.push(name),
            std::path::Component::ParentDir => {
                real.pop();
            }
            _ => {}
        }
    }
    Ok(real)
}
