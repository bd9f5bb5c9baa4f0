//! The house rules as tests. Each failure says what to do.
//!
//! [`graph`] (arrows, dependencies of the deciding crates, licences), [`lock`] (bans and sources), [`manifests`]
//! (how dependencies are declared), [`files`] (what may stand in a file), [`purity`] (what deciding code may name),
//! [`documents`] (what README, ARCHITECTURE and CHANGELOG must hold), [`project`] (what a stranger looks for: how to
//! report a hole, which version it is, what may be built in), [`workflows`] (what a forge runs),
//! [`picture`] (the crates in ARCHITECTURE.md), [`wall`] (who decodes Kubernetes' types), [`portable`] (where an operating system is named), [`citations`] (rules that sources cite exist in docs/spec).

mod citations;
mod deny;
mod documents;
mod files;
mod graph;
mod licence;
mod lock;
mod manifests;
mod picture;
mod portable;
mod project;
mod purity;
mod repository;
mod wall;
mod workflows;

/// The crates that decide: synchronous, deterministic, without clock, I/O and wire.
const DECIDING: [&str; 9] = [
    "strew-model",
    "strew-spread",
    "strew-cluster",
    "strew-scheduler",
    "strew-plan",
    "strew-workloadspread",
    "strew-keep",
    "strew-zones",
    "strew-placement",
];

/// Fails with all broken rules at once, and what to do about them.
#[track_caller]
fn expect_none(broken: Vec<String>, what_to_do: &str) {
    assert!(
        broken.is_empty(),
        "\n  {}\n{what_to_do}\n",
        broken.join("\n  ")
    );
}
