//! Who is measured.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use xtask::lab::{Component, Lab};

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    /// The peer, as it comes: its default profile, 16 goroutines, and client limits far above what it reaches.
    KubeScheduler,
    /// strew as it is shipped, in its place.
    Strew,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KubeScheduler => "kube-scheduler",
            Self::Strew => "strew",
        })
    }
}

/// A contender that can be started.
pub(super) struct Process<'a> {
    contender: Contender,
    lab: &'a mut Lab,
    strew: PathBuf,
    running: Option<Component>,
}

impl Contender {
    pub(super) fn prepare<'a>(self, lab: &'a mut Lab, strew: &Path) -> Process<'a> {
        Process {
            contender: self,
            lab,
            strew: strew.to_owned(),
            running: None,
        }
    }
}

impl Process<'_> {
    /// Starts it, with these arguments more if it is strew.
    pub(super) fn start(&mut self, more: &[&str]) -> anyhow::Result<()> {
        let component = match self.contender {
            Contender::KubeScheduler => self.lab.start_kube_scheduler(None)?,
            Contender::Strew => {
                let mut args = vec![
                    "scheduler",
                    "--kubeconfig=kubeconfig",
                    "--leader-elect=false",
                    "--scheduler-name=default-scheduler",
                ];
                args.extend(match more {
                    [] => &["--secure-port=0"],
                    more => more,
                });
                self.lab.start_strew(&self.strew, &args)?
            }
        };
        self.running = Some(component);
        Ok(())
    }

    /// What it has taken so far.
    ///
    /// # Errors
    /// It does not run, or there is no `/proc`.
    pub(super) fn taken(&mut self) -> anyhow::Result<Taken> {
        let process = self.running.as_mut().context("nobody was started")?;
        process.expect_running()?;
        Taken::of(process.id())
    }
}

/// What a process has taken since its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Taken {
    /// Seconds of CPU time, its own and the kernel's for it.
    pub(super) cpu: f64,
    /// MiB that it holds now.
    pub(super) resident: f64,
    /// The most MiB that it ever held.
    pub(super) peak: f64,
}

impl Taken {
    fn of(id: u32) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{id}/{name}");
            std::fs::read_to_string(&path).context(path)
        };
        Self::read(&read("stat")?, &read("status")?).context("/proc is not as it was")
    }

    fn read(stat: &str, status: &str) -> Option<Self> {
        /// Of `/proc/PID/stat`, in a second: part of Linux' interface.
        const TICKS: f64 = 100.0;
        // The name in parentheses may hold anything; fields are numbered from the state, the third.
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let mebibytes = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: f64 = rest.split_whitespace().next()?.parse().ok()?;
            Some(kibibytes / 1024.0)
        };
        Some(Self {
            cpu: (ticks(14)? + ticks(15)?) / TICKS,
            resident: mebibytes("VmRSS:")?,
            peak: mebibytes("VmHWM:")?,
        })
    }
}

#[test]
fn the_kernels_words_are_read() {
    let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 25 0 0 20 0 3 0 99";
    let status = "Name:\ta\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n";
    let taken = Taken::read(stat, status);
    let expected = Taken {
        cpu: 1.75,
        resident: 2.0,
        peak: 4.0,
    };
    assert_eq!(taken, Some(expected));
    assert_eq!(Taken::read("", status), None);
}
