//! A control plane to try things on: `cargo xtask lab`.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use xtask_lab::lab::{Lab, Options, RealLab, STREW_IMAGE, Scheduler, Timing};

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct ControlPlane {
    /// Leave kube-scheduler out: pods are not scheduled until you start a scheduler
    #[arg(long)]
    no_scheduler: bool,
    /// Real nodes, each in a zone of its own, on which containers run [without a number: 3] (root on Linux)
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3")]
    real_nodes: Option<usize>,
}

/// Runs a control plane until Ctrl-C, or until standard input ends.
pub(crate) fn run(top: &Path, options: &ControlPlane) -> anyhow::Result<()> {
    // Registered first, so that Ctrl-C leaves nothing behind at any time.
    let mut end = until_told()?;
    let scheduler = match options.no_scheduler {
        true => Scheduler::None,
        false => Scheduler::Kube(None),
    };
    if let Some(n_nodes) = options.real_nodes {
        return real_nodes(top, n_nodes, &scheduler, end);
    }
    let options = Options {
        timing: Timing::new(),
        scheduler,
        feature_gates: Vec::new(),
        grace: None,
    };
    let mut lab = Lab::start(top, &options)?;
    let folder = lab.folder().display().to_string();
    println!("export KUBECONFIG={folder}/kubeconfig");
    println!(
        "alias kubectl='{} kubectl'",
        lab.kubectl().binary().display()
    );
    println!("# logs are in {folder}; a node has a kubelet if it is labelled");
    println!("# {}=runs; Ctrl-C ends all", xtask_lab::lab::KUBELET_LABEL);
    end.read_exact(&mut [0])?;
    lab.expect_running()
}

fn real_nodes(
    top: &Path,
    n_nodes: usize,
    scheduler: &Scheduler,
    mut end: UnixStream,
) -> anyhow::Result<()> {
    let strew = crate::e2e::build()?;
    let mut lab = RealLab::start(top, &strew, n_nodes, scheduler)?;
    let folder = lab.folder().display().to_string();
    let kubectl = lab.kubectl().command(&[]);
    println!("export KUBECONFIG={folder}/kubeconfig");
    let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    println!("alias kubectl='{}'", words.join(" "));
    println!("# strew is the image {STREW_IMAGE}; logs are in {folder}; Ctrl-C ends all");
    end.read_exact(&mut [0])?;
    lab.expect_running()
}

/// A stream that becomes readable at a signal, or at the end of standard input.
fn until_told() -> anyhow::Result<UnixStream> {
    let (told, mut tell) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        pipe::register(signal, tell.try_clone()?)?;
    }
    std::thread::spawn(move || {
        let mut rest = [0; 1024];
        let mut input = std::io::stdin().lock();
        while input.read(&mut rest).is_ok_and(|n| n > 0) {}
        // Fails if the reader is gone: the run is over already.
        let _ = tell.write_all(b"e");
    });
    Ok(told)
}
