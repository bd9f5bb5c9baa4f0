//! How others are told of a release: recipes of package managers, from `deploy/recipes`, one template each.
//!
//! A template has names between `@`. The lines from `@for WORDS` to `@end` are repeated for each platform of the words
//! whose archive is there; `@,@` is a comma but for the last of them. Lines that begin with `#` before the first other
//! line are about the template, and left out, except of scripts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::files::{self, run};
use super::platform::{PLATFORMS, Platform};
use super::{VERSION, program};
use xtask::top;

/// Templates that are filled in and no more. The name of the result is that of the template.
const FILLED: [&str; 12] = [
    "PKGBUILD",
    "artifacthub-repo.yml",
    "flake.nix",
    "strew.rb",
    "install.sh",
    "krew.yaml",
    "strew.json",
    "server.json",
    "winget.installer.yaml",
    "winget.locale.en-US.yaml",
    "winget.yaml",
    // Of the package for `strew mcp`.
    "npm.json",
];

/// Where it is said before the first publication where things will be.
const UNPUBLISHED: &str = "https://example.com/OWNER/strew";

/// Where a release will be.
pub(super) struct Published<'a> {
    /// The folder of its archives.
    pub(super) url: &'a str,
    /// The project's page: its last two parts are the owner and the name.
    pub(super) homepage: &'a str,
}

/// An archive that is there.
struct Built {
    platform: &'static Platform,
    digest: String,
}

/// Writes all recipes of the archives in `out` into its folder `recipes`, the chart into `chart`, and the notes.
///
/// # Errors
/// There is no archive, or a tool fails.
pub(super) fn write(out: &Path, published: &Published<'_>) -> anyhow::Result<()> {
    let mut built = Vec::new();
    for platform in PLATFORMS {
        let archive = out.join(platform.archive());
        if archive.is_file() {
            let digest = files::digest(&archive)?;
            built.push(Built { platform, digest });
        }
    }
    ensure!(!built.is_empty(), "{} has no archive", out.display());
    let folder = out.join("recipes");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for name in FILLED {
        fs::write(folder.join(name), recipe(name, published, &built)?)?;
    }
    for built in &built {
        packages(out, &folder, published, built)?;
    }
    main_package(&folder)?;
    rules(&folder, published)?;
    chart(&out.join("chart"), published)?;
    fs::write(out.join("notes.md"), notes(&read("CHANGELOG.md")?)?)?;
    Ok(())
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(top().join(path)).with_context(|| path.to_owned())
}

fn recipe(name: &str, published: &Published<'_>, built: &[Built]) -> anyhow::Result<String> {
    let template = read(&format!("deploy/recipes/{name}"))?;
    let about = match template.starts_with("#!") {
        true => 0,
        false => template.lines().take_while(|l| l.starts_with('#')).count(),
    };
    let lines: Vec<&str> = template.lines().skip(about).collect();
    filled(&lines, published, built).with_context(|| format!("deploy/recipes/{name}"))
}

/// The text of a template.
fn filled(template: &[&str], published: &Published<'_>, built: &[Built]) -> anyhow::Result<String> {
    let common = common(published, built);
    let mut text = String::new();
    let mut lines = template.iter();
    while let Some(line) = lines.next() {
        let Some(words) = line.strip_prefix("@for ") else {
            text += &(replaced(line, &common)? + "\n");
            continue;
        };
        let block: Vec<&str> = lines
            .by_ref()
            .take_while(|l| **l != "@end")
            .copied()
            .collect();
        let is_meant = |b: &&Built| words.split(' ').any(|word| b.platform.is_meant(word));
        let meant: Vec<&Built> = built.iter().filter(is_meant).collect();
        for (pos, built) in meant.iter().enumerate() {
            let mut values = common.clone();
            values.extend(of_platform(built, published));
            let comma = if pos + 1 < meant.len() { "," } else { "" };
            values.insert(",", comma.to_owned());
            for line in &block {
                text += &(replaced(line, &values)? + "\n");
            }
        }
    }
    Ok(text)
}

type Values = BTreeMap<&'static str, String>;

fn common(published: &Published<'_>, built: &[Built]) -> Values {
    let owner = published.homepage.trim_end_matches('/').rsplit('/').nth(1);
    let digest = |b: &Built| format!("{}-{} {}\n", b.platform.os, b.platform.arch, b.digest);
    let digests: String = built.iter().map(digest).collect();
    BTreeMap::from([
        ("VERSION", VERSION.to_owned()),
        ("URL", published.url.trim_end_matches('/').to_owned()),
        ("HOMEPAGE", published.homepage.to_owned()),
        ("OWNER", owner.unwrap_or_default().to_owned()),
        ("DIGESTS", digests.trim_end().to_owned()),
    ])
}

fn of_platform(built: &Built, published: &Published<'_>) -> Values {
    let platform = built.platform;
    let url = published.url.trim_end_matches('/');
    let mut values = BTreeMap::from([
        ("OS", platform.os.to_owned()),
        ("ARCH", platform.arch.to_owned()),
        ("EXE", platform.exe().to_owned()),
        ("URI", format!("{url}/{}", platform.archive())),
        ("SHA256", built.digest.clone()),
    ]);
    let names = platform.names.iter();
    values.extend(names.map(|&(name, value)| (name, value.to_owned())));
    values
}

/// The line with values in the place of names between `@`; other `@` stay.
fn replaced(line: &str, values: &Values) -> anyhow::Result<String> {
    let is_name = |part: &str| {
        part == ","
            || (!part.is_empty()
                && part
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || "_256".contains(c)))
    };
    let mut parts = line.split('@').peekable();
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        // A name stands between two `@`.
        if is_name(part) && parts.peek().is_some() {
            text += values
                .get(part)
                .with_context(|| format!("no value for @{part}@"))?;
            text += parts.next().unwrap_or_default();
        } else {
            text += &format!("@{part}");
        }
    }
    Ok(text)
}

/// The wheel and the npm package with the program of a platform inside.
fn packages(
    out: &Path,
    folder: &Path,
    published: &Published<'_>,
    built: &Built,
) -> anyhow::Result<()> {
    let staged = out.join("staged");
    let unpacked = staged.join(format!("strew-{VERSION}"));
    let package = staged.join("package");
    fs::create_dir_all(&package)?;
    files::unpack(&out.join(built.platform.archive()), &staged)?;
    run(Command::new("python3")
        .arg(top().join("deploy/recipes/wheel.py"))
        .arg(&unpacked)
        .args([VERSION, built.platform.wheel, published.homepage])
        .arg(folder))?;

    let mut values = common(published, &[]);
    values.extend(of_platform(built, published));
    let about = read("deploy/recipes/npm.platform.json")?;
    let about: anyhow::Result<Vec<String>> = about.lines().map(|l| replaced(l, &values)).collect();
    fs::write(package.join("package.json"), about?.join("\n") + "\n")?;
    let name = format!("strew{}", built.platform.exe());
    program(&unpacked.join(&name), &package.join(&name))?;
    for text in ["LICENSE", super::NOTICES] {
        fs::copy(unpacked.join(text), package.join(text))?;
    }
    let of = |name| values.get(name).map_or("", String::as_str);
    let file = format!(
        "strew-mcp-{}-{}-{VERSION}.tgz",
        of("NODE_OS"),
        of("NODE_CPU")
    );
    npm(&staged, &folder.join(file))?;
    fs::remove_dir_all(&staged)?;
    Ok(())
}

/// The npm package that runs the one of the platform; its description was filled in before.
fn main_package(folder: &Path) -> anyhow::Result<()> {
    let staged = folder.join("staged");
    let package = staged.join("package");
    fs::create_dir_all(&package)?;
    fs::rename(folder.join("npm.json"), package.join("package.json"))?;
    program(
        &top().join("deploy/recipes/npm.main.js"),
        &package.join("main.js"),
    )?;
    npm(&staged, &folder.join(format!("strew-mcp-{VERSION}.tgz")))?;
    fs::remove_dir_all(&staged)?;
    Ok(())
}

/// A package of npm: a folder of this name.
fn npm(staged: &Path, out: &Path) -> anyhow::Result<()> {
    let tar = staged.join("package.tar");
    files::tar(staged, &["package"], &tar)?;
    files::gzip(&tar, out)
}

/// Prometheus' rules.
fn rules(folder: &Path, published: &Published<'_>) -> anyhow::Result<()> {
    fs::write(folder.join("rules.yaml"), read("deploy/mixin/rules.yaml")?)?;
    let alerts = alerts(&read("deploy/mixin/alerts.yaml")?, published.homepage);
    fs::write(folder.join("alerts.yaml"), alerts)?;
    Ok(())
}

/// The alerts, each with the address of its section in the documents of this version.
fn alerts(text: &str, homepage: &str) -> String {
    let homepage = homepage.trim_end_matches('/');
    let mut out = String::new();
    let mut name = String::new();
    for line in text.lines() {
        out += &format!("{line}\n");
        let words = line.trim_start();
        if let Some(alert) = words.strip_prefix("- alert: ") {
            name = alert.to_lowercase();
        }
        if words == "annotations:" {
            let indent = &line[..line.len() - words.len()];
            out += &format!(
                "{indent}  runbook_url: {homepage}/blob/v{VERSION}/docs/alerts.md#{name}\n"
            );
        }
    }
    out
}

/// A copy of the chart that names the project's page.
fn chart(out: &Path, published: &Published<'_>) -> anyhow::Result<()> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    fs::create_dir_all(out)?;
    let source = top().join("deploy/charts/strew");
    run(Command::new("cp").arg("-R").arg(source).arg(out))?;
    let file = out.join("strew/Chart.yaml");
    let text = fs::read_to_string(&file)?;
    fs::write(file, text.replace(UNPUBLISHED, published.homepage))?;
    Ok(())
}

/// The section of this version.
fn notes(changelog: &str) -> anyhow::Result<String> {
    let begin = format!("\n## {VERSION} - ");
    let (_, section) = changelog
        .split_once(&begin)
        .with_context(|| format!("CHANGELOG.md has no section of {VERSION}"))?;
    let (_, section) = section.split_once('\n').unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    Ok(format!("{}\n", section.trim()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::dist::platform::HERE;
    use crate::dist::tests::Scratch;

    const PUBLISHED: Published<'_> = Published {
        url: "https://example.com/v/",
        homepage: "https://example.com/someone/strew",
    };

    fn all() -> Vec<Built> {
        let digest = |n: usize| format!("{n:064x}");
        let built = PLATFORMS.iter().enumerate();
        let built = built.map(|(n, platform)| Built {
            platform,
            digest: digest(n),
        });
        built.collect()
    }

    fn text(name: &str, built: &[Built]) -> String {
        let text = recipe(name, &PUBLISHED, built).unwrap();
        assert!(
            !text.contains("@VERSION") && !text.contains("@for"),
            "{text}"
        );
        text
    }

    fn yaml(name: &str) -> Value {
        serde_saphyr::from_str(&text(name, &all())).unwrap()
    }

    fn json(name: &str, built: &[Built]) -> Value {
        serde_json::from_str(&text(name, built)).unwrap()
    }

    /// krew's own rules: its index refuses a manifest that breaks them.
    #[test]
    fn the_manifest_keeps_the_rules_of_krew() {
        let manifest = yaml("krew.yaml");
        assert_eq!(
            manifest["apiVersion"],
            "krew.googlecontainertools.github.com/v1alpha2"
        );
        assert_eq!(manifest["metadata"]["name"], "strew");
        let spec = &manifest["spec"];
        assert_eq!(spec["version"], format!("v{VERSION}"));
        assert!(spec["shortDescription"].as_str().unwrap().len() <= 50);
        let lines = spec["description"].as_str().unwrap().lines();
        assert!(lines.clone().count() > 1 && lines.clone().all(|line| line.len() <= 80));
        let platforms = spec["platforms"].as_array().unwrap();
        assert_eq!(platforms.len(), PLATFORMS.len());
        for (platform, built) in platforms.iter().zip(all()) {
            // Of digits alone: a text all the same.
            assert_eq!(platform["sha256"], built.digest.as_str());
            assert_eq!(
                platform["selector"]["matchLabels"]["arch"],
                built.platform.arch
            );
            let exe = built.platform.exe();
            assert_eq!(platform["bin"], format!("kubectl-strew{exe}"));
            let files = platform["files"].as_array().unwrap();
            let from = format!("strew-{VERSION}/strew{exe}");
            assert!(
                files.iter().any(|f| f["from"] == from.as_str()),
                "{files:?}"
            );
            let uri = format!("https://example.com/v/{}", built.platform.archive());
            assert_eq!(platform["uri"], uri);
        }
    }

    #[test]
    fn recipes_of_windows_name_its_archives() {
        let scoop = json("strew.json", &all());
        let winget = yaml("winget.installer.yaml");
        let installers = winget["Installers"].as_array().unwrap();
        let of_windows = all().into_iter().filter(|b| b.platform.os == "windows");
        for (built, installer) in of_windows.zip(installers) {
            let values = of_platform(&built, &PUBLISHED);
            let of_scoop = &scoop["architecture"][values["CPU_SCOOP"].as_str()];
            assert_eq!(of_scoop["hash"], built.digest.as_str());
            assert!(of_scoop["url"].as_str().unwrap().ends_with(".zip"));
            assert_eq!(installer["InstallerSha256"], built.digest.as_str());
            assert_eq!(installer["Architecture"], values["CPU_WINGET"].as_str());
        }
        for name in ["winget.yaml", "winget.locale.en-US.yaml"] {
            let manifest = yaml(name);
            assert_eq!(manifest["PackageIdentifier"], "someone.strew", "{name}");
            assert_eq!(manifest["PackageVersion"], VERSION, "{name}");
        }
    }

    #[test]
    fn only_archives_that_are_there_are_named() {
        let one: Vec<Built> = all().into_iter().take(1).collect();
        for name in FILLED {
            let text = text(name, &one);
            let others = PLATFORMS.iter().skip(1);
            for other in others.map(Platform::archive) {
                assert!(!text.contains(&other), "{name}: {other}");
            }
        }
        let npm = json("npm.json", &one);
        assert_eq!(npm["optionalDependencies"].as_object().unwrap().len(), 1);
        assert_eq!(json("server.json", &one)["name"], npm["mcpName"]);
    }

    /// The shells' own readers: makepkg sources PKGBUILD.
    #[test]
    fn scripts_are_read_by_their_shell() {
        let folder = Scratch::new("shell");
        let (pkgbuild, install) = (
            folder.path().join("PKGBUILD"),
            folder.path().join("install.sh"),
        );
        fs::write(&pkgbuild, text("PKGBUILD", &all())).unwrap();
        fs::write(&install, text("install.sh", &all())).unwrap();
        run(Command::new("sh").arg("-n").arg(&install)).unwrap();
        let source = ". \"$0\" && echo \"$pkgver ${source_x86_64[0]} ${sha256sums_aarch64[0]}\"";
        let said = run(Command::new("bash").arg("-c").arg(source).arg(&pkgbuild)).unwrap();
        let amd64 = all()[0].platform.archive();
        assert!(
            said.starts_with(&format!("{VERSION} https://example.com/v/{amd64} ")),
            "{said}"
        );
        assert!(said.trim_end().ends_with(&all()[1].digest), "{said}");
    }

    #[test]
    fn quotation_marks_and_braces_are_in_pairs() {
        for name in ["strew.rb", "flake.nix"] {
            let text = text(name, &all());
            for (open, close) in ['{', '['].into_iter().zip(['}', ']']) {
                let count = |c| text.matches(c).count();
                assert_eq!(count(open), count(close), "{name}: {text}");
            }
            assert_eq!(text.matches('"').count() % 2, 0, "{name}");
            let n_systems = text.matches("example.com/v/").count();
            assert_eq!(n_systems, 4, "{name}: Linux and macOS");
        }
    }

    #[test]
    fn each_alert_leads_to_its_section() {
        let text = alerts(
            &read("deploy/mixin/alerts.yaml").unwrap(),
            PUBLISHED.homepage,
        );
        let rules: Value = serde_saphyr::from_str(&text).unwrap();
        let rules = rules["groups"][0]["rules"].as_array().unwrap();
        assert!(rules.len() > 10, "{text}");
        for rule in rules {
            let name = rule["alert"].as_str().unwrap().to_lowercase();
            let url = format!(
                "{}/blob/v{VERSION}/docs/alerts.md#{name}",
                PUBLISHED.homepage
            );
            assert_eq!(rule["annotations"]["runbook_url"], url);
        }
    }

    #[test]
    fn notes_are_the_section_of_this_version() {
        let changelog = format!(
            "# C\n\n## Unreleased\n\na\n\n## {VERSION} - 2026-01-01\n\nb\n\n### c\n\n## 0.0.1 - x\n\nd\n"
        );
        assert_eq!(notes(&changelog).unwrap(), "b\n\n### c\n");
        assert!(notes("# C\n\n## Unreleased\n").is_err());
    }

    /// A release in a folder: the archive of this platform, whose program prints its arguments.
    fn released(folder: &Path) -> std::path::PathBuf {
        let unpacked = folder.join(format!("strew-{VERSION}"));
        let script = folder.join("script");
        fs::write(&script, "#!/bin/sh\necho \"of $*\"\n").unwrap();
        program(&script, &unpacked.join("strew")).unwrap();
        for text in ["LICENSE", super::super::NOTICES] {
            fs::write(unpacked.join(text), "text").unwrap();
        }
        let tar = folder.join("a.tar");
        files::tar(folder, &[&format!("strew-{VERSION}")], &tar).unwrap();
        let out = folder.join("out");
        fs::create_dir(&out).unwrap();
        files::gzip(&tar, &out.join(HERE.archive())).unwrap();
        let url = format!("file://{}", out.display());
        let published = Published {
            url: &url,
            ..PUBLISHED
        };
        write(&out, &published).unwrap();
        out
    }

    /// `cargo xtask ci` runs it where Python is installed.
    #[test]
    #[ignore = "needs Python"]
    fn python_installs_the_wheel() {
        let folder = Scratch::new("wheel");
        let out = released(folder.path());
        let recipes = out.join("recipes");
        let first = files::digest_of_folder(&recipes).unwrap();
        let url = format!("file://{}", out.display());
        let again = Published {
            url: &url,
            ..PUBLISHED
        };
        write(&out, &again).unwrap();
        assert_eq!(first, files::digest_of_folder(&recipes).unwrap());

        let wheel = recipes.join(format!("strew-{VERSION}-py3-none-{}.whl", HERE.wheel));
        let venv = folder.path().join("venv");
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv)).unwrap();
        let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"];
        run(Command::new(venv.join("bin/python3")).args(pip).arg(&wheel)).unwrap();
        let said = run(Command::new(venv.join("bin/strew")).arg("version")).unwrap();
        assert_eq!(said, "of version\n");

        let to = folder.path().join("bin");
        run(Command::new("sh").arg(recipes.join("install.sh")).arg(&to)).unwrap();
        assert_eq!(run(&mut Command::new(to.join("strew"))).unwrap(), "of \n");

        let chart = fs::read_to_string(out.join("chart/strew/Chart.yaml")).unwrap();
        let is_named = !chart.contains("OWNER") && chart.contains(PUBLISHED.homepage);
        assert!(is_named, "{chart}");
    }

    /// `cargo xtask ci` runs it where npm is installed.
    #[test]
    #[ignore = "needs npm and Python"]
    fn npm_installs_the_package() {
        let folder = Scratch::new("npm");
        let recipes = released(folder.path()).join("recipes");
        let of = |name: &str| HERE.names.iter().find(|(n, _)| *n == name).unwrap().1;
        let part = format!(
            "strew-mcp-{}-{}-{VERSION}.tgz",
            of("NODE_OS"),
            of("NODE_CPU")
        );
        let project = folder.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("package.json"), "{\"private\": true}").unwrap();
        let words = [
            "install",
            "--offline",
            "--silent",
            "--no-audit",
            "--omit=optional",
        ];
        run(Command::new("npm")
            .args(words)
            .arg(recipes.join(format!("strew-mcp-{VERSION}.tgz")))
            .arg(recipes.join(part))
            .current_dir(&project))
        .unwrap();
        let program = project.join("node_modules/.bin/strew-mcp");
        let said = run(Command::new(program).args(["--root", "a b"])).unwrap();
        assert_eq!(said, "of mcp --root a b\n");
    }
}
