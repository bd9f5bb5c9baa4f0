//! Rollouts that do not end: by the engine where the first new pod finds no place, and played where they can be.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::Value;
use strew_cluster::PodSpec;
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::read::KubeObject;
use strew_model::well_known::HOSTNAME;
use strew_wire::rolling::of_deployment;

use super::Case;
use crate::Found;
use crate::played::REVISION;
use crate::rules::claim::claim_of;
use crate::rules::constraint::others_of;
use crate::stage::{Hung, TRIES};

impl<'f> Case<'f, '_, '_> {
    /// A rollout that does not end: by the engine where the first new pod finds no place, and played where it can be.
    ///
    /// Source: spec/controllers §2.3
    pub(super) fn stuck_rollout(&mut self) -> Option<(&'static str, Found)> {
        let object = self.workload.object;
        let KubeObject::Deployment(deployment) = self.files.objects[object] else {
            return None;
        };
        let rolling = of_deployment(deployment.spec.as_ref()?)?;
        if rolling.unavailable >= self.n_pods || self.files.grows {
            return None;
        }
        let doubt = self.doubt(rolling.unavailable)?;
        let deployment = self.files.played_form(self.workload);
        let found = match (self.played(&deployment), doubt) {
            (Some(hung), _) if hung.times == 0 => return None,
            (Some(hung), doubt) => {
                let found = match doubt {
                    Doubt::NoPlace(reason) => self.no_place(&reason),
                    Doubt::Open => self.hangs(&hung),
                };
                let found = found
                    .number("hung", hung.times.into())
                    .number("plays", TRIES.into());
                match self.ending(&deployment) {
                    Some(fix) => found.fix(fix),
                    None => found,
                }
            }
            (None, Doubt::NoPlace(reason)) => {
                let found = self.no_place(&reason);
                match self.has_place_with_one_less() {
                    true => found.fix(one_by_one()),
                    false => found,
                }
            }
            (None, Doubt::Open) => return None,
        };
        Some(("rollout-stuck", found.number("pods", self.n_pods)))
    }

    /// Why the engine cannot say that a rollout ends; `None`: it ends.
    fn doubt(&mut self, unavailable: i64) -> Option<Doubt> {
        if self.is_spread {
            return Some(Doubt::Open);
        }
        let old = self.pods.clone();
        let new = self.bench.next_revision(&old);
        let missing = self.n_pods - self.n_running;
        let first = self.place(&[(&old, missing), (&new, 1)]);
        if let (Some(reason), 0) = (&first.refused, unavailable) {
            return Some(Doubt::NoPlace(reason.clone()));
        }
        // The old pod keeps its claim until it goes: only a play knows where the volume is.
        let keeps_claim = unavailable == 0 && old.spec.claims.is_empty() && self.has_claims();
        if self.has_quota() || keeps_claim {
            return Some(Doubt::Open);
        }
        // A pod that goes leaves its room to the next one: only what looks at other pods can keep it from there.
        if !looks_at_pods(&old.spec) {
            return None;
        }
        let all = &[(&old, missing), (&new, self.n_pods)];
        let is_open = first.refused.is_some() || self.place(all).refused.is_some();
        is_open.then_some(Doubt::Open)
    }

    /// The claims that its pods share; `None` for one that is not in the files.
    fn claims(&self) -> impl Iterator<Item = Option<&'f PersistentVolumeClaim>> {
        let (files, namespace) = (self.files, self.workload.namespace);
        let volumes = self.workload.spec.volumes.iter().flatten();
        let sources = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
        sources.map(move |source| claim_of(files, namespace, &source.claim_name))
    }

    /// True if its pods share claims, and all of them are in the files.
    fn has_claims(&self) -> bool {
        self.claims().count() > 0 && self.claims().all(|claim| claim.is_some())
    }

    /// True if a quota may refuse new pods beside old ones.
    fn has_quota(&self) -> bool {
        self.files.with_quota.contains(self.workload.namespace)
    }

    /// Plays a rollout of the workload as it is, or changed; `None`: it cannot be played.
    fn played(&self, deployment: &Value) -> Option<Hung> {
        // Pods whose claims are not in the files stay Pending.
        if self.claims().any(|claim| claim.is_none()) {
            return None;
        }
        let n_running = usize::try_from(self.n_running).ok()?;
        let mut plays = self.files.played.borrow_mut();
        plays.staged.play(self.files.stage(), deployment, n_running)
    }

    /// The smallest change after which no play hangs.
    fn ending(&self, deployment: &Value) -> Option<Fix> {
        let revisions = self.by_revision().into_iter();
        let unavailable = Fix::set(&rolling_path().child("maxUnavailable"), 1);
        let mut tried = revisions.chain([unavailable, one_by_one()]);
        tried.find_map(|mut fix| {
            let mut changed = deployment.clone();
            let ends = fix.apply(&mut changed)
                && self.played(&changed).is_some_and(|hung| hung.times == 0);
            fix.verified = Some(format!("{TRIES} of {TRIES} plays end"));
            ends.then_some(fix)
        })
    }

    /// matchLabelKeys for the only hard constraint that counts both revisions.
    fn by_revision(&self) -> Option<Fix> {
        let constraints = self.workload.spec.topology_spread_constraints.as_deref();
        let mut both = constraints
            .unwrap_or_default()
            .iter()
            .enumerate()
            .filter(|(_, c)| {
                let keys = c.match_label_keys.as_deref().unwrap_or_default();
                c.when_unsatisfiable == "DoNotSchedule" && !keys.iter().any(|key| key == REVISION)
            });
        let counts_others = |c| !others_of(self.files, self.number, c).is_empty();
        let (Some((index, constraint)), None) = (both.next(), both.next()) else {
            return None;
        };
        // Pods that are spread together with these on purpose would no longer be counted.
        if counts_others(constraint) {
            return None;
        }
        let mut keys = constraint.match_label_keys.clone().unwrap_or_default();
        keys.push(REVISION.to_owned());
        let path = self.workload.constraint_path(index);
        Some(Fix::set(&path.child("matchLabelKeys"), keys))
    }

    /// The first new pod finds no node.
    fn no_place(&self, reason: &str) -> Found {
        let message = format!(
            "a rollout never ends: the first new pod finds no node beside {}, and with maxUnavailable 0 no old one goes first: {reason}",
            match self.n_pods {
                1 => "the old one".to_owned(),
                n => format!("the {n} old ones"),
            }
        );
        let away = match self.n_pods {
            1 => {
                "maxUnavailable: 1 lets it end, with no pod meanwhile; a node more lets it end without that"
            }
            _ => "maxUnavailable: 1 lets one old pod go first; a node more lets it end, too",
        };
        // A node more in a domain that has a pod is of no use.
        let apart = self.apart_over();
        let away = match &apart {
            Some(key) => away.replace("a node more", &format!("a node in one more {key}")),
            None => away.to_owned(),
        };
        Found::warning(self.workload.object, rolling_path(), message)
            .help(away)
            .number("maxUnavailable", 0)
    }

    /// The key over whose domains a required anti-affinity keeps the pods apart from one another; `None` if there is none,
    /// or one over nodes.
    fn apart_over(&self) -> Option<String> {
        let own = self.pods.spec.affinity.required_anti.iter();
        let mut own =
            own.filter(|term| term.is_own_namespace() && term.selector.matches(&self.pods.labels));
        let term = own.find(|term| term.key != HOSTNAME)?;
        Some(self.bench.cluster.names.text(term.key).to_owned())
    }

    /// What takes the surge away; `None` if there is none.
    fn without_surge(&self) -> Option<&'static str> {
        let KubeObject::Deployment(deployment) = self.files.objects[self.workload.object] else {
            return None;
        };
        let rolling = of_deployment(deployment.spec.as_ref()?)?;
        match (rolling.surge, rolling.unavailable) {
            (0, _) => None,
            // Both may not be 0.
            (_, 0) => Some(", or maxSurge: 0 with maxUnavailable: 1,"),
            _ => Some(", or maxSurge: 0,"),
        }
    }

    /// A new pod finds no node after others have found one.
    fn hangs(&self, hung: &Hung) -> Found {
        let Hung { times, why } = hung;
        let message = format!(
            "a rollout never ends in {times} of {TRIES} plays on these nodes: it hangs at {why}"
        );
        let surge = self.without_surge();
        let help = match self.is_spread {
            _ if self.has_quota() => {
                let room = match surge {
                    Some(without) => format!("room for the surge in it{without}"),
                    None => "room in it".to_owned(),
                };
                format!("old pods count in the quota until they are gone: {room} lets a rollout end")
            }
            true => {
                let room = match surge {
                    Some(without) => format!("room for the surge in each subset{without}"),
                    None => "room for one more pod in each subset, or strew.dev/limit-scope: workload on the WorkloadSpread,".to_owned(),
                };
                format!("a new pod gets the first subset that is not full of pods of its own revision, where old pods still have the room: {room} lets a rollout end")
            }
            false if self.has_claims() => {
                "the old pod keeps its volume until it goes, and with maxUnavailable 0 it does not go first; Recreate is meant for such workloads".to_owned()
            }
            false => {
                "old pods go by the ReplicaSet's choice, and the room that they leave is not where the constraints let the next new one".to_owned()
            }
        };
        Found::warning(self.workload.object, rolling_path(), message).help(help)
    }

    /// True if the first new pod finds a node beside all old ones but one.
    fn has_place_with_one_less(&mut self) -> bool {
        let old = self.pods.clone();
        let new = self.bench.next_revision(&old);
        let fewer = &[(&old, self.n_pods - 1), (&new, 1)];
        self.n_running == 0 && self.place(fewer).refused.is_none()
    }
}

/// Why the engine alone cannot say that a rollout ends.
enum Doubt {
    /// No old pod goes before a new one is ready, and the first new one finds no node: why.
    NoPlace(String),
    /// New pods find nodes at first; later ones depend on which old ones go.
    Open,
}

pub(crate) fn rolling_path() -> FieldPath {
    FieldPath::root().child("spec.strategy.rollingUpdate")
}

/// The change by which one pod after the other is replaced.
pub(crate) fn one_by_one() -> Fix {
    let path = rolling_path();
    let mut fix = Fix::set(&path.child("maxUnavailable"), 1);
    let surge = Fix::set(&path.child("maxSurge"), 0);
    fix.change = format!("{}, {}", fix.change, surge.change);
    fix.edits.extend(surge.edits);
    fix
}

/// True if other pods of the workload, and not only room, decide where a pod may go.
fn looks_at_pods(spec: &PodSpec) -> bool {
    spec.spread.iter().any(|constraint| constraint.hard)
        || !spec.affinity.required.is_empty()
        || !spec.affinity.required_anti.is_empty()
        || !spec.host_ports.is_empty()
}
