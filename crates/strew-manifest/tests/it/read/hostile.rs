//! Inputs that are broken, enormous or malicious: a diagnostic each, in bounded time and memory.

use super::{check, sources_of};
use strew_manifest::read::{Sources, read, render};

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";

#[test]
fn no_text() {
    check(
        b"\x7fELF\x02\x01\x01\x00\xff\xfe".as_slice(),
        "|in:1:9: error[not-text]: byte 8 is not UTF-8: this is no text file
         |  help: strew reads YAML and JSON in UTF-8",
    );
    check(
        b"apiVersion: v1\nname: caf\xe9\n".as_slice(),
        "|in:2:10: error[not-text]: byte 24 is not UTF-8: this is no text file
         |  help: strew reads YAML and JSON in UTF-8",
    );
    check(
        "apiVersion: v1\nkind: \0Pod",
        "|in:2:7: error[not-text]: byte 21 is NUL: this is no text file
         |  help: strew reads YAML and JSON in UTF-8",
    );
    check(
        b"\xff\xfea\x00:\x00".as_slice(),
        "|in:1:1: error[not-text]: this file is UTF-16
         |  help: strew reads YAML and JSON in UTF-8",
    );
}

#[test]
fn nothing() {
    let warning = "|in:1:1: warning[no-objects]: there is nothing in this file";
    for input in [
        "",
        "\n\n",
        "# nothing\n",
        "---\n---\n...\n",
        "\u{feff}",
        "%YAML 1.1\n---\n",
    ] {
        check(input, warning);
    }
    check("null", "");
    check("~\n---\n", "");
}

#[test]
fn other_line_ends_and_marks() {
    check(format!("\u{feff}{POD}"), "|v1 Pod default/a");
    check(POD.replace('\n', "\r\n"), "|v1 Pod default/a");
    check(POD.replace('\n', "\r"), "|v1 Pod default/a");
    check(
        format!(
            "\u{feff}{}---\r\n{{\"apiVersion\": \"v1\", \"kind\": 1}}",
            POD.replace('\n', "\r\n")
        ),
        "|v1 Pod default/a
         |in:5:30: error[wrong-type]: expected a string, found the number 1
         |  in : kind",
    );
}

#[test]
fn documents_that_are_no_objects() {
    check(
        "just text\n---\n- a\n- b\n---\n3\n---\n[{\"a\": 1}]\n",
        "|in:1:1: error[no-object]: expected a Kubernetes object, found the string \"just text\"
         |in:3:1: error[no-object]: expected a Kubernetes object, found a list
         |  help: give each object a document of its own, or use `kind: List`
         |in:6:1: error[no-object]: expected a Kubernetes object, found the number 3
         |in:8:1: error[no-object]: expected a Kubernetes object, found a list
         |  help: give each object a document of its own, or use `kind: List`",
    );
}

#[test]
fn broken_json() {
    check(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "#,
        "|in:1:57: error[syntax]: not valid JSON: EOF while parsing a value",
    );
    check(
        "{\"apiVersion\": \"v1\",\n \"kind\": Pod}",
        "|in:2:10: error[syntax]: not valid JSON: expected value",
    );
    check(
        "{",
        "|in:1:2: error[syntax]: not valid JSON: EOF while parsing an object",
    );
    check(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"priority": 1e999}}"#,
        "|in:1:89: error[syntax]: not valid JSON: number out of range",
    );
    check(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"priority": 123456789012345678901234567890, "activeDeadlineSeconds": 18446744073709551615}}"#,
        "|in:1:85: error[out-of-range]: 1.2345678901234568e+29 is out of the range of a 32-bit integer
         |  in Pod default/a: spec.priority
         |in:1:142: error[out-of-range]: 18446744073709551615 is out of the range of a 64-bit integer
         |  in Pod default/a: spec.activeDeadlineSeconds",
    );
    check(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": NaN}}"#,
        "|in:1:85: error[syntax]: not valid JSON: expected value",
    );
}

#[test]
fn tabs() {
    check(
        "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n",
        "|in:4:2: error[syntax]: not valid YAML: tabs disallowed within this context (block indentation)",
    );
}

#[test]
fn deep_nesting() {
    let depth = 10_000;
    let json = format!("{{\"a\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    check(
        json,
        "|in:1:133: error[too-deep]: nested deeper than 127 levels",
    );
    let flow = format!("a: {}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = format!("a: {}{}", "{a: ".repeat(depth), "}".repeat(depth));
    let dashes = "- ".repeat(depth) + "a";
    let indented: String = (0..1000).map(|depth| " ".repeat(depth) + "a:\n").collect();
    for input in [flow, objects, dashes, indented] {
        let sources = sources_of(input);
        let reading = read(&sources);
        assert_eq!(reading.diagnostics.len(), 1);
        assert_eq!(reading.diagnostics[0].code, "too-deep");
    }
}

#[test]
fn nested_lists() {
    let mut json = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}".to_owned();
    for _ in 0..6 {
        json = format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{json}]}}");
    }
    let reading = read(&sources_of(json));
    assert_eq!(reading.diagnostics[0].code, "too-deep");
}

#[test]
fn yaml_bombs() {
    // Billion laughs: each line holds the one before ten times.
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        laughs += &format!("a{level}: &a{level} [{below}]\n");
    }
    // The same, with objects that are merged.
    let mut merges = "a0: &a0 {x: 1}\n".to_owned();
    for level in 1..400 {
        let below = level - 1;
        merges += &format!("a{level}: &a{level} {{<<: *a{below}, x{level}: 1}}\n");
    }
    // Deep only through its aliases.
    let mut tower = "a0: &a0 [x]\n".to_owned();
    for level in 1..5000 {
        tower += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }
    let own = "a: &a [*a]\n".to_owned();
    for (input, code) in [(laughs, "too-large"), (tower, "too-deep"), (own, "syntax")] {
        let sources = sources_of(input);
        let reading = read(&sources);
        assert_eq!(reading.diagnostics.len(), 1);
        assert_eq!(reading.diagnostics[0].code, code);
    }
    // 400 levels are 80,000 entries: within the budget.
    assert_eq!(read(&sources_of(merges)).diagnostics[0].code, "no-type");
}

#[test]
fn ten_megabytes_on_a_line() {
    let long = "x".repeat(10_000_000);
    // Where only messages could grow, a megabyte shows it.
    let shorter = "x".repeat(1_000_000);
    let json = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"a\", \"annotations\": {{\"a\": \"{long}\"}}}}, \"spec\": {{\"nodeNmae\": \"{long}\"}}}}"
    );
    let yaml = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, annotations: {{a: {long}}}, lables: {{}} }}"
    );
    let key =
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  \"{shorter}\": 1\n");
    let wrong =
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  priority: {shorter}\n");
    let name = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"{shorter}\"}}, \"spec\": 1}}"
    );
    let json_key = format!("{{\"apiVersion\": \"v1\", \"{shorter}\": 1}}");
    for input in [json, yaml, key, wrong, name, json_key] {
        let sources = sources_of(input);
        let reading = read(&sources);
        assert_eq!(reading.diagnostics.len(), 1);
        let text = render(&reading.diagnostics, &sources, false);
        assert!(text.len() < 4_000, "{}", text.len());
    }
}

#[test]
fn thousands_of_problems() {
    let item = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}},"#;
    let items = item.repeat(5000);
    let json = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{}]}}",
        &items[..items.len() - 1]
    );
    let reading = read(&sources_of(json));
    assert_eq!(reading.diagnostics.len(), 1001);
    assert_eq!(
        reading.diagnostics[1000].message,
        "4000 more problems are not listed"
    );
}

#[test]
fn thousands_of_problems_in_an_object() {
    let containers = r#"{"name": "x", "novel": 1},"#.repeat(5000);
    let pod = |uid: &str, last: &str| {
        let metadata = format!(r#"{{"name": "a"{uid}}}"#);
        format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {metadata}, "spec": {{"containers": [{containers}{last}]}}}}"#
        )
    };
    let by_hand = read(&sources_of(pod("", "{}")));
    assert_eq!(by_hand.diagnostics.len(), 101);
    assert_eq!(
        by_hand.diagnostics[100].message,
        "4900 more problems are not listed"
    );
    // In a dump they are one warning, and hide no error behind them.
    let dump = read(&sources_of(pod(r#", "uid": "1""#, r#"{"name": 3}"#)));
    let codes: Vec<_> = dump
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code)
        .collect();
    assert_eq!(codes, ["unknown-field", "wrong-type"]);
}

#[test]
fn thousands_of_repeated_keys() {
    let fields: String = (0..20_000)
        .map(|key| format!("\"{0}\": 1, \"{0}\": 2, ", key))
        .collect();
    for kind in ["\"kind\"", "kind"] {
        let reading = read(&sources_of(format!(
            "{{{kind}: \"Pod\", {fields}\"a\": 1}}"
        )));
        assert_eq!(reading.diagnostics.len(), 21);
    }
}

/// Each prefix, and each single byte changed, of a document with everything in it.
#[test]
fn mutilated_documents() {
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- &a\n  kind: Pod\n  metadata: {name: \"\\u00e4\", 'x': *a}\n  spec: |\n    text\n- ? <<\n  : !!str 3\n# é\n---\n{\"kind\": [1, {\"a\": null}]}\n";
    let replacements = b"\0\t\n \"'&*!|>%@`{}[]:,-#?\\~\xff";
    let mut inputs: Vec<Vec<u8>> = (0..yaml.len())
        .map(|end| yaml.as_bytes()[..end].to_vec())
        .collect();
    for at in 0..yaml.len() {
        for replacement in replacements {
            let mut input = yaml.as_bytes().to_vec();
            input[at] = *replacement;
            inputs.push(input);
        }
    }
    for input in inputs {
        let mut sources = Sources::new();
        sources.add("in", input);
        let reading = read(&sources);
        let _ = render(&reading.diagnostics, &sources, false);
    }
}

#[test]
fn shows_a_window_of_a_long_line() {
    let pad = "\"x\", ".repeat(1000);
    let head = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": ["#;
    let json = format!("{head}{pad}\"\"], \"lables\": {{}}, \"finalizers\": [{pad}\"\"]}}}}");
    let sources = sources_of(json);
    let reading = read(&sources);
    let expected = r#"error[unknown-field]: unknown field "lables", did you mean "labels"?
 --> in:1:5083
  |
 ::: 
1 | "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", ""], "lables": {}, "finalizers": ["x", "x", "x", "x", "x", "x", "x", "x", "x",...
  |                                                             ^^^^^^^^
  |
  = note: Pod default/a: metadata.lables

error[duplicate-key]: the key "finalizers" is there twice
 --> in:1:5097
  |
 ::: 
1 |  "x", "x", "x", "x", "x", "x", "x", "x", ""], "lables": {}, "finalizers": ["x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x"...
  |                                                             ^^^^^^^^^^^^
 ::: in:1:63
  |
 ::: 
1 | apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": ["x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x"...
  |                                                             ------------ first here
"#;
    assert_eq!(render(&reading.diagnostics, &sources, false), expected);
}

/// A terminal must not be steered by a file.
#[test]
fn shows_control_characters_harmlessly() {
    let escaped = format!("{POD}spec: {{\"\\e[2J\": 1, nodeName: [\"\\e\"]}}\n");
    let raw = format!("---\n{POD}spec: {{nodeNmae: \"\u{1b}[31m\"}}\n");
    let bidirectional = format!("---\n{POD}spec: {{nodeNmae: \"\u{202e}\"}}\n");
    let sources = sources_of(escaped + &raw + &bidirectional);
    let reading = read(&sources);
    let text = render(&reading.diagnostics, &sources, false);
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert!(reading.diagnostics.len() >= 4, "{text}");
}
