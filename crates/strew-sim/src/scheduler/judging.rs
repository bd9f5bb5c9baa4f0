//! What the judge sees of a scheduler: each decision with its facts, and each bind that is sent.

use std::sync::Arc;

use strew_apiserver::Tables;
use strew_model::time::Instant;
use strew_runtime::Answered;
use strew_runtime::scheduler::SchedulerMachine;
use strew_scheduler::Profile;
use strew_scheduler::machine::{Effect, Hold, Input, Outcome, Scheduler};
use strew_wire::request::{Request, outcome_of};

use super::Stats;
use crate::auditor::{Rule, Sent, Witness, preemption, verdict};
use crate::component::Judge;
use crate::fault::Sabotage;

/// Reports the decisions of a replica to the witness.
pub(super) struct SchedulerJudge<'a> {
    /// The time by the replica's own clock.
    pub(super) clock: Instant,
    pub(super) hostname: &'a str,
    pub(super) profiles: &'a [Profile],
    pub(super) elects: bool,
    pub(super) stats: &'a mut Stats,
    pub(super) witness: Option<&'a mut Witness>,
    pub(super) sabotage: Option<Sabotage>,
}

impl SchedulerJudge<'_> {
    /// Shows the witness the pods that preempt, and lets it judge preemptions decided just now, on what was `seen`.
    pub(super) fn show_holds(&mut self, machine: &Scheduler, seen: Option<&Tables>) {
        let Some(witness) = self.witness.as_deref_mut() else {
            return;
        };
        let holds: Vec<Hold> = machine.holds().collect();
        let new = witness.making_room(self.hostname, &holds);
        let Some(seen) = seen else { return };
        for hold in new {
            let assumed = witness.assumed(self.hostname, seen);
            let cluster = verdict::recount(seen, machine, &assumed);
            if let Err(text) = preemption::judge(cluster, self.profiles, hold) {
                let node = machine.cluster().names.text(hold.node);
                let text = format!("makes room on {node} for {}: {text}", hold.pod);
                witness.blame(Rule::Preemption, self.hostname, text);
            }
        }
    }

    /// Lets the witness judge a bind, on the facts of its decision.
    fn show_bind(&mut self, machine: &Scheduler, seen: &Tables, effect: &Effect) {
        let (Some(witness), Effect::Bind { pod, node, .. }) = (self.witness.as_deref_mut(), effect)
        else {
            return;
        };
        witness.n_judged += 1;
        let assumed = witness.assumed(self.hostname, seen);
        let cluster = verdict::recount(seen, machine, &assumed);
        if let Err(text) = verdict::judge(cluster, self.profiles, &pod.uid, *node) {
            let node = machine.cluster().names.text(*node);
            let text = format!("binds {} to {node}: {text}", pod.name);
            witness.blame(Rule::Bind, self.hostname, text);
        }
        witness.decided(self.hostname, &pod.uid, *node);
    }
}

impl Judge<SchedulerMachine> for SchedulerJudge<'_> {
    fn decided(&mut self, machine: &mut SchedulerMachine, seen: &Tables, effect: &Effect) {
        self.show_holds(machine.machine(), Some(seen));
        self.show_bind(machine.machine(), seen, effect);
        if let (Some(Sabotage::ForgetsAssumed), Effect::Bind { pod, .. }) = (self.sabotage, effect)
        {
            let gone = Input::PodGone(Arc::clone(&pod.uid));
            machine.machine_mut().handle(self.clock, gone);
        }
    }

    fn sent(&mut self, clock: Instant, request: &Request) {
        if let Some(witness) = self.witness.as_deref_mut()
            && is_binding(request)
        {
            witness.sent(Sent {
                replica: self.hostname,
                clock,
                elects: self.elects,
                pod: &request.name,
            });
        }
    }

    fn answered(&mut self, answered: &Answered) {
        let request = &answered.request;
        let outcome = outcome_of(request, &answered.answer, answered.repeated);
        if outcome == Outcome::Ok {
            self.stats.n_bound += u64::from(is_binding(request));
            return;
        }
        self.stats.n_refused += 1;
        let uid = request.body["metadata"]["uid"].as_str();
        if let (Some(witness), Some(uid), true) =
            (self.witness.as_deref_mut(), uid, is_binding(request))
        {
            witness.failed(self.hostname, uid);
        }
    }
}

fn is_binding(request: &Request) -> bool {
    request.subresource == "binding"
}
