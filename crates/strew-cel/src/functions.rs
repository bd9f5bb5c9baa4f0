//! Functions: some here, the others the library's, each paid for before it runs.

use std::sync::Arc;

use kube_cel::cel;

use crate::error::{EvalError, EvalErrorKind};
use crate::evaluate::{Evaluated, Evaluation};
use crate::function::{Function, Style};
use crate::limits::TEXT_MAX;
use crate::node::Operator;
use crate::operators::{self, BYTES_PER_UNIT, check_length};
use crate::value::{Val, Value};
use crate::{library, pattern};

/// Longest number after the point of a verb of `format`: the standard library panics beyond 65,535.
const PRECISION_DIGITS_MAX: usize = 2;

/// Decimal places of a quantity before and after the point. Within them the library's 128 bits can't overflow.
const QUANTITY_WHOLE_MAX: i64 = 19;
const QUANTITY_FRACTION_MAX: i64 = 9;

pub(crate) fn call(
    evaluation: &mut Evaluation<'_>,
    function: &Function,
    mut values: Vec<Val>,
) -> Evaluated {
    evaluation.budget.spend(1)?;
    if let Some(result) = own(evaluation, function, &values)? {
        return Ok(result);
    }
    let left = evaluation.budget.left();
    for value in &values {
        let size = value.size(left.saturating_mul(BYTES_PER_UNIT));
        evaluation.budget.spend(size / BYTES_PER_UNIT)?;
    }
    let extra = check(function.name, &values)?;
    evaluation.budget.spend(extra)?;
    if let ("matches" | "find" | "findAll", Some(Val::Text(text))) = (function.name, values.get(1))
    {
        values[1] = Val::text(&pattern::as_re2(text));
    }
    let result = library::call(function.name, &values, function.style == Style::Member)?;
    evaluation
        .budget
        .spend(result.size(u64::MAX) / BYTES_PER_UNIT)?;
    Ok(result)
}

/// The functions that are not the library's: because it has none, or copies what is only looked at.
fn own(
    evaluation: &mut Evaluation<'_>,
    function: &Function,
    values: &[Val],
) -> Result<Option<Val>, EvalError> {
    let result = match (function.name, values) {
        ("size", [Val::List(items)]) => Val::Int(items.len() as i64),
        // Characters, where the library counts bytes.
        ("size", [Val::Text(text)]) => {
            evaluation
                .budget
                .spend(text.len() as u64 / BYTES_PER_UNIT)?;
            Val::Int(text.chars().count() as i64)
        }
        ("size", [Val::Bytes(bytes)]) => Val::Int(bytes.len() as i64),
        ("size", [Val::Map(map)]) => Val::Int(map.entries().len() as i64),
        ("contains" | "startsWith" | "endsWith", [Val::Text(text), Val::Text(part)]) => {
            evaluation
                .budget
                .spend(text.len() as u64 / BYTES_PER_UNIT)?;
            Val::Bool(match function.name {
                "contains" => text.contains(&**part),
                "startsWith" => text.starts_with(&**part),
                _ => text.ends_with(&**part),
            })
        }
        // The library's sum overflows.
        ("sum", [Val::List(items)]) => {
            let mut items = items.iter().cloned();
            let mut sum = items.next().unwrap_or(Val::Int(0));
            for item in items {
                evaluation.budget.spend(1)?;
                sum = operators::apply(evaluation.budget, Operator::Add, sum, item)?;
            }
            match sum {
                Val::Text(_) | Val::Bytes(_) | Val::List(_) => return Err(overload("sum", values)),
                sum => sum,
            }
        }
        ("dyn", [value]) => value.clone(),
        ("type", [value]) => Val::Type(value.type_name()),
        ("bool", [Val::Bool(b)]) => Val::Bool(*b),
        ("bool", [Val::Text(text)]) => Val::Bool(parse_bool(text)?),
        ("bytes", [bytes @ Val::Bytes(_)]) => bytes.clone(),
        ("string", [Val::Bool(b)]) => Val::text(if *b { "true" } else { "false" }),
        ("string" | "int", [Val::Foreign(time)]) => return Ok(time_as(function.name, time)),
        ("duration" | "timestamp", [value @ Val::Foreign(_)])
            if value.type_name().to_lowercase().ends_with(function.name) =>
        {
            value.clone()
        }
        ("parseJSON", [Val::Text(text)]) => {
            evaluation
                .budget
                .spend(text.len() as u64 / BYTES_PER_UNIT)?;
            parse_json(text)?
        }
        ("scores", [_, Val::Text(name)]) => match evaluation.variables.scores.get(&**name) {
            Some(scores) => scores.clone(),
            None => {
                let message = format!("no such key: the cluster has no scores '{name}'");
                return Err(EvalError::new(EvalErrorKind::NoSuchKey, message));
            }
        },
        // An optional upstream; the library fails for a name that there is not.
        ("format.named", [Val::Text(_)]) => {
            let format = library::call(function.name, values, false).ok();
            Val::Optional(format.map(Arc::new))
        }
        ("size" | "bool" | "parseJSON" | "scores" | "contains" | "startsWith" | "endsWith", _) => {
            return Err(overload(function.name, values));
        }
        _ => return optional(function.name, values),
    };
    Ok(Some(result))
}

/// A time or a span of time as cel-go prints them: `2026-01-02T03:04:05Z`, `90.5s`; a time as seconds.
fn time_as(name: &str, time: &cel::Value) -> Option<Val> {
    match (name, time) {
        ("int", cel::Value::Timestamp(time)) => Some(Val::Int(time.timestamp())),
        ("string", cel::Value::Timestamp(time)) => {
            let text = time.to_rfc3339();
            let text = text.strip_suffix("+00:00").map(|utc| format!("{utc}Z"));
            text.map(|text| Val::text(&text))
        }
        ("string", cel::Value::Duration(span)) => {
            let ns =
                i128::from(span.num_seconds()) * 1_000_000_000 + i128::from(span.subsec_nanos());
            let sign = if ns < 0 { "-" } else { "" };
            let ns = ns.unsigned_abs();
            let fraction = format!(".{:09}", ns % 1_000_000_000);
            let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
            Some(Val::text(&format!(
                "{sign}{}{fraction}s",
                ns / 1_000_000_000
            )))
        }
        _ => None,
    }
}

fn optional(name: &str, values: &[Val]) -> Result<Option<Val>, EvalError> {
    let result = match (name, values) {
        ("optional.none", _) => Val::Optional(None),
        ("optional.of", [value]) => Val::Optional(Some(Arc::new(value.clone()))),
        ("optional.ofNonZeroValue", [value]) => {
            Val::Optional((!is_zero(value)).then(|| Arc::new(value.clone())))
        }
        ("hasValue", [Val::Optional(value)]) => Val::Bool(value.is_some()),
        ("value", [Val::Optional(Some(value))]) => (**value).clone(),
        ("value", [Val::Optional(None)]) => {
            let message = "no such key: value() of an optional that has none";
            return Err(EvalError::new(EvalErrorKind::NoSuchKey, message));
        }
        ("or", [Val::Optional(Some(_)), Val::Optional(_)]) => values[0].clone(),
        ("or", [Val::Optional(None), Val::Optional(_)]) => values[1].clone(),
        ("orValue", [Val::Optional(Some(value)), _]) => (**value).clone(),
        ("orValue", [Val::Optional(None), other]) => other.clone(),
        ("hasValue" | "value" | "or" | "orValue", _) => return Err(overload(name, values)),
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn is_zero(value: &Val) -> bool {
    match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) | Val::Optional(None) => true,
        Val::Double(d) => *d == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(items) => items.is_empty(),
        Val::Map(map) => map.entries().is_empty(),
        _ => false,
    }
}

/// Go's strconv.ParseBool, as cel-go uses it.
fn parse_bool(text: &str) -> Result<bool, EvalError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(EvalError::refused("bool: neither true nor false")),
    }
}

fn parse_json(text: &str) -> Result<Val, EvalError> {
    match serde_json::from_str(text) {
        Ok(json) => Ok(Value::from_json(&json).0),
        Err(error) => Err(EvalError::refused(format!("parseJSON: {error}"))),
    }
}

fn overload(name: &str, values: &[Val]) -> EvalError {
    let types: Vec<_> = values.iter().map(Val::type_name).collect();
    EvalError::overload(&format!("'{name}'"), &types)
}

/// What a call costs beyond its arguments' bytes; refuses what the library can't take.
fn check(name: &str, values: &[Val]) -> Result<u64, EvalError> {
    match (name, values) {
        ("matches" | "find", [Val::Text(_), Val::Text(pattern)])
        | ("findAll", [Val::Text(_), Val::Text(pattern), ..]) => pattern::cost(pattern),
        ("replace", [Val::Text(text), Val::Text(from), Val::Text(to), ..]) => {
            let places = match from.len() {
                0 => text.len() + 1,
                n => text.len() / n,
            };
            let made = places.saturating_mul(to.len()).saturating_add(text.len());
            check_length(made)?;
            Ok(made as u64 / BYTES_PER_UNIT)
        }
        ("join", [Val::List(items), rest @ ..]) => {
            let separator = match rest {
                [Val::Text(separator)] => separator.len(),
                _ => 0,
            };
            let items = Val::List(items.clone()).size(TEXT_MAX as u64) as usize;
            let made = separator.saturating_mul(items).saturating_add(items);
            check_length(made)?;
            Ok(made as u64 / BYTES_PER_UNIT)
        }
        // The library looks at every place for every part.
        ("indexOf" | "lastIndexOf" | "split", [Val::Text(text), Val::Text(part), ..]) => {
            Ok((text.len() as u64).saturating_mul(1 + part.len() as u64) / 100)
        }
        ("distinct" | "sort", [Val::List(items)]) => {
            let n = items.len() as u64;
            Ok(n.saturating_mul(n) / BYTES_PER_UNIT)
        }
        ("format", [Val::Text(text), _]) => check_precision(text).map(|()| 0),
        ("quantity" | "isQuantity", [Val::Text(text)]) => check_quantity(text).map(|()| 0),
        _ => Ok(0),
    }
}

fn check_precision(format: &str) -> Result<(), EvalError> {
    for verb in format.split('%').skip(1) {
        let Some(precision) = verb.strip_prefix('.') else {
            continue;
        };
        let digits = precision.bytes().take_while(u8::is_ascii_digit).count();
        if digits > PRECISION_DIGITS_MAX {
            return Err(EvalError::refused(
                "format: more than 99 places after the point",
            ));
        }
    }
    Ok(())
}

fn check_quantity(text: &str) -> Result<(), EvalError> {
    let number = text.trim_start_matches(['+', '-']);
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = number.split_at(end.unwrap_or(number.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let exponent = match suffix.strip_prefix(['e', 'E']) {
        Some(exponent) if !exponent.is_empty() => exponent.parse::<i64>().unwrap_or(i64::MAX),
        _ => match suffix {
            "n" => -9,
            "u" => -6,
            "m" => -3,
            "k" | "Ki" => 3,
            "M" | "Mi" => 6,
            "G" | "Gi" => 9,
            "T" | "Ti" => 12,
            "P" | "Pi" => 15,
            "E" | "Ei" => 18,
            _ => 0,
        },
    };
    let whole = (whole.len() as i64).saturating_add(exponent);
    let fraction = (fraction.len() as i64).saturating_sub(exponent);
    if whole > QUANTITY_WHOLE_MAX || fraction > QUANTITY_FRACTION_MAX {
        return Err(EvalError::refused(
            "quantity: more digits than an API server keeps exactly",
        ));
    }
    Ok(())
}
