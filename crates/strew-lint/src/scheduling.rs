//! The scheduler that places the pods of files: kube-scheduler's default, or the one of a configuration.

use strew_cluster::SpreadConstraint;
use strew_model::Interner;
use strew_scheduler::{DefaultConstraints, PluginId, Profile};
use strew_wire::config::Configuration;

/// The scheduler of the cluster that the files are for.
#[derive(Debug, Clone, Default)]
pub struct Scheduling {
    /// The names that the profile uses.
    pub(crate) names: Interner,
    pub(crate) profile: Profile,
    /// The configuration as one JSON document; `None`: kube-scheduler's own.
    pub(crate) document: Option<String>,
}

/// The profile of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

impl Scheduling {
    /// From a configuration, `names` being the interner of its profiles, and the same as one JSON document. `None` if it
    /// has no profile for pods that name no scheduler.
    pub fn of(configuration: &Configuration, names: Interner, document: String) -> Option<Self> {
        let mut profiles = configuration.profiles.iter();
        let profile = profiles.find(|profile| profile.scheduler_name == DEFAULT_SCHEDULER)?;
        Some(Self {
            names,
            profile: profile.clone(),
            document: Some(document),
        })
    }

    /// The constraints that pods without any get; none where the plugin is off.
    pub(crate) fn defaults(&self) -> Vec<SpreadConstraint> {
        let plugin = PluginId::PodTopologySpread;
        let mut constraints = self.profile.default_constraints.constraints();
        let scores = self.profile.scores.iter().any(|(id, _)| *id == plugin);
        let filters = self.profile.filters_with(plugin);
        constraints.retain(|constraint| match constraint.hard {
            true => filters,
            false => scores,
        });
        constraints
    }

    /// The same scheduler without default constraints, if some of them are hard.
    pub(crate) fn without_hard_defaults(&self) -> Option<Profile> {
        let is_hard = self.defaults().iter().any(|constraint| constraint.hard);
        is_hard.then(|| Profile {
            default_constraints: DefaultConstraints::List(Vec::new()),
            ..self.profile.clone()
        })
    }

    /// `maxSkew 1 over topology.kubernetes.io/zone (DoNotSchedule)`, one after the other.
    pub(crate) fn defaults_text(&self) -> String {
        let defaults = self.defaults();
        let each = defaults.iter().map(|constraint| {
            let key = self.names.text(constraint.key);
            let how = match constraint.hard {
                true => "DoNotSchedule",
                false => "ScheduleAnyway",
            };
            format!("maxSkew {} over {key} ({how})", constraint.max_skew)
        });
        each.collect::<Vec<_>>().join(" and ")
    }
}
