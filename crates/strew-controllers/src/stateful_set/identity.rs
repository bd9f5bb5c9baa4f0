//! The ordinal and the name of a StatefulSet's pod.
//!
//! Source: spec/controllers §3; upstream `stateful_set_utils.go`.

use std::ops::Range;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use strew_apiserver::object::{Name, Pod, StatefulSet};
use strew_apiserver::workloads::set_stateful_identity;

use crate::sets::{REVISION_LABEL, owner_of, pod_of};

/// The label with the pod's name.
pub(super) const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";

/// The label with the pod's ordinal.
pub(super) const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// The ordinal in a pod's name, `SET-ORDINAL`; `None` if the pod does not belong to this set.
pub(super) fn ordinal_of(set: &str, pod: &str) -> Option<u32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number
        .then(|| digits.parse::<i32>().ok())
        .flatten()
        .and_then(|ordinal| u32::try_from(ordinal).ok())
}

/// The ordinals that a set should have.
pub(super) fn wanted(spec: &StatefulSetSpec) -> Range<u32> {
    let start = spec.ordinals.as_ref().and_then(|o| o.start).unwrap_or(0);
    let start = u32::try_from(start).unwrap_or(0);
    let replicas = u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    start..start.saturating_add(replicas)
}

/// True if a missing pod is made from the current revision, not from the update revision.
///
/// Without the block `rollingUpdate`, the number of pods of the current revision is compared with the index. This looks
/// wrong, but is upstream's behaviour.
pub fn is_made_from_current(spec: &StatefulSetSpec, n_current: i32, index: u32) -> bool {
    let strategy = spec.update_strategy.as_ref();
    let kind = strategy.and_then(|s| s.type_.as_deref());
    if !matches!(kind, None | Some("" | "RollingUpdate")) {
        return false;
    }
    let rolling = strategy.and_then(|s| s.rolling_update.as_ref());
    let border = match rolling {
        Some(rolling) => rolling.partition.unwrap_or(0),
        None => n_current,
    };
    index < u32::try_from(border).unwrap_or(0)
}

/// The pod of an ordinal.
pub(super) fn new_pod(
    set: &StatefulSet,
    template: &PodTemplateSpec,
    revision: &str,
    ordinal: u32,
) -> Pod {
    let name = format!("{}-{ordinal}", set.meta.name.name);
    let mut spec = template.spec.clone().unwrap_or_default();
    set_stateful_identity(&mut spec, &set.spec, &name);
    let labels = [
        (POD_NAME_LABEL, name.as_str()),
        (POD_INDEX_LABEL, &ordinal.to_string()),
        (REVISION_LABEL, revision),
    ];
    let full = Name::new(Arc::clone(&set.meta.name.namespace), name.as_str());
    pod_of(template, spec, owner_of(set), full, &labels)
}

/// The pod with the labels for its name; `None` if it has them.
pub(super) fn with_identity(pod: &Pod, ordinal: u32) -> Option<Pod> {
    let name = &*pod.meta.name.name;
    if pod.meta.label(POD_NAME_LABEL) == Some(name) {
        return None;
    }
    let mut pod = pod.clone();
    let name = name.to_owned();
    let labels = Arc::make_mut(&mut pod.meta.labels);
    labels.insert(POD_NAME_LABEL.to_owned(), name);
    labels.insert(POD_INDEX_LABEL.to_owned(), ordinal.to_string());
    Some(pod)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(fields: Value) -> StatefulSetSpec {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn ordinals_are_read_from_names() {
        for (pod, expected) in [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-", None),
            ("web", None),
            ("web-x", None),
            ("web--1", None),
            ("webby-1", None),
            ("web-a-1", None),
            ("web-99999999999", None),
        ] {
            assert_eq!(ordinal_of("web", pod), expected, "{pod}");
        }
    }

    #[test]
    fn ordinals_begin_where_the_spec_says() {
        for (fields, expected) in [
            (json!({"replicas": 3}), 0..3),
            (json!({}), 0..1),
            (json!({"replicas": 2, "ordinals": {"start": 5}}), 5..7),
        ] {
            let mut fields = fields;
            fields["selector"] = json!({});
            fields["template"] = json!({});
            assert_eq!(wanted(&spec(fields)), expected);
        }
    }

    #[test]
    fn below_the_partition_missing_pods_come_back_as_they_were() {
        for (strategy, n_current, from_current) in [
            (
                json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}),
                0,
                vec![0, 1],
            ),
            (
                json!({"type": "RollingUpdate", "rollingUpdate": {}}),
                3,
                vec![],
            ),
            (json!({"type": "RollingUpdate"}), 3, vec![0, 1, 2]),
            (json!({"type": "OnDelete"}), 3, vec![]),
        ] {
            let spec = spec(json!({"selector": {}, "template": {}, "updateStrategy": strategy}));
            let found: Vec<u32> = (0..4)
                .filter(|&index| is_made_from_current(&spec, n_current, index))
                .collect();
            assert_eq!(found, from_current, "{strategy}");
        }
    }
}
