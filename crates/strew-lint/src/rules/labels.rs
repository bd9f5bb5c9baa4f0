//! Selectors beside labels: who is selected, and what was probably meant.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{KubeObject, nearest};

use crate::Found;
use crate::files::Files;

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
            let meant = similar(wanted, workload.written)?;
            Some((workload.object, meant))
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
    let with_selector = files.workloads.iter().filter_map(|workload| {
        let wire = workload.selector?;
        Some((workload, files.selector(Some(wire))?))
    });
    let mut known: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    let mut found = Vec::new();
    for (workload, selector) in with_selector {
        let earlier = known.entry(workload.namespace).or_default();
        let overlapping = earlier.iter().find(|(other, others)| {
            let other: &&crate::files::Workload<'_> = other;
            let others: &strew_model::Selector = others;
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
        earlier.push((workload, selector));
    }
    found
}
