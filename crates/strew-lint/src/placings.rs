//! Each workload of the files, placed by the engine on the nodes of the files, and what that shows.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::Value;
use strew_cluster::{NodeIdx, PodSpec, Policy, SpreadConstraint};
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::kinds;
use strew_manifest::read::KubeObject;
use strew_model::well_known::HOSTNAME;
use strew_scheduler::Reason;
use strew_wire::facts;
use strew_wire::rolling::of_deployment;

use crate::Found;
use crate::files::{Files, Workload};
use crate::played::REVISION;
use crate::rules::claim::claim_of;
use crate::rules::constraint::others_of;
use crate::rules::domains::n_domains;
use crate::stage::{Hung, TRIES};
use crate::trial::{Bench, PODS_MAX, Placed, Pods};

/// What came of placing the workloads of the files.
pub(crate) struct Placings {
    /// The findings, by rule.
    found: BTreeMap<&'static str, Vec<Found>>,
    /// The nodes of the pods of workloads whose pods all found one, by the index of the workload.
    pub(crate) nodes: BTreeMap<usize, Vec<NodeIdx>>,
    /// The nodes; `None` if the files have none.
    pub(crate) bench: Option<RefCell<Bench>>,
}

/// True for a kind whose pods may go to any node that takes them, as many as `replicas`.
fn is_placed(kind: &str) -> bool {
    kind == "Job" || kinds::of_kind(kind).is_some_and(|row| row.scales)
}

/// True for a kind whose pods are to find a node, wherever: those of a CronJob, of one of its Jobs.
fn is_judged(files: &Files<'_>, workload: &Workload<'_>) -> bool {
    match files.objects[workload.object] {
        // Pods of an owner that is not in the files count together, and some of them may run.
        KubeObject::Pod(_) => workload.n_pods == Some(1),
        KubeObject::CronJob(cron) => cron.spec.suspend != Some(true),
        _ => is_placed(workload.kind),
    }
}

impl Placings {
    pub(crate) fn of(files: &Files<'_>) -> Self {
        let mut placings = Self {
            found: BTreeMap::new(),
            nodes: BTreeMap::new(),
            bench: None,
        };
        if files.nodes.is_empty() || files.more_come {
            return placings;
        }
        let mut bench = Bench::of(files.objects, files.scheduling);
        let mut all = AllPods::default();
        for (number, workload) in files.workloads.iter().enumerate() {
            if let Some(found) = daemons_without_node(files, workload, &mut bench) {
                let of_rule = placings.found.entry("selector-matches-no-node");
                of_rule.or_default().push(found);
            }
            if let Some(found) = daemons_without_room(files, workload, &mut bench) {
                let of_rule = placings.found.entry("pods-do-not-fit");
                of_rule.or_default().push(found);
            }
            let Some(mut case) = Case::of(files, number, &mut bench, &mut all) else {
                continue;
            };
            for (rule, found) in case.judge() {
                placings.found.entry(rule).or_default().push(found);
            }
            if let Some(nodes) = case.nodes {
                placings.nodes.insert(number, nodes);
            }
        }
        placings.bench = Some(RefCell::new(bench));
        placings
    }

    /// The findings of a rule.
    pub(crate) fn found(&self, rule: &str) -> Vec<Found> {
        self.found.get(rule).cloned().unwrap_or_default()
    }
}

/// A DaemonSet none of whose pods has a node. It is a note: pools may be empty on purpose.
fn daemons_without_node(
    files: &Files<'_>,
    workload: &Workload<'_>,
    bench: &mut Bench,
) -> Option<Found> {
    if workload.kind != "DaemonSet" {
        return None;
    }
    let pods = pods_of(files, workload, bench)?;
    if bench.is_wanted(&pods.spec) {
        return None;
    }
    let reason = bench.place(&pods, 1).refused?;
    let message = format!("it has no pod: {reason}");
    let path = match workload.spec.node_selector.is_some() {
        true => workload.spec_path.child("nodeSelector"),
        false => workload.spec_path.child("affinity.nodeAffinity"),
    };
    let note = Found::note(workload.object, path, message);
    Some(note.help("compare them with the labels of the nodes"))
}

/// A DaemonSet whose pods find room on no node that they ask for. Taints are left out, since its controller adds
/// tolerations.
fn daemons_without_room(
    files: &Files<'_>,
    workload: &Workload<'_>,
    bench: &mut Bench,
) -> Option<Found> {
    if workload.kind != "DaemonSet" || files.grows {
        return None;
    }
    let pods = pods_of(files, workload, bench)?;
    if !bench.is_wanted(&pods.spec) || !running(workload, bench).is_empty() {
        return None;
    }
    let nothing = bench.symbol("");
    let pods = pods.on_tainted(nothing);
    let reason = bench.place(&pods, 1).refused?;
    let priority = priority_of(workload, &classes(files))?;
    let never = workload.spec.preemption_policy.as_deref() == Some("Never");
    if !never && bench.place_of_lower(&[], &pods, 1, priority).is_some() {
        return None;
    }
    let message = format!("none of its pods finds a node: {reason}");
    let warning = Found::warning(workload.object, workload.spec_path.clone(), message);
    Some(warning.help(
        "other workloads of the files are not even counted: larger nodes, or smaller requests",
    ))
}

/// A workload that the engine is to place.
struct Case<'f, 'a, 'b> {
    files: &'f Files<'a>,
    /// Its index.
    number: usize,
    workload: &'f Workload<'a>,
    bench: &'b mut Bench,
    pods: Pods,
    /// The pods that its required podAffinity asks for, and theirs: they are placed first.
    before: Vec<(Pods, i64)>,
    /// How many pods it asks for.
    n_pods: i64,
    /// How many of them run already.
    n_running: i64,
    /// The nodes of all its pods, if all found one.
    nodes: Option<Vec<NodeIdx>>,
    /// True if a WorkloadSpread chooses the subset of each pod: only a play says where they go.
    is_spread: bool,
}

impl<'f, 'a, 'b> Case<'f, 'a, 'b> {
    /// `None`: its pods cannot be placed like that, or something else decides about them.
    fn of(
        files: &'f Files<'a>,
        number: usize,
        bench: &'b mut Bench,
        all: &mut AllPods,
    ) -> Option<Self> {
        let workload = &files.workloads[number];
        let n_pods = workload
            .n_pods
            .filter(|n| (1..=PODS_MAX).contains(n))
            .filter(|_| is_judged(files, workload))?;
        let mut pods = pods_of(files, workload, bench)?;
        let before = match all.before(files, number, &pods, bench) {
            Some(before) => before,
            // Where those pods are is not known: what asks for them is left out.
            None => {
                pods.spec.affinity.required = Box::default();
                Vec::new()
            }
        };
        let nodes = running(workload, bench);
        Some(Self {
            files,
            number,
            workload,
            before,
            n_running: i64::try_from(nodes.len()).ok()?.min(n_pods),
            nodes: Some(nodes),
            bench,
            pods,
            n_pods,
            is_spread: files.spread.contains_key(&number),
        })
    }

    /// True if all pods find a node after this change.
    fn fits(&mut self, pods: &Pods) -> bool {
        let missing = self.n_pods - self.n_running;
        self.place(&[(pods, missing)]).refused.is_none()
    }

    /// Places these pods, group by group, beside those that they are tied to.
    fn place(&mut self, groups: &[(&Pods, i64)]) -> Placed {
        self.bench.place_after(&self.before, groups)
    }

    fn judge(&mut self) -> Vec<(&'static str, Found)> {
        if self.is_spread {
            self.nodes = None;
            return self.stuck_rollout().into_iter().collect();
        }
        let missing = self.n_pods - self.n_running;
        let pods = self.pods.clone();
        let placed = self.place(&[(&pods, missing)]);
        match placed.refused {
            None => {
                let nodes = self.nodes.get_or_insert_default();
                nodes.extend(placed.nodes);
                let unmet = self.unmet_min_domains();
                self.stuck_rollout().into_iter().chain(unmet).collect()
            }
            Some(reason) => {
                self.nodes = None;
                let n_placed = self.n_running + i64::try_from(placed.nodes.len()).unwrap_or(0);
                let Some((rule, found)) = self.cause(n_placed, &reason, &placed.by) else {
                    return Vec::new();
                };
                // More nodes may come.
                let is_short = [
                    "default-constraints-hold-back",
                    "priority-evicts",
                    "pods-do-not-fit",
                    "min-domains-unmet",
                    "anti-affinity-over-domains",
                ];
                if self.files.grows && is_short.contains(&rule) {
                    return Vec::new();
                }
                let found = found.number("pods", self.n_pods).number("placed", n_placed);
                vec![(rule, found)]
            }
        }
    }

    /// The rule that a workload breaks whose pods do not all find a node: the smallest change after which they do.
    ///
    /// `None`: another rule says it.
    fn cause(
        &mut self,
        n_placed: i64,
        reason: &str,
        by: &[Reason],
    ) -> Option<(&'static str, Found)> {
        let pods = self.pods.clone();
        let is_unknown = |constraint: &SpreadConstraint| {
            let key = self.bench.cluster.names.text(constraint.key);
            constraint.hard
                && self
                    .files
                    .nodes
                    .iter()
                    .all(|node| node.label(key).is_none())
        };
        // `topology-key-missing` says it.
        if pods.spec.spread.iter().any(is_unknown) {
            return None;
        }
        let (workload, n) = (self.workload, self.n_pods);
        let n_nodes = self.files.nodes.len();
        let found =
            |path: FieldPath, message: String| Found::warning(workload.object, path, message);
        let some = match n_placed {
            0 if n == 1 => "its pod finds no node".to_owned(),
            0 => format!("none of the {n} pods finds a node"),
            k => format!("{k} of {n} pods find a node"),
        };
        let hard: Vec<usize> = (0..pods.spec.spread.len())
            .filter(|index| pods.spec.spread[*index].hard)
            .collect();
        let missing = n - self.n_running;
        if let Some(evicted) = self.evicted() {
            let message = format!(
                "{some} before running pods of a lower priority are evicted, such as {evicted}: {reason}"
            );
            let path = workload.spec_path.child("priorityClassName");
            let note = Found::note(workload.object, path, message)
                .help("more room, or preemptionPolicy: Never in its PriorityClass");
            return Some(("priority-evicts", note));
        }
        if pods.spec.spread.is_empty()
            && self
                .bench
                .fits_without_defaults(&self.before, &pods, missing)
        {
            let message = format!(
                "{some}: the default constraints of the scheduler's configuration keep the others from them: {}: {reason}",
                self.files.scheduling.defaults_text()
            );
            let found = found(workload.spec_path.clone(), message)
                .help("a constraint of the workload's own takes their place, for example a soft one over the same key");
            return Some(("default-constraints-hold-back", found));
        }
        if let Some(found) = self.ignoring(&hard, &some, reason) {
            return Some(found);
        }
        for &index in &hard {
            let constraint = &pods.spec.spread[index];
            let key = self.bench.cluster.names.text(constraint.key).to_owned();
            let path = workload.constraint_path(index);
            let fewer = pods.with(|spec| spec.spread[index].min_domains = None);
            if let Some(min) = constraint.min_domains.filter(|min| *min > 1)
                && self.fits(&fewer)
            {
                let n_all = self.bench.by_value(&key, &[]).len();
                let n_domains = n_domains(self.files, workload, index);
                let nodes = match n_domains == n_all {
                    true => format!("the nodes of the files are in {n_all} domains of {key}"),
                    false => format!(
                        "the nodes that count for the constraint are in {n_domains} of the {n_all} domains of {key}"
                    ),
                };
                let message = format!("{some}: minDomains is {min}, and {nodes}: {reason}");
                let found = found(path.child("minDomains"), message)
                    .help("with fewer domains than minDomains the emptiest one counts as 0, so that each takes maxSkew pods: add nodes in other domains, or ask for fewer")
                    .number("minDomains", min.into())
                    .number("domains", i64::try_from(n_domains).unwrap_or(i64::MAX));
                return Some(("min-domains-unmet", found));
            }
        }
        let without_claims = pods.with(|spec| spec.claims = Box::default());
        if !pods.spec.claims.is_empty() && self.fits(&without_claims) {
            return self.held_by_claims(&some, reason, by);
        }
        let soft = |index: usize| pods.with(|spec| spec.spread[index].hard = false);
        let without_affinity = pods.with(|spec| spec.affinity.required = Box::default());
        let has_affinity = !pods.spec.affinity.required.is_empty();
        let all_soft = pods.with(|spec| spec.spread.iter_mut().for_each(|c| c.hard = false));
        let constraints = workload.spec_path.child("topologySpreadConstraints");
        let contradiction = |against: &str| {
            let message =
                format!("{some}: the constraints cannot hold together{against}: {reason}");
            found(constraints.clone(), message)
                .help("each alone can: change one of them, or make it ScheduleAnyway")
        };
        let single = hard.iter().copied().find(|index| self.fits(&soft(*index)));
        match single {
            Some(_) if has_affinity && self.fits(&without_affinity) => {
                return Some((
                    "constraints-contradict",
                    contradiction(" with the required podAffinity"),
                ));
            }
            Some(index) => {
                let key = self
                    .bench
                    .cluster
                    .names
                    .text(pods.spec.spread[index].key)
                    .to_owned();
                let max_skew = pods.spec.spread[index].max_skew;
                let path = workload.constraint_path(index);
                if self.is_held_by_cordoned() {
                    let message = format!(
                        "{some}: domains of {key} count although their nodes are cordoned, and stay the emptiest: {reason}"
                    );
                    let found = found(path, message).help(
                        "uncordon them; nodeTaintsPolicy: Honor leaves out only nodes with the taint node.kubernetes.io/unschedulable, which kubectl cordon brings about",
                    );
                    return Some(("tainted-domain-counts", found));
                }
                let is_full =
                    by.contains(&Reason::TooManyPods) || self.fits(&pods.without_requests());
                if !is_full && hard.len() > 1 {
                    return Some(("constraints-contradict", contradiction("")));
                }
                let without_anti = pods.with(|spec| spec.affinity.required_anti = Box::default());
                let has_anti = !pods.spec.affinity.required_anti.is_empty();
                if !is_full && has_anti && self.fits(&without_anti) {
                    let against = contradiction(" with the required podAntiAffinity");
                    return Some(("constraints-contradict", against));
                }
                let state = if is_full {
                    "is full"
                } else {
                    "takes no more of them"
                };
                let message = format!(
                    "{some}: a domain of {key} {state}, and maxSkew {max_skew} keeps the others from taking more: {reason}"
                );
                let found = found(path, message)
                    .help("a larger maxSkew, ScheduleAnyway, or room in every domain; full nodes count, since no policy looks at room")
                    .number("maxSkew", max_skew.into());
                return Some(("full-domain-holds-back", found));
            }
            None => {}
        }
        if hard.len() > 1 && self.fits(&all_soft) {
            return Some(("constraints-contradict", contradiction("")));
        }
        if has_affinity && !hard.is_empty() {
            let neither = without_affinity.with(|spec| spec.spread = Box::default());
            if self.fits(&neither) && !self.fits(&without_affinity) {
                return Some((
                    "constraints-contradict",
                    contradiction(" with the required podAffinity"),
                ));
            }
        }
        let path = workload.spec_path.clone();
        let without_anti = pods.with(|spec| spec.affinity.required_anti = Box::default());
        if !pods.spec.affinity.required_anti.is_empty() && self.fits(&without_anti) {
            let message = format!(
                "{some}: the required podAntiAffinity lets one go to each domain: {reason}"
            );
            let path = path
                .child("affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution");
            let found = found(path, message).help(
                "ask for no more replicas than domains take, or use a topologySpreadConstraint",
            );
            return Some(("anti-affinity-over-domains", found));
        }
        if n_placed == 0 && !self.bench.is_wanted(&pods.spec) && self.fits(&pods.anywhere()) {
            let message = format!("{some}: {reason}");
            let path = match workload.spec.node_selector.is_some() {
                true => path.child("nodeSelector"),
                false => path.child("affinity.nodeAffinity"),
            };
            let found = found(path, message).help("compare them with the labels of the nodes");
            return Some(("selector-matches-no-node", found));
        }
        let nodes = match n_nodes {
            1 => "the only node".to_owned(),
            n => format!("these {n} nodes"),
        };
        let message = format!("{some} on {nodes}: {reason}");
        let help = match self.before.is_empty() {
            true => {
                "other workloads of the files are not even counted: more or larger nodes, or smaller requests"
            }
            false => {
                "the pods that its podAffinity asks for were placed first: more room beside them, or more of them"
            }
        };
        Some(("pods-do-not-fit", found(path, message).help(help)))
    }

    /// Domains that count although none of their nodes takes a pod of the workload, since a policy of a hard constraint
    /// is Ignore; the fix is tried.
    fn ignoring(
        &mut self,
        hard: &[usize],
        some: &str,
        reason: &str,
    ) -> Option<(&'static str, Found)> {
        let pods = self.pods.clone();
        for policy in &POLICIES {
            let mut ignoring = hard.to_vec();
            ignoring.retain(|index| (policy.of)(&pods.spec.spread[*index]) == Policy::Ignore);
            let all = (ignoring.len() > 1).then(|| ignoring.clone());
            let each = ignoring.iter().map(|index| vec![*index]).chain(all);
            for indexes in each {
                let honors = pods.with(|spec| {
                    indexes
                        .iter()
                        .for_each(|index| (policy.honor)(&mut spec.spread[*index]));
                });
                if !self.fits(&honors) {
                    continue;
                }
                let path = |index: usize| self.workload.constraint_path(index);
                let fixes = indexes.iter();
                let fixes = fixes.map(|index| Fix::set(&path(*index).child(policy.field), "Honor"));
                let fix = fixes.reduce(|mut fix, more| {
                    fix.edits.extend(more.edits);
                    fix
                })?;
                let names = &self.bench.cluster.names;
                let keys = indexes
                    .iter()
                    .map(|index| names.text(pods.spec.spread[*index].key));
                let keys: Vec<&str> = keys.collect();
                let message = format!(
                    "{some}: domains of {} count although {}, and stay the emptiest: {reason}",
                    keys.join(" and "),
                    policy.nodes
                );
                let found = Found::warning(self.workload.object, path(indexes[0]), message)
                    .help(policy.help)
                    .fix(fix);
                return Some((policy.rule, found));
            }
        }
        None
    }

    /// Why pods do not find nodes that would without their claims; `None`: another rule says it.
    fn held_by_claims(
        &mut self,
        some: &str,
        reason: &str,
        by: &[Reason],
    ) -> Option<(&'static str, Found)> {
        let path = self.workload.spec_path.child("volumes");
        let found = |message: String| Found::warning(self.workload.object, path.clone(), message);
        if by.contains(&Reason::ClaimInUse) {
            // `claim-shared` says it of several pods.
            let message = format!("{some}: {reason}");
            let found = found(message).help("one pod at a time may use the claim");
            return (self.n_pods == 1).then_some(("pods-do-not-fit", found));
        }
        if by.contains(&Reason::VolumeLimit) {
            let message = format!("{some}: nodes attach no more volumes: {reason}");
            let found = found(message).help(
                "more nodes, or fewer pods with volumes on each: the number is the CSI driver's, in the CSINode",
            );
            return Some(("pods-do-not-fit", found));
        }
        let bare = self.pods.without_requests();
        let is_full = by.contains(&Reason::TooManyPods) || self.fits(&bare);
        let found = match is_full {
            true => found(format!(
                "{some}: their volume is in one place, and the nodes there have no room: {reason}"
            ))
            .help("room on nodes where the volume is, or smaller requests"),
            false => found(format!(
                "{some}: their volume is in one place, and they have to go elsewhere: {reason}"
            ))
            .help("a volume of a zone keeps all pods that use it there: one volume for each pod (a StatefulSet), or no hard constraint over zones"),
        };
        Some(("volume-pins-pods", found))
    }

    /// True if all pods find a node where cordoned ones take them.
    fn is_held_by_cordoned(&mut self) -> bool {
        let unschedulable = self.bench.symbol("node.kubernetes.io/unschedulable");
        let nothing = self.bench.symbol("");
        let pods = self.pods.on_cordoned(unschedulable, nothing);
        self.files.nodes.iter().any(|node| node.is_cordoned) && self.fits(&pods)
    }

    /// A running pod that the workload's pods may evict; `None` if they find no node so either.
    fn evicted(&mut self) -> Option<String> {
        let priority = priority_of(self.workload, &classes(self.files))?;
        let never = self.workload.spec.preemption_policy.as_deref() == Some("Never");
        let (pods, missing) = (self.pods.clone(), self.n_pods - self.n_running);
        (!never)
            .then(|| {
                self.bench
                    .place_of_lower(&self.before, &pods, missing, priority)
            })
            .flatten()
    }

    /// A minDomains above the number of domains that keeps no pod from a node.
    fn unmet_min_domains(&self) -> Option<(&'static str, Found)> {
        if self.files.grows || self.n_pods < 2 {
            return None;
        }
        let mut constraints = self.pods.spec.spread.iter().enumerate();
        constraints.find_map(|(index, constraint)| {
            let min = constraint.min_domains.filter(|_| constraint.hard)?;
            let key = self.bench.cluster.names.text(constraint.key);
            let n_all = self.bench.by_value(key, &[]).len();
            let n_domains = i64::try_from(n_domains(self.files, self.workload, index)).ok()?;
            if n_domains >= i64::from(min) || n_domains == 0 {
                return None;
            }
            let max_skew = constraint.max_skew;
            let nodes = match usize::try_from(n_domains) == Ok(n_all) {
                true => "the nodes of the files are",
                false => "the nodes that count for the constraint are",
            };
            let message = format!(
                "minDomains is {min}, and {nodes} in {n_domains} domains of {key}: {} find nodes all the same, since maxSkew {max_skew} lets so many into each",
                self.n_text()
            );
            let path = self.workload.constraint_path(index).child("minDomains");
            let note = Found::note(self.workload.object, path, message)
                .help("minDomains refuses pods only beyond maxSkew in each domain: a smaller maxSkew asks for more domains")
                .number("domains", n_domains)
                .number("minDomains", min.into());
            Some(("min-domains-unmet", note))
        })
    }

    fn n_text(&self) -> String {
        match self.n_pods {
            1 => "the 1 pod".to_owned(),
            n => format!("the {n} pods"),
        }
    }

    /// A rollout that does not end: by the engine where the first new pod finds no place, and played where it can be.
    ///
    /// Source: spec/controllers §2.3
    fn stuck_rollout(&mut self) -> Option<(&'static str, Found)> {
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

/// A policy of constraints, and what its Ignore leads to.
struct IgnoredPolicy {
    rule: &'static str,
    field: &'static str,
    of: fn(&SpreadConstraint) -> Policy,
    honor: fn(&mut SpreadConstraint),
    /// What is the matter with the nodes.
    nodes: &'static str,
    help: &'static str,
}

const POLICIES: [IgnoredPolicy; 2] = [
    IgnoredPolicy {
        rule: "tainted-domain-counts",
        field: "nodeTaintsPolicy",
        of: |constraint| constraint.node_taints_policy,
        honor: |constraint| constraint.node_taints_policy = Policy::Honor,
        nodes: "their nodes take no pod of the workload",
        help: "nodes with taints and cordoned nodes count for a constraint unless nodeTaintsPolicy is Honor",
    },
    IgnoredPolicy {
        rule: "unselected-domain-counts",
        field: "nodeAffinityPolicy",
        of: |constraint| constraint.node_affinity_policy,
        honor: |constraint| constraint.node_affinity_policy = Policy::Honor,
        nodes: "the workload's node selector or node affinity excludes their nodes",
        help: "with nodeAffinityPolicy: Ignore nodes count that the pods do not ask for; Honor is the default",
    },
];

/// The pods of all workloads, made when one of them asks for others.
#[derive(Default)]
struct AllPods(Option<Vec<Option<Pods>>>);

impl AllPods {
    /// The pods that these are tied to by required podAffinity, directly or by others; `None` if the files do not say
    /// where such pods go.
    fn before(
        &mut self,
        files: &Files<'_>,
        number: usize,
        pods: &Pods,
        bench: &mut Bench,
    ) -> Option<Vec<(Pods, i64)>> {
        if pods.spec.affinity.required.is_empty() {
            return Some(Vec::new());
        }
        let all = self.0.get_or_insert_with(|| {
            let workloads = files.workloads.iter();
            workloads.map(|workload| bench.pods(workload)).collect()
        });
        let mut chosen = BTreeSet::from([number]);
        let mut asking = vec![pods.clone()];
        let mut before = Vec::new();
        while let Some(pods) = asking.pop() {
            for (other, workload) in files.workloads.iter().enumerate() {
                let others = all[other].as_ref();
                let is_there = workload.kind == "Pod" && workload.spec.node_name.is_some();
                let is_meant = others.is_some_and(|others| pods.is_tied_to(others));
                if !is_meant || is_there || workload.n_pods == Some(0) || !chosen.insert(other) {
                    continue;
                }
                let is_spread = files.spread.contains_key(&other);
                if !is_placed(workload.kind) || is_spread {
                    return None;
                }
                let n_pods = workload.n_pods.filter(|n| *n <= PODS_MAX)?;
                let others = pods_of(files, workload, bench)?;
                let n_running = i64::try_from(running(workload, bench).len()).ok()?;
                before.push((others.clone(), n_pods - n_running));
                asking.push(others);
            }
        }
        let may_be_made = files.objects.iter().any(|object| match object {
            KubeObject::Other(other) => other.makes_pods,
            _ => false,
        });
        (!before.is_empty() || !may_be_made || pods.is_tied_to(pods)).then_some(before)
    }
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

/// The pods of a workload as the engine can place them; `None` if something else than the default scheduler decides.
fn pods_of(files: &Files<'_>, workload: &Workload<'_>, bench: &mut Bench) -> Option<Pods> {
    let scheduler = workload.spec.scheduler_name.as_deref();
    if !matches!(scheduler, None | Some("" | "default-scheduler"))
        || workload.spec.node_name.is_some()
    {
        return None;
    }
    let mut pods = bench.pods(workload)?;
    let written = workload.spec.topology_spread_constraints.as_deref();
    let is_whole = pods.spec.spread.len() == written.unwrap_or_default().len();
    if !is_whole || !pods.spec.unsupported.is_empty() {
        return None;
    }
    pods.spec.gates = Box::default();
    // A claim whose volume is not in the files says nothing about nodes.
    let bound = |name: &str| {
        files.objects.iter().any(|object| match object {
            KubeObject::PersistentVolumeClaim(claim) => {
                let volume = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref());
                object.name() == name
                    && object.namespace().unwrap_or("default") == workload.namespace
                    && volume.is_some_and(|volume| {
                        files.objects.iter().any(|other| {
                            matches!(other, KubeObject::PersistentVolume(_))
                                && other.name() == volume
                        })
                    })
            }
            _ => false,
        })
    };
    let volumes = workload.spec.volumes.iter().flatten();
    let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let is_known = claims.all(|claim| bound(&claim.claim_name));
    if !is_known || workload.kind == "StatefulSet" {
        pods.spec.claims = Box::default();
    }
    Some(pods)
}

/// The nodes of the workload's pods that run already, as the files have them.
fn running(workload: &Workload<'_>, bench: &mut Bench) -> Vec<NodeIdx> {
    let names = &mut bench.cluster.names;
    let selector = facts::selector(workload.selector, names);
    let namespace = names.intern(workload.namespace);
    match (workload.selector, selector) {
        (Some(_), Ok(selector)) => bench.running(namespace, &selector),
        _ => Vec::new(),
    }
}

/// The priority classes of the files, and those of every cluster.
fn classes<'f>(files: &Files<'f>) -> HashMap<&'f str, i64> {
    let classes = files.objects.iter().filter_map(|object| match object {
        KubeObject::PriorityClass(class) => Some((object.name(), i64::from(class.value?))),
        _ => None,
    });
    let system = [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ];
    classes.chain(system).collect()
}

/// `None` if its class is not in the files.
fn priority_of(workload: &Workload<'_>, classes: &HashMap<&str, i64>) -> Option<i64> {
    match &workload.spec.priority_class_name {
        Some(name) => classes.get(name.as_str()).copied(),
        None => Some(workload.spec.priority.unwrap_or(0).into()),
    }
}

impl Placings {
    /// How many of `n_pods` pods of a workload find a node and why no more; `None`: all do, or they cannot be placed
    /// like that.
    pub(crate) fn try_with(
        &self,
        files: &Files<'_>,
        number: usize,
        n_pods: i64,
    ) -> Option<(i64, String)> {
        let bench = &mut *self.bench.as_ref()?.borrow_mut();
        let workload = files.workloads.get(number)?;
        let is_placed = is_placed(workload.kind) && !files.spread.contains_key(&number);
        if !is_placed || n_pods > PODS_MAX {
            return None;
        }
        let mut pods = pods_of(files, workload, bench)?;
        let before = AllPods::default().before(files, number, &pods, bench);
        if before.is_none() {
            pods.spec.affinity.required = Box::default();
        }
        let before = before.unwrap_or_default();
        let n_running = i64::try_from(running(workload, bench).len()).ok()?;
        let placed = bench.place_after(&before, &[(&pods, n_pods - n_running)]);
        let n_placed = n_running + i64::try_from(placed.nodes.len()).ok()?;
        Some((n_placed, placed.refused?))
    }

    /// Workloads that find room only on nodes that pods of a lower priority take first.
    pub(crate) fn evictions(&self, files: &Files<'_>) -> Vec<Found> {
        let Some(bench) = &self.bench else {
            return Vec::new();
        };
        let bench = &mut *bench.borrow_mut();
        let classes = classes(files);
        // Those whose pods all find a node alone, and do not run yet.
        let mut all: Vec<(i64, usize)> = Vec::new();
        for &number in self.nodes.keys() {
            let workload = &files.workloads[number];
            // Those that ask for the pods of others find them only after these.
            let is_tied =
                { workload.spec.affinity.as_ref() }.is_some_and(|a| a.pod_affinity.is_some());
            if !is_tied && running(workload, bench).is_empty() {
                all.extend(priority_of(workload, &classes).map(|priority| (priority, number)));
            }
        }
        all.sort_unstable();
        let n_pods: i64 = all
            .iter()
            .filter_map(|(_, number)| files.workloads[*number].n_pods)
            .sum();
        let has_several =
            all.first().map(|(priority, _)| priority) != all.last().map(|(priority, _)| priority);
        if !has_several || n_pods > PODS_MAX {
            return Vec::new();
        }
        let groups: Vec<(Pods, i64, i64, usize)> = all
            .iter()
            .filter_map(|&(priority, number)| {
                let workload = &files.workloads[number];
                Some((
                    pods_of(files, workload, bench)?,
                    workload.n_pods?,
                    priority,
                    number,
                ))
            })
            .collect();
        let together: Vec<(&Pods, i64)> = groups.iter().map(|(pods, n, ..)| (pods, *n)).collect();
        let placed = bench.place_beside(&together);
        if placed.refused.is_none() {
            return Vec::new();
        }
        let mut left = i64::try_from(placed.nodes.len()).unwrap_or(i64::MAX);
        let refused = groups.iter().find(|(_, n, ..)| {
            left -= n;
            left < 0
        });
        let lowest = &groups[0];
        let Some((.., priority, number)) = refused.filter(|(.., priority, _)| *priority > lowest.2)
        else {
            return Vec::new();
        };
        let (high, low) = (&files.workloads[*number], &files.workloads[lowest.3]);
        let never = high.spec.preemption_policy.as_deref() == Some("Never");
        if never {
            return Vec::new();
        }
        let message = format!(
            "these nodes do not hold all workloads of the files, and this one has priority {priority}: its pods evict those of lower priority, such as {} ({})",
            files.objects[low.object].label(),
            lowest.2
        );
        let path = high.spec_path.child("priorityClassName");
        let note = Found::note(high.object, path, message)
            .help("more room, or preemptionPolicy: Never in its PriorityClass")
            .number("priority", *priority);
        vec![note.related(low.object, "its pods may be evicted")]
    }
}
