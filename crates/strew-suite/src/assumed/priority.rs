//! Priority classes that the files name and do not have. Their pods are not refused, as they would be by the API server
//! of a cluster without the class: the class is kept by whoever runs the cluster, not by an application.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::json;
use strew_manifest::json::Json;
use strew_manifest::read::{Diagnostic, KubeObject, Located, Locator, nearest};

use super::{Assumed, Mention, pod_spec};

/// A class of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenPriority {
    name: String,
    value: i32,
}

impl fmt::Display for GivenPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

pub(super) fn given(text: &str) -> Result<GivenPriority, String> {
    let wrong = || "expected NAME=VALUE, for example high=1000".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = value.parse().map_err(|_| wrong())?;
    let name = name.to_owned();
    (!name.is_empty())
        .then_some(GivenPriority { name, value })
        .ok_or_else(wrong)
}

/// The classes that every API server creates.
const OF_EVERY_CLUSTER: &str = "system-";

/// Adds the classes that are given or assumed, and warnings about those that are assumed.
pub(super) fn assume(
    objects: &[Located],
    given: &[GivenPriority],
    locator: &mut Locator<'_>,
    assumed: &mut Assumed,
) {
    let of_files = objects.iter().filter_map(|located| match &located.object {
        KubeObject::PriorityClass(class) => class.metadata.name.as_deref(),
        _ => None,
    });
    let of_files: BTreeSet<&str> = of_files.collect();
    let mut known = of_files.clone();
    for given in given {
        if known.insert(&given.name) {
            let class = class(&given.name, given.value, None);
            assumed.objects.push(class.into());
        }
    }
    for located in objects {
        let Some((spec, path)) = pod_spec(&located.object) else {
            continue;
        };
        let name = spec.priority_class_name.as_deref().unwrap_or_default();
        let is_elsewhere = !name.is_empty() && !name.starts_with(OF_EVERY_CLUSTER);
        if !is_elsewhere || !known.insert(name) {
            continue;
        }
        let found = of_pods(objects, name);
        let (value, policy) = found.unwrap_or((0, None));
        assumed.objects.push(class(name, value, policy).into());
        let whence = match found {
            Some(_) => format!("its value is assumed to be {value}, as its pods have it"),
            None => "its value is assumed to be 0".to_owned(),
        };
        let message = format!("priority class {name:?} is not in the files: {whence}");
        let options = format!("add the PriorityClass, or give --priority-class {name}=VALUE");
        let help = match nearest(name, of_files.iter().copied()) {
            Some(meant) => format!("did you mean {meant:?}? Else {options}"),
            None => options,
        };
        let field = path.child("priorityClassName");
        let diagnostic = Diagnostic::warning("assumed-priority-class", message).with_help(help);
        let mention = Mention { located, field };
        assumed.diagnostics.push(mention.warn(diagnostic, locator));
    }
}

/// The priority and the preemption policy of the first pod that names the class and has a priority.
fn of_pods<'a>(objects: &'a [Located], name: &str) -> Option<(i32, Option<&'a str>)> {
    objects.iter().find_map(|located| {
        let (spec, _) = pod_spec(&located.object)?;
        let is_its = spec.priority_class_name.as_deref() == Some(name);
        let value = spec.priority.filter(|_| is_its)?;
        Some((value, spec.preemption_policy.as_deref()))
    })
}

fn class(name: &str, value: i32, policy: Option<&str>) -> PriorityClass {
    let class = json!({
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    });
    PriorityClass::of_json(class).unwrap_or_default()
}
