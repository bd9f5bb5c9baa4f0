//! One case with several seeds: of each workload the worst.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::values::{Blocked, Case, Endpoints, Row};

/// What chance may do: the runs of one case, each with a seed of its own. Each workload stands as in its worst run, and
/// says in how many runs its verdict is that. What the event leaves of Services, and what keeps a drain from its end,
/// is the worst of all runs, too. `None` without a run.
pub fn worst(played: Vec<Case>) -> Option<Case> {
    let n_runs = played.len() as u64;
    let mut rows: BTreeMap<[String; 3], Row> = BTreeMap::new();
    let mut worst: Option<Case> = None;
    for mut case in played {
        for row in std::mem::take(&mut case.workloads) {
            let of = [&row.kind, &row.namespace, &row.name].map(String::clone);
            match rows.remove(&of) {
                None => rows.insert(of, row),
                Some(known) => rows.insert(of, worse(known, row)),
            };
        }
        worst = Some(match worst {
            None => case,
            Some(known) => of_both(known, case),
        });
    }
    let mut worst = worst?;
    worst.workloads = rows.into_values().collect();
    for row in &mut worst.workloads {
        if row.seeds < n_runs {
            row.sum = format!("{} (in {} of {n_runs} seeds)", row.sum, row.seeds);
        }
    }
    for blocked in &mut worst.blocked {
        if blocked.seeds < n_runs {
            blocked.why = format!("{} (in {} of {n_runs} seeds)", blocked.why, blocked.seeds);
        }
    }
    worst.in_order();
    Some(worst)
}

/// The worse of two runs; the first of equals, so that the order of seeds decides.
fn worse(known: Row, other: Row) -> Row {
    let verdicts = (known.judged(), other.judged());
    let seeds = match verdicts.0.cmp(&verdicts.1) {
        Ordering::Less => known.seeds,
        Ordering::Equal => known.seeds + other.seeds,
        Ordering::Greater => other.seeds,
    };
    let badness = |row: &Row| (row.judged(), row.ready, row.fewest, row.at_once);
    let worse = match badness(&other) < badness(&known) {
        true => other,
        false => known,
    };
    Row { seeds, ..worse }
}

/// Two runs of a case as one, workloads aside.
fn of_both(known: Case, other: Case) -> Case {
    let mut services = known.services;
    for service in other.services {
        let is_same =
            |s: &&mut Endpoints| (&s.namespace, &s.name) == (&service.namespace, &service.name);
        match services.iter_mut().find(is_same) {
            Some(known) if known.at_once <= service.at_once => {}
            Some(known) => *known = service,
            None => services.push(service),
        }
    }
    let mut blocked = known.blocked;
    for other in other.blocked {
        let is_same = |b: &&mut Blocked| b.object == other.object && b.budget == other.budget;
        match blocked.iter_mut().find(is_same) {
            Some(known) => known.seeds += other.seeds,
            None => blocked.push(other),
        }
    }
    let mut refused = known.refused;
    refused.extend(other.refused);
    refused.sort();
    refused.dedup();
    let mut stuck_budgets = known.stuck_budgets;
    for budget in other.stuck_budgets {
        if !stuck_budgets
            .iter()
            .any(|b| (&b.namespace, &b.name) == (&budget.namespace, &budget.name))
        {
            stuck_budgets.push(budget);
        }
    }
    let headroom = match !known.headroom.is_short() && other.headroom.is_short() {
        true => other.headroom,
        false => known.headroom,
    };
    Case {
        event: known.event,
        domains: known.domains,
        at_rest: known.at_rest && other.at_rest,
        seconds: known.seconds.max(other.seconds),
        headroom,
        workloads: Vec::new(),
        services,
        refused,
        stuck_budgets,
        blocked,
    }
}
