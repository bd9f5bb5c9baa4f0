//! ResourceQuotas: recounts the usage of a namespace after deletions.
//!
//! The server increases the usage in each request; this controller decreases it. Only pods are counted: the usage of
//! other resources keeps its value, at first none. A recount visits all pods of the namespace; changes of one instant
//! cause one.
//!
//! Source: spec/controllers §10; upstream `pkg/controller/resourcequota`, v1.36.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use strew_apiserver::admission::quota::used_by_pods;
use strew_apiserver::object::{Key, Kind, Name, Object, Plain, Pod, moment};
use strew_apiserver::{ApiError, Tables};
use strew_manifest::read::KubeObject;
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::workers;

/// `--resource-quota-sync-period`
const RESYNC: Span = Span::from_secs(300);

/// The resource quota controller.
#[derive(Debug, Default)]
pub struct Quotas {
    quotas: std::collections::BTreeSet<Name>,
}

impl Quotas {
    /// A controller that has seen no quota.
    pub fn new() -> Self {
        Self::default()
    }
}

fn resync() -> Name {
    Name::new("resync", "")
}

fn as_quota(object: Option<&Object>) -> Option<(&Arc<Plain>, &ResourceQuota)> {
    match object {
        Some(Object::Plain(plain)) => match &plain.object {
            KubeObject::ResourceQuota(quota) => Some((plain, quota)),
            _ => None,
        },
        _ => None,
    }
}

/// True if a pod has freed something: it is gone or finished. A pod whose deletion is overdue counts until the resync.
fn gives_back(old: Option<&Pod>, new: Option<&Pod>) -> bool {
    match (old, new) {
        (Some(_), None) => true,
        (Some(old), Some(new)) => {
            old.is_finished() != new.is_finished() || old.meta.uid != new.meta.uid
        }
        (None, _) => false,
    }
}

impl Controller for Quotas {
    fn name(&self) -> &'static str {
        "resourcequota-controller"
    }

    fn n_workers(&self) -> usize {
        workers::QUOTA
    }

    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        queue.add_at(&resync(), now + Span(dice.between(0, RESYNC.0)));
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, _: &Tables, queue: &mut Queue) {
        if let Some((old, new)) = change.of::<Pod>() {
            let namespace = new.or(old).map(|pod| &pod.meta.name.namespace);
            if !gives_back(old, new) {
                return;
            }
            for name in self
                .quotas
                .iter()
                .filter(|name| Some(&name.namespace) == namespace)
            {
                queue.add(name);
            }
            return;
        }
        match (as_quota(change.old), as_quota(change.new)) {
            (Some((old, _)), None) => {
                self.quotas.remove(&old.meta.name);
            }
            (old, Some((plain, quota))) => {
                self.quotas.insert(plain.meta.name.clone());
                if old.is_none_or(|(_, old)| old.spec != quota.spec) {
                    queue.add(&plain.meta.name);
                }
            }
            (None, None) => {}
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        if name.name.is_empty() {
            for quota in &self.quotas {
                cx.queue.add(quota);
            }
            cx.queue.add_at(&resync(), cx.now + RESYNC);
            return Ok(());
        }
        let key = Key {
            kind: Kind::Other("ResourceQuota".into()),
            name: name.clone(),
        };
        let found = cx.cache.find(&key);
        let Some((plain, quota)) = as_quota(found.as_ref()) else {
            return Ok(());
        };
        let pods: Vec<_> = cx
            .cache
            .of::<Pod>()
            .in_namespace(&name.namespace)
            .map(|pod| pod.to_wire())
            .collect();
        let counted = recounted(quota, &pods, cx.now);
        if counted == *quota {
            return Ok(());
        }
        let mut plain = Plain::clone(plain);
        plain.object = counted.into();
        // Writes with the cached version, so that later charges of the server are not overwritten.
        match cx.api.update_status(Object::Plain(Arc::new(plain))) {
            Ok(_) | Err(ApiError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The quota with the recounted usage and the limits of its spec.
fn recounted(
    quota: &ResourceQuota,
    pods: &[k8s_openapi::api::core::v1::Pod],
    now: Instant,
) -> ResourceQuota {
    let mut counted = quota.clone();
    let hard = quota
        .spec
        .as_ref()
        .and_then(|spec| spec.hard.clone())
        .unwrap_or_default();
    let used_by_pods = used_by_pods(quota, pods, moment::to_wire(now).0);
    let status = counted.status.get_or_insert_default();
    let before = status.used.take().unwrap_or_default();
    let used = hard.keys().map(|name| {
        let known = used_by_pods.get(name).or_else(|| before.get(name));
        (
            name.clone(),
            known.cloned().unwrap_or_else(|| Quantity("0".to_owned())),
        )
    });
    status.used = Some(used.collect());
    status.hard = Some(hard);
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small_world::SmallCluster;
    use serde_json::json;

    fn used(world: &SmallCluster) -> String {
        let key = Key {
            kind: Kind::Other("ResourceQuota".into()),
            name: Name::new("default", "q"),
        };
        let found = world.server.store.find(&key);
        let (_, quota) = as_quota(found.as_ref()).unwrap();
        let status = quota.status.as_ref().unwrap();
        let used = status
            .used
            .iter()
            .flatten()
            .map(|(name, amount)| format!("{name}={}", amount.0));
        used.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn usage_falls_when_pods_finish_or_go() {
        let mut world = SmallCluster::new(1, vec![Box::new(Quotas::new())]);
        world.add_node("n", "a");
        let cpu = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}});
        for pod in ["p", "q"] {
            world.add_pod(pod, "n", cpu.clone());
        }
        let hard =
            json!({"pods": "5", "requests.cpu": "2", "count/pods": "9", "count/secrets": "3"});
        let wire = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
        let quota: ResourceQuota = serde_json::from_value(wire).unwrap();
        world.add(quota);
        world.run_until(1);
        assert_eq!(
            used(&world),
            "count/pods=2 count/secrets=0 pods=2 requests.cpu=1"
        );
        world.change(Kind::Pod, "p", |object| {
            if let Object::Pod(pod) = object {
                Arc::make_mut(pod).status.phase = strew_apiserver::object::Phase::Succeeded;
            }
        });
        world.run_until(2);
        assert_eq!(
            used(&world),
            "count/pods=2 count/secrets=0 pods=1 requests.cpu=500m"
        );
        world.change(Kind::Pod, "q", |object| {
            let at = crate::small_world::START + Span::from_secs(9);
            let grace = Span::from_secs(7);
            object.meta_mut().deletion = Some(strew_apiserver::object::Deletion { at, grace });
        });
        world.run_until(10);
        assert_eq!(
            used(&world),
            "count/pods=1 count/secrets=0 pods=0 requests.cpu=0"
        );
    }
}
