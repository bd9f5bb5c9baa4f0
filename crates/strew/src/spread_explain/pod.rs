//! The subset of a pod, with the reason, and its deletion cost.

use serde::Serialize;
use strew_workloadspread::controller::cost::CostGround;
use strew_workloadspread::explain::{Membership, PodStanding, RowCheck};
use strew_workloadspread::{COST_ANNOTATION, Spec, UNLIMITED, WsKey};

use super::{Spreads, limit_text, time_text};

/// A pod's state for its WorkloadSpread, for programs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSpread {
    name: String,
    /// The revision under which the pod is counted.
    revision: String,
    is_latest_revision: bool,
    /// Its subset; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    subset: Option<String>,
    /// How it got there.
    ground: String,
    /// The subsets before it, in their present state.
    earlier: Vec<Earlier>,
    /// The score of each subset for a pod that is adopted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    scores: Vec<Score>,
    /// Absent: the pod has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_cost: Option<Cost>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Earlier {
    subset: String,
    verdict: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Score {
    subset: String,
    /// Absent: the pod does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<i64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Cost {
    /// The right one.
    cost: i32,
    ground: String,
    /// The annotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    annotation: Option<String>,
}

/// A pod of the files; `None` if no WorkloadSpread manages it, or its pods cannot be counted.
pub(crate) fn of_pod(spreads: &Spreads, uid: &str) -> Option<PodSpread> {
    let machine = &spreads.machine;
    let keys = machine.spreads().iter().map(|ws| ws.key.clone());
    let mut found = keys.filter_map(|key| {
        let standings = machine.explain_pods(&key, &mut spreads.patcher());
        let mut standings = standings.ok()?.into_iter();
        let (_, standing) = standings.find(|(pod, _)| &*pod.uid == uid)?;
        Some((key, standing))
    });
    let (key, standing) = found.next()?;
    let ws = machine.spreads().get(&key)?;
    Some(made(spreads, &key, &ws.spec, standing))
}

fn made(spreads: &Spreads, key: &WsKey, spec: &Spec, standing: PodStanding) -> PodSpread {
    let name = |place: usize| spec.subsets[place].name.to_string();
    let ws = &key.name;
    let (place, ground, scores) = match &standing.subset {
        Membership::Marked(place) => (
            Some(*place),
            format!("its marker names WorkloadSpread {ws} and this subset"),
            Vec::new(),
        ),
        Membership::Adopted(place, scores) => (
            Some(*place),
            "it has no marker, and its node fits this subset best; the next sync writes the marker".to_owned(),
            scores.clone(),
        ),
        Membership::Orphan => (
            None,
            "its marker names a subset that is gone, or it is on no node of these files, or its node fits no subset".to_owned(),
            Vec::new(),
        ),
    };
    let rows = spreads
        .machine
        .check_ledger(spreads.now, key, &mut spreads.patcher());
    let rows = rows.unwrap_or_default();
    let of_revision = |row: &&RowCheck| row.revision.as_ref() == Some(&standing.revision);
    let earlier = rows.iter().filter(of_revision).take(place.unwrap_or(0));
    let scores = scores.into_iter().enumerate();
    PodSpread {
        name: ws.to_string(),
        revision: standing.revision.to_string(),
        is_latest_revision: standing.is_latest,
        subset: place.map(name),
        ground,
        earlier: earlier
            .map(|row| Earlier {
                subset: row.subset.to_string(),
                verdict: verdict(row),
            })
            .collect(),
        scores: scores
            .map(|(place, score)| Score {
                subset: name(place),
                score,
            })
            .collect(),
        deletion_cost: standing.cost.map(|(cost, ground)| Cost {
            cost,
            ground: cost_ground(ground),
            annotation: standing.cost_stands.map(|text| text.to_string()),
        }),
    }
}

/// What keeps pods out of a subset at present.
fn verdict(row: &RowCheck) -> String {
    let Some(truth) = &row.truth else {
        return "its limit cannot be used".to_owned();
    };
    let coming = match truth.creating.len() {
        0 => String::new(),
        n => format!(" and {n} on their way"),
    };
    let of = format!("{}{coming} of {}", truth.replicas, limit_text(row.max));
    match truth.schedulable {
        Some(condition) if !condition.holds => {
            format!("closed since {}: its pods could not be scheduled", time_text(condition.since))
        }
        _ if truth.missing == 0 => format!("full: {of}"),
        _ if truth.missing == UNLIMITED => {
            "has room for any number now: it was closed, or no node took the pod, when that was admitted".to_owned()
        }
        _ => format!(
            "has room for {} now ({of}): it was full or closed when the pod was admitted",
            truth.missing
        ),
    }
}

fn cost_ground(ground: CostGround) -> String {
    match ground {
        CostGround::Within { .. } => "within the limit of its subset".to_owned(),
        CostGround::Turn { turn } => format!(
            "pod {turn} of a workload that grows one by one: pods of higher numbers go first, so that subsets keep their shares"
        ),
        CostGround::Minimum { .. } => "part of its subset's minimum: it goes last".to_owned(),
        CostGround::Surplus { max, .. } => {
            format!("beyond the {max} that its subset keeps: it goes first")
        }
        CostGround::Orphan => "in no subset: it goes before all others".to_owned(),
    }
}

impl PodSpread {
    /// The text below the explanation of the pod's node.
    pub(crate) fn text(&self) -> String {
        let latest = match self.is_latest_revision {
            true => "the latest",
            false => "not the latest: its costs are reversed",
        };
        let subset = match &self.subset {
            Some(subset) => format!("subset {subset}"),
            None => "no subset".to_owned(),
        };
        let mut text = format!(
            "WorkloadSpread {}: {subset}, revision {} ({latest})\n  {}\n",
            self.name, self.revision, self.ground
        );
        for earlier in &self.earlier {
            text.push_str(&format!("  not {}: {}\n", earlier.subset, earlier.verdict));
        }
        for score in &self.scores {
            let told = score
                .score
                .map_or("does not fit".to_owned(), |s| s.to_string());
            text.push_str(&format!("  score of {}: {told}\n", score.subset));
        }
        match &self.deletion_cost {
            None => text.push_str("  no deletion cost: its workload's controller does not look at it, or the pod does not count\n"),
            Some(cost) => {
                let stands = match &cost.annotation {
                    None => format!("; {COST_ANNOTATION} is not there yet"),
                    Some(text) if *text == cost.cost.to_string() => String::new(),
                    Some(text) => format!("; the annotation says {text} as yet"),
                };
                text.push_str(&format!("  deletion cost {}: {}{stands}\n", cost.cost, cost.ground));
            }
        }
        text
    }
}
