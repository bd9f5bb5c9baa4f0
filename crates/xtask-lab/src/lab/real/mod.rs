//! Real nodes on this machine: a control plane, and per node a containerd, a kubelet and a kube-proxy, each node in a
//! network of its own and a zone of its own. Containers run, Services are reached, and no registry is asked.
//!
//! [`RealLab::start`] does everything; what it started ends with its value: processes, containers, networks, mounts, cgroups.

mod image;
mod network;
mod node;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;
use xtask::go::{self, Build, binary};

use super::component::{Component, Lifeline};
use super::kubectl::Kubectl;
use super::{PAUSE, READY_WITHIN, Scheduler, new_folder, scheduler_configuration, until};
use image::Image;
pub(super) use network::Network;
use network::SERVER;
use node::{RealNode, Shared, remove_cgroups, start_proxy};

/// The name of the image of pods that only wait.
pub const PAUSE_IMAGE: &str = "localhost/pause:lab";

/// The name of strew's image.
pub const STREW_IMAGE: &str = "localhost/strew:lab";

/// More nodes than letters for zones.
const NODES_MAX: usize = 26;

/// A control plane and real nodes. All that it started ends when it is dropped.
pub struct RealLab {
    kubectl: Kubectl,
    nodes: Vec<RealNode>,
    /// In the order in which they were started.
    components: Vec<Component>,
    network: Network,
    name: String,
    folder: PathBuf,
}

impl RealLab {
    /// Builds what is missing, starts a control plane and `n_nodes` nodes, each in a zone of its own, and returns when
    /// all nodes are Ready. `strew` becomes the image [`STREW_IMAGE`] on every node.
    ///
    /// # Errors
    /// What must be installed and is not; a build that fails; a process that ends, or is not ready in time.
    pub fn start(
        top: &Path,
        strew: &Path,
        n_nodes: usize,
        scheduler: &Scheduler,
    ) -> anyhow::Result<Self> {
        Self::check()?;
        ensure!((1..=NODES_MAX).contains(&n_nodes), "1 to {NODES_MAX} nodes");
        let binary = binary(top, Build::RealNodes)?;
        let pause = go::binary(top, Build::Pause)?;
        let folder = new_folder(top)?;
        let images = [
            Image::of_program(&pause, "pause", &folder)?,
            Image::of_program(strew, "strew", &folder)?,
        ];
        for (image, name) in images.iter().zip([PAUSE_IMAGE, STREW_IMAGE]) {
            ensure!(image.name == name, "{}", image.name);
        }
        let name = network::own_name();
        let network = Network::of_server(&name)?;
        let mut lab = Self {
            kubectl: Kubectl {
                binary,
                folder: folder.clone(),
                network: Some(network.clone()),
            },
            nodes: Vec::new(),
            components: Vec::new(),
            network,
            name,
            folder,
        };
        lab.start_control_plane(scheduler)?;
        for number in 1..=n_nodes {
            let shared = lab.shared(&images);
            let node = RealNode::start(number, &shared)?;
            lab.nodes.push(node);
        }
        // The API server reaches webhooks by their Services.
        let shared = lab.shared(&images);
        let proxy = start_proxy("server", &lab.network, &shared)?;
        lab.components.push(proxy);
        lab.wait_for_nodes(n_nodes)?;
        Ok(lab)
    }

    /// Whether everything is installed that real nodes need.
    ///
    /// # Errors
    /// With all that is missing.
    pub fn check() -> anyhow::Result<()> {
        tools::check()
    }

    /// kubectl with all rights here.
    #[must_use]
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// The folder of this run: kubeconfig, and a log for each process.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a process in the network of the control plane; its log is `NAME.log` of the folder, where it also starts.
    /// The arguments name a kubeconfig only if the caller adds it: the environment names none.
    ///
    /// # Errors
    /// If it cannot be started. That it ends at once is none: [`Component::ended`] tells.
    pub fn start_beside(
        &self,
        name: &str,
        program: &Path,
        arguments: &[&str],
    ) -> anyhow::Result<Component> {
        let mut command = self.command(program);
        command
            .args(arguments)
            .env_remove("KUBECONFIG")
            .env_remove("RUST_LOG")
            // What a person has there is not the lab's.
            .env("HOME", &self.folder)
            .current_dir(&self.folder);
        Component::start(name, command, &self.folder, Lifeline::Guard)
    }

    /// A command in the network of the control plane.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        self.network.command(program)
    }

    /// Cuts a node, by its name, off from all others, or joins it again.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn set_link(&self, node: &str, is_up: bool) -> anyhow::Result<()> {
        let at = self.nodes.iter().position(|known| known.name == node);
        let Some(at) = at else {
            anyhow::bail!("there is no node {node}");
        };
        self.network.set_link(at + 1, is_up)
    }

    /// Makes an image of a program and imports it on every node; the image's name.
    ///
    /// # Errors
    /// If it cannot be made, or not be imported.
    pub fn add_image(&self, program: &Path, name: &str) -> anyhow::Result<String> {
        let image = Image::of_program(program, name, &self.folder)?;
        for node in &self.nodes {
            node.import_image(&image)?;
        }
        fs::remove_file(&image.archive)?;
        Ok(image.name)
    }

    /// Gives an image another name on every node.
    ///
    /// # Errors
    /// If a node does not have the image.
    pub fn tag_image(&self, image: &str, name: &str) -> anyhow::Result<()> {
        self.nodes
            .iter()
            .try_for_each(|node| node.tag_image(image, name))
    }

    /// An error if a process has ended.
    ///
    /// # Errors
    /// With its name and the end of its output.
    pub fn expect_running(&mut self) -> anyhow::Result<()> {
        self.components
            .iter_mut()
            .try_for_each(Component::expect_running)?;
        self.nodes.iter_mut().try_for_each(RealNode::expect_running)
    }

    fn shared<'a>(&'a self, images: &'a [Image]) -> Shared<'a> {
        Shared {
            binary: self.kubectl.binary(),
            folder: &self.folder,
            name: &self.name,
            server: &self.network,
            images,
        }
    }

    fn start_control_plane(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        let server = format!("https://{SERVER}:6443");
        let keys = Command::new(self.kubectl.binary())
            .arg("keys")
            .args([&self.folder])
            .arg(server)
            .status()?;
        ensure!(keys.success(), "keys could not be made");
        self.add(
            "etcd",
            &[
                "--data-dir=etcd",
                "--listen-client-urls=http://127.0.0.1:2379",
                "--advertise-client-urls=http://127.0.0.1:2379",
                "--listen-peer-urls=http://127.0.0.1:2380",
                "--initial-advertise-peer-urls=http://127.0.0.1:2380",
                "--initial-cluster=default=http://127.0.0.1:2380",
                "--unsafe-no-fsync",
            ],
        )?;
        self.add(
            "apiserver",
            &[
                "--etcd-servers=http://127.0.0.1:2379",
                "--secure-port=6443",
                "--bind-address=0.0.0.0",
                &format!("--advertise-address={SERVER}"),
                "--cert-dir=certs",
                "--service-account-key-file=sa.key",
                "--service-account-signing-key-file=sa.key",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--token-auth-file=tokens.csv",
                "--authorization-mode=Node,RBAC",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--allow-privileged=true",
                "--kubelet-preferred-address-types=InternalIP",
            ],
        )?;
        until("the API server is not ready", READY_WITHIN, PAUSE, || {
            self.components
                .iter_mut()
                .try_for_each(Component::expect_running)?;
            Ok(self.kubectl.run(&["get", "--raw", "/readyz"]).ok())
        })?;
        self.add(
            "controller-manager",
            &[
                "--kubeconfig=kubeconfig",
                "--service-account-private-key-file=sa.key",
                // The API server signs its own certificate: that is what pods must trust.
                "--root-ca-file=certs/apiserver.crt",
                "--use-service-account-credentials=false",
                "--leader-elect=false",
                "--secure-port=0",
                "--controllers=*,-nodeipam,-route,-service-lb-controller",
            ],
        )?;
        let Scheduler::Kube(configuration) = scheduler else {
            return Ok(());
        };
        let configuration = scheduler_configuration(configuration.as_ref());
        fs::write(
            self.folder.join("scheduler.json"),
            configuration.to_string(),
        )?;
        self.add("scheduler", &["--config=scheduler.json", "--secure-port=0"])
    }

    fn add(&mut self, name: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = self.network.command(self.kubectl.binary());
        command
            .args(["attached", name])
            .args(arguments)
            .current_dir(&self.folder);
        let component = Component::start(name, command, &self.folder, Lifeline::StandardInput)?;
        self.components.push(component);
        Ok(())
    }

    fn wait_for_nodes(&mut self, n_nodes: usize) -> anyhow::Result<()> {
        until(
            "not all nodes are Ready",
            Duration::from_secs(120),
            PAUSE,
            || {
                self.expect_running()?;
                let nodes = self.kubectl.objects("nodes")?;
                let ready = nodes.iter().filter(|node| is_ready(node)).count();
                Ok((ready == n_nodes).then_some(()))
            },
        )
    }
}

/// Whether an object has the condition Ready.
pub fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True")
}

impl Drop for RealLab {
    fn drop(&mut self) {
        // Services first, nodes before what they talk to.
        drop(self.components.pop());
        self.nodes.clear();
        while let Some(component) = self.components.pop() {
            drop(component);
        }
        if let Err(error) = self
            .network
            .remove()
            .and_then(|()| unmount_below(&self.folder))
        {
            eprintln!("{error:#}");
        }
        if let Err(error) = remove_cgroups(&self.name) {
            eprintln!("{error:#}");
        }
        // Logs stay; the rest is large.
        let nodes = (1..=NODES_MAX).map(|number| format!("node-{}", node::zone(number)));
        let large = ["etcd", "pause.tar", "strew.tar"].map(str::to_owned);
        for part in nodes.chain(large) {
            let path = self.folder.join(part);
            drop(fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)));
        }
    }
}

/// Unmounts what kubelets and containerds have mounted below a folder: what is inside first.
fn unmount_below(folder: &Path) -> anyhow::Result<()> {
    let mounts = fs::read_to_string("/proc/mounts")?;
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let mut below: Vec<&str> = places
        .filter(|place| Path::new(place).starts_with(folder))
        .collect();
    below.sort_unstable();
    for place in below.into_iter().rev() {
        network::run(Command::new("umount").args(["--lazy", place]))?;
    }
    Ok(())
}
