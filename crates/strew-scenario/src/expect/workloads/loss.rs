//! Claims about what a loss does to workloads.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Node, Object, Pod};
use strew_controllers::taint_eviction::no_execute;
use strew_controllers::taint_eviction::toleration::{Stay, stay};
use strew_manifest::advice::Advice;
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;
use strew_model::Span;
use strew_view::away::{self, Refusing};
use strew_view::loss::{Loss, LossVerdict};

use super::budget::Budgets;
use super::replicas::Replicas;
use super::{eviction, is, is_counted, name, workload_of};
use crate::expect::availability::{Availability, Record};
use crate::expect::pods::{blocked_by, message, other_scheduler};
use crate::expect::present::world_of;
use crate::expect::{Answer, Present, Verdict};
use crate::format::ObjectTarget;

/// The cause of such a finding.
const COUNTS_THE_LOST: &str = "its hard constraint still counts the lost domain, with no pod in it";

/// What a loss did to a workload, or to a pod without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LossOf {
    /// The workload, or the pod.
    pub key: Key,
    /// Its name: `deployment/web`, with its namespace if that is not `default`.
    pub name: String,
    /// The numbers.
    pub loss: Loss,
    /// Its ready pods from change to change, with the time since the step began.
    pub over_time: Vec<(Span, u32)>,
    /// Why pods are missing at rest; `None` if none is, or if it is not known.
    pub missing: Option<Missing>,
    /// True if it is of a dump beside which something new comes: then its loss is a note.
    pub is_recorded: bool,
}

/// Judges what the loss at the begin of the step did to all workloads, or to that of `of`. Those that were short at
/// second 0 (`before`) are not judged, and those of a dump beside which something new comes (`recorded`) fail nothing. The
/// second part is what each met: what fails first, then the worst.
pub fn survives(
    present: &dyn Present,
    of: Option<&ObjectTarget>,
    [before, recorded]: [&BTreeSet<Arc<str>>; 2],
    availability: &Availability,
) -> (Verdict, Vec<LossOf>) {
    let now = present.elapsed();
    let tables = present.server().tables();
    let budgets = Budgets::of(tables, &BTreeSet::new());
    let pods = LazyCell::new(|| by_workload(tables));
    let judged = availability.records().filter(|(uid, record)| match of {
        Some(target) => is(&record.key, target),
        None => !before.contains(*uid),
    });
    let mut world = None;
    let mut refusing =
        |uid: &str| away::refusing(world.get_or_insert_with(|| world_of(present)), uid);
    let mut losses: Vec<LossOf> = judged
        .filter_map(|(uid, record)| {
            let mut loss = loss(tables, &budgets, record, now)?;
            let is_missed = loss.ready < loss.wanted && loss.verdict() != LossVerdict::Unknown;
            let missing = { is_missed.then(|| pods.get(uid).map_or(&[][..], Vec::as_slice)) }
                .and_then(|own| missing(present, &mut refusing, own, record));
            let hindrance = missing.as_ref().and_then(Missing::hindrance);
            loss.is_unplayed = matches!(hindrance, Some(Hindrance::OtherScheduler(_)));
            Some(LossOf {
                key: record.key.clone(),
                name: name(&record.key),
                loss,
                over_time: record.over_time.changes(),
                missing,
                is_recorded: of.is_none() && recorded.contains(uid),
            })
        })
        .collect();
    losses.sort_by(|a, b| a.place().cmp(&b.place()));
    if let Some(target) = of
        && losses
            .iter()
            .all(|of| of.loss.verdict() == LossVerdict::Unknown)
    {
        let known = losses.first().map(LossOf::sentence);
        let why = known.unwrap_or_else(|| format!("the ready pods of {target} are not counted"));
        return (Verdict::of(Answer::Nothing, why), losses);
    }
    let lost = losses.iter();
    let lost = lost.filter(|of| of.severity() == Some(Severity::Error));
    let lost: Vec<String> = lost.map(LossOf::sentence).collect();
    let findings = losses.iter().filter_map(LossOf::finding).collect();
    let verdict = Verdict::new(lost.is_empty(), lost.join("; ")).with_findings(findings);
    (verdict, losses)
}

impl LossOf {
    /// How bad it is; `None` if there is nothing to act on.
    pub fn severity(&self) -> Option<Severity> {
        let severity = self.loss.severity()?;
        Some(match self.is_recorded {
            true => Severity::Note,
            false => severity,
        })
    }

    /// What it is sorted by.
    fn place(&self) -> (bool, LossVerdict, &str) {
        (self.is_recorded, self.loss.verdict(), &self.name)
    }

    /// `deployment/web is DEGRADED: 6 of 8 ready …: no room …`.
    fn sentence(&self) -> String {
        let Self {
            name,
            loss,
            missing,
            is_recorded,
            ..
        } = self;
        let verdict = loss.verdict().name();
        let mut text = format!("{name} is {verdict}: {}", loss.sentence());
        if let Some(missing) = missing {
            text.push_str(": ");
            text.push_str(&missing.to_string());
        }
        if *is_recorded {
            text.push_str(" (of the dump)");
        }
        text
    }

    fn finding(&self) -> Option<Finding> {
        let Loss {
            wanted,
            ready,
            fewest,
            none_for,
            ..
        } = self.loss;
        let severity = self.severity()?;
        let seconds = i64::try_from(none_for.0 / 1_000_000_000).unwrap_or(i64::MAX);
        let mut finding = Finding::new(severity, self.loss.verdict().code(), self.sentence())
            .about(self.name.clone())
            .with_number("wanted", wanted.into())
            .with_number("ready", ready.into())
            .with_number("fewest", fewest.into());
        if let Some(Missing::Pending(_, Hindrance::CountsTheLost)) = self.missing {
            finding.advise(Some(Advice::HonorTaints));
        }
        Some(match none_for.0 {
            0 => finding,
            _ => finding.with_number("secondsWithoutReady", seconds),
        })
    }
}

/// The numbers of a workload; `None` if it is not there any more, or is a pod that has ended.
fn loss(tables: &Tables, budgets: &Budgets<'_>, record: &Record, now: Span) -> Option<Loss> {
    let object = tables.find(&record.key);
    let budgets = match &object {
        Some(object) if is_counted(object) => budgets.of_workload(object),
        Some(Object::Pod(_)) => Vec::new(),
        _ if record.is_gone => Vec::new(),
        _ => return None,
    };
    (record.wanted > 0).then(|| Loss {
        wanted: record.wanted,
        before: record.before,
        at_once: record.at_once,
        ready: record.ready,
        fewest: record.fewest,
        short_for: record.short_for(now),
        none_for: record.none_for(now),
        budgets,
        quorum: 0,
        is_unplayed: false,
    })
}

/// Why pods of a workload are missing at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// It is a pod without a workload, and gone: nothing makes it again.
    Gone,
    /// So many are on nodes from which this taint evicts them.
    Evicted(usize, String),
    /// So many terminate on a lost node. For a StatefulSet, whose next pod has the same name, that is the cause.
    Terminating(usize, Kind),
    /// This number stays on lost nodes: the pods tolerate their taints without an end.
    Staying(usize),
    /// So many are Pending.
    Pending(usize, Hindrance),
    /// The API server refuses to create this many: why.
    Refused(usize, String),
    /// A StatefulSet makes this many in order only, after this pod, which is not ready.
    Behind(usize, String),
}

impl Missing {
    /// What keeps the Pending pods from the nodes that are left.
    fn hindrance(&self) -> Option<&Hindrance> {
        match self {
            Self::Pending(_, hindrance) => Some(hindrance),
            _ => None,
        }
    }
}

/// Answers why hard constraints refuse the Pending pod of a uid, where the reason is no domain without pods.
type Ask<'a> = &'a mut dyn FnMut(&str) -> Option<Refusing>;

/// What keeps a Pending pod from the nodes that are left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// Its volume is where no node is left.
    Volume,
    /// Its hard constraint counts the lost domain.
    CountsTheLost,
    /// Its hard constraint, for another reason.
    Constraint(Refusing),
    /// It is of this scheduler, which is not played.
    OtherScheduler(String),
    /// They have no room; kube-scheduler's reasons.
    Room(String),
    /// Its affinity to pods; kube-scheduler's reasons.
    Affinity(String),
    /// Its node selector, its node affinity or taints admit none of them; kube-scheduler's reasons.
    Nodes(String),
    /// Something else: kube-scheduler's reasons, maybe empty.
    Other(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it has no workload that would make it again"),
            Self::Evicted(n, why) => write!(f, "{n} on nodes whose {why}"),
            Self::Terminating(n, Kind::StatefulSet) => write!(
                f,
                "{n} Terminating on a lost node, and a StatefulSet makes no second pod of the same name"
            ),
            Self::Terminating(n, _) => write!(f, "{n} Terminating on a lost node"),
            Self::Staying(1) => f.write_str(
                "1 stays on a lost node, whose taint it tolerates without an end: nothing makes another",
            ),
            Self::Staying(n) => write!(
                f,
                "{n} stay on lost nodes, whose taints they tolerate without an end: nothing makes others"
            ),
            Self::Pending(n, why) => write!(f, "{n} Pending: {why}"),
            Self::Refused(n, why) => write!(f, "{n} not made: {why}"),
            Self::Behind(n, first) => write!(
                f,
                "{n} not made: its StatefulSet makes pods in order, and {first} is not ready"
            ),
        }
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |reasons: &str| match reasons {
            "" => String::new(),
            reasons => format!(" ({reasons})"),
        };
        match self {
            Self::Volume => f.write_str("its volume is where no node is left"),
            Self::CountsTheLost => f.write_str(COUNTS_THE_LOST),
            Self::Constraint(refusing) => refusing.fmt(f),
            Self::OtherScheduler(name) => write!(f, "its scheduler {name} is not played"),
            Self::Room(reasons) if reasons.split(", ").all(is_about_room) => {
                write!(f, "no room on the nodes that are left{}", told(reasons))
            }
            Self::Room(reasons) => {
                write!(
                    f,
                    "none of the nodes that are left takes it{}",
                    told(reasons)
                )
            }
            Self::Affinity(reasons) => write!(
                f,
                "its affinity admits none of the nodes that are left{}",
                told(reasons)
            ),
            Self::Nodes(reasons) if reasons.is_empty() => {
                f.write_str("it does not tolerate the taints of the nodes that are left")
            }
            Self::Other(reasons) if reasons.is_empty() => {
                f.write_str("the scheduler has given no reason")
            }
            Self::Nodes(reasons) | Self::Other(reasons) => f.write_str(reasons),
        }
    }
}

/// True for a reason of kube-scheduler's that more nodes of the same kind take away: `6 Insufficient cpu`.
fn is_about_room(reason: &str) -> bool {
    let reason = reason.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let words = [
        "Insufficient ",
        "Too many pods",
        "node(s) didn't have free ports",
    ];
    reason.is_empty() || words.iter().any(|word| reason.starts_with(word))
}

/// The pods of each workload, by its uid.
fn by_workload(tables: &Tables) -> HashMap<Arc<str>, Vec<&Arc<Pod>>> {
    let mut by_workload: HashMap<Arc<str>, Vec<&Arc<Pod>>> = HashMap::new();
    for pod in tables.of::<Pod>().iter() {
        if let Some(uid) = workload_of(tables, pod) {
            by_workload.entry(uid).or_default().push(pod);
        }
    }
    by_workload
}

/// Why pods of a workload are missing: what keeps the Pending ones from the nodes that are left, or why there is none;
/// `None` if it is not known. `own` are those that there are.
fn missing(
    present: &dyn Present,
    refusing: Ask<'_>,
    own: &[&Arc<Pod>],
    record: &Record,
) -> Option<Missing> {
    if record.is_gone {
        return Some(Missing::Gone);
    }
    let tables = present.server().tables();
    let (leaving, active): (Vec<&Arc<Pod>>, Vec<_>) =
        { own.iter() }.partition(|pod| pod.meta.is_terminating() && !pod.is_finished());
    let all = || leaving.iter().chain(&active);
    let mut evicted = all().filter_map(|pod| evicted(tables, pod));
    let pending: Vec<_> = active.iter().filter(|pod| pod.node.is_none()).collect();
    let Some(first) = pending.first() else {
        if let Some(why) = evicted.next() {
            return Some(Missing::Evicted(1 + evicted.count(), why));
        }
        if let Some(why) = refusal(present, record) {
            let n = record.wanted.saturating_sub(record.ready);
            return Some(Missing::Refused(n as usize, why));
        }
        return match leaving.len() {
            0 => {
                if let Some(behind) = behind(tables, &active, record) {
                    return Some(behind);
                }
                let staying = active.iter().filter(|pod| stays(tables, pod)).count();
                (staying > 0).then_some(Missing::Staying(staying))
            }
            n => Some(Missing::Terminating(n, record.key.kind.clone())),
        };
    };
    let hindrance = hindrance(present, refusing, first);
    Some(Missing::Pending(pending.len(), hindrance))
}

/// The pods that a StatefulSet does not make because an earlier one is not ready.
fn behind(tables: &Tables, active: &[&Arc<Pod>], record: &Record) -> Option<Missing> {
    let Some(Object::StatefulSet(set)) = tables.find(&record.key) else {
        return None;
    };
    let is_parallel = set.spec.pod_management_policy.as_deref() == Some("Parallel");
    let n = (record.wanted as usize).saturating_sub(active.len());
    let first = active.iter().filter(|pod| !pod.is_ready());
    let first = first.min_by_key(|pod| {
        let name = &pod.meta.name.name;
        let ordinal = name
            .rsplit_once('-')
            .and_then(|(_, ordinal)| ordinal.parse::<u32>().ok());
        ordinal.unwrap_or(u32::MAX)
    })?;
    let name = first.meta.name.name.to_string();
    (n > 0 && !is_parallel).then_some(Missing::Behind(n, name))
}

/// Why pods of a workload were refused at their creation; `None` if none is missing, of the newest template either, or
/// none was refused.
fn refusal(present: &dyn Present, record: &Record) -> Option<String> {
    let (key, server) = (&record.key, present.server());
    let object = server.tables().find(key).filter(is_counted)?;
    let replicas = Replicas::of(&object)?;
    let recorded = || super::last_refusal(server.events(), key, &object.meta().uid);
    let refusal = replicas.refusal(recorded);
    refusal.or_else(|| {
        let (updated, to_be) = replicas.updated?;
        replicas.refused.filter(|_| updated < to_be)
    })
}

/// What keeps a Pending pod from the nodes that are left.
fn hindrance(present: &dyn Present, refusing: Ask<'_>, pod: &Pod) -> Hindrance {
    if let Some(name) = other_scheduler(pod, present.profiles()) {
        return Hindrance::OtherScheduler(name.to_owned());
    }
    let by = blocked_by(present, pod);
    let has = |plugins: &[&str]| plugins.iter().any(|plugin| by.contains(plugin));
    let reasons = reasons(message(pod));
    if has(&["VolumeBinding", "VolumeZone"]) {
        return Hindrance::Volume;
    }
    if has(&["PodTopologySpread"])
        && let Some(refusing) = refusing(&pod.meta.uid)
    {
        return match refusing {
            Refusing::Lost => Hindrance::CountsTheLost,
            refusing => Hindrance::Constraint(refusing),
        };
    }
    if has(&["NodeResourcesFit", "NodePorts"]) {
        return Hindrance::Room(reasons);
    }
    if has(&["InterPodAffinity"]) {
        return Hindrance::Affinity(reasons);
    }
    // Nodes that are left lack the label of a constraint: the taints are those of the lost ones.
    let lacks_label = has(&["PodTopologySpread"]) && !reasons.is_empty();
    match has(&["NodeAffinity", "TaintToleration"]) && !lacks_label {
        true => Hindrance::Nodes(reasons),
        false => Hindrance::Other(reasons),
    }
}

/// True for a pod on a node that is lost, whose taints it tolerates without an end.
fn stays(tables: &Tables, pod: &Pod) -> bool {
    let node = pod.node.as_ref();
    let node = node.and_then(|node| tables.get::<Node>(&Name::new("", Arc::clone(node))));
    node.is_some_and(|node| {
        let taints = no_execute(node);
        !taints.is_empty() && matches!(stay(&pod.spec, &taints), Stay::Forever)
    })
}

/// Why a pod may not stay on its node, if that is no taint of a lost node.
fn evicted(tables: &Tables, pod: &Pod) -> Option<String> {
    let node = tables.get::<Node>(&Name::new("", Arc::clone(pod.node.as_ref()?)))?;
    let taints = no_execute(node).into_iter();
    let taints: Vec<_> = taints
        .filter(|taint| !taint.key.starts_with("node.kubernetes.io/"))
        .collect();
    eviction(pod, &taints)
}

/// The reasons in kube-scheduler's sentence, without taints and cordons: those of lost nodes.
fn reasons(message: &str) -> String {
    let (_, reasons) = message
        .split_once(" nodes are available: ")
        .unwrap_or_default();
    let reasons = reasons.split(". ").next().unwrap_or_default();
    let reasons = reasons.trim_end_matches('.').split(", ");
    let reasons: Vec<&str> = reasons
        .filter(|reason| {
            let is_away = ["untolerated taint", "were unschedulable"];
            !reason.is_empty() && !is_away.iter().any(|words| reason.contains(words))
        })
        .collect();
    reasons.join(", ")
}

#[cfg(test)]
mod tests {
    use super::reasons;

    #[test]
    fn reasons_are_those_of_nodes_that_are_left() {
        let message = "0/12 nodes are available: 4 node(s) had untolerated taint(s), 8 Insufficient cpu. preemption: 0/12 nodes are available: 12 No preemption victims found.";
        assert_eq!(reasons(message), "8 Insufficient cpu");
        assert_eq!(reasons("something else"), "");
        let message = "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't have free ports for the requested pod ports.";
        let ports = "2 node(s) didn't have free ports for the requested pod ports";
        assert_eq!(reasons(message), ports);
    }

    #[test]
    fn room_is_told_where_room_alone_is_missing() {
        let told = |reasons: &str| super::Hindrance::Room(reasons.to_owned()).to_string();
        let cpu = "no room on the nodes that are left (6 Insufficient cpu)";
        assert_eq!(told("6 Insufficient cpu"), cpu);
        let both = "3 Insufficient cpu, 3 node(s) didn't satisfy existing pods anti-affinity rules";
        assert_eq!(
            told(both),
            format!("none of the nodes that are left takes it ({both})")
        );
    }
}
