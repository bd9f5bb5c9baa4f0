//! Turns changes into the steps of a scenario.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use strew_model::Span;

use crate::format::diagnostics::span;

/// A change of one object.
#[derive(Debug)]
pub(super) enum Act {
    /// Creates the object, or changes it to match.
    Apply(Value),
    /// Creates the object.
    Create(Value),
    /// Deletes the object.
    Delete,
    /// A JSON merge patch.
    Patch(Value),
    /// Sets the replicas.
    Scale(u64),
}

/// The steps so far, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    at: Span,
    /// The verbs with their arguments, in order.
    verbs: Vec<(&'static str, Value)>,
    touched: BTreeSet<String>,
}

/// The time from the last change to the final step.
const CALM: Span = Span::from_secs(300);

impl Timeline {
    /// Adds a change; `at` must not be before the last one. Changes of one instant share a step as far as their order
    /// allows: a step has each verb and each object once.
    pub(super) fn add(&mut self, at: Span, target: String, act: Act) {
        let name = act.name();
        let last = self.steps.last();
        let fits = last.is_some_and(|step| {
            let place = step.verbs.iter().position(|(verb, _)| *verb == name);
            let is_in_order = place.is_none_or(|place| place + 1 == step.verbs.len());
            step.at == at && is_in_order && !step.touched.contains(&target)
        });
        if !fits {
            self.steps.push(Step {
                at,
                verbs: Vec::new(),
                touched: BTreeSet::new(),
            });
        }
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        if step.verbs.last().is_none_or(|(verb, _)| *verb != name) {
            step.verbs.push((name, act.nothing()));
        }
        if let Some((_, argument)) = step.verbs.last_mut() {
            act.put_into(argument, &target);
        }
        step.touched.insert(target);
    }

    /// The time of the last change.
    pub(super) fn end(&self) -> Span {
        self.steps.last().map_or(Span(0), |step| step.at)
    }

    /// The `timeline` of the scenario; the last step only judges the result.
    pub(super) fn finish(self) -> Vec<Value> {
        let end = Span(self.end().0.saturating_add(CALM.0));
        let step = |step: Step| {
            let mut fields = at(step.at);
            for (verb, mut argument) in step.verbs {
                escape(&mut argument);
                fields.insert(verb.to_owned(), argument);
            }
            Value::Object(fields)
        };
        let mut steps: Vec<Value> = self.steps.into_iter().map(step).collect();
        steps.push(Value::Object(at(end)));
        steps
    }
}

fn at(time: Span) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("at".to_owned(), span(time).into());
    fields
}

impl Act {
    fn name(&self) -> &'static str {
        match self {
            Self::Apply(_) => "apply",
            Self::Create(_) => "create",
            Self::Delete => "delete",
            Self::Patch(_) => "patch",
            Self::Scale(_) => "scale",
        }
    }

    fn nothing(&self) -> Value {
        match self {
            Self::Apply(_) | Self::Create(_) | Self::Delete => Value::Array(Vec::new()),
            Self::Patch(_) | Self::Scale(_) => Value::Object(Map::new()),
        }
    }

    fn put_into(self, argument: &mut Value, target: &str) {
        let (list, map) = match argument {
            Value::Array(list) => (Some(list), None),
            Value::Object(map) => (None, Some(map)),
            _ => (None, None),
        };
        let element = match self {
            Self::Apply(object) | Self::Create(object) => object,
            Self::Delete => target.into(),
            Self::Patch(patch) => patch,
            Self::Scale(replicas) => replicas.into(),
        };
        if let Some(list) = list {
            list.push(element);
        } else if let Some(map) = map {
            map.insert(target.to_owned(), element);
        }
    }
}

/// Escapes `${`, which begins a parameter in a scenario; a container's command may contain it.
fn escape(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("${") => *text = text.replace("${", "$${"),
        Value::Array(elements) => elements.iter_mut().for_each(escape),
        Value::Object(fields) => fields.values_mut().for_each(escape),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_of_an_instant_share_a_step_as_far_as_order_allows() {
        let mut timeline = Timeline::default();
        let second = Span::from_secs(1);
        let mut add = |at, target: &str, act| timeline.add(at, target.to_owned(), act);
        add(second, "pod/a", Act::Apply(json!({"x": "${HOME}"})));
        add(second, "pod/b", Act::Apply(json!({})));
        add(second, "deployment/w", Act::Scale(3));
        add(second, "deployment/v", Act::Scale(1));
        add(second, "pod/c", Act::Apply(json!({})));
        add(second, "pod/c", Act::Delete);
        add(Span(1_500_000_000), "pod/b", Act::Patch(json!({"y": null})));
        let expected = json!([
            {"at": "1s", "apply": [{"x": "$${HOME}"}, {}], "scale": {"deployment/w": 3, "deployment/v": 1}},
            {"at": "1s", "apply": [{}]},
            {"at": "1s", "delete": ["pod/c"]},
            {"at": "1.5s", "patch": {"pod/b": {"y": null}}},
            {"at": "5m1.5s"},
        ]);
        assert_eq!(Value::Array(timeline.finish()), expected);
    }
}
