//! Lives of Deployments that ask to stay spread: sizes change, pods and components die, and other people write deletion
//! costs. When faults are over, each scale-down must end as spread as any choice of as many pods would.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::DeleteOptions;
use strew_apiserver::object::{Key, Kind, Name, Pod};
use strew_keep::facts::Cost;
use strew_keep::{LABEL, OWN_COST};
use strew_model::Prng;
use strew_model::time::Span;

use super::play::{Going, Life, Parts, QUIET, Verdict, caught};
use super::settings;
use crate::auditor::{Rule, Violation};
use crate::client::WriteFault;
use crate::fault::{Component, Crash, Fault};
use crate::feed::WatchFault;

const ZONE: &str = "topology.kubernetes.io/zone";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Faults end at most this many seconds after the start.
const STORM_SECS: u64 = 300;

/// A scale-down is over after this time.
const SCALED_WITHIN: Span = Span::from_secs(60);

/// Plays the life of a seed; a panic is a violation.
pub fn play(seed: u64, parts: &Parts) -> Verdict {
    caught(|| {
        let mut dice = Prng::new(seed ^ 0x6ee9_5b4e_ad00_0001);
        let plan = Plan::draw(&mut dice);
        let manifests = plan.manifests();
        let limits = settings::draw(seed, &["scheduler", "keep"]);
        let life = Life::begin((seed, limits), manifests, false, None, parts);
        let mut kept = KeptLife {
            life,
            dice,
            plan,
            costs_of_others: BTreeMap::new(),
        };
        let ended = kept.live();
        kept.life.end(ended)
    })
}

/// A small world.
struct Plan {
    n_nodes: u64,
    /// By name: size, `maxSkew`, whether the constraint is hard.
    deployments: BTreeMap<String, (u64, u64, bool)>,
    events: Vec<(Span, Deed)>,
    calm: Span,
}

/// What happens.
enum Deed {
    Scale(String, u64),
    Label(String, bool),
    DeletePod(u64),
    CostOfOther(u64, i64),
    Fault(Fault, Span),
    Crash(Crash),
}

impl Deed {
    /// The kind under which it counts as a fault; `None` if it is none.
    fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Scale(..) | Self::Label(..) | Self::DeletePod(_) => None,
            Self::CostOfOther(..) => Some("cost of another"),
            Self::Fault(Fault::Watch(_), _) => Some("watch late"),
            Self::Fault(..) => Some("write conflicts"),
            Self::Crash(crash) => Some(match crash.component {
                Component::Controller => "keeper dies",
                _ => "component dies",
            }),
        }
    }
}

impl Plan {
    fn draw(dice: &mut Prng) -> Self {
        let deployments: BTreeMap<String, (u64, u64, bool)> = (0..dice.between(1, 2))
            .map(|index| {
                let shape = (dice.between(1, 24), dice.between(1, 2), dice.chance(2, 3));
                (format!("w{index}"), shape)
            })
            .collect();
        let names: Vec<String> = deployments.keys().cloned().collect();
        let mut events: Vec<(Span, Deed)> = (0..dice.between(3, 18))
            .map(|_| {
                let at = Span::from_millis(dice.between(0, STORM_SECS * 1000));
                (at, deed(dice, &names))
            })
            .collect();
        events.sort_by_key(|(at, _)| *at);
        Self {
            n_nodes: 3 * dice.between(1, 4),
            deployments,
            events,
            calm: Span::from_secs(dice.between(60, STORM_SECS)),
        }
    }

    fn manifests(&self) -> Vec<Value> {
        let nodes = (0..self.n_nodes).map(|index| {
            let name = format!("n{index}");
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {
                    ZONE: format!("zone-{}", index % 3), "kubernetes.io/hostname": name,
                }},
                "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
            })
        });
        let deployments = self.deployments.iter();
        let deployments = deployments.map(|(name, &(replicas, max_skew, is_hard))| {
            let labels = json!({"app": name});
            let rule = if is_hard {
                "DoNotSchedule"
            } else {
                "ScheduleAnyway"
            };
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "namespace": "default", "labels": {LABEL: "true"}},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {
                            "containers": [{"name": "c", "image": "i"}],
                            "topologySpreadConstraints": [{
                                "maxSkew": max_skew, "topologyKey": ZONE, "whenUnsatisfiable": rule,
                                "labelSelector": {"matchLabels": labels},
                            }],
                        },
                    },
                },
            })
        });
        nodes.chain(deployments).collect()
    }
}

fn deed(dice: &mut Prng, names: &[String]) -> Deed {
    let name = dice.pick(names).clone();
    let ppm = |dice: &mut Prng| u32::try_from(dice.between(0, 300_000)).unwrap_or(0);
    let lasts = Span::from_secs(dice.between(5, 60));
    match dice.between(0, 13) {
        0..=5 => Deed::Scale(name, dice.between(0, 24)),
        6 => Deed::Label(name, dice.chance(2, 3)),
        7 => Deed::DeletePod(dice.next_u64()),
        8 => {
            let cost = i64::try_from(dice.between(0, 100)).unwrap_or(0) - 50;
            Deed::CostOfOther(dice.next_u64(), cost)
        }
        9 => Deed::Fault(
            Fault::Watch(WatchFault {
                delay: Span::from_millis(dice.between(0, 20_000)),
                repeat_ppm: ppm(dice),
                cut_ppm: ppm(dice),
            }),
            lasts,
        ),
        10 => Deed::Fault(
            Fault::Write(WriteFault {
                conflict_ppm: ppm(dice),
                lost_ppm: ppm(dice),
            }),
            lasts,
        ),
        _ => Deed::Crash(Crash {
            component: *dice.pick(&[
                Component::Controller,
                Component::Controller,
                Component::Controllers,
                Component::Scheduler,
            ]),
            after_writes: u32::try_from(dice.between(0, 12)).unwrap_or(0),
            down: Span::from_millis(dice.between(0, 20_000)),
        }),
    }
}

struct KeptLife {
    life: Life,
    dice: Prng,
    plan: Plan,
    /// By the uid of a pod.
    costs_of_others: BTreeMap<Arc<str>, String>,
}

impl KeptLife {
    fn live(&mut self) -> Going {
        let events = std::mem::take(&mut self.plan.events);
        for (at, deed) in events {
            if at >= self.plan.calm {
                break;
            }
            self.life.until(at)?;
            if let Some(kind) = deed.fault() {
                *self.life.figures.faults.entry(kind).or_default() += 1;
            }
            self.act(&deed);
        }
        self.life.until(self.plan.calm)?;
        self.life.sim.calm();
        self.life.rest(QUIET)?;
        self.life.sim.audit_rest();
        self.life.verdict()?;
        let names: Vec<String> = self.plan.deployments.keys().cloned().collect();
        for name in &names {
            self.judge_costs(name)?;
            self.scale_down(name)?;
        }
        for name in &names {
            self.act(&Deed::Label(name.clone(), false));
        }
        self.life.rest(QUIET)?;
        for name in &names {
            self.judge_costs(name)?;
        }
        Going::Continue(())
    }

    fn act(&mut self, deed: &Deed) {
        let pods = self.pods(None);
        let pod = |number: u64| {
            let index = usize::try_from(number % (pods.len().max(1) as u64)).unwrap_or(0);
            pods.get(index).cloned()
        };
        let sim = &mut self.life.sim;
        let answer = match deed {
            Deed::Scale(name, replicas) => sim
                .edit(&deployment(name), &mut |value| {
                    value["spec"]["replicas"] = json!(replicas);
                    Ok(())
                })
                .map(drop),
            Deed::Label(name, is_on) => sim
                .edit(&deployment(name), &mut |value| {
                    value["metadata"]["labels"] = match is_on {
                        true => json!({LABEL: "true"}),
                        false => json!({}),
                    };
                    Ok(())
                })
                .map(drop),
            Deed::DeletePod(number) => match pod(*number) {
                Some(pod) => sim.delete(&key_of(&pod), &DeleteOptions::KUBECTL),
                None => Ok(()),
            },
            Deed::CostOfOther(number, cost) => match pod(*number) {
                Some(pod) => {
                    let cost = cost.to_string();
                    // One that is equal to strew's own stays strew's: nothing tells them apart.
                    let is_own = Cost::of(Some(&cost), pod.meta.annotation(OWN_COST)).own();
                    let edited = sim.edit(&key_of(&pod), &mut |value| {
                        value["metadata"]["annotations"][COST] = json!(cost);
                        Ok(())
                    });
                    let uid = Arc::clone(&pod.meta.uid);
                    match (edited.is_ok(), is_own) {
                        (false, _) => None,
                        (true, Some(_)) => self.costs_of_others.remove(&uid),
                        (true, None) => self.costs_of_others.insert(uid, cost),
                    };
                    edited.map(drop)
                }
                None => Ok(()),
            },
            Deed::Fault(fault, lasts) => {
                sim.fault(*fault, *lasts);
                Ok(())
            }
            Deed::Crash(crash) => {
                sim.crash(*crash);
                Ok(())
            }
        };
        self.life.figures.ask(answer);
    }

    /// The pods that stay, of a Deployment or of all.
    fn pods(&self, of: Option<&str>) -> Vec<Arc<Pod>> {
        let pods = self.life.sim.server().tables().of::<Pod>().iter();
        let is_meant = |pod: &&Arc<Pod>| {
            pod.is_active() && of.is_none_or(|name| pod.meta.label("app") == Some(name))
        };
        pods.filter(is_meant).cloned().collect()
    }

    /// True if another client wrote the cost of a pod of the Deployment.
    fn is_of_others(&self, name: &str) -> bool {
        let pods = self.pods(Some(name));
        pods.iter()
            .any(|pod| self.costs_of_others.contains_key(&pod.meta.uid))
    }

    fn is_labelled(&self, name: &str) -> bool {
        let found = self.life.sim.server().tables().find(&deployment(name));
        found.is_some_and(|object| object.meta().label(LABEL) == Some("true"))
    }

    /// Costs of others are as they were written; and beside them, or without the label, there are no own ones.
    fn judge_costs(&mut self, name: &str) -> Going {
        let is_left = self.is_of_others(name) || !self.is_labelled(name);
        for pod in self.pods(Some(name)) {
            let cost = pod.meta.annotation(COST);
            let own = pod.meta.annotation(OWN_COST);
            let of_other = self.costs_of_others.get(&pod.meta.uid);
            if of_other.is_some_and(|of_other| cost != Some(of_other)) {
                let text = format!("{} has {cost:?}, not {of_other:?}", pod.meta.name);
                return self.blame(name, text);
            }
            if is_left && Cost::of(cost, own).own().is_some() {
                let text = format!("{} still has a cost of strew: {own:?}", pod.meta.name);
                return self.blame(name, text);
            }
        }
        Going::Continue(())
    }

    /// Scales down, up to three times: what is left is within the constraint's maxSkew, or no choice of as many pods leaves
    /// a smaller skew; and it needs no write.
    fn scale_down(&mut self, name: &str) -> Going {
        if self.is_of_others(name) || !self.is_labelled(name) {
            return Going::Continue(());
        }
        let max_skew = self.plan.deployments.get(name).map_or(1, |of| of.1);
        for _ in 0..3 {
            let before = self.per_zone(name);
            let n: u64 = before.values().sum();
            if n < 2 {
                break;
            }
            let replicas = self.dice.between(0, n - 1);
            let written = self.n_written();
            self.act(&Deed::Scale(name.to_owned(), replicas));
            let end = Span(self.life.sim.elapsed().0 + SCALED_WITHIN.0);
            self.life.until(end)?;
            let after = self.per_zone(name);
            self.life.figures.scaled += 1;
            let best = skew(&fullest_first(before.clone(), n - replicas));
            let within = best.max(max_skew);
            if after.values().sum::<u64>() != replicas || skew(&after) > within {
                let text = format!(
                    "{before:?} became {after:?}; the least skew is {best}, and maxSkew {max_skew}"
                );
                return self.blame(name, text);
            }
            if self.n_written() > written {
                let text = format!("the scale-down from {n} to {replicas} needed a write");
                return self.blame(name, text);
            }
        }
        Going::Continue(())
    }

    fn n_written(&self) -> u64 {
        let keeper = self.life.sim.keeper();
        keeper.map_or(0, |keeper| keeper.counters().written)
    }

    fn per_zone(&self, name: &str) -> BTreeMap<u64, u64> {
        let mut zones: BTreeMap<u64, u64> = (0..3).map(|zone| (zone, 0)).collect();
        for pod in self.pods(Some(name)) {
            let node = pod.node.as_deref().unwrap_or_default();
            let index: u64 = node.trim_start_matches('n').parse().unwrap_or_default();
            *zones.entry(index % 3).or_default() += 1;
        }
        zones
    }

    fn blame(&self, name: &str, text: String) -> Going {
        Going::Break(vec![Violation {
            rule: Rule::KeptSpread,
            after: self.life.sim.elapsed(),
            actor: name.to_owned(),
            text,
        }])
    }
}

/// The counts when pods are removed from the fullest zone each.
fn fullest_first(mut zones: BTreeMap<u64, u64>, n: u64) -> BTreeMap<u64, u64> {
    for _ in 0..n {
        if let Some(fullest) = zones.values_mut().max() {
            *fullest -= 1;
        }
    }
    zones
}

fn skew(zones: &BTreeMap<u64, u64>) -> u64 {
    let most = zones.values().max().copied().unwrap_or(0);
    most - zones.values().min().copied().unwrap_or(0)
}

fn deployment(name: &str) -> Key {
    Key {
        kind: Kind::Deployment,
        name: Name::new("default", name),
    }
}

fn key_of(pod: &Pod) -> Key {
    Key {
        kind: Kind::Pod,
        name: pod.meta.name.clone(),
    }
}
