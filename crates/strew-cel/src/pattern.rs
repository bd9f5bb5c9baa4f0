//! Regular expressions, as Go's RE2 reads them.
//!
//! The library's classes `\d`, `\w`, `\s` are Unicode's: not what an API server matches, and slow to compile. They
//! are written out here as RE2's, which are ASCII's.

use crate::error::EvalError;
use crate::limits::PATTERN_WEIGHT_MAX;

/// What a Unicode class (`\p{…}`) weighs.
const CLASS_WEIGHT: u64 = 50;

/// Units of cost for each unit of weight: a pattern is compiled at each call, in some ten microseconds.
const COST_PER_WEIGHT: u64 = 4;

/// What a call with this pattern costs.
pub(crate) fn cost(pattern: &str) -> Result<u64, EvalError> {
    let weight = weight(pattern);
    if weight > PATTERN_WEIGHT_MAX {
        let message =
            format!("a regular expression that weighs {weight}, more than {PATTERN_WEIGHT_MAX}");
        return Err(EvalError::refused(message));
    }
    Ok(weight * COST_PER_WEIGHT)
}

/// Its bytes, times the numbers of its repetitions, which multiply where they are nested.
fn weight(pattern: &str) -> u64 {
    let classes = pattern.matches("\\p").count() + pattern.matches("\\P").count();
    let mut weight = (classes as u64).saturating_mul(CLASS_WEIGHT);
    weight = weight.saturating_add(pattern.len() as u64);
    let mut digits = 0_u64;
    let mut in_braces = false;
    for c in pattern.chars() {
        match (c, c.to_digit(10)) {
            ('{', _) => (in_braces, digits) = (true, 0),
            (',' | '}', _) if in_braces => {
                weight = weight.saturating_mul(digits.max(1));
                digits = 0;
                in_braces = c == ',';
            }
            (_, Some(digit)) if in_braces => {
                digits = digits.saturating_mul(10).saturating_add(u64::from(digit));
            }
            _ => {}
        }
    }
    weight
}

/// The pattern with ASCII's classes.
pub(crate) fn as_re2(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            written.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => written.push_str("[0-9]"),
            Some('D') => written.push_str("[^0-9]"),
            Some('w') => written.push_str("[0-9A-Za-z_]"),
            Some('W') => written.push_str("[^0-9A-Za-z_]"),
            Some('s') => written.push_str("[\\t\\n\\f\\r ]"),
            Some('S') => written.push_str("[^\\t\\n\\f\\r ]"),
            Some('b') => written.push_str("(?-u:\\b)"),
            Some('B') => written.push_str("(?-u:\\B)"),
            other => {
                written.push(c);
                written.extend(other);
            }
        }
    }
    written
}
