//! Webhook and controller of WorkloadSpreads as components; they start with the first WorkloadSpread.

use strew_apiserver::object::WorkloadSpread;
use strew_model::Prng;
use strew_workloadspread::controller::Effect;

use super::Simulation;
use crate::fault::Hits;
use crate::registration::{HookDeed, RegistrationPlan};
use crate::slot::Slot;
use crate::workloadspread::{SpreadKeeper, Webhook, Webhooks, webhook, webhook_mut, with_webhook};

/// The default number of the webhook's replicas.
pub(super) const REPLICAS: usize = 2;

impl Simulation {
    /// Sets the number of the webhook's replicas. Call it before the first WorkloadSpread; later it restarts all
    /// replicas.
    pub fn set_webhook_replicas(&mut self, n_replicas: usize) {
        self.n_webhooks = n_replicas.max(1);
        if self.spreads.take().is_some() {
            self.begin_spreading();
        }
    }

    /// From now on the webhook's replicas register themselves, and the API server asks only what is registered. Call it
    /// before the first WorkloadSpread; later it restarts all replicas.
    pub fn register_webhooks(&mut self, plan: RegistrationPlan) {
        self.registration = Some(plan);
        if self.spreads.take().is_some() {
            self.begin_spreading();
        }
    }

    /// Does something to the registration; nothing if replicas do not register themselves.
    pub fn act_on_registration(&mut self, deed: HookDeed) {
        let now = self.now;
        with_webhook(&mut self.server, |webhook, server| {
            webhook.act(now, server, deed);
        });
    }

    /// The number of status writes of WorkloadSpreads by all live replicas of the webhook.
    pub fn statuses_written(&self) -> u64 {
        webhook(&self.server).map_or(0, Webhook::n_written)
    }

    /// How often faults have hit the webhook, by kind.
    pub fn webhook_hits(&self) -> Hits {
        webhook(&self.server).map_or_else(Hits::default, |webhook| webhook.replicas.hits.clone())
    }

    /// Starts webhook and controller if there is a WorkloadSpread and they do not run yet.
    pub(crate) fn begin_spreading(&mut self) {
        let has_spreads = !self.server.tables().of::<WorkloadSpread>().is_empty();
        if self.spreads.is_some() || !has_spreads {
            return;
        }
        let dice = Prng::new(self.dice.spreads.next_u64());
        let (blueprint, n) = (self.blueprint.clone(), self.n_webhooks);
        let plan = self.registration.map(|plan| (plan, self.sabotage));
        let world = (self.now, &mut self.server);
        let webhook = Webhook::new(blueprint, n, self.status_write, dice, plan, world);
        if let Some(webhooks) = self.server.webhooks_mut::<Webhooks>() {
            webhooks.pods = Some(webhook);
        }
        self.tell_weather();
        self.spreads = Some(Slot::new(self.spread_keeper()));
        self.judge_webhook();
    }

    /// Lets the controller take one step.
    pub(super) fn step_spreading(&mut self) -> bool {
        let Some(slot) = &mut self.spreads else {
            return false;
        };
        let dice = [&mut self.dice.faults, &mut self.dice.spreads];
        let world = (&mut self.server, &self.faults);
        slot.step(self.now, world, dice, SpreadKeeper::step)
    }

    fn spread_keeper(&mut self) -> SpreadKeeper {
        let seed = self.dice.spreads.next_u64();
        let limits = self.blueprint.limits.spreads;
        SpreadKeeper::new(limits, &self.server, self.now, seed)
    }

    /// True if the next sync of a WorkloadSpread would change something. If a subset has too many pods, those that
    /// became ready last are the surplus. Readiness triggers no sync, so their deletion costs may be out of date.
    pub(crate) fn wants_sync(&self) -> bool {
        let limits = self.blueprint.limits.spreads;
        let mut keeper = SpreadKeeper::fresh(limits, &self.server, self.now);
        let wanted = keeper.wanted(self.now);
        wanted.is_some_and(|effect| !matches!(effect, Effect::Event(_)))
    }

    /// Passes the active faults to the webhook.
    pub(super) fn tell_weather(&mut self) {
        if let Some(webhook) = webhook_mut(&mut self.server) {
            webhook.replicas.faults = self.faults.clone();
        }
    }

    pub(super) fn restart_spreading(&mut self) {
        let now = self.now;
        with_webhook(&mut self.server, |webhook, server| {
            webhook.pass_time(now, server);
        });
        if self.spreads.as_ref().is_some_and(|slot| slot.is_due(now)) {
            self.spreads = Some(Slot::new(self.spread_keeper()));
        }
    }

    pub(super) fn calm_spreading(&mut self) {
        let now = self.now;
        with_webhook(&mut self.server, |webhook, server| {
            webhook.calm(now, server);
        });
        if let Some(slot) = &mut self.spreads {
            slot.calm(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use serde_json::{Value, json};
    use strew_apiserver::DeleteOptions;
    use strew_apiserver::object::{CloneSet, Key, Kind, Name, Object, Pod, ReplicaSet};
    use strew_apiserver::server::Creation;
    use strew_manifest::read::KubeObject;
    use strew_model::Interner;
    use strew_model::time::Span;
    use strew_wire::config::AdmissionOptions;
    use strew_wire::config::{FeatureGates, Given, configure};

    use super::*;
    use crate::fault::Fault;
    use crate::feed::WatchFault;
    use crate::simulation::ControllerMaker;
    use crate::{Blueprint, Settings, Timing};

    /// A ReplicaSet of 2,000 pods with a WorkloadSpread: 1,500 in the first subset, the rest in the second.
    fn world(replicas: usize, controllers: ControllerMaker) -> Simulation {
        let manifests = vec![
            json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "replicas": 2000,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "a"}]},
                    },
                },
            }),
            json!({
                "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "targetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
                    "subsets": [{"name": "own", "maxReplicas": 1500}, {"name": "elastic"}],
                },
            }),
        ];
        let mut sim = simulation(manifests, controllers);
        sim.set_webhook_replicas(replicas);
        sim.watch_closely();
        sim
    }

    fn simulation(manifests: Vec<Value>, controllers: ControllerMaker) -> Simulation {
        let objects = manifests
            .into_iter()
            .map(|manifest| Object::of_wire(KubeObject::of_json(manifest).unwrap()));
        let mut names = Interner::new();
        let configured = configure(Given::Nothing, &FeatureGates::default(), &mut names).unwrap();
        Simulation::new(Settings {
            seed: 7,
            objects: objects.collect(),
            options: AdmissionOptions::KUBERNETES_1_36,
            scheduler: Blueprint::of(&configured, names),
            elects: false,
            controllers,
            timing: Timing::default(),
            groups: Vec::new(),
            autoscaler: None,
        })
    }

    fn pod(sim: &Simulation) -> Object {
        let name = Name::new("default", "web");
        let set = sim.server().tables().get::<ReplicaSet>(&name).unwrap();
        let manifest = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "generateName": "web-", "namespace": "default", "labels": {"app": "web"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": &*set.meta.uid,
                    "controller": true,
                }],
            },
            "spec": {"containers": [{"name": "c", "image": "a"}]},
        });
        Object::of_wire(KubeObject::of_json(manifest).unwrap())
    }

    fn live_until(sim: &mut Simulation, millis: u64) {
        let end = Span::from_millis(millis);
        let ended = sim.run_until(end, &mut |_| ControlFlow::Continue(()));
        assert_eq!(ended, Ok(ControlFlow::Continue(())));
    }

    /// Pods by the subset of their marker.
    fn totals(sim: &Simulation) -> BTreeMap<String, usize> {
        let mut totals = BTreeMap::new();
        for pod in sim.server().tables().of::<Pod>().iter() {
            let marker = pod.meta.annotation("apps.kruise.io/matched-workloadspread");
            let marker: Value = serde_json::from_str(marker.unwrap_or("{}")).unwrap();
            let subset = marker["subset"].as_str().unwrap_or("none").to_owned();
            *totals.entry(subset).or_default() += 1;
        }
        totals
    }

    #[test]
    fn creations_that_wait_share_a_write() {
        // (replicas of the webhook, creations per millisecond)
        for (replicas, at_once) in [(2, 2000), (3, 20)] {
            let mut sim = world(replicas, Arc::new(Vec::new));
            live_until(&mut sim, 1);
            let pod = pod(&sim);
            let mut n_wait = 0;
            for millis in 0..2000 / at_once {
                for _ in 0..at_once {
                    let now = sim.now();
                    let begun = sim.server.begin_create(now, pod.clone()).unwrap();
                    n_wait += usize::from(matches!(begun, Creation::UnderWay(_)));
                }
                live_until(&mut sim, 2 + millis);
            }
            assert!(n_wait > 1000, "{n_wait}");
            live_until(&mut sim, 5_000);
            check(&mut sim);
        }
    }

    #[test]
    fn a_workload_of_two_thousand_pods_needs_few_writes() {
        let mut sim = world(2, Arc::new(crate::controllers));
        live_until(&mut sim, 30_000);
        check(&mut sim);
    }

    /// CloneSets are watched while a WorkloadSpread names one.
    #[test]
    fn a_kind_that_is_named_no_more_is_watched_no_more() {
        let manifests = vec![
            json!({
                "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "a"}]},
                    },
                },
            }),
            json!({
                "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "targetRef": {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"},
                    "subsets": [{"name": "own", "maxReplicas": 2}, {"name": "elastic"}],
                },
            }),
        ];
        let mut sim = simulation(manifests, Arc::new(crate::controllers));
        sim.watch_closely();
        let n_seen = |sim: &Simulation| {
            let keeper = sim.spreads.as_ref().unwrap().alive.as_ref().unwrap();
            keeper.seen().of::<CloneSet>().len()
        };
        live_until(&mut sim, 10_000);
        assert_eq!(n_seen(&sim), 1);
        let expected = [("elastic".to_owned(), 1), ("own".to_owned(), 2)];
        assert_eq!(totals(&sim), expected.into());
        let key = Key {
            kind: Kind::WorkloadSpread,
            name: Name::new("default", "web"),
        };
        sim.delete(&key, &DeleteOptions::default()).unwrap();
        live_until(&mut sim, 20_000);
        assert_eq!(n_seen(&sim), 0);
        sim.audit_rest();
        assert_eq!(sim.violations(), []);
    }

    /// The webhook's watch shows a new ReplicaSet after the controller creates its pods: the webhook waits a second for
    /// it.
    #[test]
    fn a_pod_that_comes_before_its_owner_is_known_waits() {
        assert_eq!(refused_creations(Span::from_millis(900)), 0);
        assert!(refused_creations(Span::from_secs(6)) > 0);
    }

    /// The number of refused creations of a new Deployment's pods while watches are late.
    fn refused_creations(delay: Span) -> usize {
        let spread = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
                "subsets": [{"name": "own", "maxReplicas": 3}, {"name": "elastic"}],
            },
        });
        let mut sim = simulation(vec![spread], Arc::new(crate::controllers));
        sim.watch_closely();
        live_until(&mut sim, 1_000);
        let late = WatchFault {
            delay,
            ..WatchFault::default()
        };
        sim.fault(Fault::Watch(late), Span::from_secs(60));
        let now = sim.now();
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {
                "replicas": 8,
                "selector": {"matchLabels": {"app": "shop"}},
                "template": {
                    "metadata": {"labels": {"app": "shop"}},
                    "spec": {"containers": [{"name": "c", "image": "a"}]},
                },
            },
        });
        let deployment = Object::of_wire(KubeObject::of_json(deployment).unwrap());
        sim.server.create(now, deployment).unwrap();
        live_until(&mut sim, 120_000);
        let expected = [("elastic".to_owned(), 5), ("own".to_owned(), 3)];
        assert_eq!(totals(&sim), expected.into());
        assert_eq!(sim.violations(), []);
        let events = sim.server().events().iter();
        events
            .filter(|event| &*event.reason == "FailedCreate")
            .count()
    }

    /// The subsets have 2,000 pods within the limit, with at most one status write for 20 of them.
    #[track_caller]
    fn check(sim: &mut Simulation) {
        let expected = [("elastic".to_owned(), 500), ("own".to_owned(), 1500)];
        assert_eq!(totals(sim), expected.into());
        assert!(sim.statuses_written() <= 100, "{}", sim.statuses_written());
        assert_eq!(sim.violations(), []);
    }
}
