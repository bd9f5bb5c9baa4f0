//! Turns a profile as written into the [`Profile`](strew_scheduler::Profile) that decides.
//!
//! Source: spec/scheduler §5.1, §5.2.

use strew_model::Interner;
use strew_scheduler::{DefaultConstraints, PluginId, Profile};

use super::arguments;
use super::gates::FeatureGates;
use super::merge::{self, Expanded, is_removed};
use super::plugins::{self, PLUGINS, Plugin, PluginKind, Point};
use super::problems::Problems;
use super::versions::Version;
use super::wire::{PluginSetWire, PluginsWire, ProfileWire};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::Diagnostic;

/// The default scheduler name of pods.
pub(super) const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The largest sum of weights: strew keeps total scores in 31 bits, kube-scheduler in 63.
pub(super) const WEIGHT_SUM_MAX: i64 = (i32::MAX / 100) as i64;

/// The inputs that are the same for all profiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common<'a> {
    pub(super) gates: &'a FeatureGates,
    pub(super) version: Version,
    /// The global `percentageOfNodesToScore`.
    pub(super) percentage: Option<i32>,
}

/// The default plugins, in order.
pub(super) fn default_plugins(gates: &FeatureGates) -> Vec<&'static Plugin> {
    let is_on = |plugin: &&Plugin| match plugin.kind {
        PluginKind::Default => true,
        PluginKind::Legacy => !gates.default_pod_topology_spread,
        PluginKind::Missing => false,
    };
    PLUGINS.iter().filter(is_on).collect()
}

/// A profile before configuration.
pub(super) fn default_profile(gates: &FeatureGates) -> Profile {
    let mut profile = match gates.default_pod_topology_spread {
        true => Profile::default(),
        false => Profile::with_selector_spread(),
    };
    profile.gates = gates.scheduler();
    profile
}

/// Builds the profile at `path` (`profiles[i]`), and reports all its errors.
pub(super) fn build(
    wire: &ProfileWire,
    common: Common<'_>,
    path: &FieldPath,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) -> Profile {
    let mut profile = default_profile(common.gates);
    profile.scheduler_name = wire.scheduler_name.clone().unwrap_or_default();
    percentage(wire.percentage_of_nodes_to_score, path, problems);
    let given = wire.percentage_of_nodes_to_score.or(common.percentage);
    profile.percentage_of_nodes_to_score = given.and_then(|percent| u8::try_from(percent).ok());
    let configs = wire.plugin_config.as_deref().unwrap_or_default();
    arguments::apply(configs, common.version, path, &mut profile, problems, names);
    let no_plugins = PluginsWire::default();
    let given = wire.plugins.as_ref().unwrap_or(&no_plugins);
    let path = path.child("plugins");
    removed(given, common.version, &path, problems);
    merge::disabled_unknown(given, &path, &mut problems.notes);
    let expanded = merge::expand(given, &default_plugins(common.gates), &path, problems);
    check_support(&expanded, &profile.scheduler_name, &path, problems);
    set_plugins(&expanded, &path, &mut profile, problems);
    profile
}

/// A percentage of nodes, of the document or of a profile.
pub(super) fn percentage(given: Option<i32>, path: &FieldPath, problems: &mut Problems<'_>) {
    let path = path.child("percentageOfNodesToScore");
    if let Some(percent) = given.filter(|percent| !(0..=100).contains(percent)) {
        let detail = "not in valid range [0-100]";
        problems.field(FieldError::invalid_raw(path, percent, detail));
    }
}

/// Reports removed plugins that are enabled at a point; kube-scheduler does not check multiPoint here.
fn removed(given: &PluginsWire, version: Version, path: &FieldPath, problems: &mut Problems<'_>) {
    for point in Point::ALL {
        let enabled = point.of(given).map_or(&[][..], PluginSetWire::enabled);
        let path = path.child(point.key()).child("enabled");
        for (i, plugin) in enabled.iter().enumerate() {
            if is_removed(plugin.name()) {
                let detail = version.was_invalid();
                problems.field(FieldError::invalid(path.index(i), plugin.name(), detail));
            }
        }
    }
}

/// Checks what kube-scheduler requires, and what strew cannot leave out.
fn check_support(
    expanded: &Expanded,
    scheduler_name: &str,
    path: &FieldPath,
    problems: &mut Problems<'_>,
) {
    let n_sorts = expanded.at(Point::QueueSort).len();
    if n_sorts != 1 {
        let message = format!(
            "only one queue sort plugin required for profile with scheduler name {scheduler_name:?}, but got {n_sorts}"
        );
        problems.at(
            path.child("queueSort"),
            Diagnostic::error("queue-sort", message),
        );
    }
    if expanded.at(Point::Bind).is_empty() {
        let message = format!(
            "at least one bind plugin is needed for profile with scheduler name {scheduler_name:?}"
        );
        problems.at(path.child("bind"), Diagnostic::error("no-binder", message));
    }
    if !expanded.has(Point::PreEnqueue, "SchedulingGates") {
        let message = "strew does not leave out SchedulingGates: the API server binds no pod that has scheduling gates";
        problems.at(
            path.child("preEnqueue"),
            Diagnostic::error("not-implemented", message),
        );
    }
    // Filter and Score read what these prepare; without them, kube-scheduler fails each pod.
    for (before, point) in [
        (Point::PreFilter, Point::Filter),
        (Point::PreScore, Point::Score),
    ] {
        for &name in expanded.at(point) {
            let needs = plugins::find(name).is_some_and(|plugin| plugin.extends(before));
            if needs && !expanded.has(before, name) {
                let (before, point) = (before.key(), point.key());
                let message =
                    format!("strew does not run {name} at {point} without {name} at {before}");
                problems.at(
                    path.child(before),
                    Diagnostic::error("not-implemented", message),
                );
            }
        }
    }
}

fn set_plugins(
    expanded: &Expanded,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
) {
    let id = |name: &&'static str| plugins::find(name).and_then(|plugin| plugin.id);
    profile.filters = expanded.at(Point::Filter).iter().filter_map(id).collect();
    let scored = expanded.at(Point::Score).iter();
    let scored = scored.filter_map(|name| Some((id(name)?, expanded.weight(name))));
    profile.scores = scored.map(|(id, weight)| (id, i64::from(weight))).collect();
    if !expanded.has(Point::PostFilter, "DefaultPreemption") {
        profile.preemption = None;
    }
    check_weights(&profile.scores, &path.child("score"), problems);
    let has_spread = profile.weight(PluginId::PodTopologySpread) != 0;
    let has_legacy = profile.weight(PluginId::SelectorSpread) != 0;
    let has_defaults = profile.default_constraints != DefaultConstraints::List(Vec::new());
    if has_legacy && has_spread && has_defaults {
        problems.notes.push(format!(
            "{path}: SelectorSpread and the default constraints of PodTopologySpread are both enabled, and both count"
        ));
    }
}

/// Checks each weight, and their sum.
pub(super) fn check_weights(
    scores: &[(PluginId, i64)],
    path: &FieldPath,
    problems: &mut Problems<'_>,
) {
    for (plugin, weight) in scores.iter().filter(|(_, weight)| *weight < 0) {
        let message = format!("strew takes no negative weight: {plugin} has {weight}");
        problems.at(path.clone(), Diagnostic::error("weight", message));
    }
    let weights = scores.iter().map(|(_, weight)| *weight.max(&0));
    let sum = weights.fold(0, i64::saturating_add);
    if sum > WEIGHT_SUM_MAX {
        let message = format!(
            "the weights of the score plugins add up to {sum}: strew keeps total scores in 31 bits, so at most {WEIGHT_SUM_MAX}"
        );
        problems.at(path.clone(), Diagnostic::error("weight", message));
    }
}

/// All profiles share one queue. Source: `validateCommonQueueSort`, v1.36.
pub(super) fn common_queue_sort(profiles: &[ProfileWire], problems: &mut Problems<'_>) {
    let root = FieldPath::root().child("profiles");
    let empty = PluginSetWire::default();
    let sort = |profile: &ProfileWire| {
        let set = profile.plugins.as_ref().and_then(|p| p.queue_sort.as_ref());
        set.unwrap_or(&empty).clone()
    };
    let Some(first) = profiles.first() else {
        return;
    };
    let canon = sort(first);
    let n_enabled = canon.enabled().len();
    if n_enabled > 1 {
        let path = root.index(0).child("plugins.queueSort.Enabled");
        let detail = "only one queue sort plugin can be enabled";
        problems.field(FieldError::invalid_raw(path, n_enabled, detail));
    }
    for (i, profile) in profiles.iter().enumerate().skip(1) {
        let own = sort(profile);
        if own.enabled() != canon.enabled() || own.disabled() != canon.disabled() {
            let path = root.index(i).child("plugins.queueSort");
            let detail = "must be the same for all profiles";
            problems.field(FieldError::invalid_raw(path, go_set(&own), detail));
        }
    }
}

/// As Go prints the struct.
fn go_set(set: &PluginSetWire) -> String {
    let list = |given: &[super::wire::PluginWire]| match given.is_empty() {
        true => "[]config.Plugin(nil)".to_owned(),
        false => {
            let each = given.iter().map(|plugin| {
                let weight = plugin.weight.unwrap_or(0);
                format!("config.Plugin{{Name:{:?}, Weight:{weight}}}", plugin.name())
            });
            format!("[]config.Plugin{{{}}}", each.collect::<Vec<_>>().join(", "))
        }
    };
    let (enabled, disabled) = (list(set.enabled()), list(set.disabled()));
    format!("config.PluginSet{{Enabled:{enabled}, Disabled:{disabled}}}")
}
