//! `strew version`.

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::failure::Failure;
use crate::terminal;

use strew_suite::COMMIT;
pub(crate) use strew_suite::KUBERNETES;

#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// How to write it
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum Format {
    Json,
    Yaml,
}

pub(crate) fn run(args: &VersionArgs) -> Result<u8, Failure> {
    terminal::print(&text(args.output, COMMIT))?;
    Ok(0)
}

fn text(format: Option<Format>, commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match format {
        None => {
            let commit = commit.map(|commit| format!(" ({commit})"));
            let commit = commit.unwrap_or_default();
            format!("strew {version}{commit}, deciding as kube-scheduler v{KUBERNETES}\n")
        }
        Some(Format::Json) => {
            let mut value = json!({"version": version, "kubernetes": KUBERNETES});
            if let Some(commit) = commit {
                value["commit"] = commit.into();
            }
            format!("{value:#}\n")
        }
        Some(Format::Yaml) => {
            let commit = commit.map(|commit| format!("commit: {commit}\n"));
            let commit = commit.unwrap_or_default();
            format!("version: {version}\nkubernetes: {KUBERNETES}\n{commit}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_program_names_its_commit() {
        let commit = Some("0123abcd");
        assert!(text(None, commit).contains(" (0123abcd), deciding as "));
        let json: serde_json::Value =
            serde_json::from_str(&text(Some(Format::Json), commit)).unwrap();
        assert_eq!(json["commit"], "0123abcd");
        assert!(text(Some(Format::Yaml), commit).ends_with("\ncommit: 0123abcd\n"));
        assert!(!text(Some(Format::Yaml), None).contains("commit"));
    }
}
