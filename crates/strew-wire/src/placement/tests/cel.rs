use std::collections::BTreeSet;

use strew_model::Interner;
use strew_placement::ClusterPredicate;

use super::object;
use crate::placement::cel::CelSelectors;
use crate::placement::facts;
use strew_manifest::read::KubeObject;

fn told(text: &str, names: &mut Interner, cel: &mut CelSelectors) {
    match object(text) {
        KubeObject::ManagedCluster(wire) => drop(facts::cluster(&wire, names, cel)),
        KubeObject::AddOnPlacementScore(wire) => drop(facts::scores(&wire, names, cel)),
        other => panic!("{other:?}"),
    }
}

fn cluster(version: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: c1, labels: {{version: {version}}}}}"
    )
}

fn scores(value: i32) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\nmetadata: {{name: demo, namespace: c1}}\nstatus: {{scores: [{{name: gpu, value: {value}}}]}}"
    )
}

#[test]
fn answers_follow_the_cluster_and_its_scores() {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let c1 = names.intern("c1");
    let expressions = [
        r#"semver(managedCluster.metadata.labels.version).isGreaterThan(semver("1.30.0"))"#
            .to_owned(),
        r#"managedCluster.scores("demo").exists(s, s.value > 80)"#.to_owned(),
    ];
    let selector = cel.selector(&expressions, &mut names).expect("it compiles");
    let selector = selector.expect("there are expressions");
    assert_eq!(selector.scores, Some([names.intern("demo")].into()));
    let again = cel.selector(&expressions, &mut names);
    assert_eq!(again, Ok(Some(selector.clone())));
    assert!(!cel.holds(selector.id, c1), "it is not there");
    told(&cluster("1.31.0"), &mut names, &mut cel);
    assert!(!cel.holds(selector.id, c1), "an error is no match");
    told(&scores(90), &mut names, &mut cel);
    assert!(cel.holds(selector.id, c1));
    assert!(cel.holds(selector.id, c1), "the answer that is kept");
    told(&cluster("1.29.0"), &mut names, &mut cel);
    assert!(!cel.holds(selector.id, c1));
    told(&cluster("1.31.0"), &mut names, &mut cel);
    told(&scores(70), &mut names, &mut cel);
    assert!(!cel.holds(selector.id, c1));
    told(&scores(81), &mut names, &mut cel);
    assert!(cel.holds(selector.id, c1));
    cel.remove_scores(c1, "demo");
    assert!(!cel.holds(selector.id, c1));
    cel.remove_cluster(c1);
    assert!(!cel.holds(selector.id, c1));
}

#[test]
fn what_is_no_bool_or_costs_too_much_is_no_match() {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    told(&cluster("1.31.0"), &mut names, &mut cel);
    let c1 = names.intern("c1");
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let costly = (0..3).fold("true".to_owned(), |inner, i| {
        format!("{list}.all(x{i}, {list}.all(y{i}, {inner}))")
    });
    for (text, expected) in [
        (r#""abc""#, false),
        ("managedCluster.metadata.labels.zone == 'a'", false),
        (
            r#"managedCluster.status.version == {} && managedCluster.status.conditions == null"#,
            true,
        ),
        (
            "managedCluster.kind == 'ManagedCluster' && !managedCluster.spec.hubAcceptsClient",
            true,
        ),
        (&costly[..], false),
    ] {
        let selector = cel.selector(&[text.to_owned()], &mut names);
        let selector = selector.expect("it compiles").expect("it is there");
        assert_eq!(cel.holds(selector.id, c1), expected, "{text}");
    }
    // A name that is computed may be any.
    let computed = ["managedCluster.scores(managedCluster.metadata.name).size() > 0".to_owned()];
    let selector = cel.selector(&computed, &mut names).expect("it compiles");
    assert_eq!(selector.expect("there is one").scores, None);
}

#[test]
fn a_selector_that_nothing_uses_is_freed_with_its_answers() {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let c1 = names.intern("c1");
    told(&cluster("1.31.0"), &mut names, &mut cel);
    let mut id = |cel: &mut CelSelectors, expression: &str| {
        let selector = cel.selector(&[expression.to_owned()], &mut names);
        selector.expect("it compiles").expect("it has one").id
    };
    let kept = id(&mut cel, "true");
    let freed = id(&mut cel, "1 == 1");
    assert!(cel.holds(kept, c1) && cel.holds(freed, c1));
    cel.sweep(&BTreeSet::from([kept]));
    assert_eq!(cel.len(), 1);
    assert!(!cel.holds(freed, c1), "it is not there any more");
    let other = id(&mut cel, "1 == 2");
    assert_eq!(other, freed, "the place is used again");
    assert!(!cel.holds(other, c1), "the answer of another selector");
    assert!(cel.holds(kept, c1));
    assert_ne!(id(&mut cel, "1 == 1"), other);
}
