//! Puts each subset into the target's template, and checks the resulting requirements for nodes and the labels.

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::{BTreeMap, BTreeSet};
use strew_model::{Interner, NodeSelectorTerm as Term};

use super::{Look, Warning};
use crate::facts;
use crate::workloadspread::inject::candidate;
use crate::workloadspread::subset_contents::Form;
use crate::workloadspread::validation::template_of;
use strew_manifest::field::{FieldPath, PathSegment};
use strew_manifest::json::Json;
use strew_manifest::kruise::v1beta1::WorkloadSpreadSubset;
use strew_manifest::read::{KubeObject, RawSchema};

/// Warnings about the pods of one subset.
pub(super) fn warnings(
    look: &Look<'_>,
    subset: &WorkloadSpreadSubset,
    path: &FieldPath,
) -> Vec<Warning> {
    let mut found = unknown_fields(subset, path);
    let template = look.target.and_then(template_of);
    let Some(template) = template else {
        // The subset alone may be impossible.
        found.extend(contradiction(&of_subset(subset), subset, path));
        return found;
    };
    // Validation refuses a patch that cannot be merged.
    let Ok(pod) = candidate(&template, &Form::of(subset)) else {
        return found;
    };
    let spec = pod.spec.clone().unwrap_or_default();
    match contradiction(&spec, subset, path) {
        Some(warning) => found.push(warning),
        None => found.extend(nodes(look, &spec, subset, path)),
    }
    if let Ok(before) = Pod::of_json(template) {
        found.extend(budgets(look, [&before, &pod], subset, path));
    }
    found
}

/// Fields of a patch that no pod has: the API server would drop them, and they would have no effect.
fn unknown_fields(subset: &WorkloadSpreadSubset, path: &FieldPath) -> Vec<Warning> {
    let Some(mut patch) = subset.patch.clone() else {
        return Vec::new();
    };
    let schema = RawSchema::of("v1 Pod");
    let is_directive = |path: &FieldPath| {
        let last = path.steps().last();
        matches!(last, Some(PathSegment::Name(name)) if name.starts_with('$'))
    };
    let faults = schema.check(&mut patch).into_iter();
    let unknown = faults.filter(|fault| fault.is_unknown && !is_directive(&fault.path));
    let below = path.child("patch");
    let warning = |fault: strew_manifest::read::RawFault| Warning {
        code: "unknown-patch-field",
        path: below.join(&fault.path),
        message: format!(
            "pods have no field {}: the patch does nothing there",
            fault.path
        ),
        help: match fault.meant {
            Some(meant) => format!("did you mean {meant}?"),
            None => "compare it with the fields of a Pod".to_owned(),
        },
    };
    unknown.map(warning).collect()
}

// === nodes ===

/// The requirements of a subset's pods if the template is unknown.
fn of_subset(subset: &WorkloadSpreadSubset) -> PodSpec {
    let empty = serde_json::json!({"spec": {"containers": []}});
    let form = Form {
        patch: None,
        ..Form::of(subset)
    };
    let pod = candidate(&empty, &form);
    pod.ok().and_then(|pod| pod.spec).unwrap_or_default()
}

/// The requirements for one label.
#[derive(Default)]
struct Asked {
    /// As texts for the message.
    texts: Vec<String>,
    /// The remaining values; `None`: any.
    values: Option<BTreeSet<String>>,
    excluded: BTreeSet<String>,
    is_there: bool,
    is_absent: bool,
}

impl Asked {
    fn add(&mut self, operator: &str, values: &[String]) {
        let values: BTreeSet<String> = values.iter().cloned().collect();
        let listed: Vec<&str> = values.iter().map(String::as_str).collect();
        let text = match operator {
            "In" => format!("in ({})", listed.join(", ")),
            "NotIn" => format!("not in ({})", listed.join(", ")),
            "Exists" => "there".to_owned(),
            "DoesNotExist" => "not there".to_owned(),
            other => format!("{other} {}", listed.join(", ")),
        };
        self.texts.push(text);
        match operator {
            // An empty list is refused.
            "In" if values.is_empty() => self.is_there = true,
            "In" => {
                self.is_there = true;
                let left = self.values.take();
                self.values = Some(match left {
                    None => values,
                    Some(left) => &left & &values,
                });
            }
            "NotIn" => self.excluded.extend(values),
            "DoesNotExist" => self.is_absent = true,
            _ => self.is_there = true,
        }
    }

    /// True if no value fulfils the requirements.
    fn is_contradictory(&self) -> bool {
        let none_left = self
            .values
            .as_ref()
            .is_some_and(|left| left.is_subset(&self.excluded));
        none_left || (self.is_there && self.is_absent)
    }
}

/// The label for which no node can fulfil the pod's requirements, in any of its terms.
fn contradiction(
    spec: &PodSpec,
    subset: &WorkloadSpreadSubset,
    path: &FieldPath,
) -> Option<Warning> {
    let required = facts::pod::required_terms(spec);
    let none = [&[][..]];
    let terms: Vec<&[NodeSelectorRequirement]> = match required {
        None => none.to_vec(),
        Some(required) => {
            let terms = required.node_selector_terms.iter();
            terms
                .map(|term| term.match_expressions.as_deref().unwrap_or_default())
                .collect()
        }
    };
    let mut first = None;
    for term in terms {
        let mut asked: BTreeMap<&str, Asked> = BTreeMap::new();
        for (key, value) in spec.node_selector.iter().flatten() {
            asked
                .entry(key)
                .or_default()
                .add("In", std::slice::from_ref(value));
        }
        for expression in term {
            let values = expression.values.as_deref().unwrap_or_default();
            asked
                .entry(&expression.key)
                .or_default()
                .add(&expression.operator, values);
        }
        let wrong = asked
            .into_iter()
            .find(|(_, asked)| asked.is_contradictory());
        first.get_or_insert(wrong.map(|(key, asked)| (key.to_owned(), asked.texts.join(" and ")))?);
    }
    let (key, texts) = first?;
    Some(Warning {
        code: "no-node-possible",
        path: path.child("requiredNodeSelector"),
        message: format!(
            "pods of subset {:?} stay Pending: no node has a label {key:?} that is {texts}",
            subset.name
        ),
        help: "compare requiredNodeSelector with nodeSelector and nodeAffinity of the template, and with the patch".to_owned(),
    })
}

/// Warns if none of the subset's nodes in the files can take its pods, by labels or by taints.
fn nodes(
    look: &Look<'_>,
    spec: &PodSpec,
    subset: &WorkloadSpreadSubset,
    path: &FieldPath,
) -> Option<Warning> {
    let mut names = Interner::new();
    // A patch with terms of its own is what counts.
    let replaces = super::replaces_selector(subset);
    let required = subset.required_node_selector.as_ref().filter(|_| !replaces);
    let own: Option<Term> = required.map(|term| facts::node_selector_term(term, &mut names));
    let asked = facts::required_node_affinity(spec, &mut names);
    let tolerations = facts::tolerations(spec, &mut names);
    let (mut n_own, mut n_asked) = (0, 0);
    let mut tainted: Option<(String, String)> = None;
    for node in nodes_of(look.objects) {
        let (name, labels) = facts::labelled(&node.metadata, &mut names);
        if own
            .as_ref()
            .is_some_and(|term| !term.matches(name, &labels, &names))
        {
            continue;
        }
        n_own += 1;
        if !asked.matches(name, &labels, &names) {
            continue;
        }
        n_asked += 1;
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
        let untolerated = taints.unwrap_or_default().iter().find(|taint| {
            let taint = facts::taint(taint, &mut names);
            let taint = taint.filter(|taint| taint.forbids_scheduling());
            taint.is_some_and(|taint| !tolerations.iter().any(|t| t.tolerates(&taint)))
        })?;
        tainted.get_or_insert_with(|| {
            let value = untolerated
                .value
                .as_deref()
                .filter(|value| !value.is_empty());
            let value = value.map_or_else(String::new, |value| format!("={value}"));
            let taint = format!("{}{value}:{}", untolerated.key, untolerated.effect);
            (node.metadata.name.clone().unwrap_or_default(), taint)
        });
    }
    let warn = |code, field, message, help: &str| {
        Some(Warning {
            code,
            path: path.child(field),
            message,
            help: help.to_owned(),
        })
    };
    let name = &subset.name;
    match tainted {
        Some((node, taint)) => warn(
            "untolerated-taint",
            "tolerations",
            format!(
                "pods of subset {name:?} stay Pending: they tolerate the taints of none of its {n_asked} nodes in these files, such as {taint} of {node}"
            ),
            "add a toleration to the subset",
        ),
        None if n_own > 0 && n_asked == 0 && required.is_some() => warn(
            "no-node",
            "requiredNodeSelector",
            format!(
                "pods of subset {name:?} stay Pending: none of its {n_own} nodes in these files is one that the template or the patch asks for"
            ),
            "compare requiredNodeSelector with nodeSelector and nodeAffinity of the template",
        ),
        None if n_own > 0 && n_asked == 0 && replaces => warn(
            "no-node",
            "patch",
            format!(
                "pods of subset {name:?} stay Pending: none of the {n_own} nodes of these files is one that its patch asks for"
            ),
            "compare the node affinity of the patch with the labels of the nodes",
        ),
        None => None,
    }
}

pub(super) fn nodes_of<'a>(objects: &'a [&'a KubeObject]) -> impl Iterator<Item = &'a Node> {
    objects.iter().filter_map(|object| match object {
        KubeObject::Node(node) => Some(&**node),
        _ => None,
    })
}

// === budgets ===

/// Budgets that select the template's pods, but not those of the subset.
fn budgets(
    look: &Look<'_>,
    [before, after]: [&Pod; 2],
    subset: &WorkloadSpreadSubset,
    path: &FieldPath,
) -> Vec<Warning> {
    let namespace = super::namespace_of(look.ws);
    let here = look
        .objects
        .iter()
        .filter(|object| object.namespace() == Some(namespace));
    let lost = here.filter_map(|object| {
        let KubeObject::PodDisruptionBudget(budget) = object else {
            return None;
        };
        let selector = budget.spec.as_ref()?.selector.as_ref()?;
        let is_lost = selects(selector, before) && !selects(selector, after);
        is_lost.then(|| Warning {
            code: "leaves-budget",
            path: path.child("patch").child("metadata").child("labels"),
            message: format!(
                "{} holds for the pods of the template, and not for those of subset {:?}",
                object.label(),
                subset.name
            ),
            help: "leave the labels that its selector names as they are".to_owned(),
        })
    });
    lost.collect()
}

fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    let mut names = Interner::new();
    let parsed = facts::selector(Some(selector), &mut names);
    let labels = facts::labels(pod.metadata.labels.as_ref(), &mut names);
    parsed.is_ok_and(|parsed| parsed.matches(&labels))
}
