//! strew's processes in a lab: installed by `strew install`, started with the tokens of their service accounts.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{Component, Service, free_ports, until};

use super::stage::{PAUSE, SOON, Stage};

/// strew's own namespace.
pub(crate) const SYSTEM: &str = "strew-system";

/// Leases short enough for a case, and long enough for a busy machine.
const SHORT_LEASES: [&str; 3] = [
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=2s",
];

/// The kinds that need containers.
const IN_CONTAINERS: [&str; 2] = ["Deployment", "PodDisruptionBudget"];

/// WorkloadSpread at work: the Service that the API server calls, and its replicas.
pub(crate) struct Spreading {
    /// The Service that the API server calls; the replicas are behind it.
    pub(crate) service: Service,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) controller: Component,
}

/// A replica of the webhook.
pub(crate) struct Webhook {
    pub(crate) process: Component,
    /// The port for calls.
    pub(crate) port: u16,
    /// The port of health and metrics.
    pub(crate) pages: u16,
}

impl Stage {
    /// The objects that `strew install` prints with these arguments, as a list.
    pub(crate) fn printed(&self, args: &[&str]) -> anyhow::Result<Value> {
        let mut all = vec!["install"];
        all.extend(args);
        // Processes stand for containers, so nothing pulls this image.
        all.extend(["--image=localhost/strew:e2e", "--output=json"]);
        // Without --crds, the command asks this cluster.
        serde_json::from_str(&self.strew(&all)?).with_context(|| format!("strew {all:?}"))
    }

    /// The output of strew; the cluster that it finds is the lab's.
    pub(crate) fn strew(&self, args: &[&str]) -> anyhow::Result<String> {
        let kubeconfig = self.lab.folder().join("kubeconfig");
        let output = Command::new(&self.strew)
            .args(args)
            .env("KUBECONFIG", kubeconfig)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "strew {args:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Installs a part, except the kinds that need containers: processes stand for these.
    pub(crate) fn install(&mut self, args: &[&str]) -> anyhow::Result<()> {
        let mut list = self.printed(args)?;
        let items = list["items"].as_array_mut().context("a list has items")?;
        items.retain(|object| !IN_CONTAINERS.iter().any(|kind| object["kind"] == *kind));
        let definitions: Vec<String> = items
            .iter()
            .filter(|object| object["kind"] == "CustomResourceDefinition")
            .filter_map(|object| object["metadata"]["name"].as_str())
            .map(|name| format!("crd/{name}"))
            .collect();
        self.is_registered |= items
            .iter()
            .any(|object| object["kind"] == "MutatingWebhookConfiguration");
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--filename=-",
        ];
        self.kubectl().run_with(&apply, &list)?;
        // Earlier cases killed their processes: no process must wait for the end of their leases, or trust their
        // authority.
        let left = ["--namespace", SYSTEM, "delete", "leases,secrets", "--all"];
        self.kubectl().run(&left)?;
        if !definitions.is_empty() {
            let mut wait = vec!["wait", "--for=condition=Established", "--timeout=60s"];
            wait.extend(definitions.iter().map(String::as_str));
            self.kubectl().run(&wait)?;
        }
        Ok(())
    }

    /// A kubeconfig with a token of this service account, when its rights are known.
    pub(crate) fn kubeconfig_of(
        &self,
        namespace: &str,
        account: &str,
        args: &[&str],
    ) -> anyhow::Result<PathBuf> {
        let mut create = vec!["--namespace", namespace, "create", "token", account];
        // Nothing renews the token, so it must outlast every run.
        create.push("--duration=24h");
        create.extend(args);
        let token = self.kubectl().run(&create)?;
        let own = self.run(&["config", "view", "--raw", "--output=json"])?;
        let mut own: Value = serde_json::from_str(&own)?;
        own["users"][0]["user"] = json!({"token": token.trim()});
        if let Some(api) = &self.api {
            let server = format!("https://127.0.0.1:{}", api.port());
            own["clusters"][0]["cluster"]["server"] = server.into();
        }
        let file = self.lab.folder().join(format!("{account}.kubeconfig"));
        fs::write(&file, own.to_string())?;
        Ok(file)
    }

    /// The kubeconfig of one of strew's own accounts, as an argument. The authorizer learns of roles by watches of its
    /// own, so this waits for a right of each role.
    pub(crate) fn own_kubeconfig(&self, account: &str) -> anyhow::Result<String> {
        let user = format!("--as=system:serviceaccount:{SYSTEM}:{account}");
        let lease = format!("leases.coordination.k8s.io/{account}");
        let lease = ["update", &lease, "--namespace", SYSTEM];
        let pages = ["create", "subjectaccessreviews.authorization.k8s.io"];
        for right in [&lease[..], &pages[..]] {
            let mut ask = vec!["auth", "can-i", &user];
            ask.extend(right);
            until("the rights of an account", SOON, PAUSE, || {
                Ok(self.kubectl().run(&ask).ok())
            })?;
        }
        let file = self.kubeconfig_of(SYSTEM, account, &[])?;
        Ok(format!("--kubeconfig={}", file.display()))
    }

    /// Installs WorkloadSpread, starts it with `n_webhooks` replicas of the webhook, and waits until the API server
    /// calls it.
    pub(crate) fn spreading(&mut self, n_webhooks: usize) -> anyhow::Result<Spreading> {
        let mut spreading = self.installed_spreading(&[], &[])?;
        for _ in 0..n_webhooks {
            self.add_webhook(&mut spreading, &[])?;
        }
        self.until_ready(&spreading, n_webhooks)?;
        self.until_called()?;
        Ok(spreading)
    }

    /// Installs WorkloadSpread and starts its controller, each with these arguments, and no webhook yet.
    pub(crate) fn installed_spreading(
        &mut self,
        install: &[&str],
        controller: &[&str],
    ) -> anyhow::Result<Spreading> {
        let service = self.install_spreading(install)?;
        let controller = self.spread_controller(controller)?;
        Ok(Spreading {
            service,
            webhooks: Vec::new(),
            controller,
        })
    }

    /// Installs WorkloadSpread with these arguments, and starts none of its processes; returns the Service that the API
    /// server is to call.
    pub(crate) fn install_spreading(&mut self, install: &[&str]) -> anyhow::Result<Service> {
        let service = Service::start()?;
        let url = format!("--webhook-url=https://127.0.0.1:{}", service.port());
        let mut all = vec!["workloadspread", "--crds=always", &url];
        all.extend(install);
        self.install(&all)?;
        Ok(service)
    }

    /// Starts another replica of the webhook.
    pub(crate) fn add_webhook(
        &mut self,
        spreading: &mut Spreading,
        args: &[&str],
    ) -> anyhow::Result<()> {
        let webhook = self.webhook(&spreading.service, args)?;
        spreading.service.add(webhook.port, webhook.pages);
        spreading.webhooks.push(webhook);
        Ok(())
    }

    /// Starts a replica that is behind no Service.
    pub(crate) fn webhook(&mut self, service: &Service, args: &[&str]) -> anyhow::Result<Webhook> {
        let kubeconfig = self.own_kubeconfig("strew-webhook")?;
        let [port, pages] = free_ports()?;
        let flags = [
            kubeconfig,
            format!("--namespace={SYSTEM}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--webhook-bind-address=127.0.0.1".to_owned(),
            format!("--webhook-port={port}"),
            format!("--secure-port={pages}"),
            format!("--webhook-url=https://127.0.0.1:{}", service.port()),
            "--v=4".to_owned(),
            "--logging-format=json".to_owned(),
        ];
        let mut all = vec!["webhook"];
        all.extend(flags.iter().map(String::as_str));
        all.extend(args);
        Ok(Webhook {
            process: self.lab.start_strew(&self.strew, &all)?,
            port,
            pages,
        })
    }

    /// The controller of WorkloadSpreads, with the rights of its account.
    pub(crate) fn spread_controller(&mut self, args: &[&str]) -> anyhow::Result<Component> {
        let kubeconfig = self.own_kubeconfig("strew-controller")?;
        let mut all = vec![kubeconfig.as_str(), "--controllers=workloadspread"];
        all.extend(args);
        self.controller(&all)
    }

    /// A hub with a number of replicas of Placement's controller, of which one acts unless the arguments say otherwise.
    pub(crate) fn hub(
        &mut self,
        n_controllers: usize,
        args: &[&str],
    ) -> anyhow::Result<Vec<Component>> {
        self.install(&["placement", "--crds=always"])?;
        self.is_hub = true;
        (0..n_controllers)
            .map(|_| self.placement_controller(args))
            .collect()
    }

    /// The controller of Placements, with the rights of its account.
    pub(crate) fn placement_controller(&mut self, args: &[&str]) -> anyhow::Result<Component> {
        let kubeconfig = self.own_kubeconfig("strew-placement")?;
        let mut all = vec![
            kubeconfig.as_str(),
            "--controllers=placement",
            "--leader-elect-resource-name=strew-placement",
        ];
        all.extend(args);
        self.controller(&all)
    }

    /// The audit, with the rights of its account and its pages on this port.
    pub(crate) fn audit_controller(&mut self, port: u16) -> anyhow::Result<Component> {
        let kubeconfig = self.own_kubeconfig("strew-audit")?;
        let port = format!("--secure-port={port}");
        self.controller_on(
            &port,
            &[
                kubeconfig.as_str(),
                "--controllers=audit",
                "--leader-elect-resource-name=strew-audit",
                "--bind-address=127.0.0.1",
                "--audit-every=10s",
            ],
        )
    }

    /// The controller that makes labelled workloads even again, with the rights of its account.
    pub(crate) fn rebalance_controller(&mut self) -> anyhow::Result<Component> {
        let kubeconfig = self.own_kubeconfig("strew-rebalance")?;
        self.controller(&[
            kubeconfig.as_str(),
            "--controllers=rebalance",
            "--leader-elect-resource-name=strew-rebalance",
            "--rebalance-every=10s",
        ])
    }

    /// The controller that keeps ReplicaSets spread, with the rights of its account.
    pub(crate) fn keep_controller(&mut self) -> anyhow::Result<Component> {
        let kubeconfig = self.own_kubeconfig("strew-keep")?;
        self.controller(&[
            kubeconfig.as_str(),
            "--controllers=keep",
            "--leader-elect-resource-name=strew-keep",
        ])
    }

    fn controller(&mut self, args: &[&str]) -> anyhow::Result<Component> {
        self.controller_on("--secure-port=0", args)
    }

    fn controller_on(&mut self, port: &str, args: &[&str]) -> anyhow::Result<Component> {
        let namespace = format!("--leader-elect-resource-namespace={SYSTEM}");
        let mut all = vec![
            "controller",
            port,
            "--v=4",
            "--logging-format=json",
            &namespace,
        ];
        all.extend(SHORT_LEASES);
        all.extend(args);
        self.lab.start_strew(&self.strew, &all)
    }

    /// Waits until `n` replicas of the webhook are ready, as a Service sees it.
    pub(crate) fn until_ready(&self, spreading: &Spreading, n: usize) -> anyhow::Result<()> {
        let ready = until("webhooks are ready", SOON, PAUSE, || {
            Ok((spreading.service.n_ready() == n).then_some(()))
        });
        ready.with_context(|| {
            let logs = spreading.webhooks.iter().map(|w| w.process.output());
            logs.collect::<Vec<_>>().join("\n")
        })
    }

    /// Waits until the API server calls the webhook about a pod, and gets an answer.
    pub(crate) fn until_called(&self) -> anyhow::Result<()> {
        let mut last = String::new();
        let called = until("the webhook answers", SOON, PAUSE, || {
            let before = self.n_calls()?;
            if let Err(error) = self.try_a_pod(&self.namespace) {
                last = format!("{error:#}");
                return Ok(None);
            }
            Ok((self.n_calls()? > before).then_some(()))
        });
        called.with_context(|| last)
    }

    /// How often the API server has called the webhook about the creation of a pod.
    pub(super) fn n_calls(&self) -> anyhow::Result<u64> {
        let metrics = self.kubectl().run(&["get", "--raw", "/metrics"])?;
        let of_pods = |line: &&str| {
            line.starts_with("apiserver_admission_webhook_request_total{")
                && line.contains(r#"name="pods.webhook.strew.dev""#)
        };
        let counts = metrics.lines().filter(of_pods);
        let counts = counts.map(|line| line.rsplit(' ').next().unwrap_or_default().parse::<u64>());
        Ok(counts.sum::<Result<u64, _>>()?)
    }

    /// Creates a pod of a controller in a namespace, in a dry run: the API server asks the webhook about it.
    pub(crate) fn try_a_pod(&self, namespace: &str) -> anyhow::Result<()> {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "tried",
                "namespace": namespace,
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "tried", "uid": "1", "controller": true},
                ],
            },
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let args = ["create", "--dry-run=server", "--filename=-"];
        self.kubectl().run_with(&args, &pod).map(drop)
    }
}
