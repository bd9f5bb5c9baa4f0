//! Licence expressions (SPDX), as far as crates use them. deny.toml says which licences are allowed.

use crate::deny;

/// Whether an expression can be met with allowed licences alone.
pub(crate) fn is_allowed(expression: &str) -> bool {
    // An old way of writing OR.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let allowed = any_of(&mut rest, &deny::licences());
    allowed && rest.is_empty()
}

fn any_of(rest: &mut &[&str], known: &[String]) -> bool {
    let mut allowed = all_of(rest, known);
    while take(rest, "OR") {
        allowed |= all_of(rest, known);
    }
    allowed
}

fn all_of(rest: &mut &[&str], known: &[String]) -> bool {
    let mut allowed = one(rest, known);
    while take(rest, "AND") {
        allowed &= one(rest, known);
    }
    allowed
}

fn one(rest: &mut &[&str], known: &[String]) -> bool {
    if take(rest, "(") {
        let allowed = any_of(rest, known);
        return take(rest, ")") && allowed;
    }
    let Some((&id, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    if !take(rest, "WITH") {
        return known.iter().any(|licence| licence == id);
    }
    let Some((&exception, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    known.contains(&format!("{id} WITH {exception}"))
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
