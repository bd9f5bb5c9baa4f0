//! `strew uninstall`: all output of `strew install`, in a safe order, and nothing of another project.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json as value};
use snapbox::file;

use crate::{COMPONENTS, crds, json, stderr, strew};

/// Without a known cluster.
fn alone(args: &str) -> snapbox::cmd::Command {
    strew(args)
        .env("HOME", "/nowhere")
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
}

/// `KIND NAMESPACE/NAME` of each object, in order.
fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    let name = |object: &Value| {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let (kind, name) = (&object["kind"], &metadata["name"]);
        format!(
            "{} {namespace}/{}",
            kind.as_str().unwrap(),
            name.as_str().unwrap()
        )
    };
    items.map(name).collect()
}

fn uninstalled(args: &str) -> Vec<String> {
    names(&json(
        &alone(&format!("uninstall {args} -o json")).assert().code(0),
    ))
}

fn installed(args: &str) -> Vec<String> {
    let args = format!("install {args} --image strew:0.1.0 -o json");
    names(&json(&alone(&args).assert().code(0)))
}

#[test]
fn what_is_printed_to_delete() {
    let run = alone("uninstall workloadspread --with-namespace")
        .assert()
        .code(0);
    assert_eq!(
        stderr(&run),
        "note: CustomResourceDefinitions and their objects stay; --crds prints strew's definitions, too\n"
    );
    run.stdout_eq(file!["snapshots/uninstall-workloadspread.yaml"]);
    // The notes are the same where a kubeconfig names a cluster: uninstall does not ask it for other schedulers.
    let kubeconfig = std::env::temp_dir().join(format!("strew-goes-{}", std::process::id()));
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
                contexts: [{name: a, context: {cluster: a, user: a}}]\n\
                clusters: [{name: a, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: a, user: {}}]\n";
    std::fs::write(&kubeconfig, text).unwrap();
    let run = alone("uninstall scheduler")
        .env("KUBECONFIG", &kubeconfig)
        .assert()
        .code(0);
    std::fs::remove_file(&kubeconfig).unwrap();
    assert_eq!(
        stderr(&run),
        "note: namespace strew-system stays; --with-namespace prints it, too\n"
    );
    let quiet = alone("uninstall scheduler --quiet").assert().code(0);
    assert_eq!(stderr(&quiet), "");
}

#[test]
fn all_that_was_installed_goes_but_the_namespace() {
    for part in COMPONENTS {
        let crds = crds(part, "never");
        let before = installed(&format!("{part} {crds} --namespace other"));
        let gone = uninstalled(&format!("{part} --namespace other"));
        let stays: Vec<&String> = before.iter().filter(|name| !gone.contains(name)).collect();
        assert_eq!(stays, ["Namespace /other"], "{part}");
    }
    let gone = uninstalled("workloadspread");
    for made in [
        "ConfigMap strew-system/strew-webhook",
        "Lease strew-system/strew-webhook",
        "Lease strew-system/strew-webhook-replicas",
        "Lease strew-system/strew-controller",
        "Secret strew-system/strew-webhook-ca",
    ] {
        assert!(gone.contains(&made.to_owned()), "{made}: {gone:#?}");
    }
}

#[test]
fn a_component_goes_without_its_neighbours() {
    let mut seen = BTreeSet::new();
    for part in COMPONENTS {
        for name in uninstalled(part) {
            assert!(seen.insert(name.clone()), "{name} goes with two components");
        }
    }
}

/// While webhook configurations exist, creations of pods wait for a webhook; a process would create its objects again
/// while it has the rights.
#[test]
fn nothing_is_deleted_before_what_needs_it() {
    let gone = uninstalled("workloadspread --with-namespace");
    let first = |kind: &str| gone.iter().position(|name| name.starts_with(kind)).unwrap();
    let last = |kind: &str| {
        gone.iter()
            .rposition(|name| name.starts_with(kind))
            .unwrap()
    };
    assert_eq!(first("MutatingWebhookConfiguration "), 0);
    assert_eq!(first("ValidatingWebhookConfiguration "), 1);
    assert!(last("Deployment ") < first("RoleBinding "));
    for kind in ["Lease ", "Secret ", "ValidatingAdmissionPolicy "] {
        assert!(last("RoleBinding ") < first(kind), "{kind}");
        assert!(last("ClusterRoleBinding ") < first(kind), "{kind}");
    }
    assert_eq!(first("Namespace "), gone.len() - 1);
}

/// An API server with a definition of strew, one of another project, and three objects of the first.
fn api_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let (status, body) = answer(&request);
            let body = body.to_string();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
    });
    format!("http://{address}")
}

fn answer(request: &str) -> (&'static str, Value) {
    let path = request.split(' ').nth(1).unwrap();
    let definition = |labels: Value| {
        value!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": {"name": "it", "labels": labels}})
    };
    match path {
        "/version" => (
            "200 OK",
            value!({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "",
                    "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
        ),
        path if path.ends_with(
            "/customresourcedefinitions/placements.cluster.open-cluster-management.io",
        ) =>
        {
            (
                "200 OK",
                definition(value!({"app.kubernetes.io/part-of": "strew"})),
            )
        }
        path if path.ends_with(
            "/customresourcedefinitions/managedclusters.cluster.open-cluster-management.io",
        ) =>
        {
            ("200 OK", definition(value!({})))
        }
        path if path
            .starts_with("/apis/cluster.open-cluster-management.io/v1beta1/placements?") =>
        {
            (
                "200 OK",
                value!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                    "metadata": {"remainingItemCount": 2},
                    "items": [definition(value!({}))]}),
            )
        }
        path if path.starts_with("/api/v1/pods?") => (
            "200 OK",
            value!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": []}),
        ),
        path if path.starts_with("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/") => (
            "200 OK",
            value!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                    "metadata": {"name": "it"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "it"},
                    "subjects": [{"kind": "ServiceAccount", "namespace": "first", "name": "strew"}]}),
        ),
        _ => (
            "404 Not Found",
            value!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": path, "reason": "NotFound", "code": 404}),
        ),
    }
}

/// A kubeconfig for [`api_server`].
fn kubeconfig(name: &str) -> std::path::PathBuf {
    let cluster = value!({"name": "c", "cluster": {"server": api_server()}});
    let config = value!({
        "apiVersion": "v1", "kind": "Config", "clusters": [cluster], "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c",
    });
    let file = std::env::temp_dir().join(format!("strew-{name}-{}.json", std::process::id()));
    std::fs::write(&file, config.to_string()).unwrap();
    file
}

/// Roles and bindings have one name in a cluster: a second installation would take the rights of the first, and to take
/// the second out would take them from both.
#[test]
fn there_is_one_installation_a_cluster() {
    let file = kubeconfig("twice");
    for part in COMPONENTS {
        let words = |verb: &str, namespace: &str| {
            let file = file.display();
            alone(&format!(
                "{verb} {part} --namespace {namespace} -o json --kubeconfig {file}"
            ))
        };
        let second = words("install", "second").arg("--image=strew:0.1.0");
        let second = second.assert().code(2);
        let said = stderr(&second);
        assert!(
            said.contains("strew is installed in namespace first"),
            "{said}"
        );
        assert!(said.contains("--namespace first"), "{said}");
        let first = words("install", "first").arg("--image=strew:0.1.0");
        assert!(names(&json(&first.assert().code(0))).len() > 5, "{part}");

        let second = words("uninstall", "second").assert().code(0);
        assert!(stderr(&second).contains("installation in namespace first"));
        let gone = names(&json(&second));
        assert!(
            !gone.is_empty() && gone.iter().all(|name| name.contains(" second/")),
            "{gone:?}"
        );
        let first = names(&json(&words("uninstall", "first").assert().code(0)));
        assert!(
            first
                .iter()
                .any(|name| name.starts_with("ClusterRoleBinding ")),
            "{first:?}"
        );
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn definitions_go_when_it_is_said_and_they_are_strews() {
    let file = kubeconfig("definitions");
    let args = format!(
        "uninstall placement --crds -o json --kubeconfig {}",
        file.display()
    );
    let run = alone(&args).assert().code(0);
    std::fs::remove_file(&file).unwrap();
    let said = stderr(&run);
    let notes = [
        "note: CustomResourceDefinition managedclusters.cluster.open-cluster-management.io is not strew's: it stays\n",
        "note: CustomResourceDefinition placements.cluster.open-cluster-management.io goes with all its 3 objects\n",
    ];
    for note in notes {
        assert!(said.contains(note), "{said}");
    }
    let gone = names(&json(&run));
    let definitions: Vec<&String> = gone
        .iter()
        .filter(|name| name.starts_with("CustomResourceDefinition"))
        .collect();
    let expected = "CustomResourceDefinition /placements.cluster.open-cluster-management.io";
    assert_eq!(definitions, [expected]);
    // Their owner must be known before they are deleted.
    let unknown = alone("uninstall placement --crds").assert().code(2);
    assert!(
        stderr(&unknown).contains("--kubeconfig"),
        "{}",
        stderr(&unknown)
    );
}
