//! Implements the embedded API server's admission webhooks.

use std::sync::Arc;

use serde_json::Value;
use strew_apiserver::object::{Key, Kind, Name, Object, Pod, WorkloadSpread};
use strew_apiserver::server::{AdmissionRequest, AdmissionWebhooks, Called, LateAnswer, Server};
use strew_apiserver::{ApiError, Tables};
use strew_manifest::kruise::spec::TargetReference;
use strew_manifest::kruise::v1beta1;
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;
use strew_wire::workloadspread::facts::white_list::WhiteList;
use strew_wire::workloadspread::validation::{Context, may_own, validate};

use super::calling::{Asked, Hook};
use super::webhook::Webhook;
use crate::zones::ZoneWebhook;

/// All admission webhooks. The webhook of WorkloadSpreads exists from the start; the webhook of pods starts with the
/// first WorkloadSpread.
#[derive(Default)]
pub(crate) struct Webhooks {
    /// The replicas that review pods; `None` until the first WorkloadSpread.
    pub(crate) pods: Option<Webhook>,
    /// The replicas that review evictions; `None` until the first budget by zone.
    pub(crate) zones: Option<ZoneWebhook>,
}

/// The replicas that a server calls about pods.
pub(crate) fn webhook(server: &Server) -> Option<&Webhook> {
    server.webhooks::<Webhooks>()?.pods.as_ref()
}

/// The replicas that a server calls about pods, mutably.
pub(crate) fn webhook_mut(server: &mut Server) -> Option<&mut Webhook> {
    server.webhooks_mut::<Webhooks>()?.pods.as_mut()
}

/// Lets the replicas act on the server that calls them.
pub(crate) fn with_webhook<T>(
    server: &mut Server,
    act: impl FnOnce(&mut Webhook, &mut Server) -> T,
) -> Option<T> {
    let done = server.with_webhooks(|webhooks: &mut Webhooks, server| {
        let webhook = webhooks.pods.as_mut()?;
        Some(act(webhook, server))
    });
    done.flatten()
}

impl AdmissionWebhooks for Webhooks {
    fn review(
        &mut self,
        now: Instant,
        server: &mut Server,
        request: AdmissionRequest<'_>,
    ) -> Result<Option<Value>, ApiError> {
        let asked = match request {
            AdmissionRequest::Create(Object::Pod(pod)) => Asked::Create(pod),
            // The webhook has no answer for a pod that is terminating or has finished.
            AdmissionRequest::Delete(Object::Pod(pod)) if pod.is_active() => Asked::Delete(pod),
            AdmissionRequest::Create(object) => {
                return self.check(server.tables(), object, None).map(|()| None);
            }
            AdmissionRequest::Update { object, old } => {
                return self
                    .check(server.tables(), object, Some(old))
                    .map(|()| None);
            }
            AdmissionRequest::Delete(_) => return Ok(None),
            AdmissionRequest::Evict(pod) => {
                let reviewed = match &mut self.zones {
                    Some(zones) => zones.review(now, server, pod),
                    None => Ok(()),
                };
                return reviewed.map(|()| None);
            }
        };
        match &mut self.pods {
            Some(webhook) => webhook.review(now, server, asked),
            None => Ok(None),
        }
    }

    fn begin(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
    ) -> Result<Called, ApiError> {
        match &mut self.pods {
            Some(webhook) => webhook.call(now, server, pod),
            None => Ok(Called::Answered(None)),
        }
    }

    fn step(&mut self, now: Instant, server: &mut Server) -> bool {
        let webhook = self.pods.as_mut();
        webhook.is_some_and(|webhook| webhook.step(now, server))
    }

    fn late_answers(&mut self, now: Instant) -> Vec<LateAnswer> {
        let webhook = self.pods.as_mut();
        webhook.map_or_else(Vec::new, |webhook| webhook.late_answers(now))
    }
}

impl Webhooks {
    /// Validates a WorkloadSpread; other objects are accepted.
    fn check(
        &self,
        tables: &Tables,
        object: &Object,
        before: Option<&Object>,
    ) -> Result<(), ApiError> {
        let Some(spread) = wire(object) else {
            return Ok(());
        };
        if self
            .pods
            .as_ref()
            .is_some_and(|webhook| !webhook.is_alive())
        {
            return Err(Hook::SPREAD.unreachable());
        }
        let namespace = &object.meta().name.namespace;
        let others = tables.of::<WorkloadSpread>().in_namespace(namespace);
        let others = others.filter(|other| other.meta.name != object.meta().name);
        let others: Vec<v1beta1::WorkloadSpread> = others
            .filter_map(|other| wire(&Object::WorkloadSpread(Arc::clone(other))))
            .collect();
        let others: Vec<&v1beta1::WorkloadSpread> = others.iter().collect();
        let target = spread
            .spec
            .as_ref()
            .and_then(|s| s.target_reference.as_ref());
        let find = |target: &TargetReference| {
            let key = Key {
                kind: Kind::of_group(&target.api_version, &target.kind),
                name: Name::new(Arc::clone(namespace), target.name.as_str()),
            };
            Some(tables.find(&key)?.to_kube())
        };
        let theirs = others
            .iter()
            .filter_map(|other| other.spec.as_ref()?.target_reference.as_ref());
        let owned = theirs.filter(|theirs| target.is_some_and(|target| may_own(target, theirs)));
        let owned: Vec<KubeObject> = owned.filter_map(find).collect();
        let target = target.and_then(find);
        let before = before.and_then(wire);
        let list = WhiteList::default();
        let errors = validate(
            &spread,
            &Context {
                white_list: Some(Ok(&list)),
                target: target.as_ref(),
                others: Some(Ok(&others)),
                workloads: &owned.iter().collect::<Vec<_>>(),
                before: before.as_ref(),
                allowed: &[],
                is_quiet: false,
            },
        );
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        match texts.is_empty() {
            true => Ok(()),
            false => Err(Hook::SPREAD.denied(&texts.join(", "))),
        }
    }
}

fn wire(object: &Object) -> Option<v1beta1::WorkloadSpread> {
    if !matches!(object, Object::WorkloadSpread(_)) {
        return None;
    }
    match object.to_kube() {
        KubeObject::WorkloadSpread(wire) => Some(*wire),
        _ => None,
    }
}
