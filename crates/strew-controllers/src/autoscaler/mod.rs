//! HorizontalPodAutoscaler: scales a target by the utilisation of its pods.
//!
//! The utilisation comes from [`Api::utilisation`](crate::Api::utilisation): every running pod of the target uses that
//! share of its request. Metrics other than a resource's utilisation have no figures here.
//!
//! Source: spec/controllers §6; kubernetes v1.36.3 pkg/controller/podautoscaler for the texts.

mod limits;
mod proposal;
mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricSpec,
    MetricStatus, MetricValueStatus, ResourceMetricStatus,
};
use k8s_openapi::api::core::v1::PodSpec;
use rustc_hash::FxHashMap;
use strew_apiserver::object::{Autoscaler, Name, Object, Pod, moment};
use strew_apiserver::{ApiError, Tables};
use strew_manifest::quantity::Quantity;
use strew_model::time::{Instant, Span};

use crate::workers;
use limits::{History, Range};
use proposal::{CountsAs, Requests, Tolerance};
use target::Scale;

use crate::api::Event;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;

const NAME: &str = "horizontal-pod-autoscaler";

/// `--horizontal-pod-autoscaler-sync-period`
const PERIOD: Span = Span::from_secs(15);

/// The target in percent of the request, if an autoscaler has no metric.
const DEFAULT_TARGET: u32 = 80;

/// `--horizontal-pod-autoscaler-tolerance`
const TOLERANCE: f64 = 0.1;

/// The controller of HorizontalPodAutoscalers.
#[derive(Debug, Default)]
pub struct AutoscalerController {
    histories: FxHashMap<Name, History>,
}

impl AutoscalerController {
    /// A controller without earlier proposals.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Controller for AutoscalerController {
    fn name(&self) -> &'static str {
        NAME
    }

    fn n_workers(&self) -> usize {
        workers::AUTOSCALER
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, _: &Tables, queue: &mut Queue) {
        match change.of::<Autoscaler>() {
            Some((_, Some(autoscaler))) => queue.add_at(&autoscaler.meta.name, now + PERIOD),
            Some((Some(gone), None)) => {
                self.histories.remove(&gone.meta.name);
            }
            _ => {}
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(autoscaler) = cx.cache.get::<Autoscaler>(name) else {
            return Ok(());
        };
        cx.queue.add_at(name, cx.now + PERIOD);
        let mut look = Look {
            history: self.histories.entry(name.clone()).or_default(),
            cx,
            autoscaler,
            status: autoscaler.status.clone(),
        };
        let result = look.run();
        if result == Err(ApiError::Lost) {
            return result;
        }
        // After an error, as after a success, the next sync comes after the period.
        match look.write() {
            Err(ApiError::Lost) => Err(ApiError::Lost),
            _ => Ok(()),
        }
    }
}

/// A metric with its figures, or the reason for having none.
struct Proposal {
    replicas: i32,
    name: String,
    status: MetricStatus,
}

/// The reason of a condition, and the error.
type MetricError = (&'static str, String);

/// One sync of an autoscaler.
struct Look<'l, 'c> {
    history: &'l mut History,
    cx: &'l mut Context<'c>,
    autoscaler: &'l Arc<Autoscaler>,
    /// The status to write.
    status: HorizontalPodAutoscalerStatus,
}

impl Look<'_, '_> {
    fn run(&mut self) -> Result<(), ApiError> {
        let autoscaler = self.autoscaler;
        let spec = &autoscaler.spec;
        let reference = &spec.scale_target_ref;
        let namespace = &autoscaler.meta.name.namespace;
        let key = target::key(namespace, &reference.kind, &reference.name);
        let found = self.cx.api.get(&key);
        let scaled = found.and_then(|target| Some((target::scale(&target)?, target)));
        let Some((scale, target)) = scaled else {
            let error = ApiError::NotFound(key).to_string();
            self.warn("FailedGetScale", error.as_str());
            let note =
                format!("the HPA controller was unable to get the target's current scale: {error}");
            self.set("AbleToScale", false, "FailedGetScale", &note);
            return Ok(());
        };
        let note = "the HPA controller was able to get the target's current scale";
        self.set("AbleToScale", true, "SucceededGetScale", note);
        let range = Range {
            current: scale.replicas,
            min: spec.min_replicas.unwrap_or(1),
            max: spec.max_replicas,
        };
        self.history.begin(self.cx.now, range.current);
        self.status.current_replicas = Some(range.current);
        if range.current == 0 && range.min != 0 {
            let note = "scaling is disabled since the replica count of the target is zero";
            self.set("ScalingActive", false, "ScalingDisabled", note);
            self.status.desired_replicas = 0;
            return Ok(());
        }
        let (desired, reason) = if range.current > range.max {
            (
                range.max,
                "Current number of replicas above Spec.MaxReplicas".to_owned(),
            )
        } else if range.current < range.min {
            (
                range.min,
                "Current number of replicas below Spec.MinReplicas".to_owned(),
            )
        } else {
            match self.desired(&scale, range) {
                Some(desired) => desired,
                None => return Ok(()),
            }
        };
        self.status.desired_replicas = desired;
        if desired == range.current {
            return Ok(());
        }
        if let Err(error) = target::resize(self.cx, target, desired) {
            if error == ApiError::Lost {
                return Err(error);
            }
            let note = format!("New size: {desired}; reason: {reason}; error: {error}");
            self.warn("FailedRescale", note);
            let note = format!("the HPA controller was unable to update the target scale: {error}");
            self.set("AbleToScale", false, "FailedUpdateScale", &note);
            self.status.desired_replicas = self.autoscaler.status.desired_replicas;
            return Ok(());
        }
        let note = format!("the HPA controller was able to update the target scale to {desired}");
        self.set("AbleToScale", true, "SucceededRescale", &note);
        let note = format!("New size: {desired}; reason: {reason}");
        let event = Event::normal(NAME, &self.object(), "SuccessfulRescale", note);
        self.cx.api.record(event);
        self.history.scaled(self.cx.now, range.current, desired);
        self.status.last_scale_time = Some(moment::to_wire(self.cx.now));
        Ok(())
    }

    /// The size that the metrics ask for, within all limits, and the reason; `None` if no metric has figures.
    fn desired(&mut self, scale: &Scale, range: Range) -> Option<(i32, String)> {
        let best = self.best(scale, range)?;
        let behavior = self.autoscaler.spec.behavior.as_ref();
        let decision = self
            .history
            .decide(self.cx.now, behavior, range, best.replicas);
        let (reason, message) = decision.able;
        self.set("AbleToScale", true, reason, message);
        let (is_limited, reason, message) = decision.limited;
        self.set("ScalingLimited", is_limited, reason, message);
        let why = match best.replicas > range.current {
            true => format!("{} above target", best.name),
            false => "All metrics below target".to_owned(),
        };
        Some((decision.replicas, why))
    }

    /// The metric that asks for the most replicas.
    fn best(&mut self, scale: &Scale, range: Range) -> Option<Proposal> {
        if let Some(rivals) = self.rivals(scale) {
            self.warn("AmbiguousSelector", rivals.as_str());
            self.set("ScalingActive", false, "AmbiguousSelector", &rivals);
            return None;
        }
        let given = self.autoscaler.spec.metrics.clone();
        let metrics = given.filter(|metrics| !metrics.is_empty());
        let metrics: Vec<Option<MetricSpec>> = match metrics {
            Some(metrics) => metrics.into_iter().map(Some).collect(),
            None => vec![None],
        };
        let (mut best, mut first_error, mut n_invalid) = (None::<Proposal>, None, 0);
        let mut statuses = Vec::new();
        for metric in &metrics {
            match self.propose(metric.as_ref(), scale, range) {
                Ok(proposal) => {
                    statuses.push(proposal.status.clone());
                    if best
                        .as_ref()
                        .is_none_or(|best| proposal.replicas > best.replicas)
                    {
                        best = Some(proposal);
                    }
                }
                Err((reason, error)) => {
                    self.warn(reason, error.as_str());
                    n_invalid += 1;
                    first_error.get_or_insert((reason, error));
                }
            }
        }
        // A missing metric could be the one that needs these pods, so the size must not shrink.
        let is_safe = |best: &Proposal| n_invalid == 0 || best.replicas >= range.current;
        if let Some(best) = best.filter(is_safe) {
            let note = format!(
                "the HPA was able to successfully calculate a replica count from {}",
                best.name
            );
            self.set("ScalingActive", true, "ValidMetricFound", &note);
            self.status.current_metrics = Some(statuses);
            return Some(best);
        }
        let (reason, error) = first_error?;
        let note = format!("the HPA was unable to compute the replica count: {error}");
        self.set("ScalingActive", false, reason, &note);
        let n = metrics.len();
        let note =
            format!("invalid metrics ({n_invalid} invalid out of {n}), first error is: {error}");
        self.warn("FailedComputeMetricsReplicas", note);
        None
    }

    /// The proposal of a metric; `None`: the default metric.
    fn propose(
        &self,
        metric: Option<&MetricSpec>,
        scale: &Scale,
        range: Range,
    ) -> Result<Proposal, MetricError> {
        let failed = "FailedGetResourceMetric";
        let (resource, target) = match metric {
            None => ("cpu", Some(DEFAULT_TARGET)),
            Some(metric) => match &metric.resource {
                Some(source) => {
                    let percent = source.target.average_utilization;
                    let percent = percent.and_then(|percent| u32::try_from(percent).ok());
                    (source.name.as_str(), percent)
                }
                None => return Err(no_figures(metric)),
            },
        };
        let told = |error: &str| {
            (
                failed,
                format!("failed to get {resource} utilization: {error}"),
            )
        };
        let no_metrics = format!(
            "unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        );
        let Some(target) = target else {
            return Err(told(
                "a target other than averageUtilization has no figures in a simulation",
            ));
        };
        let utilisation = self.cx.api.utilisation(&self.autoscaler.meta.name);
        let utilisation = utilisation.ok_or_else(|| told(&no_metrics))?;
        let pods = self
            .requests(scale, resource)
            .map_err(|error| told(&error))?;
        if pods.measured.is_empty() {
            return Err(told(
                "did not receive metrics for targeted pods (pods might be unready)",
            ));
        }
        let behavior = self.autoscaler.spec.behavior.as_ref();
        let tolerance = Tolerance {
            up: tolerance(behavior.and_then(|b| b.scale_up.as_ref())),
            down: tolerance(behavior.and_then(|b| b.scale_down.as_ref())),
        };
        let current = MetricValueStatus {
            average_utilization: i32::try_from(utilisation).ok(),
            ..MetricValueStatus::default()
        };
        Ok(Proposal {
            replicas: proposal::replicas(range.current, &pods, utilisation, target, tolerance),
            name: format!("{resource} resource utilization (percentage of request)"),
            status: MetricStatus {
                type_: "Resource".to_owned(),
                resource: Some(ResourceMetricStatus {
                    name: resource.to_owned(),
                    current,
                }),
                ..MetricStatus::default()
            },
        })
    }

    /// The requests of the selected pods, by how the pods count.
    fn requests(&self, scale: &Scale, resource: &str) -> Result<Requests, String> {
        let mut requests = Requests::default();
        for pod in self.selected(scale) {
            let standing = proposal::standing(pod, resource == "cpu", self.cx.now);
            let into = match standing {
                CountsAs::Ignored => continue,
                CountsAs::Unready => &mut requests.unready,
                CountsAs::Missing => &mut requests.missing,
                CountsAs::Measured => &mut requests.measured,
            };
            into.push(request(&pod.spec, resource).map_err(|container| {
                let pod = &pod.meta.name.name;
                format!("missing request for {resource} in container {container} of Pod {pod}")
            })?);
        }
        Ok(requests)
    }

    fn selected<'p>(&'p self, scale: &'p Scale) -> impl Iterator<Item = &'p Arc<Pod>> {
        let namespace = &self.autoscaler.meta.name.namespace;
        let pods = self.cx.cache.of::<Pod>().in_namespace(namespace);
        pods.filter(|pod| scale.selection.matches(&pod.meta.labels))
    }

    /// An error text if other autoscalers select the same pods.
    fn rivals(&self, scale: &Scale) -> Option<String> {
        let cache = self.cx.cache;
        let namespace = &self.autoscaler.meta.name.namespace;
        let mut rivals = BTreeSet::new();
        for other in cache.of::<Autoscaler>().in_namespace(namespace) {
            let reference = &other.spec.scale_target_ref;
            let key = target::key(namespace, &reference.kind, &reference.name);
            let found = cache.find(&key).and_then(|target| target::scale(&target));
            let shares = |other: &Scale| {
                let mut pods = self.selected(scale);
                pods.any(|pod| other.selection.matches(&pod.meta.labels))
            };
            if other.meta.name != self.autoscaler.meta.name && found.as_ref().is_some_and(shares) {
                rivals.insert(other.meta.name.to_string());
            }
        }
        if rivals.is_empty() {
            return None;
        }
        rivals.insert(self.autoscaler.meta.name.to_string());
        let names: Vec<String> = rivals.into_iter().collect();
        Some(format!(
            "pods by the selector of {} are controlled by multiple HPAs: [{}]",
            self.autoscaler.spec.scale_target_ref.name,
            names.join(" ")
        ))
    }

    /// Sets a condition; its transition time changes only with its status.
    fn set(&mut self, kind: &str, is_true: bool, reason: &str, message: &str) {
        let status = if is_true { "True" } else { "False" };
        let conditions = self.status.conditions.get_or_insert_default();
        let position = conditions.iter().position(|c| c.type_ == kind);
        let i = position.unwrap_or_else(|| {
            conditions.push(HorizontalPodAutoscalerCondition {
                type_: kind.to_owned(),
                ..HorizontalPodAutoscalerCondition::default()
            });
            conditions.len() - 1
        });
        let condition = &mut conditions[i];
        if condition.status != status {
            condition.status = status.to_owned();
            condition.last_transition_time = Some(moment::to_wire(self.cx.now));
        }
        condition.reason = Some(reason.to_owned());
        condition.message = Some(message.to_owned());
    }

    fn write(&mut self) -> Result<(), ApiError> {
        if self.status == self.autoscaler.status {
            return Ok(());
        }
        let mut autoscaler = Autoscaler::clone(self.autoscaler);
        autoscaler.status = self.status.clone();
        self.cx.api.update_status(autoscaler.into()).map(|_| ())
    }

    fn object(&self) -> Object {
        Object::Autoscaler(Arc::clone(self.autoscaler))
    }

    fn warn(&mut self, reason: &'static str, note: impl Into<Arc<str>>) {
        let event = Event::warning(NAME, &self.object(), reason, note);
        self.cx.api.record(event);
    }
}

/// The error of a metric that only a real cluster has.
fn no_figures(metric: &MetricSpec) -> MetricError {
    let reason = match metric.type_.as_str() {
        "Pods" => "FailedGetPodsMetric",
        "Object" => "FailedGetObjectMetric",
        "External" => "FailedGetExternalMetric",
        "ContainerResource" => "FailedGetContainerResourceMetric",
        _ => "InvalidMetricSourceType",
    };
    let error = format!(
        "a metric of type {} has no figures in a simulation",
        metric.type_
    );
    (reason, error)
}

fn tolerance(rules: Option<&HPAScalingRules>) -> f64 {
    let given = rules.and_then(|rules| rules.tolerance.as_ref());
    let given = given.and_then(|given| Quantity::parse(&given.0).ok());
    let milli = given.and_then(|given| i32::try_from(given.milli_value()).ok());
    milli.map_or(TOLERANCE, |milli| f64::from(milli) / 1000.0)
}

/// The requests of a pod's containers, in thousandths.
///
/// # Errors
/// The name of a container without a request.
fn request<'p>(pod: &'p PodSpec, resource: &str) -> Result<u64, &'p str> {
    let stays = |policy: Option<&str>| policy == Some("Always");
    let sidecars = pod.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|c| stays(c.restart_policy.as_deref()));
    pod.containers
        .iter()
        .chain(sidecars)
        .try_fold(0u64, |sum, container| {
            let requests = container
                .resources
                .as_ref()
                .and_then(|r| r.requests.as_ref());
            let given = requests.and_then(|requests| requests.get(resource));
            let milli = given.and_then(|given| Quantity::parse(&given.0).ok());
            let milli = milli.and_then(|given| u64::try_from(given.milli_value()).ok());
            Ok(sum.saturating_add(milli.ok_or(container.name.as_str())?))
        })
}
