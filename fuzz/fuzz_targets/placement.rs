//! Any text as the spec of a Placement: it is refused with reasons, or decided over a small fleet, the same each time.
//! What the decision calls misconfigured was told with its field before.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use strew_apiserver::admission::SetDefaults;
use strew_apiserver::validation::Validate;
use strew_manifest::ocm::Placement;
use strew_manifest::read::{KubeObject, Sources, read, render};
use strew_model::{Instant, Interner};
use strew_placement::machine::{Effect, Input, Limits, Outcome, PlacementMachine};
use strew_placement::{Code, explain};
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::facts;

const NOW: Instant = Instant::from_secs(1_000);

/// The object that the spec is put into.
const HEAD: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: p
  namespace: ns
  annotations:
    strew.dev/topology-weights: '{\"zone\": {\"a\": 2, \"b\": 0}}'
    strew.dev/topology-groups: '{\"zone\": {\"maxGroups\": 3}}'
    strew.dev/replicas: '17'
    strew.dev/replica-division: '{\"scoreCoordinate\": {\"builtIn\": \"ResourceAllocatableCPU\"}, \"minPerCluster\": 2}'
spec:
";

/// Eight clusters in two regions of two zones, with a taint, claims, amounts and a score here and there.
static FLEET: LazyLock<Vec<KubeObject>> = LazyLock::new(|| {
    let mut text = String::from(
        "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: s}\nspec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}\n---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {name: s, namespace: ns}\nspec: {clusterSet: s}\n---\napiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\nmetadata: {name: r, namespace: c1}\nstatus: {scores: [{name: s, value: 30}], validUntil: '1970-01-01T00:20:00Z'}\n",
    );
    for i in 0..8 {
        let (region, zone) = (i / 4, ["a", "b"][i / 2 % 2]);
        let taints = match i {
            3 => "[{key: k, value: v, effect: NoSelect, timeAdded: '1970-01-01T00:16:00Z'}]",
            5 => "[{key: k, effect: NoSelectIfNew}]",
            _ => "[]",
        };
        text += &format!(
            "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: c{i}, labels: {{region: r{region}, zone: {zone}}}}}\nspec: {{taints: {taints}}}\nstatus: {{clusterClaims: [{{name: rack, value: k{}}}], allocatable: {{cpu: {i}}}, capacity: {{cpu: 8}}}}\n",
            i % 3
        );
    }
    let mut sources = Sources::new();
    sources.add("fleet", text);
    read(&sources)
        .objects
        .into_iter()
        .map(|located| located.object)
        .collect()
});

fuzz_target!(|spec: &str| {
    let indented: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let mut sources = Sources::new();
    sources.add("in", format!("{HEAD}{indented}"));
    let reading = read(&sources);
    let _ = render(&reading.diagnostics, &sources, true);
    for located in reading.objects {
        if let KubeObject::Placement(placement) = located.object {
            check(*placement);
        }
    }
});

fn check(mut placement: Placement) {
    placement.set_defaults();
    if !placement.validate().is_empty() {
        return;
    }
    let _ = placement.warnings();
    let told = facts::misconfigured(&placement);
    let (first, again) = (decide(&placement), decide(&placement));
    assert_eq!(first.1, again.1, "the same each time");
    let (is_misconfigured, clusters) = first;
    assert!(!is_misconfigured || !told.is_empty(), "{placement:?}");
    let asked = placement.spec.and_then(|spec| spec.number_of_clusters);
    if let Some(asked) = asked.and_then(|n| usize::try_from(n).ok()) {
        assert!(clusters.len() <= asked);
    }
    let mut once = clusters.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), clusters.len(), "nobody twice");
    assert!(!is_misconfigured || clusters.is_empty());
}

/// Whether it is misconfigured, and what it gets.
fn decide(placement: &Placement) -> (bool, Vec<String>) {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let inputs: Vec<Input> = FLEET
        .iter()
        .filter_map(|object| facts::inputs(object, &mut names, &mut cel))
        .collect();
    let fact = facts::placement(placement, &mut names, &mut cel);
    let mut machine = PlacementMachine::new(names, Limits::production(), NOW);
    for input in inputs {
        machine.handle(NOW, input);
    }
    let explanation = explain::explain(machine.hub(), NOW, &fact, &cel);
    machine.handle(NOW, Input::PlacementSet(Box::new(fact.clone())));
    while let Some(effect) = machine.poll_effect(&cel) {
        if let Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. } = effect {
            let outcome = Outcome::Ok { revision: 1 };
            machine.handle(
                NOW,
                Input::Outcome {
                    effect: id,
                    outcome,
                },
            );
        }
    }
    let hub = machine.hub();
    let held = hub
        .ledger
        .of(fact.namespace, fact.name)
        .flat_map(|d| d.decisions.iter());
    let clusters = held.map(|d| hub.names.text(d.cluster).to_owned()).collect();
    let code = &explanation.schedule.code;
    (matches!(code, Code::Misconfigured(_)), clusters)
}
