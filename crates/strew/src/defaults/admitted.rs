//! What the policies do to the pods of a cluster, as if all were created again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::anyhow;
use serde_json::{Value, json};
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Object, Pod};
use strew_manifest::read::KubeObject;
use strew_suite::label_query::LabelQuery;
use strew_wire::default_policy::admission::{Admission, Policies};
use strew_wire::default_policy::{APPLIED, Defaults, NO, OPT_OUT};

use crate::failure::Failure;

/// The namespaces in which the policies hold.
pub(super) struct Scope {
    pub(super) excluded: Vec<String>,
    pub(super) query: Option<LabelQuery>,
}

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    /// By the conditions of the policies.
    Asked(Admission),
    /// It has the constraints that it would get: the policies added them.
    Applied,
    /// Its namespace is not selected.
    OutOfScope,
}

type Labels = BTreeMap<String, String>;

/// The pods that have not finished, with what becomes of each.
///
/// # Errors
/// An expression of a policy has no result.
pub(super) fn of(
    tables: &Tables,
    defaults: &Defaults,
    scope: &Scope,
) -> Result<HashMap<Name, Fate>, Failure> {
    let policies = Policies::new(defaults).map_err(|error| Failure::input(anyhow!("{error}")))?;
    let around = Around::of(tables);
    // Pods of one template differ only in what the policies do not read.
    let mut known: HashMap<String, Fate> = HashMap::new();
    let mut fates = HashMap::new();
    for pod in tables.of::<Pod>().iter().filter(|pod| !pod.is_finished()) {
        let created = created(pod);
        let key = format!("{}/{created}", pod.meta.name.namespace);
        let fate = match known.get(&key) {
            Some(fate) => fate.clone(),
            None => {
                let fate = around.fate(pod, &created, &policies, scope)?;
                known.insert(key, fate.clone());
                fate
            }
        };
        let fate = match is_applied(pod, &fate) {
            true => Fate::Applied,
            false => fate,
        };
        fates.insert(pod.meta.name.clone(), fate);
    }
    Ok(fates)
}

/// Whether a pod has the constraints that it would get. The API server has merged the values of `matchLabelKeys` into
/// the stored ones.
fn is_applied(pod: &Pod, fate: &Fate) -> bool {
    let Fate::Asked(Admission::Constrained { constraints, .. }) = fate else {
        return false;
    };
    let mut stored = pod
        .spec
        .topology_spread_constraints
        .clone()
        .unwrap_or_default();
    for constraint in &mut stored {
        if let Some(selector) = &mut constraint.label_selector {
            selector.match_expressions = None;
        }
    }
    stored == *constraints
}

/// The tables with the constraints that pods get.
pub(super) fn changed(tables: &Tables, fates: &HashMap<Name, Fate>) -> Tables {
    let mut changed = tables.clone();
    // Pods of one template share their spec again.
    let mut specs = HashMap::new();
    for pod in tables.of::<Pod>().iter() {
        let Some(Fate::Asked(Admission::Constrained { constraints, .. })) =
            fates.get(&pod.meta.name)
        else {
            continue;
        };
        let key = (Arc::as_ptr(&pod.spec) as usize, format!("{constraints:?}"));
        let spec = specs.entry(key).or_insert_with(|| {
            let mut spec = (*pod.spec).clone();
            spec.topology_spread_constraints = Some(constraints.clone());
            Arc::new(spec)
        });
        let mut pod = (**pod).clone();
        pod.spec = Arc::clone(spec);
        changed.set(Object::Pod(Arc::new(pod)));
    }
    changed
}

/// What the policies read of a pod that is created.
fn created(pod: &Pod) -> Value {
    let meta = &pod.meta;
    let owners = meta.owners.iter().map(|owner| {
        json!({
            "apiVersion": &*owner.api_version,
            "kind": &*owner.kind,
            "controller": owner.is_controller,
        })
    });
    let mut object = json!({
        "metadata": {"labels": &*meta.labels, "ownerReferences": owners.collect::<Vec<_>>()},
        "spec": {
            "schedulerName": pod.spec.scheduler_name.as_deref().unwrap_or("default-scheduler"),
        },
    });
    if let Some(value) = meta.annotations.get(OPT_OUT) {
        object["metadata"]["annotations"] = json!({OPT_OUT: value});
    }
    // What the policies added is not in the template. Of constraints only their number is read.
    let own = pod.spec.topology_spread_constraints.as_deref();
    let own = own.filter(|_| !meta.annotations.contains_key(APPLIED));
    if let Some(own) = own {
        object["spec"]["topologySpreadConstraints"] = vec![Value::Null; own.len()].into();
    }
    object
}

/// Namespaces and Services.
struct Around {
    /// Labels by name.
    namespaces: HashMap<String, Labels>,
    /// By namespace.
    services: HashMap<String, Vec<Value>>,
}

impl Around {
    fn of(tables: &Tables) -> Self {
        let mut around = Self {
            namespaces: HashMap::new(),
            services: HashMap::new(),
        };
        for plain in tables.all_plain() {
            match &plain.object {
                KubeObject::Namespace(namespace) => {
                    let labels = namespace.metadata.labels.clone().unwrap_or_default();
                    let name = plain.meta.name.name.to_string();
                    around.namespaces.insert(name, labels);
                }
                KubeObject::Service(service) => {
                    let selector = service.spec.as_ref().and_then(|s| s.selector.as_ref());
                    let param = match selector {
                        Some(selector) => json!({"spec": {"selector": selector}}),
                        None => json!({"spec": {}}),
                    };
                    let namespace = plain.meta.name.namespace.to_string();
                    around.services.entry(namespace).or_default().push(param);
                }
                _ => {}
            }
        }
        around
    }

    fn fate(
        &self,
        pod: &Pod,
        created: &Value,
        policies: &Policies<'_>,
        scope: &Scope,
    ) -> Result<Fate, Failure> {
        let namespace = &*pod.meta.name.namespace;
        let opts_out = pod
            .meta
            .labels
            .get(OPT_OUT)
            .is_some_and(|value| value == NO);
        if opts_out || !self.is_in_scope(namespace, scope) {
            return Ok(Fate::OutOfScope);
        }
        let services = self.services.get(namespace).into_iter().flatten();
        let services: Vec<&Value> = services.collect();
        let admission = policies.admit(created, &services).map_err(|error| {
            let name = &pod.meta.name.name;
            Failure::input(anyhow!(
                "pod {namespace}/{name}: the policy has no result: {error}"
            ))
        })?;
        Ok(Fate::Asked(admission))
    }

    fn is_in_scope(&self, namespace: &str, scope: &Scope) -> bool {
        let none = Labels::new();
        let mut labels = self.namespaces.get(namespace).unwrap_or(&none).clone();
        labels.insert(
            "kubernetes.io/metadata.name".to_owned(),
            namespace.to_owned(),
        );
        let opts_out = labels.get(OPT_OUT).is_some_and(|value| value == NO);
        let is_selected = scope
            .query
            .as_ref()
            .is_none_or(|query| query.matches(&labels));
        !opts_out && is_selected && !scope.excluded.iter().any(|name| name == namespace)
    }
}
