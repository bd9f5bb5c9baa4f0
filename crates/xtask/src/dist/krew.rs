//! The manifest for krew, from deploy/krew/strew.yaml.template.

use std::fs;
use std::path::Path;

use super::build::ARCHITECTURE;
use super::{VERSION, archive_name, files};
use xtask::top;

/// Writes the manifest of the archive in `out`, which will be published below `url`.
pub(super) fn manifest(out: &Path, url: &str, homepage: &str) -> anyhow::Result<()> {
    let template = fs::read_to_string(top().join("deploy/krew/strew.yaml.template"))?;
    let sum = files::digest(&out.join(archive_name()))?;
    let uri = format!("{}/{}", url.trim_end_matches('/'), archive_name());
    let text = filled(&template, &uri, homepage, &sum);
    fs::write(out.join("strew.yaml"), text)?;
    Ok(())
}

fn filled(template: &str, uri: &str, homepage: &str, sum: &str) -> String {
    let lines = template.lines().filter(|line| !line.starts_with('#'));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("@VERSION@", VERSION)
        .replace("@URI@", uri)
        .replace("@HOMEPAGE@", homepage)
        .replace("@SHA256@", sum)
        .replace("@ARCH@", ARCHITECTURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// krew's own rules: its index refuses a manifest that breaks them.
    #[test]
    fn the_manifest_keeps_the_rules_of_krew() {
        let template = fs::read_to_string(top().join("deploy/krew/strew.yaml.template")).unwrap();
        let text = filled(
            &template,
            "https://example.com/a.tar.gz",
            "https://example.com",
            &"0".repeat(64),
        );
        let manifest: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
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
        let platform = &spec["platforms"][0];
        assert_eq!(platform["bin"], "kubectl-strew");
        assert_eq!(platform["selector"]["matchLabels"]["arch"], ARCHITECTURE);
        let files = platform["files"].as_array().unwrap();
        let has = |file: &str| {
            files
                .iter()
                .any(|f| f["from"].as_str().unwrap().ends_with(file))
        };
        assert!(has("/strew") && has("/LICENSE") && has("/kubectl_complete-strew"));
    }
}
