//! Files that hold no manifests, and objects of kinds that strew does not know.

use super::check;
use strew_manifest::read::{How, Sources, read};

#[test]
fn files_that_are_no_manifests_have_one_error_each() {
    let template = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n---\n{{- if .Values.x }}\n";
    let gzip: &[u8] = &[0x1f, 0x8b, 8, 0, 1, 2, 3];
    let cases: [(&str, &[u8], &str, &str); 14] = [
        ("shop/templates/a/web.yaml", template.as_bytes(), "template", "helm template RELEASE shop | strew simulate -"),
        ("web.yaml", template.as_bytes(), "template", "for a Helm chart: helm template RELEASE CHART | strew simulate -"),
        ("shop/Chart.yaml", b"apiVersion: v2\nname: shop\nversion: 0.1.0\n", "helm-chart", "helm template RELEASE shop | strew simulate -"),
        ("<stdin>", b"apiVersion: v2\nname: shop\nversion: 0.1.0\n", "helm-chart", "helm template RELEASE CHART | strew simulate -"),
        ("values.yaml", b"replicas: 3\n---\na: 1\n", "helm-values", "helm template RELEASE . | strew simulate -"),
        ("my shop/values-prod.yml", b"replicas: 3\n", "helm-values", "helm template RELEASE 'my shop' -f 'my shop/values-prod.yml' | strew simulate -"),
        ("app/kustomization.yaml", b"resources: [a.yaml]\n", "kustomization", "kubectl kustomize app | strew simulate -"),
        ("a.yaml", b"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", "kustomization", "kubectl kustomize . | strew simulate -"),
        ("<stdin>", b"\nNAMESPACE  NAME   READY  STATUS   RESTARTS  AGE\nshop       web-1  1/1    Running  0         3d\n", "kubectl-table", "add -o yaml to the kubectl command that wrote it"),
        ("a.txt", b"Name:         web\nNamespace:    shop\nLabels:       app=web\n", "kubectl-describe", "write kubectl get -o yaml in place of kubectl describe"),
        ("pods.json.gz", gzip, "packed", "unpack it first: gunzip pods.json.gz"),
        ("dump.tgz", gzip, "packed", "unpack it first: tar xf dump.tgz"),
        ("<stdin>", gzip, "packed", "unpack it first"),
        ("dump.zip", b"PK\x03\x04\x14\x00", "packed", "unpack it first: unzip dump.zip"),
    ];
    for (name, bytes, code, help) in cases {
        let mut sources = Sources::new();
        sources.add(name, bytes);
        let reading = read(&sources);
        let [only] = reading.diagnostics.as_slice() else {
            panic!("{name}: {:?}", reading.diagnostics);
        };
        assert_eq!(
            (only.code, only.help.as_deref()),
            (code, Some(help)),
            "{name}"
        );
        assert!(reading.has_errors() && reading.objects.is_empty(), "{name}");
    }
}

#[test]
fn files_that_look_like_something_else_are_read() {
    for text in [
        "Name: web\nkind: Pod\napiVersion: v1\nmetadata: {name: a}\n",
        "kind: Pod\napiVersion: v1\nmetadata: {name: a, annotations: {text: \"{{ .Values.x }}\"}}\n",
    ] {
        let mut sources = Sources::new();
        sources.add("values.yaml", text);
        let reading = read(&sources);
        assert!(
            reading
                .diagnostics
                .iter()
                .all(|d| d.code == "unknown-field"),
            "{text}"
        );
    }
}

#[test]
fn an_unknown_kind_is_played_as_a_known_one() {
    let rollout = "apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: shop, uid: u1}
spec:
  replicas: 6
  selector: {matchLabels: {app: shop}}
  strategy: {canary: {maxSurge: 1}}
  workloadRef: {kind: Deployment}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: c, imge: x}]}}
status: {phase: Healthy}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: other}
spec: {workloadRef: {kind: Deployment}}
";
    let mut sources = Sources::new();
    sources.set_how(How {
        played_as: vec!["Rollout.argoproj.io=Deployment".parse().unwrap()],
        ..How::default()
    });
    sources.add("in", rollout);
    let reading = read(&sources);
    assert_eq!(
        super::diagnostics_text(&reading, &sources),
        "in:2:7: note[played-as]: Rollout (argoproj.io) is played as a Deployment, without spec.strategy.canary, spec.workloadRef\n  \
           in Rollout (argoproj.io) shop: kind\n\
         in:9:77: warning[unknown-field]: unknown field \"imge\", did you mean \"image\"?: Deployment spec.template.spec.containers[].imge was passed over\n  \
           in Deployment default/shop: spec.template.spec.containers[0].imge\n\
         in:13:7: error[not-playable]: Rollout (argoproj.io) has no spec.template: it cannot be played as a Deployment\n  \
           in : kind\n"
    );
    assert_eq!(
        super::objects_text(&reading),
        "apps/v1 Deployment default/shop\n"
    );
}

/// A field that the known kind does not have goes alone: what stands beside it counts.
#[test]
fn what_is_played_keeps_what_stands_beside_an_unknown_field() {
    let set = "apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  selector: {matchLabels: {app: db}}
  updateStrategy: {rollingUpdate: {partition: 2, podUpdatePolicy: InPlaceIfPossible}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: x}]}}
";
    let mut sources = Sources::new();
    sources.set_how(How {
        played_as: vec!["StatefulSet.apps.kruise.io=StatefulSet".parse().unwrap()],
        ..How::default()
    });
    sources.add("in", set);
    let reading = read(&sources);
    let said = super::diagnostics_text(&reading, &sources);
    assert!(
        said.contains(
            "played as a StatefulSet, without spec.updateStrategy.rollingUpdate.podUpdatePolicy\n"
        ),
        "{said}"
    );
    let json = reading.objects[0].object.to_json();
    assert_eq!(
        json["spec"]["updateStrategy"]["rollingUpdate"]["partition"],
        2
    );
}

#[test]
fn kinds_with_a_pod_template_are_told_once() {
    check(
        "apiVersion: example.org/v1\nkind: Shop\nmetadata: {name: a}\nspec: {selector: {}, template: {spec: {containers: [{name: c}]}}}\n---\n\
         apiVersion: example.org/v1\nkind: Shop\nmetadata: {name: b}\nspec: {selector: {}, template: {spec: {containers: [{name: c}]}}}\n---\n\
         apiVersion: example.org/v1\nkind: ShopPolicy\nmetadata: {name: c}\nspec: {template: {spec: {containers: [{name: c}]}}}\n---\n\
         apiVersion: example.org/v1\nkind: Site\nmetadata: {name: d, uid: u1}\nspec: {parts: [{podTemplate: {spec: {containers: [{name: c}]}}}]}\n---\n\
         apiVersion: v1\nkind: Pod\nmetadata: {name: d-1, uid: u2, ownerReferences: [{apiVersion: example.org/v1, kind: Site, name: d, uid: u1}]}\n---\n\
         apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet\nmetadata: {name: s}\n",
        "|example.org/v1 Shop (example.org) a
         |example.org/v1 Shop (example.org) b
         |example.org/v1 ShopPolicy (example.org) c
         |example.org/v1 Site (example.org) d
         |v1 Pod default/d-1
         |apps.kruise.io/v1beta1 StatefulSet (apps.kruise.io) default/s
         |in:2:7: warning[no-controller]: strew has no controller for Shop (example.org) (2 objects): its pods are missing from the answer
         |  in Shop (example.org) a: kind
         |  help: --as Shop.example.org=Deployment plays it as a Deployment
         |in:17:7: warning[no-controller]: strew has no controller for Site (example.org): its pods stay as they are in the files, and no others are made
         |  in Site (example.org) d: kind
         |in:26:7: warning[no-controller]: strew has no controller for StatefulSet (apps.kruise.io): its pods are missing from the answer
         |  in StatefulSet (apps.kruise.io) default/s: kind
        ",
    );
}
