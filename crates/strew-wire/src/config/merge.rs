//! Merges the user's plugins with the default ones, then expands `multiPoint` to the extension points.
//!
//! Source: spec/scheduler §5.2; `mergePluginSet` of `pkg/scheduler/apis/config/v1`, `expandMultiPointPlugins` and
//! `getScoreWeights` of `pkg/scheduler/framework/runtime`, v1.36.

use std::collections::BTreeMap;

use super::plugins::{self, Plugin, PluginKind, Point};
use super::problems::Problems;
use super::wire::{PluginSetWire, PluginsWire};
use strew_manifest::field::FieldPath;
use strew_manifest::read::{Diagnostic, nearest};

/// The plugins of a profile at each extension point, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Expanded {
    points: BTreeMap<Point, Vec<&'static str>>,
    /// The weight of each score plugin.
    weights: BTreeMap<&'static str, i32>,
}

impl Expanded {
    pub(super) fn at(&self, point: Point) -> &[&'static str] {
        self.points.get(&point).map_or(&[], Vec::as_slice)
    }

    pub(super) fn has(&self, point: Point, name: &str) -> bool {
        self.at(point).contains(&name)
    }

    /// The weight of a plugin; 1 if it has none.
    pub(super) fn weight(&self, name: &str) -> i32 {
        self.weights.get(name).copied().unwrap_or(1)
    }
}

/// An enabled plugin, with its place in the document.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    weight: i32,
    /// `None` for a default plugin.
    path: Option<FieldPath>,
}

/// The enabled and disabled plugins of a point after the merge.
#[derive(Debug, Default)]
struct Set {
    enabled: Vec<Entry>,
    disabled: Vec<String>,
}

impl Set {
    fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name)
    }
}

/// The plugins of a profile; `path` is `profiles[i].plugins`.
pub(super) fn expand(
    given: &PluginsWire,
    defaults: &[&'static Plugin],
    path: &FieldPath,
    problems: &mut Problems<'_>,
) -> Expanded {
    let default_entries = defaults
        .iter()
        .map(|plugin| Entry {
            name: plugin.name.to_owned(),
            weight: plugin.weight,
            path: None,
        })
        .collect();
    let multi_point = merge(
        default_entries,
        given.multi_point.as_ref(),
        &path.child("multiPoint"),
    );
    let mut expander = Expander {
        problems,
        reported: Vec::new(),
    };
    let mut expanded = Expanded::default();
    let mut score_entries = Vec::new();
    for point in Point::ALL {
        let set = merge(Vec::new(), point.of(given), &path.child(point.key()));
        let own = expander.own(point, &set);
        let plugins = expander.expand(point, &set, own, &multi_point);
        expanded.points.insert(point, plugins);
        if point == Point::Score {
            score_entries = set.enabled;
        }
    }
    for entry in score_entries.iter().chain(&multi_point.enabled) {
        if let Some(plugin) = plugins::find(&entry.name).filter(|p| p.extends(Point::Score)) {
            let weight = match entry.weight {
                0 => 1,
                weight => weight,
            };
            // The weight at the point overrides that of multiPoint.
            expanded.weights.entry(plugin.name).or_insert(weight);
        }
    }
    expanded
}

/// Notes about disabled plugins that do not exist, which kube-scheduler accepts silently.
pub(super) fn disabled_unknown(given: &PluginsWire, path: &FieldPath, notes: &mut Vec<String>) {
    let points = Point::ALL
        .iter()
        .map(|point| (point.key(), point.of(given)));
    let multi_point = std::iter::once(("multiPoint", given.multi_point.as_ref()));
    for (key, set) in multi_point.chain(points) {
        for plugin in set.map_or(&[][..], PluginSetWire::disabled) {
            let name = plugin.name();
            if name != ALL && plugins::find(name).is_none() {
                let place = path.child(key).child("disabled");
                notes.push(match nearest(name, plugins::names()) {
                    Some(meant) => format!(
                        "{place}: there is no plugin {name:?} to disable, did you mean {meant:?}?"
                    ),
                    None => format!("{place}: there is no plugin {name:?} to disable"),
                });
            }
        }
    }
}

const ALL: &str = "*";

fn merge(defaults: Vec<Entry>, given: Option<&PluginSetWire>, path: &FieldPath) -> Set {
    let Some(given) = given else {
        return Set {
            enabled: defaults,
            disabled: Vec::new(),
        };
    };
    let disabled: Vec<String> = given
        .disabled()
        .iter()
        .map(|plugin| plugin.name().to_owned())
        .collect();
    let is_disabled = |name: &str| disabled.iter().any(|d| d == name || d == ALL);
    let enabled_path = path.child("enabled");
    let mut custom: Vec<Option<Entry>> = given
        .enabled()
        .iter()
        .enumerate()
        .map(|(i, plugin)| {
            Some(Entry {
                name: plugin.name().to_owned(),
                weight: plugin.weight.unwrap_or(0),
                path: Some(enabled_path.index(i)),
            })
        })
        .collect();
    let mut enabled = Vec::new();
    for default in defaults {
        if is_disabled(&default.name) {
            continue;
        }
        // If a plugin is listed twice, the last entry replaces the default. The first entry stays, and a later check
        // reports it.
        let replaces =
            |entry: &&mut Option<Entry>| entry.as_ref().is_some_and(|e| e.name == default.name);
        let replaced = custom.iter_mut().rev().find(replaces);
        enabled.push(replaced.and_then(Option::take).unwrap_or(default));
    }
    enabled.extend(custom.into_iter().flatten());
    Set { enabled, disabled }
}

struct Expander<'a, 'b> {
    problems: &'a mut Problems<'b>,
    /// Entries of `multiPoint` that were reported at an earlier point.
    reported: Vec<FieldPath>,
}

impl Expander<'_, '_> {
    /// The plugins enabled at the point itself.
    fn own(&mut self, point: Point, set: &Set) -> Vec<&'static str> {
        let mut own = Vec::new();
        for entry in &set.enabled {
            let Some(plugin) = self.known(point, entry) else {
                continue;
            };
            let interface = point.interface();
            if !plugin.extends(point) {
                let message = format!(
                    "plugin {:?} does not extend {interface} plugin",
                    plugin.name
                );
                let points: Vec<&str> = plugin.points.iter().map(|point| point.key()).collect();
                let help = format!("it extends {}", points.join(", "));
                let error = Diagnostic::error("plugin-point", message).with_help(help);
                self.report(entry, error);
            } else if own.contains(&plugin.name) {
                self.report(entry, twice(plugin, point));
            } else {
                own.push(plugin.name);
            }
        }
        own
    }

    /// The order: plugins named by both the point and `multiPoint`, then those of `multiPoint` only, then the rest.
    fn expand(
        &mut self,
        point: Point,
        set: &Set,
        own: Vec<&'static str>,
        multi_point: &Set,
    ) -> Vec<&'static str> {
        if set.disables(ALL) {
            return own;
        }
        let mut overriding = Vec::new();
        let mut expanded: Vec<&'static str> = Vec::new();
        for entry in &multi_point.enabled {
            let Some(plugin) = self.known(point, entry) else {
                continue;
            };
            if !plugin.extends(point) || set.disables(plugin.name) {
                continue;
            }
            if own.contains(&plugin.name) {
                overriding.push(plugin.name);
            } else if expanded.contains(&plugin.name) {
                self.report(entry, twice(plugin, point));
            } else {
                expanded.push(plugin.name);
            }
        }
        let (first, last): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|name| overriding.contains(name));
        [first, expanded, last].concat()
    }

    /// Finds the plugin; reports one that does not exist or that strew does not have.
    fn known(&mut self, point: Point, entry: &Entry) -> Option<&'static Plugin> {
        let name = entry.name.as_str();
        let Some(plugin) = plugins::find(name) else {
            // Validation reports it in other words.
            if !(is_removed(name)
                && entry
                    .path
                    .as_ref()
                    .is_some_and(|path| !in_multi_point(path)))
            {
                let message = format!("{} {name:?} does not exist", point.interface());
                let mut error = Diagnostic::error("unknown-plugin", message);
                error.help = unknown_help(name);
                self.report(entry, error);
            }
            return None;
        };
        if plugin.kind == PluginKind::Missing {
            let message = format!("strew does not implement plugin {name:?}");
            self.report(entry, Diagnostic::error("missing-plugin", message));
            return None;
        }
        Some(plugin)
    }

    fn report(&mut self, entry: &Entry, error: Diagnostic) {
        let Some(path) = &entry.path else { return };
        if !self.reported.contains(path) {
            self.reported.push(path.clone());
            self.problems.at(path.child("name"), error);
        }
    }
}

fn in_multi_point(path: &FieldPath) -> bool {
    let parent = path.parent().parent().to_string();
    parent.ends_with(".multiPoint")
}

fn twice(plugin: &Plugin, point: Point) -> Diagnostic {
    let interface = point.interface();
    let message = format!(
        "plugin {:?} already registered as {interface:?}",
        plugin.name
    );
    Diagnostic::error("plugin-twice", message)
}

/// Names that v1 refuses. Source: `invalidPluginsByVersion`, v1.36.
pub(super) fn is_removed(name: &str) -> bool {
    [
        "AzureDiskLimits",
        "CinderLimits",
        "EBSLimits",
        "GCEPDLimits",
    ]
    .contains(&name)
}

/// What replaced a removed plugin, or the most similar name.
pub(super) fn unknown_help(name: &str) -> Option<String> {
    let fit = |strategy| {
        format!(
            "since v1 it is NodeResourcesFit with `scoringStrategy: {{type: {strategy}}}` in its args"
        )
    };
    match name {
        "NodeResourcesLeastAllocated" => Some(fit("LeastAllocated")),
        "NodeResourcesMostAllocated" => Some(fit("MostAllocated")),
        "RequestedToCapacityRatio" => Some(fit("RequestedToCapacityRatio")),
        "NodeLabel" | "ServiceAffinity" | "NodePreferAvoidPods" => {
            Some("no Kubernetes since 1.25 has it".to_owned())
        }
        name if is_removed(name) => Some("NodeVolumeLimits does its work".to_owned()),
        name => nearest(name, plugins::names()).map(|meant| format!("did you mean {meant:?}?")),
    }
}
