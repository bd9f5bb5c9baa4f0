//! The document itself: spec/scheduler §5.1, §5.6.

use super::*;

#[test]
fn an_empty_document_is_the_default_scheduler() {
    let configuration = accepted("");
    let default = Configuration::of_gates(&FeatureGates::default());
    assert_eq!(configuration, default);
    assert_eq!(configuration.profiles, [Profile::default()]);
    assert_eq!(configuration.leader_election.lease_duration.as_secs(), 15);
}

#[test]
fn all_fields_are_read() {
    let configuration = accepted(
        "parallelism: 4
leaderElection: {leaderElect: false, leaseDuration: 30s, renewDeadline: 1m30s, retryPeriod: 500ms, resourceName: mine}
clientConnection: {kubeconfig: /etc/kube, qps: 7.5, burst: 9, acceptContentTypes: a, contentType: b}
enableProfiling: false
percentageOfNodesToScore: 40
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: true
profiles:
- schedulerName: one
- schedulerName: two
  percentageOfNodesToScore: 0
",
    );
    assert_eq!(configuration.parallelism, 4);
    assert_eq!(configuration.leader_election.retry_period.as_millis(), 500);
    assert_eq!(configuration.leader_election.resource_name, "mine");
    assert_eq!(configuration.client_connection.burst, 9);
    assert!(!configuration.enable_contention_profiling && configuration.delay_cache_until_active);
    assert_eq!(
        (
            configuration.pod_initial_backoff_s,
            configuration.pod_max_backoff_s
        ),
        (2, 20)
    );
    let profile = |name| configuration.profile(name).expect("a profile");
    assert_eq!(profile("one").percentage_of_nodes_to_score, Some(40));
    assert_eq!(profile("two").percentage_of_nodes_to_score, Some(0));
    assert_eq!(accepted("").profiles[0].percentage_of_nodes_to_score, None);
}

#[test]
fn every_rule_of_the_document() {
    let cases: [(&str, &[&str]); 22] = [
        (
            "parallelism: 0",
            &["3:14: parallelism: Invalid value: 0: should be an integer value greater than zero"],
        ),
        (
            "clientConnection: {burst: -1}",
            &["3:27: clientConnection.burst: Invalid value: -1: must be non-negative"],
        ),
        (
            "percentageOfNodesToScore: 101",
            &["3:27: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
        ),
        (
            "profiles: [{percentageOfNodesToScore: -1}]",
            &[
                "3:39: profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
            ],
        ),
        (
            "podInitialBackoffSeconds: 0",
            &["3:27: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            "podMaxBackoffSeconds: 0",
            &[
                "3:23: podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds",
            ],
        ),
        (
            "leaderElection: {resourceLock: x}",
            &[
                "3:32: leaderElection.resourceLock: Invalid value: \"x\": resourceLock value must be \"leases\"",
            ],
        ),
        (
            "leaderElection: {leaseDuration: 10s}",
            &[
                "3:33: leaderElection.leaseDuration: Invalid value: 10s: must be greater than `RenewDeadline`",
            ],
        ),
        (
            "leaderElection: {retryPeriod: -1s}",
            &["3:31: leaderElection.retryPeriod: Invalid value: -1s: must be greater than zero"],
        ),
        (
            "leaderElection: {renewDeadline: -1s, leaseDuration: -1ms}",
            &[
                "3:33: leaderElection.renewDeadline: Invalid value: -1s: must be greater than zero",
                "3:53: leaderElection.leaseDuration: Invalid value: -1ms: must be greater than zero",
            ],
        ),
        (
            "leaderElection: {leaderElect: false, retryPeriod: -1s, resourceLock: x, resourceName: ''}",
            &[],
        ),
        (
            "leaderElection: {leaseDuration: 15}",
            &["3:33: expected a string, found the number 15 (help: put it in quotes)"],
        ),
        (
            "leaderElection: {leaseDuration: 15 s}",
            &["3:33: time: invalid duration \"15 s\" (help: write it like 15s, 500ms or 1h30m)"],
        ),
        (
            "profiles: [{schedulerName: ''}]",
            &["3:28: profiles[0].schedulerName: Required value"],
        ),
        (
            "profiles: [{schedulerName: a}, {}]",
            &["3:32: profiles[1].schedulerName: Required value"],
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            &["3:48: profiles[1].schedulerName: Duplicate value: profiles[0].schedulerName"],
        ),
        (
            "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {queueSort: {disabled: [{name: x}]}}",
            &[
                "6:13: profiles[1].plugins.queueSort: Invalid value: config.PluginSet{Enabled:[]config.Plugin(nil), Disabled:[]config.Plugin{config.Plugin{Name:\"x\", Weight:0}}}: must be the same for all profiles",
            ],
        ),
        (
            "extenders: [{urlPrefix: 'http://a', prioritizeVerb: p, httpTimeout: 5s}]",
            &[
                "3:1: strew does not call extenders (help: without them it would not decide as this cluster does; take them out to see what the plugins say)",
                "3:14: extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            ],
        ),
        (
            "extenders: [{bindVerb: a}, {bindVerb: b}]",
            &[
                "3:1: extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can implement bind",
                "3:1: strew does not call extenders (help: without them it would not decide as this cluster does; take them out to see what the plugins say)",
            ],
        ),
        (
            "extenders: [{managedResources: [{name: example.com/a}, {name: example.com/a}, {name: cpu}]}]",
            &[
                "3:1: strew does not call extenders (help: without them it would not decide as this cluster does; take them out to see what the plugins say)",
                "3:63: extenders[0].managedResources[1].name: Invalid value: \"example.com/a\": duplicate extender managed resource name",
                "3:86: extenders[0].managedResources[2].name: Invalid value: \"cpu\": is an invalid extended resource name",
            ],
        ),
        ("extenders: []", &[]),
        ("profiles: []", &[]),
    ];
    for (body, expected) in cases {
        match expected.is_empty() {
            true => drop(accepted(body)),
            false => refused(body, expected),
        }
    }
}

#[test]
fn reading_is_strict_and_says_everything() {
    refused(
        "paralelism: 3
parallelism: 0
parallelism: 0
profiles:
- schedulername: a
  plugins:
    score:
      enabled: {name: x}
      disabled: [{nam: y}, 3]
  pluginConfig:
  - name: PodTopologySpread
    args: {defaultingtype: List, defaultConstraints: [{maxSkew: x, topologyKey: a b, whenUnsatisfiable: Never}]}
podMaxBackoffSeconds: '3'
podInitialBackoffSeconds: 0
",
        &[
            "3:1: unknown field \"paralelism\", did you mean \"parallelism\"?",
            "5:1: the key \"parallelism\" is there twice",
            "7:3: unknown field \"schedulername\", did you mean \"schedulerName\"?",
            "10:7: expected a list, found an object",
            "11:19: unknown field \"nam\", did you mean \"name\"?",
            "11:28: expected an object, found the number 3",
            "14:12: unknown field \"defaultingtype\", did you mean \"defaultingType\"?",
            "14:65: expected an integer, found the string \"x\" (help: leave the quotes out)",
            "14:81: profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            "14:105: profiles[0].pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: \"Never\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            "15:23: expected an integer, found the string \"3\" (help: leave the quotes out)",
            "16:27: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
        ],
    );
}

#[test]
fn json_is_read_as_well() {
    let json = r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
 "parallelism": 0, "profiles": [{"plugins": {"score": {"enabled": [{"name": "X"}]}}}]}"#;
    refused_text(
        json,
        &[
            "2:17: parallelism: Invalid value: 0: should be an integer value greater than zero",
            "2:77: ScorePlugin \"X\" does not exist",
        ],
    );
}

#[test]
fn only_a_configuration_is_one() {
    let help = "(help: strew reads a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 (or v1beta1, v1beta2, v1beta3), or a Policy of v1)";
    let cases = [
        (
            "apiVersion: kubescheduler.config.k8s.io/v1alpha2\nkind: KubeSchedulerConfiguration",
            format!(
                "1:13: no configuration: apiVersion is \"kubescheduler.config.k8s.io/v1alpha2\", did you mean \"kubescheduler.config.k8s.io/v1\"? {help}"
            ),
        ),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfigration",
            format!(
                "2:7: no configuration: kind is \"KubeSchedulerConfigration\", did you mean \"KubeSchedulerConfiguration\"? {help}"
            ),
        ),
        (
            "apiVersion: v1\nkind: Pod",
            format!("2:7: no configuration: kind is \"Pod\" {help}"),
        ),
        ("parallelism: 3", format!("1:1: kind is missing {help}")),
        ("[]", format!("1:1: expected a configuration {help}")),
        ("# nothing", "1:1: there is nothing in this file".to_owned()),
        (
            "a: b: c",
            "1:5: not valid YAML: mapping values are not allowed in this context".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        refused_text(text, &[&expected]);
    }
    let two = format!("{}\n---\n{}", v1(""), v1(""));
    refused_text(
        &two,
        &["5:1: a configuration is one document, and this is another"],
    );
}

#[test]
fn a_document_among_manifests_is_recognised() {
    let mut sources = Sources::new();
    let list = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Policy, priorities: [{name: X, weight: 1}]}]}";
    let text = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: a}}\n---\n{}parallelism: 7\n---\n{list}\n",
        v1("")
    );
    sources.add("all.yaml", text);
    let reading = read::read(&sources);
    assert!(!reading.has_errors());
    let found: Vec<_> = reading
        .objects
        .iter()
        .filter(|located| match &located.object {
            read::KubeObject::Other(other) => is_configuration(&other.api_version, &other.kind),
            _ => false,
        })
        .collect();
    assert_eq!(found.len(), 2);
    let gates = FeatureGates::default();
    let mut names = Interner::new();
    let given = Given::Document(&sources, &found[0].origin);
    let configuration = configure(given, &gates, &mut names).expect("a good configuration");
    assert_eq!(configuration.parallelism, 7);
    let given = Given::Document(&sources, &found[1].origin);
    let errors = configure(given, &gates, &mut names).expect_err("a bad policy");
    let place = errors[0].place.expect("a place");
    assert_eq!((place.line, place.column), (9, 89));
    assert!(!is_configuration("policy/v1", "Policy"));
    assert!(is_configuration(
        "kubescheduler.config.k8s.io/v9",
        "KubeSchedulerConfiguration"
    ));
}

#[test]
fn choices_and_gates_reach_all_profiles() {
    let text = v1("profiles: [{schedulerName: a}, {schedulerName: b}]");
    let mut configuration =
        configured_with(&text, "MinDomainsInPodTopologySpread=false").expect("good");
    configuration.set_choices(Compat::Strew, TieRule::Random(7));
    for profile in &configuration.profiles {
        assert!(!profile.gates.min_domains && profile.gates.match_label_keys);
        assert_eq!(
            (profile.compat, profile.ties),
            (Compat::Strew, TieRule::Random(7))
        );
    }
    assert_eq!(configuration.notes.len(), 1);
}

#[test]
fn many_mistakes_are_counted() {
    let n_profiles = 1500;
    let body = format!(
        "profiles: [{}]",
        "{percentageOfNodesToScor: 1}, ".repeat(n_profiles)
    );
    let errors = configured_with(&v1(&body), "").expect_err("many mistakes");
    assert_eq!(errors.len(), 1001);
    // 500 more unknown fields, and names that are missing (1500) and so alike (1499).
    assert_eq!(errors[1000], "3499 more problems are not listed");
    let body = format!(
        "apiVersion: v1\nkind: Policy\npriorities: [{{name: SelectorSpreadingPriority, weight: {0}}}, {{name: EvenPodsSpreadPriority, weight: {0}}}]",
        i64::MAX
    );
    let errors = configured_with(&body, "DefaultPodTopologySpread=false").expect_err("too much");
    assert_eq!(
        errors,
        [
            "3:1: the weights of the score plugins add up to 9223372036854775807: strew keeps total scores in 31 bits, so at most 21474836"
        ]
    );
}

#[test]
fn no_text_panics() {
    let good = v1(
        "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: 3}]}}\n  pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: []}}]\n",
    );
    // Whatever is left of it, or stands in place of a part.
    for cut in 0..good.len() {
        let _ = configured_with(&good[..cut], "");
        for part in ["", "null", "[]", "{}", "9e99", "*a", "é"] {
            let _ = configured_with(&format!("{}{part}{}", &good[..cut], &good[cut + 1..]), "");
        }
    }
}
