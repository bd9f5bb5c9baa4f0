//! Which clients the webhook answers: API servers with a certificate, if `--client-ca-file` is set.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use serde_json::{Value, json};
use xtask_lab::lab::https::ask;
use xtask_lab::lab::until;

use crate::e2e::stage::{PAUSE, SOON, Stage};

const PATIENCE: Duration = Duration::from_secs(10);

const REVIEW: &str = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
    "uid": "forged", "operation": "CREATE", "namespace": "shop", "resource": {"resource": "pods"},
    "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"}, "object": {}}}"#;

/// The requests: some need a certificate, the others are open to every client.
const ASKED: [(&str, &str, u16); 6] = [
    ("/admit/pods", REVIEW, 401),
    ("/admit/pods-end", REVIEW, 401),
    ("/admit/own", REVIEW, 401),
    ("/validate/workloadspreads", REVIEW, 401),
    ("/admit/pods", "no JSON", 401),
    ("/convert/workloadspreads", "{}", 400),
];

/// One API server shows a certificate; the lab's own API server does not.
pub(crate) fn callers(stage: &mut Stage) -> anyhow::Result<()> {
    let folder = stage.lab.folder().to_owned();
    let flag = configured(&folder)?;
    let (_other, url) = stage.lab.start_other_server(&[], &[flag])?;
    let mut spreading = stage.installed_spreading(&[], &[])?;
    let flags = [
        "--client-ca-file=clients.crt",
        "--client-name=an-api-server",
    ];
    stage.add_webhook(&mut spreading, &flags)?;
    stage.until_ready(&spreading, 1)?;
    let webhook = &spreading.webhooks[0];
    for (path, body, code) in ASKED {
        let headers = [("Content-Type", "application/json")];
        let reply = ask(
            webhook.port,
            PATIENCE,
            "POST",
            path,
            &headers,
            body.as_bytes(),
        )?;
        let reply = reply.with_context(|| format!("{path}: no answer"))?;
        ensure!(
            reply.status == code,
            "{path}: {} {}",
            reply.status,
            reply.body
        );
    }
    for path in ["/livez", "/readyz"] {
        let reply = ask(webhook.pages, PATIENCE, "GET", path, &[], b"")?;
        let status = reply.map(|reply| reply.status);
        ensure!(status == Some(200), "{path}: {status:?}");
    }

    // A replica registers after its own reviews, which need no certificate.
    let mut said = String::new();
    let refused = until(
        "an API server without a certificate is refused",
        SOON,
        PAUSE,
        || {
            said = stage
                .try_a_pod(&stage.namespace)
                .err()
                .map_or_else(String::new, |e| format!("{e:#}"));
            Ok(said
                .contains("asked for the client to provide credentials")
                .then_some(()))
        },
    );
    refused.with_context(|| said.clone())?;
    let at = format!("--server={url}");
    let text = fs::read_to_string(stage.file("ws-elastic.yaml"))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let others = objects
        .into_iter()
        .filter(|object| object["kind"] != "Node");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": others.collect::<Vec<_>>()});
    let namespace = format!("--namespace={}", stage.namespace);
    let apply = ["apply", "--server-side", "--filename=-", &namespace];
    if stage.kubectl().run_with(&apply, &list).is_ok() {
        bail!("a WorkloadSpread is stored by an API server that shows no certificate");
    }
    let with = [&[at.as_str()], &apply[..]].concat();
    stage.kubectl().run_with(&with, &list)?;
    // An API server shows no certificate to a webhook that converts.
    stage.get("workloadspreads.v1alpha1.apps.kruise.io/front")?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "asked", "namespace": stage.namespace,
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1", "controller": true}],
        },
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let create = [at.as_str(), "create", "--dry-run=server", "--filename=-"];
    stage.kubectl().run_with(&create, &pod)?;
    Ok(())
}

/// Writes an authority, a certificate that it has signed, and the configuration of an API server that shows it; returns
/// the flag.
fn configured(folder: &Path) -> anyhow::Result<String> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "who calls webhooks");
    let key = KeyPair::generate()?;
    fs::write(folder.join("clients.crt"), params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "an-api-server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    let [certificate_file, key_file, kubeconfig, configuration] = [
        "caller.crt",
        "caller.key",
        "webhooks.kubeconfig",
        "admission.json",
    ]
    .map(|name| folder.join(name));
    fs::write(&certificate_file, certificate.pem())?;
    fs::write(&key_file, key.serialize_pem())?;
    let user = json!({"client-certificate": certificate_file, "client-key": key_file});
    let users =
        json!({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]});
    fs::write(&kubeconfig, users.to_string())?;
    let plugin = |name: &str| {
        json!({"name": name, "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": kubeconfig,
        }})
    };
    let plugins = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"].map(plugin);
    let admission = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": plugins,
    });
    fs::write(&configuration, admission.to_string())?;
    Ok(format!(
        "--admission-control-config-file={}",
        configuration.display()
    ))
}
