//! deploy/charts/strew: its templates are made from the output of `strew install`, and give it back with the default
//! values. `SNAPSHOTS=overwrite` writes them again.
//!
//! A small renderer knows the few expressions of the templates; one test, which is ignored by default, needs helm itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{COMPONENTS, crds, root, stdout, strew};

mod values;

use values::{flags_of, parsed};

const CHART: &str = "deploy/charts/strew";

/// Words that stand for values while a template is made.
const IMAGE: &str = "chart.example/strew:value";
const NAMESPACE: &str = "chart-namespace-value";
const REPLICAS: &str = "97";

const OF_IMAGE: &str = r#"{{ required "image is required: no image of strew is published yet" .Values.image | quote }}"#;
const OF_NAMESPACE: &str = "{{ .Release.Namespace }}";
const QUOTED_NAMESPACE: &str = "{{ .Release.Namespace | quote }}";
const OF_CONFIG: &str = "{{ .Values.scheduler.config | trim | nindent 4 }}";
const OF_HASH: &str = "{{ .Values.scheduler.config | sha256sum }}";
const KEEP: &str = "  annotations:\n    helm.sh/resource-policy: keep\n";

/// A value for each field that values set, while a template is made.
const OF_PODS: &str = "
imagePullSecrets: [{name: chart}]
COMPONENT:
  replicas: 97
  nodeSelector: {chart: value}
  tolerations: [{operator: Exists}]
  affinity: {nodeAffinity: {}}
  podAnnotations: {chart: value}
  extraArgs: [--chart]
";

/// What the component with two processes has besides.
const OF_PROCESSES: &str = "  webhookExtraArgs: [--chart-webhook]
  controllerExtraArgs: [--chart-controller]
";

/// The values that add arguments, with the line of each while a template is made.
const ARGUMENTS: [(&str, &str); 3] = [
    ("extraArgs", "        - --chart"),
    ("webhookExtraArgs", "        - --chart-webhook"),
    ("controllerExtraArgs", "        - --chart-controller"),
];

/// The fields of a Deployment that values set: the indent, the name, and the value.
const FIELDS: [(usize, &str, &str); 8] = [
    (6, "imagePullSecrets", ".Values.imagePullSecrets"),
    (
        6,
        "priorityClassName",
        ".Values.COMPONENT.priorityClassName",
    ),
    (6, "nodeSelector", ".Values.COMPONENT.nodeSelector"),
    (6, "tolerations", ".Values.COMPONENT.tolerations"),
    (6, "affinity", ".Values.COMPONENT.affinity"),
    (6, "securityContext", ".Values.COMPONENT.securityContext"),
    (6, "annotations", ".Values.COMPONENT.podAnnotations"),
    (8, "resources", ".Values.COMPONENT.resources"),
];

/// A field of a Deployment that is written if its value is not empty.
fn field_of_value(component: &str, (indent, name, value): (usize, &str, &str)) -> String {
    let pad = " ".repeat(indent);
    let value = value.replace("COMPONENT", component);
    let inner = match name {
        "priorityClassName" => format!("{pad}{name}: {{{{ . | quote }}}}\n"),
        _ => format!(
            "{pad}{name}:\n{pad}  {{{{- toYaml . | nindent {} }}}}\n",
            indent + 2
        ),
    };
    format!("{pad}{{{{- with {value} }}}}\n{inner}{pad}{{{{- end }}}}\n")
}

/// The entry of the webhook of evictions, the last of its list.
const OF_EVICTIONS: &str = "- name: evictions.webhook.strew.dev\n";

const IF_BY_ZONE: &str = "{{- if .Values.workloadspread.budgetsByZone }}\n";

const END: &str = "{{- end }}\n";

/// A list of webhooks of which a value leaves out that of evictions.
fn webhooks_of_value(document: &str) -> String {
    match document.split_once(OF_EVICTIONS) {
        None => document.to_owned(),
        Some((before, rest)) => {
            assert!(!rest.contains("\n- name: "), "it is not the last: {rest}");
            format!("{before}{IF_BY_ZONE}{OF_EVICTIONS}{rest}{END}")
        }
    }
}

/// The list with this value.
fn webhooks_with_value(document: &str, is_by_zone: bool) -> String {
    match document.split_once(IF_BY_ZONE) {
        Some((before, rest)) if !is_by_zone => {
            let (_, after) = rest.split_once(END).unwrap();
            format!("{before}{after}")
        }
        _ => document.to_owned(),
    }
}

/// Entries of a list or of a mapping that a value adds.
fn entries_of_value(component: &str, value: &str) -> String {
    format!(
        "        {{{{- with .Values.{component}.{value} }}}}\n        {{{{- toYaml . | nindent 8 }}}}\n        {{{{- end }}}}\n"
    )
}

/// The condition under which a ResourceQuota is written.
fn of_critical(component: &str) -> String {
    format!(
        "{{{{- if has .Values.{component}.priorityClassName (list \"system-node-critical\" \"system-cluster-critical\") }}}}\n"
    )
}

/// A Deployment with the fields that values set.
fn deployment_of_values(component: &str, document: &str) -> String {
    let mut text = String::new();
    let mut lines = document.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let name = line.trim_start().split(':').next().unwrap();
        let field = FIELDS
            .iter()
            .find(|field| (field.0, field.1) == (indent, name));
        if line == "        chart: value" {
            text += &entries_of_value(component, "podAnnotations");
        } else if let Some((value, _)) = ARGUMENTS.iter().find(|(_, of)| line == *of) {
            text += &entries_of_value(component, value);
        } else if let Some(field) = field
            && (name != "annotations" || lines.peek() == Some(&"        chart: value"))
        {
            let item = format!("{}- ", " ".repeat(indent));
            let deeper = " ".repeat(indent + 1);
            while lines
                .next_if(|next| next.starts_with(&deeper) || next.starts_with(&item))
                .is_some()
            {}
            text += &field_of_value(component, *field);
        } else {
            text += line;
            text.push('\n');
        }
    }
    text
}

fn installed(component: &str, image: &str, namespace: &str, flags: &[String]) -> Vec<String> {
    let crds = crds(component, "always");
    let args = format!("install {component} --image {image} --namespace {namespace} {crds}");
    let text = stdout(
        &strew(&args)
            .args(flags)
            .env("HOME", "/nowhere")
            .assert()
            .code(0),
    );
    text.split("---\n").map(str::to_owned).collect()
}

fn is_definition(document: &str) -> bool {
    document.contains("\nkind: CustomResourceDefinition\n")
}

/// A release has the namespace that it is given.
fn is_namespace(document: &str) -> bool {
    document.contains("\nkind: Namespace\n")
}

/// The templates of a component by file.
fn templates(component: &str) -> BTreeMap<String, String> {
    let of_processes = match component {
        "workloadspread" => OF_PROCESSES,
        _ => "",
    };
    let of_pods = parsed(&format!("{OF_PODS}{of_processes}"), component);
    let flags = flags_of(&of_pods, component);
    let all = installed(component, IMAGE, NAMESPACE, &flags);
    let mut files = BTreeMap::new();
    let of_kind = |wanted: bool| -> Vec<String> {
        let chosen = all
            .iter()
            .filter(|document| !is_namespace(document) && is_definition(document) == wanted);
        chosen
            .map(|document| template(component, document))
            .collect()
    };
    let definitions: Vec<String> = of_kind(true)
        .iter()
        .map(|document| document.replacen("metadata:\n", &format!("metadata:\n{KEEP}"), 1))
        .collect();
    let about = format!("# Made from `strew install {component}`: change that, not this file.\n");
    let mut add = |file: String, condition: &str, documents: &[String]| {
        if !documents.is_empty() {
            let documents = documents.join("---\n");
            files.insert(
                file,
                format!("{about}{{{{- if {condition} }}}}\n{documents}{{{{- end }}}}\n"),
            );
        }
    };
    let enabled = format!(".Values.{component}.enabled");
    add(
        format!("{component}-definitions.yaml"),
        &format!("and {enabled} .Values.crds.enabled"),
        &definitions,
    );
    add(format!("{component}.yaml"), &enabled, &of_kind(false));
    files
}

fn template(component: &str, document: &str) -> String {
    assert!(!document.contains("{{"), "{document}");
    let mut text = document
        .replace(
            &format!("image: {IMAGE}\n"),
            &format!("image: {OF_IMAGE}\n"),
        )
        .replace(
            &format!("replicas: {REPLICAS}\n"),
            &format!("replicas: {{{{ .Values.{component}.replicas }}}}\n"),
        )
        .replace(
            &format!(": {NAMESPACE}\n"),
            &format!(": {QUOTED_NAMESPACE}\n"),
        )
        .replace(
            &format!("- {NAMESPACE}\n"),
            &format!("- {QUOTED_NAMESPACE}\n"),
        )
        .replace(NAMESPACE, OF_NAMESPACE);
    if let Some((before, rest)) = text.split_once("  config.yaml: |\n") {
        assert!(rest.lines().all(|line| line.starts_with("    ")), "{rest}");
        text = format!("{before}  config.yaml: |{OF_CONFIG}\n");
    }
    if text.contains("\nkind: Deployment\n") {
        text = deployment_of_values(component, &text);
    }
    if text.contains("\nkind: ValidatingWebhookConfiguration\n") {
        text = webhooks_of_value(&text);
    }
    if text.contains("\nkind: ResourceQuota\n") {
        let class = format!("- {{{{ .Values.{component}.priorityClassName | quote }}}}\n");
        text = text.replace("- system-cluster-critical\n", &class);
        text = format!("{}{text}{{{{- end }}}}\n", of_critical(component));
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if let Some(place) = line.find("checksum/config: ") {
            line.truncate(place);
            line.push_str(&format!("checksum/config: {OF_HASH}"));
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn templates_are_made_from_install() {
    let folder = root().join(CHART).join("templates");
    for component in COMPONENTS {
        for (file, text) in templates(component) {
            let path = folder.join(&file);
            if std::env::var_os("SNAPSHOTS").is_some_and(|how| how == "overwrite") {
                fs::write(&path, &text).unwrap();
            }
            assert_eq!(text, fs::read_to_string(&path).unwrap(), "{file}");
        }
    }
}

fn values() -> Value {
    let text = fs::read_to_string(root().join(CHART).join("values.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn sha256(text: &str) -> String {
    let mut sum = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    sum.stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let out = sum.wait_with_output().unwrap().stdout;
    String::from_utf8(out)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

/// A value as YAML with an indent.
fn indented(value: &Value, indent: usize) -> String {
    let text = serde_saphyr::to_string(value).unwrap();
    let lines = text
        .lines()
        .map(|line| format!("{}{line}\n", " ".repeat(indent)));
    lines.collect()
}

fn is_empty(value: &Value) -> bool {
    [
        Value::Null,
        "".into(),
        serde_json::json!({}),
        serde_json::json!([]),
    ]
    .contains(value)
}

/// Puts the values into the template of a Deployment or of a ResourceQuota.
fn with_values(component: &str, text: &str, values: &Value) -> String {
    let is_by_zone = values[component]["budgetsByZone"] != false;
    let mut text = webhooks_with_value(text, is_by_zone);
    for field in FIELDS {
        let (indent, name, path) = field;
        let path = path
            .trim_start_matches(".Values.")
            .replace("COMPONENT", component);
        let value = values
            .pointer(&format!("/{}", path.replace('.', "/")))
            .unwrap();
        let pad = " ".repeat(indent);
        let written = match value {
            value if is_empty(value) => String::new(),
            Value::String(value) => format!("{pad}{name}: {value}\n"),
            value => format!("{pad}{name}:\n{}", indented(value, indent + 2)),
        };
        text = text.replace(&field_of_value(component, field), &written);
    }
    let arguments = ARGUMENTS.map(|(name, _)| name);
    for name in ["podAnnotations"].into_iter().chain(arguments) {
        let value = &values[component][name];
        let written = match is_empty(value) {
            true => String::new(),
            false => indented(value, 8),
        };
        text = text.replace(&entries_of_value(component, name), &written);
    }
    let class = values[component]["priorityClassName"].as_str().unwrap();
    if text.contains(&of_critical(component)) && !class.ends_with("-critical") {
        return String::new();
    }
    text.replace(
        &format!("{{{{ .Values.{component}.priorityClassName | quote }}}}"),
        class,
    )
}

/// The objects of a component's templates with these values.
fn rendered(component: &str, image: &str, namespace: &str, values: &Value) -> Vec<Value> {
    let config = values["scheduler"]["config"].as_str().unwrap();
    let indented: String = config
        .trim()
        .lines()
        .map(|line| format!("\n    {line}"))
        .collect();
    let replicas = values[component]["replicas"].to_string();
    let mut objects = Vec::new();
    for file in templates(component).keys() {
        let text = fs::read_to_string(root().join(CHART).join("templates").join(file)).unwrap();
        let documents = text
            .split("---\n")
            .map(|document| with_values(component, document, values));
        let text = documents.collect::<Vec<_>>().join("---\n");
        let lines = text.lines().filter(|line| !line.starts_with("{{- "));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        let text = text
            .replace(OF_IMAGE, &format!("\"{image}\""))
            .replace(
                &format!("{{{{ .Values.{component}.replicas }}}}"),
                &replicas,
            )
            .replace(QUOTED_NAMESPACE, &format!("\"{namespace}\""))
            .replace(OF_NAMESPACE, namespace)
            .replace(OF_CONFIG, &indented)
            .replace(OF_HASH, &sha256(config));
        assert!(!text.contains("{{"), "{text}");
        let documents = text
            .split("---\n")
            .filter(|document| document.contains("kind: "));
        objects.extend(documents.map(object));
    }
    objects
}

/// Without Helm's annotation.
fn object(document: &str) -> Value {
    let mut object: Value = serde_saphyr::from_str(document).unwrap();
    if object["metadata"]["annotations"]["helm.sh/resource-policy"].is_string() {
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
    }
    object
}

fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| {
        let metadata = &object["metadata"];
        format!(
            "{} {}/{}",
            object["kind"], metadata["namespace"], metadata["name"]
        )
    };
    objects
        .into_iter()
        .map(|object| (name(&object), object))
        .collect()
}

/// The objects of the chart and of `strew install` are the same.
fn check_same(component: &str, flags: &[String], values: &Value) {
    let image = "registry.example.com/strew:0.1.0";
    let printed = installed(component, image, "strew-system", flags);
    let printed = printed.iter().filter(|document| !is_namespace(document));
    let printed = by_name(printed.map(|document| object(document)).collect());
    let chart = by_name(rendered(component, image, "strew-system", values));
    assert_eq!(
        chart.keys().collect::<Vec<_>>(),
        printed.keys().collect::<Vec<_>>()
    );
    for (name, object) in &printed {
        assert_eq!(&chart[name], object, "{name}");
    }
}

#[test]
fn the_default_values_give_what_install_prints() {
    for component in COMPONENTS {
        check_same(component, &[], &values());
    }
}

/// Each value has a schema and each property a value.
#[test]
fn the_schema_of_values_has_every_value() {
    let text = fs::read_to_string(root().join(CHART).join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let resolve = |schema: &Value, whole: &Value| -> Value {
        match schema["$ref"].as_str() {
            Some(path) => whole.pointer(path.trim_start_matches('#')).unwrap().clone(),
            None => schema.clone(),
        }
    };
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.retain(|key| key != "global");
        keys.sort();
        keys
    };
    let values = values();
    assert_eq!(keys(&schema["properties"]), keys(&values));
    for (name, value) in values.as_object().unwrap() {
        let property = resolve(&schema["properties"][name], &schema);
        if value.is_object() {
            assert_eq!(keys(&property["properties"]), keys(value), "{name}");
            assert_eq!(property["additionalProperties"], false, "{name}");
        }
    }
    let chart = fs::read_to_string(root().join(CHART).join("Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&chart).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}
