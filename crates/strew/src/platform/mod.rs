//! What differs between operating systems: a file for each, with the same items.
//!
//! No other module of this crate names a system or an interface of one.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as here;
#[cfg(windows)]
use windows as here;

#[cfg(feature = "cluster")]
pub(crate) use here::EndSignals;
pub(crate) use here::{SPEAKS_UTF8, available_memory, is_of_shell, path_text};
