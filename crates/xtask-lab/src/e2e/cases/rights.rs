//! Rights: each rule of each role that `strew install` prints is needed, and all together are enough.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{Component, free_ports, until};

use crate::e2e::parts::SYSTEM;
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of};

/// The exit code of a failure outside of the process.
const EXIT_OUTSIDE: i32 = 3;

/// The label of the case's roles and bindings that are in no namespace.
const LABEL: &str = "strew.dev/e2e-each-rule";

/// The beginning of a process's error; the missing rights follow.
const DENIED: &str = "the API server does not allow: ";

/// The log line of a process that has checked its rights.
const SERVES: &str = "health and metrics on https://";

/// Flags of printed containers that a process of this case does not take over.
const CONTAINER_FLAGS: [&str; 3] = ["--config=", "--secure-port=", "--webhook-port="];

/// A part of strew as `strew install` prints it.
struct Part {
    /// The name of its service account and its Deployment.
    name: String,
    /// The arguments of its container, without [`CONTAINER_FLAGS`].
    args: Vec<String>,
    rules: Vec<Rule>,
}

/// A rule of a role.
struct Rule {
    /// Whether it is one of a ClusterRole.
    is_cluster: bool,
    value: Value,
}

/// Starts each part once with all of its rules, and once without each of them. Accounts with one rule less exist side by
/// side, so nothing waits for a role to change.
pub(super) fn each_rule(stage: &mut Stage) -> anyhow::Result<()> {
    let parts = parts(stage)?;
    let namespace = stage.namespace.clone();
    let objects: Vec<Value> = parts
        .iter()
        .flat_map(|part| {
            (0..=part.rules.len()).flat_map(|left_out| part.without(left_out, &namespace))
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let result = stage
        .kubectl()
        .run_with(&["create", "--filename=-"], &list)
        .map(drop)
        .and_then(|()| parts.iter().try_for_each(|part| part.tried(stage)));
    let selector = format!("--selector={LABEL}");
    let kinds = "clusterrolebindings,clusterroles";
    stage.kubectl().run(&["delete", kinds, &selector])?;
    result
}

/// All parts that `strew install` prints, for the case's namespace. Applies their CustomResourceDefinitions, because a
/// controller checks only rights on kinds that the API server serves.
fn parts(stage: &Stage) -> anyhow::Result<Vec<Part>> {
    let namespace = format!("--namespace={}", stage.namespace);
    let mut parts = Vec::new();
    for args in [
        &["scheduler"][..],
        &["workloadspread", "--crds=always"],
        &["placement", "--crds=always"],
    ] {
        let list = stage.printed(&[args, &[&namespace]].concat())?;
        let items = list["items"].as_array().context("a list has items")?;
        let of_kind = |kind: &'static str| items.iter().filter(move |o| o["kind"] == kind);
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--filename=-",
        ];
        for definition in of_kind("CustomResourceDefinition") {
            stage.kubectl().run_with(&apply, definition)?;
            let name = format!("crd/{}", name_of(definition));
            stage.kubectl().run(&[
                "wait",
                "--for=condition=Established",
                "--timeout=60s",
                &name,
            ])?;
        }
        for deployment in of_kind("Deployment") {
            let name = name_of(deployment);
            let of = |kind, role: &str, is_cluster| {
                let roles = of_kind(kind).filter(move |o| name_of(o) == role);
                let rules = roles.flat_map(|role| role["rules"].as_array().into_iter().flatten());
                let rules = rules.map(|rule| Rule {
                    is_cluster,
                    value: rule.clone(),
                });
                rules.collect::<Vec<Rule>>()
            };
            let mut rules = of("ClusterRole", &format!("strew:{name}"), true);
            rules.extend(of("Role", name, false));
            ensure!(rules.len() > 10, "the roles of {name} are not found");
            let containers = &deployment["spec"]["template"]["spec"]["containers"];
            let args = containers[0]["args"].as_array().into_iter().flatten();
            let args = args.filter_map(Value::as_str);
            let args = args.filter(|arg| !CONTAINER_FLAGS.iter().any(|flag| arg.starts_with(flag)));
            parts.push(Part {
                name: name.to_owned(),
                args: args.map(str::to_owned).collect(),
                rules,
            });
        }
    }
    ensure!(parts.len() == 4, "{} parts are printed", parts.len());
    Ok(parts)
}

impl Part {
    /// An account with all rules but this one, with its roles; with all of them if there is no such rule.
    fn without(&self, left_out: usize, namespace: &str) -> Vec<Value> {
        let account = self.account(left_out);
        let cluster = format!("e2e:{account}");
        let metadata = json!({"name": cluster, "labels": {LABEL: ""}});
        let own = json!({"name": account, "namespace": namespace});
        let rules = |is_cluster: bool| -> Vec<&Value> {
            let kept = self.rules.iter().enumerate();
            let kept = kept.filter(|(pos, rule)| *pos != left_out && rule.is_cluster == is_cluster);
            kept.map(|(_, rule)| &rule.value).collect()
        };
        let version = "rbac.authorization.k8s.io/v1";
        let bound = |kind: &str, role: &str, metadata: &Value| {
            json!({
                "apiVersion": version,
                "kind": format!("{kind}Binding"),
                "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
            })
        };
        let role = |kind: &str, metadata: &Value, rules: Vec<&Value>| json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules});
        vec![
            role("ClusterRole", &metadata, rules(true)),
            bound("ClusterRole", &cluster, &metadata),
            role("Role", &own, rules(false)),
            bound("Role", &account, &own),
        ]
    }

    fn account(&self, left_out: usize) -> String {
        format!("{}-{left_out}", self.name)
    }

    fn tried(&self, stage: &mut Stage) -> anyhow::Result<()> {
        let [port, webhook] = free_ports()?;
        let all = self.rules.len();
        // The authorizer learns of roles by watches of its own, so a first refusal may name more.
        let what = format!("{} with all rules", self.name);
        until(&what, SOON, PAUSE, || {
            let process = self.started(stage, all, port, webhook)?;
            until(&what, SOON, PAUSE, || {
                let output = process.output();
                let is_over = output.contains(SERVES) || output.contains("error: ");
                Ok(is_over.then(|| output.contains(SERVES)))
            })
            .with_context(|| process.output())
            .map(|serves| serves.then_some(()))
        })?;
        for (pos, rule) in self.rules.iter().enumerate() {
            let told = format!("{DENIED}{}\n", rule.named(&stage.namespace));
            let what = format!("{} without {}", self.name, rule.value);
            let mut output = String::new();
            let ended = until(&what, SOON, PAUSE, || {
                let mut process = self.started(stage, pos, port, webhook)?;
                let ended = process.ended(SOON);
                output = process.output();
                let is_so = ended?.code() == Some(EXIT_OUTSIDE) && output.contains(&told);
                Ok(is_so.then_some(()))
            });
            ended.with_context(|| format!("{what}: expected {told:?}, found:\n{output}"))?;
        }
        Ok(())
    }

    /// Starts the part as the account that lacks a rule. The administrator impersonates the account, which saves a token
    /// for each.
    fn started(
        &self,
        stage: &mut Stage,
        left_out: usize,
        port: u16,
        webhook: u16,
    ) -> anyhow::Result<Component> {
        let account = self.account(left_out);
        let own = stage.run(&["config", "view", "--raw", "--output=json"])?;
        let mut own: Value = serde_json::from_str(&own)?;
        let user = format!("system:serviceaccount:{}:{account}", stage.namespace);
        own["users"][0]["user"]["as"] = user.into();
        let file = stage.lab.folder().join("each-rule.kubeconfig");
        std::fs::write(&file, own.to_string())?;
        let mut args: Vec<String> = self.args.clone();
        args.extend([
            format!("--kubeconfig={}", file.display()),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
        ]);
        if self
            .args
            .first()
            .is_some_and(|command| command == "webhook")
        {
            args.push(format!("--webhook-port={webhook}"));
            args.push("--webhook-bind-address=127.0.0.1".to_owned());
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        stage.lab.start_strew(&stage.strew, &args)
    }
}

impl Rule {
    /// The rights of the rule as a process names them when it lacks them.
    fn named(&self, namespace: &str) -> String {
        let texts = |field: &str| -> Vec<&str> {
            let values = self.value[field].as_array().into_iter().flatten();
            values.filter_map(Value::as_str).collect()
        };
        let mut names: Vec<String> = texts("resourceNames")
            .into_iter()
            .map(|name| format!(" {name}"))
            .collect();
        if names.is_empty() {
            names.push(String::new());
        }
        let place = match self.is_cluster {
            true => String::new(),
            false => format!(" in {namespace}"),
        };
        let (groups, resources, verbs) = (texts("apiGroups"), texts("resources"), texts("verbs"));
        let mut all = Vec::new();
        for (group, resource) in groups.iter().zip(&resources) {
            let dot = if group.is_empty() { "" } else { "." };
            for name in &names {
                let each = verbs.iter();
                all.extend(each.map(|verb| format!("{verb} {resource}{dot}{group}{name}{place}")));
            }
        }
        all.join(", ")
    }
}

/// A pod that another scheduler put onto a node is a warning, until strew's own scheduler has run.
pub(super) fn rivals(stage: &mut Stage) -> anyhow::Result<()> {
    let said = |stage: &Stage| -> anyhow::Result<String> {
        let kubeconfig = stage.lab.folder().join("kubeconfig");
        let output = std::process::Command::new(&stage.strew)
            .args(["install", "scheduler", "--image=localhost/strew:e2e"])
            .env("KUBECONFIG", kubeconfig)
            .output()?;
        ensure!(output.status.success(), "{}", output.status);
        Ok(String::from_utf8(output.stderr)?)
    };
    let leases = [
        "--namespace",
        SYSTEM,
        "delete",
        "lease",
        "--ignore-not-found",
    ];
    stage
        .kubectl()
        .run(&[&leases[..], &["strew-scheduler"]].concat())?;
    let silent = said(stage)?;
    ensure!(silent.is_empty(), "{silent}");
    stage.apply_all(vec![
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n-1"},
            "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "placed"},
            "spec": {
                "schedulerName": "strew",
                "nodeName": "n-1",
                "containers": [{"name": "web", "image": "web"}],
            },
        }),
    ])?;
    let warned = said(stage)?;
    let told = format!(
        "has the profile strew: pod {}/placed is on a node",
        stage.namespace
    );
    ensure!(
        warned.starts_with("warning: ") && warned.contains(&told),
        "{warned}"
    );
    Ok(())
}
