//! What a machine watches, the role of its process may read: the two lists are kept apart, this keeps them equal.

use strew_kube::controller::Name;
use strew_kube::permission::Permission;
use strew_kube::{controller, scheduler, webhook};
use strew_runtime::watch::Watches;
use strew_runtime::{admission, keep, placement, workloadspread};

const READ: [&str; 3] = ["get", "list", "watch"];

fn unreadable(watches: &Watches, rights: &[&[Permission]]) -> Vec<String> {
    let may_read = |group: &str, plural: &str| {
        rights.iter().copied().flatten().any(|right| {
            let is_it = right.group == group && right.resource == plural;
            is_it && READ.iter().all(|verb| right.verbs.contains(verb))
        })
    };
    let kinds = watches.kinds().map(|(kind, _)| kind);
    let denied = kinds.filter(|kind| !may_read(&kind.group, &kind.plural));
    denied.map(ToString::to_string).collect()
}

/// What an audit lists, its role may list, and nothing else.
#[test]
fn what_an_audit_lists_may_be_listed_and_nothing_else() {
    let rights = controller::permissions::of(Name::Audit);
    let mut allowed: Vec<(&str, &str)> = rights.iter().map(|r| (r.group, r.resource)).collect();
    assert!(rights.iter().all(|right| right.verbs == ["list"]));
    let mut listed: Vec<(&str, &str)> = strew_kube::snapshot::of_audit().collect();
    allowed.sort_unstable();
    listed.sort_unstable();
    assert_eq!(allowed, listed);
}

#[test]
fn what_is_watched_may_be_read() {
    let namespace = "kruise-system";
    let machines = [
        (
            strew_runtime::scheduler::watches(),
            vec![scheduler::permissions::IN_CLUSTER],
        ),
        (
            admission::watches(namespace),
            vec![
                webhook::permissions::IN_CLUSTER,
                webhook::permissions::IN_NAMESPACE,
            ],
        ),
        (
            workloadspread::watches(namespace),
            vec![
                controller::permissions::of(Name::WorkloadSpread),
                controller::permissions::of_configuration(Name::WorkloadSpread),
            ],
        ),
        (
            placement::watches(),
            vec![controller::permissions::of(Name::Placement)],
        ),
        (
            keep::watches(),
            vec![controller::permissions::of(Name::Keep)],
        ),
    ];
    for (watches, rights) in &machines {
        assert!(watches.kinds().count() > 0);
        assert_eq!(unreadable(watches, rights), [""; 0]);
    }
}
