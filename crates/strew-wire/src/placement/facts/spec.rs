//! Parses a Placement's spec and finds everything wrong with it. Source: spec/placement §1.1, §2.5, §3.1, §3.7, §3.8,
//! §3.10, §3.11.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_model::{Interner, Span, Symbol};
use strew_placement::facts::cluster::TaintEffect;
use strew_placement::facts::placement::{
    AddOnCoordinate, ClusterToleration, GroupSize, GroupStrategy, OnMisconfigured, PlacementSpec,
    PrioritizerConfig, PrioritizerPolicy, Rebalance, ScoreCoordinate, SortBy, SpreadTerm,
    TolerationOperator, TopologyKeyType, WhenUnsatisfiable,
};

use super::predicates::{self, Wrong};
use super::{groups as bounds, replicas, weights};
use crate::placement::cel::CelSelectors;
use crate::placement::misconfigured;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::ocm::{
    self, ON_MISCONFIGURED_ANNOTATION, Placement, SPREAD_REBALANCE_ANNOTATION,
    TOPOLOGY_GROUPS_ANNOTATION, TOPOLOGY_WEIGHTS_ANNOTATION,
};

/// How often scores alone may change decisions, by default. Source: the CRD's default.
const SCORE_RATE_LIMIT: Span = Span::from_secs(60);

/// The spec of a Placement as a fact.
pub(super) fn spec(
    wire: &Placement,
    names: &mut Interner,
    cel: &mut CelSelectors,
) -> PlacementSpec {
    let default = ocm::PlacementSpec::default();
    let spec = wire.spec.as_ref().unwrap_or(&default);
    let annotation = |key: &str| {
        let all = wire.metadata.annotations.as_ref();
        all.and_then(|all| all.get(key)).map(String::as_str)
    };
    let sets = spec.cluster_sets.iter().flatten();
    let tolerations = spec.tolerations.iter().flatten();
    PlacementSpec {
        cluster_sets: sets.map(|set| names.intern(set)).collect(),
        number_of_clusters: spec.number_of_clusters,
        predicates: Wrong::first(read_predicates(spec, names, cel)),
        prioritizers: prioritizers(spec.prioritizer_policy.as_ref(), names),
        spread: terms(spec)
            .iter()
            .map(|term| self::term(term, names))
            .collect(),
        topology_weights: weights::annotated(annotation(TOPOLOGY_WEIGHTS_ANNOTATION), names),
        topology_groups: bounds::annotated(annotation(TOPOLOGY_GROUPS_ANNOTATION), names),
        tolerations: tolerations.map(|t| toleration(t, names)).collect(),
        groups: groups(spec, names),
        sort_by: match spec.sort_by.as_deref() {
            Some("Score") => SortBy::Score,
            _ => SortBy::ClusterName,
        },
        score_rate_limit: rate_limit(spec.score_rate_limit.as_deref()),
        on_misconfigured: match annotation(ON_MISCONFIGURED_ANNOTATION) {
            Some("Keep") => OnMisconfigured::Keep,
            _ => OnMisconfigured::Empty,
        },
        rebalance: match annotation(SPREAD_REBALANCE_ANNOTATION) {
            Some("Never") => Rebalance::Never,
            _ => Rebalance::OnChange,
        },
        replicas: replicas::division(wire, names).map_err(|wrong| wrong.message.into()),
    }
}

/// Everything that makes a Placement misconfigured, with its field: the API server accepts it, but no decision is
/// possible. Validation reports what the CRD refuses.
pub fn misconfigured(wire: &Placement) -> Vec<FieldError> {
    let default = ocm::PlacementSpec::default();
    let spec = wire.spec.as_ref().unwrap_or(&default);
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let of_selectors = |wrong: Vec<Wrong>| wrong.into_iter().map(|wrong| wrong.error);
    let mut errors = misconfigured::number(spec);
    let predicates = read_predicates(spec, &mut names, &mut cel).err();
    errors.extend(of_selectors(predicates.unwrap_or_default()));
    errors.extend(misconfigured::tolerations(spec));
    errors.extend(misconfigured::prioritizers(spec));
    errors.extend(misconfigured::spread(wire, spec));
    let groups = read_groups(spec, &mut names).err();
    errors.extend(of_selectors(groups.unwrap_or_default()));
    errors.extend(misconfigured::group_size(spec));
    errors.extend(misconfigured::replicas(wire, &mut names));
    errors
}

fn read_predicates(
    spec: &ocm::PlacementSpec,
    names: &mut Interner,
    cel: &mut CelSelectors,
) -> Result<Box<[strew_placement::facts::placement::ClusterPredicates]>, Vec<Wrong>> {
    let all = spec.predicates.as_deref().unwrap_or_default();
    let path = FieldPath::root().child("spec.predicates");
    predicates::predicates(all, &path, names, cel)
}

fn read_groups(
    spec: &ocm::PlacementSpec,
    names: &mut Interner,
) -> Result<Box<[strew_placement::facts::placement::DecisionGroup]>, Vec<Wrong>> {
    let all = strategy(spec).and_then(|s| s.decision_groups.as_deref());
    let path = FieldPath::root().child("spec.decisionStrategy.groupStrategy.decisionGroups");
    predicates::groups(all.unwrap_or_default(), &path, names)
}

/// `spec.decisionStrategy.groupStrategy`.
pub fn strategy(spec: &ocm::PlacementSpec) -> Option<&ocm::GroupStrategy> {
    spec.decision_strategy.as_ref()?.group_strategy.as_ref()
}

/// `spec.spreadPolicy.spreadConstraints`.
pub fn terms(spec: &ocm::PlacementSpec) -> &[ocm::SpreadConstraintsTerm] {
    let policy = spec.spread_policy.as_ref();
    let terms = policy.and_then(|policy| policy.spread_constraints.as_deref());
    terms.unwrap_or_default()
}

fn prioritizers(wire: Option<&ocm::PrioritizerPolicy>, names: &mut Interner) -> PrioritizerPolicy {
    let mode = wire.and_then(|policy| policy.mode.as_deref());
    let configurations = wire.and_then(|policy| policy.configurations.as_deref());
    let configurations = configurations.unwrap_or_default().iter();
    PrioritizerPolicy {
        mode: mode.unwrap_or_default().into(),
        configurations: configurations
            .map(|wire| PrioritizerConfig {
                coordinate: wire.score_coordinate.as_ref().map(|c| coordinate(c, names)),
                weight: wire.weight.unwrap_or(1),
            })
            .collect(),
    }
}

fn coordinate(wire: &ocm::ScoreCoordinate, names: &mut Interner) -> ScoreCoordinate {
    match wire.type_.as_deref() {
        Some("AddOn") => {
            ScoreCoordinate::AddOn(wire.add_on.as_ref().map(|add_on| AddOnCoordinate {
                resource: names.intern(&add_on.resource_name),
                score: names.intern(&add_on.score_name),
            }))
        }
        _ => ScoreCoordinate::BuiltIn(wire.built_in.as_deref().unwrap_or_default().into()),
    }
}

fn term(wire: &ocm::SpreadConstraintsTerm, names: &mut Interner) -> SpreadTerm {
    let weights = wire.topology_weights.as_deref();
    SpreadTerm {
        key: names.intern(&wire.topology_key),
        key_type: match &*wire.topology_key_type {
            "Label" => TopologyKeyType::Label,
            "Claim" => TopologyKeyType::Claim,
            other => TopologyKeyType::Unknown(other.into()),
        },
        max_skew: wire.max_skew.unwrap_or(1),
        when: match wire.when_unsatisfiable.as_deref() {
            Some("DoNotSchedule") => WhenUnsatisfiable::DoNotSchedule,
            None | Some("" | "ScheduleAnyway") => WhenUnsatisfiable::ScheduleAnyway,
            Some(other) => WhenUnsatisfiable::Unknown(other.into()),
        },
        weights: weights.map(|weights| weights::of_term(weights, names)),
        groups: bounds::of_term(wire),
    }
}

fn toleration(wire: &ocm::Toleration, names: &mut Interner) -> ClusterToleration {
    let named = |field: &Option<String>, names: &mut Interner| -> Option<Symbol> {
        let text = field.as_deref().filter(|text| !text.is_empty());
        text.map(|text| names.intern(text))
    };
    let effect = wire.effect.as_deref().filter(|effect| !effect.is_empty());
    ClusterToleration {
        key: named(&wire.key, names),
        operator: match wire.operator.as_deref() {
            None | Some("" | "Equal") => TolerationOperator::Equal,
            Some("Exists") => TolerationOperator::Exists,
            Some(_) => TolerationOperator::Other,
        },
        value: names.intern(wire.value.as_deref().unwrap_or_default()),
        effect: effect.map(self::effect),
        seconds: wire.toleration_seconds,
    }
}

/// The CRD has no other effect; upstream would treat an unknown one like this.
pub(super) fn effect(name: &str) -> TaintEffect {
    match name {
        "PreferNoSelect" => TaintEffect::PreferNoSelect,
        "NoSelectIfNew" => TaintEffect::NoSelectIfNew,
        _ => TaintEffect::NoSelect,
    }
}

fn groups(spec: &ocm::PlacementSpec, names: &mut Interner) -> GroupStrategy {
    let size = strategy(spec).and_then(|s| s.clusters_per_decision_group.as_ref());
    GroupStrategy {
        groups: Wrong::first(read_groups(spec, names)),
        size: size.map_or(GroupSize::Percent(100), group_size),
    }
}

/// `clustersPerDecisionGroup`. Source: `GetScaledValueFromIntOrPercent`.
pub fn group_size(wire: &IntOrString) -> GroupSize {
    let text = match wire {
        IntOrString::Int(n) => return GroupSize::Count(*n),
        IntOrString::String(text) => text,
    };
    let number = text.strip_suffix('%').and_then(|n| n.parse::<i64>().ok());
    match number {
        // A negative percentage is no limit, like a number below 1.
        Some(percent) => GroupSize::Percent(u32::try_from(percent.max(0)).unwrap_or(u32::MAX)),
        None => GroupSize::NotAPercentage(Arc::from(text.as_str())),
    }
}

fn rate_limit(text: Option<&str>) -> Span {
    let read = || {
        let text = text?;
        let (unit, seconds) = match text.chars().last()? {
            'h' => ('h', 3600),
            'm' => ('m', 60),
            's' => ('s', 1),
            _ => return None,
        };
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Span::from_secs(number.saturating_mul(seconds)))
    };
    read().unwrap_or(SCORE_RATE_LIMIT)
}
