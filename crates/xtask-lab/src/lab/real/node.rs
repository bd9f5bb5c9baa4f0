//! A node: containerd, kubelet and kube-proxy in a network of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::PAUSE_IMAGE;
use super::image::Image;
use super::network::{Network, address, pods, run};
use super::tools::PLUGINS;
use crate::lab::component::{Component, Lifeline};
use crate::lab::{PAUSE, until};

/// Where cgroups are.
const CGROUPS: &str = "/sys/fs/cgroup";

/// containerd's own namespace for a kubelet's containers.
const CONTAINERS: &str = "--namespace=k8s.io";

pub(super) struct RealNode {
    pub(super) name: String,
    pub(super) network: Network,
    folder: PathBuf,
    /// In the order in which they were started.
    components: Vec<Component>,
    cgroup: String,
}

/// What all nodes of a run share.
pub(super) struct Shared<'a> {
    /// kubelet and kube-proxy.
    pub(super) binary: &'a Path,
    pub(super) folder: &'a Path,
    /// The name of the run.
    pub(super) name: &'a str,
    pub(super) server: &'a Network,
    pub(super) images: &'a [Image],
}

impl RealNode {
    /// Starts node `number`, counted from 1, which is in a zone of its own.
    pub(super) fn start(number: usize, shared: &Shared<'_>) -> anyhow::Result<Self> {
        let letter = zone(number);
        let name = format!("node-{letter}");
        let folder = shared.folder.join(&name);
        for part in ["cni", "containerd", "kubelet", "certs", "logs"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let mut node = Self {
            network: Network::of_node(shared.server, number)?,
            cgroup: format!("{}/{name}", shared.name),
            name,
            folder,
            components: Vec::new(),
        };
        make_cgroup(shared.name, &node.cgroup)?;
        node.start_containerd(number, shared)?;
        for image in shared.images {
            node.import_image(image)?;
        }
        node.start_kubelet(number, letter, shared)?;
        let proxy = start_proxy(&node.name, &node.network, shared)?;
        node.components.push(proxy);
        Ok(node)
    }

    /// An error if one of its processes has ended.
    pub(super) fn expect_running(&mut self) -> anyhow::Result<()> {
        self.components
            .iter_mut()
            .try_for_each(Component::expect_running)
    }

    /// Imports an image's archive.
    pub(super) fn import_image(&self, image: &Image) -> anyhow::Result<()> {
        run(self.ctr().args(["images", "import"]).arg(&image.archive))
    }

    /// Gives an image another name.
    pub(super) fn tag_image(&self, image: &str, name: &str) -> anyhow::Result<()> {
        run(self.ctr().args(["images", "tag", "--force", image, name]))
    }

    fn start_containerd(&mut self, number: usize, shared: &Shared<'_>) -> anyhow::Result<()> {
        let network = json!({
            "cniVersion": "0.4.0",
            "name": "lab",
            "plugins": [{
                "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
                "ipam": {
                    "type": "host-local", "ranges": [[{"subnet": pods(number)}]],
                    "routes": [{"dst": "0.0.0.0/0"}], "dataDir": self.folder.join("addresses"),
                },
            }],
        });
        fs::write(self.folder.join("cni/lab.conflist"), network.to_string())?;
        fs::write(
            self.folder.join("containerd.toml"),
            self.containerd_configuration(),
        )?;
        let mut command = self.network.command(Path::new("containerd"));
        command
            .arg("--config")
            .arg(self.folder.join("containerd.toml"));
        self.add("containerd", command, Lifeline::Guard, shared)?;
        let within = Duration::from_secs(60);
        until("containerd does not answer", within, PAUSE, || {
            Ok(run(self.ctr().args(["images", "list", "--quiet"])).ok())
        })
    }

    fn containerd_configuration(&self) -> String {
        let folder = self.folder.display();
        format!(
            r#"version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
[grpc]
address = "{folder}/containerd.sock"
[ttrpc]
address = "{folder}/containerd.sock.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{folder}/cni"
"#
        )
    }

    fn start_kubelet(
        &mut self,
        number: usize,
        zone: char,
        shared: &Shared<'_>,
    ) -> anyhow::Result<()> {
        let file = self.folder.join("kubelet.json");
        fs::write(&file, self.kubelet_configuration().to_string())?;
        let mut command = self.network.command(shared.binary);
        command
            .args(["attached", "kubelet"])
            .arg(format!("--config={}", file.display()))
            .arg(format!(
                "--kubeconfig={}",
                shared.folder.join("kubeconfig").display()
            ))
            .arg(format!(
                "--root-dir={}",
                self.folder.join("kubelet").display()
            ))
            .arg(format!(
                "--cert-dir={}",
                self.folder.join("certs").display()
            ))
            .arg(format!("--hostname-override={}", self.name))
            .arg(format!("--node-ip={}", address(number)))
            .arg(format!(
                "--node-labels=topology.kubernetes.io/zone=zone-{zone}"
            ));
        self.add("kubelet", command, Lifeline::StandardInput, shared)
    }

    fn kubelet_configuration(&self) -> Value {
        json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": false,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": format!("/{}", self.cgroup),
            "failSwapOn": false,
            "containerRuntimeEndpoint": format!("unix://{}/containerd.sock", self.folder.display()),
            "resolvConf": "",
            // Only this lab reaches this network.
            "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
            "authorization": {"mode": "AlwaysAllow"},
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "enforceNodeAllocatable": ["pods"],
            "podLogsDir": self.folder.join("logs"),
            "nodeStatusUpdateFrequency": "4s",
        })
    }

    fn add(
        &mut self,
        name: &str,
        command: Command,
        lifeline: Lifeline,
        shared: &Shared<'_>,
    ) -> anyhow::Result<()> {
        let name = format!("{name}-{}", self.name);
        let component = Component::start(&name, command, shared.folder, lifeline)?;
        self.components.push(component);
        Ok(())
    }

    fn ctr(&self) -> Command {
        let mut command = Command::new("ctr");
        command
            .arg("--address")
            .arg(self.folder.join("containerd.sock"))
            .arg(CONTAINERS);
        command
    }

    /// What `ctr` prints with these arguments, in words; nothing where it fails.
    fn listed(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.ctr().args(arguments).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let text = text.unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Ends everything in reverse order, containers between kubelet and containerd: they would outlive it.
    fn end(&mut self) {
        while self.components.len() > 1 {
            drop(self.components.pop());
        }
        // What is gone already is an error of each of these, and of no interest.
        let ask = |arguments: &[&str]| drop(self.ctr().args(arguments).output());
        for task in self.listed(&["tasks", "list", "--quiet"]) {
            ask(&["tasks", "kill", "--signal=9", &task]);
            ask(&["tasks", "delete", "--force", &task]);
        }
        let mut networks = Vec::new();
        for container in self.listed(&["containers", "list", "--quiet"]) {
            let about = self.listed(&["containers", "info", &container]).concat();
            networks.extend(networks_in(&about));
            ask(&["containers", "delete", &container]);
        }
        drop(self.components.pop());
        networks.sort();
        networks.dedup();
        for network in networks {
            drop(Command::new("ip").args(["netns", "del", &network]).output());
        }
    }
}

impl Drop for RealNode {
    fn drop(&mut self) {
        self.end();
        if let Err(error) = self.network.remove() {
            eprintln!("{error:#}");
        }
    }
}

/// kube-proxy, by which Services are reached from a network.
pub(super) fn start_proxy(
    node: &str,
    network: &Network,
    shared: &Shared<'_>,
) -> anyhow::Result<Component> {
    let name = format!("proxy-{node}");
    let file = shared.folder.join(format!("{name}.json"));
    let configuration = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": shared.folder.join("kubeconfig")},
        "hostnameOverride": node,
        "clusterCIDR": "10.88.0.0/16",
        "conntrack": {"maxPerCore": 0},
    });
    fs::write(&file, configuration.to_string())?;
    let mut command = network.command(shared.binary);
    command
        .args(["attached", "proxy"])
        .arg(format!("--config={}", file.display()));
    Component::start(&name, command, shared.folder, Lifeline::StandardInput)
}

/// a, b, c, …
pub(super) fn zone(number: usize) -> char {
    let letters = 'a'..='z';
    letters
        .into_iter()
        .nth(number.saturating_sub(1))
        .unwrap_or('z')
}

/// The network namespaces that a sandbox's description names.
fn networks_in(about: &str) -> Vec<String> {
    let parts = about.split("/var/run/netns/").skip(1);
    let names = parts.filter_map(|part| part.split('"').next());
    names.map(str::to_owned).collect()
}

/// The hierarchies of cgroups: one of version 2, several of version 1.
fn hierarchies() -> anyhow::Result<Vec<PathBuf>> {
    let top = Path::new(CGROUPS);
    if top.join("cgroup.controllers").exists() {
        return Ok(vec![top.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(top)? {
        let path = entry?.path();
        if path.join("cgroup.procs").exists() {
            found.push(path);
        }
    }
    Ok(found)
}

/// The kubelet's top: in version 1 the processors of a new one must be written before it is used.
fn make_cgroup(run: &str, cgroup: &str) -> anyhow::Result<()> {
    for hierarchy in hierarchies()? {
        fs::create_dir_all(hierarchy.join(cgroup))?;
        for what in ["cpuset.cpus", "cpuset.mems"] {
            let all = hierarchy.join(what);
            if hierarchy.ends_with("cpuset") && all.exists() {
                let all = fs::read(all)?;
                for part in [run, cgroup] {
                    fs::write(hierarchy.join(part).join(what), &all)?;
                }
            }
        }
    }
    Ok(())
}

/// Removes the cgroups of a run: those inside first.
pub(super) fn remove_cgroups(run: &str) -> anyhow::Result<()> {
    for hierarchy in hierarchies()? {
        remove_cgroup(&hierarchy.join(run));
    }
    Ok(())
}

fn remove_cgroup(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            remove_cgroup(&path);
        }
    }
    if let Err(error) = fs::remove_dir(folder) {
        eprintln!("{}: {error}", folder.display());
    }
}

#[test]
fn what_a_sandbox_says_of_its_network_is_found() {
    let about =
        r#"{"namespaces":[{"type":"network","path":"/var/run/netns/cni-1b-2c"},{"type":"ipc"}]}"#;
    assert_eq!(networks_in(about), ["cni-1b-2c"]);
    assert!(networks_in("{}").is_empty());
    assert_eq!((zone(1), zone(3)), ('a', 'c'));
}
