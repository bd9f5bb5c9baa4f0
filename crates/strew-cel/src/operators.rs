//! Operators on values: equality, order, membership, arithmetic.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::evaluate::Evaluated;
use crate::library;
use crate::limits::TEXT_MAX;
use crate::node::Operator;
use crate::value::{Key, Val};

/// Bytes that one unit of cost reads or makes (cel-go: 0.1 a byte).
pub(crate) const BYTES_PER_UNIT: u64 = 10;

pub(crate) fn apply(budget: &mut Budget, operator: Operator, left: Val, right: Val) -> Evaluated {
    match operator {
        Operator::Equal => Ok(Val::Bool(equal(budget, &left, &right)?)),
        Operator::NotEqual => Ok(Val::Bool(!equal(budget, &left, &right)?)),
        Operator::In => contains(budget, &left, &right),
        Operator::Less => order(operator, &left, &right, Ordering::is_lt),
        Operator::LessOrEqual => order(operator, &left, &right, Ordering::is_le),
        Operator::Greater => order(operator, &left, &right, Ordering::is_gt),
        Operator::GreaterOrEqual => order(operator, &left, &right, Ordering::is_ge),
        Operator::Add => add(budget, left, right),
        _ => arithmetic(operator, left, right),
    }
}

/// CEL's equality: values of different types are unequal, numbers are compared by value.
pub(crate) fn equal(budget: &mut Budget, left: &Val, right: &Val) -> Result<bool, EvalError> {
    Ok(match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(l), Val::Bool(r)) => l == r,
        (Val::Text(l), Val::Text(r)) => {
            budget.spend(l.len().min(r.len()) as u64 / BYTES_PER_UNIT)?;
            l == r
        }
        (Val::Bytes(l), Val::Bytes(r)) => {
            budget.spend(l.len().min(r.len()) as u64 / BYTES_PER_UNIT)?;
            l == r
        }
        (Val::Type(l), Val::Type(r)) => l == r,
        (Val::List(l), Val::List(r)) => {
            if l.len() != r.len() {
                return Ok(false);
            }
            for (l, r) in l.iter().zip(r.iter()) {
                budget.spend(1)?;
                if !equal(budget, l, r)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Map(l), Val::Map(r)) => {
            if l.entries().len() != r.entries().len() {
                return Ok(false);
            }
            for ((l_key, l), (r_key, r)) in l.entries().iter().zip(r.entries()) {
                budget.spend(1)?;
                if l_key != r_key || !equal(budget, l, r)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Optional(l), Val::Optional(r)) => match (l, r) {
            (Some(l), Some(r)) => equal(budget, l, r)?,
            (None, None) => true,
            _ => false,
        },
        (Val::Foreign(_), Val::Foreign(_)) => {
            let pair = [left.clone(), right.clone()];
            matches!(
                library::call(Operator::Equal.name(), &pair, false)?,
                Val::Bool(true)
            )
        }
        _ => compare_numbers(left, right) == Some(Ordering::Equal),
    })
}

/// The order of two numbers of any types; `None` if one is none, or not a number.
fn compare_numbers(left: &Val, right: &Val) -> Option<Ordering> {
    match (whole(left), whole(right)) {
        (Some(l), Some(r)) => Some(l.cmp(&r)),
        (Some(l), None) => compare_with_double(l, double(right)?),
        (None, Some(r)) => compare_with_double(r, double(left)?).map(Ordering::reverse),
        (None, None) => double(left)?.partial_cmp(&double(right)?),
    }
}

/// Exactly, also where a double can't hold the whole number.
fn compare_with_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Within i128, and saturating outside, where any whole number of 64 bits lies inside.
    let floor = double.floor();
    Some(match whole.cmp(&(floor as i128)) {
        Ordering::Equal if double > floor => Ordering::Less,
        ordering => ordering,
    })
}

fn whole(value: &Val) -> Option<i128> {
    match value {
        Val::Int(n) => Some(i128::from(*n)),
        Val::Uint(n) => Some(i128::from(*n)),
        _ => None,
    }
}

fn double(value: &Val) -> Option<f64> {
    match value {
        Val::Double(d) => Some(*d),
        _ => None,
    }
}

fn order(operator: Operator, left: &Val, right: &Val, is: fn(Ordering) -> bool) -> Evaluated {
    let is_number = |v: &Val| matches!(v, Val::Int(_) | Val::Uint(_) | Val::Double(_));
    let ordering = match (left, right) {
        (l, r) if is_number(l) && is_number(r) => compare_numbers(l, r),
        (Val::Text(l), Val::Text(r)) => Some(l.cmp(r)),
        (Val::Bool(l), Val::Bool(r)) => Some(l.cmp(r)),
        (Val::Bytes(l), Val::Bytes(r)) => Some(l.cmp(r)),
        (Val::Foreign(_), Val::Foreign(_)) => {
            return library::call(operator.name(), &[left.clone(), right.clone()], false);
        }
        _ => return Err(overload(operator, left, right)),
    };
    // Not a number is in no order.
    Ok(Val::Bool(ordering.is_some_and(is)))
}

fn contains(budget: &mut Budget, element: &Val, container: &Val) -> Evaluated {
    match container {
        Val::List(items) => {
            for item in items.iter() {
                budget.spend(1)?;
                if equal(budget, element, item)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        Val::Map(map) => {
            let key = Key::of(element);
            Ok(Val::Bool(key.is_some_and(|key| map.get(&key).is_some())))
        }
        _ => Err(overload(Operator::In, element, container)),
    }
}

fn add(budget: &mut Budget, left: Val, right: Val) -> Evaluated {
    match (left, right) {
        (Val::Text(l), Val::Text(r)) => {
            check_length(l.len() + r.len())?;
            budget.spend((l.len() + r.len()) as u64 / BYTES_PER_UNIT)?;
            Ok(Val::Text([&*l, &*r].concat().into()))
        }
        (Val::Bytes(l), Val::Bytes(r)) => {
            check_length(l.len() + r.len())?;
            budget.spend((l.len() + r.len()) as u64 / BYTES_PER_UNIT)?;
            Ok(Val::Bytes([&*l, &*r].concat().into()))
        }
        (Val::List(l), Val::List(r)) => {
            budget.spend((l.len() + r.len()) as u64)?;
            Ok(Val::List(Arc::new(
                l.iter().chain(r.iter()).cloned().collect(),
            )))
        }
        (left, right) => arithmetic(Operator::Add, left, right),
    }
}

pub(crate) fn check_length(bytes: usize) -> Result<(), EvalError> {
    match bytes > TEXT_MAX {
        true => Err(EvalError::refused(format!(
            "a text of more than {TEXT_MAX} bytes"
        ))),
        false => Ok(()),
    }
}

fn arithmetic(operator: Operator, left: Val, right: Val) -> Evaluated {
    let refused = |what| {
        Err(EvalError::refused(format!(
            "{what} in '{}'",
            operator.sign()
        )))
    };
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    match (&left, &right) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) if divides => {
            refused("division by zero")
        }
        (Val::Int(l), Val::Int(r)) => {
            let result = match operator {
                Operator::Add => l.checked_add(*r),
                Operator::Subtract => l.checked_sub(*r),
                Operator::Multiply => l.checked_mul(*r),
                Operator::Divide => l.checked_div(*r),
                _ => l.checked_rem(*r),
            };
            result.map_or_else(|| refused("overflow"), |n| Ok(Val::Int(n)))
        }
        (Val::Uint(l), Val::Uint(r)) => {
            let result = match operator {
                Operator::Add => l.checked_add(*r),
                Operator::Subtract => l.checked_sub(*r),
                Operator::Multiply => l.checked_mul(*r),
                Operator::Divide => l.checked_div(*r),
                _ => l.checked_rem(*r),
            };
            result.map_or_else(|| refused("overflow"), |n| Ok(Val::Uint(n)))
        }
        (Val::Double(l), Val::Double(r)) => match operator {
            Operator::Add => Ok(Val::Double(l + r)),
            Operator::Subtract => Ok(Val::Double(l - r)),
            Operator::Multiply => Ok(Val::Double(l * r)),
            Operator::Divide => Ok(Val::Double(l / r)),
            _ => Err(overload(operator, &left, &right)),
        },
        // Times and spans of time.
        (Val::Foreign(_), Val::Foreign(_)) => {
            library::call(operator.name(), &[left.clone(), right.clone()], false)
        }
        _ => Err(overload(operator, &left, &right)),
    }
}

pub(crate) fn negate(value: Val) -> Evaluated {
    match value {
        Val::Int(n) => match n.checked_neg() {
            Some(n) => Ok(Val::Int(n)),
            None => Err(EvalError::refused("overflow in '-'")),
        },
        Val::Double(d) => Ok(Val::Double(-d)),
        other => Err(EvalError::overload("'-'", &[other.type_name()])),
    }
}

fn overload(operator: Operator, left: &Val, right: &Val) -> EvalError {
    let what = format!("'{}'", operator.sign());
    EvalError::overload(&what, &[left.type_name(), right.type_name()])
}
