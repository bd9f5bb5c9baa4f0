//! The functions of `cel` and `kube-cel`, called with our values.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::objects::{Key as CelKey, Map as CelMap, OptionalValue};
use kube_cel::cel::{self, Context, ExecutionError};

use crate::error::{EvalError, EvalErrorKind};
use crate::value::{Key, Map, Val};

/// All functions, registered once.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// Longest message of the library that is passed on, on one line: some print whole values, or draw.
const MESSAGE_MAX: usize = 200;

/// The result of the function `name`. With `is_member`, the first value is the receiver.
///
/// The library has no way to be handed values other than as variables of an expression: so the call is one.
pub(crate) fn call(name: &str, values: &[Val], is_member: bool) -> Result<Val, EvalError> {
    let mut context = FUNCTIONS.new_inner_scope();
    let mut names = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let variable = format!("@{i}");
        context.add_variable_from_value(variable.as_str(), to_library(value)?);
        names.push(IdedExpr {
            id: 0,
            expr: Expr::Ident(variable),
        });
    }
    let target = is_member.then(|| Box::new(names.remove(0)));
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target,
            args: names,
        }),
    };
    match cel::Value::resolve(&call, &context) {
        Ok(value) => Ok(of_library(value)),
        Err(error) => Err(failure(name, values, error)),
    }
}

fn failure(name: &str, values: &[Val], error: ExecutionError) -> EvalError {
    let (kind, message) = match error {
        ExecutionError::FunctionError { message, .. } => (EvalErrorKind::Refused, message),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            (EvalErrorKind::Refused, "division by zero".to_owned())
        }
        ExecutionError::Overflow(..) => (EvalErrorKind::Refused, "overflow".to_owned()),
        _ => {
            let types: Vec<_> = values.iter().map(Val::type_name).collect();
            return EvalError::overload(name, &types);
        }
    };
    let words: Vec<&str> = message.split_whitespace().collect();
    let short: String = words.join(" ").chars().take(MESSAGE_MAX).collect();
    EvalError::new(kind, format!("{name}: {short}"))
}

fn to_library(value: &Val) -> Result<cel::Value, EvalError> {
    Ok(match value {
        Val::Null => cel::Value::Null,
        Val::Bool(b) => cel::Value::Bool(*b),
        Val::Int(n) => cel::Value::Int(*n),
        Val::Uint(n) => cel::Value::UInt(*n),
        Val::Double(d) => cel::Value::Float(*d),
        Val::Text(text) => cel::Value::String(Arc::new(text.as_ref().to_owned())),
        Val::Bytes(bytes) => cel::Value::Bytes(Arc::new(bytes.to_vec())),
        Val::List(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(to_library).collect();
            cel::Value::List(Arc::new(items?))
        }
        Val::Map(map) => {
            let entry = |(key, value): &(Key, Val)| Ok((key_to_library(key), to_library(value)?));
            let entries: Result<HashMap<_, _>, _> = map.entries().iter().map(entry).collect();
            let map = Arc::new(entries?);
            cel::Value::Map(CelMap { map })
        }
        Val::Optional(None) => cel::Value::Opaque(Arc::new(OptionalValue::none())),
        Val::Optional(Some(v)) => cel::Value::Opaque(Arc::new(OptionalValue::of(to_library(v)?))),
        Val::Type(_) => return Err(EvalError::overload("a function", &[value.type_name()])),
        Val::Foreign(value) => value.clone(),
    })
}

fn key_to_library(key: &Key) -> CelKey {
    match key.value() {
        Val::Bool(b) => CelKey::Bool(b),
        Val::Int(n) => CelKey::Int(n),
        Val::Uint(n) => CelKey::Uint(n),
        other => match other {
            Val::Text(text) => CelKey::String(Arc::new(text.as_ref().to_owned())),
            _ => CelKey::Bool(false),
        },
    }
}

pub(crate) fn of_library(value: cel::Value) -> Val {
    match value {
        cel::Value::Null => Val::Null,
        cel::Value::Bool(b) => Val::Bool(b),
        cel::Value::Int(n) => Val::Int(n),
        cel::Value::UInt(n) => Val::Uint(n),
        cel::Value::Float(d) => Val::Double(d),
        cel::Value::String(text) => Val::text(&text),
        cel::Value::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
        cel::Value::List(items) => {
            Val::List(Arc::new(items.iter().cloned().map(of_library).collect()))
        }
        cel::Value::Map(map) => {
            let entry = |(key, value): (&CelKey, &cel::Value)| {
                (key_of_library(key), of_library(value.clone()))
            };
            // Sorted by key on the way, so that the table's order goes nowhere.
            Val::Map(Arc::new(Map::new(map.map.iter().map(entry).collect())))
        }
        cel::Value::Opaque(ref opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => {
                let inner = optional.value().cloned().map(of_library);
                Val::Optional(inner.map(Arc::new))
            }
            None => Val::Foreign(value),
        },
        other => Val::Foreign(other),
    }
}

fn key_of_library(key: &CelKey) -> Key {
    match key {
        CelKey::Bool(b) => Key::Bool(*b),
        CelKey::Int(n) => Key::Int(i128::from(*n)),
        CelKey::Uint(n) => Key::Int(i128::from(*n)),
        CelKey::String(text) => Key::Text(text.as_str().into()),
    }
}
