//! The controller `rebalance`: its flags, and what decides, on the objects of a cluster.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use strew_kube::controller::rebalance::{Found, Left, Rebalancer, Settings};
use strew_manifest::printable::printable_line;
use strew_model::Span;
use strew_scenario::rebalance::carry::PodSeen;
use strew_scenario::rebalance::rounds::{LABEL, Round, Rounds, RoundsSettings};
use strew_scenario::rebalance::values::{PlannedConstraint, RebalancePlan};
use strew_wire::request::{Answer, Next};

use super::audit::{in_a_line, pause};
use crate::rebalance::with_world;
use crate::text::count;

/// How long a step waits for the pod in place of the evicted one.
const PATIENCE: Span = Span::from_secs(600);

/// Workloads that wait, and constraints that stay uneven, which a note names.
const NAMED_MAX: usize = 3;

/// The flags of rebalancing.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Rebalancing")]
pub(super) struct RebalanceTimerArgs {
    /// The pause between two looks at the whole cluster while nothing is to be evicted; at least 10s
    #[arg(long, value_name = "DURATION", value_parser = pause, default_value = "5m")]
    rebalance_every: Duration,
    /// Keep soft constraints, too, the cluster's defaults among them, as far as no hard one is kept less
    #[arg(long)]
    rebalance_soft: bool,
    /// The most series about constraints that stay uneven; of more, the most uneven are served
    #[arg(long, value_name = "N", default_value = "500")]
    rebalance_max_series: NonZeroUsize,
}

impl RebalanceTimerArgs {
    pub(super) fn settings(&self) -> Settings {
        let settings = RoundsSettings {
            soft: self.rebalance_soft,
            patience: PATIENCE,
        };
        Settings {
            every: self.rebalance_every,
            max_series: self.rebalance_max_series.get(),
            rebalancer: Arc::new(move || Box::new(OnObjects(Rounds::new(settings)))),
        }
    }

    /// The settings, for `/configz`.
    pub(super) fn shown(&self) -> Value {
        json!({
            "everySeconds": self.rebalance_every.as_secs(),
            "soft": self.rebalance_soft,
            "maxSeries": self.rebalance_max_series,
        })
    }
}

/// What decides, with the objects of a cluster as input.
struct OnObjects(Rounds);

impl Rebalancer for OnObjects {
    fn plan(&mut self, now: Span, objects: Vec<Value>) -> Result<Found, String> {
        let rounds = &mut self.0;
        let round = with_world(objects, |world, tables| rounds.plan(now, world, tables));
        round
            .map(|round| found(&round))
            .map_err(|failure| in_a_line(&failure))
    }

    fn namespace(&self) -> Option<String> {
        self.0.step().map(|step| step.namespace.clone())
    }

    fn look(&mut self, now: Span, pods: &Value) -> Next {
        self.0.look(now, &PodSeen::of_list(pods))
    }

    fn answered(&mut self, now: Span, answer: &Answer) -> Next {
        self.0.answered(now, answer)
    }
}

/// What a round found, for metrics and the log.
fn found(round: &Round) -> Found {
    let plan = round.plan.as_deref();
    Found {
        n_labelled: round.labelled,
        n_uneven: plan.map_or(0, |plan| plan.summary.uneven_before),
        n_waiting: round.waiting.len(),
        n_evictions: plan.map_or(0, |plan| plan.steps.len()),
        left: plan.map_or_else(Vec::new, left),
        notes: notes(round),
    }
}

/// The constraints that a plan leaves uneven, the most uneven first.
fn left(plan: &RebalancePlan) -> Vec<Left> {
    let mut left: Vec<Left> = Vec::new();
    for constraint in plan.constraints.iter().filter(|c| c.after.moves > 0) {
        let series = Left {
            namespace: constraint.namespace.clone(),
            workload: named(constraint),
            topology_key: constraint.topology_key.clone(),
            moves: constraint.after.moves,
        };
        // Two constraints of one key have one series, that of the worse one.
        match left.iter_mut().find(|l| l.labels() == series.labels()) {
            Some(known) => known.moves = known.moves.max(series.moves),
            None => left.push(series),
        }
    }
    // Stable: the order of the plan stays.
    left.sort_by_key(|left| std::cmp::Reverse(left.moves));
    left
}

/// `Deployment/web`, as in `strew_spread_skew`.
fn named(constraint: &PlannedConstraint) -> String {
    format!("{}/{}", constraint.workload_kind, constraint.workload_name)
}

/// What a person should know: each is logged when it is new.
fn notes(round: &Round) -> Vec<String> {
    if round.labelled == 0 {
        return vec![format!(
            "no workload and no namespace with pods has the label {LABEL}=true: nothing is evicted"
        )];
    }
    let mut notes = Vec::new();
    if let Some(plan) = &round.plan {
        let workloads = count(round.labelled, "labelled workload");
        let evictions = count(plan.steps.len(), "eviction");
        notes.push(format!("{workloads}, {evictions} planned"));
        let left = plan.constraints.iter().filter(|c| c.after.moves > 0);
        notes.extend(left.take(NAMED_MAX).map(why_left));
    }
    notes.extend(round.held.clone().map(|why| format!("waits: {why}")));
    let waiting = round.waiting.iter().take(NAMED_MAX);
    notes.extend(waiting.map(|(workload, why)| {
        let text = format!("{}/{} waits: {why}", workload.namespace, workload.of());
        printable_line(&text).into_owned()
    }));
    let n_more = round.waiting.len().saturating_sub(NAMED_MAX);
    if n_more > 0 {
        notes.push(format!("{} more wait", n_more));
    }
    notes
}

fn why_left(constraint: &PlannedConstraint) -> String {
    let reasons = constraint.left.iter();
    let reasons: Vec<String> = reasons
        .map(|left| format!("{} {}", count(left.pods, "pod"), left.message))
        .collect();
    let text = format!(
        "{}/{} stays uneven over {}: {}",
        constraint.namespace,
        named(constraint),
        constraint.topology_key,
        reasons.join("; ")
    );
    printable_line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(label: Option<&str>) -> Vec<Value> {
        let mut objects = Vec::new();
        for zone in ["a", "b", "c"] {
            objects.push(json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": zone, "labels": {"topology.kubernetes.io/zone": zone}},
                "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}}));
        }
        let spec = json!({
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]});
        let labels = json!({"app": "web"});
        let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "uid": "d"},
            "spec": {"replicas": 4, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec}}});
        if let Some(label) = label {
            deployment["metadata"]["labels"] = json!({LABEL: label});
        }
        let mut set = deployment.clone();
        set["kind"] = json!("ReplicaSet");
        set["metadata"] = json!({"name": "web-1", "namespace": "shop", "uid": "r", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true}]});
        objects.extend([deployment, set]);
        for n in 0..4 {
            let mut spec = spec.clone();
            spec["nodeName"] = json!(["a", "b"][n % 2]);
            objects.push(json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("web-1-{n}"), "namespace": "shop", "uid": format!("p{n}"),
                    "labels": labels, "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": true}]},
                "spec": spec,
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
        }
        objects
    }

    fn rebalancer() -> Box<dyn Rebalancer> {
        let args = RebalanceTimerArgs {
            rebalance_every: Duration::from_secs(60),
            rebalance_soft: false,
            rebalance_max_series: NonZeroUsize::MIN,
        };
        (args.settings().rebalancer)()
    }

    fn list(objects: &[Value]) -> Value {
        let pods = objects.iter().filter(|object| object["kind"] == "Pod");
        json!({"items": pods.collect::<Vec<_>>()})
    }

    /// 2, 2, 0 becomes 2, 1, 1 by the eviction of one pod, which is asked for by its uid.
    #[test]
    fn the_objects_of_a_cluster_lead_to_an_eviction() {
        let objects = objects(Some("true"));
        let mut rebalancer = rebalancer();
        let pods = list(&objects);
        let found = rebalancer.plan(Span::default(), objects).expect("a plan");
        assert_eq!(
            (found.n_labelled, found.n_uneven, found.n_evictions),
            (1, 1, 1)
        );
        assert_eq!(found.notes, ["1 labelled workload, 1 eviction planned"]);
        assert_eq!(rebalancer.namespace().as_deref(), Some("shop"));
        let Next::Evict(request) = rebalancer.look(Span::default(), &pods) else {
            panic!("an eviction");
        };
        let uid = &request.body["deleteOptions"]["preconditions"]["uid"];
        assert!(
            uid.as_str().is_some_and(|uid| uid.starts_with('p')),
            "{uid}"
        );
    }

    #[test]
    fn without_a_label_nothing_is_evicted_and_the_log_says_so() {
        for label in [None, Some("false"), Some("yes")] {
            let mut rebalancer = rebalancer();
            let found = rebalancer.plan(Span::default(), objects(label));
            let found = found.expect("it is sound");
            assert_eq!((found.n_labelled, rebalancer.namespace()), (0, None));
            assert!(found.notes[0].contains(LABEL), "{:?}", found.notes);
        }
    }

    #[test]
    fn what_stays_uneven_is_told_with_its_reason() {
        let mut objects = objects(Some("true"));
        for pod in objects.iter_mut().filter(|object| object["kind"] == "Pod") {
            pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
        }
        let mut rebalancer = rebalancer();
        let found = rebalancer.plan(Span::default(), objects).expect("a plan");
        assert_eq!((found.n_evictions, found.left.len()), (0, 1));
        assert_eq!(
            (&*found.left[0].workload, found.left[0].moves),
            ("Deployment/web", 1)
        );
        assert!(found.notes[1].contains("emptyDir"), "{:?}", found.notes);
    }

    #[test]
    fn a_pod_that_is_not_ready_holds_its_workload_up() {
        let mut objects = objects(Some("true"));
        let pod = objects.iter_mut().rfind(|object| object["kind"] == "Pod");
        pod.expect("a pod")["status"]["conditions"][0]["status"] = json!("False");
        let mut rebalancer = rebalancer();
        let found = rebalancer
            .plan(Span::default(), objects)
            .expect("it is sound");
        assert_eq!(
            (found.n_labelled, found.n_waiting, found.n_evictions),
            (1, 1, 0)
        );
        assert_eq!(
            found.notes,
            ["shop/deployment/web waits: web-1-3 is not ready"]
        );
        assert_eq!(rebalancer.namespace(), None);
    }
}
