//! What the accounts of webhook and controller may write: only what they need, so that a compromised process can do no
//! more.

use anyhow::{Context, bail, ensure};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use xtask_lab::lab::until;

use super::{COST, MARKER};
use crate::e2e::parts::SYSTEM;
use crate::e2e::stage::{PAUSE, SOON, Stage};

const MUTATING: &str = "mutatingwebhookconfiguration/strew-webhook";
const VALIDATING: &str = "validatingwebhookconfiguration/strew-webhook";
const DEFINITION: &str = "customresourcedefinition/workloadspreads.apps.kruise.io";

const WEBHOOK: &str = "strew-webhook";
const CONTROLLER: &str = "strew-controller";

const KUBE_SYSTEM: &str = "kube-system";

/// The account, the object, and the change.
type Try = (&'static str, &'static str, Value);

/// Registers the webhook under the policies, and then tries an attacker's changes, each in a dry run of the API server.
pub(crate) fn bounded(stage: &mut Stage) -> anyhow::Result<()> {
    let mut spreading = stage.installed_spreading(&[], &[])?;
    stage.add_webhook(&mut spreading, &[])?;
    stage.until_ready(&spreading, 1)?;
    stage.until_called()?;
    let refused = refused();
    let mut last = String::new();
    let is_bounded = until("the policies hold", SOON, PAUSE, || {
        last = tried(stage, &refused[0]).err().unwrap_or_default();
        Ok(last.contains("ValidatingAdmissionPolicy").then_some(()))
    });
    is_bounded.with_context(|| last.clone())?;
    for attack in &refused {
        let (who, object, patch) = attack;
        match tried(stage, attack) {
            Ok(()) => bail!("{who} may change {object}: {patch}"),
            Err(said) => ensure!(
                said.contains("ValidatingAdmissionPolicy") && said.contains("denied request"),
                "{who}, {object}, {patch}: {said}"
            ),
        }
    }
    for own in allowed(stage)? {
        let (who, object, patch) = &own;
        if let Err(said) = tried(stage, &own) {
            bail!("{who} must change {object}: {patch}: {said}");
        }
    }
    println!("  {} changes were refused", refused.len());
    creations(stage)?;
    pods(stage)?;
    // The policies do not restrict other accounts.
    let [_, object, patch] = [refused[0].0, refused[0].1, &refused[0].2.to_string()];
    let args = [
        "patch",
        object,
        "--type=json",
        "--patch",
        patch,
        "--dry-run=server",
    ];
    stage.run(&args).map(drop)
}

/// `Err` is kubectl's refusal.
fn tried(stage: &Stage, (who, object, patch): &Try) -> Result<(), String> {
    let user = format!("--as=system:serviceaccount:{SYSTEM}:{who}");
    let patch = patch.to_string();
    let args = [
        "patch",
        object,
        "--type=json",
        "--patch",
        &patch,
        "--dry-run=server",
        &user,
    ];
    stage
        .run(&args)
        .map(drop)
        .map_err(|error| format!("{error:#}"))
}

/// Creations, where the policies know no earlier object: each account may create only its own objects, and no token of
/// another account.
fn creations(stage: &Stage) -> anyhow::Result<()> {
    let lease = |name: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": SYSTEM},
        })
    };
    let secret = |name: &str, of_type: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": SYSTEM,
                "annotations": {"kubernetes.io/service-account.name": CONTROLLER},
            },
            "type": of_type,
        })
    };
    const TOKEN: &str = "kubernetes.io/service-account-token";
    let bundle = "strew-webhook-ca";
    // Where the account's own object exists already, a dry run ends with that error.
    let cases = [
        (WEBHOOK, secret(bundle, "Opaque"), true),
        (WEBHOOK, secret(bundle, TOKEN), false),
        (WEBHOOK, secret("strew-webhook-ca2", "Opaque"), false),
        (WEBHOOK, secret("a", TOKEN), false),
        (WEBHOOK, lease("strew-webhook"), true),
        (WEBHOOK, lease("strew-webhook-replicas"), true),
        (WEBHOOK, lease("strew-controller"), false),
        (CONTROLLER, lease("strew-controller"), true),
        (CONTROLLER, lease("strew-scheduler"), false),
    ];
    for (who, object, is_allowed) in cases {
        let user = format!("--as=system:serviceaccount:{SYSTEM}:{who}");
        let args = ["create", "--dry-run=server", "--filename=-", &user];
        let said = match stage.kubectl().run_with(&args, &object) {
            Ok(said) => said,
            Err(error) => format!("{error:#}"),
        };
        let is_refused = said.contains("ValidatingAdmissionPolicy");
        let reached = said.contains("created") || said.contains("already exists");
        ensure!(
            is_refused != is_allowed && reached == is_allowed,
            "{who}, {object}: {said}"
        );
    }
    Ok(())
}

/// Pods, which the controller's account may mark, price and take away, and nothing else: as the API server sees it, in
/// dry runs.
fn pods(stage: &Stage) -> anyhow::Result<()> {
    let here = stage.namespace.as_str();
    let marker = json!({"name": "front", "subset": "own"}).to_string();
    let made = |name: &str, namespace: &str, annotations: Value, on_node: Option<&str>| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": "a"}, "annotations": annotations},
            "spec": {
                "nodeName": on_node,
                "schedulerName": "nobody",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "a", "image": "a"}],
            },
        })
    };
    let marked = json!({MARKER: marker, "a": "b"});
    for pod in [
        made("plain", here, json!({"a": "b"}), None),
        made("marked", here, marked.clone(), None),
        made("placed", here, marked.clone(), Some("n1")),
        made("bounded", KUBE_SYSTEM, marked, None),
    ] {
        stage.kubectl().run_with(&["apply", "--filename=-"], &pod)?;
    }
    let key = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
    let cost = || put(&key(COST), "-100".into());
    let adopted = |more: Value| {
        let mut patch = put(&key(MARKER), marker.clone().into());
        if let Some(all) = patch.as_array_mut() {
            all.push(more[0].clone());
        }
        patch
    };
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": here, "uid": "1"}]);
    let label = put("/metadata/labels/app", "b".into());
    let image = put("/spec/containers/0/image", "evil".into());
    let changes = [
        ("plain", here, cost(), true),
        ("plain", here, adopted(label.clone()), true),
        ("plain", here, adopted(put(&key("a"), "c".into())), true),
        ("plain", here, image.clone(), false),
        ("plain", here, adopted(image), false),
        (
            "plain",
            here,
            put("/metadata/ownerReferences", owner.clone()),
            false,
        ),
        (
            "plain",
            here,
            adopted(put("/metadata/ownerReferences", owner)),
            false,
        ),
        (
            "plain",
            here,
            adopted(put("/metadata/finalizers", json!(["a.b/c"]))),
            false,
        ),
        (
            "plain",
            here,
            adopted(put("/metadata/labels/pod-template-hash", "1".into())),
            false,
        ),
        ("plain", here, label, false),
        ("plain", here, put(&key("a"), "c".into()), false),
        ("marked", here, remove("/metadata/annotations/a"), false),
        ("bounded", KUBE_SYSTEM, cost(), false),
    ];
    for (pod, namespace, patch, is_allowed) in changes {
        let (object, namespace) = (format!("pod/{pod}"), format!("--namespace={namespace}"));
        let patch = patch.to_string();
        let args = [
            "patch",
            &object,
            &namespace,
            "--type=json",
            "--patch",
            &patch,
        ];
        as_controller(stage, &args, &Value::Null, is_allowed)?;
    }
    for (pod, namespace, is_allowed) in [
        ("marked", here, true),
        ("plain", here, false),
        ("placed", here, false),
        ("bounded", KUBE_SYSTEM, false),
    ] {
        let (object, namespace) = (format!("pod/{pod}"), format!("--namespace={namespace}"));
        as_controller(
            stage,
            &["delete", &object, &namespace],
            &Value::Null,
            is_allowed,
        )?;
    }
    for (pod, namespace, is_allowed) in [("placed", here, true), ("bounded", KUBE_SYSTEM, false)] {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction?dryRun=All");
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        });
        let args = ["create", "--raw", &path, "--filename=-"];
        as_controller(stage, &args, &eviction, is_allowed)?;
    }
    let namespace = format!("--namespace={KUBE_SYSTEM}");
    stage.run(&["delete", "pod/bounded", &namespace]).map(drop)
}

/// One request in the name of the controller's account, in a dry run.
fn as_controller(
    stage: &Stage,
    args: &[&str],
    input: &Value,
    is_allowed: bool,
) -> anyhow::Result<()> {
    let user = format!("--as=system:serviceaccount:{SYSTEM}:{CONTROLLER}");
    let mut all = args.to_vec();
    all.push(&user);
    if !args.contains(&"--raw") {
        all.push("--dry-run=server");
    }
    let said = match stage.kubectl().run_with(&all, input) {
        Ok(_) => "done".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    let is_refused = said.contains("ValidatingAdmissionPolicy") && said.contains("denied request");
    ensure!(
        is_refused != is_allowed && (said == "done") == is_allowed,
        "{args:?}: {said}"
    );
    Ok(())
}

fn put(path: &str, value: Value) -> Value {
    json!([{"op": "add", "path": path, "value": value}])
}

fn remove(path: &str) -> Value {
    json!([{"op": "remove", "path": path}])
}

/// Changes that only an attacker makes.
fn refused() -> Vec<Try> {
    let secrets = json!([{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
        "operations": ["CREATE", "UPDATE"], "scope": "*",
    }]);
    let everything = json!({
        "name": "all.webhook.strew.dev",
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "scope": "*"}],
        "clientConfig": {"url": "https://192.0.2.7/admit/pods"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    let rules = "/webhooks/0/rules";
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": "1"}]);
    let mut all = vec![
        (WEBHOOK, MUTATING, put(rules, secrets.clone())),
        (
            WEBHOOK,
            MUTATING,
            put("/webhooks/0/rules/0/resources/-", "secrets".into()),
        ),
        (
            WEBHOOK,
            MUTATING,
            put("/webhooks/0/rules/0/operations/-", "UPDATE".into()),
        ),
        (WEBHOOK, MUTATING, put("/webhooks/-", everything.clone())),
        (WEBHOOK, MUTATING, put("/webhooks/0", everything)),
        (WEBHOOK, MUTATING, remove("/webhooks/0/namespaceSelector")),
        (
            WEBHOOK,
            MUTATING,
            remove("/webhooks/0/namespaceSelector/matchExpressions/0/values/1"),
        ),
        (
            WEBHOOK,
            MUTATING,
            put(
                "/webhooks/0/namespaceSelector/matchExpressions/0/operator",
                "In".into(),
            ),
        ),
        (WEBHOOK, MUTATING, remove("/webhooks/0/matchConditions")),
        (
            WEBHOOK,
            MUTATING,
            put(
                "/webhooks/0/clientConfig/url",
                "https://192.0.2.7/admit/pods".into(),
            ),
        ),
        (
            WEBHOOK,
            MUTATING,
            put("/webhooks/0/reinvocationPolicy", "IfNeeded".into()),
        ),
        (
            WEBHOOK,
            MUTATING,
            put("/metadata/ownerReferences", owner.clone()),
        ),
        (
            WEBHOOK,
            MUTATING,
            put("/metadata/annotations/a", "b".into()),
        ),
        (WEBHOOK, VALIDATING, put(rules, secrets)),
        (WEBHOOK, VALIDATING, remove("/webhooks/1")),
        (
            WEBHOOK,
            VALIDATING,
            put("/webhooks/1/failurePolicy", "Ignore".into()),
        ),
        (
            WEBHOOK,
            VALIDATING,
            put(
                "/webhooks/1/clientConfig/url",
                "https://192.0.2.7/validate".into(),
            ),
        ),
        (WEBHOOK, VALIDATING, remove("/metadata/labels")),
        (
            WEBHOOK,
            DEFINITION,
            put("/spec/versions/0/served", false.into()),
        ),
        (
            WEBHOOK,
            DEFINITION,
            put(
                "/spec/conversion/webhook/clientConfig/url",
                "https://192.0.2.7/convert".into(),
            ),
        ),
        (
            WEBHOOK,
            DEFINITION,
            put("/spec/names/shortNames", json!(["po"])),
        ),
        (WEBHOOK, DEFINITION, put("/metadata/ownerReferences", owner)),
    ];
    let of_webhook = all.iter().filter(|(_, object, _)| *object == MUTATING);
    let by_controller: Vec<Try> = of_webhook
        .map(|(_, object, patch)| (CONTROLLER, *object, patch.clone()))
        .collect();
    all.extend(by_controller);
    all
}

/// Changes that both accounts must make: the trust bundle, and the registration.
fn allowed(stage: &Stage) -> anyhow::Result<Vec<Try>> {
    let path = "/webhooks/0/clientConfig/caBundle";
    let bundle = stage.get(MUTATING)?["webhooks"][0]["clientConfig"]["caBundle"].take();
    // The same authority twice makes a different bundle.
    let ByteString(mut bundle) = serde_json::from_value(bundle).context("a bundle")?;
    bundle.extend(bundle.clone());
    let bundle = serde_json::to_value(ByteString(bundle))?;
    let mark = "/metadata/annotations/webhook.strew.dev~1registered-by";
    Ok(vec![
        (WEBHOOK, MUTATING, put(path, bundle.clone())),
        (WEBHOOK, MUTATING, put(mark, "another".into())),
        (
            WEBHOOK,
            MUTATING,
            put("/webhooks/0/failurePolicy", "Ignore".into()),
        ),
        (WEBHOOK, MUTATING, remove("/webhooks")),
        (WEBHOOK, VALIDATING, put(path, bundle.clone())),
        (
            WEBHOOK,
            DEFINITION,
            put("/spec/conversion/webhook/clientConfig/caBundle", bundle),
        ),
        (CONTROLLER, MUTATING, remove("/webhooks")),
    ])
}
