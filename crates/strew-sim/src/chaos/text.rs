//! Prints a story in the form of a scenario.

use std::fmt::{self, Display, Formatter};

use strew_apiserver::Propagation;

use super::manifests;
use super::settings;
use super::story::{
    Action, Budgeting, NodePlan, Spread, SpreadPlan, Story, SubsetPlan, Worker, Workload,
};
use crate::fault::Fault;
use crate::registration::HookDeed;

impl Display for Story {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed: {}", self.seed)?;
        write!(f, "{}", settings::Written(&self.limits))?;
        if self.world.elects {
            writeln!(f, "elections: true")?;
        }
        writeln!(f, "nodes:")?;
        for node in &self.world.nodes {
            writeln!(f, "- {node}")?;
        }
        if let Some(group) = self.world.group {
            let zone = manifests::zone(group.zone);
            let (max, cpu) = (group.max, group.cpu);
            writeln!(f, "nodeGroup: {{max: {max}, zone: {zone}, cpu: {cpu}m}}")?;
        }
        if let Some(quota) = self.world.quota {
            write!(f, "quota: {{pods: {}", quota.pods)?;
            if quota.cpu > 0 {
                write!(f, ", requests.cpu: {}m", quota.cpu)?;
            }
            writeln!(f, "}}")?;
        }
        writeln!(f, "workloads:")?;
        for workload in &self.world.workloads {
            writeln!(f, "- {workload}")?;
        }
        if !self.world.spreads.is_empty() {
            writeln!(f, "webhook-replicas: {}", self.world.n_webhooks)?;
            if let Some(plan) = self.world.registration {
                let (guards, lag) = (plan.n_guards, plan.lag);
                let (strict, lives) = (plan.is_strict, plan.lives);
                writeln!(
                    f,
                    "registration: {{controllers: {guards}, known-after: {lag}, strict: {strict}, \
                     authority: {}, serving: {}, overlap: {}, age: {}}}",
                    lives.authority, lives.serving, lives.overlap, lives.age
                )?;
            }
            writeln!(f, "workloadspreads:")?;
        }
        for spread in &self.world.spreads {
            writeln!(f, "- {spread}")?;
        }
        writeln!(f, "steps:")?;
        for event in &self.events {
            writeln!(f, "- {{at: {}, {}}}", event.at, event.action)?;
        }
        writeln!(f, "- {{at: {}, calm: true}}", self.calm)
    }
}

impl Display for NodePlan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{name: {}", self.name)?;
        if let Some(zone) = self.zone {
            write!(f, ", zone: {}", manifests::zone(zone))?;
        }
        write!(f, ", cpu: {}m, pods: {}", self.cpu, self.pods)?;
        if self.is_tainted {
            write!(f, ", taint: dedicated")?;
        }
        if self.is_cordoned {
            write!(f, ", unschedulable: true")?;
        }
        write!(f, "}}")
    }
}

impl Display for Workload {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (kind, _) = manifests::kind(self.worker);
        write!(f, "{{kind: {kind}, name: {}", self.name)?;
        write!(f, ", replicas: {}, cpu: {}m", self.replicas, self.cpu)?;
        match self.worker {
            Worker::Deployment(true) => write!(f, ", strategy: Recreate")?,
            Worker::StatefulSet(true) => write!(f, ", podManagementPolicy: Parallel")?,
            Worker::CronJob(rule) => write!(f, ", concurrencyPolicy: {}", rule.name())?,
            _ => {}
        }
        if self.priority > 0 {
            write!(f, ", priority: p{}", self.priority)?;
        }
        if self.tolerates {
            write!(f, ", tolerates: dedicated")?;
        }
        if self.has_port {
            write!(f, ", hostPort: 8080")?;
        }
        for spread in &self.spread {
            write!(f, ", spread: {spread}")?;
        }
        if let Some(anti) = &self.anti {
            let key = if anti.by_zone { "zone" } else { "hostname" };
            write!(f, ", antiAffinity: {{app: {}, by: {key}}}", anti.from)?;
        }
        match self.budget {
            Some(Budgeting::MaxUnavailable(n)) => write!(f, ", budget: {{maxUnavailable: {n}}}")?,
            Some(Budgeting::MinAvailable(n)) => write!(f, ", budget: {{minAvailable: {n}}}")?,
            Some(Budgeting::MinPercent(n)) => write!(f, ", budget: {{minAvailable: {n}%}}")?,
            None => {}
        }
        if self.is_zone_aware {
            write!(f, ", byZone: true")?;
        }
        if self.keeps_spread {
            write!(f, ", keep: true")?;
        }
        if let Some(scaling) = self.scaling {
            write!(
                f,
                ", autoscaler: {{min: {}, max: {}}}",
                scaling.min, scaling.max
            )?;
        }
        if self.is_late {
            write!(f, ", created: later")?;
        }
        write!(f, "}}")
    }
}

impl Display for SpreadPlan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{of: {}, subsets: [", self.of)?;
        for (number, subset) in (0..).zip(&self.subsets) {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{{zone: {}", manifests::zone(number))?;
            match subset {
                SubsetPlan::Count(n) => write!(f, ", maxReplicas: {n}}}")?,
                SubsetPlan::Percent(n) => write!(f, ", maxReplicas: {n}%}}")?,
                SubsetPlan::Unlimited => write!(f, "}}")?,
            }
        }
        write!(f, "]")?;
        if let Some((critical, simulates)) = self.adaptive {
            write!(
                f,
                ", adaptive: {{critical: {critical}s, simulates: {simulates}}}"
            )?;
        }
        if self.is_whole {
            write!(f, ", limit-scope: workload")?;
        }
        if self.takes_others {
            write!(f, ", target-selector: {}", manifests::OF_ALL)?;
        }
        write!(f, "}}")
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let key = if self.by_zone { "zone" } else { "hostname" };
        write!(
            f,
            "{{by: {key}, maxSkew: {}, hard: {}",
            self.max_skew, self.is_hard
        )?;
        if self.min_domains > 0 {
            write!(f, ", minDomains: {}", self.min_domains)?;
        }
        let flags = [
            ("matchLabelKeys: [pod-template-hash]", self.by_revision),
            ("nodeTaintsPolicy: Honor", self.honors_taints),
            ("pods: all", self.of_all),
        ];
        for (text, _) in flags.iter().filter(|(_, is_set)| *is_set) {
            write!(f, ", {text}")?;
        }
        write!(f, "}}")
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(name) => write!(f, "create: {name}"),
            Self::Scale(name, n) => write!(f, "scale: {{{name}: {n}}}"),
            Self::SetImage(name, n) => write!(f, "set-image: {{{name}: app:{n}}}"),
            Self::Restart(name) => write!(f, "restart: {name}"),
            Self::Undo(name) => write!(f, "undo: {name}"),
            Self::Pause(name) => write!(f, "pause: {name}"),
            Self::Resume(name) => write!(f, "resume: {name}"),
            Self::Ready(name, ready) => write!(f, "ready: {{{name}: {ready}}}"),
            Self::Use(name, percent) => write!(f, "metric: {{{name}: {percent}}}"),
            Self::Delete(name, how) => match how {
                Propagation::Background => write!(f, "delete: {name}"),
                how => write!(f, "delete: {name}, cascade: {how:?}"),
            },
            Self::Limit(name, subset, n) => {
                write!(f, "limit: {{{name}: {{subset-{subset}: {n}}}}}")
            }
            Self::DeletePod(n) => write!(f, "delete-pod: {n}"),
            Self::Drain(node) => write!(f, "drain: {node}"),
            Self::Cordon(node) => write!(f, "cordon: {node}"),
            Self::Uncordon(node) => write!(f, "uncordon: {node}"),
            Self::Taint(node, effect) => write!(f, "taint: {{{node}: storm:{}}}", effect.name()),
            Self::Untaint(node) => write!(f, "untaint: {node}"),
            Self::Rezone(node, zone) => write!(f, "label: {{{node}: {}}}", manifests::zone(*zone)),
            Self::Lose(node) => write!(f, "lose: {node}"),
            Self::Restore(node) => write!(f, "restore: {node}"),
            Self::DeleteNode(node) => write!(f, "delete-node: {node}"),
            Self::CreateNode(node) => write!(f, "create-node: {node}"),
            Self::Crash(crash) => write!(
                f,
                "crash: {:?}, after-writes: {}, down: {}",
                crash.component, crash.after_writes, crash.down
            ),
            Self::Hooks(deed) => write!(f, "registration: {}", WrittenDeed(deed)),
            Self::Jump(by) => write!(f, "clock-jump: {by}"),
            Self::Fault(fault, lasts) => {
                write!(f, "{}, for: {lasts}", WrittenFault(fault))
            }
        }
    }
}

/// A deed on the registration, in words.
struct WrittenDeed<'a>(&'a HookDeed);

impl Display for WrittenDeed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            HookDeed::End(place, down) => write!(f, "{{end: {place}, down: {down}}}"),
            HookDeed::Cut(place, lasts) => write!(f, "{{cut-off: {place}, for: {lasts}}}"),
            HookDeed::Busy(place, lasts) => write!(f, "{{busy: {place}, for: {lasts}}}"),
            HookDeed::Closed(lasts) => write!(f, "{{port: closed, for: {lasts}}}"),
            HookDeed::Hidden(lasts) => write!(f, "{{port: hidden, for: {lasts}}}"),
            HookDeed::Delete(back) => write!(f, "{{delete: true, applied-after: {back}}}"),
            HookDeed::Edit(edit) => write!(f, "{{edit: {edit:?}}}"),
        }
    }
}

/// A fault, in words.
pub(super) struct WrittenFault<'a>(pub(super) &'a Fault);

impl Display for WrittenFault<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fault::Watch(w) => write!(
                f,
                "watch: {{delay: {}, repeat-ppm: {}, cut-ppm: {}}}",
                w.delay, w.repeat_ppm, w.cut_ppm
            ),
            Fault::Write(w) => write!(
                f,
                "write: {{conflict-ppm: {}, lost-ppm: {}}}",
                w.conflict_ppm, w.lost_ppm
            ),
            Fault::Bind(b) => {
                write!(f, "bind: {{slow: {}, fail-ppm: {}}}", b.slow, b.fail_ppm)
            }
            Fault::Lease(l) => write!(f, "lease: {{lost-ppm: {}}}", l.lost_ppm),
            Fault::Webhook(w) => write!(
                f,
                "webhook: {{lost-ppm: {}, write-lost-ppm: {}, slower: {}}}",
                w.lost_ppm, w.write_lost_ppm, w.slower
            ),
            Fault::SecondScheduler => write!(f, "second-scheduler: true"),
        }
    }
}
