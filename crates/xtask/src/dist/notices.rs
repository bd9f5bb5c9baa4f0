//! The notices that licences ask for beside a program: the texts that come with the packages inside of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::bill::{Bill, Id, Inside};
use super::files::run;
use xtask::top;

/// How names of files with such a text begin, in capital letters.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

const ABOUT: &str = "\
strew contains the work of others. Each text below stands under the names of the packages that it comes with.

The compilers link these into a static program; `cargo xtask dist` in the sources of strew links it anew, with another
version of them, too:

";

/// All texts, equal ones once, in the order of the packages.
///
/// # Errors
/// cargo fails, or a file cannot be read.
pub(super) fn notices(bill: &Bill) -> anyhow::Result<String> {
    let folders = folders(bill.target())?;
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut without = Vec::new();
    for package in bill.inside() {
        let Inside {
            id: (name, version),
            licence,
        } = package;
        let folder = folders.get(package.id);
        let found = folder.map_or(Ok(Vec::new()), |folder| read(folder))?;
        if found.is_empty() {
            without.push(format!("{name} {version}: {licence}\n"));
        }
        for text in found {
            let place = *places.entry(text.clone()).or_insert(texts.len());
            match texts.get_mut(place) {
                Some((_, names)) => names.push(format!("{name} {version}")),
                None => texts.push((text, vec![format!("{name} {version}")])),
            }
        }
    }
    let mut all = ABOUT.to_owned();
    all.extend(bill.linked().map(|line| line + "\n"));
    if !without.is_empty() {
        all += "\nThese come without a text:\n\n";
        all.extend(without);
    }
    for (text, names) in texts {
        let rule = "-".repeat(80);
        all += &format!(
            "\n{rule}\n{}\n{rule}\n\n{}\n",
            names.join("\n"),
            text.trim_end()
        );
    }
    Ok(all)
}

/// The folder of each package.
fn folders(target: &str) -> anyhow::Result<BTreeMap<Id, PathBuf>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["metadata", "--format-version=1", "--locked"])
        .args(["--filter-platform", target])
        .current_dir(top());
    let metadata: Value = serde_json::from_str(&run(&mut cargo)?)?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("cargo metadata lists packages")?;
    let folder = |package: &Value| {
        let text = |field: &str| package[field].as_str().map(str::to_owned);
        let folder = Path::new(&text("manifest_path")?).parent()?.to_owned();
        Some(((text("name")?, text("version")?), folder))
    };
    Ok(packages.iter().filter_map(folder).collect())
}

/// The texts of a package, in the order of their files' names.
fn read(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let files: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|e| e.path())).collect();
    let mut files = files?;
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_uppercase();
        file.is_file() && NAMES.iter().any(|begin| name.starts_with(begin))
    });
    files.sort();
    let text = |file: &PathBuf| {
        let bytes = fs::read(file).with_context(|| file.display().to_string())?;
        Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
    };
    files.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::build::TARGET;

    #[test]
    fn each_package_of_others_is_named_and_equal_texts_stand_once() {
        let bill = Bill::of(TARGET).unwrap();
        let notices = notices(&bill).unwrap();
        let mut n = 0;
        for Inside {
            id: (name, version),
            ..
        } in bill.inside()
        {
            assert!(notices.contains(&format!("{name} {version}")), "{name}");
            n += 1;
        }
        assert!(n > 100, "{n} packages");
        let apache = "Apache License\n                           Version 2.0, January 2004";
        assert!(notices.matches(apache).count() < n / 2);
        assert!(
            notices.contains("Copyright (c) 2016 Joseph Birr-Pixton"),
            "of rustls"
        );
        assert!(!notices.contains("strew-placement"));
    }
}
