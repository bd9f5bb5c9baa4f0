//! Terms of node affinity, already parsed.
//!
//! Source: `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`, v1.36; spec/scheduler §0.

use crate::symbol::{Holds, Marks};
use crate::{Interner, Labels, Operator, Symbol};

/// One term: all of its expressions and fields must hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeSelectorTerm {
    /// A term with at least one expression or field.
    AllOf {
        /// Expressions over the node's labels.
        expressions: Box<[NodeExpression]>,
        /// Tests of the node's name, which is the only supported field.
        fields: Box<[FieldMatch]>,
    },
    /// An empty term, or an invalid one: no node matches.
    NoNode,
}

/// An expression over a node's labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeExpression {
    /// The label's key.
    pub key: Symbol,
    /// The condition on its value.
    pub operator: NodeOperator,
}

/// The condition of an expression on a node's label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeOperator {
    /// An operator that label selectors have too.
    Label(Operator),
    /// The label is an integer greater than this.
    Gt(i64),
    /// The label is an integer less than this.
    Lt(i64),
}

/// A test of `metadata.name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldMatch {
    /// The one name of the test.
    pub name: Symbol,
    /// `In` (true) or `NotIn` (false).
    pub is_in: bool,
}

impl NodeSelectorTerm {
    /// True if a node with this name and these labels matches.
    pub fn matches(&self, name: Symbol, labels: &Labels, names: &Interner) -> bool {
        match self {
            Self::NoNode => false,
            Self::AllOf {
                expressions,
                fields,
            } => {
                expressions.iter().all(|e| e.matches(labels, names))
                    && fields.iter().all(|f| (f.name == name) == f.is_in)
            }
        }
    }
}

impl NodeExpression {
    /// True if the labels meet this expression.
    pub fn matches(&self, labels: &Labels, names: &Interner) -> bool {
        let number = || labels.get(self.key).and_then(|v| names.integer(v));
        match &self.operator {
            NodeOperator::Label(operator) => operator.accepts(labels.get(self.key)),
            NodeOperator::Gt(bound) => number().is_some_and(|n| n > *bound),
            NodeOperator::Lt(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

impl Holds for NodeSelectorTerm {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::AllOf {
                expressions,
                fields,
            } => {
                expressions.mark(marks);
                fields.mark(marks);
            }
            Self::NoNode => {}
        }
    }
}

impl Holds for NodeExpression {
    fn mark(&self, marks: &mut Marks) {
        let Self { key, operator } = self;
        key.mark(marks);
        match operator {
            NodeOperator::Label(operator) => operator.mark(marks),
            NodeOperator::Gt(_) | NodeOperator::Lt(_) => {}
        }
    }
}

impl Holds for FieldMatch {
    fn mark(&self, marks: &mut Marks) {
        self.name.mark(marks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers_and_names_as_fields() {
        let mut names = Interner::new();
        let (generation, nine, ten, word) = (
            names.intern("gen"),
            names.intern("9"),
            names.intern("10"),
            names.intern("x"),
        );
        let (n1, n2) = (names.intern("n1"), names.intern("n2"));
        let term = NodeSelectorTerm::AllOf {
            expressions: [NodeExpression {
                key: generation,
                operator: NodeOperator::Gt(9),
            }]
            .into(),
            fields: [FieldMatch {
                name: n1,
                is_in: true,
            }]
            .into(),
        };
        let of = |v| Labels::new(vec![(generation, v)]);
        for (node, labels, expected) in [
            (n1, of(ten), true),
            (n1, of(nine), false),
            (n1, of(word), false),
            (n1, Labels::default(), false),
            (n2, of(ten), false),
        ] {
            assert_eq!(term.matches(node, &labels, &names), expected);
        }
        assert!(!NodeSelectorTerm::NoNode.matches(n1, &of(ten), &names));
    }
}
