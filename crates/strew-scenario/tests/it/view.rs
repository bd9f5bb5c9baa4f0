//! A moment of a simulated cluster as plain values.

use std::ops::ControlFlow;
use std::sync::Arc;

use strew_apiserver::admission::{AdmissionContext, PriorityClasses, RuntimeClasses, admit_object};
use strew_apiserver::object::Object;
use strew_apiserver::workloads::NameSource;
use strew_manifest::read::{Sources, read};
use strew_model::Interner;
use strew_model::time::Span;
use strew_scenario::moment;
use strew_scheduler::PluginId;
use strew_sim::{Blueprint, Settings, Simulation, Timing};
use strew_view::facts::Facts;
use strew_view::moment::Frame;
use strew_view::view::View;
use strew_view::workload::Workloads;
use strew_wire::config::{AdmissionOptions, FeatureGates, Given, configure};

const MANIFESTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 12
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: example.com/quota}], containers: [{name: c, image: i}]}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {kubernetes.io/hostname: n2}}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}
";

fn blueprint() -> Blueprint {
    let mut names = Interner::new();
    let gates = FeatureGates::default();
    let configuration = configure(Given::Nothing, &gates, &mut names).unwrap();
    Blueprint::of(&configuration, names)
}

fn objects() -> Vec<Object> {
    objects_of(&[MANIFESTS.to_owned()])
}

/// The objects of texts; those that the API server refuses are left out.
fn objects_of(texts: &[String]) -> Vec<Object> {
    let mut sources = Sources::new();
    for (number, text) in texts.iter().enumerate() {
        sources.add(format!("{number}.yaml"), text.as_str());
    }
    let options = AdmissionOptions::KUBERNETES_1_36;
    let context = AdmissionContext {
        priority_classes: &PriorityClasses::new(std::iter::empty()),
        runtime_classes: &RuntimeClasses::default(),
        options: &options,
    };
    let mut names = NameSource::new(0);
    let all = read(&sources).objects.into_iter();
    let all = all.filter_map(|l| Some(admit_object(l.object, &context, &mut names).ok()?.0));
    all.map(Object::of_wire).collect()
}

#[test]
fn a_moment_of_the_simulated_cluster_is_seen_as_a_dump_of_it_would_be() {
    let objects = objects();
    let blueprint = blueprint();
    let mut frame = Frame {
        names: blueprint.names.clone(),
        profiles: blueprint.profiles.clone(),
        workloads: Workloads::of_objects(&objects),
        keys: Vec::new(),
    };
    let mut simulation = Simulation::new(Settings {
        seed: 1,
        objects,
        options: AdmissionOptions::KUBERNETES_1_36,
        scheduler: blueprint,
        elects: false,
        controllers: Arc::new(strew_sim::controllers),
        timing: Timing::default(),
        groups: Vec::new(),
        autoscaler: None,
    });
    let start = View::of(moment(&simulation), &mut frame, None);
    assert_eq!(start.world.pods.len(), 1, "nobody has acted");
    let minute = Span::from_secs(60);
    let ran = simulation.run_until(minute, &mut |_| ControlFlow::Continue(()));
    assert!(ran.is_ok());
    let view = View::of(moment(&simulation), &mut frame, Some(&start));
    let summary = &view.summaries[0];
    let shown = (
        summary.replicas,
        summary.placed,
        summary.ready,
        summary.n_pending(),
    );
    assert_eq!(shown, (12, 5, 5, 7));
    let blocked = &summary.pending[0].blocked;
    assert_eq!(
        blocked.by,
        [PluginId::NodeResourcesFit, PluginId::PodTopologySpread]
    );
    assert!(
        blocked.message.starts_with("0/2 nodes are available"),
        "{blocked:?}"
    );
    let counts: Vec<i32> = view.spreads[0][0].domains.iter().map(|d| d.count).collect();
    assert_eq!((counts, view.spreads[0][0].skew), (vec![2, 3], 1));
    let gated = &view.summaries[1].pending[0].blocked;
    assert_eq!(gated.by, [PluginId::SchedulingGates]);
    let later = View::of(moment(&simulation), &mut frame, Some(&view));
    assert_eq!(
        (later.summaries[0].before, later.summaries[0].placed),
        (5, 0)
    );
    assert_eq!(later.spreads[0][0].skew_before, Some(1));
}

/// All that a view says, as text.
fn said(view: &View) -> String {
    let world = &view.world;
    let nodes = (0..world.pods.len()).map(|entry| world.node_of(entry).map(|n| world.node_name(n)));
    let nodes: Vec<Option<&str>> = nodes.collect();
    format!(
        "{:#?} {:#?} {nodes:?} {:?} {:#?} {:#?} {:#?} {:#?} {:#?}",
        world.workloads,
        world.pods,
        world.members,
        world.finished,
        view.outcomes,
        view.summaries,
        view.spreads,
        view.nodes
    )
}

#[test]
fn facts_alone_show_what_a_simulation_of_them_shows_at_second_0() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../strew/tests/cases");
    let mut n_pods = 0;
    for case in std::fs::read_dir(cases).unwrap() {
        let case = case.unwrap().path();
        let files = std::fs::read_dir(&case).into_iter().flatten();
        let files = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
        let files: Vec<String> = files.filter(|text| text.contains("apiVersion")).collect();
        let objects = objects_of(&files);
        let blueprint = blueprint();
        let frame = Frame {
            names: blueprint.names.clone(),
            profiles: blueprint.profiles.clone(),
            workloads: Workloads::of_objects(&objects),
            keys: Vec::new(),
        };
        let start = Simulation::start_of(&objects);
        let facts = Facts::of_objects(&objects, start, &blueprint.names, &blueprint.profiles);
        let simulation = Simulation::new(Settings {
            seed: 1,
            objects,
            options: AdmissionOptions::KUBERNETES_1_36,
            scheduler: blueprint,
            elects: false,
            controllers: Arc::new(strew_sim::controllers),
            timing: Timing::default(),
            groups: Vec::new(),
            autoscaler: None,
        });
        let view = View::of(facts.moment(), &mut frame.clone(), None);
        let played = View::of(moment(&simulation), &mut frame.clone(), None);
        n_pods += view.world.pods.len();
        assert_eq!(said(&view), said(&played), "{}", case.display());
    }
    assert!(n_pods > 100, "{n_pods} pods were looked at");
}
