//! A scenario to begin with, for `--new`.

/// A commented scenario that runs unchanged and names every verb and expectation.
pub fn starter() -> &'static str {
    include_str!("starter.yaml")
}
