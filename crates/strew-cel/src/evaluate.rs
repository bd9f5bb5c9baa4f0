//! Evaluation of a tree.

use std::sync::Arc;

use crate::budget::Budget;
use crate::error::{EvalError, EvalErrorKind, Unknown};
use crate::node::{Entry, Fold, FoldKind, Node, Operator};
use crate::value::{Key, Map, Val};
use crate::variables::{Environment, Variables};
use crate::{functions, operators};

/// cel-go's costs of making a list and a map.
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

/// One evaluation: the values in scope, and what may still be spent.
pub(crate) struct Evaluation<'a> {
    pub(crate) variables: &'a Variables,
    pub(crate) budget: &'a mut Budget,
    locals: Vec<Val>,
}

pub(crate) type Evaluated = Result<Val, EvalError>;

impl<'a> Evaluation<'a> {
    pub(crate) fn new(variables: &'a Variables, budget: &'a mut Budget) -> Self {
        Self {
            variables,
            budget,
            locals: Vec::new(),
        }
    }

    pub(crate) fn value(&mut self, node: &Node) -> Evaluated {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Local { place, .. } => {
                self.budget.spend(1)?;
                Ok(self.locals[*place].clone())
            }
            Node::Global { place, name } => self.global(*place, name),
            Node::Select { .. } | Node::Index { .. } => match self.found(node)? {
                Some(value) => Ok(value),
                None => Err(missing(node)),
            },
            Node::Has { of, key } => {
                let of = self.value(of)?;
                self.budget.spend(1)?;
                has(&of, key)
            }
            Node::OptionalIndex { of, index } => self.optional_index(of, index),
            Node::And(left, right) => self.shortcut(left, right, false),
            Node::Or(left, right) => self.shortcut(left, right, true),
            Node::Not(of) => {
                let of = self.value(of)?;
                self.budget.spend(1)?;
                match of {
                    Val::Bool(b) => Ok(Val::Bool(!b)),
                    other => Err(EvalError::overload("'!'", &[other.type_name()])),
                }
            }
            Node::Negate(of) => {
                let of = self.value(of)?;
                self.budget.spend(1)?;
                operators::negate(of)
            }
            Node::Condition {
                condition,
                then,
                otherwise,
            } => match self.bool(condition)? {
                true => self.value(then),
                false => self.value(otherwise),
            },
            Node::Binary {
                operator,
                left,
                right,
            } => self.binary(*operator, left, right),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::OptionalMap {
                of,
                name,
                body,
                is_flat,
            } => self.optional_map(of, name, body, *is_flat),
            Node::Call {
                function,
                arguments,
            } => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.value(argument)?);
                }
                functions::call(self, function, values)
            }
        }
    }

    fn global(&mut self, place: usize, name: &str) -> Evaluated {
        self.budget.spend(1)?;
        let value = self.variables.values.get(place).and_then(Option::as_ref);
        value.cloned().ok_or_else(|| {
            let message = format!("the variable {name} has no value");
            EvalError::new(EvalErrorKind::NoSuchVariable, message)
        })
    }

    /// The value of a selection or index; `None` if a scenario's open map has no such key.
    fn found(&mut self, node: &Node) -> Result<Option<Val>, EvalError> {
        let (of, key, of_node) = match node {
            Node::Select { of, key } => (self.value(of)?, Val::Text(key.clone()), of),
            Node::Index { of, index } => (self.value(of)?, self.value(index)?, of),
            other => return self.value(other).map(Some),
        };
        self.budget.spend(1)?;
        let is_select = matches!(node, Node::Select { .. });
        match look_up(&of, &key, is_select)? {
            Some(value) => Ok(Some(value)),
            None if self.is_open(&of) => Ok(None),
            None => {
                let mut error = no_such(&key, of_node);
                error.unknown = unknown(&of, &key, of_node);
                Err(error)
            }
        }
    }

    fn is_open(&self, of: &Val) -> bool {
        let in_scenario = self.variables.environment == Environment::Scenario;
        in_scenario && matches!(of, Val::Map(map) if map.is_open)
    }

    fn optional_index(&mut self, of: &Node, index: &Node) -> Evaluated {
        let of = self.value(of)?;
        let index = self.value(index)?;
        self.budget.spend(1)?;
        let of = match &of {
            Val::Optional(None) => return Ok(of),
            Val::Optional(Some(inner)) => inner,
            _ => &of,
        };
        Ok(match look_up(of, &index, false)? {
            // Selecting from an optional gives one already.
            Some(value @ Val::Optional(_)) if matches!(of, Val::Optional(_)) => value,
            value => Val::Optional(value.map(Arc::new)),
        })
    }

    /// `&&` and `||`: what `ends` decides alone also decides if the other side fails.
    fn shortcut(&mut self, left: &Node, right: &Node, ends: bool) -> Evaluated {
        let left = self.bool(left);
        match left {
            Ok(value) if value == ends => return Ok(Val::Bool(ends)),
            Err(error) if error.is_final() => return Err(error),
            _ => {}
        }
        self.budget.spend(1)?;
        match (left, self.bool(right)) {
            (_, Err(error)) if error.is_final() => Err(error),
            (_, Ok(right)) if right == ends => Ok(Val::Bool(ends)),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(_), Ok(right)) => Ok(Val::Bool(right)),
        }
    }

    fn bool(&mut self, node: &Node) -> Result<bool, EvalError> {
        match self.value(node)? {
            Val::Bool(b) => Ok(b),
            other => {
                let message = format!(
                    "no such overload: {node} is of type {}, not bool",
                    other.type_name()
                );
                Err(EvalError::new(EvalErrorKind::NoSuchOverload, message))
            }
        }
    }

    fn binary(&mut self, operator: Operator, left: &Node, right: &Node) -> Evaluated {
        let (l, r) = match operator {
            Operator::Equal | Operator::NotEqual => (self.found(left)?, self.found(right)?),
            Operator::In => (self.found(left)?, Some(self.value(right)?)),
            _ => (Some(self.value(left)?), Some(self.value(right)?)),
        };
        self.budget.spend(1)?;
        match (l, r) {
            (Some(l), Some(r)) => operators::apply(self.budget, operator, l, r),
            // A label that is not set is equal to nothing and in nothing …
            (None, Some(_)) | (Some(_), None) => Ok(Val::Bool(operator == Operator::NotEqual)),
            // … and whether two of them are alike is no question.
            (None, None) => Err(missing(left)),
        }
    }

    fn list(&mut self, elements: &[(Node, bool)]) -> Evaluated {
        self.budget.spend(LIST_COST)?;
        let mut items = Vec::with_capacity(elements.len());
        for (element, is_optional) in elements {
            let value = self.value(element)?;
            match (is_optional, value) {
                (false, value) => items.push(value),
                (true, Val::Optional(value)) => items.extend(value.map(|v| (*v).clone())),
                (true, other) => return Err(EvalError::overload("'[?_]'", &[other.type_name()])),
            }
        }
        Ok(Val::List(Arc::new(items)))
    }

    fn map(&mut self, entries: &[Entry]) -> Evaluated {
        self.budget.spend(MAP_COST)?;
        let mut made = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.value(&entry.key)?;
            let key = match &key {
                Val::Double(_) => None,
                key => Key::of(key),
            }
            .ok_or_else(|| EvalError::overload("a map's key", &[key.type_name()]))?;
            let value = match (entry.is_optional, self.value(&entry.value)?) {
                (false, value) => value,
                (true, Val::Optional(None)) => continue,
                (true, Val::Optional(Some(value))) => (*value).clone(),
                (true, other) => {
                    return Err(EvalError::overload("'{?_: _}'", &[other.type_name()]));
                }
            };
            if made.iter().any(|(k, _)| *k == key) {
                return Err(EvalError::refused(format!(
                    "the map has the key {key} twice"
                )));
            }
            made.push((key, value));
        }
        Ok(Val::Map(Arc::new(Map::new(made))))
    }

    fn optional_map(&mut self, of: &Node, name: &str, body: &Node, is_flat: bool) -> Evaluated {
        let value = match self.value(of)? {
            Val::Optional(Some(value)) => value,
            none @ Val::Optional(None) => return Ok(none),
            other => return Err(EvalError::overload("'optMap'", &[other.type_name()])),
        };
        let result = self.with_local(name, (*value).clone(), |this| this.value(body))?;
        match (is_flat, result) {
            (false, result) => Ok(Val::Optional(Some(Arc::new(result)))),
            (true, result @ Val::Optional(_)) => Ok(result),
            (true, other) => Err(EvalError::overload("'optFlatMap'", &[other.type_name()])),
        }
    }

    fn fold(&mut self, fold: &Fold) -> Evaluated {
        let range = self.value(&fold.range)?;
        match &range {
            Val::List(items) => self.fold_over(fold, items.iter().cloned()),
            Val::Map(map) => self.fold_over(fold, map.entries().iter().map(|(k, _)| k.value())),
            other => {
                let message = format!(
                    "no such overload: {} is of type {}, neither list nor map",
                    fold.range,
                    other.type_name()
                );
                Err(EvalError::new(EvalErrorKind::NoSuchOverload, message))
            }
        }
    }

    fn fold_over(&mut self, fold: &Fold, items: impl Iterator<Item = Val>) -> Evaluated {
        match &fold.kind {
            FoldKind::All(holds) => self.until(fold, items, holds, false),
            FoldKind::Exists(holds) => self.until(fold, items, holds, true),
            FoldKind::ExistsOne(holds) => {
                let mut n = 0_u64;
                for item in items {
                    self.budget.spend(1)?;
                    n += u64::from(self.with_local(&fold.name, item, |this| this.bool(holds))?);
                }
                Ok(Val::Bool(n == 1))
            }
            FoldKind::Map { filter, to } => {
                self.budget.spend(LIST_COST)?;
                let mut made = Vec::new();
                for item in items {
                    self.budget.spend(1)?;
                    made.extend(self.with_local(&fold.name, item, |this| {
                        match filter {
                            Some(filter) if !this.bool(filter)? => return Ok(None),
                            _ => {}
                        }
                        this.value(to).map(Some)
                    })?);
                }
                Ok(Val::List(Arc::new(made)))
            }
        }
    }

    /// `all` (ends at false) and `exists` (ends at true): an element that decides makes up for those that failed.
    fn until(
        &mut self,
        fold: &Fold,
        items: impl Iterator<Item = Val>,
        holds: &Node,
        ends: bool,
    ) -> Evaluated {
        let mut failed = None;
        for item in items {
            self.budget.spend(1)?;
            match self.with_local(&fold.name, item, |this| this.bool(holds)) {
                Ok(value) if value == ends => return Ok(Val::Bool(ends)),
                Ok(_) => {}
                Err(error) if error.is_final() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(Val::Bool(!ends)),
        }
    }

    /// With one more variable; an error in there tells which element it was.
    fn with_local<T>(
        &mut self,
        name: &str,
        value: Val,
        then: impl FnOnce(&mut Self) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        self.locals.push(value);
        let result = then(self);
        let value = self.locals.pop();
        result.map_err(|mut error| {
            if let Some(subject) = value.as_ref().and_then(subject)
                && !error.is_final()
            {
                error.subjects.push(format!("{name} is {subject}"));
            }
            error
        })
    }
}

/// What an index finds; `None` if there is no such key.
fn look_up(of: &Val, index: &Val, is_select: bool) -> Result<Option<Val>, EvalError> {
    match (of, index) {
        (Val::Map(map), Val::Text(key)) => Ok(map.text(key).cloned()),
        (Val::Map(map), index) => match Key::of(index) {
            Some(key) => Ok(map.get(&key).cloned()),
            None => Err(EvalError::overload(
                "'_[_]'",
                &[of.type_name(), index.type_name()],
            )),
        },
        (Val::List(items), index) if !is_select => match Key::of(index) {
            Some(Key::Int(i)) => Ok(usize::try_from(i).ok().and_then(|i| items.get(i)).cloned()),
            _ => Err(EvalError::overload(
                "'_[_]'",
                &[of.type_name(), index.type_name()],
            )),
        },
        // A chain: `a.?b.c` is an optional.
        (Val::Optional(None), _) => Ok(Some(Val::Optional(None))),
        (Val::Optional(Some(inner)), index) => {
            let value = look_up(inner, index, is_select)?;
            Ok(Some(Val::Optional(value.map(Arc::new))))
        }
        _ if is_select => {
            let message = format!("type {} has no field {}", of.type_name(), key_text(index));
            Err(EvalError::new(EvalErrorKind::NoSuchOverload, message))
        }
        _ => Err(EvalError::overload(
            "'_[_]'",
            &[of.type_name(), index.type_name()],
        )),
    }
}

fn has(of: &Val, key: &str) -> Evaluated {
    match of {
        Val::Map(map) => Ok(Val::Bool(map.text(key).is_some())),
        Val::Optional(None) => Ok(Val::Bool(false)),
        Val::Optional(Some(inner)) => has(inner, key),
        other => {
            let message = format!("type {} has no field '{key}'", other.type_name());
            Err(EvalError::new(EvalErrorKind::NoSuchOverload, message))
        }
    }
}

fn missing(node: &Node) -> EvalError {
    match node {
        Node::Select { of, key } => no_such(&Val::Text(key.clone()), of),
        Node::Index { of, index } => {
            let message = format!("no such key: {index} in {of}");
            EvalError::new(EvalErrorKind::NoSuchKey, message)
        }
        other => EvalError::new(EvalErrorKind::NoSuchKey, format!("no such key: {other}")),
    }
}

fn no_such(key: &Val, of: &Node) -> EvalError {
    let message = format!("no such key: {} in {of}", key_text(key));
    EvalError::new(EvalErrorKind::NoSuchKey, message)
}

/// The keys of a map, for an error; `None` if it is no map or the key is no text.
fn unknown(of: &Val, key: &Val, of_node: &Node) -> Option<Box<Unknown>> {
    let (Val::Map(map), Val::Text(name)) = (of, key) else {
        return None;
    };
    let known = map.entries().iter().filter_map(|(key, _)| match key {
        Key::Text(key) => Some(key.to_string()),
        _ => None,
    });
    Some(Box::new(Unknown {
        of: of_node.to_string(),
        name: name.to_string(),
        known: known.collect(),
    }))
}

fn key_text(key: &Val) -> String {
    Key::of(key).map_or_else(|| key.type_name().to_owned(), |key| key.to_string())
}

/// What an object is called: `namespace/name` or `name`, in a scenario's maps and in Kubernetes' own objects.
fn subject(value: &Val) -> Option<String> {
    let Val::Map(map) = value else {
        return None;
    };
    let map = match map.text("metadata") {
        Some(Val::Map(metadata)) => metadata,
        _ => map,
    };
    match (map.text("namespace"), map.text("name")?) {
        (Some(Val::Text(space)), Val::Text(name)) if !space.is_empty() => {
            Some(format!("{space}/{name}"))
        }
        (_, Val::Text(name)) => Some(name.to_string()),
        _ => None,
    }
}
