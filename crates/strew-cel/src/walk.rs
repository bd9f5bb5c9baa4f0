//! Visiting every part of an expression.

use crate::node::{FoldKind, Node};

pub(crate) fn each<'a>(node: &'a Node, visit: &mut dyn FnMut(&'a Node)) {
    visit(node);
    match node {
        Node::Constant(_) | Node::Local { .. } | Node::Global { .. } => {}
        Node::Select { of, .. } | Node::Has { of, .. } => each(of, visit),
        Node::OptionalIndex { of, index } | Node::Index { of, index } => {
            each(of, visit);
            each(index, visit);
        }
        Node::And(left, right) | Node::Or(left, right) => {
            each(left, visit);
            each(right, visit);
        }
        Node::Binary { left, right, .. } => {
            each(left, visit);
            each(right, visit);
        }
        Node::Not(of) | Node::Negate(of) => each(of, visit),
        Node::Condition {
            condition,
            then,
            otherwise,
        } => {
            each(condition, visit);
            each(then, visit);
            each(otherwise, visit);
        }
        Node::List(elements) => elements
            .iter()
            .for_each(|(element, _)| each(element, visit)),
        Node::Map(entries) => {
            for entry in entries {
                each(&entry.key, visit);
                each(&entry.value, visit);
            }
        }
        Node::OptionalMap { of, body, .. } => {
            each(of, visit);
            each(body, visit);
        }
        Node::Call { arguments, .. } => arguments.iter().for_each(|argument| each(argument, visit)),
        Node::Fold(fold) => {
            each(&fold.range, visit);
            match &fold.kind {
                FoldKind::All(node) | FoldKind::Exists(node) | FoldKind::ExistsOne(node) => {
                    each(node, visit);
                }
                FoldKind::Map { filter, to } => {
                    filter.iter().for_each(|filter| each(filter, visit));
                    each(to, visit);
                }
            }
        }
    }
}
