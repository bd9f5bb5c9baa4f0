//! The WorkloadSpreads of the page at each instant: the stored ledger, and the existing pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Pod, WorkloadSpread};
use strew_manifest::kruise::v1beta1::SubsetStatus;
use strew_wire::workloadspread::marker;
use strew_workloadspread::{COST_ANNOTATION, MARKER_ANNOTATION};

/// Every WorkloadSpread of a store, with the pods whose markers name it, as rows of a page.
pub fn of_tables(tables: &Tables) -> Vec<Value> {
    let mut ledgers = Ledgers::default();
    for spread in tables.of::<WorkloadSpread>().iter() {
        ledgers.set_spread(&spread.meta.name, Some(spread));
    }
    if ledgers.spreads.is_empty() {
        return Vec::new();
    }
    for pod in tables.of::<Pod>().iter() {
        ledgers.set_pod(&pod.meta.name, Some(pod));
    }
    let each = ledgers.spreads.iter();
    each.map(|(name, spread)| ledgers.line(name, spread))
        .collect()
}

/// A pod of a subset.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    spread: Name,
    subset: Arc<str>,
    cost: Option<String>,
}

/// The pods of a subset by deletion cost; those without one under an empty text.
type Costs = BTreeMap<String, i64>;

/// All WorkloadSpreads, and the pods whose markers name them.
#[derive(Default)]
pub(crate) struct Ledgers {
    spreads: BTreeMap<Name, Arc<WorkloadSpread>>,
    pods: HashMap<Name, Member>,
    subsets: HashMap<Name, BTreeMap<Arc<str>, Costs>>,
    /// The WorkloadSpreads that changed since the last lines.
    touched: BTreeSet<Name>,
    told: HashMap<Name, Value>,
}

impl Ledgers {
    /// Sets a WorkloadSpread; `None`: it was deleted.
    pub(crate) fn set_spread(&mut self, name: &Name, spread: Option<&Arc<WorkloadSpread>>) {
        match spread {
            Some(spread) => self.spreads.insert(name.clone(), Arc::clone(spread)),
            None => self.spreads.remove(name),
        };
        self.touched.insert(name.clone());
    }

    /// Sets a pod; `None`: it was deleted.
    pub(crate) fn set_pod(&mut self, name: &Name, pod: Option<&Pod>) {
        let member = pod.and_then(member);
        if self.pods.get(name) == member.as_ref() {
            return;
        }
        let before = match &member {
            Some(member) => self.pods.insert(name.clone(), member.clone()),
            None => self.pods.remove(name),
        };
        for (member, n) in [(before, -1), (member, 1)] {
            if let Some(member) = member {
                self.add(member, n);
            }
        }
    }

    fn add(&mut self, member: Member, n: i64) {
        let Member {
            spread,
            subset,
            cost,
        } = member;
        self.touched.insert(spread.clone());
        let subsets = self.subsets.entry(spread).or_default();
        let costs = subsets.entry(subset).or_default();
        let pods = costs.entry(cost.unwrap_or_default());
        *pods.or_default() += n;
        costs.retain(|_, pods| *pods != 0);
    }

    /// A line for each WorkloadSpread that differs from its last line.
    pub(crate) fn lines(&mut self, at: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        for name in std::mem::take(&mut self.touched) {
            let line = match self.spreads.get(&name) {
                Some(spread) => self.line(&name, spread),
                None if self.told.contains_key(&name) => json!({"of": of(&name), "rows": []}),
                None => continue,
            };
            if self.told.get(&name) == Some(&line) {
                continue;
            }
            let mut told = line.clone();
            told["at"] = at.into();
            told["type"] = "ledger".into();
            lines.push(told);
            self.told.insert(name, line);
        }
        lines
    }

    fn line(&self, name: &Name, spread: &WorkloadSpread) -> Value {
        let status = &spread.status;
        let row_of = |rows: &Option<Vec<SubsetStatus>>, subset: &str| {
            let mut rows = rows.iter().flatten();
            rows.find(|row| row.name == subset).cloned()
        };
        let versioned = || status.versioned_subset_statuses.iter().flatten();
        let rows = spread.spec.subsets.iter().map(|subset| {
            let row = row_of(&status.subset_statuses, &subset.name);
            let revisions = versioned().flat_map(|(_, rows)| rows);
            let revisions = revisions.filter(|row| row.name == subset.name);
            let n =
                |entries: fn(&SubsetStatus) -> usize| revisions.clone().map(entries).sum::<usize>();
            let conditions = row.iter().flat_map(|row| row.conditions.iter().flatten());
            let wrong = conditions.filter(|c| c.status == "False");
            let costs = self.subsets.get(name);
            let costs = costs.and_then(|subsets| subsets.get(subset.name.as_str()));
            json!({
                "subset": subset.name,
                "limit": subset.max_replicas.as_ref().map(|max| match max {
                    IntOrString::Int(n) => n.to_string(),
                    IntOrString::String(text) => text.clone(),
                }),
                "pods": costs.map_or(0, |costs| costs.values().sum::<i64>()),
                "counted": row.as_ref().map(|row| row.replicas),
                "missing": row.as_ref().map(|row| row.missing_replicas),
                "creating": n(|row| row.creating_pods.as_ref().map_or(0, BTreeMap::len)),
                "deleting": n(|row| row.deleting_pods.as_ref().map_or(0, BTreeMap::len)),
                "costs": costs,
                "conditions": wrong.map(|c| c.type_.clone()).collect::<Vec<_>>(),
            })
        });
        let rows: Vec<Value> = rows.collect();
        let target = spread.spec.target_reference.as_ref();
        json!({
            "of": of(name),
            "target": target.map(|t| format!("{} {}/{}", t.kind, name.namespace, t.name)),
            "rows": rows,
        })
    }
}

/// A key as in the log.
fn of(name: &Name) -> String {
    format!("WorkloadSpread {}/{}", name.namespace, name.name)
}

/// The subset of a pod, if it counts.
fn member(pod: &Pod) -> Option<Member> {
    if pod.is_finished() || pod.meta.is_terminating() {
        return None;
    }
    let marked = marker::read(pod.meta.annotation(MARKER_ANNOTATION));
    let marker = marked.marker()?;
    let namespace = Arc::clone(&pod.meta.name.namespace);
    Some(Member {
        spread: Name::new(namespace, Arc::clone(&marker.workload_spread)),
        subset: Arc::clone(&marker.subset),
        cost: pod.meta.annotation(COST_ANNOTATION).map(str::to_owned),
    })
}
