//! Frees the rows of clusters that are gone, and unused strings.

use strew_model::{Holds, Marks, well_known};

use super::{ClusterIdx, Hub};

impl Hub {
    /// Frees the rows of clusters that do not exist. No list of clusters may name such a row.
    pub(crate) fn sweep_rows(&mut self) {
        self.topologies.clear();
        let Self {
            by_name,
            clusters,
            cluster_names,
            tainted,
            free,
            ..
        } = self;
        for (i, row) in clusters.iter().enumerate() {
            let name = cluster_names[i];
            if row.fact.is_none() && by_name.remove(&name).is_some() {
                cluster_names[i] = well_known::EMPTY;
                tainted.set(i, false);
                free.push(ClusterIdx::from(i));
            }
        }
    }

    /// Drops the strings that neither the hub nor `mark` marks.
    pub(crate) fn sweep_names(&mut self, mark: impl FnOnce(&mut Marks)) {
        let mut marks = self.names.marks();
        self.mark(&mut marks);
        mark(&mut marks);
        self.names.sweep(&marks);
    }
}

impl Holds for Hub {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        let Self {
            names: _,
            set_label,
            clusters,
            cluster_names,
            tainted: _,
            // The keys are the names of the rows.
            by_name: _,
            free: _,
            order: _,
            sets,
            bindings,
            scores,
            // No keys are followed during a sweep.
            topologies: _,
            ledger,
        } = self;
        set_label.mark(marks);
        for row in clusters {
            row.fact.mark(marks);
            row.sets.as_slice().mark(marks);
        }
        cluster_names.as_slice().mark(marks);
        for (name, set) in sets {
            name.mark(marks);
            set.mark(marks);
        }
        for (namespace, names) in bindings {
            namespace.mark(marks);
            names.as_slice().mark(marks);
        }
        for (key, fact) in scores {
            key.mark(marks);
            fact.mark(marks);
        }
        ledger.mark(marks);
    }
}
