//! Topology spread constraints and the pods that they count.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use strew_manifest::fix::Fix;
use strew_manifest::read::{KubeObject, nearest};
use strew_model::Selector;

use super::labels::{labels_text, other_value};
use crate::Found;
use crate::files::{Files, POD_INDEX, POD_NAME, Workload, namespace_of};

/// Constraints that count none of their workload's pods.
///
/// Source: spec/scheduler §1.8, §1.16
pub(crate) fn counts_none(files: &Files<'_>) -> Vec<Found> {
    uncounted(files)
        .filter(|uncounted| uncounted.n_counted == 0)
        .map(|uncounted| uncounted.found(files))
        .collect()
}

/// Constraints that count some of their workload's pods, and others not.
pub(crate) fn counts_some(files: &Files<'_>) -> Vec<Found> {
    uncounted(files)
        .filter(|uncounted| uncounted.n_counted > 0)
        .map(|uncounted| uncounted.found(files))
        .collect()
}

/// Keys of `matchLabelKeys` that no pod of the workload has: the scheduler ignores them.
///
/// Source: spec/scheduler §1.3, §1.4
pub(crate) fn unknown_match_label_key(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, index, constraint) in files.constraints() {
        let workload = &files.workloads[number];
        if files.spread.get(&number) == Some(&true) {
            continue;
        }
        let keys = || constraint.match_label_keys.iter().flatten();
        for (at, key) in keys().enumerate() {
            if workload.labels.get(files.symbol(key)).is_some() {
                continue;
            }
            let path = workload.constraint_path(index).child("matchLabelKeys");
            let message =
                format!("no pod of the workload has the label {key}: the key has no effect");
            let known = ["pod-template-hash", "controller-revision-hash"];
            let known = known.into_iter();
            let known = known.filter(|key| workload.labels.get(files.symbol(key)).is_some());
            let known = known.chain(workload.written.keys().map(String::as_str));
            let known: Vec<&str> = known.collect();
            let meant = nearest(key, known.iter().copied());
            let help = match meant {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("its pods have the labels {}", known.join(", ")),
            };
            let warning = Found::warning(workload.object, path.index(at), message).help(help);
            found.push(match meant {
                Some(meant) => {
                    let mut keys: Vec<&str> = keys().map(String::as_str).collect();
                    keys[at] = meant;
                    warning.fix(Fix::set(&path, keys))
                }
                None => warning,
            });
        }
    }
    found
}

/// A constraint that does not count all pods of its workload.
struct Uncounted<'f, 'a> {
    workload: &'f Workload<'a>,
    index: usize,
    constraint: &'a TopologySpreadConstraint,
    selector: Selector,
    n_counted: i64,
}

fn uncounted<'f, 'a>(files: &'f Files<'a>) -> impl Iterator<Item = Uncounted<'f, 'a>> {
    files
        .constraints()
        .filter_map(|(number, index, constraint)| {
            let workload = &files.workloads[number];
            // A patch of a WorkloadSpread may give them the labels.
            if files.spread.get(&number) == Some(&true) {
                return None;
            }
            let selector = files.selector(constraint.label_selector.as_ref())?;
            // The scheduler counts no pods for a selector that selects all.
            let n_counted = match selector.is_empty() {
                true => 0,
                false => counted(files, workload, &selector)?,
            };
            Some(Uncounted {
                workload,
                index,
                constraint,
                selector,
                n_counted,
            })
        })
}

/// The number of the workload's pods that a selector selects; `None`: all.
fn counted(files: &Files<'_>, workload: &Workload<'_>, selector: &Selector) -> Option<i64> {
    let Some(own) = ordinals(files, workload, selector) else {
        return (!selector.matches(&workload.labels)).then_some(0);
    };
    let n_pods = workload.n_pods.unwrap_or(0);
    (own < n_pods).then_some(own)
}

/// The pods of a StatefulSet that a selector selects, which asks for a label that differs from pod to pod; `None`: it
/// asks for no such label.
fn ordinals(files: &Files<'_>, workload: &Workload<'_>, selector: &Selector) -> Option<i64> {
    let own = [files.symbol(POD_NAME), files.symbol(POD_INDEX)];
    let asks = match selector {
        Selector::AllOf(requirements) => requirements.iter().any(|r| own.contains(&r.key)),
        Selector::Nothing => false,
    };
    // More pods than this are not counted one by one.
    let n_pods = workload.n_pods.filter(|n| *n <= 1000 && asks)?;
    workload.labels.get(own[0])?;
    let is_counted = |ordinal: &i64| {
        let name = files.symbol(&format!("{}-{ordinal}", workload.name));
        let index = files.symbol(&ordinal.to_string());
        let labels = workload.labels.with([(own[0], name), (own[1], index)]);
        selector.matches(&labels)
    };
    i64::try_from((0..n_pods).filter(is_counted).count()).ok()
}

fn workload_labels(constraint: &TopologySpreadConstraint) -> BTreeMap<String, String> {
    let wire = constraint.label_selector.as_ref();
    wire.and_then(|selector| selector.match_labels.clone())
        .unwrap_or_default()
}

impl Uncounted<'_, '_> {
    fn found(&self, files: &Files<'_>) -> Found {
        let Self {
            workload,
            n_counted,
            constraint,
            ..
        } = self;
        let all = workload.n_text();
        let counts = match (n_counted, workload.n_pods) {
            (0, Some(1)) => "does not count the only pod of the workload".to_owned(),
            (0, _) => format!("counts none of {all} of the workload, so it does not spread them"),
            (n, _) => {
                format!("counts only {n} of {all} of the workload, so it does not spread them")
            }
        };
        let selector = files.text(&self.selector);
        let message = match (&constraint.label_selector, self.selector.is_empty()) {
            (None, _) => format!("the constraint {counts}: it has no selector"),
            (Some(_), true) => format!("the constraint {counts}: its selector is empty"),
            (Some(_), false) => {
                format!("the constraint {counts}: its selector is {selector}")
            }
        };
        let path = workload.constraint_path(self.index);
        let path = match constraint.label_selector {
            Some(_) => path.child("labelSelector"),
            None => path,
        };
        let meant = other_value(constraint.label_selector.as_ref(), workload.written);
        let help = match (meant, &constraint.label_selector) {
            (Some((key, value)), _) => format!("did you mean {key}={value}?"),
            (None, None) => format!(
                "a missing selector selects no pod: write labelSelector, for example matchLabels with {}",
                labels_text(workload.written)
            ),
            (None, Some(_)) if self.selector.is_empty() => format!(
                "the scheduler counts no pods for an empty selector: write matchLabels, for example with {}",
                labels_text(workload.written)
            ),
            (None, Some(_)) => {
                format!("its pods have the labels {}", labels_text(workload.written))
            }
        };
        let own = workload.selector.and_then(|s| s.match_labels.as_ref());
        let fix = match (meant, &constraint.label_selector, own) {
            (Some((key, value)), ..) => {
                let mut labels = workload_labels(constraint);
                labels.retain(|key, value| workload.written.get(key) == Some(value));
                labels.insert(key.to_owned(), value.to_owned());
                Some(labels)
            }
            (None, None, Some(own)) => Some(own.clone()),
            (None, Some(_), Some(own)) if self.selector.is_empty() => Some(own.clone()),
            _ => None,
        };
        let fix = fix.map(|labels| match constraint.label_selector {
            Some(_) => Fix::set(&path.child("matchLabels"), serde_json::json!(labels)),
            None => Fix::set(
                &path.child("labelSelector"),
                serde_json::json!({"matchLabels": labels}),
            ),
        });
        let mut found = Found::warning(workload.object, path, message).help(help);
        found.fix = fix;
        let found = found.number("counted", *n_counted);
        match workload.n_pods {
            Some(n) => found.number("pods", n),
            None => found,
        }
    }
}

/// Kinds whose selector the scheduler does not read for default constraints: those of their Services are all it has.
const WITHOUT_SELECTOR: [&str; 3] = ["CloneSet", "Job", "CronJob"];

/// The labels of the pods that a Service selects.
type Selected = BTreeMap<String, String>;

/// Workloads without constraints whose default constraints would count the pods of another workload, since a Service
/// selects both.
///
/// Source: spec/scheduler §1.5
pub(crate) fn defaults_count_others(files: &Files<'_>) -> Vec<Found> {
    let defaults = files.scheduling.defaults();
    if defaults.is_empty() {
        return Vec::new();
    }
    let is_hard = defaults.iter().any(|constraint| constraint.hard);
    let which = match files.scheduling.document {
        Some(_) => format!(
            "the default constraints of the scheduler's configuration, {}, spread",
            files.scheduling.defaults_text()
        ),
        None => "default constraints would spread".to_owned(),
    };
    let mut services: BTreeMap<&str, Vec<(usize, &Selected)>> = BTreeMap::new();
    for (object, found) in files.objects.iter().enumerate() {
        if let KubeObject::Service(service) = found
            && let Some(selector) = service
                .spec
                .as_ref()
                .and_then(|spec| spec.selector.as_ref())
            && !selector.is_empty()
        {
            let namespace = services.entry(namespace_of(&service.metadata));
            namespace.or_default().push((object, selector));
        }
    }
    let has = |workload: &Workload<'_>, selector: &Selected| {
        let mut pairs = selector.iter();
        pairs.all(|(key, value)| workload.written.get(key) == Some(value))
    };
    let mut found = Vec::new();
    for (number, workload) in files.workloads.iter().enumerate() {
        let own = workload.spec.topology_spread_constraints.as_deref();
        let is_meant = WITHOUT_SELECTOR.contains(&workload.kind)
            && own.unwrap_or_default().is_empty()
            && workload.n_pods.is_none_or(|n| n > 1);
        let of_namespace = services.get(workload.namespace).into_iter().flatten();
        let its: Vec<_> = of_namespace.filter(|(_, s)| has(workload, s)).collect();
        let (true, Some((service, _))) = (is_meant, its.first()) else {
            continue;
        };
        // The scheduler asks for the labels of all of them.
        let mut others = files.of_namespace(workload.namespace).filter(|(other, w)| {
            let is_counted = *other != number && w.kind != "Pod" && w.n_pods != Some(0);
            is_counted && its.iter().all(|(_, selector)| has(w, selector))
        });
        let Some((_, first)) = others.next() else {
            continue;
        };
        let n = 2 + others.count();
        let message = format!(
            "{which} its pods together with those of {}: {} selects both, and the scheduler does not read the selector of a {}",
            files.objects[first.object].label(),
            files.objects[*service].label(),
            workload.kind,
        );
        let path = workload.spec_path.clone();
        let finding = match is_hard {
            true => Found::warning(workload.object, path, message),
            false => Found::note(workload.object, path, message),
        };
        let finding = finding
            .help("give it a constraint with a selector of its own, or a Service of its own")
            .number("workloads", i64::try_from(n).unwrap_or(i64::MAX))
            .related(*service, "the Service");
        found.push(finding);
    }
    found
}

/// The other workloads whose pods a constraint counts; none where it does not count its own.
///
/// Source: spec/scheduler §1.8
pub(crate) fn others_of<'f, 'a>(
    files: &'f Files<'a>,
    number: usize,
    constraint: &TopologySpreadConstraint,
) -> Vec<&'f Workload<'a>> {
    let workload = &files.workloads[number];
    let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
    // The keys of one revision narrow the selector to one workload.
    let is_narrow = keys.iter().any(|key| {
        let is_unwritten = !workload.written.contains_key(key);
        is_unwritten && workload.of_controller.contains(&key.as_str())
    });
    let selector = files.selector(constraint.label_selector.as_ref());
    let selector = selector.filter(|selector| {
        !is_narrow && !selector.is_empty() && selector.matches(&workload.labels)
    });
    let Some(selector) = selector else {
        return Vec::new();
    };
    let own = workload
        .selector
        .and_then(|wire| files.selector(Some(wire)));
    let selected = files.selected(workload.namespace, &selector);
    let others = selected.filter(|(other, w)| {
        // What this one's selector selects is its own, or `selectors-overlap`; a Job has no selector that could.
        let is_own = !is_of_job(w) && own.as_ref().is_some_and(|own| own.matches(&w.labels));
        let has_keys = keys.iter().all(|key| {
            let value = workload.written.get(key);
            value.is_none() || value == w.written.get(key)
        });
        let is_other = *other != number && w.kind != "Pod" && !is_own && has_keys;
        is_other && w.n_pods != Some(0) && !is_over(files, w)
    });
    others.map(|(_, w)| w).collect()
}

/// True for workloads whose pods are told apart by labels that their controller makes.
pub(super) fn is_of_job(workload: &Workload<'_>) -> bool {
    ["Job", "CronJob"].contains(&workload.kind)
}

/// True for a Job that has ended.
pub(super) fn is_over(files: &Files<'_>, workload: &Workload<'_>) -> bool {
    let KubeObject::Job(job) = files.objects[workload.object] else {
        return false;
    };
    let conditions = { job.status.iter() }.flat_map(|status| status.conditions.iter().flatten());
    let mut ends = conditions.filter(|condition| condition.status == "True");
    ends.any(|condition| ["Complete", "Failed"].contains(&condition.type_.as_str()))
}

/// Constraints that count pods of other workloads, too.
///
/// Source: spec/scheduler §1.8
pub(crate) fn counts_others(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, index, constraint) in files.constraints() {
        let workload = &files.workloads[number];
        // Bare pods may be those of a workload that the files do not have.
        if workload.kind == "Pod" {
            continue;
        }
        let others = others_of(files, number, constraint);
        let Some(first) = others.first() else {
            continue;
        };
        let and_more = match others.len() {
            1 => String::new(),
            n => format!(" and of {} more", n - 1),
        };
        let label = files.objects[first.object].label();
        let selector = files.selector(constraint.label_selector.as_ref());
        let message = format!(
            "the constraint also counts the pods of {label}{and_more}: its selector is {}",
            selector.map_or_else(String::new, |selector| files.text(&selector))
        );
        let path = workload.constraint_path(index).child("labelSelector");
        let note = Found::note(workload.object, path, message)
            .help("both together are spread then, and one alone may be in one domain")
            .number(
                "workloads",
                i64::try_from(others.len() + 1).unwrap_or(i64::MAX),
            );
        found.push(note.related(first.object, "its pods are counted, too"));
    }
    found
}

/// StatefulSets with a majority to keep whose pods are spread by preferences only.
pub(crate) fn soft_majority(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for workload in &files.workloads {
        let n = workload.n_pods.unwrap_or(0);
        if workload.kind != "StatefulSet" || n < 3 || n % 2 == 0 {
            continue;
        }
        let constraints = workload
            .spec
            .topology_spread_constraints
            .as_deref()
            .unwrap_or_default();
        let anti = workload
            .spec
            .affinity
            .as_ref()
            .and_then(|a| a.pod_anti_affinity.as_ref());
        let required = anti.and_then(|a| {
            a.required_during_scheduling_ignored_during_execution
                .as_deref()
        });
        let preferred = anti.and_then(|a| {
            a.preferred_during_scheduling_ignored_during_execution
                .as_deref()
        });
        let is_hard = constraints
            .iter()
            .any(|c| c.when_unsatisfiable == "DoNotSchedule")
            || !required.unwrap_or_default().is_empty();
        let (path, key) = match (constraints, preferred.unwrap_or_default()) {
            ([constraint, ..], _) => (
                workload.constraint_path(0).child("whenUnsatisfiable"),
                &constraint.topology_key,
            ),
            ([], [term, ..]) => {
                let path = workload.spec_path.child("affinity.podAntiAffinity");
                let path = path.child("preferredDuringSchedulingIgnoredDuringExecution");
                (path.index(0), &term.pod_affinity_term.topology_key)
            }
            ([], []) => continue,
        };
        if is_hard {
            continue;
        }
        let majority = n / 2 + 1;
        let message = format!(
            "the {n} pods are spread over {key} by preference only: {majority} of them, the majority, may be in one domain and are lost with it"
        );
        let note = Found::note(workload.object, path, message)
            .help("where a quorum decides, a hard constraint (DoNotSchedule) keeps the majority apart")
            .number("pods", n)
            .number("majority", majority);
        found.push(note);
    }
    found
}
