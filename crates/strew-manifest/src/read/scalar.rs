//! The meaning of a plain YAML scalar, as kubectl takes it.
//!
//! kubectl reads YAML 1.1, where `yes` is a boolean and `0644` is octal, and sends JSON. A manifest must mean the same
//! here, so strew reads it the same way, and warns where the result is surprising.
//!
//! Source: sigs.k8s.io/yaml v1.6 (`YAMLToJSON`), go-yaml v2 (`resolve.go`).

use serde_json::{Number, Value};

/// Reads a scalar without quotes and tag; `None` if JSON has no such value (`.nan`, `.inf`).
pub(super) fn resolve(text: &str) -> Option<Value> {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        _ => match text.as_bytes()[0] {
            b'0'..=b'9' | b'+' | b'-' | b'.' => return number_or_string(text),
            _ => Value::from(text),
        },
    };
    Some(value)
}

fn number_or_string(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return None;
    }
    let plain = text.replace('_', "");
    let number = integer(&plain).or_else(|| float(&plain));
    Some(match number {
        Some(number) => Value::Number(number),
        None => Value::from(text),
    })
}

/// Decimal, `0x` hexadecimal, `0` or `0o` octal, `0b` binary.
fn integer(plain: &str) -> Option<Number> {
    let (is_negative, unsigned) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // `from_str_radix` would accept a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if !is_negative {
        return Some(magnitude.into());
    }
    0i64.checked_sub_unsigned(magnitude).map(Number::from)
}

/// A decimal fraction or exponent; whole numbers become integers, as Go writes them to JSON.
fn float(plain: &str) -> Option<Number> {
    let mantissa_end = plain.find(['e', 'E']).unwrap_or(plain.len());
    let (mantissa, exponent) = plain.split_at(mantissa_end);
    let mantissa = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let exponent = exponent.get(1..).unwrap_or("0");
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let has_digits = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    let is_decimal = mantissa
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && mantissa.matches('.').count() <= 1
        && has_digits(mantissa)
        && has_digits(exponent)
        && exponent.bytes().all(|byte| byte.is_ascii_digit());
    if !is_decimal {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
        return Some(Number::from(value as i64));
    }
    // Too large for a float, as `1e999`: Go keeps the text, and so the value is a string.
    Number::from_f64(value)
}

/// 2^63: from here on a whole float is no 64-bit integer.
const WHOLE_MAX: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_scalars_as_kubectl_does() {
        let cases = [
            ("", json!(null)),
            ("~", json!(null)),
            ("yes", json!(true)),
            ("off", json!(false)),
            ("y", json!(true)),
            ("yEs", json!("yEs")),
            ("3", json!(3)),
            ("-3", json!(-3)),
            ("+3", json!(3)),
            ("1_000", json!(1000)),
            ("0644", json!(420)),
            ("0o644", json!(420)),
            ("08", json!(8)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("18446744073709551615", json!(18446744073709551615u64)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1e3", json!(1000)),
            ("2.0", json!(2)),
            ("0.5", json!(0.5)),
            (".5", json!(0.5)),
            ("1e999", json!("1e999")),
            ("99999999999999999999", json!(1e20)),
            ("1.2.3", json!("1.2.3")),
            ("--3", json!("--3")),
            ("1e", json!("1e")),
            ("-", json!("-")),
            (".", json!(".")),
            ("100m", json!("100m")),
            ("2Gi", json!("2Gi")),
            ("12:30", json!("12:30")),
            ("2001-01-01", json!("2001-01-01")),
        ];
        for (text, value) in cases {
            assert_eq!(resolve(text), Some(value), "{text}");
        }
        for text in [".nan", ".inf", "-.Inf", "+.INF"] {
            assert_eq!(resolve(text), None, "{text}");
        }
    }
}
