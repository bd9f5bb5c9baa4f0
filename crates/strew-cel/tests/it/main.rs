//! Expressions and what they give.

mod admission;
mod language;
mod limits;
mod managed_cluster;
mod places;
mod scenario;

use std::collections::BTreeMap;

use serde_json::Value as Json;
use strew_cel::{Environment, EvalError, Program, Value, Variables};

/// What an expression gives: `true`, `false`, or the text of its error.
fn outcome(result: Result<bool, EvalError>) -> String {
    match result {
        Ok(holds) => holds.to_string(),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn compile(text: &str, environment: Environment) -> Program {
    match Program::compile(text, environment) {
        Ok(program) => program,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Checks lines of `expression` and outcome.
#[track_caller]
fn check(variables: &Variables, environment: Environment, table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let got = match Program::compile(text, environment) {
            Ok(program) => outcome(program.holds(variables)),
            Err(error) => error.to_string(),
        };
        if got != *expected {
            wrong.push(format!("{text}\n  expected: {expected}\n  got:      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn scenario(pods: &Json, nodes: &Json) -> Variables {
    let none = Value::list([]);
    let now = Value::duration(90_000_000_000);
    Variables::scenario(Value::from_json(pods), Value::from_json(nodes), none, now)
}

fn cluster(cluster: &Json, scores: &[(&str, Json)]) -> Variables {
    let scores = scores.iter();
    let scores: BTreeMap<_, _> = scores
        .map(|(name, list)| ((*name).to_owned(), Value::from_json(list)))
        .collect();
    Variables::managed_cluster(Value::from_json(cluster), scores)
}
