//! Carries out a plan, one step at a time, against what the cluster says: decides what to ask next, and asks nothing.
//!
//! A step evicts the pod of its uid, waits until the pod in its place is ready, and looks where that is. What went
//! otherwise than planned ends it: the rest of the plan was simulated on another cluster. It keeps no state beyond the
//! process: a pod that is gone is not evicted again, so a plan that was interrupted is made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};
use strew_manifest::printable::printable_line;
use strew_model::Span;
pub use strew_wire::request::Next;
use strew_wire::request::{Answer, Precondition, Request, Resource, Verb};

use super::values::{PlannedStep, RebalancePlan};

/// The wait between two looks at the pods.
const POLL: Span = Span::from_secs(1);

/// The wait after an eviction that a budget refused, or that did not reach the API server.
const RETRY: Span = Span::from_secs(5);

/// The labels of nodes, by name.
pub type NodeLabels = BTreeMap<String, BTreeMap<String, String>>;

/// A plan that is carried out; `P` is how it is held.
pub struct Carrying<P> {
    plan: P,
    labels: NodeLabels,
    /// How long a step may wait: for its budget, then for the pod in its place.
    patience: Span,
    /// The step that is next, or under way.
    index: usize,
    stage: Stage,
    /// When the stage began, since the start.
    since: Span,
}

enum Stage {
    /// The pod is not evicted yet.
    Before,
    /// The eviction was sent.
    Asked(Place),
    /// The answer to the eviction was lost.
    Unsure(Place),
    /// The pod is evicted.
    Evicted(Place),
}

/// Which pod comes in place of an evicted one.
#[derive(Clone)]
struct Place {
    /// The uid of the controller.
    owner: String,
    /// The uids of the namespace's pods before the eviction.
    known: BTreeSet<String>,
}

/// A pod as it is now.
#[derive(Debug, Clone)]
pub struct PodSeen {
    name: String,
    uid: String,
    owner: Option<String>,
    node: Option<String>,
    is_leaving: bool,
    is_ready: bool,
    /// Why it is Pending, if it says so.
    message: String,
}

impl PodSeen {
    /// The pods of a list of the API server.
    pub fn of_list(list: &Value) -> Vec<Self> {
        let items = list["items"].as_array().into_iter().flatten();
        items.map(Self::of).collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The uid of its controller; `None` without one.
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// True if it is on a node, ready, and not being deleted.
    pub fn is_settled(&self) -> bool {
        self.node.is_some() && self.is_ready && !self.is_leaving
    }

    fn of(pod: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let some = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        let meta = &pod["metadata"];
        let owners = meta["ownerReferences"].as_array().into_iter().flatten();
        let mut controllers = owners.filter(|owner| owner["controller"] == true);
        let conditions = || pod["status"]["conditions"].as_array().into_iter().flatten();
        let condition = |kind: &str| conditions().find(|condition| condition["type"] == *kind);
        let scheduled = condition("PodScheduled");
        Self {
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            owner: controllers.next().and_then(|owner| some(&owner["uid"])),
            node: some(&pod["spec"]["nodeName"]),
            is_leaving: meta["deletionTimestamp"].is_string(),
            is_ready: condition("Ready").is_some_and(|condition| condition["status"] == "True"),
            message: scheduled.map_or_else(String::new, |condition| text(&condition["message"])),
        }
    }
}

/// The eviction of a step's pod.
pub fn eviction(step: &PlannedStep, is_dry_run: bool) -> Request {
    let mut options = json!({"preconditions": {"uid": step.uid}});
    if is_dry_run {
        options["dryRun"] = json!(["All"]);
    }
    Request {
        verb: Verb::Create,
        resource: Resource::PODS,
        namespace: step.namespace.clone(),
        name: step.pod.clone(),
        subresource: "eviction",
        body: json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": step.pod, "namespace": step.namespace},
            "deleteOptions": options,
        }),
        precondition: Precondition::uid(&step.uid),
    }
}

/// Why the API server refuses, in its words.
pub fn words(answer: &Answer) -> String {
    match answer {
        Answer::Status { code, body, .. } => {
            let message = body["message"].as_str().unwrap_or_default();
            let mut text = match message {
                "" => format!("HTTP {code}"),
                message => message.to_owned(),
            };
            let causes = body["details"]["causes"].as_array().into_iter().flatten();
            for cause in causes.filter_map(|cause| cause["message"].as_str()) {
                let _ = write!(text, " {cause}");
            }
            printable_line(&text).into_owned()
        }
        Answer::Refused(why) | Answer::Lost(why) => printable_line(why).into_owned(),
    }
}

impl<P: std::ops::Deref<Target = RebalancePlan> + Clone> Carrying<P> {
    /// Nothing is carried out yet.
    pub fn new(plan: P, labels: NodeLabels, patience: Span) -> Self {
        Self {
            plan,
            labels,
            patience,
            index: 0,
            stage: Stage::Before,
            since: Span::default(),
        }
    }

    /// The step that is next, or under way; `None` after the last one.
    pub fn step(&self) -> Option<&PlannedStep> {
        self.plan.steps.get(self.index)
    }

    /// The number of steps that are carried out.
    pub fn n_done(&self) -> usize {
        self.index
    }

    /// The plan.
    pub fn plan(&self) -> &RebalancePlan {
        &self.plan
    }

    /// True if the eviction of the step was sent.
    pub fn is_under_way(&self) -> bool {
        !matches!(self.stage, Stage::Before)
    }

    /// What is next, after a look at the pods of the step's namespace.
    pub fn look(&mut self, now: Span, pods: &[PodSeen]) -> Next {
        let plan = self.plan.clone();
        let Some(step) = plan.steps.get(self.index) else {
            return Next::Done;
        };
        let is_there = |pod: &PodSeen| pod.uid == step.uid && !pod.is_leaving;
        match std::mem::replace(&mut self.stage, Stage::Before) {
            Stage::Before => self.begin(step, pods),
            Stage::Asked(place) | Stage::Unsure(place) => match pods.iter().any(is_there) {
                // The uid makes sure that it is evicted once.
                true => {
                    self.stage = Stage::Asked(place);
                    Next::Evict(Box::new(eviction(step, false)))
                }
                false => self.wait(now, step, place, pods),
            },
            Stage::Evicted(place) => self.wait(now, step, place, pods),
        }
    }

    /// Looks whether the pods of this step and of later ones are where they were.
    fn begin(&mut self, step: &PlannedStep, pods: &[PodSeen]) -> Next {
        let rest = self.plan.steps[self.index..].iter();
        for later in rest.filter(|later| later.namespace == step.namespace) {
            if let Some(why) = differs(later, pods) {
                return Next::Stop(why);
            }
        }
        let owner = pods.iter().find(|pod| pod.uid == step.uid);
        let Some(owner) = owner.and_then(|pod| pod.owner.clone()) else {
            return Next::Stop(format!("{} has no controller", name(step)));
        };
        self.stage = Stage::Asked(Place {
            owner,
            known: pods.iter().map(|pod| pod.uid.clone()).collect(),
        });
        Next::Evict(Box::new(eviction(step, false)))
    }

    /// What is next, after the answer to the eviction.
    pub fn answered(&mut self, now: Span, answer: &Answer) -> Next {
        let plan = self.plan.clone();
        let (Some(step), Stage::Asked(place)) = (
            plan.steps.get(self.index),
            std::mem::replace(&mut self.stage, Stage::Before),
        ) else {
            return Next::Look(POLL);
        };
        let is_late = now.0.saturating_sub(self.since.0) > self.patience.0;
        match (answer.code(), answer) {
            (Some(200..=299), _) => {
                self.stage = Stage::Evicted(place);
                self.since = now;
                Next::Look(POLL)
            }
            (Some(404 | 409), _) => Next::Stop(format!(
                "{} is not the pod of the plan any more: {}",
                name(step),
                words(answer)
            )),
            (_, Answer::Lost(_)) if !is_late => {
                self.stage = Stage::Unsure(place);
                Next::Look(RETRY)
            }
            (Some(429 | 500..=599), _) | (None, Answer::Refused(_)) if !is_late => {
                Next::Look(answer.retry_after().unwrap_or(RETRY))
            }
            _ => Next::Stop(format!("{} was not evicted: {}", name(step), words(answer))),
        }
    }

    /// Waits for the pod in place of the evicted one.
    fn wait(&mut self, now: Span, step: &PlannedStep, place: Place, pods: &[PodSeen]) -> Next {
        let new = pods.iter().filter(|pod| {
            let is_of = pod.owner.as_deref() == Some(place.owner.as_str());
            is_of && !pod.is_leaving && !place.known.contains(&pod.uid)
        });
        let new: Vec<&PodSeen> = new.collect();
        let late = match new[..] {
            [] => format!("nothing came in place of {}", name(step)),
            [pod] => match &pod.node {
                None => format!(
                    "{} came in its place and is Pending: {}",
                    pod.name, pod.message
                ),
                Some(node) => {
                    if let Some(why) = self.went_elsewhere(step, pod, node) {
                        return Next::Stop(why);
                    }
                    if pod.is_ready {
                        self.index += 1;
                        self.since = now;
                        return Next::Look(Span::default());
                    }
                    format!("{} came in its place on {node} and is not ready", pod.name)
                }
            },
            _ => {
                let n = new.len();
                return Next::Stop(format!("{n} pods came in place of {}", name(step)));
            }
        };
        self.stage = Stage::Evicted(place);
        match now.0.saturating_sub(self.since.0) > self.patience.0 {
            true => Next::Stop(printable_line(&late).into_owned()),
            false => Next::Look(POLL),
        }
    }

    /// Why the pod in place is not where the plan has it: another domain of a constraint's key. Another node of that
    /// domain is as good.
    fn went_elsewhere(&self, step: &PlannedStep, pod: &PodSeen, node: &str) -> Option<String> {
        let labels = self.labels.get(node);
        let wrong = step.effects.iter().find_map(|effect| {
            let planned = effect.to.as_ref()?;
            let value = labels.and_then(|labels| labels.get(&effect.topology_key));
            let is_there = value.is_some_and(|value| *value == planned.domain);
            (!is_there).then_some((effect, planned, value))
        });
        let (effect, planned, value) = wrong?;
        let text = format!(
            "{} came in place of {} in {}, not in {} ({})",
            pod.name,
            step.pod,
            value.map_or("a node without the label", String::as_str),
            planned.domain,
            effect.topology_key
        );
        Some(printable_line(&text).into_owned())
    }
}

/// Why a step's pod is not as it was; `None` if it is.
pub fn differs(step: &PlannedStep, pods: &[PodSeen]) -> Option<String> {
    let Some(pod) = pods.iter().find(|pod| pod.uid == step.uid) else {
        return Some(format!("{} is gone", name(step)));
    };
    match (pod.is_leaving, &pod.node) {
        (true, _) => Some(format!("{} is being deleted", name(step))),
        (false, Some(node)) if *node == step.from => None,
        _ => Some(format!("{} is not on {} any more", name(step), step.from)),
    }
}

/// The namespace and name of a step's pod.
pub fn name(step: &PlannedStep) -> String {
    printable_line(&format!("{}/{}", step.namespace, step.pod)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::values::{DomainCount, KIND, PlannedEffect, Sums};
    use super::*;

    /// A cluster of pods named after their workload, each made again at once in the zone that is next.
    struct Cluster {
        pods: Vec<PodSeen>,
        zones: Vec<&'static str>,
        evicted: Vec<String>,
        /// Answers instead of evictions, the last one first; with whether the pod is evicted nevertheless.
        answers: Vec<(Answer, bool)>,
        becomes_ready: bool,
    }

    fn pod(name: &str, uid: &str, node: &str) -> PodSeen {
        PodSeen {
            name: name.to_owned(),
            uid: uid.to_owned(),
            owner: Some("set".to_owned()),
            node: Some(node.to_owned()),
            is_leaving: false,
            is_ready: true,
            message: String::new(),
        }
    }

    fn answer(code: u16, message: &str) -> Answer {
        Answer::Status {
            code,
            retry_after: None,
            body: json!({"message": message}),
        }
    }

    impl Cluster {
        fn new() -> Self {
            let pods = (0..6).map(|n| pod(&format!("web-{n}"), &format!("uid-{n}"), "a"));
            Self {
                pods: pods.collect(),
                zones: vec!["c", "b", "c", "b"],
                evicted: Vec::new(),
                answers: Vec::new(),
                becomes_ready: true,
            }
        }

        fn evict(&mut self, request: &Request) -> Answer {
            let replaced = self.answers.pop();
            if let Some((answer, false)) = replaced {
                return answer;
            }
            let uid = request.precondition.uid.clone().unwrap();
            assert_eq!(request.body["deleteOptions"]["preconditions"]["uid"], uid);
            let Some(place) = self.pods.iter().position(|pod| pod.uid == uid) else {
                return answer(404, "not found");
            };
            self.pods.remove(place);
            let uid = format!("new-{}", self.evicted.len());
            let zone = self.zones.pop().unwrap();
            let new = pod(&uid, &uid, zone);
            self.pods.push(PodSeen {
                is_ready: self.becomes_ready,
                ..new
            });
            self.evicted.push(request.name.clone());
            replaced.map_or_else(|| answer(201, ""), |(answer, _)| answer)
        }
    }

    fn plan(n: usize) -> RebalancePlan {
        let step = |number: usize| {
            let zone = ["b", "c"][number % 2];
            let effect = PlannedEffect {
                workload_kind: "Deployment".to_owned(),
                workload_name: "web".to_owned(),
                topology_key: "zone".to_owned(),
                max_skew: 1,
                hard: true,
                from: None,
                to: Some(DomainCount {
                    domain: zone.to_owned(),
                    pods: 1,
                }),
                skew_before: 2,
                skew_after: 1,
            };
            PlannedStep {
                namespace: "shop".to_owned(),
                pod: format!("web-{number}"),
                uid: format!("uid-{number}"),
                workload_kind: "Deployment".to_owned(),
                workload_name: "web".to_owned(),
                from: "a".to_owned(),
                to: zone.to_owned(),
                effects: vec![effect],
            }
        };
        RebalancePlan {
            api_version: String::new(),
            kind: KIND.to_owned(),
            summary: Sums::default(),
            steps: (0..n).map(step).collect(),
            notes: Vec::new(),
            constraints: Vec::new(),
        }
    }

    fn labels() -> NodeLabels {
        let each = ["a", "b", "c"].map(|zone| {
            let labels = BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
            (zone.to_owned(), labels)
        });
        BTreeMap::from(each)
    }

    /// Carries a plan out until it ends, or `looks` times; returns the end and the steps that are done.
    fn carry(plan: &RebalancePlan, cluster: &mut Cluster, looks: usize) -> (Option<Next>, usize) {
        let labels = labels();
        let mut carrying = Carrying::new(plan, labels, Span::from_secs(60));
        let mut now = Span::default();
        for _ in 0..looks {
            let mut next = carrying.look(now, &cluster.pods);
            if let Next::Evict(request) = &next {
                let answer = cluster.evict(request);
                next = carrying.answered(now, &answer);
            }
            match next {
                Next::Look(after) => now = Span(now.0 + after.0),
                end => return (Some(end), carrying.n_done()),
            }
        }
        (None, carrying.n_done())
    }

    fn stop(end: Option<Next>) -> String {
        match end {
            Some(Next::Stop(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_step_evicts_one_pod_and_waits_for_the_one_in_its_place() {
        let mut cluster = Cluster::new();
        let (end, n_done) = carry(&plan(4), &mut cluster, 100);
        assert_eq!((end, n_done), (Some(Next::Done), 4));
        assert_eq!(cluster.evicted, ["web-0", "web-1", "web-2", "web-3"]);
    }

    /// After every number of looks the process ends, and another one begins with the same plan.
    #[test]
    fn a_crash_between_two_steps_evicts_nothing_twice() {
        for looks in 0..12 {
            let mut cluster = Cluster::new();
            let (_, before) = carry(&plan(4), &mut cluster, looks);
            let n_evicted = cluster.evicted.len();
            assert!(n_evicted - before <= 1, "one is under way");
            let (end, after) = carry(&plan(4), &mut cluster, 100);
            if n_evicted == 0 {
                assert_eq!(end, Some(Next::Done));
            } else {
                assert_eq!((stop(end).as_str(), after), ("shop/web-0 is gone", 0));
                assert_eq!(cluster.evicted.len(), n_evicted);
            }
        }
    }

    #[test]
    fn a_pod_that_comes_back_elsewhere_ends_the_plan() {
        let mut cluster = Cluster::new();
        cluster.zones = vec!["b", "a", "b"];
        let (end, n_done) = carry(&plan(4), &mut cluster, 100);
        let why = "new-1 came in place of web-1 in a, not in c (zone)";
        assert_eq!((stop(end).as_str(), n_done), (why, 1));
        assert_eq!(cluster.evicted.len(), 2);
    }

    #[test]
    fn a_budget_is_asked_again_and_ends_the_plan_in_the_end() {
        let refused = || (answer(429, "the budget needs 6"), false);
        let mut cluster = Cluster::new();
        cluster.answers = (0..3).map(|_| refused()).collect();
        let (end, n_done) = carry(&plan(2), &mut cluster, 100);
        assert_eq!((end, n_done), (Some(Next::Done), 2));
        let mut cluster = Cluster::new();
        cluster.answers = (0..100).map(|_| refused()).collect();
        let (end, n_done) = carry(&plan(2), &mut cluster, 100);
        let why = "shop/web-0 was not evicted: the budget needs 6";
        assert_eq!((stop(end).as_str(), n_done), (why, 0));
        assert_eq!(cluster.evicted.len(), 0);
    }

    /// The API server carried it out, or did not: in both cases the pod is evicted once.
    #[test]
    fn a_lost_answer_evicts_nothing_twice() {
        for is_evicted in [false, true] {
            let mut cluster = Cluster::new();
            cluster.answers = vec![(Answer::Lost("timeout".into()), is_evicted)];
            let (end, n_done) = carry(&plan(2), &mut cluster, 100);
            assert_eq!((end, n_done), (Some(Next::Done), 2));
            assert_eq!(cluster.evicted, ["web-0", "web-1"]);
        }
    }

    #[test]
    fn what_is_not_as_planned_is_not_begun() {
        let mut cluster = Cluster::new();
        cluster.pods[3].node = Some("b".to_owned());
        let (end, _) = carry(&plan(4), &mut cluster, 100);
        assert_eq!(stop(end), "shop/web-3 is not on a any more");
        cluster.pods[3].is_leaving = true;
        let (end, _) = carry(&plan(4), &mut cluster, 100);
        assert_eq!(stop(end), "shop/web-3 is being deleted");
        assert_eq!(cluster.evicted.len(), 0);
    }

    #[test]
    fn a_pod_that_is_not_ready_ends_the_plan_in_the_end() {
        let mut cluster = Cluster::new();
        cluster.becomes_ready = false;
        let (end, n_done) = carry(&plan(4), &mut cluster, 100);
        let why = "new-0 came in its place on b and is not ready";
        assert_eq!((stop(end).as_str(), n_done), (why, 0));
        assert_eq!(cluster.evicted.len(), 1);
    }
}
