//! What the program is made of: each package with its version, licence and digest, as cargo resolves the features of
//! package strew alone.
//!
//! Two forms: CycloneDX 1.6, a file beside the program, and the list of cargo-auditable, a section of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::Command;

use anyhow::{Context, ensure};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use super::files::run;
use xtask::top;

/// The package that is published.
const ROOT: &str = "strew";

/// The fields of a line of `cargo tree`; its mark of a repeated package stands after the last `|`.
const FORMAT: &str = "{p}|{l}|{r}|";

/// A bill of materials.
pub(super) struct Bill {
    target: String,
    packages: Vec<Package>,
    /// What the compiler links into every static program.
    linked: Vec<Linked>,
}

/// A package of cargo.
struct Package {
    id: Id,
    /// An SPDX expression; empty if the package names none.
    licence: String,
    /// A URL; empty if the package names none.
    repository: String,
    /// The SHA-256 of its archive in the registry; `None`: a package of this workspace.
    digest: Option<String>,
    /// Whether its code is in the program; other packages only build it.
    is_inside: bool,
    /// Positions in the bill, in order.
    dependencies: Vec<usize>,
}

/// Name and version.
pub(super) type Id = (String, String);

/// A package of others whose code is in the program.
pub(super) struct Inside<'a> {
    pub(super) id: &'a Id,
    /// An SPDX expression; empty if the package names none.
    pub(super) licence: &'a str,
}

/// A library that no package brings.
struct Linked {
    name: &'static str,
    version: String,
    licence: &'static str,
}

impl Bill {
    /// The bill of the program as it is built for this target.
    ///
    /// # Errors
    /// cargo, rustc or getconf is missing, or its output cannot be read.
    pub(super) fn of(target: &str) -> anyhow::Result<Self> {
        Self::with(target, &[], vec![glibc()?, rust_std()?])
    }

    /// The bill of the program that reads files only, as it is built for WebAssembly.
    ///
    /// # Errors
    /// cargo or rustc is missing, or its output cannot be read.
    pub(super) fn of_browser(target: &str) -> anyhow::Result<Self> {
        let wasi = Linked {
            name: "wasi-libc",
            // Each toolchain brings its own, and does not say which.
            version: "unknown".to_owned(),
            licence: "MIT OR Apache-2.0 WITH LLVM-exception",
        };
        Self::with(target, &["--no-default-features"], vec![wasi, rust_std()?])
    }

    fn with(target: &str, features: &[&str], linked: Vec<Linked>) -> anyhow::Result<Self> {
        let all = Tree::read(&tree(target, features, "normal,build")?)?;
        let inside = Tree::read(&tree(target, features, "normal,no-proc-macro")?)?;
        let lock = fs::read_to_string(top().join("Cargo.lock"))?;
        Ok(Self {
            target: target.to_owned(),
            packages: packages(all, &inside, &digests(&lock)),
            linked,
        })
    }

    /// What the program is built for.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The packages from the registry whose code is in the program, by name and version.
    pub(super) fn inside(&self) -> impl Iterator<Item = Inside<'_>> {
        let of_others = |package: &&Package| package.is_inside && package.digest.is_some();
        self.packages
            .iter()
            .filter(of_others)
            .map(|package| Inside {
                id: &package.id,
                licence: &package.licence,
            })
    }

    /// What the compilers link into the program: name, version and licence of each.
    pub(super) fn linked(&self) -> impl Iterator<Item = String> {
        let linked = self.linked.iter();
        linked.map(|part| format!("{} {}: {}", part.name, part.version, part.licence))
    }

    /// CycloneDX 1.6, without serial number and time: equal packages give equal bytes.
    pub(super) fn cyclonedx(&self) -> String {
        let (roots, others): (Vec<&Package>, Vec<&Package>) =
            self.packages.iter().partition(|p| p.id.0 == ROOT);
        let mut root: Vec<Value> = roots.into_iter().map(Package::component).collect();
        let mut components: Vec<Value> = others.into_iter().map(Package::component).collect();
        components.extend(self.linked.iter().map(Linked::component));
        let dependencies: Vec<Value> = self.packages.iter().map(|p| self.edges(p)).collect();
        let bom = json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "component": root.pop(),
                "properties": [{"name": "cdx:rustc:sbom:target:triple", "value": self.target}],
            },
            "components": components,
            "dependencies": dependencies,
        });
        format!("{bom:#}\n")
    }

    fn edges(&self, package: &Package) -> Value {
        let on = package.dependencies.iter();
        let mut on: Vec<String> = on
            .filter_map(|pos| self.packages.get(*pos))
            .map(Package::url)
            .collect();
        if package.id.0 == ROOT {
            on.extend(self.linked.iter().map(Linked::url));
        }
        json!({"ref": package.url(), "dependsOn": on})
    }

    /// The list of cargo-auditable: JSON, compressed by zlib.
    ///
    /// # Errors
    /// None, since it is written to memory.
    pub(super) fn auditable(&self) -> anyhow::Result<Vec<u8>> {
        let packages: Vec<Value> = self.packages.iter().map(Package::listed).collect();
        let text = json!({"packages": packages}).to_string();
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes())?;
        Ok(packed.finish()?)
    }
}

impl Package {
    fn url(&self) -> String {
        let (name, version) = &self.id;
        // In a package URL, a plus sign is a space.
        format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
    }

    fn component(&self) -> Value {
        let (name, version) = &self.id;
        let kind = if name == ROOT {
            "application"
        } else {
            "library"
        };
        let mut component = json!({
            "type": kind,
            "bom-ref": self.url(),
            "name": name,
            "version": version,
            "scope": if self.is_inside { "required" } else { "excluded" },
            "purl": self.url(),
        });
        if !self.licence.is_empty() {
            component["licenses"] = json!([{"expression": self.licence}]);
        }
        if let Some(digest) = &self.digest {
            component["hashes"] = json!([{"alg": "SHA-256", "content": digest}]);
        }
        if !self.repository.is_empty() {
            let reference = json!({"type": "vcs", "url": self.repository});
            component["externalReferences"] = json!([reference]);
        }
        component
    }

    fn listed(&self) -> Value {
        let (name, version) = &self.id;
        let source = match self.digest {
            Some(_) => "registry",
            None => "local",
        };
        let mut listed = json!({
            "name": name,
            "version": version,
            "source": source,
            "dependencies": self.dependencies,
        });
        if !self.is_inside {
            listed["kind"] = "build".into();
        }
        if name == ROOT {
            listed["root"] = true.into();
        }
        listed
    }
}

impl Linked {
    fn url(&self) -> String {
        format!("pkg:generic/{}@{}", self.name, self.version)
    }

    fn component(&self) -> Value {
        json!({
            "type": "library",
            "bom-ref": self.url(),
            "name": self.name,
            "version": self.version,
            "scope": "required",
            "purl": self.url(),
            "licenses": [{"expression": self.licence}],
        })
    }
}

/// What `cargo tree` says of the package, without its tests.
fn tree(target: &str, features: &[&str], edges: &str) -> anyhow::Result<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["tree", "--locked", "--prefix=depth", "--package", ROOT])
        .args(["--target", target, "--edges", edges, "--format", FORMAT])
        .args(features)
        .current_dir(top());
    run(&mut cargo)
}

/// Packages and their dependencies, as `cargo tree` prints them.
struct Tree(BTreeMap<Id, Node>);

#[derive(Default)]
struct Node {
    licence: String,
    repository: String,
    dependencies: BTreeSet<Id>,
}

impl Tree {
    /// Each line begins with the depth of its package; the package that depends on it is the last one above with a
    /// smaller depth. The dependencies of a package are listed once.
    fn read(text: &str) -> anyhow::Result<Self> {
        let mut nodes: BTreeMap<Id, Node> = BTreeMap::new();
        let mut above: Vec<Id> = Vec::new();
        for line in text.lines() {
            let what = || format!("cargo tree printed {line:?}");
            let digits = line
                .find(|c: char| !c.is_ascii_digit())
                .with_context(what)?;
            let (depth, rest) = line.split_at(digits);
            let depth: usize = depth.parse().with_context(what)?;
            let mut fields = rest.split('|');
            let mut field = || fields.next().with_context(what);
            let (package, licence, repository) = (field()?, field()?, field()?);
            let mut words = package.split(' ');
            let name = words.next().with_context(what)?;
            let version = words.next().and_then(|word| word.strip_prefix('v'));
            let id: Id = (name.to_owned(), version.with_context(what)?.to_owned());
            let node = nodes.entry(id.clone()).or_default();
            node.licence = expression(licence);
            repository.clone_into(&mut node.repository);
            above.truncate(depth);
            if let Some(user) = above.last().and_then(|user| nodes.get_mut(user)) {
                user.dependencies.insert(id.clone());
            }
            above.push(id);
        }
        let is_root = |id: &Id| id.0 == ROOT;
        ensure!(nodes.keys().any(is_root), "cargo tree does not name {ROOT}");
        Ok(Self(nodes))
    }
}

/// An SPDX expression; `/` is an old way of writing OR.
fn expression(licence: &str) -> String {
    let parts: Vec<&str> = licence.split('/').map(str::trim).collect();
    parts.join(" OR ")
}

/// The digests of all packages of a lock file that come from the registry.
fn digests(lock: &str) -> BTreeMap<Id, String> {
    let package = |text: &str| {
        let field = |name: &str| {
            let begin = format!("{name} = \"");
            let line = text.lines().find_map(|line| line.strip_prefix(&begin))?;
            line.strip_suffix('"').map(str::to_owned)
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    lock.split("[[package]]\n").filter_map(package).collect()
}

fn packages(all: Tree, inside: &Tree, digests: &BTreeMap<Id, String>) -> Vec<Package> {
    let ids: Vec<Id> = all.0.keys().cloned().collect();
    let pos = |id: &Id| ids.binary_search(id).ok();
    let package = |(id, node): (Id, Node)| Package {
        licence: node.licence,
        repository: node.repository,
        digest: digests.get(&id).cloned(),
        is_inside: inside.0.contains_key(&id),
        dependencies: node.dependencies.iter().filter_map(pos).collect(),
        id,
    };
    all.0.into_iter().map(package).collect()
}

/// The library of C.
fn glibc() -> anyhow::Result<Linked> {
    let glibc = run(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let glibc = glibc.trim().strip_prefix("glibc ");
    Ok(Linked {
        name: "glibc",
        version: glibc
            .context("getconf names no version of glibc")?
            .to_owned(),
        licence: "LGPL-2.1-or-later",
    })
}

/// Rust's standard library.
fn rust_std() -> anyhow::Result<Linked> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let rust = run(Command::new(rustc).arg("-vV"))?;
    let rust = rust.lines().find_map(|line| line.strip_prefix("release: "));
    Ok(Linked {
        name: "rust-std",
        version: rust.context("rustc names no release")?.to_owned(),
        licence: "MIT OR Apache-2.0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::build::TARGET;

    fn bom() -> Value {
        let bill = Bill::of(TARGET).unwrap();
        serde_json::from_str(&bill.cyclonedx()).unwrap()
    }

    fn component<'a>(bom: &'a Value, name: &str) -> Option<&'a Value> {
        let components = bom["components"].as_array().unwrap();
        components
            .iter()
            .find(|component| component["name"] == name)
    }

    #[test]
    fn the_bill_names_what_is_in_the_program_and_what_builds_it() {
        let bom = bom();
        assert_eq!(
            bom["metadata"]["component"]["purl"],
            concat!("pkg:cargo/strew@", env!("CARGO_PKG_VERSION"))
        );
        for name in [
            "rustls",
            "aws-lc-sys",
            "strew-placement",
            "glibc",
            "rust-std",
        ] {
            let component = component(&bom, name).unwrap();
            assert_eq!(component["scope"], "required", "{component}");
        }
        for name in ["serde_derive", "cc"] {
            let component = component(&bom, name).unwrap();
            assert_eq!(component["scope"], "excluded", "{component}");
        }
        // Of the automation and of tests.
        for name in ["xtask", "snapbox", "proptest"] {
            assert!(component(&bom, name).is_none(), "{name}");
        }
    }

    #[test]
    fn each_component_has_a_licence_and_a_digest() {
        let bom = bom();
        for component in bom["components"].as_array().unwrap() {
            let licence = component["licenses"][0]["expression"].as_str();
            let licence = licence.unwrap_or_default();
            assert!(!licence.is_empty() && !licence.contains('/'), "{component}");
            let name = component["name"].as_str().unwrap();
            let url = component["purl"].as_str().unwrap();
            if url.starts_with("pkg:cargo/") && !name.starts_with("strew") {
                let digest = component["hashes"][0]["content"].as_str();
                assert_eq!(digest.map(str::len), Some(64), "{component}");
            }
        }
    }

    #[test]
    fn every_reference_is_a_component() {
        let bom = bom();
        let of = |component: &Value| component["bom-ref"].as_str().unwrap().to_owned();
        let components = bom["components"].as_array().unwrap();
        let mut known: BTreeSet<String> = components.iter().map(of).collect();
        assert_eq!(
            known.len(),
            components.len(),
            "a reference stands for one component"
        );
        known.insert(of(&bom["metadata"]["component"]));
        let mut reached = BTreeSet::new();
        for dependency in bom["dependencies"].as_array().unwrap() {
            assert!(
                known.contains(dependency["ref"].as_str().unwrap()),
                "{dependency}"
            );
            for on in dependency["dependsOn"].as_array().unwrap() {
                assert!(known.contains(on.as_str().unwrap()), "{on}");
                reached.insert(on.as_str().unwrap().to_owned());
            }
        }
        assert_eq!(reached.len(), components.len(), "each component has a user");
    }

    #[test]
    fn equal_packages_give_equal_bytes() {
        let (first, second) = (Bill::of(TARGET).unwrap(), Bill::of(TARGET).unwrap());
        assert_eq!(first.cyclonedx(), second.cyclonedx());
        assert_eq!(first.auditable().unwrap(), second.auditable().unwrap());
    }

    #[test]
    fn a_tree_is_read_by_depth() {
        let text = "0strew v0.1.0 (folder)|Apache-2.0||\n1a v1.0.0+1|MIT/Apache-2.0|https://a||\n2b v2.0.0 (proc-macro)|MIT||\n1b v2.0.0 (proc-macro)|MIT|| (*)\n";
        let tree = Tree::read(text).unwrap();
        let on = |name: &str, version: &str| -> Vec<String> {
            let node = &tree.0[&(name.to_owned(), version.to_owned())];
            node.dependencies.iter().map(|id| id.0.clone()).collect()
        };
        assert_eq!(on("strew", "0.1.0"), ["a", "b"]);
        assert_eq!(on("a", "1.0.0+1"), ["b"]);
        assert_eq!(on("b", "2.0.0"), [""; 0]);
        let a = &tree.0[&("a".to_owned(), "1.0.0+1".to_owned())];
        assert_eq!(
            (a.licence.as_str(), a.repository.as_str()),
            ("MIT OR Apache-2.0", "https://a")
        );
        assert!(Tree::read("0other v1.0.0|||\n").is_err());
        assert!(Tree::read("warning: something\n").is_err());
    }
}
