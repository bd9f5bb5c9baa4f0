//! A cluster of manifests, and what became of it as text.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use strew_apiserver::admission::{AdmissionContext, PriorityClasses, RuntimeClasses, admit_object};
use strew_apiserver::object::{Object, Pod};
use strew_apiserver::workloads::NameSource;
use strew_manifest::read::{KubeObject, Sources, read, render};
use strew_model::Interner;
use strew_model::time::Span;
use strew_sim::{Blueprint, Settings, Simulation, Timing};
use strew_wire::config::AdmissionOptions;
use strew_wire::config::{FeatureGates, Given, configure};

/// A simulation under test.
pub(crate) struct Life {
    pub(crate) sim: Simulation,
}

/// Nodes `n0`, `n1`, … of 4 cores, in zones `a`, `b`, … in turn.
pub(crate) fn nodes(n: usize, zones: usize) -> String {
    let one = |i: usize| {
        let zone = char::from(b'a' + u8::try_from(i % zones).unwrap());
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{i}, labels: {{kubernetes.io/hostname: n{i}, \
             topology.kubernetes.io/zone: {zone}}}}}\nstatus: {{allocatable: {{cpu: \"4\", memory: 8Gi, pods: \"110\"}}}}\n"
        )
    };
    (0..n).map(one).collect()
}

/// Admitted objects of a text.
pub(crate) fn objects(text: &str) -> Vec<Object> {
    let mut sources = Sources::new();
    sources.add("test.yaml", text);
    let reading = read(&sources);
    assert!(
        !reading.has_errors(),
        "{}",
        render(&reading.diagnostics, &sources, false)
    );
    let classes = reading
        .objects
        .iter()
        .filter_map(|located| match &located.object {
            KubeObject::PriorityClass(class) => Some(&**class),
            _ => None,
        });
    let context = AdmissionContext {
        priority_classes: &PriorityClasses::new(classes),
        runtime_classes: &RuntimeClasses::default(),
        options: &AdmissionOptions::KUBERNETES_1_36,
    };
    let mut names = NameSource::new(0);
    let admitted = reading.objects.into_iter().map(|located| {
        let (object, _) = admit_object(located.object, &context, &mut names).unwrap();
        Object::of_wire(object)
    });
    admitted.collect()
}

/// kube-scheduler as it is by default.
fn default_scheduler() -> Blueprint {
    let mut names = Interner::new();
    let gates = FeatureGates::default();
    let configuration = configure(Given::Nothing, &gates, &mut names).unwrap();
    Blueprint::of(&configuration, names)
}

impl Life {
    /// A cluster of these manifests.
    pub(crate) fn of(text: &str, seed: u64) -> Self {
        Self::with(text, seed, Timing::default())
    }

    /// The same, with these durations.
    pub(crate) fn with(text: &str, seed: u64, timing: Timing) -> Self {
        Self::made(&default_scheduler(), text, seed, timing)
    }

    /// The same, with this scheduler.
    pub(crate) fn decided_by(scheduler: &Blueprint, text: &str, seed: u64) -> Self {
        Self::made(scheduler, text, seed, Timing::default())
    }

    fn made(scheduler: &Blueprint, text: &str, seed: u64, timing: Timing) -> Self {
        let sim = Simulation::new(Settings {
            seed,
            objects: objects(text),
            options: AdmissionOptions::KUBERNETES_1_36,
            scheduler: scheduler.clone(),
            controllers: std::sync::Arc::new(strew_sim::controllers),
            elects: false,
            groups: Vec::new(),
            autoscaler: None,
            timing,
        });
        Self { sim }
    }

    /// Runs until this number of seconds after the start.
    pub(crate) fn until(&mut self, secs: u64) -> &mut Self {
        let end = Span::from_secs(secs);
        let ended = self.sim.run_until(end, &mut |_| ControlFlow::Continue(()));
        assert!(ended.unwrap().is_continue());
        self
    }

    /// A line for each node with its pods, and one for those that are on none.
    pub(crate) fn picture(&self) -> String {
        let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pod in self.sim.server().tables().of::<Pod>().iter() {
            let node = pod.node.as_deref().unwrap_or("-").to_owned();
            let state = match () {
                () if pod.is_terminating() => " terminating",
                () if pod.is_ready() => " ready",
                () => "",
            };
            let phase = pod.status.phase.name();
            let text = format!("{} {phase}{state}", pod.meta.name.name);
            lines.entry(node).or_default().push(text);
        }
        let line = |(node, pods): (&String, &Vec<String>)| format!("{node}: {}\n", pods.join(", "));
        lines.iter().map(line).collect()
    }
}
