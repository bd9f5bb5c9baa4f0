//! The built-in story: deploy, roll out, scale to half, lose the largest zone, restore it.
//!
//! Each step is done as kubectl would, and is over when the cluster rests.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::{Value, json};
use strew_apiserver::ApiError;
use strew_apiserver::object::{
    DaemonSet, Deployment, Key, Node, Pod, ReplicaSet, StatefulSet, Stored, moment,
};
use strew_controllers::rollout::RESTARTED_AT;
use strew_model::time::Span;
use strew_sim::Simulation;

use crate::failure::Failure;
use crate::progress::Progress;
use strew_view::moment::Frame;
use strew_view::skews::Skews;

/// Longer than anything that the cluster waits for in silence: the 5 minutes of a pod on a lost node, and of a pod
/// that no event has freed.
const QUIET: Span = Span::from_secs(6 * 60);

/// A step that never comes to rest ends nevertheless.
const STEP_MAX: Span = Span::from_secs(60 * 60);

/// Time for a lost zone's pods to be evicted and replaced.
const LOST_MAX: Span = Span::from_secs(10 * 60);

/// A step of the story.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StepName {
    /// Make all pods, and place them
    Deploy,
    /// Restart every Deployment, StatefulSet and DaemonSet
    Rollout,
    /// Halve the replicas
    Scale,
    /// Lose the zone with most pods
    Lose,
    /// Bring it back
    Restore,
}

impl StepName {
    const ALL: [Self; 5] = [
        Self::Deploy,
        Self::Rollout,
        Self::Scale,
        Self::Lose,
        Self::Restore,
    ];

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Rollout => "rollout",
            Self::Scale => "scale",
            Self::Lose => "lose",
            Self::Restore => "restore",
        }
    }
}

/// A step that is over.
pub(crate) struct Done {
    pub(crate) step: StepName,
    /// When the cluster came to rest, or the step was ended.
    pub(crate) at: Span,
    /// Whether it came to rest.
    pub(crate) rests: bool,
    /// What was lost or restored.
    pub(crate) target: Option<String>,
    /// What was not done, and why.
    pub(crate) refused: Vec<String>,
}

impl Done {
    /// The step, and what it is done to.
    pub(crate) fn name(&self) -> String {
        match &self.target {
            Some(target) => format!("{} {target}", self.step.name()),
            None => self.step.name().to_owned(),
        }
    }
}

/// Told of each step when it is over.
pub(crate) type Told<'a> = &'a mut dyn FnMut(&Simulation, &mut Frame, &Skews, &Done);

/// Hears of each step when it was begun, and of each instant when it is over.
pub(crate) type Heard<'a> = &'a mut dyn FnMut(&Simulation, Option<&Done>);

/// Plays the story up to a step; `told` hears of each when it is over.
///
/// # Errors
/// Some instant never ends.
pub(crate) fn play(
    simulation: &mut Simulation,
    frame: &mut Frame,
    until: StepName,
    progress: &Progress,
    heard: Heard<'_>,
    told: Told<'_>,
) -> Result<Skews, Failure> {
    let mut life = Life {
        skews: Skews::new(simulation.server(), frame),
        progress,
        heard,
        lost: (None, Vec::new()),
    };
    for step in StepName::ALL.into_iter().filter(|step| *step <= until) {
        let mut done = Done {
            step,
            at: simulation.elapsed(),
            rests: true,
            target: None,
            refused: Vec::new(),
        };
        life.skews.begin_step();
        life.act(simulation, &mut done);
        (life.heard)(simulation, Some(&done));
        let max = match step {
            StepName::Lose => LOST_MAX,
            _ => STEP_MAX,
        };
        life.rest(simulation, frame, max, &mut done)?;
        told(simulation, frame, &life.skews, &done);
    }
    Ok(life.skews)
}

/// Plays until the first step is over.
///
/// # Errors
/// Some instant never ends.
pub(crate) fn deploy(
    simulation: &mut Simulation,
    frame: &mut Frame,
    progress: &Progress,
) -> Result<(), Failure> {
    let until = StepName::Deploy;
    let nobody = &mut |_: &Simulation, _: Option<&Done>| {};
    play(
        simulation,
        frame,
        until,
        progress,
        nobody,
        &mut |_, _, _, _| {},
    )
    .map(drop)
}

struct Life<'a> {
    skews: Skews,
    progress: &'a Progress,
    heard: Heard<'a>,
    /// The zone or node that was lost, and its nodes.
    lost: (Option<String>, Vec<Arc<str>>),
}

impl Life<'_> {
    fn act(&mut self, simulation: &mut Simulation, done: &mut Done) {
        let refused = match done.step {
            StepName::Deploy => Vec::new(),
            StepName::Rollout => restart_all(simulation),
            StepName::Scale => halve_all(simulation),
            StepName::Lose => {
                self.lost = largest(simulation);
                each_node(&self.lost.1, |node| simulation.lose(node))
            }
            StepName::Restore => each_node(&self.lost.1, |node| simulation.restore(node)),
        };
        if matches!(done.step, StepName::Lose | StepName::Restore) {
            done.target.clone_from(&self.lost.0);
        }
        done.refused = refused;
    }

    /// Lives on until nothing is written any more, at most for so long.
    fn rest(
        &mut self,
        simulation: &mut Simulation,
        frame: &mut Frame,
        max: Span,
        done: &mut Done,
    ) -> Result<(), Failure> {
        let end = later(simulation.elapsed(), max);
        let mut seen = None;
        let mut last = simulation.elapsed();
        loop {
            let stop = later(last, QUIET).min(end);
            let ran = simulation.run_until(stop, &mut |simulation| {
                (self.heard)(simulation, None);
                if simulation.server().has_changed(&mut seen) {
                    last = simulation.elapsed();
                    self.skews.observe(simulation.server(), frame);
                    self.progress.show(done.step.name(), last);
                }
                ControlFlow::Continue(())
            });
            if let Err(stuck) = ran {
                return Err(Failure::stuck(stuck));
            }
            done.rests = later(last, QUIET) <= stop;
            if done.rests || stop >= end {
                done.at = if done.rests { last } else { end };
                return Ok(());
            }
        }
    }
}

fn later(time: Span, by: Span) -> Span {
    Span(time.0.saturating_add(by.0))
}

// === what kubectl would do ===

fn keys<T: Stored>(simulation: &Simulation, is_meant: impl Fn(&T) -> bool) -> Vec<Key> {
    let all = simulation.server().tables().of::<T>().iter();
    let key = |object: &Arc<T>| Key {
        kind: T::KIND,
        name: object.meta().name.clone(),
    };
    all.filter(|object| is_meant(object)).map(key).collect()
}

/// Edits each; what was refused, in words.
fn edit_all(
    simulation: &mut Simulation,
    keys: Vec<Key>,
    change: impl Fn(&mut Value) -> Result<(), String>,
) -> Vec<String> {
    let mut refused = Vec::new();
    for key in keys {
        if let Err(error) = simulation.edit(&key, &mut |value| change(value)) {
            refused.push(format!("{key}: {error}"));
        }
    }
    refused
}

/// Does it to each; what was refused, in words.
fn each_node(nodes: &[Arc<str>], mut act: impl FnMut(&str) -> Result<(), ApiError>) -> Vec<String> {
    let refused = nodes.iter().filter_map(|node| act(node).err());
    refused.map(|error| error.to_string()).collect()
}

fn restart_all(simulation: &mut Simulation) -> Vec<String> {
    let mut all = keys::<Deployment>(simulation, |d| d.spec.paused != Some(true));
    all.extend(keys::<StatefulSet>(simulation, |_| true));
    all.extend(keys::<DaemonSet>(simulation, |_| true));
    let now = moment::to_wire(simulation.now()).0.to_string();
    edit_all(simulation, all, |value| {
        value["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT] = json!(now);
        Ok(())
    })
}

fn halve_all(simulation: &mut Simulation) -> Vec<String> {
    let mut all = keys::<Deployment>(simulation, |_| true);
    all.extend(keys::<ReplicaSet>(simulation, |set| {
        set.meta.controller().is_none()
    }));
    all.extend(keys::<StatefulSet>(simulation, |_| true));
    edit_all(simulation, all, |value| {
        let replicas = value["spec"]["replicas"].as_i64().unwrap_or(1);
        if replicas > 1 {
            value["spec"]["replicas"] = json!(replicas / 2);
        }
        Ok(())
    })
}

const ZONE_KEYS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];

fn zone_of(node: &Node) -> Option<&str> {
    ZONE_KEYS.iter().find_map(|key| node.meta.label(key))
}

/// The zone with most pods and its nodes; where there are no zones, the node with most pods.
fn largest(simulation: &Simulation) -> (Option<String>, Vec<Arc<str>>) {
    let tables = simulation.server().tables();
    let nodes = || tables.of::<Node>().iter();
    let has_zones = nodes().any(|node| zone_of(node).is_some());
    let mut domains: BTreeMap<&str, (usize, Vec<Arc<str>>)> = BTreeMap::new();
    for node in nodes() {
        let name = &node.meta.name.name;
        let domain = match has_zones {
            true => zone_of(node),
            false => Some(&**name),
        };
        let Some(domain) = domain else { continue };
        let pods = tables.pods_on(name).filter(|pod| Pod::is_active(pod));
        let (n_pods, names) = domains.entry(domain).or_default();
        *n_pods += pods.count();
        names.push(Arc::clone(name));
    }
    // Of equals the first by name.
    let fullest = domains
        .into_iter()
        .rev()
        .max_by_key(|(_, (n_pods, _))| *n_pods);
    match fullest {
        Some((domain, (_, names))) => (Some(domain.to_owned()), names),
        None => (None, Vec::new()),
    }
}
