//! The language, and where the libraries below would have gone wrong.

use serde_json::json;
use strew_cel::Environment::Scenario;

use crate::{check, scenario};

#[track_caller]
fn language(table: &[(&str, &str)]) {
    check(&scenario(&json!([]), &json!([])), Scenario, table);
}

#[test]
fn numbers_of_different_types_are_compared_by_value() {
    language(&[
        ("1 == 1u", "true"),
        ("1 == 1.0", "true"),
        ("1u != 1.0", "false"),
        ("-1 < 1u", "true"),
        ("1.5 > 1", "true"),
        ("9223372036854775807 == 9223372036854775808.0", "false"),
        ("9223372036854775807 < 9223372036854775808.0", "true"),
        ("0.0 / 0.0 == 0.0 / 0.0", "false"),
        ("0.0 / 0.0 < 1", "false"),
        ("0.0 / 0.0 >= 1", "false"),
        ("1 in [1u]", "true"),
        ("{1: 'a'}[1u] == 'a'", "true"),
        ("{1: 'a'}[1.0] == 'a'", "true"),
        ("[1, 2] == [1.0, 2u]", "true"),
        ("{'a': 1} == {'a': 1.0}", "true"),
        ("'1' == 1", "false"),
        ("null == false", "false"),
        ("0x10 == 16 && 0x10u == 16u", "true"),
    ]);
}

#[test]
fn signs_in_a_row_cancel_out() {
    language(&[
        ("!!true", "true"),
        ("!!!true", "false"),
        ("!!!!(!!true)", "true"),
        ("--1 == 1", "true"),
        ("---1 == -1", "true"),
        ("1--1 == 2", "true"),
        ("1 - - -1 == 0", "true"),
        ("-(-1) == 1", "true"),
        ("! ! true", "true"),
        ("!(1 in [2])", "true"),
        ("1 != 2 && !(1 != 1)", "true"),
        ("'!!' == '!' + '!'", "true"),
        ("-9223372036854775808 < 0", "true"),
    ]);
}

#[test]
fn logic_absorbs_errors_that_do_not_matter() {
    language(&[
        ("true || 1 / 0 == 1", "true"),
        ("1 / 0 == 1 || true", "true"),
        ("false && 1 / 0 == 1", "false"),
        ("1 / 0 == 1 && false", "false"),
        ("1 / 0 == 1 && true", "division by zero in '/'"),
        ("[0, 1].exists(x, 1 / x == 1)", "true"),
        ("[0, 2].exists(x, 1 / x == 1)", "division by zero in '/'"),
        ("[0, 2].all(x, 4 / x == 1)", "false"),
        (
            "[0, 1].exists_one(x, 1 / x == 1)",
            "division by zero in '/'",
        ),
        ("true ? true : 1 / 0 == 1", "true"),
        ("1 || true", "true"),
        ("1 && true", "no such overload: 1 is of type int, not bool"),
        ("!1", "no such overload: '!' applied to (int)"),
        (
            "1 ? true : false",
            "no such overload: 1 is of type int, not bool",
        ),
    ]);
}

#[test]
fn macros_work_on_lists_and_on_maps_in_the_order_of_keys() {
    language(&[
        ("[1, 2, 3].map(x, x * 2) == [2, 4, 6]", "true"),
        ("[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", "true"),
        ("[1, 2, 3].filter(x, x > 1) == [2, 3]", "true"),
        (
            "{'c': 1, 'a': 2, 'b': 3}.map(k, k) == ['a', 'b', 'c']",
            "true",
        ),
        (
            "{'a': 1}.all(k, k == 'a') && {'a': 1}.exists(k, k == 'a')",
            "true",
        ),
        ("[1, 2].exists_one(x, x == 1)", "true"),
        ("[[1], [2, 3]].all(x, x.all(x, x > 0))", "true"),
        ("[].all(x, false) && ![].exists(x, true)", "true"),
        (
            "1.all(x, true)",
            "no such overload: 1 is of type int, neither list nor map",
        ),
        ("[1].map(x, [2].map(y, x + y)) == [[3]]", "true"),
    ]);
}

#[test]
fn selection_is_for_maps_only() {
    language(&[
        ("'text'.field", "type string has no field 'field'"),
        ("{'a': {'b': 1}}.a.b == 1", "true"),
        ("{'a': 1}.b == 1", "no such key: 'b' in …"),
        ("has({'a': 1}.a) && !has({'a': 1}.b)", "true"),
        ("[1, 2][1] == 2", "true"),
        ("[1, 2][2] == 2", "no such key: 2 in …"),
        ("[1, 2][-1] == 2", "no such key: -1 in …"),
        ("{'a': 1}['a'] == 1", "true"),
        ("'b' in {'a': 1}", "false"),
        ("{'a': 1, 'a': 2}.a == 2", "the map has the key 'a' twice"),
        (
            "{1.5: 2} == {}",
            "no such overload: a map's key applied to (double)",
        ),
    ]);
}

#[test]
fn optionals_are_chained() {
    language(&[
        ("{'a': {'b': 1}}.?a.b == optional.of(1)", "true"),
        ("{'a': {'b': 1}}.?x.b.c == optional.none()", "true"),
        ("{'a': {'b': 1}}.?a.?b.orValue(2) == 1", "true"),
        ("{'a': 1}[?'b'].orValue(2) == 2", "true"),
        ("[1][?0].value() == 1", "true"),
        ("[1][?1].hasValue()", "false"),
        (
            "[1][?1].value() == 1",
            "no such key: value() of an optional that has none",
        ),
        ("has({'a': {}}.?a.b)", "false"),
        ("{?'a': optional.none(), 'b': 1} == {'b': 1}", "true"),
        ("[?optional.none(), ?optional.of(2)] == [2]", "true"),
        ("optional.of(1).optMap(x, x + 1).value() == 2", "true"),
        ("optional.none().optMap(x, x + 1).hasValue()", "false"),
        (
            "{'a': 1}.?a.optFlatMap(x, optional.none()).hasValue()",
            "false",
        ),
        ("optional.none().or(optional.of(1)).value() == 1", "true"),
        ("optional.ofNonZeroValue('').hasValue()", "false"),
        ("!optional.none().hasValue()", "true"),
    ]);
}

#[test]
fn arithmetic_does_not_wrap() {
    language(&[
        ("9223372036854775807 + 1 == 0", "overflow in '+'"),
        ("0u - 1u == 0u", "overflow in '-'"),
        ("-9223372036854775808 / -1 == 0", "overflow in '/'"),
        ("7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1", "true"),
        ("1 % 0 == 0", "division by zero in '%'"),
        ("1.0 / 0.0 > 1e300", "true"),
        (
            "1 + 1u == 2",
            "no such overload: '+' applied to (int, uint)",
        ),
        ("1 < 'a'", "no such overload: '<' applied to (int, string)"),
        (
            "'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && b'a' + b'b' == b'ab'",
            "true",
        ),
    ]);
}

#[test]
fn functions_of_the_language_are_there() {
    language(&[
        (
            "size('añb') == 3 && 'añb'.size() == 3 && size([1]) == 1 && size({'a': 1}) == 1",
            "true",
        ),
        (
            "'web-1'.matches('^web-[0-9]+$') && matches('a', 'a')",
            "true",
        ),
        (
            "'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')",
            "true",
        ),
        (
            "int('7') == 7 && uint(7) == 7u && double('1.5') == 1.5 && string(7) == '7'",
            "true",
        ),
        (
            "bool('true') && !bool('0') && string(true) == 'true'",
            "true",
        ),
        (
            "type(1) == int && type('a') == string && type([]) == list && type(type(1)) == type",
            "true",
        ),
        ("dyn(1) == 1 && bytes('a') == b'a'", "true"),
        (
            "duration('90s') == now && now < duration('2m') && now > duration('1m')",
            "true",
        ),
        (
            "duration('1h') + duration('30m') == duration('90m')",
            "true",
        ),
        (
            "timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026",
            "true",
        ),
        (
            "timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')",
            "true",
        ),
        (
            "timestamp('2026-01-01T00:00:00Z') + now < timestamp('2026-01-01T00:02:00Z')",
            "true",
        ),
        (
            "duration('90s').getSeconds() == 90 && duration('90m').getHours() == 1",
            "true",
        ),
        ("timestamp('2026-02-03T00:00:00Z').getMonth() == 1", "true"),
        (
            "timestamp('2026-02-03T00:00:00Z').getDayOfMonth() == 2",
            "true",
        ),
        ("timestamp('2026-02-03T00:00:00Z').getDate() == 3", "true"),
        (
            "timestamp('2026-02-03T00:00:00Z').getDayOfYear() == 33",
            "true",
        ),
        (
            "timestamp('2026-02-03T00:00:00Z').getDayOfWeek() == 2",
            "true",
        ),
        (
            "string(1.0) == '1' && string(duration('90s')) == '90s' && int('-7') == -7",
            "true",
        ),
        (
            "string(timestamp('2026-02-03T00:00:00Z')) == '2026-02-03T00:00:00Z'",
            "true",
        ),
        ("int(timestamp('1970-01-01T00:01:00Z')) == 60", "true"),
        ("int(1.9) == 1 && int(-1.9) == -1", "true"),
        (
            "'é'.size() == 1 && 'aé'.charAt(1) == 'é' && 'éa'.indexOf('a') == 1 && 'éa'.substring(1) == 'a'",
            "true",
        ),
        ("type(now) == duration('1s')", "false"),
    ]);
}

#[test]
fn functions_of_the_api_server_are_there() {
    language(&[
        (
            "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
            "true",
        ),
        (
            "'Ab'.lowerAscii() == 'ab' && ' a '.trim() == 'a' && 'aXa'.replace('a', 'b') == 'bXb'",
            "true",
        ),
        (
            "'abc'.substring(1, 2) == 'b' && 'abc'.charAt(2) == 'c' && 'abc'.indexOf('c') == 2",
            "true",
        ),
        (
            "'%s-%d'.format(['a', 1]) == 'a-1' && 'ab'.reverse() == 'ba'",
            "true",
        ),
        (
            "[1, 2].isSorted() && [1, 2].sum() == 3 && [1, 2].max() == 2 && [2].indexOf(2) == 0",
            "true",
        ),
        (
            "'web-12'.find('[0-9]+') == '12' && '1 2'.findAll('[0-9]') == ['1', '2']",
            "true",
        ),
        (
            "url('https://a.example:8/x').getHostname() == 'a.example' && isURL('https://a')",
            "true",
        ),
        (
            "quantity('1Gi').isGreaterThan(quantity('1G')) && isQuantity('5m') && !isQuantity('x')",
            "true",
        ),
        (
            "quantity('1k').compareTo(quantity('1000')) == 0 && quantity('50k').asInteger() == 50000",
            "true",
        ),
        (
            "ip('10.0.0.1').family() == 4 && isIP('::1') && ip.isCanonical('::1')",
            "true",
        ),
        (
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').prefixLength() == 8",
            "true",
        ),
        (
            "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0') && !isSemver('1')",
            "true",
        ),
        ("format.named('dns1123Label').hasValue()", "true"),
        (
            "!format.dns1123Label().validate('web-1').hasValue()",
            "true",
        ),
        ("format.dns1123Label().validate('Web_1').hasValue()", "true"),
        (
            "[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1]",
            "true",
        ),
    ]);
}

#[test]
fn regular_expressions_are_those_of_re2() {
    language(&[
        (
            r"'1 a_'.matches(r'^\d\s\w+$') && 'web-1'.matches(r'^[\w-]+$')",
            "true",
        ),
        (
            r"'a b'.find(r'\bb') == 'b' && '\\d'.matches(r'^\\d$')",
            "true",
        ),
        // Classes are ASCII's.
        (r"'é'.matches(r'\w') || '١'.matches(r'\d')", "false"),
        (r"'é'.matches(r'[\W]') && 'é'.matches(r'^.$')", "true"),
        (
            "'a'.matches('(')",
            "matches: '(' not a valid regex: regex parse error: ( ^ error: unclosed group",
        ),
    ]);
}

#[test]
fn literals_read_as_they_are_written() {
    language(&[
        (r#""a" == 'a' && 'a\'b' == "a'b" && r'\d' == '\\d'"#, "true"),
        (
            r"'\u00e9' == 'é' && '\x41' == 'A' && '\n'.size() == 1",
            "true",
        ),
        ("// why\ntrue // because", "true"),
        ("'//' == '/' + '/'", "true"),
        ("b'\\x00' == b'\\000'", "true"),
    ]);
}
