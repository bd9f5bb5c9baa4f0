//! `strew place`: the proposal's examples number by number, bad input, what-if, exit codes.

use std::collections::BTreeMap;

use serde_json::Value;
use snapbox::cmd::OutputAssert;
use snapbox::file;

use crate::{json, stderr, stdout, strew};

const FLEET: &str = "examples/placement/fleet.yaml";

/// The clusters of all decisions, in order.
pub(crate) fn clusters(run: &OutputAssert) -> Vec<String> {
    let list = json(run);
    assert_eq!(list["kind"], "PlacementDecisionList");
    let items = list["items"].as_array().unwrap();
    let decisions = items
        .iter()
        .flat_map(|item| item["status"]["decisions"].as_array().unwrap());
    decisions
        .map(|d| d["clusterName"].as_str().unwrap().to_owned())
        .collect()
}

/// The file, whether it is about the fleet, the exit code, and the number of selected clusters of each zone.
type UseCase = (&'static str, bool, i32, &'static [(&'static str, usize)]);

/// Runs with a text on standard input.
pub(crate) fn on(text: &str, args: &str) -> snapbox::cmd::Command {
    strew(&format!("place - {args}")).stdin(text)
}

/// A Placement `p` with this spec, in flow style, and the fleet of three clusters in two zones.
pub(crate) fn small(spec: &str) -> String {
    annotated("{}", spec)
}

pub(crate) fn annotated(annotations: &str, spec: &str) -> String {
    let mut text = format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
         metadata: {{name: p, namespace: ns, annotations: {annotations}}}\nspec: {spec}\n"
    );
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        text += &format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n\
             metadata: {{name: {name}, labels: {{zone: {zone}}}}}\n"
        );
    }
    text
}

/// The previous clusters of the Placement.
pub(crate) fn held(clusters: &[&str]) -> String {
    let each = clusters
        .iter()
        .map(|c| format!("{{clusterName: {c}, reason: ''}}"));
    let each: Vec<String> = each.collect();
    format!(
        "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\n\
         metadata: {{name: p-decision-1, namespace: ns, labels: {{cluster.open-cluster-management.io/placement: p,\n\
         cluster.open-cluster-management.io/decision-group-index: '0', cluster.open-cluster-management.io/decision-group-name: ''}}}}\n\
         status: {{decisions: [{}]}}\n",
        each.join(", ")
    )
}

#[test]
fn the_worked_example_of_the_proposal_comes_out_number_by_number() {
    let run = strew("place examples/placement/worked-example.yaml --explain")
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/place-worked-example.txt"]);
    let run = strew("place examples/placement/worked-example.yaml -o json")
        .assert()
        .code(0);
    assert_eq!(clusters(&run), ["c1", "c5"]);
}

#[test]
fn the_explanation_is_there_for_programs_too() {
    let command = "place examples/placement/worked-example.yaml --explain";
    let run = strew(&format!("{command} -o yaml")).assert().code(0);
    run.stdout_eq(file!["snapshots/place-worked-example.yaml"]);
    let run = strew(&format!("{command} -o json")).assert().code(0);
    let list = json(&run);
    assert_eq!(list["kind"], "PlacementExplanationList");
    let result = &list["items"][0];
    assert_eq!(result["selectorResults"][1]["final"]["c5"], 250);
    assert_eq!(
        result["selectorResults"][1]["excluded"],
        serde_json::json!({"c2": "zone"})
    );
    // The output has only the requested state: after the loss, and of one namespace.
    let text = small("{numberOfClusters: 1}");
    let run = on(&text, "--explain -o json --what-if lose=a1").assert();
    let result = &json(&run.code(0))["items"][0];
    assert_eq!(result["selectedClusters"], serde_json::json!(["a2"]));
    let run = on(&text, "--explain -o json -n other").assert().code(2);
    assert!(stderr(&run).contains("there is no Placement in namespace \"other\""));
    assert!(stderr(&run).contains("there are ns"), "{}", stderr(&run));
    let run = on(&small("{numberOfClusters: -1}"), "--explain -o json").assert();
    let result = &json(&run.code(2))["items"][0];
    assert_eq!(result["error"], ":numberOfClusters must not be negative");
}

#[test]
fn every_use_case_of_the_proposal_comes_out_as_it_says() {
    let cases: [UseCase; 7] = [
        (
            "use-case-1",
            true,
            0,
            &[
                ("east-a", 1),
                ("east-b", 1),
                ("hangzhou-e", 2),
                ("west-a", 2),
            ],
        ),
        (
            "use-case-1-claims",
            false,
            0,
            &[("n1", 1), ("n3", 1), ("s1", 1)],
        ),
        ("use-case-2", true, 0, &[("east-a", 2), ("east-b", 2)]),
        (
            "use-case-3-max-skew-1",
            false,
            1,
            &[("a1", 1), ("a2", 1), ("b1", 1)],
        ),
        (
            "use-case-3-max-skew-2",
            false,
            0,
            &[("a1", 1), ("a2", 1), ("a3", 1), ("b1", 1)],
        ),
        (
            "use-case-4",
            true,
            0,
            &[("east-a", 1), ("east-b", 1), ("west-a", 2)],
        ),
        (
            "use-case-5",
            true,
            0,
            &[("east-a", 2), ("east-b", 2), ("west-a", 2)],
        ),
    ];
    for (name, of_fleet, code, expected) in cases {
        let fleet = if of_fleet { FLEET } else { "" };
        let run = strew(&format!(
            "place examples/placement/{name}.yaml {fleet} -o json"
        ));
        let mut counts = BTreeMap::<String, usize>::new();
        for cluster in clusters(&run.assert().code(code)) {
            // Only the zone of the fleet's clusters matters.
            let zone = if of_fleet {
                cluster.rsplit_once('-').unwrap().0
            } else {
                &cluster
            };
            *counts.entry(zone.to_owned()).or_default() += 1;
        }
        let expected: BTreeMap<String, usize> = expected
            .iter()
            .map(|&(zone, n)| (zone.to_owned(), n))
            .collect();
        assert_eq!(counts, expected, "{name}");
    }
}

#[test]
fn a_lost_region_shows_what_moves() {
    let command = format!("place examples/placement/use-case-4.yaml {FLEET}");
    let run = strew(&format!("{command} --what-if lose=region/us-east"))
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/place-lost-region.txt"]);
    // Naming the clusters has the same effect as naming their region.
    let run = strew(&format!(
        "{command} --what-if lose=west-a-1,west-a-2 -o json"
    ))
    .assert()
    .code(0);
    assert_eq!(
        clusters(&run),
        ["east-a-1", "east-b-1", "west-a-3", "west-a-4"]
    );
    // Without the fleet's other half, too few clusters are left.
    let run = strew(&format!(
        "{command} --what-if lose=region/us-east --what-if lose=west-a-3"
    ));
    let run = run.assert().code(1);
    assert!(
        stdout(&run).contains("4 of 4 → 3 of 4 clusters"),
        "{}",
        stdout(&run)
    );
    let run = strew(&format!("{command} --what-if lose=provider/alibaba"))
        .assert()
        .code(0);
    assert!(stdout(&run).contains("nothing moves"));
}

#[test]
fn what_cannot_be_lost_is_told_with_the_nearest() {
    let command = format!("place examples/placement/use-case-4.yaml {FLEET} --what-if");
    for (change, told) in [
        ("lose=region/us-est", "did you mean region/us-east?"),
        (
            "lose=west-a-9",
            "there is no cluster \"west-a-9\" in the files",
        ),
        ("lose=rack/1", "no cluster has rack at all"),
        ("gain=region/us-east", "known are lose=CLUSTERS"),
        (
            "lose-each=rack",
            "no cluster has rack, as a label or a claim",
        ),
        ("taint=west-a-1:x:NoSchedule", "is no effect: NoSelect"),
        ("add=west-a-1", "there is a cluster \"west-a-1\" already"),
    ] {
        let run = strew(&format!("{command} {change}")).assert().code(2);
        assert!(stderr(&run).contains(told), "{}", stderr(&run));
    }
}

#[test]
fn placements_are_decided_by_namespace_and_name_and_each_sees_the_earlier() {
    let one = |name: &str| {
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
             metadata: {{name: {name}, namespace: ns}}\nspec: {{numberOfClusters: 1}}\n"
        )
    };
    let text = format!("{}{}{}", small("{numberOfClusters: 1}"), one("z"), one("b"));
    let run = on(&text, "-o json").assert().code(0);
    // b, p, z: Balance sends each to a cluster without decisions.
    assert_eq!(clusters(&run), ["a1", "a2", "b1"]);
    let names: Vec<Value> = json(&run)["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["b-decision-1", "p-decision-1", "z-decision-1"]);
}

#[test]
fn groups_are_shown_and_written() {
    let spec = "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 1, decisionGroups: \
                [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {zone: b}}}}]}}}";
    let run = on(&small(spec), "-o json").assert().code(0);
    assert_eq!(clusters(&run), ["b1", "a1", "a2"]);
    let first = &json(&run)["items"][0]["metadata"]["labels"];
    assert_eq!(
        first["cluster.open-cluster-management.io/decision-group-name"],
        "canary"
    );
    let run = on(&small(spec), "").assert().code(0);
    let text = stdout(&run);
    assert!(text.contains("GROUP  NAME    CLUSTERS"), "{text}");
    assert!(text.contains("    0  canary         1"), "{text}");
}

/// The condition, the exit code, and the number of held clusters afterwards, of the two held before.
#[test]
fn what_makes_no_sense_is_told_with_its_place_and_empties_the_decisions() {
    let term = |key: &str| format!("{{topologyKey: {key}, topologyKeyType: Label}}");
    let cases = [
        ("{numberOfClusters: -1}".to_owned(), ":numberOfClusters must not be negative", "<stdin>:4:26"),
        (
            "{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [xxxx.expression]}}}]}".to_owned(),
            "Predicate:compilation failed: ERROR: <input>:1:1: undeclared reference to 'xxxx'",
            "<stdin>:4:79",
        ),
        (
            "{predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Foo}]}}}]}".to_owned(),
            "Predicate:\"Foo\" is not a valid label selector operator",
            "<stdin>:4:",
        ),
        (
            "{tolerations: [{operator: Equal}]}".to_owned(),
            "TaintToleration:If the key is empty, operator must be Exists.",
            "<stdin>:4:",
        ),
        (
            "{tolerations: [{key: a, operator: Exists, value: b}]}".to_owned(),
            "TaintToleration:If the operator is Exists, the value should be empty.",
            "<stdin>:4:",
        ),
        (
            "{prioritizerPolicy: {mode: Some}}".to_owned(),
            ":incorrect prioritizer policy mode: Some",
            "<stdin>:4:",
        ),
        (
            "{prioritizerPolicy: {configurations: [{scoreCoordinate: {builtIn: Foo}}]}}".to_owned(),
            ":incorrect builtin prioritizer: Foo",
            "<stdin>:4:",
        ),
        (
            "{prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn}}]}}".to_owned(),
            ":addOn should not be empty",
            "<stdin>:4:",
        ),
        (
            format!("{{spreadPolicy: {{spreadConstraints: [{}, {}]}}}}", term("zone"), term("zone")),
            "Spread:spreadConstraints[1]: duplicate topologyKey zone of type Label",
            "<stdin>:4:",
        ),
        (
            "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: '5'}}}".to_owned(),
            ":5 invalid type: string is not a percentage",
            "<stdin>:4:",
        ),
        (
            "{decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: ab, groupClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: In}]}}}]}}}".to_owned(),
            ":values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            "<stdin>:4:",
        ),
    ];
    for (spec, condition, place) in cases {
        let text = small(&spec) + &held(&["a1", "b1"]);
        let run = on(&text, "").assert().code(2);
        let (said, shown) = (stderr(&run), stdout(&run));
        assert!(
            shown.contains("✗ PlacementMisconfigured Misconfigured: "),
            "{shown}"
        );
        assert!(shown.contains(condition), "{shown}");
        assert!(said.contains(place), "{said}");
        assert!(said.contains("1 Placement is misconfigured"), "{said}");
        let run = on(&text, "-o json").assert().code(2);
        assert_eq!(clusters(&run), Vec::<String>::new(), "{spec}");
        // The annotation keeps them.
        let kept = annotated("{strew.dev/on-misconfigured: Keep}", &spec) + &held(&["a1", "b1"]);
        let run = on(&kept, "-o json").assert().code(2);
        assert_eq!(clusters(&run), ["a1", "b1"], "{spec}");
    }
}

#[test]
fn weights_that_cannot_be_read_are_told() {
    let spec = "{spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label}]}}";
    for (weights, told) in [
        (
            "{",
            "Spread:annotation strew.dev/topology-weights: EOF while parsing an object",
        ),
        (
            r#"{"zone": {"a": 1001}}"#,
            "Spread:topology weight of zone=a is 1001, not 0..1000",
        ),
        (
            r#"{"zone": {"a": 1.5}}"#,
            "Spread:annotation strew.dev/topology-weights: invalid type: floating point",
        ),
    ] {
        let text = annotated(
            &format!("{{strew.dev/topology-weights: '{weights}'}}"),
            spec,
        );
        let run = on(&text, "").assert().code(2);
        assert!(stdout(&run).contains(told), "{}", stdout(&run));
    }
}

#[test]
fn what_the_api_server_refuses_is_not_decided() {
    let cases = [
        (
            "{spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label, maxSkew: 0}]}}",
            "should be greater than or equal to 1",
        ),
        (
            "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 0%}}}",
            "should match '^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$'",
        ),
        ("{numberOfClusters: 2147483648}", "2147483648"),
        ("{numberOfCluster: 2}", "did you mean \"numberOfClusters\"?"),
    ];
    for (spec, told) in cases {
        let run = on(&small(spec), "").assert().code(2);
        assert!(stderr(&run).contains(told), "{}", stderr(&run));
        assert!(
            stderr(&run).contains("nothing was decided: 1 error in the input"),
            "{}",
            stderr(&run)
        );
        assert_eq!(stdout(&run), "");
    }
    let run = on(&small(cases[0].0), "-o json").assert().code(2);
    assert_eq!(json(&run)["kind"], "Diagnostics");
}

#[test]
fn numbers_and_selectors_that_find_too_little_are_a_no() {
    let cases = [
        (
            "{numberOfClusters: 2147483647}",
            1,
            "NotAllDecisionsScheduled: 2147483644 cluster decisions unscheduled",
            3,
        ),
        ("{numberOfClusters: 0}", 0, "NoManagedClusterMatched", 0),
        ("{}", 0, "AllDecisionsScheduled", 3),
        (
            "{predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: nowhere}}}}]}",
            1,
            "NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate",
            0,
        ),
        (
            "{clusterSets: [other]}",
            1,
            "NoIntersection: None of ManagedClusterSets [other] is bound to placement namespace",
            0,
        ),
        // No match, with an error: it compiles.
        (
            "{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['\"abc\"']}}}]}",
            1,
            "NoManagedClusterMatched",
            0,
        ),
    ];
    for (spec, code, told, n) in cases {
        let run = on(&small(spec), "").assert().code(code);
        assert!(stdout(&run).contains(told), "{spec}: {}", stdout(&run));
        let run = on(&small(spec), "-o json").assert().code(code);
        assert_eq!(clusters(&run).len(), n, "{spec}");
    }
}

#[test]
fn sets_and_bindings_of_the_files_decide_where_there_are_any() {
    let set = "---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: only-b}\n\
               spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {zone: b}}}}\n";
    let binding = |name: &str| {
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {{name: {name}, namespace: ns}}\nspec: {{clusterSet: {name}}}\n"
        )
    };
    let text = small("{}") + set;
    let run = on(&text, "").assert().code(1);
    assert!(
        stdout(&run).contains("NoManagedClusterSetBindings"),
        "{}",
        stdout(&run)
    );
    let bound = format!("{text}{}", binding("only-b"));
    assert_eq!(clusters(&on(&bound, "-o json").assert().code(0)), ["b1"]);
    // These two always exist.
    for name in ["global", "default"] {
        let bound = format!("{text}{}", binding(name));
        assert_eq!(
            clusters(&on(&bound, "-o json").assert().code(0)).len(),
            3,
            "{name}"
        );
    }
}

/// A dump is not validated again; objects that cannot be read prevent decisions, and the held clusters stay.
#[test]
fn a_set_of_an_unknown_kind_stops_what_would_choose_from_it() {
    let set = "---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: odd, uid: u}\n\
               spec: {clusterSelector: {selectorType: Magic}}\n---\napiVersion: cluster.open-cluster-management.io/v1beta2\n\
               kind: ManagedClusterSetBinding\nmetadata: {name: odd, namespace: ns}\nspec: {clusterSet: odd}\n";
    let text = small("{}") + set + &held(&["b1"]);
    let run = on(&text, "").assert().code(2);
    let told = "ns/p was not decided: ManagedClusterSet odd: selectorType Magic is not known";
    assert!(stderr(&run).contains(told), "{}", stderr(&run));
    assert_eq!(clusters(&on(&text, "-o json").assert().code(2)), ["b1"]);
}

#[test]
fn tolerations_end_at_the_moment_that_is_asked_about() {
    let text = small("{tolerations: [{key: gone, operator: Exists, tolerationSeconds: 10}]}").replace(
        "metadata: {name: b1, labels: {zone: b}}",
        "metadata: {name: b1, labels: {zone: b}}\nspec: {taints: [{key: gone, effect: NoSelect, timeAdded: '2026-01-01T00:00:00Z'}]}",
    );
    let n = |at: &str| clusters(&on(&text, &format!("-o json --at {at}")).assert().code(0)).len();
    assert_eq!(n("2026-01-01T00:00:09Z"), 3);
    assert_eq!(n("2026-01-01T00:00:10Z"), 2);
    let run = on(&text, "--explain --at 2026-01-01T00:00:10Z")
        .assert()
        .code(0);
    assert!(
        stdout(&run).contains("taint gone:NoSelect is not tolerated (1)"),
        "{}",
        stdout(&run)
    );
    let run = on(&text, "").assert().code(0);
    assert!(stderr(&run).contains("judged as of "), "{}", stderr(&run));
    on(&text, "--at soon").assert().code(2);
}

#[test]
fn a_placement_that_is_disabled_is_left_alone() {
    let text = annotated(
        "{cluster.open-cluster-management.io/experimental-scheduling-disable: 'true'}",
        "{numberOfClusters: 9}",
    );
    let run = on(&(text + &held(&["b1"])), "").assert().code(0);
    assert!(stdout(&run).contains("left alone"), "{}", stdout(&run));
}

#[test]
fn decisions_of_the_files_are_where_the_placement_stands() {
    // Steady keeps the held clusters; without it, the choice differs.
    let text = small("{numberOfClusters: 1}");
    assert_eq!(clusters(&on(&text, "-o json").assert().code(0)), ["a1"]);
    assert_eq!(
        clusters(&on(&(text + &held(&["b1"])), "-o json").assert().code(0)),
        ["b1"]
    );
}

#[test]
fn without_a_placement_or_a_file_nothing_is_decided() {
    let run = strew(&format!("place {FLEET}")).assert().code(2);
    assert!(stderr(&run).contains("there is no Placement in the files"));
    strew("place").assert().code(2);
    let run = strew("place nowhere.yaml").assert();
    assert!([2, 3].contains(&run.get_output().status.code().unwrap()));
    let run = strew(&format!(
        "place examples/shop.yaml {FLEET} -f examples/placement/use-case-4.yaml"
    ));
    let run = run.assert().code(0);
    assert!(
        stderr(&run).contains("of kinds that placement does not look at"),
        "{}",
        stderr(&run)
    );
}

#[test]
fn only_ascii_where_it_is_asked_for_and_help_has_examples() {
    let run = strew(&format!(
        "place examples/placement/use-case-4.yaml {FLEET} --ascii --explain --what-if lose=region/us-east"
    ));
    let run = run.assert().code(0);
    assert!(stdout(&run).is_ascii(), "{}", stdout(&run));
    let run = strew("place --help").assert().code(0);
    assert!(stdout(&run).contains("--what-if lose=region/us-east"));
}
