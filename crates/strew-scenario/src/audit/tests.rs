use strew_apiserver::object::{Object, Pod};
use strew_manifest::read::{Sources, read};

use super::cause::{Over, over};
use super::values::{Domain, Event};
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
