//! What the end-to-end cases do before a control plane stands.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// In the place of Go: it tells each build, and its control plane does nothing but fail.
const GO: &str = r#"#!/bin/sh
[ "$1" = version ] && echo go1.26 && exit
echo build >>"$XDG_CACHE_HOME/builds"
while [ "$1" != -o ]; do shift; done
sleep 0.3
printf '#!/bin/sh\nexit 1\n' >"$2" && chmod +x "$2"
"#;

#[test]
fn the_control_plane_is_built_once_for_all_workers() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("one-control-plane");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let go = folder.join("go");
    fs::write(&go, GO).unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
    let xtask = env!("CARGO_BIN_EXE_xtask-lab");
    let listed = Command::new(xtask)
        .args(["e2e", "--list"])
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Command::new(xtask)
        .args(["e2e", "--at-once", "2"])
        .args(names.take(2))
        .env("PATH", path)
        .env("XDG_CACHE_HOME", &folder)
        .env(xtask::BUILT, "1")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("keys could not be made"), "{error}");
    let builds = fs::read_to_string(folder.join("builds")).unwrap();
    assert_eq!(builds, "build\n", "{error}");
}
