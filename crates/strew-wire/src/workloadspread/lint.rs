//! Finds errors and probable mistakes in the WorkloadSpreads among some objects.
//!
//! Errors are what the webhook refuses ([`super::validation`]); warnings are about objects that it accepts.
//!
//! | warning | why | rule |
//! |---|---|---|
//! | `target-missing` | nothing is spread | spec/workloadspread §5.3 |
//! | `target-deleting` | no pods are counted | spec/workloadspread §5.3 |
//! | `unknown-target-kind` | needs the white list | spec/workloadspread §2.6, §6.3 |
//! | `unreachable-subset` | an earlier one takes any number | spec/workloadspread §4.3 |
//! | `no-room` | the limits are less than the replicas: the rest goes anywhere | spec/workloadspread §4.3; a request of Kruise's users |
//! | `subset-over-room` | pods beyond what the nodes hold stay Pending, or go elsewhere | spec/workloadspread §4.3, §4.6 |
//! | `starved-subset` | shares that round up leave nothing for it | spec/workloadspread §5.6 |
//! | `no-node` | no node of the files is one of the subset, or none of those is one of the template | spec/workloadspread §4.6 |
//! | `no-node-possible` | the subset contradicts itself, or the template | spec/workloadspread §4.6 |
//! | `untolerated-taint` | none of the subset's nodes in the files takes its pods | spec/workloadspread §4.6 |
//! | `fixed-node` | the template names its node | spec/workloadspread §4.6 |
//! | `unknown-patch-field` | the API server drops it | spec/workloadspread §4.6 |
//! | `leaves-budget` | a patched label takes the pods out of a budget | spec/workloadspread §4.6 |
//! | `job-stays` | the Job would count rescheduled pods as failed, so they stay | spec/workloadspread §5.7 |
//! | `stuck-rollout` | new pods wait for what old ones hold | spec/workloadspread §5.10 |
//! | `short-after-rollout` | new pods go past a subset that old ones fill | spec/workloadspread §5.10 |
//! | `patch-replaces` | lists of the patch replace what the subset injects | spec/workloadspread §4.6, 5 |
//! | `acts-as-fixed` | `Adaptive` without `adaptive` | spec/workloadspread §2.6 |
//! | `no-selector` | Kruise's own webhook would take no pod | spec/workloadspread §4.2, F1 |
//! | `filter-selects-none` | no pod of the target is spread | spec/workloadspread §4.2 |
//! | `no-effect` | an annotation that nothing looks at | spec/workloadspread §4.4 |
//! | `same-nodes` | two subsets that nothing tells apart | spec/workloadspread §1 |

mod played;
mod rollout;

use std::collections::BTreeMap;

use strew_model::{Interner, NodeSelectorTerm as Term};
use strew_workloadspread::{MaxReplicas, UNLIMITED, WhenNoRoom, quota};

use super::annotations::{self, ANY_KIND, DELETION_COST, KNOWN, MIN_REPLICAS, WINDOW_SECONDS};
use super::facts::spread::max_replicas;
use super::facts::workload::ignores_disruption;
use super::facts::{Translator, group_of};
use super::subset_contents::Form;
use super::v1beta1::{WorkloadSpread, WorkloadSpreadSpec, WorkloadSpreadSubset};
use super::validation::{self, Context, is_same_kind_and_group};
use crate::facts;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::kinds;
use strew_manifest::read::KubeObject;

/// A finding about one of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The index of the object in the list.
    pub object: usize,
    /// The finding.
    pub what: What,
}

/// The kind of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// An error: the webhook refuses the object.
    Refused(FieldError),
    /// A warning: the webhook accepts the object.
    Suspicious(Warning),
}

/// A probable mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Its name.
    pub code: &'static str,
    /// The field.
    pub path: FieldPath,
    /// The message.
    pub message: String,
    /// Advice.
    pub help: String,
}

/// Checks every WorkloadSpread, in the order of the objects.
pub fn lint(objects: &[&KubeObject]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut earlier: Vec<&WorkloadSpread> = Vec::new();
    for (object, spread) in objects.iter().enumerate() {
        let KubeObject::WorkloadSpread(ws) = spread else {
            continue;
        };
        let is_near = |other: &&&WorkloadSpread| namespace_of(other) == namespace_of(ws);
        let others: Vec<&WorkloadSpread> = earlier.iter().filter(is_near).copied().collect();
        let look = Look {
            objects,
            ws,
            spec: ws.spec.as_ref(),
            target: target_of(objects, ws),
        };
        let cx = Context {
            target: look.target,
            others: Some(Ok(&others)),
            workloads: objects,
            ..Context::default()
        };
        let refused = validation::validate(ws, &cx).into_iter().map(What::Refused);
        let suspicious = look.warnings().into_iter().map(What::Suspicious);
        let found = refused.chain(suspicious);
        findings.extend(found.map(|what| Finding { object, what }));
        earlier.push(ws);
    }
    findings
}

/// The errors of these objects, by their index in the list, without warnings.
pub fn refused(objects: &[&KubeObject]) -> BTreeMap<usize, Vec<FieldError>> {
    let mut refused: BTreeMap<usize, Vec<FieldError>> = BTreeMap::new();
    for Finding { object, what } in lint(objects) {
        if let What::Refused(error) = what {
            refused.entry(object).or_default().push(error);
        }
    }
    refused
}

fn namespace_of(ws: &WorkloadSpread) -> &str {
    let given = ws.metadata.namespace.as_deref();
    given.filter(|n| !n.is_empty()).unwrap_or("default")
}

/// The objects that the target of a WorkloadSpread names, in any namespace.
fn named_by<'a>(
    objects: &'a [&'a KubeObject],
    ws: &'a WorkloadSpread,
) -> impl Iterator<Item = &'a KubeObject> {
    let target = ws.spec.as_ref().and_then(|s| s.target_reference.as_ref());
    objects.iter().copied().filter(move |object| {
        target.is_some_and(|target| {
            is_same_kind_and_group(target, object) && object.name() == target.name
        })
    })
}

fn target_of<'a>(objects: &'a [&'a KubeObject], ws: &'a WorkloadSpread) -> Option<&'a KubeObject> {
    // Whether a kind that strew does not know is namespaced is unknown.
    let namespace = |object: &KubeObject| object.namespace().unwrap_or("default").to_owned();
    named_by(objects, ws).find(|object| namespace(object) == namespace_of(ws))
}

/// One WorkloadSpread among all objects.
struct Look<'a> {
    objects: &'a [&'a KubeObject],
    ws: &'a WorkloadSpread,
    spec: Option<&'a WorkloadSpreadSpec>,
    target: Option<&'a KubeObject>,
}

impl Look<'_> {
    fn warnings(&self) -> Vec<Warning> {
        let Some(spec) = self.spec else {
            return Vec::new();
        };
        let mut found = Vec::new();
        found.extend(self.of_target(spec));
        found.extend(of_filter(spec));
        found.extend(self.filters_all_out(spec));
        found.extend(of_strategy(spec));
        found.extend(self.of_job(spec));
        found.extend(rollout::warnings(self, spec));
        found.extend(self.fixed_node());
        found.extend(self.unreachable(spec));
        found.extend(self.no_room(spec));
        found.extend(self.starved(spec));
        found.extend(rollout::over_room(self, spec));
        found.extend(same_nodes(spec));
        for (i, subset) in spec.subsets.iter().enumerate() {
            let path = FieldPath::root().child("spec.subsets").index(i);
            found.extend(self.no_node(subset, &path));
            found.extend(played::warnings(self, subset, &path));
            found.extend(replaced(subset, &path));
        }
        found.extend(self.of_annotations(spec));
        found
    }

    fn of_target(&self, spec: &WorkloadSpreadSpec) -> Option<Warning> {
        let target = spec.target_reference.as_ref()?;
        let path = FieldPath::root().child("spec.targetRef");
        let warn = |code, message, help: String| {
            Some(Warning {
                code,
                path,
                message,
                help,
            })
        };
        let empty = target.kind.is_empty() || target.name.is_empty();
        if empty || target.api_version.is_empty() {
            return None;
        }
        let kinds = ["CloneSet", "Deployment", "ReplicaSet", "Job", "StatefulSet"];
        let any_kind = annotations::is_true(&self.ws.metadata, ANY_KIND);
        let group = group_of(&target.api_version);
        let row = kinds::of_kind(&target.kind).filter(|row| row.group == group);
        if row.is_some_and(|row| !row.scales) && !kinds.contains(&target.kind.as_str()) {
            let message = format!(
                "kind {} of {group:?} has no scale: it asks for no number of pods that subsets could divide",
                target.kind
            );
            let help = format!("a WorkloadSpread is for {}", kinds.join(", "));
            return warn("unknown-target-kind", message, help);
        }
        if !kinds.contains(&target.kind.as_str()) && !any_kind {
            let message = format!(
                "kind {} of {:?} is none that is known by name: the webhook refuses it, unless the white list has it",
                target.kind, group
            );
            if let Some(meant) = strew_manifest::read::nearest(&target.kind, kinds) {
                return warn(
                    "unknown-target-kind",
                    message,
                    format!("did you mean {meant}?"),
                );
            }
            let help = format!(
                "annotate the WorkloadSpread with {ANY_KIND}: \"true\", or put the kind into the white list: \
                 ConfigMap {}, key {}",
                super::facts::white_list::CONFIG_MAP,
                super::facts::white_list::KEY
            );
            return warn("unknown-target-kind", message, help);
        }
        if let Some(object) = self.target {
            let metadata = object.metadata();
            let deleting = metadata.is_some_and(|m| m.deletion_timestamp.is_some());
            let message = format!(
                "{} is being deleted: none of its pods is counted",
                object.label()
            );
            let help = "a WorkloadSpread can be deleted with its workload".to_owned();
            return match deleting {
                true => warn("target-deleting", message, help),
                false => None,
            };
        }
        let namespace = namespace_of(self.ws);
        let message = format!(
            "there is no {} {:?} in namespace {namespace:?} of these files",
            target.kind, target.name
        );
        let elsewhere = named_by(self.objects, self.ws).find_map(KubeObject::namespace);
        let names = self.objects.iter().filter(|object| {
            is_same_kind_and_group(target, object) && object.namespace() == Some(namespace)
        });
        let nearest =
            strew_manifest::read::nearest(&target.name, names.map(|object| object.name()));
        let help = match (elsewhere, nearest) {
            (Some(elsewhere), _) => format!(
                "there is one in namespace {elsewhere:?}: a WorkloadSpread spreads workloads of its own namespace"
            ),
            (None, Some(name)) => format!("did you mean {name:?}?"),
            (None, None) => {
                "name the file that has it, too, and its patches are checked with it".to_owned()
            }
        };
        warn("target-missing", message, help)
    }

    /// Whether the pods that are spread are those of the target, and no others.
    fn is_whole(&self, spec: &WorkloadSpreadSpec) -> bool {
        let selected = annotations::target_selector(&self.ws.metadata);
        spec.target_filter.is_none() && selected == Ok(None)
    }

    /// All subsets have limits, and their sum is below the replicas.
    fn no_room(&self, spec: &WorkloadSpreadSpec) -> Option<Warning> {
        let fact = Translator::default().workload(self.target?, &mut Interner::new())?;
        let total = fact.replicas.unwrap_or(1);
        if !self.is_whole(spec) {
            return None;
        }
        let limits = spec.subsets.iter();
        let limits =
            limits.map(|s| quota::scaled(s.max_replicas.as_ref().map(max_replicas), total));
        let limits: Option<Vec<i32>> = limits.collect();
        let limits = limits.filter(|all| !all.is_empty() && !all.contains(&UNLIMITED))?;
        let room: i64 = limits.into_iter().map(i64::from).sum();
        if room >= total {
            return None;
        }
        let last = FieldPath::root()
            .child("spec.subsets")
            .index(spec.subsets.len() - 1);
        let becomes = match annotations::when_no_room(&self.ws.metadata) {
            Ok(WhenNoRoom::Pending) => {
                "are held back by a scheduling gate until a subset has room (strew.dev/when-no-room)"
            }
            Ok(WhenNoRoom::Reject) => "are not made (strew.dev/when-no-room)",
            Ok(WhenNoRoom::Unconstrained) | Err(_) => "are in no subset, and go to any node",
        };
        Some(Warning {
            code: "no-room",
            path: last.child("maxReplicas"),
            message: format!(
                "the subsets take {room} pods, and {} asks for {total}: {} {becomes}",
                self.target?.label(),
                total - room
            ),
            help: "leave out maxReplicas of the last subset: it takes the rest".to_owned(),
        })
    }

    /// With a fixed order, subsets after one without limit get no pods beyond their minimum.
    fn unreachable(&self, spec: &WorkloadSpreadSpec) -> Vec<Warning> {
        let strategy = spec.schedule_strategy.as_ref();
        let is_adaptive = strategy
            .is_some_and(|s| s.type_.as_deref() == Some("Adaptive") && s.adaptive.is_some());
        let open = spec.subsets.iter().position(|s| s.max_replicas.is_none());
        let Some(open) = open.filter(|_| !is_adaptive) else {
            return Vec::new();
        };
        let minimums = annotations::min_replicas(&self.ws.metadata).unwrap_or_default();
        let is_asked = |subset: &WorkloadSpreadSubset| {
            minimums
                .get(&subset.name)
                .is_some_and(|minimum| *minimum > 0)
        };
        let later = spec.subsets.iter().enumerate().skip(open + 1);
        let later = later.filter(|(_, subset)| !is_asked(subset));
        let of = |(i, subset): (usize, &WorkloadSpreadSubset)| Warning {
            code: "unreachable-subset",
            path: FieldPath::root().child("spec.subsets").index(i),
            message: format!(
                "subset {:?} gets no new pods: {:?} before it takes any number",
                subset.name, spec.subsets[open].name
            ),
            help: format!(
                "give {:?} maxReplicas, or use the strategy Adaptive with `adaptive`",
                spec.subsets[open].name
            ),
        };
        later.map(of).collect()
    }

    /// A target filter that selects no pod of the target's template.
    fn filters_all_out(&self, spec: &WorkloadSpreadSpec) -> Option<Warning> {
        let selector = spec.target_filter.as_ref()?.selector.as_ref()?;
        let target = self.target?;
        let (template, _) = target.pod_template()?;
        let labels = template.metadata.as_ref().and_then(|m| m.labels.as_ref());
        let labelled = selector.match_labels.iter().flatten().map(|(key, _)| key);
        let expressions = selector.match_expressions.iter().flatten();
        let mut keys = labelled.chain(expressions.map(|expression| &expression.key));
        let mut names = Interner::new();
        let parsed = facts::selector(Some(selector), &mut names).ok()?;
        // A controller gives its pods more labels.
        let is_selected = keys.any(|key| is_of_controller(key))
            || parsed.matches(&facts::labels(labels, &mut names));
        if is_selected {
            return None;
        }
        let written: Vec<String> = { labels.into_iter().flatten() }
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        Some(Warning {
            code: "filter-selects-none",
            path: FieldPath::root().child("spec.targetFilter.selector"),
            message: format!(
                "the target filter selects no pod of {}, so none is spread: they have the labels {}",
                target.label(),
                written.join(", ")
            ),
            help: "select labels of the template, or leave targetFilter out".to_owned(),
        })
    }

    /// Shares are rounded up, so that earlier subsets take all pods.
    fn starved(&self, spec: &WorkloadSpreadSpec) -> Vec<Warning> {
        let target = self.target.filter(|_| self.is_whole(spec));
        let fact = target.and_then(|t| Translator::default().workload(t, &mut Interner::new()));
        let total = fact.and_then(|fact| fact.replicas).unwrap_or(0);
        let mut left = total;
        let mut found = Vec::new();
        for (i, subset) in spec.subsets.iter().enumerate() {
            let limit = subset.max_replicas.as_ref().map(max_replicas);
            let share = matches!(limit, Some(MaxReplicas::Percent(percent)) if percent > 0);
            let max = quota::scaled(limit, total).unwrap_or(0);
            if share && total > 0 && left == 0 {
                found.push(Warning {
                    code: "starved-subset",
                    path: FieldPath::root().child("spec.subsets").index(i).child("maxReplicas"),
                    message: format!(
                        "subset {:?} gets none of {total} pods: shares round up, and the subsets before it take all",
                        subset.name
                    ),
                    help: "use numbers, or strew.dev/min-replicas".to_owned(),
                });
            }
            left -= match max {
                UNLIMITED => left,
                max => left.min(i64::from(max)),
            };
        }
        found
    }

    /// Rescheduled pods of a Job count as failed, unless its policy says otherwise.
    fn of_job(&self, spec: &WorkloadSpreadSpec) -> Option<Warning> {
        let Some(KubeObject::Job(job)) = self.target else {
            return None;
        };
        let adaptive = spec.schedule_strategy.as_ref()?.adaptive.as_ref()?;
        adaptive
            .reschedule_critical_seconds
            .filter(|seconds| *seconds > 0)?;
        let policy = job
            .spec
            .as_ref()
            .and_then(|s| s.pod_failure_policy.as_ref());
        let label = self.target?.label();
        (!policy.is_some_and(ignores_disruption)).then(|| Warning {
            code: "job-stays",
            path: FieldPath::root().child("spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds"),
            message: format!(
                "pods of {label} that cannot be scheduled are not taken from their subset: it would count them as failed"
            ),
            help: "give the Job a podFailurePolicy with the rule {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}".to_owned(),
        })
    }

    /// No scheduler decides about pods with a fixed node.
    fn fixed_node(&self) -> Option<Warning> {
        let target = self.target?;
        let template = validation::template_of(target)?;
        let node = template.pointer("/spec/nodeName")?.as_str()?;
        (!node.is_empty()).then(|| Warning {
            code: "fixed-node",
            path: FieldPath::root().child("spec.targetRef"),
            message: format!(
                "the template of {} names node {node:?}: its pods are there, whatever their subset",
                target.label()
            ),
            help: "take nodeName out of the template".to_owned(),
        })
    }

    fn no_node(&self, subset: &WorkloadSpreadSubset, path: &FieldPath) -> Option<Warning> {
        let required = subset.required_node_selector.as_ref()?;
        let mut names = Interner::new();
        let term: Term = facts::node_selector_term(required, &mut names);
        let mut n_nodes = 0;
        for object in self.objects {
            let KubeObject::Node(node) = object else {
                continue;
            };
            n_nodes += 1;
            let (name, labels) = facts::labelled(&node.metadata, &mut names);
            if term.matches(name, &labels, &names) {
                return None;
            }
        }
        (n_nodes > 0).then(|| Warning {
            code: "no-node",
            path: path.child("requiredNodeSelector"),
            message: format!("none of the {n_nodes} nodes of these files is one of subset {:?}", subset.name),
            help: "compare its labels with those of the nodes; where nodes are made on demand, this is as it should be".to_owned(),
        })
    }

    fn of_annotations(&self, spec: &WorkloadSpreadSpec) -> Vec<Warning> {
        let path = FieldPath::root().child("metadata.annotations");
        let mut found = Vec::new();
        let mut warn = |key: &str, message: String, help: &str| {
            found.push(Warning {
                code: "no-effect",
                path: path.key(key),
                message,
                help: help.to_owned(),
            });
        };
        let minimums = annotations::min_replicas(&self.ws.metadata).unwrap_or_default();
        let kind = spec.target_reference.as_ref().map(|t| t.kind.as_str());
        if !minimums.is_empty() && kind == Some("StatefulSet") {
            let message = "pods of a StatefulSet go by their ordinals: minimums are not looked at";
            warn(MIN_REPLICAS, message.to_owned(), "leave it out");
        }
        let looks_at_costs = match kind {
            Some("Deployment" | "ReplicaSet" | "CloneSet") => Some("has deletion costs anyway"),
            Some("Job" | "StatefulSet") => Some("does not look at deletion costs"),
            _ => None,
        };
        if let (true, Some(why), Some(kind)) = (
            annotations::is_true(&self.ws.metadata, DELETION_COST),
            looks_at_costs,
            kind,
        ) {
            warn(DELETION_COST, format!("a {kind} {why}"), "leave it out");
        }
        let strategy = spec.schedule_strategy.as_ref();
        let adaptive = strategy.and_then(|s| s.adaptive.as_ref());
        let reschedules = adaptive
            .and_then(|a| a.reschedule_critical_seconds)
            .unwrap_or(0)
            > 0;
        let closed = annotations::closed_for(&self.ws.metadata).ok().flatten();
        if closed.is_some() && !reschedules {
            let message = "no subset is ever closed without rescheduleCriticalSeconds";
            let help =
                "set spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds, or leave it out";
            warn(WINDOW_SECONDS, message.to_owned(), help);
        }
        let own = self
            .ws
            .metadata
            .annotations
            .iter()
            .flatten()
            .map(|(key, _)| key);
        for key in own.filter(|key| key.starts_with("strew.dev/")) {
            if !KNOWN.contains(&key.as_str()) {
                let help = match strew_manifest::read::nearest(key, KNOWN) {
                    Some(meant) => format!("did you mean {meant:?}?"),
                    None => format!("there are {}", KNOWN.join(", ")),
                };
                warn(key, "nothing looks at this annotation".to_owned(), &help);
            }
        }
        found
    }
}

/// True for labels that controllers give to pods.
fn is_of_controller(key: &str) -> bool {
    let names = [
        "pod-template-hash",
        "pod-template-generation",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
    ];
    let prefixes = [
        "apps.kubernetes.io/",
        "batch.kubernetes.io/",
        "statefulset.kubernetes.io/",
        "apps.kruise.io/",
    ];
    names.contains(&key) || prefixes.iter().any(|prefix| key.starts_with(prefix))
}

fn of_filter(spec: &WorkloadSpreadSpec) -> Option<Warning> {
    let filter = spec.target_filter.as_ref()?;
    filter.selector.is_none().then(|| Warning {
        code: "no-selector",
        path: FieldPath::root().child("spec.targetFilter"),
        message: "without a selector all pods are managed here, and none is placed by Kruise's own webhook".to_owned(),
        help: "write `selector: {}` to mean all pods everywhere".to_owned(),
    })
}

fn of_strategy(spec: &WorkloadSpreadSpec) -> Option<Warning> {
    let strategy = spec.schedule_strategy.as_ref()?;
    if strategy.type_.as_deref() != Some("Adaptive") {
        return None;
    }
    let warn = |message: &str, help: &str| {
        Some(Warning {
            code: "acts-as-fixed",
            path: FieldPath::root().child("spec.scheduleStrategy.type"),
            message: message.to_owned(),
            help: help.to_owned(),
        })
    };
    let Some(adaptive) = &strategy.adaptive else {
        return warn(
            "Adaptive without `adaptive` acts as Fixed",
            "add `adaptive: {}`, with rescheduleCriticalSeconds if pods shall be replaced in another subset",
        );
    };
    let reschedules = adaptive.reschedule_critical_seconds.unwrap_or(0) > 0;
    match adaptive.disable_simulation_schedule == Some(true) && !reschedules {
        true => warn(
            "Adaptive that neither simulates nor reschedules acts as Fixed",
            "set adaptive.rescheduleCriticalSeconds, or leave out disableSimulationSchedule",
        ),
        false => None,
    }
}

/// The required terms of a pod, which are a list that a patch replaces.
const REQUIRED_TERMS: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// True if the patch of a subset replaces its required node selector.
fn replaces_selector(subset: &WorkloadSpreadSubset) -> bool {
    let patch = subset.patch.as_ref();
    patch.is_some_and(|patch| patch.pointer(REQUIRED_TERMS).is_some())
}

/// Lists of tolerations and terms are atomic in a patch.
fn replaced(subset: &WorkloadSpreadSubset, path: &FieldPath) -> Vec<Warning> {
    let Some(patch) = &subset.patch else {
        return Vec::new();
    };
    let preferred = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
    let of_tolerations = subset.tolerations.as_ref().is_some_and(|t| !t.is_empty());
    let of_preferred = subset.preferred_node_selector.as_ref();
    let fields = [
        ("/spec/tolerations", of_tolerations, "tolerations"),
        (
            REQUIRED_TERMS,
            subset.required_node_selector.is_some(),
            "requiredNodeSelector",
        ),
        (
            preferred,
            of_preferred.is_some_and(|p| !p.is_empty()),
            "preferredNodeSelector",
        ),
    ];
    let lost = fields
        .into_iter()
        .filter(|(pointer, is_set, _)| *is_set && patch.pointer(pointer).is_some());
    lost.map(|(_, _, field)| Warning {
        code: "patch-replaces",
        path: path.child("patch"),
        message: format!(
            "the patch replaces what {field} of subset {:?} puts into the pod",
            subset.name
        ),
        help: format!("say it in one of the two: {field}, or the patch"),
    })
    .collect()
}

/// A later subset that has the same effect on pods as an earlier one.
fn same_nodes(spec: &WorkloadSpreadSpec) -> Vec<Warning> {
    let forms: Vec<Form> = spec.subsets.iter().map(Form::of).collect();
    let mut found = Vec::new();
    for (i, form) in forms.iter().enumerate() {
        if let Some(first) = forms[..i].iter().position(|earlier| earlier == form) {
            found.push(Warning {
                code: "same-nodes",
                path: FieldPath::root().child("spec.subsets").index(i),
                message: format!(
                    "subset {:?} puts the same into its pods as {:?}: nothing tells their nodes apart",
                    spec.subsets[i].name, spec.subsets[first].name
                ),
                help: "give each its own requiredNodeSelector".to_owned(),
            });
        }
    }
    found
}
