//! What the policies do to a pod: their conditions and variables are evaluated by [`strew_cel`], so that a report says
//! what the printed texts say.
//!
//! The patch is not evaluated: its messages are no part of strew's CEL. [`Admission`] has the constraints that it sets.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value as Json, json};
use strew_cel::{CompileError, Environment, EvalError, Program, Value, Variables};

use super::expressions::{
    COUNTED, Expression, Expressions, KEYS, OF_A_CONTROLLER, OF_NO_SUCH_CONTROLLER, SELECTED,
    of_controllers, of_services,
};
use super::{APPLIED, CLONE_SET_POD, CONTROLLERS, Defaults, OF_CONTROLLERS, SERVICES};

/// What becomes of a pod at its creation.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// It gets these constraints from the policy of this name.
    Constrained {
        /// [`CONTROLLERS`] or [`SERVICES`].
        policy: &'static str,
        /// As they are stored, but for the values of `matchLabelKeys`, which the API server merges afterwards.
        constraints: Vec<TopologySpreadConstraint>,
    },
    /// It stays as it is, since this condition of [`expressions`](super::expressions) does not hold.
    Untouched(&'static str),
}

/// In place of a condition: the labels of a pod are those of a controller's pod, so that no Service is asked.
pub const LABELLED_AS_CONTROLLED: &str = "labelled-as-controlled";

/// The policies, compiled.
#[derive(Debug)]
pub struct Policies<'a> {
    defaults: &'a Defaults,
    controllers: Compiled,
    services: Compiled,
}

#[derive(Debug)]
struct Compiled {
    conditions: Vec<(&'static str, Program)>,
    variables: Vec<(&'static str, Program)>,
}

/// The label keys that a policy chose.
struct Chosen {
    counted: Vec<String>,
    keys: Option<Vec<String>>,
}

impl<'a> Policies<'a> {
    /// The policies of these defaults.
    ///
    /// # Errors
    /// An expression is longer than strew's CEL allows, for example with thousands of profiles.
    pub fn new(defaults: &'a Defaults) -> Result<Self, CompileError> {
        Ok(Self {
            defaults,
            controllers: Compiled::new(of_controllers(defaults))?,
            services: Compiled::new(of_services(defaults))?,
        })
    }

    /// What becomes of a pod, given the Services of its namespace; both as JSON. The selectors of the policies
    /// (namespaces, the label of the pod) are not asked.
    ///
    /// # Errors
    /// An expression has no result; with `failurePolicy: Ignore` the pod then stays as it is.
    pub fn admit(&self, pod: &Json, services: &[&Json]) -> Result<Admission, EvalError> {
        match self.controllers.ask(pod, None)? {
            Ok(chosen) => return Ok(self.constrained(pod, CONTROLLERS, &chosen)),
            Err(OF_A_CONTROLLER) => {}
            Err(condition) => return Ok(Admission::Untouched(condition)),
        }
        if !is_asked(&pod["metadata"]["labels"]) {
            return Ok(Admission::Untouched(LABELLED_AS_CONTROLLED));
        }
        let mut pod = pod.clone();
        let mut last = Admission::Untouched(SELECTED);
        for service in services {
            match self.services.ask(&pod, Some(service))? {
                Ok(chosen) => {
                    last = self.constrained(&pod, SERVICES, &chosen);
                    // What the next Service's evaluation reads.
                    let counted = json!({"matchLabels": counted_labels(&pod, &chosen)});
                    pod["spec"]["topologySpreadConstraints"] = json!([{"labelSelector": counted}]);
                    pod["metadata"]["annotations"][APPLIED] = SERVICES.into();
                }
                Err(SELECTED) => {}
                Err(condition) => return Ok(Admission::Untouched(condition)),
            }
        }
        // Without a Service the policy has no parameter, and its conditions are not asked.
        if services.is_empty()
            && let Err(condition) = self.services.ask(&pod, Some(&json!({"spec": {}})))?
        {
            last = Admission::Untouched(condition);
        }
        Ok(last)
    }

    fn constrained(&self, pod: &Json, policy: &'static str, chosen: &Chosen) -> Admission {
        let scheduler = pod["spec"]["schedulerName"].as_str().unwrap_or_default();
        let match_labels = counted_labels(pod, chosen);
        let with_selector = |constraint: &TopologySpreadConstraint| TopologySpreadConstraint {
            label_selector: Some(LabelSelector {
                match_expressions: None,
                match_labels: Some(match_labels.clone()),
            }),
            match_label_keys: chosen.keys.clone().filter(|keys| !keys.is_empty()),
            ..constraint.clone()
        };
        let constraints = self.defaults.constraints(scheduler).unwrap_or_default();
        Admission::Constrained {
            policy,
            constraints: constraints.iter().map(with_selector).collect(),
        }
    }
}

/// The labels that are counted, with the values of the pod.
fn counted_labels(pod: &Json, chosen: &Chosen) -> BTreeMap<String, String> {
    let labels = &pod["metadata"]["labels"];
    let pair = |key: &String| Some((key.clone(), labels[key].as_str()?.to_owned()));
    chosen.counted.iter().filter_map(pair).collect()
}

/// Whether a binding of [`SERVICES`] selects pods with these labels.
fn is_asked(labels: &Json) -> bool {
    let has = |key: &str| labels.get(key).is_some();
    has(CLONE_SET_POD) || !OF_CONTROLLERS.into_iter().any(has)
}

impl Compiled {
    fn new(expressions: Expressions) -> Result<Self, CompileError> {
        let compile = |list: Vec<Expression>| -> Result<Vec<_>, CompileError> {
            let each = list.into_iter();
            each.map(|e| Ok((e.name, Program::compile(&e.text, Environment::Admission)?)))
                .collect()
        };
        Ok(Self {
            conditions: compile(expressions.conditions)?,
            variables: compile(expressions.variables)?,
        })
    }

    /// The chosen keys, or the first condition that does not hold.
    fn ask(
        &self,
        pod: &Json,
        service: Option<&Json>,
    ) -> Result<Result<Chosen, &'static str>, EvalError> {
        let (object, params) = (Value::from_json(pod), service.map(Value::from_json));
        let of = |variables: &Json| {
            let variables = Value::from_json(variables);
            Variables::admission(object.clone(), params.clone(), variables)
        };
        let mut known = json!({});
        let variables = of(&known);
        for (name, condition) in &self.conditions {
            if !condition.holds(&variables)? {
                return Ok(Err(name));
            }
        }
        for (name, variable) in &self.variables {
            let texts = variable.value(&of(&known))?.texts();
            known[name] = json!(texts.unwrap_or_default());
        }
        let texts = |name: &str| {
            let list = known[name].as_array()?;
            let text = |value: &Json| value.as_str().map(str::to_owned);
            Some(list.iter().filter_map(text).collect::<Vec<_>>())
        };
        Ok(Ok(Chosen {
            counted: texts(COUNTED).unwrap_or_default(),
            keys: texts(KEYS),
        }))
    }
}

/// Why a pod stays as it is, in words, by the condition that does not hold.
pub fn reason(condition: &str) -> &'static str {
    use super::expressions as names;
    match condition {
        names::OF_A_PROFILE => "another scheduler places it",
        names::WITHOUT_A_NODE => "it is made for its node",
        names::NOT_OPTED_OUT => "it opts out",
        names::WITHOUT_CONSTRAINTS => "it has constraints of its own",
        names::WITH_A_LABEL => "it has no label that can be counted",
        OF_NO_SUCH_CONTROLLER => "it is made for its node",
        LABELLED_AS_CONTROLLED => {
            "it has labels of a Deployment's or StatefulSet's pod, and another controller"
        }
        SELECTED => {
            "nothing is deduced: no Service selects it, and no ReplicaSet, StatefulSet or ReplicationController controls it"
        }
        _ => "a condition of the policy does not hold",
    }
}
