//! What clusters want of the pods of every part: one flag of `strew install` and one value of the chart for each field.
//!
//! [`SETTINGS`] is the table of both. A value is put over the default as Helm does it: mappings are merged, `null` removes
//! a field, everything else replaces it. Then the whole Deployment is checked by the API server's rules.

use anyhow::anyhow;
use clap::Args;
use serde_json::{Map, Value, json};
use strew_manifest::defaults::default_template;
use strew_manifest::field::{FieldPath, PathSegment};
use strew_manifest::read::{KubeObject, embedded};
use strew_manifest::validation::pod::validate_template;
use strew_manifest::validation::text;

use crate::failure::Failure;

/// Pods of these classes outside kube-system need a ResourceQuota where a cluster limits the classes, as GKE does.
const CRITICAL: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// The annotation of pods with the SHA-256 of the configuration that they mount; its name comes from Helm's guide.
pub(super) const CONFIGURATION_HASH: &str = "checksum/config";

/// Each flag with the field of the Deployment that it sets, which is the name of the chart's value, too, but for
/// annotations (`podAnnotations`) and arguments (`extraArgs`). Arguments of one process of several, such as
/// `--webhook-extra-arg` (`webhookExtraArgs`), are flags of their component.
const SETTINGS: [(&str, &str); 9] = [
    ("--image-pull-secret", "imagePullSecrets"),
    ("--priority-class", "priorityClassName"),
    ("--resources", "resources"),
    ("--node-selector", "nodeSelector"),
    ("--tolerations", "tolerations"),
    ("--affinity", "affinity"),
    ("--security-context", "securityContext"),
    ("--pod-annotations", "annotations"),
    ("--extra-arg", "args"),
];

/// The settings of the pods of a part. YAML is written in one line or in several.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Pods")]
pub(super) struct PodArgs {
    /// A Secret of the namespace with the credentials of the image's registry; may be repeated
    #[arg(long, value_name = "NAME", value_parser = name)]
    image_pull_secret: Vec<String>,
    /// The PriorityClass; none if it is empty. For a critical one a ResourceQuota is printed as well, which clusters that
    /// limit these classes ask for
    #[arg(long, value_name = "NAME", default_value = "system-cluster-critical", value_parser = name_or_none)]
    priority_class: String,
    /// Requests and limits of each container, over the default ones: {limits: {memory: 4Gi}}
    #[arg(long, value_name = "YAML", value_parser = yaml)]
    resources: Option<Value>,
    /// Labels of the nodes: {pool: infra}
    #[arg(long, value_name = "YAML", value_parser = yaml)]
    node_selector: Option<Value>,
    /// Taints of nodes that pods tolerate: [{key: infra, operator: Exists}]
    #[arg(long, value_name = "YAML", value_parser = yaml)]
    tolerations: Option<Value>,
    /// Affinity of the pods
    #[arg(long, value_name = "YAML", value_parser = yaml)]
    affinity: Option<Value>,
    /// The security context of the pods, over the default one, which leaves the user to the image and the platform:
    /// {runAsUser: 65532}
    #[arg(long, value_name = "YAML", value_parser = yaml)]
    security_context: Option<Value>,
    /// Annotations of the pods: {prometheus.io/scrape: "true"}
    #[arg(long, value_name = "YAML", value_parser = yaml)]
    pod_annotations: Option<Value>,
    /// A further argument of each process of the component, such as --v=4; may be repeated
    #[arg(long, value_name = "ARGUMENT", value_parser = argument, allow_hyphen_values = true)]
    extra_arg: Vec<String>,
}

impl PodArgs {
    /// The class of the pods; `None`: they have none.
    fn class(&self) -> Option<&str> {
        Some(self.priority_class.as_str()).filter(|class| !class.is_empty())
    }

    /// The spec of a ResourceQuota that permits pods of the class; `None`: the class needs none.
    ///
    /// Each part has its own, so that one can be uninstalled. All of them count the pods of the class in the namespace,
    /// so the number is one that is never reached.
    pub(super) fn quota(&self) -> Option<Value> {
        let class = self.class().filter(|class| CRITICAL.contains(class))?;
        Some(json!({
            "hard": {"pods": "1000"},
            "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": [class]},
            ]},
        }))
    }

    /// Puts the settings into the template of a Deployment.
    ///
    /// # Errors
    /// A flag has a value that the API server, or the restricted standard of strew's namespace, refuses.
    pub(super) fn apply(&self, deployment: &mut Value) -> Result<(), Failure> {
        let template = &mut deployment["spec"]["template"];
        let mut spec = Map::new();
        let secrets = self.image_pull_secret.iter();
        let secrets: Vec<Value> = secrets.map(|name| json!({"name": name})).collect();
        if !secrets.is_empty() {
            spec.insert("imagePullSecrets".to_owned(), secrets.into());
        }
        if let Some(class) = self.class() {
            spec.insert("priorityClassName".to_owned(), class.into());
        }
        for (field, value) in [
            ("nodeSelector", &self.node_selector),
            ("tolerations", &self.tolerations),
            ("affinity", &self.affinity),
            ("securityContext", &self.security_context),
        ] {
            if let Some(value) = value {
                spec.insert(field.to_owned(), value.clone());
            }
        }
        put_over(&mut template["spec"], spec.into());
        if let Some(annotations) = &self.pod_annotations {
            if annotations.get(CONFIGURATION_HASH).is_some() {
                return Err(wrong(
                    "annotations",
                    &format!("{CONFIGURATION_HASH} is strew's"),
                ));
            }
            let annotations = json!({"annotations": annotations});
            put_over(&mut template["metadata"], annotations);
        }
        for container in template["spec"]["containers"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            if let Some(resources) = &self.resources {
                put_over(container, json!({"resources": resources}));
            }
            if let Some(args) = container["args"].as_array_mut() {
                args.extend(self.extra_arg.iter().map(|arg| Value::from(arg.as_str())));
            }
            drop_empty(container);
        }
        drop_empty(&mut template["spec"]);
        drop_empty(&mut template["metadata"]);
        restricted(&deployment["spec"]["template"]["spec"]["securityContext"])?;
        valid(deployment)
    }
}

/// Puts `value` over `onto` as Helm does it with values.
fn put_over(onto: &mut Value, value: Value) {
    let Value::Object(fields) = value else {
        *onto = value;
        return;
    };
    if !onto.is_object() {
        *onto = json!({});
    }
    for (field, value) in fields {
        match value {
            Value::Null => {
                onto.as_object_mut().and_then(|onto| onto.remove(&field));
            }
            value => put_over(&mut onto[field], value),
        }
    }
}

/// Removes fields without content, which the chart does not write either.
fn drop_empty(at: &mut Value) {
    if let Value::Object(fields) = at {
        let is_setting = |name: &String| SETTINGS.iter().any(|(_, field)| field == name);
        let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
        fields.retain(|name, value| !(is_setting(name) && is_empty(value)));
    }
}

/// The namespace has the restricted standard: with another security context no pod would be created.
///
/// Source: Kubernetes' Pod Security Standards, v1.36.
fn restricted(context: &Value) -> Result<(), Failure> {
    let profile = &context["seccompProfile"]["type"];
    let user = context["runAsUser"].as_i64();
    let wrongs = [
        (context["runAsNonRoot"] != true, "runAsNonRoot is not true"),
        (context["runAsUser"] == 0, "runAsUser is 0, which is root"),
        (
            user.is_some_and(|user| !(0..=i64::from(i32::MAX)).contains(&user)),
            "runAsUser is not a number from 0 to 2147483647",
        ),
        (
            profile != "RuntimeDefault" && profile != "Localhost",
            "seccompProfile.type is neither RuntimeDefault nor Localhost",
        ),
    ];
    match wrongs.iter().find(|(is_wrong, _)| *is_wrong) {
        None => Ok(()),
        Some((_, why)) => Err(wrong(
            "securityContext",
            &format!(
                "{why}; such pods are refused, by strew's namespace with the restricted standard if not before"
            ),
        )),
    }
}

/// Reads the Deployment as the API server does.
fn valid(deployment: &Value) -> Result<(), Failure> {
    let object = embedded(deployment.clone()).map_err(|faults| {
        let faults = faults
            .first()
            .map(|fault| (&fault.path, &fault.diagnostic.message));
        faults.map_or_else(|| wrong("", "unreadable"), |(path, why)| at(path, why))
    })?;
    let KubeObject::Deployment(mut object) = object else {
        return Err(wrong("", "not a Deployment"));
    };
    let Some(spec) = &mut object.spec else {
        return Err(wrong("", "a Deployment without a spec"));
    };
    default_template(&mut spec.template);
    let mut errors = Vec::new();
    let path = FieldPath::root().child("spec").child("template");
    validate_template(&spec.template, &path, &mut errors);
    match errors.first() {
        None => Ok(()),
        Some(error) => Err(at(&error.path, &error.to_string())),
    }
}

/// The error of a field, with the flag that set it.
fn at(path: &FieldPath, why: &str) -> Failure {
    let fields = path.steps().iter().filter_map(|step| match step {
        PathSegment::Name(name) => Some(name.as_ref()),
        PathSegment::Index(_) | PathSegment::Key(_) => None,
    });
    let mut settings = fields.filter(|name| SETTINGS.iter().any(|(_, field)| field == name));
    wrong(settings.next().unwrap_or_default(), why)
}

fn wrong(field: &str, why: &str) -> Failure {
    let flag = SETTINGS.iter().find(|(_, of)| *of == field);
    let flag = flag.map_or("the Deployment", |(flag, _)| flag);
    Failure::input(anyhow!("{flag}: {why}"))
}

fn yaml(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| format!("not YAML: {error}"))
}

/// The name of a Secret or of a PriorityClass.
fn name(text: &str) -> Result<String, String> {
    let wrong = text::dns_subdomain(text);
    match wrong.is_empty() {
        true => Ok(text.to_owned()),
        false => Err(wrong.join("; ")),
    }
}

fn name_or_none(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    name(text)
}

pub(super) fn argument(text: &str) -> Result<String, String> {
    let is_flag = text
        .strip_prefix("--")
        .is_some_and(|flag| flag.starts_with(|c: char| c.is_ascii_lowercase()));
    match is_flag {
        true => Ok(text.to_owned()),
        false => Err("expected a flag of the process, such as --v=4".to_owned()),
    }
}
