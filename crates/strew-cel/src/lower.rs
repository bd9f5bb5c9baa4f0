//! From cel's syntax tree to ours: macros recognised, names resolved, bounds kept.

use std::sync::Arc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue,
    operators,
};

use crate::error::CompileError;
use crate::function::{self, Style};
use crate::limits::COMPREHENSIONS_MAX;
use crate::names;
use crate::node::{Entry, Fold, FoldKind, Node, Operator};
use crate::source::Source;
use crate::value::Val;
use crate::variables::Environment;

/// Names of types, which are values.
const TYPES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

/// Prefixes of functions whose names have a dot.
const NAMESPACES: [&str; 4] = ["format", "ip", "optional", "strings"];

pub(crate) fn lower(
    environment: Environment,
    source: &Source<'_>,
    root: &IdedExpr,
) -> Result<Node, CompileError> {
    let lowering = Lowering {
        environment,
        source,
        root,
        locals: Vec::new(),
        comprehensions: 0,
    };
    let mut lowering = lowering;
    lowering.node(root)
}

struct Lowering<'a> {
    environment: Environment,
    source: &'a Source<'a>,
    root: &'a IdedExpr,
    /// Variables of macros in scope.
    locals: Vec<Arc<str>>,
    comprehensions: usize,
}

type Lowered = Result<Node, CompileError>;

impl Lowering<'_> {
    fn node(&mut self, expr: &IdedExpr) -> Lowered {
        match &expr.expr {
            Expr::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Expr::Ident(name) => self.variable(expr.id, name),
            Expr::Select(select) => {
                let of = self.boxed(&select.operand)?;
                let key: Arc<str> = select.field.as_str().into();
                Ok(match select.test {
                    true => Node::Has { of, key },
                    false => Node::Select { of, key },
                })
            }
            Expr::Call(call) => self.call(expr.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| self.entry(entry));
                Ok(Node::Map(entries.collect::<Result<_, _>>()?))
            }
            Expr::Comprehension(comprehension) => self.fold(comprehension),
            Expr::Struct(_) => Err(self.error(0, "messages can't be made here")),
            Expr::Unspecified => Err(self.error(0, "the expression can't be read")),
        }
    }

    fn boxed(&mut self, expr: &IdedExpr) -> Result<Box<Node>, CompileError> {
        self.node(expr).map(Box::new)
    }

    fn error(&self, offset: usize, message: impl Into<String>) -> CompileError {
        CompileError::new(self.source.text, offset, message)
    }

    fn variable(&self, id: u64, name: &str) -> Lowered {
        // `.name` is the environment's.
        let (bare, is_absolute) = match name.strip_prefix('.') {
            Some(bare) => (bare, true),
            None => (name, false),
        };
        let local = self.locals.iter().rposition(|local| **local == *bare);
        if let Some(place) = local.filter(|_| !is_absolute) {
            let name = self.locals[place].clone();
            return Ok(Node::Local { place, name });
        }
        let variables = self.environment.variables();
        if let Some(place) = variables.iter().position(|v| *v == bare) {
            let name = variables[place];
            return Ok(Node::Global { place, name });
        }
        if let Some(name) = TYPES.iter().find(|t| **t == bare) {
            return Ok(Node::Constant(Val::Type(name)));
        }
        let offset = self
            .source
            .variable(bare, names::before(self.root, name, id));
        Err(self.error(offset, undeclared(bare)))
    }

    fn list(&mut self, list: &ListExpr) -> Lowered {
        let mut elements = Vec::with_capacity(list.elements.len());
        for (i, element) in list.elements.iter().enumerate() {
            let is_optional = list.optional_indices.contains(&i);
            elements.push((self.node(element)?, is_optional));
        }
        Ok(Node::List(elements))
    }

    fn entry(&mut self, entry: &IdedEntryExpr) -> Result<Entry, CompileError> {
        match &entry.expr {
            EntryExpr::MapEntry(entry) => Ok(Entry {
                key: self.node(&entry.key)?,
                value: self.node(&entry.value)?,
                is_optional: entry.optional,
            }),
            EntryExpr::StructField(_) => Err(self.error(0, "messages can't be made here")),
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Lowered {
        if call.target.is_none()
            && let Some(node) = self.operator(call)?
        {
            return Ok(node);
        }
        match call.target.as_deref() {
            None => {
                let name = call.func_name.strip_prefix('.').unwrap_or(&call.func_name);
                self.function(id, name, Style::Global, None, call)
            }
            Some(target) => match &target.expr {
                Expr::Ident(space) if self.is_namespace(space) => {
                    let name = format!("{space}.{}", call.func_name);
                    self.function(id, &name, Style::Qualified, None, call)
                }
                _ => match (call.func_name.as_str(), call.args.as_slice()) {
                    ("optMap" | "optFlatMap", [variable, body]) => {
                        self.optional_map(target, variable, body, call.func_name == "optFlatMap")
                    }
                    (name, _) => self.function(id, name, Style::Member, Some(target), call),
                },
            },
        }
    }

    fn is_namespace(&self, name: &str) -> bool {
        NAMESPACES.contains(&name) && !self.locals.iter().any(|local| **local == *name)
    }

    fn operator(&mut self, call: &CallExpr) -> Result<Option<Node>, CompileError> {
        let node = match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND, [l, r]) => Node::And(self.boxed(l)?, self.boxed(r)?),
            (operators::LOGICAL_OR, [l, r]) => Node::Or(self.boxed(l)?, self.boxed(r)?),
            (operators::LOGICAL_NOT, [x]) => Node::Not(self.boxed(x)?),
            (operators::NEGATE, [x]) => Node::Negate(self.boxed(x)?),
            (operators::CONDITIONAL, [condition, then, otherwise]) => Node::Condition {
                condition: self.boxed(condition)?,
                then: self.boxed(then)?,
                otherwise: self.boxed(otherwise)?,
            },
            (operators::INDEX, [of, index]) => Node::Index {
                of: self.boxed(of)?,
                index: self.boxed(index)?,
            },
            (operators::OPT_INDEX | operators::OPT_SELECT, [of, index]) => Node::OptionalIndex {
                of: self.boxed(of)?,
                index: self.boxed(index)?,
            },
            (name, [left, right]) => match Operator::of(name) {
                Some(operator) => Node::Binary {
                    operator,
                    left: self.boxed(left)?,
                    right: self.boxed(right)?,
                },
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(node))
    }

    fn function(
        &mut self,
        id: u64,
        name: &str,
        style: Style,
        receiver: Option<&IdedExpr>,
        call: &CallExpr,
    ) -> Lowered {
        let function = match function::find(self.environment, name, style, call.args.len()) {
            Ok(function) => function,
            Err(exists) => {
                let nth = names::calls_before(self.root, &call.func_name, id);
                let written = call.func_name.strip_prefix('.').unwrap_or(&call.func_name);
                let offset = self.source.call(written, nth);
                let message = match exists {
                    true => format!("found no matching overload for '{name}'"),
                    false => undeclared(name),
                };
                return Err(self.error(offset, message));
            }
        };
        let mut arguments = Vec::with_capacity(1 + call.args.len());
        for argument in receiver.into_iter().chain(&call.args) {
            arguments.push(self.node(argument)?);
        }
        Ok(Node::Call {
            function,
            arguments,
        })
    }

    fn optional_map(
        &mut self,
        of: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
        is_flat: bool,
    ) -> Lowered {
        let Expr::Ident(name) = &variable.expr else {
            return Err(self.error(0, "argument must be a simple name"));
        };
        let of = self.boxed(of)?;
        let name: Arc<str> = name.as_str().into();
        self.locals.push(name.clone());
        let body = self.boxed(body);
        self.locals.pop();
        let body = body?;
        Ok(Node::OptionalMap {
            of,
            name,
            body,
            is_flat,
        })
    }

    fn fold(&mut self, comprehension: &ComprehensionExpr) -> Lowered {
        if self.comprehensions == COMPREHENSIONS_MAX {
            let message = format!("macros over lists are more than {COMPREHENSIONS_MAX} deep");
            return Err(self.error(0, message));
        }
        let range = self.node(&comprehension.iter_range)?;
        let name: Arc<str> = comprehension.iter_var.as_str().into();
        self.comprehensions += 1;
        self.locals.push(name.clone());
        let kind = self.fold_kind(comprehension);
        self.locals.pop();
        self.comprehensions -= 1;
        let kind = kind?;
        Ok(Node::Fold(Box::new(Fold { range, name, kind })))
    }

    /// The macro that a comprehension was written as: each begins with another value and has one kind of step.
    fn fold_kind(&mut self, comprehension: &ComprehensionExpr) -> Result<FoldKind, CompileError> {
        let unknown = |this: &Self| this.error(0, "this macro is not known");
        let Expr::Call(step) = &comprehension.loop_step.expr else {
            return Err(unknown(self));
        };
        match (&comprehension.accu_init.expr, step.args.as_slice()) {
            (Expr::Literal(LiteralValue::Boolean(begin)), [_, holds]) => {
                let holds = self.node(holds)?;
                Ok(match *begin.inner() {
                    true => FoldKind::All(holds),
                    false => FoldKind::Exists(holds),
                })
            }
            (Expr::Literal(LiteralValue::Int(_)), [holds, _, _]) => {
                Ok(FoldKind::ExistsOne(self.node(holds)?))
            }
            (Expr::List(_), [filter, add, _]) => {
                let Some(to) = added(add) else {
                    return Err(unknown(self));
                };
                Ok(FoldKind::Map {
                    filter: Some(self.node(filter)?),
                    to: self.node(to)?,
                })
            }
            (Expr::List(_), _) => match added(&comprehension.loop_step) {
                Some(to) => Ok(FoldKind::Map {
                    filter: None,
                    to: self.node(to)?,
                }),
                None => Err(unknown(self)),
            },
            _ => Err(unknown(self)),
        }
    }
}

/// The `x` of `@result + [x]`.
fn added(step: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &step.expr else {
        return None;
    };
    match call.args.as_slice() {
        [
            _,
            IdedExpr {
                expr: Expr::List(list),
                ..
            },
        ] if call.func_name == operators::ADD => list.elements.first(),
        _ => None,
    }
}

fn constant(literal: &LiteralValue) -> Val {
    match literal {
        LiteralValue::Boolean(b) => Val::Bool(*b.inner()),
        LiteralValue::Bytes(bytes) => Val::Bytes(bytes.inner().into()),
        LiteralValue::Double(d) => Val::Double(*d.inner()),
        LiteralValue::Int(n) => Val::Int(*n.inner()),
        LiteralValue::Null => Val::Null,
        LiteralValue::String(text) => Val::text(text.inner()),
        LiteralValue::UInt(n) => Val::Uint(*n.inner()),
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}
