//! Colour, characters, help and completion.

use snapbox::file;

use crate::{stderr, stdout, strew};

const TIGHT: &str = "simulate examples/tight.yaml --until deploy";

#[test]
fn colour_is_for_those_who_want_it() {
    let is_colored = |text: String| text.contains('\u{1b}');
    let run = |command: snapbox::cmd::Command| is_colored(stdout(&command.assert().code(1)));
    assert!(!run(strew(TIGHT)), "no terminal");
    assert!(run(strew(TIGHT).env("CLICOLOR_FORCE", "1")));
    assert!(!run(strew(TIGHT)
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1")));
    assert!(run(strew(TIGHT).args(["--color", "always"])));
    assert!(!run(strew(TIGHT)
        .args(["--color", "never"])
        .env("CLICOLOR_FORCE", "1")));
    assert!(!is_colored(stdout(
        &strew(TIGHT)
            .args(["-o", "json", "--color", "always"])
            .assert()
    )));
}

/// No meaning is carried by colour alone.
#[test]
fn taking_the_colour_away_leaves_the_same_text() {
    let plain = stdout(&strew(TIGHT).assert());
    let colored = stdout(&strew(TIGHT).args(["--color", "always"]).assert());
    let mut stripped = String::new();
    let mut in_escape = false;
    for c in colored.chars() {
        match c {
            '\u{1b}' => in_escape = true,
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            c => stripped.push(c),
        }
    }
    assert_eq!(plain, stripped);
}

#[test]
fn ascii_where_nothing_else_can_be_drawn() {
    let is_ascii = |command: snapbox::cmd::Command| stdout(&command.assert()).is_ascii();
    assert!(is_ascii(strew(
        "simulate examples/tight.yaml --until deploy --ascii"
    )));
    assert!(is_ascii(strew(TIGHT).env("LC_ALL", "C")));
    assert!(!is_ascii(strew(TIGHT)));
}

#[test]
fn help_has_examples() {
    strew("--help")
        .assert()
        .code(0)
        .stdout_eq(file!["snapshots/help.txt"]);
    strew("simulate --help")
        .assert()
        .code(0)
        .stdout_eq(file!["snapshots/help-simulate.txt"]);
    strew("explain --help")
        .assert()
        .code(0)
        .stdout_eq(file!["snapshots/help-explain.txt"]);
    strew("lint --help")
        .assert()
        .code(0)
        .stdout_eq(file!["snapshots/help-lint.txt"]);
}

#[test]
fn every_shell_gets_a_completion() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = stdout(&strew(&format!("completion {shell}")).assert().code(0));
        assert!(
            script.contains("simulate") && script.contains("node-cpu"),
            "{shell}"
        );
    }
}

#[test]
fn version_names_the_kubernetes_that_is_matched() {
    let text = stdout(&strew("version").assert().code(0));
    assert!(text.contains("kube-scheduler v1.36.3"), "{text}");
    let run = strew("version -o json").assert().code(0);
    assert_eq!(crate::json(&run)["kubernetes"], "1.36.3");
}

/// kubectl finds a plugin by its file's name, and people type two words.
#[cfg(unix)]
#[test]
fn kubectl_may_call_it() {
    let folder = std::env::temp_dir().join(format!("strew-plugin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let plugin = folder.join("kubectl-strew");
    std::os::unix::fs::symlink(snapbox::cmd::cargo_bin!("strew"), &plugin).unwrap();
    let run = snapbox::cmd::Command::new(&plugin)
        .arg("simulate")
        .arg("--help")
        .assert();
    std::fs::remove_dir_all(&folder).unwrap();
    let text = stdout(&run.code(0));
    assert!(text.contains("Usage: kubectl strew simulate"), "{text}");
    assert!(
        text.contains("\n  kubectl strew simulate shop.yaml"),
        "{text}"
    );
}

/// Text of objects that would move a cursor, colour further text, change the direction of writing or begin a line.
const HOSTILE: &str = r#""\e]0;pwned\a\e[31m\u009b1m\u202eevil\nERROR fake""#;

#[test]
fn text_of_objects_is_text() {
    let files = format!(
        "apiVersion: v1
kind: Node
metadata: {{name: n1, labels: {{kubernetes.io/hostname: n1}}}}
status: {{allocatable: {{cpu: \"4\", memory: 8Gi, pods: \"110\"}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: one, uid: a}}
spec: {{schedulerName: {HOSTILE}, containers: [{{name: c, image: i}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: two, uid: b}}
spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: \"99\"}}}}}}]}}
status: {{conditions: [{{type: PodScheduled, status: \"False\", reason: Unschedulable, message: {HOSTILE}}}]}}
---
apiVersion: example.com/v1
kind: {HOSTILE}
metadata: {{name: three}}
"
    );
    for command in [
        "simulate -",
        "simulate - -o wide --color always",
        "explain pod/one -f -",
        "explain pod/two -f -",
        "lint -",
    ] {
        let run = strew(command).stdin(files.clone()).assert();
        assert_ne!(run.get_output().status.code(), Some(2), "{}", stderr(&run));
        let shown = format!("{}{}", stdout(&run), stderr(&run));
        for (what, text) in [
            ("a title", "\x1b]0;"),
            ("a colour of its own", "\x1b[31mevil"),
            ("C1", "\u{9b}"),
            ("a direction", "\u{202e}"),
            ("a line", "\nERROR fake"),
        ] {
            assert!(!shown.contains(text), "{command} writes {what}: {shown:?}");
        }
        if command == "simulate -" {
            assert!(shown.contains(r"\u{1b}]0;pwned\u{7}\u{1b}[31m"), "{shown}");
        }
    }
}

/// On a terminal, or with COLUMNS: lines of sentences and tables fit the width, commands stay whole.
#[test]
fn lines_fit_the_terminal() {
    let args = "simulate examples/tight.yaml --until deploy";
    let whole = stdout(&strew(args).assert().code(1));
    assert!(
        whole.lines().any(|line| line.chars().count() > 100),
        "{whole}"
    );
    let text = stdout(&strew(args).env("COLUMNS", "60").assert().code(1));
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with("why: "))
    {
        assert!(line.chars().count() <= 60, "{line}");
    }
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&text), words(&whole), "nothing is lost");
}
