//! Linux and macOS.

use std::fs;
#[cfg(feature = "cluster")]
use std::io;
use std::path::Path;

#[cfg(feature = "cluster")]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// True if terminals show UTF-8 without a locale that says so.
pub(crate) const SPEAKS_UTF8: bool = cfg!(target_os = "macos");

/// The text of a path, for messages, reports and commands to paste.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// True if it is a file that a shell makes for `<(command)`.
pub(crate) fn is_of_shell(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdin", "/proc/self/fd"]
        .iter()
        .any(|of| path.starts_with(of))
}

/// The bytes that this process may still take: of the machine, and of its control group. `None` if neither is known, as
/// on macOS.
pub(crate) fn available_memory() -> Option<u64> {
    let of_machine = fs::read_to_string("/proc/meminfo").ok();
    let of_machine = of_machine.and_then(|text| available_of(&text));
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok()?;
        text.trim().parse().ok()
    };
    let of_group = number("max").map(|max| max.saturating_sub(number("current").unwrap_or(0)));
    of_machine.into_iter().chain(of_group).min()
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available_of(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

/// SIGINT and SIGTERM.
#[cfg(feature = "cluster")]
pub(crate) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

#[cfg(feature = "cluster")]
impl EndSignals {
    /// Takes the signals from now on. Needs a runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Returns at the next of them.
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[test]
fn what_is_available_is_read() {
    let meminfo = "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n";
    assert_eq!(available_of(meminfo), Some(8 << 20));
    assert_eq!(available_of("MemAvailable: much"), None);
    assert_eq!(available_of(""), None);
}
