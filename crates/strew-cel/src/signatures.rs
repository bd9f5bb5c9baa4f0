//! What operators and functions take and give, and the types that are spoken of. Source: cel-go's standard declarations,
//! the strings extension, optional types, and Kubernetes' libraries.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// A type. `Display` writes it as cel-go's messages do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "CEL calls the type of types so")]
pub(crate) enum Type {
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
pub(crate) type Signature = (Vec<Type>, Type);

/// All of them, by name.
pub(crate) static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Signature>>> =
    LazyLock::new(|| {
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

    pub(crate) fn plain(name: &str) -> Self {
        let known = PLAIN.iter().find(|known| **known == name);
        known.map_or(Self::Dyn, |known| Self::Plain(known))
    }

    fn is_dyn(&self) -> bool {
        *self == Self::Dyn
    }

    /// Whether a value of this type may stand where `wanted` is; letters are bound on the way.
    pub(crate) fn fits(&self, wanted: &Self, bound: &mut [Option<Self>; 2]) -> bool {
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
    pub(crate) fn with(&self, bound: &[Option<Self>; 2]) -> Self {
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
    pub(crate) fn joined(self, other: Self) -> Self {
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
