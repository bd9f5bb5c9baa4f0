//! A real control plane on this machine, without containers: etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler, and kwok in the place of all kubelets; and strew's own processes beside them.
//!
//! [`Lab::start`] does everything, [`Lab::kubectl`] talks to it, and it ends with its value.
//! [`Component`] is where faults come from: kill, start again, stop, go on.
//! No containers run and there is no Service network: Running is what kwok says, and [`Service`] stands for a Service.

mod component;
pub mod https;
mod kubectl;
mod node;
mod real;
mod service;
mod stages;
mod wait;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use component::Lifeline;
use serde_json::{Value, json};
use xtask::go::{Build, binary};

pub use component::Component;
pub use kubectl::Kubectl;
pub use node::{merge, node};
pub use real::{PAUSE_IMAGE, RealLab, STREW_IMAGE, is_ready};
pub use service::Service;
pub use stages::{Timing, with_timing};
pub use wait::{now, until};

/// A node with this label has a kubelet; without it its heartbeats stop, and nothing happens to its pods.
pub const KUBELET_LABEL: &str = "sim.strew.dev/kubelet";

/// The duration of a lease, as of a kubelet.
const LEASE: Duration = Duration::from_secs(40);

/// Until when the API server must serve: a cold start on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(200);

/// What a lab is started with.
pub struct Options {
    /// How long pods take to start, stop and run; kwok's stages keep their own delays for what is not named.
    pub timing: Timing,
    /// The scheduler of the lab.
    pub scheduler: Scheduler,
    /// Feature gates by name, for all components that know them.
    pub feature_gates: Vec<(String, bool)>,
    /// How long a node may be silent until it is lost; a kubelet renews its lease twice in it. `None`: Kubernetes' own 50
    /// seconds, with a lease of 40 that is renewed every ten.
    pub grace: Option<Duration>,
}

/// The scheduler of a lab.
pub enum Scheduler {
    /// kube-scheduler with a `KubeSchedulerConfiguration`, or its default one; connection and election are filled in.
    Kube(Option<Value>),
    /// No scheduler, until the caller starts one.
    None,
}

/// A running control plane. All of its processes end when it is dropped.
pub struct Lab {
    kubectl: Kubectl,
    /// In the order in which they were started.
    components: Vec<(&'static str, Component)>,
    folder: PathBuf,
    /// The store's URL.
    etcd: String,
    /// How many processes were started beside the components: each has a log of its own.
    n_beside: u32,
}

/// The ports of a run, on the loopback device.
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
    kwok: u16,
}

impl Lab {
    /// Builds what is missing, starts all components, and returns when pods can be made.
    ///
    /// `top` is the project's folder; the run's own folder is made under its `target/`.
    ///
    /// # Errors
    /// If Go is missing, the build fails, a component ends (with the end of its output), or nothing is ready in time.
    pub fn start(top: &Path, options: &Options) -> anyhow::Result<Self> {
        let binary = binary(top, Build::ControlPlane)?;
        let folder = new_folder(top)?;
        let [etcd, etcd_peer, apiserver, kwok] = free_ports()?;
        let ports = Ports {
            etcd,
            etcd_peer,
            apiserver,
            kwok,
        };
        let server = format!("https://127.0.0.1:{}", ports.apiserver);
        let keys = Command::new(&binary)
            .arg("keys")
            .arg(&folder)
            .arg(&server)
            .status()?;
        anyhow::ensure!(keys.success(), "keys could not be made");
        let stages = fs::read_to_string(top.join("e2e/stages.yaml"))?;
        let stages = with_timing(&stages, &options.timing);
        fs::write(folder.join("stages.yaml"), stages)?;
        let mut lab = Self {
            kubectl: Kubectl {
                binary,
                folder: folder.clone(),
                network: None,
            },
            components: Vec::new(),
            folder,
            etcd: String::new(),
            n_beside: 0,
        };
        lab.start_server(&ports, options)?;
        lab.start_controllers(&ports, options)?;
        lab.wait_for_accounts()?;
        Ok(lab)
    }

    /// kubectl with all rights here.
    #[must_use]
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// The folder of this run: kubeconfig, keys, and a log for each component. It stays when the lab has ended.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The administrator's token.
    ///
    /// # Errors
    /// If the run's folder is not as it was made.
    pub fn token(&self) -> anyhow::Result<String> {
        let tokens = fs::read_to_string(self.folder.join("tokens.csv"))?;
        let (token, _) = tokens.split_once(',').context("tokens.csv is empty")?;
        Ok(token.to_owned())
    }

    /// An error if a component has ended.
    ///
    /// # Errors
    /// With the component's name and the end of its output.
    pub fn expect_running(&mut self) -> anyhow::Result<()> {
        self.components
            .iter_mut()
            .try_for_each(|(_, component)| component.expect_running())
    }

    /// A process of the control plane: `etcd`, `apiserver`, `controller-manager`, `scheduler`, `kwok`.
    ///
    /// # Errors
    /// If the lab was started without it.
    pub fn component(&mut self, name: &str) -> anyhow::Result<&mut Component> {
        let found = self.components.iter_mut().find(|(n, _)| *n == name);
        let found = found.map(|(_, component)| component);
        found.with_context(|| format!("there is no {name} in this lab"))
    }

    /// Waits until the API server serves: after it, or what is below it, was started again.
    ///
    /// # Errors
    /// If a component has ended by itself, or nothing is ready in time.
    pub fn wait_for_server(&mut self) -> anyhow::Result<()> {
        until("the API server is not ready", READY_WITHIN, PAUSE, || {
            self.expect_running()?;
            Ok(self.kubectl.run(&["get", "--raw", "/readyz"]).ok())
        })?;
        Ok(())
    }

    /// Starts `strew` with these arguments, beside the components; its log is `strew-N.log` of the folder.
    /// The arguments name a kubeconfig only if the caller adds it: the environment names none.
    ///
    /// # Errors
    /// If it cannot be started. That it ends at once is none: [`Component::ended`] tells.
    pub fn start_strew(&mut self, binary: &Path, args: &[&str]) -> anyhow::Result<Component> {
        let mut command = Command::new(binary);
        command
            .args(args)
            .env_remove("KUBECONFIG")
            .env_remove("RUST_LOG")
            // What a person has there is not the lab's.
            .env("HOME", &self.folder)
            .current_dir(&self.folder);
        self.n_beside += 1;
        let name = format!("strew-{}", self.n_beside);
        Component::start(&name, command, &self.folder, Lifeline::Guard)
    }

    /// Starts a kube-scheduler beside the components; connection and election are filled in.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_kube_scheduler(
        &mut self,
        configuration: Option<&Value>,
    ) -> anyhow::Result<Component> {
        self.n_beside += 1;
        let name = format!("kube-scheduler-{}", self.n_beside);
        let file = format!("{name}.json");
        let configuration = scheduler_configuration(configuration);
        fs::write(self.folder.join(&file), configuration.to_string())?;
        let mut command = self.program("scheduler");
        command
            .arg(format!("--config={file}"))
            .arg("--secure-port=0");
        Component::start(&name, command, &self.folder, Lifeline::StandardInput)
    }

    fn start_server(&mut self, ports: &Ports, options: &Options) -> anyhow::Result<()> {
        let local = |port: u16| format!("http://127.0.0.1:{port}");
        let (etcd, peer) = (local(ports.etcd), local(ports.etcd_peer));
        let mut command = self.program("etcd");
        command
            .arg("--data-dir=etcd")
            .arg(format!("--listen-client-urls={etcd}"))
            .arg(format!("--advertise-client-urls={etcd}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=default={peer}"))
            // The default of 2 GiB ends an hour of pods of 0.9 MB: what is compacted stays in the file.
            .arg("--quota-backend-bytes=8589934592")
            .arg("--unsafe-no-fsync");
        self.add("etcd", command)?;

        self.etcd = etcd;
        let command = self.server(ports.apiserver, "certs", &options.feature_gates);
        self.add("apiserver", command)?;
        self.wait_for_server()
    }

    /// The command of an API server on this port.
    fn server(&self, port: u16, certificates: &str, given: &[(String, bool)]) -> Command {
        let mut command = self.program("apiserver");
        command
            .arg(format!("--etcd-servers={}", self.etcd))
            .arg(format!("--secure-port={port}"))
            .arg(format!("--cert-dir={certificates}"))
            .args([
                "--bind-address=127.0.0.1",
                "--service-account-key-file=sa.key",
                "--service-account-signing-key-file=sa.key",
                "--service-account-issuer=https://localhost",
                "--token-auth-file=tokens.csv",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/16",
                "--max-requests-inflight=4000",
                "--max-mutating-requests-inflight=2000",
            ])
            .args(gates(given));
        command
    }

    /// Starts another API server on the same store, with feature gates and flags of its own: two of them of different
    /// ages, as while a control plane is upgraded. Its URL comes with it.
    ///
    /// # Errors
    /// If it cannot be started, or is not ready in time.
    pub fn start_other_server(
        &mut self,
        feature_gates: &[(String, bool)],
        flags: &[String],
    ) -> anyhow::Result<(Component, String)> {
        let [port] = free_ports()?;
        self.n_beside += 1;
        let name = format!("apiserver-{}", self.n_beside);
        let mut command = self.server(port, &format!("certs-{}", self.n_beside), feature_gates);
        command.args(flags);
        let mut server = Component::start(&name, command, &self.folder, Lifeline::StandardInput)?;
        let url = format!("https://127.0.0.1:{port}");
        let at = format!("--server={url}");
        until(
            "another API server is not ready",
            READY_WITHIN,
            PAUSE,
            || {
                server.expect_running()?;
                Ok(self.kubectl.run(&[&at, "get", "--raw", "/readyz"]).ok())
            },
        )?;
        Ok((server, url))
    }

    /// What acts through the API server. The limits of requests are far above the defaults, with which a
    /// controller manager needs minutes for a rollout of 2,000 pods.
    fn start_controllers(&mut self, ports: &Ports, options: &Options) -> anyhow::Result<()> {
        let gates = gates(&options.feature_gates);
        let mut command = self.program("controller-manager");
        command
            .args([
                "--kubeconfig=kubeconfig",
                "--service-account-private-key-file=sa.key",
                "--use-service-account-credentials=false",
                "--leader-elect=false",
                "--secure-port=0",
                "--controllers=*,-nodeipam,-route,-service-lb-controller",
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
            ])
            .args(&gates);
        if let Some(grace) = options.grace {
            command.arg(format!("--node-monitor-grace-period={}s", grace.as_secs()));
        }
        self.add("controller-manager", command)?;

        if let Scheduler::Kube(configuration) = &options.scheduler {
            let configuration = scheduler_configuration(configuration.as_ref());
            fs::write(
                self.folder.join("scheduler.json"),
                configuration.to_string(),
            )?;
            let mut command = self.program("scheduler");
            command
                .args(["--config=scheduler.json", "--secure-port=0"])
                .args(&gates);
            self.add("scheduler", command)?;
        }

        let mut command = self.program("kwok");
        command
            .args(["--kubeconfig=kubeconfig", "--config=stages.yaml"])
            .arg(format!(
                "--manage-nodes-with-label-selector={KUBELET_LABEL}"
            ))
            .arg(format!(
                "--node-lease-duration-seconds={}",
                options.grace.map_or(LEASE, |grace| 2 * grace).as_secs()
            ))
            .arg(format!("--server-address=127.0.0.1:{}", ports.kwok));
        self.add("kwok", command)
    }

    /// A pod needs its namespace's service account, which a controller makes.
    fn wait_for_accounts(&mut self) -> anyhow::Result<()> {
        let deadline = READY_WITHIN;
        until("no service account", deadline, PAUSE, || {
            self.expect_running()?;
            Ok(self.kubectl.run(&["get", "serviceaccount", "default"]).ok())
        })?;
        Ok(())
    }

    /// The program of a component: ours, or a person's own where KUBEBUILDER_ASSETS has it.
    fn program(&self, name: &str) -> Command {
        let file = match name {
            "apiserver" => "kube-apiserver",
            other => other,
        };
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let own = assets
            .map(|folder| folder.join(file))
            .filter(|f| f.is_file());
        let mut command = match own {
            Some(own) => Command::new(own),
            None => {
                let mut command = Command::new(&self.kubectl.binary);
                command.args(["attached", name]);
                command
            }
        };
        command.current_dir(&self.folder);
        command
    }

    fn add(&mut self, name: &'static str, command: Command) -> anyhow::Result<()> {
        let component = Component::start(name, command, &self.folder, Lifeline::StandardInput)?;
        self.components.push((name, component));
        Ok(())
    }
}

impl Drop for Lab {
    /// What writes ends before what it writes to.
    fn drop(&mut self) {
        while let Some(component) = self.components.pop() {
            drop(component);
        }
        // Its logs are laid out ahead, with 64 MB each; what is worth reading lies beside it.
        drop(fs::remove_dir_all(self.folder.join("etcd")));
    }
}

/// `--feature-gates`, if there are any.
fn gates(gates: &[(String, bool)]) -> Option<String> {
    let gates: Vec<String> = gates.iter().map(|(g, on)| format!("{g}={on}")).collect();
    (!gates.is_empty()).then(|| format!("--feature-gates={}", gates.join(",")))
}

/// The given configuration, or the default one, as this run's scheduler needs it.
fn scheduler_configuration(given: Option<&Value>) -> Value {
    let mut configuration = given.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        })
    });
    configuration["leaderElection"] = json!({"leaderElect": false});
    configuration["clientConnection"] =
        json!({"kubeconfig": "kubeconfig", "qps": 5000, "burst": 5000});
    configuration
}

/// A folder that no other run has.
fn new_folder(top: &Path) -> anyhow::Result<PathBuf> {
    let base = top.join("target/lab");
    fs::create_dir_all(&base).with_context(|| format!("making {}", base.display()))?;
    for number in 0..u32::MAX {
        let folder = base.join(format!("{}-{number}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e).with_context(|| format!("making {}", folder.display())),
        }
    }
    anyhow::bail!("{} is full", base.display())
}

/// Ports that were free a moment ago, each given once in the life of this program: a lab keeps those of a server that it
/// stops for a while.
///
/// # Errors
/// If there are no more.
pub fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    // Held until all are found, so that they differ.
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        *port = loop {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let number = listener.local_addr()?.port();
            held.push(listener);
            if given.insert(number) {
                break number;
            }
        };
    }
    Ok(ports)
}
