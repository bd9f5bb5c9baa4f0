//! Reads verbs.

use serde_json::Value;
use std::collections::BTreeMap;

use strew_manifest::field::FieldPath;
use strew_manifest::kinds::{self, KindRow};
use strew_wire::config::FeatureGates;

use super::diagnostics;
use super::edits::{self, ImageEdit, MetadataEdit};
use super::existence::{Mention, ObjectKey};
use super::fault;
use super::flow;
use super::known::Bearer;
use super::manifest::{self, Manifest};
use super::patch::{self, Patch};
use super::problems::Problems;
use super::target::{
    CLUSTER, Deleted, NODE, NodeTarget, ObjectTarget, RESTARTED, ROLLED_OUT, SCALABLE, Target,
    Targets, WITH_PODS, WORKLOADS, Wanted,
};
use super::value::At;
use super::verb::{LocatedVerb, Replicas, RolloutAction, Verb};
use super::vocabulary::{DELETE, DRAIN};

const SCHEDULED: &[&str] = &["CronJob"];
const PAUSABLE: &[&str] = &["Deployment"];
const METERED: &[&str] = &["HorizontalPodAutoscaler"];
const ANY: &[&str] = &[];

/// Reads one field of a step, other than `at` and `expect`.
pub(super) fn read(
    name: &'static str,
    at: &At<'_>,
    targets: Targets<'_>,
    problems: &mut Problems,
) -> Option<LocatedVerb> {
    let reader = Reader { name, targets };
    let verb = reader.verb(at, problems)?;
    Some(LocatedVerb {
        place: None,
        verb,
        path: at.path.clone(),
        text: format!("{name}: {}", shown(at.value)),
    })
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    name: &'static str,
    targets: Targets<'a>,
}

impl Reader<'_> {
    fn verb(&self, at: &At<'_>, problems: &mut Problems) -> Option<Verb> {
        let rollout = |action, kinds: &'static [&'static str], problems: &mut Problems| {
            Verb::Rollout(action, self.objects(at, kinds, problems))
        };
        Some(match self.name {
            "apply" => Verb::Apply(self.manifests(at, problems)),
            "create" => Verb::Create(self.manifests(at, problems)),
            "delete" => Verb::Delete(self.deleted(at, problems)?),
            "patch" => Verb::Patch(self.patches(at, problems)),
            "scale" => Verb::Scale(self.replicas(at, problems)),
            "set-image" => Verb::SetImage(self.images(at, problems)),
            "rollout-restart" => rollout(RolloutAction::Restart, &RESTARTED, problems),
            "rollout-undo" => rollout(RolloutAction::Undo, &ROLLED_OUT, problems),
            "rollout-pause" => rollout(RolloutAction::Pause, PAUSABLE, problems),
            "rollout-resume" => rollout(RolloutAction::Resume, PAUSABLE, problems),
            "run-once" => Verb::RunOnce(self.objects(at, SCHEDULED, problems)),
            "cordon" => Verb::Cordon(self.nodes(at, problems)),
            "uncordon" => Verb::Uncordon(self.nodes(at, problems)),
            "drain" => self.drain(at, problems)?,
            "ready" => self.ready(at, problems),
            "taint" => self.taint(at, problems),
            "label" => Verb::Label(self.metadata(at, problems)),
            "annotate" => Verb::Annotate(self.metadata(at, problems)),
            "lose" => Verb::Lose(self.nodes(at, problems)),
            "restore" => Verb::Restore(self.nodes(at, problems)),
            "gates" => Verb::Gates(gates(at, problems)),
            "metric" => Verb::Metric(self.numbers(at, METERED, problems)),
            "crash" => Verb::Crash(fault::crashes(at, problems)),
            "fault" => Verb::Fault(fault::faults(at, problems)),
            other => {
                debug_assert!(false, "{other} is in the vocabulary, and nothing reads it");
                return None;
            }
        })
    }

    fn wanted(&self, kinds: &'static [&'static str]) -> Wanted {
        Wanted {
            kinds,
            by: self.name,
        }
    }

    fn manifests(&self, at: &At<'_>, problems: &mut Problems) -> Vec<Manifest> {
        let manifests = at.one_or_many(problems);
        let manifests = manifests.iter();
        let manifests: Vec<Manifest> = manifests
            .filter_map(|at| manifest::read(at, problems))
            .collect();
        let mut known = Once::default();
        for manifest in &manifests {
            let made = Mention::Made(ObjectKey::of(&manifest.object), manifest.value.clone());
            self.targets.mentions.borrow_mut().push(made);
            known.admit(&manifest.object.label(), &manifest.path, problems);
        }
        manifests
    }

    fn deleted(&self, at: &At<'_>, problems: &mut Problems) -> Option<Vec<Deleted>> {
        let wanted = self.wanted(ANY);
        let found = match at.value.is_object() {
            true => {
                let fields = at.fields(&DELETE, problems)?;
                let pods = fields.required("pods", problems)?;
                self.targets
                    .each(&pods, problems, |targets, text, at, problems| {
                        targets.pods_of(text, self.name, at, problems)
                    })
            }
            false => self
                .targets
                .each(at, problems, |targets, text, at, problems| {
                    targets.deleted(text, wanted, at, problems)
                }),
        };
        Some(only_once(found, problems))
    }

    fn objects(
        &self,
        at: &At<'_>,
        kinds: &'static [&'static str],
        problems: &mut Problems,
    ) -> Vec<ObjectTarget> {
        let found = self
            .targets
            .each(at, problems, |targets, text, at, problems| {
                targets.object(text, self.wanted(kinds), at, problems)
            });
        only_once(found, problems)
    }

    fn nodes(&self, at: &At<'_>, problems: &mut Problems) -> Vec<NodeTarget> {
        let found = self
            .targets
            .each(at, problems, |targets, text, at, problems| {
                targets.nodes(text, self.name, at, problems)
            });
        only_once(found, problems)
    }

    /// The entries of an object with targets as keys; reports a target that stands twice.
    fn by_target<T: std::fmt::Debug, V>(
        &self,
        at: &At<'_>,
        problems: &mut Problems,
        target: impl Fn(&str, &At<'_>, &mut Problems) -> Option<T>,
        value: impl Fn(&At<'_>, &mut Problems) -> Option<V>,
    ) -> Vec<(T, V)> {
        let mut found = Vec::new();
        let mut known = Once::default();
        let entries = at.entries(problems);
        if entries.is_empty() && at.value.is_object() {
            problems.add(&at.path, diagnostics::empty_list());
        }
        for (text, at) in entries {
            let target = target(text, &at, problems);
            let value = value(&at, problems);
            if let (Some(target), Some(value)) = (target, value) {
                known.admit(&format!("{target:?}"), &at.path, problems);
                found.push((target, value));
            }
        }
        found
    }

    fn patches(&self, at: &At<'_>, problems: &mut Problems) -> Vec<(Target, Patch)> {
        let target = |text: &str, at: &At<'_>, problems: &mut Problems| {
            self.targets.any(text, self.wanted(ANY), at, problems)
        };
        self.by_target(
            at,
            problems,
            |text, at, problems| {
                let target = target(text, at, problems)?;
                if let Some(row) = row_of(&target) {
                    patch::check_fields(at, row, problems);
                }
                let patched = Mention::Patched(kind_of(&target), at.value.clone());
                self.targets.mentions.borrow_mut().push(patched);
                Some(target)
            },
            patch::read,
        )
    }

    fn numbers(
        &self,
        at: &At<'_>,
        kinds: &'static [&'static str],
        problems: &mut Problems,
    ) -> Vec<(ObjectTarget, u32)> {
        let target = |text: &str, at: &At<'_>, problems: &mut Problems| {
            self.targets.object(text, self.wanted(kinds), at, problems)
        };
        self.by_target(at, problems, target, |at, problems| at.count(problems))
    }

    fn replicas(&self, at: &At<'_>, problems: &mut Problems) -> Vec<(ObjectTarget, Replicas)> {
        let target = |text: &str, at: &At<'_>, problems: &mut Problems| {
            self.targets
                .object(text, self.wanted(&SCALABLE), at, problems)
        };
        self.by_target(at, problems, target, |at, problems| {
            let Some(text) = at.value.as_str() else {
                return at.count(problems).map(Replicas::Count);
            };
            let percent = text.strip_suffix('%').and_then(|n| n.parse().ok());
            if percent.is_none() {
                problems.add(&at.path, diagnostics::no_replicas(at.value));
            }
            percent.map(Replicas::Percent)
        })
    }

    fn images(&self, at: &At<'_>, problems: &mut Problems) -> Vec<(ObjectTarget, Vec<ImageEdit>)> {
        let target = |text: &str, at: &At<'_>, problems: &mut Problems| {
            let wanted = self.wanted(&WITH_PODS);
            let target = self.targets.object(text, wanted, at, problems)?;
            for text in at.one_or_many(&mut Problems::default()) {
                let edit = text
                    .value
                    .as_str()
                    .and_then(|text| ImageEdit::parse(text).ok());
                if let Some(container) = edit.and_then(|edit| edit.container) {
                    let named = Mention::Container(target.clone(), container, text.path);
                    self.targets.mentions.borrow_mut().push(named);
                }
            }
            Some(target)
        };
        self.by_target(at, problems, target, |at, problems| {
            Some(edits::each(at, problems, ImageEdit::parse))
        })
    }

    fn drain(&self, at: &At<'_>, problems: &mut Problems) -> Option<Verb> {
        if !at.value.is_object() {
            let nodes = self.nodes(at, problems);
            return Some(Verb::Drain {
                nodes,
                timeout: None,
                must_fail: false,
            });
        }
        let fields = at.fields(&DRAIN, problems)?;
        let timeout = fields.get("timeout").and_then(|at| at.span(problems));
        let must_fail = fields.get("mustFail").and_then(|at| at.boolean(problems));
        let nodes = fields.required("nodes", problems)?;
        let nodes = self.nodes(&nodes, problems);
        Some(Verb::Drain {
            nodes,
            timeout,
            must_fail: must_fail.unwrap_or(false),
        })
    }

    fn ready(&self, at: &At<'_>, problems: &mut Problems) -> Verb {
        let target = |text: &str, at: &At<'_>, problems: &mut Problems| {
            self.targets.pods(text, self.name, at, problems)
        };
        Verb::Ready(self.by_target(at, problems, target, |at, problems| at.boolean(problems)))
    }

    fn taint(&self, at: &At<'_>, problems: &mut Problems) -> Verb {
        let target = |text: &str, at: &At<'_>, problems: &mut Problems| {
            self.targets.nodes(text, self.name, at, problems)
        };
        Verb::Taint(self.by_target(at, problems, target, |at, problems| {
            Some(edits::each(at, problems, edits::taint))
        }))
    }

    fn metadata(&self, at: &At<'_>, problems: &mut Problems) -> Vec<(Target, Vec<MetadataEdit>)> {
        let target = |text: &str, at: &At<'_>, problems: &mut Problems| {
            self.targets.any(text, self.wanted(ANY), at, problems)
        };
        let edits = self.by_target(at, problems, target, |at, problems| {
            Some(edits::each(at, problems, edits::label))
        });
        if self.name == "label" {
            let mut mentions = self.targets.mentions.borrow_mut();
            for (target, edits) in &edits {
                let of = match kind_of(target) {
                    NODE => Bearer::Node,
                    "Pod" => Bearer::Pod,
                    CLUSTER => Bearer::Cluster,
                    _ => continue,
                };
                mentions.extend(edits.iter().filter_map(|edit| match edit {
                    MetadataEdit::Set(key, value) => {
                        Some(Mention::Labelled(of, key.clone(), value.clone()))
                    }
                    MetadataEdit::Remove(_) => None,
                }));
            }
        }
        edits
    }
}

/// The longest value that is shown whole, in bytes.
const SHOWN_MAX: usize = 120;

/// The value in one line; long manifests by their names: `deployment/web, shop/service/api`.
fn shown(value: &Value) -> String {
    let line = flow::line(value);
    let named = |object: &Value| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let kind = text(&object["kind"])?.to_lowercase();
        let name = text(&object["metadata"]["name"])?;
        Some(match text(&object["metadata"]["namespace"]) {
            Some(namespace) if namespace != "default" => format!("{namespace}/{kind}/{name}"),
            _ => format!("{kind}/{name}"),
        })
    };
    let objects = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    let names: Option<Vec<String>> = objects.iter().map(named).collect();
    match names {
        Some(names) if line.len() > SHOWN_MAX => names.join(", "),
        _ => line,
    }
}

/// Reads gates by name; reports gates that strew cannot switch.
pub(super) fn gates(at: &At<'_>, problems: &mut Problems) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (name, at) in at.entries(problems) {
        let Some(value) = at.boolean(problems) else {
            continue;
        };
        match FeatureGates::of(std::iter::once((name, value))) {
            Ok(_) => found.push((name.to_owned(), value)),
            Err(errors) => {
                for error in errors {
                    problems.add_key(&at.path, diagnostics::gate(&error));
                }
            }
        }
    }
    found
}

fn row_of(target: &Target) -> Option<&'static KindRow> {
    match target {
        Target::Object(object) => Some(object.type_name),
        Target::NodeLabel(..) => kinds::find(NODE),
    }
}

fn kind_of(target: &Target) -> &'static str {
    match target {
        Target::Object(object) => object.type_name.kind,
        Target::NodeLabel(..) => NODE,
    }
}

/// The targets named so far.
#[derive(Default)]
struct Once(BTreeMap<String, FieldPath>);

impl Once {
    fn admit(&mut self, name: &str, path: &FieldPath, problems: &mut Problems) {
        match self.0.get(name) {
            Some(first) => {
                problems.add_pair(path, diagnostics::named_twice(), first, "first here");
            }
            None => {
                self.0.insert(name.to_owned(), path.clone());
            }
        }
    }
}

fn only_once<T: std::fmt::Debug>(found: Vec<(T, FieldPath)>, problems: &mut Problems) -> Vec<T> {
    let mut known = Once::default();
    let each = found.into_iter().map(|(target, path)| {
        known.admit(&format!("{target:?}"), &path, problems);
        target
    });
    each.collect()
}

/// Workloads as targets of `by`.
pub(super) fn workloads(by: &'static str) -> Wanted {
    let kinds = &WORKLOADS;
    Wanted { kinds, by }
}
