//! Pages that are made from the code, and commands of the documents that need only this folder.

use crate::{root, stdout, strew};

/// `cargo xtask gen` writes them, and so does `SNAPSHOTS=overwrite`.
#[test]
fn pages_made_from_the_code_are_fresh() {
    for (page, words) in [
        ("commands.md", "__reference"),
        ("schemas.md", "__reference schemas"),
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

/// Commands on files of the project, in code blocks, end with an answer; whether the other ones are valid commands is a
/// test of the command line.
#[test]
fn commands_of_the_documents_answer() {
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let mut pages: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|e| e == "md"));
    pages.retain(|path| !path.ends_with("commands.md"));
    pages.sort();
    let mut n_run = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
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
            let Some(words) = line.strip_prefix("strew ") else {
                continue;
            };
            let mut all = words.split_whitespace();
            let reads = ["simulate", "explain", "lint", "place"];
            let is_meant = reads.iter().any(|command| words.starts_with(command))
                && all.clone().any(is_file)
                && !all.any(is_other_file)
                && !words.contains("--out");
            if is_meant {
                let run = strew(words).output().unwrap();
                let code = run.status.code();
                assert!(
                    matches!(code, Some(0 | 1)),
                    "{}: {line}: {run:?}",
                    page.display()
                );
                n_run += 1;
            }
        }
    }
    assert!(n_run > 4, "{n_run} commands were run");
}
