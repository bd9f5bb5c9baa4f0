//! Each workload of the files, placed by the engine on the nodes of the files, and what that shows.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use strew_cluster::{NodeIdx, Policy, SpreadConstraint};
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::kinds;
use strew_manifest::read::KubeObject;
use strew_wire::facts;
use strew_wire::rolling::of_deployment;

use crate::Found;
use crate::files::{Files, Workload};
use crate::trial::{Bench, PODS_MAX, Pods};

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
        let mut bench = Bench::of(files.objects);
        for (number, workload) in files.workloads.iter().enumerate() {
            let Some(mut case) = Case::of(files, number, workload, &mut bench) else {
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

/// A workload that the engine is to place.
struct Case<'f, 'a, 'b> {
    files: &'f Files<'a>,
    workload: &'f Workload<'a>,
    bench: &'b mut Bench,
    pods: Pods,
    /// How many pods it asks for.
    n_pods: i64,
    /// How many of them run already.
    n_running: i64,
    /// The nodes of all its pods, if all found one.
    nodes: Option<Vec<NodeIdx>>,
}

impl<'f, 'a, 'b> Case<'f, 'a, 'b> {
    /// `None`: its pods cannot be placed like that, or something else decides about them.
    fn of(
        files: &'f Files<'a>,
        number: usize,
        workload: &'f Workload<'a>,
        bench: &'b mut Bench,
    ) -> Option<Self> {
        let n_pods = workload
            .n_pods
            .filter(|n| (1..=PODS_MAX).contains(n))
            .filter(|_| is_placed(workload.kind) && !files.spread.contains_key(&number))?;
        let pods = pods_of(files, workload, bench)?;
        let nodes = running(workload, bench);
        Some(Self {
            files,
            workload,
            n_running: i64::try_from(nodes.len()).ok()?.min(n_pods),
            nodes: Some(nodes),
            bench,
            pods,
            n_pods,
        })
    }

    /// True if all pods find a node after this change.
    fn fits(&mut self, pods: &Pods) -> bool {
        let missing = self.n_pods - self.n_running;
        self.bench.place(pods, missing).refused.is_none()
    }

    fn judge(&mut self) -> Vec<(&'static str, Found)> {
        let missing = self.n_pods - self.n_running;
        let pods = self.pods.clone();
        let placed = self.bench.place(&pods, missing);
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
                let Some((rule, found)) = self.cause(n_placed, &reason) else {
                    return Vec::new();
                };
                // More nodes may come.
                let is_short = [
                    "pods-do-not-fit",
                    "min-domains-unmet",
                    "anti-affinity-over-domains",
                ];
                if self.files.grows() && is_short.contains(&rule) {
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
    fn cause(&mut self, n_placed: i64, reason: &str) -> Option<(&'static str, Found)> {
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
        for &index in &hard {
            let constraint = &pods.spec.spread[index];
            let key = self.bench.cluster.names.text(constraint.key).to_owned();
            let path = workload.constraint_path(index);
            let honors = pods.with(|spec| spec.spread[index].node_taints_policy = Policy::Honor);
            if constraint.node_taints_policy == Policy::Ignore && self.fits(&honors) {
                let fix = Fix::set(&path.child("nodeTaintsPolicy"), "Honor");
                let message = format!(
                    "{some}: domains of {key} count although their nodes take no pod of the workload, and stay the emptiest: {reason}"
                );
                let found = found(path, message)
                    .help("nodes with taints and cordoned nodes count for a constraint unless nodeTaintsPolicy is Honor")
                    .fix(fix);
                return Some(("tainted-domain-counts", found));
            }
            let fewer = pods.with(|spec| spec.spread[index].min_domains = None);
            if let Some(min) = constraint.min_domains.filter(|min| *min > 1)
                && self.fits(&fewer)
            {
                let counts = self.bench.by_value(&key, &[]);
                let message = format!(
                    "{some}: minDomains is {min}, and the nodes of the files are in {} domains of {key}: {reason}",
                    counts.len()
                );
                let found = found(path.child("minDomains"), message)
                    .help("with fewer domains than minDomains the emptiest one counts as 0, so that each takes maxSkew pods: add nodes in other domains, or ask for fewer")
                    .number("minDomains", min.into())
                    .number("domains", i64::try_from(counts.len()).unwrap_or(i64::MAX));
                return Some(("min-domains-unmet", found));
            }
        }
        let without_claims = pods.with(|spec| spec.claims = Box::default());
        if !pods.spec.claims.is_empty() && self.fits(&without_claims) {
            let message = format!(
                "{some}: their volume is in one place, and they have to go elsewhere: {reason}"
            );
            let found = found(workload.spec_path.child("volumes"), message)
                .help("a volume of a zone keeps all pods that use it there: one volume for each pod (a StatefulSet), or no hard constraint over zones");
            return Some(("volume-pins-pods", found));
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
                let message = format!(
                    "{some}: a domain of {key} is full, and maxSkew {max_skew} keeps the others from taking more: {reason}"
                );
                let found = found(workload.constraint_path(index), message)
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
        if n_placed == 0 && self.fits(&pods.anywhere()) {
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
        let found = found(path, message)
            .help("other workloads of the files are not even counted: more or larger nodes, or smaller requests");
        Some(("pods-do-not-fit", found))
    }

    /// A minDomains above the number of domains that keeps no pod from a node.
    fn unmet_min_domains(&self) -> Option<(&'static str, Found)> {
        if self.files.grows() || self.n_pods < 2 {
            return None;
        }
        let mut constraints = self.pods.spec.spread.iter().enumerate();
        constraints.find_map(|(index, constraint)| {
            let min = constraint.min_domains.filter(|_| constraint.hard)?;
            let key = self.bench.cluster.names.text(constraint.key);
            let n_domains = i64::try_from(self.bench.by_value(key, &[]).len()).ok()?;
            if n_domains >= i64::from(min) || n_domains == 0 {
                return None;
            }
            let max_skew = constraint.max_skew;
            let message = format!(
                "minDomains is {min}, and the nodes of the files are in {n_domains} domains of {key}: {} find nodes all the same, since maxSkew {max_skew} lets so many into each",
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

    /// A rollout that may take no old pod away before a new one is ready, and finds no place for a new one.
    ///
    /// Source: spec/controllers §2.3
    fn stuck_rollout(&mut self) -> Option<(&'static str, Found)> {
        let KubeObject::Deployment(deployment) = self.files.objects[self.workload.object] else {
            return None;
        };
        let rolling = of_deployment(deployment.spec.as_ref()?)?;
        if rolling.unavailable > 0 || self.files.grows() {
            return None;
        }
        let old = self.pods.clone();
        let new = old.of_next_revision(&mut self.bench.cluster.names);
        let missing = self.n_pods - self.n_running;
        let placed = self.bench.place_beside(&[(&old, missing), (&new, 1)]);
        let reason = placed.refused?;
        let path = FieldPath::root().child("spec.strategy.rollingUpdate");
        let message = format!(
            "a rollout never ends: the first new pod finds no node beside {}, and with maxUnavailable 0 no old one goes first: {reason}",
            match self.n_pods {
                1 => "the old one".to_owned(),
                n => format!("the {n} old ones"),
            }
        );
        let away = match self.n_pods {
            1 => {
                "maxUnavailable: 1 and maxSurge: 0 let it end, with no pod meanwhile; a node more lets it end without that"
            }
            _ => {
                "maxUnavailable: 1 and maxSurge: 0 replace one pod after the other; a node more lets it end, too"
            }
        };
        let mut found = Found::warning(self.workload.object, path.clone(), message)
            .help(away)
            .number("pods", self.n_pods)
            .number("maxUnavailable", 0);
        let one_less = self.n_running == 0
            && self
                .bench
                .place_beside(&[(&old, missing - 1), (&new, 1)])
                .refused
                .is_none();
        if one_less {
            let mut fix = Fix::set(&path.child("maxUnavailable"), 1);
            let surge = Fix::set(&path.child("maxSurge"), 0);
            fix.change = format!("{}, {}", fix.change, surge.change);
            fix.edits.extend(surge.edits);
            found = found.fix(fix);
        }
        Some(("rollout-stuck", found))
    }
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
        let pods = pods_of(files, workload, bench)?;
        let n_running = i64::try_from(running(workload, bench).len()).ok()?;
        let placed = bench.place(&pods, n_pods - n_running);
        let n_placed = n_running + i64::try_from(placed.nodes.len()).ok()?;
        Some((n_placed, placed.refused?))
    }

    /// Workloads that find room only on nodes that pods of a lower priority take first.
    pub(crate) fn evictions(&self, files: &Files<'_>) -> Vec<Found> {
        let Some(bench) = &self.bench else {
            return Vec::new();
        };
        let bench = &mut *bench.borrow_mut();
        let classes = files.objects.iter().filter_map(|object| match object {
            KubeObject::PriorityClass(class) => Some((object.name(), i64::from(class.value?))),
            _ => None,
        });
        let system = [
            ("system-cluster-critical", 2_000_000_000),
            ("system-node-critical", 2_000_001_000),
        ];
        let classes: HashMap<&str, i64> = classes.chain(system).collect();
        let priority = |workload: &Workload<'_>| match &workload.spec.priority_class_name {
            Some(name) => classes.get(name.as_str()).copied(),
            None => Some(workload.spec.priority.unwrap_or(0).into()),
        };
        // Those whose pods all find a node alone, and do not run yet.
        let mut all: Vec<(i64, usize)> = Vec::new();
        for &number in self.nodes.keys() {
            let workload = &files.workloads[number];
            if running(workload, bench).is_empty() {
                all.extend(priority(workload).map(|priority| (priority, number)));
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
