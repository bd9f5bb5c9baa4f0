//! Only strew-manifest decodes and encodes the types of Kubernetes, Kruise and OCM.
//!
//! Their decoders are generic and large: each crate that calls one compiles it again. A search for words, as in
//! [`purity`](crate::purity).

use std::path::Path;

use crate::{expect_none, repository};

/// The crates that may: the one with the decoders, and automation, which is not part of the program.
const MAY: [&str; 3] = ["strew-manifest", "xtask", "xtask-lab"];

/// How a file names such types.
const TYPES: [&str; 4] = ["k8s_openapi", "kruise", "ocm::", "KubeObject"];

/// How a value is decoded or encoded by its type.
const CALLS: [&str; 8] = [
    "serde_json::from_",
    "serde_json::to_",
    "DeserializeOwned",
    "::deserialize(",
    "derive(Deserialize",
    ", Deserialize",
    "derive(Serialize",
    ", Serialize",
];

/// Files with both that decode only what is named here.
const OTHERS: [(&str, &str); 21] = [
    (
        "strew-apiserver/src/server/registration.rs",
        "text to a JSON value",
    ),
    ("strew-controllers/src/job/world.rs", "a helper of tests"),
    ("strew-controllers/src/small_world.rs", "a helper of tests"),
    (
        "strew-kube/src/authority/rotator.rs",
        "a Secret, by kube's client; a JSON patch",
    ),
    (
        "strew-kube/src/controller/placement/debug.rs",
        "text to a JSON value; a result of strew",
    ),
    (
        "strew-kube/src/serve/access/review.rs",
        "reviews of access, by kube's client",
    ),
    ("strew-kube/src/untyped.rs", "a JSON value"),
    (
        "strew-runtime/src/workloadspread/texts.rs",
        "text to a JSON value",
    ),
    ("strew-sim/src/auditor/kept.rs", "an annotation of strew"),
    ("strew-wire/src/config/arguments.rs", "arguments of plugins"),
    (
        "strew-wire/src/config/spread_arguments.rs",
        "arguments of plugins",
    ),
    ("strew-view/src/placement.rs", "an annotation of strew"),
    ("strew/src/place/difference.rs", "results of strew"),
    (
        "strew-wire/src/placement/facts/groups.rs",
        "an annotation of strew",
    ),
    (
        "strew-wire/src/placement/facts/replicas.rs",
        "an annotation of strew",
    ),
    (
        "strew-wire/src/placement/facts/status.rs",
        "text to a JSON value",
    ),
    (
        "strew-wire/src/placement/facts/weights.rs",
        "an annotation of strew",
    ),
    (
        "strew-wire/src/workloadspread/annotations.rs",
        "an annotation of strew",
    ),
    (
        "strew-wire/src/workloadspread/facts/white_list.rs",
        "a setting of Kruise",
    ),
    (
        "strew-wire/src/workloadspread/validation/subset.rs",
        "labels",
    ),
    ("strew-wire/src/zones.rs", "text to a JSON value"),
];

#[test]
fn only_one_crate_decodes_kubernetes_types() {
    let mut broken = Vec::new();
    for path in repository::rust_files()
        .into_iter()
        .filter(|path| is_of_programs(path))
    {
        let name = path.strip_prefix("crates").unwrap_or(&path);
        if OTHERS.iter().any(|(known, _)| name == Path::new(known)) {
            continue;
        }
        let text = repository::read(&path);
        // Tests are at the end.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if !TYPES.iter().any(|word| code.contains(word)) {
            continue;
        }
        for (i, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            if CALLS.iter().any(|call| line.contains(call)) {
                broken.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
            }
        }
    }
    expect_none(
        broken,
        "Call strew_manifest::json::Json (of_json, to_json) or KubeObject, and add a type to the list in json.rs; if \
         this decodes a type of strew's own, add the file to OTHERS here.",
    );
}

/// Code of the programs, without files of tests.
fn is_of_programs(path: &Path) -> bool {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    let is_crate = parts.next() == Some("crates");
    let is_bound = parts.next().is_some_and(|name| !MAY.contains(&name));
    let is_source = parts.next() == Some("src");
    let is_test = path
        .iter()
        .any(|part| part == "tests" || part == "tests.rs" || part == "testing");
    is_crate && is_bound && is_source && !is_test
}
