//! Bounds: every text ends quickly, with an error that tells why.

use serde_json::json;
use strew_cel::{Environment, EvalErrorKind, Program, limits};

use crate::{cluster, compile, scenario};

#[test]
fn long_and_deep_texts_are_refused() {
    let deep = |n: usize| format!("{}true{}", "(".repeat(n), ")".repeat(n));
    let wide = |n: usize| vec!["true"; n].join(" && ");
    let nested = |n: usize| format!("{}true{}", "[1].all(x, ".repeat(n), ")".repeat(n));
    let conditions = |n: usize| format!("{}true", "true ? true : ".repeat(n));
    type Text<'a> = &'a dyn Fn(usize) -> String;
    let compared = |n: usize| format!("true{}", " == true".repeat(n));
    let table: [(Text<'_>, usize, &str); 5] = [
        (&compared, limits::COMPARISONS_MAX, "comparisons"),
        (&deep, limits::NESTING_MAX, "brackets"),
        (&wide, limits::TOKENS_MAX / 2, "words and signs"),
        (&nested, limits::COMPREHENSIONS_MAX, "macros over lists"),
        (&conditions, limits::TERNARIES_MAX, "question marks"),
    ];
    for (text, most, message) in table {
        assert!(holds(&text(most)), "{}", text(most));
        let error = Program::compile(&text(most + 1), Environment::Scenario).unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
    let long = format!("'{}' == ''", "a".repeat(limits::BYTES_MAX));
    assert!(Program::compile(&long, Environment::Scenario).is_err());
}

fn holds(text: &str) -> bool {
    let variables = scenario(&json!([]), &json!([]));
    compile(text, Environment::Scenario).holds(&variables) == Ok(true)
}

/// The longest chains that are let through, in the two megabytes of a test's stack.
#[test]
fn chains_within_the_bounds_do_not_exhaust_the_stack() {
    let n = limits::TOKENS_MAX / 2 - 2;
    for text in [
        format!("1{} > 0", " + 1".repeat(n - 1)),
        format!("1{} > 0", " - 1".repeat(n - 1)),
        format!("{{}}{} == 1", ".a".repeat(n - 2)),
        format!("true{}", " == true".repeat(limits::COMPARISONS_MAX)),
        deepest(),
        format!("[{}1].size() > 0", "1, ".repeat(n - 4)),
        format!("''{} == ''", ".trim()".repeat(n / 2 - 2)),
        format!("[]{} == ''", "[0]".repeat(n / 2)),
        format!("{}true", "!".repeat(2 * n)),
        format!("{}1 < 2", "-".repeat(2 * n)),
        format!(
            "{}1{} > 0",
            "-(".repeat(limits::NESTING_MAX),
            ")".repeat(limits::NESTING_MAX)
        ),
        format!(
            "{}true{}",
            "!!(".repeat(limits::NESTING_MAX),
            ")".repeat(limits::NESTING_MAX)
        ),
    ] {
        let program = compile(&text, Environment::Scenario);
        let variables = scenario(&json!([]), &json!([]));
        drop(program.holds(&variables));
    }
}

/// Everything at once, each in the innermost of the one before.
fn deepest() -> String {
    let n = limits::NESTING_MAX;
    format!(
        "{}1{} == 1{}{}",
        "(true ? true : ".repeat(n),
        " + 1".repeat(100),
        " == true".repeat(limits::COMPARISONS_MAX - 1),
        ")".repeat(n)
    )
}

#[test]
fn a_comprehension_bomb_ends_with_an_error() {
    let ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let deep = |body: &str| {
        let open: String = (0..6).map(|i| format!("{ten}.all(x{i}, ")).collect();
        format!("{open}{body}{}", ")".repeat(6))
    };
    let many =
        format!("{ten}.map(a, {ten}.map(b, {ten}.map(c, {ten}.map(d, {ten}.map(e, {ten})))))");
    let growing = format!(
        "'aaaaaaaaaa'{}.size() > 0",
        ".replace('a', 'aaaaaaaaaa')".repeat(20)
    );
    let joined = format!(
        "{ten}.map(x, 'aaaaaaaaaa').join('aaaaaaaaaa'){}.size() > 0",
        ".split('').join('aaaaaaaaaa')".repeat(10)
    );
    for (text, kind) in [
        (
            deep("x0 + x1 + x2 + x3 + x4 + x5 >= 0"),
            EvalErrorKind::Cost,
        ),
        (format!("{many}.size() == 10"), EvalErrorKind::Cost),
        (growing, EvalErrorKind::Refused),
        (joined, EvalErrorKind::Refused),
        (
            "'a'.matches('((((a{99}){99}){99}){99})')".to_owned(),
            EvalErrorKind::Refused,
        ),
        (
            "'%.99999999f'.format([1.0]) == ''".to_owned(),
            EvalErrorKind::Refused,
        ),
        (
            "quantity('1e38').isGreaterThan(quantity('1e-20'))".to_owned(),
            EvalErrorKind::Refused,
        ),
        (
            "quantity('1e2147483647k').sign() == 1".to_owned(),
            EvalErrorKind::Refused,
        ),
    ] {
        let program = compile(&text, Environment::ManagedCluster);
        let error = program.holds(&cluster(&json!({}), &[])).unwrap_err();
        assert_eq!(error.kind, kind, "{text}: {error}");
    }
}

#[test]
fn a_spent_budget_is_not_made_up_for() {
    let ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let open: String = (0..6).map(|i| format!("{ten}.all(x{i}, ")).collect();
    let bomb = format!("{open}x0 + x1 + x2 >= 0{}", ")".repeat(6));
    for text in [
        format!("{bomb} || true"),
        format!("{bomb} && false"),
        format!("true && {bomb} || true"),
    ] {
        let program = compile(&text, Environment::ManagedCluster);
        let error = program.holds(&cluster(&json!({}), &[])).unwrap_err();
        assert_eq!(error.kind, EvalErrorKind::Cost, "{text}");
    }
}

/// The library below does its sums and slices without looking: none of these may panic, which a test's build would.
#[test]
fn functions_take_the_edges_of_their_arguments() {
    let (least, most) = ("-9223372036854775808", "9223372036854775807");
    let texts = [
        format!("[{most}, 1].sum() == 0"),
        format!("[{least}, -1].sum() == 0"),
        "[18446744073709551615u, 1u].sum() == 0u".to_owned(),
        format!("[1].slice({least}, {most}) == []"),
        "[1].slice(1, 0) == []".to_owned(),
        format!("[[1]].flatten({least}) == []"),
        format!("[[1]].flatten({most}) == [1]"),
        format!("'é'.substring({least}) == ''"),
        format!("'é'.substring(1, {most}) == ''"),
        format!("'é'.charAt({least}) == ''"),
        format!("'é'.charAt({most}) == ''"),
        format!("'é'.indexOf('', {most}) == 0"),
        format!("'é'.lastIndexOf('', {least}) == 0"),
        format!("'a,b'.split(',', {least}) == []"),
        format!("'a,b'.split('', {most}) == []"),
        format!("'aaa'.replace('a', 'b', {least}) == 'aaa'"),
        format!("'aaa'.replace('', 'b', {most}) == ''"),
        format!("'a'.findAll('a', {least}) == []"),
        format!("'%x %b %o %e %s'.format([{least}, {least}, {least}, 1.5, {most}]) == ''"),
        "'%.99f %.99e'.format([1e300, 1e-300]) == ''".to_owned(),
        "'%'.format([]) == ''".to_owned(),
        "'é%'.format([1]) == ''".to_owned(),
        format!("quantity('9Ei').add({most}).sub({least}).asInteger() == 0"),
        "quantity('9999999999999999999').add(quantity('1n')).asInteger() == 0".to_owned(),
        "quantity('9999999999999999999').isGreaterThan(quantity('0.000000001'))".to_owned(),
        "quantity('15Ei').compareTo(quantity('0.000000001Ei')) == 1".to_owned(),
        "quantity('.') == quantity('-')".to_owned(),
        "isQuantity('é')".to_owned(),
        "semver('99999999999999999999.0.0').major() == 1".to_owned(),
        "isSemver('v', true) || isSemver('', true) || isSemver('é.1', true)".to_owned(),
        "duration('9223372036854775807s') > duration('-9223372036854775807s')".to_owned(),
        "duration('1e300h') > duration('-')".to_owned(),
        "duration('2562047h') + duration('2562047h') > duration('0s')".to_owned(),
        "timestamp('9999-12-31T23:59:59Z') + duration('2562047h') > timestamp('0001-01-01T00:00:00Z')".to_owned(),
        "timestamp('0001-01-01T00:00:00Z') - timestamp('9999-12-31T23:59:59Z') < duration('0s')".to_owned(),
        "timestamp('99999-01-01T00:00:00Z') == timestamp('é')".to_owned(),
        "uint(-1) == 0u".to_owned(),
        "int(1e300) == 0 || int(0.0 / 0.0) == 0".to_owned(),
        "uint(1e300) == 0u".to_owned(),
        "cidr('0.0.0.0/33').prefixLength() == 33".to_owned(),
        "cidr('::/0').containsCIDR('0.0.0.0/0') || ip('1.2.3.4.5') == ip('::g')".to_owned(),
        "url('http://[::1').getHost() == '' || url('%%') == url('')".to_owned(),
        "strings.quote('\\u0000é') == ''".to_owned(),
        "b'\\xff' == bytes('é') || string(b'\\xff') == ''".to_owned(),
        "[null, 1].max() == 1 || [].min() == 1 || ['a', 1].isSorted() || [[], {}].sort() == []".to_owned(),
        "[0.0 / 0.0, 1.0].sort() == [] || [0.0 / 0.0].max() == 1.0".to_owned(),
    ];
    let variables = scenario(&json!([]), &json!([]));
    let mut n_answered = 0;
    for text in &texts {
        match Program::compile(text, Environment::Scenario) {
            Ok(program) => n_answered += usize::from(program.holds(&variables).is_ok()),
            Err(error) => assert!(error.offset <= text.len(), "{error}"),
        }
    }
    // Some have an answer, most are refused.
    assert!(n_answered > 5 && n_answered < texts.len(), "{n_answered}");
}
