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
