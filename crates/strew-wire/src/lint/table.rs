//! The table of rules.

/// A rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its stable name, in findings and in SARIF.
    pub code: &'static str,
    /// What it finds: a phrase without a full stop.
    pub what: &'static str,
    /// Why that is probably a mistake, and what to do: whole sentences.
    pub why: &'static str,
}

const fn rule(code: &'static str, what: &'static str, why: &'static str) -> Rule {
    Rule { code, what, why }
}

/// Every rule.
pub const RULES: &[Rule] = &[rule(
    "api-server-warning",
    "The API server accepts the object and warns",
    "kubectl shows the same warning when the object is applied.",
)];
