//! The fields of a scenario's pods and nodes, checked before anything is evaluated: an expression over a list without
//! pods would pass with any field.

use crate::error::{CompileError, Unknown};
use crate::node::{Fold, FoldKind, Node};
use crate::source::Source;
use crate::value::Val;
use crate::variables::{NODE_FIELDS, POD_FIELDS};

/// Checks an expression of a scenario.
///
/// # Errors
///
/// The first field that pods or nodes do not have, with its place.
pub(crate) fn check(source: &Source<'_>, root: &Node) -> Result<(), CompileError> {
    let mut checker = Checker {
        source,
        locals: Vec::new(),
    };
    checker.shape(root).map(|_| ())
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A pod or node.
    One(Record),
    /// A list of pods or nodes.
    Many(Record),
    /// Anything else.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Pod,
    Node,
}

impl Record {
    fn named(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Pod => ("a pod", &POD_FIELDS),
            Self::Node => ("a node", &NODE_FIELDS),
        }
    }
}

struct Checker<'a> {
    source: &'a Source<'a>,
    /// Of the macros' variables in scope.
    locals: Vec<Shape>,
}

type Checked = Result<Shape, CompileError>;

impl Checker<'_> {
    fn shape(&mut self, node: &Node) -> Checked {
        match node {
            Node::Constant(_) => {}
            Node::Local { place, .. } => {
                return Ok(self.locals.get(*place).copied().unwrap_or(Shape::Other));
            }
            Node::Global { name, .. } => {
                return Ok(match *name {
                    "pods" => Shape::Many(Record::Pod),
                    "nodes" => Shape::Many(Record::Node),
                    _ => Shape::Other,
                });
            }
            Node::Select { of, key } | Node::Has { of, key } => self.field(of, key)?,
            Node::Index { of, index } | Node::OptionalIndex { of, index } => {
                if let Node::Constant(Val::Text(key)) = &**index {
                    self.field(of, key)?;
                    return Ok(Shape::Other);
                }
                self.shape(index)?;
                if let (Shape::Many(of), Node::Index { .. }) = (self.shape(of)?, node) {
                    return Ok(Shape::One(of));
                }
            }
            Node::And(left, right) | Node::Or(left, right) | Node::Binary { left, right, .. } => {
                self.shape(left)?;
                self.shape(right)?;
            }
            Node::Not(of) | Node::Negate(of) => {
                self.shape(of)?;
            }
            Node::Condition {
                condition,
                then,
                otherwise,
            } => {
                self.shape(condition)?;
                let (then, otherwise) = (self.shape(then)?, self.shape(otherwise)?);
                if then == otherwise {
                    return Ok(then);
                }
            }
            Node::List(elements) => {
                for (element, _) in elements {
                    self.shape(element)?;
                }
            }
            Node::Map(entries) => {
                for entry in entries {
                    self.shape(&entry.key)?;
                    self.shape(&entry.value)?;
                }
            }
            Node::Fold(fold) => return self.fold(fold),
            Node::OptionalMap { of, body, .. } => {
                self.shape(of)?;
                self.with(Shape::Other, body)?;
            }
            Node::Call { arguments, .. } => {
                for argument in arguments {
                    self.shape(argument)?;
                }
            }
        }
        Ok(Shape::Other)
    }

    fn with(&mut self, local: Shape, node: &Node) -> Checked {
        self.locals.push(local);
        let shape = self.shape(node);
        self.locals.pop();
        shape
    }

    fn fold(&mut self, fold: &Fold) -> Checked {
        let element = match self.shape(&fold.range)? {
            Shape::Many(of) => Shape::One(of),
            _ => Shape::Other,
        };
        match &fold.kind {
            FoldKind::All(node) | FoldKind::Exists(node) | FoldKind::ExistsOne(node) => {
                self.with(element, node)?;
                Ok(Shape::Other)
            }
            FoldKind::Map { filter, to } => {
                if let Some(filter) = filter {
                    self.with(element, filter)?;
                }
                Ok(match self.with(element, to)? {
                    Shape::One(of) => Shape::Many(of),
                    _ => Shape::Other,
                })
            }
        }
    }

    fn field(&mut self, of: &Node, key: &str) -> Result<(), CompileError> {
        let Shape::One(of) = self.shape(of)? else {
            return Ok(());
        };
        let (noun, fields) = of.named();
        if fields.contains(&key) {
            return Ok(());
        }
        let message = format!("{noun} has no field '{key}'");
        let mut error = CompileError::new(self.source.text, self.source.field(key), message);
        error.unknown = Some(Box::new(Unknown {
            of: noun.to_owned(),
            name: key.to_owned(),
            known: fields.iter().map(|&field| field.to_owned()).collect(),
        }));
        Err(error)
    }
}
