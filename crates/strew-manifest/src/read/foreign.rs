//! Recognises files that hold no manifests, and names the command that makes manifests of them.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::diagnostic::Diagnostic;
use super::kind::group_of;
use super::source::SourceFile;
use crate::printable::quoted;

/// The code of a template, whose further errors would only follow.
pub(super) const TEMPLATE: &str = "template";

/// The files that make a folder a Helm chart or a kustomization.
pub const CHART_FILE: &str = "Chart.yaml";
/// Source: `konfig.RecognizedKustomizationFileNames` of kustomize.
pub const KUSTOMIZATION_FILES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

const KUSTOMIZE: &str = "kustomize.config.k8s.io";

/// The first bytes of a compressed file or archive, its name, and the program that unpacks it.
const PACKED: [(&[u8], &str, &str); 5] = [
    (&[0x1f, 0x8b], "gzip", "gunzip"),
    (b"PK\x03\x04", "zip", "unzip"),
    (b"BZh", "bzip2", "bunzip2"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz", "unxz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
];
/// The place of the name of the format in an archive of tar.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Name and program of the packing of a file; `None` if it is not packed.
pub(super) fn packing(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let packed = PACKED.iter().find(|(magic, ..)| bytes.starts_with(magic));
    let is_tar = || {
        bytes
            .get(TAR.0..)
            .is_some_and(|rest| rest.starts_with(TAR.1))
    };
    match packed {
        Some((_, name, program)) => Some((name, program)),
        None => is_tar().then_some(("tar", "tar xf")),
    }
}

/// The error of a packed file.
pub(super) fn packed(file: &SourceFile, (format, program): (&str, &str)) -> Diagnostic {
    let is_tarball = [".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst"]
        .iter()
        .any(|ending| file.name().ends_with(ending));
    let program = if is_tarball { "tar xf" } else { program };
    let help = match file.path() {
        Some(path) => format!("unpack it first: {program} {}", shell(path)),
        None => "unpack it first".to_owned(),
    };
    Diagnostic::error("packed", format!("this file is compressed ({format})")).with_help(help)
}

/// The error of a file that holds something else than manifests, as its name or its first line says.
pub(super) fn of_file(file: &SourceFile, piped: &str) -> Option<Diagnostic> {
    let name = file.path().and_then(Path::file_name);
    let name = name.and_then(|name| name.to_str()).unwrap_or_default();
    let has_kind = || file.text().lines().any(|line| line.starts_with("kind:"));
    if name == CHART_FILE && !has_kind() {
        return Some(chart(file, piped));
    }
    if KUSTOMIZATION_FILES.contains(&name) {
        return Some(kustomization(file, piped));
    }
    let mut lines = file.text().lines().filter(|line| !line.trim().is_empty());
    let first = lines.next()?;
    if is_table_header(first) {
        let message = "this is a table of kubectl, which lacks most of the objects";
        let error = Diagnostic::error("kubectl-table", message);
        return Some(error.with_help("add -o yaml to the kubectl command that wrote it"));
    }
    let is_described = first
        .strip_prefix("Name:")
        .is_some_and(|rest| rest.starts_with("  "));
    let field_of_description = |line: &str| {
        ["Namespace:", "Labels:", "Annotations:", "Roles:"]
            .iter()
            .any(|field| line.starts_with(field))
    };
    if is_described && lines.take(4).any(field_of_description) {
        let message = "this is the output of kubectl describe, which lacks most of the objects";
        let error = Diagnostic::error("kubectl-describe", message);
        return Some(error.with_help("write kubectl get -o yaml in place of kubectl describe"));
    }
    None
}

/// True for the first line of a table: two or more titles in capital letters, the first of which is `NAME` or
/// `NAMESPACE`.
fn is_table_header(line: &str) -> bool {
    let mut titles = line.split_whitespace();
    let is_first = matches!(titles.next(), Some("NAME" | "NAMESPACE"));
    let is_title = |title: &str| {
        let is_of_title = |c: char| c.is_ascii_uppercase() || "-()/%".contains(c);
        title.chars().all(is_of_title)
    };
    let rest: Vec<&str> = titles.collect();
    is_first && !rest.is_empty() && rest.iter().all(|title| is_title(title))
}

/// The error of a document without a kind, or of a kind that kubectl never sends to an API server.
pub(super) fn of_document(
    fields: &Map<String, Value>,
    file: &SourceFile,
    piped: &str,
) -> Option<Diagnostic> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    if group_of(text("apiVersion")) == KUSTOMIZE {
        return Some(kustomization(file, piped));
    }
    let is_chart = !fields.contains_key("kind")
        && matches!(text("apiVersion"), "v1" | "v2")
        && fields.contains_key("name")
        && fields.contains_key("version");
    is_chart.then(|| chart(file, piped))
}

/// The error of a file named `values….yaml` without any object.
pub(super) fn values(file: &SourceFile, piped: &str) -> Option<Diagnostic> {
    let path = file.path()?;
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".yaml").or(name.strip_suffix(".yml"))?;
    if !stem.starts_with("values") {
        return None;
    }
    let folder = folder_of(file, "CHART");
    let more = match stem {
        "values" => String::new(),
        _ => format!(" -f {}", shell(path)),
    };
    let message = "these are the values of a Helm chart, which must be rendered first";
    let help = format!("helm template RELEASE {folder}{more} | {piped}");
    Some(Diagnostic::error("helm-values", message).with_help(help))
}

/// What a template says, and what to do about it.
pub(super) fn template(file: &SourceFile, piped: &str) -> (&'static str, String) {
    let chart = file.path().and_then(|path| {
        let mut before = PathBuf::new();
        let mut found = None;
        for component in path.components() {
            if component == Component::Normal("templates".as_ref()) {
                found = Some(before.clone());
                break;
            }
            before.push(component);
        }
        found
    });
    match chart {
        Some(chart) => (
            "this is a template of a Helm chart, which must be rendered first",
            format!("helm template RELEASE {} | {piped}", folder(&chart)),
        ),
        None => (
            "this is a template, which must be rendered first",
            format!("for a Helm chart: helm template RELEASE CHART | {piped}"),
        ),
    }
}

fn chart(file: &SourceFile, piped: &str) -> Diagnostic {
    let message = "this is a Helm chart, which must be rendered first";
    let help = format!(
        "helm template RELEASE {} | {piped}",
        folder_of(file, "CHART")
    );
    Diagnostic::error("helm-chart", message).with_help(help)
}

fn kustomization(file: &SourceFile, piped: &str) -> Diagnostic {
    let message =
        "this is a kustomization, which must be built first: its changes are not in its files";
    let help = format!("kubectl kustomize {} | {piped}", folder_of(file, "DIR"));
    Diagnostic::error("kustomization", message).with_help(help)
}

/// The folder of the file for a shell; the placeholder if it is in none.
fn folder_of(file: &SourceFile, placeholder: &str) -> String {
    let parent = file.path().and_then(Path::parent);
    parent.map_or_else(|| placeholder.to_owned(), folder)
}

fn folder(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => shell(path),
    }
}

fn shell(path: &Path) -> String {
    quoted(&path.display().to_string())
}
