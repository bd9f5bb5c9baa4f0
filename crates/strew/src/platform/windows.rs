//! Windows.

#[cfg(feature = "cluster")]
use std::io;
use std::path::Path;

/// True if terminals show UTF-8 without a locale that says so.
pub(crate) const SPEAKS_UTF8: bool = true;

/// The text of a path, for messages, reports and commands to paste, with slashes as on other systems: editors, git and
/// code scanning take them, and so does Windows.
pub(crate) fn path_text(path: &Path) -> String {
    slashes(&path.to_string_lossy())
}

/// `\\?\C:\a` is the same file as `C:/a`; other paths with this beginning have no shorter form, and take no slashes.
fn slashes(path: &str) -> String {
    let plain = path.strip_prefix(r"\\?\");
    let is_drive = |plain: &&str| plain.as_bytes().get(1) == Some(&b':');
    match plain.map(|plain| Some(plain).filter(is_drive)) {
        Some(None) => path.to_owned(),
        Some(Some(plain)) => plain.replace('\\', "/"),
        None => path.replace('\\', "/"),
    }
}

/// Shells make no files.
pub(crate) fn is_of_shell(_: &Path) -> bool {
    false
}

/// Unknown.
pub(crate) fn available_memory() -> Option<u64> {
    None
}

/// There are none that a service manager sends: a process could not end in order.
#[cfg(feature = "cluster")]
pub(crate) enum EndSignals {}

#[cfg(feature = "cluster")]
impl EndSignals {
    /// # Errors
    /// Always.
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this command runs on Linux and macOS only",
        ))
    }

    /// Never called.
    pub(crate) async fn recv(&mut self) {
        match *self {}
    }
}

#[test]
fn paths_have_slashes() {
    assert_eq!(slashes(r"a\b/c.yaml"), "a/b/c.yaml");
    assert_eq!(slashes(r"\\?\C:\a b\c"), "C:/a b/c");
    assert_eq!(slashes(r"\\?\UNC\server\share"), r"\\?\UNC\server\share");
    assert_eq!(slashes(r"\\server\share\a"), "//server/share/a");
}
