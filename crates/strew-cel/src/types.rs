//! Types of expressions before they are evaluated, as cel-go's checker finds them for OCM.
//!
//! `managedCluster` is a map from strings to anything, so that most of an expression is of any type; what is written
//! down, and what functions give, is not: `1 == "1"` does not compile.

use std::collections::HashMap;

use kube_cel::cel::common::ast::operators;

use crate::error::CompileError;
use crate::function::Style;
use crate::node::{Entry, Fold, FoldKind, Node, Operator};
use crate::signatures::{FUNCTIONS, Type};
use crate::source::Source;
use crate::value::Val;

/// Checks an expression over `managedCluster`.
///
/// # Errors
///
/// The first operator or function that takes no values of these types, with its place.
pub(crate) fn check(source: &Source<'_>, root: &Node) -> Result<(), CompileError> {
    let mut checker = Checker {
        source,
        locals: Vec::new(),
        seen: HashMap::new(),
    };
    checker.type_of(root).map(|_| ())
}

struct Checker<'a> {
    source: &'a Source<'a>,
    /// Types of macros' variables in scope.
    locals: Vec<Type>,
    /// How often a sign or a function was met, from left to right.
    seen: HashMap<String, usize>,
}

type Checked = Result<Type, CompileError>;

impl Checker<'_> {
    fn type_of(&mut self, node: &Node) -> Checked {
        match node {
            Node::Constant(value) => Ok(constant(value)),
            Node::Local { place, .. } => Ok(self.locals.get(*place).cloned().unwrap_or(Type::Dyn)),
            Node::Global { .. } => Ok(Type::Map(
                Box::new(Type::plain("string")),
                Box::new(Type::Dyn),
            )),
            Node::Select { of, key } => {
                let of = self.type_of(of)?;
                self.field(of, key)
            }
            Node::Has { of, key } => {
                let of = self.type_of(of)?;
                self.field(of, key)?;
                Ok(Type::plain("bool"))
            }
            Node::OptionalIndex { of, index } => {
                let arguments = vec![self.type_of(of)?, self.type_of(index)?];
                self.call("_[?_]", 0, arguments, false)
            }
            Node::Index { of, index } => {
                let of = self.type_of(of)?;
                let offset = self.sign("[");
                let index = self.type_of(index)?;
                self.call(operators::INDEX, offset, vec![of, index], false)
            }
            Node::And(left, right) => self.binary(operators::LOGICAL_AND, "&&", left, right),
            Node::Or(left, right) => self.binary(operators::LOGICAL_OR, "||", left, right),
            Node::Not(of) => self.unary(operators::LOGICAL_NOT, "!", of),
            Node::Negate(of) => self.unary(operators::NEGATE, "-", of),
            Node::Condition {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.type_of(condition)?;
                let offset = self.sign("?");
                let arguments = vec![condition, self.type_of(then)?, self.type_of(otherwise)?];
                self.call(operators::CONDITIONAL, offset, arguments, false)
            }
            Node::Binary {
                operator,
                left,
                right,
            } => {
                let name = match operator {
                    Operator::In => "@in",
                    other => other.name(),
                };
                self.binary(name, operator.sign(), left, right)
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::OptionalMap {
                of, body, is_flat, ..
            } => {
                let of = match self.type_of(of)? {
                    Type::Optional(of) => *of,
                    _ => Type::Dyn,
                };
                self.locals.push(of);
                let body = self.type_of(body);
                self.locals.pop();
                Ok(match (body?, is_flat) {
                    (body @ Type::Optional(_), true) => body,
                    (_, true) => Type::Dyn,
                    (body, false) => Type::Optional(Box::new(body)),
                })
            }
            Node::Call {
                function,
                arguments,
            } => {
                let is_member = function.style == Style::Member;
                let (receiver, rest) = match arguments.split_first() {
                    Some((receiver, rest)) if is_member => (Some(receiver), rest),
                    _ => (None, arguments.as_slice()),
                };
                let receiver = receiver
                    .map(|receiver| self.type_of(receiver))
                    .transpose()?;
                let written = function.name.rsplit('.').next().unwrap_or(function.name);
                let offset = self.source.call(written, self.count(written)) + written.len();
                let mut types: Vec<Type> = receiver.into_iter().collect();
                for argument in rest {
                    types.push(self.type_of(argument)?);
                }
                if function.name.starts_with("format.") && function.name != "format.named" {
                    return Ok(Type::plain("format"));
                }
                self.call(function.name, offset, types, is_member)
            }
        }
    }

    /// How often a word was met before.
    fn count(&mut self, word: &str) -> usize {
        let seen = self.seen.entry(word.to_owned()).or_default();
        *seen += 1;
        *seen - 1
    }

    /// Where a sign stands that is met now.
    fn sign(&mut self, sign: &str) -> usize {
        let nth = self.count(sign);
        self.source.sign(sign, nth)
    }

    fn binary(&mut self, name: &str, sign: &str, left: &Node, right: &Node) -> Checked {
        let left = self.type_of(left)?;
        let offset = self.sign(sign);
        let right = self.type_of(right)?;
        self.call(name, offset, vec![left, right], false)
    }

    fn unary(&mut self, name: &str, sign: &str, of: &Node) -> Checked {
        let offset = match sign {
            "!" => self.sign(sign),
            _ => 0,
        };
        let of = self.type_of(of)?;
        self.call(name, offset, vec![of], false)
    }

    fn call(&self, name: &str, offset: usize, types: Vec<Type>, is_member: bool) -> Checked {
        let Some(signatures) = FUNCTIONS.get(name) else {
            return Ok(Type::Dyn);
        };
        let mut result: Option<Type> = None;
        for (wanted, given) in signatures {
            let mut bound = [None, None];
            let mut pairs = types.iter().zip(wanted);
            if types.len() == wanted.len() && pairs.all(|(t, wanted)| t.fits(wanted, &mut bound)) {
                let given = given.with(&bound);
                result = Some(match result {
                    None => given,
                    Some(other) => other.joined(given),
                });
            }
        }
        result.ok_or_else(|| {
            let written: Vec<String> = types.iter().map(Type::to_string).collect();
            let applied = match written.split_first() {
                Some((receiver, rest)) if is_member => format!("{receiver}.({})", rest.join(", ")),
                _ => format!("({})", written.join(", ")),
            };
            let message = format!("found no matching overload for '{name}' applied to '{applied}'");
            self.error(offset, message)
        })
    }

    fn error(&self, offset: usize, message: String) -> CompileError {
        CompileError::new(self.source.text, offset, message)
    }

    /// The type of a field of a value.
    fn field(&self, of: Type, key: &str) -> Checked {
        match of {
            Type::Dyn => Ok(Type::Dyn),
            Type::Map(_, value) => Ok(*value),
            Type::Optional(of) => Ok(Type::Optional(Box::new(self.field(*of, key)?))),
            other => {
                let offset = self.source.field(key);
                let message = format!("type '{other}' does not support field selection");
                Err(self.error(offset, message))
            }
        }
    }

    fn list(&mut self, elements: &[(Node, bool)]) -> Checked {
        let mut of: Option<Type> = None;
        for (element, is_optional) in elements {
            let element = match (self.type_of(element)?, is_optional) {
                (Type::Optional(of), true) => *of,
                (element, _) => element,
            };
            of = Some(match of {
                None => element,
                Some(other) => other.joined(element),
            });
        }
        Ok(Type::List(Box::new(of.unwrap_or(Type::Dyn))))
    }

    fn map(&mut self, entries: &[Entry]) -> Checked {
        let mut of: Option<(Type, Type)> = None;
        for entry in entries {
            let key = self.type_of(&entry.key)?;
            let value = match (self.type_of(&entry.value)?, entry.is_optional) {
                (Type::Optional(of), true) => *of,
                (value, _) => value,
            };
            of = Some(match of {
                None => (key, value),
                Some((k, v)) => (k.joined(key), v.joined(value)),
            });
        }
        let (key, value) = of.unwrap_or((Type::Dyn, Type::Dyn));
        Ok(Type::Map(Box::new(key), Box::new(value)))
    }

    fn fold(&mut self, fold: &Fold) -> Checked {
        let element = match self.type_of(&fold.range)? {
            Type::Dyn => Type::Dyn,
            Type::List(of) => *of,
            Type::Map(key, _) => *key,
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return Err(self.error(0, message));
            }
        };
        self.locals.push(element);
        let result = self.folded(&fold.kind);
        self.locals.pop();
        result
    }

    fn folded(&mut self, kind: &FoldKind) -> Checked {
        let boolean = Type::plain("bool");
        // As the macro is written out: a condition, or a step of `&&` or `||`.
        let holds = |this: &mut Self, node: &Node, name: &str| {
            let of = this.type_of(node)?;
            let arguments = match name {
                operators::CONDITIONAL => vec![of, Type::Dyn, Type::Dyn],
                _ => vec![boolean.clone(), of],
            };
            this.call(name, 0, arguments, false)
        };
        match kind {
            FoldKind::All(node) => holds(self, node, operators::LOGICAL_AND)?,
            FoldKind::Exists(node) => holds(self, node, operators::LOGICAL_OR)?,
            FoldKind::ExistsOne(node) => holds(self, node, operators::CONDITIONAL)?,
            FoldKind::Map { filter, to } => {
                if let Some(filter) = filter {
                    holds(self, filter, operators::CONDITIONAL)?;
                }
                let to = self.type_of(to)?;
                return Ok(Type::List(Box::new(to)));
            }
        };
        Ok(Type::plain("bool"))
    }
}

fn constant(value: &Val) -> Type {
    match value {
        Val::Null => Type::plain("null"),
        Val::Bool(_) => Type::plain("bool"),
        Val::Int(_) => Type::plain("int"),
        Val::Uint(_) => Type::plain("uint"),
        Val::Double(_) => Type::plain("double"),
        Val::Text(_) => Type::plain("string"),
        Val::Bytes(_) => Type::plain("bytes"),
        Val::Type(_) => Type::Type,
        _ => Type::Dyn,
    }
}
