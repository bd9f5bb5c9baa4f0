//! Names of types as kubectl takes them: `deployment`, `deployments`, `deploy`.

/// Kind, plural, short name, group.
const TYPES: [(&str, &str, &str, Option<&str>); 8] = [
    ("Pod", "pods", "po", None),
    ("Deployment", "deployments", "deploy", Some("apps")),
    ("ReplicaSet", "replicasets", "rs", Some("apps")),
    ("StatefulSet", "statefulsets", "sts", Some("apps")),
    ("DaemonSet", "daemonsets", "ds", Some("apps")),
    (
        "ReplicationController",
        "replicationcontrollers",
        "rc",
        None,
    ),
    ("Job", "jobs", "job", Some("batch")),
    ("CronJob", "cronjobs", "cj", Some("batch")),
];

/// The kind of a type's name, `deployments.apps` included.
pub(crate) fn kind(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let (name, group) = match text.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (text.as_str(), None),
    };
    let is_named = |(kind, plural, short, own_group): &&(&str, &str, &str, Option<&str>)| {
        let named = kind.to_lowercase() == name || *plural == name || *short == name;
        let grouped = group.is_none_or(|g| {
            own_group.is_some_and(|own| g == own || g.ends_with(&format!(".{own}")))
        });
        named && grouped
    };
    TYPES.iter().find(is_named).map(|(kind, ..)| *kind)
}

/// The API group of a kind; `None` for the core.
pub(crate) fn group_of_kind(kind: &str) -> Option<&'static str> {
    let known = TYPES.iter().find(|(known, ..)| *known == kind);
    known.and_then(|(.., group)| *group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_kubectls_names_are_understood() {
        for name in ["deploy", "Deployment", "deployments", "deployments.apps"] {
            assert_eq!(kind(name), Some("Deployment"), "{name}");
        }
        assert_eq!(kind("po"), Some("Pod"));
        assert_eq!(kind("deployments.batch"), None);
        assert_eq!(kind("svc"), None);
    }
}
