//! `strew lint`: fixes as patches and in files, and comments that accept findings.

use std::path::PathBuf;
use std::process::Command;

use crate::{json, stdout, strew};

/// A Deployment whose rollout ends uneven, as people write it: comments, a list without indentation.
const WEB: &str = "# the shop
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web   # public
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: nginx}]
      topologySpreadConstraints:
      - maxSkew: 1 # even
        minDomains: 2
        topologyKey: topology.kubernetes.io/zone # three of them
        whenUnsatisfiable: DoNotSchedule
        labelSelector:
          matchLabels: {app: web}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, minAvailable: 5}
";

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("lint-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(folder: &std::path::Path, text: &str) -> (PathBuf, String) {
    let path = folder.join("web.yaml");
    std::fs::write(&path, text).unwrap();
    let name = path.display().to_string();
    (path, name)
}

#[test]
fn a_fix_is_written_beside_comments() {
    let (path, name) = file(&folder("written"), WEB);
    let run = strew(&format!("lint {name}")).assert().code(1);
    let text = stdout(&run);
    for told in [
        "warning[rollout-uneven]: a rollout of the 5 pods ends at skew",
        "fix: matchLabelKeys: [pod-template-hash] (verified: 0 of 20 plays end uneven)",
        "fix: maxUnavailable: 1 (verified: the finding is gone, and no warning is new)",
        "2 findings can be fixed",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let run = strew(&format!("lint {name} --fix")).assert().code(0);
    let text = stdout(&run);
    assert!(text.contains("2 findings fixed in 1 file"), "{text}");
    let fixed = WEB
        .replace(
            "      - maxSkew: 1 # even\n",
            "      - maxSkew: 1 # even\n        matchLabelKeys: [pod-template-hash]\n",
        )
        .replace("minAvailable: 5", "maxUnavailable: 1");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), fixed);
    let run = strew(&format!("lint {name}")).assert().code(0);
    assert_eq!(stdout(&run), "1 file, 2 objects: nothing found\n");
    // Nothing is left to do.
    let run = strew(&format!("lint {name} --fix")).assert().code(0);
    assert!(stdout(&run).starts_with("nothing was written\n"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), fixed);
}

#[test]
fn a_fix_keeps_the_ends_of_lines() {
    let (path, name) = file(&folder("crlf"), &WEB.replace('\n', "\r\n"));
    let run = strew(&format!("lint {name} --fix")).assert().code(0);
    let text = stdout(&run);
    assert!(text.contains("2 findings fixed in 1 file"), "{text}");
    let fixed = std::fs::read_to_string(&path).unwrap();
    assert_eq!(fixed.matches('\n').count(), WEB.matches('\n').count() + 1);
    assert_eq!(fixed.matches("\r\n").count(), fixed.matches('\n').count());
}

#[test]
fn a_patch_is_what_git_applies() {
    let folder = folder("patched");
    let (path, _) = file(&folder, WEB);
    let mut lint = strew("lint web.yaml -o patch");
    lint = lint.current_dir(&folder);
    let patch = stdout(&lint.assert().code(1));
    std::fs::write(folder.join("all.patch"), &patch).unwrap();
    let applied = Command::new("git")
        .args(["apply", "--unsafe-paths", "all.patch"])
        .current_dir(&folder)
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap())
        .status();
    assert!(applied.unwrap().success(), "{patch}");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.contains("matchLabelKeys: [pod-template-hash]"),
        "{text}"
    );
    assert!(text.contains("maxUnavailable: 1"), "{text}");
}

#[test]
fn a_fix_of_json_is_json_and_of_standard_input_a_command() {
    let list = r#"{
  "apiVersion": "v1",
  "kind": "List",
  "items": [
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
     "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
       "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}}},
    {
      "apiVersion": "policy/v1",
      "kind": "PodDisruptionBudget",
      "metadata": {"name": "web", "namespace": "shop"},
      "spec": {
        "maxUnavailable": 0,
        "selector": {"matchLabels": {"app": "web"}}
      }
    }
  ]
}
"#;
    let folder = folder("json");
    let path = folder.join("list.json");
    std::fs::write(&path, list).unwrap();
    strew(&format!("lint {} --fix", path.display()))
        .assert()
        .code(0);
    let expected = list.replace("\"maxUnavailable\": 0", "\"maxUnavailable\": 1");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    let run = strew("lint - -o patch").stdin(list).assert().code(1);
    assert_eq!(
        stdout(&run),
        "# kubectl patch poddisruptionbudget web -n shop --type=merge -p '{\"spec\":{\"maxUnavailable\":1}}'\n"
    );
    let run = strew("lint - -o json").stdin(list).assert().code(1);
    let fix = &json(&run)["items"][0]["fix"];
    assert_eq!(fix["change"], "maxUnavailable: 1");
    assert_eq!(fix["edits"][0]["path"], "/spec/maxUnavailable");
}

/// In block style, as most charts have it: a selector with a slip, and a budget that allows nothing.
const BLOCKS: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  replicas: 6
  selector:
    matchLabels:
      app: shop
  template:
    metadata:
      labels:
        app: shop
    spec:
      containers:
        - name: main
          image: nginx
      topologySpreadConstraints:
        - labelSelector:
            # the front end
            matchLabels:
              app: shpo # its label
          maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: DoNotSchedule
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: shop
spec:
  minAvailable: 6
  selector:
    matchLabels:
      app: shop
";

#[test]
fn a_fix_in_block_style_changes_what_differs() {
    let (path, name) = file(&folder("blocks"), BLOCKS);
    let run = strew(&format!("lint {name} --fix")).assert().code(0);
    let text = stdout(&run);
    assert!(text.contains("2 findings fixed in 1 file"), "{text}");
    // What is left is a note, of which the sum tells.
    assert!(text.contains("note[one-domain-satisfies]"), "{text}");
    assert!(text.ends_with("1 file, 2 objects: 1 note\n"), "{text}");
    let fixed = std::fs::read_to_string(&path).unwrap();
    assert!(
        fixed.contains("              app: shop # its label\n"),
        "{fixed}"
    );
    assert!(fixed.contains("            # the front end\n"), "{fixed}");
    assert!(
        fixed.contains("          matchLabelKeys: [pod-template-hash]\n"),
        "{fixed}"
    );
    assert!(fixed.contains("  maxUnavailable: 1\n"), "{fixed}");
    let again = stdout(&strew(&format!("lint {name}")).assert().code(0));
    let again = again
        .trim_end()
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .to_owned();
    assert!(text.trim_end().ends_with(&again), "{text}\n{again}");
}

#[test]
fn what_is_said_after_a_fix_is_about_what_is_left() {
    // The API server's warning about the missing selector is gone with it.
    let missing = BLOCKS
        .split("        - labelSelector:")
        .next()
        .unwrap()
        .to_owned()
        + "        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: DoNotSchedule
";
    let (_, name) = file(&folder("left"), &missing);
    let text = stdout(&strew(&format!("lint {name} --fix")).assert().code(0));
    assert!(text.contains("1 finding fixed in 1 file"), "{text}");
    assert!(!text.contains("api-server-warning"), "{text}");
    assert!(text.ends_with("1 file, 1 object: 1 note\n"), "{text}");
}

#[test]
fn two_slips_of_one_field_have_one_fix() {
    let slip = BLOCKS.replace("app: shpo", "app: shop").replace(
        "          maxSkew: 1\n",
        "          matchLabelKeys:\n          - pod-template-hsah\n          maxSkew: 1\n",
    );
    let (path, name) = file(&folder("slips"), &slip);
    let patch = stdout(&strew("lint - -o patch").stdin(&*slip).assert().code(1));
    assert_eq!(
        patch.matches("kubectl patch deployment").count(),
        1,
        "{patch}"
    );
    assert!(!patch.contains("hsah"), "{patch}");
    let text = stdout(&strew(&format!("lint {name} --fix")).assert().code(0));
    assert!(!text.contains("to do by hand"), "{text}");
    let fixed = std::fs::read_to_string(&path).unwrap();
    assert!(fixed.contains("          - pod-template-hash\n"), "{fixed}");
    assert!(!fixed.contains("hsah"), "{fixed}");
}

#[test]
fn a_patch_has_the_whole_fix() {
    let patch = stdout(&strew("lint - -o patch").stdin(BLOCKS).assert().code(1));
    let deployment = patch.lines().find(|line| line.contains("deployment shop"));
    let deployment = deployment.unwrap_or_default();
    for part in ["/labelSelector/matchLabels", "/matchLabelKeys"] {
        assert!(deployment.contains(part), "{patch}");
    }
    let text = stdout(&strew("lint -").stdin(BLOCKS).assert().code(1));
    assert!(
        text.ends_with("2 findings can be patched: strew lint -o patch\n"),
        "{text}"
    );
}

#[test]
fn what_a_note_proposes_is_not_written() {
    let good = BLOCKS
        .replace("app: shpo", "app: shop")
        .replace("minAvailable: 6", "maxUnavailable: 1")
        .replace(
            "          maxSkew: 1\n",
            "          matchLabelKeys: [pod-template-hash]\n          maxSkew: 1\n",
        );
    let (path, name) = file(&folder("noted"), &good);
    let text = stdout(&strew(&format!("lint {name} --fix")).assert().code(0));
    assert!(
        text.contains("if that is not meant: minDomains: 2"),
        "{text}"
    );
    assert!(text.contains("nothing was written"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), good);
    let patch = stdout(&strew(&format!("lint {name} -o patch")).assert().code(0));
    assert_eq!(patch, "");
}

#[test]
fn a_comment_with_a_reason_accepts_a_finding() {
    let accepted = WEB
        .replace(
            "      - maxSkew",
            "      # strew:ignore rollout-uneven we roll out by hand\n      - maxSkew",
        )
        .replace(
            "minAvailable: 5}",
            "minAvailable: 5} # strew:ignore budget-allows-none drains ask us",
        );
    let run = strew("lint -").stdin(&*accepted).assert().code(0);
    assert_eq!(stdout(&run), "1 file, 2 objects: nothing found\n");
    let mut wrong = accepted.replace(" we roll out by hand", "");
    wrong = wrong.replace("budget-allows-none", "budget-allow-none");
    wrong = format!("# strew:ignore claim-shared once it was\n{wrong}");
    let run = strew("lint -").stdin(&*wrong).assert().code(1);
    let text = stdout(&run);
    for told in [
        "strew:ignore rollout-uneven has no reason, so it accepts nothing",
        "warning[rollout-uneven]",
        "strew:ignore budget-allow-none names no rule",
        "did you mean budget-allows-none?",
        "warning[budget-allows-none]",
        "strew:ignore claim-shared accepts nothing",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn the_rules_are_listed() {
    let text = stdout(&strew("lint --rules").assert().code(0));
    assert!(text.lines().count() > 60, "{text}");
    assert!(text.contains("rollout-stuck "), "{text}");
}
