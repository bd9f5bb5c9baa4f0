//! LimitRanger: a namespace's default requests and limits, and their bounds.
//!
//! [`apply_defaults`] runs with the plug-ins that change pods, [`check`] with those that only check, after all of them.
//! Both run only at creation. Claims (`type: PersistentVolumeClaim`) are not checked.
//!
//! Source: `plugin/pkg/admission/limitranger`, `SetDefaults_LimitRangeItem`, v1.36.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, LimitRange, LimitRangeItem, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::pod_amounts::{Amounts, Half, of_containers, read};
use super::{Refusal, SetDefaults};
use strew_manifest::defaults::set_namespace;
use strew_manifest::quantity::Quantity;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const CONTAINER: &str = "Container";
const POD: &str = "Pod";

type Resources = BTreeMap<String, WireQuantity>;

impl SetDefaults for LimitRange {
    /// For containers: the default limit defaults to the maximum, the default request to the default limit, else to the
    /// minimum.
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let limits = self.spec.iter_mut().flat_map(|spec| &mut spec.limits);
        for limit in limits.filter(|limit| limit.type_ == CONTAINER) {
            let default = limit.default.get_or_insert_default();
            fill(default, limit.max.as_ref());
            let request = limit.default_request.get_or_insert_default();
            fill(request, Some(default));
            fill(request, limit.min.as_ref());
        }
    }
}

/// Sets absent values, and returns which.
fn fill(list: &mut Resources, from: Option<&Resources>) -> Vec<String> {
    let mut added = Vec::new();
    for (name, amount) in from.into_iter().flatten() {
        if !list.contains_key(name) {
            list.insert(name.clone(), amount.clone());
            added.push(name.clone());
        }
    }
    added
}

/// Sets missing requests and limits of containers, and records that in the annotation `kubernetes.io/limit-ranger`.
/// With several LimitRanges, the annotation names the last one that had an effect.
pub fn apply_defaults(pod: &mut Pod, ranges: &[LimitRange]) {
    for range in ranges {
        let mut limits = Resources::new();
        let mut requests = Resources::new();
        for item in items(range).filter(|item| item.type_ == CONTAINER) {
            limits.extend(item.default.clone().unwrap_or_default());
            requests.extend(item.default_request.clone().unwrap_or_default());
        }
        let Some(spec) = &mut pod.spec else { return };
        let mut said = Vec::new();
        let init = spec.init_containers.iter_mut().flatten();
        let all = spec.containers.iter_mut().map(|c| ("container", c));
        for (which, container) in all.chain(init.map(|c| ("init container", c))) {
            complete(container, which, &limits, &requests, &mut said);
        }
        if !said.is_empty() {
            let text = format!("LimitRanger plugin set: {}", said.join("; "));
            let annotations = pod.metadata.annotations.get_or_insert_default();
            annotations.insert(ANNOTATION.to_string(), text);
        }
    }
}

fn complete(
    container: &mut Container,
    which: &str,
    limits: &Resources,
    requests: &Resources,
    said: &mut Vec<String>,
) {
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let resources = container.resources.get_or_insert_default();
    let set_limits = fill(resources.limits.get_or_insert_default(), Some(limits));
    let set_requests = fill(resources.requests.get_or_insert_default(), Some(requests));
    for (names, what) in [(set_requests, "request"), (set_limits, "limit")] {
        if !names.is_empty() {
            let names = names.join(", ");
            said.push(format!("{names} {what} for {which} {}", container.name));
        }
    }
}

fn items(range: &LimitRange) -> impl Iterator<Item = &LimitRangeItem> {
    range.spec.iter().flat_map(|spec| &spec.limits)
}

/// Checks a pod against each LimitRange of its namespace.
///
/// # Errors
/// All violations of the first LimitRange that is violated. The API server reports them in no fixed order, this
/// function in the order of resources.
pub fn check(pod: &Pod, ranges: &[LimitRange]) -> Result<(), Refusal> {
    let Some(spec) = &pod.spec else { return Ok(()) };
    for range in ranges {
        let mut broken = Broken::default();
        for item in items(range) {
            match item.type_.as_str() {
                CONTAINER => {
                    let init = spec.init_containers.iter().flatten();
                    for container in spec.containers.iter().chain(init) {
                        let of = |half: Half| half.of(container.resources.as_ref());
                        broken.check(item, &of(Half::Requests), &of(Half::Limits));
                    }
                }
                POD => {
                    let of = |half: Half| of_containers(spec, half);
                    broken.check(item, &of(Half::Requests), &of(Half::Limits));
                }
                _ => {}
            }
        }
        if let Some(reason) = broken.aggregate() {
            return Err(Refusal::new("pods", &pod.metadata, reason));
        }
    }
    Ok(())
}

/// The message if the bound is violated.
type Rule = fn(&Bound<'_>) -> Option<String>;

#[derive(Default)]
struct Broken {
    said: BTreeSet<String>,
    sentences: Vec<String>,
}

impl Broken {
    fn check(&mut self, item: &LimitRangeItem, requests: &Amounts, limits: &Amounts) {
        let rules: [(&Option<Resources>, Rule); 3] = [
            (&item.min, |bound| bound.minimum()),
            (&item.max, |bound| bound.maximum()),
            (&item.max_limit_request_ratio, |bound| bound.ratio()),
        ];
        for (list, rule) in rules {
            for (name, enforced) in read(list.as_ref()) {
                let bound = Bound {
                    name: &name,
                    kind: &item.type_,
                    enforced,
                    request: requests.get(&name).copied(),
                    limit: limits.get(&name).copied(),
                };
                self.sentences.extend(rule(&bound));
            }
        }
    }

    /// One message as it is, several in brackets, without repetitions. Source: `utilerrors.NewAggregate`.
    fn aggregate(mut self) -> Option<String> {
        let said = &mut self.said;
        self.sentences
            .retain(|sentence| said.insert(sentence.clone()));
        match self.sentences.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }
}

struct Bound<'a> {
    name: &'a str,
    kind: &'a str,
    enforced: Quantity,
    request: Option<Quantity>,
    limit: Option<Quantity>,
}

impl Bound<'_> {
    fn minimum(&self) -> Option<String> {
        let Self { name, kind, .. } = self;
        let head = format!("minimum {name} usage per {kind} is {}", self.enforced);
        let (request, limit, enforced) = self.comparable();
        match (self.request, self.limit) {
            (None, _) => Some(format!("{head}. No request is specified")),
            (Some(given), _) if request < enforced => {
                Some(format!("{head}, but request is {given}"))
            }
            (_, Some(given)) if limit < enforced => Some(format!("{head}, but limit is {given}")),
            _ => None,
        }
    }

    fn maximum(&self) -> Option<String> {
        let Self { name, kind, .. } = self;
        let head = format!("maximum {name} usage per {kind} is {}", self.enforced);
        let (request, limit, enforced) = self.comparable();
        match (self.request, self.limit) {
            (_, None) => Some(format!("{head}. No limit is specified")),
            (_, Some(given)) if limit > enforced => Some(format!("{head}, but limit is {given}")),
            (Some(given), _) if request > enforced => {
                Some(format!("{head}, but request is {given}"))
            }
            _ => None,
        }
    }

    fn ratio(&self) -> Option<String> {
        let Self { name, kind, .. } = self;
        let head = format!(
            "{name} max limit to request ratio per {kind} is {}",
            self.enforced
        );
        let (request, limit, _) = self.comparable();
        if self.request.is_none() || request == 0 {
            let why = "no request is specified or request is 0";
            return Some(format!("{head}, but {why}"));
        }
        if self.limit.is_none() || limit == 0 {
            return Some(format!("{head}, but no limit is specified or limit is 0"));
        }
        let observed = limit as f64 / request as f64;
        // Thousandths are compared if they fit.
        let broken = if self.enforced.value() <= MILLI_VALUE_MAX {
            observed * 1000.0 > self.enforced.milli_value() as f64
        } else {
            observed > self.enforced.value() as f64
        };
        broken.then(|| format!("{head}, but provided ratio is {observed:.6}"))
    }

    /// Request, limit and bound in thousandths, or in units if one of them is too large. Source:
    /// `requestLimitEnforcedValues`.
    fn comparable(&self) -> (i64, i64, i64) {
        let request = self.request.unwrap_or(Quantity::ZERO);
        let limit = self.limit.unwrap_or(Quantity::ZERO);
        let all = [request, limit, self.enforced];
        let fits = all.iter().all(|amount| amount.value() <= MILLI_VALUE_MAX);
        let [request, limit, enforced] = all.map(|amount| match fits {
            true => amount.milli_value(),
            false => amount.value(),
        });
        (request, limit, enforced)
    }
}

/// Source: `resource.MaxMilliValue`.
const MILLI_VALUE_MAX: i64 = i64::MAX / 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn range(limits: Value) -> LimitRange {
        let mut range: LimitRange =
            serde_json::from_value(json!({"metadata": {"name": "r"}, "spec": {"limits": limits}}))
                .unwrap();
        range.set_defaults();
        range
    }

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"generateName": "web-"}, "spec": spec})).unwrap()
    }

    fn container(name: &str, resources: Value) -> Value {
        json!({"name": name, "resources": resources})
    }

    #[test]
    fn defaults_of_the_range_itself() {
        let range = range(json!([
            {"type": "Container", "max": {"cpu": "2"}, "default": {"memory": "1Gi"}, "min": {"cpu": "1", "a/b": "3"}},
            {"type": "Pod", "max": {"cpu": "4"}},
        ]));
        let spec = serde_json::to_value(range.spec).unwrap();
        assert_eq!(
            spec["limits"][0]["default"],
            json!({"cpu": "2", "memory": "1Gi"})
        );
        assert_eq!(
            spec["limits"][0]["defaultRequest"],
            json!({"cpu": "2", "memory": "1Gi", "a/b": "3"})
        );
        assert_eq!(
            spec["limits"][1],
            json!({"type": "Pod", "max": {"cpu": "4"}})
        );
    }

    #[test]
    fn containers_get_what_they_lack_and_the_annotation_tells() {
        let range = range(json!([{"type": "Container",
            "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}]));
        let mut pod = pod(json!({
            "containers": [container("a", json!({})), container("b", json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "1"}}))],
            "initContainers": [container("i", json!({"limits": {"memory": "2"}}))],
        }));
        apply_defaults(&mut pod, &[range]);
        assert_eq!(
            pod.metadata.annotations.as_ref().unwrap()[ANNOTATION],
            "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for container a; memory limit for container b; cpu, memory request for init container i; cpu limit for init container i"
        );
        let spec = serde_json::to_value(&pod.spec).unwrap();
        assert_eq!(
            spec["containers"][0]["resources"],
            json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}})
        );
        assert_eq!(
            spec["containers"][1]["resources"]["limits"],
            json!({"cpu": "1", "memory": "1Gi"})
        );
    }

    #[test]
    fn nothing_is_said_where_nothing_is_set() {
        let mut pod = pod(json!({"containers": [container("a", json!({}))]}));
        let before = pod.clone();
        apply_defaults(
            &mut pod,
            &[range(json!([{"type": "Pod", "max": {"cpu": "1"}}]))],
        );
        assert_eq!(pod, before);
    }

    #[track_caller]
    fn check_one(limit: Value, containers: Value, expected: Option<&str>) {
        let pod = pod(json!({"containers": containers}));
        // As it is, without defaults of the range.
        let range: LimitRange =
            serde_json::from_value(json!({"metadata": {}, "spec": {"limits": [limit]}})).unwrap();
        let refused = check(&pod, &[range])
            .err()
            .map(|refusal| refusal.to_string());
        let expected = expected.map(|reason| format!("pods \"web-\" is forbidden: {reason}"));
        assert_eq!(refused, expected);
    }

    #[test]
    fn bounds_are_enforced_with_the_servers_sentences() {
        let one = |requests: Value, limits: Value| {
            json!([container(
                "a",
                json!({"requests": requests, "limits": limits})
            )])
        };
        let cases = [
            (
                json!({"type": "Container", "max": {"cpu": "500m"}}),
                one(json!({}), json!({"cpu": "1"})),
                Some("maximum cpu usage per Container is 500m, but limit is 1"),
            ),
            (
                json!({"type": "Container", "max": {"cpu": "500m"}}),
                one(json!({"cpu": "2"}), json!({"cpu": "500m"})),
                Some("maximum cpu usage per Container is 500m, but request is 2"),
            ),
            (
                json!({"type": "Container", "max": {"cpu": "500m"}}),
                one(json!({"cpu": "100m"}), json!({})),
                Some("maximum cpu usage per Container is 500m. No limit is specified"),
            ),
            (
                json!({"type": "Container", "max": {"cpu": "500m"}, "min": {"cpu": "0.1"}}),
                one(json!({"cpu": "100m"}), json!({"cpu": "0.5"})),
                None,
            ),
            (
                json!({"type": "Container", "min": {"memory": "1Gi"}}),
                one(json!({}), json!({})),
                Some("minimum memory usage per Container is 1Gi. No request is specified"),
            ),
            (
                json!({"type": "Container", "min": {"memory": "1Gi", "cpu": "1"}}),
                one(json!({"memory": "1Mi", "cpu": "10m"}), json!({})),
                Some(
                    "[minimum cpu usage per Container is 1, but request is 10m, minimum memory usage per Container is 1Gi, but request is 1Mi]",
                ),
            ),
            (
                json!({"type": "Container", "min": {"cpu": "1"}}),
                one(json!({"cpu": "1"}), json!({"cpu": "900m"})),
                Some("minimum cpu usage per Container is 1, but limit is 900m"),
            ),
            (
                json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
                one(json!({"cpu": "300m"}), json!({"cpu": "1"})),
                Some(
                    "cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333",
                ),
            ),
            (
                json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2500m"}}),
                one(json!({"cpu": "400m"}), json!({"cpu": "1"})),
                None,
            ),
            (
                json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
                one(json!({"cpu": "0"}), json!({"cpu": "1"})),
                Some(
                    "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
                ),
            ),
            (
                json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
                one(json!({"cpu": "1"}), json!({})),
                Some(
                    "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
                ),
            ),
            (
                json!({"type": "Pod", "max": {"cpu": "1"}}),
                json!([
                    container("a", json!({"limits": {"cpu": "600m"}})),
                    container("b", json!({"limits": {"cpu": "600m"}})),
                ]),
                Some("maximum cpu usage per Pod is 1, but limit is 1200m"),
            ),
        ];
        for (limit, containers, expected) in cases {
            check_one(limit, containers, expected);
        }
    }
}
