//! Validates WorkloadSpreads, with the objects that this needs. They are read from the API server each time:
//! WorkloadSpreads are rarely written, and a stale cache must not decide.

use std::net::IpAddr;

use kube::Client;
use serde_json::Value;
use strew_manifest::kruise::read_back;
use strew_manifest::kruise::spec::TargetReference;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::read::KubeObject;
use strew_runtime::admission::spreads;
use strew_runtime::target_kinds::known;
use strew_wire::workloadspread::facts::white_list::{CONFIG_MAP, WhiteList};
use strew_wire::workloadspread::review::Decision;
use strew_wire::workloadspread::validating::Review;
use strew_wire::workloadspread::validation::{Context, may_own};

use super::lookup::{get, is_segment};
use crate::serve::access::review::{Deed, Reviews, User};
use crate::watch::Kind;
use strew_runtime::Warning;

/// The most workloads read for one review, to see whether the target owns them.
const OWNED_MAX: usize = 16;

/// Validates WorkloadSpreads.
pub(super) struct Judge {
    client: Client,
    /// The namespace of the list of custom kinds.
    namespace: String,
    reviews: Reviews,
    /// How it judges.
    rules: Rules,
}

/// The settings of validation.
pub(super) struct Rules {
    /// Guarded fields that patches may change.
    pub(super) allowed_patches: Vec<String>,
    /// True if the webhook is registered for pods of DaemonSets.
    pub(super) daemon_sets: bool,
    /// True if the client is known to be an API server; other clients must not learn names of other objects.
    pub(super) is_authenticated: bool,
}

impl Judge {
    pub(super) fn new(client: Client, namespace: &str, rules: Rules) -> Self {
        Self {
            reviews: Reviews::new(client.clone()),
            client,
            namespace: namespace.to_owned(),
            rules,
        }
    }

    /// The decision on a review of this client: all errors of the new object, or that it is accepted.
    pub(super) async fn judge(&self, peer: IpAddr, review: &Review) -> Decision {
        if let Some(refusal) = self.refusal(peer, review).await {
            return refusal;
        }
        let is_daemon_set = |target: &TargetReference| target.kind == "DaemonSet";
        if !self.rules.daemon_sets && review.target().is_some_and(is_daemon_set) {
            let message = "spec.targetRef: Invalid value: the API server does not ask about pods of DaemonSets \
                           (--daemon-sets of strew install workloadspread and strew webhook)";
            return Decision::refuse(&review.uid, 400, message);
        }
        let (list, target, others) = tokio::join!(
            self.list(review.target()),
            self.target(&review.namespace, review.target()),
            self.others(&review.namespace),
        );
        let owned = match (review.target(), &others) {
            (Some(target), Ok(all)) => self.owned(&review.namespace, target, all).await,
            _ => Vec::new(),
        };
        let others = others.as_ref().map(|all| all.iter().collect::<Vec<_>>());
        review.judge(&Context {
            white_list: Some(list.as_ref().map_err(String::as_str)),
            target: target.as_ref(),
            others: Some(match &others {
                Ok(all) => Ok(all.as_slice()),
                Err(why) => Err(why.as_str()),
            }),
            workloads: &owned.iter().collect::<Vec<_>>(),
            before: None,
            allowed: &self.rules.allowed_patches,
            is_quiet: !self.rules.is_authenticated,
        })
    }

    /// A refusal if the user may not create pods: patch, tolerations and node selectors of a WorkloadSpread change
    /// pods.
    async fn refusal(&self, peer: IpAddr, review: &Review) -> Option<Decision> {
        if !review.changes_pods() {
            return None;
        }
        let user = User::of(review.user.clone());
        let pods = Deed {
            verb: "create",
            group: "",
            resource: "pods",
            subresource: "",
            namespace: &review.namespace,
        };
        let (code, message) = match self.reviews.may_do(peer, &user, pods).await {
            Ok(Ok(())) => return None,
            Ok(Err(_)) => {
                let (name, namespace) = (&user.name, &review.namespace);
                let message = format!(
                    "user {name:?} must be allowed to create pods in namespace {namespace:?}: a WorkloadSpread \
                     decides what pods become"
                );
                (403, message)
            }
            Err(error) => (500, error.to_string()),
        };
        Some(Decision::refuse(&review.uid, code, message))
    }

    /// The list of custom kinds; read only if the target has one.
    async fn list(&self, target: Option<&TargetReference>) -> Result<WhiteList, String> {
        let is_known = |target: &TargetReference| known(group_of(target), &target.kind).is_some();
        if target.is_none_or(is_known) {
            return Ok(WhiteList::default());
        }
        let maps = Kind::of::<k8s_openapi::api::core::v1::ConfigMap>();
        let map = get(&self.client, &maps.path(&self.namespace, CONFIG_MAP)).await?;
        WhiteList::of_config_map(&map.unwrap_or_default()).map_err(|error| error.to_string())
    }

    /// The target, if it exists and its kind has a template. If it cannot be read, the checks that need it are skipped.
    async fn target(
        &self,
        namespace: &str,
        target: Option<&TargetReference>,
    ) -> Option<KubeObject> {
        let target = target?;
        let kind = known(group_of(target), &target.kind)?;
        if !(is_segment(namespace) && is_segment(&target.name)) {
            return None;
        }
        let found = get(&self.client, &kind.path(namespace, &target.name)).await;
        let found = found.unwrap_or_else(|error| {
            let TargetReference { kind, name, .. } = target;
            let read = Warning {
                kind,
                namespace,
                name,
                node: None,
                action: "read target",
                error: &error,
                next: "none: the WorkloadSpread is judged without it",
            };
            read.log();
            None
        });
        KubeObject::of_json(found?).ok()
    }

    /// The workloads of other WorkloadSpreads that the target may own.
    async fn owned(
        &self,
        namespace: &str,
        target: &TargetReference,
        others: &[WorkloadSpread],
    ) -> Vec<KubeObject> {
        let mut owned = Vec::new();
        let theirs = others
            .iter()
            .filter_map(|other| other.spec.as_ref()?.target_reference.as_ref());
        for theirs in theirs
            .filter(|theirs| may_own(target, theirs))
            .take(OWNED_MAX)
        {
            owned.extend(self.target(namespace, Some(theirs)).await);
        }
        owned
    }

    /// The WorkloadSpreads of the namespace.
    async fn others(&self, namespace: &str) -> Result<Vec<WorkloadSpread>, String> {
        if !is_segment(namespace) {
            return Ok(Vec::new());
        }
        let path = spreads().path(namespace, "");
        let list = get(&self.client, path.trim_end_matches('/')).await?;
        let mut list = list.unwrap_or_default();
        let items = list.get_mut("items").map(Value::take);
        let Some(Value::Array(items)) = items else {
            return Ok(Vec::new());
        };
        let read = items.into_iter().filter_map(read_back);
        Ok(read.map(|(spread, _)| spread).collect())
    }
}

fn group_of(target: &TargetReference) -> &str {
    target
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group)
}
