//! A row of the table of nodes.

use strew_model::{Holds, Marks, Resources, Symbol};

use super::Cluster;
use crate::fact::NodeFact;
use crate::index::PodIdx;
use crate::pod_spec::{HostPort, PodSpec};
use crate::volumes::ClaimKey;

/// A node with its pods and their usage.
#[derive(Debug, Clone)]
pub struct NodeRow {
    pub(super) name: Symbol,
    pub(super) fact: Option<NodeFact>,
    pub(super) pods: Vec<PodIdx>,
    pub(super) used: Resources,
    pub(super) used_scored: (i64, i64),
    pub(super) host_ports: Vec<HostPort>,
    pub(super) claims: Vec<ClaimKey>,
}

impl NodeRow {
    pub(super) fn new(name: Symbol) -> Self {
        Self {
            name,
            fact: None,
            pods: Vec::new(),
            used: Resources::default(),
            used_scored: (0, 0),
            host_ports: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> Symbol {
        self.name
    }

    /// Its fact; `None` if only pods name it.
    pub fn fact(&self) -> Option<&NodeFact> {
        self.fact.as_ref()
    }

    /// The pods on it, in order of arrival.
    pub fn pods(&self) -> &[PodIdx] {
        &self.pods
    }

    /// The resources that they use.
    pub fn used(&self) -> &Resources {
        &self.used
    }

    /// CPU (milli) and memory (bytes) of its pods for scores: containers without a request count with 100m, 200Mi.
    pub fn used_scored(&self) -> (i64, i64) {
        self.used_scored
    }

    /// The host ports that they hold.
    pub fn host_ports(&self) -> &[HostPort] {
        &self.host_ports
    }

    /// The claims that its pods use, once per use, in no particular order.
    pub fn claims(&self) -> &[ClaimKey] {
        &self.claims
    }

    /// Adds a pod, on a copy of the row.
    pub fn try_with(&mut self, pod: PodIdx, cluster: &Cluster) {
        self.pods.push(pod);
        self.account(cluster.spec_of(pod), 1);
        cluster
            .claims_of(pod)
            .for_each(|key| self.use_claim(key, true));
    }

    /// Removes a pod, on a copy of the row.
    pub fn try_without(&mut self, pod: PodIdx, cluster: &Cluster) {
        self.pods.retain(|&p| p != pod);
        self.account(cluster.spec_of(pod), -1);
        cluster
            .claims_of(pod)
            .for_each(|key| self.use_claim(key, false));
    }

    pub(super) fn use_claim(&mut self, key: ClaimKey, comes: bool) {
        if comes {
            self.claims.push(key);
        } else if let Some(i) = self.claims.iter().position(|k| *k == key) {
            self.claims.swap_remove(i);
        }
    }

    pub(super) fn account(&mut self, spec: &PodSpec, times: i64) {
        self.used.add(&spec.used, times);
        let plus = |own: &mut i64, more: i64| *own = own.saturating_add(more.saturating_mul(times));
        plus(&mut self.used_scored.0, spec.used_scored.0);
        plus(&mut self.used_scored.1, spec.used_scored.1);
        for port in &spec.host_ports {
            if times > 0 {
                self.host_ports.push(*port);
            } else if let Some(i) = self.host_ports.iter().position(|p| p == port) {
                self.host_ports.swap_remove(i);
            }
        }
    }
}

impl Holds for NodeRow {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            name,
            fact,
            pods: _,
            used,
            used_scored: _,
            host_ports,
            claims,
        } = self;
        name.mark(marks);
        fact.mark(marks);
        used.mark(marks);
        host_ports.as_slice().mark(marks);
        claims.as_slice().mark(marks);
    }
}
