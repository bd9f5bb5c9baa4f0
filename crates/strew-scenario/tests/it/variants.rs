//! Parameters, and what variants change.

use strew_manifest::read::KubeObject;
use strew_scenario::format::{Replicas, Variant, Verb};

use crate::{STREAM, good};

fn replicas(variant: &Variant) -> Option<i32> {
    let mut objects = variant.objects.iter();
    objects.find_map(|located| match &located.object {
        KubeObject::Deployment(deployment) => deployment.spec.as_ref()?.replicas,
        _ => None,
    })
}

#[test]
fn a_parameter_reaches_the_scenario_and_the_objects_of_each_variant() {
    let stream = STREAM.replace("replicas: 6", "replicas: \"${n}\"");
    let stream = stream.replace(
        "image: nginx",
        "image: nginx, command: [\"echo ${HOME} ${n}\"]",
    );
    let text = format!(
        "{stream}spec:
  params: {{n: 6}}
  timeline: [{{at: \"${{n}}s\", scale: {{deployment/web: \"${{n}}\"}}}}]
  variants:
  - {{name: nine, set: {{params: {{n: 9}}}}}}
  - {{name: patched, patch: {{deployment/web: {{spec: {{replicas: 2}}}}}}}}
"
    );
    let loaded = good(&text);
    let found: Vec<_> = loaded
        .variants
        .iter()
        .map(|variant| {
            let step = &variant.scenario.timeline[0];
            let Verb::Scale(scaled) = &step.verbs[0].verb else {
                panic!("it scales");
            };
            (
                replicas(variant),
                step.at.unwrap().0 / 1_000_000_000,
                scaled[0].1,
            )
        })
        .collect();
    let expected = [(Some(6), 6, 6), (Some(9), 9, 9), (Some(2), 6, 6)];
    assert_eq!(
        found,
        expected.map(|(now, at, then)| (now, at, Replicas::Count(then)))
    );
    let KubeObject::Deployment(deployment) = &loaded.variants[1].objects[0].object else {
        panic!("a deployment comes first");
    };
    let pod = deployment
        .spec
        .as_ref()
        .unwrap()
        .template
        .spec
        .as_ref()
        .unwrap();
    assert_eq!(
        pod.containers[0].command,
        Some(vec!["echo ${HOME} 9".to_owned()])
    );
}

#[test]
fn a_variant_sets_lists_whole_and_takes_fields_away() {
    let text = format!(
        "{STREAM}spec:
  seeds: 3
  until: 5m
  nodeGroups: [{{name: a, size: 1, template: {{}}}}]
  timeline: [{{at: 1m, cordon: n1}}, {{at: 2m}}]
  variants: [{{name: v, set: {{until: null, seeds: 7, timeline: [{{at: 3m}}]}}}}]
"
    );
    let loaded = good(&text);
    let variant = &loaded.variants[1].scenario;
    assert_eq!(variant.until, None);
    assert_eq!(variant.seeds.get(), 7);
    assert_eq!(variant.timeline.len(), 1);
    assert_eq!(variant.node_groups.len(), 1);
    assert_eq!(loaded.variants[0].scenario.timeline.len(), 2);
}
