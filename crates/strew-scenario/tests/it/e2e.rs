//! The scenarios that `cargo xtask e2e` plays on a real control plane: `scenarios/e2e/`.

/// Not a test for each, so that a new case is a file and nothing else.
#[test]
fn what_is_expected_of_a_real_cluster_holds_in_the_simulation() {
    let entries = std::fs::read_dir(crate::library::folder().join("e2e")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".yaml")).collect();
    names.sort();
    assert!(!names.is_empty());
    for name in names {
        crate::library::check(&format!("e2e/{name}"));
    }
}
