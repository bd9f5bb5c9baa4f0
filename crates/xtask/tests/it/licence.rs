//! Licence expressions (SPDX), as far as crates use them.

/// Licences under which a part may come.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    // MIT without its one condition.
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an expression can be met with allowed licences alone.
pub(crate) fn is_allowed(expression: &str) -> bool {
    // An old way of writing OR.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let allowed = any_of(&mut rest);
    allowed && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> bool {
    let mut allowed = all_of(rest);
    while take(rest, "OR") {
        allowed |= all_of(rest);
    }
    allowed
}

fn all_of(rest: &mut &[&str]) -> bool {
    let mut allowed = one(rest);
    while take(rest, "AND") {
        allowed &= one(rest);
    }
    allowed
}

fn one(rest: &mut &[&str]) -> bool {
    if take(rest, "(") {
        let allowed = any_of(rest);
        return take(rest, ")") && allowed;
    }
    let Some((&id, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    if !take(rest, "WITH") {
        return ALLOWED.contains(&id);
    }
    let Some((&exception, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    ALLOWED.contains(&format!("{id} WITH {exception}").as_str())
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    let found = rest.first() == Some(&word);
    if found {
        *rest = &rest[1..];
    }
    found
}

#[test]
fn expressions_are_read() {
    for (expression, allowed) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT AND (GPL-3.0 OR LGPL-3.0)", false),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
        ("GPL-2.0 WITH Classpath-exception-2.0", false),
        ("(MIT", false),
        ("(none)", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression), allowed, "{expression}");
    }
}
