//! What is left in the instant in which domains are lost: nothing is played, and no verdict is given.
//!
//! The cluster is the one of second 0. Pods are counted by the code that follows them in a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strew_apiserver::object::{Kind, Node, Object};
use strew_sim::Simulation;
use strew_view::away::{self, Headroom, Nodes};
use strew_view::cluster_state::ClusterState;

use super::Question;
use super::play::{of_domains, services, staying};
use super::values::{BudgetRow, Domain, Endpoints};
use crate::expect::availability::Availability;
use crate::expect::present::world_of;
use crate::expect::workloads::Budgets;
use crate::run::Plan;

/// What the loss of each set of domains leaves at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditAtOnce {
    /// `sim.strew.dev/v1alpha1`
    pub api_version: String,
    /// `AuditAtOnce`
    pub kind: String,
    /// The topology key.
    pub by: String,
    /// The domains of the key.
    pub domains: Vec<Domain>,
    /// Nodes without the key, which nothing happens to.
    pub nodes_without_key: usize,
    /// The workloads, and pods without one, that have a ready pod.
    pub workloads: usize,
    /// In the order of domains.
    pub cases: Vec<Instant>,
}

/// The kind of the output.
pub const KIND: &str = "AuditAtOnce";

/// What the loss of a set of domains leaves at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instant {
    /// The domains.
    pub domains: Vec<String>,
    /// The room that their pods need elsewhere.
    pub headroom: Headroom,
    /// The workloads with fewer ready pods than before, those with none left first.
    pub workloads: Vec<Left>,
    /// Services with fewer endpoints.
    pub services: Vec<Endpoints>,
}

/// What is left of a workload, or of a pod without one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Left {
    /// `Deployment`
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pods that it asks for.
    pub wanted: u32,
    /// Its ready pods before the loss.
    pub before: u32,
    /// Those that are left.
    pub at_once: u32,
    /// The pods of a StatefulSet without which it has no majority, if that is asked for and they are not left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// Its budgets with fewer healthy pods than they ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetRow>,
}

impl Left {
    /// True if a person should act: a workload of several pods has none left, or no majority.
    pub fn is_down(&self) -> bool {
        self.wanted > 1 && (self.at_once == 0 || self.quorum.is_some())
    }

    /// What it is sorted by: the worst is the least.
    fn place(&self) -> (bool, bool, bool, &str, &str, &str) {
        let (namespace, name) = (self.namespace.as_str(), self.name.as_str());
        let is_short = !self.budgets.is_empty();
        (
            !self.is_down(),
            self.at_once > 0,
            !is_short,
            namespace,
            name,
            &self.kind,
        )
    }
}

/// What is left in each case, and the number of workloads with a ready pod.
pub fn instants(plan: &Plan, questions: &[Question], seed: u64) -> (Vec<Instant>, usize) {
    let simulation = plan.simulation(seed);
    let server = simulation.server();
    let mut availability = Availability::new(server);
    availability.begin_step(server, simulation.elapsed());
    let world = world_of(&simulation);
    let each = questions.iter();
    let each = each.map(|question| instant(&simulation, &world, &mut availability, question));
    let each: Vec<Instant> = each.collect();
    let ready = availability
        .records()
        .filter(|(_, record)| record.before > 0);
    (each, ready.count())
}

fn instant(
    simulation: &Simulation,
    world: &ClusterState,
    availability: &mut Availability,
    question: &Question,
) -> Instant {
    let server = simulation.server();
    let tables = server.tables();
    let away: BTreeSet<Arc<str>> = { tables.of::<Node>().iter() }
        .filter(|node| of_domains(node, question))
        .map(|node| Arc::clone(&node.meta.name.name))
        .collect();
    availability.verbs_done(server, &away, simulation.elapsed());
    let budgets = Budgets::of(tables, &away);
    let hurt = availability.records();
    let hurt = hurt.filter(|(_, record)| record.at_once < record.before);
    let mut workloads: Vec<Left> = hurt
        .map(|(_, record)| {
            let object = tables.find(&record.key);
            let object = object.filter(|object| !matches!(object, Object::Pod(_)));
            let budgets = object.iter().flat_map(|object| budgets.of_workload(object));
            let majority = record.wanted / 2 + 1;
            let is_asked = question.quorum && record.key.kind == Kind::StatefulSet;
            let had = is_asked && record.before >= majority;
            Left {
                kind: record.key.kind.name().to_owned(),
                namespace: record.key.name.namespace.to_string(),
                name: record.key.name.name.to_string(),
                wanted: record.wanted,
                before: record.before,
                at_once: record.at_once,
                quorum: (had && record.at_once < majority).then_some(majority),
                budgets: { budgets.filter(|budget| budget.is_short()) }
                    .map(|budget| BudgetRow {
                        name: budget.name,
                        healthy: budget.healthy,
                        asks: budget.asks,
                    })
                    .collect(),
            }
        })
        .collect();
    workloads.sort_by(|a, b| a.place().cmp(&b.place()));
    let names: Nodes<'_> = away.iter().map(|name| &**name).collect();
    let staying = staying(tables);
    let headroom = away::headroom(world, &names, |uid| staying.contains(uid));
    Instant {
        domains: question.domains.clone(),
        headroom,
        workloads,
        services: services(tables, &away),
    }
}
