//! Two JSON values, one a line: patching one with the other ends, and what comes out obeys the laws of patches.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use strew_manifest::patch::{Schema, apply, json_diff, json_patch, merge_patch, strategic};

const SCHEMAS: [Schema; 4] = [
    Schema::Pod,
    Schema::Deployment,
    Schema::Service,
    Schema::Plain,
];

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (document, patch) = text.split_once('\n').unwrap_or((text, "{}"));
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    let (Some(document), Some(patch)) = (read(document), read(patch)) else {
        return;
    };
    for schema in SCHEMAS {
        check(schema, &document, &patch);
    }
    let merged = merge_patch(&document, &patch);
    assert_eq!(
        merge_patch(&merged, &patch),
        merged,
        "merging twice is merging once"
    );
    let _ = json_patch(&document, &patch);
    let difference = json_diff(&document, &patch);
    let made = json_patch(&document, &difference).expect("a difference can be carried out");
    assert_eq!(made, patch);
});

fn check(schema: Schema, document: &Value, patch: &Value) {
    if let Ok(patched) = strategic::patch(schema, document, patch) {
        assert!(patched.is_object());
    }
    if document.is_object() {
        let same = strategic::patch(schema, document, &json!({})).expect("an empty patch is one");
        assert_eq!(same, *document, "an empty patch changes nothing");
    }
    let _ = apply::apply(schema, Some(patch), document, patch);
    let _ = apply::apply(schema, None, document, patch);
}
