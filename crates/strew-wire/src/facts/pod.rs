//! Converts a Pod to a fact.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_cluster::{
    AffinityTerm, HostPort, NodeAffinity, OwnerKind, OwnerRef, PodAffinity, PodClaim, PodFact,
    PodSpec, Unsupported,
};
use strew_model::{Interner, Symbol, Toleration, TolerationOperator};

use super::PodFacts;
use super::amounts::{is_sidecar, pod_amounts};
use super::labels;
use super::node::effect;
use super::selectors::{node_selector_term, selector, spread_constraint};
use strew_manifest::field::FieldError;

/// A pod as a fact; `None` if it has finished (see [`PodFacts::fact`]).
///
/// # Errors
/// Each quantity that cannot be used.
pub fn pod(pod: &core::Pod, names: &mut Interner) -> Result<Option<PodFact>, Vec<FieldError>> {
    PodFacts::default().fact(pod, names)
}

/// The spec of a template's pods: the part of a [`PodFact`] that does not depend on a pod's status.
///
/// # Errors
/// Each quantity that cannot be used.
pub fn template_spec(
    spec: &core::PodSpec,
    names: &mut Interner,
) -> Result<PodSpec, Vec<FieldError>> {
    pod_spec(Some(spec), None, names)
}

/// The kind of a controller, as far as the deduction of selectors distinguishes it.
pub fn owner_kind(api_version: &str, kind: &str) -> OwnerKind {
    match (api_version, kind) {
        ("v1", "ReplicationController") => OwnerKind::ReplicationController,
        ("apps/v1", "ReplicaSet") => OwnerKind::ReplicaSet,
        ("apps/v1", "StatefulSet") => OwnerKind::StatefulSet,
        _ => OwnerKind::Other,
    }
}

/// The controller of an object.
pub fn owner_ref(metadata: &ObjectMeta, names: &mut Interner) -> Option<OwnerRef> {
    let mut references = metadata.owner_references.iter().flatten();
    let controller = references.find(|r| r.controller == Some(true))?;
    Some(OwnerRef {
        kind: owner_kind(&controller.api_version, &controller.kind),
        name: names.intern(&controller.name),
    })
}

pub(super) fn pod_spec(
    spec: Option<&core::PodSpec>,
    status: Option<&core::PodStatus>,
    names: &mut Interner,
) -> Result<PodSpec, Vec<FieldError>> {
    let Some(spec) = spec else {
        return Ok(PodSpec::default());
    };
    let amounts = pod_amounts(spec, status, names)?;
    let mut unsupported = unsupported(spec, names);
    let affinity = spec.affinity.as_ref();
    let node_affinity = affinity.and_then(|a| a.node_affinity.as_ref());
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let image_volumes = spec
        .volumes
        .iter()
        .flatten()
        .filter_map(|v| v.image.as_ref()?.reference.as_ref());
    let images = containers
        .clone()
        .filter_map(|c| c.image.as_ref())
        .chain(image_volumes);
    let images: Box<[Symbol]> = images
        .filter(|i| !i.is_empty())
        .map(|i| names.intern(&normalized(i)))
        .collect();
    let spread = spread(spec, &mut unsupported, names);
    Ok(PodSpec {
        scheduler_name: names.intern(
            spec.scheduler_name
                .as_deref()
                .unwrap_or("default-scheduler"),
        ),
        priority: spec.priority.unwrap_or(0),
        never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
        requests: amounts.requests,
        scored: amounts.scored,
        used: amounts.used,
        used_scored: amounts.used_scored,
        node_affinity: required_node_affinity(spec, names),
        preferred_nodes: node_affinity
            .and_then(|a| {
                a.preferred_during_scheduling_ignored_during_execution
                    .as_ref()
            })
            .into_iter()
            .flatten()
            .filter(|preferred| preferred.weight != 0)
            .map(|preferred| {
                (
                    preferred.weight,
                    node_selector_term(&preferred.preference, names),
                )
            })
            .collect(),
        tolerations: tolerations(spec, names),
        host_ports: host_ports(spec, names),
        images,
        containers: containers.count() as u32,
        spread,
        affinity: pod_affinity(affinity, &mut unsupported, names),
        gates: spec
            .scheduling_gates
            .iter()
            .flatten()
            .map(|g| names.intern(&g.name))
            .collect(),
        claims: claims(spec, names),
        unsupported: unsupported.into(),
    })
}

/// The volumes of the pod that use a claim.
fn claims(spec: &core::PodSpec, names: &mut Interner) -> Box<[PodClaim]> {
    let claim = |volume: &core::Volume| {
        let source = volume.persistent_volume_claim.as_ref();
        let is_claim = source.is_some() || volume.ephemeral.is_some();
        is_claim.then(|| PodClaim {
            volume: names.intern(&volume.name),
            named: source.map(|source| names.intern(&source.claim_name)),
        })
    };
    spec.volumes.iter().flatten().filter_map(claim).collect()
}

/// An image's name, with `:latest` if it has no tag.
fn normalized(image: &str) -> String {
    match (image.rfind(':'), image.rfind('/')) {
        (Some(colon), slash) if slash.is_none_or(|slash| colon > slash) => image.to_owned(),
        _ => format!("{image}:latest"),
    }
}

/// Required node affinity, as written.
pub(crate) fn required_terms(spec: &core::PodSpec) -> Option<&core::NodeSelector> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()
}

/// `spec.nodeSelector` and required node affinity.
pub fn required_node_affinity(spec: &core::PodSpec, names: &mut Interner) -> NodeAffinity {
    let required = required_terms(spec);
    let terms = required.map(|r| {
        r.node_selector_terms
            .iter()
            .map(|t| node_selector_term(t, names))
            .collect()
    });
    NodeAffinity {
        terms,
        node_selector: labels(spec.node_selector.as_ref(), names),
    }
}

/// `spec.tolerations`.
pub fn tolerations(spec: &core::PodSpec, names: &mut Interner) -> Box<[Toleration]> {
    let wire = spec.tolerations.iter().flatten();
    wire.map(|t| toleration(t, names)).collect()
}

/// A toleration, without `tolerationSeconds`.
pub fn toleration(wire: &core::Toleration, names: &mut Interner) -> Toleration {
    let given =
        |text: &Option<String>| text.as_deref().filter(|t| !t.is_empty()).map(str::to_owned);
    let named_effect = given(&wire.effect);
    let known_effect = named_effect.as_deref().map(effect);
    let operator = match (wire.operator.as_deref(), known_effect) {
        // An unknown effect matches no taint.
        (_, Some(None)) => TolerationOperator::Never,
        (None | Some("" | "Equal"), _) => TolerationOperator::Equal,
        (Some("Exists"), _) => TolerationOperator::Exists,
        _ => TolerationOperator::Never,
    };
    Toleration {
        key: given(&wire.key).map(|key| names.intern(&key)),
        operator,
        value: names.intern(wire.value.as_deref().unwrap_or_default()),
        effect: known_effect.flatten(),
    }
}

fn host_ports(spec: &core::PodSpec, names: &mut Interner) -> Box<[HostPort]> {
    const ANY_IP: &str = "0.0.0.0";
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|c| is_sidecar(c));
    let ports = spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|c| c.ports.iter().flatten());
    let held = ports.filter_map(|p| Some((p, p.host_port.filter(|&port| port > 0)?)));
    let host_port = |(wire, port): (&core::ContainerPort, i32)| {
        let ip = wire
            .host_ip
            .as_deref()
            .filter(|ip| !ip.is_empty())
            .unwrap_or(ANY_IP);
        let protocol = wire
            .protocol
            .as_deref()
            .filter(|p| !p.is_empty())
            .unwrap_or("TCP");
        HostPort {
            ip: names.intern(ip),
            any_ip: ip == ANY_IP,
            protocol: names.intern(protocol),
            port,
        }
    };
    held.map(host_port).collect()
}

fn spread(
    spec: &core::PodSpec,
    unsupported: &mut Vec<Unsupported>,
    names: &mut Interner,
) -> Box<[strew_cluster::SpreadConstraint]> {
    let mut constraints = Vec::new();
    for (i, wire) in spec
        .topology_spread_constraints
        .iter()
        .flatten()
        .enumerate()
    {
        match spread_constraint(wire, names) {
            Ok(constraint) => constraints.push(constraint),
            Err(_) => {
                let place = format!("spec.topologySpreadConstraints[{i}].labelSelector");
                unsupported.push(Unsupported::BadSelector(names.intern(&place)));
            }
        }
    }
    constraints.into()
}

fn pod_affinity(
    affinity: Option<&core::Affinity>,
    unsupported: &mut Vec<Unsupported>,
    names: &mut Interner,
) -> PodAffinity {
    let mut term = |wire: &core::PodAffinityTerm, place: &str| {
        let read = affinity_term(wire, names);
        if read.is_none() {
            unsupported.push(Unsupported::BadSelector(names.intern(place)));
        }
        read
    };
    let towards = affinity.and_then(|a| a.pod_affinity.as_ref());
    let away = affinity.and_then(|a| a.pod_anti_affinity.as_ref());
    let required = towards.and_then(|a| {
        a.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let required = required
        .into_iter()
        .flatten()
        .filter_map(|t| term(t, "spec.affinity.podAffinity"))
        .collect();
    let required_anti = away.and_then(|a| {
        a.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let required_anti = required_anti
        .into_iter()
        .flatten()
        .filter_map(|t| term(t, "spec.affinity.podAntiAffinity"))
        .collect();
    let preferred = towards.and_then(|a| {
        a.preferred_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let disliked = away.and_then(|a| {
        a.preferred_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let liked = preferred.into_iter().flatten().map(|p| (p.weight, p));
    let disliked = disliked
        .into_iter()
        .flatten()
        .map(|p| (p.weight.saturating_neg(), p));
    let weighted = liked.chain(disliked).filter(|&(weight, _)| weight != 0);
    let preferred = weighted
        .filter_map(|(weight, p)| Some((weight, term(&p.pod_affinity_term, "spec.affinity")?)))
        .collect();
    PodAffinity {
        required,
        required_anti,
        preferred,
    }
}

fn affinity_term(wire: &core::PodAffinityTerm, names: &mut Interner) -> Option<AffinityTerm> {
    Some(AffinityTerm {
        key: names.intern(&wire.topology_key),
        selector: selector(wire.label_selector.as_ref(), names).ok()?,
        namespaces: wire
            .namespaces
            .iter()
            .flatten()
            .map(|n| names.intern(n))
            .collect(),
        namespace_selector: selector(wire.namespace_selector.as_ref(), names).ok()?,
    })
}

fn unsupported(spec: &core::PodSpec, names: &mut Interner) -> Vec<Unsupported> {
    let mut needs = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        if volume.gce_persistent_disk.is_some()
            || volume.aws_elastic_block_store.is_some()
            || volume.iscsi.is_some()
            || volume.rbd.is_some()
        {
            needs.push(Unsupported::ExclusiveDisk(names.intern(&volume.name)));
        } else if volume.azure_disk.is_some() || volume.cinder.is_some() {
            needs.push(Unsupported::CountedDisk(names.intern(&volume.name)));
        }
    }
    for claim in spec.resource_claims.iter().flatten() {
        needs.push(Unsupported::ResourceClaim(names.intern(&claim.name)));
    }
    if let Some(group) = spec
        .scheduling_group
        .as_ref()
        .and_then(|g| g.pod_group_name.as_ref())
    {
        needs.push(Unsupported::PodGroup(names.intern(group)));
    }
    needs
}
