//! Skew and counts of each workload's spread constraints, as the plugin counts them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use strew_cluster::{ClassId, Cluster, OwnerKind};
use strew_model::Symbol;

use super::catalogue;
use super::family::{Family, Value};
use crate::plugins::pod_topology_spread::SpreadPlan;
use crate::profile::Profile;
use crate::profiles::Profiles;

/// The most constraints of workloads with series.
const CONSTRAINTS_MAX: usize = 500;

/// The most domains of all constraints together with series.
const DOMAINS_MAX: usize = 2000;

/// A constraint with at least this many domains (usually one per node) has no series per domain.
const DOMAINS_TOO_MANY: usize = 33;

/// The label that distinguishes the ReplicaSets of one Deployment.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// A constraint of a workload: namespace, workload, topology key, whether it is hard.
type Key = (String, String, Symbol, bool);

/// The workload of a class's pods.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Workload {
    /// A controller: its kind, which is no label, and its name; for a Deployment's ReplicaSet the Deployment's name.
    Of(OwnerKind, String),
    /// Pods without a controller, identified by the constraint's selector.
    Bare,
}

/// The counts and limits of a constraint.
struct Counted {
    skew: i32,
    max_skew: i32,
    /// Pods by the domain's value; their number if there are too many.
    domains: Result<Vec<(Symbol, i32)>, usize>,
}

/// The four families: skews, allowed skews, pods by domain, and what was left out.
///
/// Cost: classes with pods × constraints; new tallies are counted.
pub(crate) fn families(cluster: &mut Cluster, profiles: &Profiles) -> [Family; 4] {
    let mut constraints: BTreeMap<Key, (Workload, Counted)> = BTreeMap::new();
    let mut workloads_left_out = 0;
    for (class, profile) in classes(cluster, profiles) {
        if constraints.len() >= CONSTRAINTS_MAX {
            workloads_left_out += 1;
            continue;
        }
        let (namespace, workload) = workload(cluster, class);
        for (key, hard, selector, counted) in counted(cluster, profile, class) {
            let name = match &workload {
                Workload::Of(_, name) => name.clone(),
                Workload::Bare => selector,
            };
            match constraints.entry((namespace.clone(), name, key, hard)) {
                // Two workloads have equal labels: the first one is reported.
                Entry::Occupied(known) if known.get().0 != workload => workloads_left_out += 1,
                // Of several classes (during a rollout), the last one counts.
                Entry::Occupied(mut known) => known.get_mut().1 = counted,
                Entry::Vacant(new) => {
                    new.insert((workload.clone(), counted));
                }
            }
        }
    }
    let mut skews = Family::new(&catalogue::SPREAD_SKEW);
    let mut max_skews = Family::new(&catalogue::SPREAD_MAX_SKEW);
    let mut pods = Family::new(&catalogue::SPREAD_PODS);
    let mut domains_left_out = 0;
    let text = |symbol| Cow::Owned(cluster.names.text(symbol).to_owned());
    for ((namespace, workload, topology_key, hard), (_, counted)) in constraints {
        let labels: [Cow<'static, str>; 4] = [
            namespace.into(),
            workload.into(),
            text(topology_key),
            if hard {
                "DoNotSchedule"
            } else {
                "ScheduleAnyway"
            }
            .into(),
        ];
        skews.push(labels.clone(), Value::Number(counted.skew.into()));
        max_skews.push(labels.clone(), Value::Number(counted.max_skew.into()));
        let domains = match counted.domains {
            Ok(domains) if pods.samples.len() + domains.len() <= DOMAINS_MAX => domains,
            Ok(domains) => {
                domains_left_out += domains.len();
                continue;
            }
            Err(domains) => {
                domains_left_out += domains;
                continue;
            }
        };
        for (domain, count) in domains {
            let [namespace, workload, topology_key, rule] = labels.clone();
            let labels = [namespace, workload, topology_key, rule, text(domain)];
            pods.push(labels, Value::Number(count.into()));
        }
    }
    let mut left_out = Family::new(&catalogue::SPREAD_LEFT_OUT);
    left_out.push(["domains".into()], Value::number(domains_left_out));
    left_out.push(["workloads".into()], Value::number(workloads_left_out));
    [skews, max_skews, pods, left_out]
}

/// The classes of this scheduler with pods on nodes, in the order of their first pod, with their profile.
fn classes<'a>(cluster: &Cluster, profiles: &'a Profiles) -> Vec<(ClassId, &'a Profile)> {
    let with_pods = cluster.tables().populated();
    let counted = with_pods.filter(|(_, row)| !row.members.is_empty() && !row.key.terminating);
    let mut by_age: Vec<_> = counted.map(|(class, row)| (row.serial(), class)).collect();
    by_age.sort_unstable();
    let each = by_age.into_iter();
    each.filter_map(|(_, class)| Some((class, profiles.of_class(cluster, class)?)))
        .collect()
}

/// The namespace and the workload of the pods.
fn workload(cluster: &Cluster, class: ClassId) -> (String, Workload) {
    let (tables, names) = (cluster.tables(), &cluster.names);
    let key = &tables.class(class).key;
    let namespace = names.text(key.namespace).to_owned();
    let Some(owner_ref) = key.owner else {
        return (namespace, Workload::Bare);
    };
    let owner = names.text(owner_ref.name);
    let labels = tables.labels(key.labels);
    let hash = names.get(TEMPLATE_HASH).and_then(|key| labels.get(key));
    let deployment = hash.and_then(|hash| owner.strip_suffix(names.text(hash))?.strip_suffix('-'));
    let name = deployment.unwrap_or(owner).to_owned();
    (namespace, Workload::Of(owner_ref.kind, name))
}

/// The constraints of a class that count by domain: topology key, hard or soft, selector, numbers.
fn counted(
    cluster: &mut Cluster,
    profile: &Profile,
    class: ClassId,
) -> Vec<(Symbol, bool, String, Counted)> {
    cluster.pin_censuses();
    let plan = SpreadPlan::make(cluster, profile, class);
    let hard = plan.hard.iter();
    let hard = hard.map(|c| (c.key, c.index, true, Some(c.tally), c.limit.max_skew));
    let soft = plan.soft.iter();
    let soft = soft.map(|c| (c.key, c.index, false, c.tally, c.max_skew));
    let each = hard
        .chain(soft)
        .filter_map(|(key, index, hard, tally, max_skew)| {
            let column = cluster.column(key);
            let tally = cluster.tally(tally?);
            let domains = tally.existing();
            let domains = match tally.domains() as usize {
                many @ DOMAINS_TOO_MANY.. => Err(many),
                _ => Ok(domains.map(|d| (column.value(d), tally.count(d))).collect()),
            };
            let counted = Counted {
                skew: tally.skew(),
                max_skew,
                domains,
            };
            let selector = &plan.effective.constraints[index].selector;
            Some((column.key(), hard, selector.text(&cluster.names), counted))
        });
    each.collect()
}
