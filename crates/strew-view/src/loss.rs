//! What the loss of a domain does to a workload: one verdict, worst first.
//!
//! The verdict is about the time from the loss until the cluster is at rest without the domain. A pod on a lost node is
//! not ready from the loss on, although the API server learns of it later.

use strew_manifest::read::Severity;
use strew_model::Span;

use crate::time_text::length_text;

/// The pods of a workload from the loss until the cluster is at rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loss {
    /// The pods that the workload asks for.
    pub wanted: u32,
    /// Its ready pods before the loss.
    pub before: u32,
    /// Its ready pods in the instant of the loss.
    pub at_once: u32,
    /// Its ready pods at rest.
    pub ready: u32,
    /// The fewest ready pods on the way.
    pub fewest: u32,
    /// The time with fewer ready pods than it asks for.
    pub short_for: Span,
    /// The time with no ready pod.
    pub none_for: Span,
    /// The budgets that select its pods.
    pub budgets: Vec<BudgetCount>,
    /// The ready pods without which it does not work, such as a majority; 0 if one is enough.
    pub quorum: u32,
    /// True if its pods wait for a scheduler that is not played.
    pub is_unplayed: bool,
}

/// The healthy pods of a PodDisruptionBudget at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetCount {
    /// Its name.
    pub name: String,
    /// The healthy pods.
    pub healthy: u32,
    /// What it asks for: the smaller of its own number and the pods that its workloads ask for.
    pub asks: u32,
}

impl BudgetCount {
    /// True if it has fewer healthy pods than it asks for.
    pub fn is_short(&self) -> bool {
        self.healthy < self.asks
    }
}

/// What a loss does to a workload, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossVerdict {
    /// At rest no pod is ready, or fewer than a budget asks for, or than its quorum.
    Lost,
    /// For a while no pod is ready.
    Outage,
    /// At rest fewer pods are ready than before, or than the workload asks for.
    Degraded,
    /// At least one pod is ready all the while, and all that were are at rest.
    Survives,
    /// No pod was ready before the loss, none is asked for, or its scheduler is not played: the loss tells nothing.
    Unknown,
}

impl LossVerdict {
    /// All verdicts, the worst first.
    pub const ALL: [Self; 5] = [
        Self::Lost,
        Self::Outage,
        Self::Degraded,
        Self::Survives,
        Self::Unknown,
    ];

    /// `LOST`
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "LOST",
            Self::Outage => "OUTAGE",
            Self::Degraded => "DEGRADED",
            Self::Survives => "SURVIVES",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// `lost`, as a stable name for tools.
    pub fn code(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Outage => "outage",
            Self::Degraded => "degraded",
            Self::Survives => "survives",
            Self::Unknown => "loss-unknown",
        }
    }
}

impl Loss {
    /// The verdict.
    pub fn verdict(&self) -> LossVerdict {
        // What a budget lacked before is not the loss's, as long as no pod of this workload is.
        let is_short = self.ready < self.before && self.budgets.iter().any(BudgetCount::is_short);
        match self {
            Self { wanted: 0, .. } | Self { before: 0, .. } => LossVerdict::Unknown,
            Self {
                is_unplayed: true, ..
            } => LossVerdict::Unknown,
            Self { ready: 0, .. } => LossVerdict::Lost,
            _ if is_short || self.lacks_quorum() => LossVerdict::Lost,
            Self { fewest: 0, .. } => LossVerdict::Outage,
            // What was missing before is not the loss's.
            Self { ready, .. } if *ready < self.wanted.min(self.before) => LossVerdict::Degraded,
            _ => LossVerdict::Survives,
        }
    }

    /// True if it had its quorum before, and has it no longer at rest.
    fn lacks_quorum(&self) -> bool {
        self.before >= self.quorum && self.ready < self.quorum
    }

    /// How bad it is; `None` if there is nothing to act on. A workload that asks for one pod can be no better than an
    /// outage.
    pub fn severity(&self) -> Option<Severity> {
        match self.verdict() {
            LossVerdict::Lost => Some(Severity::Error),
            LossVerdict::Outage if self.wanted == 1 => Some(Severity::Note),
            LossVerdict::Outage | LossVerdict::Degraded => Some(Severity::Warning),
            LossVerdict::Survives | LossVerdict::Unknown => None,
        }
    }

    /// The numbers as a sentence without its subject: `6 of 8 ready, at least 5 on the way`.
    pub fn sentence(&self) -> String {
        let Self {
            wanted,
            ready,
            fewest,
            ..
        } = self;
        let mut text = match self.verdict() {
            LossVerdict::Unknown if *wanted == 0 => return "no pod is asked for".to_owned(),
            LossVerdict::Unknown => {
                return format!("{ready} of {wanted} ready, none was ready before the loss");
            }
            LossVerdict::Outage => {
                let none = length_text(self.none_for);
                match ready < wanted {
                    true => format!("none ready for {none}, then {ready} of {wanted}"),
                    false => format!("none ready for {none}, then all {wanted}"),
                }
            }
            LossVerdict::Survives if ready < wanted => {
                format!(
                    "{ready} of {wanted} ready, as before the loss, at least {fewest} on the way"
                )
            }
            LossVerdict::Survives if fewest < wanted => {
                let short = length_text(self.short_for);
                format!("{ready} of {wanted} ready after {short}, at least {fewest} on the way")
            }
            LossVerdict::Survives => format!("{ready} of {wanted} ready all the while"),
            LossVerdict::Lost | LossVerdict::Degraded => {
                let least = match fewest < ready {
                    true => format!(", {fewest} on the way"),
                    false => String::new(),
                };
                format!("{ready} of {wanted} ready for as long as it is away{least}")
            }
        };
        if self.lacks_quorum() {
            text.push_str(&format!("; {} are its quorum", self.quorum));
        }
        for budget in &self.budgets {
            let BudgetCount {
                name,
                healthy,
                asks,
            } = budget;
            match budget.is_short() {
                true => {
                    text.push_str(&format!(
                        "; budget {name}: {healthy} of {asks} healthy pods"
                    ));
                }
                false => text.push_str(&format!(" (budget {name}: {asks})")),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(wanted: u32, ready: u32, fewest: u32) -> Loss {
        Loss {
            wanted,
            before: wanted,
            ready,
            fewest,
            ..Loss::default()
        }
    }

    #[test]
    fn the_worst_comes_first() {
        let cases = [
            (loss(3, 0, 0), "LOST", Some(Severity::Error)),
            (loss(3, 3, 0), "OUTAGE", Some(Severity::Warning)),
            (loss(1, 1, 0), "OUTAGE", Some(Severity::Note)),
            (loss(3, 2, 0), "OUTAGE", Some(Severity::Warning)),
            (loss(3, 2, 2), "DEGRADED", Some(Severity::Warning)),
            (loss(3, 3, 2), "SURVIVES", None),
            (loss(0, 0, 0), "UNKNOWN", None),
            (
                Loss {
                    before: 2,
                    ..loss(3, 2, 1)
                },
                "SURVIVES",
                None,
            ),
        ];
        for (loss, name, severity) in cases {
            assert_eq!((loss.verdict().name(), loss.severity()), (name, severity));
        }
    }

    #[test]
    fn a_budget_below_its_number_at_rest_is_a_loss() {
        let budget = |healthy, asks| BudgetCount {
            name: "web".to_owned(),
            healthy,
            asks,
        };
        let with = |budget| Loss {
            budgets: vec![budget],
            ..loss(4, 2, 2)
        };
        assert_eq!(with(budget(2, 3)).verdict(), LossVerdict::Lost);
        assert_eq!(with(budget(2, 2)).verdict(), LossVerdict::Degraded);
        assert_eq!(
            with(budget(2, 3)).sentence(),
            "2 of 4 ready for as long as it is away; budget web: 2 of 3 healthy pods"
        );
    }

    #[test]
    fn a_quorum_that_is_gone_is_a_loss() {
        let of = |before, ready, quorum| Loss {
            before,
            quorum,
            ..loss(5, ready, ready)
        };
        assert_eq!(of(5, 2, 3).verdict(), LossVerdict::Lost);
        assert_eq!(of(5, 3, 3).verdict(), LossVerdict::Degraded);
        assert_eq!(of(2, 2, 3).verdict(), LossVerdict::Survives);
        assert_eq!(
            of(5, 2, 3).sentence(),
            "2 of 5 ready for as long as it is away; 3 are its quorum"
        );
    }

    #[test]
    fn without_a_ready_pod_before_it_the_loss_tells_nothing() {
        let loss = Loss {
            before: 0,
            ..loss(3, 0, 0)
        };
        assert_eq!(loss.verdict(), LossVerdict::Unknown);
    }
}
