//! ResourceQuota: computes an object's usage, and whether the quotas that apply to it allow it.
//!
//! Each new pod increases usage ([`charge_pod`]); the recounts of the quota controller decrease it ([`used_by_pods`]). The binding amounts are those in the quota's `status`, which the controller writes.
//!
//! Left out: objects other than pods, claims' storage, device claims, changes of usage by updates, and resources that the API server's own
//! configuration limits without a quota.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/resourcequota`, `pkg/quota/v1/evaluator/core`, v1.36;
//! spec/controllers §10.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::pod_amounts::{Amounts, Half, add, of_pod, read, write};
use super::{Refusal, SetDefaults};
use strew_manifest::defaults::set_namespace;
use strew_manifest::quantity::Quantity;
use strew_manifest::validation::resources::{is_extended, is_native};

mod scope;

const COUNT_PODS: &str = "count/pods";
const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";

type Resources = BTreeMap<String, WireQuantity>;

impl SetDefaults for ResourceQuota {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
    }
}

/// The new `status.used` of a quota.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// The index of the quota.
    pub quota_idx: usize,
    /// Its whole new `status.used`.
    pub used: Resources,
}

/// True if a pod counts in quotas beside `count/pods`: it has not finished, and its deletion is not overdue. Source:
/// `QuotaV1Pod`.
pub fn counts(pod: &Pod, now: Timestamp) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if let Some("Succeeded" | "Failed") = phase {
        return false;
    }
    let deleted = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let grace = pod.metadata.deletion_grace_period_seconds;
    let (Some(deleted), Some(grace)) = (deleted, grace) else {
        return true;
    };
    deleted
        .checked_add(SignedDuration::from_secs(grace))
        .is_ok_and(|due| now <= due)
}

/// The usage of a pod, by the names of quotas. Source: `PodUsageFunc`.
pub fn pod_usage(pod: &Pod, now: Timestamp) -> BTreeMap<String, Quantity> {
    let one = Quantity::from_units(1);
    let mut usage = Amounts::from([(COUNT_PODS.to_string(), one)]);
    if counts(pod, now) {
        usage.insert("pods".to_string(), one);
        if let Some(spec) = &pod.spec {
            let requests = of_pod(spec, Half::Requests);
            usage.extend(computing_usage(&requests, &of_pod(spec, Half::Limits)));
        }
    }
    usage
}

/// Source: `podComputeUsageHelper`.
fn computing_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    const BOTH: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    let mut usage = Amounts::new();
    for (name, &amount) in requests {
        if BOTH.contains(&name.as_str()) || name.starts_with(HUGE_PAGES) {
            usage.insert(name.clone(), amount);
            usage.insert(format!("{REQUESTS}{name}"), amount);
        } else if is_extended(name) {
            // For these resources a limit counts as a request.
            usage.insert(format!("{REQUESTS}{name}"), amount);
        }
    }
    for name in BOTH {
        if let Some(&amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

/// Charges a new pod to the quotas of its namespace.
///
/// # Errors
/// The first quota that refuses: a container lacks a request or limit that the quota counts, the quota has not been
/// counted yet, or it is exhausted.
pub fn charge_pod(
    pod: &Pod,
    quotas: &[ResourceQuota],
    now: Timestamp,
) -> Result<Vec<Charge>, Refusal> {
    let refuse = |reason: String| Refusal::new("pods", &pod.metadata, reason);
    for quota in quotas.iter().filter(|quota| binds_pod(quota, pod)) {
        let wanted: BTreeSet<&str> = of_pods(quota).collect();
        if let Some(missing) = missing(pod, &wanted) {
            let name = name_of(quota);
            return Err(refuse(format!("failed quota: {name}: {missing}")));
        }
        counted(quota, &wanted).map_err(refuse)?;
    }
    let binding = |quota: &&ResourceQuota| binds_pod(quota, pod);
    charge(&pod_usage(pod, now), quotas, binding).map_err(refuse)
}

/// How many pods like this one the quotas of its namespace admit, `n` at most, and why not the next one.
pub fn admitted(pod: &Pod, quotas: &[ResourceQuota], n: usize) -> (usize, Option<String>) {
    let mut quotas = quotas.to_vec();
    for made in 0..n {
        // A new pod is not being deleted: the time decides nothing.
        let charges = match charge_pod(pod, &quotas, Timestamp::UNIX_EPOCH) {
            Ok(charges) => charges,
            Err(refusal) => return (made, Some(refusal.reason)),
        };
        for Charge { quota_idx, used } in charges {
            let status = quotas.get_mut(quota_idx).and_then(|q| q.status.as_mut());
            if let Some(status) = status {
                status.used = Some(used);
            }
        }
    }
    (n, None)
}

/// Why the quotas of its namespace would not let a controller make this pod again after it has gone; `None` if they would.
/// The pod counts in their usage now, so they would if no limit that it counts for is exceeded already. A quota that no
/// controller has counted yet is left out.
pub fn refuses_again(pod: &Pod, quotas: &[ResourceQuota], now: Timestamp) -> Option<String> {
    let usage = pod_usage(pod, now);
    let of_quota = |quota: &ResourceQuota| {
        let wanted: BTreeSet<&str> = of_pods(quota).collect();
        if let Some(missing) = missing(pod, &wanted) {
            return Some(format!("failed quota: {}: {missing}", name_of(quota)));
        }
        let status = quota.status.as_ref();
        let (used, hard) = (
            read(status.and_then(|status| status.used.as_ref())),
            hard(quota),
        );
        let is_over = |name: &&String| match (used.get(*name), hard.get(*name)) {
            (Some(used), Some(hard)) => used > hard,
            _ => false,
        };
        let asked = usage.iter().filter(|(_, amount)| amount.signum() != 0);
        let exceeded: Vec<&String> = asked.map(|(name, _)| name).filter(is_over).collect();
        (!exceeded.is_empty()).then(|| {
            format!(
                "exceeded quota: {}, used: {}, limited: {}",
                name_of(quota),
                printed(&exceeded, &used),
                printed(&exceeded, &hard)
            )
        })
    };
    let mut binding = quotas.iter().filter(|quota| binds_pod(quota, pod));
    binding.find_map(of_quota)
}

/// The usage of a quota by the pods of a namespace: all its limits on pods, unused ones included.
pub fn used_by_pods<'a>(
    quota: &ResourceQuota,
    pods: impl IntoIterator<Item = &'a Pod>,
    now: Timestamp,
) -> Resources {
    let spec_hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let names = spec_hard.into_iter().flatten().map(|(name, _)| name);
    let mut used: Amounts = names
        .filter(|name| is_of_pods(name))
        .map(|name| (name.clone(), Quantity::ZERO))
        .collect();
    for pod in pods.into_iter().filter(|pod| scope::has(quota, pod)) {
        let mut usage = pod_usage(pod, now);
        usage.retain(|name, _| used.contains_key(name));
        add(&mut used, &usage);
    }
    write(&used)
}

/// Adds usage, or returns the exceeded limits.
fn charge(
    usage: &Amounts,
    quotas: &[ResourceQuota],
    binds: impl Fn(&&ResourceQuota) -> bool,
) -> Result<Vec<Charge>, String> {
    let mut charges = Vec::new();
    for (quota_idx, quota) in quotas.iter().enumerate().filter(|(_, quota)| binds(quota)) {
        let hard = hard(quota);
        let used = read(
            quota
                .status
                .as_ref()
                .and_then(|status| status.used.as_ref()),
        );
        let requested: Amounts = usage
            .iter()
            .filter(|(name, amount)| amount.signum() != 0 && hard.contains_key(*name))
            .map(|(name, amount)| (name.clone(), *amount))
            .collect();
        if requested.is_empty() {
            continue;
        }
        let mut after = used.clone();
        add(&mut after, &requested);
        let is_over = |name: &&String| match (after.get(*name), hard.get(*name)) {
            (Some(after), Some(hard)) => after > hard,
            _ => false,
        };
        let exceeded: Vec<&String> = requested.keys().filter(is_over).collect();
        if !exceeded.is_empty() {
            return Err(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                name_of(quota),
                printed(&exceeded, &requested),
                printed(&exceeded, &used),
                printed(&exceeded, &hard)
            ));
        }
        charges.push(Charge {
            quota_idx,
            used: write(&after),
        });
    }
    Ok(charges)
}

/// `pods=1,requests.cpu=500m`
fn printed(names: &[&String], amounts: &Amounts) -> String {
    let each = names
        .iter()
        .filter_map(|&name| Some(format!("{name}={}", amounts.get(name)?)));
    each.collect::<Vec<_>>().join(",")
}

/// Whether the controller has counted the requested resources.
fn counted(quota: &ResourceQuota, wanted: &BTreeSet<&str>) -> Result<(), String> {
    let used = quota
        .status
        .as_ref()
        .and_then(|status| status.used.as_ref());
    let known = |name: &&str| used.is_some_and(|used| used.contains_key(*name));
    if wanted.iter().all(known) {
        return Ok(());
    }
    let names: Vec<&str> = wanted.iter().copied().collect();
    Err(format!(
        "status unknown for quota: {}, resources: {}",
        name_of(quota),
        names.join(",")
    ))
}

fn hard(quota: &ResourceQuota) -> Amounts {
    read(
        quota
            .status
            .as_ref()
            .and_then(|status| status.hard.as_ref()),
    )
}

fn name_of(quota: &ResourceQuota) -> &str {
    quota.metadata.name.as_deref().unwrap_or_default()
}

fn binds_pod(quota: &ResourceQuota, pod: &Pod) -> bool {
    of_pods(quota).next().is_some() && scope::has(quota, pod)
}

/// The limits of a quota that apply to pods.
fn of_pods(quota: &ResourceQuota) -> impl Iterator<Item = &str> {
    let hard = quota
        .status
        .as_ref()
        .and_then(|status| status.hard.as_ref());
    let names = hard.into_iter().flatten().map(|(name, _)| name.as_str());
    names.filter(|name| is_of_pods(name))
}

/// Source: `podResources`, `podResourcePrefixes`, `isExtendedResourceNameForQuota`.
fn is_of_pods(name: &str) -> bool {
    let bare = name
        .strip_prefix(REQUESTS)
        .or_else(|| name.strip_prefix("limits."))
        .unwrap_or(name);
    matches!(bare, "cpu" | "memory" | "ephemeral-storage")
        || matches!(name, "pods" | COUNT_PODS)
        || name.starts_with(HUGE_PAGES)
        || name.starts_with("requests.hugepages-")
        || name.starts_with(REQUESTS) && !is_native(name)
}

/// What containers must specify if a quota counts it: for cpu and memory only, a mistake that upstream keeps.
const MUST_BE_STATED: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// `must specify limits.cpu for: c1,c2; …`. Containers need not specify what the pod specifies as a whole. Source:
/// `podEvaluator.Constraints`.
fn missing(pod: &Pod, wanted: &BTreeSet<&str>) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let stated = |requirements| {
        let requests = Half::Requests.of(requirements);
        computing_usage(&requests, &Half::Limits.of(requirements))
    };
    let by_pod = stated(spec.resources.as_ref());
    let needed = MUST_BE_STATED.iter().copied();
    let needed = needed.filter(|name| wanted.contains(name) && !by_pod.contains_key(*name));
    let init = spec.init_containers.iter().flatten();
    let containers: Vec<_> = spec
        .containers
        .iter()
        .chain(init)
        .map(|container| {
            (
                container.name.as_str(),
                stated(container.resources.as_ref()),
            )
        })
        .collect();
    let sentences: Vec<String> = needed
        .filter_map(|name| {
            let lacking = containers.iter().filter(|(_, has)| !has.contains_key(name));
            let lacking: BTreeSet<&str> = lacking.map(|(container, _)| *container).collect();
            let listed = lacking.into_iter().collect::<Vec<_>>().join(",");
            (!listed.is_empty()).then(|| format!("{name} for: {listed}"))
        })
        .collect();
    (!sentences.is_empty()).then(|| format!("must specify {}", sentences.join("; ")))
}

#[cfg(test)]
mod tests;
