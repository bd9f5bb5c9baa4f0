//! Which workloads a command shows.

use strew_view::view::View;

use crate::label_query::LabelQuery;

/// Which workloads to show.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// Places in the list of workloads.
    pub(crate) workloads: Vec<usize>,
    /// How many more there are of those meant.
    pub(crate) n_left_out: usize,
}

/// Those of a namespace and with these labels: in the order of the files; the worst first if only the top is shown.
pub(crate) fn select(
    view: &View,
    namespace: Option<&str>,
    query: Option<&LabelQuery>,
    top: usize,
) -> Shown {
    let all = view.world.workloads.iter().enumerate();
    let meant = all.filter(|(_, workload)| {
        namespace.is_none_or(|n| n == workload.name.namespace)
            && query.is_none_or(|q| q.matches(&workload.labels))
    });
    let mut workloads: Vec<usize> = meant.map(|(index, _)| index).collect();
    let n_left_out = workloads.len().saturating_sub(top);
    if n_left_out > 0 {
        let badness = |&index: &usize| {
            let skews = view.spreads[index].iter().map(|spread| spread.skew);
            let key = (view.summaries[index].n_pending(), skews.max().unwrap_or(0));
            std::cmp::Reverse(key)
        };
        workloads.sort_by_key(badness);
        workloads.truncate(top);
    }
    Shown {
        workloads,
        n_left_out,
    }
}
