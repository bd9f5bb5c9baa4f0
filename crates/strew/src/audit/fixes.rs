//! Looks for the smallest changes that help: each is played alone, and all that help together.

use std::collections::{BTreeMap, BTreeSet};

use strew_scenario::audit::fix::{Candidate, Edit, Hurt, candidates};
use strew_scenario::audit::values::{Case, Fix, Row};
use strew_view::loss::LossVerdict;

use super::Base;
use super::work::{self, Run};
use crate::failure::Failure;

/// The most workloads for which changes are looked for, the worst first.
const WORKLOADS_MAX: usize = 12;

/// The changes that help.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) fixes: Vec<Fix>,
}

/// How a workload stands in some cases: the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    Verdict(LossVerdict),
    /// Its drain never ends.
    Blocked,
    Well,
}

impl Stand {
    fn name(self) -> &'static str {
        match self {
            Self::Verdict(verdict) => verdict.name(),
            Self::Blocked => "BLOCKED",
            Self::Well => LossVerdict::Survives.name(),
        }
    }
}

/// The stand of every workload that is not well: the worst of all cases.
fn stands(cases: &[Case]) -> BTreeMap<String, Stand> {
    let mut stands: BTreeMap<String, Stand> = BTreeMap::new();
    let mut take = |of: String, stand: Stand| {
        let worst = stands.entry(of).or_insert(Stand::Well);
        *worst = stand.min(*worst);
    };
    for case in cases {
        let bad = case
            .workloads
            .iter()
            .filter(|row| !matches!(row.judged(), LossVerdict::Survives | LossVerdict::Unknown));
        for row in bad {
            take(row.of(), Stand::Verdict(row.judged()));
        }
        for blocked in &case.blocked {
            take(blocked.object.clone(), Stand::Blocked);
        }
    }
    stands
}

fn stand(stands: &BTreeMap<String, Stand>, of: &str) -> Stand {
    stands.get(of).copied().unwrap_or(Stand::Well)
}

/// Looks for changes for the workloads that are shown.
///
/// # Errors
/// A case could not be played.
pub(super) fn search(
    base: &Base<'_>,
    cases: &[Case],
    is_shown: &dyn Fn(&Row) -> bool,
) -> Result<Found, Failure> {
    let before = stands(cases);
    let mut found: Vec<(Stand, Fix)> = Vec::new();
    let mut chosen: Vec<Edit> = Vec::new();
    let losing = base
        .questions
        .first()
        .map_or(1, |question| question.domains.len());
    for hurt in hurt(cases, is_shown, &before, losing)
        .into_iter()
        .take(WORKLOADS_MAX)
    {
        let probes = probes(base, cases, &hurt.of);
        // How it stands with a change; `None` if the API server refuses the change, or if it harms another.
        let with = |played: &[Case]| {
            let with = stands(played);
            let harms = with.iter().any(|(of, now)| *now < stand(&before, of));
            let is_refused = played.iter().any(|case| !case.refused.is_empty());
            (!harms && !is_refused).then(|| stand(&with, &hurt.of))
        };
        let mut best: Option<(Candidate, Stand)> = None;
        for candidate in candidates(base.plan.objects(), &base.key, &hurt) {
            let then = best
                .as_ref()
                .map_or(stand(&before, &hurt.of), |(_, stand)| *stand);
            let is_better = |now: &Stand| *now > then;
            let edits = &candidate.edits;
            // First the cases that hurt it, with the seeds in which it is worst: most changes fail there already. Then all
            // others: a change may move its pods into the domains of another case.
            let mut now = with(&work::play_runs(base, &probes, edits)?).filter(is_better);
            if now.is_some() {
                now = with(&work::play_all(base, base.questions.iter(), edits)?).filter(is_better);
            }
            let Some(now) = now else { continue };
            best = Some((candidate, now));
            if now == Stand::Well {
                break;
            }
        }
        let Some((candidate, now)) = best else {
            continue;
        };
        chosen.extend(candidate.edits.iter().cloned());
        let fix = Fix {
            patches: candidate
                .edits
                .iter()
                .filter_map(Edit::object_patch)
                .collect(),
            nodes: candidate
                .edits
                .iter()
                .filter_map(Edit::more_nodes)
                .cloned()
                .collect(),
            from: stand(&before, &hurt.of).name().to_owned(),
            to: now.name().to_owned(),
            of: candidate.of,
            change: candidate.change,
        };
        found.push((stand(&before, &hurt.of), fix));
    }
    if found.len() > 1 {
        let together = stands(&work::play_all(base, base.questions.iter(), &chosen)?);
        // A change that helps alone may not beside the others, such as for the last room.
        found.retain_mut(|(from, fix)| {
            let to = stand(&together, &fix.of);
            fix.to = to.name().to_owned();
            to > *from
        });
    }
    let fixes = found.into_iter().map(|(_, fix)| fix).collect();
    Ok(Found { fixes })
}

/// The cases in which the workload is not well, each with the seed that shows it.
fn probes<'a>(base: &'a Base<'_>, cases: &[Case], of: &str) -> Vec<Run<'a>> {
    let each = base.questions.iter().zip(cases);
    let its = each.filter(|(_, case)| {
        let stands = stands(std::slice::from_ref(case));
        stands.contains_key(of)
    });
    let its = its.map(|(question, case)| {
        let row = case.workloads.iter().find(|row| row.of() == of);
        let seed = row.map_or(base.seeds.first, |row| row.seed);
        Run { question, seed }
    });
    its.collect()
}

/// The workloads that are not well and shown, the worst first.
fn hurt(
    cases: &[Case],
    is_shown: &dyn Fn(&Row) -> bool,
    stands: &BTreeMap<String, Stand>,
    losing: usize,
) -> Vec<Hurt> {
    let mut all: BTreeMap<String, Hurt> = BTreeMap::new();
    for case in cases {
        for row in case.workloads.iter().filter(|row| is_shown(row)) {
            let of = row.of();
            let blocked = case.blocked.iter().filter(|blocked| blocked.object == of);
            let budgets: Vec<[String; 2]> = blocked.filter_map(|b| b.budget.clone()).collect();
            let is_bad = stands.contains_key(&of);
            if !is_bad {
                continue;
            }
            let hurt = all.entry(of.clone()).or_insert_with(|| Hurt {
                kind: row.kind.clone(),
                namespace: row.namespace.clone(),
                name: row.name.clone(),
                of,
                causes: Vec::new(),
                domains: Vec::new(),
                budgets: Vec::new(),
                losing: i32::try_from(losing).unwrap_or(i32::MAX),
            });
            hurt.causes
                .extend(row.cause.as_ref().map(|cause| cause.code));
            hurt.budgets.extend(budgets);
            if row.is_hurt() {
                hurt.domains.extend(case.domains.iter().cloned());
            }
        }
    }
    let mut all: Vec<Hurt> = all.into_values().collect();
    for hurt in &mut all {
        let causes: BTreeSet<_> = hurt.causes.drain(..).collect();
        hurt.causes.extend(causes);
        let budgets: BTreeSet<_> = hurt.budgets.drain(..).collect();
        hurt.budgets.extend(budgets);
    }
    all.sort_by_key(|hurt| stand(stands, &hurt.of));
    all
}
