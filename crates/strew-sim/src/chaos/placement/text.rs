//! Prints a hub's story in the form of a scenario.

use std::fmt::{self, Display, Formatter};

use super::manifests;
use super::story::{HubAction, HubStory};
use crate::chaos::settings;
use crate::chaos::text::WrittenFault;

impl Display for HubStory {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed: {}", self.seed)?;
        write!(f, "{}", settings::Written(&self.limits))?;
        writeln!(f, "clusters:")?;
        for plan in &self.clusters {
            let late = if plan.is_late { "  # later" } else { "" };
            let object = manifests::cluster(plan);
            let (labels, status) = (&object["metadata"]["labels"], &object["status"]);
            writeln!(
                f,
                "- {{name: {}, labels: {labels}, status: {status}}}{late}",
                plan.name
            )?;
            if let Some(score) = plan.score {
                writeln!(f, "- {{score of {}: {score}}}", plan.name)?;
            }
        }
        writeln!(f, "placements:")?;
        for plan in &self.placements {
            let late = if plan.is_late { "  # later" } else { "" };
            let object = manifests::placement(plan);
            let (spec, annotations) = (&object["spec"], &object["metadata"]["annotations"]);
            write!(f, "- {{name: {}, spec: {spec}", plan.name)?;
            if !annotations.is_null() {
                write!(f, ", annotations: {annotations}")?;
            }
            writeln!(f, "}}{late}")?;
        }
        writeln!(f, "steps:")?;
        for event in &self.events {
            writeln!(f, "- {{at: {}, {}}}", event.at, event.action)?;
        }
        writeln!(f, "- {{at: {}, calm: true}}", self.calm)
    }
}

impl Display for HubAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join(name) => write!(f, "join: {name}"),
            Self::Leave(name) => write!(f, "leave: {name}"),
            Self::Relabel(name, region, zone) => {
                let (region, zone) = (manifests::region(*region), manifests::zone(*zone));
                write!(f, "label: {{{name}: [region={region}, zone={zone}]}}")
            }
            Self::Canary(name, true) => write!(f, "label: {{{name}: tier=canary}}"),
            Self::Canary(name, false) => write!(f, "label: {{{name}: tier=rest}}"),
            Self::Taint(name, effect) => write!(f, "taint: {{{name}: storm:{effect}}}"),
            Self::Untaint(name) => write!(f, "untaint: {name}"),
            Self::Score(name, value, 0) => write!(f, "score: {{{name}: {value}}}"),
            Self::Score(name, value, seconds) => {
                write!(f, "score: {{{name}: {value}, for: {seconds}s}}")
            }
            Self::Create(name) => write!(f, "create: {name}"),
            Self::Delete(name) => write!(f, "delete: {name}"),
            Self::Number(name, Some(n)) => write!(f, "numberOfClusters: {{{name}: {n}}}"),
            Self::Number(name, None) => write!(f, "numberOfClusters: {{{name}: all}}"),
            Self::GroupSize(name, n) => write!(f, "clustersPerDecisionGroup: {{{name}: {n}}}"),
            Self::Hard(name, is_hard) => {
                let when = manifests::when(*is_hard);
                write!(f, "whenUnsatisfiable: {{{name}: {when}}}")
            }
            Self::Fault(fault, lasts) => write!(f, "{}, for: {lasts}", WrittenFault(fault)),
            Self::Crash(crash) => write!(
                f,
                "crash: {:?}, after-writes: {}, down: {}",
                crash.component, crash.after_writes, crash.down
            ),
        }
    }
}
