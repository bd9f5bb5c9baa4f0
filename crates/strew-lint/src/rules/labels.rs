//! Selectors beside labels: who is selected, and what was probably meant.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{KubeObject, is_counted_apart, nearest};
use strew_model::Selector;

use super::constraint::{is_of_job, is_over, others_of};
use crate::Found;
use crate::files::{Files, Workload};

/// The most labels in a message.
const SHOWN_MAX: usize = 5;

/// `app=web,tier=front`; `no labels` if there are none.
pub(super) fn labels_text(labels: &BTreeMap<String, String>) -> String {
    if labels.is_empty() {
        return "no labels".to_owned();
    }
    let each = labels.iter().take(SHOWN_MAX);
    let each: Vec<String> = each.map(|(key, value)| format!("{key}={value}")).collect();
    match labels.len() > SHOWN_MAX {
        true => format!("{},…", each.join(",")),
        false => each.join(","),
    }
}

/// The label that a pod has where a selector asks for a similar value of the same key, or for the same value of a
/// similar key; `None` if the selector differs from the labels in anything else.
pub(super) fn other_value<'l>(
    selector: Option<&LabelSelector>,
    labels: &'l BTreeMap<String, String>,
) -> Option<(&'l str, &'l str)> {
    let wanted = selector?.match_labels.as_ref()?;
    similar(wanted, labels)
}

fn similar<'l>(
    wanted: &BTreeMap<String, String>,
    labels: &'l BTreeMap<String, String>,
) -> Option<(&'l str, &'l str)> {
    let mut differing = wanted
        .iter()
        .filter(|(key, value)| labels.get(*key) != Some(value));
    let (key, value) = differing.next()?;
    if differing.next().is_some() {
        return None;
    }
    if let Some((key, own)) = labels.get_key_value(key) {
        return nearest(value, [own.as_str()]).map(|_| (key.as_str(), own.as_str()));
    }
    let with_value = labels.iter().filter(|(_, own)| *own == value);
    let keys = with_value.map(|(own, _)| own.as_str());
    let meant = nearest(key, keys)?;
    let (key, value) = labels.get_key_value(meant)?;
    Some((key.as_str(), value.as_str()))
}

/// True if the selector differs from the labels only in keys that the labels do not have: pods get some labels while
/// they run, such as the role of a database.
pub(super) fn may_get_labels(
    selector: Option<&LabelSelector>,
    labels: &BTreeMap<String, String>,
) -> bool {
    let wanted = selector.and_then(|s| s.match_labels.as_ref());
    let Some(wanted) = wanted.filter(|wanted| wanted.len() > 1) else {
        return false;
    };
    let (known, unknown): (Vec<_>, Vec<_>) = wanted
        .iter()
        .partition(|(key, _)| labels.contains_key(*key));
    !known.is_empty()
        && !unknown.is_empty()
        && known
            .iter()
            .all(|(key, value)| labels.get(*key) == Some(value))
}

/// Services that select no pod and differ by a letter or two from one that there is.
pub(crate) fn service_typo(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (object, wire) in files.objects.iter().enumerate() {
        let KubeObject::Service(service) = wire else {
            continue;
        };
        let wanted = service
            .spec
            .as_ref()
            .and_then(|spec| spec.selector.as_ref());
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
            continue;
        };
        let namespace = wire.namespace().unwrap_or("default");
        let workloads = || files.of_namespace(namespace).map(|(_, workload)| workload);
        let selects = |labels: &BTreeMap<String, String>| {
            wanted
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
        };
        if workloads().any(|workload| selects(workload.written)) {
            continue;
        }
        let mut near = workloads().filter_map(|workload| {
            let (key, value) = similar(wanted, workload.written)?;
            let asked = wanted.get(key);
            let is_other = asked.is_some_and(|asked| is_counted_apart(asked, value));
            (!is_other).then_some((workload.object, (key, value)))
        });
        if let Some((workload, (key, value))) = near.next() {
            let message = format!(
                "the Service selects no pod: no pod of these files has {}",
                labels_text(wanted)
            );
            let path = FieldPath::root().child("spec.selector");
            let mut warning = Found::warning(object, path, message);
            warning
                .related
                .push((workload, "its pods have other labels"));
            found.push(warning.help(format!("did you mean {key}={value}?")));
        }
    }
    found
}

/// Workloads of one namespace whose selectors select each other's pods.
///
/// Source: spec/controllers §2.2
pub(crate) fn overlapping_selectors(files: &Files<'_>) -> Vec<Found> {
    let workloads = files.workloads.iter().enumerate();
    let with_selector = workloads.filter_map(|(number, workload)| {
        let wire = workload.selector?;
        Some((number, workload, files.selector(Some(wire))?))
    });
    let mut known: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    let mut found = Vec::new();
    for (number, workload, selector) in with_selector {
        let earlier = known.entry(workload.namespace).or_default();
        let overlapping = earlier.iter().find(|(other, others)| {
            let other: &&Workload<'_> = other;
            let others: &Selector = others;
            others.matches(&workload.labels) && selector.matches(&other.labels)
        });
        if let Some((other, _)) = overlapping {
            let message = format!(
                "its selector {} selects the pods of {} too: budgets, autoscalers and constraints with these labels \
                 count both",
                files.text(&selector),
                files.objects[other.object].label()
            );
            let path = FieldPath::root().child("spec.selector");
            let mut warning = Found::warning(workload.object, path, message);
            warning.related.push((other.object, "the other workload"));
            found
                .push(warning.help(
                    "give each workload a label of its own in its selector and its template",
                ));
        }
        found.extend(job_with_the_labels(files, number, &selector));
        earlier.push((workload, selector));
    }
    found
}

/// A Job or a CronJob whose pods have all labels of a workload's selector, where something counts by these labels.
fn job_with_the_labels(files: &Files<'_>, number: usize, selector: &Selector) -> Option<Found> {
    let workload = &files.workloads[number];
    if selector.is_empty() || is_of_job(workload) {
        return None;
    }
    let mut selected = files.selected(workload.namespace, selector);
    let (other, job) = selected.find(|(_, other)| is_of_job(other) && !is_over(files, other))?;
    let (object, counts) = counter(files, number, other)?;
    let label = files.objects[object].label();
    let who = match object == workload.object {
        true => "its constraint".to_owned(),
        false => label,
    };
    let message = format!(
        "its selector {} selects the pods of {} too: {who} {counts} both",
        files.text(selector),
        files.objects[job.object].label()
    );
    let path = FieldPath::root().child("spec.selector");
    let mut warning = Found::warning(workload.object, path, message)
        .help("give the pods of the Job a label of their own, and the workload's selector one that they lack")
        .related(job.object, "its pods have the labels");
    if object != workload.object {
        warning = warning.related(object, "it selects both");
    }
    Some(warning)
}

/// What selects the pods of both workloads: the index of its object, and what it does with them. A budget or a Service,
/// or a constraint of the first workload.
fn counter(files: &Files<'_>, number: usize, other: usize) -> Option<(usize, &'static str)> {
    let (workload, job) = (&files.workloads[number], &files.workloads[other]);
    let mut budgets = files.budgets.iter().filter(|budget| {
        let selector = &budget.selector;
        budget.namespace == workload.namespace
            && selector.matches(&workload.labels)
            && selector.matches(&job.labels)
    });
    let services = files.objects.iter().enumerate();
    let mut services = services.filter(|(_, wire)| {
        let KubeObject::Service(service) = wire else {
            return false;
        };
        let wanted = service.spec.as_ref().and_then(|s| s.selector.as_ref());
        let selects = |labels: &BTreeMap<String, String>| {
            let mut wanted = wanted.into_iter().flatten();
            wanted.all(|(key, value)| labels.get(key) == Some(value))
        };
        wire.namespace().unwrap_or("default") == workload.namespace
            && wanted.is_some_and(|wanted| !wanted.is_empty())
            && selects(workload.written)
            && selects(job.written)
    });
    let constraints = workload.spec.topology_spread_constraints.iter().flatten();
    let mut counted = constraints.flat_map(|c| others_of(files, number, c));
    let budget = budgets.next().map(|budget| (budget.object, "counts"));
    let service = services.next();
    let service = service.map(|(object, _)| (object, "sends traffic to"));
    budget.or(service).or_else(|| {
        let is_counted = counted.any(|counted| counted.object == job.object);
        is_counted.then_some((workload.object, "counts"))
    })
}
