//! Claims about hard spread constraints: whether the pods of a workload keep them at rest.
//!
//! The scheduler checks a constraint when it places a pod, against the pods that are there then. What is removed later
//! can leave a skew above the limit.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Object, Pod};
use strew_apiserver::server::Server;
use strew_manifest::advice::Advice;
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;
use strew_spread::Tally;
use strew_view::ground::Ground;
use strew_view::spread::HardConstraint;

use super::{is, is_counted, name, replicated};
use crate::expect::{Verdict, subject};
use crate::format::ObjectTarget;

/// The rule of findings about constraints that are exceeded at rest.
pub const CONSTRAINT_EXCEEDED: &str = "constraint-exceeded";

/// A hard constraint that a workload's pods exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exceeded {
    /// The workload.
    pub of: Key,
    /// The topology key.
    pub by: String,
    /// The skew.
    pub skew: i64,
    /// `maxSkew`.
    pub max_skew: i32,
    /// Pods by domain.
    counts: Vec<(String, i32)>,
    /// True if `matchLabelKeys` would make it count the newest revision only.
    lacks_match_label_keys: bool,
    /// True if a scale-down in this step made it so, of pods that no deletion cost was asked for.
    is_by_scale_down: bool,
}

/// What is exceeded at second 0: workload and topology key. No step of the run did that.
pub type ExceededBefore = BTreeSet<(Key, String)>;

/// What is exceeded now.
pub fn exceeded_now(server: &Server, ground: &mut Ground) -> ExceededBefore {
    let all = exceeded(server.tables(), ground, None);
    all.into_iter().map(|one| (one.of, one.by)).collect()
}

/// Judges whether the pods of the newest revision of all workloads, or of that of `of`, keep their hard constraints.
/// What was exceeded at second 0 is not judged. The second part is what is exceeded now.
pub fn within_constraints(
    server: &Server,
    ground: &mut Ground,
    of: Option<&ObjectTarget>,
    before: &ExceededBefore,
    is_by_scale_down: impl Fn(&Object, &str) -> bool,
) -> (Verdict, Vec<Exceeded>) {
    let mut exceeded = exceeded(server.tables(), ground, of);
    for one in &mut exceeded {
        let object = server.tables().find(&one.of);
        one.is_by_scale_down = object.is_some_and(|object| {
            matches!(object, Object::Deployment(_) | Object::ReplicaSet(_))
                && object.meta().label(strew_sim::KEEP_LABEL).is_none()
                && is_by_scale_down(&object, &one.by)
        });
    }
    if of.is_none() {
        exceeded.retain(|one| !before.contains(&(one.of.clone(), one.by.clone())));
    }
    let told: Vec<String> = exceeded.iter().map(Exceeded::sentence).collect();
    let findings = exceeded.iter().map(Exceeded::finding).collect();
    let verdict = Verdict::new(told.is_empty(), told.join("; ")).with_findings(findings);
    (verdict, exceeded)
}

/// Why no constraint of all workloads, or of that of `of`, can be judged; `None` if one can.
pub fn unconstrained(
    tables: &Tables,
    ground: &mut Ground,
    of: Option<&ObjectTarget>,
) -> Option<String> {
    let mut is_hard = |pod: &Arc<Pod>| !ground.hard(pod).is_empty();
    let Some(target) = of else {
        // Pods of one template share their spec.
        let mut seen = HashSet::new();
        let mut pods = tables.of::<Pod>().iter();
        let is_of_pods = pods.any(|pod| seen.insert(Arc::as_ptr(&pod.spec)) && is_hard(pod));
        // A template without pods is judged, too: it keeps its constraint.
        let others = || {
            tables
                .all()
                .into_iter()
                .filter(|object| object.kind() != Kind::Pod)
        };
        let is_there = is_of_pods || others().any(|object| asks(&object));
        return (!is_there).then(|| "there is no hard spread constraint".to_owned());
    };
    let Some(object) = tables.find(&target.key()) else {
        return Some(format!("there is no {target}"));
    };
    let own = newest(tables, &target.key());
    if own.iter().any(|pod| is_hard(pod)) {
        return None;
    }
    Some(match asks(&object) {
        true => format!("no pod of {target} is on a node"),
        false => format!("{target} has no hard spread constraint"),
    })
}

/// True if an object may ask for a hard constraint, of its pods or of others.
fn asks(object: &Object) -> bool {
    object.to_json().to_string().contains("DoNotSchedule")
}

impl Exceeded {
    /// `deployment/web ends at skew 2 over maxSkew 1 by zone: a 3, b 2, c 1`.
    fn sentence(&self) -> String {
        let by = match self.by.as_str() {
            "topology.kubernetes.io/zone" => "zone",
            "kubernetes.io/hostname" => "hostname",
            key => key,
        };
        let counts = self.counts.iter();
        let counts: Vec<String> = counts.map(|(domain, n)| format!("{domain} {n}")).collect();
        format!(
            "{} ends at skew {} over maxSkew {} by {}: {}",
            name(&self.of),
            self.skew,
            self.max_skew,
            by,
            counts.join(", ")
        )
    }

    fn finding(&self) -> Finding {
        let mut finding = Finding::new(Severity::Error, CONSTRAINT_EXCEEDED, self.sentence())
            .about(name(&self.of))
            .with_number("skew", self.skew)
            .with_number("maxSkew", self.max_skew.into());
        finding.advise(match (self.is_by_scale_down, self.lacks_match_label_keys) {
            (true, _) => Some(Advice::Keep),
            (false, true) => Some(Advice::MatchLabelKeys),
            (false, false) => None,
        });
        finding
    }
}

fn exceeded(tables: &Tables, ground: &mut Ground, of: Option<&ObjectTarget>) -> Vec<Exceeded> {
    let mut all = Vec::new();
    // Pods of a DaemonSet have a node each, and pods of a Job end.
    for object in replicated(tables).filter(is_counted) {
        let key = object.key();
        let is_meant = of.is_none_or(|target| is(&key, target));
        let belongs = object.meta().controller().is_some() && key.kind == Kind::ReplicaSet;
        if is_meant && !belongs {
            all.extend(of_workload(tables, ground, &key));
        }
    }
    all
}

/// The constraints that a workload's pods exceed, each topology key once: the pods of different subsets of a
/// WorkloadSpread can have different ones.
fn of_workload(tables: &Tables, ground: &mut Ground, key: &Key) -> Vec<Exceeded> {
    let own = newest(tables, key);
    let mut representatives = BTreeMap::new();
    for pod in &own {
        representatives
            .entry(Arc::as_ptr(&pod.spec))
            .or_insert(*pod);
    }
    let mut exceeded: Vec<Exceeded> = Vec::new();
    for pod in representatives.into_values() {
        for constraint in ground.hard(pod) {
            let by = ground.name(constraint.key).to_owned();
            let is_known = exceeded.iter().any(|known| known.by == by);
            if !is_known && ground.counts(&constraint, &pod.meta.labels) {
                exceeded.extend(of_constraint(tables, ground, key, pod, &own, &constraint));
            }
        }
    }
    exceeded
}

/// The pods of the newest revision that are on nodes and stay.
fn newest<'a>(tables: &'a Tables, key: &Key) -> Vec<&'a Arc<Pod>> {
    let Some(target) = ObjectTarget::of_key(key) else {
        return Vec::new();
    };
    let mut pods = subject::of_target(tables, &target);
    pods.retain(|pod| pod.is_active() && pod.node.is_some());
    if let Some((label, value)) = subject::latest_revision(tables, &target) {
        pods.retain(|pod| pod.meta.label(label) == Some(value.as_str()));
    }
    pods
}

fn of_constraint(
    tables: &Tables,
    ground: &mut Ground,
    of: &Key,
    pod: &Pod,
    own: &[&Arc<Pod>],
    constraint: &HardConstraint,
) -> Option<Exceeded> {
    let (column, places) = ground.compared(constraint);
    let limit = constraint.limit;
    let skew = |tally: &Tally| {
        let highest = tally.maximum().unwrap_or(0);
        i64::from(highest) - i64::from(limit.minimum(tally).value())
    };
    let is_over = |tally: &Tally| skew(tally) > i64::from(limit.max_skew);
    let add = |ground: &Ground, tally: &mut Tally, pods: &[&Arc<Pod>]| {
        let nodes = pods.iter().filter_map(|pod| pod.node.as_ref());
        for domain in nodes.filter_map(|node| ground.domain(column, node)) {
            if tally.exists(domain) {
                tally.add(domain, 1);
            }
        }
    };
    let mut tally = places;
    add(ground, &mut tally, own);
    if !is_over(&tally) {
        return None;
    }
    // A constraint that counts pods of others, too, promises nothing about the workload's own.
    let uids: BTreeSet<&Arc<str>> = own.iter().map(|pod| &pod.meta.uid).collect();
    let others = tables.of::<Pod>().in_namespace(&pod.meta.name.namespace);
    let others = others.filter(|other| other.is_active() && !uids.contains(&other.meta.uid));
    let others: Vec<&Arc<Pod>> = others
        .filter(|other| ground.counts(constraint, &other.meta.labels))
        .collect();
    let mut with_others = tally.clone();
    add(ground, &mut with_others, &others);
    if !is_over(&with_others) {
        return None;
    }
    let counts = tally.existing();
    let counts = counts.map(|d| (ground.text(column, d).to_owned(), tally.count(d)));
    let mut counts: Vec<(String, i32)> = counts.collect();
    counts.sort_by(|a, b| strew_view::natural_order::natural_order(&a.0, &b.0));
    let mut of_pod = pod.spec.topology_spread_constraints.iter().flatten();
    let written = of_pod.nth(constraint.index);
    let keys = written.and_then(|written| written.match_label_keys.as_ref());
    Some(Exceeded {
        of: of.clone(),
        by: ground.name(constraint.key).to_owned(),
        skew: skew(&tally),
        max_skew: limit.max_skew,
        counts,
        lacks_match_label_keys: !constraint.is_default
            && of.kind == Kind::Deployment
            && keys.is_none_or(Vec::is_empty),
        is_by_scale_down: false,
    })
}
