//! Where a mistake is.

use strew_cel::Environment::Scenario;
use strew_cel::Program;

/// `^` marks the place in each text, and is not part of it; at the end it may stand after the last character.
#[track_caller]
fn check(marked: &str, message: &str) {
    let offset = marked.find('^').expect("the text has a mark");
    let text = marked.replacen('^', "", 1);
    let error = Program::compile(&text, Scenario).expect_err(&text);
    assert!(
        error.message.starts_with(message),
        "{text}: {}",
        error.message
    );
    assert_eq!(error.offset, offset, "{text}: {error}");
    let before = &text[..offset];
    assert_eq!(error.line, before.matches('\n').count() + 1, "{text}");
    let column = before[before.rfind('\n').map_or(0, |i| i + 1)..]
        .chars()
        .count()
        + 1;
    assert_eq!(error.column, column, "{text}");
}

#[test]
fn an_unknown_name_is_found_where_it_stands() {
    let undeclared = "undeclared reference to 'x' (in container '')";
    for marked in [
        "^x == 1",
        "1 == ^x",
        "pods.x == ^x",
        "'x' == ^x",
        "{'x': 1}.x == ^x",
        "pods.all(x, x.x == 1) && ^x",
        "^x && pods.all(x, x.x == 1)",
        "pods.filter(x, x.y).size() == ^x",
        "pods.filter(x, x.filter(x, x.x).size() > 0).map(x, x.y) == ^x",
        "pods.map(x, x.a, x.b).exists_one(x, x.c) == ^x",
        "pods.all(p, p.size() == ^x && p == x)",
        "^x.all(x, x)",
        "pods.all(x, x.?x[?'x'] == 1) ? true : ^x",
        "// x\n\n  true &&\n  ^x // x",
        "'äöü' == ^x",
        "!!(!!^x)",
    ] {
        check(marked, undeclared);
    }
    check(
        "pods.^frobnicate() == 1",
        "undeclared reference to 'frobnicate'",
    );
    check("^frob(1) == 1", "undeclared reference to 'frob'");
    check(
        "pods.^size(1) == 1",
        "found no matching overload for 'size'",
    );
    check(
        "size(1) == 1 && ^size(1, 2) == 1",
        "found no matching overload for 'size'",
    );
    check(
        "'é'.size() == 1 && optional.^off(1) == 1",
        "undeclared reference to 'optional.off'",
    );
}

#[test]
fn a_slip_in_the_grammar_is_found_where_it_stands() {
    check("1 +^", "Syntax error: ");
    check("size(nodes) == ^= 5", "Syntax error: ");
    check("pods.all(p, p.ready^", "Syntax error: ");
    check("true ^true", "Syntax error: ");
    check("'äöü' == ^)", "Syntax error: ");
    check("true\n&& ^&& true", "Syntax error: ");
    check("^'abc", "Syntax error: the literal has no end");
    check(
        "true && ^\"abc\ndef\"",
        "Syntax error: the literal has no end",
    );
    check("^", "Syntax error: ");
    check("1 == ^99999999999999999999", "invalid int literal");
}

#[test]
fn what_the_parser_would_misread_is_refused() {
    for text in [
        "b'''a'''",
        "rb'a' == b'a'",
        "Pod{name: 'x'}.name == 'x'",
        "a.b.C{}",
    ] {
        assert!(Program::compile(text, Scenario).is_err(), "{text}");
    }
}
