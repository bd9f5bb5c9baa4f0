//! The constraints that apply to a pod: its own, or the default ones with a deduced selector.
//!
//! Source: spec/scheduler §1.3 (match label keys), §1.5 (defaults); KEP-1258, KEP-3243.

use strew_cluster::{ClassId, Cluster, Policy, SpreadConstraint};
use strew_model::{Labels, Requirement, Selector, Symbol};

use crate::profile::{Compat, DefaultConstraints, Profile, SchedulerGates};

/// The origin of constraints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The pod's spec.
    Pod,
    /// `defaultingType: System`.
    SystemDefaults,
    /// `defaultingType: List`.
    ListDefaults,
    /// The pod has none, and no default applies.
    None,
}

/// The effective constraints of a class of pods.
#[derive(Debug, Clone)]
pub struct Effective {
    /// Their origin.
    pub origin: Origin,
    /// In order, with complete selectors. Fields without effect are empty: those of a gate that is off, and
    /// `match_label_keys` if nothing was merged.
    pub constraints: Vec<SpreadConstraint>,
    /// Per constraint: true if the pod's own labels match.
    pub self_match: Vec<bool>,
}

impl Effective {
    /// The constraints of a class.
    pub fn of(cluster: &Cluster, profile: &Profile, class: ClassId) -> Self {
        let tables = cluster.tables();
        let key = &tables.class(class).key;
        let labels = tables.labels(key.labels);
        let own = &tables.spec(key.spec).spread;
        let (origin, constraints) = match own.is_empty() {
            false => (Origin::Pod, own.to_vec()),
            true => defaults(cluster, profile, key.namespace, labels, key.owner),
        };
        // Upstream parses match label keys of defaults and then drops them (kubernetes#129198).
        let merges = profile.gates.match_label_keys
            && (origin == Origin::Pod || profile.compat == Compat::Strew);
        let constraints: Vec<SpreadConstraint> = constraints
            .into_iter()
            .map(|c| gated(c, profile.gates))
            .map(|c| merged(c, labels, merges))
            .collect();
        let self_match = constraints
            .iter()
            .map(|c| c.selector.matches(labels))
            .collect();
        Self {
            origin,
            constraints,
            self_match,
        }
    }
}

/// The constraint without the fields that a gate disables.
fn gated(mut constraint: SpreadConstraint, gates: SchedulerGates) -> SpreadConstraint {
    if !gates.min_domains {
        constraint.min_domains = None;
    }
    if !gates.node_inclusion_policy {
        constraint.node_affinity_policy = Policy::Honor;
        constraint.node_taints_policy = Policy::Ignore;
    }
    constraint
}

/// The constraint with the pod's *present* values of its match label keys merged. Without a selector, or if the keys
/// have no effect, only the keys are dropped.
///
/// Since v1.34 the API server merges at creation; for older pods this is the only place. Merging again changes nothing,
/// unless a label was changed meanwhile: then no pod matches (spec/scheduler §1.3).
fn merged(mut constraint: SpreadConstraint, labels: &Labels, merges: bool) -> SpreadConstraint {
    if !merges || constraint.selector == Selector::Nothing {
        constraint.match_label_keys = Box::default();
        return constraint;
    }
    let keys = constraint.match_label_keys.iter();
    let more = keys.filter_map(|&key| Some(Requirement::is_in(key, vec![labels.get(key)?])));
    constraint.selector = constraint.selector.and(more);
    constraint
}

fn defaults(
    cluster: &Cluster,
    profile: &Profile,
    namespace: Symbol,
    labels: &Labels,
    owner: Option<strew_cluster::OwnerRef>,
) -> (Origin, Vec<SpreadConstraint>) {
    let origin = match profile.default_constraints {
        DefaultConstraints::System => Origin::SystemDefaults,
        DefaultConstraints::List(_) => Origin::ListDefaults,
    };
    let constraints = profile.default_constraints.constraints();
    if constraints.is_empty() {
        return (Origin::None, constraints);
    }
    let selector = cluster.owners().deduce(namespace, labels, owner);
    if selector.is_empty() {
        return (Origin::None, Vec::new());
    }
    let fill = |constraint: SpreadConstraint| SpreadConstraint {
        selector: Selector::clone(&selector),
        ..constraint
    };
    (origin, constraints.into_iter().map(fill).collect())
}
