//! The pod that is meant at the moment that is asked for, explained.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::anyhow;
use strew_apiserver::object::{Name, Pod};
use strew_cluster::{NodeIdx, PodIdx};
use strew_model::time::Span;
use strew_plan::{Change, WhatIf, suggest};
use strew_scenario::expect::workloads;
use strew_scenario::format::ObjectTarget;
use strew_scheduler::explain::{Explanation, Whereabouts};
use strew_view::blocked::{Blocked, Eviction, PodOutcome};
use strew_view::cluster_state::{ClusterState, PodEntry, PodState};
use strew_view::moment::{self, Frame};

use super::target::Target;
use super::{ExplainArgs, cause};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::scenario::{Life, Seen, When};
use crate::text::time_text;
use crate::what_if::{self, Becomes, Turned, TurnedPod};

/// The moment of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the pod was put on its node, in this run.
    Decision,
    /// After the first step.
    End,
    /// The state of the files.
    Files,
    /// After the changes of `--what-if`, at the end of the first step.
    Changed,
    /// This long after the start.
    At(Span),
}

impl Moment {
    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::End => "end",
            Self::Files => "files",
            Self::Changed => "changed",
            Self::At(_) => "at",
        }
    }
}

/// A pod, the moment, and the explanation.
pub(crate) struct Explained {
    pub(crate) entry: usize,
    pub(crate) moment: Moment,
    pub(crate) explanation: Explanation,
    /// Changes that would place the pod.
    pub(crate) what_if: Option<WhatIf>,
    /// The node and victims of a preemption for the pod.
    pub(crate) eviction: Option<Eviction>,
    /// The results of the changes of `--what-if`.
    pub(crate) turned: Option<Turned>,
    /// The world at that moment.
    pub(crate) world: ClusterState,
    /// The moment in the run; `None`: the state of the files.
    pub(super) played: Option<When>,
    /// The named workload, and what it lacks of the pods that it asks for, if this pod of it has a node.
    pub(crate) lacks: Option<(ObjectTarget, String)>,
    /// What the cluster recorded about the pods that the workload lacks.
    pub(crate) lacks_recorded: Option<String>,
    /// True if it names a node that is not there, and never ran.
    pub(crate) is_astray: bool,
    /// Why it is on no node; `None` if a node would take it now.
    pub(crate) cause: Option<String>,
    /// What the cluster recorded for a pod that is explained in the state of the files.
    pub(crate) recorded: Option<Recorded>,
}

/// The world of a dump at second 0, before anything is played. `None` if the dump does not have the pod.
pub(super) fn as_recorded(
    life: &Life,
    target: &Target,
    namespace: Option<&str>,
    progress: &Progress,
) -> Result<Option<Explained>, Failure> {
    look(life, When::Start, progress, |seen, frame| {
        let (world, outcomes) = now_in(seen, frame);
        let entry = target
            .choose(&world, &outcomes, namespace, Moment::Files)
            .ok()?;
        let PodEntry {
            name,
            namespace,
            pod,
            ..
        } = &world.pods[entry];
        if !life.is_recorded(&world.cluster.pod(*pod).uid) {
            return None;
        }
        let name = Name::new(Arc::clone(namespace), Arc::clone(name));
        let mut explained = now(world, entry, Moment::Files, None);
        let pod = seen.moment.tables.get::<Pod>(&name)?;
        explained.recorded = Recorded::of(pod, &explained.explanation, life.objects());
        let Explained {
            world, explanation, ..
        } = &explained;
        let is_astray = cause::is_astray(world, entry, Some(pod));
        explained.cause = cause::of(world, entry, explanation, Some(pod));
        explained.is_astray = is_astray;
        Some(explained)
    })
}

/// True if the pod that is meant is one of a dump: then second 0 is before anything is played, since its controllers may
/// replace or delete it at once.
fn is_recorded(
    life: &Life,
    target: &Target,
    namespace: Option<&str>,
    progress: &Progress,
) -> Result<bool, Failure> {
    let (world, outcomes) = look(life, When::Start, progress, now_in)?;
    let chosen = target.choose(&world, &outcomes, namespace, Moment::Files);
    Ok(chosen.is_ok_and(|entry| {
        let pod = world.pods[entry].pod;
        life.is_recorded(&world.cluster.pod(pod).uid)
    }))
}

/// The world at a moment.
pub(super) fn explain_at(
    life: &Life,
    target: &Target,
    namespace: Option<&str>,
    at: Span,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let is_start = at == Span::default() && is_recorded(life, target, namespace, progress)?;
    let when = match is_start {
        true => When::Start,
        false => When::At(at),
    };
    let (world, outcomes) = look(life, when, progress, now_in)?;
    let moment = Moment::At(at);
    let entry = target.choose(&world, &outcomes, namespace, moment)?;
    Ok(now(world, entry, moment, Some(when)))
}

/// The workload, and what it lacks of its pods, at a moment of the run; `None` if it lacks nothing.
pub(super) fn lacking(
    life: &Life,
    workload: ObjectTarget,
    when: When,
    progress: &Progress,
) -> Result<Option<(ObjectTarget, String)>, Failure> {
    let lacks = look(life, when, progress, |seen, _| {
        let stored = (seen.moment.tables, seen.events);
        workloads::lacks(stored, seen.moment.profiles, &workload)
    })?;
    Ok(lacks.map(|lacks| (workload, lacks)))
}

/// The world of a moment.
pub(super) fn now_in(seen: Seen<'_>, frame: &mut Frame) -> (ClusterState, Vec<PodOutcome>) {
    moment::world(seen.moment, frame)
}

/// The view of an observer at this moment.
pub(super) fn look<T>(
    life: &Life,
    when: When,
    progress: &Progress,
    mut look: impl FnMut(Seen<'_>, &mut Frame) -> T,
) -> Result<T, Failure> {
    let mut seen = None;
    life.look(when, progress, &mut |moment, frame| {
        seen = Some(look(moment, frame));
    })?;
    seen.ok_or_else(|| Failure::outside(anyhow!("the run ended before that moment")))
}

/// The world at a moment, with changes.
pub(super) fn explain_changed(
    args: &ExplainArgs,
    life: &Life,
    target: &Target,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let namespace = args.namespace.as_deref();
    let (when, moment) = match args.at {
        Some(at) if at > Span::default() => (When::At(at), Moment::At(at)),
        _ if is_recorded(life, target, namespace, progress)? => (When::Start, Moment::Changed),
        Some(at) => (When::At(at), Moment::At(at)),
        None => (When::End, Moment::Changed),
    };
    let (mut world, beside) = look(life, when, progress, |seen, frame| {
        let (tables, now) = (seen.moment.tables, seen.now);
        let mut world = now_in(seen, frame).0;
        let beside = what_if::Beside::of(&mut world, tables, now);
        (world, beside)
    })?;
    let entries = target.find(&world, namespace, moment)?;
    let turned = what_if::carry_out(&args.what_if, (&mut world, beside), namespace, &entries)?;
    let is_gone = |entry: &&usize| {
        let pod = &world.pods[**entry];
        let is_it = |t: &&TurnedPod| *t.namespace == *pod.namespace && *t.name == *pod.name;
        let found = turned.pods.iter().find(is_it);
        found.is_some_and(|turned| turned.becomes == Becomes::Gone)
    };
    let left = || entries.iter().filter(|entry| !is_gone(entry));
    let is_pending = |entry: &&usize| world.node_of(**entry).is_none();
    let entry = left().find(is_pending).or(left().next()).copied();
    let Some(entry) = entry else {
        let error = anyhow!(
            "after that {} has no pod, and no controller makes one",
            target.text()
        );
        return Err(Failure::input(error));
    };
    Ok(Explained {
        turned: Some(turned),
        ..now(world, entry, moment, Some(when))
    })
}

/// The world at the pod's decision; at the end if the pod stays Pending; the state of the files if the pod has its node
/// there.
pub(super) fn explain(
    life: &Life,
    target: &Target,
    namespace: Option<&str>,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let ((world, outcomes), placed) = look(life, When::End, progress, |seen, frame| {
        (now_in(seen, frame), placings(seen))
    })?;
    let entry = target.choose(&world, &outcomes, namespace, Moment::End)?;
    let standing = &world.pods[entry].standing;
    if matches!(standing, PodState::OfAnother(_) | PodState::Leaving) {
        return Ok(now(world, entry, Moment::Files, None));
    }
    if world.node_of(entry).is_none() {
        return Ok(now(world, entry, Moment::End, Some(When::End)));
    }
    let uid = Arc::clone(&world.cluster.pod(world.pods[entry].pod).uid);
    let Some(place) = placed.iter().position(|placing| placing.uid == uid) else {
        let (files, _) = look(life, When::Start, progress, now_in)?;
        // A pod of the files that has no uid there got one from the simulation.
        let pod = &world.pods[entry];
        let is_it = |other: &PodEntry| other.name == pod.name && other.namespace == pod.namespace;
        let entry = files.pods.iter().position(is_it);
        let entry = entry.ok_or_else(|| lost(target))?;
        return Ok(now(files, entry, Moment::Files, None));
    };
    let node = world.node_of(entry).map(|node| world.cluster.node(node));
    let node = node.map(|node| world.cluster.names.text(node.name()).to_owned());
    // Pods that were put on a node later in the same instant are not counted.
    let later: BTreeSet<Arc<str>> = placed[place..].iter().map(|p| Arc::clone(&p.uid)).collect();
    let when = When::At(placed[place].at);
    let world = look(life, when, progress, |seen, frame| {
        moment::world_before(seen.moment, frame, &later).0
    })?;
    let entry = find_uid(&world, &uid).ok_or_else(|| lost(target))?;
    let node = node.and_then(|name| world.cluster.names.get(&name));
    let drawn = node.and_then(|name| world.cluster.find_node(name));
    let moment = (Moment::Decision, Some(when));
    Ok(decided(world, entry, moment, drawn))
}

/// The event that a pod was put on a node.
struct Placing {
    uid: Arc<str>,
    at: Span,
}

fn placings(seen: Seen<'_>) -> Vec<Placing> {
    let events = seen.events.iter();
    let placings = events.filter(|event| &*event.reason == "Scheduled");
    placings
        .map(|event| Placing {
            uid: Arc::clone(&event.uid),
            at: event.at.since(seen.start),
        })
        .collect()
}

fn find_uid(world: &ClusterState, uid: &str) -> Option<usize> {
    let pod = world.cluster.find_pod(uid)?;
    world.pods.iter().position(|entry| entry.pod == pod)
}

fn lost(target: &Target) -> Failure {
    Failure::outside(anyhow!(
        "{} is not found again at its moment",
        target.text()
    ))
}

fn now(world: ClusterState, entry: usize, moment: Moment, played: Option<When>) -> Explained {
    decided(world, entry, (moment, played), None)
}

/// As in a decision at this moment, which chose this node if it was one of the best.
fn decided(
    mut world: ClusterState,
    entry: usize,
    (moment, played): (Moment, Option<When>),
    drawn: Option<NodeIdx>,
) -> Explained {
    let PodEntry {
        pod, is_leaving, ..
    } = world.pods[entry];
    let ClusterState {
        cluster,
        schedulers,
        ..
    } = &mut world;
    let mut explanation = schedulers.explain(cluster, pod, drawn);
    let profile = schedulers.profile(cluster, cluster.pod(pod).class);
    // No scheduler looks at a pod that is being deleted, and what is being deleted needs no advice.
    let mut what_if = match is_leaving {
        true => None,
        false => suggest(profile, cluster, &schedulers.nominations, &explanation),
    };
    let leaving = world.pods.iter().filter(|entry| entry.is_leaving);
    let leaving: BTreeSet<PodIdx> = leaving.map(|entry| entry.pod).collect();
    if let Some(what_if) = &mut what_if {
        what_if.suggestions.retain(
            |found| !matches!(&found.change, Change::DeletePod { pod } if leaving.contains(pod)),
        );
    }
    let mut eviction = None;
    // With what preemption would do.
    let is_pending = explanation.standing == Whereabouts::Pending;
    if let Some(blocked) = is_pending.then(|| Blocked::now(&mut world, pod)).flatten() {
        explanation.sentence = blocked.message;
        eviction = blocked.eviction;
    }
    Explained {
        cause: cause::of(&world, entry, &explanation, None),
        is_astray: false,
        entry,
        moment,
        explanation,
        what_if,
        eviction,
        turned: None,
        world,
        played,
        lacks: None,
        lacks_recorded: None,
        recorded: None,
    }
}

impl Explained {
    /// Writes the moment, and what is special about the pod.
    pub(crate) fn heading(&self) -> String {
        match (self.moment, &self.world.pods[self.entry].standing) {
            (Moment::Decision, _) => {
                "placed in this run; explained at the moment of its decision".to_owned()
            }
            (Moment::At(at), _) => {
                format!("explained as things are after {}", time_text(at))
            }
            (Moment::End, _) => "stays Pending; explained as things are at the end".to_owned(),
            (Moment::Changed, _) => "explained as things are after the changes".to_owned(),
            (Moment::Files, PodState::OfAnother(scheduler)) => {
                format!(
                    "left to scheduler {scheduler}; explained as if it were strew's, as things are in the files"
                )
            }
            (Moment::Files, PodState::Leaving) => {
                "it is being deleted; explained as things are in the files".to_owned()
            }
            (Moment::Files, _) => "explained as things are in the files".to_owned(),
        }
    }
}
