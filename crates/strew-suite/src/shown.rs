//! Chooses the workloads that a command shows.

use std::collections::{BTreeMap, BTreeSet};

use strew_view::view::{Summary, View};
use strew_view::workload::Workload;

use crate::failure::Failure;
use crate::label_query::LabelQuery;
use strew_view::words::count;

/// The filters, and the number of workloads to show.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Only workloads of this namespace.
    pub namespace: Option<String>,
    /// Only workloads with these labels, or whose pods have them.
    pub query: Option<LabelQuery>,
    /// If there are more workloads than this, the worst ones.
    pub top: usize,
}

/// The chosen workloads.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Indexes in the list of workloads.
    pub workloads: Vec<usize>,
    /// The number of matching workloads that are left out.
    pub n_left_out: usize,
    /// Unchanged workloads of a dump, which are left out beside new workloads.
    pub as_before: AsBefore,
    /// The number of workloads at the time of the choice.
    n_known: usize,
}

/// Unchanged workloads of a dump.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsBefore {
    /// Their number.
    pub n_workloads: usize,
    /// Their pods on nodes.
    pub n_bound: usize,
    /// Their Pending pods.
    pub n_pending: usize,
}

impl Default for Choice {
    fn default() -> Self {
        Self::ALL
    }
}

impl Choice {
    /// All workloads.
    pub const ALL: Self = Self {
        namespace: None,
        query: None,
        top: usize::MAX,
    };

    /// The matching workloads in the order of the files; the worst first if only the top is shown. New workloads beside
    /// those of a dump, `was_there` with the number of their pods on nodes, come first; of the other ones only the changed
    /// ones are shown.
    pub fn of(&self, view: &View, was_there: &BTreeMap<usize, usize>) -> Shown {
        let mut workloads = self.meant(&view.world.workloads, 0);
        let is_old = |index: &usize| was_there.contains_key(index);
        let mut as_before = AsBefore::default();
        if self.top < usize::MAX && workloads.iter().any(is_old) && !workloads.iter().all(is_old) {
            let (old, new): (Vec<_>, Vec<_>) = workloads.into_iter().partition(is_old);
            // A pod that had to make room is Pending now, and was not before.
            let is_same = |index: &usize| {
                let summary = &view.summaries[*index];
                summary.placed == 0
                    && summary.terminating == 0
                    && was_there.get(index) == Some(&summary.before)
            };
            let (same, changed): (Vec<_>, Vec<_>) = old.into_iter().partition(is_same);
            let sum = |of: fn(&Summary) -> usize| {
                same.iter().map(|&index| of(&view.summaries[index])).sum()
            };
            as_before = AsBefore {
                n_workloads: same.len(),
                n_bound: sum(|summary| summary.before),
                n_pending: sum(Summary::n_pending),
            };
            workloads = [new, changed].concat();
        }
        let n_left_out = workloads.len().saturating_sub(self.top);
        if n_left_out > 0 {
            let badness = |&index: &usize| {
                let skews = view.spreads[index].iter().map(|spread| spread.skew);
                let key = (view.summaries[index].n_pending(), skews.max().unwrap_or(0));
                (is_old(&index), std::cmp::Reverse(key))
            };
            workloads.sort_by_key(badness);
            workloads.truncate(self.top);
        }
        Shown {
            workloads,
            n_left_out,
            as_before,
            n_known: view.world.workloads.len(),
        }
    }

    /// The same choice, with the matching workloads that appeared since.
    pub fn with_new(&self, mut shown: Shown, view: &View) -> Shown {
        let new = self.meant(&view.world.workloads, shown.n_known);
        shown.workloads.extend(new);
        shown.n_known = view.world.workloads.len();
        shown
    }

    fn meant(&self, all: &[Workload], from: usize) -> Vec<usize> {
        let all = all.iter().enumerate().skip(from);
        let meant = all.filter(|(_, workload)| self.means(workload));
        meant.map(|(index, _)| index).collect()
    }

    /// True if the workload is one of the chosen namespace and labels.
    pub fn means(&self, workload: &Workload) -> bool {
        let has = |query: &LabelQuery| {
            query.matches(&workload.labels) || query.matches(&workload.pod_labels)
        };
        self.namespace
            .as_ref()
            .is_none_or(|n| *n == workload.name.namespace)
            && self.query.as_ref().is_none_or(has)
    }

    /// True if the workload of this kind, namespace and name is chosen; without filters each is.
    pub fn means_named(&self, all: &[Workload], of: [&str; 3]) -> bool {
        if self.namespace.is_none() && self.query.is_none() {
            return true;
        }
        let is_it = |workload: &&Workload| {
            let name = &workload.name;
            [
                name.kind.as_str(),
                name.namespace.as_str(),
                name.name.as_str(),
            ] == of
        };
        all.iter()
            .find(is_it)
            .is_some_and(|found| self.means(found))
    }

    /// # Errors
    /// No workload matches.
    pub fn check(&self, all: &[Workload]) -> Result<(), Failure> {
        if all.iter().any(|workload| self.means(workload)) {
            return Ok(());
        }
        if all.is_empty() {
            return Err(Failure::input("no workload in the input"));
        }
        let names = all.iter().map(|workload| workload.name.namespace.as_str());
        let known: BTreeSet<&str> = names.collect();
        if let Some(namespace) = self
            .namespace
            .as_deref()
            .filter(|name| !known.contains(name))
        {
            let error = format!("no workload is in namespace {namespace}");
            let known: Vec<&str> = known.into_iter().collect();
            return Err(Failure::input(error)
                .with_hint(format!("there are workloads in {}", known.join(", "))));
        }
        let n = count(all.len(), "workload");
        let error = match &self.namespace {
            None => "no workload has the labels of --selector, nor have its pods".to_owned(),
            Some(namespace) => {
                format!(
                    "no workload of namespace {namespace} has the labels of --selector, nor have its pods"
                )
            }
        };
        Err(Failure::input(error).with_hint(format!("{n} without --selector")))
    }
}
