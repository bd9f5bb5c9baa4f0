//! The manual page.

use std::path::Path;

use super::{VERSION, said};

/// The commands that have a section.
const COMMANDS: &[&str] = &[
    "simulate",
    "merge",
    "sweep",
    "audit",
    "rebalance",
    "defaults",
    "explain",
    "lint",
    "mcp",
    "diff",
    "import",
    "place",
    "snapshot",
    "scheduler",
    "controller",
    "webhook",
    "install",
    "uninstall",
    "schema",
    "completion",
    "version",
];

/// A manual page from the help of each command, unchanged.
pub(super) fn manual(binary: &Path) -> anyhow::Result<String> {
    let mut page = format!(
        ".TH STREW 1 \"\" \"strew {VERSION}\"\n.SH NAME\nstrew \\- pods over failure domains\n.SH SYNOPSIS\n{}",
        preformatted(&said(binary, &["--help"])?)
    );
    for command in COMMANDS {
        let help = said(binary, &[command, "--help"])?;
        page += &format!(".SH {}\n{}", command.to_uppercase(), preformatted(&help));
    }
    Ok(page)
}

/// Text that roff shows unchanged.
fn preformatted(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}\n"),
            false => line + "\n",
        }
    });
    format!(".nf\n{}.fi\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::top;

    #[test]
    fn what_roff_would_take_for_a_request_is_shown() {
        assert_eq!(
            preformatted(".dot \\ a-b\n"),
            ".nf\n\\&.dot \\e a\\-b\n.fi\n"
        );
    }

    /// docs/commands.md is made from the program itself.
    #[test]
    fn every_command_has_a_section() {
        let page = std::fs::read_to_string(top().join("docs/commands.md")).unwrap();
        let headings = page
            .lines()
            .filter_map(|line| line.strip_prefix("## strew "));
        let commands: Vec<&str> = headings.filter(|name| !name.contains(' ')).collect();
        assert_eq!(commands, COMMANDS);
    }
}
