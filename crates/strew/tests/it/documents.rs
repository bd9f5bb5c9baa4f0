//! Pages that are made from the code, and commands of the documents that need only this folder.

use crate::{root, stdout, strew};

/// `cargo xtask gen` writes them, and so does `SNAPSHOTS=overwrite`.
#[test]
fn pages_made_from_the_code_are_fresh() {
    for (page, words) in [
        ("commands.md", "__reference"),
        ("schemas.md", "__reference schemas"),
        ("rules.md", "__reference rules"),
    ] {
        let made = stdout(&strew(words).assert().code(0));
        let path = root().join("docs").join(page);
        if std::env::var_os("SNAPSHOTS").is_some_and(|how| how == "overwrite") {
            std::fs::write(&path, &made).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            made == stored,
            "docs/{page} is not what the code makes: run `cargo xtask gen` and read the difference"
        );
    }
}

#[test]
fn every_command_has_a_manual_page_with_its_examples() {
    let folder = std::env::temp_dir().join(format!("strew-manual-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    strew("__reference manual")
        .arg(&folder)
        .assert()
        .code(0)
        .stdout_eq("");
    let help = stdout(&strew("--help").assert().code(0));
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    for command in ["simulate", "audit", "place", "install", "version"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let text = page(&format!("strew-{command}.1"));
        assert!(
            text.contains(&format!("strew\\-{command}")),
            "{command}: {text}"
        );
    }
    assert!(page("strew.1").contains("strew\\-simulate(1)"));
    assert!(page("strew-simulate.1").contains("strew simulate "));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Words of a command that are files of the project.
fn is_file(word: &str) -> bool {
    word.contains(['/', '.']) && !word.starts_with('-') && root().join(word).exists()
}

/// Words of a command that are files of the user.
fn is_other_file(word: &str) -> bool {
    let is_named = [".yaml", ".json", "/"]
        .iter()
        .any(|end| word.ends_with(end));
    is_named && !word.starts_with('-') && !is_file(word)
}

/// README and the pages of the book that are written by hand.
pub(crate) fn pages() -> Vec<String> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = names.map(|name| format!("docs/{name}")).collect();
    pages.retain(|page| page.ends_with(".md") && page != "docs/commands.md");
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

/// The commands in blocks of code of README and the book, each with the page on which it stands.
fn commands() -> Vec<(String, String)> {
    let mut commands = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let parts = text.split("```").skip(1).step_by(2);
        let blocks = parts.filter_map(|block| {
            let (language, lines) = block.split_once('\n')?;
            ["sh", "console", "text"]
                .contains(&language)
                .then_some(lines)
        });
        for line in blocks.flat_map(str::lines) {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.split([';', '|', '>', '#']).next().unwrap().trim();
            if line.starts_with("strew ") {
                commands.push((page.clone(), line.to_owned()));
            }
        }
    }
    commands
}

/// Also those that need a cluster, or a user's files.
#[test]
fn commands_of_the_documents_have_the_flags_that_they_use() {
    let reference = std::fs::read_to_string(root().join("docs/commands.md")).unwrap();
    let sections: Vec<(&str, &str)> = reference
        .split("\n## ")
        .filter_map(|section| section.split_once('\n'))
        .collect();
    let section = |title: &str| {
        let found = sections.iter().find(|(heading, _)| *heading == title);
        found.map(|(_, text)| *text)
    };
    let global = section("Global options").unwrap();
    let commands = commands();
    for (page, line) in &commands {
        let words: Vec<&str> = line.split_whitespace().collect();
        let one = section(&words[..2].join(" "));
        let two = words.get(..3).and_then(|words| section(&words.join(" ")));
        assert!(one.is_some(), "{page}: {line}: docs/commands.md lacks it");
        let flags = words.iter().filter(|word| word.starts_with("--"));
        for flag in flags.map(|word| word.split('=').next().unwrap()) {
            let is_told = |text: &str| {
                text.contains(&format!("`{flag}`")) || text.contains(&format!("`{flag} "))
            };
            assert!(
                [one, two, Some(global)].into_iter().flatten().any(is_told),
                "{page}: {line}: docs/commands.md has no {flag} there"
            );
        }
    }
    assert!(
        commands.len() > 40,
        "{} commands were found",
        commands.len()
    );
}

/// Commands on files of the project, in code blocks, end with an answer.
#[test]
fn commands_of_the_documents_answer() {
    let mut n_run = 0;
    for (page, line) in commands() {
        let words = line.strip_prefix("strew ").unwrap();
        let mut all = words.split_whitespace();
        let reads = ["simulate", "explain", "lint", "audit", "place"];
        let is_meant = reads.iter().any(|command| words.starts_with(command))
            && all.clone().any(is_file)
            && !all.any(is_other_file)
            && !words.contains("--out");
        if is_meant {
            let run = strew(words).output().unwrap();
            let code = run.status.code();
            assert!(matches!(code, Some(0 | 1)), "{page}: {line}: {run:?}");
            n_run += 1;
        }
    }
    assert!(n_run > 4, "{n_run} commands were run");
}
