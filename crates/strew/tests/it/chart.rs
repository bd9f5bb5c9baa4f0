//! deploy/charts/strew: its templates are made from the output of `strew install`, and give it back with the default
//! values. `SNAPSHOTS=overwrite` writes them again.
//!
//! A small renderer knows the few expressions of the templates; one test, which is ignored by default, needs helm itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{root, stdout, strew};

const CHART: &str = "deploy/charts/strew";
const COMPONENTS: [&str; 3] = ["scheduler", "workloadspread", "placement"];

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

fn installed(component: &str, image: &str, namespace: &str, flags: &str) -> Vec<String> {
    let crds = if component == "scheduler" {
        ""
    } else {
        "--crds=always"
    };
    let args =
        format!("install {component} --image {image} --namespace {namespace} {crds} {flags}");
    let text = stdout(&strew(&args).assert().code(0));
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
    let all = installed(
        component,
        IMAGE,
        NAMESPACE,
        &format!("--replicas {REPLICAS}"),
    );
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

/// The objects of a component's templates with the default values.
fn rendered(component: &str, image: &str, namespace: &str) -> Vec<Value> {
    let values = values();
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
        objects.extend(text.split("---\n").map(object));
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

#[test]
fn the_default_values_give_what_install_prints() {
    let image = "registry.example.com/strew:0.1.0";
    for component in COMPONENTS {
        let printed = installed(component, image, "strew-system", "");
        let printed = printed.iter().filter(|document| !is_namespace(document));
        let printed = by_name(printed.map(|document| object(document)).collect());
        let chart = by_name(rendered(component, image, "strew-system"));
        assert_eq!(
            chart.keys().collect::<Vec<_>>(),
            printed.keys().collect::<Vec<_>>()
        );
        for (name, object) in &printed {
            assert_eq!(&chart[name], object, "{name}");
        }
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

/// helm itself: the same objects, a schema that refuses wrong values, and no complaint of its linter.
#[test]
#[ignore = "needs helm; `cargo xtask ci` runs it where helm is installed"]
fn helm_renders_the_same() {
    let helm = |args: &[&str]| Command::new("helm").args(args).current_dir(root()).output();
    let image = "image=registry.example.com/strew:0.1.0";
    let lint = helm(&["lint", "--strict", "--set", image, CHART]).unwrap();
    assert!(
        lint.status.success(),
        "{}",
        String::from_utf8_lossy(&lint.stdout)
    );
    for component in COMPONENTS {
        let enabled: Vec<String> = COMPONENTS
            .iter()
            .map(|other| format!("{other}.enabled={}", *other == component))
            .collect();
        let mut args = vec![
            "template",
            "strew",
            CHART,
            "--namespace",
            "strew-system",
            "--skip-tests",
            "--set",
            image,
        ];
        args.extend(enabled.iter().flat_map(|value| ["--set", value.as_str()]));
        let run = helm(&args).unwrap();
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        let text = String::from_utf8(run.stdout).unwrap();
        let documents = text
            .split("---\n")
            .filter(|document| document.contains("kind: "));
        let chart = by_name(documents.map(object).collect());
        let printed = installed(
            component,
            "registry.example.com/strew:0.1.0",
            "strew-system",
            "",
        );
        let printed = printed.iter().filter(|document| !is_namespace(document));
        assert_eq!(
            chart,
            by_name(printed.map(|document| object(document)).collect()),
            "{component}"
        );
    }
    let monitored = helm(&[
        "template",
        "strew",
        CHART,
        "--set",
        image,
        "--set",
        "podMonitor.enabled=true",
    ])
    .unwrap();
    let monitored = String::from_utf8(monitored.stdout).unwrap();
    assert_eq!(
        monitored.matches("kind: PodMonitor").count(),
        1,
        "{monitored}"
    );
    for wrong in [
        &["template", "strew", CHART][..],
        &[
            "template",
            "strew",
            CHART,
            "--set",
            image,
            "--set",
            "scheduler.replicas=0",
        ],
        &[
            "template",
            "strew",
            CHART,
            "--set",
            image,
            "--set",
            "schedular.enabled=true",
        ],
    ] {
        assert!(!helm(wrong).unwrap().status.success(), "{wrong:?}");
    }
}
