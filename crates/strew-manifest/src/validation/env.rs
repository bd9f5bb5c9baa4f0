//! The environment of containers.
//!
//! Source: `ValidateEnv`, `ValidateEnvFrom` of `pkg/apis/core/validation`, v1.36.

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, EnvVarSource};

use super::{invalid_each, text};
use crate::field::{FieldError, FieldPath};

/// The fields of a pod that a variable can have without a subscript.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields that are converted, but that no variable can have without a subscript.
const OTHER_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
];

const TOO_MANY: &str = "may not have more than one field specified at a time";

/// Checks the variables of a container; `path` is that of the list.
pub(super) fn validate(variables: &[EnvVar], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, variable) in variables.iter().enumerate() {
        let path = path.index(i);
        let (name, at) = (variable.name.as_str(), path.child("name"));
        match name {
            "" => errors.push(FieldError::required(at, "")),
            name => invalid_each(text::variable_name(name), name, &at, errors),
        }
        if let Some(source) = &variable.value_from {
            let has_value = variable.value.as_ref().is_some_and(|v| !v.is_empty());
            value_from(source, has_value, &path.child("valueFrom"), errors);
        }
    }
}

fn value_from(
    source: &EnvVarSource,
    has_value: bool,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if let Some(field) = &source.field_ref {
        pod_field(&field.field_path, &path.child("fieldRef.fieldPath"), errors);
    }
    let config_map = source.config_map_key_ref.as_ref();
    let secret = source.secret_key_ref.as_ref();
    let keys = [
        ("configMapKeyRef", config_map.map(|s| (&s.name, &s.key))),
        ("secretKeyRef", secret.map(|s| (&s.name, &s.key))),
    ];
    for (kind, selected) in keys {
        let Some((name, key)) = selected else {
            continue;
        };
        for (field, value) in [("name", name), ("key", key)] {
            if value.is_empty() {
                errors.push(FieldError::required(path.child(kind).child(field), ""));
            }
        }
    }
    let given = [
        source.field_ref.is_some(),
        source.resource_field_ref.is_some(),
        config_map.is_some(),
        secret.is_some(),
        source.file_key_ref.is_some(),
    ];
    let detail = match given.iter().filter(|is_given| **is_given).count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => TOO_MANY,
    };
    errors.push(FieldError::invalid(path.clone(), "", detail));
}

/// Source: `validateObjectFieldSelector`, `ConvertDownwardAPIFieldLabel`.
fn pod_field(field: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if field.is_empty() {
        errors.push(FieldError::required(path.clone(), ""));
        return;
    }
    // Their subscripts, which are names of labels and annotations, are not checked.
    let is_subscripted = field.contains('[');
    if is_subscripted || FIELDS.contains(&field) || field == "spec.host" {
        return;
    }
    errors.push(match OTHER_FIELDS.contains(&field) {
        true => FieldError::not_supported(path.clone(), field, &FIELDS),
        false => {
            let detail = format!("error converting fieldPath: field label not supported: {field}");
            FieldError::invalid(path.clone(), field, detail)
        }
    });
}

/// Checks the ConfigMaps and Secrets whose entries become variables; `path` is that of the list, which upstream's errors
/// about a source without a kind name.
pub(super) fn validate_from(
    sources: &[EnvFromSource],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    for (i, source) in sources.iter().enumerate() {
        let named = [
            (
                "configMapRef",
                source.config_map_ref.as_ref().map(|s| &s.name),
            ),
            ("secretRef", source.secret_ref.as_ref().map(|s| &s.name)),
        ];
        for (kind, name) in named {
            if name.is_some_and(String::is_empty) {
                let at = path.index(i).child(kind).child("name");
                errors.push(FieldError::required(at, ""));
            }
        }
        let detail = match named.iter().filter(|(_, name)| name.is_some()).count() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => TOO_MANY,
        };
        errors.push(FieldError::invalid(path.clone(), "", detail));
    }
}
