//! Why the pods of a workload do not all find a node: the rule that it breaks.

use strew_cluster::SpreadConstraint;
use strew_manifest::field::FieldPath;
use strew_scheduler::Reason;

use super::Case;
use crate::Found;
use crate::rules::domains::n_domains;

impl Case<'_, '_, '_> {
    /// The rule that a workload breaks whose pods do not all find a node: the smallest change after which they do.
    ///
    /// `None`: another rule says it.
    pub(super) fn cause(
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

    /// A minDomains above the number of domains that keeps no pod from a node.
    pub(super) fn unmet_min_domains(&self) -> Option<(&'static str, Found)> {
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
}
