//! The tree that is evaluated.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::function::{Function, Style};
use crate::value::{Key, Val};

/// A part of an expression, with all names resolved.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Val),
    /// A variable of a macro: its place among those that are in scope.
    Local {
        place: usize,
        name: Arc<str>,
    },
    /// A variable of the environment: its place there.
    Global {
        place: usize,
        name: &'static str,
    },
    /// `of.key`
    Select {
        of: Box<Node>,
        key: Arc<str>,
    },
    /// `has(of.key)`
    Has {
        of: Box<Node>,
        key: Arc<str>,
    },
    /// `of.?key`, `of[?key]`
    OptionalIndex {
        of: Box<Node>,
        index: Box<Node>,
    },
    /// `of[index]`
    Index {
        of: Box<Node>,
        index: Box<Node>,
    },
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// `if ? then : otherwise`
    Condition {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    Binary {
        operator: Operator,
        left: Box<Node>,
        right: Box<Node>,
    },
    /// With whether an element is optional: `[?x]`
    List(Vec<(Node, bool)>),
    Map(Vec<Entry>),
    Fold(Box<Fold>),
    /// `of.optMap(name, body)`; flat: `optFlatMap`
    OptionalMap {
        of: Box<Node>,
        name: Arc<str>,
        body: Box<Node>,
        is_flat: bool,
    },
    /// With the receiver first, if the style has one.
    Call {
        function: &'static Function,
        arguments: Vec<Node>,
    },
}

/// An entry of a map that is written down.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) is_optional: bool,
}

/// A macro over the elements of a list or the keys of a map.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) name: Arc<str>,
    pub(crate) kind: FoldKind,
}

#[derive(Debug)]
pub(crate) enum FoldKind {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    /// `map(x, to)`, `map(x, filter, to)`; `filter(x, filter)` is one to itself.
    Map {
        filter: Option<Node>,
        to: Node,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(crate) fn of(name: &str) -> Option<Self> {
        use kube_cel::cel::common::ast::operators as names;
        Some(match name {
            names::EQUALS => Self::Equal,
            names::NOT_EQUALS => Self::NotEqual,
            names::LESS => Self::Less,
            names::LESS_EQUALS => Self::LessOrEqual,
            names::GREATER => Self::Greater,
            names::GREATER_EQUALS => Self::GreaterOrEqual,
            names::IN => Self::In,
            names::ADD => Self::Add,
            names::SUBSTRACT => Self::Subtract,
            names::MULTIPLY => Self::Multiply,
            names::DIVIDE => Self::Divide,
            names::MODULO => Self::Remainder,
            _ => return None,
        })
    }

    /// cel's name for it.
    pub(crate) fn name(self) -> &'static str {
        use kube_cel::cel::common::ast::operators as names;
        match self {
            Self::Equal => names::EQUALS,
            Self::NotEqual => names::NOT_EQUALS,
            Self::Less => names::LESS,
            Self::LessOrEqual => names::LESS_EQUALS,
            Self::Greater => names::GREATER,
            Self::GreaterOrEqual => names::GREATER_EQUALS,
            Self::In => names::IN,
            Self::Add => names::ADD,
            Self::Subtract => names::SUBSTRACT,
            Self::Multiply => names::MULTIPLY,
            Self::Divide => names::DIVIDE,
            Self::Remainder => names::MODULO,
        }
    }

    /// As it is written.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

/// The part as a person would write it, for messages; `…` stands for what would be long.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => match Key::of(value) {
                Some(key) => write!(f, "{key}"),
                None => f.write_char('…'),
            },
            Self::Local { name, .. } => f.write_str(name),
            Self::Global { name, .. } => f.write_str(name),
            Self::Select { of, key } => write!(f, "{of}.{key}"),
            Self::Index { of, index } => write!(f, "{of}[{index}]"),
            Self::OptionalIndex { of, index } => write!(f, "{of}[?{index}]"),
            Self::Fold(fold) => {
                let name = match &fold.kind {
                    FoldKind::All(_) => "all",
                    FoldKind::Exists(_) => "exists",
                    FoldKind::ExistsOne(_) => "exists_one",
                    FoldKind::Map {
                        filter: Some(_),
                        to: Self::Local { .. },
                    } => "filter",
                    FoldKind::Map { .. } => "map",
                };
                write!(f, "{}.{name}(…)", fold.range)
            }
            Self::Call {
                function,
                arguments,
            } => match (function.style, arguments.first()) {
                (Style::Member, Some(receiver)) => write!(f, "{receiver}.{}(…)", function.name),
                _ => write!(f, "{}(…)", function.name),
            },
            _ => f.write_char('…'),
        }
    }
}
