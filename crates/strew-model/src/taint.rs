//! Taints and tolerations.
//!
//! Source: `k8s.io/component-helpers/scheduling/corev1`, v1.36; spec/scheduler §0.

use crate::symbol::{Holds, Marks, Symbol, well_known};

/// The effect of a taint on pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// No new pods.
    NoSchedule,
    /// A worse score.
    PreferNoSchedule,
    /// No new pods, and running ones are evicted.
    NoExecute,
}

impl Effect {
    /// Kubernetes' name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taint {
    /// Its key.
    pub key: Symbol,
    /// Its value, often empty.
    pub value: Symbol,
    /// Its effect.
    pub effect: Effect,
}

impl Taint {
    /// The taint that a cordoned node counts as having.
    pub const UNSCHEDULABLE: Taint = Taint {
        key: well_known::UNSCHEDULABLE_TAINT,
        value: well_known::EMPTY,
        effect: Effect::NoSchedule,
    };

    /// True if its effect is NoSchedule or NoExecute.
    pub fn forbids_scheduling(&self) -> bool {
        matches!(self.effect, Effect::NoSchedule | Effect::NoExecute)
    }
}

/// How a toleration compares values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    /// The values are equal; also the default.
    Equal,
    /// The value does not matter.
    Exists,
    /// An unknown operator, or one whose gate is off: tolerates nothing.
    Never,
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// The taint's key; `None` for any.
    pub key: Option<Symbol>,
    /// How the values are compared.
    pub operator: TolerationOperator,
    /// The value to compare with.
    pub value: Symbol,
    /// The taint's effect; `None` for any.
    pub effect: Option<Effect>,
}

impl Toleration {
    /// True if this toleration accepts the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|e| e == taint.effect)
            && self.key.is_none_or(|k| k == taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Never => false,
            }
    }
}

/// True if every taint that forbids scheduling is tolerated.
pub fn tolerates_all(tolerations: &[Toleration], taints: &[Taint]) -> bool {
    let mut forbidding = taints.iter().filter(|t| t.forbids_scheduling());
    forbidding.all(|taint| tolerations.iter().any(|t| t.tolerates(taint)))
}

impl Holds for Taint {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            value,
            effect: _,
        } = self;
        key.mark(marks);
        value.mark(marks);
    }
}

impl Holds for Toleration {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            operator: _,
            value,
            effect: _,
        } = self;
        key.mark(marks);
        value.mark(marks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interner;

    #[test]
    fn a_toleration_matches_by_effect_key_and_operator() {
        let mut names = Interner::new();
        let (k, other, v, w) = (
            names.intern("k"),
            names.intern("o"),
            names.intern("v"),
            names.intern("w"),
        );
        let taint = Taint {
            key: k,
            value: v,
            effect: Effect::NoExecute,
        };
        let toleration = |key, operator, value, effect| Toleration {
            key,
            operator,
            value,
            effect,
        };
        use TolerationOperator::{Equal, Exists, Never};
        for (toleration, expected) in [
            (toleration(Some(k), Equal, v, None), true),
            (toleration(Some(k), Equal, w, None), false),
            (
                toleration(Some(k), Exists, w, Some(Effect::NoExecute)),
                true,
            ),
            (
                toleration(Some(k), Exists, w, Some(Effect::NoSchedule)),
                false,
            ),
            (toleration(Some(other), Exists, v, None), false),
            (toleration(None, Exists, v, None), true),
            (toleration(None, Never, v, None), false),
        ] {
            assert_eq!(toleration.tolerates(&taint), expected, "{toleration:?}");
            assert_eq!(
                tolerates_all(&[toleration], std::slice::from_ref(&taint)),
                expected
            );
        }
        let prefer = Taint {
            effect: Effect::PreferNoSchedule,
            ..taint
        };
        assert!(tolerates_all(&[], &[prefer]));
    }
}
