use strew_manifest::read::{Sources, read};

use super::*;

/// The added objects and the warnings about a text, in short.
fn said(text: &str, args: &AssumedArgs) -> (Vec<String>, Vec<String>) {
    let mut sources = Sources::new();
    sources.add("a.yaml", text.to_owned());
    let reading = read(&sources);
    assert_eq!(reading.diagnostics, []);
    let assumed = assumed(&reading.objects, &sources, args);
    let objects = assumed.objects.iter().map(|object| match object {
        KubeObject::PriorityClass(class) => {
            format!("{} {}", object.label(), class.value.unwrap_or_default())
        }
        object => object.label(),
    });
    let warnings = assumed.diagnostics.iter();
    let warnings = warnings.map(|d| format!("{} {}", d.code, d.path.as_ref().unwrap()));
    (objects.collect(), warnings.collect())
}

fn claim(class: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec: {{{class}}}\n"
    )
}

const CLASS: &str = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\nprovisioner: x\n";

#[test]
fn a_storage_class_is_assumed_only_where_no_class_and_no_volume_tells_otherwise() {
    let none = AssumedArgs::default();
    let (objects, warnings) = said(&claim("storageClassName: fast"), &none);
    assert_eq!(objects, ["StorageClass fast"]);
    assert_eq!(warnings, ["assumed-storage-class spec.storageClassName"]);
    let (objects, warnings) = said(&claim(""), &none);
    assert_eq!(objects, ["StorageClass standard"]);
    assert_eq!(warnings, ["assumed-storage-class spec"]);
    // Files with a class have all of them.
    for wanted in ["storageClassName: gp2", ""] {
        let (objects, warnings) = said(&format!("{CLASS}{}", claim(wanted)), &none);
        assert_eq!((objects.len(), warnings.len()), (0, 1), "{wanted}");
        assert!(warnings[0].starts_with("missing-storage-class"));
    }
    let volume = "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {storageClassName: manual}\n";
    let text = format!("{volume}{}", claim("storageClassName: manual"));
    assert_eq!(said(&text, &none), (vec![], vec![]));
    for wanted in ["storageClassName: ''", "volumeName: pv"] {
        assert_eq!(said(&claim(wanted), &none), (vec![], vec![]));
    }
    let args = AssumedArgs {
        storage_class: vec![storage::given("fast=immediate").unwrap()],
        ..AssumedArgs::default()
    };
    let (objects, warnings) = said(
        &format!("{CLASS}{}", claim("storageClassName: fast")),
        &args,
    );
    assert_eq!(
        (objects, warnings.len()),
        (vec!["StorageClass fast".to_owned()], 0)
    );
    assert_eq!(args.to_args(), ["--storage-class", "fast=immediate"]);
}

#[test]
fn a_priority_class_has_the_value_of_its_pods() {
    let pod = |name: &str, class: &str, more: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: x}}], \
             priorityClassName: {class}{more}}}\n"
        )
    };
    let text = [
        pod("a", "high", ""),
        pod("b", "high", ", priority: 7"),
        pod("c", "low", ""),
        pod("d", "system-node-critical", ""),
        pod("e", "given", ""),
    ];
    let args = AssumedArgs {
        priority_class: vec![priority::given("given=-3").unwrap()],
        ..AssumedArgs::default()
    };
    let (objects, warnings) = said(&text.concat(), &args);
    assert_eq!(
        objects,
        [
            "PriorityClass given -3",
            "PriorityClass high 7",
            "PriorityClass low 0"
        ]
    );
    assert_eq!(
        warnings,
        ["assumed-priority-class spec.priorityClassName"; 2]
    );
    assert!(priority::given("high").is_err());
    assert!(priority::given("high=much").is_err());
}

#[test]
fn service_accounts_of_hand_written_workloads_are_told() {
    let workload = |account: &str, uid: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-{account}{uid}}}\nspec: {{selector: \
             {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, spec: {{serviceAccountName: \
             {account}, containers: [{{name: c, image: x}}]}}}}}}\n"
        )
    };
    let account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: there}\n";
    let all = ["there", "default", "gone"].map(|name| workload(name, ""));
    let (objects, warnings) = said(
        &format!("{account}{}", all.concat()),
        &AssumedArgs::default(),
    );
    assert!(objects.is_empty());
    let field = "assumed-service-account spec.template.spec.serviceAccountName";
    assert_eq!(warnings, [field]);
}
