//! Transparent huge pages, which a process that runs for long does without.

/// Asks the kernel for no further huge pages for this process; those that it has stay.
///
/// A freed part of a huge page is given back, and the kernel makes the page whole again in the background, with memory
/// for the hole (khugepaged, `max_ptes_none`). So a process that was large once would stay large. A kernel that refuses is
/// no failure. Systems other than Linux have none.
pub fn disable() {
    if let Err(error) = crate::platform::disable_huge_pages() {
        tracing::debug!(%error, "huge pages stay on");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_makes_no_huge_pages_for_it() {
        disable();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let enabled = status.lines().find(|line| line.starts_with("THP_enabled"));
        assert_eq!(enabled, Some("THP_enabled:\t0"));
    }
}
