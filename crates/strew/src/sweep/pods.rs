//! What clusters want of a Job and its pods: labels, credentials, nodes, priority, a queue.

use clap::Args;
use serde_json::{Map, Value, json};
use strew_manifest::validation::text;

/// The label by which Kueue finds the LocalQueue of a Job.
const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// Keys that strew, Kubernetes or the flag `--queue` sets.
const TAKEN: [&str; 4] = [
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "batch.kubernetes.io/job-name",
    super::job::RESULTS_IN,
];

/// Effects of taints.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The flags.
#[derive(Args, Debug)]
#[command(next_help_heading = "The Job's pods")]
pub(super) struct SweepPodArgs {
    /// A label of the Job, its pods and its ConfigMap; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<Pair>,
    /// An annotation of the Job and its pods; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = annotation)]
    annotation: Vec<Pair>,
    /// A Secret of the namespace with the credentials of the image's registry; may be repeated
    #[arg(long, value_name = "NAME", value_parser = name)]
    image_pull_secret: Vec<String>,
    /// A taint of nodes that pods tolerate; may be repeated
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]", value_parser = toleration)]
    toleration: Vec<Value>,
    /// A label of the nodes that pods may take; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = selected)]
    node_selector: Vec<Pair>,
    /// The PriorityClass of the Job's pods
    #[arg(long, value_name = "NAME", value_parser = name)]
    pod_priority_class: Option<String>,
    /// The LocalQueue of Kueue that admits the Job, which is suspended until then
    #[arg(long, value_name = "NAME", value_parser = name)]
    queue: Option<String>,
    /// How long the Job and its pods stay after the end, in seconds [default: until they are deleted]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u32>,
}

/// A key and its value.
type Pair = (String, String);

impl SweepPodArgs {
    /// Adds the labels of all objects.
    pub(super) fn label(&self, metadata: &mut Value) {
        put(&mut metadata["labels"], &self.label);
    }

    /// Sets the fields of the Job and of its pods.
    pub(super) fn apply(&self, job: &mut Value) {
        if let Some(queue) = &self.queue {
            job["metadata"]["labels"][QUEUE] = queue.as_str().into();
            job["spec"]["suspend"] = true.into();
        }
        if let Some(ttl) = self.ttl {
            job["spec"]["ttlSecondsAfterFinished"] = ttl.into();
        }
        let template = &mut job["spec"]["template"];
        put(&mut template["metadata"]["annotations"], &self.annotation);
        let spec = &mut template["spec"];
        put(&mut spec["nodeSelector"], &self.node_selector);
        if let Some(tolerations) = spec["tolerations"].as_array_mut() {
            tolerations.extend(self.toleration.iter().cloned());
        }
        if let Some(class) = &self.pod_priority_class {
            spec["priorityClassName"] = class.as_str().into();
        }
        let secrets = self.image_pull_secret.iter();
        let secrets: Vec<Value> = secrets.map(|name| json!({"name": name})).collect();
        if !secrets.is_empty() {
            spec["imagePullSecrets"] = secrets.into();
        }
        put(&mut job["metadata"]["annotations"], &self.annotation);
        // Indexing a field that is absent makes it.
        for at in ["/spec/template/metadata", "/spec/template/spec"] {
            if let Some(Value::Object(fields)) = job.pointer_mut(at) {
                fields.retain(|_, value| !value.is_null());
            }
        }
    }
}

fn put(onto: &mut Value, pairs: &[Pair]) {
    if pairs.is_empty() {
        return;
    }
    if !onto.is_object() {
        *onto = Map::new().into();
    }
    for (key, value) in pairs {
        onto[key] = value.as_str().into();
    }
}

fn no_faults(faults: &[String]) -> Result<(), String> {
    match faults {
        [] => Ok(()),
        faults => Err(faults.join("; ")),
    }
}

fn pair(text: &str) -> Result<Pair, String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE".to_owned())?;
    no_faults(&text::qualified_name(key))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A key and a value that a label may have.
fn selected(text: &str) -> Result<Pair, String> {
    let (key, value) = pair(text)?;
    no_faults(&text::label_value(&value))?;
    Ok((key, value))
}

fn free(pair: Pair) -> Result<Pair, String> {
    match pair.0.as_str() {
        QUEUE => Err("--queue sets it".to_owned()),
        key if TAKEN.contains(&key) => Err(format!("{key} is set already: strew sweep needs it")),
        _ => Ok(pair),
    }
}

fn label(text: &str) -> Result<Pair, String> {
    selected(text).and_then(free)
}

fn annotation(text: &str) -> Result<Pair, String> {
    pair(text).and_then(free)
}

fn name(text: &str) -> Result<String, String> {
    no_faults(&text::dns_subdomain(text))?;
    Ok(text.to_owned())
}

/// In the form of `kubectl taint`.
fn toleration(text: &str) -> Result<Value, String> {
    let (taint, effect) = match text.rsplit_once(':') {
        Some((taint, effect)) => (taint, Some(effect)),
        None => (text, None),
    };
    if effect.is_some_and(|effect| !EFFECTS.contains(&effect)) {
        return Err(format!("expected an effect of {}", EFFECTS.join(", ")));
    }
    let (key, value) = match taint.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (taint, None),
    };
    no_faults(&text::qualified_name(key))?;
    let mut toleration = json!({"key": key});
    match value {
        Some(value) => {
            no_faults(&text::label_value(value))?;
            toleration["operator"] = "Equal".into();
            toleration["value"] = value.into();
        }
        None => toleration["operator"] = "Exists".into(),
    }
    if let Some(effect) = effect {
        toleration["effect"] = effect.into();
    }
    Ok(toleration)
}
