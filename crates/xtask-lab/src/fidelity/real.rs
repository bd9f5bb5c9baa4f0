//! Runs a scenario on a real control plane.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use xtask_lab::lab::{Component, Kubectl, Lab, Options, Scheduler, now, until};

use super::observe;
use super::outcome::Outcome;
use super::scenario::Scenario;
use super::snapshot::{RESTLESS_FOR, SETTLED_WITHIN, Snapshot};
use super::verb;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(400);

/// Plays the scenario on a control plane of its own; returns the outcome of second 0 and of every step.
///
/// Time is real here, so a step's moment is the earliest one: a step begins when `at` has passed and the step before
/// has come to rest. Its outcome is taken when nothing changes any more. `strew`: the program that decides in
/// kube-scheduler's place.
pub(crate) fn play(
    top: &Path,
    scenario: &Scenario,
    strew: Option<&Path>,
) -> anyhow::Result<Vec<Outcome>> {
    let options = Options {
        timing: scenario.timing.clone(),
        scheduler: match strew {
            None => Scheduler::Kube(scenario.scheduler.clone()),
            Some(_) => Scheduler::None,
        },
        feature_gates: scenario.feature_gates.clone(),
        grace: None,
    };
    let mut lab = Lab::start(top, &options)?;
    let mut in_its_place = strew
        .map(|strew| start_strew(&mut lab, strew, scenario))
        .transpose()?;
    let result = play_in(&mut lab, scenario);
    if let Some(strew) = &mut in_its_place {
        strew.expect_running()?;
    }
    // A component that has ended is the cause of all later failures; its output says why.
    lab.expect_running()?;
    result
}

/// strew as the cluster's only scheduler, configured as kube-scheduler would be.
pub(crate) fn start_strew(
    lab: &mut Lab,
    strew: &Path,
    scenario: &Scenario,
) -> anyhow::Result<Component> {
    let configured = match &scenario.scheduler {
        None => "--scheduler-name=default-scheduler",
        Some(configuration) => {
            let file = lab.folder().join("strew.json");
            std::fs::write(file, configuration.to_string())?;
            "--config=strew.json"
        }
    };
    let mut args = vec![
        "scheduler",
        "--kubeconfig=kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
        configured,
    ];
    // strew refuses gates of other components.
    let gates = scenario.feature_gates.iter();
    let gates = gates.filter(|(gate, _)| gate.contains("PodTopologySpread"));
    let gates: Vec<String> = gates
        .map(|(gate, on)| format!("--feature-gates={gate}={on}"))
        .collect();
    args.extend(gates.iter().map(String::as_str));
    lab.start_strew(strew, &args)
}

fn play_in(lab: &mut Lab, scenario: &Scenario) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    make_nodes(lab.kubectl(), &scenario.nodes)?;
    if !scenario.objects.is_empty() {
        verb::apply(lab.kubectl(), "apply", &scenario.objects)?;
    }
    let begin = now();
    outcomes.push(outcome(lab.kubectl(), Vec::new())?);
    for step in &scenario.steps {
        wait_for_moment(begin, step.at)?;
        let mut refused = Vec::new();
        for (verb, argument) in &step.verbs {
            if let Err(error) = verb::perform(lab.kubectl(), verb, argument) {
                // kubectl's drain repeats itself at length.
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default();
                eprintln!("  {}: {verb} was refused: {why}", step.text);
                refused.push(verb.clone());
            }
        }
        lab.expect_running()?;
        outcomes.push(outcome(lab.kubectl(), refused)?);
    }
    Ok(outcomes)
}

/// The outcome of a cluster at rest, or the workloads that do not come to rest.
fn outcome(kubectl: &Kubectl, refused: Vec<String>) -> anyhow::Result<Outcome> {
    let unsettled = match settled(kubectl) {
        Ok(snapshot) => return Ok(observe::outcome(&snapshot, refused)),
        Err(error) => error,
    };
    let mut turnover = observe::Turnover::default();
    let begin = now();
    let last = until("looking", 2 * RESTLESS_FOR, PAUSE, || {
        let snapshot = Snapshot::take(kubectl)?;
        turnover.look(&snapshot);
        Ok((begin.elapsed() >= RESTLESS_FOR).then_some(snapshot))
    })?;
    turnover.outcome(&last, refused).ok_or(unsettled)
}

/// Makes the nodes, and waits until all are Ready: the first pod finds them ready.
pub(crate) fn make_nodes(kubectl: &Kubectl, nodes: &[Value]) -> anyhow::Result<()> {
    if nodes.is_empty() {
        return Ok(());
    }
    verb::apply(kubectl, "apply", nodes)?;
    until("nodes are not ready", SETTLED_WITHIN, PAUSE, || {
        Ok(Snapshot::take(kubectl)?.unrest().is_none().then_some(()))
    })
}

pub(crate) fn wait_for_moment(begin: Instant, at: Duration) -> anyhow::Result<()> {
    let passed = || Ok((begin.elapsed() >= at).then_some(()));
    until("the moment", at + SETTLED_WITHIN, PAUSE, passed)
}

/// The cluster when no component has work left and nothing has changed for a while.
pub(crate) fn settled(kubectl: &Kubectl) -> anyhow::Result<Snapshot> {
    let mut calm = Calm::new();
    let mut unrest = None;
    let settled = until("the cluster does not settle", SETTLED_WITHIN, PAUSE, || {
        let snapshot = Snapshot::take(kubectl)?;
        unrest = calm.observe(&snapshot, snapshot.calm());
        Ok(unrest.is_none().then_some(snapshot))
    });
    settled.map_err(|error| match unrest {
        Some(why) => error.context(why),
        None => error,
    })
}

/// How long nothing has changed.
pub(crate) struct Calm {
    fingerprint: String,
    since: Instant,
}

impl Calm {
    pub(crate) fn new() -> Self {
        Self {
            fingerprint: String::new(),
            since: now(),
        }
    }

    /// Takes in a look; returns why the cluster is not at rest. It is after this long without a change.
    pub(crate) fn observe(&mut self, snapshot: &Snapshot, quiet: Duration) -> Option<String> {
        let fingerprint = snapshot.fingerprint();
        let unrest = snapshot.unrest();
        if fingerprint != self.fingerprint || unrest.is_some() {
            self.fingerprint = fingerprint;
            self.since = now();
        }
        let is_calm = self.since.elapsed() >= quiet;
        unrest.or_else(|| (!is_calm).then(|| "objects are written".to_owned()))
    }
}
