//! Plugins, merged and expanded: spec/scheduler §2.10, §5.2.

use super::super::merge::{Expanded, expand};
use super::super::plugins::Point;
use super::super::problems::Problems;
use super::super::profiles::default_plugins;
use super::super::wire::PluginsWire;
use super::*;

fn default_expansion(gates: &FeatureGates) -> Expanded {
    let mut sources = Sources::new();
    sources.add("x", "a: b");
    let (documents, _) = read::documents(&sources);
    let mut problems = Problems::new(&sources, &documents[0].origin, "x");
    let plugins = default_plugins(gates);
    let path = FieldPath::root();
    let expanded = expand(&PluginsWire::default(), &plugins, &path, &mut problems);
    assert_eq!(problems.finish(), Ok(Vec::new()));
    expanded
}

fn printed(expanded: &Expanded) -> String {
    let points = [
        Point::PreEnqueue,
        Point::QueueSort,
        Point::PreFilter,
        Point::Filter,
        Point::PostFilter,
        Point::PreScore,
        Point::Score,
        Point::Reserve,
        Point::Permit,
        Point::PreBind,
        Point::Bind,
        Point::PostBind,
        Point::PlacementGenerate,
        Point::PlacementScore,
    ];
    let mut text = String::new();
    for point in points {
        let names = expanded.at(point).iter().map(|name| match point {
            Point::Score => format!("{name}[{}]", expanded.weight(name)),
            _ => (*name).to_owned(),
        });
        let names: Vec<String> = names.collect();
        text += &format!("{}: {}\n", point.key(), names.join(", "));
    }
    text
}

#[test]
fn default_plugins_at_each_point() {
    let on = "preEnqueue: SchedulingGates, DynamicResources, DefaultPreemption
queueSort: PrioritySort
preFilter: NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, DynamicResources, NodeDeclaredFeatures
filter: NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, DynamicResources, NodeDeclaredFeatures
postFilter: DynamicResources, DefaultPreemption
preScore: TaintToleration, NodeAffinity, NodeResourcesFit, VolumeBinding, PodTopologySpread, InterPodAffinity, NodeResourcesBalancedAllocation
score: TaintToleration[3], NodeAffinity[2], NodeResourcesFit[1], VolumeBinding[1], PodTopologySpread[2], InterPodAffinity[2], DynamicResources[2], NodeResourcesBalancedAllocation[1], ImageLocality[1]
reserve: VolumeBinding, DynamicResources
permit: 
preBind: VolumeBinding, DynamicResources
bind: DefaultBinder
postBind: 
placementGenerate: 
placementScore: 
";
    assert_eq!(printed(&default_expansion(&FeatureGates::default())), on);
    let gates = FeatureGates::parse("DefaultPodTopologySpread=false").expect("known");
    let off = on
        .replace(
            "BalancedAllocation\nscore",
            "BalancedAllocation, SelectorSpread\nscore",
        )
        .replace(
            "ImageLocality[1]\n",
            "ImageLocality[1], SelectorSpread[1]\n",
        );
    assert_eq!(printed(&default_expansion(&gates)), off);
}

/// KEP-1258: the plugin list with the gate on and off.
#[test]
fn the_gate_of_default_constraints() {
    let off = configured_with(&v1(""), "DefaultPodTopologySpread=false").expect("good");
    assert_eq!(off.profiles, [Profile::with_selector_spread()]);
    let gates = FeatureGates::parse("DefaultPodTopologySpread=false").expect("known");
    let nothing = configure(Given::Nothing, &gates, &mut Interner::new()).expect("good");
    assert_eq!(nothing, off);
    let on = configured_with(&v1(""), "DefaultPodTopologySpread=true").expect("good");
    assert_eq!(on.profiles, [Profile::default()]);
}

#[test]
fn merging_and_expanding() {
    let default_filters = "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures";
    let default_scores = "TaintToleration[3] NodeAffinity[2] NodeResourcesFit[1] VolumeBinding[1] PodTopologySpread[2] InterPodAffinity[2] DynamicResources[2] NodeResourcesBalancedAllocation[1] ImageLocality[1]";
    let without = |list: &str, name: &str| {
        list.split(' ')
            .filter(|n| !n.starts_with(name))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let cases: [(&str, String, String); 9] = [
        // A named default is dropped.
        (
            "{multiPoint: {disabled: [{name: ImageLocality}]}}",
            default_filters.into(),
            without(default_scores, "ImageLocality"),
        ),
        // A default that is named in enabled is replaced in place.
        (
            "{multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}}",
            default_filters.into(),
            default_scores.replace("NodeAffinity[2]", "NodeAffinity[7]"),
        ),
        // Dropped and enabled: it goes to the end; without a weight it weighs 1.
        (
            "{multiPoint: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration}]}}",
            format!("{} TaintToleration", without(default_filters, "Taint")),
            format!("{} TaintToleration[1]", without(default_scores, "Taint")),
        ),
        // A point's plugins that multiPoint names too come first, with the weights of the point.
        (
            "{score: {enabled: [{name: ImageLocality, weight: 9}, {name: NodeAffinity}]}}",
            default_filters.into(),
            format!(
                "ImageLocality[9] NodeAffinity[1] {}",
                without(&without(default_scores, "ImageLocality"), "NodeAffinity")
            ),
        ),
        // Those that it does not name come last.
        (
            "{preScore: {enabled: [{name: SelectorSpread}]}, score: {enabled: [{name: SelectorSpread, weight: 4}]}}",
            default_filters.into(),
            format!("{default_scores} SelectorSpread[4]"),
        ),
        (
            "{multiPoint: {enabled: [{name: SelectorSpread}]}}",
            default_filters.into(),
            format!("{default_scores} SelectorSpread[1]"),
        ),
        // All of a point.
        (
            "{score: {disabled: [{name: '*'}]}}",
            default_filters.into(),
            String::new(),
        ),
        (
            "{score: {disabled: [{name: '*'}], enabled: [{name: PodTopologySpread, weight: 5}]}}",
            default_filters.into(),
            "PodTopologySpread[5]".into(),
        ),
        (
            "{filter: {disabled: [{name: NodePorts}]}, score: {disabled: [{name: ImageLocality}]}}",
            without(default_filters, "NodePorts"),
            without(default_scores, "ImageLocality"),
        ),
    ];
    for (plugins, filters, scores) in cases {
        let configuration = accepted(&format!("profiles: [{{plugins: {plugins}}}]"));
        let lists = plugin_lists(&configuration.profiles[0]);
        assert_eq!(lists, (filters, scores), "{plugins}");
    }
}

#[test]
fn preemption_can_be_disabled() {
    for point in ["postFilter", "multiPoint"] {
        let body = format!(
            "profiles: [{{plugins: {{{point}: {{disabled: [{{name: DefaultPreemption}}]}}}}}}]"
        );
        assert_eq!(accepted(&body).profiles[0].preemption, None, "{point}");
    }
}

#[test]
fn both_spreading_plugins_count() {
    let body =
        "profiles: [{plugins: {multiPoint: {enabled: [{name: SelectorSpread, weight: 3}]}}}]";
    let configuration = accepted(body);
    assert_eq!(
        configuration.notes,
        [
            "profiles[0].plugins: SelectorSpread and the default constraints of PodTopologySpread are both enabled, and both count"
        ]
    );
}

#[test]
fn unknown_names_that_are_disabled_are_noted() {
    let body = "profiles: [{plugins: {score: {disabled: [{name: ImageLocalty}, {name: Mine}]}}}]";
    assert_eq!(
        accepted(body).notes,
        [
            "profiles[0].plugins.score.disabled: there is no plugin \"ImageLocalty\" to disable, did you mean \"ImageLocality\"?",
            "profiles[0].plugins.score.disabled: there is no plugin \"Mine\" to disable",
        ]
    );
}

#[test]
fn every_rule_of_plugins() {
    let removed = "was invalid in version \"kubescheduler.config.k8s.io/v1\" (KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1\")";
    let cases: [(&str, &[&str]); 17] = [
        (
            "{score: {enabled: [{name: X}]}}",
            &["3:48: ScorePlugin \"X\" does not exist"],
        ),
        (
            "{score: {enabled: [{name: ImageLocalty}]}}",
            &[
                "3:48: ScorePlugin \"ImageLocalty\" does not exist (help: did you mean \"ImageLocality\"?)",
            ],
        ),
        (
            "{multiPoint: {enabled: [{name: X}]}}",
            &["3:53: PreFilterPlugin \"X\" does not exist"],
        ),
        (
            "{filter: {enabled: [{name: ImageLocality}]}}",
            &[
                "3:49: plugin \"ImageLocality\" does not extend FilterPlugin plugin (help: it extends score)",
            ],
        ),
        (
            "{score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}",
            &["3:71: plugin \"ImageLocality\" already registered as \"ScorePlugin\""],
        ),
        (
            "{multiPoint: {enabled: [{name: NodeAffinity}, {name: NodeAffinity}]}}",
            &["3:53: plugin \"NodeAffinity\" already registered as \"PreFilterPlugin\""],
        ),
        (
            "{queueSort: {disabled: [{name: '*'}]}}",
            &[
                "3:23: only one queue sort plugin required for profile with scheduler name \"default-scheduler\", but got 0",
            ],
        ),
        (
            "{bind: {disabled: [{name: DefaultBinder}]}}",
            &[
                "3:23: at least one bind plugin is needed for profile with scheduler name \"default-scheduler\"",
            ],
        ),
        (
            "{filter: {enabled: [{name: EBSLimits}]}}",
            &[&format!(
                "3:43: profiles[0].plugins.filter.enabled[0]: Invalid value: \"EBSLimits\": {removed}"
            )],
        ),
        (
            "{multiPoint: {enabled: [{name: EBSLimits}]}}",
            &[
                "3:53: PreFilterPlugin \"EBSLimits\" does not exist (help: NodeVolumeLimits does its work)",
            ],
        ),
        (
            "{permit: {enabled: [{name: GangScheduling}]}}",
            &["3:49: strew does not implement plugin \"GangScheduling\""],
        ),
        (
            "{score: {enabled: [{name: NodeResourcesMostAllocated}]}}",
            &[
                "3:48: ScorePlugin \"NodeResourcesMostAllocated\" does not exist (help: since v1 it is NodeResourcesFit with `scoringStrategy: {type: MostAllocated}` in its args)",
            ],
        ),
        (
            "{preFilter: {disabled: [{name: NodePorts}]}}",
            &["3:23: strew does not run NodePorts at filter without NodePorts at preFilter"],
        ),
        (
            "{score: {enabled: [{name: SelectorSpread}]}}",
            &[
                "3:13: strew does not run SelectorSpread at score without SelectorSpread at preScore",
            ],
        ),
        (
            "{preEnqueue: {disabled: [{name: SchedulingGates}]}}",
            &[
                "3:23: strew does not leave out SchedulingGates: the API server binds no pod that has scheduling gates",
            ],
        ),
        (
            "{score: {enabled: [{name: ImageLocality, weight: 21474829}]}}",
            &[
                "3:23: the weights of the score plugins add up to 21474843: strew keeps total scores in 31 bits, so at most 21474836",
            ],
        ),
        (
            "{score: {enabled: [{name: ImageLocality, weight: -1}]}}",
            &["3:23: strew takes no negative weight: ImageLocality has -1"],
        ),
    ];
    for (plugins, expected) in cases {
        refused(&format!("profiles: [{{plugins: {plugins}}}]"), expected);
    }
    accepted(
        "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 21474822}]}}}]",
    );
    refused(
        "profiles: [{plugins: {queueSort: {enabled: [{name: PrioritySort}, {name: PrioritySort}]}}}]",
        &[
            "3:23: profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
            "3:74: plugin \"PrioritySort\" already registered as \"QueueSortPlugin\"",
        ],
    );
}
