//! A Placement as it is stored: its clusters, and whether they are what it asks for.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use strew_apiserver::Tables;
use strew_manifest::ocm::{
    ClusterDecision, DISABLE_ANNOTATION, DecisionGroupStatus, GROUP_INDEX_LABEL, PLACEMENT_LABEL,
    Placement, PlacementDecision, REPLICAS_ANNOTATION, SpreadConstraintsTerm,
};
use strew_manifest::read::KubeObject;
use strew_placement::facts::status::{ConditionReason, ConditionType};
use strew_wire::placement::facts::spec::terms;

/// Namespace and name.
pub type PlacementKey = (String, String);

/// A Placement with its PlacementDecisions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlacementView {
    /// The Placement with its status.
    pub placement: Placement,
    /// Its PlacementDecisions, by group and number.
    pub decisions: Vec<PlacementDecision>,
}

impl PlacementView {
    /// All Placements of a store, by namespace and name. PlacementDecisions of others are left out.
    ///
    /// Cost: a walk over all objects.
    pub fn all(tables: &Tables) -> BTreeMap<PlacementKey, Self> {
        let mut all = BTreeMap::<PlacementKey, Self>::new();
        let mut decisions = Vec::new();
        for plain in tables.all_plain() {
            let (namespace, name) = (&plain.meta.name.namespace, &plain.meta.name.name);
            match &plain.object {
                KubeObject::Placement(placement) => {
                    let mut placement = Placement::clone(placement);
                    placement.metadata = plain.meta.to_wire();
                    let view = all.entry((namespace.to_string(), name.to_string()));
                    view.or_default().placement = placement;
                }
                KubeObject::PlacementDecision(decision) => {
                    let mut decision = PlacementDecision::clone(decision);
                    decision.metadata = plain.meta.to_wire();
                    decisions.push(decision);
                }
                _ => {}
            }
        }
        for decision in decisions {
            let view = Self::owner(&decision).and_then(|owner| all.get_mut(&owner));
            if let Some(view) = view {
                view.decisions.push(decision);
            }
        }
        for view in all.values_mut() {
            view.decisions.sort_by_key(order);
        }
        all
    }

    /// A Placement of a store; `None` if it does not exist.
    pub fn of(tables: &Tables, namespace: &str, name: &str) -> Option<Self> {
        Self::all(tables).remove(&(namespace.to_owned(), name.to_owned()))
    }

    /// The Placement that a PlacementDecision belongs to; `None` if no label names one.
    pub fn owner(decision: &PlacementDecision) -> Option<PlacementKey> {
        let metadata = &decision.metadata;
        let name = metadata.labels.as_ref()?.get(PLACEMENT_LABEL)?;
        let namespace = metadata.namespace.as_deref().filter(|ns| !ns.is_empty());
        Some((namespace.unwrap_or("default").to_owned(), name.clone()))
    }

    /// Its namespace and name.
    pub fn key(&self) -> PlacementKey {
        let metadata = &self.placement.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (text(&metadata.namespace), text(&metadata.name))
    }

    /// `shop/web`.
    pub fn label(&self) -> String {
        let (namespace, name) = self.key();
        format!("{namespace}/{name}")
    }

    /// The number of clusters that it asks for; `None`: all.
    pub fn wanted(&self) -> Option<i32> {
        self.placement.spec.as_ref()?.number_of_clusters
    }

    /// The terms of its spread policy.
    pub fn terms(&self) -> &[SpreadConstraintsTerm] {
        self.placement.spec.as_ref().map_or(&[][..], terms)
    }

    /// True if its controller leaves it alone: it is being deleted, or disabled by its annotation.
    pub fn is_ignored(&self) -> bool {
        let metadata = &self.placement.metadata;
        let annotations = metadata.annotations.as_ref();
        let disabled = annotations.and_then(|all| all.get(DISABLE_ANNOTATION));
        metadata.deletion_timestamp.is_some() || disabled.is_some_and(|value| value == "true")
    }

    /// Its clusters, with the index of their group.
    pub fn clusters(&self) -> impl Iterator<Item = (&str, u32)> {
        self.decisions.iter().flat_map(|decision| {
            let group = group(decision).unwrap_or(0);
            chosen(decision).map(move |chosen| (&*chosen.cluster_name, group))
        })
    }

    /// The replicas of its clusters; `None` if none are divided.
    pub fn replicas(&self) -> Option<BTreeMap<String, u32>> {
        let mut parts: Option<BTreeMap<String, u32>> = None;
        for decision in &self.decisions {
            let annotations = decision.metadata.annotations.as_ref();
            let text = annotations.and_then(|all| all.get(REPLICAS_ANNOTATION));
            let own =
                text.and_then(|text| serde_json::from_str::<BTreeMap<String, u32>>(text).ok());
            if let Some(own) = own {
                parts.get_or_insert_default().extend(own);
            }
        }
        parts
    }

    /// The decision groups of its status.
    pub fn groups(&self) -> &[DecisionGroupStatus] {
        let status = self.placement.status.as_ref();
        let groups = status.and_then(|status| status.decision_groups.as_deref());
        groups.unwrap_or_default()
    }

    /// A condition of its status.
    pub fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        let status = self.placement.status.as_ref()?;
        let mut all = status.conditions.iter().flatten();
        all.find(|condition| condition.type_ == kind.name())
    }

    /// True if its specification is invalid.
    pub fn is_misconfigured(&self) -> bool {
        let misconfigured = self.condition(ConditionType::Misconfigured);
        !self.is_ignored() && misconfigured.is_some_and(holds)
    }

    /// True if it got fewer clusters than asked for, or none, or clusters in fewer topologies than `minGroups`.
    pub fn is_short(&self) -> bool {
        if self.is_ignored() || self.wanted() == Some(0) {
            return false;
        }
        let spread = self.condition(ConditionType::SpreadSatisfied);
        let too_few = ConditionReason::SpreadTooFewGroups.name();
        let satisfied = self.condition(ConditionType::Satisfied);
        spread.is_some_and(|spread| spread.reason == too_few) || !satisfied.is_some_and(holds)
    }

    /// True if it is not spread as asked for.
    pub fn is_uneven(&self) -> bool {
        let spread = self.condition(ConditionType::SpreadSatisfied);
        !self.is_ignored() && spread.is_some_and(|spread| !holds(spread))
    }

    /// True if it is not as asked for.
    pub fn is_trouble(&self) -> bool {
        self.is_misconfigured() || self.is_short() || self.is_uneven()
    }
}

/// True if a condition has status `True`.
pub fn holds(condition: &Condition) -> bool {
    condition.status == "True"
}

/// `web-decision-2` is before `web-decision-10`.
fn order(decision: &PlacementDecision) -> (Option<u32>, usize, String) {
    let name = decision.metadata.name.clone().unwrap_or_default();
    (group(decision), name.len(), name)
}

fn group(decision: &PlacementDecision) -> Option<u32> {
    let labels = decision.metadata.labels.as_ref()?;
    labels.get(GROUP_INDEX_LABEL)?.parse().ok()
}

fn chosen(decision: &PlacementDecision) -> impl Iterator<Item = &ClusterDecision> {
    decision.status.iter().flat_map(|status| &status.decisions)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use strew_apiserver::object::Object;

    use super::*;

    fn set(tables: &mut Tables, kind: &str, name: &str, rest: Value) {
        let mut json = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "shop"},
        });
        for (field, value) in rest.as_object().into_iter().flatten() {
            match value.as_object().filter(|_| field == "metadata") {
                Some(more) => more.iter().for_each(|(k, v)| json[field][k] = v.clone()),
                None => json[field] = value.clone(),
            }
        }
        let object = KubeObject::of_json(json).expect("it is an object");
        tables.set(Object::of_wire(object));
    }

    fn decision(tables: &mut Tables, of: &str, number: u32, group: u32, clusters: &[&str]) {
        let labels = json!({PLACEMENT_LABEL: of, GROUP_INDEX_LABEL: group.to_string()});
        let annotations = json!({REPLICAS_ANNOTATION: json!({clusters[0]: number}).to_string()});
        let clusters = clusters
            .iter()
            .map(|name| json!({"clusterName": name, "reason": ""}));
        let clusters: Vec<Value> = clusters.collect();
        let rest = json!({
            "metadata": {"labels": labels, "annotations": annotations},
            "status": {"decisions": clusters},
        });
        set(
            tables,
            "PlacementDecision",
            &format!("{of}-decision-{number}"),
            rest,
        );
    }

    #[test]
    fn clusters_are_those_of_its_decisions_by_group_and_number() {
        let mut tables = Tables::default();
        set(
            &mut tables,
            "Placement",
            "web",
            json!({"spec": {"numberOfClusters": 4}}),
        );
        decision(&mut tables, "web", 10, 0, &["c10"]);
        decision(&mut tables, "web", 2, 0, &["c2", "c3"]);
        decision(&mut tables, "web", 1, 1, &["c1"]);
        decision(&mut tables, "other", 1, 0, &["c9"]);
        let view = PlacementView::of(&tables, "shop", "web").expect("it is there");
        let clusters: Vec<(&str, u32)> = view.clusters().collect();
        assert_eq!(clusters, [("c2", 0), ("c3", 0), ("c10", 0), ("c1", 1)]);
        let replicas = view.replicas().expect("they are divided");
        let replicas: Vec<(&str, u32)> = replicas.iter().map(|(c, &n)| (c.as_str(), n)).collect();
        assert_eq!(replicas, [("c1", 1), ("c10", 10), ("c2", 2)]);
        assert_eq!(
            (view.wanted(), view.label().as_str()),
            (Some(4), "shop/web")
        );
        assert!(PlacementView::of(&tables, "shop", "other").is_none());
    }

    #[test]
    fn its_conditions_say_whether_it_is_as_asked_for() {
        let state = |satisfied: &str, spread: &str, reason: &str| {
            let mut tables = Tables::default();
            let condition = |kind: &str, status: &str, reason: &str| {
                json!({"type": kind, "status": status, "reason": reason, "message": "",
                       "lastTransitionTime": "2026-01-01T00:00:00Z"})
            };
            let conditions = [
                condition("PlacementSatisfied", satisfied, "Any"),
                condition("PlacementSpreadSatisfied", spread, reason),
            ];
            let rest = json!({"spec": {}, "status": {"conditions": conditions}});
            set(&mut tables, "Placement", "web", rest);
            let view = PlacementView::of(&tables, "shop", "web").expect("it is there");
            (view.is_short(), view.is_uneven(), view.is_trouble())
        };
        assert_eq!(state("True", "True", "Any"), (false, false, false));
        assert_eq!(state("False", "True", "Any"), (true, false, true));
        assert_eq!(
            state("True", "False", "SpreadSkewExceeded"),
            (false, true, true)
        );
        assert_eq!(
            state("True", "False", "SpreadTooFewGroups"),
            (true, true, true)
        );
    }

    #[test]
    fn one_that_is_disabled_is_in_no_trouble() {
        let mut tables = Tables::default();
        let annotations = json!({DISABLE_ANNOTATION: "true"});
        let rest = json!({"metadata": {"annotations": annotations}, "spec": {}});
        set(&mut tables, "Placement", "web", rest);
        let view = PlacementView::of(&tables, "shop", "web").expect("it is there");
        assert!(view.is_ignored() && !view.is_trouble());
    }
}
