//! A process of the control plane, or of strew.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::wait::until;

/// Between two looks whether a process has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// A process with its output in a file. It ends with this value, and with the process that holds it.
///
/// It can be killed and started again with the same arguments: that is what a fault is.
pub struct Component {
    name: String,
    command: Command,
    lifeline: Lifeline,
    /// `None`: it was killed on purpose, and not started again yet.
    running: Option<Running>,
    log: PathBuf,
}

/// How a process ends with the one that started it, even if that one is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifeline {
    /// It ends by itself when its standard input closes: `controlplane attached`.
    StandardInput,
    /// A shell waits beside it for the end of its own standard input, and then kills it.
    Guard,
}

struct Running {
    child: Child,
    /// Ends first: it must not kill a process id that another process has by then.
    guard: Option<Child>,
}

impl Component {
    /// Starts `command`, with its output in `NAME.log` of the folder.
    pub(super) fn start(
        name: &str,
        mut command: Command,
        folder: &Path,
        lifeline: Lifeline,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log)?;
        command.stdout(output.try_clone()?).stderr(output);
        command.stdin(match lifeline {
            Lifeline::StandardInput => Stdio::piped(),
            Lifeline::Guard => Stdio::null(),
        });
        let mut component = Self {
            name: name.to_owned(),
            command,
            lifeline,
            running: None,
            log,
        };
        component.restart()?;
        Ok(component)
    }

    /// Starts it with the arguments that it had; its output is added to what is there.
    ///
    /// # Errors
    /// If it runs, or cannot be started.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        ensure!(self.running.is_none(), "{} still runs", self.name);
        let child = self
            .command
            .spawn()
            .with_context(|| format!("starting {}", self.name))?;
        let guard = match self.lifeline {
            Lifeline::StandardInput => None,
            Lifeline::Guard => Some(guard(child.id())?),
        };
        self.running = Some(Running { child, guard });
        Ok(())
    }

    /// Its process id; 0 while it was killed.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.as_ref().map_or(0, |r| r.child.id())
    }

    /// SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.end(&self.name);
        }
    }

    /// Sends a signal by its name: `STOP`, `CONT`, `TERM`.
    ///
    /// # Errors
    /// If it does not run.
    pub fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let running = self.running.as_ref();
        let running = running.with_context(|| format!("{} does not run", self.name))?;
        let id = running.child.id().to_string();
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &id])
            .status()?;
        ensure!(status.success(), "kill -{signal} {id} ({})", self.name);
        Ok(())
    }

    /// Waits for its end: how it ended.
    ///
    /// # Errors
    /// If it has not ended within this time.
    pub fn ended(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let what = format!("the end of {}", self.name);
        until(&what, within, PAUSE, || self.has_ended())
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// If it was killed.
    pub fn has_ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let running = self.running.as_mut().context("it was killed")?;
        Ok(running.child.try_wait()?)
    }

    /// Everything that it has written so far.
    #[must_use]
    pub fn output(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// An error, with the last lines of its output, if it has ended by itself.
    ///
    /// # Errors
    /// The same.
    pub fn expect_running(&mut self) -> anyhow::Result<()> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        match running.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended ({status}); the end of its output:\n{}",
                self.name,
                self.last_lines()
            ),
        }
    }

    fn last_lines(&self) -> String {
        let text = self.output();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Component {
    /// Nothing that it wrote is needed any more, so it is not asked.
    fn drop(&mut self) {
        self.kill();
    }
}

impl Running {
    fn end(self, name: &str) {
        let guard = self.guard.map(|guard| (guard, "its guard"));
        for (mut child, name) in guard.into_iter().chain([(self.child, name)]) {
            match child.kill() {
                Err(error) if error.kind() != ErrorKind::InvalidInput => {
                    eprintln!("{name} (process {}) stays: {error}", child.id());
                }
                _ => drop(child.wait()),
            }
        }
    }
}

fn guard(id: u32) -> anyhow::Result<Child> {
    Command::new("sh")
        .args(["-c", &format!("cat >/dev/null; kill -KILL {id}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting a guard")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("strew-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn is_there(id: u32) -> bool {
        Path::new("/proc").join(id.to_string()).exists()
    }

    #[test]
    fn a_component_ends_with_its_value_and_tells_why_it_ended() {
        let folder = folder("component");
        let has_proc = Path::new("/proc/self").exists();
        let cat = Command::new("cat");
        let component = Component::start("cat", cat, &folder, Lifeline::StandardInput).unwrap();
        let id = component.id();
        assert_eq!(is_there(id), has_proc);
        drop(component);
        assert!(!is_there(id));

        let script = shell("echo said; exit 7");
        let mut component = Component::start("sh", script, &folder, Lifeline::Guard).unwrap();
        let status = component.ended(Duration::from_secs(60)).unwrap();
        assert_eq!(status.code(), Some(7));
        let error = component.expect_running().unwrap_err().to_string();
        assert!(error.contains("7") && error.ends_with("said"), "{error}");
    }

    #[test]
    fn a_killed_component_starts_again_with_its_arguments() {
        let folder = folder("restart");
        let script = shell("echo begun; exec sleep 600");
        let mut component = Component::start("again", script, &folder, Lifeline::Guard).unwrap();
        let first = component.id();
        assert!(component.restart().is_err(), "it runs");
        let begun = |component: &Component, times: usize| {
            let seen = || Ok((component.output() == "begun\n".repeat(times)).then_some(()));
            until("begun", Duration::from_secs(60), PAUSE, seen).unwrap();
        };
        begun(&component, 1);
        component.kill();
        assert!(!is_there(first));
        component.expect_running().unwrap();
        component.restart().unwrap();
        assert_ne!(component.id(), first);
        begun(&component, 2);
        component.signal("STOP").unwrap();
        component.signal("CONT").unwrap();
        component.signal("TERM").unwrap();
        component.ended(Duration::from_secs(60)).unwrap();
    }
}
