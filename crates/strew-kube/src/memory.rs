//! The memory of a process that runs for long.

/// Asks the kernel for no huge pages, for this process.
///
/// A freed part of a huge page is given back, and the kernel makes it whole again in the background, with memory for the
/// hole (khugepaged, `max_ptes_none`). So a process that was large once stays large. Beside that, a small process needs
/// half as much without huge pages. A kernel without them is no failure.
pub fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay on");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_makes_no_huge_pages_for_it() {
        without_huge_pages();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let enabled = status.lines().find(|line| line.starts_with("THP_enabled"));
        assert_eq!(enabled, Some("THP_enabled:\t0"));
    }
}
