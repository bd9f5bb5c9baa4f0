//! Wrong input and usage: all errors at once, and exit codes that tell their kinds.

use snapbox::file;

use crate::{json, stderr, strew};

const BAD: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 500x}}}]
      topologySpreadConstraints:
      - {maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      - {maxSkw: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
---
apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec:
  priorityClassName: vip
  containers: [{name: c, image: i}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: other}}
    spec: {priorityClassName: vip, containers: [{name: c, image: i}]}
";

#[test]
fn every_error_of_every_object_is_told_at_once() {
    let run = strew("simulate -").stdin(BAD).assert().code(2);
    run.stdout_eq("")
        .stderr_eq(file!["snapshots/bad.stderr.txt"]);
}

/// Two documents with many kinds of mistakes.
const WORSE: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: 3}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: nginx, resources: {requests: {cpu: 500x, memory: 99999999999999999999}}}
      topologySpreadConstraints:
      - {maxSkwe: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: -1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}
      - maxSkew: 1
        topologyKey: host
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchExpressions: [{key: app, operator: Is}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1.5
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: web}}
    spec:
      priorityClassName: vip
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 99999999999999999999}}}]
";

#[test]
fn one_run_tells_all_even_of_objects_that_cannot_be_read_in_full() {
    let run = strew("simulate - -o json").stdin(WORSE).assert().code(2);
    let list = json(&run);
    let told: Vec<String> = list["items"].as_array().unwrap().iter().map(told).collect();
    let told = told.join("\n");
    snapbox::assert_data_eq!(told, file!["snapshots/worse.txt"]);
    let run = strew("simulate -").stdin(WORSE).assert().code(2);
    let text = stderr(&run);
    let n = list["items"].as_array().unwrap().len();
    assert!(
        text.ends_with(&format!("{n} errors in the input\n")),
        "{text}"
    );
}

/// Place, code and message of a diagnostic.
fn told(item: &serde_json::Value) -> String {
    let place = &item["place"];
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    format!(
        "{}:{}:{} {} {}: {}",
        text(&place["file"]),
        place["line"],
        place["column"],
        text(&item["code"]),
        text(&item["field"]),
        text(&item["message"]),
    )
}

/// If a workload's pods would ask for too much, that is one error, in the template.
#[test]
fn an_amount_beyond_63_bits_is_told_where_it_stands() {
    let manifest = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 100
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: i, resources: {requests: {memory: 99999999999999999999}}}
";
    let run = strew("simulate - --nodes 1")
        .stdin(manifest)
        .assert()
        .code(2);
    let text = stderr(&run);
    assert_eq!(text.matches("error[").count(), 1, "{text}");
    assert!(text.contains("<stdin>:11:60"), "{text}");
}

/// More are not useful, and each costs time to locate.
#[test]
fn a_thousand_errors_are_enough() {
    let pod = |n: usize| {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec: {{containers: []}}\n")
    };
    let manifest: Vec<String> = (0..1100).map(pod).collect();
    let run = strew("simulate - --nodes 1 -o json")
        .stdin(manifest.join("---\n"))
        .assert()
        .code(2);
    let list = json(&run);
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 1001);
    assert_eq!(items[1000]["code"], "too-many");
}

/// There are no further errors about a field that was misspelt, or has a value of a wrong type.
#[test]
fn one_mistake_is_one_error() {
    let deployment = |metadata: &str, spec: &str, template: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {metadata}\nspec: {spec}\n  template: {template}\n"
        )
    };
    let spec = "\n  selector: {matchLabels: {app: web}}";
    let template = |spec: &str| format!("{{metadata: {{labels: {{app: web}}}}, spec: {spec}}}");
    let good = template("{containers: [{name: c, image: i}]}");
    let cases = [
        ("misspelt name", deployment("{nmae: web}", spec, &good)),
        ("name of another type", deployment("{name: 3}", spec, &good)),
        (
            "misspelt selector",
            deployment(
                "{name: web}",
                "\n  slector: {matchLabels: {app: web}}",
                &good,
            ),
        ),
        (
            "misspelt matchLabels",
            deployment(
                "{name: web}",
                "\n  selector: {matchLables: {app: web}}",
                &good,
            ),
        ),
        (
            "label of another type",
            deployment(
                "{name: web}",
                "\n  selector: {matchLabels: {app: 3}}",
                &good,
            ),
        ),
        (
            "misspelt containers",
            deployment(
                "{name: web}",
                spec,
                &template("{contaners: [{name: c, image: i}]}"),
            ),
        ),
        (
            "containers as an object",
            deployment(
                "{name: web}",
                spec,
                &template("{containers: {name: c, image: i}}"),
            ),
        ),
        (
            "image under a wild name",
            deployment(
                "{name: web}",
                spec,
                &template("{containers: [{name: c, picture: i}]}"),
            ),
        ),
        (
            "misspelt labels",
            deployment(
                "{name: web}",
                spec,
                "{metadata: {lables: {app: web}}, spec: {containers: [{name: c, image: i}]}}",
            ),
        ),
        ("template as a list", deployment("{name: web}", spec, "[]")),
        (
            "a misspelt class",
            format!(
                "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: vip}}\nvalue: 7\nglobalDefaul: false\n---\n{}",
                deployment(
                    "{name: web}",
                    spec,
                    &template("{priorityClassName: vip, containers: [{name: c, image: i}]}")
                )
            ),
        ),
    ];
    for (name, manifest) in cases {
        let run = strew("simulate - --nodes 1")
            .stdin(manifest)
            .assert()
            .code(2);
        let text = stderr(&run);
        assert_eq!(text.matches("error[").count(), 1, "{name}: {text}");
    }
}

#[test]
fn programs_get_errors_as_a_list() {
    let run = strew("simulate - -o json").stdin(BAD).assert().code(2);
    let list = json(&run);
    assert_eq!(list["kind"], "Diagnostics");
    assert!(list["items"].as_array().unwrap().len() >= 4, "{list:#}");
}

/// An error of a pod that a workload makes is shown at its template.
#[test]
fn a_template_that_no_pod_can_come_from() {
    let manifest = "apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 100
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      runtimeClassName: vip
      containers: [{name: c, image: i}]
";
    let run = strew("simulate -").stdin(manifest).assert().code(2);
    let text = stderr(&run);
    assert!(text.contains("RuntimeClass \"vip\" not found"), "{text}");
    assert!(text.contains("<stdin>:10:25"), "{text}");
    assert_eq!(
        text.matches("error[").count(),
        1,
        "once, not a hundred times: {text}"
    );
}

#[test]
fn a_file_that_is_not_there_is_no_input_error() {
    let run = strew("simulate examples/shop.yaml nosuch.yaml")
        .assert()
        .code(3);
    let text = stderr(&run);
    assert!(
        text.starts_with("error: cannot read nosuch.yaml\n  caused by: "),
        "{text}"
    );
}

#[test]
fn usage_errors_exit_with_2() {
    for args in [
        "simulate",
        "simulate https://example.com/app.yaml",
        "simulate examples/shop.yaml --zones 5 --nodes 3",
        "simulate examples/shop.yaml --nodes 1000000000",
        "simulate examples/shop.yaml --nodes -1",
        "simulate examples/shop.yaml --node-cpu 1x",
        "simulate examples/shop.yaml --node-cpu 0",
        "simulate examples/shop.yaml --node-memory 99999999999Ei",
        "simulate examples/shop.yaml --regions 9",
        "simulate examples/tight.yaml --zones 3",
        "simulate examples/shop.yaml -l a=b=c",
        "simulate examples/shop.yaml -o xml",
        "simulate crates/strew-model",
        "explain",
        "explain examples/shop.yaml",
        "explain pod/web-1",
        "frobnicate",
    ] {
        let run = strew(args).assert().code(2);
        let text = stderr(&run);
        assert!(text.starts_with("error: "), "{args}: {text}");
    }
}

#[test]
fn a_folder_gives_its_manifests_by_name() {
    let run = strew("simulate examples -o json").assert();
    // Both examples have a Deployment of one name: every message names both files.
    let text = stderr(&run.code(2));
    assert!(
        text.contains("examples/shop.yaml") && text.contains("examples/tight.yaml"),
        "{text}"
    );
}

/// A dump beside notes: the folder is read, and the notes are skipped by name.
#[test]
fn data_in_a_folder_is_passed_over_and_named() {
    let folder = std::env::temp_dir().join(format!("strew-folder-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("facts.json"), "{\"nodes\": 3}").unwrap();
    std::fs::copy(
        crate::root().join("examples/tight.yaml"),
        folder.join("tight.yaml"),
    )
    .unwrap();
    let name = folder.to_str().unwrap();
    let run = strew(&format!("simulate {name} --color never"))
        .assert()
        .code(1);
    let text = stderr(&run);
    let facts = format!("{name}/facts.json");
    assert!(
        text.starts_with(
            "warning[no-objects]: no Kubernetes object in this file: it was passed over"
        ),
        "{text}"
    );
    assert!(text.contains(&format!("{facts}:1:1")), "{text}");
    let run = strew(&format!("simulate {facts} --nodes 1"))
        .assert()
        .code(2);
    let text = stderr(&run);
    assert!(
        text.contains("no Kubernetes object: apiVersion and kind are missing"),
        "{text}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn kinds_that_nobody_models_are_named_once() {
    const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}";
    let manifest = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: b}\n---\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let run = strew("simulate - --nodes 1")
        .stdin(format!("{manifest}---\n{POD}"))
        .assert()
        .code(0);
    let text = stderr(&run);
    assert!(
        text.contains("skipped 2 objects of kinds that strew does not model: 2 Widget"),
        "{text}"
    );
    assert!(!text.contains("KubeSchedulerConfiguration"), "{text}");
}

/// `>` of Windows PowerShell writes UTF-16 with CRLF; such a dump was refused, and a large one read in part.
#[test]
fn utf16_reads_as_utf8_does() {
    let text = std::fs::read_to_string(crate::root().join("examples/shop.yaml")).unwrap();
    // More than a block of the reader.
    let text = format!("# {}\n{text}", "ö".repeat(100_000)).replace('\n', "\r\n");
    let units = || "\u{feff}".encode_utf16().chain(text.encode_utf16());
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    let lint = |bytes: Vec<u8>| strew("lint - -o json").stdin(bytes).assert();
    let expected = json(&lint(text.into_bytes()));
    assert!(
        expected["items"]
            .as_array()
            .is_some_and(|items| !items.is_empty()),
        "{expected}"
    );
    for bytes in [little, big] {
        assert_eq!(json(&lint(bytes)), expected);
    }
}

#[test]
fn utf16_is_not_overwritten() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("utf16.yaml");
    let text = std::fs::read_to_string(crate::root().join("examples/shop.yaml")).unwrap();
    let text = text.replace("matchLabelKeys", "# matchLabelKeys");
    let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
    let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, &bytes).unwrap();
    let run = strew("lint --fix").arg(&path).assert().code(2);
    assert!(stderr(&run).contains("it is UTF-16"), "{}", stderr(&run));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}
