//! Files that are made from the code are those of the code.

use xtask_lab::generated;

#[test]
fn generated_files_are_fresh() {
    for (path, text) in generated::files().expect("every file is made") {
        let stored = std::fs::read_to_string(xtask::top().join(&path)).unwrap_or_default();
        assert!(
            stored == text,
            "{path} is not what the code makes: run `cargo xtask gen` and read the difference"
        );
    }
}
