//! Claims, volumes, classes and limits of random worlds; and the comparison with the oracle.

use std::sync::Arc;

use strew_cluster::volumes::AccessModes;
use strew_cluster::{ClaimFact, PodClaim, PodIdx, StorageClassFact, VolumeFact};
use strew_model::{
    Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Symbol, well_known,
};
use strew_scheduler::engine::Evaluation;
use strew_scheduler::naive::NaiveVolumes;
use strew_scheduler::{PluginId, Unfit};

use super::RandomCluster;

/// The plugins that look at volumes, first and last in their order.
const FIRST: PluginId = PluginId::VolumeRestrictions;
const LAST: PluginId = PluginId::VolumeZone;

impl RandomCluster {
    /// A world whose pods have claims, mostly ones that are bound.
    pub(crate) fn storing(seed: u64) -> Self {
        let mut world = Self {
            stores: true,
            ..Self::new(seed)
        };
        (0..30).for_each(|_| world.set_storage());
        world
    }

    fn named(&mut self, kind: &str, count: u64) -> Symbol {
        let name = format!("{kind}{}", self.dice.between(0, count - 1));
        self.cluster.names.intern(&name)
    }

    /// The claims of a pod of this name.
    pub(super) fn claims(&mut self, pod: &str) -> Box<[PodClaim]> {
        if !self.stores || self.dice.chance(1, 4) {
            return Box::default();
        }
        let volume = self.cluster.names.intern("data");
        if self.dice.chance(1, 8) {
            if self.dice.chance(3, 4) {
                let claim = self.cluster.names.intern(&format!("{pod}-data"));
                let owner = self.dice.chance(3, 4).then(|| Arc::from(pod));
                self.set_claim(claim, owner);
            }
            let named = None;
            return [PodClaim { volume, named }].into();
        }
        let count = self.dice.between(1, 2);
        (0..count)
            .map(|_| PodClaim {
                volume,
                named: Some(self.named("claim", 8)),
            })
            .collect()
    }

    fn set_claim(&mut self, name: Symbol, owner: Option<Arc<str>>) {
        let namespaces = self.namespaces.clone();
        let fact = ClaimFact {
            volume: self.dice.chance(3, 4).then(|| self.named("pv", 6)),
            bound: self.dice.chance(19, 20),
            unattended: self.dice.chance(1, 4),
            lost: self.dice.chance(1, 40),
            terminating: self.dice.chance(1, 40),
            once_pod: self.dice.chance(1, 6),
            class: self.dice.chance(2, 3).then(|| self.named("class", 2)),
            owner,
            uid: self.dice.pick(&["u0", "u1"]).to_owned().into(),
            size: self.dice.between(0, 3) as i64,
            modes: self.modes(),
            block: self.dice.chance(1, 8),
            selector: None,
            selected: None,
        };
        let there = self.dice.chance(19, 20).then_some(fact);
        for namespace in namespaces {
            self.cluster.set_claim(namespace, name, there.clone());
        }
    }

    fn modes(&mut self) -> AccessModes {
        let names = AccessModes::NAMES;
        let count = self.dice.between(0, 2);
        let modes: Vec<&str> = (0..count).map(|_| *self.dice.pick(&names[..3])).collect();
        AccessModes::of(modes)
    }

    fn volume(&mut self) -> VolumeFact {
        let zone = |world: &mut Self| *world.dice.pick(&world.zones);
        let terms = match self.dice.between(0, 5) {
            0 => Some([self.in_zone(), self.in_zone()].into()),
            1 => Some([self.in_zone()].into()),
            2 if self.dice.chance(1, 8) => Some(Box::default()),
            _ => None,
        };
        let keys = [
            well_known::ZONE,
            well_known::ZONE_BETA,
            well_known::REGION,
            well_known::REGION_BETA,
        ];
        let zones = match self.dice.chance(1, 4) {
            true => [(*self.dice.pick(&keys), [zone(self), zone(self)].into())].into(),
            false => Box::default(),
        };
        let drivers = [self.named("driver", 2), self.named("driver", 2)];
        let claim = self.dice.chance(1, 4).then(|| {
            let namespace = *self.dice.pick(&self.namespaces);
            let uid = *self.dice.pick(&["", "u0", "u1"]);
            ((namespace, self.named("claim", 8)), Arc::from(uid))
        });
        VolumeFact {
            terms,
            zones,
            class: self.dice.chance(3, 4).then(|| self.named("class", 2)),
            capacity: self.dice.between(0, 4) as i64,
            modes: self.modes(),
            block: self.dice.chance(1, 8),
            labels: Labels::default(),
            claim,
            available: self.dice.chance(7, 8),
            terminating: self.dice.chance(1, 20),
            attached: self
                .dice
                .chance(3, 4)
                .then(|| (drivers[0], self.named("handle", 5))),
        }
    }

    fn in_zone(&mut self) -> NodeSelectorTerm {
        let zone = *self.dice.pick(&self.zones);
        NodeSelectorTerm::AllOf {
            expressions: [NodeExpression {
                key: well_known::ZONE,
                operator: NodeOperator::Label(Operator::In([zone].into())),
            }]
            .into(),
            fields: Box::default(),
        }
    }

    /// Some change of storage.
    pub(super) fn set_storage(&mut self) {
        match self.dice.between(0, 5) {
            0 | 1 => {
                let name = self.named("claim", 8);
                self.set_claim(name, None);
            }
            2 | 3 => {
                let name = self.named("pv", 6);
                let fact = self.volume();
                let there = self.dice.chance(19, 20).then_some(fact);
                self.cluster.set_volume(name, there);
            }
            4 => {
                let name = self.named("class", 2);
                let topologies: Box<[_]> = match self.dice.chance(1, 3) {
                    true => [self.in_zone()].into(),
                    false => Box::default(),
                };
                let fact = StorageClassFact {
                    waits: self.dice.chance(1, 2),
                    driver: self.dice.chance(1, 2).then(|| self.named("driver", 2)),
                    provisions: self.dice.chance(1, 2),
                    topologies,
                };
                let there = self.dice.chance(9, 10).then_some(fact);
                self.cluster.set_storage_class(name, there);
            }
            _ => {
                let node = self.node_name();
                let limit = self.dice.between(0, 4) as i64;
                let limits = [(self.named("driver", 2), limit)].into();
                let there = self.dice.chance(2, 3).then_some(limits);
                self.cluster.set_attach_limits(node, there);
            }
        }
    }

    /// What the volume plugins said, against the oracle.
    pub(super) fn compare_volumes(
        &self,
        pod: PodIdx,
        evaluation: &Evaluation,
        binds: bool,
    ) -> Result<(), String> {
        let naive = NaiveVolumes::new(&self.cluster, pod, binds);
        let outright = naive.pre_filter();
        let refusals = match &evaluation.refused {
            Some(Unfit::PreFilter(ours)) if ours.plugin == PluginId::NodeAffinity => return Ok(()),
            Some(Unfit::NoNodes) => return Ok(()),
            Some(Unfit::PreFilter(ours)) => {
                return match outright.as_ref() == Some(ours) {
                    true => Ok(()),
                    false => Err(format!("volumes: engine {ours:?}, recount {outright:?}")),
                };
            }
            Some(Unfit::EveryNode(refusals)) => Some(refusals),
            None => None,
        };
        if outright.is_some() {
            return Err(format!("volumes: engine passes, recount {outright:?}"));
        }
        for &node in self.cluster.node_order() {
            let ours = refusals.and_then(|refusals| refusals.of(node));
            if ours.is_some_and(|r| r.plugin < FIRST) {
                continue;
            }
            let ours = ours.filter(|r| r.plugin <= LAST);
            let recounted = naive.filter(node, true);
            if recounted.as_ref() != ours {
                return Err(format!(
                    "volumes on {node:?}: engine {ours:?}, recount {recounted:?}"
                ));
            }
        }
        Ok(())
    }
}
