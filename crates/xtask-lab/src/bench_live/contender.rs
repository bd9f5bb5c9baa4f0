//! The measured schedulers.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use xtask_lab::lab::{Component, Lab};

use crate::taken::Taken;

/// A scheduler that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    /// kube-scheduler as it comes: its default profile, 16 goroutines, and client limits far above what it reaches.
    KubeScheduler,
    /// strew as it is shipped, in kube-scheduler's place.
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
    /// Starts it; strew gets the additional arguments.
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

    /// The CPU time and memory that it has taken so far.
    ///
    /// # Errors
    /// It does not run, or there is no `/proc`.
    pub(super) fn taken(&mut self) -> anyhow::Result<Taken> {
        let process = self.running.as_mut().context("nobody was started")?;
        process.expect_running()?;
        Taken::of(process.id())
    }
}
