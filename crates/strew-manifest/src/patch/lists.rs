//! The order of a merged list.
//!
//! Source: `normalizeElementOrder`, `mergeSortedSlice` of `k8s.io/apimachinery/pkg/util/strategicpatch`, v1.36.

use serde_json::Value;

/// The identity of an element: the value at the merge key, or the element itself.
pub(super) fn identity<'a>(element: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        None => Some(element),
        Some(key) => element.get(key),
    }
}

fn position(list: &[Value], element: &Value, key: Option<&str>) -> Option<usize> {
    let wanted = identity(element, key)?;
    list.iter()
        .position(|other| identity(other, key) == Some(wanted))
}

/// Sorts a merged list. Elements of the patch keep the patch's order, others the server's order. Between the two groups
/// the server's order counts if the server has both; otherwise the patch's elements come first.
pub(super) fn normalize(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let is_named = |element: &Value| position(patch_order, element, key).is_some();
    let (mut named, mut rest): (Vec<Value>, Vec<Value>) = merged.into_iter().partition(is_named);
    named.sort_by_key(|element| position(patch_order, element, key));
    // An element that the server lacks comes after those that it has.
    rest.sort_by_key(|element| position(server_order, element, key).unwrap_or(usize::MAX));
    let mut rest = rest.into_iter().peekable();
    let mut sorted = Vec::with_capacity(named.len() + rest.len());
    for element in named {
        let place = position(server_order, &element, key);
        while let Some(other) = rest.next_if(|other| {
            let other = position(server_order, other, key);
            place.zip(other).is_some_and(|(place, other)| other < place)
        }) {
            sorted.push(other);
        }
        sorted.push(element);
    }
    sorted.extend(rest);
    sorted
}
