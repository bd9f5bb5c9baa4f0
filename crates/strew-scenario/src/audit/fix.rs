//! Changes that may prevent what an audit found. None is told before it was played.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PodTemplateSpec, TopologySpreadConstraint};
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value, json};
use strew_apiserver::object::scheduling::wire_of;
use strew_apiserver::object::{Key, Kind, Name, Object};
use strew_manifest::advice::Advice;
use strew_manifest::read::KubeObject;
use strew_view::words::short_key;

use super::values::{CauseCode, MoreNodes, ObjectPatch};
use crate::format::{ObjectTarget, merge};

/// A change of the cluster before the audit is played.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// A merge patch.
    Merge {
        /// The object.
        target: ObjectTarget,
        /// The patch.
        patch: Value,
    },
    /// Nodes in addition.
    Nodes {
        /// The nodes.
        nodes: Vec<Node>,
        /// Which ones, in words.
        of: MoreNodes,
    },
}

impl Edit {
    /// The patch of an object; `None` if it adds nodes.
    pub fn object_patch(&self) -> Option<ObjectPatch> {
        let Self::Merge { target, patch } = self else {
            return None;
        };
        Some(ObjectPatch {
            kind: target.type_name.kind.to_owned(),
            api_version: target.type_name.api_version.to_owned(),
            namespace: target.namespace.clone().unwrap_or_default(),
            name: target.name.clone(),
            patch: fields(patch),
        })
    }

    /// The nodes that it adds.
    pub fn more_nodes(&self) -> Option<&MoreNodes> {
        match self {
            Self::Nodes { of, .. } => Some(of),
            Self::Merge { .. } => None,
        }
    }
}

fn fields(patch: &Value) -> BTreeMap<String, Value> {
    let fields = patch.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A change for a workload, with its edits.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The workload: `deployment/web`.
    pub of: String,
    /// What it does.
    pub change: String,
    /// Done in their order.
    pub edits: Vec<Edit>,
}

/// A workload that is hurt, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Hurt {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its name in reports.
    pub of: String,
    /// The causes, each once.
    pub causes: Vec<CauseCode>,
    /// The domains that it is hurt by.
    pub domains: Vec<String>,
    /// The budgets that keep a drain of its pods from its end: namespace and name.
    pub budgets: Vec<[String; 2]>,
    /// How many domains each case takes at once.
    pub losing: i32,
}

/// The changes that may help a workload, the smallest first; empty if none is known.
pub fn candidates(objects: &[Object], key: &str, hurt: &Hurt) -> Vec<Candidate> {
    let mut found = Vec::new();
    let candidate = |change: &str, edits: Vec<Edit>| Candidate {
        of: hurt.of.clone(),
        change: change.to_owned(),
        edits,
    };
    let budgets: Vec<Edit> = { hurt.budgets.iter() }
        .filter_map(|[namespace, name]| loosened(objects, namespace, name))
        .collect();
    let in_budget = hurt.budgets.first().map(|[_, name]| {
        let change = format!("maxUnavailable: 1 in budget {name}");
        candidate(&change, budgets.clone())
    });
    let is_it = |object: &&Object| {
        let name = &object.meta().name;
        object.kind().name() == hurt.kind
            && *name.namespace == *hurt.namespace
            && *name.name == *hurt.name
    };
    let object = objects.iter().find(is_it);
    for change in object
        .into_iter()
        .flat_map(|object| changes(object, key, hurt))
    {
        found.push(candidate(&change.0, vec![change.1]));
    }
    let nodes = more_nodes(objects, key, hurt);
    if !nodes.is_empty() {
        let spread = object
            .and_then(|object| Change::of(object, key))
            .and_then(|change| change.hard());
        for (text, edits) in nodes {
            found.push(candidate(&text, edits.clone()));
            if let Some((and, edit)) = &spread {
                let edits = edits.into_iter().chain([edit.clone()]);
                found.push(candidate(&format!("{text}, and {and}"), edits.collect()));
            }
        }
    }
    if hurt.causes.contains(&CauseCode::NodesClosed) {
        let uncordoned = uncordoned(objects, key, hurt);
        found.extend(uncordoned.map(|(text, edits)| candidate(&text, edits)));
    }
    let spreads = found.clone();
    if let Some(in_budget) = in_budget.filter(|_| !budgets.is_empty()) {
        // Alone first, then with the changes of the workload.
        found.insert(0, in_budget);
        for spread in spreads {
            let change = format!("{}, and {}", spread.change, found[0].change);
            let edits = spread.edits.into_iter().chain(budgets.clone());
            found.push(candidate(&change, edits.collect()));
        }
    }
    let unhealthy: Vec<Edit> = { hurt.budgets.iter() }
        .filter_map(|[namespace, name]| evicts_unhealthy(objects, namespace, name))
        .collect();
    if let Some([_, name]) = hurt.budgets.first()
        && !unhealthy.is_empty()
    {
        let change = format!("unhealthyPodEvictionPolicy: AlwaysAllow in budget {name}");
        found.push(candidate(&change, unhealthy));
    }
    found
}

/// The cordoned nodes outside the domains take new pods again; `None` if there is none.
fn uncordoned(objects: &[Object], key: &str, hurt: &Hurt) -> Option<(String, Vec<Edit>)> {
    let mut names = Vec::new();
    let mut edits = Vec::new();
    for object in objects {
        let Some(KubeObject::Node(node)) = wire_of(object) else {
            continue;
        };
        let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        let value = object.meta().label(key);
        let is_elsewhere = value.is_none_or(|value| !hurt.domains.iter().any(|d| d == value));
        if is_cordoned && is_elsewhere {
            names.push(object.meta().name.name.to_string());
            edits.extend(merged(&object.key(), json!({"unschedulable": null})));
        }
    }
    (!edits.is_empty()).then(|| (format!("uncordon {}", names.join(", ")), edits))
}

/// Changes of a workload, the smallest first.
fn changes(object: &Object, key: &str, hurt: &Hurt) -> Vec<(String, Edit)> {
    let Some(change) = Change::of(object, key) else {
        return Vec::new();
    };
    let has = |code: CauseCode| hurt.causes.contains(&code);
    let (short, replicas) = (short_key(key), change.replicas);
    // With one pod a domain, one pod is left in each case.
    let enough = hurt.losing.saturating_add(1);
    let mut found = Vec::new();
    if has(CauseCode::ConstraintCountsTheLost) || has(CauseCode::ConstraintCountsUnusable) {
        let honor = |constraint: &mut TopologySpreadConstraint| {
            constraint.node_taints_policy = Some("Honor".to_owned());
        };
        let over_key = change.edited(honor);
        found.push((format!("nodeTaintsPolicy: Honor over {short}"), over_key));
        // The constraint over another key may be what counts it, such as that over hostname.
        let everywhere = change.edited_if(is_hard, honor);
        found.push((Advice::HonorTaints.help().to_owned(), everywhere));
    }
    if has(CauseCode::ConstraintCountsUnusable) {
        let honor = |constraint: &mut TopologySpreadConstraint| {
            constraint.node_affinity_policy = Some("Honor".to_owned());
            constraint.node_taints_policy = Some("Honor".to_owned());
        };
        let text = format!("nodeAffinityPolicy and nodeTaintsPolicy: Honor over {short}");
        found.push((text, change.edited(honor)));
    }
    if has(CauseCode::ConstraintMinDomains) {
        found.extend(change.fewer_min_domains());
    }
    if has(CauseCode::ConstraintMaxSkew) {
        let even = change.edited(|constraint| {
            constraint.max_skew = 1;
            constraint.node_taints_policy = Some("Honor".to_owned());
        });
        found.push((
            format!("maxSkew: 1 over {short}, nodeTaintsPolicy: Honor"),
            even,
        ));
    }
    if has(CauseCode::ConstraintSelectorMisses) {
        let counts = change.edited(|constraint| {
            constraint.label_selector = change.own_selector();
        });
        found.push((
            format!("the workload's selector in the constraint over {short}"),
            counts,
        ));
    }
    let hard = || {
        change
            .hard()
            .map_or_else(Default::default, |(text, edit)| (text, Some(edit)))
    };
    if has(CauseCode::ConstraintMissing) || has(CauseCode::ConstraintKeyMissing) {
        let text = format!("a constraint over {short}: maxSkew 1, ScheduleAnyway");
        found.push((text, change.with("ScheduleAnyway", None)));
        found.push(hard());
    }
    let is_together = [
        CauseCode::ConstraintSoft,
        CauseCode::ConstraintSelectorMisses,
        CauseCode::ConstraintHoldsInOneDomain,
    ];
    if is_together.into_iter().any(has) {
        found.push(hard());
    }
    let more = || {
        let text = format!("replicas: {enough}");
        (text, change.merged(json!({"replicas": enough})))
    };
    if has(CauseCode::FewReplicas) && replicas < enough {
        found.push(more());
    }
    if (has(CauseCode::SingleReplica) || has(CauseCode::FewReplicas)) && replicas < enough {
        let text = format!(
            "replicas: {enough} and a constraint over {short}: maxSkew 1, DoNotSchedule, nodeTaintsPolicy Honor"
        );
        found.push((text, change.with("DoNotSchedule", Some(enough))));
    }
    if has(CauseCode::VolumePin) && replicas == 1 {
        found.push(more());
    }
    let found = found.into_iter();
    found
        .filter_map(|(text, edit)| Some((text, edit?)))
        .collect()
}

/// Nodes to add for a workload that finds no room, or whose nodes are in one domain only; few of them first.
fn more_nodes(objects: &[Object], key: &str, hurt: &Hurt) -> Vec<(String, Vec<Edit>)> {
    let has = |code: CauseCode| hurt.causes.contains(&code);
    let (lacks_room, lacks_pool) = (has(CauseCode::NoHeadroom), has(CauseCode::SingleDomainPool));
    if !(lacks_room || lacks_pool) {
        return Vec::new();
    }
    let nodes = objects.iter().filter_map(|object| match wire_of(object) {
        Some(KubeObject::Node(node)) => Some(*node),
        _ => None,
    });
    // The first node of each domain.
    let mut first: BTreeMap<String, Node> = BTreeMap::new();
    for node in nodes {
        let labels = node.metadata.labels.as_ref();
        let value = labels.and_then(|labels| labels.get(key)).cloned();
        if let Some(value) = value.filter(|_| is_open(&node)) {
            first.entry(value).or_insert(node);
        }
    }
    let own = hurt.domains.iter().find_map(|domain| first.get(domain));
    let counts: &[usize] = if lacks_pool { &[1] } else { &[1, 2, 4] };
    let mut found = Vec::new();
    for &count in counts {
        let each = first
            .iter()
            .filter(|(domain, _)| !(lacks_pool && hurt.domains.contains(domain)));
        let edits = each.filter_map(|(domain, node)| {
            let like = if lacks_pool { own? } else { node };
            let name = like.metadata.name.clone().unwrap_or_default();
            let nodes = (1..=count).map(|number| copy(like, number, key, domain));
            Some(Edit::Nodes {
                nodes: nodes.collect(),
                of: MoreNodes {
                    count,
                    like: name,
                    domain: domain.clone(),
                },
            })
        });
        let edits: Vec<Edit> = edits.collect();
        let nodes = if count == 1 { "node" } else { "nodes" };
        let others = if lacks_pool { "other " } else { "" };
        let like = match (lacks_pool, own) {
            (true, Some(own)) => {
                format!(" like {}", own.metadata.name.as_deref().unwrap_or_default())
            }
            _ => String::new(),
        };
        if !edits.is_empty() {
            let text = format!(
                "{count} more {nodes}{like} in each {others}{}",
                short_key(key)
            );
            found.push((text, edits));
        }
    }
    found
}

/// True if the node takes new pods.
fn is_open(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let is_cordoned = spec.and_then(|spec| spec.unschedulable) == Some(true);
    let taints = spec.and_then(|spec| spec.taints.as_ref());
    !is_cordoned && taints.is_none_or(Vec::is_empty)
}

/// A new node like this one, in a domain.
fn copy(like: &Node, number: usize, key: &str, domain: &str) -> Node {
    let mut node = like.clone();
    let name = format!(
        "{}-like-{}-{number}",
        domain,
        like.metadata.name.as_deref().unwrap_or_default()
    );
    let mut labels = like.metadata.labels.clone().unwrap_or_default();
    labels.insert(key.to_owned(), domain.to_owned());
    labels.insert("kubernetes.io/hostname".to_owned(), name.clone());
    node.metadata = ObjectMeta {
        name: Some(name),
        labels: Some(labels),
        ..ObjectMeta::default()
    };
    node
}

/// The most numbers that are tried in the place of one.
const FEWER_MAX: usize = 4;

fn is_hard(constraint: &TopologySpreadConstraint) -> bool {
    constraint.when_unsatisfiable == "DoNotSchedule"
}

struct Change<'a> {
    object: &'a Object,
    template: &'a PodTemplateSpec,
    replicas: i32,
    key: &'a str,
}

impl<'a> Change<'a> {
    /// `None` if it is no workload with a template to change.
    fn of(object: &'a Object, key: &'a str) -> Option<Self> {
        let (template, replicas) = template(object)?;
        Some(Self {
            object,
            template,
            replicas,
            key,
        })
    }

    fn hard(&self) -> Option<(String, Edit)> {
        let its = self.constraints();
        let mut its = its.iter().filter(|c| c.topology_key == self.key);
        let article = if its.any(is_hard) { "its" } else { "a" };
        let text = format!(
            "{article} constraint over {}: maxSkew 1, DoNotSchedule, nodeTaintsPolicy Honor",
            short_key(self.key)
        );
        Some((text, self.with("DoNotSchedule", None)?))
    }

    fn constraints(&self) -> Vec<TopologySpreadConstraint> {
        let spec = self.template.spec.as_ref();
        let all = spec.and_then(|spec| spec.topology_spread_constraints.clone());
        all.unwrap_or_default()
    }

    /// Its constraints over the key, changed.
    fn edited(&self, edit: impl Fn(&mut TopologySpreadConstraint)) -> Option<Edit> {
        self.edited_if(|constraint| constraint.topology_key == self.key, edit)
    }

    /// These of its constraints, changed; `None` if that changes nothing.
    fn edited_if(
        &self,
        is_meant: impl Fn(&TopologySpreadConstraint) -> bool,
        edit: impl Fn(&mut TopologySpreadConstraint),
    ) -> Option<Edit> {
        let before = self.constraints();
        let mut constraints = before.clone();
        let meant = constraints.iter_mut().filter(|c| is_meant(c));
        meant.for_each(edit);
        (constraints != before).then(|| self.spread(constraints, None))?
    }

    /// A smaller `minDomains` for each hard constraint that has one, the largest first.
    fn fewer_min_domains(&self) -> Vec<(String, Option<Edit>)> {
        let mut found = Vec::new();
        for (place, constraint) in self.constraints().iter().enumerate() {
            let min = constraint.min_domains.unwrap_or(0);
            for fewer in (1..min).rev().take(FEWER_MAX) {
                let mut constraints = self.constraints();
                constraints[place].min_domains = Some(fewer);
                let key = short_key(&constraint.topology_key);
                let text = format!("minDomains: {fewer} instead of {min} over {key}");
                found.push((text, self.spread(constraints, None)));
            }
        }
        found
    }

    /// One constraint over the key in place of those that it has, and maybe another number of replicas; `None` if that
    /// changes nothing.
    fn with(&self, when_unsatisfiable: &str, replicas: Option<i32>) -> Option<Edit> {
        let before = self.constraints();
        let mut constraints = before.clone();
        constraints.retain(|constraint| constraint.topology_key != self.key);
        let is_hard = when_unsatisfiable == "DoNotSchedule";
        let is_deployment = self.object.kind() == Kind::Deployment;
        constraints.push(TopologySpreadConstraint {
            max_skew: 1,
            topology_key: self.key.to_owned(),
            when_unsatisfiable: when_unsatisfiable.to_owned(),
            label_selector: self.own_selector(),
            node_taints_policy: is_hard.then(|| "Honor".to_owned()),
            match_label_keys: is_deployment.then(|| vec!["pod-template-hash".to_owned()]),
            ..TopologySpreadConstraint::default()
        });
        (replicas.is_some() || constraints != before).then(|| self.spread(constraints, replicas))?
    }

    fn spread(
        &self,
        constraints: Vec<TopologySpreadConstraint>,
        replicas: Option<i32>,
    ) -> Option<Edit> {
        let mut spec = json!({
            "template": {"spec": {"topologySpreadConstraints": constraints}},
        });
        if let Some(replicas) = replicas {
            merge(&mut spec, &json!({"replicas": replicas}));
        }
        self.merged(spec)
    }

    fn merged(&self, spec: Value) -> Option<Edit> {
        merged(&self.object.key(), spec)
    }

    fn own_selector(&self) -> Option<LabelSelector> {
        self.object.pod_selector().cloned()
    }
}

/// `None` if the kind is none of the table.
fn merged(key: &Key, spec: Value) -> Option<Edit> {
    Some(Edit::Merge {
        target: ObjectTarget::of_key(key)?,
        patch: Value::Object(Map::from_iter([("spec".to_owned(), spec)])),
    })
}

/// The template of a workload, and its replicas.
fn template(object: &Object) -> Option<(&PodTemplateSpec, i32)> {
    object.kind().row().filter(|row| row.rolls_replicas())?;
    Some((object.pod_template()?, object.replicas()?))
}

/// A budget that allows one eviction at a time; `None` if it is not there, or has that already.
fn loosened(objects: &[Object], namespace: &str, name: &str) -> Option<Edit> {
    let (key, spec) = budget(objects, namespace, name)?;
    let is_so = spec.max_unavailable == Some(IntOrString::Int(1));
    (!is_so).then(|| merged(&key, json!({"minAvailable": null, "maxUnavailable": 1})))?
}

fn budget<'a>(
    objects: &'a [Object],
    namespace: &str,
    name: &str,
) -> Option<(Key, &'a PodDisruptionBudgetSpec)> {
    let key = Key {
        kind: Kind::of("PodDisruptionBudget"),
        name: Name::new(namespace, name),
    };
    match objects.iter().find(|object| object.key() == key)? {
        Object::Budget(budget) => Some((key, &budget.spec)),
        _ => None,
    }
}

/// A budget that lets pods go that are not ready; `None` if it is not there, or does that already.
fn evicts_unhealthy(objects: &[Object], namespace: &str, name: &str) -> Option<Edit> {
    const POLICY: &str = "AlwaysAllow";
    let (key, spec) = budget(objects, namespace, name)?;
    let now = spec.unhealthy_pod_eviction_policy.as_deref();
    (now != Some(POLICY)).then(|| merged(&key, json!({"unhealthyPodEvictionPolicy": POLICY})))?
}
