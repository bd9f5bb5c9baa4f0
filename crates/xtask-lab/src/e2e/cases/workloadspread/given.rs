//! Certificates from files: an expired one, an untrusted one, and a good one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::ByteString;
use serde_json::json;
use xtask_lab::lab::until;

use crate::e2e::stage::{PAUSE, SOON, Stage};

/// The webhook reads the files again every ten seconds.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(30);

/// The webhook reports what is wrong with a certificate, and does not count as ready until it is replaced.
pub(crate) fn given(stage: &mut Stage) -> anyhow::Result<()> {
    let folder = stage.lab.folder().to_owned();
    certificate(&folder, 2021)?;
    let mut spreading = stage.installed_spreading(&["--static-registration"], &[])?;
    let files = [
        "--webhook-cert-file=given.crt",
        "--webhook-key-file=given.key",
    ];
    stage.add_webhook(&mut spreading, &files)?;
    let says = |what: &str| spreading.webhooks[0].process.output().contains(what);
    until(
        "it says that the certificate has ended",
        SOON,
        PAUSE,
        || {
            let is_ready = spreading.service.n_ready() > 0;
            ensure!(!is_ready, "it is ready with a certificate that has ended");
            Ok(says("certificate (the certificate has ended)").then_some(()))
        },
    )?;

    let good = certificate(&folder, 2120)?;
    until("it is ready", TAKEN_OVER_WITHIN, PAUSE, || {
        Ok((spreading.service.n_ready() == 1).then_some(()))
    })?;
    // The API server's CA bundle trusts no authority.
    until("it says that it is not trusted", SOON, PAUSE, || {
        let tried = stage.try_a_pod(&stage.namespace);
        ensure!(tried.is_err(), "nobody is trusted, and a pod was admitted");
        let asked = says("the client does not accept the certificate that it is shown");
        Ok(asked.then_some(()))
    })?;

    for kind in ["mutating", "validating"] {
        let configuration = format!("{kind}webhookconfiguration/strew-webhook");
        let hooks = stage.get(&configuration)?["webhooks"].take();
        let n = hooks.as_array().context("it has webhooks")?.len();
        let trust = |number: usize| {
            let path = format!("/webhooks/{number}/clientConfig/caBundle");
            json!({"op": "add", "path": path, "value": good})
        };
        let patch = json!((0..n).map(trust).collect::<Vec<_>>()).to_string();
        let args = ["patch", &configuration, "--type=json", "--patch", &patch];
        stage.run(&args)?;
    }
    stage.until_called()
}

/// Writes a certificate that is valid from 2020 to the begin of year `until`, with its key; returns it in PEM, as an
/// API server's CA bundle holds it.
fn certificate(folder: &Path, until: i32) -> anyhow::Result<ByteString> {
    let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()])?;
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = rcgen::KeyPair::generate()?;
    let pem = params.self_signed(&key)?.pem();
    // The key first: the webhook does not take over a certificate whose key does not exist yet.
    fs::write(folder.join("given.key"), key.serialize_pem())?;
    fs::write(folder.join("given.crt"), &pem)?;
    Ok(ByteString(pem.into_bytes()))
}
