//! Types of expressions before they are evaluated, as cel-go's checker finds them for OCM.
//!
//! `managedCluster` is a map from strings to anything, so that most of an expression is of any type; what is written
//! down, and what functions give, is not: `1 == "1"` does not compile. Source: cel-go's standard declarations, the
//! strings extension, optional types, and Kubernetes' libraries.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use kube_cel::cel::common::ast::operators;

use crate::error::CompileError;
use crate::function::Style;
use crate::node::{Entry, Fold, FoldKind, Node, Operator};
use crate::source::Source;
use crate::value::Val;

/// Checks an expression over `managedCluster`.
///
/// # Errors
///
/// The first operator or function that takes no values of these types, with its place.
pub(crate) fn check(source: &Source<'_>, root: &Node) -> Result<(), CompileError> {
    let mut checker = Checker {
        source,
        locals: Vec::new(),
        seen: HashMap::new(),
    };
    checker.type_of(root).map(|_| ())
}

/// A type. `Display` writes it as cel-go's messages do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Type {
    /// Of any type: only an evaluation tells.
    Dyn,
    /// One without parameters: `int`, `string`, `kubernetes.Quantity`.
    Plain(&'static str),
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Optional(Box<Type>),
    /// A type itself, which is a value.
    Type,
    /// In signatures: any type, the same wherever the letter stands.
    Letter(u8),
}

/// What functions take and give: `name(arguments) result`; of a member the receiver is the first argument.
const SIGNATURES: &str = "
!_(bool) bool
-_(int) int
-_(double) double
_&&_(bool,bool) bool
_||_(bool,bool) bool
_?_:_(bool,A,A) A
_==_(A,A) bool
_!=_(A,A) bool
_<_(ordered,ordered) bool
_<=_(ordered,ordered) bool
_>_(ordered,ordered) bool
_>=_(ordered,ordered) bool
@in(A,list(A)) bool
@in(A,map(A,B)) bool
_+_(number,number) number
_+_(string,string) string
_+_(bytes,bytes) bytes
_+_(list(A),list(A)) list(A)
_+_(timestamp,duration) timestamp
_+_(duration,timestamp) timestamp
_+_(duration,duration) duration
_-_(number,number) number
_-_(timestamp,timestamp) duration
_-_(timestamp,duration) timestamp
_-_(duration,duration) duration
_*_(number,number) number
_/_(number,number) number
_%_(int,int) int
_%_(uint,uint) uint
_[_](list(A),int) A
_[_](map(A,B),A) B
_[_](optional(list(A)),int) optional(A)
_[_](optional(map(A,B)),A) optional(B)
_[?_](list(A),int) optional(A)
_[?_](map(A,B),A) optional(B)
_[?_](optional(list(A)),int) optional(A)
_[?_](optional(map(A,B)),A) optional(B)
size(string) int
size(bytes) int
size(list(A)) int
size(map(A,B)) int
bool(bool) bool
bool(string) bool
bytes(bytes) bytes
bytes(string) bytes
double(number) double
double(string) double
duration(duration) duration
duration(int) duration
duration(string) duration
dyn(A) dyn
int(number) int
int(string) int
int(timestamp) int
int(duration) int
string(number) string
string(bool) string
string(bytes) string
string(duration) string
string(string) string
string(timestamp) string
timestamp(timestamp) timestamp
timestamp(int) timestamp
timestamp(string) timestamp
type(A) type
uint(number) uint
uint(string) uint
contains(string,string) bool
endsWith(string,string) bool
matches(string,string) bool
startsWith(string,string) bool
getDate(timestamp) int
getDayOfMonth(timestamp) int
getDayOfWeek(timestamp) int
getDayOfYear(timestamp) int
getFullYear(timestamp) int
getMonth(timestamp) int
getHours(timed) int
getMilliseconds(timed) int
getMinutes(timed) int
getSeconds(timed) int
optional.none() optional(dyn)
optional.of(A) optional(A)
optional.ofNonZeroValue(A) optional(A)
hasValue(optional(A)) bool
or(optional(A),optional(A)) optional(A)
orValue(optional(A),A) A
value(optional(A)) A
charAt(string,int) string
format(string,list(dyn)) string
indexOf(string,string) int
indexOf(string,string,int) int
indexOf(list(A),A) int
join(list(string)) string
join(list(string),string) string
lastIndexOf(string,string) int
lastIndexOf(string,string,int) int
lastIndexOf(list(A),A) int
lowerAscii(string) string
replace(string,string,string) string
replace(string,string,string,int) string
reverse(string) string
split(string,string) list(string)
split(string,string,int) list(string)
strings.quote(string) string
substring(string,int) string
substring(string,int,int) string
trim(string) string
upperAscii(string) string
isSorted(list(ordered)) bool
max(list(ordered)) ordered
min(list(ordered)) ordered
sum(list(number)) number
sum(list(duration)) duration
find(string,string) string
findAll(string,string) list(string)
findAll(string,string,int) list(string)
url(string) url
isURL(string) bool
getEscapedPath(url) string
getHost(url) string
getHostname(url) string
getPort(url) string
getQuery(url) map(string,list(string))
getScheme(url) string
quantity(string) quantity
isQuantity(string) bool
add(quantity,quantity) quantity
add(quantity,int) quantity
sub(quantity,quantity) quantity
sub(quantity,int) quantity
asApproximateFloat(quantity) double
asInteger(quantity) int
isInteger(quantity) bool
sign(quantity) int
compareTo(quantity,quantity) int
compareTo(semver,semver) int
isGreaterThan(quantity,quantity) bool
isGreaterThan(semver,semver) bool
isLessThan(quantity,quantity) bool
isLessThan(semver,semver) bool
ip(string) ip
ip(cidr) ip
isIP(string) bool
ip.isCanonical(string) bool
family(ip) int
isGlobalUnicast(ip) bool
isLinkLocalMulticast(ip) bool
isLinkLocalUnicast(ip) bool
isLoopback(ip) bool
isUnspecified(ip) bool
cidr(string) cidr
isCIDR(string) bool
containsCIDR(cidr,cidr) bool
containsCIDR(cidr,string) bool
containsIP(cidr,ip) bool
containsIP(cidr,string) bool
masked(cidr) cidr
prefixLength(cidr) int
format.named(string) optional(format)
validate(format,string) optional(list(string))
semver(string) semver
semver(string,bool) semver
isSemver(string) bool
isSemver(string,bool) bool
major(semver) int
minor(semver) int
patch(semver) int
parseJSON(string) dyn
scores(dyn,string) list(dyn)
";

/// Names in signatures that stand for several types, in each signature for one of them.
const SETS: [(&str, &[&str]); 3] = [
    ("number", &["int", "uint", "double"]),
    (
        "ordered",
        &[
            "bool",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "timestamp",
            "duration",
        ],
    ),
    ("timed", &["timestamp", "duration"]),
];

const PLAIN: [&str; 15] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "null",
    "timestamp",
    "duration",
    "url",
    "quantity",
    "ip",
    "cidr",
    "format",
    "semver",
];

/// What a function takes, and what it gives.
type Signature = (Vec<Type>, Type);

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let mut functions: HashMap<&'static str, Vec<Signature>> = HashMap::new();
    for line in SIGNATURES.lines().filter(|line| !line.is_empty()) {
        let set = SETS.iter().find(|(name, _)| line.contains(name));
        let members = set.map_or(&[""][..], |(_, members)| members);
        let name = set.map_or("\0", |(name, _)| name);
        for member in members {
            let read = |text: &str| Type::read(&text.replace(name, member));
            // An operator's name may have a bracket, never the first one of the arguments.
            let Some((head, result)) = line.rsplit_once(' ') else {
                continue;
            };
            let open = head.find('(').unwrap_or(head.len());
            let arguments = head[open..].trim_start_matches('(');
            let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
            let arguments = parameters(arguments).into_iter().map(read).collect();
            functions
                .entry(&head[..open])
                .or_default()
                .push((arguments, read(result)));
        }
    }
    functions
});

/// Splits at the commas that are in no bracket.
fn parameters(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

impl Type {
    fn read(text: &str) -> Self {
        if let Some((of, inner)) = text.split_once('(') {
            let inner = inner.strip_suffix(')').unwrap_or(inner);
            let mut parts = parameters(inner).into_iter().map(Self::read);
            let mut next = || Box::new(parts.next().unwrap_or(Self::Dyn));
            return match of {
                "list" => Self::List(next()),
                "map" => Self::Map(next(), next()),
                _ => Self::Optional(next()),
            };
        }
        match text {
            "A" | "B" => Self::Letter(text.as_bytes()[0] - b'A'),
            "type" => Self::Type,
            _ => Self::plain(text),
        }
    }

    fn plain(name: &str) -> Self {
        let known = PLAIN.iter().find(|known| **known == name);
        known.map_or(Self::Dyn, |known| Self::Plain(known))
    }

    fn is_dyn(&self) -> bool {
        *self == Self::Dyn
    }

    /// Whether a value of this type may stand where `wanted` is; letters are bound on the way.
    fn fits(&self, wanted: &Self, bound: &mut [Option<Self>; 2]) -> bool {
        match (self, wanted) {
            (_, Self::Letter(letter)) => match bound[usize::from(*letter)].clone() {
                None => {
                    bound[usize::from(*letter)] = Some(self.clone());
                    true
                }
                Some(known) => {
                    if known.is_dyn() {
                        bound[usize::from(*letter)] = Some(Self::Dyn);
                    }
                    self.fits(&known, bound)
                }
            },
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => {
                a.fits(b, bound)
            }
            (Self::Map(a, b), Self::Map(c, d)) => a.fits(c, bound) && b.fits(d, bound),
            // Time may be null, as messages may.
            (Self::Plain("null"), Self::Plain("timestamp" | "duration")) => true,
            (Self::Plain("timestamp" | "duration"), Self::Plain("null")) => true,
            (a, b) => a == b,
        }
    }

    /// The type with its letters replaced by what they are bound to.
    fn with(&self, bound: &[Option<Self>; 2]) -> Self {
        let boxed = |of: &Self| Box::new(of.with(bound));
        match self {
            Self::Letter(letter) => bound[usize::from(*letter)].clone().unwrap_or(Self::Dyn),
            Self::List(of) => Self::List(boxed(of)),
            Self::Optional(of) => Self::Optional(boxed(of)),
            Self::Map(key, value) => Self::Map(boxed(key), boxed(value)),
            other => other.clone(),
        }
    }

    /// One type for elements of both.
    fn joined(self, other: Self) -> Self {
        match self == other {
            true => self,
            false => Self::Dyn,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Letter(_) => f.write_str("dyn"),
            Self::Plain(name @ ("url" | "quantity" | "ip" | "cidr" | "format" | "semver")) => {
                let name = match *name {
                    "url" => "kubernetes.URL",
                    "quantity" => "kubernetes.Quantity",
                    "ip" => "net.IP",
                    "cidr" => "net.CIDR",
                    "format" => "kubernetes.NamedFormat",
                    _ => "kubernetes.Semver",
                };
                f.write_str(name)
            }
            Self::Plain(name) => f.write_str(name),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Type => f.write_str("type"),
        }
    }
}

struct Checker<'a> {
    source: &'a Source<'a>,
    /// Types of macros' variables in scope.
    locals: Vec<Type>,
    /// How often a sign or a function was met, from left to right.
    seen: HashMap<String, usize>,
}

type Checked = Result<Type, CompileError>;

impl Checker<'_> {
    fn type_of(&mut self, node: &Node) -> Checked {
        match node {
            Node::Constant(value) => Ok(constant(value)),
            Node::Local { place, .. } => Ok(self.locals.get(*place).cloned().unwrap_or(Type::Dyn)),
            Node::Global { .. } => Ok(Type::Map(
                Box::new(Type::plain("string")),
                Box::new(Type::Dyn),
            )),
            Node::Select { of, key } => {
                let of = self.type_of(of)?;
                self.field(of, key)
            }
            Node::Has { of, key } => {
                let of = self.type_of(of)?;
                self.field(of, key)?;
                Ok(Type::plain("bool"))
            }
            Node::OptionalIndex { of, index } => {
                let arguments = vec![self.type_of(of)?, self.type_of(index)?];
                self.call("_[?_]", 0, arguments, false)
            }
            Node::Index { of, index } => {
                let of = self.type_of(of)?;
                let offset = self.sign("[");
                let index = self.type_of(index)?;
                self.call(operators::INDEX, offset, vec![of, index], false)
            }
            Node::And(left, right) => self.binary(operators::LOGICAL_AND, "&&", left, right),
            Node::Or(left, right) => self.binary(operators::LOGICAL_OR, "||", left, right),
            Node::Not(of) => self.unary(operators::LOGICAL_NOT, "!", of),
            Node::Negate(of) => self.unary(operators::NEGATE, "-", of),
            Node::Condition {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.type_of(condition)?;
                let offset = self.sign("?");
                let arguments = vec![condition, self.type_of(then)?, self.type_of(otherwise)?];
                self.call(operators::CONDITIONAL, offset, arguments, false)
            }
            Node::Binary {
                operator,
                left,
                right,
            } => {
                let name = match operator {
                    Operator::In => "@in",
                    other => other.name(),
                };
                self.binary(name, operator.sign(), left, right)
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::OptionalMap {
                of, body, is_flat, ..
            } => {
                let of = match self.type_of(of)? {
                    Type::Optional(of) => *of,
                    _ => Type::Dyn,
                };
                self.locals.push(of);
                let body = self.type_of(body);
                self.locals.pop();
                Ok(match (body?, is_flat) {
                    (body @ Type::Optional(_), true) => body,
                    (_, true) => Type::Dyn,
                    (body, false) => Type::Optional(Box::new(body)),
                })
            }
            Node::Call {
                function,
                arguments,
            } => {
                let is_member = function.style == Style::Member;
                let (receiver, rest) = match arguments.split_first() {
                    Some((receiver, rest)) if is_member => (Some(receiver), rest),
                    _ => (None, arguments.as_slice()),
                };
                let receiver = receiver
                    .map(|receiver| self.type_of(receiver))
                    .transpose()?;
                let written = function.name.rsplit('.').next().unwrap_or(function.name);
                let offset = self.source.call(written, self.count(written)) + written.len();
                let mut types: Vec<Type> = receiver.into_iter().collect();
                for argument in rest {
                    types.push(self.type_of(argument)?);
                }
                if function.name.starts_with("format.") && function.name != "format.named" {
                    return Ok(Type::plain("format"));
                }
                self.call(function.name, offset, types, is_member)
            }
        }
    }

    /// How often a word was met before.
    fn count(&mut self, word: &str) -> usize {
        let seen = self.seen.entry(word.to_owned()).or_default();
        *seen += 1;
        *seen - 1
    }

    /// Where a sign stands that is met now.
    fn sign(&mut self, sign: &str) -> usize {
        let nth = self.count(sign);
        self.source.sign(sign, nth)
    }

    fn binary(&mut self, name: &str, sign: &str, left: &Node, right: &Node) -> Checked {
        let left = self.type_of(left)?;
        let offset = self.sign(sign);
        let right = self.type_of(right)?;
        self.call(name, offset, vec![left, right], false)
    }

    fn unary(&mut self, name: &str, sign: &str, of: &Node) -> Checked {
        let offset = match sign {
            "!" => self.sign(sign),
            _ => 0,
        };
        let of = self.type_of(of)?;
        self.call(name, offset, vec![of], false)
    }

    fn call(&self, name: &str, offset: usize, types: Vec<Type>, is_member: bool) -> Checked {
        let Some(signatures) = FUNCTIONS.get(name) else {
            return Ok(Type::Dyn);
        };
        let mut result: Option<Type> = None;
        for (wanted, given) in signatures {
            let mut bound = [None, None];
            let mut pairs = types.iter().zip(wanted);
            if types.len() == wanted.len() && pairs.all(|(t, wanted)| t.fits(wanted, &mut bound)) {
                let given = given.with(&bound);
                result = Some(match result {
                    None => given,
                    Some(other) => other.joined(given),
                });
            }
        }
        result.ok_or_else(|| {
            let written: Vec<String> = types.iter().map(Type::to_string).collect();
            let applied = match written.split_first() {
                Some((receiver, rest)) if is_member => format!("{receiver}.({})", rest.join(", ")),
                _ => format!("({})", written.join(", ")),
            };
            let message = format!("found no matching overload for '{name}' applied to '{applied}'");
            self.error(offset, message)
        })
    }

    fn error(&self, offset: usize, message: String) -> CompileError {
        CompileError::new(self.source.text, offset, message)
    }

    /// The type of a field of a value.
    fn field(&self, of: Type, key: &str) -> Checked {
        match of {
            Type::Dyn => Ok(Type::Dyn),
            Type::Map(_, value) => Ok(*value),
            Type::Optional(of) => Ok(Type::Optional(Box::new(self.field(*of, key)?))),
            other => {
                let offset = self.source.field(key);
                let message = format!("type '{other}' does not support field selection");
                Err(self.error(offset, message))
            }
        }
    }

    fn list(&mut self, elements: &[(Node, bool)]) -> Checked {
        let mut of: Option<Type> = None;
        for (element, is_optional) in elements {
            let element = match (self.type_of(element)?, is_optional) {
                (Type::Optional(of), true) => *of,
                (element, _) => element,
            };
            of = Some(match of {
                None => element,
                Some(other) => other.joined(element),
            });
        }
        Ok(Type::List(Box::new(of.unwrap_or(Type::Dyn))))
    }

    fn map(&mut self, entries: &[Entry]) -> Checked {
        let mut of: Option<(Type, Type)> = None;
        for entry in entries {
            let key = self.type_of(&entry.key)?;
            let value = match (self.type_of(&entry.value)?, entry.is_optional) {
                (Type::Optional(of), true) => *of,
                (value, _) => value,
            };
            of = Some(match of {
                None => (key, value),
                Some((k, v)) => (k.joined(key), v.joined(value)),
            });
        }
        let (key, value) = of.unwrap_or((Type::Dyn, Type::Dyn));
        Ok(Type::Map(Box::new(key), Box::new(value)))
    }

    fn fold(&mut self, fold: &Fold) -> Checked {
        let element = match self.type_of(&fold.range)? {
            Type::Dyn => Type::Dyn,
            Type::List(of) => *of,
            Type::Map(key, _) => *key,
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return Err(self.error(0, message));
            }
        };
        self.locals.push(element);
        let result = self.folded(&fold.kind);
        self.locals.pop();
        result
    }

    fn folded(&mut self, kind: &FoldKind) -> Checked {
        let boolean = Type::plain("bool");
        // As the macro is written out: a condition, or a step of `&&` or `||`.
        let holds = |this: &mut Self, node: &Node, name: &str| {
            let of = this.type_of(node)?;
            let arguments = match name {
                operators::CONDITIONAL => vec![of, Type::Dyn, Type::Dyn],
                _ => vec![boolean.clone(), of],
            };
            this.call(name, 0, arguments, false)
        };
        match kind {
            FoldKind::All(node) => holds(self, node, operators::LOGICAL_AND)?,
            FoldKind::Exists(node) => holds(self, node, operators::LOGICAL_OR)?,
            FoldKind::ExistsOne(node) => holds(self, node, operators::CONDITIONAL)?,
            FoldKind::Map { filter, to } => {
                if let Some(filter) = filter {
                    holds(self, filter, operators::CONDITIONAL)?;
                }
                let to = self.type_of(to)?;
                return Ok(Type::List(Box::new(to)));
            }
        };
        Ok(Type::plain("bool"))
    }
}

fn constant(value: &Val) -> Type {
    match value {
        Val::Null => Type::plain("null"),
        Val::Bool(_) => Type::plain("bool"),
        Val::Int(_) => Type::plain("int"),
        Val::Uint(_) => Type::plain("uint"),
        Val::Double(_) => Type::plain("double"),
        Val::Text(_) => Type::plain("string"),
        Val::Bytes(_) => Type::plain("bytes"),
        Val::Type(_) => Type::Type,
        _ => Type::Dyn,
    }
}
