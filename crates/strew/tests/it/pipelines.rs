//! The script of action.yml and of the GitLab template, run with this binary.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::{json, root, stdout, strew};

/// A temporary folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("strew-pipeline-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    fn git(&self, args: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let git = Command::new("git")
            .args(identity)
            .args(args)
            .current_dir(&self.0)
            .output();
        let git = git.unwrap();
        assert!(
            git.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&git.stderr)
        );
    }

    fn check(&self, environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new("sh");
        command
            .arg(root().join("deploy/pipeline/strew-check.sh"))
            .current_dir(&self.0)
            .env("STREW", snapbox::cmd::cargo_bin!("strew"))
            .env("LC_ALL", "C.UTF-8")
            .env_remove("GITHUB_STEP_SUMMARY")
            .envs(environment.iter().copied());
        command.output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
        matchLabelKeys: [pod-template-hash]
      containers:
      - {name: web, image: web, resources: {requests: {cpu: 500m}}}
";

const NODES: &str = "--zones 3 --nodes 6 --fail-on deploy";

#[test]
fn a_change_is_compared_with_its_base() {
    let folder = Folder::new("base");
    fs::create_dir(folder.0.join("deploy")).unwrap();
    let file = folder.0.join("deploy/web.yaml");
    fs::write(&file, DEPLOYMENT).unwrap();
    folder.git(&["init", "--quiet"]);
    folder.git(&["add", "deploy"]);
    folder.git(&["commit", "--quiet", "-m", "base"]);
    fs::write(&file, DEPLOYMENT.replace("replicas: 6", "replicas: 7")).unwrap();
    let summary = folder.0.join("job-summary.md");
    let environment = [
        ("STREW_FILES", "deploy/"),
        ("STREW_ARGS", NODES),
        ("STREW_BASE", "HEAD"),
        // The loss of a zone and scaling down warn; here the base matters.
        ("STREW_FAIL_ON_WARNINGS", "false"),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
    ];
    let run = folder.check(&environment);
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert_eq!(
        run.status.code(),
        Some(0),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let table = folder.read("strew-results/summary.md");
    for row in [
        "| `strew simulate` | ✅ passed | ",
        "| `strew lint` | ✅ passed | ",
        "| `strew diff` | ➖ | another spread than HEAD |",
        "<details><summary>Difference from HEAD</summary>",
    ] {
        assert!(table.contains(row), "{row}:\n{table}");
    }
    assert_eq!(folder.read("job-summary.md"), table);
    assert!(
        folder
            .read("strew-results/diff.txt")
            .contains("deployment/web -n shop")
    );
    assert!(
        folder
            .read("strew-results/junit.xml")
            .contains("<testsuite")
    );
    let mut failing = environment.to_vec();
    failing.push(("STREW_FAIL_ON_DIFF", "true"));
    assert_eq!(folder.check(&failing).status.code(), Some(1));
    fs::write(&file, DEPLOYMENT).unwrap();
    assert_eq!(folder.check(&failing).status.code(), Some(0));
    assert!(
        folder
            .read("strew-results/summary.md")
            .contains("| as HEAD |")
    );
    // A folder that the change adds does not end the comparison of the others.
    fs::create_dir(folder.0.join("more")).unwrap();
    let cache = DEPLOYMENT.replace("web", "cache");
    fs::write(folder.0.join("more/cache.yaml"), cache).unwrap();
    let row = |files| {
        let environment = [("STREW_FILES", files), environment[1], environment[2]];
        folder.check(&environment);
        let table = folder.read("strew-results/summary.md");
        let row = table.lines().find(|line| line.contains("strew diff"));
        row.unwrap_or_default().to_owned()
    };
    let all = row("deploy/ more/");
    assert!(
        all.contains("another spread than HEAD; not in it: more/"),
        "{all}"
    );
    assert!(folder.read("strew-results/diff.txt").contains("cache"));
    let new = row("more/");
    assert!(new.contains("not compared: not in HEAD: more/"), "{new}");
    let wrong = row("absent.yaml deploy/");
    assert!(
        wrong.contains("not compared: `strew simulate` could not"),
        "{wrong}"
    );
    failing[2].1 = "nowhere";
    assert_eq!(folder.check(&failing).status.code(), Some(2));
    assert!(
        folder
            .read("strew-results/summary.md")
            .contains("no revision nowhere: fetch it first")
    );
}

#[test]
fn what_does_not_hold_fails_and_says_why() {
    let folder = Folder::new("fails");
    // A space in a folder's name is no failure; spaces in STREW_FILES separate files.
    fs::write(
        folder.0.join("web.yaml"),
        DEPLOYMENT.replace("cpu: 500m", "cpu: 5000"),
    )
    .unwrap();
    let spread = fs::read_to_string(root().join("crates/strew/tests/files/spread-lint.yaml"));
    fs::write(folder.0.join("spread.yaml"), spread.unwrap()).unwrap();
    let run = folder.check(&[
        ("STREW_FILES", "web.yaml\n"),
        ("STREW_ARGS", NODES),
        ("STREW_LINT_FILES", "spread.yaml"),
    ]);
    assert_eq!(
        run.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&run.stdout)
    );
    let table = folder.read("strew-results/summary.md");
    assert!(
        table.contains("| `strew simulate` | ❌ failed |"),
        "{table}"
    );
    assert!(table.contains("| `strew lint` | ❌ failed |"), "{table}");
    assert!(!table.contains("strew diff"), "{table}");
    let sarif: Value = serde_json::from_str(&folder.read("strew-results/strew.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(!results.is_empty());

    let wrong = folder.check(&[("STREW_FILES", "absent.yaml"), ("STREW_LINT_FILES", "none")]);
    assert!(wrong.status.code() >= Some(2), "{wrong:?}");
    let table = folder.read("strew-results/summary.md");
    assert!(table.contains("absent.yaml"), "{table}");
    assert!(
        table.contains("| `strew lint` | ➖ | not asked for |"),
        "{table}"
    );
    assert!(folder.read("strew-results/junit.xml").contains("<error"));
    folder.check(&[("STREW_FILES", "absent.yaml")]);
    let table = folder.read("strew-results/summary.md");
    let cause =
        "| `strew lint` | ❌ could not run (exit code 3) | error: cannot read absent.yaml |";
    assert!(table.contains(cause), "{table}");
    let sarif = folder.read("strew-results/strew.sarif");
    assert!(sarif.contains("cannot read absent.yaml"), "{sarif}");
    assert!(folder.read("strew-results/lint.xml").contains("<error"));
    let nothing = folder.check(&[("STREW_FILES", " \n")]);
    assert_eq!(nothing.status.code(), Some(2));
    let no_program = folder.check(&[("STREW_FILES", "web.yaml"), ("STREW", "./absent")]);
    assert_eq!(no_program.status.code(), Some(3));
}

/// A runner clones as root, and the container of the check is somebody else: git refuses such a repository by itself.
#[test]
fn a_repository_of_another_user_is_compared() {
    let folder = Folder::new("owner");
    fs::write(folder.0.join("web.yaml"), DEPLOYMENT).unwrap();
    folder.git(&["init", "--quiet"]);
    folder.git(&["add", "web.yaml"]);
    folder.git(&["commit", "--quiet", "-m", "base"]);
    let project = folder.0.canonicalize().unwrap();
    let mut environment = vec![
        ("STREW_FILES", "web.yaml"),
        ("STREW_ARGS", NODES),
        ("STREW_BASE", "HEAD"),
        ("STREW_LINT_FILES", "none"),
        ("STREW_FAIL_ON_WARNINGS", "false"),
        // git's own switch for its tests.
        ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"),
    ];
    folder.check(&environment);
    let table = folder.read("strew-results/summary.md");
    assert!(
        table.contains("git says: fatal: detected dubious"),
        "{table}"
    );
    environment.push(("CI_PROJECT_DIR", project.to_str().unwrap()));
    let before = fs::read_dir(folder.0.join(".git")).unwrap().count();
    assert_eq!(folder.check(&environment).status.code(), Some(0));
    let table = folder.read("strew-results/summary.md");
    assert!(table.contains("| as HEAD |"), "{table}");
    let after = fs::read_dir(folder.0.join(".git")).unwrap().count();
    assert_eq!(before, after, "nothing is written into the repository");
}

/// The platform of this machine, as archives are named.
fn platform() -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{os}-{arch}")
}

/// A release in a folder: an archive with a program that only tells its name, and the checksums.
fn release(folder: &Folder, version: &str) -> String {
    let staged = format!("strew-{version}");
    fs::create_dir(folder.0.join(&staged)).unwrap();
    let program = folder.0.join(&staged).join("strew");
    fs::write(&program, "#!/bin/sh\necho downloaded\n").unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let archive = format!("strew-{version}-{}.tar.gz", platform());
    let pack = format!("tar -czf {archive} {staged} && sha256sum {archive} | tee SHA256SUMS");
    let packed = Command::new("sh")
        .args(["-c", &pack])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
    String::from_utf8(packed.stdout).unwrap()[..64].to_owned()
}

/// What action.yml does before the check, with a folder in the place of a release.
#[test]
fn a_release_is_installed_if_its_digest_is_right() {
    let folder = Folder::new("release");
    let digest = release(&folder, "9.9.9");
    let url = format!("file://{}", folder.0.canonicalize().unwrap().display());
    let to = folder.0.join("bin");
    let install = |sha256: &str, version: &str| {
        Command::new("sh")
            .arg(root().join("deploy/recipes/install.sh"))
            .arg(&to)
            .env("STREW_URL", &url)
            .env("STREW_VERSION", version)
            .env("STREW_SHA256", sha256)
            .output()
            .unwrap()
    };
    let wrong = install(&"0".repeat(64), "9.9.9");
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        told.contains(&digest) && told.contains("nothing is installed"),
        "{told}"
    );
    assert!(!to.exists());
    assert_eq!(install("", "9.9.8").status.code(), Some(1));
    // By the digest that is given, then by the file of checksums, over the program that is there.
    for sha256 in [digest.as_str(), ""] {
        let done = install(sha256, "9.9.9");
        assert!(done.status.success(), "{done:?}");
        let run = Command::new(to.join("strew")).output().unwrap();
        assert_eq!(run.stdout, b"downloaded\n");
    }
    let sums = fs::read_to_string(folder.0.join("SHA256SUMS")).unwrap();
    fs::write(
        folder.0.join("SHA256SUMS"),
        sums.replace(&digest, &"1".repeat(64)),
    )
    .unwrap();
    assert_eq!(install("", "9.9.9").status.code(), Some(1));
}

/// The template of GitLab, its first step run by a shell: the script of its runners ends at the first failure.
#[test]
fn the_template_takes_an_archive_by_its_digest() {
    let folder = Folder::new("template");
    let digest = release(&folder, "9.9.9");
    let archive = folder.0.join(format!("strew-9.9.9-{}.tar.gz", platform()));
    let template = yaml("deploy/gitlab/strew.gitlab-ci.yml");
    let step = template[".strew"]["script"][0].as_str().unwrap();
    let run = |sha256: &str| {
        let script = format!("set -e\n{step}strew");
        let url = format!("file://{}", archive.canonicalize().unwrap().display());
        Command::new("sh")
            .args(["-c", &script])
            .env("STREW_ARCHIVE", url)
            .env("STREW_SHA256", sha256)
            .output()
            .unwrap()
    };
    let wrong = run(&"0".repeat(64));
    assert!(!wrong.status.success());
    let told = String::from_utf8_lossy(&wrong.stdout).into_owned();
    assert!(!told.contains("downloaded"), "{told}");
    let right = run(&digest);
    assert_eq!(right.stdout, b"downloaded\n", "{right:?}");
}

/// The commonest mistake places every pod; a pipeline must see it.
#[test]
fn a_warning_fails_unless_it_must_not() {
    let folder = Folder::new("warns");
    let mistake = root().join("crates/strew/tests/cases/mis/in.yaml");
    fs::copy(mistake, folder.0.join("web.yaml")).unwrap();
    let mut environment = vec![("STREW_FILES", "web.yaml"), ("STREW_LINT_FILES", "none")];
    assert_eq!(folder.check(&environment).status.code(), Some(1));
    let table = folder.read("strew-results/summary.md");
    for told in [
        "| `strew simulate` | ❌ failed | failed: 1 warning (--fail-on warnings) |",
        "warning[constraint-counts-none]",
        "did you mean app=web?",
    ] {
        assert!(table.contains(told), "{told}:\n{table}");
    }
    let junit = folder.read("strew-results/junit.xml");
    assert!(
        junit.contains("classname=\"constraint-counts-none\""),
        "{junit}"
    );
    environment.push(("STREW_FAIL_ON_WARNINGS", "false"));
    assert_eq!(folder.check(&environment).status.code(), Some(0));
    let table = folder.read("strew-results/summary.md");
    assert!(table.contains("; 1 warning |"), "{table}");
}

#[test]
fn findings_are_sarif_with_their_places() {
    let file = "crates/strew/tests/files/spread-lint.yaml";
    let found = json(&strew(&format!("lint {file} -o json")).assert().code(1));
    let sarif = json(&strew(&format!("lint {file} -o sarif")).assert().code(1));
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let items = found["items"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), items.len());
    let ids: BTreeSet<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["id"].as_str().unwrap())
        .collect();
    for (result, item) in results.iter().zip(items) {
        assert_eq!(result["ruleId"], item["code"]);
        assert_eq!(result["level"], item["severity"]);
        assert!(ids.contains(result["ruleId"].as_str().unwrap()));
        let message = result["message"]["text"].as_str().unwrap();
        assert!(
            message.contains(item["message"].as_str().unwrap()),
            "{message}"
        );
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], item["place"]["file"]);
        assert_eq!(place["region"]["startLine"], item["place"]["line"]);
    }
    let clean = json(
        &strew("lint examples/elastic.yaml -o sarif")
            .assert()
            .code(0),
    );
    assert_eq!(clean["runs"][0]["results"], serde_json::json!([]));
}

fn yaml(path: &str) -> Value {
    let text = fs::read_to_string(root().join(path)).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The variables that the script reads.
fn variables() -> BTreeSet<String> {
    let script = fs::read_to_string(root().join("deploy/pipeline/strew-check.sh")).unwrap();
    let named = script.split("${").skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    named.filter(|name| name.starts_with("STREW")).collect()
}

#[test]
fn action_template_and_hooks_give_what_the_script_and_the_program_take() {
    let known = variables();
    assert_eq!(known.len(), 8, "{known:?}");
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().unwrap();
    let check = steps.iter().find(|step| step["id"] == "check").unwrap();
    let given: BTreeSet<String> = check["env"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(given, known);
    assert!(
        check["run"]
            .as_str()
            .unwrap()
            .contains("deploy/pipeline/strew-check.sh")
    );
    // Each input is used, and nothing else is.
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let (_, runs) = text.split_once("\nruns:").unwrap();
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let used: BTreeSet<&str> = runs
        .split("inputs.")
        .skip(1)
        .map(|rest| rest.split(|c| !is_word(c)).next().unwrap())
        .collect();
    let inputs = action["inputs"].as_object().unwrap();
    let defined: BTreeSet<&str> = inputs.keys().map(String::as_str).collect();
    assert_eq!(used, defined);

    let template = yaml("deploy/gitlab/strew.gitlab-ci.yml");
    let given = template[".strew"]["variables"].as_object().unwrap();
    let of_download = ["STREW_IMAGE", "STREW_ARCHIVE", "STREW_SHA256"];
    for name in given.keys().filter(|name| name.starts_with("STREW")) {
        let is_known = known.contains(name) || of_download.contains(&name.as_str());
        assert!(is_known, "{name}");
    }
    assert!(
        template[".strew"]["script"][1]
            .as_str()
            .unwrap()
            .ends_with(" strew-check.sh")
    );

    for hook in yaml(".pre-commit-hooks.yaml").as_array().unwrap() {
        let entry = hook["entry"].as_str().unwrap();
        let command = entry.strip_prefix("strew ").unwrap();
        let help = stdout(&strew(&format!("{command} --help")).assert().code(0));
        assert!(help.contains("Usage: strew"), "{help}");
    }
    // The page lists the action's inputs.
    let page = fs::read_to_string(root().join("docs/pipelines.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `STREW"));
    let cells: Vec<Vec<&str>> = rows
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    let told: BTreeSet<String> = cells
        .iter()
        .map(|c| c[1].trim_matches('`').to_owned())
        .collect();
    assert_eq!(told, known);
    for input in cells
        .iter()
        .map(|c| c[2].trim_matches('`'))
        .filter(|input| !input.is_empty())
    {
        assert!(defined.contains(input), "{input}");
    }
}

/// The local command, as on the page.
#[test]
fn the_command_of_the_page_runs() {
    let page = fs::read_to_string(root().join("docs/pipelines.md")).unwrap();
    let (_, rest) = page.split_once("```sh\n").unwrap();
    let (command, _) = rest.split_once("```").unwrap();
    let folder = Folder::new("page");
    let binary = Path::new(snapbox::cmd::cargo_bin!("strew"));
    let run = Command::new("sh")
        .args(["-c", command])
        .current_dir(root())
        .env("STREW", binary)
        .env("STREW_OUT", &folder.0)
        .output()
        .unwrap();
    assert!(run.status.code().is_some_and(|code| code < 2), "{run:?}");
    assert!(folder.read("summary.md").starts_with("### strew\n"));
}
