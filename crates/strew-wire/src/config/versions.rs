//! The versions of the configuration; converts the old ones to v1.

use std::fmt;

use serde_json::Value;

use super::problems::Problems;
use super::wire::{ConfigurationWire, PluginSetWire, PluginsWire};
use strew_manifest::field::FieldPath;

/// A version of `KubeSchedulerConfiguration`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1Beta1,
    V1Beta2,
    V1Beta3,
    V1,
}

impl Version {
    pub(super) const GROUP: &'static str = "kubescheduler.config.k8s.io";

    /// The version of an `apiVersion`.
    pub(super) fn of(api_version: &str) -> Option<Self> {
        match api_version.strip_prefix(Self::GROUP)?.strip_prefix('/')? {
            "v1beta1" => Some(Self::V1Beta1),
            "v1beta2" => Some(Self::V1Beta2),
            "v1beta3" => Some(Self::V1Beta3),
            "v1" => Some(Self::V1),
            _ => None,
        }
    }

    pub(super) fn api_version(self) -> String {
        format!("{}/{self}", Self::GROUP)
    }

    /// The message about a removed plugin.
    pub(super) fn was_invalid(self) -> String {
        format!(
            "was invalid in version {:?} (KubeSchedulerConfiguration is version {:?})",
            Self::V1.api_version(),
            self.api_version()
        )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
            Self::V1Beta3 => "v1beta3",
            Self::V1 => "v1",
        })
    }
}

/// Removes fields from an old document that v1 does not have and strew does not need.
pub(super) fn take_old_fields(value: &mut Value, version: Version, problems: &mut Problems<'_>) {
    if version == Version::V1 {
        return;
    }
    problems.notes.push(format!(
        "{} was read as v1: default plugins and weights are those of Kubernetes 1.36",
        version.api_version()
    ));
    if matches!(version, Version::V1Beta1 | Version::V1Beta2) {
        let Some(fields) = value.as_object_mut() else {
            return;
        };
        for name in ["healthzBindAddress", "metricsBindAddress"] {
            if fields.shift_remove(name).is_some() {
                let note = format!("{name} ({version}) was passed over: v1 has no such field");
                problems.notes.push(note);
            }
        }
    }
}

/// Plugins of v1beta1 and v1beta2 that score resources; in v1 they are strategies of NodeResourcesFit.
const LEAST_ALLOCATED: &str = "NodeResourcesLeastAllocated";
const FIT: &str = "NodeResourcesFit";

/// Renames plugins of old versions if only their names have changed.
pub(super) fn rename_plugins(
    wire: &mut ConfigurationWire,
    version: Version,
    problems: &mut Problems<'_>,
) {
    if !matches!(version, Version::V1Beta1 | Version::V1Beta2) {
        return;
    }
    for (i, profile) in wire.profiles.iter_mut().flatten().enumerate() {
        let path = FieldPath::root()
            .child("profiles")
            .index(i)
            .child("plugins");
        let Some(PluginsWire {
            score: Some(score), ..
        }) = &mut profile.plugins
        else {
            continue;
        };
        rename(score, &path.child("score"), version, problems);
    }
}

fn rename(
    score: &mut PluginSetWire,
    path: &FieldPath,
    version: Version,
    problems: &mut Problems<'_>,
) {
    for (set, plugins) in [
        ("enabled", &mut score.enabled),
        ("disabled", &mut score.disabled),
    ] {
        for plugin in plugins.iter_mut().flatten() {
            if plugin.name() == LEAST_ALLOCATED {
                plugin.name = Some(FIT.to_owned());
                let path = path.child(set);
                problems.notes.push(format!(
                    "{path}: {LEAST_ALLOCATED} ({version}) became {FIT}, whose default strategy it is"
                ));
            }
        }
    }
}
