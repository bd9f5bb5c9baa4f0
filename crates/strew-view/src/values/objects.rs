//! Objects beside workloads and nodes: Services, budgets, volumes, autoscalers, WorkloadSpreads, Placements.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_apiserver::object::{Autoscaler, Budget, Name, Object, Pod, Stored, WorkloadSpread};
use strew_apiserver::{Selection, Tables};
use strew_cluster::NodeIdx;
use strew_manifest::read::KubeObject;

use super::{
    AutoscalerValues, BudgetValues, ClaimValues, EndpointValues, PlacementValues, ServiceValues,
    VolumeValues, WorkloadSpreadValues,
};
use crate::cluster_state::ClusterState;
use crate::placement::PlacementView;

/// Every Service with its endpoints, by namespace and name.
pub fn services(tables: &Tables) -> Vec<ServiceValues> {
    let services = tables.all_plain().filter_map(|plain| {
        let KubeObject::Service(service) = &plain.object else {
            return None;
        };
        let spec = service.spec.as_ref();
        let selector = spec.and_then(|spec| spec.selector.as_ref());
        let selector = selector.filter(|pairs| !pairs.is_empty());
        let selection = selector.map(Selection::of_pairs);
        let Name { namespace, name } = &plain.meta.name;
        let pods = selected(tables, namespace, selection.as_ref());
        let (ready, others) = pods.into_iter().partition(|pod| is_ready(pod));
        let endpoint = |pod: &Arc<Pod>| EndpointValues {
            pod: pod.meta.name.name.to_string(),
            node: pod.node.as_deref().map(str::to_owned),
        };
        Some(ServiceValues {
            namespace: namespace.to_string(),
            name: name.to_string(),
            endpoints: Vec::into_iter(ready).map(endpoint).collect(),
            not_ready: names(others),
        })
    });
    services.collect()
}

/// Objects beside workloads and nodes.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) services: Vec<ServiceValues>,
    pub(super) budgets: Vec<BudgetValues>,
    pub(super) claims: Vec<ClaimValues>,
    pub(super) volumes: Vec<VolumeValues>,
    pub(super) autoscalers: Vec<AutoscalerValues>,
    pub(super) workload_spreads: Vec<WorkloadSpreadValues>,
    pub(super) placements: Vec<PlacementValues>,
}

impl Objects {
    pub(super) fn of(tables: &Tables, world: &ClusterState) -> Self {
        let mut all = Self {
            services: services(tables),
            ..Self::default()
        };
        let plain = tables.all_plain().map(|plain| plain.object.clone());
        let stored = tables.of::<Budget>().iter();
        let stored = stored.map(|o| Stored::into_object(o.clone()));
        let scalers = tables.of::<Autoscaler>().iter();
        let scalers = scalers.map(|o| Stored::into_object(o.clone()));
        let spreads = tables.of::<WorkloadSpread>().iter();
        let spreads = spreads.map(|o| Stored::into_object(o.clone()));
        let others = stored.chain(scalers).chain(spreads);
        let others = others.map(|object: Object| object.to_kube());
        plain
            .chain(others)
            .for_each(|object| all.add(&object, tables, world));
        let placements = PlacementView::all(tables).into_values();
        all.placements = placements.map(|view| PlacementValues::of(&view)).collect();
        all
    }

    fn add(&mut self, object: &KubeObject, tables: &Tables, world: &ClusterState) {
        let Some(metadata) = object.metadata() else {
            return;
        };
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let name = metadata.name.clone().unwrap_or_default();
        match object {
            KubeObject::PodDisruptionBudget(budget) => {
                let spec = budget.spec.as_ref();
                let selection = spec.and_then(|spec| Selection::of(spec.selector.as_ref()?));
                let pods = selected(tables, &Arc::from(&*namespace), selection.as_ref());
                let text = |amount: Option<&IntOrString>| amount.map(int_or_string);
                self.budgets.push(BudgetValues {
                    namespace,
                    name,
                    min_available: text(spec.and_then(|spec| spec.min_available.as_ref())),
                    max_unavailable: text(spec.and_then(|spec| spec.max_unavailable.as_ref())),
                    healthy: pods.iter().filter(|pod| is_ready(pod)).count(),
                    pods: names(pods),
                    disruptions_allowed: { budget.status.as_ref() }
                        .and_then(|status| status.disruptions_allowed),
                });
            }
            KubeObject::PersistentVolumeClaim(claim) => {
                let spec = claim.spec.as_ref();
                self.claims.push(ClaimValues {
                    namespace,
                    name,
                    volume: spec.and_then(|spec| spec.volume_name.clone()),
                    class: spec.and_then(|spec| spec.storage_class_name.clone()),
                });
            }
            KubeObject::PersistentVolume(volume) => {
                let claim = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref());
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                self.volumes.push(VolumeValues {
                    claim: claim.map(|c| format!("{}/{}", text(&c.namespace), text(&c.name))),
                    nodes: nodes_of_volume(world, &name),
                    name,
                });
            }
            KubeObject::HorizontalPodAutoscaler(scaler) => {
                let spec = &scaler.spec;
                let target = &spec.scale_target_ref;
                self.autoscalers.push(AutoscalerValues {
                    namespace,
                    name,
                    target: format!("{}/{}", target.kind, target.name),
                    min: spec.min_replicas.unwrap_or(1),
                    max: spec.max_replicas,
                });
            }
            KubeObject::WorkloadSpread(spread) => {
                let spec = spread.spec.as_ref();
                let target = spec.and_then(|spec| spec.target_reference.as_ref());
                let subsets = spec.iter().flat_map(|spec| &spec.subsets);
                self.workload_spreads.push(WorkloadSpreadValues {
                    namespace,
                    name,
                    target: target.map(|target| format!("{}/{}", target.kind, target.name)),
                    subsets: subsets.map(|subset| subset.name.clone()).collect(),
                });
            }
            _ => {}
        }
    }
}

impl PlacementValues {
    fn of(view: &PlacementView) -> Self {
        let (namespace, name) = view.key();
        let mut clusters: Vec<String> = view.clusters().map(|(name, _)| name.to_owned()).collect();
        clusters.sort();
        Self {
            namespace,
            name,
            wanted: view.wanted(),
            clusters,
        }
    }
}

/// The pods of a namespace that a selector selects and that have not finished; none without a selector.
fn selected<'a>(
    tables: &'a Tables,
    namespace: &Arc<str>,
    selection: Option<&Selection>,
) -> Vec<&'a Arc<Pod>> {
    let Some(selection) = selection else {
        return Vec::new();
    };
    let pods = tables.of::<Pod>().in_namespace(namespace);
    let pods = pods.filter(|pod| !pod.is_finished() && selection.matches(&pod.meta.labels));
    pods.collect()
}

fn is_ready(pod: &Pod) -> bool {
    pod.is_ready() && !pod.meta.is_terminating()
}

fn names(pods: Vec<&Arc<Pod>>) -> Vec<String> {
    let names = pods.into_iter().map(|pod| pod.meta.name.name.to_string());
    names.collect()
}

fn int_or_string(amount: &IntOrString) -> String {
    match amount {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

/// The nodes that a volume can be mounted on, by name; `None` if it names no place.
fn nodes_of_volume(world: &ClusterState, name: &str) -> Option<Vec<String>> {
    let cluster = &world.cluster;
    let volume = cluster.volumes().volume(cluster.names.get(name)?)?;
    if volume.terms.is_none() && volume.zones.is_empty() {
        return None;
    }
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    let facts = rows.filter_map(|node| cluster.node(node).fact());
    let admitted = facts.filter(|fact| volume.admits(&fact.labels, &cluster.names));
    let names = admitted.map(|fact| cluster.names.text(fact.name).to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Some(names)
}
