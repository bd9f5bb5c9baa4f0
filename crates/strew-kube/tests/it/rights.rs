//! What a machine watches, the role of its process may read.

use strew_kube::controller::Name;
use strew_kube::permission::Permission;
use strew_kube::{controller, scheduler, webhook};
use strew_runtime::watch::Watches;
use strew_runtime::{admission, keep, placement, workloadspread};

const READ: [&str; 3] = ["get", "list", "watch"];

fn unreadable(watches: &Watches, rights: &[Permission]) -> Vec<String> {
    let may_read = |group: &str, plural: &str| {
        rights.iter().any(|right| {
            let is_it = right.group == group && right.resource == plural;
            is_it && READ.iter().all(|verb| right.verbs.contains(verb))
        })
    };
    let kinds = watches.kinds().map(|(kind, _)| kind);
    let denied = kinds.filter(|kind| !may_read(&kind.group, &kind.plural));
    denied.map(ToString::to_string).collect()
}

#[test]
fn an_audit_may_only_list() {
    let rights = controller::permissions::of(Name::Audit);
    assert_eq!(rights.len(), strew_kube::snapshot::OF_AUDIT.len());
    assert!(rights.iter().all(|right| *right.verbs == ["list"]));
}

/// What it lists is what an audit lists; the only right to write is that to ask for an eviction.
#[test]
fn rebalancing_may_list_and_evict() {
    let rights = controller::permissions::of(Name::Rebalance);
    let (reads, writes): (Vec<_>, Vec<_>) = { rights.iter() }.partition(|r| *r.verbs == ["list"]);
    assert_eq!(reads.len(), strew_kube::snapshot::OF_AUDIT.len());
    let writes: Vec<_> = writes.iter().map(|r| (r.resource, &*r.verbs)).collect();
    assert_eq!(writes, [("pods/eviction", &["create"][..])]);
}

#[test]
fn a_kind_has_one_right_in_a_role() {
    let controllers = [
        Name::WorkloadSpread,
        Name::Placement,
        Name::Keep,
        Name::Audit,
        Name::Rebalance,
    ];
    let controllers = controllers.map(controller::permissions::of);
    let own = [
        scheduler::permissions::in_cluster(),
        webhook::permissions::in_cluster(),
    ];
    for rights in controllers.iter().chain(&own) {
        let mut resources: Vec<_> = rights.iter().map(|r| (r.group, r.resource)).collect();
        resources.sort_unstable();
        let n = resources.len();
        resources.dedup();
        assert_eq!(resources.len(), n, "{resources:?}");
    }
}

#[test]
fn what_is_watched_may_be_read() {
    let namespace = "kruise-system";
    let machines = [
        (
            strew_runtime::scheduler::watches(),
            scheduler::permissions::in_cluster(),
        ),
        (
            admission::watches(namespace),
            [
                &webhook::permissions::in_cluster()[..],
                webhook::permissions::IN_NAMESPACE,
            ]
            .concat(),
        ),
        (
            strew_runtime::zones::watches(),
            webhook::permissions::in_cluster(),
        ),
        (
            workloadspread::watches(namespace),
            [
                &controller::permissions::of(Name::WorkloadSpread)[..],
                controller::permissions::of_configuration(Name::WorkloadSpread),
            ]
            .concat(),
        ),
        (
            placement::watches(),
            controller::permissions::of(Name::Placement),
        ),
        (keep::watches(), controller::permissions::of(Name::Keep)),
    ];
    for (watches, rights) in &machines {
        assert!(watches.kinds().count() > 0);
        assert_eq!(unreadable(watches, rights), [""; 0]);
    }
}
