//! The names of the controllers, and the value of `--controllers` that selects some.

use std::fmt;
use std::str::FromStr;

use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_runtime::placement;
use strew_runtime::reads::Reads;

use crate::watch::Kind;

/// A controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Of WorkloadSpreads.
    WorkloadSpread,
    /// Of Placements.
    Placement,
    /// Of deletion costs that keep ReplicaSets spread.
    Keep,
    /// What a cluster would lose with each domain, as metrics.
    Audit,
    /// Evictions that make labelled workloads even again.
    Rebalance,
}

impl Name {
    /// All controllers.
    pub const ALL: [Self; 5] = [
        Self::WorkloadSpread,
        Self::Placement,
        Self::Keep,
        Self::Audit,
        Self::Rebalance,
    ];

    /// Its name in flags and logs.
    pub fn text(self) -> &'static str {
        match self {
            Self::WorkloadSpread => "workloadspread",
            Self::Placement => "placement",
            Self::Keep => "keep",
            Self::Audit => "audit",
            Self::Rebalance => "rebalance",
        }
    }

    /// True if `*` selects it.
    fn is_on_by_default(self) -> bool {
        match self {
            Self::WorkloadSpread | Self::Placement => true,
            Self::Keep | Self::Audit | Self::Rebalance => false,
        }
    }

    /// The kinds that it needs; each has a CustomResourceDefinition of its own.
    /// Source: spec/workloadspread §2.1, spec/placement §4.
    pub fn kinds(self) -> Vec<Kind> {
        match self {
            Self::WorkloadSpread => vec![Kind::of::<WorkloadSpread>()],
            Self::Placement => placement::READS.iter().map(Reads::kind).collect(),
            Self::Keep | Self::Audit | Self::Rebalance => Vec::new(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The value of `--controllers`, in the form of kube-controller-manager's flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `*`: all that are on by default and not excluded.
    all: bool,
    named: Vec<Name>,
    taken_out: Vec<Name>,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            all: true,
            named: Vec::new(),
            taken_out: Vec::new(),
        }
    }
}

/// The value names an unknown controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown controller {0:?}: the controllers are workloadspread, placement, keep, audit and rebalance; `*` selects the first two, `-NAME` excludes one"
)]
pub struct UnknownController(String);

impl FromStr for Choice {
    type Err = UnknownController;

    fn from_str(text: &str) -> Result<Self, UnknownController> {
        let mut choice = Self {
            all: false,
            ..Self::default()
        };
        for word in text.split(',').map(str::trim) {
            if word == "*" {
                choice.all = true;
                continue;
            }
            let (list, name) = match word.strip_prefix('-') {
                Some(name) => (&mut choice.taken_out, name),
                None => (&mut choice.named, word),
            };
            let mut all = Name::ALL.into_iter();
            let found = all.find(|known| known.text() == name);
            list.push(found.ok_or_else(|| UnknownController(word.to_owned()))?);
        }
        Ok(choice)
    }
}

impl Choice {
    /// The selected controllers, which start when their kinds are served.
    pub fn wanted(&self) -> impl Iterator<Item = Name> {
        let all = Name::ALL.into_iter();
        all.filter(|name| {
            let by_default = self.all && name.is_on_by_default();
            self.names(*name) || (by_default && !self.taken_out.contains(name))
        })
    }

    /// True if a controller was selected by its name; then a missing definition is reported.
    pub fn names(&self, name: Name) -> bool {
        self.named.contains(&name) && !self.taken_out.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_as_in_kube_controller_manager() {
        let cases = [
            ("*", "workloadspread placement", ""),
            ("*,-placement", "workloadspread", ""),
            ("placement", "placement", "placement"),
            ("placement, *", "workloadspread placement", "placement"),
            ("-placement,placement", "", ""),
            ("-placement", "", ""),
            ("*,audit", "workloadspread placement audit", "audit"),
            ("audit", "audit", "audit"),
            ("audit,-audit", "", ""),
            (
                "*,rebalance",
                "workloadspread placement rebalance",
                "rebalance",
            ),
            ("*,keep", "workloadspread placement keep", "keep"),
        ];
        for (text, wanted, named) in cases {
            let choice: Choice = text.parse().unwrap();
            let names = |all: Vec<Name>| {
                let all: Vec<&str> = all.into_iter().map(Name::text).collect();
                all.join(" ")
            };
            assert_eq!(names(choice.wanted().collect()), wanted, "{text}");
            let asked = Name::ALL.into_iter().filter(|n| choice.names(*n));
            assert_eq!(names(asked.collect()), named, "{text}");
        }
        for wrong in ["", "placements", "*,-", "*,-deployment"] {
            assert!(wrong.parse::<Choice>().is_err(), "{wrong}");
        }
    }
}
