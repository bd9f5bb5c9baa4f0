//! What differs between operating systems: a file for each, with the same items.
//!
//! No other module of this crate names a system or an interface of one.

#[cfg(any(unix, windows))]
mod process;
#[cfg(unix)]
mod unix;
#[cfg(target_os = "wasi")]
mod wasi;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as here;
#[cfg(target_os = "wasi")]
use wasi as here;
#[cfg(windows)]
use windows as here;

#[cfg(any(unix, windows))]
use process as around;
#[cfg(target_os = "wasi")]
use wasi as around;

pub(crate) use around::{TELLS_PROGRESS, interrupts, jobs, process_id, real_path};
#[cfg(feature = "cluster")]
pub(crate) use here::EndSignals;
pub(crate) use here::{SPEAKS_UTF8, available_memory, is_of_shell, path_text};
