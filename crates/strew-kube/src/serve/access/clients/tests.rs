use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use rustls::pki_types::PrivateKeyDer;

use super::*;

/// An authority, and what it signs.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { pem, issuer }
    }

    /// A certificate for a user in a group, and its key.
    pub(crate) fn sign(
        &self,
        user: &str,
        group: &str,
        purpose: ExtendedKeyUsagePurpose,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let names = &mut params.distinguished_name;
        names.push(DnType::CommonName, user);
        names.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (certificate.der().clone(), key)
    }
}

#[test]
fn only_the_clusters_client_certificates_name_users() {
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let (ours, others) = (Authority::new("kubernetes"), Authority::new("kubernetes"));
    let clients = Clients::of_authority(&ours.pem).unwrap();
    let admin = User {
        name: "admin".to_owned(),
        uid: String::new(),
        groups: vec!["system:masters".to_owned(), AUTHENTICATED.to_owned()],
        extra: BTreeMap::new(),
    };
    let cases = [
        (&ours, "admin", ClientAuth, Some(admin)),
        (&ours, "", ClientAuth, None),
        (&ours, "admin", ServerAuth, None),
        (&others, "admin", ClientAuth, None),
    ];
    for (authority, name, purpose, user) in cases {
        let (certificate, _) = authority.sign(name, "system:masters", purpose.clone());
        let found = clients.user_of(&[certificate]);
        assert_eq!(found, user, "{name:?} {purpose:?}");
    }
    assert_eq!(clients.user_of(&[]), None);
}

#[test]
fn an_authority_that_is_none_is_refused() {
    for pem in [
        "",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let error = Clients::of_authority(pem).unwrap_err();
        assert!(matches!(error, ClientsError::Broken(_)), "{pem}");
    }
}

/// A CA is replaced while the process runs: what the new one signs counts, what the old one signed no longer does. A file
/// that is half written changes nothing.
#[tokio::test(start_paused = true)]
async fn a_replaced_authority_is_taken_over() {
    let folder = std::env::temp_dir().join(format!("strew-clients-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("ca.crt");
    let [old, new] = ["old", "new"].map(Authority::new);
    let [of_old, of_new] = [&old, &new].map(|authority| {
        let purpose = ExtendedKeyUsagePurpose::ClientAuth;
        authority.sign("apiserver", "group", purpose).0
    });
    std::fs::write(&file, &old.pem).unwrap();
    let clients = Arc::new(Clients::of_file(file.clone()).await.unwrap());
    let known = |certificate: &CertificateDer<'static>| {
        let user = clients.user_of(std::slice::from_ref(certificate));
        user.is_some()
    };
    assert_eq!((known(&of_old), known(&of_new)), (true, false));
    std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA").unwrap();
    let half = clients.take_over(clients.source.read().await);
    assert!(matches!(half, Err(ClientsError::Broken(_))));
    assert_eq!((known(&of_old), known(&of_new)), (true, false));
    let stop = CancellationToken::new();
    let following = tokio::spawn(Arc::clone(&clients).follow(stop.clone()));
    std::fs::write(&file, &new.pem).unwrap();
    let began = tokio::time::Instant::now();
    while !known(&of_new) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(began.elapsed() < Duration::from_secs(30), "not taken over");
    }
    assert!(!known(&of_old));
    stop.cancel();
    following.await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn the_authority_is_read_from_its_config_map() {
    use kube::client::Body;
    let authority = Authority::new("kubernetes");
    let map = |key: &str| serde_json::json!({"metadata": {}, "data": {key: authority.pem}});
    let refused = |code: u16, reason: &str| {
        serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "configmaps: no", "reason": reason, "code": code,
        })
    };
    let cases = [
        (200, map(KEY), None),
        (200, map("other"), Some("has no client-ca-file")),
        (
            403,
            refused(403, "Forbidden"),
            Some("extension-apiserver-authentication-reader"),
        ),
        // Nothing is wrong with the rights then.
        (404, refused(404, "NotFound"), Some("does not exist: ")),
        (
            500,
            refused(500, "InternalError"),
            Some("cannot read ConfigMap kube-system/extension-apiserver-authentication"),
        ),
    ];
    for (code, answer, problem) in cases {
        let (service, mut handle) =
            tower_test::mock::pair::<http::Request<Body>, http::Response<Body>>();
        let answers = async {
            let (request, send) = handle.next_request().await.unwrap();
            let path =
                "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
            assert_eq!(request.uri().path(), path);
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            let answer = http::Response::builder().status(code).body(body);
            send.send_response(answer.unwrap());
        };
        let client = kube::Client::new(service, "default");
        let (clients, ()) = tokio::join!(Clients::of_cluster(client), answers);
        let told = clients.err().map(|error| error.to_string());
        match problem {
            None => assert_eq!(told, None),
            Some(part) => {
                let told = told.unwrap();
                assert!(told.contains(part), "{told}");
                assert_eq!(told.contains("Role "), code == 403, "{told}");
            }
        }
    }
}
