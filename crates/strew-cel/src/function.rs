//! Functions and how they are called.

use crate::variables::Environment;

/// A function of an environment.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) style: Style,
    /// Least and most arguments, without the receiver.
    pub(crate) arguments: (usize, usize),
    only: Option<Environment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `f(x)`
    Global,
    /// `x.f()`
    Member,
    /// `math.f(x)`: a global whose name has a dot.
    Qualified,
}

use Style::{Global, Member, Qualified};

/// The function of a name, style and number of arguments; `Err` with whether there is one of that name at all.
pub(crate) fn find(
    environment: Environment,
    name: &str,
    style: Style,
    n_arguments: usize,
) -> Result<&'static Function, bool> {
    let mut named = FUNCTIONS
        .iter()
        .filter(|f| f.name == name && f.only.is_none_or(|only| only == environment))
        .peekable();
    let exists = named.peek().is_some();
    let fits =
        |f: &&Function| f.style == style && (f.arguments.0..=f.arguments.1).contains(&n_arguments);
    named.find(fits).ok_or(exists)
}

const fn f(name: &'static str, style: Style, least: usize, most: usize) -> Function {
    Function {
        name,
        style,
        arguments: (least, most),
        only: None,
    }
}

const fn only(environment: Environment, mut function: Function) -> Function {
    function.only = Some(environment);
    function
}

const SCENARIO: Environment = Environment::Scenario;
const CLUSTER: Environment = Environment::ManagedCluster;

const FUNCTIONS: &[Function] = &[
    // The language's own.
    f("size", Global, 1, 1),
    f("size", Member, 0, 0),
    f("bool", Global, 1, 1),
    f("bytes", Global, 1, 1),
    f("double", Global, 1, 1),
    f("duration", Global, 1, 1),
    f("dyn", Global, 1, 1),
    f("int", Global, 1, 1),
    f("string", Global, 1, 1),
    f("timestamp", Global, 1, 1),
    f("type", Global, 1, 1),
    f("uint", Global, 1, 1),
    f("contains", Member, 1, 1),
    f("endsWith", Member, 1, 1),
    f("matches", Member, 1, 1),
    f("matches", Global, 2, 2),
    f("startsWith", Member, 1, 1),
    f("getDate", Member, 0, 0),
    f("getDayOfMonth", Member, 0, 0),
    f("getDayOfWeek", Member, 0, 0),
    f("getDayOfYear", Member, 0, 0),
    f("getFullYear", Member, 0, 0),
    f("getHours", Member, 0, 0),
    f("getMilliseconds", Member, 0, 0),
    f("getMinutes", Member, 0, 0),
    f("getMonth", Member, 0, 0),
    f("getSeconds", Member, 0, 0),
    // Optional types; optMap and optFlatMap are macros.
    f("optional.none", Qualified, 0, 0),
    f("optional.of", Qualified, 1, 1),
    f("optional.ofNonZeroValue", Qualified, 1, 1),
    f("hasValue", Member, 0, 0),
    f("or", Member, 1, 1),
    f("orValue", Member, 1, 1),
    f("value", Member, 0, 0),
    // The strings extension.
    f("charAt", Member, 1, 1),
    f("format", Member, 1, 1),
    f("indexOf", Member, 1, 2),
    f("join", Member, 0, 1),
    f("lastIndexOf", Member, 1, 2),
    f("lowerAscii", Member, 0, 0),
    f("replace", Member, 2, 3),
    f("reverse", Member, 0, 0),
    f("split", Member, 1, 2),
    f("strings.quote", Qualified, 1, 1),
    f("substring", Member, 1, 2),
    f("trim", Member, 0, 0),
    f("upperAscii", Member, 0, 0),
    // Kubernetes: lists; indexOf and lastIndexOf are above.
    f("isSorted", Member, 0, 0),
    f("max", Member, 0, 0),
    f("min", Member, 0, 0),
    f("sum", Member, 0, 0),
    // cel-go's lists extension, which OCM does not load.
    only(SCENARIO, f("distinct", Member, 0, 0)),
    only(SCENARIO, f("flatten", Member, 0, 1)),
    only(SCENARIO, f("slice", Member, 2, 2)),
    only(SCENARIO, f("sort", Member, 0, 0)),
    // Kubernetes: regular expressions.
    f("find", Member, 1, 1),
    f("findAll", Member, 1, 2),
    // Kubernetes: URLs.
    f("url", Global, 1, 1),
    f("isURL", Global, 1, 1),
    f("getEscapedPath", Member, 0, 0),
    f("getHost", Member, 0, 0),
    f("getHostname", Member, 0, 0),
    f("getPort", Member, 0, 0),
    f("getQuery", Member, 0, 0),
    f("getScheme", Member, 0, 0),
    // Kubernetes: quantities; some serve versions too.
    f("quantity", Global, 1, 1),
    f("isQuantity", Global, 1, 1),
    f("add", Member, 1, 1),
    f("asApproximateFloat", Member, 0, 0),
    f("asInteger", Member, 0, 0),
    f("compareTo", Member, 1, 1),
    f("isGreaterThan", Member, 1, 1),
    f("isInteger", Member, 0, 0),
    f("isLessThan", Member, 1, 1),
    f("sign", Member, 0, 0),
    f("sub", Member, 1, 1),
    // Kubernetes: addresses.
    f("ip", Global, 1, 1),
    f("isIP", Global, 1, 1),
    f("ip.isCanonical", Qualified, 1, 1),
    f("family", Member, 0, 0),
    f("isGlobalUnicast", Member, 0, 0),
    f("isLinkLocalMulticast", Member, 0, 0),
    f("isLinkLocalUnicast", Member, 0, 0),
    f("isLoopback", Member, 0, 0),
    f("isUnspecified", Member, 0, 0),
    f("cidr", Global, 1, 1),
    f("isCIDR", Global, 1, 1),
    f("containsCIDR", Member, 1, 1),
    f("containsIP", Member, 1, 1),
    f("ip", Member, 0, 0),
    f("masked", Member, 0, 0),
    f("prefixLength", Member, 0, 0),
    // Kubernetes: formats.
    f("format.byte", Qualified, 0, 0),
    f("format.date", Qualified, 0, 0),
    f("format.datetime", Qualified, 0, 0),
    f("format.dns1035Label", Qualified, 0, 0),
    f("format.dns1035LabelPrefix", Qualified, 0, 0),
    f("format.dns1123Label", Qualified, 0, 0),
    f("format.dns1123LabelPrefix", Qualified, 0, 0),
    f("format.dns1123Subdomain", Qualified, 0, 0),
    f("format.dns1123SubdomainPrefix", Qualified, 0, 0),
    f("format.labelValue", Qualified, 0, 0),
    f("format.named", Qualified, 1, 1),
    f("format.qualifiedName", Qualified, 0, 0),
    f("format.uri", Qualified, 0, 0),
    f("format.uuid", Qualified, 0, 0),
    f("validate", Member, 1, 1),
    // Kubernetes: versions.
    f("semver", Global, 1, 2),
    f("isSemver", Global, 1, 2),
    f("major", Member, 0, 0),
    f("minor", Member, 0, 0),
    f("patch", Member, 0, 0),
    // OCM.
    only(CLUSTER, f("parseJSON", Member, 0, 0)),
    only(CLUSTER, f("scores", Member, 1, 1)),
];
