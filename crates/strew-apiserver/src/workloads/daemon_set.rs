//! DaemonSets: one pod for each node that should run it.

use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, PodTemplateSpec, Toleration,
};

use super::eligibility::{Eligibility, NodeView};

/// Tolerations that daemon pods get besides those of the template: key, effect, only with host network. Source:
/// `AddOrUpdateDaemonPodTolerations`.
const TOLERATED: [(&str, &str, bool); 7] = [
    ("node.kubernetes.io/not-ready", "NoExecute", false),
    ("node.kubernetes.io/unreachable", "NoExecute", false),
    ("node.kubernetes.io/disk-pressure", "NoSchedule", false),
    ("node.kubernetes.io/memory-pressure", "NoSchedule", false),
    ("node.kubernetes.io/pid-pressure", "NoSchedule", false),
    ("node.kubernetes.io/unschedulable", "NoSchedule", false),
    ("node.kubernetes.io/network-unavailable", "NoSchedule", true),
];

const NODE_NAME_FIELD: &str = "metadata.name";

/// A DaemonSet's template: its requirements for nodes, and its pods.
#[derive(Debug)]
pub struct DaemonTemplate {
    /// The template with the added tolerations.
    template: PodTemplateSpec,
    eligibility: Eligibility,
}

/// Whether a daemon pod belongs on a node. Source: `NodeShouldRunDaemonPod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DaemonFit {
    /// A pod must be created there.
    pub should_run: bool,
    /// An existing pod may stay.
    pub should_continue: bool,
}

impl DaemonTemplate {
    /// From a stored template.
    pub fn new(template: &PodTemplateSpec) -> Self {
        let template = with_tolerations(template);
        let spec = template.spec.clone().unwrap_or_default();
        Self {
            eligibility: Eligibility::of(&spec),
            template,
        }
    }

    /// Whether its pod belongs on a node. Resources, ports, topology spread and other pods do not count.
    pub fn fit(&mut self, node: NodeView<'_>) -> DaemonFit {
        let spec = self.template.spec.as_ref();
        let named = spec.and_then(|spec| spec.node_name.as_deref());
        if named.is_some_and(|named| !named.is_empty() && named != node.name)
            || !self.eligibility.affinity_matches(node)
        {
            return DaemonFit::default();
        }
        DaemonFit {
            should_run: self.eligibility.tolerates(node),
            should_continue: self.eligibility.tolerates_staying(node),
        }
    }

    /// The spec of its pod for a node.
    pub fn pod_spec(&self, node: &str) -> PodSpec {
        let mut spec = self.template.spec.clone().unwrap_or_default();
        pin(&mut spec, node);
        spec
    }
}

/// The node that a daemon pod is on, or must go to.
pub fn daemon_pod_node(spec: &PodSpec) -> Option<&str> {
    if let Some(node) = spec.node_name.as_deref().filter(|node| !node.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let mut terms = required.node_selector_terms.iter();
    let fields = terms.find_map(|term| term.match_fields.as_ref())?;
    let field = fields.iter().find(|field| field.key == NODE_NAME_FIELD)?;
    Some(field.values.as_ref()?.first()?.as_str())
}

fn with_tolerations(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(spec) = &mut template.spec {
        let host_network = spec.host_network == Some(true);
        let tolerations = spec.tolerations.get_or_insert_default();
        for (key, effect, only_host_network) in TOLERATED {
            if host_network || !only_host_network {
                add_or_update(tolerations, toleration(key, effect));
            }
        }
    }
    template
}

fn toleration(key: &str, effect: &str) -> Toleration {
    Toleration {
        key: Some(key.to_string()),
        operator: Some("Exists".to_string()),
        effect: Some(effect.to_string()),
        ..Toleration::default()
    }
}

/// Replaces a toleration with the same key, operator, effect and value, which loses its time limit.
fn add_or_update(tolerations: &mut Vec<Toleration>, added: Toleration) {
    let same = tolerations.iter_mut().find(|given| {
        given.key == added.key
            && given.operator == added.operator
            && given.effect == added.effect
            && given.value.as_deref().unwrap_or_default().is_empty()
    });
    match same {
        Some(given) => *given = added,
        None => tolerations.push(added),
    }
}

/// Replaces all required node affinity by the node's name. Source: `ReplaceDaemonSetPodNodeNameNodeAffinity`.
fn pin(spec: &mut PodSpec, node: &str) {
    spec.node_name = None;
    let affinity = spec.affinity.get_or_insert_default();
    let affinity = affinity.node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_expressions: None,
            match_fields: Some(vec![NodeSelectorRequirement {
                key: NODE_NAME_FIELD.to_string(),
                operator: "In".to_string(),
                values: Some(vec![node.to_string()]),
            }]),
        }],
    });
}
