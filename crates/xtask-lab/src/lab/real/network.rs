//! Networks of their own: one for the control plane, with a bridge, and one for each node. Nothing reaches outside, no
//! rule of the machine is touched, and a node is cut off by taking its end of the bridge down.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Where `ip netns` puts them.
const NAMESPACES: &str = "/var/run/netns";

/// The control plane's address. 192.0.2.0/24 is reserved for documentation, so no host has it.
pub(super) const SERVER: &str = "192.0.2.1";

/// The bridge's own hardware address: without one it takes that of each new port, and nodes that know the earlier
/// address reach no peer.
const BRIDGE_ADDRESS: &str = "02:00:00:00:00:01";

/// A network namespace; it goes with its last process, and its name with [`Network::remove`].
#[derive(Debug, Clone)]
pub(in crate::lab) struct Network {
    name: String,
}

impl Network {
    /// The control plane's network, with the bridge.
    pub(super) fn of_server(name: &str) -> anyhow::Result<Self> {
        remove_orphans()?;
        let network = Self::new(name.to_owned())?;
        network.ip(&["link", "set", "lo", "up"])?;
        let bridge = ["link", "add", "lab0", "address", BRIDGE_ADDRESS];
        network.ip(&[&bridge[..], &["type", "bridge"]].concat())?;
        network.ip(&["addr", "add", &format!("{SERVER}/24"), "dev", "lab0"])?;
        network.ip(&["link", "set", "lab0", "up"])?;
        network.ip(&["route", "add", "default", "via", SERVER, "dev", "lab0"])?;
        network.forward()?;
        Ok(network)
    }

    /// The network of node `number`, counted from 1, joined to the bridge; its pods are in 10.88.`number`.0/24.
    pub(super) fn of_node(server: &Self, number: usize) -> anyhow::Result<Self> {
        let network = Self::new(format!("{}-{number}", server.name))?;
        let port = port(number);
        let pair = ["link", "add", &port, "netns", &server.name, "type", "veth"];
        let peer = ["peer", "name", "eth0", "netns", &network.name];
        run(Command::new("ip").args(pair).args(peer))?;
        server.ip(&["link", "set", &port, "master", "lab0", "up"])?;
        let address = address(number);
        network.ip(&["link", "set", "lo", "up"])?;
        network.ip(&["addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
        network.ip(&["link", "set", "eth0", "up"])?;
        network.ip(&["route", "add", "default", "via", SERVER])?;
        network.forward()?;
        server.ip(&["route", "add", &pods(number), "via", &address])?;
        Ok(network)
    }

    fn new(name: String) -> anyhow::Result<Self> {
        run(Command::new("ip").args(["netns", "add", &name]))?;
        Ok(Self { name })
    }

    /// A command inside. Not by `ip netns exec`, which mounts another /sys, where a kubelet finds no cgroups.
    pub(in crate::lab) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.path().display()))
            .arg(program);
        command
    }

    /// Takes the node's end of the bridge down, or up again.
    pub(super) fn set_link(&self, number: usize, is_up: bool) -> anyhow::Result<()> {
        let state = if is_up { "up" } else { "down" };
        self.ip(&["link", "set", &port(number), state])
    }

    /// Deletes its name; the network is gone once no process is inside.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        run(Command::new("ip").args(["netns", "del", &self.name]))
    }

    fn path(&self) -> PathBuf {
        Path::new(NAMESPACES).join(&self.name)
    }

    fn ip(&self, arguments: &[&str]) -> anyhow::Result<()> {
        run(self.command(Path::new("ip")).args(arguments))
    }

    fn forward(&self) -> anyhow::Result<()> {
        run(self
            .command(Path::new("sysctl"))
            .args(["--quiet", "--write", "net.ipv4.ip_forward=1"]))
    }
}

/// A node's address.
pub(super) fn address(number: usize) -> String {
    format!("192.0.2.{}", 10 + number)
}

/// The addresses of a node's pods.
pub(super) fn pods(number: usize) -> String {
    format!("10.88.{number}.0/24")
}

/// The name of a run's network: it has the run's process id, so that a later run finds what a killed run left.
pub(super) fn own_name() -> String {
    format!("{PREFIX}{}", std::process::id())
}

const PREFIX: &str = "strewlab";

fn port(number: usize) -> String {
    format!("node{number}")
}

/// Removes the networks of runs whose process is gone.
fn remove_orphans() -> anyhow::Result<()> {
    let Ok(names) = std::fs::read_dir(NAMESPACES) else {
        return Ok(());
    };
    for name in names {
        let name = name?.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let id = rest.split('-').next().unwrap_or_default();
        if !id.is_empty() && !Path::new("/proc").join(id).exists() {
            Network { name }.remove()?;
        }
    }
    Ok(())
}

/// Runs a command to its end; an error with its own words.
pub(super) fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}", why.trim());
    }
    Ok(())
}
