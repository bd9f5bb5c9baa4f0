//! HorizontalPodAutoscalers and what they scale.

use std::collections::BTreeMap;

use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::read::{KubeObject, nearest};

use crate::Found;
use crate::files::{Files, Target};

/// Autoscalers whose target is not in the files, although their namespace has workloads.
///
/// Source: spec/controllers §6
pub(crate) fn no_target(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (object, wire) in files.objects.iter().enumerate() {
        let Some(target) = Target::of(wire).filter(|target| target.is_read) else {
            continue;
        };
        let Target {
            kind,
            name,
            namespace,
            ..
        } = target;
        let is_it = |other: &&&KubeObject| other.kind() == kind && other.name() == name;
        // Whether a kind that strew does not know is namespaced is unknown.
        let is_there = files
            .objects
            .iter()
            .filter(is_it)
            .any(|other| other.namespace().unwrap_or(namespace) == namespace);
        let has_others = files.of_namespace(namespace).next().is_some();
        if is_there || !has_others || files.more_come {
            continue;
        }
        let message = format!(
            "there is no {kind} {name:?} in namespace {namespace} of these files: it scales nothing"
        );
        let path = FieldPath::root().child("spec.scaleTargetRef");
        let elsewhere = files.objects.iter().find(is_it);
        let of_kind = files.of_namespace(namespace).map(|(_, w)| w);
        let of_kind = of_kind.filter(|w| w.kind == kind).map(|w| w.name);
        let help = match (
            elsewhere.and_then(|o| o.namespace()),
            nearest(name, of_kind),
        ) {
            (Some(other), _) => format!(
                "there is one in namespace {other}: an autoscaler scales what is in its own namespace"
            ),
            (None, Some(meant)) => format!("did you mean {meant:?}?"),
            (None, None) => "name the file that has it, too".to_owned(),
        };
        found.push(Found::warning(object, path, message).help(help));
    }
    found
}

/// Autoscalers of a workload that an earlier one of the files scales, too. A HorizontalPodAutoscaler that KEDA made of a
/// ScaledObject is that one's.
pub(crate) fn shared_target(files: &Files<'_>) -> Vec<Found> {
    let all = || files.objects.iter().enumerate();
    let scalers = all().filter_map(|(object, wire)| Some((object, wire, Target::of(wire)?)));
    let scalers = scalers.filter(|(_, wire, _)| {
        let owners = wire
            .metadata()
            .and_then(|meta| meta.owner_references.as_ref());
        owners.is_none_or(Vec::is_empty)
    });
    let mut known: BTreeMap<[&str; 3], String> = BTreeMap::new();
    let mut found = Vec::new();
    for (object, wire, target) in scalers {
        let key = [target.namespace, target.kind, target.name];
        let name = format!("{} {}", wire.kind(), wire.name());
        let Some(first) = known.get(&key) else {
            known.insert(key, name);
            continue;
        };
        let message = format!(
            "{first} scales {} {:?}, too: each takes back what the other sets",
            target.kind, target.name
        );
        let path = FieldPath::root().child("spec.scaleTargetRef");
        let help = "leave one autoscaler, with the metrics of both";
        found.push(Found::warning(object, path, message).help(help));
    }
    found
}

/// An autoscaler with what it scales.
pub(super) struct Scaled {
    /// The index of the autoscaler's object.
    pub(super) object: usize,
    /// The index of the workload; `None` if the files do not have it.
    pub(super) workload: Option<usize>,
    /// Its smallest number of pods; `None` if strew does not know its kind.
    pub(super) min: Option<i64>,
    /// The field of that number.
    pub(super) field: &'static str,
}

impl Scaled {
    /// The path of its smallest number of pods.
    pub(super) fn path(&self) -> FieldPath {
        FieldPath::root().child("spec").child(self.field)
    }
}

/// Every autoscaler.
pub(super) fn targets_of(files: &Files<'_>) -> impl Iterator<Item = Scaled> {
    let objects = files.objects.iter().enumerate();
    objects.filter_map(|(object, wire)| {
        let target = Target::of(wire)?;
        let name = target.reference();
        Some(Scaled {
            object,
            workload: files.workloads.iter().position(|w| w.reference() == name),
            min: target.min,
            field: target.field,
        })
    })
}

/// Autoscalers that may scale below the number of domains that a hard constraint asks for.
///
/// Source: spec/scheduler §1.8
pub(crate) fn min_below_domains(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for scaled in targets_of(files) {
        let (Some(number), Some(min)) = (scaled.workload, scaled.min) else {
            continue;
        };
        let workload = &files.workloads[number];
        let constraints = workload.spec.topology_spread_constraints.iter().flatten();
        let asked = constraints.filter(|c| c.when_unsatisfiable == "DoNotSchedule");
        let asked = asked.filter_map(|c| Some((i64::from(c.min_domains?), &c.topology_key)));
        let Some((domains, key)) = asked.max().filter(|(domains, _)| *domains > min) else {
            continue;
        };
        let field = scaled.field;
        let message = format!(
            "{field} {min} is below minDomains {domains} of {key}: scaled down, {min} of {domains} domains have a pod"
        );
        let path = scaled.path();
        let note = Found::note(scaled.object, path.clone(), message)
            .number(field, min)
            .number("minDomains", domains);
        // What a scaler of another project may be changed to is not tried.
        let note = match files.objects[scaled.object] {
            KubeObject::HorizontalPodAutoscaler(_) => note.fix(Fix::set(&path, domains)),
            _ => note,
        };
        found.push(note.related(workload.object, "it scales this"));
    }
    found
}
