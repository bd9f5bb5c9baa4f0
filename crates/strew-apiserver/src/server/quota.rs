//! ResourceQuotas: each request increases usage. Source: spec/controllers §10.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceQuota;
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;

use super::Server;
use crate::ApiError;
use crate::admission::quota::charge_pod;
use crate::object::{Object, Plain, Pod, moment};

impl Server {
    /// Charges a new pod to the quotas of its namespace.
    pub(super) fn charge(&mut self, now: Instant, pod: &Pod) -> Result<(), ApiError> {
        let namespace = &pod.meta.name.namespace;
        let is_here = |plain: &&Arc<Plain>| {
            plain.meta.name.namespace == *namespace
                && matches!(plain.object, KubeObject::ResourceQuota(_))
        };
        if !self.has_quotas {
            return Ok(());
        }
        let found: Vec<Arc<Plain>> = self.tables.all_plain().filter(is_here).cloned().collect();
        if found.is_empty() {
            return Ok(());
        }
        let quotas: Vec<ResourceQuota> = found
            .iter()
            .filter_map(|plain| match &plain.object {
                KubeObject::ResourceQuota(quota) => Some((**quota).clone()),
                _ => None,
            })
            .collect();
        let charges = charge_pod(&pod.to_wire(), &quotas, moment::to_wire(now).0);
        let charges = charges.map_err(|refusal| ApiError::Forbidden(refusal.to_string().into()))?;
        for charge in charges {
            let mut plain = (*found[charge.quota_idx]).clone();
            if let KubeObject::ResourceQuota(quota) = &mut plain.object {
                quota.status.get_or_insert_default().used = Some(charge.used);
            }
            self.put(Object::Plain(Arc::new(plain)));
        }
        Ok(())
    }
}
