//! Certificates, and the objects that say which are trusted, on an API server in memory.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use strew_kube::authority::rotator::Setup;
use strew_kube::authority::{CertificateRotator, Lifetimes, Place};
use strew_kube::clock::Clock;
use strew_kube::serve::Exchange;
use strew_model::time::Span;
use strew_wire::config::LeaderElection;
use strew_wire::lease::Settings;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::FakeApiServer;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SECRETS: &str = "/api/v1/secrets";
const NAME: &str = "strew-webhook.strew-system.svc";

/// The webhook's configurations and definitions, as `strew install` prints them.
fn install(world: &FakeApiServer) {
    let client = json!({"service": {"namespace": "strew-system", "name": "strew-webhook"}});
    for (collection, kind) in [
        (MUTATING, "MutatingWebhookConfiguration"),
        (VALIDATING, "ValidatingWebhookConfiguration"),
    ] {
        world.set(
            collection,
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": "strew-webhook"},
                "webhooks": [{"name": "pods.strew.dev", "clientConfig": client}],
            }),
        );
    }
    world.set(
        DEFINITIONS,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "workloadspreads.apps.kruise.io"},
            "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}},
        }),
    );
}

/// A process that keeps certificates; it ends with its value.
struct Process {
    exchange: Exchange,
    end: CancellationToken,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

fn start(world: &FakeApiServer, identity: &str, lifetimes: Lifetimes) -> Process {
    let election = LeaderElection {
        resource_name: "strew-webhook".to_owned(),
        resource_namespace: "strew-system".to_owned(),
        ..LeaderElection::default()
    };
    let setup = Setup {
        place: Place {
            namespace: "strew-system".to_owned(),
            service: "strew-webhook".to_owned(),
            url: None,
        },
        names: vec![NAME.to_owned()],
        lifetimes,
        manages: true,
        election: Settings::of(&election, identity.to_owned()),
        seed: 1,
    };
    let (exchange, end) = (Exchange::default(), CancellationToken::new());
    let client = world.connection().client;
    let rotator = CertificateRotator::new(setup, client, Clock::new(), exchange.clone());
    tokio::spawn(rotator.run(end.clone()));
    Process { exchange, end }
}

/// The `caBundle` of each object; empty if it has none.
fn trusted(world: &FakeApiServer) -> [String; 3] {
    let bundle = |collection: &str, path: &str| {
        let objects = world.objects(collection);
        let bundle = objects[0].pointer(path).cloned().unwrap_or_default();
        let bundle: ByteString = serde_json::from_value(bundle).unwrap_or_default();
        String::from_utf8(bundle.0).expect("PEM")
    };
    let path = "/webhooks/0/clientConfig/caBundle";
    let of_definition = "/spec/conversion/webhook/clientConfig/caBundle";
    [
        bundle(MUTATING, path),
        bundle(VALIDATING, path),
        bundle(DEFINITIONS, of_definition),
    ]
}

/// Whether all of them accept what a process shows.
fn accept(world: &FakeApiServer, process: &Process) -> Result<(), String> {
    let shown = process.exchange.certificate().ok_or("nothing is shown")?;
    for bundle in trusted(world) {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots
                .add(certificate.expect("a certificate"))
                .expect("a certificate");
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        let name = ServerName::try_from(NAME).expect("a name");
        let now = UnixTime::now();
        let verified = verifier.verify_server_cert(&shown, &[], &name, &[], now);
        verified.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "not so in time: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn whoever_comes_first_makes_the_authority_and_all_trust_it() {
    let world = FakeApiServer::default();
    install(&world);
    let first = start(&world, "first", Lifetimes::default());
    let second = start(&world, "second", Lifetimes::default());
    wait("both are accepted", || {
        accept(&world, &first).is_ok() && accept(&world, &second).is_ok()
    })
    .await;
    let secrets = world.objects(SECRETS);
    assert_eq!(secrets.len(), 1);
    let data = secrets[0]["data"].as_object().unwrap();
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    assert_eq!(keys, ["bundle.crt", "ca.crt", "ca.key", "since"]);
    let shown = |process: &Process| process.exchange.certificate().unwrap();
    assert_ne!(shown(&first), shown(&second), "each has its own");
}

#[tokio::test]
async fn what_somebody_overwrites_is_put_right() {
    let world = FakeApiServer::default();
    install(&world);
    let process = start(&world, "only", Lifetimes::default());
    wait("it is accepted", || accept(&world, &process).is_ok()).await;
    install(&world);
    assert!(trusted(&world).iter().any(String::is_empty));
    wait("it is accepted again", || accept(&world, &process).is_ok()).await;
    // An authority with another authority's key signs nothing any more.
    let mut secret = world.objects(SECRETS).remove(0);
    secret["data"]["ca.key"] = secret["data"]["ca.crt"].clone();
    let before = secret["data"]["ca.crt"].clone();
    world.set(SECRETS, secret);
    wait("another one signs", || {
        world.objects(SECRETS)[0]["data"]["ca.crt"] != before
    })
    .await;
    wait("it is accepted", || accept(&world, &process).is_ok()).await;
    let previous = world.objects(SECRETS)[0]["data"]["previous-ca.crt"].clone();
    assert_eq!(previous, before, "what is shown elsewhere stays trusted");
}

/// At any moment the certificate that is shown is accepted by each `caBundle` of that moment.
#[tokio::test]
async fn an_authority_is_exchanged_while_it_is_used() {
    let world = FakeApiServer::default();
    install(&world);
    let lifetimes = Lifetimes {
        authority: Span::from_secs(6),
        serving: Span::from_secs(3),
        overlap: Span::from_secs(1),
    };
    let first = start(&world, "first", lifetimes);
    let second = start(&world, "second", lifetimes);
    wait("both are accepted", || {
        accept(&world, &first).is_ok() && accept(&world, &second).is_ok()
    })
    .await;
    let of_world = |key: &str| world.objects(SECRETS)[0]["data"][key].clone();
    let begun = of_world("ca.crt");
    let (start, mut n_trusted) = (Instant::now(), Vec::new());
    while start.elapsed() < Duration::from_secs(9) {
        for process in [&first, &second] {
            let accepted = accept(&world, process);
            assert_eq!(accepted, Ok(()), "after {:?}", start.elapsed());
        }
        let count = trusted(&world)[0].matches("BEGIN").count();
        if n_trusted.last() != Some(&count) {
            n_trusted.push(count);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_ne!(of_world("ca.crt"), begun, "another one signs");
    assert!(n_trusted.starts_with(&[1, 2, 1]), "{n_trusted:?}");
    let empty = Value::Null;
    assert_ne!(of_world("since"), empty);
}
