//! AddOnPlacementScores. Source: spec/placement §1.5.

use strew_model::{Holds, Instant, Marks, Symbol};

/// An AddOnPlacementScore: an add-on's scores of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoresFact {
    /// The cluster: the object's namespace.
    pub cluster: Symbol,
    /// The object's name.
    pub name: Symbol,
    /// Scores by name.
    pub values: Box<[(Symbol, i32)]>,
    /// The last time at which the scores count; `None`: for ever.
    pub valid_until: Option<Instant>,
}

impl ScoresFact {
    /// The score of this name.
    pub fn value(&self, score: Symbol) -> Option<i32> {
        let found = self.values.iter().find(|&&(name, _)| name == score);
        found.map(|&(_, value)| value)
    }

    /// True if the scores have expired.
    pub fn expired(&self, now: Instant) -> bool {
        self.valid_until.is_some_and(|until| now > until)
    }
}

impl Holds for ScoresFact {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            cluster,
            name,
            values,
            valid_until: _,
        } = self;
        (*cluster, *name).mark(marks);
        values.mark(marks);
    }
}
