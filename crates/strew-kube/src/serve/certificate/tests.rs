use super::*;

/// A folder that goes with its value.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("strew-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    Folder(path)
}

fn pair() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = folder("certificate-errors");
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.0.join(name));
    let source = Certificate::Files {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    let (good, its_key) = pair();
    let (_, other_key) = pair();
    let nothing = String::new();
    let cases = [
        (None, None, "cannot read DIR/tls.crt: No such file"),
        (Some(&good), None, "cannot read DIR/tls.key: No such file"),
        (
            Some(&nothing),
            Some(&its_key),
            "DIR/tls.crt holds no certificate in PEM",
        ),
        (
            Some(&good),
            Some(&good),
            "DIR/tls.key holds no private key in PEM",
        ),
        (
            Some(&good),
            Some(&other_key),
            "the key of DIR/tls.key does not go with the certificate of DIR/tls.crt: keys may not be consistent",
        ),
    ];
    for (its, with, expected) in cases {
        for (path, text) in [(&certificate, its), (&key, with)] {
            if let Some(text) = text {
                std::fs::write(path, text).unwrap();
            }
        }
        let error = Shown::new(source.clone(), ADDRESS).unwrap_err();
        let text = whole_text(&error).replace(&folder.0.display().to_string(), "DIR");
        assert!(text.starts_with(expected), "{text}");
    }
    std::fs::write(&key, its_key).unwrap();
    assert!(Shown::new(source, ADDRESS).is_ok());
}

#[test]
fn a_changed_certificate_is_taken_over_and_a_broken_one_is_not() {
    let folder = folder("certificate-change");
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.0.join(name));
    let write = |(of, with): (String, String)| {
        std::fs::write(&certificate, of).unwrap();
        std::fs::write(&key, with).unwrap();
    };
    write(pair());
    let source = Certificate::Files {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    let shown = Shown::new(source, ADDRESS).unwrap();
    let first = shown.whole();
    let mut seen = None;
    let mut look = || shown.take_over(Pem::read(&certificate, &key), &mut seen);
    look();
    assert!(Arc::ptr_eq(&first, &shown.whole()), "the same files");
    write(("half written".to_owned(), String::new()));
    look();
    assert!(Arc::ptr_eq(&first, &shown.whole()), "broken files");
    write(pair());
    look();
    assert_ne!(first.cert, shown.whole().cert);
}

#[tokio::test(start_paused = true)]
async fn files_are_looked_at_again_until_told_to_stop() {
    let folder = folder("certificate-follow");
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.0.join(name));
    let write = |(of, with): (String, String)| {
        std::fs::write(&certificate, of).unwrap();
        std::fs::write(&key, with).unwrap();
    };
    write(pair());
    let source = Certificate::Files {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    let shown = Arc::new(Shown::new(source, ADDRESS).unwrap());
    let first = shown.shown();
    let stop = CancellationToken::new();
    let following = tokio::spawn(Arc::clone(&shown).follow(stop.clone()));
    write(pair());
    let began = tokio::time::Instant::now();
    while shown.shown() == first {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(began.elapsed() < Duration::from_secs(30), "not taken over");
    }
    stop.cancel();
    following.await.unwrap();
}

#[test]
fn a_certificate_of_our_own_names_host_and_address() {
    for host in ["node-1", "", "kn\u{f6}te"] {
        let key = self_signed(host, ADDRESS).unwrap();
        assert_eq!(key.cert.len(), 1);
        let has = |name: &[u8]| key.cert[0].windows(name.len()).any(|part| part == name);
        assert!(has(b"localhost") && has(&[127, 0, 0, 1]), "{host}");
        assert!(host != "node-1" || has(b"node-1"));
    }
}
