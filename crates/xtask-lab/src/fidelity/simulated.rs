//! Runs a scenario in the simulated cluster, with the same steps, the same condition of rest and the same outcomes as
//! on a real one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde_json::json;
use strew_apiserver::object::{Node, Object};
use strew_manifest::read::{KubeObject, Located, Origin, Severity, Sources};
use strew_model::Interner;
use strew_model::time::Span;
use strew_scenario::format::{NodeTarget, Verb, load};
use strew_scenario::run::errands::Errands;
use strew_scenario::run::{Configure, Plan, Refused, verbs};
use strew_sim::{Blueprint, Simulation};
use strew_wire::config::{FeatureGates, Given, configure, is_configuration};
use xtask_lab::lab::KUBELET_LABEL;

use super::observe;
use super::outcome::Outcome;
use super::scenario::Scenario;
use super::snapshot::{CALM, RESTLESS_FOR, SETTLED_WITHIN, Snapshot};

/// About the time of a call of kubectl.
const CALL: Duration = Duration::from_millis(150);

/// The pause between two looks at a cluster that comes to no rest.
const LOOK: Duration = Duration::from_millis(400);

/// How the filter workers of the simulated kube-scheduler find feasible nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterWorkers {
    /// In visiting order, as nearly always on a lab of two cores: the first worker is done with its nodes before
    /// another one runs.
    InOrder,
    /// With as many racing workers as configured, on a machine that is drawn from the seed.
    Raced,
}

/// Prepares a file, so that it can be played with any seed.
///
/// If the file is wrong, with every mistake in it.
/// With everything that is wrong with the file.
pub(crate) fn plan(scenario: &Scenario, workers: FilterWorkers) -> anyhow::Result<Plan> {
    let mut sources = Sources::new();
    sources.add(&scenario.name, scenario.text.clone());
    let loaded = load(&sources);
    let errors = loaded.diagnostics.iter();
    let errors = errors.filter(|diagnostic| diagnostic.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|d| d.message.clone()).collect();
    ensure!(errors.is_empty(), "{}", errors.join("; "));
    let base = loaded.variants.into_iter().next();
    let base = base.context("there is no Scenario in the file")?;
    let (configurations, objects): (Vec<Located>, Vec<Located>) =
        base.objects.iter().cloned().partition(is_scheduler);
    let configuration = configurations.into_iter().next().map(|c| c.origin);
    let scheduler = scheduler(sources, configuration, workers);
    Plan::new(&base.scenario, &objects, scheduler)
        .map_err(|problems| anyhow!("it cannot be played: {problems:?}"))
}

fn is_scheduler(located: &Located) -> bool {
    match &located.object {
        KubeObject::Other(other) => is_configuration(&other.api_version, &other.kind),
        _ => false,
    }
}

/// Decides as kube-scheduler does, also between several best nodes.
fn scheduler(sources: Sources, configuration: Option<Origin>, workers: FilterWorkers) -> Configure {
    Arc::new(move |gates: &FeatureGates| {
        let mut names = Interner::new();
        let given = match &configuration {
            Some(origin) => Given::Document(&sources, origin),
            None => Given::Nothing,
        };
        let mut configuration = configure(given, gates, &mut names).ok()?;
        if workers == FilterWorkers::InOrder {
            configuration.parallelism = 1;
        }
        Some(Blueprint::of(&configuration, names))
    })
}

/// Plays the plan with a seed; returns the outcome of second 0 and of every step.
///
/// As on a real control plane a step begins when its moment has passed and the step before has come to rest.
///
/// # Errors
/// If something never comes to rest.
pub(crate) fn play(plan: &Plan, seed: u64) -> anyhow::Result<Vec<Outcome>> {
    let mut simulation = plan.simulation(seed);
    simulation.report_at_once();
    let mut errands = Errands::new(plan, seed);
    let mut outcomes = vec![outcome(&mut simulation, Vec::new())?];
    for step in &plan.scenario().timeline {
        let at = step.at.unwrap_or(simulation.elapsed());
        if simulation.elapsed() < at {
            live_until(&mut simulation, at)?;
        }
        let mut refused = Vec::new();
        for located in &step.verbs {
            // A verb's text begins with its name.
            let name = located.text.split(':').next().unwrap_or_default();
            for call in calls(&located.verb, &simulation) {
                let done = verbs::act(&call, &located.text, &mut simulation, &mut errands);
                let given_up = finish(&mut simulation, &mut errands)?;
                let n_refused = done.into_iter().chain(given_up).count();
                refused.extend(std::iter::repeat_n(name.to_owned(), n_refused));
                let over = after(simulation.elapsed(), CALL);
                live_until(&mut simulation, over)?;
            }
        }
        outcomes.push(outcome(&mut simulation, refused)?);
    }
    Ok(outcomes)
}

/// The outcome of a cluster at rest, or the workloads that do not come to rest.
fn outcome(simulation: &mut Simulation, refused: Vec<String>) -> anyhow::Result<Outcome> {
    let unsettled = match settled(simulation) {
        Ok(snapshot) => return Ok(observe::outcome(&snapshot, refused)),
        Err(error) => error,
    };
    let mut turnover = observe::Turnover::default();
    let end = after(simulation.elapsed(), RESTLESS_FOR);
    while simulation.elapsed() < end {
        turnover.look(&snapshot(simulation));
        let next = after(simulation.elapsed(), LOOK);
        live_until(simulation, next)?;
    }
    let last = snapshot(simulation);
    turnover.outcome(&last, refused).ok_or(unsettled)
}

/// The calls of kubectl that carry out a verb: if it names several nodes, one after the other is lost and restored.
fn calls(verb: &Verb, simulation: &Simulation) -> Vec<Verb> {
    let (targets, of): (_, fn(Vec<NodeTarget>) -> Verb) = match verb {
        Verb::Lose(targets) => (targets, Verb::Lose),
        Verb::Restore(targets) => (targets, Verb::Restore),
        Verb::Cordon(targets) => (targets, Verb::Cordon),
        Verb::Uncordon(targets) => (targets, Verb::Uncordon),
        other => return vec![other.clone()],
    };
    let is_chosen =
        |target: &NodeTarget| matches!(target, NodeTarget::MostPods(_) | NodeTarget::Lost);
    if targets.iter().any(is_chosen) {
        return vec![verb.clone()];
    }
    let names = targets.iter().flat_map(|target| match target {
        NodeTarget::Name(name) => vec![name.clone()],
        NodeTarget::Label(key, value) => labelled(simulation, key, value),
        NodeTarget::MostPods(_) | NodeTarget::Lost => Vec::new(),
    });
    names.map(|name| of(vec![NodeTarget::Name(name)])).collect()
}

fn labelled(simulation: &Simulation, key: &str, value: &str) -> Vec<String> {
    let nodes = simulation.server().tables().of::<Node>().iter();
    let nodes = nodes.filter(|node| node.meta.label(key) == Some(value));
    nodes.map(|node| node.meta.name.name.to_string()).collect()
}

/// Waits for errands that a verb left under way, as a caller of `kubectl drain` does; returns those that were given up.
fn finish(simulation: &mut Simulation, errands: &mut Errands) -> anyhow::Result<Vec<Refused>> {
    let deadline = after(simulation.elapsed(), SETTLED_WITHIN);
    let mut given_up = errands.act(simulation);
    while let Some(wake) = errands.next_wake() {
        let wake = wake.since(simulation.start());
        ensure!(wake <= deadline, "a drain comes to no end");
        live_until(simulation, wake)?;
        given_up.extend(errands.act(simulation));
    }
    let given_up = given_up.into_iter().map(|(_, refused)| refused);
    Ok(given_up.collect())
}

fn live_until(simulation: &mut Simulation, until: Span) -> anyhow::Result<()> {
    let _ = simulation.run_until(until, &mut |_| ControlFlow::Continue(()))?;
    Ok(())
}

/// The cluster when no component has work left and nothing has changed for a while.
fn settled(simulation: &mut Simulation) -> anyhow::Result<Snapshot> {
    let mut last_change = simulation.elapsed();
    let deadline = after(last_change, SETTLED_WITHIN);
    let mut calm = CALM;
    loop {
        let rest = after(last_change, calm).min(deadline);
        if is_changed_until(simulation, rest)? {
            last_change = simulation.elapsed();
            calm = CALM;
            ensure!(last_change < deadline, "the cluster does not settle");
            continue;
        }
        let snapshot = snapshot(simulation);
        match snapshot.unrest() {
            None if snapshot.calm() <= calm => return Ok(snapshot),
            None => calm = snapshot.calm(),
            Some(why) => {
                ensure!(rest < deadline, "the cluster does not settle: {why}");
                // Only a change can end the unrest.
                calm = SETTLED_WITHIN;
            }
        }
    }
}

/// Runs until `until`, or until the end of an instant at which an object was written; returns whether there was one.
fn is_changed_until(simulation: &mut Simulation, until: Span) -> anyhow::Result<bool> {
    let seen = simulation.server().listen();
    let flow = simulation.run_until(until, &mut |simulation| match simulation
        .server()
        .is_behind(&seen)
    {
        false => ControlFlow::Continue(()),
        true => ControlFlow::Break(()),
    })?;
    Ok(flow.is_break())
}

/// All objects as the API server would show them. A node's label says whether it has a kubelet, as in the lab.
fn snapshot(simulation: &Simulation) -> Snapshot {
    let objects = simulation.server().tables().all();
    let objects = objects.iter().map(|object| {
        let mut value = object.to_json();
        if let Object::Node(node) = object
            && simulation.has_kubelet(&node.meta.name.name)
        {
            value["metadata"]["labels"][KUBELET_LABEL] = json!("runs");
        }
        value
    });
    Snapshot::of(objects.collect())
}

fn after(moment: Span, duration: Duration) -> Span {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Span(moment.0.saturating_add(nanos))
}
