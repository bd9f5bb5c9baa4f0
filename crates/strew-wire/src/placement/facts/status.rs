//! Converts a Placement's status, in both directions. Source: spec/placement §1.1, §2.7.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as WireCondition, Time};
use strew_model::{Instant, Interner};
use strew_placement::facts::status::{
    Condition, ConditionReason, ConditionType, GroupStatus, PlacementStatus,
};

use super::instant;
use crate::request::timestamp;
use strew_manifest::json::Json;
use strew_manifest::ocm;

const TYPES: [ConditionType; 3] = [
    ConditionType::Misconfigured,
    ConditionType::Satisfied,
    ConditionType::SpreadSatisfied,
];

/// The last written status as a fact.
pub fn status(wire: &ocm::PlacementStatus, names: &mut Interner) -> PlacementStatus {
    let groups = wire.decision_groups.iter().flatten();
    let conditions = || wire.conditions.iter().flatten();
    let of = |kind: ConditionType| conditions().find(|c| c.type_ == kind.name());
    let foreign = conditions().filter(|c| TYPES.iter().all(|kind| c.type_ != kind.name()));
    PlacementStatus {
        selected: wire.number_of_selected_clusters.unwrap_or(0),
        groups: groups
            .map(|group| GroupStatus {
                index: u32::try_from(group.decision_group_index).unwrap_or(0),
                name: names.intern(&group.decision_group_name),
                decisions: group
                    .decisions
                    .iter()
                    .flatten()
                    .map(|name| names.intern(name))
                    .collect(),
                clusters: u32::try_from(group.cluster_count).unwrap_or(0),
            })
            .collect(),
        conditions: TYPES
            .into_iter()
            .filter_map(|kind| Some(condition(kind, of(kind)?)))
            .collect(),
        last_score_update: wire.last_score_update_time.as_ref().and_then(instant),
        others: foreign.map(|c| c.to_json().to_string().into()).collect(),
    }
}

fn condition(kind: ConditionType, wire: &WireCondition) -> Condition {
    let known = ConditionReason::ALL.iter().copied();
    let reason = known.clone().find(|reason| reason.name() == wire.reason);
    Condition {
        kind,
        status: wire.status == "True",
        // An unknown reason: no message of strew is empty, so the condition is written anew and keeps its time.
        message: reason.map_or("", |_| wire.message.as_str()).into(),
        reason: reason.unwrap_or(ConditionReason::Misconfigured),
        since: instant(&wire.last_transition_time).unwrap_or_default(),
    }
}

/// The status in its wire form.
pub fn to_wire(status: &PlacementStatus, names: &Interner) -> ocm::PlacementStatus {
    let group = |group: &GroupStatus| ocm::DecisionGroupStatus {
        decision_group_index: i32::try_from(group.index).unwrap_or(i32::MAX),
        decision_group_name: names.text(group.name).to_owned(),
        decisions: Some(
            group
                .decisions
                .iter()
                .map(|&name| names.text(name).to_owned())
                .collect(),
        ),
        cluster_count: i32::try_from(group.clusters).unwrap_or(i32::MAX),
    };
    let others = status.others.iter();
    let others =
        others.filter_map(|text| WireCondition::of_json(serde_json::from_str(text).ok()?).ok());
    let conditions = status.conditions.iter().map(condition_to_wire);
    ocm::PlacementStatus {
        number_of_selected_clusters: Some(status.selected),
        decision_groups: Some(status.groups.iter().map(group).collect()),
        conditions: Some(conditions.chain(others).collect()),
        last_score_update_time: status.last_score_update.map(time),
    }
}

fn condition_to_wire(condition: &Condition) -> WireCondition {
    WireCondition {
        last_transition_time: time(condition.since),
        message: condition.message.to_string(),
        observed_generation: None,
        reason: condition.reason.name().to_owned(),
        status: if condition.status { "True" } else { "False" }.to_owned(),
        type_: condition.kind.name().to_owned(),
    }
}

fn time(moment: Instant) -> Time {
    Time(timestamp(moment))
}
