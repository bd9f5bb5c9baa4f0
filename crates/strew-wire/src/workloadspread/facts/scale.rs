//! The selector of a scale subresource: a text, as `kubectl -l` takes it.
//!
//! Source: `k8s.io/apimachinery/pkg/labels` (Parse); autoscaling/v1 Scale, `status.selector`. The operators `<` and `>`
//! are left out, since no LabelSelector has them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Parses a selector: requirements separated by commas, all of which must hold. `None` if it is invalid.
pub fn selector_of(text: &str) -> Option<LabelSelector> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (one, after) = next(rest)?;
        all.push(requirement(one.trim())?);
        rest = after;
    }
    Some(LabelSelector {
        match_labels: None,
        match_expressions: (!all.is_empty()).then_some(all),
    })
}

/// The first requirement up to its comma, and the rest.
fn next(text: &str) -> Option<(&str, &str)> {
    let mut is_inside = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => is_inside = true,
            ')' => is_inside = false,
            ',' if !is_inside => {
                let after = text[at + 1..].trim();
                // A trailing comma is invalid.
                return (!after.is_empty()).then_some((&text[..at], after));
            }
            _ => {}
        }
    }
    Some((text, ""))
}

fn requirement(text: &str) -> Option<LabelSelectorRequirement> {
    let of = |key: &str, operator: &str, values: Option<Vec<&str>>| {
        let key = key.trim();
        let is_key =
            !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || "(),=!<>".contains(c));
        let values = values.map(|all| all.into_iter().map(|v| v.trim().to_owned()).collect());
        is_key.then(|| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values,
        })
    };
    if let Some(list) = text.strip_suffix(')') {
        let (head, list) = list.split_once('(')?;
        let mut words = head.split_whitespace();
        let (key, operator) = (words.next()?, words.next()?);
        let operator = match (operator, words.next()) {
            ("in", None) => "In",
            ("notin", None) => "NotIn",
            _ => return None,
        };
        return of(key, operator, Some(list.split(',').collect()));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return of(key, "NotIn", Some(vec![value]));
    }
    if let Some((key, value)) = text.split_once('=') {
        return of(
            key,
            "In",
            Some(vec![value.strip_prefix('=').unwrap_or(value)]),
        );
    }
    match text.strip_prefix('!') {
        Some(key) => of(key, "DoesNotExist", None),
        None => of(text, "Exists", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        for (text, expected) in [
            ("", ""),
            ("app=web", "app In web"),
            ("app==web, tier != db", "app In web; tier NotIn db"),
            ("env in (a, b),!old", "env In a|b; old DoesNotExist"),
            ("env notin (a),x.io/role", "env NotIn a; x.io/role Exists"),
            ("app=", "app In "),
        ] {
            let found = selector_of(text).expect(text).match_expressions;
            let one = |r: LabelSelectorRequirement| {
                let values = r.values.map(|v| format!(" {}", v.join("|")));
                format!("{} {}{}", r.key, r.operator, values.unwrap_or_default())
            };
            let all: Vec<String> = found.into_iter().flatten().map(one).collect();
            assert_eq!(all.join("; "), expected, "{text:?}");
        }
        for broken in [
            "app=web,",
            ",",
            "=web",
            "a b",
            "env of (a)",
            "env in a)",
            "a,(b)",
        ] {
            assert_eq!(selector_of(broken), None, "{broken:?}");
        }
    }
}
