use serde_json::json;
use strew_apiserver::object::{Object, Pod};
use strew_manifest::read::{Sources, read};

use super::cause::{Over, over};
use super::seeds::worst;
use super::values::{Case, Domain, Event};
use super::{domains, keys, questions};

fn objects(text: &str) -> Vec<Object> {
    let mut sources = Sources::new();
    sources.add("in.yaml".to_owned(), text.to_owned());
    let reading = read(&sources);
    let objects = reading.objects.into_iter();
    objects
        .map(|located| Object::of_wire(located.object))
        .collect()
}

fn named(names: &[&str]) -> Vec<Domain> {
    let domain = |name: &&str| Domain {
        name: (*name).to_owned(),
        nodes: 1,
        pods: 0,
    };
    names.iter().map(domain).collect()
}

#[test]
fn each_set_of_domains_is_asked_once() {
    let domains = named(&["a", "b", "c"]);
    let sets = |at_once| -> Vec<Vec<String>> {
        let all = questions("zone", &domains, &[Event::Loss], at_once);
        all.into_iter().map(|question| question.domains).collect()
    };
    assert_eq!(sets(1), [["a"], ["b"], ["c"]]);
    assert_eq!(sets(2), [["a", "b"], ["a", "c"], ["b", "c"]]);
    assert_eq!(sets(3), [["a", "b", "c"]]);
    let all = questions("zone", &domains, &Event::ALL, 1);
    assert_eq!(all.len(), 9);
    assert_eq!(all[1].event, Event::Shift);
}

#[test]
fn domains_are_those_of_nodes_by_natural_order() {
    let node = |name: &str, label: &str| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{label}}}}}\n"
        )
    };
    let text = [
        node("n1", "zone: z10"),
        node("n2", "zone: z2"),
        node("n3", "zone: z2"),
        node("n4", "other: x"),
    ];
    let objects = objects(&text.concat());
    let (found, n_without) = domains(&objects, "zone");
    let found: Vec<(&str, usize)> = found.iter().map(|d| (d.name.as_str(), d.nodes)).collect();
    assert_eq!((found, n_without), (vec![("z2", 2), ("z10", 1)], 1));
    assert_eq!(keys(&objects).keys().collect::<Vec<_>>(), ["other", "zone"]);
}

#[test]
fn constraints_over_the_key_are_told_apart() {
    let known = ["zone".to_owned(), "host".to_owned()].into();
    let of = |constraints: &str| {
        let pod = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, labels: {{app: web}}}}\nspec: {{containers: [{{name: a, image: a}}], topologySpreadConstraints: [{constraints}]}}\n"
        );
        let objects = objects(&pod);
        let Some(Object::Pod(pod)) = objects.first() else {
            panic!("no pod")
        };
        let pod: &Pod = pod;
        over(pod, "zone", &known)
    };
    let constraint = |key: &str, skew: i32, when: &str, app: &str| {
        format!(
            "{{maxSkew: {skew}, topologyKey: {key}, whenUnsatisfiable: {when}, labelSelector: {{matchLabels: {{app: {app}}}}}}}"
        )
    };
    let (hard, soft) = ("DoNotSchedule", "ScheduleAnyway");
    assert_eq!(of(""), Over::Missing);
    assert_eq!(of(&constraint("host", 1, hard, "web")), Over::Missing);
    assert_eq!(
        of(&constraint("rack", 1, hard, "web")),
        Over::UnknownKey("rack".to_owned())
    );
    assert_eq!(
        of(&constraint("zone", 1, hard, "api")),
        Over::SelectorMisses
    );
    assert_eq!(of(&constraint("zone", 1, soft, "web")), Over::Soft);
    let both = [
        constraint("zone", 3, hard, "web"),
        constraint("zone", 1, soft, "web"),
    ];
    assert_eq!(of(&both.join(", ")), Over::Hard(3, None));
}

/// A run of a case: verdicts by workload, what is ready of 3, and the endpoints of a Service.
fn run(seed: u64, rows: &[(&str, &str, u32)], endpoints: usize, names: &[&str]) -> Case {
    let row = |&(name, verdict, ready): &(&str, &str, u32)| {
        json!({
            "kind": "Deployment", "namespace": "default", "name": name, "verdict": verdict,
            "wanted": 3, "before": 3, "atOnce": ready, "fewest": ready, "ready": ready,
            "secondsShort": 0, "secondsWithoutReady": 0, "sum": format!("{ready} of 3"), "seed": seed,
        })
    };
    let blocked = |name: &&str| json!({"object": name, "pods": 1, "code": "budget", "why": "-"});
    let case = json!({
        "event": "drain", "domains": ["a"], "atRest": true, "seconds": 60,
        "headroom": {"needsMilliCpu": 1, "freeMilliCpu": 2, "needsBytes": 1, "freeBytes": 2},
        "workloads": rows.iter().map(row).collect::<Vec<_>>(),
        "services": [{"namespace": "default", "name": "web", "before": 3, "atOnce": endpoints}],
        "blocked": names.iter().map(blocked).collect::<Vec<_>>(),
    });
    serde_json::from_value(case).unwrap()
}

#[test]
fn of_several_seeds_the_worst_is_told_with_their_number() {
    let runs = [
        run(0, &[("api", "SURVIVES", 3), ("web", "SURVIVES", 3)], 2, &[]),
        run(
            1,
            &[("api", "SURVIVES", 2), ("web", "OUTAGE", 3)],
            0,
            &["deployment/web"],
        ),
        run(2, &[("api", "SURVIVES", 3), ("web", "DEGRADED", 2)], 1, &[]),
        run(
            3,
            &[("api", "SURVIVES", 3), ("web", "OUTAGE", 1)],
            2,
            &["deployment/web"],
        ),
    ];
    let case = worst(runs.into()).unwrap();
    let told = case.workloads.iter();
    let told: Vec<_> = told
        .map(|row| {
            (
                row.of(),
                row.verdict.as_str(),
                row.ready,
                row.seed,
                row.seeds,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("deployment/web".to_owned(), "OUTAGE", 1, 3, 2),
            ("deployment/api".to_owned(), "SURVIVES", 2, 1, 4),
        ]
    );
    assert_eq!(case.workloads[0].sum, "1 of 3 (in 2 of 4 seeds)");
    assert_eq!(case.workloads[1].sum, "2 of 3");
    assert_eq!(case.services[0].at_once, 0);
    assert_eq!(case.blocked.len(), 1);
    assert!(worst(Vec::new()).is_none());
}
