//! The Indexed Job of a sweep, and the ConfigMap with its files.

use std::path::{Component, Path};

use anyhow::anyhow;
use serde_json::{Value, json};
use strew_manifest::quantity::Quantity;

use super::JobArgs;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::manifest::Manifest;

/// The container of each pod.
pub(super) const CONTAINER: &str = "simulate";

/// The mount path of the files; commands run there, so that they use the names of the files on the user's machine.
const FILES: &str = "/sweep";

/// The path of results, if a volume takes them.
const RESULTS: &str = "/results";

/// The largest size of a ConfigMap. Source: Kubernetes' validation of ConfigMaps (`MaxSecretSize`).
const FILES_MAX: usize = 1 << 20;

/// How often an index may fail: because of a lost node, an eviction, too little memory.
const FAILURES_MAX: u32 = 6;

/// How long a pod stays on a node that does not respond; the default of Kubernetes is 300 s.
const UNREACHABLE_SECONDS: u32 = 30;

/// The group of a volume for results: that of strew's image.
const GROUP: u32 = 65532;

/// The number of hexadecimal digits of the digest in a name.
const DIGITS: usize = 10;

/// The annotation of the Job that says whether results are in the logs of pods.
pub(super) const RESULTS_IN: &str = "sweep.strew.dev/results";

/// The value of that annotation for logs.
pub(super) const LOGS: &str = "logs";

/// A file of the sweep.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SweepFile {
    /// Below the current folder.
    pub(super) path: String,
    pub(super) text: String,
}

/// What the pods of a Job do.
pub(super) struct Played {
    /// What is said above the Job.
    pub(super) comment: &'static str,
    /// How many of them.
    pub(super) completions: u32,
    /// The arguments of each, in which Kubernetes expands `$(JOB_COMPLETION_INDEX)`.
    pub(super) words: Vec<String>,
    /// Annotations of the Job.
    pub(super) annotations: Vec<(&'static str, String)>,
}

/// Arguments in which Kubernetes expands nothing: it expands `$(NAME)`, and reads `$$` as `$`.
pub(super) fn literal(words: Vec<String>) -> Vec<String> {
    { words.into_iter() }
        .map(|word| word.replace('$', "$$"))
        .collect()
}

/// Refuses names that are not below the current folder. The folder itself is refused, too: the mounted ConfigMap has
/// further files in it.
///
/// # Errors
/// Such a name.
pub(super) fn check_names(names: &[String]) -> Result<(), Failure> {
    let is_below = |name: &&String| {
        let mut parts = Path::new(name.as_str()).components();
        let is_inner =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        parts.clone().all(is_inner) && *name != "-" && parts.any(|part| part != Component::CurDir)
    };
    match names.iter().find(|name| !is_below(name)) {
        None => Ok(()),
        Some(name) => {
            let error = anyhow!("{name} is not below the current folder");
            let hint = "a sweep takes files and folders below it, so that the commands that play a breach again work in it";
            Err(Failure::input(error).with_hint(hint))
        }
    }
}

/// The files in the form of a ConfigMap.
///
/// # Errors
/// One is not text.
pub(super) fn files(inputs: &[Input]) -> Result<Vec<SweepFile>, Failure> {
    let each = inputs.iter().map(|input| {
        let name = &input.name;
        let path = Path::new(name);
        let parts = path.components().filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        });
        let path = parts.collect::<Vec<_>>().join("/");
        let text = String::from_utf8(input.bytes.clone());
        let text = text.map_err(|_| Failure::input(anyhow!("{name} is no UTF-8")))?;
        Ok(SweepFile { path, text })
    });
    each.collect()
}

/// The name of a sweep.
pub(super) fn name(inputs: &str, shards: u32) -> String {
    let digits = strew_suite::digest::of_text(&format!("{inputs} {shards}"));
    let digits: String = digits.chars().take(DIGITS).collect();
    format!("sweep-{digits}")
}

/// An amount of memory as a quantity of Kubernetes.
pub(super) fn memory(text: &str) -> Result<String, String> {
    let quantity = Quantity::parse(text).map_err(|error| error.to_string())?;
    match quantity.signum() {
        1 => Ok(text.to_owned()),
        _ => Err("must be greater than 0".to_owned()),
    }
}

/// The ConfigMap and the Job.
///
/// # Errors
/// The files are too large.
pub(super) fn manifests(
    args: &JobArgs,
    name: &str,
    files: Vec<SweepFile>,
    played: &Played,
) -> Result<Vec<Manifest>, Failure> {
    let size: usize = files.iter().map(|file| file.text.len()).sum();
    if size > FILES_MAX && args.files_claim.is_none() {
        let error = anyhow!("the files have {size} bytes, and a ConfigMap holds {FILES_MAX}");
        let hint = "--files-claim NAME takes them from a volume; strew snapshot FILE writes dumps without what decides nothing";
        return Err(Failure::input(error).with_hint(hint));
    }
    let held = args.files_claim.is_none().then(|| {
        Manifest::with_comment("The files that are played.", config_map(args, name, &files))
    });
    let job = Manifest::with_comment(played.comment, job(args, name, &files, played));
    Ok(held.into_iter().chain([job]).collect())
}

fn metadata(args: &JobArgs, name: &str) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {"app.kubernetes.io/name": "strew-sweep", "app.kubernetes.io/part-of": "strew"},
    });
    if let Some(namespace) = &args.namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    args.pods.label(&mut metadata);
    metadata
}

fn key(index: usize) -> String {
    format!("file-{index}")
}

fn config_map(args: &JobArgs, name: &str, files: &[SweepFile]) -> Value {
    let data = files.iter().enumerate();
    let data = data.map(|(index, file)| (key(index), Value::from(file.text.as_str())));
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(args, name),
        "immutable": true,
        "data": data.collect::<serde_json::Map<_, _>>(),
    })
}

fn job(args: &JobArgs, name: &str, files: &[SweepFile], played: &Played) -> Value {
    let shards = played.completions;
    let parallelism = args.parallelism.map_or(shards, |n| n.get().min(shards));
    let mut metadata = metadata(args, name);
    let results = args.results_claim.as_deref().unwrap_or(LOGS);
    metadata["annotations"] = json!({RESULTS_IN: results});
    for (key, value) in &played.annotations {
        metadata["annotations"][key] = value.as_str().into();
    }
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": shards,
            "parallelism": parallelism,
            "backoffLimitPerIndex": FAILURES_MAX,
            "template": {
                "metadata": {"labels": metadata["labels"]},
                "spec": pod(args, name, files, &played.words),
            },
        },
    });
    args.pods.apply(&mut job);
    job
}

fn pod(args: &JobArgs, name: &str, files: &[SweepFile], words: &[String]) -> Value {
    let mut volumes = vec![files_volume(args, name, files)];
    // The user is the image's, or the one that the platform assigns.
    let mut security = json!({
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    if let Some(claim) = &args.results_claim {
        volumes.push(json!({"name": "results", "persistentVolumeClaim": {"claimName": claim}}));
        security["fsGroup"] = GROUP.into();
    }
    let stays = |taint: &str| {
        json!({
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": UNREACHABLE_SECONDS,
        })
    };
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": security,
        "tolerations": [
            stays("node.kubernetes.io/not-ready"),
            stays("node.kubernetes.io/unreachable"),
        ],
        "containers": [container(args, name, words)],
        "volumes": volumes,
    });
    if args.spread != "none" {
        // A lost zone must not block the other pods: its nodes are tainted, and do not count.
        pod["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": args.spread,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"batch.kubernetes.io/job-name": name}},
        }]);
    }
    pod
}

fn files_volume(args: &JobArgs, name: &str, files: &[SweepFile]) -> Value {
    if let Some(claim) = &args.files_claim {
        let claim = json!({"claimName": claim, "readOnly": true});
        return json!({"name": "files", "persistentVolumeClaim": claim});
    }
    let items = files.iter().enumerate();
    let items: Vec<Value> = items
        .map(|(index, file)| json!({"key": key(index), "path": file.path}))
        .collect();
    json!({"name": "files", "configMap": {"name": name, "items": items}})
}

fn container(args: &JobArgs, name: &str, words: &[String]) -> Value {
    let mut words = words.to_vec();
    words.extend([
        "--jobs".to_owned(),
        args.cpu.to_string(),
        "--quiet".to_owned(),
    ]);
    let mut files = json!({"name": "files", "mountPath": FILES, "readOnly": true});
    if args.files_claim.is_some() {
        files["subPath"] = name.into();
    }
    let mut mounts = vec![files];
    if args.results_claim.is_some() {
        let file = format!("{RESULTS}/shard-$(JOB_COMPLETION_INDEX).json");
        words.extend(["--out".to_owned(), file]);
        mounts.push(json!({"name": "results", "mountPath": RESULTS, "subPath": name}));
    }
    let memory = &args.pod_memory;
    json!({
        "name": CONTAINER,
        "image": args.image,
        "args": words,
        "workingDir": FILES,
        "volumeMounts": mounts,
        "resources": {
            "requests": {"cpu": args.cpu.to_string(), "memory": memory},
            "limits": {"memory": memory},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    })
}
