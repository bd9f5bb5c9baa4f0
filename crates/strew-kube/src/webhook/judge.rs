//! Validates WorkloadSpreads, with the objects that this needs.
//!
//! Other objects are needed only where the spec is new or changed. Which WorkloadSpreads may have pods of the target is
//! asked of the loop's caches. A stale cache refuses nothing: the WorkloadSpreads that it names are read from the API
//! server before they are a reason to refuse. It may miss one that was written a moment before; then both are stored,
//! as if they had been written at once, and the older one has the pods. The target itself is read if a patch must fit its
//! template, since caches hold no templates. Before the caches are filled there is no answer.
//!
//! A few are judged at once, in turns of clients and namespaces, since each may cost requests to the API server.

use kube::Client;
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

use super::calls::{ToDecider, Unanswered};
use super::lookup::{get, is_segment};
use crate::serve::Peer;
use crate::serve::access::review::{Deed, ReviewError, Reviews, User};
use crate::serve::turns::{Crowded, Turns};
use crate::watch::Kind;
use strew_runtime::Warning;

/// The most workloads read for one review, to see whether the target owns them.
const OWNED_MAX: usize = 16;

/// The number of reviews that are judged at once.
const AT_ONCE: usize = 8;

/// The number of reviews that wait for their turn.
const WAITING_MAX: usize = 128;

/// Validates WorkloadSpreads.
pub(super) struct Judge {
    client: Client,
    decider: ToDecider,
    /// Turns of clients, and of the namespaces of each.
    turns: Turns<String>,
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
    pub(super) fn new(client: Client, decider: ToDecider, namespace: &str, rules: Rules) -> Self {
        Self {
            reviews: Reviews::new(client.clone()),
            client,
            decider,
            turns: Turns::new(AT_ONCE, WAITING_MAX),
            namespace: namespace.to_owned(),
            rules,
        }
    }

    /// The decision on a review of this client: all errors of the new object, or that it is accepted.
    pub(super) async fn judge(&self, peer: &Peer, review: &Review) -> Result<Decision, Unanswered> {
        if let Some(refusal) = self.refusal(peer, review).await? {
            return Ok(refusal);
        }
        let is_daemon_set = |target: &TargetReference| target.kind == "DaemonSet";
        if !self.rules.daemon_sets && review.target().is_some_and(is_daemon_set) {
            let message = "spec.targetRef: Invalid value: the API server does not ask about pods of DaemonSets \
                           (--daemon-sets of strew install workloadspread and strew webhook)";
            return Ok(Decision::refuse(&review.uid, 400, message));
        }
        let alone = Context {
            allowed: &self.rules.allowed_patches,
            is_quiet: !self.rules.is_authenticated,
            ..Context::default()
        };
        if !review.needs_others() {
            return Ok(review.judge(&alone));
        }
        let turn = self
            .turns
            .take(peer.address, review.namespace.clone())
            .await;
        let _turn = turn.map_err(|Crowded| Unanswered::Crowded)?;
        let others = self.others(review).await?;
        let list = self.list(review.target()).await;
        let is_needed = review.has_patch() || !matches!(&others, Ok(others) if others.is_empty());
        let target = review.target().filter(|_| is_needed);
        let target = self.target(&review.namespace, target).await;
        let owned = match (review.target(), &others) {
            (Some(target), Ok(all)) => self.owned(&review.namespace, target, all).await,
            _ => Vec::new(),
        };
        let others = others.as_ref().map(|all| all.iter().collect::<Vec<_>>());
        Ok(review.judge(&Context {
            white_list: Some(list.as_ref().map_err(String::as_str)),
            target: target.as_ref(),
            others: Some(match &others {
                Ok(all) => Ok(all.as_slice()),
                Err(why) => Err(why.as_str()),
            }),
            workloads: &owned.iter().collect::<Vec<_>>(),
            ..alone
        }))
    }

    /// A refusal if the user may not create pods: patch, tolerations and node selectors of a WorkloadSpread change
    /// pods.
    async fn refusal(&self, peer: &Peer, review: &Review) -> Result<Option<Decision>, Unanswered> {
        if !review.changes_pods() {
            return Ok(None);
        }
        let user = User::of(review.user.clone());
        let pods = Deed {
            verb: "create",
            group: "",
            resource: "pods",
            subresource: "",
            namespace: &review.namespace,
        };
        let (code, message) = match self.reviews.may_do(peer.address, &user, pods).await {
            Ok(Ok(())) => return Ok(None),
            Err(ReviewError::Crowded) => return Err(Unanswered::Crowded),
            Ok(Err(_)) => {
                peer.refused();
                let (name, namespace) = (&user.name, &review.namespace);
                let message = format!(
                    "user {name:?} must be allowed to create pods in namespace {namespace:?}: a WorkloadSpread \
                     decides what pods become"
                );
                (403, message)
            }
            Err(error) => (500, error.to_string()),
        };
        Ok(Some(Decision::refuse(&review.uid, code, message)))
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

    /// The other WorkloadSpreads that may have pods of the target, as they are stored.
    async fn others(
        &self,
        review: &Review,
    ) -> Result<Result<Vec<WorkloadSpread>, String>, Unanswered> {
        let namespace = &review.namespace;
        let Some(target) = review.target().filter(|_| is_segment(namespace)) else {
            return Ok(Ok(Vec::new()));
        };
        let own = review.spread.metadata.name.as_deref();
        let rivals = self.decider.rivals(namespace, target).await?;
        let mut others = Vec::new();
        for name in rivals.iter().filter(|name| Some(&***name) != own) {
            match get(&self.client, &spreads().path(namespace, name)).await {
                Ok(found) => others.extend(found.and_then(read_back).map(|(other, _)| other)),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(others))
    }
}

fn group_of(target: &TargetReference) -> &str {
    target
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group)
}
