//! What the judge sees of a run.

use strew_apiserver::server::Server;

use super::Simulation;
use crate::auditor::{Rule, Violation, Witness, rest, structure};
use crate::scheduler::Replica;
use crate::workloadspread::{Judge, Webhook, webhook, webhook_mut, with_webhook};

impl Simulation {
    /// From now on a witness sees every write and every bind.
    pub fn watch_closely(&mut self) {
        self.journal = Some(self.server.listen());
        let witness = Witness::new(self.start, self.server.tables());
        self.witness = Some(Box::new(witness));
        self.judge_webhook();
    }

    /// From now on the webhook's answers are judged, if there is a witness.
    pub(super) fn judge_webhook(&mut self) {
        if self.witness.is_some() {
            with_webhook(&mut self.server, |webhook, server| {
                webhook.judge = Some(Judge::new(server));
            });
        }
    }

    /// The number of choices of subsets judged.
    pub(crate) fn choices_judged(&self) -> u64 {
        let judge = webhook(&self.server).and_then(|w| w.judge.as_ref());
        judge.map_or(0, |judge| judge.n_judged)
    }

    /// The witness; `None` before [`Self::watch_closely`].
    pub fn witness(&self) -> Option<&Witness> {
        self.witness.as_deref()
    }

    /// The violations found since the last call.
    pub fn violations(&mut self) -> Vec<Violation> {
        self.testify();
        let witness = self.witness.as_deref_mut();
        witness.map(Witness::take).unwrap_or_default()
    }

    /// Shows the witness the writes of the last instant, and the leaders at its end.
    pub(super) fn testify(&mut self) {
        let Some(witness) = self.witness.as_deref_mut() else {
            return;
        };
        let mut journal = self.journal.as_mut();
        let mut next = |server: &Server| server.next_change(journal.as_deref_mut()?).cloned();
        while let Some(written) = next(&self.server) {
            witness.written(&written);
            if let Some(judge) = webhook_mut(&mut self.server).and_then(|w| w.judge.as_mut()) {
                judge.written(&written);
            }
        }
        if let Some(judge) = webhook_mut(&mut self.server).and_then(|w| w.judge.as_mut()) {
            for (rule, actor, text) in judge.take() {
                witness.blame(rule, actor, text);
            }
        }
        let found = webhook_mut(&mut self.server).map(Webhook::take_found);
        let of_zones = self.take_zones_found();
        let Some(witness) = self.witness.as_deref_mut() else {
            return;
        };
        for (rule, actor, text) in found.into_iter().flatten().chain(of_zones) {
            witness.blame(rule, actor, text);
        }
        if self.elects {
            let replicas = self.schedulers.iter().filter_map(|s| s.alive.as_ref());
            let leaders = replicas.filter(|replica| replica.leads(self.now));
            witness.leaders(leaders.map(Replica::name));
        }
    }

    /// Recounts what components and the store maintain incrementally.
    pub fn audit_structure(&mut self) {
        self.testify();
        let Some(witness) = self.witness.as_deref_mut() else {
            return;
        };
        structure::server(&self.server, witness);
        for replica in self.schedulers.iter().filter_map(|s| s.alive.as_ref()) {
            structure::replica(replica, witness);
        }
        if let Some(controllers) = &self.controllers.alive {
            structure::tables(controllers.manager.cache(), "the controllers", witness);
        }
    }

    /// Checks what must hold at rest, after all faults.
    pub fn audit_rest(&mut self) {
        self.audit_structure();
        let now = self.now;
        let fault = with_webhook(&mut self.server, |webhook, server| {
            webhook.fault_at_rest(now, server)
        });
        let Some(witness) = self.witness.as_deref_mut() else {
            return;
        };
        if let Some(text) = fault.flatten() {
            witness.blame(Rule::WebhookRegistered, "the webhook's registration", text);
        }
        for replica in self.schedulers.iter().filter_map(|s| s.alive.as_ref()) {
            let stored = replica.watched(self.server.tables());
            structure::cache(replica.seen(), &stored, replica.name(), witness);
        }
        if let Some(controllers) = &self.controllers.alive {
            let cache = controllers.manager.cache();
            structure::cache(cache, self.server.tables(), "the controllers", witness);
        }
        let keeper = self.spreads.as_ref().and_then(|slot| slot.alive.as_ref());
        if let Some(keeper) = keeper {
            let whose = "the controller of WorkloadSpreads";
            let stored = keeper.watched(self.server.tables());
            structure::cache(keeper.seen(), &stored, whose, witness);
        }
        if let Some(webhook) = webhook(&self.server) {
            for (seen, stored) in webhook.caches(self.server.tables()) {
                structure::cache(seen, &stored, "a replica of the webhook", witness);
            }
        }
        let world = rest::Resting {
            now: self.now,
            server: &self.server,
            kubelets: &self.kubelets,
            blueprint: &self.blueprint,
            autoscaler: self.autoscaler.as_ref(),
            utilisation: &self.utilisation,
        };
        rest::judge(world, witness);
    }
}
