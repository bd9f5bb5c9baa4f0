//! `kubectl strew <TAB>`: the protocol that kubectl reads, through the script that it runs.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::root;

/// The answer of the script for these words, with `kubectl-strew` on `PATH`.
fn completed(words: &[&str]) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!(
        "strew-complete-{}-{}",
        std::process::id(),
        words.join("_").len()
    ));
    std::fs::create_dir_all(&folder).unwrap();
    let plugin = folder.join("kubectl-strew");
    if !plugin.exists() {
        symlink(snapbox::cmd::cargo_bin!("strew"), &plugin).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let run = Command::new(root().join("deploy/recipes/kubectl_complete-strew"))
        .args(words)
        .env("PATH", format!("{}:{path}", folder.display()))
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let _ = std::fs::remove_dir_all(&folder);
    String::from_utf8(run.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn commands_flags_and_values_are_completed() {
    let commands = completed(&["s"]);
    let names: Vec<&str> = commands
        .iter()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(
        names,
        ["simulate", "sweep", "snapshot", "scheduler", "schema", ":4"]
    );
    assert!(
        commands[0].ends_with("show how they spread"),
        "{}",
        commands[0]
    );
    let below = completed(&["install", ""]);
    assert!(
        below
            .iter()
            .any(|line| line.starts_with("workloadspread\t")),
        "{below:?}"
    );
    let flags = completed(&["install", "scheduler", "--im"]);
    assert!(
        flags[0].starts_with("--image\tThe container image"),
        "{flags:?}"
    );
    assert!(flags[1].starts_with("--image-pull-secret\t"), "{flags:?}");
    assert_eq!(flags.len(), 3);
    // The value of a flag, and what comes after it.
    assert_eq!(completed(&["lint", "-o", "s"]), ["sarif", ":4"]);
    assert_eq!(
        completed(&["--color", "n"])[0].split('\t').next(),
        Some("never")
    );
    assert_eq!(
        completed(&["schema", "rep"]),
        [
            "report\tKind SimulationReport, which simulate -o json writes",
            ":4"
        ]
    );
    // The shell completes files.
    assert_eq!(completed(&["simulate", ""]), [":0"]);
    assert_eq!(completed(&["install", "scheduler", "--config", ""]), [":0"]);
}
