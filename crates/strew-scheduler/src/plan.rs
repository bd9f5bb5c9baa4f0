//! The resolved form of a pod class: the tallies and columns that its decisions read.
//!
//! A plan is made once per class and stays valid until one of its inputs changes ([`Basis`]).

use smallvec::SmallVec;
use strew_cluster::{ClassId, Cluster, NodeAffinityId, Sweep};
use strew_model::Resources;

use crate::columns::{Columns, ShapeKey};
use crate::filters;
use crate::plugins::inter_pod_affinity::AffinityPlan;
use crate::plugins::node_resources_fit;
use crate::plugins::pod_topology_spread::SpreadPlan;
use crate::plugins::selector_spread::SelectorSpreadPlan;
use crate::profile::{PluginId, Profile};

/// The inputs of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    owners: u64,
    evicted: u64,
    sweeps: u64,
    columns: u64,
    affinity_keys: u64,
}

impl Basis {
    fn now(cluster: &Cluster, columns: &Columns) -> Self {
        Self {
            owners: cluster.owners().version(),
            evicted: cluster.evicted(),
            sweeps: cluster.sweeps(),
            columns: columns.epoch(),
            affinity_keys: cluster.tables().affinity_version(),
        }
    }
}

/// The plan of one class.
pub struct ClassPlan {
    class: ClassId,
    basis: Basis,
    /// Topology spread.
    pub spread: SpreadPlan,
    /// Affinity to other pods.
    pub affinity: AffinityPlan,
    /// The legacy spreading score, if it is enabled.
    pub selector_spread: Option<SelectorSpreadPlan>,
    pub(crate) node_affinity: NodeAffinityId,
    pub(crate) admitted: usize,
    pub(crate) prefer_taints: usize,
    pub(crate) preferred_nodes: Option<usize>,
    pub(crate) images: usize,
    pub(crate) shape: usize,
    /// The filters that are asked node by node.
    pub(crate) by_node: SmallVec<[PluginId; 1]>,
    /// The requests that `NodeResourcesFit` checks.
    pub(crate) requests: Resources,
    serial: u64,
}

impl ClassPlan {
    fn make(
        cluster: &mut Cluster,
        columns: &mut Columns,
        profile: &Profile,
        class: ClassId,
        serial: u64,
    ) -> Self {
        columns.bound(cluster.node_rows());
        cluster.pin_censuses();
        let spread = SpreadPlan::make(cluster, profile, class);
        let affinity = AffinityPlan::make(cluster, profile, class);
        let selector_spread = (profile.weight(PluginId::SelectorSpread) > 0)
            .then(|| SelectorSpreadPlan::make(cluster, class));
        let tables = cluster.tables();
        let spec_id = tables.class(class).key.spec;
        let (spec, parts) = (tables.spec(spec_id), tables.parts(spec_id));
        let requests = spec.requests.clone();
        let filtered = node_resources_fit::filtered(cluster, &profile.fit, &requests);
        let shape = ShapeKey {
            requests,
            filtered: filtered.clone(),
            scored: spec.scored,
        };
        Self {
            class,
            node_affinity: parts.node_affinity,
            admitted: columns.ensure_admitted((parts.node_affinity, parts.tolerations)),
            prefer_taints: columns.ensure_prefer_taints(parts.tolerations),
            preferred_nodes: (!spec.preferred_nodes.is_empty()
                || !profile.added_affinity.preferred.is_empty())
            .then(|| columns.ensure_preferred_nodes(spec_id)),
            images: columns.ensure_images(spec_id),
            shape: columns.ensure_shape(shape),
            requests: filtered,
            by_node: filters::by_node(profile, spec),
            serial,
            spread,
            affinity,
            selector_spread,
            // Making a plan may evict censuses, but not those that it uses: they are pinned.
            basis: Basis::now(cluster, columns),
        }
    }
}

impl ClassPlan {
    /// Unique among all plans.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// Marks everything that the plan reads of the cluster as used, in a sweep.
    fn keep(&self, cluster: &mut Cluster, sweep: &mut Sweep) {
        self.spread.touch(cluster);
        self.affinity.touch(cluster);
        let census = self.selector_spread.as_ref().and_then(|plan| plan.census());
        census.into_iter().for_each(|id| cluster.touch_census(id));
        self.spread.keep(sweep);
        self.affinity.keep(sweep);
    }
}

/// The plans of the classes decided on. The next sweep drops those of classes that are gone.
#[derive(Default)]
pub(crate) struct Plans {
    by_class: Vec<Option<ClassPlan>>,
    made: u64,
}

impl Plans {
    /// The plan of a class, made or renewed if necessary.
    pub(crate) fn ensure(
        &mut self,
        cluster: &mut Cluster,
        columns: &mut Columns,
        profile: &Profile,
        class: ClassId,
    ) -> &ClassPlan {
        if self.by_class.len() <= class.index() {
            self.by_class.resize_with(class.index() + 1, || None);
        }
        let slot = &mut self.by_class[class.index()];
        let good = slot
            .as_ref()
            .is_some_and(|plan| plan.class == class && plan.basis == Basis::now(cluster, columns));
        if !good {
            *slot = None;
            self.made += 1;
        }
        let serial = self.made;
        let plan =
            slot.get_or_insert_with(|| ClassPlan::make(cluster, columns, profile, class, serial));
        plan.spread.touch(cluster);
        plan.affinity.touch(cluster);
        plan
    }
    /// Takes part in a sweep: drops invalid plans, and marks what the others read.
    pub(crate) fn sweep(&mut self, cluster: &mut Cluster, columns: &Columns, sweep: &mut Sweep) {
        let now = Basis::now(cluster, columns);
        let before = Basis {
            sweeps: now.sweeps - 1,
            ..now
        };
        for slot in &mut self.by_class {
            let is_good = |plan: &ClassPlan| {
                plan.basis == before && cluster.tables().find_class(plan.class).is_some()
            };
            match slot.as_mut().filter(|plan| is_good(plan)) {
                Some(plan) => {
                    plan.keep(cluster, sweep);
                    plan.basis = now;
                }
                None => *slot = None,
            }
        }
    }

    /// All plans.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ClassPlan> {
        self.by_class.iter().flatten()
    }

    /// True if the class in a row has a plan with this serial number.
    pub(crate) fn has(&self, row: usize, serial: u64) -> bool {
        let plan = self.by_class.get(row).and_then(Option::as_ref);
        plan.is_some_and(|plan| plan.serial == serial)
    }
}
