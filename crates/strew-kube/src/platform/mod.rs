//! What differs between operating systems: a file for each, with the same functions.
//!
//! No other module of this crate names a system or an interface of one.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod macos;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{disable_huge_pages, since_boot};
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use macos::{disable_huge_pages, since_boot};
#[cfg(unix)]
pub(crate) use unix::{hostname, stopwatch, thread_cpu};
#[cfg(windows)]
pub(crate) use windows::{disable_huge_pages, hostname, since_boot, stopwatch, thread_cpu};
