//! The manifests of `strew install` on the API server.

use std::fs;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::until;

use crate::e2e::stage::{PAUSE, SOON, Stage};

/// Every object of every part is valid, the namespace admits its pods, and custom kinds' rights are gathered.
pub(super) fn manifests(stage: &mut Stage) -> anyhow::Result<()> {
    let namespace = format!("--namespace={}", stage.namespace);
    let url = "--webhook-url=https://127.0.0.1:9443";
    for args in [
        &["scheduler"][..],
        &["workloadspread", "--crds=always"],
        &[
            "workloadspread",
            "--crds=always",
            url,
            "--failure-policy=Ignore",
        ],
        &["workloadspread", "--crds=always", "--static-registration"],
        &["placement", "--crds=always"],
    ] {
        let mut all = args.to_vec();
        all.push(&namespace);
        let list = stage.printed(&all)?;
        let dry_run = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "--filename=-",
        ];
        let said = stage.kubectl().run_with(&dry_run, &list);
        said.with_context(|| args.join(" "))?;
        for item in list["items"].as_array().into_iter().flatten() {
            if item["kind"] == "Namespace" {
                stage.kubectl().run_with(&["apply", "--filename=-"], item)?;
            }
            if item["kind"] == "Deployment" {
                let_in(stage, item)?;
            }
        }
    }
    custom_kinds(stage, &namespace)?;
    conditions_are_compiled(stage)
}

/// The namespace enforces a strict pod security standard; the pods of this Deployment meet it.
fn let_in(stage: &Stage, deployment: &Value) -> anyhow::Result<()> {
    let create = ["create", "--dry-run=server", "--filename=-"];
    let made = (stage.kubectl()).run_with(&create, &pod_of(stage, deployment));
    made.map(drop)
        .with_context(|| deployment["metadata"]["name"].to_string())
}

/// A pod of a Deployment.
fn pod_of(stage: &Stage, deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": deployment["metadata"]["name"],
            "namespace": stage.namespace,
            "labels": template["metadata"]["labels"],
        },
        "spec": template["spec"],
    });
    // Its account does not exist, as nothing was applied.
    pod["spec"]["serviceAccountName"] = "default".into();
    pod
}

/// A custom kind needs only a role with the label.
fn custom_kinds(stage: &Stage, namespace: &str) -> anyhow::Result<()> {
    let list = stage.printed(&["workloadspread", "--crds=never", namespace])?;
    let is_custom = |object: &&Value| object["metadata"]["name"] == "strew:custom-workloads";
    let items = list["items"].as_array().into_iter().flatten();
    let gathered: Vec<&Value> = items.filter(is_custom).collect();
    ensure!(gathered.len() == 2, "a role and its binding: {gathered:?}");
    let ours = json!({"apiVersion": "v1", "kind": "List", "items": gathered});
    let theirs = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "daemons", "labels": {"strew.dev/custom-workloads": "true"}},
        "rules": [{"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get", "list", "watch"]}],
    });
    let apply = ["apply", "--server-side", "--filename=-"];
    stage.kubectl().run_with(&apply, &ours)?;
    stage.kubectl().run_with(&apply, &theirs)?;
    for account in ["strew-webhook", "strew-controller"] {
        let user = format!("--as=system:serviceaccount:{}:{account}", stage.namespace);
        let may = |verb: &str| {
            let ask = [
                "auth",
                "can-i",
                verb,
                "daemonsets.apps",
                "--all-namespaces",
                &user,
            ];
            stage.kubectl().run(&ask)
        };
        until("rights are gathered", SOON, PAUSE, || Ok(may("get").ok()))?;
        ensure!(may("patch").is_err(), "{account} may write custom kinds");
    }
    // A second apply keeps the rules that were gathered into the role.
    stage.kubectl().run_with(&apply, &ours)?;
    let role = stage.get("clusterrole/strew:custom-workloads")?;
    ensure!(role["rules"][0]["resources"][0] == "daemonsets", "{role}");
    for name in ["strew:custom-workloads", "daemons"] {
        stage.kubectl().run(&["delete", "clusterrole", name])?;
    }
    stage
        .kubectl()
        .run(&["delete", "clusterrolebinding", "strew:custom-workloads"])?;
    Ok(())
}

/// Conditions of webhooks are expressions: the API server has compiled them, and they cost less than its limit.
fn conditions_are_compiled(stage: &Stage) -> anyhow::Result<()> {
    let mut list = stage.printed(&["workloadspread", "--crds=never", "--static-registration"])?;
    let items = list["items"].as_array_mut().context("a list has items")?;
    let mut found = items
        .iter_mut()
        .filter(|o| o["kind"] == "MutatingWebhookConfiguration");
    let configuration = found.next().context("a configuration is printed")?;
    configuration["webhooks"][0]["matchConditions"][0]["expression"] = "object.nothing(".into();
    let create = ["create", "--dry-run=server", "--filename=-"];
    if stage.kubectl().run_with(&create, configuration).is_ok() {
        bail!("the API server compiles no conditions: this case proves nothing of them");
    }
    Ok(())
}

/// GKE limits critical classes to namespaces with a ResourceQuota for them.
pub(super) fn critical(stage: &mut Stage) -> anyhow::Result<()> {
    const CRITICAL: [&str; 2] = ["system-node-critical", "system-cluster-critical"];
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ResourceQuota", "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "ResourceQuotaConfiguration",
            "limitedResources": [{"resource": "pods", "matchScopes": [
                {"scopeName": "PriorityClass", "operator": "In", "values": CRITICAL},
            ]}],
        }}],
    });
    let file = stage.lab.folder().join("limited.json");
    fs::write(&file, configuration.to_string())?;
    let flag = format!("--admission-control-config-file={}", file.display());
    let (_other, url) = stage.lab.start_other_server(&[], &[flag])?;
    let at = format!("--server={url}");
    let namespace = format!("--namespace={}", stage.namespace);
    let create = |pod: &Value| {
        let create = [&at, "create", "--dry-run=server", "--filename=-"];
        stage.kubectl().run_with(&create, pod)
    };
    let apply = |object: &Value| {
        let apply = [
            &at,
            "apply",
            "--server-side",
            "--force-conflicts",
            "--filename=-",
        ];
        stage.kubectl().run_with(&apply, object)
    };
    for args in [
        &["scheduler"][..],
        &["workloadspread", "--crds=never"],
        &["placement", "--crds=never"],
    ] {
        let component = args[0];
        let none = stage.printed(&[args, &[&namespace, "--priority-class="]].concat())?;
        let list = stage.printed(&[args, &[&namespace]].concat())?;
        let of_kind = |list: &Value, kind: &str| -> Vec<Value> {
            let all = list["items"].as_array().cloned().unwrap_or_default();
            all.into_iter().filter(|of| of["kind"] == kind).collect()
        };
        let pods = of_kind(&list, "Deployment");
        ensure!(!pods.is_empty(), "{component} has no Deployment");
        ensure!(
            of_kind(&none, "ResourceQuota").is_empty(),
            "{component}: no class, no quota"
        );
        for deployment in of_kind(&none, "Deployment") {
            create(&pod_of(stage, &deployment))?;
        }
        // Each part brings a quota of its own, so that it needs no other part.
        for deployment in &pods {
            let said = create(&pod_of(stage, deployment)).err();
            let said = said.map_or_else(String::new, |error| format!("{error:#}"));
            ensure!(
                said.contains("insufficient quota"),
                "{component}, without a quota: {said:?}"
            );
        }
        let quotas = of_kind(&list, "ResourceQuota");
        for quota in &quotas {
            apply(quota)?;
        }
        for deployment in &pods {
            let mut said = String::new();
            let made = until("the quota is counted", SOON, PAUSE, || {
                let made = create(&pod_of(stage, deployment));
                said = made
                    .as_ref()
                    .err()
                    .map_or_else(String::new, |e| format!("{e:#}"));
                Ok(made.ok().map(drop))
            });
            made.with_context(|| format!("{component}: {said}"))?;
        }
        for quota in &quotas {
            let name = quota["metadata"]["name"]
                .as_str()
                .context("a quota has a name")?;
            stage
                .kubectl()
                .run(&["delete", "resourcequota", name, &namespace])?;
        }
    }
    Ok(())
}
