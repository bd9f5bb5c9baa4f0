//! strew's processes with the flags, the service accounts and the rights that `strew install` prints.

use std::fs;

use anyhow::Context;
use serde_json::Value;
use xtask_lab::lab::{Component, Service, free_ports, until};

use crate::e2e::parts::SYSTEM;
use crate::e2e::stage::{PAUSE, SOON, Stage};

/// The processes.
pub(super) struct Parts {
    /// The Service that the API server calls; it passes connections to the webhook.
    pub(super) hooks: Service,
    /// The webhook's own port.
    pub(super) hooks_port: u16,
    pub(super) all: Vec<Part>,
}

/// A process.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) process: Component,
    /// The port of its health and metrics.
    pub(super) pages: u16,
}

/// Of the printed flags, those that say where containers listen and find their files.
const OF_CONTAINERS: [&str; 3] = ["--config=", "--secure-port=", "--webhook-port="];

impl Parts {
    /// Installs and starts two replicas of the scheduler, a webhook and a controller; ready when it returns. They find the
    /// API server through a [`Service`], so that all of their connections can be cut.
    pub(super) fn start(stage: &mut Stage) -> anyhow::Result<Self> {
        stage.api = Some(api(stage)?);
        stage.install(&["scheduler"])?;
        let hooks = stage.install_spreading(&[])?;
        let config = scheduler_config(stage)?;
        let mut all = Vec::new();
        for name in ["scheduler", "follower"] {
            all.push(part(stage, name, "scheduler", &[&config])?);
        }
        let url = format!("--webhook-url=https://127.0.0.1:{}", hooks.port());
        let [hooks_port] = free_ports()?;
        let port = format!("--webhook-port={hooks_port}");
        let more = ["--webhook-bind-address=127.0.0.1", &url, &port];
        let webhook = part(stage, "webhook", "webhook", &more)?;
        hooks.add(hooks_port, webhook.pages);
        all.push(webhook);
        all.push(part(stage, "controller", "controller", &[])?);
        let mut parts = Self {
            hooks,
            hooks_port,
            all,
        };
        parts.until_ready()?;
        stage.until_called()?;
        Ok(parts)
    }

    fn until_ready(&mut self) -> anyhow::Result<()> {
        let ready = until("the webhook is ready", SOON, PAUSE, || {
            self.expect_running()?;
            Ok((self.hooks.n_ready() == 1).then_some(()))
        });
        let webhook = |part: &&Part| part.name == "webhook";
        ready.with_context(|| {
            let webhook = self.all.iter().find(webhook);
            webhook.map_or_else(String::new, |part| part.process.output())
        })
    }

    /// An error if a process has ended, which no attack and no fault may cause.
    pub(super) fn expect_running(&mut self) -> anyhow::Result<()> {
        let mut all = self.all.iter_mut();
        all.try_for_each(|part| part.process.expect_running())
    }
}

/// The proxy before the API server.
fn api(stage: &Stage) -> anyhow::Result<Service> {
    let config = stage.run(&["config", "view", "--output=json"])?;
    let config: Value = serde_json::from_str(&config)?;
    let server = config["clusters"][0]["cluster"]["server"].as_str();
    let port = server.and_then(|url| url.rsplit(':').next()?.parse().ok());
    let port = port.context("a kubeconfig names the API server with its port")?;
    let api = Service::start()?;
    api.add(port, port);
    until("the API server is behind its Service", SOON, PAUSE, || {
        Ok((api.n_ready() == 1).then_some(()))
    })?;
    Ok(api)
}

fn part(
    stage: &mut Stage,
    name: &'static str,
    command: &str,
    more: &[&str],
) -> anyhow::Result<Part> {
    let list = match command {
        "scheduler" => stage.printed(&["scheduler"])?,
        _ => stage.printed(&["workloadspread", "--crds=never"])?,
    };
    let mut args = flags(&list, command)?;
    let [pages] = free_ports()?;
    args.push(stage.own_kubeconfig(&format!("strew-{command}"))?);
    args.push("--bind-address=127.0.0.1".to_owned());
    args.push(format!("--secure-port={pages}"));
    args.push("--logging-format=json".to_owned());
    args.extend(more.iter().map(|&flag| flag.to_owned()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Ok(Part {
        name,
        process: stage.lab.start_strew(&stage.strew, &args)?,
        pages,
    })
}

/// The arguments of a printed container, but those that are about its container.
fn flags(list: &Value, command: &str) -> anyhow::Result<Vec<String>> {
    let items = list["items"].as_array().context("a list has items")?;
    let containers = items
        .iter()
        .flat_map(|object| object["spec"]["template"]["spec"]["containers"].as_array())
        .flatten();
    let mut args = containers.map(|container| &container["args"]);
    let args = args.find(|args| args[0] == command);
    let args = args.and_then(Value::as_array).context("a container")?;
    let args = args.iter().filter_map(Value::as_str);
    let is_kept = |flag: &&str| !OF_CONTAINERS.iter().any(|of| flag.starts_with(of));
    Ok(args.filter(is_kept).map(str::to_owned).collect())
}

/// The scheduler's configuration, from its ConfigMap into a file.
fn scheduler_config(stage: &Stage) -> anyhow::Result<String> {
    let args = ["--namespace", SYSTEM, "get", "configmap", "strew-scheduler"];
    let map = stage
        .kubectl()
        .run(&[&args[..], &["--output=json"]].concat())?;
    let map: Value = serde_json::from_str(&map)?;
    let mut texts = map["data"].as_object().into_iter().flatten();
    let (_, text) = texts.next().context("a ConfigMap with a file")?;
    let file = stage.lab.folder().join("strew-scheduler.yaml");
    fs::write(&file, text.as_str().unwrap_or_default())?;
    Ok(format!("--config={}", file.display()))
}

#[test]
fn flags_of_containers_are_left_out() {
    let list = serde_json::json!({"items": [
        {"kind": "Role"},
        {"spec": {"template": {"spec": {"containers": [
            {"args": ["scheduler", "--config=/etc/x", "--lease=a", "--secure-port=1"]},
        ]}}}},
    ]});
    assert_eq!(
        flags(&list, "scheduler").unwrap(),
        ["scheduler", "--lease=a"]
    );
    assert!(flags(&list, "webhook").is_err());
}
