//! Expressions, compiled.

use kube_cel::cel::parser::Parser;

use crate::budget::Budget;
use crate::error::{CompileError, EvalError, EvalErrorKind};
use crate::evaluate::Evaluation;
use crate::function::Style;
use crate::node::Node;
use crate::source::Source;
use crate::value::{Val, Value};
use crate::variables::{Environment, Variables};
use crate::{fields, lower, types, walk};

/// An expression, compiled for its environment.
///
/// ```
/// use strew_cel::{Environment, Program, Value, Variables};
/// use serde_json::json;
///
/// let pods = Value::from_json(&json!([{"name": "a", "labels": {"subset": "ecs"}}, {"name": "b", "labels": {}}]));
/// let nodes = Value::from_json(&json!([]));
/// let variables = Variables::scenario(pods, nodes.clone(), nodes, Value::duration(0));
///
/// let text = "pods.filter(p, p.labels.subset == 'ecs').size() <= 10";
/// let program = Program::compile(text, Environment::Scenario)?;
/// assert!(program.holds(&variables)?);
///
/// let error = Program::compile("size(nodez) == 5", Environment::Scenario).unwrap_err();
/// assert_eq!((error.line, error.column), (1, 6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Program {
    environment: Environment,
    root: Node,
}

impl Program {
    /// Reads an expression.
    ///
    /// Names of variables and functions are checked, and how many arguments a function has; in scenarios the fields of
    /// pods and nodes too, and for OCM's selectors types, as OCM checks them. The type of the whole is not: `"abc"` compiles and holds nowhere.
    ///
    /// # Errors
    ///
    /// The first mistake of the text, with its place; what is longer or deeper than [`limits`](crate::limits) say.
    pub fn compile(text: &str, environment: Environment) -> Result<Self, CompileError> {
        let source = Source::new(text)?;
        let parser = Parser::new().enable_optional_syntax(true);
        let tree = parser.parse(&source.reduced).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            match first {
                Some(e) => CompileError::at(text, e.pos.0, e.pos.1, e.msg),
                None => CompileError::new(text, 0, "Syntax error"),
            }
        })?;
        let root = lower::lower(environment, &source, &tree)?;
        match environment {
            Environment::ManagedCluster | Environment::Admission => types::check(&source, &root)?,
            Environment::Scenario => fields::check(&source, &root)?,
        }
        Ok(Self { environment, root })
    }

    /// Whether the expression is true, for no more than [`Environment::cost_max`].
    ///
    /// # Errors
    ///
    /// [`EvalError`]: no result, or one that is no bool. For OCM's selectors every error means no match.
    pub fn holds(&self, variables: &Variables) -> Result<bool, EvalError> {
        self.holds_within(variables, &mut Budget::new(self.environment.cost_max()))
    }

    /// As [`Program::holds`], for no more than is left of `budget` either: for expressions with a limit in common.
    ///
    /// # Errors
    ///
    /// As [`Program::holds`].
    pub fn holds_within(
        &self,
        variables: &Variables,
        budget: &mut Budget,
    ) -> Result<bool, EvalError> {
        match self.value_within(variables, budget)? {
            Val::Bool(holds) => Ok(holds),
            other => {
                let message = format!("the result is of type {}, not bool", other.type_name());
                Err(EvalError::new(EvalErrorKind::NotBool, message))
            }
        }
    }

    /// The value of the expression, for no more than [`Environment::cost_max`].
    ///
    /// # Errors
    ///
    /// [`EvalError`]: no result.
    pub fn value(&self, variables: &Variables) -> Result<Value, EvalError> {
        let mut budget = Budget::new(self.environment.cost_max());
        self.value_within(variables, &mut budget).map(Value)
    }

    fn value_within(&self, variables: &Variables, budget: &mut Budget) -> Result<Val, EvalError> {
        if variables.environment != self.environment {
            let message = "the variables are those of another environment";
            return Err(EvalError::new(EvalErrorKind::NoSuchVariable, message));
        }
        let mut own = Budget::new(self.environment.cost_max().min(budget.left()));
        let result = Evaluation::new(variables, &mut own).value(&self.root);
        budget.add(own.spent());
        result
    }

    /// Whether the expression names this variable of its environment.
    #[must_use]
    pub fn mentions(&self, variable: &str) -> bool {
        let mut is_named = false;
        walk::each(&self.root, &mut |node| {
            is_named |= matches!(node, Node::Global { name, .. } if *name == variable);
        });
        is_named
    }

    /// Names of the score objects that the expression asks for, sorted; `None` where one is computed, so that it may
    /// be any.
    #[must_use]
    pub fn score_names(&self) -> Option<Vec<String>> {
        let mut names = Some(Vec::new());
        walk::each(&self.root, &mut |node| {
            let Node::Call {
                function,
                arguments,
            } = node
            else {
                return;
            };
            if function.name != "scores" || function.style != Style::Member {
                return;
            }
            match (arguments.as_slice(), &mut names) {
                ([_, Node::Constant(Val::Text(name))], Some(names)) => names.push(name.to_string()),
                _ => names = None,
            }
        });
        let mut names = names?;
        names.sort();
        names.dedup();
        Some(names)
    }
}
