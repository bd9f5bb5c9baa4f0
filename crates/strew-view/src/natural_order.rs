//! Sorts names with numbers as a reader expects.

use std::cmp::Ordering;

/// Compares numbers in names by value: `node-2` comes before `node-10`.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        let (digits_a, digits_b) = (leading_digits(rest_a), leading_digits(rest_b));
        if !digits_a.is_empty() && !digits_b.is_empty() {
            let (value_a, value_b) = (
                digits_a.trim_start_matches('0'),
                digits_b.trim_start_matches('0'),
            );
            let order = value_a
                .len()
                .cmp(&value_b.len())
                .then_with(|| value_a.cmp(value_b));
            if order.is_ne() {
                return order;
            }
            rest_a = &rest_a[digits_a.len()..];
            rest_b = &rest_b[digits_b.len()..];
            continue;
        }
        let (mut chars_a, mut chars_b) = (rest_a.chars(), rest_b.chars());
        match (chars_a.next(), chars_b.next()) {
            (Some(x), Some(y)) if x == y => {
                rest_a = chars_a.as_str();
                rest_b = chars_b.as_str();
            }
            (None, None) => return a.cmp(b),
            (x, y) => return x.cmp(&y),
        }
    }
}

fn leading_digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["node-10", "node-2", "a", "node-02x", "node-1"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["a", "node-1", "node-2", "node-02x", "node-10"]);
    }
}
