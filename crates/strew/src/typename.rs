//! Types that `strew` takes on its command line, by kubectl's names: pods, and what makes pods.

use strew_api::typename;

const KINDS: [&str; 8] = [
    "Pod",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Job",
    "CronJob",
];

/// The kind of a type's name, `deployments.apps` included.
pub(crate) fn kind(text: &str) -> Option<&'static str> {
    let kind = typename::find(text)?.kind;
    KINDS.contains(&kind).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pods_and_their_makers_are_taken() {
        assert_eq!(kind("deploy"), Some("Deployment"));
        assert_eq!(kind("svc"), None);
        assert_eq!(kind("node"), None);
    }
}
