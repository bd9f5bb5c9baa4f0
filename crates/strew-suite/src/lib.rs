//! From texts to a report: what `strew simulate` does without its files, terminal and threads, for any other face.
//!
//! Reading order: [`simulate`](fn@simulate::simulate) (all of it), [`options`] and [`input`] (what comes in), [`suite`] with
//! [`streams`], [`story`], [`assumed`], [`nodes`], [`configuration`] and [`rules`] (texts to plans), [`ready`], [`work`] with
//! [`host`] and [`recorder`] (runs), [`standing`] and [`summary`] (runs added up), [`verdicts`] and [`remarks`] (the worst of
//! them), [`report`] (for programs), [`cure`] (what would prevent a breach), [`replay`] (commands to paste).
//!
//! Nothing here opens a file, asks a clock or starts a thread unless the [`host`] wants several, so that it runs in a
//! browser as well.

pub mod assumed;
pub mod clock;
pub mod configuration;
pub mod cure;
pub mod decision;
pub mod digest;
pub mod dump;
pub mod failure;
pub mod host;
pub mod ignored;
pub mod input;
pub mod label_query;
pub mod ledgers;
pub mod log;
pub mod nodes;
pub mod options;
pub mod ready;
pub mod recorder;
pub mod remarks;
pub mod replay;
#[allow(missing_docs, reason = "the schema shows the names, which say it")]
pub mod report;
pub mod rules;
pub mod seeds;
pub mod serialized;
pub mod series;
pub mod shown;
pub mod simulate;
pub mod standing;
pub mod story;
pub mod streams;
pub mod suite;
#[allow(missing_docs, reason = "the schema shows the names, which say it")]
pub mod summary;
pub mod verdicts;
mod whys;
pub mod work;

/// The kube-scheduler whose decisions are matched.
pub const KUBERNETES: &str = "1.36.3";

/// The commit of the sources, if the build was told it: `cargo xtask dist` does where nothing was changed since.
pub const COMMIT: Option<&str> = option_env!("STREW_COMMIT");

/// The version, with the commit where it is known: two builds between releases are two engines.
pub fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    COMMIT.map_or_else(
        || version.to_owned(),
        |commit| format!("{version}+{commit}"),
    )
}
