//! Converts a WorkloadSpread to a fact.
//!
//! Source: spec/workloadspread §2.2.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
use strew_model::{Instant, Interner, Span};
use strew_workloadspread::{
    Adaptive, FilterSelector, IGNORE_PATCH_ANNOTATION, LabelPatch, LimitScope, MaxReplicas, Spec,
    Strategy, Subset, TargetFilter, WorkloadSpread,
};

use super::{Translator, group_of, key, target};
use crate::facts::{node_selector_term, selector, toleration};
use crate::workloadspread::annotations::{self, ANY_KIND, DELETION_COST};
use crate::workloadspread::status;
use crate::workloadspread::subset_contents::Form;
use strew_manifest::kruise::spec::{ScheduleStrategy, TargetFilter as WireFilter};
use strew_manifest::kruise::v1beta1::{self, WorkloadSpreadSubset};

impl Translator {
    /// A WorkloadSpread as a fact. Invalid parts are read as far as possible: a limit that does not parse is `Broken`,
    /// an annotation that does not parse is ignored.
    pub fn spread(
        &mut self,
        wire: &v1beta1::WorkloadSpread,
        names: &mut Interner,
    ) -> WorkloadSpread {
        let metadata = &wire.metadata;
        let version = metadata.resource_version.as_deref();
        let empty = v1beta1::WorkloadSpreadSpec::default();
        let spec = wire.spec.as_ref().unwrap_or(&empty);
        let reference = spec.target_reference.as_ref();
        let filter = spec.target_filter.as_ref().map(|f| filter(f, names));
        let minimums = annotations::min_replicas(metadata).unwrap_or_default();
        let subset = |wire: &WorkloadSpreadSubset, names: &mut Interner| {
            let min = minimums.get(&wire.name).copied();
            self.subset(wire, min.unwrap_or(0), names)
        };
        let subsets = spec.subsets.iter();
        let subsets = subsets.map({
            let mut subset = subset;
            let names = &mut *names;
            move |wire| subset(wire, names)
        });
        let subsets: Box<[Subset]> = subsets.collect();
        let closed_for = annotations::closed_for(metadata).unwrap_or_default();
        let also = annotations::target_selector(metadata).unwrap_or_default();
        let also = also.and_then(|also| selector(Some(&also), names).ok());
        let limit_scope = match also {
            // Each workload has revisions of its own: only together their pods are a sum.
            Some(_) => LimitScope::Workload,
            None => annotations::limit_scope(metadata).unwrap_or_default(),
        };
        let fact = Spec {
            also,
            target: reference.map(|r| target(&r.api_version, &r.kind, &r.name, names)),
            any_kind: annotations::is_true(metadata, ANY_KIND),
            filter,
            subsets,
            strategy: strategy(spec.schedule_strategy.as_ref(), closed_for),
            limit_scope,
            when_no_room: annotations::when_no_room(metadata).unwrap_or_default(),
            move_back: annotations::move_back(metadata).unwrap_or_default(),
            deletion_costs: annotations::is_true(metadata, DELETION_COST),
        };
        let held = held(metadata);
        let namespace = held[0].clone();
        if self.contents.hold(held, &fact)
            && let Some(reference) = reference
        {
            let group = group_of(&reference.api_version);
            let target = [&namespace, group, &reference.kind, &reference.name];
            self.again.insert(target.map(str::to_owned));
        }
        WorkloadSpread {
            key: key(metadata, names),
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            version: version.and_then(|v| v.parse().ok()).unwrap_or(0),
            generation: metadata.generation.unwrap_or(0),
            created: (metadata.creation_timestamp.as_ref()).map_or(Instant(0), status::instant),
            deleting: metadata.deletion_timestamp.is_some(),
            ignore_patch_of_existing: annotations::is_true(metadata, IGNORE_PATCH_ANNOTATION),
            spec: Arc::new(fact),
            status: Arc::new(wire.status.as_ref().map(status::fact).unwrap_or_default()),
        }
    }

    fn subset(
        &mut self,
        wire: &WorkloadSpreadSubset,
        min_replicas: u32,
        names: &mut Interner,
    ) -> Subset {
        let form = Form::of(wire);
        let preferred = wire.preferred_node_selector.iter().flatten();
        let tolerations = wire.tolerations.iter().flatten();
        let required = wire.required_node_selector.as_ref();
        Subset {
            name: wire.name.as_str().into(),
            max_replicas: wire.max_replicas.as_ref().map(max_replicas),
            min_replicas,
            required: required.map(|term| node_selector_term(term, names)),
            preferred: preferred
                .map(|p| (p.weight, node_selector_term(&p.preference, names)))
                .collect(),
            tolerations: tolerations.map(|t| toleration(t, names)).collect(),
            patch: form
                .patch
                .as_ref()
                .map(|patch| self.contents.patch_id(patch)),
            labels: form.patch.as_ref().and_then(|patch| labels(patch, names)),
            form: self.contents.form_id(form),
        }
    }
}

/// The effect of a strategic merge patch on labels; `None` if it has none.
fn labels(patch: &Value, names: &mut Interner) -> Option<LabelPatch> {
    let replaces = |value: &Value| {
        let directive = value["$patch"].as_str();
        directive.is_some_and(|directive| matches!(directive, "replace" | "delete"))
    };
    let (metadata, labels) = (&patch["metadata"], &patch["metadata"]["labels"]);
    let is_taken_out = |value: &Value, field: &str| value.get(field).is_some_and(Value::is_null);
    let replaces = [patch, metadata, labels].into_iter().any(replaces)
        || is_taken_out(patch, "metadata")
        || is_taken_out(metadata, "labels");
    let named = labels.as_object().into_iter().flatten();
    let named = named.filter(|(key, _)| !key.starts_with('$'));
    let labels: Box<[_]> = named
        .map(|(key, value)| {
            (
                names.intern(key),
                value.as_str().map(|text| names.intern(text)),
            )
        })
        .collect();
    (replaces || !labels.is_empty()).then_some(LabelPatch { replaces, labels })
}

/// Namespace and name.
pub(super) fn held(metadata: &ObjectMeta) -> [String; 2] {
    let namespace = metadata.namespace.as_deref().filter(|n| !n.is_empty());
    let name = metadata.name.as_deref().unwrap_or_default();
    [namespace.unwrap_or("default"), name].map(str::to_owned)
}

/// `maxReplicas`. A text without `%` is refused by validation; in an object stored without validation it is invalid
/// (F2).
pub fn max_replicas(wire: &IntOrString) -> MaxReplicas {
    match wire {
        IntOrString::Int(count) => {
            u32::try_from(*count).map_or(MaxReplicas::Broken, MaxReplicas::Count)
        }
        IntOrString::String(text) => {
            percent(text).map_or(MaxReplicas::Broken, MaxReplicas::Percent)
        }
    }
}

/// The number of `50%`: whole, without a sign.
pub fn percent(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('%')?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u32 = plain.then(|| digits.parse().ok()).flatten()?;
    // Kubernetes uses signed 32-bit numbers.
    i32::try_from(number).ok().map(|_| number)
}

fn filter(wire: &WireFilter, names: &mut Interner) -> TargetFilter {
    let paths = wire.replicas_path_list.iter().flatten();
    TargetFilter {
        selector: match wire.selector.as_ref() {
            None => FilterSelector::Every,
            given => match selector(given, names) {
                Ok(selector) => FilterSelector::Of(selector),
                Err(_) => FilterSelector::Broken,
            },
        },
        replicas_paths: paths.map(|path| path.as_str().into()).collect(),
    }
}

fn strategy(wire: Option<&ScheduleStrategy>, closed_for: Option<Span>) -> Strategy {
    let Some(wire) = wire.filter(|s| s.type_.as_deref() == Some("Adaptive")) else {
        return Strategy::Fixed;
    };
    let Some(adaptive) = &wire.adaptive else {
        return Strategy::Fixed;
    };
    let critical = adaptive.reschedule_critical_seconds.unwrap_or(0);
    let critical = u64::try_from(critical).ok().filter(|seconds| *seconds > 0);
    Strategy::Adaptive(Adaptive {
        disable_simulation: adaptive.disable_simulation_schedule.unwrap_or(false),
        critical: critical.map(Span::from_secs),
        closed_for,
    })
}
