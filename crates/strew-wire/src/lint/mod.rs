//! Rules of `strew lint`, which `strew simulate` applies to its files, too.
//!
//! [`RULES`] is the only table of rules.

mod table;

pub use table::{RULES, Rule};

/// The rule with this code; `None` for problems that are found while files are read, which say themselves what to do.
pub fn rule_text(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code == code)
}

/// What a problem without a rule means.
pub const HELP: &str = "strew reads files as the API server does; the message says what is wrong, where, and what to do about it.";
