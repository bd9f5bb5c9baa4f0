//! The schedulers of a world: one per profile, each for the pods that name it.

use strew_cluster::{ClassId, Cluster, NodeIdx, PodIdx};
use strew_model::{Interner, Symbol};
use strew_scheduler::explain::{Explanation, explain_with};
use strew_scheduler::preemption::{Budgets, NOT_STARTED_S, Nominations, preempt};
use strew_scheduler::{Decision, Engine, Preemption, Profile, Unfit};

/// The scheduler of pods without a `schedulerName`.
const DEFAULT_NAME: &str = "default-scheduler";

/// An engine per profile, and their inputs beside the cluster.
pub struct Schedulers {
    /// At least one.
    list: Vec<Scheduler>,
    /// PodDisruptionBudgets, for preemption.
    pub budgets: Budgets,
    /// Nominated pods.
    pub nominations: Nominations,
}

struct Scheduler {
    /// The values of `schedulerName` that refer to it.
    names: Vec<Symbol>,
    engine: Engine,
}

impl Schedulers {
    /// One per profile.
    pub fn of(profiles: &[Profile], names: &mut Interner) -> Self {
        let mut scheduler = |profile: &Profile| {
            let mut answers_to = vec![names.intern(&profile.scheduler_name)];
            if profile.scheduler_name == DEFAULT_NAME {
                answers_to.push(names.intern(""));
            }
            Scheduler {
                names: answers_to,
                engine: Engine::new(profile.clone()),
            }
        };
        Self {
            list: profiles.iter().map(&mut scheduler).collect(),
            budgets: Budgets::default(),
            nominations: Nominations::new(),
        }
    }

    /// True if a profile has this `schedulerName`.
    pub fn has(&self, name: Symbol) -> bool {
        self.list.iter().any(|s| s.names.contains(&name))
    }

    /// The engine for pods of a class; the first one if no profile is responsible.
    pub fn engine(&mut self, cluster: &Cluster, class: ClassId) -> &mut Engine {
        let place = self.place(cluster, class);
        &mut self.list[place].engine
    }

    fn place(&self, cluster: &Cluster, class: ClassId) -> usize {
        if self.list.len() == 1 {
            return 0;
        }
        let tables = cluster.tables();
        let name = tables.spec(tables.class(class).key.spec).scheduler_name;
        let mut all = self.list.iter();
        all.position(|s| s.names.contains(&name)).unwrap_or(0)
    }

    /// The profile for pods of a class; the first one if none is responsible.
    pub fn profile(&self, cluster: &Cluster, class: ClassId) -> &Profile {
        self.list[self.place(cluster, class)].engine.profile()
    }

    /// All profiles, in their order.
    pub fn profiles(&self) -> Vec<Profile> {
        let profiles = self.list.iter().map(|s| s.engine.profile().clone());
        profiles.collect()
    }

    /// Decides where a pod goes.
    pub fn decide(&mut self, cluster: &mut Cluster, pod: PodIdx) -> Decision {
        let place = self.place(cluster, cluster.pod(pod).class);
        let engine = &mut self.list[place].engine;
        engine.decide_with(cluster, pod, &self.nominations)
    }

    /// Explains a pod, with nominations; if the node `drawn` is one of the best, it is the chosen one.
    pub fn explain(
        &mut self,
        cluster: &mut Cluster,
        pod: PodIdx,
        drawn: Option<NodeIdx>,
    ) -> Explanation {
        let place = self.place(cluster, cluster.pod(pod).class);
        let engine = &mut self.list[place].engine;
        explain_with(engine, cluster, pod, &self.nominations, drawn)
    }

    /// The preemption for a pod that was refused just now.
    pub fn preempt(&mut self, cluster: &mut Cluster, pod: PodIdx, unfit: &Unfit) -> Preemption {
        let place = self.place(cluster, cluster.pod(pod).class);
        preempt(
            &mut self.list[place].engine,
            cluster,
            pod,
            unfit,
            &self.budgets,
            &self.nominations,
            NOT_STARTED_S,
        )
    }
}
