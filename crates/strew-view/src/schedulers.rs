//! The schedulers of a world: one a profile, each deciding for the pods that name it.

use strew_cluster::{ClassId, Cluster, NodeIdx, PodIdx};
use strew_model::{Interner, Symbol};
use strew_scheduler::explain::{Explanation, explain_with};
use strew_scheduler::preemption::{Budgets, Nominations, preempt};
use strew_scheduler::{Decision, Engine, Preemption, Profile, Unfit};

/// What a pod without `schedulerName` is decided by.
const DEFAULT_NAME: &str = "default-scheduler";

/// Stands for the start of pods that have not started: after every other, and the same in every run.
const NOT_STARTED_S: i64 = u32::MAX as i64;

/// An engine a profile, and what they look at beside the cluster.
pub struct Schedulers {
    /// Never empty.
    list: Vec<Scheduler>,
    /// PodDisruptionBudgets, which preemption looks at.
    pub budgets: Budgets,
    /// Pods that have room kept for them on a node.
    pub nominations: Nominations,
}

struct Scheduler {
    /// The values of `schedulerName` that mean it.
    names: Vec<Symbol>,
    engine: Engine,
}

impl Schedulers {
    /// One a profile.
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

    /// Whether some profile decides for pods of this `schedulerName`.
    pub fn has(&self, name: Symbol) -> bool {
        self.list.iter().any(|s| s.names.contains(&name))
    }

    /// The engine that decides for pods of a class; of a class that no profile decides for, the first.
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

    /// The profile that decides for pods of a class; of a class that no profile decides for, the first.
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

    /// Explains a pod beside the pods that are nominated; if the `drawn` node is one of the best, it is the taken one.
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

    /// What evicting others would come to for a pod that was refused just now.
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
