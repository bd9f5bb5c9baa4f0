//! `strew place` compared with stored decisions: what moves, the effects of changes, short Placements; lint and explain
//! for Placements.

use serde_json::Value;

use crate::place::{annotated, clusters, held, on, small};
use crate::{json, stderr, stdout, strew};

/// Six clusters are held, over two regions of three.
fn uneven() -> String {
    let mut text = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                    metadata: {name: p, namespace: ns}\nspec: {numberOfClusters: 6, spreadPolicy: {spreadConstraints: \
                    [{topologyKey: region, topologyKeyType: Label}]}}\n"
        .to_owned();
    for region in ["east", "west", "eu"] {
        for i in 1..=3 {
            text += &format!(
                "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n\
                 metadata: {{name: {region}-{i}, labels: {{region: {region}}}}}\n"
            );
        }
    }
    text + &held(&["west-1", "west-2", "west-3", "eu-1", "eu-2", "eu-3"])
}

fn names(list: &Value) -> Vec<&str> {
    let names = list.as_array().unwrap().iter();
    names
        .map(|moved| moved["clusterName"].as_str().unwrap())
        .collect()
}

/// Issue 32, reb-default.json: users who come from OCM ask first what changes now.
#[test]
fn decisions_that_are_stored_are_what_an_answer_is_compared_with() {
    let run = on(&uneven(), "").assert().code(0);
    let text = stdout(&run);
    assert!(
        text.contains("against the stored decisions: 2 gone, 2 new, 4 stay"),
        "{text}"
    );
    assert!(text.contains("- eu-3  eu  moved away"), "{text}");
    let run = on(&uneven(), "-o json").assert().code(0);
    let change = &json(&run)["changes"][0];
    assert_eq!(names(&change["gone"]), ["eu-3", "west-3"]);
    assert_eq!(names(&change["new"]), ["east-1", "east-2"]);
    assert_eq!(change["stay"].as_array().unwrap().len(), 4);
    let counts: Vec<String> = change["topologies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| format!("{} {} {}", t["topology"][0], t["before"], t["after"]))
        .collect();
    assert_eq!(counts, ["\"east\" 0 2", "\"eu\" 3 2", "\"west\" 3 2"]);
}

/// Issue 32, reb-default-whatif.json: a loss was compared with a decision that was never made.
#[test]
fn a_what_if_starts_from_what_is_stored() {
    let run = on(&uneven(), "--what-if lose=region/eu").assert().code(0);
    let text = stdout(&run);
    assert!(text.contains("3 gone, 3 new, 3 stay"), "{text}");
    assert!(text.contains("- eu-1  eu  lost"), "{text}");
    let table: Vec<Vec<&str>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    for row in [
        ["TOPOLOGY", "BEFORE", "SELECTED", "CLUSTERS"],
        ["east", "0", "3", "3"],
        ["eu", "3", "0", "0"],
        ["west", "3", "3", "3"],
    ] {
        assert!(table.contains(&row.to_vec()), "{row:?}: {text}");
    }
    let run = on(&uneven(), "--what-if lose=region/eu -o json")
        .assert()
        .code(0);
    let change = &json(&run)["changes"][0];
    assert_eq!(names(&change["gone"]), ["eu-1", "eu-2", "eu-3"]);
    assert_eq!(change["gone"][0]["reason"], "lost");
    assert_eq!(names(&change["new"]), ["east-1", "east-2", "east-3"]);
    // Clusters that also move without the change are marked: two leave west-3 and eu-3 anyway.
    let run = on(&uneven(), "--what-if taint=east-3:full -o json")
        .assert()
        .code(0);
    let change = &json(&run)["changes"][0];
    assert_eq!(names(&change["gone"]), ["eu-3", "west-3"]);
    assert_eq!(change["gone"][0]["reason"], "anyway");
}

#[test]
fn clusters_are_added_tainted_and_labelled_and_placements_edited() {
    let term = "{topologyKey: zone, topologyKeyType: Label}";
    let spread = format!("{{numberOfClusters: 2, spreadPolicy: {{spreadConstraints: [{term}]}}}}");
    let after = |changes: &str| {
        let changes: Vec<String> = changes
            .split(' ')
            .map(|c| format!("--what-if {c}"))
            .collect();
        let run = on(&small(&spread), &format!("-o json {}", changes.join(" "))).assert();
        clusters(&run)
    };
    assert_eq!(after("taint=zone/a:full"), ["b1"]);
    assert_eq!(after("taint=zone/a:full untaint=a2:full"), ["a2", "b1"]);
    assert_eq!(after("taint=zone/a:full=1:PreferNoSelect"), ["a1", "b1"]);
    assert_eq!(after("lose=b1 add=c1,c2:zone=c"), ["a1", "c1"]);
    assert_eq!(after("lose=a1 label=a2:zone=c"), ["a2", "b1"]);
    assert_eq!(after("unlabel=b1:zone lose=a2"), ["a1", "b1"]);
    // A Placement of a file replaces the one of its name.
    let folder = std::env::temp_dir().join(format!("strew-edit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("edited.yaml");
    let edited = small("{numberOfClusters: 1}");
    std::fs::write(&file, edited.split("---").next().unwrap()).unwrap();
    let change = format!("--what-if edit={}", file.display());
    let run = on(&small(&spread), &change).assert().code(0);
    assert!(
        stdout(&run).contains("2 of 1 → 1 of 1 clusters"),
        "{}",
        stdout(&run)
    );
    assert!(
        stdout(&run).contains("1 gone, 0 new, 1 stay"),
        "{}",
        stdout(&run)
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_region_is_lost_in_turn() {
    let run = on(&uneven(), "--what-if lose-each=region").assert().code(0);
    let text = stdout(&run);
    let table: Vec<Vec<&str>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    for row in [
        ["LOST", "CLUSTERS", "SHORT", "UNEVEN", "GONE", "NEW"],
        ["region=east", "3", "0", "0", "0", "0"],
        ["region=eu", "3", "0", "0", "3", "3"],
    ] {
        assert!(table.contains(&row.to_vec()), "{row:?}: {text}");
    }
    // With one region already lost, the loss of another one leaves too few clusters.
    let args = "--what-if lose=region/east --what-if lose-each=region -o json";
    let run = on(&uneven(), args).assert().code(1);
    let list = json(&run);
    assert_eq!(list["kind"], "PlacementLossList");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0]["value"], "eu");
    assert_eq!(items[0]["short"], serde_json::json!(["ns/p"]));
    assert_eq!(items[0]["changes"][0]["gone"].as_array().unwrap().len(), 3);
}

/// Issue 32, w116.json: moves by Balance were attributed to the loss of a cluster that no Placement could choose.
#[test]
fn a_loss_that_concerns_nobody_moves_nothing() {
    let zoned = "[{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: zone, operator: Exists}]}}}]";
    let placement = |name: &str, n: usize| {
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
             metadata: {{name: {name}, namespace: ns}}\nspec: {{numberOfClusters: {n}, predicates: {zoned}}}\n"
        )
    };
    let mut text = small(&format!("{{numberOfClusters: 2, predicates: {zoned}}}"));
    text += "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: zz}\n";
    for (name, n) in [("a", 1), ("b", 2), ("q", 1), ("r", 2)] {
        text += &placement(name, n);
    }
    let run = on(&text, "-o json --what-if lose=zz").assert();
    for change in json(&run)["changes"].as_array().unwrap() {
        for moved in ["gone", "new"] {
            for moved in change[moved].as_array().unwrap() {
                assert_eq!(moved["reason"], "anyway", "{change}");
            }
        }
    }
}

#[test]
fn many_placements_begin_with_a_summary() {
    let one = |name: &str, n: usize| {
        format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
             metadata: {{name: {name}, namespace: ns}}\nspec: {{numberOfClusters: {n}}}\n"
        )
    };
    let mut text = small("{numberOfClusters: 9}");
    (0..30).for_each(|i| text += &one(&format!("q{i:02}"), 1));
    let run = on(&text, "").assert().code(1);
    let text = stdout(&run);
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(first, "31 Placements: 30 as asked for, 1 short");
    assert!(
        text.contains("3 of 9  NotAllDecisionsScheduled: 6 cluster decisions unscheduled"),
        "{text}"
    );
    assert!(
        text.contains("… and 30 more as asked for; -o wide or -n NAMESPACE shows them"),
        "{text}"
    );
}

#[test]
fn what_no_cluster_has_is_a_warning_of_answer_explanation_and_lint() {
    let typo = "{spreadPolicy: {spreadConstraints: [{topologyKey: zoen, topologyKeyType: Label}]}}";
    let run = on(&small(typo), "").assert().code(1);
    let told = "✗ PlacementSpreadSatisfied SpreadKeyMissing: no cluster has the label zoen: 3 clusters not spread by it";
    assert!(stdout(&run).contains(told), "{}", stdout(&run));
    let run = on(&small(typo), "--explain -o json").assert().code(1);
    let warnings = &json(&run)["items"][0]["warnings"];
    assert_eq!(
        warnings,
        &serde_json::json!(["no cluster has the label zoen"])
    );
    let lint = |text: &str| strew("lint -").stdin(text).assert();
    let run = lint(&small(typo)).code(1);
    let text = stdout(&run);
    assert!(text.contains("warning[unknown-topology-key]"), "{text}");
    assert!(
        text.contains("no cluster of the files has the label zoen"),
        "{text}"
    );
    assert!(text.contains("did you mean zone?"), "{text}");
    let weights = annotated(
        r#"{strew.dev/topology-weights: '{"zone": {"a": 2, "bb": 1}}'}"#,
        &typo.replace("zoen", "zone"),
    );
    let run = lint(&weights).code(1);
    let text = stdout(&run);
    assert!(text.contains("warning[unknown-topology]"), "{text}");
    assert!(
        text.contains("no cluster of the files has zone=bb, which has weight 1"),
        "{text}"
    );
    let run = on(&weights, "--explain").assert().code(0);
    let text = stdout(&run);
    assert!(
        text.contains("! no cluster has zone=bb, which has weight 1"),
        "{text}"
    );
    // Weights and loads are among the numbers.
    assert!(
        text.contains("TOPOLOGY TUPLE  SELECTED COUNT  WEIGHT  LOAD"),
        "{text}"
    );
    assert!(
        text.contains("(a)                          0       2  0.50"),
        "{text}"
    );
    let few = "{spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label, minGroups: 3}]}}";
    let run = lint(&small(few)).code(1);
    let text = stdout(&run);
    assert!(text.contains("warning[too-few-topologies]"), "{text}");
    assert!(
        text.contains("the clusters of the files are in 2 zone, minGroups is 3"),
        "{text}"
    );
    let unmatched = annotated(
        r#"{strew.dev/replicas: '6', strew.dev/replica-division: '{"weights": [{"labelSelector": {"matchLabels": {"zone": "c"}}, "weight": 2}]}'}"#,
        "{}",
    );
    let run = lint(&unmatched).code(1);
    let text = stdout(&run);
    assert!(text.contains("warning[unmatched-weight]"), "{text}");
    assert!(
        text.contains("no cluster of the files matches weights[0], which has weight 2"),
        "{text}"
    );
    let fine = lint(&small(&typo.replace("zoen", "zone"))).code(0);
    assert_eq!(stdout(&fine), "1 file, 4 objects: nothing found\n");
    let run = lint(&small("{numberOfClusters: -1}")).code(1);
    assert!(
        stdout(&run).contains("numberOfClusters"),
        "{}",
        stdout(&run)
    );
}

#[test]
fn a_placement_is_explained_by_its_name() {
    let other = small("{numberOfClusters: 9}").replace("name: p,", "name: q,");
    let text = small("{numberOfClusters: 1}") + "---\n" + other.split("---").next().unwrap();
    let run = strew("explain placement/p -")
        .stdin(&*text)
        .assert()
        .code(0);
    let shown = stdout(&run);
    assert!(shown.contains("Placement ns/p: 1 of 1 clusters"), "{shown}");
    assert!(shown.contains("Scores of the prioritizers"), "{shown}");
    assert!(!shown.contains("ns/q"), "{shown}");
    let run = strew("explain placement p - -o json")
        .stdin(&*text)
        .assert()
        .code(0);
    assert_eq!(json(&run)["items"].as_array().unwrap().len(), 1);
    let run = strew("explain placement/x -")
        .stdin(&*text)
        .assert()
        .code(2);
    assert!(
        stderr(&run).contains("there is no Placement \"x\""),
        "{}",
        stderr(&run)
    );
}

/// The exit code is about the shown Placements.
#[test]
fn a_namespace_answers_for_its_own_placements() {
    let short = small("{numberOfClusters: 9}").replace("namespace: ns", "namespace: other");
    let text = small("{numberOfClusters: 1}") + "---\n" + short.split("---").next().unwrap();
    on(&text, "").assert().code(1);
    on(&text, "-n ns").assert().code(0);
    on(&text, "-n other").assert().code(1);
    let run = on(&text, "-n oter").assert().code(2);
    assert!(
        stderr(&run).contains("did you mean other?"),
        "{}",
        stderr(&run)
    );
}

/// As the API server, which validates a custom resource before decoding it.
#[test]
fn null_is_no_predicate() {
    let run = on(&small("{predicates: [null]}"), "").assert().code(2);
    assert!(
        stderr(&run).contains("spec.predicates[0]"),
        "{}",
        stderr(&run)
    );
    assert!(stderr(&run).contains("an object"), "{}", stderr(&run));
}
