//! Reads expectations.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::kinds;
use strew_manifest::read::check_partial;

use super::claim_parts::{count_range, counts, label_selector, range, texts};
use super::claim_vocabulary::{
    EVENTS, EXPECTATION, PHASES, PLACEMENT, PODS, REMOVED, REVISIONS, SPREAD, WORKLOADS,
};
use super::diagnostics;
use super::event_reasons;
use super::expectation::{
    Claim, Clusters, Counts, EventsClaim, Expectation, Phase, PlacementClaim, PodSubject,
    PodsClaim, RemovedClaim, Revision, SpreadClaim, Subject,
};
use super::flow;
use super::known::Bearer;
use super::problems::Problems;
use super::target::{
    BUDGETED, CLUSTER, DEFAULT_NAMESPACE, NODE, ObjectTarget, Targets, WITH_PODS, Wanted,
};
use super::value::{At, Fields};
use super::verb_reader::workloads;

/// Reads a list of expectations.
pub(super) fn read_all(
    at: &At<'_>,
    targets: Targets<'_>,
    problems: &mut Problems,
) -> Vec<Expectation> {
    let expectations = at.list(problems);
    let expectations = expectations.iter();
    expectations
        .filter_map(|at| read(at, targets, problems))
        .collect()
}

/// Source: the plugins with a Filter or PreEnqueue in `pkg/scheduler/framework/plugins`, v1.36.
const PLUGINS: &[&str] = &[
    "DynamicResources",
    "GangScheduling",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodeName",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "SchedulingGates",
    "TaintToleration",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
];

/// Fields beside the claim.
const AROUND: [&str; 5] = ["within", "for", "atRest", "not", "warn"];

fn read(at: &At<'_>, targets: Targets<'_>, problems: &mut Problems) -> Option<Expectation> {
    let fields = at.fields(&EXPECTATION, problems)?;
    let within = fields.get("within").and_then(|at| at.span(problems));
    let lasts = fields.get("for").and_then(|at| at.span(problems));
    let at_rest = fields
        .get("atRest")
        .and_then(|at| at.boolean(problems))
        .unwrap_or(false);
    for name in ["within", "for"] {
        if let (true, Some(at), Some(rest)) = (at_rest, fields.get(name), fields.get("atRest")) {
            let error = diagnostics::two_moments();
            problems.add_pair(&at.path, error, &rest.path, "at rest it is judged once");
        }
    }
    let is_negated = fields.get("not").and_then(|at| at.boolean(problems));
    let warns = fields.get("warn").and_then(|at| at.boolean(problems));
    let claims: Vec<_> = fields
        .present()
        .filter(|(name, _)| !AROUND.contains(name))
        .collect();
    let Some(((name, claim), others)) = claims.split_first() else {
        // The reader has already reported misspelt ones.
        let names = at.value.as_object().into_iter().flatten();
        if names
            .into_iter()
            .all(|(name, _)| EXPECTATION.field(name).is_some())
        {
            problems.add(&at.path, diagnostics::no_claim());
        }
        return None;
    };
    for (_, other) in others {
        problems.add_pair(
            &other.path,
            diagnostics::second_claim(),
            &claim.path,
            "first here",
        );
    }
    let claim = Reader { targets }.claim(name, claim, problems)?;
    Some(Expectation {
        claim,
        within,
        lasts,
        at_rest,
        is_negated: is_negated.unwrap_or(false),
        warns: warns.unwrap_or(false),
        text: flow::fields(at.value),
        path: at.path.clone(),
        place: None,
    })
}

struct Reader<'a> {
    targets: Targets<'a>,
}

impl Reader<'_> {
    fn claim(&self, name: &str, at: &At<'_>, problems: &mut Problems) -> Option<Claim> {
        Some(match name {
            "spread" => Claim::Spread(self.spread(at, problems)?),
            "pods" => Claim::Pods(self.pods(at, problems)?),
            "object" => Claim::Object(self.object(at, problems)?),
            "events" => Claim::Events(self.events(at, problems)?),
            "removed" => Claim::Removed(self.removed(at, problems)?),
            "placement" => Claim::Placement(self.placement(at, problems)?),
            "rolledOut" => {
                Claim::RolledOut(self.one_or_all(workloads("rolledOut"), at, problems)?)
            }
            "withinBudget" => {
                let (kinds, by) = (&BUDGETED, "withinBudget");
                Claim::WithinBudget(self.one_or_all(Wanted { kinds, by }, at, problems)?)
            }
            "survives" => Claim::Survives(self.one_or_all(workloads("survives"), at, problems)?),
            "withinConstraints" => {
                let wanted = workloads("withinConstraints");
                Claim::WithinConstraints(self.one_or_all(wanted, at, problems)?)
            }
            "cel" => Claim::Cel(at.name(problems)?.to_owned()),
            other => {
                debug_assert!(false, "{other} is in the vocabulary, and nothing reads it");
                return None;
            }
        })
    }

    fn target(&self, at: &At<'_>, wanted: Wanted, problems: &mut Problems) -> Option<ObjectTarget> {
        let text = at.text(problems)?;
        self.targets.object(text, wanted, at, problems)
    }

    fn spread(&self, at: &At<'_>, problems: &mut Problems) -> Option<SpreadClaim> {
        let fields = at.fields(&SPREAD, problems)?;
        let by = self.topology_key(&fields, problems);
        let counts = fields.get("counts").and_then(|at| counts(&at, problems));
        let number = |name, problems: &mut Problems| {
            let at = fields.get(name)?;
            at.count(problems)
        };
        let skew = number("skew", problems);
        let skew_max = number("max", problems);
        let revision = fields.get("revision");
        let revision = revision.and_then(|at| at.choice(REVISIONS, problems));
        if ["counts", "skew", "max"]
            .iter()
            .all(|name| fields.get(name).is_none())
        {
            problems.add(
                &at.path,
                diagnostics::claims_nothing(&["counts", "skew", "max"]),
            );
        }
        check_possible(&fields, counts.as_ref(), skew, skew_max, problems);
        let of = self.subject(&fields, at, problems)?;
        Some(SpreadClaim {
            of,
            by: by?,
            counts,
            skew,
            skew_max,
            revision: match revision {
                Some(0) => Revision::Latest,
                _ => Revision::All,
            },
        })
    }

    /// A topology key, which must be a label of nodes.
    fn topology_key(&self, fields: &Fields<'_>, problems: &mut Problems) -> Option<String> {
        let at = fields.required("by", problems)?;
        let key = at.name(problems)?;
        self.targets.label(Bearer::Node, key, Vec::new(), &at.path);
        Some(key.to_owned())
    }

    /// Records that pods must have the labels of a selector.
    fn note_selector(&self, selector: &LabelSelector, path: &FieldPath) {
        let note = |key: &str, values, path| self.targets.label(Bearer::Pod, key, values, &path);
        for (key, value) in selector.match_labels.iter().flatten() {
            note(key, vec![value.clone()], path.child("matchLabels").key(key));
        }
        for (i, wanted) in selector.match_expressions.iter().flatten().enumerate() {
            if matches!(wanted.operator.as_str(), "In" | "Exists") {
                let values = wanted.values.clone().unwrap_or_default();
                note(&wanted.key, values, path.child("matchExpressions").index(i));
            }
        }
    }

    fn subject(
        &self,
        fields: &Fields<'_>,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<Subject> {
        let namespace = fields.get("namespace");
        match (fields.get("of"), fields.get("selector")) {
            (Some(of), Some(selector)) => {
                problems.add_pair(
                    &selector.path,
                    diagnostics::two_subjects(),
                    &of.path,
                    "first here",
                );
                None
            }
            (None, None) => {
                problems.add(&at.path, diagnostics::no_subject());
                None
            }
            (Some(of), None) => {
                if let Some(namespace) = namespace {
                    problems.add_key(&namespace.path, diagnostics::namespace_of_target());
                }
                let wanted = workloads("spread");
                self.target(&of, wanted, problems).map(Subject::Workload)
            }
            (None, Some(at)) => {
                let selector = label_selector(&at, problems);
                if let Some(selector) = &selector {
                    self.note_selector(selector, &at.path);
                }
                let namespace = match namespace {
                    Some(at) => at.name(problems)?,
                    None => self.targets.namespace,
                };
                Some(Subject::Selector {
                    selector: selector?,
                    namespace: namespace.to_owned(),
                })
            }
        }
    }

    fn pods(&self, at: &At<'_>, problems: &mut Problems) -> Option<PodsClaim> {
        let fields = at.fields(&PODS, problems)?;
        let phase = fields.get("phase");
        let phase = phase.and_then(|at| at.choice(PHASES, problems));
        let blocked_by = fields.get("blockedBy");
        let blocked_by = blocked_by.and_then(|at| {
            let text = at.text(problems)?;
            let known = PLUGINS.iter().find(|known| **known == text);
            if known.is_none() {
                problems.add(&at.path, diagnostics::no_choice(text, PLUGINS));
            }
            known.copied()
        });
        let message = fields.get("message").and_then(|at| at.name(problems));
        let waiting = fields.get("waiting").and_then(|at| at.boolean(problems));
        let count = count_range(&fields, problems);
        let of = match (fields.get("of"), fields.get("select")) {
            (Some(of), Some(select)) => {
                problems.add_pair(
                    &select.path,
                    diagnostics::two_subjects(),
                    &of.path,
                    "first here",
                );
                return None;
            }
            (Some(of), None) => {
                let kinds = &WITH_PODS;
                let wanted = Wanted { kinds, by: "pods" };
                PodSubject::Object(self.target(&of, wanted, problems)?)
            }
            (None, Some(select)) => {
                let labels = texts(&select, problems);
                for (key, at) in select.entries(&mut Problems::default()) {
                    if let Some(value) = labels.get(key) {
                        let values = vec![value.clone()];
                        self.targets.label(Bearer::Pod, key, values, &at.path);
                    }
                }
                PodSubject::Labels(labels)
            }
            (None, None) => PodSubject::All,
        };
        Some(PodsClaim {
            of,
            phase: phase.map(|index| PHASE_OF[index]),
            count: count?,
            waiting: waiting.unwrap_or(false),
            blocked_by,
            message: message.map(str::to_owned),
        })
    }

    fn events(&self, at: &At<'_>, problems: &mut Problems) -> Option<EventsClaim> {
        let fields = at.fields(&EVENTS, problems)?;
        let kinds = &[];
        let wanted = Wanted {
            kinds,
            by: "events",
        };
        let of = match fields.get("of") {
            Some(of) => Some(self.target(&of, wanted, problems)?),
            None => None,
        };
        let text = |name, problems: &mut Problems| {
            let at = fields.get(name)?;
            at.name(problems).map(str::to_owned)
        };
        let reason = text("reason", problems);
        if let (Some(at), Some(reason)) = (fields.get("reason"), &reason)
            && !event_reasons::ALL.contains(&&**reason)
        {
            problems.add(&at.path, diagnostics::no_event_reason(reason));
        }
        let contains = text("contains", problems);
        let count = count_range(&fields, problems)?;
        Some(EventsClaim {
            of,
            reason,
            contains,
            count,
        })
    }

    /// One object, or all of them; `None` if the value is wrong.
    fn one_or_all(
        &self,
        wanted: Wanted,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<Option<ObjectTarget>> {
        let fields = at.fields(&WORKLOADS, problems)?;
        let Some(of) = fields.get("of") else {
            return Some(None);
        };
        self.target(&of, wanted, problems).map(Some)
    }

    /// A part of an object; if it names the object, the object must exist.
    fn object(&self, at: &At<'_>, problems: &mut Problems) -> Option<Value> {
        if !at.value.is_object() {
            let error = diagnostics::wrong_type("a part of an object", at.value);
            problems.add(&at.path, error);
            return None;
        }
        let kind = at.value["kind"].as_str().filter(|kind| !kind.is_empty());
        let Some(kind) = kind else {
            problems.add(&at.path, diagnostics::missing("kind"));
            return None;
        };
        problems.add_faults(&at.path, check_partial(at.value));
        let metadata = &at.value["metadata"];
        let api_version = at.value["apiVersion"].as_str().unwrap_or_default();
        self.targets.kind(api_version, kind, &at.path);
        let bearer = match kind {
            "Pod" => Some(Bearer::Pod),
            NODE => Some(Bearer::Node),
            CLUSTER => Some(Bearer::Cluster),
            _ => None,
        };
        let labels = metadata["labels"].as_object().into_iter().flatten();
        for (bearer, (key, value)) in bearer.into_iter().cycle().zip(labels) {
            let path = at.path.child("metadata.labels").key(key.as_str());
            let values = value.as_str().map(str::to_owned).into_iter().collect();
            self.targets.label(bearer, key, values, &path);
        }
        if let (Some(row), Some(name)) = (kinds::find(kind), metadata["name"].as_str()) {
            let namespace = metadata["namespace"].as_str().unwrap_or(DEFAULT_NAMESPACE);
            let target = ObjectTarget {
                type_name: row,
                namespace: row.is_namespaced.then(|| namespace.to_owned()),
                name: name.to_owned(),
            };
            self.targets.named(target, &at.path.child("metadata.name"));
        }
        Some(at.value.clone())
    }

    fn removed(&self, at: &At<'_>, problems: &mut Problems) -> Option<RemovedClaim> {
        let fields = at.fields(&REMOVED, problems)?;
        let by = self.topology_key(&fields, problems);
        let counts_at = fields.required("counts", problems);
        let counts = counts_at.and_then(|at| counts(&at, problems));
        let of = fields.required("of", problems)?;
        let of = self.target(&of, workloads("removed"), problems)?;
        Some(RemovedClaim {
            of,
            by: by?,
            counts: counts?,
        })
    }

    fn clusters(&self, at: &At<'_>, problems: &mut Problems) -> Option<Clusters> {
        if !at.value.is_array() {
            return range(at, problems).map(Clusters::Count);
        }
        let type_name = kinds::find(CLUSTER)?;
        let mut names = Vec::new();
        for at in at.list(problems) {
            let Some(name) = at.name(problems) else {
                continue;
            };
            let cluster = ObjectTarget {
                type_name,
                namespace: None,
                name: name.to_owned(),
            };
            self.targets.named(cluster, &at.path);
            names.push(name.to_owned());
        }
        names.sort();
        Some(Clusters::Exact(names))
    }

    fn placement(&self, at: &At<'_>, problems: &mut Problems) -> Option<PlacementClaim> {
        let fields = at.fields(&PLACEMENT, problems)?;
        let mut counts_by_key = BTreeMap::new();
        for (key, at) in entries(&fields, "counts", problems) {
            self.targets
                .label(Bearer::Cluster, key, Vec::new(), &at.path);
            if let Some(counts) = counts(&at, problems) {
                counts_by_key.insert(key.to_owned(), counts);
            }
        }
        let mut skew = BTreeMap::new();
        for (key, at) in entries(&fields, "skew", problems) {
            self.targets
                .label(Bearer::Cluster, key, Vec::new(), &at.path);
            if let Some(value) = at.count(problems) {
                skew.insert(key.to_owned(), value);
            }
        }
        let moved_max = fields.get("moved").and_then(|at| at.count(problems));
        let claims = ["clusters", "counts", "skew", "moved"];
        if claims.iter().all(|name| fields.get(name).is_none()) {
            problems.add(&at.path, diagnostics::claims_nothing(&claims));
        }
        let clusters = match fields.get("clusters") {
            Some(at) => Some(self.clusters(&at, problems)?),
            None => None,
        };
        let kinds = &["Placement"];
        let by = "placement";
        let of = fields.required("of", problems)?;
        let of = self.target(&of, Wanted { kinds, by }, problems)?;
        Some(PlacementClaim {
            of,
            clusters,
            counts: counts_by_key,
            skew,
            moved_max,
        })
    }
}

/// In the order of [`PHASES`].
const PHASE_OF: [Phase; 5] = [
    Phase::Pending,
    Phase::Running,
    Phase::Succeeded,
    Phase::Failed,
    Phase::Unknown,
];

fn entries<'v>(
    fields: &Fields<'v>,
    name: &'static str,
    problems: &mut Problems,
) -> Vec<(&'v str, At<'v>)> {
    let at = fields.get(name);
    at.map(|at| at.entries(problems)).unwrap_or_default()
}

/// Reports claims that contradict each other.
fn check_possible(
    fields: &Fields<'_>,
    counts: Option<&Counts>,
    skew: Option<u32>,
    skew_max: Option<u32>,
    problems: &mut Problems,
) {
    let path = |name: &'static str| fields.path().child(name);
    if let (Some(skew), Some(max)) = (skew, skew_max)
        && max < skew
    {
        let error = diagnostics::skew_over_max(skew, max);
        problems.add_pair(&path("skew"), error, &path("max"), "no more than this");
    }
    let Some(counts) = counts else { return };
    // With minDomains unmet, the global minimum is 0.
    if let Some(skew) = skew
        && skew != counts.skew()
        && skew != counts.max()
    {
        let error = diagnostics::skew_of_counts(skew, counts.skew());
        problems.add_pair(&path("skew"), error, &path("counts"), "these counts");
    }
    if let Some(max) = skew_max
        && counts.skew() > max
    {
        let error = diagnostics::skew_over_max(counts.skew(), max);
        problems.add_pair(&path("counts"), error, &path("max"), "no more than this");
    }
}
