//! The arguments of plugins: spec/scheduler §1.12, §5.3.

use strew_cluster::Policy;
use strew_model::ResourceName;
use strew_scheduler::{DefaultConstraints, PreemptionArgs, ScoringStrategy};

use super::*;

/// A profile with these arguments of this plugin.
fn with(plugin: &str, args: &str) -> String {
    format!("profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n")
}

/// The messages without place and path, which begin all of them.
#[track_caller]
fn args_refused(plugin: &str, args: &str, expected: &[&str]) {
    let errors = configured_with(&v1(&with(plugin, args)), "").expect_err(args);
    let said: Vec<&str> = errors
        .iter()
        .map(
            |error| match error.split_once("profiles[0].pluginConfig[0].args") {
                Some((_, said)) => said,
                None => error.split_once(": ").expect("a place").1,
            },
        )
        .collect();
    assert_eq!(said, expected, "{plugin} {args}");
}

#[test]
fn every_rule_of_pod_topology_spread() {
    let cases: [(&str, &[&str]); 12] = [
        (
            "{defaultingType: Foo}",
            &[
                ".defaultingType: Unsupported value: \"Foo\": supported values: \"System\", \"List\"",
            ],
        ),
        (
            "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            &[
                ".defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty (help: write `defaultingType: List` beside defaultConstraints)",
            ],
        ),
        (
            "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            &[".defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
        ),
        (
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}",
            &[".defaultConstraints[0].topologyKey: Required value: can not be empty"],
        ),
        (
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a/b/c, whenUnsatisfiable: DoNotSchedule}]}",
            &[
                ".defaultConstraints[0].topologyKey: Invalid value: \"a/b/c\": a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            ],
        ),
        (
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a}]}",
            &[".defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
        ),
        (
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Never}]}",
            &[
                ".defaultConstraints[0].whenUnsatisfiable: Unsupported value: \"Never\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            ],
        ),
        (
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]}",
            &[
                ".defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod",
            ],
        ),
        (
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}",
            &[".defaultConstraints[2]: Duplicate value: \"{a, ScheduleAnyway}\""],
        ),
        (
            "{disableDefaultConstraints: true}",
            &[
                "unknown field \"disableDefaultConstraints\", did you mean \"defaultConstraints\"? (help: it is a field of v1beta1: in v1 write `defaultingType: List` without defaultConstraints)",
            ],
        ),
        ("[]", &["expected an object, found a list"]),
        (
            "{kind: FooArgs}",
            &[
                "args for plugin PodTopologySpread were not of type PodTopologySpreadArgs.kubescheduler.config.k8s.io, got FooArgs.kubescheduler.config.k8s.io",
            ],
        ),
    ];
    for (args, expected) in cases {
        args_refused("PodTopologySpread", args, expected);
    }
}

#[test]
fn default_constraints_reach_the_profile() {
    let body = with(
        "PodTopologySpread",
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: PodTopologySpreadArgs, defaultingType: List, defaultConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, minDomains: -3, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor, matchLabelKeys: [app]}]}",
    );
    let configuration = accepted(&body);
    let DefaultConstraints::List(list) = &configuration.profiles[0].default_constraints else {
        panic!("a list");
    };
    let [only] = &list[..] else { panic!("one") };
    assert_eq!(
        (only.max_skew, only.hard, only.min_domains),
        (2, true, Some(-3))
    );
    assert_eq!(
        (only.node_affinity_policy, only.node_taints_policy),
        (Policy::Ignore, Policy::Honor)
    );
    // They have their effect with `Compat::Strew` only, which is for the scheduler to know (spec/scheduler §1.5).
    assert_eq!(only.match_label_keys.len(), 1);
    let none = accepted(&with("PodTopologySpread", "{defaultingType: List}"));
    assert_eq!(
        none.profiles[0].default_constraints,
        DefaultConstraints::List(Vec::new())
    );
    let system = accepted(&with("PodTopologySpread", "{defaultConstraints: []}"));
    assert_eq!(
        system.profiles[0].default_constraints,
        DefaultConstraints::System
    );
}

#[test]
fn every_rule_of_the_others() {
    let cases: [(&str, &str, &[&str]); 27] = [
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 101}",
            &[".minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesAbsolute: -1}",
            &[".minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"],
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            &[
                ".minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
                ".minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
            ],
        ),
        (
            "InterPodAffinity",
            "{hardPodAffinityWeight: 101}",
            &[".hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            "NodeAffinity",
            "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near}]}]}}}",
            &[
                ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator",
            ],
        ),
        (
            "NodeResourcesFit",
            "{ignoredResources: [a b]}",
            &[
                ".ignoredResources[0]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
        (
            "NodeResourcesFit",
            "{ignoredResourceGroups: [a.b/c]}",
            &[
                ".ignoredResourceGroups[0]: Invalid value: \"a.b/c\": resource group name can't contain '/'",
            ],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: Best}}",
            &[
                ".scoringStrategy.type: Unsupported value: \"Best\": supported values: \"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\"",
            ],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}, {name: memory}]}}",
            &[
                ".scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
            ],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio}}",
            &[
                ".scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
            ],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}",
            &[
                ".scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
            ],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: []}}}",
            &[
                ".scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified",
            ],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 5, score: 11}, {utilization: 5, score: 1}, {utilization: 101, score: 1}]}}}",
            &[
                ".scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
                ".scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: values must be sorted in increasing order",
                ".scoringStrategy.requestedToCapacityRatio.shape[2].utilization: Invalid value: 101: not in valid range [0, 100]",
            ],
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}, {name: cpu}]}",
            &[
                ".resources[0].weight: Invalid value: 2: must be 1",
                ".resources[1].name: Duplicate value: \"cpu\"",
            ],
        ),
        (
            "VolumeBinding",
            "{bindTimeoutSeconds: -1}",
            &[
                ".bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
            ],
        ),
        (
            "VolumeBinding",
            "{shape: [{utilization: 1, score: 2}]}",
            &[
                ".shape: Invalid value: []config.UtilizationShapePoint{config.UtilizationShapePoint{Utilization:1, Score:2}}: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
            ],
        ),
        (
            "DynamicResources",
            "{filterTimeout: -1s}",
            &[".filterTimeout: Invalid value: -1s: must be zero or positive"],
        ),
        (
            "DynamicResources",
            "{bindingTimeout: 999ms}",
            &[".bindingTimeout: Invalid value: 999ms: must be at least 1 second"],
        ),
        (
            "DynamicResources",
            "{filterTimeout: soon}",
            &["time: invalid duration \"soon\" (help: write it like 15s, 500ms or 1h30m)"],
        ),
        (
            "EBSLimits",
            "{}",
            &[
                "profiles[0].pluginConfig[0]: Invalid value: \"EBSLimits\": was invalid in version \"kubescheduler.config.k8s.io/v1\" (KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1\")",
            ],
        ),
        ("NodeName", "{}", &["plugin NodeName takes no arguments"]),
        (
            "PodTopologySpred",
            "{}",
            &[
                "there is no plugin \"PodTopologySpred\" (help: did you mean \"PodTopologySpread\"?)",
            ],
        ),
        (
            "InterPodAffinity",
            "{kind: NodeAffinityArgs}",
            &[
                "args for plugin InterPodAffinity were not of type InterPodAffinityArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io",
            ],
        ),
        (
            "InterPodAffinity",
            "{apiVersion: v1}",
            &[
                "args for plugin InterPodAffinity were not of type InterPodAffinityArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs",
            ],
        ),
        (
            "InterPodAffinity",
            "{apiVersion: kubescheduler.config.k8s.io/v7}",
            &[
                "no kind \"InterPodAffinityArgs\" is registered for version \"kubescheduler.config.k8s.io/v7\"",
            ],
        ),
        (
            "InterPodAffinity",
            "{hardPodAffinityWeigth: 1}",
            &["unknown field \"hardPodAffinityWeigth\", did you mean \"hardPodAffinityWeight\"?"],
        ),
        (
            "InterPodAffinity",
            "{}\n  - name: InterPodAffinity",
            &["profiles[0].pluginConfig[1]: Duplicate value: \"InterPodAffinity\""],
        ),
    ];
    for (plugin, args, expected) in cases {
        args_refused(plugin, args, expected);
    }
}

#[test]
fn arguments_reach_the_profile() {
    let configuration = accepted(
        "profiles:
- pluginConfig:
  - {name: DefaultPreemption, args: {minCandidateNodesPercentage: 5, minCandidateNodesAbsolute: 7}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}
        preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, preference: {matchExpressions: [{key: b, operator: Exists}]}}]
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/a]
      ignoredResourceGroups: [example.org]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: example.com/gpu, weight: 5}, {name: ephemeral-storage}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: memory}]}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 3}}
  - {name: DynamicResources, args: {filterTimeout: 1s}}
",
    );
    let profile = &configuration.profiles[0];
    let preemption = PreemptionArgs {
        candidate_nodes_percentage_min: 5,
        candidate_nodes_min: 7,
    };
    assert_eq!(profile.preemption, Some(preemption));
    assert_eq!(profile.hard_pod_affinity_weight, 0);
    assert!(profile.ignore_preferred_terms_of_existing_pods);
    assert_eq!(
        profile.added_affinity.required.as_ref().map(Vec::len),
        Some(1)
    );
    assert_eq!(profile.added_affinity.preferred[0].0, 3);
    assert_eq!(profile.fit.ignored_resources.len(), 1);
    assert_eq!(profile.fit.ignored_resource_groups, ["example.org"]);
    let shape = ScoringStrategy::RequestedToCapacityRatio(vec![(0, 0), (100, 10)]);
    assert_eq!(profile.fit.strategy, shape);
    assert!(matches!(
        profile.fit.resources[..],
        [
            (ResourceName::Scalar(_), 5),
            (ResourceName::EphemeralStorage, 1)
        ]
    ));
    assert_eq!(profile.balanced, [ResourceName::Memory]);
}
