//! Bounds on reading, writing and growing.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use crate::{stderr, stdout, strew};

const APP: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
";

/// A folder of its own for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn with(self, name: &str, text: &str) -> Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }
}

#[test]
fn a_link_out_of_a_folder_is_refused_and_one_inside_is_read_once() {
    let folder = Folder::new("bounds-links").with("app.yaml", APP);
    symlink("app.yaml", folder.path("again.yaml")).unwrap();
    let run = strew(&format!("simulate {} --nodes 3", folder.name()));
    assert!(stdout(&run.assert().code(0)).contains("3 replicas"));

    let outside = Folder::new("bounds-outside").with("secret.yaml", "password: hunter2\n");
    symlink(outside.path("secret.yaml"), folder.path("link.yaml")).unwrap();
    let run = strew(&format!("simulate {} --nodes 3", folder.name()));
    let told = stderr(&run.assert().code(2));
    assert!(told.contains("link.yaml: it links to"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");

    let device = Folder::new("bounds-device");
    symlink("/dev/zero", device.path("zero.yaml")).unwrap();
    let told = stderr(
        &strew(&format!("simulate {}", device.name()))
            .assert()
            .code(2),
    );
    assert!(told.contains("it is no regular file"), "{told}");
}

#[test]
fn a_named_pipe_is_refused_and_a_pipe_of_the_shell_is_read() {
    let folder = Folder::new("bounds-pipe");
    let pipe = folder.path("pipe.yaml");
    assert!(
        Process::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for files in [pipe, folder.name()] {
        let told = stderr(&strew(&format!("simulate {files}")).assert().code(2));
        assert!(
            told.contains("it is no regular file (standard input is read as -)"),
            "{told}"
        );
    }
    let run = strew("simulate /dev/stdin --nodes 3").stdin(APP).assert();
    assert!(stdout(&run.code(0)).contains("3 replicas"));
}

#[test]
fn files_are_read_up_to_a_bound_in_all() {
    let folder = Folder::new("bounds-sizes")
        .with("a.yaml", APP)
        .with("b.yaml", &APP.replace("web", "api"));
    let run = |size: &str| strew(&format!("lint {} --max-input {size}", folder.name())).assert();
    let told = stderr(&run("400").code(2));
    assert!(
        told.contains(
            "b.yaml: with the files before it, it has more than 400 bytes (--max-input allows more)"
        ),
        "{told}"
    );
    run("1Ki").code(0);
    let told = stderr(&run("much").code(2));
    assert!(told.contains("--max-input"), "{told}");
}

#[test]
fn a_file_of_nuls_is_given_up_at_once() {
    let strew = snapbox::cmd::cargo_bin!("strew");
    let mut child = Process::new(strew)
        .args(["simulate", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Far more than the bound: a reader without a bound would read all of it.
    let mut stdin = child.stdin.take().unwrap();
    let block = vec![0_u8; 1 << 20];
    let n_taken = (0..64)
        .take_while(|_| stdin.write_all(&block).is_ok())
        .count();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(n_taken < 2, "{n_taken} MiB");
    assert!(String::from_utf8_lossy(&output.stderr).contains("byte 0 is NUL"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn no_result_replaces_its_own_input() {
    let folder = Folder::new("bounds-output").with("app.yaml", APP);
    let app = folder.path("app.yaml");
    // A hard link is the same file under another name.
    let link = folder.path("link.html");
    fs::hard_link(&app, &link).unwrap();
    for output in [&app, &link] {
        for option in ["--html", "--events"] {
            let run = strew(&format!("simulate {app} {option} {output}"));
            let told = stderr(&run.assert().code(2));
            assert!(told.contains("would replace its own input"), "{told}");
            assert_eq!(fs::read_to_string(&app).unwrap(), APP);
        }
    }
    let run = strew(&format!("simulate {} --html {app}", folder.name()));
    let told = stderr(&run.assert().code(2));
    assert!(told.contains("would replace its own input"), "{told}");
}

#[test]
fn more_pods_or_seeds_than_a_simulation_holds_are_refused() {
    let many = APP.replace("replicas: 3", "replicas: 2147483647");
    let told = stderr(&strew("simulate - --nodes 3").stdin(many).assert().code(2));
    assert!(
        told.contains("Deployment default/web asks for 2147483647 pods; a simulation holds at most 1000000 in all"),
        "{told}"
    );
    let told = stderr(
        &strew("simulate scenarios --seeds 4294967295")
            .assert()
            .code(2),
    );
    assert!(told.contains("4294967295 is not in 1..=1000000"), "{told}");
}

#[test]
fn a_simulation_that_needs_more_memory_than_there_is_does_not_begin() {
    let many = APP.replace("replicas: 3", "replicas: 200000");
    let run = |args: &str| {
        strew(&format!("simulate - --nodes 3 {args}"))
            .stdin(many.clone())
            .assert()
    };
    let told = stderr(&run("--max-memory 100Mi").code(2));
    assert!(
        told.contains("200000 pods and 3 nodes, 1 of 1 runs at a time, take about "),
        "{told}"
    );
    assert!(told.contains(", and 100 MiB are available"), "{told}");
    assert!(
        told.contains("--max-memory plays it all the same"),
        "{told}"
    );
    strew("simulate - --nodes 3 --max-memory 100Mi")
        .stdin(APP)
        .assert()
        .code(0);

    let scenario = "---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: many}
spec: {seeds: 3, nodeGroups: [{name: n, size: 2, template: {status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}}]}
";
    let files = format!("{many}{scenario}");
    let told = stderr(
        &strew("simulate - --jobs 2 --max-memory 1Gi")
            .stdin(files)
            .assert()
            .code(2),
    );
    assert!(
        told.contains("200000 pods and 2 nodes, 2 of 3 runs at a time, take about "),
        "{told}"
    );
}

/// A patch of a label by which the ReplicaSet finds its pods, in a WorkloadSpread before and after the Deployment: pods
/// get their subset without the patch, and their number is the requested one.
#[test]
fn a_patch_that_would_make_pods_without_end_is_not_applied() {
    let spread = "
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web, uid: 1-2}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  subsets: [{name: a, patch: {metadata: {labels: {app: other}}}}]
";
    for files in [format!("{APP}---{spread}"), format!("{spread}---\n{APP}")] {
        let run = strew("simulate - --nodes 3 --until deploy")
            .stdin(files)
            .assert();
        let told = stdout(&run.code(0));
        let expected =
            "! deploy: workloadspread/web: the patch of subset a is not applied: it changes labels";
        assert!(told.contains(expected), "{told}");
        assert!(told.contains("3 replicas"));
    }
}
