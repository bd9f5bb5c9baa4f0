//! The recipes of docs/scenarios.md: each is played, and holds.

use crate::{root, strew};

/// The YAML code blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```yaml\n").skip(1);
    let texts = parts.map(|part| part.split("```").next().unwrap_or_default().to_owned());
    texts.collect()
}

#[test]
fn every_recipe_holds() {
    let page = std::fs::read_to_string(root().join("docs/scenarios.md")).unwrap();
    let blocks = blocks(&page);
    let (files, recipes) = blocks.split_first().unwrap();
    let head = files.strip_suffix("  timeline: []\n").unwrap();
    assert_eq!(recipes.len(), 12);
    for (number, recipe) in recipes.iter().enumerate() {
        let lines = recipe.lines().map(|line| format!("  {line}\n"));
        let scenario = format!("{head}{}", lines.collect::<String>());
        let run = strew("simulate -").stdin(scenario).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{}: {text}{said}", number + 1);
    }
}
