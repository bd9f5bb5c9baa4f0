//! Old versions and Policy: KEP-1258.

use strew_model::{Interner, ResourceName};
use strew_scheduler::{DefaultConstraints, PluginId, ScoringStrategy};

use super::*;

fn beta(version: &str, args: &str) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/{version}
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args: {args}
"
    )
}

/// The maxSkews of the default constraints, or that they are the system's; and the notes after the first.
#[track_caller]
fn converted(version: &str, args: &str) -> (String, Vec<String>) {
    let configuration = configured_with(&beta(version, args), "").expect(args);
    let mut notes = configuration.notes.clone();
    let first = format!(
        "kubescheduler.config.k8s.io/{version} was read as v1: default plugins and weights are those of Kubernetes 1.36"
    );
    assert_eq!(notes.remove(0), first);
    let constraints = match &configuration.profiles[0].default_constraints {
        DefaultConstraints::System => "system".to_owned(),
        DefaultConstraints::List(list) => {
            let skews: Vec<_> = list.iter().map(|c| c.max_skew.to_string()).collect();
            format!("list {}", skews.join(" "))
        }
    };
    (constraints, notes)
}

#[test]
fn lists_of_old_versions() {
    let list = "[{maxSkew: 5, topologyKey: example.com/rack, whenUnsatisfiable: ScheduleAnyway}]";
    for version in ["v1beta1", "v1beta2", "v1beta3"] {
        let note = |was: &str, became: &str| {
            vec![format!(
                "profiles[0].pluginConfig[0].args: {was} ({version}) became defaultingType: List{became}"
            )]
        };
        let none = " without constraints";
        let cases = [
            ("{}".to_owned(), "system", Vec::new()),
            (
                format!("{{defaultConstraints: {list}}}"),
                "list 5",
                note("defaultConstraints without defaultingType", ""),
            ),
            (
                "{defaultConstraints: []}".to_owned(),
                "list ",
                note("defaultConstraints: []", none),
            ),
            (
                "{disableDefaultConstraints: true}".to_owned(),
                "list ",
                note("disableDefaultConstraints: true", none),
            ),
            (
                "{disableDefaultConstraints: false}".to_owned(),
                "system",
                Vec::new(),
            ),
            (
                format!("{{defaultingType: List, defaultConstraints: {list}}}"),
                "list 5",
                Vec::new(),
            ),
            (
                "{defaultingType: List, disableDefaultConstraints: true}".to_owned(),
                "list ",
                Vec::new(),
            ),
            (
                "{defaultingType: System, defaultConstraints: []}".to_owned(),
                "system",
                Vec::new(),
            ),
        ];
        for (args, constraints, notes) in cases {
            let expected = (constraints.to_owned(), notes);
            assert_eq!(converted(version, &args), expected, "{version} {args}");
        }
    }
    let args = format!("{{disableDefaultConstraints: true, defaultConstraints: {list}}}");
    refused_text(
        &beta("v1beta1", &args),
        &[
            "6:39: profiles[0].pluginConfig[0].args.disableDefaultConstraints: Invalid value: true: when .defaultConstraints are not empty",
        ],
    );
    refused_text(
        &beta(
            "v1beta1",
            "{disableDefaultConstraints: true, defaultingType: System}",
        ),
        &[
            "6:39: profiles[0].pluginConfig[0].args.disableDefaultConstraints: Invalid value: true: when .defaultingType is System",
        ],
    );
}

/// KEP-1258, "How user stories are addressed": its keys have two slashes, which no label may have.
#[test]
fn the_seeds_own_configuration() {
    let text = |host: &str, rack: &str| {
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
    - name: PodTopologySpread
      args:
        defaultConstraints:
          - maxSkew: 5
            topologyKey: \"{host}\"
            whenUnsatisfiable: ScheduleAnyway
          - maxSkew: 15
            topologyKey: \"{rack}\"
            whenUnsatisfiable: DoNotSchedule
"
        )
    };
    let rule = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    let (host, rack) = (
        "example.com/topology/physical_host",
        "example.com/topology/rack",
    );
    let path = "profiles[0].pluginConfig[0].args.defaultConstraints";
    refused_text(
        &text(host, rack),
        &[
            &format!("9:26: {path}[0].topologyKey: Invalid value: \"{host}\": {rule}"),
            &format!("12:26: {path}[1].topologyKey: Invalid value: \"{rack}\": {rule}"),
        ],
    );
    let mut sources = Sources::new();
    sources.add(
        "config.yaml",
        text("example.com/physical_host", "example.com/rack"),
    );
    let mut names = Interner::new();
    let gates = FeatureGates::default();
    let configuration = configure(Given::Files(&sources), &gates, &mut names).expect("good");
    let DefaultConstraints::List(list) = &configuration.profiles[0].default_constraints else {
        panic!("a list");
    };
    let read: Vec<_> = list
        .iter()
        .map(|c| (c.max_skew, names.text(c.key), c.hard))
        .collect();
    let expected = [
        (5, "example.com/physical_host", false),
        (15, "example.com/rack", true),
    ];
    assert_eq!(read, expected);
}

#[test]
fn plugins_of_old_versions() {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
healthzBindAddress: 0.0.0.0:10251
profiles:
- plugins:
    preScore: {enabled: [{name: SelectorSpread}]}
    score:
      disabled: [{name: NodeResourcesLeastAllocated}, {name: NodePreferAvoidPods}]
      enabled: [{name: PodTopologySpread, weight: 5}, {name: SelectorSpread, weight: 2}]
  pluginConfig:
  - {name: InterPodAffinity, args: {kind: InterPodAffinityArgs, apiVersion: kubescheduler.config.k8s.io/v1beta2, hardPodAffinityWeight: 5}}
";
    let configuration = configured_with(text, "").expect("good");
    assert_eq!(
        configuration.notes[1..],
        [
            "healthzBindAddress (v1beta2) was passed over: v1 has no such field",
            "profiles[0].plugins.score.disabled: NodeResourcesLeastAllocated (v1beta2) became NodeResourcesFit, whose default strategy it is",
            "profiles[0].plugins.score.disabled: there is no plugin \"NodePreferAvoidPods\" to disable",
            "profiles[0].plugins: SelectorSpread and the default constraints of PodTopologySpread are both enabled, and both count",
        ]
    );
    let profile = &configuration.profiles[0];
    assert_eq!(profile.weight(PluginId::PodTopologySpread), 5);
    assert_eq!(profile.weight(PluginId::SelectorSpread), 2);
    assert_eq!(profile.weight(PluginId::NodeResourcesFit), 0);
    assert!(profile.filters_with(PluginId::NodeResourcesFit));
    assert_eq!(profile.hard_pod_affinity_weight, 5);
    let removed = text
        .replace("NodePreferAvoidPods}", "x}")
        .replace("{name: SelectorSpread}", "{name: EBSLimits}");
    refused_text(
        &removed,
        &[
            "6:5: strew does not run SelectorSpread at score without SelectorSpread at preScore",
            "6:27: profiles[0].plugins.preScore.enabled[0]: Invalid value: \"EBSLimits\": was invalid in version \"kubescheduler.config.k8s.io/v1\" (KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1beta2\")",
        ],
    );
}

fn policy(body: &str) -> String {
    format!("apiVersion: v1\nkind: Policy\n{body}")
}

#[test]
fn priorities_of_a_policy() {
    let cases: [(&str, &str, &str, &[&str]); 6] = [
        (
            "priorities: [{name: SelectorSpreadingPriority, weight: 3}]",
            "",
            "PodTopologySpread[3]",
            &[
                "priorities[0]: SelectorSpreadingPriority became PodTopologySpread with weight 3",
                "priorities: the score plugins that are not named do not count",
            ],
        ),
        (
            "priorities: [{name: SelectorSpreadingPriority, weight: 3}, {name: EvenPodsSpreadPriority, weight: 4}]",
            "",
            "PodTopologySpread[7]",
            &[
                "priorities[0]: SelectorSpreadingPriority became PodTopologySpread with weight 3",
                "priorities[1]: EvenPodsSpreadPriority became PodTopologySpread with weight 4",
                "priorities: their weights add up: PodTopologySpread has 7",
                "priorities: the score plugins that are not named do not count",
            ],
        ),
        (
            "priorities: [{name: SelectorSpreadingPriority, weight: 3}, {name: EvenPodsSpreadPriority, weight: 4}]",
            "DefaultPodTopologySpread=false",
            "SelectorSpread[3] PodTopologySpread[4]",
            &[
                "DefaultPodTopologySpread is no gate of Kubernetes 1.36: what it switches is always on since 1.24; strew still obeys it",
                "priorities[0]: SelectorSpreadingPriority became SelectorSpread with weight 3",
                "priorities[1]: EvenPodsSpreadPriority became PodTopologySpread with weight 4",
                "priorities: the score plugins that are not named do not count",
            ],
        ),
        (
            "priorities: [{name: EvenPodsSpreadPriority, weight: 1}]",
            "",
            "PodTopologySpread[1]",
            &[
                "priorities[0]: EvenPodsSpreadPriority became PodTopologySpread with weight 1",
                "priorities: the score plugins that are not named do not count",
                "priorities: EvenPodsSpreadPriority alone has no default constraints",
            ],
        ),
        (
            "priorities: [{name: MostRequestedPriority, weight: 2}, {name: NodePreferAvoidPodsPriority, weight: 10000}, {name: EqualPriority, weight: 1}]",
            "",
            "NodeResourcesFit[2]",
            &[
                "priorities[0]: MostRequestedPriority became NodeResourcesFit (MostAllocated) with weight 2",
                "priorities[1]: NodePreferAvoidPodsPriority is left out: no Kubernetes since 1.25 reads the annotation that it looked at",
                "priorities[2]: EqualPriority is left out: it gave all nodes the same",
                "priorities: the score plugins that are not named do not count",
            ],
        ),
        (
            "hardPodAffinitySymmetricWeight: 9",
            "",
            "TaintToleration[3] NodeAffinity[2] NodeResourcesFit[1] VolumeBinding[1] PodTopologySpread[2] InterPodAffinity[2] DynamicResources[2] NodeResourcesBalancedAllocation[1] ImageLocality[1]",
            &["Policy: without priorities the default score plugins of Kubernetes 1.36 count"],
        ),
    ];
    for (body, gates, scores, notes) in cases {
        let configuration = configured_with(&policy(body), gates).expect(body);
        let profile = &configuration.profiles[0];
        assert_eq!(plugin_lists(profile).1, scores, "{body}");
        assert_eq!(profile.filters, Profile::default().filters);
        assert_eq!(configuration.notes, notes, "{body}");
    }
}

/// A file as people had it: Kubernetes' own example of 1.21, with the spreading priorities of KEP-1258.
#[test]
fn a_policy_of_its_time_is_mapped_name_by_name() {
    let body = "predicates: [{name: PodFitsHostPorts}, {name: PodFitsResources}, {name: EvenPodsSpread}, {name: GeneralPredicates}, {name: MaxEBSVolumeCount}]
priorities: [{name: LeastRequestedPriority, weight: 1}, {name: BalancedResourceAllocation, weight: 1}, {name: SelectorSpreadingPriority, weight: 2}, {name: EvenPodsSpreadPriority, weight: 1}, {name: ServiceSpreadingPriority, weight: 1}]
hardPodAffinitySymmetricWeight: 10";
    let configuration = configured_with(&policy(body), "").expect(body);
    let profile = &configuration.profiles[0];
    let (filters, scores) = plugin_lists(profile);
    assert_eq!(
        filters,
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit NodeVolumeLimits PodTopologySpread DynamicResources NodeDeclaredFeatures"
    );
    assert_eq!(
        scores,
        "NodeResourcesFit[1] NodeResourcesBalancedAllocation[1] PodTopologySpread[4]"
    );
    assert_eq!(profile.default_constraints, DefaultConstraints::System);
    assert_eq!(profile.hard_pod_affinity_weight, 10);
    assert_eq!(
        configuration.notes,
        [
            "predicates[0]: PodFitsHostPorts became NodePorts",
            "predicates[1]: PodFitsResources became NodeResourcesFit",
            "predicates[2]: EvenPodsSpread became PodTopologySpread",
            "predicates[3]: GeneralPredicates became NodeResourcesFit, NodeName, NodePorts, NodeAffinity",
            "predicates[4]: MaxEBSVolumeCount became NodeVolumeLimits",
            "predicates: filters that are not named do not filter: VolumeRestrictions, VolumeBinding, VolumeZone, InterPodAffinity",
            "priorities[0]: LeastRequestedPriority became NodeResourcesFit (LeastAllocated) with weight 1",
            "priorities[1]: BalancedResourceAllocation became NodeResourcesBalancedAllocation with weight 1",
            "priorities[2]: SelectorSpreadingPriority became PodTopologySpread with weight 2",
            "priorities[3]: EvenPodsSpreadPriority became PodTopologySpread with weight 1",
            "priorities[4]: ServiceSpreadingPriority became PodTopologySpread with weight 1",
            "priorities: their weights add up: PodTopologySpread has 4",
            "priorities: the score plugins that are not named do not count",
        ]
    );
    let ratio = "priorities: [{name: RequestedToCapacityRatioPriority, weight: 2, argument: {requestedToCapacityRatioArguments: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}], resources: [{name: cpu, weight: 3}]}}}]";
    let configuration = configured_with(&policy(ratio), "").expect(ratio);
    let fit = &configuration.profiles[0].fit;
    let shape = vec![(0, 0), (100, 10)];
    assert_eq!(
        fit.strategy,
        ScoringStrategy::RequestedToCapacityRatio(shape)
    );
    assert_eq!(fit.resources, [(ResourceName::Cpu, 3)]);
}

#[test]
fn every_rule_of_a_policy() {
    let cases: [(&str, &[&str]); 10] = [
        (
            "priorities: [{name: FastestNodePriority, weight: 1}]",
            &[
                "3:21: unknown priority \"FastestNodePriority\" (help: write a KubeSchedulerConfiguration for plugins that came after Policy)",
            ],
        ),
        (
            "priorities: [{name: SelectorSpreadPriorty, weight: 1}]",
            &[
                "3:21: unknown priority \"SelectorSpreadPriorty\" (help: did you mean \"SelectorSpreadPriority\"?)",
            ],
        ),
        (
            "priorities: [{name: EvenPodsSpreadPriority}]",
            &[
                "3:15: priorities[0].weight: Invalid value: 0: must have a positive weight applied to it",
            ],
        ),
        (
            "priorities: [{name: EvenPodsSpreadPriority, weight: 99999999}]",
            &[
                "3:1: the weights of the score plugins add up to 99999999: strew keeps total scores in 31 bits, so at most 21474836",
            ],
        ),
        (
            "priorities: [{name: LeastRequestedPriority, weight: 1}, {name: MostRequestedPriority, weight: 1}]",
            &[
                "3:1: NodeResourcesFit scores by one strategy: only one of LeastRequestedPriority, MostRequestedPriority and RequestedToCapacityRatioPriority can be had",
            ],
        ),
        (
            "predicates: [{name: PodFitsResource}]",
            &[
                "3:21: unknown predicate \"PodFitsResource\" (help: did you mean \"PodFitsResources\"?)",
            ],
        ),
        (
            "predicates: [{name: Region, argument: {serviceAffinity: {labels: [region]}}}]",
            &[
                "3:21: Region has no successor: it was the plugin ServiceAffinity, which no Kubernetes since 1.25 has: use pod affinity",
            ],
        ),
        (
            "predicates: [{name: CheckNodeLabelPresence}]",
            &[
                "3:21: CheckNodeLabelPresence has no successor: it was the plugin NodeLabel, which no Kubernetes since 1.25 has: use node affinity",
            ],
        ),
        ("extenders: [{}]", &["3:1: strew does not call extenders"]),
        ("priority: []", &["3:1: unknown field \"priority\""]),
    ];
    for (body, expected) in cases {
        refused_text(&policy(body), expected);
    }
}
